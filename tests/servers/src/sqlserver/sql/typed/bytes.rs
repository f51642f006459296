//! Byte strings.

use super::super::error::Result;
use super::super::plan::X;
use super::super::state::Cx;
use super::at_hand;
use super::integer::{IntX, mismatch};
use crate::sqlserver::value::{Bytes, Value};

/// An expression of `binary` or `varbinary`.
#[derive(Debug, Clone)]
pub(crate) enum BytesX {
    Const(Bytes),
    /// Any expression of a binary type.
    Leaf(X),
    /// The UTF-16LE bytes of a Unicode text.
    Text(X),
    /// An integer, most significant byte first.
    Integer {
        value: Box<IntX>,
        width: usize,
        fit: Fit,
    },
    /// A `float`, most significant byte first.
    Float {
        value: X,
        fit: Fit,
    },
    /// Cut to the limit; `fixed` also pads with zeros. Both on the right, as between binaries.
    Fitted {
        of: Box<BytesX>,
        limit: usize,
        fixed: bool,
    },
    /// Bytes `start..end` as far as there are any, for each range after the other.
    Ranges {
        of: Box<BytesX>,
        ranges: Vec<(usize, usize)>,
    },
    /// One after the other.
    Chain(Vec<BytesX>),
    /// CASE: the first condition that is true decides.
    Case {
        whens: Vec<(X, BytesX)>,
        otherwise: Box<BytesX>,
    },
}

/// How a number gets the length of its binary type: cut and padded on the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fit {
    pub(super) limit: usize,
    pub(super) fixed: bool,
}

impl Fit {
    fn append(self, bytes: &[u8], out: &mut Vec<u8>) {
        let length = bytes.len();
        if length > self.limit {
            out.extend_from_slice(&bytes[length - self.limit..]);
            return;
        }
        if self.fixed && length < self.limit {
            out.resize(out.len() + self.limit - length, 0);
        }
        out.extend_from_slice(bytes);
    }
}

impl BytesX {
    /// The value as a cell.
    pub(crate) fn eval(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<Value> {
        with_scratch(cx, |cx, buffer| {
            let known = self.append(cx, row, buffer)?;
            Ok(if known { Value::Binary(Bytes::from(buffer.as_slice())) } else { Value::Null })
        })
    }

    /// Appends the bytes; false for NULL, and then what was appended means nothing.
    pub(crate) fn append(&self, cx: &mut Cx<'_>, row: &[Value], out: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Const(bytes) => out.extend_from_slice(bytes),
            Self::Leaf(x) => return with_value(x, cx, row, |value| binary(value, out)),
            Self::Text(x) => return with_value(x, cx, row, |value| text(value, out)),
            Self::Integer { value, width, fit } => {
                let Some(number) = value.eval(cx, row)? else { return Ok(false) };
                fit.append(&number.to_be_bytes()[8 - width..], out);
            }
            Self::Float { value, fit } => return with_value(value, cx, row, |value| float(value, *fit, out)),
            Self::Fitted { of, limit, fixed } => {
                let start = out.len();
                if !of.append(cx, row, out)? {
                    return Ok(false);
                }
                if *fixed {
                    out.resize(start + limit, 0);
                } else {
                    out.truncate(start.saturating_add(*limit));
                }
            }
            Self::Ranges { of, ranges } => {
                let start = out.len();
                if !of.append(cx, row, out)? {
                    return Ok(false);
                }
                let taken = out.len();
                for (first, end) in ranges {
                    let end = (*end).min(taken - start);
                    let first = (*first).min(end);
                    out.extend_from_within(start + first..start + end);
                }
                out.copy_within(taken.., start);
                out.truncate(start + out.len() - taken);
            }
            Self::Chain(pieces) => {
                // Each piece is evaluated also behind a NULL: it may be an error.
                let mut known = true;
                for piece in pieces {
                    known &= piece.append(cx, row, out)?;
                }
                return Ok(known);
            }
            Self::Case { whens, otherwise } => {
                for (when, then) in whens {
                    if when.test(cx, row)? == Some(true) {
                        return then.append(cx, row, out);
                    }
                }
                return otherwise.append(cx, row, out);
            }
        }
        Ok(true)
    }

    /// Calls `f` on the expressions inside.
    pub(crate) fn leaves(&self, f: &mut dyn FnMut(&X)) {
        match self {
            Self::Const(_) => {}
            Self::Leaf(x) | Self::Text(x) | Self::Float { value: x, .. } => f(x),
            Self::Integer { value, .. } => value.leaves(f),
            Self::Fitted { of, .. } | Self::Ranges { of, .. } => of.leaves(f),
            Self::Chain(pieces) => pieces.iter().for_each(|piece| piece.leaves(f)),
            Self::Case { whens, otherwise } => {
                for (when, then) in whens {
                    f(when);
                    then.leaves(f);
                }
                otherwise.leaves(f);
            }
        }
    }
}

fn with_value(x: &X, cx: &mut Cx<'_>, row: &[Value], append: impl FnOnce(&Value) -> Result<bool>) -> Result<bool> {
    match at_hand(x, row) {
        Some(value) => append(value),
        None => append(&x.eval(cx, row)?),
    }
}

fn binary(value: &Value, out: &mut Vec<u8>) -> Result<bool> {
    match value {
        Value::Null => Ok(false),
        Value::Binary(bytes) => {
            out.extend_from_slice(bytes);
            Ok(true)
        }
        _ => Err(mismatch()),
    }
}

fn text(value: &Value, out: &mut Vec<u8>) -> Result<bool> {
    match value {
        Value::Null => Ok(false),
        Value::String(text) => {
            out.extend_from_slice(text.as_utf16le());
            Ok(true)
        }
        _ => Err(mismatch()),
    }
}

fn float(value: &Value, fit: Fit, out: &mut Vec<u8>) -> Result<bool> {
    match value {
        Value::Null => Ok(false),
        Value::Float(number) => {
            fit.append(&number.to_be_bytes(), out);
            Ok(true)
        }
        _ => Err(mismatch()),
    }
}

/// Lends the session's buffer, empty. Inside another loan there is a fresh one.
pub(super) fn with_scratch<T>(cx: &mut Cx<'_>, work: impl FnOnce(&mut Cx<'_>, &mut Vec<u8>) -> Result<T>) -> Result<T> {
    let mut buffer = std::mem::take(&mut cx.st.scratch);
    buffer.clear();
    let result = work(cx, &mut buffer);
    cx.st.scratch = buffer;
    result
}
