//! The log of queries that tests read: one JSON object a line, written before the query runs.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::json;

/// What is known of a query before it runs. Passwords are not part of it.
pub(crate) struct Entry<'a> {
    /// `native` or `http`.
    pub(crate) interface: &'a str,
    /// Counts the connections of this server from 1.
    pub(crate) connection: u64,
    pub(crate) user: &'a str,
    pub(crate) query_id: &'a str,
    pub(crate) text: &'a str,
    /// Name, value and whether the client calls the setting important.
    pub(crate) settings: &'a [(String, String, bool)],
}

/// The log; without a file it keeps nothing.
#[derive(Default)]
pub(crate) struct QueryLog(Option<Mutex<File>>);

impl QueryLog {
    /// Appends to the file at `path`.
    pub(crate) fn open(path: &Path) -> io::Result<QueryLog> {
        Ok(QueryLog(Some(Mutex::new(File::options().create(true).append(true).open(path)?))))
    }

    pub(crate) fn write(&self, entry: &Entry<'_>) -> io::Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
        let settings: Vec<_> = entry
            .settings
            .iter()
            .map(|(name, value, important)| json!({"name": name, "value": value, "important": important}))
            .collect();
        let mut line = json!({
            "unix_time_us": u64::try_from(time).unwrap_or(u64::MAX),
            "interface": entry.interface,
            "connection": entry.connection,
            "user": entry.user,
            "query_id": entry.query_id,
            "query": entry.text,
            "settings": settings,
        })
        .to_string();
        line.push('\n');
        // One write, so that a reader never sees half a line.
        file.lock().write_all(line.as_bytes())
    }
}
