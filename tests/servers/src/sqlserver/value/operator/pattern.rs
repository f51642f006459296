//! LIKE and the patterns of PATINDEX.

use std::cmp::Ordering;

use super::super::{Collation, SqlType, Text, ValueError};
use super::comparison::compare_units;

/// A pattern taken apart.
#[derive(Debug, Clone)]
pub(in super::super) struct Pattern {
    tokens: Vec<Token>,
    collation: Collation,
}

#[derive(Debug, Clone)]
enum Token {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character itself.
    Unit(u16),
    /// `[...]`, `[^...]`
    Set { negated: bool, ranges: Vec<(u16, u16)> },
    /// A set without its end matches nothing.
    Nothing,
}

/// Takes a pattern apart.
///
/// # Errors
/// 506 for an escape of other than one character.
pub(in super::super) fn compile_pattern(
    pattern: &Text,
    escape: Option<&Text>,
    collation: Collation,
) -> Result<Pattern, ValueError> {
    let escape = match escape.map(Text::to_units).as_deref() {
        None => None,
        Some([unit]) => Some(*unit),
        Some(_) => {
            let text = format!(
                "The invalid escape character \"{}\" was specified in a LIKE predicate.",
                escape.map(ToString::to_string).unwrap_or_default()
            );
            return Err(ValueError::new(506, 1, text));
        }
    };
    let units = pattern.to_units();
    let mut tokens = Vec::with_capacity(units.len());
    let mut position = 0;
    while let Some(&unit) = units.get(position) {
        position += 1;
        if Some(unit) == escape {
            // An escape at the end escapes nothing, and then nothing matches.
            tokens.push(units.get(position).map_or(Token::Nothing, |unit| Token::Unit(*unit)));
            position += 1;
            continue;
        }
        tokens.push(match unit {
            PERCENT => Token::Any,
            UNDERSCORE => Token::One,
            OPENING => {
                let (token, end) = compile_set(&units, position, escape);
                position = end;
                token
            }
            _ => Token::Unit(unit),
        });
    }
    Ok(Pattern { tokens, collation })
}

const PERCENT: u16 = b'%' as u16;
const UNDERSCORE: u16 = b'_' as u16;
const OPENING: u16 = b'[' as u16;
const CLOSING: u16 = b']' as u16;
const CARET: u16 = b'^' as u16;
const DASH: u16 = b'-' as u16;

/// Reads a set from behind its `[`; gives the position behind its `]`.
fn compile_set(units: &[u16], start: usize, escape: Option<u16>) -> (Token, usize) {
    let negated = units.get(start) == Some(&CARET);
    let mut position = start + usize::from(negated);
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    while let Some(&unit) = units.get(position) {
        position += 1;
        let escaped = Some(unit) == escape;
        if unit == CLOSING && !escaped {
            return (Token::Set { negated, ranges }, position);
        }
        let low = if escaped {
            let Some(&next) = units.get(position) else { break };
            position += 1;
            next
        } else {
            unit
        };
        let high = match (units.get(position), units.get(position + 1)) {
            (Some(&DASH), Some(&high)) if high != CLOSING => {
                position += 2;
                high
            }
            _ => low,
        };
        ranges.push((low, high));
    }
    (Token::Nothing, units.len())
}

impl Pattern {
    /// Whether the whole text matches.
    pub(in super::super) fn matches(&self, units: &[u16]) -> bool {
        self.matches_from(units, 0).is_some_and(|end| end == units.len())
    }

    /// Whether the text matches from `start` to its end; gives the end.
    ///
    /// One position to return to is enough: a later `%` can take whatever an earlier one could.
    pub(in super::super) fn matches_from(&self, units: &[u16], start: usize) -> Option<usize> {
        let (mut position, mut token) = (start, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.tokens.get(token) {
                Some(Token::Any) => {
                    token += 1;
                    retry = Some((position, token));
                    continue;
                }
                None if position == units.len() => return Some(position),
                Some(expected) if position < units.len() && self.matches_unit(expected, units[position]) => {
                    position += 1;
                    token += 1;
                    continue;
                }
                _ => {}
            }
            let (from, behind) = retry?;
            if from >= units.len() {
                return None;
            }
            retry = Some((from + 1, behind));
            (position, token) = (from + 1, behind);
        }
    }

    fn matches_unit(&self, token: &Token, unit: u16) -> bool {
        let order = |other: u16| compare_units(unit, other, self.collation);
        match token {
            Token::Unit(expected) => *expected == unit || order(*expected) == Ordering::Equal,
            Token::One => true,
            Token::Set { negated, ranges } => {
                let inside =
                    ranges.iter().any(|(low, high)| order(*low) != Ordering::Less && order(*high) != Ordering::Greater);
                inside != *negated
            }
            Token::Any | Token::Nothing => false,
        }
    }

    /// The first position at which a match of the pattern starts, for PATINDEX; a leading `%` is skipped first.
    pub(in super::super) fn find(&self, units: &[u16]) -> Option<usize> {
        if !matches!(self.tokens.first(), Some(Token::Any)) {
            return self.matches(units).then_some(0);
        }
        let rest = Self { tokens: self.tokens[1..].to_vec(), collation: self.collation };
        (0..=units.len()).find(|start| rest.matches_from(units, *start).is_some())
    }
}

/// Whether `text` matches the LIKE `pattern`. `ty` is the type of both, [`super::common_type`]: its collation decides, and
/// trailing spaces of `char` and `varchar` texts are not significant.
///
/// # Errors
/// 506 for an escape of other than one character.
pub fn like(text: &Text, pattern: &Text, escape: Option<&Text>, ty: &SqlType) -> Result<bool, ValueError> {
    let pattern = compile_pattern(pattern, escape, ty.collation().unwrap_or(Collation::DEFAULT))?;
    let units = text.to_units();
    if pattern.matches(&units) {
        return Ok(true);
    }
    let trailing = units.iter().rev().take_while(|unit| **unit == 0x20).count();
    Ok(trailing > 0 && !ty.is_unicode() && pattern.matches(&units[..units.len() - trailing]))
}
