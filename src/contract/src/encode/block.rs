//! The block encoder: column blocks to native rows, their hashes and their sum in one pass.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use super::column::{self, Batch, Form};
use super::{EncodeError, cell, field};
use crate::block::Block;
use crate::code;
use crate::digest::TypedSum;
use crate::error::Refusal;
use crate::layout::WireLayout;
use crate::source_type::SourceType;

/// Rows encoded at a time: with rows of the common size a batch stays in the second-level cache between the columns
/// that write it and the hash that reads it.
const BATCH_ROWS: usize = 512;

/// Largest admitted row bound, 1 GiB: the largest chunk, so that sizes and offsets fit 32 bits.
const MAX_ROW_BYTES_MAX: u64 = 1 << 30;

/// Encodes rows of one layout.
#[derive(Debug, Clone)]
pub struct RowEncoder {
    layout: WireLayout,
    sources: Vec<SourceType>,
    forms: Vec<Form>,
    max_row_bytes: u64,
}

/// Native rows with their sum.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EncodedRows {
    /// The rows, one after the other.
    pub bytes: Vec<u8>,
    /// End offset of each row in `bytes`.
    pub ends: Vec<u32>,
    /// Sum of the rows' SHA-256 hashes.
    pub sum: TypedSum,
    cursor: Vec<u32>,
}

impl EncodedRows {
    /// No rows, with room for some.
    pub fn with_capacity(bytes: usize, rows: usize) -> Self {
        EncodedRows { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.sum = TypedSum::ZERO;
    }
}

impl RowEncoder {
    /// An encoder from source columns to the columns of `layout`, in the same order.
    ///
    /// `max_row_bytes` bounds a row with all framing.
    ///
    /// # Errors
    /// `mssql_native_columns_mismatch` (other number of columns), `mssql_native_unsupported_type` (a source type that
    /// has no form in its target type), `mssql_native_invalid_max_row_bytes` (outside 1 byte to 1 GiB).
    pub fn new(layout: WireLayout, sources: Vec<SourceType>, max_row_bytes: u64) -> Result<RowEncoder, Refusal> {
        if sources.len() != layout.columns().len() {
            return Err(Refusal::new(code::COLUMNS_MISMATCH, "source and target have different numbers of columns"));
        }
        if !(1..=MAX_ROW_BYTES_MAX).contains(&max_row_bytes) {
            return Err(Refusal::new(code::INVALID_MAX_ROW_BYTES, "max_row_bytes must be 1 byte to 1 GiB"));
        }
        let forms = sources.iter().zip(layout.columns()).map(|(source, wire)| column::form(source, wire));
        let forms = forms.collect::<Option<Vec<_>>>().ok_or_else(|| {
            Refusal::new(code::UNSUPPORTED_TYPE, "a source column's type has no native form in its target type")
        })?;
        Ok(RowEncoder { layout, sources, forms, max_row_bytes })
    }

    /// The layout of the rows.
    pub fn layout(&self) -> &WireLayout {
        &self.layout
    }

    /// The encoded size of every row of `block`, so that a producer can cut frames before anything is encoded.
    ///
    /// Sizes are exact for every row that [`encode`](Self::encode) accepts.
    ///
    /// # Errors
    /// `mssql_native_columns_mismatch` when the block has another shape; `mssql_native_row_bytes_exceeded` for the first
    /// row over `max_row_bytes`.
    pub fn measure(&self, block: &Block, sizes: &mut Vec<u32>) -> Result<(), EncodeError> {
        self.check_shape(block)?;
        sizes.clear();
        sizes.resize(block.rows, 0);
        self.add_sizes(block, 0, sizes);
        match sizes.iter().position(|size| u64::from(*size) > self.max_row_bytes) {
            None => Ok(()),
            // The closer look may find that the row has a worse fault than its size, such as text that is not UTF-8.
            Some(row) => Err(self.encode_row(block, row, &mut Vec::new()).err().unwrap_or(EncodeError {
                code: code::ROW_BYTES_EXCEEDED,
                row,
                column: 0,
            })),
        }
    }

    /// Appends rows `rows` of `block` to `out`, or leaves `out` as it was.
    ///
    /// # Errors
    /// The first refusal in row order, then column order; codes of [`encode_values`](super::encode_values).
    pub fn encode(&self, block: &Block, rows: Range<usize>, out: &mut EncodedRows) -> Result<(), EncodeError> {
        self.check_shape(block)?;
        if rows.start > rows.end || rows.end > block.rows {
            return Err(EncodeError { code: code::COLUMNS_MISMATCH, row: rows.end, column: 0 });
        }
        let before = (out.bytes.len(), out.ends.len(), out.sum);
        let mut first = rows.start;
        while first < rows.end {
            let last = rows.end.min(first + BATCH_ROWS);
            if let Err(error) = self.encode_batch(block, first..last, out) {
                out.bytes.truncate(before.0);
                out.ends.truncate(before.1);
                out.sum = before.2;
                return Err(error);
            }
            first = last;
        }
        Ok(())
    }

    fn check_shape(&self, block: &Block) -> Result<(), EncodeError> {
        let mismatch = |column| EncodeError { code: code::COLUMNS_MISMATCH, row: 0, column };
        if block.columns.len() != self.sources.len() {
            return Err(mismatch(block.columns.len().min(self.sources.len())));
        }
        let unfit = block
            .columns
            .iter()
            .zip(&self.sources)
            .position(|(column, source)| !cell::fits(column, source, block.rows));
        unfit.map_or(Ok(()), |column| Err(mismatch(column)))
    }

    fn add_sizes(&self, block: &Block, first: usize, sizes: &mut [u32]) {
        for ((wire, form), column) in self.layout.columns().iter().zip(&self.forms).zip(&block.columns) {
            column::add_sizes(wire, *form, column, first, sizes);
        }
    }

    fn encode_batch(&self, block: &Block, rows: Range<usize>, out: &mut EncodedRows) -> Result<(), EncodeError> {
        let base = out.bytes.len();
        let known = out.ends.len();
        out.cursor.clear();
        out.cursor.resize(rows.len(), 0);
        self.add_sizes(block, rows.start, &mut out.cursor);
        let bound = self.max_row_bytes as u32;
        let mut plain = out.cursor.iter().all(|size| *size <= bound);
        // From here on `cursor` holds each row's start and `ends` its end, relative to the batch.
        let mut total = 0u64;
        for at in &mut out.cursor {
            let size = u64::from(*at);
            *at = total as u32;
            total += size;
            out.ends.push((base as u64 + total) as u32);
        }
        plain &= base as u64 + total <= u64::from(u32::MAX);
        if plain {
            out.bytes.resize(base + total as usize, 0);
            let mut batch = Batch { first: rows.start, cursor: &mut out.cursor, bytes: &mut out.bytes[base..] };
            let columns = self.layout.columns().iter().zip(&self.forms).zip(self.sources.iter().zip(&block.columns));
            plain = columns
                .into_iter()
                .all(|((wire, form), (source, column))| column::write(wire, *form, source, column, &mut batch));
        }
        if !plain {
            out.bytes.truncate(base);
            out.ends.truncate(known);
            self.encode_one_by_one(block, rows, out)?;
        }
        let mut start = base;
        for end in &out.ends[known..] {
            let hash: [u8; 32] = Sha256::digest(&out.bytes[start..*end as usize]).into();
            out.sum.add_hash(&hash);
            start = *end as usize;
        }
        Ok(())
    }

    /// The same rows by the rules of single values: finds the refusal, or accepts what the column writers left open.
    fn encode_one_by_one(&self, block: &Block, rows: Range<usize>, out: &mut EncodedRows) -> Result<(), EncodeError> {
        for row in rows {
            self.encode_row(block, row, &mut out.bytes)?;
            let end = u32::try_from(out.bytes.len());
            out.ends.push(end.map_err(|_| EncodeError { code: code::ROW_BYTES_EXCEEDED, row, column: 0 })?);
        }
        Ok(())
    }

    fn encode_row(&self, block: &Block, row: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let cells = block.columns.iter().zip(&self.sources);
        let values: Vec<_> = cells.map(|(column, source)| cell::value(column, source, row)).collect();
        field::encode_values(&self.layout, &values, self.max_row_bytes, out).map_err(|(code, column)| EncodeError {
            code,
            row,
            column,
        })
    }
}
