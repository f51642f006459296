//! Sessions that outlive their request, by user and id.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::request::Session as Asked;
use crate::clickhouse::engine::EngineError;
use crate::clickhouse::session::Session;

/// The longest time a session may ask to be kept, as `max_session_timeout` of a server.
const KEEP_SECONDS_MAX: u64 = 3600;

struct Kept {
    /// Absent while a request uses it.
    session: Option<Session>,
    expires: Instant,
}

/// The kept sessions of a server.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<(String, String), Kept>>);

impl Sessions {
    /// Takes the session out, or makes it with `open`. It must be given back.
    pub(super) fn take(
        &self,
        user: &str,
        asked: &Asked,
        open: impl FnOnce() -> Result<Session, EngineError>,
    ) -> Result<Session, EngineError> {
        let key = (user.to_owned(), asked.id.clone());
        let mut kept = self.0.lock();
        let now = Instant::now();
        kept.retain(|_, kept| kept.session.is_none() || kept.expires > now);
        if let Some(known) = kept.get_mut(&key) {
            return known.session.take().ok_or_else(|| {
                EngineError::new(
                    373,
                    "SESSION_IS_LOCKED",
                    format!("Session {} is locked by a concurrent client", asked.id),
                )
            });
        }
        if asked.check {
            return Err(EngineError::new(372, "SESSION_NOT_FOUND", format!("Session {} not found", asked.id)));
        }
        let session = open()?;
        kept.insert(key, Kept { session: None, expires: now });
        Ok(session)
    }

    /// Keeps the session until its time is over; `None` forgets it.
    pub(super) fn give_back(&self, user: &str, asked: &Asked, session: Option<Session>) {
        let key = (user.to_owned(), asked.id.clone());
        let mut kept = self.0.lock();
        match session {
            Some(session) => {
                let keep = Duration::from_secs(asked.timeout_seconds.min(KEEP_SECONDS_MAX));
                kept.insert(key, Kept { session: Some(session), expires: Instant::now() + keep });
            }
            None => drop(kept.remove(&key)),
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
