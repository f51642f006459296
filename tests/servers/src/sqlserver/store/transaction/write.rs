//! Changing rows.

use std::sync::Arc;

use super::super::catalog::{CatalogKey, CatalogRecord, ObjectId, TableDef};
use super::super::error::StoreError;
use super::super::heap::{Blocked, RowId, Storage};
use super::super::lock::LockMode;
use super::super::log::Operation;
use super::super::row::encode_row;
use super::super::store::CounterKey;
use super::state::Undo;
use super::{Hold, Transaction};
use crate::sqlserver::value::Value;

/// Rows. Values have been converted to their columns' types by the caller.
impl Transaction {
    pub(super) fn open_for_write(&self, table: ObjectId) -> Result<Arc<Storage>, StoreError> {
        // A bulk load under BU must not convert it: BU with an intent lock is X, which parallel loads exclude.
        if self.table_mode(table) != Some(LockMode::BulkUpdate) {
            self.lock_table(table, LockMode::IntentExclusive, Hold::Transaction)?;
        }
        self.ensure_writer()?;
        self.store.storage(table)
    }

    /// Repeats a step until no other transaction stands in its way.
    fn retry<T>(
        &self,
        storage: &Storage,
        mut step: impl FnMut(&mut super::super::heap::TableState) -> Result<T, Blocked>,
    ) -> Result<T, StoreError> {
        loop {
            let outcome = step(&mut storage.state.write());
            match outcome {
                Ok(done) => return Ok(done),
                Err(Blocked::By(other)) => self.wait_for(other)?,
                Err(Blocked::Failed(StoreError::DuplicateKey { index_id, constraint, building, key, .. })) => {
                    let table = storage.table;
                    return Err(StoreError::DuplicateKey { table, index_id, constraint, building, key });
                }
                Err(Blocked::Failed(error)) => return Err(error),
            }
        }
    }

    /// Inserts a row (IX on the table).
    ///
    /// # Errors
    /// [`StoreError::DuplicateKey`], [`StoreError::Lock`], [`StoreError::NotFound`], [`StoreError::RowTooLarge`].
    pub fn insert(&self, table: ObjectId, row: &[Value]) -> Result<RowId, StoreError> {
        let storage = self.open_for_write(table)?;
        let mut bytes = Vec::with_capacity(64);
        encode_row(row, &mut bytes);
        self.insert_encoded(&storage, &bytes)
    }

    pub(super) fn insert_encoded(&self, storage: &Arc<Storage>, bytes: &[u8]) -> Result<RowId, StoreError> {
        let (row, overwritten) = self.retry(storage, |state| state.insert(self.id, bytes))?;
        let mut state = self.state.lock();
        state.inserted(storage, row, overwritten);
        if storage.logged {
            Operation::Append { table: storage.table, first: row, rows: vec![bytes] }.encode(&mut state.redo);
            state.stream(&self.store, self.id)?;
        }
        Ok(row)
    }

    /// Replaces a row (IX on the table, X on the row); false if the row is gone.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn update(&self, table: ObjectId, row: RowId, values: &[Value]) -> Result<bool, StoreError> {
        let mut bytes = Vec::with_capacity(64);
        encode_row(values, &mut bytes);
        Ok(self.update_encoded(table, &[(row, bytes)])? == 1)
    }

    /// Replaces many rows as one statement: keys may be exchanged among them. Returns how many were there.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; none of the rows is changed then.
    pub fn update_many(&self, table: ObjectId, rows: &[(RowId, Vec<Value>)]) -> Result<u64, StoreError> {
        let encoded: Vec<(RowId, Vec<u8>)> = rows
            .iter()
            .map(|(row, values)| {
                let mut bytes = Vec::with_capacity(64);
                encode_row(values, &mut bytes);
                (*row, bytes)
            })
            .collect();
        self.update_encoded(table, &encoded)
    }

    fn update_encoded(&self, table: ObjectId, rows: &[(RowId, Vec<u8>)]) -> Result<u64, StoreError> {
        let storage = self.open_for_write(table)?;
        for (row, _) in rows {
            self.lock_row(table, *row, LockMode::Exclusive, true)?;
        }
        let done = self.retry(&storage, |state| state.update(self.id, rows))?;
        let count = done.len() as u64;
        let mut state = self.state.lock();
        if storage.logged {
            // Rows that were gone are in `rows` but not in `done`; both are in the same order.
            let mut changed = done.iter().map(|updated| updated.row).peekable();
            for (row, bytes) in rows {
                if changed.next_if_eq(row).is_some() {
                    Operation::Update { table, row: *row, bytes }.encode(&mut state.redo);
                }
            }
        }
        for updated in done {
            state.updated(&storage, updated);
        }
        state.stream(&self.store, self.id)?;
        Ok(count)
    }

    /// Deletes a row (IX on the table, X on the row); false if the row is gone.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn delete(&self, table: ObjectId, row: RowId) -> Result<bool, StoreError> {
        let storage = self.open_for_write(table)?;
        self.lock_row(table, row, LockMode::Exclusive, true)?;
        let Some(was_marked) = self.retry(&storage, |state| state.delete(self.id, row))? else { return Ok(false) };
        let mut state = self.state.lock();
        state.deleted(&storage, row, was_marked);
        if storage.logged {
            Operation::Delete { table, row }.encode(&mut state.redo);
            state.stream(&self.store, self.id)?;
        }
        Ok(true)
    }

    /// The definition of a table as this transaction sees it.
    pub(super) fn definition(&self, table: ObjectId) -> Result<TableDef, StoreError> {
        let catalog = self.store.catalog.read();
        match catalog.get(self.id, &CatalogKey::Object(table)) {
            Some(CatalogRecord::Object(object)) => object.table().cloned().ok_or(StoreError::NotFound),
            _ => Err(StoreError::NotFound),
        }
    }

    /// Gives a table other storage.
    pub(super) fn exchange_storage(&self, storage: Arc<Storage>) {
        let table = storage.table;
        let before = self.store.storages.write().insert(table, storage);
        self.state.lock().undo.push(Undo::Storage { table, before });
    }

    /// Deletes all rows at once (Sch-M) and resets the identity counter.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn truncate(&self, table: ObjectId) -> Result<(), StoreError> {
        self.lock_table(table, LockMode::SchemaModification, Hold::Transaction)?;
        self.ensure_writer()?;
        let definition = self.definition(table)?;
        let logged = self.store.storage(table)?.logged;
        self.exchange_storage(Arc::new(Storage::new(table, &definition, logged)));
        if logged {
            Operation::NewStorage(table).encode(&mut self.state.lock().redo);
        }
        if self.store.counter(CounterKey::Identity(table)).is_some() {
            self.set_counter(CounterKey::Identity(table), None);
        }
        Ok(())
    }
}
