//! What the store knows of a session: how its lock waits behave and how they are cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::lock::Waiter;

/// Session id (`@@SPID`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub i32);

/// Cancels the lock wait of a session; clones share one state.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    state: Arc<CancelState>,
}

#[derive(Debug, Default)]
struct CancelState {
    cancelled: AtomicBool,
    waiter: Mutex<Option<Arc<Waiter>>>,
}

impl CancelToken {
    /// Cancels the present lock wait, or the next one if none is under way.
    pub fn cancel(&self) {
        self.state.cancelled.store(true, Ordering::SeqCst);
        let waiter = self.state.waiter.lock().clone();
        if let Some(waiter) = waiter {
            waiter.cancel();
        }
    }

    /// Forgets a cancel; the session calls it when a request starts.
    pub fn clear(&self) {
        self.state.cancelled.store(false, Ordering::SeqCst);
    }

    /// Whether a cancel is pending.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::SeqCst)
    }

    /// Binds the token to a wait that starts now; a cancel from here on reaches the waiter.
    pub(super) fn attach(&self, waiter: &Arc<Waiter>) {
        *self.state.waiter.lock() = Some(Arc::clone(waiter));
        if self.is_cancelled() {
            waiter.cancel();
        }
    }

    pub(super) fn detach(&self) {
        *self.state.waiter.lock() = None;
    }
}

/// Lock-wait settings of a session, shared by its transactions. A session runs one request at a time.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    /// SET LOCK_TIMEOUT in milliseconds; negative waits for ever, 0 does not wait.
    lock_timeout_ms: AtomicI64,
    /// SET DEADLOCK_PRIORITY, -10 to 10.
    deadlock_priority: AtomicI32,
    cancel: CancelToken,
}

impl Session {
    /// A session with SQL Server's defaults: waits for ever, normal deadlock priority.
    #[must_use]
    pub fn new(id: SessionId) -> Arc<Self> {
        Arc::new(Self {
            id,
            lock_timeout_ms: AtomicI64::new(-1),
            deadlock_priority: AtomicI32::new(0),
            cancel: CancelToken::default(),
        })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// SET LOCK_TIMEOUT: milliseconds, -1 for ever.
    pub fn set_lock_timeout_ms(&self, milliseconds: i64) {
        self.lock_timeout_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// `@@LOCK_TIMEOUT`.
    #[must_use]
    pub fn lock_timeout_ms(&self) -> i64 {
        self.lock_timeout_ms.load(Ordering::Relaxed)
    }

    /// The lock timeout as a wait limit; none waits for ever.
    #[must_use]
    pub fn lock_timeout(&self) -> Option<Duration> {
        u64::try_from(self.lock_timeout_ms()).ok().map(Duration::from_millis)
    }

    /// SET DEADLOCK_PRIORITY: -10 to 10; LOW is -5, HIGH is 5.
    pub fn set_deadlock_priority(&self, priority: i32) {
        self.deadlock_priority.store(priority.clamp(-10, 10), Ordering::Relaxed);
    }

    /// Its deadlock priority.
    #[must_use]
    pub fn deadlock_priority(&self) -> i32 {
        self.deadlock_priority.load(Ordering::Relaxed)
    }

    /// The token that cancels its lock waits.
    #[must_use]
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }
}
