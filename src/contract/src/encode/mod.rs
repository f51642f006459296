//! Source rows to native BCP row bytes (contract.md 3.1-3.3), and from there to TDS rows (design.md 3.8).
//!
//! There is one canonical row: the native bytes, hashed and sealed. [`RowEncoder`] makes them from column blocks;
//! [`encode_values`] makes the same bytes from single typed values and is the slow, plain statement of the rules that the
//! fast one falls back to whenever a batch holds anything unusual, so both give the same verdict for the same row.
//! [`NativeRows`] walks sealed bytes again and [`TdsRowEncoder`] turns them into the target's wire form.

mod block;
mod cell;
mod column;
mod cursor;
mod field;
mod tds;
mod value;

pub use block::{EncodedRows, RowEncoder};
pub use cursor::{Field, NativeRows, RowFault, split_row};
pub use field::{encode_values, write_field};
pub use tds::{TdsError, TdsRowEncoder};
pub use value::{Decimal, Value};

/// A row that cannot be written exactly. It names the place, never the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{code}: a value cannot be written exactly (row {row} of the block, column {column})")]
pub struct EncodeError {
    /// Stable code.
    pub code: &'static str,
    /// Row in the block, from 0.
    pub row: usize,
    /// Column in the projection, from 0.
    pub column: usize,
}
