//! Reading rows.

use std::ops::Bound;
use std::sync::Arc;

use super::super::catalog::ObjectId;
use super::super::error::StoreError;
use super::super::heap::{KeyRange, Page, RowId, RowState, Storage};
use super::super::lock::LockMode;
use super::super::row;
use super::super::store::Allocation;
use super::{Hold, ReadMode, Transaction};
use crate::sqlserver::value::Value;

/// Bytes of an 8 KiB page that hold rows.
const SQL_PAGE_ROW_BYTES: u64 = 8096;
/// What SQL Server keeps with each row besides its values: status, length, null bitmap, slot.
const SQL_ROW_OVERHEAD_BYTES: u64 = 9;

impl ReadMode {
    /// Lock of each row.
    fn row_lock(self) -> Option<LockMode> {
        match self {
            Self::Dirty | Self::Committed | Self::SkipLocked => None,
            Self::Shared => Some(LockMode::Shared),
            Self::Update | Self::UpdateSkipLocked => Some(LockMode::Update),
            Self::Exclusive => Some(LockMode::Exclusive),
        }
    }

    fn table_lock(self) -> (LockMode, Hold) {
        match self {
            Self::Dirty => (LockMode::SchemaStability, Hold::Statement),
            Self::Committed | Self::SkipLocked => (LockMode::IntentShared, Hold::Statement),
            Self::Shared => (LockMode::IntentShared, Hold::Transaction),
            Self::Update | Self::UpdateSkipLocked | Self::Exclusive => (LockMode::IntentExclusive, Hold::Transaction),
        }
    }

    fn skips(self) -> bool {
        matches!(self, Self::SkipLocked | Self::UpdateSkipLocked)
    }
}

/// Reads.
impl Transaction {
    fn open(&self, table: ObjectId, mode: ReadMode) -> Result<Arc<Storage>, StoreError> {
        let (lock, hold) = mode.table_lock();
        self.lock_table(table, lock, hold)?;
        self.store.storage(table)
    }

    /// All rows, in the order of the clustered index or of insertion. Rows inserted after this call are not seen.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn scan(self: &Arc<Self>, table: ObjectId, mode: ReadMode) -> Result<Scan, StoreError> {
        let storage = self.open(table, mode)?;
        let source = {
            let state = storage.state.read();
            match state.index(1) {
                Some(index) => {
                    let all = index.byte_bounds((Bound::Unbounded, Bound::Unbounded));
                    Source::List { rows: state.candidates(index, &all, self.id)?.into_iter(), filter: None }
                }
                None => {
                    let last = state.pages().last().map_or(0, |page| page.slot_count());
                    Source::Heap { page: 0, slot: 0, pages: state.pages().len(), last_slots: last, current: None }
                }
            }
        };
        Ok(Scan { transaction: Arc::clone(self), storage, mode, source })
    }

    /// The rows whose leading key columns equal `key`, in index order; none if the index is not kept in memory
    /// (filtered, disabled, columnstore).
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn seek(
        self: &Arc<Self>,
        table: ObjectId,
        index_id: i32,
        key: &[Value],
        mode: ReadMode,
    ) -> Result<Option<Scan>, StoreError> {
        self.range(table, index_id, (Bound::Included(key), Bound::Included(key)), mode)
    }

    /// The rows between two bounds on leading key columns, in index order (a descending column counts downwards);
    /// none as for [`Transaction::seek`].
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn range(
        self: &Arc<Self>,
        table: ObjectId,
        index_id: i32,
        bounds: (Bound<&[Value]>, Bound<&[Value]>),
        mode: ReadMode,
    ) -> Result<Option<Scan>, StoreError> {
        let storage = self.open(table, mode)?;
        let source = {
            let state = storage.state.read();
            let Some(index) = state.index(index_id) else { return Ok(None) };
            let range = index.byte_bounds(bounds);
            let rows = state.candidates(index, &range, self.id)?.into_iter();
            Source::List { rows, filter: Some((index_id, range)) }
        };
        Ok(Some(Scan { transaction: Arc::clone(self), storage, mode, source }))
    }

    /// The present version of one row; none if it is gone (or passed over).
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn fetch(&self, table: ObjectId, row: RowId, mode: ReadMode) -> Result<Option<RowRef>, StoreError> {
        let storage = self.open(table, mode)?;
        self.visit(&storage, row, mode)
    }

    /// Locks a row as the mode asks and reads it when no other transaction's change stands in the way.
    fn visit(&self, storage: &Storage, row: RowId, mode: ReadMode) -> Result<Option<RowRef>, StoreError> {
        if let Some(lock) = mode.row_lock()
            && !self.lock_row(storage.table, row, lock, !mode.skips())?
        {
            return Ok(None);
        }
        loop {
            let page = storage.state.read().page(row).map(Arc::clone);
            let Some(page) = page else { break };
            match page.state(row.slot()) {
                RowState::Committed => return Ok(Some(RowRef { id: row, page })),
                RowState::Gone => break,
                RowState::Written(writer) if writer == self.id => return Ok(Some(RowRef { id: row, page })),
                RowState::Deleted(writer) if writer == self.id => break,
                RowState::Written(_) if mode == ReadMode::Dirty => return Ok(Some(RowRef { id: row, page })),
                RowState::Deleted(_) if mode == ReadMode::Dirty => break,
                RowState::Written(_) | RowState::Deleted(_) if mode.skips() => break,
                RowState::Written(writer) | RowState::Deleted(writer) => self.wait_for(writer)?,
            }
        }
        if mode.row_lock().is_some() {
            self.release_row(storage.table, row);
        }
        Ok(None)
    }

    /// Rows and pages of a table without looking at its rows.
    #[must_use]
    pub fn allocation(&self, table: ObjectId) -> Option<Allocation> {
        let storage = self.store.storage(table).ok()?;
        let state = storage.state.read();
        let rows = state.rows();
        let bytes = state.live_bytes() as u64 + rows * SQL_ROW_OVERHEAD_BYTES;
        if rows == 0 && state.pages().is_empty() {
            return Some(Allocation::default());
        }
        let data_pages = bytes.div_ceil(SQL_PAGE_ROW_BYTES).max(1);
        let reserved_pages = data_pages.div_ceil(8) * 8 + 1;
        Some(Allocation { rows, reserved_pages, used_pages: data_pages + 1, data_pages })
    }
}

/// A row as it is kept; decoding is by column.
#[derive(Debug, Clone)]
pub struct RowRef {
    id: RowId,
    page: Arc<Page>,
}

impl RowRef {
    /// Its address.
    #[must_use]
    pub fn id(&self) -> RowId {
        self.id
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.page.row(self.id.slot()).unwrap_or_default()
    }

    /// Length of the encoded row in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.bytes().len()
    }

    /// The value at a column position.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn value(&self, position: usize) -> Result<Value, StoreError> {
        row::decode_column(self.bytes(), position)
    }

    /// All values of a table with `columns` columns.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn values(&self, columns: usize) -> Result<Vec<Value>, StoreError> {
        let mut values = Vec::with_capacity(columns);
        self.decode_into(columns, &mut values)?;
        Ok(values)
    }

    /// Decodes the values of the `needed` columns into their places of `out`; the other places keep what they hold.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn decode_needed(&self, needed: &[bool], out: &mut [Value]) -> Result<(), StoreError> {
        row::decode_needed(self.bytes(), needed, out)
    }

    /// Appends the values to `out`, which a loop over rows can reuse.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn decode_into(&self, columns: usize, out: &mut Vec<Value>) -> Result<(), StoreError> {
        row::decode_row(self.bytes(), columns, out)
    }
}

/// Rows of a table, read while the transaction goes on.
#[derive(Debug)]
pub struct Scan {
    transaction: Arc<Transaction>,
    storage: Arc<Storage>,
    mode: ReadMode,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// Page by page, up to the end that the table had at the beginning.
    Heap { page: usize, slot: u32, pages: usize, last_slots: u32, current: Option<Arc<Page>> },
    /// Addresses in index order; the filter is checked again on the row that is read.
    List { rows: std::vec::IntoIter<RowId>, filter: Option<(i32, KeyRange)> },
}

impl Scan {
    fn passes(&self, row: &RowRef) -> Result<bool, StoreError> {
        let Source::List { filter: Some((index_id, range)), .. } = &self.source else { return Ok(true) };
        let state = self.storage.state.read();
        match state.index(*index_id) {
            Some(index) => Ok(range.contains(&index.key_of(row.bytes(), row.id)?)),
            None => Ok(true),
        }
    }

    /// The next address and, where a page of a heap needs no waiting, its row.
    fn step(&mut self) -> Option<(RowId, Option<RowRef>)> {
        match &mut self.source {
            Source::List { rows, .. } => rows.next().map(|row| (row, None)),
            Source::Heap { page, slot, pages, last_slots, current } => loop {
                if *page >= *pages {
                    return None;
                }
                let number = u32::try_from(*page).ok()?;
                let this = match current {
                    Some(this) => this,
                    None => current.insert(Arc::clone(self.storage.state.read().pages().get(*page)?)),
                };
                let end = if *page + 1 == *pages { *last_slots } else { this.slot_count() };
                if *slot >= end {
                    (*page, *slot, *current) = (*page + 1, 0, None);
                    continue;
                }
                let row = RowId::new(number, *slot);
                *slot += 1;
                if this.is_clean() && self.mode.row_lock().is_none() {
                    if this.state(row.slot()) == RowState::Gone {
                        continue;
                    }
                    return Some((row, Some(RowRef { id: row, page: Arc::clone(this) })));
                }
                return Some((row, None));
            },
        }
    }
}

impl Iterator for Scan {
    type Item = Result<RowRef, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (id, row) = self.step()?;
            let visited = match row {
                Some(row) => Ok(Some(row)),
                None => self.transaction.visit(&self.storage, id, self.mode),
            };
            let row = match visited {
                Ok(Some(row)) => row,
                Ok(None) => continue,
                Err(error) => return Some(Err(error)),
            };
            match self.passes(&row) {
                Ok(true) => return Some(Ok(row)),
                Ok(false) if self.mode.row_lock().is_some() => self.transaction.release_row(self.storage.table, id),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
