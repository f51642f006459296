//! Storage of one table: its pages and indexes under one lock, and the steps that change them.
//!
//! Each step either happens as a whole or reports what it met ([`Blocked`]) and leaves nothing behind; waiting and
//! locking belong to the transaction.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::RwLock;

use super::super::catalog::{ObjectId, TableDef};
use super::super::error::StoreError;
use super::super::transaction::TransactionId;
use super::index::{IndexKeys, KeyBytes, KeyRange};
use super::page::{Page, RowState};
use super::{MAX_ROW_BYTES, RowId};

/// Why a step did not happen.
#[derive(Debug)]
pub(in super::super) enum Blocked {
    /// A row belongs to another transaction; try again after its end.
    By(TransactionId),
    /// It failed.
    Failed(StoreError),
}

impl From<StoreError> for Blocked {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// An index entry that a row of the same transaction had before.
#[derive(Debug, Clone)]
pub(in super::super) struct Overwritten {
    pub(super) index_id: i32,
    pub(super) key: KeyBytes,
    pub(super) row: RowId,
}

/// An index entry under which a changed row is no longer found once the transaction commits.
#[derive(Debug, Clone)]
pub(in super::super) struct Ghost {
    pub(super) index_id: i32,
    pub(super) key: KeyBytes,
    pub(super) row: RowId,
}

/// What an update replaced.
#[derive(Debug)]
pub(in super::super) struct Updated {
    pub(in super::super) row: RowId,
    pub(super) old: Box<[u8]>,
    pub(super) was_marked: bool,
    pub(super) overwritten: Vec<Overwritten>,
    pub(in super::super) ghosts: Vec<Ghost>,
}

impl Updated {
    /// The row's bytes before.
    pub(in super::super) fn old(&self) -> &[u8] {
        &self.old
    }
}

/// Rows and indexes of a table.
#[derive(Debug)]
pub(in super::super) struct Storage {
    pub(in super::super) table: ObjectId,
    /// Changes go to the redo log (not for temporary tables).
    pub(in super::super) logged: bool,
    pub(in super::super) state: RwLock<TableState>,
}

/// Pages and indexes.
#[derive(Debug, Default)]
pub(in super::super) struct TableState {
    pub(super) pages: Vec<Arc<Page>>,
    pub(super) rows: u64,
    pub(super) indexes: Vec<IndexKeys>,
}

impl Storage {
    /// Empty storage with the indexes of a definition.
    pub(in super::super) fn new(table: ObjectId, definition: &TableDef, logged: bool) -> Self {
        let indexes = definition.indexes.iter().filter_map(|index| IndexKeys::new(definition, index)).collect();
        Self { table, logged, state: RwLock::new(TableState { indexes, ..TableState::default() }) }
    }
}

/// Reading.
impl TableState {
    /// Rows, uncommitted ones included.
    pub(in super::super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(in super::super) fn pages(&self) -> &[Arc<Page>] {
        &self.pages
    }

    pub(in super::super) fn page(&self, row: RowId) -> Option<&Arc<Page>> {
        self.pages.get(row.page() as usize)
    }

    pub(in super::super) fn index(&self, index_id: i32) -> Option<&IndexKeys> {
        self.indexes.iter().find(|index| index.definition.id == index_id)
    }

    /// The state of a row.
    pub(in super::super) fn row_state(&self, row: RowId) -> RowState {
        self.page(row).map_or(RowState::Gone, |page| page.state(row.slot()))
    }

    /// Bytes of a row.
    pub(in super::super) fn row_bytes(&self, row: RowId) -> Option<&[u8]> {
        self.page(row)?.row(row.slot())
    }

    /// Rows in index order that are or may become rows of `range` for a reader; each once.
    ///
    /// An entry can be a ghost: the row's key was changed by a transaction that has not ended. Ghosts of the reader
    /// itself are over; ghosts of others are kept unless the row is in the range by its new key too.
    pub(in super::super) fn candidates(
        &self,
        index: &IndexKeys,
        range: &KeyRange,
        reader: TransactionId,
    ) -> Result<Vec<RowId>, StoreError> {
        let mut rows = Vec::new();
        let mut ghosts = HashSet::new();
        for (key, row) in range.entries(&index.entries) {
            let Some(page) = self.page(row) else { continue };
            if !page.is_clean()
                && let (RowState::Written(writer), Some(bytes)) = (page.state(row.slot()), page.row(row.slot()))
            {
                let present = index.key_of(bytes, row)?;
                if present != *key && (writer == reader || range.contains(&present) || !ghosts.insert(row)) {
                    continue;
                }
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Bytes of the rows.
    pub(in super::super) fn live_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.live_bytes()).sum()
    }

    /// Memory of the pages in bytes.
    pub(in super::super) fn page_memory(&self) -> usize {
        self.pages.iter().map(|page| page.memory() + size_of::<Arc<Page>>() + size_of::<Page>()).sum()
    }
}

/// Changing, for a transaction.
impl TableState {
    /// Inserts a row.
    pub(in super::super) fn insert(
        &mut self,
        transaction: TransactionId,
        bytes: &[u8],
    ) -> Result<(RowId, Vec<Overwritten>), Blocked> {
        if bytes.len() > MAX_ROW_BYTES {
            return Err(StoreError::RowTooLarge { limit: MAX_ROW_BYTES }.into());
        }
        let (page, slot) = self.next_address(bytes.len())?;
        let row = RowId::new(page, slot);
        let mut keys = Vec::with_capacity(self.indexes.len());
        let mut overwritten = Vec::new();
        for position in 0..self.indexes.len() {
            let key = self.indexes[position].key_of(bytes, row)?;
            overwritten.extend(self.check_key(transaction, position, &key, row, bytes)?);
            keys.push(key);
        }
        let too_large = || Blocked::Failed(StoreError::RowTooLarge { limit: MAX_ROW_BYTES });
        if page as usize == self.pages.len() {
            if let Some(last) = self.pages.last_mut() {
                Arc::make_mut(last).seal();
            }
            self.pages.push(Arc::default());
        }
        let last = Arc::make_mut(self.pages.last_mut().ok_or_else(too_large)?);
        last.append(bytes).ok_or_else(too_large)?;
        last.mark(slot, transaction, false);
        for (index, key) in self.indexes.iter_mut().zip(keys) {
            index.entries.insert(key, row);
        }
        self.rows += 1;
        Ok((row, overwritten))
    }

    /// Where the next row goes.
    pub(super) fn next_address(&self, length: usize) -> Result<(u32, u32), StoreError> {
        let count = u32::try_from(self.pages.len()).map_err(|_| StoreError::RowTooLarge { limit: MAX_ROW_BYTES })?;
        match self.pages.last() {
            Some(page) if !page.is_full_for(length) => Ok((count - 1, page.slot_count())),
            _ => Ok((count, 0)),
        }
    }

    /// Checks that `row` may have `key` in a unique index; returns the entry that it will replace.
    fn check_key(
        &self,
        transaction: TransactionId,
        position: usize,
        key: &[u8],
        row: RowId,
        bytes: &[u8],
    ) -> Result<Option<Overwritten>, Blocked> {
        let index = &self.indexes[position];
        let Some(other) = index.entries.get(key).copied().filter(|other| *other != row) else { return Ok(None) };
        let replaced = Overwritten { index_id: index.definition.id, key: key.into(), row: other };
        match self.row_state(other) {
            RowState::Written(owner) | RowState::Deleted(owner) if owner != transaction => Err(Blocked::By(owner)),
            RowState::Gone | RowState::Deleted(_) => Ok(Some(replaced)),
            RowState::Written(_) if !self.has_key(index, other, key)? => Ok(Some(replaced)),
            RowState::Committed | RowState::Written(_) => Err(self.duplicate(index, bytes, false).into()),
        }
    }

    pub(super) fn has_key(&self, index: &IndexKeys, row: RowId, key: &[u8]) -> Result<bool, StoreError> {
        match self.row_bytes(row) {
            Some(bytes) => Ok(*index.key_of(bytes, row)? == *key),
            None => Ok(false),
        }
    }

    pub(super) fn duplicate(&self, index: &IndexKeys, bytes: &[u8], building: bool) -> StoreError {
        StoreError::DuplicateKey {
            // The storage knows its table; the state alone does not, so the caller fills it in.
            table: ObjectId(0),
            index_id: index.definition.id,
            constraint: index.definition.constraint.is_some(),
            building,
            key: index.values_of(bytes),
        }
    }

    /// Adds whole pages of new rows.
    pub(in super::super) fn attach_page(
        &mut self,
        transaction: TransactionId,
        mut page: Page,
    ) -> Result<(RowId, u32), StoreError> {
        let number = u32::try_from(self.pages.len()).map_err(|_| StoreError::RowTooLarge { limit: MAX_ROW_BYTES })?;
        page.mark_all(transaction);
        let count = page.slot_count();
        self.rows += u64::from(page.live());
        self.pages.push(Arc::new(page));
        Ok((RowId::new(number, 0), count))
    }

    /// Whether bulk loads may attach pages: there is no index to keep.
    pub(in super::super) fn is_plain_heap(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Replaces rows, all or none. Rows that are gone are left out of the answer.
    pub(in super::super) fn update(
        &mut self,
        transaction: TransactionId,
        rows: &[(RowId, Vec<u8>)],
    ) -> Result<Vec<Updated>, Blocked> {
        let mut done = Vec::with_capacity(rows.len());
        let outcome = self.replace_rows(transaction, rows, &mut done).and_then(|()| {
            for updated in &mut done {
                self.rekey(transaction, updated)?;
            }
            Ok(())
        });
        match outcome {
            Ok(()) => Ok(done),
            Err(blocked) => {
                for updated in done.iter().rev() {
                    self.undo_update(updated)?;
                }
                Err(blocked)
            }
        }
    }

    fn replace_rows(
        &mut self,
        transaction: TransactionId,
        rows: &[(RowId, Vec<u8>)],
        done: &mut Vec<Updated>,
    ) -> Result<(), Blocked> {
        for (row, bytes) in rows {
            let was_marked = match self.row_state(*row) {
                RowState::Gone => continue,
                RowState::Written(owner) | RowState::Deleted(owner) if owner != transaction => {
                    return Err(Blocked::By(owner));
                }
                RowState::Deleted(_) => continue,
                state => state != RowState::Committed,
            };
            let too_large = || Blocked::Failed(StoreError::RowTooLarge { limit: MAX_ROW_BYTES });
            if bytes.len() > MAX_ROW_BYTES {
                return Err(too_large());
            }
            let page = Arc::make_mut(self.pages.get_mut(row.page() as usize).ok_or_else(too_large)?);
            let old: Box<[u8]> = page.row(row.slot()).unwrap_or_default().into();
            if page.replace(row.slot(), bytes).is_none() {
                // The page's address space is used up; the old bytes still fit into the space they leave.
                page.replace(row.slot(), &old);
                return Err(too_large());
            }
            page.mark(row.slot(), transaction, false);
            done.push(Updated { row: *row, old, was_marked, overwritten: Vec::new(), ghosts: Vec::new() });
        }
        Ok(())
    }

    /// Gives a replaced row its new keys; its old ones stay as ghosts until the transaction ends.
    fn rekey(&mut self, transaction: TransactionId, updated: &mut Updated) -> Result<(), Blocked> {
        for position in 0..self.indexes.len() {
            let index = &self.indexes[position];
            let Some(bytes) = self.row_bytes(updated.row) else { continue };
            let (old, new) = (index.key_of(&updated.old, updated.row)?, index.key_of(bytes, updated.row)?);
            if old == new {
                continue;
            }
            updated.overwritten.extend(self.check_key(transaction, position, &new, updated.row, bytes)?);
            updated.ghosts.push(Ghost { index_id: self.indexes[position].definition.id, key: old, row: updated.row });
            self.indexes[position].entries.insert(new, updated.row);
        }
        Ok(())
    }

    /// Deletes a row: true if it was there, with whether this transaction had written it before.
    pub(in super::super) fn delete(&mut self, transaction: TransactionId, row: RowId) -> Result<Option<bool>, Blocked> {
        let was_marked = match self.row_state(row) {
            RowState::Gone => return Ok(None),
            RowState::Written(owner) | RowState::Deleted(owner) if owner != transaction => {
                return Err(Blocked::By(owner));
            }
            RowState::Deleted(_) => return Ok(None),
            state => state != RowState::Committed,
        };
        if let Some(page) = self.pages.get_mut(row.page() as usize) {
            Arc::make_mut(page).mark(row.slot(), transaction, true);
            self.rows -= 1;
        }
        Ok(Some(was_marked))
    }
}
