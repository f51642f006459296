//! Stops a session's query from another thread.
//!
//! The engine's own cancel waits for the running call, so a query that produces nothing could not be stopped by it. `KILL
//! QUERY`, sent on the engine's control connection, can: it finds the query by the kernel's id of the session's thread in
//! the engine, which no other query can have. It is sent only while the session is inside the engine on its client's behalf, and the
//! session cannot leave in the meantime, so a late kill never hits the next statement.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::engine::Engine;

/// How long to wait before a kill that found nothing yet is sent again.
const KILL_AGAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
struct State {
    thread_id: i32,
    /// A client's request is being worked on.
    active: bool,
    /// The session's thread is inside the engine.
    in_engine: bool,
    /// The request is to be stopped.
    cancelled: bool,
    /// The client has gone.
    gone: bool,
}

/// Whether a request was stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    No,
    /// The client asked for it, and is told that the request has ended.
    Cancelled,
    /// The client has gone or the server stops: nothing may look like the end of a result.
    Gone,
}

/// The switch of one session.
pub(crate) struct Control {
    engine: Arc<Engine>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Ends the stay in the engine when dropped.
pub(crate) struct InEngine<'a>(&'a Control);

impl Control {
    pub(crate) fn new(engine: Arc<Engine>) -> Arc<Control> {
        Arc::new(Control { engine, state: Mutex::default(), changed: Condvar::new() })
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        let mut state = self.state.lock();
        state.active = true;
        state.cancelled = state.gone;
    }

    /// The request has ended. Says whether it was stopped, and why.
    pub(crate) fn end(&self) -> Stopped {
        let mut state = self.state.lock();
        state.active = false;
        self.changed.notify_all();
        match (state.gone, std::mem::take(&mut state.cancelled)) {
            (true, _) => Stopped::Gone,
            (false, true) => Stopped::Cancelled,
            (false, false) => Stopped::No,
        }
    }

    /// The session goes into the engine: what runs there on the thread `thread_id` is to be stopped.
    pub(crate) fn enter_engine(&self, thread_id: i32) -> InEngine<'_> {
        let mut state = self.state.lock();
        state.in_engine = true;
        state.thread_id = thread_id;
        InEngine(self)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled
    }

    /// Marks the request that is being worked on, if any, as one to be stopped.
    pub(crate) fn mark_cancelled(&self) -> bool {
        let mut state = self.state.lock();
        state.cancelled |= state.active;
        state.active
    }

    /// Stops the request that was marked and waits for its end.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        while state.active {
            if state.in_engine {
                self.engine.kill(state.thread_id);
            }
            self.changed.wait_for(&mut state, KILL_AGAIN);
        }
    }

    /// The client has gone: marks the request, if any, and everything that is begun later.
    pub(crate) fn mark_gone(&self) -> bool {
        self.state.lock().gone = true;
        self.mark_cancelled()
    }
}

impl Drop for InEngine<'_> {
    fn drop(&mut self) {
        self.0.state.lock().in_engine = false;
        self.0.changed.notify_all();
    }
}
