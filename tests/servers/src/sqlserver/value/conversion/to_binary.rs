//! Conversions to `binary` and `varbinary`: SQL Server's storage bytes.

use super::super::temporal::{DateTime2, DateTimeOffset};
use super::super::{Bytes, Decimal, Length, SqlType, Value, ValueError, literal::hex_digit};
use super::{CastOptions, fit_binary};

pub(super) fn convert(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    let bytes = match value {
        Value::Binary(bytes) => return Ok(Value::Binary(fit_binary(bytes, to))),
        Value::String(text) => {
            let bytes = match options.style {
                Some(style @ (1 | 2)) => {
                    hexadecimal(&text.to_string(), style).ok_or_else(|| ValueError::converting(from, to))?
                }
                _ if from.is_unicode() => text.to_bytes(),
                _ => from.collation().unwrap_or(super::super::Collation::DEFAULT).encode(text),
            };
            return Ok(Value::Binary(fit_binary(&bytes, to)));
        }
        Value::Bit(value) => Bytes::from([u8::from(*value)]),
        Value::TinyInt(value) => Bytes::from([*value]),
        Value::SmallInt(value) => Bytes::from(value.to_be_bytes()),
        Value::Int(value) => Bytes::from(value.to_be_bytes()),
        Value::BigInt(value) => Bytes::from(value.to_be_bytes()),
        Value::Real(value) => Bytes::from(value.to_be_bytes()),
        Value::Float(value) => Bytes::from(value.to_be_bytes()),
        Value::Money(value) if *from == SqlType::SmallMoney => Bytes::from(&value.to_be_bytes()[4..]),
        Value::Money(value) => Bytes::from(value.to_be_bytes()),
        Value::Decimal(value) => decimal_bytes(value),
        Value::Date(date) => Bytes::from(&day_bytes(date.days)[..]),
        Value::Time(time) => Bytes::from(time_bytes(time.ticks, from.scale())),
        Value::DateTime2(value) => Bytes::from(datetime2_bytes(*value, from.scale())),
        Value::DateTimeOffset(DateTimeOffset { utc, offset_minutes }) => {
            let mut bytes = datetime2_bytes(*utc, from.scale());
            bytes.extend_from_slice(&offset_minutes.to_le_bytes());
            Bytes::from(bytes)
        }
        Value::DateTime(value) => Bytes::from(value.days.to_be_bytes()).concat(&Bytes::from(value.ticks.to_be_bytes())),
        Value::SmallDateTime(value) => {
            Bytes::from(value.days.to_be_bytes()).concat(&Bytes::from(value.minutes.to_be_bytes()))
        }
        Value::Guid(guid) => Bytes::from(*guid),
        Value::Null | Value::Variant(_) => return Err(ValueError::not_allowed_explicitly(from, to)),
    };
    Ok(Value::Binary(fit_right(bytes, to)))
}

/// Everything but texts and binaries is cut and padded on the left ("binary and varbinary (Transact-SQL)").
fn fit_right(bytes: Bytes, to: &SqlType) -> Bytes {
    let (limit, fixed) = match to {
        SqlType::Binary(length) => (usize::from(*length), true),
        SqlType::VarBinary(Length::Sized(limit)) => (usize::from(*limit), false),
        SqlType::RowVersion => (8, true),
        _ => return bytes,
    };
    let length = bytes.len();
    if length > limit {
        Bytes::from(&bytes[length - limit..])
    } else if fixed && length < limit {
        let mut padded = vec![0; limit - length];
        padded.extend_from_slice(&bytes);
        Bytes::from(padded)
    } else {
        bytes
    }
}

/// Precision, scale, 0, sign (1 = not negative), magnitude in little-endian words of four bytes.
fn decimal_bytes(value: &Decimal) -> Bytes {
    let words = match value.precision() {
        0..=9 => 1,
        10..=19 => 2,
        20..=28 => 3,
        _ => 4,
    };
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&[value.precision(), value.scale(), 0, u8::from(value.unscaled() >= 0)]);
    bytes[4..].copy_from_slice(&value.unscaled().unsigned_abs().to_le_bytes());
    Bytes::from(&bytes[..4 + 4 * words])
}

fn day_bytes(days: i32) -> [u8; 3] {
    let [low, middle, high, _] = days.to_le_bytes();
    [low, middle, high]
}

/// Scale, then the ticks of that scale in 3, 4 or 5 little-endian bytes.
fn time_bytes(ticks: u64, scale: u8) -> Vec<u8> {
    let length = match scale {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    };
    let ticks = ticks / 10_u64.pow(u32::from(7 - scale.min(7)));
    let mut bytes = Vec::with_capacity(11);
    bytes.push(scale);
    bytes.extend_from_slice(&ticks.to_le_bytes()[..length]);
    bytes
}

fn datetime2_bytes(value: DateTime2, scale: u8) -> Vec<u8> {
    let mut bytes = time_bytes(value.ticks, scale);
    bytes.extend_from_slice(&day_bytes(value.days));
    bytes
}

/// Styles 1 (`0x` required) and 2 (not allowed): an even number of hexadecimal digits.
fn hexadecimal(text: &str, style: i32) -> Option<Bytes> {
    let digits = match style {
        1 => text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?,
        _ => text,
    };
    if digits.len() % 2 == 1 {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| Some((hex_digit(pair[0])? << 4) | hex_digit(pair[1])?))
        .collect::<Option<Vec<u8>>>()
        .map(Bytes::from)
}
