//! Writing the whole state as the log of the next generation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::super::catalog::CatalogRecord;
use super::super::heap::{Page, RowId, RowState, Storage};
use super::super::row::put_varint;
use super::super::store::CounterKey;
use super::frame::put_frame;
use super::operation::{Operation, encode_append_start};
use super::replay::OpenLog;
use super::{COMMIT, PART, file_of};

/// Operations per frame in bytes.
const FRAME_BYTES: usize = 1 << 20;

/// What a snapshot holds; nothing of it is uncommitted.
pub(in super::super) struct SnapshotSource<'a> {
    pub(in super::super) records: Vec<&'a CatalogRecord>,
    pub(in super::super) storages: Vec<Arc<Storage>>,
    pub(in super::super) counters: Vec<(CounterKey, i128)>,
    pub(in super::super) last_object_id: i32,
    /// An id that no other transaction of the store has.
    pub(in super::super) transaction: u64,
}

/// Writes the log of `generation` and returns it ready for appending; the older file is gone then.
pub(in super::super) fn write_snapshot(
    folder: &Path,
    generation: u64,
    source: &SnapshotSource<'_>,
) -> io::Result<OpenLog> {
    let path = file_of(folder, generation);
    let temporary = folder.join(format!("redo-{generation:012}.tmp"));
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&temporary)?;
    let mut out = Output { file, transaction: source.transaction, length: 0, sequence: 0, operations: Vec::new() };
    out.add(&Operation::LastObjectId(source.last_object_id))?;
    for record in &source.records {
        out.add(&Operation::Put(Box::new((*record).clone())))?;
    }
    for (key, last) in &source.counters {
        out.add(&Operation::Counter(*key, Some(*last)))?;
    }
    for storage in &source.storages {
        // Taking the pages by reference count keeps the table's lock for a moment only.
        let pages = storage.state.read().pages().to_vec();
        for (number, page) in (0u32..).zip(&pages) {
            out.add_page(storage, number, page)?;
        }
    }
    out.frame(COMMIT)?;
    out.file.sync_all()?;
    fs::rename(&temporary, &path)?;
    File::open(folder)?.sync_all()?;
    if let Some(old) = generation.checked_sub(1) {
        match fs::remove_file(file_of(folder, old)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(OpenLog { file: out.file, length: out.length, sequence: out.sequence, generation })
}

struct Output {
    file: File,
    transaction: u64,
    length: u64,
    sequence: u64,
    operations: Vec<u8>,
}

impl Output {
    fn add(&mut self, operation: &Operation<'_>) -> io::Result<()> {
        operation.encode(&mut self.operations);
        if self.operations.len() > FRAME_BYTES { self.frame(PART) } else { Ok(()) }
    }

    /// Adds the rows of a page as runs of consecutive slots.
    fn add_page(&mut self, storage: &Storage, number: u32, page: &Page) -> io::Result<()> {
        let is_live = |slot: u32| page.state(slot) != RowState::Gone;
        let mut slot = 0;
        while slot < page.slot_count() {
            let end = (slot..page.slot_count()).find(|slot| !is_live(*slot)).unwrap_or(page.slot_count());
            if end > slot {
                encode_append_start(storage.table, RowId::new(number, slot), end - slot, &mut self.operations);
                for row in (slot..end).filter_map(|slot| page.row(slot)) {
                    put_varint(row.len() as u64, &mut self.operations);
                    self.operations.extend_from_slice(row);
                }
            }
            slot = end + 1;
        }
        if self.operations.len() > FRAME_BYTES { self.frame(PART) } else { Ok(()) }
    }

    fn frame(&mut self, kind: u8) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.operations.len() + 64);
        put_frame(self.sequence, &[&[kind], &self.transaction.to_le_bytes(), &self.operations], &mut bytes);
        self.file.write_all(&bytes)?;
        self.length += bytes.len() as u64;
        self.sequence += 1;
        self.operations.clear();
        Ok(())
    }
}
