//! Row storage of a table: pages of encoded rows and its indexes.

/// Address of a row, stable for its life and never reused within a table's storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u64);
