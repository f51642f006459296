//! Conversions to dates and times.

use super::super::temporal::{
    DATETIME_TICKS_PER_DAY, DAYS_TO_1900, Date, DateTime, DateTime2, DateTimeOffset, LAST_DAY, SmallDateTime,
    TICKS_PER_DAY, Time,
};
use super::super::{SqlType, Value, ValueError};
use super::temporal_parse::{order_of_style, parse};
use super::{CastOptions, Strictness, cast};

pub(super) fn convert(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    match value {
        Value::String(text) => from_text(&text.to_string(), from, to, options),
        Value::Binary(bytes) => from_binary(bytes, to).ok_or_else(|| ValueError::converting(from, to)),
        Value::DateTimeOffset(offset) => match to {
            SqlType::DateTimeOffset(scale) => {
                let utc = offset.utc.at_scale(*scale).ok_or_else(|| ValueError::date_range(from, to))?;
                Ok(Value::DateTimeOffset(DateTimeOffset { utc, ..*offset }))
            }
            _ => {
                let local = offset.local().ok_or_else(|| ValueError::date_range(from, to))?;
                from_datetime2(local, false, to).ok_or_else(|| ValueError::date_range(from, to))
            }
        },
        Value::Date(_) | Value::Time(_) | Value::DateTime2(_) | Value::DateTime(_) | Value::SmallDateTime(_) => {
            let (full, date_only) = widened(value);
            from_datetime2(full, date_only, to).ok_or_else(|| ValueError::date_range(from, to))
        }
        _ => from_number(value, from, to, options),
    }
}

/// A value as `datetime2(7)`, a time on 1900-01-01; and whether it is a date alone.
fn widened(value: &Value) -> (DateTime2, bool) {
    match value {
        Value::Date(date) => (DateTime2 { days: date.days, ticks: 0 }, true),
        Value::Time(time) => (DateTime2 { days: DAYS_TO_1900, ticks: time.ticks }, false),
        Value::DateTime2(value) => (*value, false),
        Value::DateTime(value) => (value.to_datetime2(), false),
        Value::SmallDateTime(value) => (value.to_datetime2(), false),
        _ => (DateTime2 { days: DAYS_TO_1900, ticks: 0 }, false),
    }
}

/// `None` where the target's range ends.
fn from_datetime2(value: DateTime2, date_only: bool, to: &SqlType) -> Option<Value> {
    Some(match to {
        SqlType::Date => Value::Date(Date { days: value.days }),
        SqlType::Time(scale) => Value::Time(Time { ticks: value.ticks }.at_scale(*scale)),
        SqlType::DateTime2(scale) => Value::DateTime2(value.at_scale(*scale)?),
        SqlType::DateTimeOffset(scale) => {
            Value::DateTimeOffset(DateTimeOffset { utc: value.at_scale(*scale)?, offset_minutes: 0 })
        }
        SqlType::DateTime => Value::DateTime(DateTime::from_datetime2(value)?),
        SqlType::SmallDateTime if date_only || value.days >= DAYS_TO_1900 => {
            Value::SmallDateTime(SmallDateTime::from_datetime2(value)?)
        }
        _ => return None,
    })
}

/// Numbers are days since 1900-01-01, for `datetime` and `smalldatetime` only.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked by DateTime")]
fn from_number(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    let ticks = match value.as_i64() {
        Some(days) => days.checked_mul(DATETIME_TICKS_PER_DAY),
        None => {
            let options = CastOptions { strictness: Strictness::Explicit, style: None, ..*options };
            match cast(value, from, &SqlType::Float, &options)? {
                Value::Float(days) if days.abs() < 4e6 => Some((days * 25_920_000.0).round() as i64),
                _ => None,
            }
        }
    };
    let datetime = ticks.and_then(DateTime::from_total_ticks).ok_or_else(|| ValueError::overflow("expression", to))?;
    from_datetime2(datetime.to_datetime2(), false, to).ok_or_else(|| ValueError::overflow("expression", to))
}

fn from_text(text: &str, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    let legacy = matches!(to, SqlType::DateTime | SqlType::SmallDateTime);
    let syntax_error = || match (to, options.style) {
        (SqlType::SmallDateTime, _) => {
            ValueError::new(295, 3, "Conversion failed when converting character string to smalldatetime data type.")
        }
        (_, Some(style)) if !legacy => {
            let text = format!(
                "The input character string does not follow style {style}, either change the input character string or use a different style."
            );
            ValueError::new(9807, 0, text)
        }
        _ => ValueError::date_syntax(),
    };
    let out_of_range = || if legacy { ValueError::date_range(from, to) } else { ValueError::date_syntax() };
    let order = match options.style {
        None => options.date_format,
        Some(130 | 131) => {
            let text = format!(
                "The style {} is not supported for conversions from {} to {}.",
                options.style.unwrap_or(0),
                from.name(),
                to.name()
            );
            return Err(ValueError::new(9809, 1, text));
        }
        Some(style) => order_of_style(style).unwrap_or(options.date_format),
    };
    let parsed = parse(text, order, !legacy).ok_or_else(syntax_error)?;
    // The types of 1989 know three digits of a second and no offset.
    if legacy && (parsed.fraction_digits > 3 || parsed.numeric_offset) {
        return Err(syntax_error());
    }
    let days = parsed.days().ok_or_else(out_of_range)?;
    let ticks = parsed.ticks().ok_or_else(out_of_range)?;
    let local = DateTime2 { days, ticks };
    let converted = match to {
        SqlType::DateTimeOffset(scale) => {
            let offset = parsed.offset_minutes.unwrap_or(0);
            let rounded = local.at_scale(*scale);
            rounded.and_then(|local| DateTimeOffset::from_local(local, offset)).map(Value::DateTimeOffset)
        }
        _ => from_datetime2(local, false, to),
    };
    converted.ok_or_else(out_of_range)
}

/// Reads what the conversion to `varbinary` gives; for `datetime` the last eight bytes.
fn from_binary(bytes: &[u8], to: &SqlType) -> Option<Value> {
    match to {
        SqlType::DateTime => {
            let wide = right_aligned::<8>(bytes);
            let (days, ticks) =
                (i32::from_be_bytes(wide[..4].try_into().ok()?), u32::from_be_bytes(wide[4..].try_into().ok()?));
            let total = i64::from(days) * DATETIME_TICKS_PER_DAY + i64::from(ticks);
            (i64::from(ticks) < DATETIME_TICKS_PER_DAY).then(|| DateTime::from_total_ticks(total))?.map(Value::DateTime)
        }
        SqlType::SmallDateTime => {
            let [a, b, c, d] = right_aligned::<4>(bytes);
            let (days, minutes) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            (minutes < 1440).then_some(Value::SmallDateTime(SmallDateTime { days, minutes }))
        }
        SqlType::Date => day_number(bytes).map(|days| Value::Date(Date { days })),
        SqlType::Time(scale) => {
            let (ticks, rest) = time_ticks(bytes)?;
            rest.is_empty().then_some(Value::Time(Time { ticks }.at_scale(*scale)))
        }
        SqlType::DateTime2(scale) => {
            let (ticks, rest) = time_ticks(bytes)?;
            DateTime2 { days: day_number(rest)?, ticks }.at_scale(*scale).map(Value::DateTime2)
        }
        SqlType::DateTimeOffset(scale) => {
            let (ticks, rest) = time_ticks(bytes)?;
            let (day, offset) = rest.split_at_checked(3)?;
            let offset_minutes = i16::from_le_bytes(offset.try_into().ok()?);
            let utc = DateTime2 { days: day_number(day)?, ticks }.at_scale(*scale)?;
            let value = DateTimeOffset { utc, offset_minutes };
            (offset_minutes.abs() <= 840 && value.local().is_some()).then_some(Value::DateTimeOffset(value))
        }
        _ => None,
    }
}

fn right_aligned<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut wide = [0; N];
    let length = bytes.len().min(N);
    wide[N - length..].copy_from_slice(&bytes[bytes.len() - length..]);
    wide
}

fn day_number(bytes: &[u8]) -> Option<i32> {
    let [low, middle, high] = *bytes else { return None };
    let days = i32::from_le_bytes([low, middle, high, 0]);
    (days <= LAST_DAY).then_some(days)
}

/// The leading scale byte and the ticks; gives 100 ns ticks and what follows.
fn time_ticks(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (scale, rest) = bytes.split_first()?;
    let length = match scale {
        0..=2 => 3,
        3 | 4 => 4,
        5..=7 => 5,
        _ => return None,
    };
    let (digits, rest) = rest.split_at_checked(length)?;
    let mut wide = [0; 8];
    wide[..length].copy_from_slice(digits);
    let ticks = u64::from_le_bytes(wide).checked_mul(10_u64.pow(u32::from(7 - scale)))?;
    (ticks < TICKS_PER_DAY).then_some((ticks, rest))
}
