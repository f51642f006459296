//! The engine behind the server: one per process, started on one data folder, with any number of sessions.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::connection::{Connection, Counts};
use super::ffi::{Chdb, LoadError};
use super::host::Host;
use super::release::EngineRelease;

/// Why the engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The library could not be loaded.
    #[error(transparent)]
    Library(#[from] LoadError),
    /// The engine is not in the cache.
    #[error("test_clickhouse.no_engine: the engine {release} is not in the cache; run tests/tools/{}", release.tool())]
    NoEngine {
        /// The engine that was asked for.
        release: EngineRelease,
    },
    /// There is no such engine.
    #[error("test_clickhouse.unknown_engine: there is no engine {0}; it is 26.7 or 26.9")]
    UnknownEngine(String),
    /// A file of the data folder could not be made, or the engine's host not be started.
    #[error("test_clickhouse.io: {0}")]
    Io(#[from] std::io::Error),
    /// The engine refused the data folder or its configuration; its own words are on stderr.
    #[error("test_clickhouse.engine_refused: the engine did not open its data folder")]
    Refused,
    /// The engine answered one of the questions asked at start with an error.
    #[error("test_clickhouse.engine_failed: {0}")]
    Engine(#[from] EngineError),
    /// The certificates could not be made.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
}

/// An error as ClickHouse counts them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Code: {code}. DB::Exception: {message} ({name})")]
pub struct EngineError {
    /// The number, as in `system.errors`.
    pub code: i32,
    /// The name, as in `system.errors`.
    pub name: String,
    /// The message without number and name.
    pub message: String,
}

impl EngineError {
    /// An error that the server itself finds.
    pub fn new(code: i32, name: &str, message: impl Into<String>) -> EngineError {
        EngineError { code, name: name.to_owned(), message: message.into() }
    }

    /// Takes apart the engine's text `Code: N. DB::Exception: MESSAGE (NAME)`, which may end in a version. Text of another
    /// form is ClickHouse's `UNKNOWN_EXCEPTION`, whole.
    pub fn parse(text: &str) -> EngineError {
        let whole = || EngineError::new(1002, "UNKNOWN_EXCEPTION", text);
        let Some((number, rest)) = text.strip_prefix("Code: ").and_then(|rest| rest.split_once(". ")) else {
            return whole();
        };
        let Ok(code) = number.parse() else { return whole() };
        let message = rest.strip_prefix("DB::Exception: ").unwrap_or(rest).trim_end();
        let message = match message.rfind(" (version ") {
            Some(at) if message.ends_with(')') => message[..at].trim_end(),
            _ => message,
        };
        let named = message.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        match named {
            Some((message, name))
                if name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_') =>
            {
                EngineError::new(code, name, message)
            }
            _ => EngineError::new(code, "", message),
        }
    }
}

/// What the engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineVersion {
    /// Major, minor and patch, for example 26, 7, 2.
    pub numbers: [u64; 3],
    /// The whole text, for example `26.7.2.1`.
    pub text: String,
    /// The server's time zone.
    pub timezone: String,
}

/// Where replicated tables coordinate, and as whom.
///
/// The embedded engine registers tables and parts there and reads them, but no replica becomes active: that needs the
/// address under which replicas fetch parts from each other, which only the server program of ClickHouse takes from its
/// configuration (error 139 in the engine's log). So a replicated table stays read-only, and nothing is ever fetched.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// Address of ZooKeeper.
    pub address: SocketAddr,
    /// The macro `{replica}`, and the replica's name where `ATTACH TABLE ... AS REPLICATED` makes a table replicated.
    pub replica: String,
}

/// What opens connections.
enum Opener {
    Library { chdb: &'static Chdb, arguments: Vec<String> },
    Host(Arc<Host>),
}

impl Opener {
    /// Makes the engine of `release` ready for the folder `data`; the first connection opens it.
    fn new(release: EngineRelease, data: &Path, users: &Path, keeper: Option<&Keeper>) -> Result<Opener, StartError> {
        let store = data.join("store");
        std::fs::create_dir_all(&store)?;
        let config = write_config(data, users, keeper)?;
        let program = release.path()?;
        match release {
            EngineRelease::V26_7 => {
                let mut arguments = vec![format!("--path={}", std::fs::canonicalize(&store)?.display())];
                arguments.push(format!("--config-file={}", config.display()));
                arguments.extend(SERVER_DEFAULTS.map(|(name, value)| format!("--{name}={value}")));
                Ok(Opener::Library { chdb: Chdb::load(&program)?, arguments })
            }
            EngineRelease::V26_9 => {
                // Relative to the folder, so that no character of its name is taken for a separator.
                let mut connection = "store?config-file=config.xml".to_owned();
                connection.extend(SERVER_DEFAULTS.map(|(name, value)| format!("&{name}={value}")));
                Ok(Opener::Host(Host::of(&program, data, &connection)?))
            }
        }
    }

    fn connect(&self) -> Result<Connection, EngineError> {
        match self {
            Opener::Library { chdb, arguments } => chdb
                .connect(arguments)
                .map(Connection::from)
                .ok_or_else(|| EngineError::new(210, "NETWORK_ERROR", "the engine refused another session")),
            Opener::Host(host) => host.connect().map(Connection::from).map_err(|text| EngineError::parse(&text)),
        }
    }
}

/// The running engine.
pub struct Engine {
    opener: Opener,
    release: EngineRelease,
    version: EngineVersion,
    settings: HashSet<String>,
    /// Never a client's: kills queries, and keeps the engine up while no client is connected.
    control: Mutex<Connection>,
}

/// Session defaults that the embedded engine sets differently from a server.
const SERVER_DEFAULTS: [(&str, &str); 2] = [("implicit_select", "0"), ("allow_introspection_functions", "0")];

impl Engine {
    /// Starts the engine of `release` on the folder `data`. `users_config` is a ClickHouse `users.xml`;
    /// without it the user `default` may do and see everything. Without a `keeper` there are no replicated tables.
    pub fn start(
        release: EngineRelease,
        data: &Path,
        users_config: Option<&Path>,
        keeper: Option<&Keeper>,
    ) -> Result<Arc<Engine>, StartError> {
        let users = match users_config {
            Some(users) => users.to_owned(),
            None => write_default_users(data)?,
        };
        let opener = Opener::new(release, data, &users, keeper)?;
        let mut control = opener.connect().map_err(|_| StartError::Refused)?;
        let facts = lines(&mut control, "SELECT version(), timezone() FORMAT TSV")?;
        let (text, timezone) = facts.first().and_then(|line| line.split_once('\t')).unwrap_or_default();
        let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
        let mut number = || numbers.next().unwrap_or(0);
        let version = EngineVersion {
            numbers: [number(), number(), number()],
            text: text.to_owned(),
            timezone: timezone.to_owned(),
        };
        let settings = lines(&mut control, "SELECT name FROM system.settings FORMAT TSV")?.into_iter().collect();
        Ok(Arc::new(Engine { opener, release, version, settings, control: Mutex::new(control) }))
    }

    /// The engine's version.
    pub fn version(&self) -> &EngineVersion {
        &self.version
    }

    /// Whether the engine knows a setting of this name.
    pub fn knows_setting(&self, name: &str) -> bool {
        self.settings.contains(name)
    }

    /// Which engine it is.
    pub fn release(&self) -> EngineRelease {
        self.release
    }

    /// A connection with its own session.
    pub fn connect(&self) -> Result<Connection, EngineError> {
        self.opener.connect()
    }

    /// How far the query of the thread `thread_id` has come; `None` when there is none any more.
    pub(super) fn progress(&self, thread_id: i32) -> Option<Counts> {
        let sql = format!(
            "SELECT read_rows, read_bytes, total_rows_approx FROM system.processes WHERE has(thread_ids, {thread_id}) FORMAT TSV"
        );
        let rows = lines(&mut self.control.lock(), &sql).ok()?;
        let mut numbers = rows.first()?.split('\t').map(|number| number.parse().unwrap_or(0));
        Some(Counts {
            read_rows: numbers.next()?,
            read_bytes: numbers.next()?,
            rows_to_read: numbers.next()?,
            ..Counts::default()
        })
    }

    /// Asks the engine to stop whatever the thread `thread_id` (as the kernel counts) runs in it. Says nothing about when.
    pub fn kill(&self, thread_id: i32) {
        let mut control = self.control.lock();
        let sql = format!("KILL QUERY WHERE has(thread_ids, {thread_id}) ASYNC FORMAT Null");
        if let Some(error) = control.query(&sql, "Null", &[]).error() {
            eprintln!("testkit clickhouse: KILL QUERY failed: {error}");
        }
    }
}

/// The first result of `sql`, line by line.
pub(super) fn lines(connection: &mut Connection, sql: &str) -> Result<Vec<String>, EngineError> {
    let result = connection.query(sql, "TSV", &[]);
    match result.error() {
        Some(error) => Err(EngineError::parse(&error)),
        None => Ok(String::from_utf8_lossy(result.data()).lines().map(str::to_owned).collect()),
    }
}

/// The user `default` of a server that its owner set up: it may also look at users, roles and row policies, which the
/// embedded engine does not allow by itself.
const DEFAULT_USERS: &str = "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default>\
    <password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>\
    <access_management>1</access_management></default></users></clickhouse>\n";

fn write_default_users(data: &Path) -> std::io::Result<PathBuf> {
    let path = data.join("users.xml");
    std::fs::write(&path, DEFAULT_USERS)?;
    Ok(path)
}

fn write_config(data: &Path, users: &Path, keeper: Option<&Keeper>) -> std::io::Result<PathBuf> {
    let users = escaped(&std::fs::canonicalize(users)?.display().to_string());
    let keeper = keeper.map(keeper_config).unwrap_or_default();
    let path = data.join("config.xml");
    std::fs::write(&path, format!("<clickhouse><users_config>{users}</users_config>{keeper}</clickhouse>\n"))?;
    std::fs::canonicalize(path)
}

/// A session ends with its connection, so its timeout is long: a machine under load is no reason for an expired one. Each
/// replica has a folder of sessions of its own: a server kills the session that it finds under its UUID as one of an earlier
/// life, and the UUID of every embedded engine is zero.
fn keeper_config(Keeper { address, replica }: &Keeper) -> String {
    let replica = escaped(replica);
    format!(
        "<zookeeper><node><host>{}</host><port>{}</port></node><session_timeout_ms>60000</session_timeout_ms>\
         <sessions_path>/sessions/{replica}</sessions_path></zookeeper><macros><replica>{replica}</replica></macros>\
         <default_replica_path>/tables/{{database}}/{{table}}</default_replica_path>\
         <default_replica_name>{{replica}}</default_replica_name>",
        address.ip(),
        address.port(),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::EngineError;

    #[test]
    fn engine_errors_are_taken_apart() {
        for (text, code, name, message) in [
            ("Code: 60. DB::Exception: No table x (y). (UNKNOWN_TABLE)", 60, "UNKNOWN_TABLE", "No table x (y)."),
            ("Code: 6. DB::Exception: bad (CANNOT_PARSE_TEXT) (version 26.7.2.1)", 6, "CANNOT_PARSE_TEXT", "bad"),
            ("Code: 6. DB::Exception: no name", 6, "", "no name"),
            ("something else", 1002, "UNKNOWN_EXCEPTION", "something else"),
            ("Code: x. y", 1002, "UNKNOWN_EXCEPTION", "Code: x. y"),
        ] {
            assert_eq!(EngineError::parse(text), EngineError::new(code, name, message));
        }
    }
}
