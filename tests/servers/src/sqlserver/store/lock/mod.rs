//! Lock manager: resources, modes, waiting with first-come-first-served fairness, conversion, deadlock detection.
//!
//! A lock belongs to an [`Owner`] (session or transaction) of a session. Locks of one session never block each
//! other. A session waits for at most one lock at a time, so the wait-for graph has sessions as nodes.

mod applock;
mod manager;
mod mode;
#[cfg(test)]
mod tests;
mod waiter;

use std::sync::Arc;

pub use applock::{AppLockMode, AppLockName, AppLockOwner};
pub use manager::LockManager;
pub use mode::{ALL_MODES, LockMode};
pub(super) use waiter::Waiter;

use super::catalog::{CatalogKey, DatabaseId, ObjectId, SchemaId};
use super::heap::RowId;
use super::session::SessionId;
use super::transaction::TransactionId;

/// What a lock protects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A table or another schema-scoped object.
    Object(ObjectId),
    /// A row of a table.
    Row {
        /// The table.
        table: ObjectId,
        /// The row.
        row: RowId,
    },
    /// The end of a transaction: held exclusively by it, requested by whoever meets one of its uncommitted rows.
    Transaction(TransactionId),
    /// A name in a schema: held exclusively by who creates, renames or drops an object of that name.
    Name {
        /// The database.
        database: DatabaseId,
        /// The schema.
        schema: SchemaId,
        /// The folded name.
        folded_name: Arc<str>,
    },
    /// A catalog record that is not an object.
    Catalog(CatalogKey),
    /// A name of `sp_getapplock`.
    Application(AppLockName),
}

/// Who holds a lock and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Until released or the session ends.
    Session(SessionId),
    /// At the latest when the transaction ends.
    Transaction(TransactionId),
}

/// How a lock was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// At once; the owner held none on the resource before.
    New,
    /// At once, by raising the mode that the owner held before.
    Converted {
        /// That mode.
        from: LockMode,
    },
    /// The owner already held a mode that covers the request; its count was raised.
    AlreadyHeld,
}

/// A granted lock and whether the session had to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// How it was obtained.
    pub granted: Granted,
    /// It was not free at once.
    pub waited: bool,
}

/// Why a lock was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LockFailure {
    /// The timeout passed (1222).
    #[error("lock request time out period exceeded")]
    Timeout,
    /// The session was chosen as deadlock victim (1205). Its transaction has to be rolled back.
    #[error("chosen as the deadlock victim")]
    Deadlock,
    /// The wait was cancelled.
    #[error("the wait was cancelled")]
    Cancelled,
}

impl LockFailure {
    /// SQL Server message number.
    #[must_use]
    pub fn number(self) -> Option<i32> {
        match self {
            Self::Timeout => Some(1222),
            Self::Deadlock => Some(1205),
            Self::Cancelled => None,
        }
    }
}

/// `request_status` of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockStatus {
    /// Held (`GRANT`).
    Granted,
    /// Waiting (`WAIT`).
    Waiting,
    /// Held in a weaker mode and waiting for a stronger one (`CONVERT`).
    Converting,
}

/// One row of `sys.dm_tran_locks`.
#[derive(Debug, Clone)]
pub struct LockInfo {
    /// What is locked.
    pub resource: Resource,
    /// Mode held or asked for.
    pub mode: LockMode,
    /// Held or waiting.
    pub status: LockStatus,
    /// Session.
    pub session: SessionId,
    /// Owner.
    pub owner: Owner,
    /// How many times it is held (`request_reference_count`).
    pub count: u32,
}
