//! Conversions to numbers.

use super::super::decimal::{ParseDecimalError, Rounding, divide_rounded, rescale};
use super::super::{Decimal, SqlType, Value, ValueError};

pub(super) fn convert(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    match to {
        SqlType::Bit => to_bit(value, from, to),
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt => to_integer(value, from, to),
        SqlType::Decimal { precision, scale } => to_decimal(value, from, to, *precision, *scale).map(Value::Decimal),
        SqlType::Money | SqlType::SmallMoney => to_money(value, from, to),
        SqlType::Real | SqlType::Float => to_float(value, from, to),
        _ => Err(ValueError::not_allowed_explicitly(from, to)),
    }
}

fn to_bit(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    let bit = match value {
        Value::Decimal(value) => value.unscaled() != 0,
        Value::Money(value) => *value != 0,
        Value::Real(value) => *value != 0.0,
        Value::Float(value) => *value != 0.0,
        Value::Binary(bytes) => bytes.iter().any(|byte| *byte != 0),
        Value::String(text) => {
            let text = text.to_string();
            let word = text.trim_matches(' ');
            if word.eq_ignore_ascii_case("true") {
                true
            } else if word.eq_ignore_ascii_case("false") {
                false
            } else {
                parse_integer(word).map_err(|_| conversion_failed(&text, from, to))? != 0
            }
        }
        Value::DateTime(_) | Value::SmallDateTime(_) => datetime_days(value, from)? != 0.0,
        other => other.as_i64().ok_or_else(|| ValueError::not_allowed_explicitly(from, to))? != 0,
    };
    Ok(Value::Bit(bit))
}

fn to_integer(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    let wide = match value {
        Value::Binary(bytes) => return Ok(integer_of_bytes(bytes, to)),
        Value::String(text) => return integer_of_text(&text.to_string(), from, to),
        Value::Decimal(value) => value.whole(),
        Value::Money(value) => divide_rounded(i128::from(*value), 10_000, Rounding::HalfAwayFromZero),
        Value::Real(value) => whole_of_float(f64::from(*value), to)?,
        Value::Float(value) => whole_of_float(*value, to)?,
        Value::DateTime(_) | Value::SmallDateTime(_) => whole_of_float(datetime_days(value, from)?.round(), to)?,
        other => i128::from(other.as_i64().ok_or_else(|| ValueError::not_allowed_explicitly(from, to))?),
    };
    narrow(wide, to).ok_or_else(|| integer_overflow(wide, from, to))
}

/// The value as the integer type `to`, if it fits.
pub(super) fn narrow(value: i128, to: &SqlType) -> Option<Value> {
    match to {
        SqlType::TinyInt => u8::try_from(value).ok().map(Value::TinyInt),
        SqlType::SmallInt => i16::try_from(value).ok().map(Value::SmallInt),
        SqlType::Int => i32::try_from(value).ok().map(Value::Int),
        _ => i64::try_from(value).ok().map(Value::BigInt),
    }
}

fn integer_overflow(value: i128, from: &SqlType, to: &SqlType) -> ValueError {
    match to {
        SqlType::TinyInt | SqlType::SmallInt if from.is_integer() && i32::try_from(value).is_ok() => {
            let state = if *to == SqlType::TinyInt { 2 } else { 1 };
            let text = format!("Arithmetic overflow error for data type {}, value = {value}.", to.name());
            ValueError::new(220, state, text)
        }
        _ if matches!(from, SqlType::Decimal { .. }) => ValueError::overflow("numeric", to),
        _ => ValueError::overflow("expression", to),
    }
}

/// Cuts the fraction.
#[allow(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn whole_of_float(value: f64, to: &SqlType) -> Result<i128, ValueError> {
    let limit = match to {
        SqlType::TinyInt | SqlType::SmallInt => {
            let (low, high) = if *to == SqlType::TinyInt { (0.0, 255.0) } else { (-32768.0, 32767.0) };
            if !(low..=high).contains(&value.trunc()) {
                let text = format!("Arithmetic overflow error for type {}, value = {value:.6}.", to.name());
                return Err(ValueError::new(232, if *to == SqlType::TinyInt { 1 } else { 2 }, text));
            }
            return Ok(value as i128);
        }
        SqlType::Int => 2_147_483_648.0,
        _ => 9_223_372_036_854_775_808.0,
    };
    if value.trunc() < -limit || value.trunc() >= limit {
        return Err(ValueError::overflow("expression", to));
    }
    Ok(value as i128)
}

/// The low bytes, most significant first; missing ones are zero.
fn integer_of_bytes(bytes: &[u8], to: &SqlType) -> Value {
    let mut wide = [0_u8; 8];
    let length = bytes.len().min(8);
    wide[8 - length..].copy_from_slice(&bytes[bytes.len() - length..]);
    let [_, _, _, _, a, b, c, d] = wide;
    match to {
        SqlType::TinyInt => Value::TinyInt(d),
        SqlType::SmallInt => Value::SmallInt(i16::from_be_bytes([c, d])),
        SqlType::Int => Value::Int(i32::from_be_bytes([a, b, c, d])),
        _ => Value::BigInt(i64::from_be_bytes(wide)),
    }
}

/// Reads an optional sign and digits; the empty text is 0, as for SQL Server.
fn parse_integer(text: &str) -> Result<i128, ParseDecimalError> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text[1..].trim_start()),
        Some(b'+') => (false, text[1..].trim_start()),
        _ => (false, text),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseDecimalError::Syntax);
    }
    if digits.is_empty() {
        return Ok(0);
    }
    let magnitude = digits.parse::<i128>().map_err(|_| ParseDecimalError::OutOfRange)?;
    Ok(if negative { -magnitude } else { magnitude })
}

fn integer_of_text(text: &str, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    let value = match parse_integer(text) {
        Ok(value) => narrow(value, to),
        Err(ParseDecimalError::OutOfRange) => None,
        Err(ParseDecimalError::Syntax) => return Err(conversion_failed(text, from, to)),
    };
    value.ok_or_else(|| {
        let name = from.name();
        match to {
            SqlType::BigInt => ValueError::overflow("expression", to),
            SqlType::Int => {
                ValueError::new(248, 1, format!("The conversion of the {name} value '{text}' overflowed an int column."))
            }
            _ => {
                let (column, state) = if *to == SqlType::TinyInt { ("INT1", 1) } else { ("INT2", 2) };
                let text = format!(
                    "The conversion of the {name} value '{text}' overflowed an {column} column. Use a larger integer column."
                );
                ValueError::new(244, state, text)
            }
        }
    })
}

fn conversion_failed(text: &str, from: &SqlType, to: &SqlType) -> ValueError {
    if *to == SqlType::BigInt {
        return ValueError::converting(from, to);
    }
    let text =
        format!("Conversion failed when converting the {} value '{text}' to data type {}.", from.name(), to.name());
    ValueError::new(245, 1, text)
}

fn to_decimal(value: &Value, from: &SqlType, to: &SqlType, precision: u8, scale: u8) -> Result<Decimal, ValueError> {
    let converted = match value {
        Value::Decimal(value) => value.rescale(precision, scale),
        Value::Money(value) => Decimal::new(i128::from(*value), 19, 4).rescale(precision, scale),
        Value::Real(value) => Decimal::from_f64(f64::from(*value), precision, scale),
        Value::Float(value) => Decimal::from_f64(*value, precision, scale),
        Value::DateTime(_) | Value::SmallDateTime(_) => {
            Decimal::from_f64(datetime_days(value, from)?, precision, scale)
        }
        Value::Binary(bytes) => {
            Some(decimal_of_bytes(bytes, precision, scale).ok_or_else(|| ValueError::converting(from, to))?)
        }
        Value::String(text) => {
            let text = text.to_string();
            match Decimal::parse(text.trim_matches(|c: char| c.is_ascii_whitespace()), precision, scale) {
                Ok(value) => Some(value),
                Err(ParseDecimalError::Syntax) => return Err(ValueError::converting(from, to)),
                Err(ParseDecimalError::OutOfRange) => None,
            }
        }
        other => {
            let whole = other.as_i64().ok_or_else(|| ValueError::not_allowed_explicitly(from, to))?;
            rescale(i128::from(whole), 0, precision, scale, Rounding::Truncate)
        }
    };
    let source = if from.is_money() { "money" } else { from.message_name() };
    converted.ok_or_else(|| ValueError::overflow(source, to))
}

/// Reads what CAST(decimal AS varbinary) gives.
fn decimal_of_bytes(bytes: &[u8], precision: u8, scale: u8) -> Option<Decimal> {
    let (head, magnitude) = bytes.split_at_checked(4)?;
    if magnitude.is_empty() || magnitude.len() > 16 || head[0] == 0 || head[0] > 38 || head[1] > head[0] || head[3] > 1
    {
        return None;
    }
    let mut wide = [0; 16];
    wide[..magnitude.len()].copy_from_slice(magnitude);
    let magnitude = i128::try_from(u128::from_le_bytes(wide)).ok()?;
    let unscaled = if head[3] == 0 { -magnitude } else { magnitude };
    rescale(unscaled, head[1], precision, scale, Rounding::HalfAwayFromZero)
}

fn to_money(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    let small = *to == SqlType::SmallMoney;
    let units = match value {
        Value::Money(value) => Some(*value),
        Value::Binary(bytes) => match integer_of_bytes(bytes, if small { &SqlType::Int } else { &SqlType::BigInt }) {
            Value::Int(value) => Some(i64::from(value)),
            Value::BigInt(value) => Some(value),
            _ => None,
        },
        Value::String(text) => parse_money(&text.to_string(), small)?,
        other => to_decimal(other, from, &SqlType::decimal(38, 4), 38, 4)
            .ok()
            .and_then(|value| i64::try_from(value.unscaled()).ok()),
    };
    let units = units.filter(|units| !small || i32::try_from(*units).is_ok());
    units.map(Value::Money).ok_or_else(|| match value {
        Value::String(_) if small => {
            let text =
                "The conversion from char data type to smallmoney data type resulted in a smallmoney overflow error.";
            ValueError::new(294, 0, text)
        }
        Value::Decimal(_) => ValueError::overflow("numeric", to),
        _ => ValueError::overflow("expression", to),
    })
}

/// Digits with commas, a currency sign and a sign; `None` out of range.
fn parse_money(text: &str, small: bool) -> Result<Option<i64>, ValueError> {
    let syntax_error = || {
        let (number, name) = if small { (293, "smallmoney") } else { (235, "money") };
        ValueError::new(
            number,
            0,
            format!("Cannot convert a char value to {name}. The char value has incorrect syntax."),
        )
    };
    let mut digits: String =
        text.chars().filter(|c| !matches!(c, ',' | '$' | '€' | '£' | '¥') && !c.is_ascii_whitespace()).collect();
    if matches!(digits.as_str(), "" | "+" | "-" | ".") {
        digits = String::from("0");
    }
    match Decimal::parse(&digits, 38, 4) {
        Ok(value) => Ok(i64::try_from(value.unscaled()).ok()),
        Err(ParseDecimalError::OutOfRange) => Ok(None),
        Err(ParseDecimalError::Syntax) => Err(syntax_error()),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "conversion to an approximate type")]
fn to_float(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    let float = match value {
        Value::Real(value) => f64::from(*value),
        Value::Float(value) => *value,
        Value::Decimal(value) => value.to_f64(),
        Value::Money(value) => Decimal::new(i128::from(*value), 19, 4).to_f64(),
        Value::DateTime(_) | Value::SmallDateTime(_) => datetime_days(value, from)?,
        Value::String(text) => parse_float(&text.to_string()).ok_or_else(|| ValueError::converting(from, to))?,
        other => other.as_i64().ok_or_else(|| ValueError::not_allowed_explicitly(from, to))? as f64,
    };
    if !float.is_finite() {
        return Err(ValueError::overflow("expression", to));
    }
    if *to == SqlType::Float {
        return Ok(Value::Float(float));
    }
    let real = float as f32;
    if real.is_finite() { Ok(Value::Real(real)) } else { Err(ValueError::overflow("expression", to)) }
}

/// A decimal or E notation; the empty text is 0. Rust's words for NaN and infinity are no numbers here.
fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if text.is_empty() {
        return Some(0.0);
    }
    let known = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    known.then(|| text.parse().ok()).flatten()
}

/// Days since 1900-01-01 with the time of day as fraction.
fn datetime_days(value: &Value, from: &SqlType) -> Result<f64, ValueError> {
    match value {
        Value::DateTime(value) => Ok(f64::from(value.days) + f64::from(value.ticks) / 25_920_000.0),
        Value::SmallDateTime(value) => Ok(f64::from(value.days) + f64::from(value.minutes) / 1440.0),
        _ => Err(ValueError::not_allowed_explicitly(from, &SqlType::Float)),
    }
}
