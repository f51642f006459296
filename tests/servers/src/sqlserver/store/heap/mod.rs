//! Row storage of a table: pages of encoded rows and its indexes.
//!
//! A page holds row bytes one after the other and a slot per row. Which rows are uncommitted, and by whom, is
//! written in the page itself as *marks*: ranges of slots with a transaction. So a reader that takes a page
//! (an `Arc`) sees rows and marks of one moment, a bulk load of a whole page costs one mark, and no lock-table entry is
//! needed per inserted row.

mod index;
mod page;
mod settle;
mod storage;

pub(super) use index::{KeyRange, is_whole_row};
pub(super) use page::{Page, PageBuilder, RowState};
pub(super) use storage::{Blocked, Ghost, Overwritten, Storage, TableState, Updated};

/// Largest encoded row in bytes.
pub(super) const MAX_ROW_BYTES: usize = 1 << 30;

/// Address of a row, stable for its life and never reused within a table's storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u64);

impl RowId {
    pub(super) fn new(page: u32, slot: u32) -> Self {
        Self(u64::from(page) << 32 | u64::from(slot))
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper half")]
    pub(super) fn page(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    pub(super) fn slot(self) -> u32 {
        self.0 as u32
    }
}
