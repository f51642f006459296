//! The rules of one field, value by value.

use super::value::Value;
use crate::code;
use crate::layout::{WireColumn, WireLayout};
use crate::sql_type::SqlType;

/// 100 ns ticks of a day.
pub(super) const TICKS_PER_DAY: i64 = 864_000_000_000;
/// Days from 0001-01-01 to 1900-01-01.
const DAYS_TO_1900: i32 = 693_595;
/// Days from 0001-01-01 to 1753-01-01, the first day of `datetime`.
const DAYS_TO_1753: i32 = 639_905;
/// Days from 0001-01-01 to 10000-01-01.
pub(super) const DAYS_TO_10000: i32 = 3_652_059;

/// Appends one row, or appends nothing and says why with the column.
///
/// `max_row_bytes` bounds the row with all framing.
///
/// # Errors
/// The code and the column of the first field that cannot be written: `mssql_native_columns_mismatch`,
/// `mssql_native_row_bytes_exceeded`, `mssql_native_unexpected_null`, `mssql_native_invalid_value`,
/// `mssql_native_field_length_exceeded`, `mssql_native.invalid_utf8_source_text`.
pub fn encode_values(
    layout: &WireLayout,
    values: &[Value<'_>],
    max_row_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<(), (&'static str, usize)> {
    if values.len() != layout.columns().len() {
        return Err((code::COLUMNS_MISMATCH, values.len().min(layout.columns().len())));
    }
    let start = out.len();
    for (index, (column, value)) in layout.columns().iter().zip(values).enumerate() {
        let used = (out.len() - start) as u64;
        if let Err(code) = write_field(column, value, max_row_bytes.saturating_sub(used), out) {
            out.truncate(start);
            return Err((code, index));
        }
    }
    Ok(())
}

/// Appends one field with its prefix, at most `remaining` bytes in all. On an error `out` may hold part of the field.
///
/// # Errors
/// The codes of [`encode_values`].
pub fn write_field(
    column: &WireColumn,
    value: &Value<'_>,
    remaining: u64,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let prefix = usize::from(column.prefix_width);
    let remaining = remaining.checked_sub(prefix as u64).ok_or(code::ROW_BYTES_EXCEEDED)?;
    if *value == Value::Null {
        if !column.nullable || prefix == 0 {
            return Err(code::UNEXPECTED_NULL);
        }
        out.extend(std::iter::repeat_n(0xFF, prefix));
        return Ok(());
    }
    if column.fixed_length.is_some_and(|length| u64::from(length) > remaining) {
        return Err(code::ROW_BYTES_EXCEEDED);
    }
    let at = out.len();
    out.extend(std::iter::repeat_n(0, prefix));
    if column.fixed_length.is_some() {
        fixed(column.sql, value, out).ok_or(code::INVALID_VALUE)?;
    } else {
        variable(column, value, remaining, out)?;
    }
    let length = (out.len() - at - prefix) as u64;
    out[at..at + prefix].copy_from_slice(&length.to_le_bytes()[..prefix]);
    Ok(())
}

fn fixed(sql: SqlType, value: &Value<'_>, out: &mut Vec<u8>) -> Option<()> {
    match (sql, value) {
        (SqlType::Bit, Value::Bool(value)) => out.push(u8::from(*value)),
        (SqlType::Bit, Value::Int(value @ 0..=1)) => out.push(*value as u8),
        (SqlType::TinyInt, Value::Int(value)) => out.push(u8::try_from(*value).ok()?),
        (SqlType::SmallInt, Value::Int(value)) => out.extend(i16::try_from(*value).ok()?.to_le_bytes()),
        (SqlType::Int, Value::Int(value)) => out.extend(i32::try_from(*value).ok()?.to_le_bytes()),
        (SqlType::BigInt, Value::Int(value)) => out.extend(i64::try_from(*value).ok()?.to_le_bytes()),
        (SqlType::Real | SqlType::Float(_), Value::Float(value)) if value.is_finite() => {
            if sql.float_bits() == Some(24) {
                let narrow = *value as f32;
                (f64::from(narrow) == *value).then(|| out.extend(narrow.to_le_bytes()))?;
            } else {
                out.extend(value.to_le_bytes());
            }
        }
        (SqlType::Decimal { precision, scale, .. }, value) => {
            let number = coefficient(value, precision, scale)?;
            out.extend([precision, scale, u8::from(number >= 0)]);
            out.extend(number.unsigned_abs().to_le_bytes());
        }
        (SqlType::Money, value) => {
            let number = i64::try_from(coefficient(value, 19, 4)?).ok()?;
            // High half first; each half is little-endian.
            out.extend(((number >> 32) as i32).to_le_bytes());
            out.extend((number as u32).to_le_bytes());
        }
        (SqlType::SmallMoney, value) => out.extend(i32::try_from(coefficient(value, 19, 4)?).ok()?.to_le_bytes()),
        (SqlType::UniqueIdentifier, value) => out.extend(mixed_endian(uuid(value)?)),
        _ => return temporal(sql, value, out),
    }
    Some(())
}

fn coefficient(value: &Value<'_>, precision: u8, scale: u8) -> Option<i128> {
    match value {
        Value::Decimal(value) => value.coefficient(precision, scale),
        Value::Int(value) => super::Decimal::from_unscaled(*value, 0).coefficient(precision, scale),
        _ => None,
    }
}

/// A UUID, or a text of 32 hex digits with hyphens anywhere, in braces or after `urn:uuid:`.
fn uuid(value: &Value<'_>) -> Option<[u8; 16]> {
    let text = match value {
        Value::Uuid(bytes) => return Some(*bytes),
        Value::Text(text) => *text,
        _ => return None,
    };
    let plain = text.replace("urn:", "").replace("uuid:", "");
    let plain = plain.trim_matches(|c| c == '{' || c == '}').replace('-', "");
    let hex = plain.len() == 32 && plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u128::from_str_radix(&plain, 16).ok().map(u128::to_be_bytes))?
}

/// SQL Server's byte order of a UUID: the first three groups little-endian.
pub(super) fn mixed_endian(bytes: [u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
    let [i, j, k, l, m, n, o, p] = rest;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

fn temporal(sql: SqlType, value: &Value<'_>, out: &mut Vec<u8>) -> Option<()> {
    match (sql, value) {
        (SqlType::Date, Value::Date(days)) => push_days(*days, out)?,
        (SqlType::Time(scale), Value::Time(ticks)) => push_ticks(at_scale(*ticks, scale)?, out),
        (SqlType::DateTime2(scale), Value::DateTime { days, ticks, offset_seconds: None }) => {
            push_ticks(at_scale(*ticks, scale)?, out);
            push_days(*days, out)?;
        }
        (SqlType::DateTimeOffset(scale), Value::DateTime { days, ticks, offset_seconds: Some(offset) }) => {
            let minutes = i16::try_from(offset / 60).ok().filter(|m| offset % 60 == 0 && (-840..=840).contains(m))?;
            at_scale(*ticks, scale)?;
            let utc = ticks - i64::from(minutes) * 600_000_000;
            let days = i64::from(*days) + utc.div_euclid(TICKS_PER_DAY);
            push_ticks(utc.rem_euclid(TICKS_PER_DAY), out);
            push_days(i32::try_from(days).ok()?, out)?;
            out.extend(minutes.to_le_bytes());
        }
        (SqlType::SmallDateTime, Value::DateTime { days, ticks, offset_seconds: None }) => {
            let minutes = (ticks % 600_000_000 == 0).then_some(ticks / 600_000_000)?;
            out.extend(u16::try_from(days - DAYS_TO_1900).ok()?.to_le_bytes());
            out.extend(u16::try_from(minutes).ok()?.to_le_bytes());
        }
        (SqlType::DateTime, Value::DateTime { days, ticks, offset_seconds: None }) => {
            let thirds = at_scale(*ticks, 7)? * 300;
            if *days < DAYS_TO_1753 || thirds % 10_000_000 != 0 {
                return None;
            }
            out.extend((days - DAYS_TO_1900).to_le_bytes());
            out.extend(u32::try_from(thirds / 10_000_000).ok()?.to_le_bytes());
        }
        _ => return None,
    }
    Some(())
}

/// The ticks, if they are a time of day that `scale` decimal digits of a second express.
pub(super) fn at_scale(ticks: i64, scale: u8) -> Option<i64> {
    let unit = 10i64.pow(7 - u32::from(scale.min(7)));
    ((0..TICKS_PER_DAY).contains(&ticks) && ticks % unit == 0).then_some(ticks)
}

fn push_ticks(ticks: i64, out: &mut Vec<u8>) {
    out.extend(&ticks.to_le_bytes()[..5]);
}

fn push_days(days: i32, out: &mut Vec<u8>) -> Option<()> {
    (0..DAYS_TO_10000).contains(&days).then(|| out.extend(&days.to_le_bytes()[..3]))
}

fn variable(column: &WireColumn, value: &Value<'_>, remaining: u64, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let binary = matches!(column.sql, SqlType::VarBinary(_) | SqlType::Binary(_));
    match value {
        Value::Bytes(bytes) | Value::SourceBytes(bytes) if binary => {
            check_length(column, bytes.len() as u64, remaining)?;
            out.extend_from_slice(bytes);
            Ok(())
        }
        Value::Text(text) if !binary => push_text(column, text, remaining, out),
        Value::SourceBytes(bytes) if !binary => {
            // A UTF-16 code unit takes at most three UTF-8 bytes, so longer bytes cannot fit whatever they say.
            if bytes.len() as u64 > remaining.saturating_add(remaining / 2) {
                return Err(code::ROW_BYTES_EXCEEDED);
            }
            let text = std::str::from_utf8(bytes).map_err(|_| code::INVALID_UTF8_SOURCE_TEXT)?;
            push_text(column, text, remaining, out)
        }
        Value::CodePoints(points) if !binary => {
            let text = points.iter().map(|point| char::from_u32(*point)).collect::<Option<String>>();
            let text = text.ok_or(code::INVALID_VALUE)?;
            push_text(column, &text, remaining, out)
        }
        _ => Err(code::INVALID_VALUE),
    }
}

fn push_text(column: &WireColumn, text: &str, remaining: u64, out: &mut Vec<u8>) -> Result<(), &'static str> {
    if column.sql.is_narrow_text() {
        check_length(column, text.len() as u64, remaining)?;
        out.extend_from_slice(text.as_bytes());
    } else {
        let units = text.encode_utf16().count() as u64;
        check_length(column, units * 2, remaining)?;
        out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    }
    Ok(())
}

fn check_length(column: &WireColumn, length: u64, remaining: u64) -> Result<(), &'static str> {
    if length > remaining {
        return Err(code::ROW_BYTES_EXCEEDED);
    }
    match column.max_payload().map(u64::from) {
        Some(max) if length > max || (column.is_exact_length() && length != max) => Err(code::FIELD_LENGTH_EXCEEDED),
        _ => Ok(()),
    }
}
