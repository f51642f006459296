//! The store: catalog, row storage, locks, counters and the redo log of one server.

use std::path::Path;
use std::sync::Arc;

use super::catalog::{DatabaseId, ObjectId};
use super::error::StoreError;
use super::lock::LockManager;
use super::session::Session;
use super::transaction::Transaction;

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
    /// The log is rewritten as a snapshot when it is longer than this and than twice the live data, in bytes.
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
    /// Reserved pages: whole extents of 8.
    pub reserved_pages: u64,
    /// Used pages: data and allocation map.
    pub used_pages: u64,
    /// Data pages.
    pub data_pages: u64,
}

/// The store of one server.
#[derive(Debug)]
pub struct Store {
    locks: LockManager,
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
        let _ = (folder, options);
        unimplemented!()
    }

    /// A store without a log.
    #[must_use]
    pub fn in_memory() -> Arc<Self> {
        unimplemented!()
    }

    /// Begins a transaction of `session`. It is rolled back when dropped without an end.
    #[must_use]
    pub fn begin(self: &Arc<Self>, session: &Arc<Session>) -> Arc<Transaction> {
        let _ = session;
        unimplemented!()
    }

    /// The lock manager: application locks, `sys.dm_tran_locks`, who blocks whom.
    #[must_use]
    pub fn locks(&self) -> &LockManager {
        &self.locks
    }

    /// A fresh object id, spaced as SQL Server spaces them.
    #[must_use]
    pub fn allocate_object_id(&self) -> ObjectId {
        unimplemented!()
    }

    /// Current value of a counter; none before its first value.
    #[must_use]
    pub fn counter(&self, key: CounterKey) -> Option<i128> {
        let _ = key;
        unimplemented!()
    }

    /// Releases the session's locks and drops its temporary tables. Its transactions have ended before.
    ///
    /// # Errors
    /// Those of dropping the tables.
    pub fn close_session(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), StoreError> {
        let _ = session;
        unimplemented!()
    }

    /// Size of the redo log in bytes, for `sys.database_files` and log space views.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        unimplemented!()
    }

    /// Rewrites the log as a snapshot if no transaction is writing; false if one is.
    ///
    /// # Errors
    /// [`StoreError::LogFailed`].
    pub fn checkpoint(&self) -> Result<bool, StoreError> {
        unimplemented!()
    }
}
