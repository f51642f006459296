//! Sealed native bytes, read back row by row and field by field. Whatever the bytes are, nothing here panics or reads on.

use crate::code;
use crate::layout::{WireColumn, WireLayout};
use crate::sql_type::SqlType;

/// One field of a native row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// SQL NULL.
    Null,
    /// The payload without its prefix.
    Payload(&'a [u8]),
}

/// Bytes that are not a row of the layout: the file was not written by this encoder, or it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}: the native file does not hold rows of its layout (column {column}); do not use it",
    code::NATIVE_ROW_MALFORMED
)]
pub struct RowFault {
    /// Column of the bad field, from 0.
    pub column: usize,
}

impl RowFault {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        code::NATIVE_ROW_MALFORMED
    }
}

/// Reads the first row of `bytes` into `fields` and returns its length; `None` when `bytes` ends before the row does.
///
/// # Errors
/// A NULL in a NOT NULL column, a length that the type does not allow, or a row over `max_row_bytes`.
pub fn split_row<'a>(
    layout: &WireLayout,
    bytes: &'a [u8],
    max_row_bytes: u64,
    fields: &mut Vec<Field<'a>>,
) -> Result<Option<usize>, RowFault> {
    fields.clear();
    let mut at = 0usize;
    for (index, column) in layout.columns().iter().enumerate() {
        let fault = RowFault { column: index };
        let rest = bytes.get(at..).unwrap_or_default();
        let Some((prefix, rest)) = rest.split_at_checked(usize::from(column.prefix_width)) else { return Ok(None) };
        let Some(length) = payload_length(column, prefix).ok_or(fault)? else {
            fields.push(Field::Null);
            at += prefix.len();
            continue;
        };
        // The bound comes before the look at the bytes, so a wild length never asks for more input.
        if ((at + prefix.len()) as u64).saturating_add(length) > max_row_bytes {
            return Err(fault);
        }
        let length = usize::try_from(length).map_err(|_| fault)?;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        fields.push(Field::Payload(payload));
        at += prefix.len() + length;
    }
    if at as u64 > max_row_bytes { Err(RowFault { column: layout.columns().len() - 1 }) } else { Ok(Some(at)) }
}

/// The payload's length: `Some(None)` for NULL, `None` for a prefix that the column cannot have.
fn payload_length(column: &WireColumn, prefix: &[u8]) -> Option<Option<u64>> {
    if prefix.is_empty() {
        return Some(Some(u64::from(column.fixed_length?)));
    }
    if prefix.iter().all(|byte| *byte == 0xFF) {
        return column.nullable.then_some(None);
    }
    let mut wide = [0u8; 8];
    wide[..prefix.len()].copy_from_slice(prefix);
    let length = u64::from_le_bytes(wide);
    let signed = length >> (prefix.len() * 8 - 1) == 0;
    let bounded = match column.max_payload().map(u64::from) {
        Some(max) if column.is_exact_length() => length == max,
        Some(max) => length <= max,
        None => true,
    };
    let even = !matches!(column.sql, SqlType::NVarChar(_) | SqlType::NChar(_)) || length.is_multiple_of(2);
    (signed && bounded && even).then_some(Some(length))
}

/// Rows of a whole native file, or of a part of it that ends with a row.
#[derive(Debug, Clone)]
pub struct NativeRows<'l, 'a> {
    layout: &'l WireLayout,
    rest: &'a [u8],
    max_row_bytes: u64,
}

impl<'l, 'a> NativeRows<'l, 'a> {
    /// The rows of `bytes`.
    pub fn new(layout: &'l WireLayout, bytes: &'a [u8], max_row_bytes: u64) -> Self {
        NativeRows { layout, rest: bytes, max_row_bytes }
    }

    /// The next row's bytes, its fields in `fields`; `None` at the end.
    ///
    /// # Errors
    /// Those of [`split_row`], and bytes that end inside a row. After an error there are no more rows.
    pub fn next_row(&mut self, fields: &mut Vec<Field<'a>>) -> Result<Option<&'a [u8]>, RowFault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let all = std::mem::take(&mut self.rest);
        let length = split_row(self.layout, all, self.max_row_bytes, fields)?;
        let length = length.filter(|length| *length > 0).ok_or(RowFault { column: fields.len() })?;
        let (row, rest) = all.split_at(length);
        self.rest = rest;
        Ok(Some(row))
    }
}
