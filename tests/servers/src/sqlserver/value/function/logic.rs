//! Choosing among arguments, and questions about texts.

use std::cmp::Ordering;

use super::super::conversion::{CastOptions, cast};
use super::super::operator::{Comparison, common_type, compare};
use super::super::{Collation, DateFormat, SqlType, Value, ValueError};
use super::call::{Call, Taken};
use super::{Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] = &[
    ("CHOOSE", choose),
    ("COALESCE", coalesce),
    ("GREATEST", |call| extreme(call, Ordering::Greater)),
    ("ISDATE", isdate),
    ("ISNULL", isnull),
    ("ISNUMERIC", isnumeric),
    ("LEAST", |call| extreme(call, Ordering::Less)),
    ("NULLIF", nullif),
];

/// The type of the arguments from `first` on, and each argument taken as it.
fn all_as_common(call: &Call<'_>, first: usize) -> Result<(Vec<Taken>, SqlType), ValueError> {
    let types = (first..call.arguments.len()).map(|index| call.ty(index)).collect::<Result<Vec<_>, _>>()?;
    let common = types.iter().try_fold(SqlType::Null, |common, ty| common_type(&common, ty))?;
    Ok((types.into_iter().map(|from| Taken { from, to: common }).collect(), common))
}

fn coalesce(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=usize::MAX)?;
    let (taken, common) = all_as_common(call, 0)?;
    if common == SqlType::Null {
        let text = "At least one of the arguments to COALESCE must be an expression that is not the NULL constant.";
        return Err(ValueError::new(4127, 1, text));
    }
    let all_nullable =
        call.arguments.iter().all(|argument| matches!(argument, super::Argument::Typed { nullable: true, .. }));
    let function = call.returns(common, move |arguments, _| {
        let first = arguments.iter().zip(&taken).find(|(value, _)| !value.is_null());
        first.map_or(Ok(Value::Null), |(value, taken)| taken.value(value))
    })?;
    Ok(ScalarFunction { nullable: all_nullable, ..function })
}

/// The replacement is converted to the type of the checked value, which can cut it.
fn isnull(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (checked, replacement) = (call.ty(0)?, call.ty(1)?);
    let result = if checked == SqlType::Null { replacement } else { checked };
    let result = if result == SqlType::Null { SqlType::Int } else { result };
    let replacement = Taken { from: replacement, to: result };
    super::super::conversion::check_conversion(
        &replacement.from,
        &result,
        super::super::conversion::Strictness::Implicit,
    )?;
    let nullable =
        matches!(call.arguments.get(1), Some(super::Argument::Typed { nullable: true, .. })) && call.nullable();
    let function = call.returns(result, move |arguments, _| match &arguments[0] {
        Value::Null => replacement.value(&arguments[1]),
        value => Ok(value.clone()),
    })?;
    Ok(ScalarFunction { nullable, ..function })
}

fn nullif(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (first, second) = (call.ty(0)?, call.ty(1)?);
    if first == SqlType::Null {
        let text = "The type of the first argument to NULLIF cannot be the NULL constant because the type of the first argument has to be known.";
        return Err(ValueError::new(4151, 1, text));
    }
    let comparison = Comparison::resolve("equal to", &first, &second)?;
    call.may_return_null(first, move |arguments, _| {
        let equal = comparison.apply(&arguments[0], &arguments[1])? == Some(Ordering::Equal);
        Ok(if equal { Value::Null } else { arguments[0].clone() })
    })
}

fn choose(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=255)?;
    let index = call.int(0)?;
    let (taken, common) = all_as_common(call, 1)?;
    call.may_return_null(common, move |arguments, _| {
        let position = index.integer(&arguments[0])?.and_then(|index| usize::try_from(index).ok());
        match position.filter(|position| (1..arguments.len()).contains(position)) {
            Some(position) => taken[position - 1].value(&arguments[position]),
            None => Ok(Value::Null),
        }
    })
}

/// GREATEST and LEAST ignore NULL.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<ScalarFunction, ValueError> {
    call.count(1..=254)?;
    let (taken, common) = all_as_common(call, 0)?;
    call.returns(common, move |arguments, _| {
        let mut best = Value::Null;
        for (value, taken) in arguments.iter().zip(&taken) {
            let value = taken.value(value)?;
            if !value.is_null() && (best.is_null() || compare(&value, &best, &common) == wanted) {
                best = value;
            }
        }
        Ok(best)
    })
}

fn isdate(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let ty = call.ty(0)?;
    if matches!(ty, SqlType::Date | SqlType::Time(_) | SqlType::DateTime2(_) | SqlType::DateTimeOffset(_))
        || ty.is_legacy_large()
    {
        return Err(call.invalid(0));
    }
    let function = call.returns(SqlType::Int, move |arguments, context| {
        let valid = match &arguments[0] {
            Value::DateTime(_) | Value::SmallDateTime(_) => true,
            Value::String(text) => is_date(&text.to_string(), context.date_format),
            _ => false,
        };
        Ok(Value::Int(i32::from(valid)))
    })?;
    Ok(ScalarFunction { nullable: false, ..function })
}

fn is_date(text: &str, date_format: DateFormat) -> bool {
    let options = CastOptions { date_format, ..CastOptions::EXPLICIT };
    !text.trim().is_empty() && cast(&Value::text(text), &SqlType::VARCHAR_MAX, &SqlType::DateTime, &options).is_ok()
}

/// 1 for what at least one number type takes.
fn isnumeric(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let ty = call.ty(0)?;
    let function = call.returns(SqlType::Int, move |arguments, _| {
        let numeric = match &arguments[0] {
            Value::Null => false,
            Value::String(text) => is_numeric(&text.to_string()),
            _ => ty.is_number(),
        };
        Ok(Value::Int(i32::from(numeric)))
    })?;
    Ok(ScalarFunction { nullable: false, ..function })
}

fn is_numeric(text: &str) -> bool {
    let convertible = |to: SqlType| {
        let from = SqlType::VarChar(super::super::Length::Max, Collation::DEFAULT);
        cast(&Value::text(text), &from, &to, &CastOptions::EXPLICIT).is_ok()
    };
    !text.trim_matches(' ').is_empty()
        && (convertible(SqlType::Float) || convertible(SqlType::Money) || convertible(SqlType::decimal(38, 0)))
}
