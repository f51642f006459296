//! Comparison: the order of values, and bytes that order the same way.

use std::cmp::Ordering;

use super::super::collation::{Collation, LATIN_EXTENDED_A_BASE, Sensitivity};
use super::super::conversion::{CastOptions, cast};
use super::super::decimal::power_of_ten;
use super::super::{Decimal, SqlType, Text, Value, ValueError};
use super::types::common_type;

/// A comparison whose types are settled: resolve once per expression, apply once per row.
#[derive(Debug, Clone)]
pub struct Comparison {
    left: SqlType,
    right: SqlType,
    common: SqlType,
}

impl Comparison {
    /// Settles the type in which two operands are compared. `operation` is its name in messages: `equal to`,
    /// `not equal to`, `less than`, `greater than`, `less than or equal to`, `greater than or equal to`.
    ///
    /// # Errors
    /// 206, 257, 402.
    pub fn resolve(operation: &str, left: &SqlType, right: &SqlType) -> Result<Self, ValueError> {
        let untyped = *left == SqlType::Null || *right == SqlType::Null;
        if !untyped && (left.is_legacy_large() || right.is_legacy_large()) {
            return Err(ValueError::incompatible(left, right, operation));
        }
        if left.is_character() && right.is_binary() || left.is_binary() && right.is_character() {
            // The binary side becomes text.
            let text = if left.is_character() { left } else { right };
            return Ok(Self { left: *left, right: *right, common: *text });
        }
        Ok(Self { left: *left, right: *right, common: common_type(left, right)? })
    }

    /// The common type.
    #[must_use]
    pub fn operand_type(&self) -> SqlType {
        self.common
    }

    /// Order of two values; `None` (unknown) if either is NULL.
    ///
    /// # Errors
    /// Those of converting an operand.
    pub fn apply(&self, left: &Value, right: &Value) -> Result<Option<Ordering>, ValueError> {
        match (left, right) {
            (Value::Null, _) | (_, Value::Null) => return Ok(None),
            // Decimals of different scales compare exactly; a common type could be too narrow for both.
            (Value::Decimal(left), Value::Decimal(right)) => return Ok(Some(compare_decimals(*left, *right))),
            _ => {}
        }
        if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
            return Ok(Some(left.cmp(&right)));
        }
        let take = |value: &Value, ty: &SqlType| cast(value, ty, &self.common, &CastOptions::IMPLICIT);
        if self.left == self.common && self.right == self.common {
            return Ok(Some(compare(left, right, &self.common)));
        }
        Ok(Some(compare(&take(left, &self.left)?, &take(right, &self.right)?, &self.common)))
    }
}

fn compare_decimals(left: Decimal, right: Decimal) -> Ordering {
    let common = left.scale().max(right.scale());
    let aligned = |value: Decimal| value.unscaled().checked_mul(power_of_ten(common - value.scale()));
    match (aligned(left), aligned(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        // Only one side can overflow, the one of the smaller scale; it is further from zero.
        (None, _) => left.unscaled().cmp(&0),
        (_, None) => 0.cmp(&right.unscaled()),
    }
}

/// Order of two values of the same type `ty`, NULL first: the order of ORDER BY.
///
/// A total order. Texts compare by the type's collation, trailing spaces ignored; binaries as if padded with zeros.
#[must_use]
pub fn compare(left: &Value, right: &Value, ty: &SqlType) -> Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Decimal(left), Value::Decimal(right)) => compare_decimals(*left, *right),
        (Value::String(left), Value::String(right)) => {
            compare_texts(left, right, ty.collation().unwrap_or(Collation::DEFAULT))
        }
        (Value::Binary(left), Value::Binary(right)) => significant_bytes(left).cmp(significant_bytes(right)),
        (Value::Float(left), Value::Float(right)) => float_key(*left).cmp(&float_key(*right)),
        _ => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => hash_key(left, ty).cmp(&hash_key(right, ty)),
        },
    }
}

fn significant_bytes(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

fn significant_units(text: &Text) -> impl DoubleEndedIterator<Item = u16> + ExactSizeIterator + Clone + '_ {
    let trailing = text.units().rev().take_while(|unit| *unit == 0x20).count();
    text.units().take(text.len() - trailing)
}

fn compare_texts(left: &Text, right: &Text, collation: Collation) -> Ordering {
    if left.as_utf16le() == right.as_utf16le() {
        return Ordering::Equal;
    }
    match collation.sensitivity() {
        Sensitivity::Binary | Sensitivity::Binary2 => compare_padded(left, right),
        linguistic @ Sensitivity::Linguistic { case, .. } => {
            if let Some(order) = compare_ascii(left.as_utf16le(), right.as_utf16le(), case) {
                return order;
            }
            let (left, right) =
                (weights(significant_units(left), linguistic), weights(significant_units(right), linguistic));
            let by = |level: fn(Weight) -> u32| left.clone().map(level).cmp(right.clone().map(level));
            by(|weight| weight.primary).then_with(|| by(|weight| weight.accent)).then_with(|| by(|weight| weight.form))
        }
    }
}

/// The linguistic order of two ASCII texts in one pass; `None` for other texts. The general way gives the same.
fn compare_ascii(left: &[u8], right: &[u8], case: bool) -> Option<Ordering> {
    let mut forms = Ordering::Equal;
    let mut primary = Ordering::Equal;
    let units = left.len().max(right.len()) / 2;
    for at in 0..units {
        // The shorter text is padded with spaces, the lowest weight.
        let unit = |text: &[u8]| if 2 * at < text.len() { (text[2 * at], text[2 * at + 1]) } else { (b' ', 0) };
        let ((left, left_high), (right, right_high)) = (unit(left), unit(right));
        if left_high | right_high != 0 || (left | right) >= 0x80 || left == 0 || right == 0 {
            return None;
        }
        if left != right && primary == Ordering::Equal {
            primary = ASCII_RANK[usize::from(left)].cmp(&ASCII_RANK[usize::from(right)]);
            if case && forms == Ordering::Equal {
                forms = left.is_ascii_uppercase().cmp(&right.is_ascii_uppercase());
            }
        }
    }
    Some(primary.then(forms))
}

/// Order of the ASCII characters, both cases of a letter alike: space, symbols, digits, letters.
const ASCII_RANK: [u16; 128] = {
    let mut ranks = [0; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        let class = match byte {
            b' ' => 0,
            b'0'..=b'9' => 2,
            b'a'..=b'z' | b'A'..=b'Z' => 3,
            _ => 1,
        };
        ranks[byte as usize] = class << 8 | byte.to_ascii_lowercase() as u16;
        byte += 1;
    }
    ranks
};

/// Code units, the shorter text padded with spaces.
fn compare_padded(left: &Text, right: &Text) -> Ordering {
    let length = left.len().max(right.len());
    let padded = |text: &Text| text.to_units().into_iter().chain(std::iter::repeat_n(0x20, length - text.len()));
    padded(left).cmp(padded(right))
}

/// Order of two single characters in a collation; for LIKE and its ranges.
pub(in super::super) fn compare_units(left: u16, right: u16, collation: Collation) -> Ordering {
    match collation.sensitivity() {
        Sensitivity::Binary | Sensitivity::Binary2 => left.cmp(&right),
        linguistic @ Sensitivity::Linguistic { .. } => {
            weights(std::iter::once(left), linguistic).cmp(weights(std::iter::once(right), linguistic))
        }
    }
}

/// Weights of one character in a linguistic collation. An insensitive level is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    primary: u32,
    accent: u32,
    form: u32,
}

/// Space, then punctuation, digits, Latin letters, other letters, surrogates. It approximates Windows' sorting tables:
/// the order of ASCII and Latin letters is theirs, that of punctuation and of other scripts is by code point.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Class {
    Space = 0x1_0000,
    Symbol = 0x2_0000,
    Digit = 0x3_0000,
    Latin = 0x4_0000,
    Letter = 0x5_0000,
    Surrogate = 0x6_0000,
}

/// Base letters of U+00C0 to U+00FF; `*` where the character stands for itself.
const LATIN_1_BASE: &[u8; 64] = b"AAAAAAACEEEEIIIIDNOOOOO*OUUUUYTsaaaaaaaceeeeiiiidnooooo*ouuuuyty";

fn weights(units: impl Iterator<Item = u16> + Clone, sensitivity: Sensitivity) -> impl Iterator<Item = Weight> + Clone {
    // U+0000 has no weight in a linguistic collation.
    units.filter(|unit| *unit != 0).flat_map(move |unit| {
        let weight = weight(unit, sensitivity);
        // The second letter of the characters that stand for two.
        let second = match unit {
            0x00C6 | 0x00E6 | 0x0152 | 0x0153 => Some(b'e'),
            0x00DE | 0x00FE => Some(b'h'),
            0x00DF => Some(b's'),
            _ => None,
        };
        let second = second.map(|letter| Weight { primary: Class::Latin as u32 + u32::from(letter), ..weight });
        std::iter::once(weight).chain(second)
    })
}

fn weight(unit: u16, sensitivity: Sensitivity) -> Weight {
    let Sensitivity::Linguistic { case, accent, kana, width } = sensitivity else {
        return Weight { primary: u32::from(unit), accent: 0, form: 0 };
    };
    // Most text; the general way below gives the same.
    if let Ok(byte @ 0..=0x7F) = u8::try_from(unit) {
        let class = match byte {
            b' ' => Class::Space,
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'z' | b'A'..=b'Z' => Class::Latin,
            _ => Class::Symbol,
        };
        let form = u32::from(case && byte.is_ascii_uppercase());
        return Weight { primary: class as u32 + u32::from(byte.to_ascii_lowercase()), accent: 0, form };
    }
    let mut form = 0;
    let mut folded = unit;
    if (0xFF01..=0xFF5E).contains(&unit) {
        folded = unit - 0xFEE0;
        form |= u32::from(width) << 1;
    }
    if (0x30A1..=0x30F6).contains(&unit) {
        folded = unit - 0x60;
        form |= u32::from(kana) << 2;
    }
    let character = char::from_u32(u32::from(folded)).unwrap_or('\u{0}');
    let lower = character.to_lowercase().next().unwrap_or(character);
    if lower != character && case {
        form |= 1;
    }
    let base = match folded {
        0x00C0..=0x00FF => LATIN_1_BASE[usize::from(folded - 0x00C0)],
        0x0100..=0x017F => LATIN_EXTENDED_A_BASE[usize::from(folded - 0x0100)],
        _ => b'*',
    };
    if base != b'*' && base != b'?' {
        let mark = if folded == 0x00DF { 0 } else { u32::from(lower) };
        let primary = Class::Latin as u32 + u32::from(base.to_ascii_lowercase());
        return Weight { primary, accent: if accent { mark } else { 0 }, form };
    }
    let class = match character {
        // Full-width forms of ASCII.
        '0'..='9' => Class::Digit,
        'a'..='z' | 'A'..='Z' => Class::Latin,
        _ if (0xD800..=0xDFFF).contains(&unit) => Class::Surrogate,
        _ if character.is_alphabetic() => Class::Letter,
        _ => Class::Symbol,
    };
    let value = match class {
        Class::Surrogate => u32::from(unit),
        _ => u32::from(lower).min(0xFFFF),
    };
    Weight { primary: class as u32 + value, accent: 0, form }
}

/// Appends bytes that order (as unsigned bytes) like [`compare`] and are equal exactly where it says equal;
/// keys of several columns can be appended to each other. So it serves indexes, sorting, hash joins and grouping.
pub fn sort_key(value: &Value, ty: &SqlType, key: &mut Vec<u8>) {
    if value.is_null() {
        key.push(0);
        return;
    }
    key.push(1);
    match value {
        Value::Null => {}
        Value::Bit(_) | Value::TinyInt(_) | Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_) => {
            key.extend_from_slice(&(value.as_i64().unwrap_or(0) ^ i64::MIN).to_be_bytes());
        }
        Value::Money(value) => key.extend_from_slice(&(value ^ i64::MIN).to_be_bytes()),
        Value::Decimal(value) => {
            let scale = if let SqlType::Decimal { scale, .. } = ty { *scale } else { value.scale() };
            let unscaled = value.rescale(38, scale).map_or(value.unscaled(), |value| value.unscaled());
            key.extend_from_slice(&(unscaled ^ i128::MIN).to_be_bytes());
        }
        Value::Real(value) => key.extend_from_slice(&float_key(f64::from(*value)).to_be_bytes()),
        Value::Float(value) => key.extend_from_slice(&float_key(*value).to_be_bytes()),
        Value::String(text) => text_key(text, ty.collation().unwrap_or(Collation::DEFAULT), key),
        Value::Binary(bytes) => {
            // Zeros are escaped so that the end sorts first and keys can follow each other.
            for byte in significant_bytes(bytes) {
                key.push(*byte);
                if *byte == 0 {
                    key.push(0xFF);
                }
            }
            key.extend_from_slice(&[0, 0]);
        }
        Value::Date(value) => key.extend_from_slice(&value.days.to_be_bytes()),
        Value::Time(value) => key.extend_from_slice(&value.ticks.to_be_bytes()),
        Value::DateTime2(value) => key.extend_from_slice(&value.total_ticks().to_be_bytes()),
        Value::DateTimeOffset(value) => key.extend_from_slice(&value.utc.total_ticks().to_be_bytes()),
        Value::DateTime(value) => key.extend_from_slice(&(value.total_ticks() ^ i64::MIN).to_be_bytes()),
        Value::SmallDateTime(value) => {
            key.extend_from_slice(&value.days.to_be_bytes());
            key.extend_from_slice(&value.minutes.to_be_bytes());
        }
        Value::Guid(guid) => key.extend(GUID_COMPARISON_ORDER.map(|position| guid[position])),
        Value::Variant(inner) => variant_key(&inner.0, &inner.1, key),
    }
}

/// A key for hash joins and grouping: equal exactly where [`compare`] says equal. The same bytes as [`sort_key`].
#[must_use]
pub fn hash_key(value: &Value, ty: &SqlType) -> Vec<u8> {
    let mut key = Vec::new();
    sort_key(value, ty, &mut key);
    key
}

/// uniqueidentifier compares its last group first ("Comparing GUID and uniqueidentifier values").
const GUID_COMPARISON_ORDER: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];

/// The bits of a number in an order of unsigned integers; both zeros are one.
fn float_key(value: f64) -> u64 {
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Variants order by the family of their base type first ("sql_variant (Transact-SQL)").
fn variant_key(base: &SqlType, value: &Value, key: &mut Vec<u8>) {
    let (family, common) = match base {
        _ if base.is_binary() => (1, *base),
        SqlType::UniqueIdentifier => (2, *base),
        _ if base.is_character() => (3, *base),
        SqlType::Real | SqlType::Float => (5, SqlType::Float),
        SqlType::Time(_) => (6, *base),
        _ if base.is_temporal() => (6, SqlType::DateTimeOffset(7)),
        _ => (4, SqlType::decimal(38, 10)),
    };
    key.push(family);
    match cast(value, base, &common, &CastOptions::EXPLICIT) {
        Ok(converted) => sort_key(&converted, &common, key),
        // A number of more than 28 digits before the point orders by its float.
        Err(_) => sort_key(
            &cast(value, base, &SqlType::Float, &CastOptions::EXPLICIT).unwrap_or(Value::Null),
            &SqlType::Float,
            key,
        ),
    }
}

fn text_key(text: &Text, collation: Collation, key: &mut Vec<u8>) {
    match collation.sensitivity() {
        Sensitivity::Binary | Sensitivity::Binary2 => padded_key(text, key),
        linguistic @ Sensitivity::Linguistic { .. } => {
            let weights = weights(significant_units(text), linguistic);
            for weight in weights.clone() {
                key.extend_from_slice(&weight.primary.to_be_bytes()[1..]);
            }
            key.extend_from_slice(&[0, 0, 0]);
            // Equal primaries mean an equal count, so the next levels need no end mark.
            for weight in weights.clone() {
                key.extend_from_slice(&weight.accent.to_be_bytes()[1..]);
            }
            for weight in weights {
                key.push(u8::try_from(weight.form).unwrap_or(u8::MAX));
            }
        }
    }
}

/// Code units such that the end of the text sorts where further spaces would.
///
/// Each unit is a tag and its value; the end is a tag of its own. Spaces in front of a unit are counted into it: before
/// a smaller one more spaces mean "later", before a greater one "earlier", because the end stands for spaces without end.
fn padded_key(text: &Text, key: &mut Vec<u8>) {
    const LESS: u8 = 1;
    const SPACES_THEN_LESS: u8 = 2;
    const END: u8 = 3;
    const SPACES_THEN_GREATER: u8 = 4;
    const GREATER: u8 = 5;
    let mut spaces = 0_u32;
    for unit in significant_units(text) {
        if unit == 0x20 {
            spaces += 1;
            continue;
        }
        match (unit < 0x20, spaces) {
            (true, 0) => key.push(LESS),
            (false, 0) => key.push(GREATER),
            (true, _) => {
                key.push(SPACES_THEN_LESS);
                key.extend_from_slice(&spaces.to_be_bytes());
            }
            (false, _) => {
                key.push(SPACES_THEN_GREATER);
                key.extend_from_slice(&(u32::MAX - spaces).to_be_bytes());
            }
        }
        key.extend_from_slice(&unit.to_be_bytes());
        spaces = 0;
    }
    key.push(END);
}
