//! Transactions: the only way to read and change the store.

mod bulk;
mod catalog;
mod locks;
mod read;
mod state;
mod write;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

pub use bulk::BulkLoad;
pub use read::{RowRef, Scan};
use state::State;

use super::error::StoreError;
use super::lock::{Owner, Resource};
use super::session::Session;
use super::store::Store;

/// Transaction id; never used twice in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId(pub u64);

/// How long a lock is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Until [`Transaction::end_statement`].
    Statement,
    /// Until the transaction ends.
    Transaction,
}

/// How reads treat rows that other transactions have changed or locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Reads uncommitted rows (NOLOCK).
    Dirty,
    /// Waits for the transaction that changed the row (READ COMMITTED).
    Committed,
    /// Passes over rows that another transaction changed (READPAST).
    SkipLocked,
    /// As `Committed`, and keeps a shared lock on each row (REPEATABLE READ).
    Shared,
    /// As `Committed`, and keeps an update lock on each row (UPDATE, DELETE, UPDLOCK).
    Update,
    /// As `Update`, passing over rows that another transaction locked (UPDLOCK, READPAST).
    UpdateSkipLocked,
    /// As `Committed`, and keeps an exclusive lock on each row (XLOCK).
    Exclusive,
}

/// A point inside a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(usize);

/// A transaction. Its methods may be called while scans of it are open; it belongs to one session's thread.
pub struct Transaction {
    id: TransactionId,
    store: Arc<Store>,
    session: Arc<Session>,
    state: Mutex<State>,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("id", &self.id).field("session", &self.session.id()).finish()
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.rollback();
    }
}

/// Identity, ends, marks.
impl Transaction {
    pub(super) fn new(id: TransactionId, store: Arc<Store>, session: Arc<Session>) -> Self {
        Self { id, store, session, state: Mutex::default() }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Its store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn owner(&self) -> Owner {
        Owner::Transaction(self.id)
    }

    /// Makes the changes durable and visible and releases the locks.
    ///
    /// # Errors
    /// [`StoreError::LogFailed`]: the transaction is rolled back here, but its fate is unknown until the store is opened
    /// again; [`StoreError::TransactionEnded`].
    pub fn commit(&self) -> Result<(), StoreError> {
        let (redo, streamed) = {
            let mut state = self.state.lock();
            if state.ended {
                return Err(StoreError::TransactionEnded);
            }
            (std::mem::take(&mut state.redo), state.streamed)
        };
        if let Err(error) = self.store.log_commit(self.id, redo, streamed) {
            self.rollback();
            return Err(error);
        }
        let mut state = std::mem::take(&mut *self.state.lock());
        let settled = state.settle(&self.store, self.id);
        self.state.lock().ended = true;
        self.end(state.writer);
        self.store.compact_if_large();
        settled
    }

    /// Undoes everything and releases the locks. A second call has no effect.
    pub fn rollback(&self) {
        let mut state = std::mem::take(&mut *self.state.lock());
        self.state.lock().ended = true;
        if state.ended {
            return;
        }
        state.undo_to(&self.store, self.id, 0, false);
        self.end(state.writer);
    }

    fn end(&self, writer: bool) {
        if writer {
            self.store.leave_writer();
        }
        self.store.locks().release_owner(self.owner());
    }

    /// Whether it has neither been committed nor rolled back.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.state.lock().ended
    }

    /// Whether it has changed anything (`database_transaction_begin_lsn` and kin).
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.state.lock().undo.is_empty()
    }

    /// SAVE TRANSACTION; a repeated name hides the earlier one.
    pub fn savepoint(&self, name: &str) {
        let mut state = self.state.lock();
        let mark = state.undo.len();
        state.border = mark;
        state.savepoints.push((super::catalog::fold_name(name), mark));
    }

    /// ROLLBACK TRANSACTION to a savepoint, which stays; locks are kept.
    ///
    /// # Errors
    /// [`StoreError::NoSavepoint`].
    pub fn rollback_to(&self, name: &str) -> Result<(), StoreError> {
        let folded = super::catalog::fold_name(name);
        let mark = {
            let mut state = self.state.lock();
            let position =
                state.savepoints.iter().rposition(|(name, _)| *name == folded).ok_or(StoreError::NoSavepoint)?;
            state.savepoints.truncate(position + 1);
            state.savepoints[position].1
        };
        self.rollback_to_mark(Mark(mark));
        Ok(())
    }

    /// The present point, for undoing one statement.
    #[must_use]
    pub fn mark(&self) -> Mark {
        let mut state = self.state.lock();
        state.border = state.undo.len();
        Mark(state.border)
    }

    /// Undoes what happened since `mark`; locks are kept.
    pub fn rollback_to_mark(&self, mark: Mark) {
        let mut state = self.state.lock();
        state.undo_to(&self.store, self.id, mark.0, true);
        state.savepoints.retain(|(_, position)| *position <= mark.0);
    }

    /// Called before the first change: holds the resource on which others wait for this transaction.
    fn ensure_writer(&self) -> Result<(), StoreError> {
        {
            let mut state = self.state.lock();
            if state.ended {
                return Err(StoreError::TransactionEnded);
            }
            if state.writer {
                return Ok(());
            }
            state.writer = true;
        }
        self.store.enter_writer();
        let resource = Resource::Transaction(self.id);
        let mode = super::lock::LockMode::Exclusive;
        self.store.locks().acquire(&self.session, self.owner(), resource, mode, None)?;
        Ok(())
    }
}
