//! Message formatting of RAISERROR and FORMATMESSAGE.

use super::error::{self, Result};
use super::storage;
use crate::sqlserver::value::{SqlType, Value};

/// Fills the `%` places of a message.
///
/// # Errors
/// 2786 for an argument of the wrong type, 2787 for a wrong place.
pub(crate) fn message(text: &str, args: &[(Value, SqlType)]) -> Result<String> {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut next = args.iter().enumerate();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut spec = String::new();
        while let Some(flag) = chars.next_if(|c| "-+ 0#".contains(*c)) {
            spec.push(flag);
        }
        let mut width = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            width.push(digit);
        }
        if chars.next_if_eq(&'*').is_some() {
            width = next.next().and_then(|(_, (v, _))| v.as_i64()).unwrap_or(0).to_string();
        }
        let mut precision = None;
        if chars.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            if chars.next_if_eq(&'*').is_some() {
                digits = next.next().and_then(|(_, (v, _))| v.as_i64()).unwrap_or(0).to_string();
            }
            precision = digits.parse::<usize>().ok();
        }
        if chars.next_if_eq(&'I').is_some() {
            chars.next_if_eq(&'6');
            chars.next_if_eq(&'4');
        }
        chars.next_if(|c| "hlL".contains(*c));
        let Some(kind) = chars.next() else {
            return Err(error::plain(2787, &format!("Invalid format specification: '%{spec}'.")));
        };
        let shown = convert(kind, next.next(), precision)?;
        pad(&mut out, &shown, &spec, width.parse().unwrap_or(0));
    }
    Ok(out.chars().take(2047).collect())
}

fn convert(kind: char, arg: Option<(usize, &(Value, SqlType))>, precision: Option<usize>) -> Result<String> {
    let Some((at, (value, ty))) = arg else { return Ok("(null)".into()) };
    if value.is_null() {
        return Ok("(null)".into());
    }
    let mismatch = || {
        error::plain(
            2786,
            &format!(
                "The data type of substitution parameter {} does not match the expected type of the format specification.",
                at + 1
            ),
        )
    };
    match kind {
        's' if ty.is_character() => {
            let text = storage::display(value, ty);
            Ok(precision.map_or(text.clone(), |p| text.chars().take(p).collect()))
        }
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let number = value.as_i64().ok_or_else(mismatch)?;
            let narrow = i32::try_from(number).map_or_else(|_| number.to_string(), |n| n.to_string());
            Ok(match kind {
                'x' => i32::try_from(number).map_or_else(|_| format!("{number:x}"), |n| format!("{n:x}")),
                'X' => i32::try_from(number).map_or_else(|_| format!("{number:X}"), |n| format!("{n:X}")),
                'o' => format!("{number:o}"),
                'u' => i32::try_from(number).map_or_else(|_| number.to_string(), |n| n.cast_unsigned().to_string()),
                _ => narrow,
            })
        }
        's' => Err(mismatch()),
        other => Err(error::plain(2787, &format!("Invalid format specification: '%{other}'."))),
    }
}

fn pad(out: &mut String, shown: &str, flags: &str, width: usize) {
    let missing = width.saturating_sub(shown.chars().count());
    if flags.contains('-') {
        out.push_str(shown);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if flags.contains('0') {
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(shown);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(shown);
    }
}
