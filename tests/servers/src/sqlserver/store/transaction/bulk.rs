//! Bulk loads.

use std::sync::Arc;

use super::super::catalog::ObjectId;
use super::super::error::StoreError;
use super::super::heap::{MAX_ROW_BYTES, Page, PageBuilder, Storage};
use super::super::log::encode_append_start;
use super::super::row::{encode_row, put_varint};
use super::Transaction;
use crate::sqlserver::value::Value;

/// Rows from which a page joins the table as a page.
const JOIN_FROM_ROWS: u32 = 64;

/// A bulk load into one table. Dropped without [`BulkLoad::finish`], rows not yet joined to the table are lost; those
/// already joined are undone with the statement.
#[derive(Debug)]
pub struct BulkLoad {
    transaction: Arc<Transaction>,
    storage: Arc<Storage>,
    builder: PageBuilder,
    scratch: Vec<u8>,
    rows: u64,
    /// No index: whole pages join the table.
    plain: bool,
}

impl Transaction {
    /// Starts a bulk load: rows are encoded apart and join the table page by page.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn bulk_load(self: &Arc<Self>, table: ObjectId) -> Result<BulkLoad, StoreError> {
        let storage = self.open_for_write(table)?;
        let plain = storage.state.read().is_plain_heap();
        Ok(BulkLoad {
            transaction: Arc::clone(self),
            storage,
            builder: PageBuilder::default(),
            scratch: Vec::with_capacity(256),
            rows: 0,
            plain,
        })
    }
}

impl BulkLoad {
    /// Adds a row.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn push(&mut self, row: &[Value]) -> Result<(), StoreError> {
        self.scratch.clear();
        encode_row(row, &mut self.scratch);
        if self.scratch.len() > MAX_ROW_BYTES {
            return Err(StoreError::RowTooLarge { limit: MAX_ROW_BYTES });
        }
        self.rows += 1;
        if !self.plain {
            self.transaction.insert_encoded(&self.storage, &self.scratch)?;
            return Ok(());
        }
        match self.builder.push(&self.scratch) {
            Some(full) => self.join(full),
            None => Ok(()),
        }
    }

    /// Adds the rest and returns how many rows were added.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn finish(mut self) -> Result<u64, StoreError> {
        if let Some(rest) = self.builder.take() {
            self.join(rest)?;
        }
        Ok(self.rows)
    }

    fn join(&self, page: Page) -> Result<(), StoreError> {
        let transaction = &self.transaction;
        let joined = {
            let mut table = self.storage.state.write();
            // A few rows go into the last page. An index can have appeared only within this very transaction.
            if page.slot_count() >= JOIN_FROM_ROWS && table.is_plain_heap() {
                Ok(table.attach_page(transaction.id, page)?)
            } else {
                Err(page)
            }
        };
        let (first, count) = match joined {
            Ok(joined) => joined,
            Err(page) => {
                for row in (0..page.slot_count()).filter_map(|slot| page.row(slot)) {
                    transaction.insert_encoded(&self.storage, row)?;
                }
                return Ok(());
            }
        };
        let mut state = transaction.state.lock();
        state.inserted_page(&self.storage, first, count);
        if self.storage.logged {
            let table = self.storage.state.read();
            if let Some(page) = table.page(first) {
                encode_append_start(self.storage.table, first, count, &mut state.redo);
                for row in (0..count).filter_map(|slot| page.row(slot)) {
                    put_varint(row.len() as u64, &mut state.redo);
                    state.redo.extend_from_slice(row);
                }
            }
            drop(table);
            state.stream(&transaction.store, transaction.id)?;
        }
        Ok(())
    }
}
