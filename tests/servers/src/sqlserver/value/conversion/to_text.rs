//! Conversions to character types: what PRINT shows and what CONVERT's styles ask for.

use super::super::decimal::{Rounding, divide_rounded};
use super::super::{Length, SqlType, Text, Value, ValueError};
use super::{CastOptions, fit_text, guid_text, temporal_format};

pub(super) fn convert(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    let style = options.style.unwrap_or(0);
    let text = match value {
        Value::String(text) => return Ok(Value::String(fit_text(text, to))),
        Value::Binary(bytes) => return binary_text(bytes, from, to, style).map(Value::String),
        Value::Bit(value) => String::from(if *value { "1" } else { "0" }),
        Value::TinyInt(_) | Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_) => {
            return integer_text(value, from, to).map(Value::String);
        }
        Value::Decimal(value) => value.to_string(),
        Value::Money(value) => money_text(*value, style),
        Value::Real(value) => float_text(f64::from(*value), style),
        Value::Float(value) => float_text(*value, style),
        Value::Guid(guid) => guid_text(guid),
        Value::Null | Value::Variant(_) => return Err(ValueError::not_allowed_explicitly(from, to)),
        temporal => {
            let text = temporal_format::format(temporal, from, to, options.style)?;
            return Ok(Value::String(fit_text(&Text::from(&*text), to)));
        }
    };
    if text.len() > limit(to) {
        return Err(too_short(from, to));
    }
    Ok(Value::String(fit_text(&Text::from(&*text), to)))
}

/// Characters that fit; texts of numbers are ASCII.
fn limit(to: &SqlType) -> usize {
    match to {
        SqlType::Char(length, _) | SqlType::NChar(length, _) => usize::from(*length),
        SqlType::VarChar(length, _) | SqlType::NVarChar(length, _) => Length::limit(*length),
        _ => usize::MAX,
    }
}

fn too_short(from: &SqlType, to: &SqlType) -> ValueError {
    match from {
        SqlType::UniqueIdentifier => {
            ValueError::new(8170, 2, "Insufficient result space to convert uniqueidentifier value to char.")
        }
        SqlType::Money | SqlType::SmallMoney => {
            let text = format!("There is insufficient result space to convert a money value to {}.", to.name());
            ValueError::new(234, 2, text)
        }
        SqlType::Decimal { .. } => ValueError::overflow("numeric", to),
        _ => ValueError::overflow("expression", to),
    }
}

/// A number that does not fit `char` or `varchar` is `*`; `bigint` and the Unicode types give an error instead.
fn integer_text(value: &Value, from: &SqlType, to: &SqlType) -> Result<Text, ValueError> {
    let text = value.as_i64().unwrap_or(0).to_string();
    if text.len() <= limit(to) {
        return Ok(fit_text(&Text::from(&*text), to));
    }
    if to.is_unicode() || *from == SqlType::BigInt {
        return Err(too_short(from, to));
    }
    Ok(fit_text(&Text::from("*"), to))
}

/// Styles 0 (two digits), 1 (two digits, commas), 2 and 126 (four digits).
fn money_text(value: i64, style: i32) -> String {
    let (units, digits) = match style {
        2 | 126 => (i128::from(value), 4),
        _ => (divide_rounded(i128::from(value), 100, Rounding::HalfAwayFromZero), 2),
    };
    let plain = super::super::Decimal::new(units, 19, digits).to_string();
    if style != 1 {
        return plain;
    }
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::from(sign);
    for (position, digit) in whole.char_indices() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.push('.');
    grouped.push_str(fraction);
    grouped
}

/// Style 0: at most six digits, E notation where it is shorter; 1: eight, 2: sixteen, 3: seventeen digits in E notation.
/// The exponent has three digits.
pub(in super::super) fn float_text(value: f64, style: i32) -> String {
    match style {
        1 => scientific(value, 8, false),
        2 => scientific(value, 16, false),
        3 => scientific(value, 17, false),
        _ => general(value, 6),
    }
}

fn scientific(value: f64, digits: usize, trim: bool) -> String {
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if trim { trim_fraction(mantissa) } else { mantissa };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{mantissa}e{sign}{exponent:0>3}")
}

/// C's `%g`.
fn general(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return String::from(if value.is_sign_negative() { "-0" } else { "0" });
    }
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    let precision = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= precision {
        return scientific(value, digits, true);
    }
    let decimals = usize::try_from(precision - 1 - exponent).unwrap_or(0);
    let fixed = format!("{value:.decimals$}");
    trim_fraction(&fixed).to_owned()
}

fn trim_fraction(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Style 0: the bytes as characters; 1: hexadecimal with `0x`; 2: hexadecimal. Too long texts are cut.
fn binary_text(bytes: &[u8], from: &SqlType, to: &SqlType, style: i32) -> Result<Text, ValueError> {
    let text = match style {
        1 | 2 => {
            let mut text = String::with_capacity(2 * bytes.len() + 2);
            text.push_str(if style == 1 { "0x" } else { "" });
            for byte in bytes {
                text.push(HEX_DIGITS[usize::from(byte >> 4)]);
                text.push(HEX_DIGITS[usize::from(byte & 15)]);
            }
            // Only whole bytes are kept.
            let limit = limit(to).min(text.len()) / 2 * 2;
            text.truncate(limit);
            Text::from(&*text)
        }
        _ if to.is_unicode() => Text::from_utf16le(bytes),
        0 => to.collation().unwrap_or(super::super::Collation::DEFAULT).decode(bytes),
        _ => return Err(ValueError::converting(from, to)),
    };
    Ok(fit_text(&text, to))
}

const HEX_DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
