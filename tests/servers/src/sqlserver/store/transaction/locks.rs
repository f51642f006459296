//! Locks of a transaction.

use std::collections::hash_map::Entry;
use std::time::Duration;

use super::super::catalog::ObjectId;
use super::super::error::StoreError;
use super::super::heap::RowId;
use super::super::lock::{LockFailure, LockMode, Owner, Resource};
use super::state::TableLock;
use super::{Hold, Transaction, TransactionId};

/// Row locks on one table in one statement after which the table is locked instead, as in SQL Server.
const ESCALATE_ABOVE: u32 = 5000;
/// Further row locks after which an escalation that failed is tried again.
const ESCALATE_AGAIN: u32 = 1250;

/// Locks.
impl Transaction {
    /// Locks an object; the session's lock timeout, cancel token and deadlock priority apply.
    ///
    /// # Errors
    /// [`StoreError::Lock`].
    pub fn lock_table(&self, table: ObjectId, mode: LockMode, hold: Hold) -> Result<(), StoreError> {
        self.lock_table_within(table, mode, hold, self.session.lock_timeout())
    }

    fn lock_table_within(
        &self,
        table: ObjectId,
        mode: LockMode,
        hold: Hold,
        timeout: Option<Duration>,
    ) -> Result<(), StoreError> {
        {
            let mut state = self.state.lock();
            if state.ended {
                return Err(StoreError::TransactionEnded);
            }
            if let Some(lock) = state.table_locks.get_mut(&table)
                && lock.now.covers(mode)
            {
                if hold == Hold::Transaction {
                    lock.kept = Some(lock.kept.map_or(mode, |kept| kept.combine(mode)));
                }
                return Ok(());
            }
        }
        self.store.locks().acquire(&self.session, self.owner(), Resource::Object(table), mode, timeout)?;
        let kept = (hold == Hold::Transaction).then_some(mode);
        let mut state = self.state.lock();
        match state.table_locks.entry(table) {
            Entry::Vacant(entry) => {
                entry.insert(TableLock { now: mode, kept });
            }
            Entry::Occupied(mut entry) => {
                let lock = entry.get_mut();
                lock.now = lock.now.combine(mode);
                lock.kept = match (lock.kept, kept) {
                    (Some(before), Some(kept)) => Some(before.combine(kept)),
                    (before, kept) => before.or(kept),
                };
            }
        }
        Ok(())
    }

    /// Releases the locks that were taken for the statement, and ends its count towards lock escalation.
    pub fn end_statement(&self) {
        let mut state = self.state.lock();
        state.row_locks.clear();
        let (locks, owner) = (self.store.locks(), self.owner());
        state.table_locks.retain(|table, lock| match lock.kept {
            None => {
                locks.release_fully(owner, &Resource::Object(*table));
                false
            }
            Some(kept) => {
                if kept != lock.now {
                    locks.downgrade(owner, &Resource::Object(*table), kept);
                    lock.now = kept;
                }
                true
            }
        });
    }

    /// Gives the update lock of a row back that [`ReadMode::Update`](super::ReadMode::Update) took and the statement does not need.
    pub fn release_row(&self, table: ObjectId, row: RowId) {
        if self.store.locks().release(self.owner(), &Resource::Row { table, row })
            && let Some(count) = self.state.lock().row_locks.get_mut(&table)
        {
            *count = count.saturating_sub(1);
        }
    }

    /// The mode in which this transaction holds a table.
    pub(super) fn table_mode(&self, table: ObjectId) -> Option<LockMode> {
        self.state.lock().table_locks.get(&table).map(|lock| lock.now)
    }

    /// Locks a resource until the transaction ends.
    pub(super) fn lock_resource(&self, resource: Resource, mode: LockMode) -> Result<(), StoreError> {
        let timeout = self.session.lock_timeout();
        self.store.locks().acquire(&self.session, self.owner(), resource, mode, timeout)?;
        Ok(())
    }

    /// Locks a row unless the table lock says it all; false if `patient` is not set and the row is not free.
    pub(super) fn lock_row(
        &self,
        table: ObjectId,
        row: RowId,
        mode: LockMode,
        patient: bool,
    ) -> Result<bool, StoreError> {
        if self.table_mode(table).is_some_and(|held| table_covers_row(held, mode)) {
            return Ok(true);
        }
        let timeout = if patient { self.session.lock_timeout() } else { Some(Duration::ZERO) };
        let resource = Resource::Row { table, row };
        match self.store.locks().acquire(&self.session, self.owner(), resource, mode, timeout) {
            Ok(_) => {}
            Err(LockFailure::Timeout) if !patient => return Ok(false),
            Err(failure) => return Err(failure.into()),
        }
        let count = {
            let mut state = self.state.lock();
            let count = state.row_locks.entry(table).or_default();
            *count += 1;
            *count
        };
        if count >= ESCALATE_ABOVE && (count - ESCALATE_ABOVE).is_multiple_of(ESCALATE_AGAIN) {
            self.escalate(table, mode)?;
        }
        Ok(true)
    }

    fn escalate(&self, table: ObjectId, row_mode: LockMode) -> Result<(), StoreError> {
        let mode = if row_mode == LockMode::Shared { LockMode::Shared } else { LockMode::Exclusive };
        match self.lock_table_within(table, mode, Hold::Transaction, Some(Duration::ZERO)) {
            // Others use the table: row locks go on.
            Err(StoreError::Lock(LockFailure::Timeout)) => Ok(()),
            outcome => outcome,
        }
    }

    /// Waits until another transaction has ended.
    pub(super) fn wait_for(&self, other: TransactionId) -> Result<(), StoreError> {
        let (locks, resource) = (self.store.locks(), Resource::Transaction(other));
        self.lock_resource(resource.clone(), LockMode::Shared)?;
        locks.release(self.owner(), &resource);
        if locks.mode_held(Owner::Transaction(other), &resource).is_some() {
            // Locks of one session never wait for each other: this session waits for another transaction of its own.
            return Err(LockFailure::Deadlock.into());
        }
        Ok(())
    }
}

/// Whether a table lock makes a row lock of `mode` unnecessary.
fn table_covers_row(held: LockMode, mode: LockMode) -> bool {
    match held {
        LockMode::Exclusive | LockMode::SchemaModification => true,
        LockMode::Update | LockMode::UpdateIntentExclusive => mode != LockMode::Exclusive,
        LockMode::Shared | LockMode::SharedIntentUpdate | LockMode::SharedIntentExclusive => mode == LockMode::Shared,
        _ => false,
    }
}
