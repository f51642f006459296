//! Moments of a server that a test sees and holds exactly: before a statement runs, after it ran and before its client
//! knows, after so many rows of a bulk load.
//!
//! A breakpoint is chosen by a piece of the statement's text and by the program name of the session, so the server knows
//! nothing of what its clients are. Without a [`Control`] in its options a server has no breakpoints at all: sessions are
//! then not even wrapped.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a breakpoint looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Batches, procedure calls and transaction manager requests.
    #[default]
    Statement,
    /// Bulk load messages; their text is that of the batch before them (INSERT BULK).
    Bulk,
}

/// The moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// It has arrived and nothing of it was done.
    Before,
    /// It was done, and its answer was not sent.
    After,
    /// So many rows of a bulk load were taken.
    Rows(u64),
}

/// What happens at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The session stands still until it is released; other sessions go on.
    #[default]
    Hold,
    /// The connection ends without an answer; what was not done stays undone.
    DropConnection,
}

/// Where a session is stopped, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakpoint {
    /// Piece of the text; an empty one is in every text.
    pub contains: String,
    /// The text is `contains` and nothing else, apart from spaces around it.
    #[serde(default)]
    pub whole: bool,
    /// Start of the session's program name.
    #[serde(default)]
    pub program: String,
    /// What is looked at.
    #[serde(default)]
    pub on: Unit,
    /// The moment.
    pub when: When,
    /// What happens.
    #[serde(default)]
    pub action: Action,
    /// Which of the matching moments it is, from 1.
    #[serde(default = "first")]
    pub nth: u64,
}

fn first() -> u64 {
    1
}

impl Breakpoint {
    /// Holds the first statement that contains `contains`.
    #[must_use]
    pub fn hold(contains: &str, when: When) -> Self {
        Self {
            contains: contains.to_owned(),
            whole: false,
            program: String::new(),
            on: Unit::Statement,
            when,
            action: Action::Hold,
            nth: 1,
        }
    }

    /// Ends the connection at the first statement that contains `contains`.
    #[must_use]
    pub fn cut(contains: &str, when: When) -> Self {
        Self { action: Action::DropConnection, ..Self::hold(contains, when) }
    }

    /// Only a text that is `contains` and nothing else.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Only sessions whose program name starts with `program`.
    #[must_use]
    pub fn of(self, program: &str) -> Self {
        Self { program: program.to_owned(), ..self }
    }

    /// Bulk loads instead of statements.
    #[must_use]
    pub fn on_bulk(self) -> Self {
        Self { on: Unit::Bulk, ..self }
    }

    /// The `nth` matching moment instead of the first.
    #[must_use]
    pub fn nth(self, nth: u64) -> Self {
        Self { nth, ..self }
    }
}

/// A session has reached a breakpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The breakpoint's id.
    pub hit: u64,
    /// `@@SPID`.
    pub session: u16,
    /// Program name of the session.
    pub program: String,
}

/// How a held session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// As if nothing had happened. If its client is gone meanwhile, a statement that has not begun does not run.
    #[default]
    GoOn,
    /// As [`Action::DropConnection`].
    DropConnection,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// Breakpoints with the number of matching moments so far.
    armed: Vec<(u64, Breakpoint, u64)>,
    /// Held sessions; with a verdict once they are released.
    held: HashMap<u64, Option<Then>>,
    listeners: Vec<UnboundedSender<Hit>>,
    closed: bool,
}

/// The breakpoints of one server.
#[derive(Debug, Default)]
pub struct Control {
    state: Mutex<State>,
    released: Condvar,
}

/// Where a session is.
pub(crate) struct Place<'a> {
    pub(crate) session: u16,
    pub(crate) program: &'a str,
    pub(crate) text: &'a str,
    pub(crate) on: Unit,
    pub(crate) when: When,
}

impl Breakpoint {
    fn matches(&self, place: &Place<'_>) -> bool {
        self.on == place.on
            && self.when == place.when
            && place.program.starts_with(&self.program)
            && if self.whole { place.text.trim() == self.contains } else { place.text.contains(&self.contains) }
    }
}

impl Control {
    /// No breakpoints yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Arms a breakpoint; returns its id.
    pub fn set(&self, breakpoint: Breakpoint) -> u64 {
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.armed.push((id, breakpoint, 0));
        id
    }

    /// Disarms what was not reached.
    pub fn clear(&self) {
        self.state.lock().armed.clear();
    }

    /// Lets a held session go on; false if none is held there.
    pub fn release(&self, id: u64, then: Then) -> bool {
        let mut state = self.state.lock();
        let Some(verdict) = state.held.get_mut(&id) else { return false };
        *verdict = Some(then);
        self.released.notify_all();
        true
    }

    /// Hears of every breakpoint that is reached from now on.
    pub fn listen(&self) -> UnboundedReceiver<Hit> {
        let (sender, receiver) = unbounded_channel();
        self.state.lock().listeners.push(sender);
        receiver
    }

    /// Releases every session and holds none from now on: the server stops.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.armed.clear();
        self.released.notify_all();
    }

    /// A session is at `place`; returns when it may go on. True: its connection ends here.
    pub(crate) fn reach(&self, place: &Place<'_>) -> bool {
        let mut state = self.state.lock();
        let mut reached = None;
        for (id, breakpoint, seen) in &mut state.armed {
            if breakpoint.matches(place) {
                *seen += 1;
                if *seen == breakpoint.nth && reached.is_none() {
                    reached = Some((*id, breakpoint.action));
                }
            }
        }
        let Some((id, action)) = reached else { return false };
        state.armed.retain(|(armed, _, _)| *armed != id);
        if action == Action::Hold {
            state.held.insert(id, None);
        }
        let hit = Hit { hit: id, session: place.session, program: place.program.to_owned() };
        state.listeners.retain(|listener| listener.send(hit.clone()).is_ok());
        if action == Action::DropConnection {
            return true;
        }
        while !state.closed && state.held.get(&id) == Some(&None) {
            self.released.wait(&mut state);
        }
        state.held.remove(&id).flatten() == Some(Then::DropConnection)
    }
}
