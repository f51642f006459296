//! Date and time functions ("Date and time data types and functions (Transact-SQL)").

use super::super::conversion::{CastOptions, cast};
use super::super::temporal::{
    CalendarDay, Clock, Date, DateTime, DateTime2, DateTimeOffset, SmallDateTime, TICKS_PER_SECOND, Time,
    days_in_month, weekday,
};
use super::super::{SqlType, Value, ValueError};
use super::call::{Call, Taken};
use super::date_parts::{DatePart, WEEKDAYS, add, difference, number};
use super::{Argument, FunctionContext, Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] = &[
    ("AT TIME ZONE", at_time_zone),
    ("CURRENT_TIMESTAMP", |call| clock(call, SqlType::DateTime, true)),
    ("DATEADD", dateadd),
    ("DATEDIFF", |call| datediff(call, SqlType::Int)),
    ("DATEDIFF_BIG", |call| datediff(call, SqlType::BigInt)),
    ("DATEFROMPARTS", |call| from_parts(call, 3, SqlType::Date)),
    ("DATENAME", datename),
    ("DATEPART", datepart),
    ("DATETIME2FROMPARTS", |call| from_parts(call, 8, SqlType::DateTime2(7))),
    ("DATETIMEFROMPARTS", |call| from_parts(call, 7, SqlType::DateTime)),
    ("DATETIMEOFFSETFROMPARTS", |call| from_parts(call, 10, SqlType::DateTimeOffset(7))),
    ("DAY", |call| single_part(call, DatePart::Day)),
    ("EOMONTH", eomonth),
    ("GETDATE", |call| clock(call, SqlType::DateTime, true)),
    ("GETUTCDATE", |call| clock(call, SqlType::DateTime, false)),
    ("MONTH", |call| single_part(call, DatePart::Month)),
    ("SMALLDATETIMEFROMPARTS", |call| from_parts(call, 5, SqlType::SmallDateTime)),
    ("SWITCHOFFSET", switchoffset),
    ("SYSDATETIME", |call| clock(call, SqlType::DateTime2(7), true)),
    ("SYSDATETIMEOFFSET", |call| clock(call, SqlType::DateTimeOffset(7), true)),
    ("SYSUTCDATETIME", |call| clock(call, SqlType::DateTime2(7), false)),
    ("TIMEFROMPARTS", |call| from_parts(call, 5, SqlType::Time(7))),
    ("TODATETIMEOFFSET", todatetimeoffset),
    ("YEAR", |call| single_part(call, DatePart::Year)),
];

/// GETDATE and its kin: the statement's clock, local or UTC.
fn clock(call: &Call<'_>, ty: SqlType, local: bool) -> Result<ScalarFunction, ValueError> {
    call.count(0..=0)?;
    let function = call.returns(ty, move |_, context: &FunctionContext| {
        let now = context.now();
        let value = if local { Value::DateTimeOffset(now) } else { Value::DateTime2(now.utc) };
        let from = if local { SqlType::DateTimeOffset(7) } else { SqlType::DateTime2(7) };
        cast(&value, &from, &ty, &CastOptions::EXPLICIT)
    })?;
    Ok(ScalarFunction { deterministic: false, ..function })
}

/// The datepart that is argument 0, and the number of arguments.
fn part_of(call: &Call<'_>, count: usize) -> Result<DatePart, ValueError> {
    call.count(count..=count)?;
    match call.arguments.first() {
        Some(Argument::Keyword(word)) => DatePart::parse(word, call.name),
        _ => {
            let text = format!("Invalid parameter 1 specified for {}.", call.name.to_ascii_lowercase());
            Err(ValueError::syntax(1023, 1, text))
        }
    }
}

/// A date argument; texts are taken as `text_type`, numbers (days since 1900) as `datetime`.
fn date_argument(call: &Call<'_>, index: usize, text_type: SqlType) -> Result<Taken, ValueError> {
    let from = call.ty(index)?;
    let to = match from {
        _ if from.is_temporal() => from,
        _ if from.is_character() && !from.is_legacy_large() => text_type,
        _ if from.is_number() || from == SqlType::Null => SqlType::DateTime,
        _ => return Err(call.invalid(index)),
    };
    Ok(Taken { from, to })
}

/// A date value as local date and time with its offset; a time is on 1900-01-01.
fn widen(value: &Value, ty: &SqlType) -> Result<Option<(DateTime2, i16)>, ValueError> {
    match value {
        Value::DateTimeOffset(value) => Ok(value.local().map(|local| (local, value.offset_minutes))),
        Value::DateTime(value) => {
            // The thousandths that SQL Server shows, not the third of one that it keeps.
            let widened = value.to_datetime2();
            Ok(Some((DateTime2 { ticks: u64::from(value.milliseconds()) * 10_000, ..widened }, 0)))
        }
        _ => match cast(value, ty, &SqlType::DateTime2(7), &CastOptions::EXPLICIT)? {
            Value::DateTime2(value) => Ok(Some((value, 0))),
            _ => Ok(None),
        },
    }
}

fn unsupported_part(part: DatePart, function: &str, ty: &SqlType) -> ValueError {
    let function = function.to_ascii_lowercase();
    let text = format!(
        "The datepart {} is not supported by date function {function} for data type {}.",
        part.name(),
        ty.name()
    );
    ValueError::new(9810, 1, text)
}

/// Whether DATEPART and DATEADD know the part for the type.
fn check_part(part: DatePart, ty: &SqlType, function: &str, adding: bool) -> Result<(), ValueError> {
    let known = match ty {
        SqlType::Date => !part.is_time(),
        SqlType::Time(_) => part.is_time(),
        SqlType::DateTime | SqlType::SmallDateTime if adding => {
            !matches!(part, DatePart::Microsecond | DatePart::Nanosecond)
        }
        _ => true,
    };
    let offset_known = match part {
        DatePart::TimeZoneOffset => !adding && matches!(ty, SqlType::DateTimeOffset(_) | SqlType::DateTime2(_)),
        DatePart::IsoWeek => !adding,
        _ => true,
    };
    if known && offset_known { Ok(()) } else { Err(unsupported_part(part, function, ty)) }
}

fn dateadd(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    let part = part_of(call, 3)?;
    let count = Taken { from: call.ty(1)?, to: SqlType::Int };
    let date = date_argument(call, 2, SqlType::DateTime)?;
    check_part(part, &date.to, call.name, true)?;
    let ty = date.to;
    call.returns(ty, move |arguments, _| {
        let (Some(count), value) = (count.integer(&arguments[0])?, date.value(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let overflow =
            || ValueError::new(517, 1, format!("Adding a value to a '{}' column caused an overflow.", ty.name()));
        match &value {
            Value::Null => return Ok(Value::Null),
            // A time of day wraps around.
            Value::Time(time) => {
                let start = DateTime2 { days: 1_000_000, ticks: time.ticks };
                let sum = add(start, part, count).ok_or_else(overflow)?;
                return Ok(Value::Time(Time { ticks: sum.ticks }.at_scale(ty.scale())));
            }
            // The third of a millisecond is kept.
            Value::DateTime(start) if !part.is_time() => {
                let sum = add(start.to_datetime2(), part, count).ok_or_else(overflow)?;
                let days = sum.days - start.to_datetime2().days + start.days;
                let moved = DateTime { days, ticks: start.ticks };
                return DateTime::from_total_ticks(moved.total_ticks()).map(Value::DateTime).ok_or_else(overflow);
            }
            _ => {}
        }
        let Some((local, offset)) = widen(&value, &ty)? else { return Ok(Value::Null) };
        let sum = add(local, part, count).ok_or_else(overflow)?;
        let converted = match ty {
            SqlType::DateTimeOffset(_) => {
                return DateTimeOffset::from_local(sum, offset).map(Value::DateTimeOffset).ok_or_else(overflow);
            }
            _ => cast(&Value::DateTime2(sum), &SqlType::DateTime2(7), &ty, &CastOptions::EXPLICIT),
        };
        converted.map_err(|_| overflow())
    })
}

fn datediff(call: &Call<'_>, result: SqlType) -> Result<ScalarFunction, ValueError> {
    let part = part_of(call, 3)?;
    let (start, end) =
        (date_argument(call, 1, SqlType::DateTimeOffset(7))?, date_argument(call, 2, SqlType::DateTimeOffset(7))?);
    if matches!(part, DatePart::TimeZoneOffset | DatePart::IsoWeek) {
        return Err(unsupported_part(part, call.name, &start.to));
    }
    let name = call.name.to_ascii_lowercase();
    call.returns(result, move |arguments, _| {
        let instant = |taken: &Taken, value: &Value| -> Result<Option<DateTime2>, ValueError> {
            match taken.value(value)? {
                Value::DateTimeOffset(value) => Ok(Some(value.utc)),
                other => Ok(widen(&other, &taken.to)?.map(|(local, _)| local)),
            }
        };
        let (Some(start), Some(end)) = (instant(&start, &arguments[0])?, instant(&end, &arguments[1])?) else {
            return Ok(Value::Null);
        };
        let count = difference(part, start, end);
        let value = match result {
            SqlType::Int => i32::try_from(count).ok().map(Value::Int),
            _ => i64::try_from(count).ok().map(Value::BigInt),
        };
        value.ok_or_else(|| {
            let text = format!(
                "The {name} function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use {name} with a less precise datepart."
            );
            ValueError::new(535, 0, text)
        })
    })
}

fn datepart(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    let part = part_of(call, 2)?;
    let date = date_argument(call, 1, SqlType::DateTime2(7))?;
    check_part(part, &date.to, call.name, false)?;
    part_function(call, date, part)
}

fn single_part(call: &Call<'_>, part: DatePart) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let date = date_argument(call, 0, SqlType::DateTime2(7))?;
    check_part(part, &date.to, call.name, false)?;
    part_function(call, date, part)
}

fn part_function(call: &Call<'_>, date: Taken, part: DatePart) -> Result<ScalarFunction, ValueError> {
    call.returns(SqlType::Int, move |arguments, context| {
        let Some((local, offset)) = widen(&date.value(&arguments[0])?, &date.to)? else { return Ok(Value::Null) };
        Ok(Value::Int(number(part, local, offset, context.date_first)))
    })
}

fn datename(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    let part = part_of(call, 2)?;
    let date = date_argument(call, 1, SqlType::DateTime2(7))?;
    check_part(part, &date.to, call.name, false)?;
    call.returns(SqlType::nvarchar(30), move |arguments, context| {
        let Some((local, offset)) = widen(&date.value(&arguments[0])?, &date.to)? else { return Ok(Value::Null) };
        let value = number(part, local, offset, context.date_first);
        let index = |value: i32| usize::try_from(value - 1).unwrap_or(0);
        Ok(Value::text(&match part {
            DatePart::Month => super::format::month_name(index(value)).to_owned(),
            DatePart::Weekday => WEEKDAYS[index(weekday(local.days))].to_owned(),
            DatePart::TimeZoneOffset => {
                let minutes = offset.unsigned_abs();
                format!("{}{:02}:{:02}", if offset < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
            }
            _ => value.to_string(),
        }))
    })
}

fn eomonth(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=2)?;
    let date = Taken { to: SqlType::Date, ..date_argument(call, 0, SqlType::Date)? };
    let months = if call.arguments.len() == 2 { Some(call.int(1)?) } else { None };
    call.returns(SqlType::Date, move |arguments, _| {
        let Value::Date(date) = date.value(&arguments[0])? else { return Ok(Value::Null) };
        let count = match &months {
            None => 0,
            Some(taken) => match taken.integer(&arguments[1])? {
                None => return Ok(Value::Null),
                Some(count) => count,
            },
        };
        let overflow = || ValueError::new(517, 1, "Adding a value to a 'date' column caused an overflow.");
        let moved = add(DateTime2 { days: date.days, ticks: 0 }, DatePart::Month, count).ok_or_else(overflow)?;
        let day = CalendarDay::of(moved.days);
        let last = CalendarDay { day: days_in_month(day.year, day.month), ..day };
        last.days().map(|days| Value::Date(Date { days })).ok_or_else(overflow)
    })
}

/// DATEFROMPARTS and its kin; the last argument of those with a scale is a literal precision.
fn from_parts(call: &Call<'_>, count: usize, ty: SqlType) -> Result<ScalarFunction, ValueError> {
    call.count(count..=count)?;
    let taken = (0..count).map(|index| call.int(index)).collect::<Result<Vec<_>, _>>()?;
    call.returns(ty, move |arguments, _| {
        let mut parts = Vec::with_capacity(count);
        for (taken, value) in taken.iter().zip(arguments) {
            match taken.integer(value)? {
                Some(part) => parts.push(part),
                None => return Ok(Value::Null),
            }
        }
        built(&parts, &ty).ok_or_else(|| {
            let text = format!(
                "Cannot construct data type {}, some of the arguments have values which are not valid.",
                ty.name()
            );
            ValueError::new(289, 1, text)
        })
    })
}

fn built(parts: &[i64], ty: &SqlType) -> Option<Value> {
    let small = |part: i64| u32::try_from(part).ok();
    let day = |year: i64, month: i64, day: i64| {
        CalendarDay { year: i32::try_from(year).ok()?, month: small(month)?, day: small(day)? }.days()
    };
    let ticks = |hour: i64, minute: i64, second: i64, fraction: i64, scale: i64| {
        let scale = u32::try_from(scale).ok().filter(|scale| *scale <= 7)?;
        let fraction = u64::try_from(fraction).ok().filter(|fraction| *fraction < 10_u64.pow(scale))?;
        let fraction = u32::try_from(fraction * TICKS_PER_SECOND / 10_u64.pow(scale)).ok()?;
        Clock { hour: small(hour)?, minute: small(minute)?, second: small(second)?, fraction }.ticks()
    };
    match (ty, parts) {
        (SqlType::Date, &[year, month, date]) => Some(Value::Date(Date { days: day(year, month, date)? })),
        (SqlType::Time(_), &[hour, minute, second, fraction, scale]) => {
            Some(Value::Time(Time { ticks: ticks(hour, minute, second, fraction, scale)? }))
        }
        (SqlType::DateTime2(_), &[year, month, date, hour, minute, second, fraction, scale]) => {
            let ticks = ticks(hour, minute, second, fraction, scale)?;
            Some(Value::DateTime2(DateTime2 { days: day(year, month, date)?, ticks }))
        }
        (SqlType::DateTime, &[year, month, date, hour, minute, second, milliseconds]) => {
            let ticks = ticks(hour, minute, second, milliseconds, 3)?;
            DateTime::from_datetime2(DateTime2 { days: day(year, month, date)?, ticks }).map(Value::DateTime)
        }
        (SqlType::SmallDateTime, &[year, month, date, hour, minute]) => {
            let ticks = ticks(hour, minute, 0, 0, 0)?;
            SmallDateTime::from_datetime2(DateTime2 { days: day(year, month, date)?, ticks }).map(Value::SmallDateTime)
        }
        (SqlType::DateTimeOffset(_), &[year, month, date, hour, minute, second, fraction, hours, minutes, scale]) => {
            let ticks = ticks(hour, minute, second, fraction, scale)?;
            // Both parts of the offset have the same sign.
            let valid = hours.abs() <= 14 && minutes.abs() < 60 && hours * minutes >= 0;
            let offset = i16::try_from(hours * 60 + minutes).ok().filter(|offset| valid && offset.abs() <= 840)?;
            let local = DateTime2 { days: day(year, month, date)?, ticks };
            DateTimeOffset::from_local(local, offset).map(Value::DateTimeOffset)
        }
        _ => None,
    }
}

/// An offset as `'+hh:mm'` or as minutes.
fn offset_of(value: &Value, function: &str) -> Result<Option<i16>, ValueError> {
    let invalid =
        || ValueError::new(9812, 0, format!("The timezone provided to builtin function {function} is invalid."));
    let minutes = match value {
        Value::Null => return Ok(None),
        Value::String(text) => {
            let text = text.to_string();
            let (sign, digits) = match text.as_bytes().first() {
                Some(b'+') => (1, &text[1..]),
                Some(b'-') => (-1, &text[1..]),
                _ => return Err(invalid()),
            };
            let (hours, minutes) = digits.split_once(':').ok_or_else(invalid)?;
            let (hours, minutes): (i64, i64) =
                (hours.parse().map_err(|_| invalid())?, minutes.parse().map_err(|_| invalid())?);
            if !(0..60).contains(&minutes) || !(0..=14).contains(&hours) {
                return Err(invalid());
            }
            sign * (hours * 60 + minutes)
        }
        other => other.as_i64().ok_or_else(invalid)?,
    };
    i16::try_from(minutes).ok().filter(|minutes| minutes.abs() <= 840).map(Some).ok_or_else(invalid)
}

fn switchoffset(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let scale = if let SqlType::DateTimeOffset(scale) = call.ty(0)? { scale } else { 7 };
    let taken = call.taken_as(0, SqlType::DateTimeOffset(scale))?;
    call.returns(SqlType::DateTimeOffset(scale), move |arguments, _| {
        let (Value::DateTimeOffset(value), Some(offset_minutes)) =
            (taken.value(&arguments[0])?, offset_of(&arguments[1], "switchoffset")?)
        else {
            return Ok(Value::Null);
        };
        let moved = DateTimeOffset { offset_minutes, ..value };
        if moved.local().is_none() {
            let text =
                "The conversion of a datetimeoffset data type to another offset resulted in an out-of-range value.";
            return Err(ValueError::new(8115, 2, text));
        }
        Ok(Value::DateTimeOffset(moved))
    })
}

fn todatetimeoffset(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let scale = if let SqlType::DateTime2(scale) = call.ty(0)? { scale } else { 7 };
    let taken = call.taken_as(0, SqlType::DateTime2(scale))?;
    call.returns(SqlType::DateTimeOffset(scale), move |arguments, _| {
        let (Value::DateTime2(local), Some(offset)) =
            (taken.value(&arguments[0])?, offset_of(&arguments[1], "todatetimeoffset")?)
        else {
            return Ok(Value::Null);
        };
        let value = DateTimeOffset::from_local(local, offset).map(Value::DateTimeOffset);
        value.ok_or_else(|| ValueError::date_range(&SqlType::DateTime2(scale), &SqlType::DateTimeOffset(scale)))
    })
}

/// `x AT TIME ZONE 'UTC'`, the only zone here: a local time gets the offset +00:00, an instant is moved to it.
fn at_time_zone(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let from = call.ty(0)?;
    let scale = match from {
        SqlType::DateTimeOffset(scale) | SqlType::DateTime2(scale) => scale,
        SqlType::DateTime => 3,
        SqlType::SmallDateTime => 0,
        _ => return Err(ValueError::invalid_argument(&from, 1, "AT TIME ZONE")),
    };
    let (result, zone) = (SqlType::DateTimeOffset(scale), call.text(1)?);
    call.returns(result, move |arguments, _| {
        let Some(zone) = zone.text(&arguments[1])? else { return Ok(Value::Null) };
        let zone = zone.to_string();
        if !zone.eq_ignore_ascii_case("UTC") {
            let text = format!("The time zone parameter '{zone}' provided to AT TIME ZONE clause is invalid.");
            return Err(ValueError::new(9820, 1, text));
        }
        match &arguments[0] {
            Value::DateTimeOffset(value) => Ok(Value::DateTimeOffset(DateTimeOffset { offset_minutes: 0, ..*value })),
            value => cast(value, &from, &result, &CastOptions::EXPLICIT),
        }
    })
}
