//! Whose turn it is: the socket's reader and the session's thread agree here on what an attention belongs to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::sql::CancelHandle;

/// What the reader must do about an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttentionFor {
    /// A request runs: it is cancelled, and its answer acknowledges the attention.
    RunningRequest,
    /// Nothing runs: the session acknowledges with a message of its own.
    Nothing,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that were handed over and not answered yet.
    open_requests: usize,
    attention: bool,
}

/// Shared by the two sides of one connection.
#[derive(Default)]
pub(crate) struct Turn {
    state: Mutex<State>,
    cancel: CancelHandle,
}

impl Turn {
    pub(crate) fn new(cancel: CancelHandle) -> Self {
        Self { cancel, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reader hands a request over.
    pub(crate) fn begin(&self) {
        self.state().open_requests += 1;
    }

    /// The reader got an attention.
    pub(crate) fn attention(&self) -> AttentionFor {
        let mut state = self.state();
        if state.open_requests == 0 {
            return AttentionFor::Nothing;
        }
        state.attention = true;
        self.cancel.cancel();
        AttentionFor::RunningRequest
    }

    /// The client is gone: whatever runs must end.
    pub(crate) fn disconnect(&self) {
        self.cancel.cancel();
    }

    /// The session ends a request; true if its answer must acknowledge an attention. From here on an attention belongs
    /// to no request, so the cancel flag that one may have set is cleared in the same step.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        state.open_requests = state.open_requests.saturating_sub(1);
        let attention = std::mem::take(&mut state.attention);
        if attention {
            self.cancel.clear();
        }
        attention
    }
}
