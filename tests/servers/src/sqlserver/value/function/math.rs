//! Mathematical functions.

use super::super::conversion::{CastOptions, cast};
use super::super::{SqlType, Value, ValueError};
use super::call::{Call, Taken};
use super::{Resolver, ScalarFunction, rounding};

pub(super) const FUNCTIONS: &[(&str, Resolver)] = &[
    ("ABS", rounding::abs),
    ("ACOS", |call| float_function(call, f64::acos)),
    ("ASIN", |call| float_function(call, f64::asin)),
    ("ATAN", |call| float_function(call, f64::atan)),
    ("ATN2", atn2),
    ("CEILING", |call| rounding::whole(call, true)),
    ("COS", |call| float_function(call, f64::cos)),
    ("COT", |call| float_function(call, |angle| angle.tan().recip())),
    ("DEGREES", |call| same_type(call, f64::to_degrees)),
    ("EXP", |call| float_function(call, f64::exp)),
    ("FLOOR", |call| rounding::whole(call, false)),
    ("LOG", log),
    ("LOG10", |call| float_function(call, f64::log10)),
    ("PI", pi),
    ("POWER", power),
    ("RADIANS", |call| same_type(call, f64::to_radians)),
    ("RAND", rand),
    ("ROUND", rounding::round),
    ("SIGN", rounding::sign),
    ("SIN", |call| float_function(call, f64::sin)),
    ("SQRT", |call| float_function(call, f64::sqrt)),
    ("SQUARE", |call| float_function(call, |value| value * value)),
    ("TAN", |call| float_function(call, f64::tan)),
];

/// NaN is an invalid operation, infinity an overflow.
fn checked(value: f64) -> Result<Value, ValueError> {
    if value.is_nan() {
        return Err(ValueError::new(3623, 1, "An invalid floating point operation occurred."));
    }
    if value.is_infinite() {
        return Err(ValueError::overflow("expression", &SqlType::Float));
    }
    Ok(Value::Float(value))
}

fn float_function(call: &Call<'_>, function: fn(f64) -> f64) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.float(0)?;
    call.returns(SqlType::Float, move |arguments, _| {
        taken.float(&arguments[0])?.map_or(Ok(Value::Null), |value| checked(function(value)))
    })
}

fn atn2(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (y, x) = (call.float(0)?, call.float(1)?);
    call.returns(SqlType::Float, move |arguments, _| match (y.float(&arguments[0])?, x.float(&arguments[1])?) {
        (Some(y), Some(x)) if y == 0.0 && x == 0.0 => checked(f64::NAN),
        (Some(y), Some(x)) => checked(y.atan2(x)),
        _ => Ok(Value::Null),
    })
}

/// LOG(value [, base]); the logarithm of 0 is an invalid operation, not an overflow.
fn log(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=2)?;
    let value = call.float(0)?;
    let base = if call.arguments.len() == 2 { Some(call.float(1)?) } else { None };
    call.returns(SqlType::Float, move |arguments, _| {
        let Some(value) = value.float(&arguments[0])? else { return Ok(Value::Null) };
        let logarithm = if value > 0.0 { value.ln() } else { f64::NAN };
        match &base {
            None => checked(logarithm),
            Some(taken) => match taken.float(&arguments[1])? {
                None => Ok(Value::Null),
                Some(base) if base > 0.0 && (base - 1.0).abs() > 0.0 => checked(logarithm / base.ln()),
                Some(_) => checked(f64::NAN),
            },
        }
    })
}

fn pi(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(0..=0)?;
    call.returns(SqlType::Float, |_, _| Ok(Value::Float(std::f64::consts::PI)))
}

/// The type in which POWER, DEGREES and RADIANS answer.
fn answer_type(call: &Call<'_>) -> Result<SqlType, ValueError> {
    let from = call.ty(0)?;
    Ok(match from {
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt | SqlType::Null => SqlType::Int,
        SqlType::Decimal { scale, .. } => SqlType::Decimal { precision: 38, scale },
        SqlType::SmallMoney => SqlType::Money,
        SqlType::Int | SqlType::BigInt | SqlType::Money => from,
        _ => SqlType::Float,
    })
}

fn power(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (base, exponent) = (call.float(0)?, call.float(1)?);
    let result = answer_type(call)?;
    call.returns(result, move |arguments, _| {
        let (Some(power), Some(exponent_value)) = (base.float(&arguments[0])?, exponent.float(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        // Whole powers of whole numbers are exact where a float would not be.
        if let (Some(whole), Some(count)) =
            (arguments[0].as_i64(), arguments[1].as_i64().and_then(|count| u32::try_from(count).ok()))
        {
            let exact = i128::from(whole).checked_pow(count).and_then(|value| i64::try_from(value).ok());
            let exact = exact.ok_or_else(|| ValueError::overflow("expression", &result))?;
            return from_whole(exact, &result);
        }
        if power == 0.0 && exponent_value < 0.0 {
            return Err(ValueError::divide_by_zero());
        }
        let Value::Float(value) = checked(power.powf(exponent_value))? else { return Ok(Value::Null) };
        cast(&Value::Float(value), &SqlType::Float, &result, &CastOptions::EXPLICIT)
    })
}

fn from_whole(value: i64, result: &SqlType) -> Result<Value, ValueError> {
    cast(&Value::BigInt(value), &SqlType::BigInt, result, &CastOptions::EXPLICIT)
        .map_err(|_| ValueError::overflow("expression", result))
}

/// DEGREES and RADIANS answer in the type of the argument, decimals with 18 digits behind the point.
fn same_type(call: &Call<'_>, function: fn(f64) -> f64) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.float(0)?;
    let result = match answer_type(call)? {
        SqlType::Decimal { scale, .. } => SqlType::Decimal { precision: 38, scale: scale.max(18) },
        other => other,
    };
    call.returns(result, move |arguments, _| match taken.float(&arguments[0])? {
        None => Ok(Value::Null),
        Some(value) => cast(&checked(function(value))?, &SqlType::Float, &result, &CastOptions::EXPLICIT),
    })
}

/// RAND([seed]): a seed fixes the numbers that follow. They are not the numbers that SQL Server gives for it.
fn rand(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(0..=1)?;
    let seed: Option<Taken> = if call.arguments.is_empty() { None } else { Some(call.int(0)?) };
    let function = call.returns(SqlType::Float, move |arguments, context| {
        if let Some(taken) = &seed {
            let seed = taken.integer(&arguments[0])?.unwrap_or(0);
            context.random_state.store(seed.unsigned_abs(), std::sync::atomic::Ordering::Relaxed);
        }
        // 53 bits, so that every number below 1 is exact.
        #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
        let fraction = (context.random_bits() >> 11) as f64 / (1_u64 << 53) as f64;
        Ok(Value::Float(fraction))
    })?;
    Ok(ScalarFunction { deterministic: false, nullable: false, ..function })
}
