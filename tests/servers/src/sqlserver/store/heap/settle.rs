//! Undoing, settling and rebuilding: what happens to a table's storage after its rows have been changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::catalog::{Index, TableDef};
use super::super::error::StoreError;
use super::super::transaction::TransactionId;
use super::index::IndexKeys;
use super::page::RowState;
use super::storage::{Ghost, Overwritten, TableState, Updated};
use super::{MAX_ROW_BYTES, RowId};

/// Undoing and settling.
impl TableState {
    fn remove_entries(&mut self, row: RowId) -> Result<(), StoreError> {
        let Some(page) = self.pages.get(row.page() as usize) else { return Ok(()) };
        let Some(bytes) = page.row(row.slot()) else { return Ok(()) };
        for index in &mut self.indexes {
            let key = index.key_of(bytes, row)?;
            if index.entries.get(&key) == Some(&row) {
                index.entries.remove(&key);
            }
        }
        Ok(())
    }

    fn add_entries(&mut self, row: RowId) -> Result<(), StoreError> {
        let Some(page) = self.pages.get(row.page() as usize) else { return Ok(()) };
        let Some(bytes) = page.row(row.slot()) else { return Ok(()) };
        for index in &mut self.indexes {
            let key = index.key_of(bytes, row)?;
            index.entries.insert(key, row);
        }
        Ok(())
    }

    fn restore(&mut self, overwritten: &[Overwritten]) {
        for entry in overwritten {
            if let Some(index) = self.indexes.iter_mut().find(|index| index.definition.id == entry.index_id) {
                index.entries.insert(entry.key.clone(), entry.row);
            }
        }
    }

    /// Takes an insert back.
    pub(in super::super) fn undo_insert(&mut self, row: RowId, overwritten: &[Overwritten]) -> Result<(), StoreError> {
        self.remove_entries(row)?;
        self.restore(overwritten);
        if let Some(page) = self.pages.get_mut(row.page() as usize) {
            let page = Arc::make_mut(page);
            page.unmark(row.slot());
            page.remove(row.slot());
            self.rows -= 1;
        }
        Ok(())
    }

    /// Takes an update back.
    pub(in super::super) fn undo_update(&mut self, updated: &Updated) -> Result<(), StoreError> {
        let row = updated.row;
        self.remove_entries(row)?;
        self.restore(&updated.overwritten);
        if let Some(page) = self.pages.get_mut(row.page() as usize) {
            let page = Arc::make_mut(page);
            page.replace(row.slot(), &updated.old);
            if !updated.was_marked {
                page.unmark(row.slot());
            }
        }
        self.add_entries(row)
    }

    /// Takes a deletion back.
    pub(in super::super) fn undo_delete(
        &mut self,
        transaction: TransactionId,
        row: RowId,
        was_marked: bool,
    ) -> Result<(), StoreError> {
        if let Some(page) = self.pages.get_mut(row.page() as usize) {
            let page = Arc::make_mut(page);
            if was_marked {
                page.mark(row.slot(), transaction, false);
            } else {
                page.unmark(row.slot());
            }
            self.rows += 1;
        }
        self.add_entries(row)
    }

    /// Makes the changes of `transaction` on `pages` committed ones.
    pub(in super::super) fn settle(
        &mut self,
        transaction: TransactionId,
        pages: &BTreeSet<u32>,
        ghosts: &[Ghost],
    ) -> Result<(), StoreError> {
        for ghost in ghosts {
            let Some(position) = self.indexes.iter().position(|index| index.definition.id == ghost.index_id) else {
                continue;
            };
            let index = &self.indexes[position];
            let points_here = index.entries.get(&ghost.key) == Some(&ghost.row);
            if points_here && !self.has_key(index, ghost.row, &ghost.key)? {
                self.indexes[position].entries.remove(&ghost.key);
            }
        }
        for number in pages {
            let Some(page) = self.pages.get(*number as usize) else { continue };
            for slot in page.deleted_by(transaction) {
                self.remove_entries(RowId::new(*number, slot))?;
            }
            if let Some(page) = self.pages.get_mut(*number as usize) {
                Arc::make_mut(page).settle(transaction);
            }
        }
        Ok(())
    }

    /// Makes the indexes those of `definition`: keeps what serves, builds what is new, drops the rest.
    pub(in super::super) fn sync_indexes(&mut self, definition: &TableDef) -> Result<(), StoreError> {
        let mut built = Vec::new();
        for index in &definition.indexes {
            let served =
                self.indexes.iter().any(|kept| kept.definition.id == index.id && kept.serves(definition, index));
            if !served {
                built.extend(self.build_index(definition, index)?);
            }
        }
        self.indexes.retain(|kept| {
            definition.indexes.iter().any(|index| index.id == kept.definition.id && kept.serves(definition, index))
        });
        for kept in &mut self.indexes {
            if let Some(index) = definition.indexes.iter().find(|index| index.id == kept.definition.id) {
                kept.definition.clone_from(index);
            }
        }
        self.indexes.extend(built);
        self.indexes.sort_by_key(|index| index.definition.id);
        Ok(())
    }

    fn build_index(&self, definition: &TableDef, index: &Index) -> Result<Option<IndexKeys>, StoreError> {
        let Some(mut built) = IndexKeys::new(definition, index) else { return Ok(None) };
        for (number, page) in (0u32..).zip(&self.pages) {
            for slot in 0..page.slot_count() {
                let (RowState::Committed | RowState::Written(_), Some(bytes)) = (page.state(slot), page.row(slot))
                else {
                    continue;
                };
                let row = RowId::new(number, slot);
                let key = built.key_of(bytes, row)?;
                if built.entries.insert(key, row).is_some() {
                    return Err(self.duplicate(&built, bytes, true));
                }
            }
        }
        Ok(Some(built))
    }
}

/// Log replay: changes without transaction and without indexes, which are built at its end.
impl TableState {
    /// Puts a row at its address.
    pub(in super::super) fn replay_row(&mut self, row: RowId, bytes: &[u8]) -> Option<()> {
        let number = row.page() as usize;
        // A damaged page number must not allocate: a log of this length cannot have skipped so many pages.
        if number > self.pages.len() + (1 << 22) {
            return None;
        }
        while self.pages.len() <= number {
            self.pages.push(Arc::default());
        }
        let page = Arc::make_mut(&mut self.pages[number]);
        let before = page.live();
        page.place(row.slot(), bytes)?;
        self.rows += u64::from(page.live() - before);
        Some(())
    }

    /// Puts a row behind the last one, into storage that nobody else knows yet.
    pub(in super::super) fn replay_push(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let too_large = StoreError::RowTooLarge { limit: MAX_ROW_BYTES };
        if bytes.len() > MAX_ROW_BYTES {
            return Err(too_large);
        }
        let (page, slot) = self.next_address(bytes.len())?;
        self.replay_row(RowId::new(page, slot), bytes).ok_or(too_large)
    }

    /// Removes a row.
    pub(in super::super) fn replay_delete(&mut self, row: RowId) {
        if let Some(page) = self.pages.get_mut(row.page() as usize) {
            let page = Arc::make_mut(page);
            let before = page.live();
            page.remove(row.slot());
            self.rows -= u64::from(before - page.live());
        }
    }

    /// Gives unused capacity back and builds the indexes.
    pub(in super::super) fn finish_replay(&mut self, definition: &TableDef) -> Result<(), StoreError> {
        for page in &mut self.pages {
            Arc::make_mut(page).seal();
        }
        self.sync_indexes(definition)
    }
}
