//! Writers of the canonical forms.

use std::io::Write as _;

use super::Json;

/// The strict canonical form: UTF-8, keys by code point, no spaces, non-ASCII raw (contract.md 1.1).
pub fn strict(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value, write_strict_text);
    out
}

/// The strict canonical form plus a trailing newline: the form of delivery evidence files.
pub fn strict_line(value: &Json) -> Vec<u8> {
    let mut out = strict(value);
    out.push(b'\n');
    out
}

/// The legacy ascii form: as [`strict`], but everything outside printable ASCII is a `\uxxxx` escape.
pub fn legacy(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value, write_legacy_text);
    out
}

fn write_value(out: &mut Vec<u8>, value: &Json, write_text: fn(&mut Vec<u8>, &str)) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Json::Float(value) => out.extend_from_slice(python_float(value.get()).as_bytes()),
        Json::Str(text) => write_text(out, text),
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(out, item, write_text);
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            for (index, (key, item)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_text(out, key);
                out.push(b':');
                write_value(out, item, write_text);
            }
            out.push(b'}');
        }
    }
}

/// The escape of an ASCII byte that no form writes raw, or `None`.
fn short_escape(byte: u8) -> Option<&'static [u8]> {
    match byte {
        b'"' => Some(b"\\\""),
        b'\\' => Some(b"\\\\"),
        0x08 => Some(b"\\b"),
        0x0c => Some(b"\\f"),
        b'\n' => Some(b"\\n"),
        b'\r' => Some(b"\\r"),
        b'\t' => Some(b"\\t"),
        _ => None,
    }
}

/// Appends `text` as a strict canonical JSON string: only `"`, backslash and U+0000..U+001F are escaped.
pub fn write_strict_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        if let Some(escape) = short_escape(byte) {
            out.extend_from_slice(escape);
        } else if byte < 0x20 {
            write_escape(out, u16::from(byte));
        } else {
            out.push(byte);
        }
    }
    out.push(b'"');
}

fn write_legacy_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if short_escape(byte).is_some() => out.extend_from_slice(short_escape(byte).unwrap_or_default()),
            Ok(byte @ 0x20..=0x7e) => out.push(byte),
            Ok(_) | Err(_) => write_escape(out, unit),
        }
    }
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, unit: u16) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from(unit >> shift & 0xf)]);
    }
}

/// The text Python's `repr` gives a finite float: the shortest digits that read back, an exponent only outside
/// 1e-4 .. 1e16, and always a fraction or an exponent.
pub fn python_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = digits.chars().filter(|c| *c != '.').collect();
    let mut out = Vec::with_capacity(24);
    out.extend_from_slice(sign.as_bytes());
    if !(-4..16).contains(&exponent) {
        out.extend_from_slice(&digits.as_bytes()[..1]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a Vec cannot fail.
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', exponent.unsigned_abs() as usize - 1));
        out.extend_from_slice(digits.as_bytes());
    } else {
        let whole = exponent as usize + 1;
        let padded = format!("{digits:0<whole$}");
        out.extend_from_slice(&padded.as_bytes()[..whole]);
        out.push(b'.');
        out.extend_from_slice(if padded.len() > whole { &padded.as_bytes()[whole..] } else { b"0" });
    }
    out.into_iter().map(char::from).collect()
}
