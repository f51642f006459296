//! Types of constants ("Constants (Transact-SQL)").

use super::{Bytes, Decimal, Length, SqlType, Text, Value, ValueError};

/// A numeric constant as written, without sign: `1` is `int` (beyond its range `numeric`), `1.50` is
/// `numeric(3,2)`, `1e0` is `float`.
///
/// # Errors
/// 1007 for more than 38 digits, 168 for a float out of range, 102 for anything else.
pub fn number_literal(text: &str) -> Result<(Value, SqlType), ValueError> {
    if text.contains(['e', 'E']) {
        return float_literal(text);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits_only(whole) || !digits_only(fraction) {
        return Err(incorrect_syntax(text));
    }
    let whole = whole.trim_start_matches('0');
    let digits = whole.len() + fraction.len();
    if digits > 38 {
        let message =
            format!("The number '{text}' is out of the range for numeric representation (maximum precision 38).");
        return Err(ValueError::syntax(1007, 1, message));
    }
    let unscaled = format!("{whole}{fraction}").parse::<i128>().unwrap_or(0);
    if let (false, Ok(value)) = (text.contains('.'), i32::try_from(unscaled)) {
        return Ok((Value::Int(value), SqlType::Int));
    }
    let precision = u8::try_from(digits.max(1)).unwrap_or(38);
    let scale = u8::try_from(fraction.len()).unwrap_or(38);
    Ok((Value::Decimal(Decimal::new(unscaled, precision, scale)), SqlType::Decimal { precision, scale }))
}

fn float_literal(text: &str) -> Result<(Value, SqlType), ValueError> {
    // "1e" is 1e0 to SQL Server.
    let completed = if text.ends_with(['e', 'E', '+', '-']) { format!("{text}0") } else { text.to_owned() };
    let value: f64 = completed.parse().map_err(|_| incorrect_syntax(text))?;
    if value.is_infinite() {
        let message =
            format!("The floating point value '{text}' is out of the range of computer representation (8 bytes).");
        return Err(ValueError::syntax(168, 1, message));
    }
    Ok((Value::Float(value), SqlType::Float))
}

fn incorrect_syntax(text: &str) -> ValueError {
    ValueError::syntax(102, 1, format!("Incorrect syntax near '{text}'."))
}

/// A character constant: `'text'` or `N'text'` (`national`), at least one long; above the cap `(max)`.
#[must_use]
pub fn string_literal(text: &str, national: bool) -> (Value, SqlType) {
    let text = Text::from(text);
    let units = text.len().max(1);
    let collation = super::Collation::DEFAULT;
    let ty = if national {
        SqlType::NVarChar(Length::sized_or_max(units, 4000), collation)
    } else {
        SqlType::VarChar(Length::sized_or_max(units, 8000), collation)
    };
    (Value::String(text), ty)
}

/// A binary constant, the hexadecimal digits behind `0x`; an odd count gets a leading zero, as in SQL Server.
///
/// # Errors
/// 102 for another character.
pub fn binary_literal(digits: &str) -> Result<(Value, SqlType), ValueError> {
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let bytes: Option<Vec<u8>> =
        padded.as_bytes().chunks_exact(2).map(|pair| Some((hex_digit(pair[0])? << 4) | hex_digit(pair[1])?)).collect();
    let bytes = bytes.ok_or_else(|| incorrect_syntax(digits))?;
    let ty = SqlType::VarBinary(Length::sized_or_max(bytes.len().max(1), 8000));
    Ok((Value::Binary(Bytes::from(bytes)), ty))
}

pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// A money constant, the text behind `$`, without sign: `1,234.5678`.
///
/// # Errors
/// 102 for wrong syntax, 8115 out of range.
pub fn money_literal(text: &str) -> Result<(Value, SqlType), ValueError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: String = whole.chars().filter(|digit| *digit != ',').collect();
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err(incorrect_syntax(text));
    }
    let kept: String = fraction.chars().chain("0000".chars()).take(4).collect();
    let rounds_up = fraction.as_bytes().get(4).is_some_and(|digit| *digit >= b'5');
    let value = format!("{whole}{kept}").parse::<i64>().ok().and_then(|value| value.checked_add(i64::from(rounds_up)));
    let value = value.ok_or_else(|| ValueError::overflow("numeric", &SqlType::Money))?;
    Ok((Value::Money(value), SqlType::Money))
}
