//! Sealed native rows to TDS ROW tokens for the four target-local types (MS-TDS 2.2.7.19, 2.2.5.4; design.md 3.8).
//!
//! | type | NOT NULL | nullable | NULL |
//! |---|---|---|---|
//! | bigint | INT8TYPE: 8 bytes | INTNTYPE: 08 + 8 bytes | 00 |
//! | float(53) | FLT8TYPE: 8 bytes | FLTNTYPE: 08 + 8 bytes | 00 |
//! | datetime2(6) | 08 + 5 bytes microseconds + 3 bytes days | the same | 00 |
//! | nvarchar(max) | PLP of known length: 8-byte length, one chunk, 4-byte 0 | the same | 8 x FF |

use super::cursor::RowFault;
use super::field::{DAYS_TO_10000, TICKS_PER_DAY};
use crate::code;
use crate::error::Refusal;
use crate::layout::WireLayout;
use crate::sql_type::SqlType;
use crate::target_layout;

/// The ROW token.
const ROW: u8 = 0xD1;

/// A row that has no TDS form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TdsError {
    /// The bytes are not a row of the layout.
    #[error(transparent)]
    Malformed(#[from] RowFault),
    /// A time is finer than its column's scale, or is no time of day, or its day lies beyond year 9999.
    #[error(
        "{}: a time of the native file does not fit its column's scale (column {column}); do not use the file",
        code::NATIVE_TIME_INEXACT
    )]
    Time {
        /// Column of the field, from 0.
        column: usize,
    },
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Eight bytes, copied.
    Plain,
    DateTime2,
    Text,
}

#[derive(Debug, Clone, Copy)]
struct TdsColumn {
    kind: Kind,
    nullable: bool,
    /// Whether the wire form has a length byte.
    length_byte: bool,
}

/// Turns native rows of one layout into ROW tokens.
#[derive(Debug, Clone)]
pub struct TdsRowEncoder {
    columns: Vec<TdsColumn>,
    max_row_bytes: u64,
}

impl TdsRowEncoder {
    /// An encoder for rows that target-local verification admits.
    ///
    /// With `nullable_forms` NOT NULL bigint and float columns get the nullable wire form as well (INTNTYPE and
    /// FLTNTYPE, for a writer that declares every column that way), else the fixed one.
    ///
    /// # Errors
    /// Those of [`target_layout::admit_row`].
    pub fn new(layout: &WireLayout, max_row_bytes: u64, nullable_forms: bool) -> Result<TdsRowEncoder, Refusal> {
        target_layout::admit_row(layout)?;
        let column = |column: &crate::layout::WireColumn| {
            let kind = match column.sql {
                SqlType::DateTime2(_) => Kind::DateTime2,
                SqlType::NVarChar(_) => Kind::Text,
                _ => Kind::Plain,
            };
            let length_byte = column.nullable || nullable_forms || matches!(kind, Kind::DateTime2);
            TdsColumn { kind, nullable: column.nullable, length_byte }
        };
        Ok(TdsRowEncoder { columns: layout.columns().iter().map(column).collect(), max_row_bytes })
    }

    /// Appends the ROW tokens of the complete rows at the start of `native`, and returns how many rows and native bytes
    /// they were. What follows is the start of a row whose rest has not been read yet, or nothing.
    ///
    /// # Errors
    /// A row that has no TDS form; `out` then holds the rows before it.
    pub fn encode(&self, native: &[u8], out: &mut Vec<u8>) -> Result<(u64, usize), TdsError> {
        let mut rows = 0;
        let mut consumed = 0;
        loop {
            let rest = &native[consumed..];
            let start = out.len();
            match self.encode_row(rest, out) {
                Ok(Some(length)) => {
                    rows += 1;
                    consumed += length;
                }
                Ok(None) => {
                    out.truncate(start);
                    return Ok((rows, consumed));
                }
                Err(error) => {
                    out.truncate(start);
                    return Err(error);
                }
            }
        }
    }

    #[inline]
    fn encode_row(&self, native: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, TdsError> {
        if native.is_empty() {
            return Ok(None);
        }
        out.push(ROW);
        let mut rest = native;
        for (index, column) in self.columns.iter().enumerate() {
            let malformed = RowFault { column: index };
            if let Kind::Text = column.kind {
                let Some((prefix, after)) = rest.split_first_chunk::<8>() else { return Ok(None) };
                let length = u64::from_le_bytes(*prefix);
                if length == u64::MAX {
                    if !column.nullable {
                        return Err(malformed.into());
                    }
                    out.extend_from_slice(prefix);
                    rest = after;
                    continue;
                }
                let used = (native.len() - after.len()) as u64;
                if length % 2 != 0 || used.saturating_add(length) > self.max_row_bytes {
                    return Err(malformed.into());
                }
                let length = u32::try_from(length).map_err(|_| malformed)?;
                let Some((payload, after)) = after.split_at_checked(length as usize) else { return Ok(None) };
                out.extend_from_slice(prefix);
                if length > 0 {
                    out.extend_from_slice(&length.to_le_bytes());
                    out.extend_from_slice(payload);
                }
                out.extend_from_slice(&0u32.to_le_bytes());
                rest = after;
                continue;
            }
            if column.nullable {
                let Some((prefix, after)) = rest.split_first() else { return Ok(None) };
                rest = after;
                match *prefix {
                    8 => {}
                    0xFF => {
                        out.push(0);
                        continue;
                    }
                    _ => return Err(malformed.into()),
                }
            }
            if (native.len() - rest.len()) as u64 + 8 > self.max_row_bytes {
                return Err(malformed.into());
            }
            let Some((payload, after)) = rest.split_first_chunk::<8>() else { return Ok(None) };
            rest = after;
            let payload = match column.kind {
                Kind::DateTime2 => micros(*payload).ok_or(TdsError::Time { column: index })?,
                Kind::Plain | Kind::Text => *payload,
            };
            if column.length_byte {
                let [a, b, c, d, e, f, g, h] = payload;
                out.extend_from_slice(&[8, a, b, c, d, e, f, g, h]);
            } else {
                out.extend_from_slice(&payload);
            }
        }
        let length = native.len() - rest.len();
        if length as u64 > self.max_row_bytes {
            return Err(RowFault { column: self.columns.len() - 1 }.into());
        }
        Ok(Some(length))
    }
}

/// Five bytes of 100 ns ticks and three of days, to five bytes of microseconds and the same days.
#[inline]
fn micros(payload: [u8; 8]) -> Option<[u8; 8]> {
    const TICKS_BITS: u32 = 40;
    let packed = u64::from_le_bytes(payload);
    let ticks = packed & ((1 << TICKS_BITS) - 1);
    let days = packed >> TICKS_BITS;
    let valid = ticks < TICKS_PER_DAY as u64 && ticks.is_multiple_of(10) && days < DAYS_TO_10000 as u64;
    valid.then(|| ((ticks / 10) | (days << TICKS_BITS)).to_le_bytes())
}
