//! Canonical JSON: the one value model and the forms whose bytes are hashed (contract.md 1.1).
//!
//! A [`Json`] is encodable by construction: floats are finite and texts are Unicode scalar values, so the writers cannot
//! fail. Objects are ordered by code point (UTF-8 byte order of the keys), never by UTF-16 unit as RFC 8785 would.

mod decode;
mod write;

use std::collections::BTreeMap;

use num_bigint::{BigInt, BigUint};

use crate::digest::{Digest, TypedSum};

pub use decode::{DecodeError, Decoded, MAX_DEPTH, MAX_INTEGER_DIGITS, decode, decode_object};
pub use write::{legacy, python_float, strict, strict_line, write_strict_text};

/// A JSON value that every canonical form can write.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of any size; never written with a fraction or an exponent.
    Int(BigInt),
    /// A finite float, written as Python's `repr`.
    Float(Finite),
    /// A text of Unicode scalar values.
    Str(String),
    /// An array.
    Array(Vec<Json>),
    /// An object; iteration order is the canonical key order.
    Object(Object),
}

/// The members of a JSON object in canonical order.
pub type Object = BTreeMap<String, Json>;

/// A float that is neither NaN nor infinite: the canonical forms have no text for those.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finite(f64);

impl Finite {
    /// `value`, unless it is NaN or infinite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Finite(value))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Json {
    /// An object from its members; a repeated key keeps the last value.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
        Json::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// An array from its items.
    pub fn array<T: Into<Json>>(items: impl IntoIterator<Item = T>) -> Json {
        Json::Array(items.into_iter().map(Into::into).collect())
    }

    /// The text, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if this is one (an integer 0 or 1 is not).
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if this is one (a bool or a float is not).
    pub fn as_int(&self) -> Option<&BigInt> {
        match self {
            Json::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The integer as `u64`, if this is one and fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_int().and_then(|value| u64::try_from(value).ok())
    }

    /// The integer as `i64`, if this is one and fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_int().and_then(|value| i64::try_from(value).ok())
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.as_object().and_then(|members| members.get(key))
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }
}

/// SHA-256 of the strict canonical form.
pub fn strict_digest(value: &Json) -> Digest {
    Digest::of(&strict(value))
}

/// SHA-256 of the legacy ascii form.
pub fn legacy_digest(value: &Json) -> Digest {
    Digest::of(&legacy(value))
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Json::Str(value.to_owned())
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        Json::Str(value)
    }
}

impl From<&String> for Json {
    fn from(value: &String) -> Self {
        Json::Str(value.clone())
    }
}

macro_rules! json_from_int {
    ($($int:ty),*) => {$(
        impl From<$int> for Json {
            fn from(value: $int) -> Self {
                Json::Int(value.into())
            }
        }
    )*};
}
json_from_int!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, usize, BigInt, BigUint);

/// A digest is the text of its 64 hex digits.
impl From<Digest> for Json {
    fn from(value: Digest) -> Self {
        Json::Str(value.to_string())
    }
}

/// A sum is a JSON integer of up to 78 digits.
impl From<TypedSum> for Json {
    fn from(value: TypedSum) -> Self {
        Json::Int(BigUint::from(value).into())
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Json::Null, Into::into)
    }
}

impl<T: Into<Json>> From<Vec<T>> for Json {
    fn from(value: Vec<T>) -> Self {
        Json::array(value)
    }
}

impl From<Object> for Json {
    fn from(value: Object) -> Self {
        Json::Object(value)
    }
}

/// A parsed JSON document as a canonical value.
///
/// # Errors
/// A float literal beyond the range of a double ([`DecodeError::NonFiniteNumber`]).
impl TryFrom<&serde_json::Value> for Json {
    type Error = DecodeError;

    fn try_from(value: &serde_json::Value) -> Result<Self, DecodeError> {
        use serde_json::Value;
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => decode::number(&number.to_string())?,
            Value::String(text) => Json::Str(text.clone()),
            Value::Array(items) => Json::Array(items.iter().map(Json::try_from).collect::<Result<_, _>>()?),
            Value::Object(members) => Json::Object(
                members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), Json::try_from(value)?)))
                    .collect::<Result<_, DecodeError>>()?,
            ),
        })
    }
}

#[cfg(test)]
mod tests;
