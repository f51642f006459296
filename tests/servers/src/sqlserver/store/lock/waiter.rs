//! A session that waits for a lock.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// State of a wait; it leaves `Waiting` once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Waiting,
    Granted,
    Deadlock,
    Cancelled,
}

/// One wait, shared by the waiting thread, the lock table and the cancel token.
#[derive(Debug)]
pub(in crate::sqlserver::store) struct Waiter {
    outcome: Mutex<Outcome>,
    changed: Condvar,
}

impl Waiter {
    pub(super) fn new() -> Self {
        Self { outcome: Mutex::new(Outcome::Waiting), changed: Condvar::new() }
    }

    /// Ends the wait as cancelled unless it has ended.
    pub(in crate::sqlserver::store) fn cancel(&self) {
        self.finish(Outcome::Cancelled);
    }

    /// Ends the wait with `outcome`; false if it had ended before.
    pub(super) fn finish(&self, outcome: Outcome) -> bool {
        let mut state = self.outcome.lock();
        if *state != Outcome::Waiting {
            return false;
        }
        *state = outcome;
        self.changed.notify_all();
        true
    }

    /// Waits until the wait ended or `deadline` passed.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Outcome {
        let mut state = self.outcome.lock();
        while *state == Outcome::Waiting {
            match deadline {
                None => self.changed.wait(&mut state),
                Some(deadline) => {
                    if self.changed.wait_until(&mut state, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        *state
    }

    pub(super) fn outcome(&self) -> Outcome {
        *self.outcome.lock()
    }
}
