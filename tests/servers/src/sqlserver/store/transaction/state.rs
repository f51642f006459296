//! What a transaction remembers: how to undo, what to log, what to settle.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::catalog::state::Pending;
use super::super::catalog::{CatalogKey, CatalogRecord, ObjectId};
use super::super::error::StoreError;
use super::super::heap::{Ghost, Overwritten, RowId, RowState, Storage, Updated};
use super::super::lock::LockMode;
use super::super::log::{Operation, encode_append_start};
use super::super::row::put_varint;
use super::super::store::{CounterKey, Store, is_logged};
use super::TransactionId;

/// Redo bytes in memory from which they go to the log as a part.
const STREAM_ABOVE_BYTES: usize = 1 << 20;

/// A change that can be taken back.
#[derive(Debug)]
pub(super) enum Undo {
    /// A record was changed.
    Catalog { key: CatalogKey, before: Option<Pending> },
    /// Rows were inserted into consecutive slots of a page.
    Inserted { storage: Arc<Storage>, first: RowId, count: u32, overwritten: Vec<Overwritten> },
    /// A row was updated.
    Updated { storage: Arc<Storage>, updated: Updated },
    /// A row was deleted.
    Deleted { storage: Arc<Storage>, row: RowId, was_marked: bool },
    /// A table got, lost or exchanged its storage.
    Storage { table: ObjectId, before: Option<Arc<Storage>> },
    /// A counter was set.
    Counter { key: CounterKey, before: Option<i128> },
}

/// Lock of a table: as it is now and as it is to be kept after the statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableLock {
    pub(super) now: LockMode,
    pub(super) kept: Option<LockMode>,
}

/// Pages and index entries to settle at commit.
#[derive(Debug)]
struct Touched {
    storage: Arc<Storage>,
    pages: BTreeSet<u32>,
    ghosts: Vec<Ghost>,
}

/// Memory of a transaction.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) ended: bool,
    /// It has announced itself as a writer.
    pub(super) writer: bool,
    pub(super) undo: Vec<Undo>,
    /// Entries before this one are closed, because a mark was taken after them.
    pub(super) border: usize,
    pub(super) redo: Vec<u8>,
    /// Some of its redo is in the log already.
    pub(super) streamed: bool,
    pub(super) savepoints: Vec<(String, usize)>,
    pub(super) table_locks: HashMap<ObjectId, TableLock>,
    /// Row locks per table, for escalation.
    pub(super) row_locks: HashMap<ObjectId, u32>,
    catalog_keys: BTreeSet<CatalogKey>,
    /// By address of the storage, which the value keeps alive.
    touched: HashMap<usize, Touched>,
}

impl State {
    fn touch(&mut self, storage: &Arc<Storage>, page: u32) -> &mut Touched {
        let address = Arc::as_ptr(storage) as usize;
        let touched = self.touched.entry(address).or_insert_with(|| Touched {
            storage: Arc::clone(storage),
            pages: BTreeSet::new(),
            ghosts: Vec::new(),
        });
        touched.pages.insert(page);
        touched
    }

    /// Records an insert of one row.
    pub(super) fn inserted(&mut self, storage: &Arc<Storage>, row: RowId, overwritten: Vec<Overwritten>) {
        self.touch(storage, row.page());
        let may_join = self.undo.len() > self.border && overwritten.is_empty();
        if let Some(Undo::Inserted { storage: last, first, count, overwritten: before }) = self.undo.last_mut() {
            let follows = first.0 + u64::from(*count) == row.0 && first.page() == row.page();
            if may_join && follows && Arc::ptr_eq(last, storage) && before.is_empty() {
                *count += 1;
                return;
            }
        }
        self.undo.push(Undo::Inserted { storage: Arc::clone(storage), first: row, count: 1, overwritten });
    }

    /// Records the insert of a whole page.
    pub(super) fn inserted_page(&mut self, storage: &Arc<Storage>, first: RowId, count: u32) {
        self.touch(storage, first.page());
        let storage = Arc::clone(storage);
        self.undo.push(Undo::Inserted { storage, first, count, overwritten: Vec::new() });
    }

    /// Records an update.
    pub(super) fn updated(&mut self, storage: &Arc<Storage>, mut updated: Updated) {
        let ghosts = std::mem::take(&mut updated.ghosts);
        self.touch(storage, updated.row.page()).ghosts.extend(ghosts);
        self.undo.push(Undo::Updated { storage: Arc::clone(storage), updated });
    }

    /// Records a deletion.
    pub(super) fn deleted(&mut self, storage: &Arc<Storage>, row: RowId, was_marked: bool) {
        self.touch(storage, row.page());
        self.undo.push(Undo::Deleted { storage: Arc::clone(storage), row, was_marked });
    }

    /// Records a changed record.
    pub(super) fn changed(&mut self, key: CatalogKey, before: Option<Pending>) {
        self.catalog_keys.insert(key.clone());
        self.undo.push(Undo::Catalog { key, before });
    }

    /// Hands redo to the log when there is much of it.
    pub(super) fn stream(&mut self, store: &Store, id: TransactionId) -> Result<(), StoreError> {
        if self.redo.len() > STREAM_ABOVE_BYTES {
            store.log_part(id, &self.redo)?;
            self.redo.clear();
            self.streamed = true;
        }
        Ok(())
    }

    /// Makes the changes committed ones, in memory.
    pub(super) fn settle(&mut self, store: &Store, id: TransactionId) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        for touched in self.touched.values() {
            let settled = touched.storage.state.write().settle(id, &touched.pages, &touched.ghosts);
            outcome = outcome.and(settled);
        }
        if !self.catalog_keys.is_empty() {
            let mut catalog = store.catalog.write();
            for key in &self.catalog_keys {
                catalog.commit(id, key);
            }
        }
        outcome
    }

    /// Takes changes back, last first, until `length` entries are left; with `compensate`, the redo says so too.
    pub(super) fn undo_to(&mut self, store: &Store, id: TransactionId, length: usize, compensate: bool) {
        while self.undo.len() > length {
            let Some(undo) = self.undo.pop() else { return };
            let undone = undo_one(store, id, &undo);
            // Undoing decodes only rows that this store has encoded itself.
            debug_assert!(undone.is_ok(), "undo of a row failed");
            if compensate {
                self.compensate(store, id, &undo);
            }
        }
    }

    fn compensate(&mut self, store: &Store, id: TransactionId, undo: &Undo) {
        let redo = &mut self.redo;
        match undo {
            Undo::Catalog { key, .. } => match store.catalog.read().get(id, key) {
                Some(record) if is_logged(record) => Operation::Put(Box::new(record.clone())).encode(redo),
                Some(_) => {}
                None => Operation::Remove(key.clone()).encode(redo),
            },
            Undo::Inserted { storage, first, count, .. } if storage.logged => {
                for offset in 0..u64::from(*count) {
                    Operation::Delete { table: storage.table, row: RowId(first.0 + offset) }.encode(redo);
                }
            }
            Undo::Updated { storage, updated } if storage.logged => {
                Operation::Update { table: storage.table, row: updated.row, bytes: updated.old() }.encode(redo);
            }
            Undo::Deleted { storage, row, .. } if storage.logged => {
                let state = storage.state.read();
                if let Some(bytes) = state.row_bytes(*row) {
                    Operation::Update { table: storage.table, row: *row, bytes }.encode(redo);
                }
            }
            Undo::Storage { before: Some(storage), .. } if storage.logged => log_storage(storage, redo),
            Undo::Inserted { .. }
            | Undo::Updated { .. }
            | Undo::Deleted { .. }
            | Undo::Storage { .. }
            | Undo::Counter { .. } => {}
        }
    }
}

/// Appends operations that give a table exactly the rows of `storage`, without those that this transaction has deleted.
pub(super) fn log_storage(storage: &Storage, redo: &mut Vec<u8>) {
    Operation::NewStorage(storage.table).encode(redo);
    let state = storage.state.read();
    for (number, page) in (0u32..).zip(state.pages()) {
        for slot in 0..page.slot_count() {
            let is_there = matches!(page.state(slot), RowState::Committed | RowState::Written(_));
            if let Some(bytes) = page.row(slot).filter(|_| is_there) {
                encode_append_start(storage.table, RowId::new(number, slot), 1, redo);
                put_varint(bytes.len() as u64, redo);
                redo.extend_from_slice(bytes);
            }
        }
    }
}

fn undo_one(store: &Store, id: TransactionId, undo: &Undo) -> Result<(), StoreError> {
    match undo {
        Undo::Catalog { key, before } => {
            store.catalog.write().set_pending(key, before.clone());
            let CatalogKey::Object(table) = key else { return Ok(()) };
            let catalog = store.catalog.read();
            let Some(CatalogRecord::Object(object)) = catalog.get(id, key) else { return Ok(()) };
            let storage = store.storages.read().get(table).map(Arc::clone);
            match (object.table(), storage) {
                (Some(definition), Some(storage)) => storage.state.write().sync_indexes(definition),
                _ => Ok(()),
            }
        }
        Undo::Inserted { storage, first, count, overwritten } => {
            let mut state = storage.state.write();
            for offset in (0..u64::from(*count)).rev() {
                state.undo_insert(RowId(first.0 + offset), overwritten)?;
            }
            Ok(())
        }
        Undo::Updated { storage, updated } => storage.state.write().undo_update(updated),
        Undo::Deleted { storage, row, was_marked } => storage.state.write().undo_delete(id, *row, *was_marked),
        Undo::Storage { table, before } => {
            let mut storages = store.storages.write();
            match before {
                Some(storage) => storages.insert(*table, Arc::clone(storage)),
                None => storages.remove(table),
            };
            Ok(())
        }
        Undo::Counter { key, before } => {
            let mut counters = store.counters.lock();
            match before {
                Some(last) => counters.values.insert(*key, *last),
                None => counters.values.remove(key),
            };
            counters.dirty.insert(*key);
            Ok(())
        }
    }
}
