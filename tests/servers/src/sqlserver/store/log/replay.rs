//! Reading the log back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::super::catalog::state::CatalogState;
use super::super::catalog::{CatalogKey, CatalogRecord, ObjectId, TEMPDB, TableDef};
use super::super::error::StoreError;
use super::super::heap::{RowId, Storage};
use super::super::row::Reader;
use super::super::store::CounterKey;
use super::frame::{HEADER_BYTES, Next, read_frame};
use super::operation::Operation;
use super::{COMMIT, PART, file_of, frame};

const BAD: StoreError = StoreError::BadBytes("redo log");

/// State that the log describes.
#[derive(Debug, Default)]
pub(in super::super) struct Recovered {
    pub(in super::super) catalog: CatalogState,
    pub(in super::super) storages: HashMap<ObjectId, Arc<Storage>>,
    pub(in super::super) counters: BTreeMap<CounterKey, i128>,
    pub(in super::super) last_object_id: Option<i32>,
    pub(in super::super) last_transaction: u64,
}

/// The log file, ready for appending.
#[derive(Debug)]
pub(in super::super) struct OpenLog {
    pub(in super::super) file: File,
    pub(in super::super) length: u64,
    pub(in super::super) sequence: u64,
    pub(in super::super) generation: u64,
}

/// Finds the newest log of `folder`, replays it and cuts its torn end; makes an empty one in a new folder.
pub(in super::super) fn replay(folder: &Path) -> Result<(Recovered, OpenLog), StoreError> {
    let open_failed = |error: io::Error| StoreError::Open { kind: error.kind() };
    let generation = newest_generation(folder).map_err(open_failed)?;
    let path = file_of(folder, generation);
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(open_failed)?;
    let total = file.metadata().map_err(open_failed)?.len();
    let survey = survey(&mut file, total)?;
    let mut recovered = apply(&mut file, &survey)?;
    recovered.last_transaction = survey.last_transaction;
    if survey.length < total {
        file.set_len(survey.length).map_err(open_failed)?;
        file.sync_all().map_err(open_failed)?;
    }
    file.seek(SeekFrom::Start(survey.length)).map_err(open_failed)?;
    let log = OpenLog { file, length: survey.length, sequence: survey.sequence, generation };
    Ok((recovered, log))
}

/// The newest generation; older files and unfinished snapshots are removed.
fn newest_generation(folder: &Path) -> io::Result<u64> {
    let mut generations = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(stem) = name.strip_prefix("redo-") else { continue };
        match stem.strip_suffix(".log").and_then(|number| number.parse::<u64>().ok()) {
            Some(number) => generations.push(number),
            None if stem.ends_with(".tmp") => fs::remove_file(folder.join(name))?,
            None => {}
        }
    }
    let newest = generations.iter().copied().max().unwrap_or(0);
    for old in generations.into_iter().filter(|number| *number != newest) {
        fs::remove_file(file_of(folder, old))?;
    }
    Ok(newest)
}

/// What a first pass over the file finds.
struct Survey {
    committed: HashSet<u64>,
    /// Position after the last commit frame, and the frames before it.
    length: u64,
    sequence: u64,
    last_transaction: u64,
}

fn survey(file: &mut File, total: u64) -> Result<Survey, StoreError> {
    let read_failed = |error: io::Error| StoreError::Open { kind: error.kind() };
    let mut survey = Survey { committed: HashSet::new(), length: 0, sequence: 0, last_transaction: 0 };
    let mut input = BufReader::with_capacity(1 << 20, &mut *file);
    let (mut position, mut sequence) = (0, 0);
    loop {
        match read_frame(&mut input, total - position, sequence).map_err(read_failed)? {
            Next::End => return Ok(survey),
            Next::Frame(payload) => {
                let (kind, transaction, _) = split(&payload)?;
                survey.last_transaction = survey.last_transaction.max(transaction);
                position += (HEADER_BYTES + payload.len()) as u64;
                sequence += 1;
                if kind == COMMIT {
                    survey.committed.insert(transaction);
                    survey.length = position;
                    survey.sequence = sequence;
                }
            }
            Next::Broken => break,
        }
    }
    drop(input);
    let mut rest = Vec::new();
    file.seek(SeekFrom::Start(position)).map_err(read_failed)?;
    file.read_to_end(&mut rest).map_err(read_failed)?;
    if frame::holds_later_frame(&rest, sequence) {
        return Err(StoreError::LogDamaged { offset: position });
    }
    Ok(survey)
}

/// Kind, transaction and operations of a payload.
fn split(payload: &[u8]) -> Result<(u8, u64, &[u8]), StoreError> {
    let mut reader = Reader::new(payload);
    let (kind, transaction) = (reader.u8()?, reader.u64()?);
    if kind != PART && kind != COMMIT {
        return Err(BAD);
    }
    Ok((kind, transaction, reader.rest()))
}

fn apply(file: &mut File, survey: &Survey) -> Result<Recovered, StoreError> {
    let read_failed = |error: io::Error| StoreError::Open { kind: error.kind() };
    file.seek(SeekFrom::Start(0)).map_err(read_failed)?;
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut recovered = Recovered::default();
    let mut position = 0;
    for sequence in 0..survey.sequence {
        let Next::Frame(payload) = read_frame(&mut input, survey.length - position, sequence).map_err(read_failed)?
        else {
            return Err(BAD);
        };
        position += (HEADER_BYTES + payload.len()) as u64;
        let (_, transaction, operations) = split(&payload)?;
        if survey.committed.contains(&transaction) {
            let mut reader = Reader::new(operations);
            while !reader.is_empty() {
                recovered.apply(Operation::decode(&mut reader)?)?;
            }
        }
    }
    recovered.finish()?;
    Ok(recovered)
}

impl Recovered {
    fn apply(&mut self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation {
            Operation::Put(record) => {
                if let CatalogRecord::Object(object) = &*record
                    && object.table().is_some()
                {
                    self.storages.entry(object.id).or_insert_with(|| empty(object.id));
                }
                self.catalog.set_committed(&record.key(), Some(*record));
            }
            Operation::Remove(key) => {
                if let CatalogKey::Object(id) = key {
                    self.storages.remove(&id);
                }
                self.catalog.set_committed(&key, None);
            }
            Operation::NewStorage(table) => {
                self.storages.insert(table, empty(table));
            }
            Operation::Append { table, first, rows } => {
                let mut state = self.storage(table)?.state.write();
                for (offset, bytes) in (0u64..).zip(rows) {
                    let row = RowId(first.0.checked_add(offset).ok_or(BAD)?);
                    state.replay_row(row, bytes).ok_or(BAD)?;
                }
            }
            Operation::Update { table, row, bytes } => {
                self.storage(table)?.state.write().replay_row(row, bytes).ok_or(BAD)?;
            }
            Operation::Delete { table, row } => self.storage(table)?.state.write().replay_delete(row),
            Operation::Counter(key, Some(last)) => {
                self.counters.insert(key, last);
            }
            Operation::Counter(key, None) => {
                self.counters.remove(&key);
            }
            Operation::LastObjectId(id) => self.last_object_id = Some(id),
        }
        Ok(())
    }

    fn storage(&self, table: ObjectId) -> Result<&Arc<Storage>, StoreError> {
        self.storages.get(&table).ok_or(BAD)
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        for record in self.catalog.committed() {
            if let CatalogRecord::Object(object) = record
                && let (Some(definition), Some(storage)) = (object.table(), self.storages.get(&object.id))
            {
                debug_assert_ne!(object.database, TEMPDB, "nothing of tempdb is logged");
                storage.state.write().finish_replay(definition)?;
            }
        }
        Ok(())
    }
}

fn empty(table: ObjectId) -> Arc<Storage> {
    Arc::new(Storage::new(table, &TableDef::default(), true))
}
