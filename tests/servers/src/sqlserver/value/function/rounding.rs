//! ABS, CEILING, FLOOR, ROUND, SIGN: functions that keep the type of a number.

use super::super::decimal::{Rounding, divide_rounded, fits, power_of_ten};
use super::super::{Decimal, SqlType, Value, ValueError};
use super::ScalarFunction;
use super::call::{Call, Taken};

/// An argument as a number of its own type; texts are `float`, `tinyint` and `smallint` become `int`.
fn number(call: &Call<'_>, index: usize) -> Result<Taken, ValueError> {
    let from = call.ty(index)?;
    let to = match from {
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt | SqlType::Null => SqlType::Int,
        SqlType::SmallMoney => SqlType::Money,
        SqlType::Real => SqlType::Float,
        _ if from.is_number() => from,
        _ if from.is_character() && !from.is_legacy_large() => SqlType::Float,
        _ => return Err(call.invalid(index)),
    };
    Ok(Taken { from, to })
}

fn overflow(ty: &SqlType) -> ValueError {
    ValueError::overflow("expression", ty)
}

pub(super) fn abs(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = number(call, 0)?;
    call.returns(taken.to, move |arguments, _| {
        Ok(match taken.value(&arguments[0])? {
            Value::Int(value) => Value::Int(value.checked_abs().ok_or_else(|| overflow(&taken.to))?),
            Value::BigInt(value) => Value::BigInt(value.checked_abs().ok_or_else(|| overflow(&taken.to))?),
            Value::Money(value) => Value::Money(value.checked_abs().ok_or_else(|| overflow(&taken.to))?),
            Value::Decimal(value) => {
                Value::Decimal(Decimal::new(value.unscaled().abs(), value.precision(), value.scale()))
            }
            Value::Float(value) => Value::Float(value.abs()),
            other => other,
        })
    })
}

pub(super) fn sign(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = number(call, 0)?;
    call.returns(taken.to, move |arguments, _| {
        Ok(match taken.value(&arguments[0])? {
            Value::Int(value) => Value::Int(value.signum()),
            Value::BigInt(value) => Value::BigInt(value.signum()),
            Value::Money(value) => Value::Money(value.signum() * 10_000),
            Value::Decimal(value) => {
                let one = power_of_ten(value.scale()) * value.unscaled().signum();
                if !fits(one, value.precision()) {
                    return Err(overflow(&taken.to));
                }
                Value::Decimal(Decimal::new(one, value.precision(), value.scale()))
            }
            Value::Float(value) => Value::Float(if value == 0.0 { 0.0 } else { value.signum() }),
            other => other,
        })
    })
}

/// CEILING (`up`) and FLOOR; a decimal result has no digits behind the point.
pub(super) fn whole(call: &Call<'_>, up: bool) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = number(call, 0)?;
    let result = match taken.to {
        SqlType::Decimal { precision, .. } => SqlType::Decimal { precision, scale: 0 },
        other => other,
    };
    let towards = move |value: i128, unit: i128| {
        let floor = value.div_euclid(unit);
        floor + i128::from(up && value.rem_euclid(unit) != 0)
    };
    call.returns(result, move |arguments, _| {
        Ok(match taken.value(&arguments[0])? {
            Value::Decimal(value) => {
                let whole = towards(value.unscaled(), power_of_ten(value.scale()));
                Value::Decimal(Decimal::new(whole, value.precision(), 0))
            }
            Value::Money(value) => {
                let whole =
                    i64::try_from(towards(i128::from(value), 10_000)).ok().and_then(|whole| whole.checked_mul(10_000));
                Value::Money(whole.ok_or_else(|| overflow(&result))?)
            }
            Value::Float(value) => Value::Float(if up { value.ceil() } else { value.floor() }),
            other => other,
        })
    })
}

/// ROUND(number, digits [, cut]); the type stays, so a number may no longer fit: error 8115.
pub(super) fn round(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=3)?;
    let (taken, digits) = (number(call, 0)?, call.int(1)?);
    let cut = if call.arguments.len() == 3 { Some(call.int(2)?) } else { None };
    call.returns(taken.to, move |arguments, _| {
        let Some(digits) = digits.integer(&arguments[1])? else { return Ok(Value::Null) };
        let rounding = match &cut {
            None => Rounding::HalfAwayFromZero,
            Some(taken) => match taken.integer(&arguments[2])? {
                None => return Ok(Value::Null),
                Some(0) => Rounding::HalfAwayFromZero,
                Some(_) => Rounding::Truncate,
            },
        };
        let ty = &taken.to;
        Ok(match taken.value(&arguments[0])? {
            Value::Int(value) => {
                let rounded = round_unscaled(i128::from(value), 0, digits, rounding);
                Value::Int(i32::try_from(rounded).map_err(|_| overflow(ty))?)
            }
            Value::BigInt(value) => {
                let rounded = round_unscaled(i128::from(value), 0, digits, rounding);
                Value::BigInt(i64::try_from(rounded).map_err(|_| overflow(ty))?)
            }
            Value::Money(value) => {
                let rounded = round_unscaled(i128::from(value), 4, digits, rounding);
                Value::Money(i64::try_from(rounded).map_err(|_| overflow(ty))?)
            }
            Value::Decimal(value) => {
                let rounded = round_unscaled(value.unscaled(), value.scale(), digits, rounding);
                if !fits(rounded, value.precision()) {
                    return Err(overflow(ty));
                }
                Value::Decimal(Decimal::new(rounded, value.precision(), value.scale()))
            }
            Value::Float(value) => Value::Float(round_float(value, digits, rounding)),
            other => other,
        })
    })
}

/// Rounds to `digits` behind the point (negative: before it) without changing the scale.
fn round_unscaled(unscaled: i128, scale: u8, digits: i64, rounding: Rounding) -> i128 {
    let dropped = i64::from(scale) - digits;
    match u8::try_from(dropped) {
        Ok(dropped @ 1..=38) => {
            divide_rounded(unscaled, power_of_ten(dropped), rounding).saturating_mul(power_of_ten(dropped))
        }
        Ok(39..) => 0,
        _ if dropped > 0 => 0,
        _ => unscaled,
    }
}

fn round_float(value: f64, digits: i64, rounding: Rounding) -> f64 {
    let digits = i32::try_from(digits.clamp(-400, 400)).unwrap_or(0);
    // Dividing by a power that is exact keeps 0.1-like results correctly rounded.
    let power = 10_f64.powi(digits.abs());
    let scaled = if digits >= 0 { value * power } else { value / power };
    if !scaled.is_finite() || !power.is_finite() {
        return if digits >= 0 { value } else { 0.0 };
    }
    let whole = if rounding == Rounding::Truncate { scaled.trunc() } else { scaled.round() };
    if digits >= 0 { whole / power } else { whole * power }
}
