//! Texts: lengths, parts, building ("String functions (Transact-SQL)").

use super::super::conversion::{CastOptions, cast, fit_text};
use super::super::operator::compare_units;
use super::super::{Bytes, Collation, Length, SqlType, Text, Value, ValueError};
use super::call::{Call, Taken, display_length, longest, position, position_type, variable};
use super::{Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] = &[
    ("ASCII", ascii),
    ("CHAR", char_of),
    ("CONCAT", concat),
    ("CONCAT_WS", concat_ws),
    ("DATALENGTH", datalength),
    ("LEFT", left),
    ("LEN", len),
    ("LOWER", |call| mapped(call, |text| change_case(text, char::to_lowercase))),
    ("LTRIM", |call| trimmed(call, true, false)),
    ("NCHAR", nchar),
    ("REPLICATE", replicate),
    ("REVERSE", reverse),
    ("RIGHT", right),
    ("RTRIM", |call| trimmed(call, false, true)),
    ("SPACE", space),
    ("STUFF", stuff),
    ("SUBSTRING", substring),
    ("TRIM", |call| trimmed(call, true, true)),
    ("UNICODE", unicode),
    ("UPPER", |call| mapped(call, |text| change_case(text, char::to_uppercase))),
];

const SPACE: u16 = 0x20;

fn len(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.text(0)?;
    let result = position_type(&taken.from);
    call.returns(result, move |arguments, _| match &arguments[0] {
        Value::Binary(bytes) => {
            let trailing = bytes.iter().rev().take_while(|byte| **byte == b' ').count();
            Ok(position(bytes.len() - trailing, &result))
        }
        value => Ok(taken.text(value)?.map_or(Value::Null, |text| {
            let trailing = text.units().rev().take_while(|unit| *unit == SPACE).count();
            position(text.len() - trailing, &result)
        })),
    })
}

fn datalength(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let ty = call.ty(0)?;
    let result = position_type(&ty);
    call.returns(result, move |arguments, _| {
        let (ty, value) = match &arguments[0] {
            Value::Null => return Ok(Value::Null),
            Value::Variant(inner) => (&inner.0, &inner.1),
            value => (&ty, value),
        };
        Ok(position(stored_length(value, ty), &result))
    })
}

/// Bytes that a value takes in its type.
fn stored_length(value: &Value, ty: &SqlType) -> usize {
    match value {
        Value::String(text) if ty.is_unicode() => 2 * text.len(),
        Value::String(text) => ty.collation().unwrap_or(Collation::DEFAULT).encoded_len(text),
        Value::Binary(bytes) => bytes.len(),
        _ => usize::try_from(ty.max_length_bytes()).unwrap_or(0),
    }
}

/// A text function of one text that keeps the type's length.
fn mapped(call: &Call<'_>, map: fn(&Text) -> Text) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.text(0)?;
    let result = variable(&taken.to, None);
    call.returns(result, move |arguments, _| {
        Ok(taken.text(&arguments[0])?.map_or(Value::Null, |text| Value::String(map(&text))))
    })
}

/// `TRIM(text)`, `TRIM(characters FROM text)` (its arguments in this order), `LTRIM(text [, characters])`, `RTRIM`.
fn trimmed(call: &Call<'_>, leading: bool, trailing: bool) -> Result<ScalarFunction, ValueError> {
    call.count(1..=2)?;
    let pair = call.arguments.len() == 2;
    let text_at = usize::from(pair && leading && trailing);
    let taken = call.text(text_at)?;
    let characters = if pair { Some(call.text(1 - text_at)?) } else { None };
    let collation = taken.to.collation().unwrap_or(Collation::DEFAULT);
    call.returns(variable(&taken.to, None), move |arguments, _| {
        let characters = match &characters {
            None => Some(vec![SPACE]),
            Some(taken) => taken.text(&arguments[1 - text_at])?.map(|characters| characters.to_units()),
        };
        let (Some(text), Some(characters)) = (taken.text(&arguments[text_at])?, characters) else {
            return Ok(Value::Null);
        };
        let cut = |unit: &u16| {
            characters.iter().any(|known| known == unit || compare_units(*known, *unit, collation).is_eq())
        };
        let start = if leading { text.units().take_while(|unit| cut(unit)).count() } else { 0 };
        let end = if trailing { text.units().rev().take_while(|unit| cut(unit)).count() } else { 0 };
        Ok(Value::String(text.slice(start, text.len().saturating_sub(end))))
    })
}

/// Maps each code unit for itself, as Windows does: no mapping changes the length of a text.
fn change_case<I: Iterator<Item = char>>(text: &Text, map: fn(char) -> I) -> Text {
    let units: Vec<u16> = text
        .units()
        .map(|unit| {
            let mapped =
                char::from_u32(u32::from(unit)).map(map).and_then(|mut mapped| match (mapped.next(), mapped.next()) {
                    (Some(only), None) => u16::try_from(u32::from(only)).ok(),
                    _ => None,
                });
            mapped.unwrap_or(unit)
        })
        .collect();
    Text::from_units(&units)
}

fn reverse(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.text(0)?;
    call.returns(variable(&taken.to, None), move |arguments, _| {
        let reversed = taken.text(&arguments[0])?.map(|text| text.units().rev().collect::<Vec<u16>>());
        Ok(reversed.map_or(Value::Null, |units| Value::String(Text::from_units(&units))))
    })
}

fn invalid_length(function: &str) -> ValueError {
    if function == "RIGHT" {
        return ValueError::new(536, 1, "Invalid length parameter passed to the RIGHT function.");
    }
    ValueError::new(537, 2, "Invalid length parameter passed to the LEFT or SUBSTRING function.")
}

fn left(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (taken, count) = (call.text(0)?, call.int(1)?);
    call.returns(variable(&taken.to, None), move |arguments, _| {
        let (Some(text), Some(count)) = (taken.text(&arguments[0])?, count.integer(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let count = usize::try_from(count).map_err(|_| invalid_length("LEFT"))?;
        Ok(Value::String(text.slice(0, count)))
    })
}

fn right(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (taken, count) = (call.text(0)?, call.int(1)?);
    call.returns(variable(&taken.to, None), move |arguments, _| {
        let (Some(text), Some(count)) = (taken.text(&arguments[0])?, count.integer(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let count = usize::try_from(count).map_err(|_| invalid_length("RIGHT"))?;
        Ok(Value::String(text.slice(text.len().saturating_sub(count), text.len())))
    })
}

fn substring(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(3..=3)?;
    let (start, length) = (call.taken_as(1, SqlType::BigInt)?, call.taken_as(2, SqlType::BigInt)?);
    let from = call.ty(0)?;
    let taken = match from {
        SqlType::Binary(size) => Taken { from, to: SqlType::varbinary(size) },
        SqlType::VarBinary(_) => Taken { from, to: from },
        SqlType::Image => Taken { from, to: SqlType::VARBINARY_MAX },
        SqlType::Null => return Err(call.invalid(0)),
        _ if from.is_character() => call.text(0)?,
        _ => return Err(call.invalid(0)),
    };
    let result = if taken.to.is_binary() { taken.to } else { variable(&taken.to, None) };
    call.returns(result, move |arguments, _| {
        let (start, length) = match (&arguments[1], &arguments[2]) {
            // The common case: both are int literals.
            (Value::Int(start), Value::Int(length)) => (i64::from(*start), i64::from(*length)),
            (start_value, length_value) => {
                let (Some(start), Some(length)) = (start.integer(start_value)?, length.integer(length_value)?) else {
                    return Ok(Value::Null);
                };
                (start, length)
            }
        };
        if length < 0 {
            return Err(invalid_length("SUBSTRING"));
        }
        // Positions before the first count against the length.
        let end = usize::try_from(start.saturating_add(length).saturating_sub(1)).unwrap_or(0);
        let start = usize::try_from(start.saturating_sub(1)).unwrap_or(0);
        match &arguments[0] {
            Value::Null => Ok(Value::Null),
            Value::Binary(bytes) => {
                let end = end.min(bytes.len());
                Ok(Value::Binary(Bytes::from(&bytes[start.min(end)..end])))
            }
            value => Ok(taken.text(value)?.map_or(Value::Null, |text| Value::String(text.slice(start, end)))),
        }
    })
}

fn stuff(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(4..=4)?;
    let (text, insert) = (call.text(0)?, call.text(3)?);
    let (start, length) = (call.int(1)?, call.int(2)?);
    let unicode = if insert.to.is_unicode() { insert.to } else { text.to };
    let result = if text.to.is_large() || insert.to.is_large() {
        variable(&unicode, Some(Length::Max))
    } else {
        longest(&unicode)
    };
    call.may_return_null(result, move |arguments, _| {
        let (Some(text), Some(start), Some(length)) =
            (text.text(&arguments[0])?, start.integer(&arguments[1])?, length.integer(&arguments[2])?)
        else {
            return Ok(Value::Null);
        };
        let insert = insert.text(&arguments[3])?.unwrap_or(Text::EMPTY);
        let (Ok(start), Ok(length)) = (usize::try_from(start), usize::try_from(length)) else {
            return Ok(Value::Null);
        };
        if start == 0 || start > text.len() {
            return Ok(Value::Null);
        }
        let rest = text.slice((start - 1).saturating_add(length), text.len());
        let stuffed = text.slice(0, start - 1).concat(&insert).concat(&rest);
        Ok(Value::String(fit_text(&stuffed, &result)))
    })
}

fn replicate(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (taken, count) = (call.text(0)?, call.taken_as(1, SqlType::BigInt)?);
    let result = longest(&taken.to);
    call.may_return_null(result, move |arguments, _| {
        let (Some(text), Some(count)) = (taken.text(&arguments[0])?, count.integer(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let Ok(count) = usize::try_from(count) else { return Ok(Value::Null) };
        repeat(&text, count, &result).map(Value::String)
    })
}

/// Bytes that one value may take at most, 2^31 - 1.
const LARGEST_VALUE: usize = 0x7FFF_FFFF;

fn repeat(text: &Text, count: usize, result: &SqlType) -> Result<Text, ValueError> {
    let limit = match result {
        SqlType::VarChar(length, _) | SqlType::NVarChar(length, _) => length.limit(),
        _ => usize::MAX,
    };
    let wanted = text.len().saturating_mul(count).min(limit);
    if wanted > LARGEST_VALUE / 2 {
        let text = "Attempting to grow LOB beyond maximum allowed size of 2147483647 bytes.";
        return Err(ValueError::new(7119, 1, text));
    }
    let repeated: Vec<u8> = text.as_utf16le().iter().copied().cycle().take(2 * wanted).collect();
    Ok(fit_text(&Text::from_utf16le(repeated), result))
}

fn space(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let count = call.int(0)?;
    let result = SqlType::varchar(8000);
    call.may_return_null(result, move |arguments, _| {
        let count = count.integer(&arguments[0])?.and_then(|count| usize::try_from(count).ok());
        count.map_or(Ok(Value::Null), |count| repeat(&Text::from(" "), count, &result).map(Value::String))
    })
}

fn char_of(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let code = call.int(0)?;
    call.may_return_null(SqlType::Char(1, Collation::DEFAULT), move |arguments, _| {
        let byte = code.integer(&arguments[0])?.and_then(|code| u8::try_from(code).ok());
        Ok(byte.map_or(Value::Null, |byte| Value::String(Collation::DEFAULT.decode(&[byte]))))
    })
}

fn nchar(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let code = call.int(0)?;
    call.may_return_null(SqlType::NChar(1, Collation::DEFAULT), move |arguments, _| {
        let unit = code.integer(&arguments[0])?.and_then(|code| u16::try_from(code).ok());
        Ok(unit.map_or(Value::Null, |unit| Value::String(Text::from_units(&[unit]))))
    })
}

fn ascii(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.text(0)?;
    call.may_return_null(SqlType::Int, move |arguments, _| {
        let first = taken.text(&arguments[0])?.map(|text| Collation::DEFAULT.encode(&text.slice(0, 1)));
        let first = first.and_then(|bytes| bytes.first().copied());
        Ok(first.map_or(Value::Null, |byte| Value::Int(i32::from(byte))))
    })
}

fn unicode(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let taken = call.text(0)?;
    call.may_return_null(SqlType::Int, move |arguments, _| {
        let first = taken.text(&arguments[0])?.and_then(|text| text.units().next());
        Ok(first.map_or(Value::Null, |unit| Value::Int(i32::from(unit))))
    })
}

/// Arguments of CONCAT as texts, and the type of all of them together.
fn concatenated(call: &Call<'_>, separators: u16) -> Result<(Vec<Taken>, SqlType), ValueError> {
    let mut taken = Vec::with_capacity(call.arguments.len());
    let (mut unicode, mut large, mut length) = (false, false, 0_u16);
    for index in 0..call.arguments.len() {
        let argument = match call.ty(index)? {
            ty if ty.is_character() || ty.is_binary() => call.text(index)?,
            SqlType::SqlVariant => return Err(call.invalid(index)),
            from => Taken { from, to: SqlType::varchar(display_length(&from)) },
        };
        unicode |= argument.to.is_unicode();
        large |= argument.to.is_large();
        length = length.saturating_add(match argument.to {
            SqlType::Char(length, _)
            | SqlType::NChar(length, _)
            | SqlType::VarChar(Length::Sized(length), _)
            | SqlType::NVarChar(Length::Sized(length), _) => length,
            _ => 0,
        });
        taken.push(argument);
    }
    let length = length.saturating_add(separators);
    let collation = taken.iter().find_map(|taken| taken.from.collation()).unwrap_or(Collation::DEFAULT);
    let result = match (unicode, large) {
        (true, true) => SqlType::NVarChar(Length::Max, collation),
        (false, true) => SqlType::VarChar(Length::Max, collation),
        (true, false) => SqlType::NVarChar(Length::Sized(length.clamp(1, 4000)), collation),
        (false, false) => SqlType::VarChar(Length::Sized(length.clamp(1, 8000)), collation),
    };
    Ok((taken, result))
}

fn concat(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=254)?;
    let (taken, result) = concatenated(call, 0)?;
    let function = call.returns(result, move |arguments, _| {
        let mut joined = Vec::new();
        for (taken, value) in taken.iter().zip(arguments) {
            joined.extend_from_slice(taken.text(value)?.unwrap_or(Text::EMPTY).as_utf16le());
        }
        Ok(Value::String(fit_text(&Text::from_utf16le(joined), &result)))
    })?;
    Ok(ScalarFunction { nullable: false, ..function })
}

fn concat_ws(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(3..=254)?;
    let separators = u16::try_from(call.arguments.len()).unwrap_or(u16::MAX);
    let (taken, result) = concatenated(call, separators)?;
    let function = call.returns(result, move |arguments, _| {
        let separator = taken[0].text(&arguments[0])?.unwrap_or(Text::EMPTY);
        let mut joined: Option<Text> = None;
        for (taken, value) in taken.iter().zip(arguments).skip(1) {
            let Some(text) = taken.text(value)? else { continue };
            joined = Some(joined.map_or_else(|| text.clone(), |joined| joined.concat(&separator).concat(&text)));
        }
        Ok(Value::String(fit_text(&joined.unwrap_or(Text::EMPTY), &result)))
    })?;
    Ok(ScalarFunction { nullable: false, ..function })
}

/// The value as text for messages and formats, whatever its type.
pub(super) fn as_text(value: &Value, ty: &SqlType) -> Result<Option<Text>, ValueError> {
    match cast(value, ty, &SqlType::NVARCHAR_MAX, &CastOptions::EXPLICIT)? {
        Value::String(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}
