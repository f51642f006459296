//! CAST, CONVERT, TRY_CAST and assignment ("CAST and CONVERT (Transact-SQL)").
//!
//! [`check_conversion`] is the chart of that page; the modules below hold one direction each.

mod matrix;
mod temporal_format;
mod temporal_parse;
mod to_binary;
mod to_number;
mod to_temporal;
mod to_text;

use super::{Bytes, DateFormat, Length, SqlType, Text, Value, ValueError};

pub use matrix::check_conversion;
pub(super) use temporal_format::MONTHS;

/// Who asked for a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// CAST or CONVERT.
    #[default]
    Explicit,
    /// An operator, a comparison, a function argument, an assignment.
    Implicit,
}

/// Options of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CastOptions {
    /// Third argument of CONVERT.
    pub style: Option<i32>,
    /// Explicit or implicit.
    pub strictness: Strictness,
    /// SET DATEFORMAT of the session.
    pub date_format: DateFormat,
}

impl CastOptions {
    /// What an operator or an assignment uses.
    pub const IMPLICIT: Self = Self { style: None, strictness: Strictness::Implicit, date_format: DateFormat::Mdy };
    /// What CAST uses.
    pub const EXPLICIT: Self = Self { style: None, strictness: Strictness::Explicit, date_format: DateFormat::Mdy };
}

/// Converts a value. Texts and binaries that are too long are cut, as CAST does.
///
/// # Errors
/// The errors of [`check_conversion`], and those of the value (220, 241, 242, 245, 248, 8114, 8115, ...).
pub fn cast(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    if from == to {
        return Ok(value.clone());
    }
    check_conversion(from, to, options.strictness)?;
    match value {
        Value::Null => Ok(Value::Null),
        Value::Variant(inner) if *to != SqlType::SqlVariant => {
            let (base, inner) = &**inner;
            cast(inner, base, to, &CastOptions { strictness: Strictness::Explicit, ..*options })
        }
        _ => convert(value, from, to, options),
    }
}

fn convert(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    match to {
        SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Image | SqlType::RowVersion => {
            to_binary::convert(value, from, to, options)
        }
        SqlType::Null => Ok(value.clone()),
        SqlType::SqlVariant => {
            let already = matches!(value, Value::Variant(_));
            Ok(if already { value.clone() } else { Value::Variant(std::sync::Arc::new((*from, value.clone()))) })
        }
        SqlType::UniqueIdentifier => to_guid(value, from, to),
        _ if to.is_character() => to_text::convert(value, from, to, options),
        _ if to.is_temporal() => to_temporal::convert(value, from, to, options),
        _ => to_number::convert(value, from, to),
    }
}

/// TRY_CAST and TRY_CONVERT: NULL where the value cannot be converted.
///
/// # Errors
/// Errors of the types (529, 281, 9809) remain errors.
pub fn try_cast(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    match cast(value, from, to, options) {
        Err(error) if error.depends_on_value() => Ok(Value::Null),
        other => other,
    }
}

/// Converts a value for a column of INSERT and UPDATE: implicitly, and a text or binary that is too long
/// (trailing spaces or trailing zero bytes excepted) is error 8152 instead of being cut.
///
/// A server that knows table and column may report [`ValueError::truncation_in`] instead.
///
/// # Errors
/// 8152 and the errors of [`cast`].
pub fn assign(value: &Value, from: &SqlType, to: &SqlType, date_format: DateFormat) -> Result<Value, ValueError> {
    let options = CastOptions { date_format, ..CastOptions::IMPLICIT };
    if loses_content(value, to) {
        return Err(ValueError::new(8152, 30, "String or binary data would be truncated."));
    }
    cast(value, from, to, &options)
}

/// Whether a character or binary value has content beyond the length of `to`.
fn loses_content(value: &Value, to: &SqlType) -> bool {
    match (value, to) {
        (Value::String(text), SqlType::NChar(limit, _) | SqlType::NVarChar(Length::Sized(limit), _)) => {
            let limit = usize::from(*limit);
            text.len() > limit && text.units().skip(limit).any(|unit| unit != 0x20)
        }
        (Value::String(text), SqlType::Char(limit, collation) | SqlType::VarChar(Length::Sized(limit), collation)) => {
            let limit = usize::from(*limit);
            collation.encoded_len(text) > limit
                && collation.encode(text).as_slice()[limit..].iter().any(|byte| *byte != b' ')
        }
        (Value::Binary(bytes), SqlType::Binary(limit) | SqlType::VarBinary(Length::Sized(limit))) => {
            bytes.len() > usize::from(*limit) && bytes[usize::from(*limit)..].iter().any(|byte| *byte != 0)
        }
        _ => false,
    }
}

/// A text in the shape of a character type: code page applied, cut, padded.
pub(super) fn fit_text(text: &Text, to: &SqlType) -> Text {
    match to {
        SqlType::NVarChar(length, _) => text.slice(0, length.limit()),
        SqlType::NChar(length, _) => padded(text.slice(0, usize::from(*length)), usize::from(*length), |cut| cut.len()),
        SqlType::VarChar(length, collation) => fit_code_page(text, length.limit(), *collation),
        SqlType::Char(length, collation) => {
            let limit = usize::from(*length);
            padded(fit_code_page(text, limit, *collation), limit, |cut| collation.encoded_len(cut))
        }
        SqlType::Text(collation) => fit_code_page(text, usize::MAX, *collation),
        _ => text.clone(),
    }
}

fn fit_code_page(text: &Text, limit: usize, collation: super::Collation) -> Text {
    if text.is_ascii() {
        return text.slice(0, limit);
    }
    let encoded = collation.encode(text);
    let mut end = encoded.len().min(limit);
    // UTF-8 is cut between characters.
    while collation.is_utf8() && end < encoded.len() && encoded[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    collation.decode(&encoded[..end])
}

fn padded(text: Text, limit: usize, length: impl Fn(&Text) -> usize) -> Text {
    let missing = limit.saturating_sub(length(&text));
    if missing == 0 { text } else { text.concat(&Text::from(&*" ".repeat(missing))) }
}

/// Bytes in the shape of a binary type: cut and padded with zeros on the right.
pub(super) fn fit_binary(bytes: &Bytes, to: &SqlType) -> Bytes {
    match to {
        SqlType::VarBinary(Length::Sized(limit)) if bytes.len() > usize::from(*limit) => {
            Bytes::from(&bytes[..usize::from(*limit)])
        }
        SqlType::Binary(length) if bytes.len() != usize::from(*length) => {
            let mut fixed = bytes.to_vec();
            fixed.resize(usize::from(*length), 0);
            Bytes::from(fixed)
        }
        SqlType::RowVersion if bytes.len() != 8 => fit_binary(bytes, &SqlType::Binary(8)),
        _ => bytes.clone(),
    }
}

fn to_guid(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value, ValueError> {
    match value {
        Value::Guid(_) => Ok(value.clone()),
        Value::Binary(bytes) => {
            let mut guid = [0; 16];
            let length = bytes.len().min(16);
            guid[..length].copy_from_slice(&bytes[..length]);
            Ok(Value::Guid(guid))
        }
        Value::String(text) => parse_guid(&text.to_string()).map(Value::Guid).ok_or_else(|| {
            ValueError::new(8169, 2, "Conversion failed when converting from a character string to uniqueidentifier.")
        }),
        _ => Err(ValueError::not_allowed_explicitly(from, to)),
    }
}

/// Positions of the dashes in the text of a uniqueidentifier.
const GUID_DASHES: [usize; 4] = [8, 13, 18, 23];
/// Order of the stored bytes in the text.
const GUID_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

/// Reads the 36 characters of a uniqueidentifier, in braces or not; what follows them is ignored.
fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let digits = text.strip_prefix('{').unwrap_or(text).as_bytes().get(..36)?;
    let mut nibbles = Vec::with_capacity(32);
    for (position, byte) in digits.iter().enumerate() {
        if GUID_DASHES.contains(&position) {
            (*byte == b'-').then_some(())?;
        } else {
            nibbles.push(super::literal::hex_digit(*byte)?);
        }
    }
    let mut guid = [0; 16];
    for (pair, position) in nibbles.chunks_exact(2).zip(GUID_ORDER) {
        guid[position] = (pair[0] << 4) | pair[1];
    }
    Some(guid)
}

/// The 36 characters of a uniqueidentifier, in upper case.
fn guid_text(guid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for position in GUID_ORDER {
        if GUID_DASHES.contains(&text.len()) {
            text.push('-');
        }
        text.push_str(&format!("{:02X}", guid[position]));
    }
    text
}
