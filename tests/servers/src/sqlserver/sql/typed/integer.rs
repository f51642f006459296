//! Integers.

use super::super::error::{self, Result};
use super::super::plan::X;
use super::super::state::Cx;
use super::at_hand;
use super::bytes::{BytesX, with_scratch};
use crate::sqlserver::value::{BinaryOperation, BinaryOperator, CastOptions, Decimal, SqlType, Value, cast};

/// An expression of an integer type (`bit` to `bigint`).
#[derive(Debug, Clone)]
pub(crate) enum IntX {
    Const(i64),
    /// Any expression of an integer type.
    Leaf(X),
    /// The last bytes, most significant first, as an integer of the type.
    OfBytes(BytesX, SqlType),
    /// From one integer type to another.
    Cast(Box<IntX>, SqlType, SqlType),
    Arithmetic(Box<ArithmeticX>),
}

/// `+`, `-` or `*` of integers.
#[derive(Debug, Clone)]
pub(crate) struct ArithmeticX {
    pub(super) operator: BinaryOperator,
    pub(super) left: IntX,
    pub(super) right: IntX,
    pub(super) result: SqlType,
    /// The operator as it was bound, and the types of its operands: it words the errors.
    pub(super) bound: BinaryOperation,
    pub(super) given: (SqlType, SqlType),
}

impl IntX {
    /// The value; none is NULL.
    pub(crate) fn eval(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<i64>> {
        match self {
            Self::Const(value) => Ok(Some(*value)),
            Self::Leaf(x) => match at_hand(x, row) {
                Some(value) => integer(value),
                None => integer(&x.eval(cx, row)?),
            },
            Self::OfBytes(bytes, to) => {
                with_scratch(cx, |cx, buffer| Ok(bytes.append(cx, row, buffer)?.then(|| integer_of_bytes(buffer, to))))
            }
            Self::Cast(inner, from, to) => match inner.eval(cx, row)? {
                None => Ok(None),
                Some(value) if fits(value, to) => Ok(Some(value)),
                // The conversion of cells words the error, and gives `bit` its 1 for all that is not 0.
                Some(value) => Ok(cast(&cell(value, from), from, to, &CastOptions::EXPLICIT)?.as_i64()),
            },
            Self::Arithmetic(a) => {
                let left = a.left.eval(cx, row)?;
                let right = a.right.eval(cx, row)?;
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                let exact = match a.operator {
                    BinaryOperator::Add => left.checked_add(right),
                    BinaryOperator::Subtract => left.checked_sub(right),
                    BinaryOperator::Multiply => left.checked_mul(right),
                    _ => None,
                };
                match exact.filter(|value| fits(*value, &a.result)) {
                    Some(value) => Ok(Some(value)),
                    None => Ok(a.bound.apply(&cell(left, &a.given.0), &cell(right, &a.given.1))?.as_i64()),
                }
            }
        }
    }

    /// Calls `f` on the expressions inside.
    pub(crate) fn leaves(&self, f: &mut dyn FnMut(&X)) {
        match self {
            Self::Const(_) => {}
            Self::Leaf(x) => f(x),
            Self::OfBytes(bytes, _) => bytes.leaves(f),
            Self::Cast(inner, ..) => inner.leaves(f),
            Self::Arithmetic(a) => {
                a.left.leaves(f);
                a.right.leaves(f);
            }
        }
    }
}

fn integer(value: &Value) -> Result<Option<i64>> {
    match (value, value.as_i64()) {
        (Value::Null, _) => Ok(None),
        (_, None) => Err(mismatch()),
        (_, some) => Ok(some),
    }
}

/// Whether a value is one of the integer type.
fn fits(value: i64, ty: &SqlType) -> bool {
    match ty {
        SqlType::Bit => matches!(value, 0 | 1),
        SqlType::TinyInt => u8::try_from(value).is_ok(),
        SqlType::SmallInt => i16::try_from(value).is_ok(),
        SqlType::Int => i32::try_from(value).is_ok(),
        _ => true,
    }
}

/// The cell of an integer that [`fits`] the type, or of a `decimal(p, 0)` with room for every `bigint`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value fits the type")]
pub(crate) fn cell(value: i64, ty: &SqlType) -> Value {
    match ty {
        SqlType::Bit => Value::Bit(value != 0),
        SqlType::TinyInt => Value::TinyInt(value as u8),
        SqlType::SmallInt => Value::SmallInt(value as i16),
        SqlType::Int => Value::Int(value as i32),
        SqlType::Decimal { precision, .. } => Value::Decimal(Decimal::new(i128::from(value), *precision, 0)),
        _ => Value::BigInt(value),
    }
}

/// The low bytes, most significant first; missing ones are zero.
fn integer_of_bytes(bytes: &[u8], to: &SqlType) -> i64 {
    let mut wide = [0_u8; 8];
    let length = bytes.len().min(8);
    wide[8 - length..].copy_from_slice(&bytes[bytes.len() - length..]);
    let [_, _, _, _, a, b, c, d] = wide;
    match to {
        SqlType::TinyInt => i64::from(d),
        SqlType::SmallInt => i64::from(i16::from_be_bytes([c, d])),
        SqlType::Int => i64::from(i32::from_be_bytes([a, b, c, d])),
        _ => i64::from_be_bytes(wide),
    }
}

/// A value in a place where the binder has settled another type.
pub(super) fn mismatch() -> super::super::api::SqlError {
    error::unsupported("a value of another type than its expression")
}
