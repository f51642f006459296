//! The store: catalog, row storage, locks, counters and the redo log of one server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};

use super::catalog::state::CatalogState;
use super::catalog::{
    CatalogKey, CatalogRecord, DBO_SCHEMA, Database, DatabaseId, MASTER, ObjectId, PrincipalId, Schema, TEMPDB,
    UtcMicros,
};
use super::error::StoreError;
use super::heap::Storage;
use super::lock::{LockManager, Owner};
use super::log::{self, LogWriter, Operation, Recovered, SnapshotSource};
use super::session::Session;
use super::transaction::{Transaction, TransactionId};
use crate::sqlserver::value::Collation;

/// Distance between object ids, as SQL Server spaces them: odd, so that all 2^31 ids come once.
const OBJECT_ID_STEP: i32 = 16_000_057;
/// First object id of a new store.
const FIRST_OBJECT_ID: i32 = 245_575_913;
/// First rowversion of a database.
const FIRST_ROWVERSION: i128 = 2001;
/// `dbo` as owner of its schema.
const DBO_PRINCIPAL: PrincipalId = PrincipalId(1);

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The log is flushed to the device: survives power loss.
    Fsync,
    /// The log is handed to the operating system: survives the death of the process.
    NoSync,
}

/// Options of [`Store::open`].
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// What a commit waits for.
    pub durability: Durability,
    /// The log is rewritten as a snapshot when it is longer than this and than twice the last snapshot, in bytes.
    pub compact_above_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { durability: Durability::Fsync, compact_above_bytes: 256 << 20 }
    }
}

/// A counter that does not take part in rollbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterKey {
    /// Last identity value of a table.
    Identity(ObjectId),
    /// Last value of a sequence.
    Sequence(ObjectId),
    /// Last rowversion of a database (`@@DBTS`).
    RowVersion(DatabaseId),
}

/// Space of a table as `sys.allocation_units` and `sys.dm_db_partition_stats` count it, in 8 KiB pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allocation {
    /// Rows, those of open transactions included.
    pub rows: u64,
    /// Reserved pages: whole extents of 8, and the allocation map.
    pub reserved_pages: u64,
    /// Used pages: data and allocation map.
    pub used_pages: u64,
    /// Data pages.
    pub data_pages: u64,
}

/// Counters, and which of them have changed since they were last logged.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) values: BTreeMap<CounterKey, i128>,
    pub(super) dirty: BTreeSet<CounterKey>,
}

/// Keeps snapshots and writing transactions apart.
#[derive(Debug, Default)]
struct Gate {
    writers: usize,
    generation: u64,
}

/// The files of a store.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
    log: LogWriter,
    options: StoreOptions,
    /// Length of the log when it held nothing but the state.
    baseline: AtomicU64,
    /// Holds the operating system's lock on the folder.
    lock: File,
}

impl Drop for Files {
    /// A child process that is just being started holds a copy of the descriptor, so closing ours would not be enough.
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            eprintln!("the data folder was not unlocked: {error}");
        }
    }
}

/// The store of one server.
#[derive(Debug)]
pub struct Store {
    locks: LockManager,
    pub(super) catalog: RwLock<CatalogState>,
    pub(super) storages: RwLock<HashMap<ObjectId, Arc<Storage>>>,
    pub(super) counters: Mutex<Counters>,
    last_object_id: AtomicI32,
    next_transaction: AtomicU64,
    gate: Mutex<Gate>,
    files: Option<Files>,
}

impl Store {
    /// Opens or creates the store in `folder` and replays its redo log.
    ///
    /// A torn tail is cut after the last whole committed transaction. A new store has the databases `master` and
    /// `tempdb` with schema `dbo` and no principals.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::InUse`], [`StoreError::LogDamaged`], [`StoreError::BadBytes`].
    pub fn open(folder: &Path, options: StoreOptions) -> Result<Arc<Self>, StoreError> {
        let open_failed = |error: io::Error| StoreError::Open { kind: error.kind() };
        fs::create_dir_all(folder).map_err(open_failed)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join("lock"))
            .map_err(open_failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse),
            Err(TryLockError::Error(error)) => return Err(open_failed(error)),
        }
        let (recovered, log) = log::replay(folder)?;
        File::open(folder).and_then(|it| it.sync_all()).map_err(open_failed)?;
        let generation = log.generation;
        let files = Files {
            folder: folder.to_owned(),
            log: LogWriter::new(log.file, log.length, log.sequence, options.durability),
            options,
            baseline: AtomicU64::new(0),
            lock,
        };
        Ok(Arc::new(Self::with(recovered, Some(files), generation)))
    }

    /// A store without a log.
    #[must_use]
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Self::with(Recovered::default(), None, 0))
    }

    fn with(recovered: Recovered, files: Option<Files>, generation: u64) -> Self {
        let mut catalog = recovered.catalog;
        for record in system_records() {
            let key = record.key();
            if catalog.get(TransactionId(0), &key).is_none() {
                catalog.set_committed(&key, Some(record));
            }
        }
        Self {
            locks: LockManager::default(),
            catalog: RwLock::new(catalog),
            storages: RwLock::new(recovered.storages),
            counters: Mutex::new(Counters { values: recovered.counters, dirty: BTreeSet::new() }),
            last_object_id: AtomicI32::new(recovered.last_object_id.unwrap_or(FIRST_OBJECT_ID - OBJECT_ID_STEP)),
            next_transaction: AtomicU64::new(recovered.last_transaction + 1),
            gate: Mutex::new(Gate { writers: 0, generation }),
            files,
        }
    }

    /// Begins a transaction of `session`. It is rolled back when dropped without an end.
    ///
    /// A session has one transaction at a time that changes or locks anything.
    #[must_use]
    pub fn begin(self: &Arc<Self>, session: &Arc<Session>) -> Arc<Transaction> {
        let id = TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed));
        Arc::new(Transaction::new(id, Arc::clone(self), Arc::clone(session)))
    }

    /// The lock manager: application locks, `sys.dm_tran_locks`, who blocks whom.
    #[must_use]
    pub fn locks(&self) -> &LockManager {
        &self.locks
    }

    /// A fresh object id, spaced as SQL Server spaces them.
    #[must_use]
    pub fn allocate_object_id(&self) -> ObjectId {
        let next = |last: i32| last.wrapping_add(OBJECT_ID_STEP) & i32::MAX;
        loop {
            let last = self.last_object_id.load(Ordering::Relaxed);
            let id = next(last);
            let taken = self.last_object_id.compare_exchange(last, id, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            // Small ids belong to SQL Server's system objects.
            if taken && id > 100_000 {
                return ObjectId(id);
            }
        }
    }

    pub(super) fn last_object_id(&self) -> i32 {
        self.last_object_id.load(Ordering::Relaxed)
    }

    /// Current value of a counter; none before its first value.
    #[must_use]
    pub fn counter(&self, key: CounterKey) -> Option<i128> {
        self.counters.lock().values.get(&key).copied()
    }

    /// Releases the session's locks and drops its temporary tables. Its transactions have ended before.
    ///
    /// # Errors
    /// Those of dropping the tables.
    pub fn close_session(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), StoreError> {
        session.cancel_token().clear();
        session.set_lock_timeout_ms(-1);
        let transaction = self.begin(session);
        for object in transaction.objects(TEMPDB) {
            if object.session == Some(session.id().0) {
                transaction.remove(&CatalogKey::Object(object.id))?;
            }
        }
        transaction.commit()?;
        self.locks.release_owner(Owner::Session(session.id()));
        Ok(())
    }

    /// Size of the redo log in bytes, for `sys.database_files` and log space views; 0 without a log.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.files.as_ref().map_or(0, |files| files.log.length())
    }

    /// Memory of all tables' pages in bytes, unused capacity included.
    #[must_use]
    pub fn page_memory_bytes(&self) -> usize {
        self.storages.read().values().map(|storage| storage.state.read().page_memory()).sum()
    }

    /// Rewrites the log as a snapshot if no transaction is writing; false if one is, or if there is no log.
    ///
    /// # Errors
    /// [`StoreError::LogFailed`]; the old log stays in use.
    pub fn checkpoint(&self) -> Result<bool, StoreError> {
        let Some(files) = &self.files else { return Ok(false) };
        // Held to the end: no transaction starts to write meanwhile.
        let mut gate = self.gate.lock();
        if gate.writers > 0 {
            return Ok(false);
        }
        let catalog = self.catalog.read();
        let mut counters = self.counters.lock();
        let mut storages: Vec<_> =
            self.storages.read().values().filter(|storage| storage.logged).map(Arc::clone).collect();
        storages.sort_by_key(|storage| storage.table);
        let source = SnapshotSource {
            records: catalog.committed().filter(|record| is_logged(record)).collect(),
            storages,
            counters: counters.values.iter().map(|(key, last)| (*key, *last)).collect(),
            last_object_id: self.last_object_id(),
            transaction: self.next_transaction.fetch_add(1, Ordering::Relaxed),
        };
        let log = log::write_snapshot(&files.folder, gate.generation + 1, &source)
            .map_err(|error| StoreError::LogFailed { kind: error.kind() })?;
        counters.dirty.clear();
        gate.generation = log.generation;
        files.baseline.store(log.length, Ordering::Relaxed);
        files.log.replace(log.file, log.length, log.sequence);
        Ok(true)
    }

    /// Ends the use of the store: rewrites the log if that makes it much shorter.
    ///
    /// # Errors
    /// [`StoreError::LogFailed`].
    pub fn close(&self) -> Result<(), StoreError> {
        let live: usize = {
            let storages = self.storages.read();
            storages.values().filter(|it| it.logged).map(|it| it.state.read().live_bytes()).sum()
        };
        if self.log_bytes() > (1 << 20) + 2 * live as u64 {
            self.checkpoint()?;
        }
        Ok(())
    }
}

/// For transactions.
impl Store {
    /// A transaction is about to write for the first time.
    pub(super) fn enter_writer(&self) {
        self.gate.lock().writers += 1;
    }

    /// A writing transaction has ended.
    pub(super) fn leave_writer(&self) {
        self.gate.lock().writers -= 1;
    }

    /// Adds a part of a transaction to the log.
    pub(super) fn log_part(&self, transaction: TransactionId, operations: &[u8]) -> Result<(), StoreError> {
        self.files.as_ref().map_or(Ok(()), |files| files.log.append_part(transaction.0, operations))
    }

    /// Logs the end of a transaction with the counters that have changed, and waits until it is durable.
    pub(super) fn log_commit(
        &self,
        transaction: TransactionId,
        mut operations: Vec<u8>,
        streamed: bool,
    ) -> Result<(), StoreError> {
        let Some(files) = &self.files else {
            self.counters.lock().dirty.clear();
            return Ok(());
        };
        let position = {
            // Counter values reach the log in the order in which they were taken.
            let mut counters = self.counters.lock();
            for key in std::mem::take(&mut counters.dirty) {
                Operation::Counter(key, counters.values.get(&key).copied()).encode(&mut operations);
            }
            if operations.is_empty() && !streamed {
                return Ok(());
            }
            files.log.append_commit(transaction.0, &operations)
        };
        files.log.flush(position)
    }

    /// Rewrites the log when it has grown enough. If that fails, the old log goes on and is tried again when it has doubled.
    pub(super) fn compact_if_large(&self) {
        let Some(files) = &self.files else { return };
        let length = files.log.length();
        let limit = files.options.compact_above_bytes.max(2 * files.baseline.load(Ordering::Relaxed));
        if length > limit
            && let Err(error) = self.checkpoint()
        {
            files.baseline.store(length, Ordering::Relaxed);
            eprintln!("the redo log was not compacted: {error}");
        }
    }

    pub(super) fn storage(&self, table: ObjectId) -> Result<Arc<Storage>, StoreError> {
        self.storages.read().get(&table).map(Arc::clone).ok_or(StoreError::NotFound)
    }

    pub(super) fn next_rowversion(&self, database: DatabaseId) -> u64 {
        let key = CounterKey::RowVersion(database);
        let mut counters = self.counters.lock();
        let next = counters.values.get(&key).map_or(FIRST_ROWVERSION, |last| last + 1);
        counters.values.insert(key, next);
        if database != TEMPDB {
            counters.dirty.insert(key);
        }
        u64::try_from(next).unwrap_or(u64::MAX)
    }
}

/// Whether a record goes to the log: those of `tempdb` end with the server.
pub(super) fn is_logged(record: &CatalogRecord) -> bool {
    use super::catalog::Scope;
    let database = match record {
        CatalogRecord::Database(it) => it.id,
        CatalogRecord::Schema(it) => it.database,
        CatalogRecord::Object(it) => it.database,
        CatalogRecord::Property(it) => it.key.database,
        CatalogRecord::Principal(_)
        | CatalogRecord::Membership(_)
        | CatalogRecord::Permission(_)
        | CatalogRecord::Setting(_) => {
            let scope = match record {
                CatalogRecord::Principal(it) => it.scope,
                CatalogRecord::Membership(it) => it.scope,
                CatalogRecord::Permission(it) => it.key.scope,
                CatalogRecord::Setting(it) => it.scope,
                _ => Scope::Server,
            };
            match scope {
                Scope::Server => return true,
                Scope::Database(database) => database,
            }
        }
    };
    database != TEMPDB
}

/// Microseconds since 1970-01-01 UTC.
#[must_use]
pub fn utc_now() -> UtcMicros {
    // A clock before 1970 is a broken machine; the epoch then stands for it.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// What every store has.
fn system_records() -> Vec<CatalogRecord> {
    let mut records = Vec::new();
    for (id, name) in [(MASTER, "master"), (TEMPDB, "tempdb")] {
        let collation = Collation::DEFAULT.name();
        records.push(Database { id, name: name.to_owned(), collation, create_date: utc_now() }.into());
        records.push(Schema { database: id, id: DBO_SCHEMA, name: "dbo".to_owned(), owner: DBO_PRINCIPAL }.into());
    }
    records
}
