//! Column blocks: rows as they leave the source reader, before any of them is encoded.
//!
//! One [`Block`] holds one wire block of the ClickHouse native protocol. Cells stay in columns so that decoding is a bulk
//! copy and encoding walks contiguous memory; there is no allocation per cell anywhere between socket and sealed file.

/// A block of rows in columns. Every column holds exactly `rows` values.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Number of rows.
    pub rows: usize,
    /// Columns in projection order.
    pub columns: Vec<Column>,
}

/// One column of a [`Block`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The values; a NULL cell holds the type's default here, as on the ClickHouse wire.
    pub values: Values,
    /// For a `Nullable` column one byte per row, 1 = NULL (the ClickHouse null map); `None` for a column without NULLs.
    pub nulls: Option<Vec<u8>>,
}

/// Values of one column, by physical representation.
///
/// `DateTime` and `DateTime64` columns are projected to `Int64` microseconds since the Unix epoch (contract.md 3.2), so
/// they arrive as [`Values::Int64`].
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// `Int8`.
    Int8(Vec<i8>),
    /// `Int16`.
    Int16(Vec<i16>),
    /// `Int32`.
    Int32(Vec<i32>),
    /// `Int64`, and every projected timestamp (microseconds since 1970-01-01T00:00:00Z).
    Int64(Vec<i64>),
    /// `UInt8`.
    UInt8(Vec<u8>),
    /// `UInt16`.
    UInt16(Vec<u16>),
    /// `UInt32`.
    UInt32(Vec<u32>),
    /// `UInt64`.
    UInt64(Vec<u64>),
    /// `Bool`: 0 or 1.
    Bool(Vec<u8>),
    /// `Float32`.
    Float32(Vec<f32>),
    /// `Float64`.
    Float64(Vec<f64>),
    /// `String`: raw bytes, not yet proven to be UTF-8.
    String(StringColumn),
    /// `UUID` in RFC 4122 byte order (the order of the text form).
    Uuid(Vec<[u8; 16]>),
    /// `Date`: days since 1970-01-01.
    Date(Vec<u16>),
    /// `Date32`: days since 1970-01-01, may be negative.
    Date32(Vec<i32>),
    /// `Decimal(p, s)` with p <= 38: unscaled two's complement value, sign extended.
    Decimal(Vec<i128>),
}

/// Strings of one column in one buffer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StringColumn {
    /// All bytes, one value after the other.
    pub bytes: Vec<u8>,
    /// End offset of each value in `bytes`; the start is the previous end (0 for the first).
    pub ends: Vec<u32>,
}

impl StringColumn {
    /// The bytes of row `row`.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    /// Appends one value. The caller keeps the buffer below 4 GiB (blocks are capped far below, design.md 3.4).
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
    }
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Int8(v) => v.len(),
            Values::Int16(v) => v.len(),
            Values::Int32(v) | Values::Date32(v) => v.len(),
            Values::Int64(v) => v.len(),
            Values::UInt8(v) | Values::Bool(v) => v.len(),
            Values::UInt16(v) | Values::Date(v) => v.len(),
            Values::UInt32(v) => v.len(),
            Values::UInt64(v) => v.len(),
            Values::Float32(v) => v.len(),
            Values::Float64(v) => v.len(),
            Values::String(v) => v.ends.len(),
            Values::Uuid(v) => v.len(),
            Values::Decimal(v) => v.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Column {
    /// Whether row `row` is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls[row] != 0)
    }
}
