//! A ClickHouse server: the native protocol and HTTP, with and without TLS, in front of a real engine.
//!
//! ```text
//!  client ──TLS──> listen ──> tcp ── protocol, frame, native ──┐
//!  client ─HTTPS─> listen ──> http ────────────────────────────┤
//!                                    statement, settings ──> session ──> engine ──> connection ──> ffi ──> libchdb.so (26.7)
//!                                                     control ──KILL QUERY──^               └──> host ─socket─> host.py ──> _chdb (26.9)
//! ```
//!
//! The engine parses, plans and runs every statement; this module moves bytes. What it adds by itself is the hello, accounts,
//! packets, compression, the settings of one query, and cancelling. Where it knows less than a server it refuses with code 48
//! and never guesses: external tables, FORMAT and INTO OUTFILE over the native protocol, blocks of types that only the engine
//! can delimit, protocol revisions outside 54448 to 54453. Query ids are logged and echoed, but the engine keeps its own in
//! `system.processes`. Every session is the engine's user `default`, whatever account connected, and `currentUser()` says so.

pub mod engine;

mod connection;
mod control;
mod ffi;
mod frame;
mod hooks;
mod host;
mod http;
mod listen;
mod meter;
mod native;
mod protocol;
mod query_log;
mod release;
mod session;
mod settings;
mod statement;
mod tcp;
mod totals;
mod types;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use connection::{Connection, Counts, InsertStream, Parameters, QueryResult, Stream};
pub use engine::{Engine, EngineError, EngineVersion, Keeper, StartError};
pub use ffi::LoadError;
pub use listen::Server;
pub use release::EngineRelease;
pub use settings::Accounts;

use hooks::Hooks;
use query_log::{Entry, QueryLog};

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine behind the server.
    pub engine: EngineRelease,
    /// The folder of tables and certificates; made when missing.
    pub data: PathBuf,
    /// Address of the native protocol; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The native protocol without TLS.
    pub plaintext: bool,
    /// Address of HTTP over TLS.
    pub https_listen: Option<SocketAddr>,
    /// Address of HTTP.
    pub http_listen: Option<SocketAddr>,
    /// DNS names and addresses of the certificate.
    pub sans: Vec<String>,
    /// Who may connect.
    pub accounts: Accounts,
    /// File of the query log.
    pub query_log: Option<PathBuf>,
    /// A ClickHouse `users.xml`, for row policies and profiles.
    pub users_config: Option<PathBuf>,
    /// The ZooKeeper of replicated tables.
    pub keeper: Option<Keeper>,
}

/// What all connections of a server share.
struct Shared {
    engine: Arc<Engine>,
    accounts: Accounts,
    query_log: QueryLog,
    hooks: Hooks,
    sessions: http::Sessions,
    connections: AtomicU64,
}

impl Shared {
    /// Logs a query that is about to run, and does what tests want done before it.
    fn announce(&self, entry: &Entry<'_>) -> std::io::Result<()> {
        self.query_log.write(entry)?;
        self.hooks.call(entry.text);
        Ok(())
    }
}
