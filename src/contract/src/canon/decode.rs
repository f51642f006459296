//! The strict decoder: duplicate keys, non-finite numbers and anything outside RFC 8259 are refused.
//!
//! It is bounded: nesting of at most [`MAX_DEPTH`], integers of at most [`MAX_INTEGER_DIGITS`] digits; the caller bounds
//! the input's length.

use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigInt;

use super::{Finite, Json, Object};

/// Deepest nesting the decoder follows; no document of the contract comes near it.
pub const MAX_DEPTH: usize = 256;
/// Most digits of an integer (Python's own limit for `int(text)`), so that parsing stays far from quadratic blow-up.
pub const MAX_INTEGER_DIGITS: usize = 4300;

/// Why a text is not a strict JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, not UTF-8, too deep, or an integer with too many digits.
    #[error("invalid JSON")]
    Invalid,
    /// An object names a key twice, at any depth.
    #[error("duplicate JSON key")]
    DuplicateKey,
    /// `NaN`, `Infinity` or `-Infinity`.
    #[error("non-finite JSON constant: {0}")]
    NonFiniteConstant(&'static str),
    /// A float literal that overflows a double.
    #[error("non-finite JSON number")]
    NonFiniteNumber,
    /// The root is not an object.
    #[error("JSON root must be an object")]
    RootNotObject,
    /// The document holds a lone surrogate escape, so no canonical form can write it again.
    #[error("text with a lone surrogate cannot be encoded")]
    LoneSurrogate,
}

/// A decoded document that may hold texts no canonical form can write.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    value: Json,
    lone_surrogate: bool,
}

impl Decoded {
    /// The value, if every text in it can be written again.
    ///
    /// # Errors
    /// [`DecodeError::LoneSurrogate`] when some text or key holds a lone surrogate escape.
    pub fn encodable(self) -> Result<Json, DecodeError> {
        if self.lone_surrogate { Err(DecodeError::LoneSurrogate) } else { Ok(self.value) }
    }
}

/// Decodes one JSON value of any kind.
///
/// # Errors
/// See [`DecodeError`]; the first fault in reading order wins, a duplicate key counts where its object closes.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| DecodeError::Invalid)?;
    let mut parser = Parser { bytes: text.as_bytes(), at: 0, lone_surrogate: false };
    parser.skip_space();
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.at < parser.bytes.len() {
        return Err(DecodeError::Invalid);
    }
    Ok(Decoded { value, lone_surrogate: parser.lone_surrogate })
}

/// Decodes one JSON object whose texts can all be written again.
///
/// # Errors
/// As [`decode`], and [`DecodeError::RootNotObject`], [`DecodeError::LoneSurrogate`].
pub fn decode_object(bytes: &[u8]) -> Result<Object, DecodeError> {
    let decoded = decode(bytes)?;
    if !matches!(decoded.value, Json::Object(_)) {
        return Err(DecodeError::RootNotObject);
    }
    match decoded.encodable()? {
        Json::Object(members) => Ok(members),
        _ => Err(DecodeError::RootNotObject),
    }
}

/// The value of a JSON number literal: an integer without fraction and exponent, else a float.
pub(super) fn number(literal: &str) -> Result<Json, DecodeError> {
    if literal.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        let value: f64 = literal.parse().map_err(|_| DecodeError::Invalid)?;
        return Finite::new(value).map(Json::Float).ok_or(DecodeError::NonFiniteNumber);
    }
    if literal.trim_start_matches('-').len() > MAX_INTEGER_DIGITS {
        return Err(DecodeError::Invalid);
    }
    literal.parse::<BigInt>().map(Json::Int).map_err(|_| DecodeError::Invalid)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    lone_surrogate: bool,
}

/// A decoded text: exact bytes for comparing keys (WTF-8: lone surrogates as three bytes) and the readable text.
struct Text {
    wtf8: Vec<u8>,
}

impl Text {
    /// The text with lone surrogates replaced; only used when the whole document is marked as not encodable.
    fn into_string(self) -> String {
        String::from_utf8(self.wtf8).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, expected: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    fn expect(&mut self, expected: u8) -> Result<(), DecodeError> {
        if self.take(&[expected]) { Ok(()) } else { Err(DecodeError::Invalid) }
    }

    fn value(&mut self, depth: usize) -> Result<Json, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(DecodeError::Invalid);
        }
        match self.peek() {
            Some(b'"') => Ok(Json::Str(self.text()?.into_string())),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'n') if self.take(b"null") => Ok(Json::Null),
            Some(b't') if self.take(b"true") => Ok(Json::Bool(true)),
            Some(b'f') if self.take(b"false") => Ok(Json::Bool(false)),
            Some(b'N') if self.take(b"NaN") => Err(DecodeError::NonFiniteConstant("NaN")),
            Some(b'I') if self.take(b"Infinity") => Err(DecodeError::NonFiniteConstant("Infinity")),
            Some(b'-') if self.take(b"-Infinity") => Err(DecodeError::NonFiniteConstant("-Infinity")),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(DecodeError::Invalid),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, DecodeError> {
        self.expect(b'{')?;
        let mut members = BTreeMap::new();
        let mut keys = BTreeSet::new();
        let mut duplicate = false;
        self.skip_space();
        if !self.take(b"}") {
            loop {
                self.skip_space();
                let key = self.text()?;
                duplicate |= !keys.insert(key.wtf8.clone());
                self.skip_space();
                self.expect(b':')?;
                self.skip_space();
                let value = self.value(depth + 1)?;
                members.insert(key.into_string(), value);
                self.skip_space();
                if self.take(b"}") {
                    break;
                }
                self.expect(b',')?;
            }
        }
        if duplicate { Err(DecodeError::DuplicateKey) } else { Ok(Json::Object(members)) }
    }

    fn array(&mut self, depth: usize) -> Result<Json, DecodeError> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b"]") {
            return Ok(Json::Array(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b"]") {
                return Ok(Json::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn number(&mut self) -> Result<Json, DecodeError> {
        let start = self.at;
        self.take(b"-");
        if !self.take(b"0") && self.digits() == 0 {
            return Err(DecodeError::Invalid);
        }
        // A dot or an exponent without digits ends the number before it, so the caller meets a stray character.
        if self.peek() == Some(b'.') && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            let before = self.at;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                self.at = before;
            }
        }
        let literal = std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| DecodeError::Invalid)?;
        number(literal)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn text(&mut self) -> Result<Text, DecodeError> {
        self.expect(b'"')?;
        let mut wtf8 = Vec::new();
        loop {
            let byte = self.peek().ok_or(DecodeError::Invalid)?;
            self.at += 1;
            match byte {
                b'"' => return Ok(Text { wtf8 }),
                b'\\' => self.escape(&mut wtf8)?,
                0x00..=0x1f => return Err(DecodeError::Invalid),
                _ => wtf8.push(byte),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let byte = self.peek().ok_or(DecodeError::Invalid)?;
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(out),
            _ => return Err(DecodeError::Invalid),
        };
        out.push(plain);
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut code = u32::from(self.hex_unit()?);
        if (0xd800..0xdc00).contains(&code) && self.bytes[self.at..].starts_with(b"\\u") {
            let resume = self.at;
            self.at += 2;
            let low = u32::from(self.hex_unit()?);
            if (0xdc00..0xe000).contains(&low) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            } else {
                self.at = resume;
            }
        }
        match char::from_u32(code) {
            Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {
                self.lone_surrogate = true;
                let [high, low] = [(code >> 6 & 0x3f) as u8, (code & 0x3f) as u8];
                out.extend_from_slice(&[0xed, 0x80 | high, 0x80 | low]);
            }
        }
        Ok(())
    }

    fn hex_unit(&mut self) -> Result<u16, DecodeError> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(DecodeError::Invalid)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(DecodeError::Invalid);
        }
        let text = std::str::from_utf8(digits).map_err(|_| DecodeError::Invalid)?;
        self.at += 4;
        u16::from_str_radix(text, 16).map_err(|_| DecodeError::Invalid)
    }
}
