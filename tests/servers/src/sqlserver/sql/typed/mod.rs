//! Expressions over integers and byte strings, evaluated without a cell per operator.
//!
//! A statement that takes values apart (`SUBSTRING(CONVERT(binary(8), x), 3, 1)`) or puts them together
//! (`0x08 + CONVERT(varbinary(max), s)`) has hundreds of operators a row, and almost all of their time goes into the
//! cells ([`Value`]) between them. [`settle`] replaces such parts of a bound plan by [`IntX`] and [`BytesX`]: an
//! integer stays in a register, and a chain of `+` writes its pieces into one buffer. What is neither stays as it is,
//! as a leaf. The results and errors are those of the expressions that were replaced; `tests` compares the two.

mod bytes;
mod compile;
mod integer;
mod settle;

#[cfg(test)]
mod tests;

pub(crate) use bytes::BytesX;
pub(crate) use integer::{IntX, cell};
pub(crate) use settle::settle;

use super::plan::X;
use crate::sqlserver::value::Value;

/// The value of a leaf that needs no evaluation.
fn at_hand<'a>(x: &'a X, row: &'a [Value]) -> Option<&'a Value> {
    match x {
        X::Slot(slot) => Some(&row[*slot]),
        X::Const(value) => Some(value),
        _ => None,
    }
}
