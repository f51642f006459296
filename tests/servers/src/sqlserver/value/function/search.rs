//! Finding and replacing in texts, and names.

use std::cmp::Ordering;

use super::super::conversion::fit_text;
use super::super::operator::{compare_units, compile_pattern};
use super::super::{Collation, SqlType, Text, Value, ValueError};
use super::call::{Call, longest, position, position_type, variable};
use super::{Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] = &[
    ("CHARINDEX", charindex),
    ("DIFFERENCE", difference),
    ("PARSENAME", parsename),
    ("PATINDEX", patindex),
    ("QUOTENAME", quotename),
    ("REPLACE", replace),
    ("SOUNDEX", soundex),
    ("STRING_ESCAPE", string_escape),
    ("TRANSLATE", translate),
];

/// The first place of `wanted` at or behind `start`, character by character in the collation.
fn find(units: &[u16], wanted: &[u16], start: usize, collation: Collation) -> Option<usize> {
    if wanted.is_empty() || wanted.len() > units.len() {
        return None;
    }
    let same = |left: &u16, right: &u16| left == right || compare_units(*left, *right, collation) == Ordering::Equal;
    (start..=units.len() - wanted.len())
        .find(|at| units[*at..].iter().zip(wanted).all(|(left, right)| same(left, right)))
}

/// The collation of two texts, the one that is not the default first.
fn common_collation(left: &SqlType, right: &SqlType) -> Collation {
    let known = [left, right].into_iter().filter_map(SqlType::collation);
    known.clone().find(|collation| *collation != Collation::DEFAULT).unwrap_or(Collation::DEFAULT)
}

fn charindex(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=3)?;
    let (wanted, text) = (call.text(0)?, call.text(1)?);
    let start = if call.arguments.len() == 3 { Some(call.taken_as(2, SqlType::BigInt)?) } else { None };
    let result = position_type(&text.from);
    let collation = common_collation(&wanted.to, &text.to);
    call.returns(result, move |arguments, _| {
        let (Some(wanted), Some(text)) = (wanted.text(&arguments[0])?, text.text(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let start = match &start {
            None => 0,
            Some(taken) => match taken.integer(&arguments[2])? {
                None => return Ok(Value::Null),
                Some(start) => usize::try_from(start.saturating_sub(1)).unwrap_or(0),
            },
        };
        let found = find(&text.to_units(), &wanted.to_units(), start, collation);
        Ok(position(found.map_or(0, |at| at + 1), &result))
    })
}

fn patindex(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (pattern, text) = (call.text(0)?, call.text(1)?);
    let result = position_type(&text.from);
    let collation = common_collation(&pattern.to, &text.to);
    call.returns(result, move |arguments, _| {
        let (Some(pattern), Some(text)) = (pattern.text(&arguments[0])?, text.text(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let found = compile_pattern(&pattern, None, collation)?.find(&text.to_units());
        Ok(position(found.map_or(0, |at| at + 1), &result))
    })
}

fn replace(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(3..=3)?;
    let (text, wanted, replacement) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let unicode = [text.to, wanted.to, replacement.to].into_iter().find(SqlType::is_unicode);
    let kind = unicode.map_or(text.to, |unicode| if text.to.is_unicode() { text.to } else { unicode });
    let large = text.to.is_large() || replacement.to.is_large();
    let result = if large { variable(&kind, Some(super::super::Length::Max)) } else { longest(&kind) };
    let result = if large { to_max(&result) } else { result };
    let collation = common_collation(&text.to, &wanted.to);
    call.returns(result, move |arguments, _| {
        let (Some(text), Some(wanted), Some(replacement)) =
            (text.text(&arguments[0])?, wanted.text(&arguments[1])?, replacement.text(&arguments[2])?)
        else {
            return Ok(Value::Null);
        };
        let (units, wanted, replacement) = (text.to_units(), wanted.to_units(), replacement.to_units());
        let mut replaced = Vec::with_capacity(units.len());
        let mut position = 0;
        while let Some(at) = find(&units, &wanted, position, collation) {
            replaced.extend_from_slice(&units[position..at]);
            replaced.extend_from_slice(&replacement);
            position = at + wanted.len();
        }
        replaced.extend_from_slice(&units[position..]);
        Ok(Value::String(fit_text(&Text::from_units(&replaced), &result)))
    })
}

fn to_max(ty: &SqlType) -> SqlType {
    let collation = ty.collation().unwrap_or(Collation::DEFAULT);
    let max = super::super::Length::Max;
    if ty.is_unicode() { SqlType::NVarChar(max, collation) } else { SqlType::VarChar(max, collation) }
}

fn translate(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(3..=3)?;
    let (text, from, to) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let collation = common_collation(&text.to, &from.to);
    call.returns(variable(&text.to, None), move |arguments, _| {
        let (Some(text), Some(from), Some(to)) =
            (text.text(&arguments[0])?, from.text(&arguments[1])?, to.text(&arguments[2])?)
        else {
            return Ok(Value::Null);
        };
        let (from, to) = (from.to_units(), to.to_units());
        if from.len() != to.len() {
            let text = "The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters.";
            return Err(ValueError::new(9828, 1, text));
        }
        let translated: Vec<u16> = text
            .units()
            .map(|unit| {
                let at = from.iter().position(|known| compare_units(unit, *known, collation) == Ordering::Equal);
                at.map_or(unit, |at| to[at])
            })
            .collect();
        Ok(Value::String(Text::from_units(&translated)))
    })
}

/// Longest identifier.
const IDENTIFIER_CHARACTERS: usize = 128;

fn quotename(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=2)?;
    let name = call.text(0)?;
    let quote = if call.arguments.len() == 2 { Some(call.text(1)?) } else { None };
    call.may_return_null(SqlType::nvarchar(258), move |arguments, _| {
        let quote = match &quote {
            None => Some(Text::from("[")),
            Some(taken) => taken.text(&arguments[1])?,
        };
        let (Some(name), Some(quote)) = (name.text(&arguments[0])?, quote) else { return Ok(Value::Null) };
        let pair = match &*quote.slice(0, 1).to_string() {
            "[" | "]" => ("[", "]"),
            "'" => ("'", "'"),
            "\"" => ("\"", "\""),
            "(" | ")" => ("(", ")"),
            "<" | ">" => ("<", ">"),
            "{" | "}" => ("{", "}"),
            "`" => ("`", "`"),
            _ => return Ok(Value::Null),
        };
        if name.len() > IDENTIFIER_CHARACTERS {
            return Ok(Value::Null);
        }
        let closing = Text::from(pair.1).to_units()[0];
        let mut units = Text::from(pair.0).to_units();
        for unit in name.units() {
            units.push(unit);
            if unit == closing {
                units.push(unit);
            }
        }
        units.push(closing);
        Ok(Value::String(Text::from_units(&units)))
    })
}

fn parsename(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (name, piece) = (call.text(0)?, call.int(1)?);
    call.may_return_null(SqlType::SYSNAME, move |arguments, _| {
        let (Some(name), Some(piece)) = (name.text(&arguments[0])?, piece.integer(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let parts = name_parts(&name.to_string());
        let wanted = usize::try_from(piece).ok().filter(|piece| (1..=4).contains(piece));
        let part = parts
            .filter(|parts| parts.len() <= 4)
            .zip(wanted)
            .and_then(|(parts, piece)| parts.into_iter().rev().nth(piece - 1).filter(|part| !part.is_empty()));
        Ok(part.map_or(Value::Null, |part| Value::text(&part)))
    })
}

/// The parts of a dotted name without their brackets or quotes; `None` if it is malformed.
fn name_parts(name: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name;
    loop {
        let closing = match rest.chars().next() {
            Some('[') => Some(']'),
            Some('"') => Some('"'),
            _ => None,
        };
        let mut part = String::new();
        if let Some(closing) = closing {
            let mut characters = rest[1..].char_indices().peekable();
            let mut end = None;
            while let Some((at, character)) = characters.next() {
                if character == closing && characters.next_if(|(_, next)| *next == closing).is_none() {
                    end = Some(at + 2);
                    break;
                }
                part.push(character);
            }
            rest = &rest[end?..];
        } else {
            let end = rest.find('.').unwrap_or(rest.len());
            part.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        (part.encode_utf16().count() <= IDENTIFIER_CHARACTERS).then_some(())?;
        parts.push(part);
        if rest.is_empty() {
            return Some(parts);
        }
        rest = rest.strip_prefix('.')?;
    }
}

fn string_escape(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (text, kind) = (call.text(0)?, call.text(1)?);
    call.returns(SqlType::NVARCHAR_MAX, move |arguments, _| {
        let (Some(text), Some(kind)) = (text.text(&arguments[0])?, kind.text(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        if !kind.to_string().eq_ignore_ascii_case("json") {
            let text = "An invalid value was specified for argument 2.";
            return Err(ValueError::new(13600, 1, text));
        }
        let mut escaped = Vec::with_capacity(text.len());
        for unit in text.units() {
            let short = match unit {
                0x22 => Some('"'),
                0x5C => Some('\\'),
                0x2F => Some('/'),
                0x08 => Some('b'),
                0x0C => Some('f'),
                0x0A => Some('n'),
                0x0D => Some('r'),
                0x09 => Some('t'),
                _ => None,
            };
            match short {
                Some(letter) => escaped.extend(format!("\\{letter}").encode_utf16()),
                None if unit < 0x20 => escaped.extend(format!("\\u{unit:04x}").encode_utf16()),
                None => escaped.push(unit),
            }
        }
        Ok(Value::String(Text::from_units(&escaped)))
    })
}

/// The letter and three digits of a word's sound; letters that sound alike count once, also across H and W.
fn soundex_code(text: &str) -> String {
    let digit = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        'H' | 'W' => '-',
        _ => '0',
    };
    let mut letters = text.trim_start().chars().take_while(char::is_ascii_alphabetic);
    let Some(first) = letters.next() else { return String::from("0000") };
    let mut code = String::from(first.to_ascii_uppercase());
    let mut last = digit(first);
    for sound in letters.map(digit).filter(|sound| *sound != '-') {
        if sound != last && sound != '0' && code.len() < 4 {
            code.push(sound);
        }
        last = sound;
    }
    format!("{code:0<4}")
}

fn soundex(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let text = call.text(0)?;
    call.returns(SqlType::varchar(5), move |arguments, _| {
        Ok(text.text(&arguments[0])?.map_or(Value::Null, |text| Value::text(&soundex_code(&text.to_string()))))
    })
}

/// How many of the four characters of two sounds agree.
fn difference(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(2..=2)?;
    let (left, right) = (call.text(0)?, call.text(1)?);
    call.returns(SqlType::Int, move |arguments, _| {
        let (Some(left), Some(right)) = (left.text(&arguments[0])?, right.text(&arguments[1])?) else {
            return Ok(Value::Null);
        };
        let (left, right) = (soundex_code(&left.to_string()), soundex_code(&right.to_string()));
        let same = left.chars().zip(right.chars()).filter(|(left, right)| left == right).count();
        Ok(Value::Int(i32::try_from(same).unwrap_or(0)))
    })
}
