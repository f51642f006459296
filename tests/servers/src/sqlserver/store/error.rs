//! What can go wrong in the store, with SQL Server's message number where it has one.

use super::catalog::ObjectId;
use super::lock::LockFailure;
use crate::sqlserver::value::Value;

/// Error of a store operation.
///
/// [`StoreError::number`] gives the SQL Server message number; the T-SQL layer owns the message text
/// that a client sees, because only it knows names and statements.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A lock was not granted.
    #[error("testkit.sqlserver.lock: {0}")]
    Lock(#[from] LockFailure),
    /// A key that must be unique is already there.
    #[error("testkit.sqlserver.duplicate_key: duplicate key in index {index_id} of object {table:?}")]
    DuplicateKey {
        /// Table whose index refused the row.
        table: ObjectId,
        /// `index_id` of that index within the table.
        index_id: i32,
        /// The index belongs to a PRIMARY KEY or UNIQUE constraint (2627), else 2601.
        constraint: bool,
        /// The index was being built over rows that are already there (1505).
        building: bool,
        /// Key values in index order, for the message's `(1, abc)`.
        key: Vec<Value>,
    },
    /// The name is taken in its schema (2714).
    #[error("testkit.sqlserver.name_exists: there is already an object named so in the schema")]
    NameExists,
    /// The object, row or record is not there (any more).
    #[error("testkit.sqlserver.not_found: no such object")]
    NotFound,
    /// The transaction has ended.
    #[error("testkit.sqlserver.transaction_ended: the transaction was committed or rolled back")]
    TransactionEnded,
    /// No savepoint of that name in the transaction (6401).
    #[error("testkit.sqlserver.no_savepoint: no savepoint of that name")]
    NoSavepoint,
    /// Identity or sequence left the range of its type (8115, 11728).
    #[error("testkit.sqlserver.counter_overflow: no further value")]
    CounterOverflow,
    /// A row is larger than the store can hold.
    #[error("testkit.sqlserver.row_too_large: the row has more than {limit} bytes")]
    RowTooLarge {
        /// Largest encoded row in bytes.
        limit: usize,
    },
    /// The redo log could not be written or flushed; whether the last commit is durable is unknown, and the store refuses further commits.
    #[error("testkit.sqlserver.log_failed: the redo log could not be written ({kind:?}); restart the server")]
    LogFailed {
        /// Kind of the I/O error.
        kind: std::io::ErrorKind,
    },
    /// The data folder could not be opened.
    #[error("testkit.sqlserver.data_folder: the data folder could not be opened ({kind:?})")]
    Open {
        /// Kind of the I/O error.
        kind: std::io::ErrorKind,
    },
    /// Another process has the data folder open.
    #[error("testkit.sqlserver.data_folder_in_use: another server uses this data folder")]
    InUse,
    /// The redo log is damaged before its end: committed work would be lost by cutting it there.
    #[error("testkit.sqlserver.log_damaged: the redo log is damaged at byte {offset}, before its end")]
    LogDamaged {
        /// Offset of the first damaged record.
        offset: u64,
    },
    /// Stored bytes do not decode.
    #[error("testkit.sqlserver.bad_bytes: {0}")]
    BadBytes(&'static str),
}

impl StoreError {
    /// SQL Server message number; none where only the T-SQL layer can name it.
    #[must_use]
    pub fn number(&self) -> Option<i32> {
        match self {
            Self::Lock(failure) => failure.number(),
            Self::DuplicateKey { building: true, .. } => Some(1505),
            Self::DuplicateKey { constraint: true, .. } => Some(2627),
            Self::DuplicateKey { .. } => Some(2601),
            Self::NameExists => Some(2714),
            Self::NoSavepoint => Some(6401),
            Self::CounterOverflow => Some(8115),
            Self::RowTooLarge { .. } => Some(511),
            Self::LogFailed { .. } => Some(9001),
            _ => None,
        }
    }
}
