//! Common types of several expressions, and precision and scale of decimal results
//! ("Precision, scale, and length (Transact-SQL)").

use super::super::conversion::{Strictness, check_conversion};
use super::super::{Collation, Length, SqlType, ValueError};
use super::BinaryOperator;

/// The type of CASE, COALESCE, UNION, and of both sides of a comparison: the one of higher precedence, with
/// facets wide enough for both.
///
/// Of two collations the one that is not the default wins; an executor that knows where they come from settles them
/// with [`Collation::resolve`] first.
///
/// # Errors
/// 206, 257 where no implicit conversion exists.
pub fn common_type(left: &SqlType, right: &SqlType) -> Result<SqlType, ValueError> {
    let (high, low) = if left.precedence() <= right.precedence() { (left, right) } else { (right, left) };
    check_conversion(low, high, Strictness::Implicit)?;
    let collation = common_collation(left, right);
    Ok(match (high, low) {
        (SqlType::Decimal { .. }, _) => match as_decimal(low) {
            Some(low) => union_decimal(as_decimal(high).unwrap_or((38, 0)), low),
            None => *high,
        },
        (SqlType::Time(high_scale), SqlType::Time(scale)) => SqlType::Time(*high_scale.max(scale)),
        (SqlType::DateTime2(high_scale), low) => SqlType::DateTime2((*high_scale).max(fraction_scale(low))),
        (SqlType::DateTimeOffset(high_scale), low) => SqlType::DateTimeOffset((*high_scale).max(fraction_scale(low))),
        (SqlType::NVarChar(length, _), low) => {
            SqlType::NVarChar(longer(*length, character_length(low), 4000), collation)
        }
        (SqlType::NChar(length, _), SqlType::VarChar(other, _)) => {
            SqlType::NVarChar(longer(Length::Sized(*length), Some(*other), 4000), collation)
        }
        (SqlType::NChar(length, _), SqlType::NChar(other, _) | SqlType::Char(other, _)) => {
            SqlType::NChar(*length.max(&(*other).min(4000)), collation)
        }
        (SqlType::VarChar(length, _), low) => SqlType::VarChar(longer(*length, character_length(low), 8000), collation),
        (SqlType::Char(length, _), SqlType::Char(other, _)) => SqlType::Char(*length.max(other), collation),
        (SqlType::VarBinary(length), low) => SqlType::VarBinary(longer(*length, binary_length(low), 8000)),
        (SqlType::Binary(length), SqlType::Binary(other)) => SqlType::Binary(*length.max(other)),
        _ => high.with_collation(collation),
    })
}

pub(super) fn common_collation(left: &SqlType, right: &SqlType) -> Collation {
    match (left.collation(), right.collation()) {
        (Some(left), Some(right)) if left == Collation::DEFAULT => right,
        (Some(left), _) => left,
        (None, right) => right.unwrap_or(Collation::DEFAULT),
    }
}

fn fraction_scale(ty: &SqlType) -> u8 {
    match ty {
        SqlType::Time(scale) | SqlType::DateTime2(scale) | SqlType::DateTimeOffset(scale) => *scale,
        SqlType::DateTime => 3,
        _ => 0,
    }
}

fn longer(length: Length, other: Option<Length>, cap: u16) -> Length {
    match (length, other) {
        (Length::Max, _) | (_, Some(Length::Max)) => Length::Max,
        (Length::Sized(length), Some(Length::Sized(other))) => Length::Sized(length.max(other).min(cap)),
        (length, None) => length,
    }
}

/// Length of a character type in characters.
pub(super) fn character_length(ty: &SqlType) -> Option<Length> {
    match ty {
        SqlType::Char(length, _) | SqlType::NChar(length, _) => Some(Length::Sized(*length)),
        SqlType::VarChar(length, _) | SqlType::NVarChar(length, _) => Some(*length),
        SqlType::Text(_) | SqlType::NText(_) => Some(Length::Max),
        _ => None,
    }
}

/// Length of a binary type in bytes.
pub(super) fn binary_length(ty: &SqlType) -> Option<Length> {
    match ty {
        SqlType::Binary(length) => Some(Length::Sized(*length)),
        SqlType::VarBinary(length) => Some(*length),
        SqlType::RowVersion => Some(Length::Sized(8)),
        SqlType::Image => Some(Length::Max),
        _ => None,
    }
}

/// Precision and scale of an exact number.
pub(super) fn as_decimal(ty: &SqlType) -> Option<(u8, u8)> {
    match ty {
        SqlType::Decimal { precision, scale } => Some((*precision, *scale)),
        SqlType::Bit => Some((1, 0)),
        SqlType::TinyInt => Some((3, 0)),
        SqlType::SmallInt => Some((5, 0)),
        SqlType::Int => Some((10, 0)),
        SqlType::BigInt => Some((19, 0)),
        SqlType::SmallMoney => Some((10, 4)),
        SqlType::Money => Some((19, 4)),
        _ => None,
    }
}

fn union_decimal((p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> SqlType {
    let scale = s1.max(s2);
    let whole = (p1 - s1).max(p2 - s2);
    let precision = u32::from(scale) + u32::from(whole);
    if precision <= 38 {
        return SqlType::Decimal { precision: scale + whole, scale };
    }
    SqlType::Decimal { precision: 38, scale: scale.min(38 - whole) }
}

/// Precision and scale of `left operator right`, with the reductions beyond 38 digits.
pub(super) fn decimal_result(operator: BinaryOperator, (p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> SqlType {
    let [p1, s1, p2, s2] = [p1, s1, p2, s2].map(i32::from);
    let (precision, scale) = match operator {
        BinaryOperator::Multiply => (p1 + p2 + 1, s1 + s2),
        BinaryOperator::Divide => {
            let scale = (s1 + p2 + 1).max(6);
            (p1 - s1 + s2 + scale, scale)
        }
        BinaryOperator::Modulo => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        _ => ((p1 - s1).max(p2 - s2) + s1.max(s2) + 1, s1.max(s2)),
    };
    let scale = match operator {
        _ if precision <= 38 => scale,
        BinaryOperator::Multiply | BinaryOperator::Divide => {
            let whole = precision - scale;
            if whole < 32 { scale.min(38 - whole) } else { scale.min(6) }
        }
        _ => scale.min(38 - (p1 - s1).max(p2 - s2)),
    };
    let narrow = |value: i32| u8::try_from(value.clamp(0, 38)).unwrap_or(38);
    SqlType::Decimal { precision: narrow(precision).max(1), scale: narrow(scale) }
}
