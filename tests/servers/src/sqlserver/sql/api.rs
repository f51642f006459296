//! The interface between the TDS wire and the T-SQL engine.
//!
//! The wire owns sockets, packets and tokens; the engine owns sessions, statements and data.
//! Every call here blocks its thread until the statement ends: the wire gives each session a thread
//! of its own and cancels from another one through [`CancelHandle`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sqlserver::store::CancelToken;
use crate::sqlserver::value::{Collation, SqlType, Value};

/// Settings of an engine that are not part of its data.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Logins created as members of `sysadmin` when the data folder is new, and whose passwords are set at each start.
    pub users: Vec<(String, String)>,
    /// User database created when the data folder is new.
    pub database: String,
    /// `@@SERVERNAME` and `SERVERPROPERTY('ServerName')`.
    pub server_name: String,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { users: Vec::new(), database: "testdb".into(), server_name: "TESTKIT".into() }
    }
}

/// Why an engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The data folder could not be opened or is damaged.
    #[error("testkit.sqlserver.data_folder: {0}")]
    DataFolder(String),
}

/// What LOGIN7 carries.
#[derive(Debug, Clone, Default)]
pub struct LoginRequest {
    /// Login name.
    pub user: String,
    /// Password in clear.
    pub password: String,
    /// Requested database; none means the login's default.
    pub database: Option<String>,
    /// `APP_NAME()`.
    pub app_name: String,
    /// `HOST_NAME()`.
    pub host_name: String,
    /// Client's process id.
    pub client_pid: u32,
    /// Requested language; empty means `us_english`.
    pub language: String,
    /// The whole connection is encrypted.
    pub encrypted: bool,
    /// Negotiated packet size in bytes.
    pub packet_size: u32,
    /// Interface name of the client library (`program`/`client_interface_name`).
    pub client_interface: String,
    /// Peer address without port.
    pub client_address: String,
}

/// An error or an informational message, as the ERROR and INFO tokens carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// Message number.
    pub number: i32,
    /// Severity; above 10 is an error, 20 and above ends the connection.
    pub class: u8,
    /// State.
    pub state: u8,
    /// Text.
    pub message: String,
    /// Name of the procedure or trigger; empty outside one.
    pub procedure: String,
    /// Line within the batch or procedure, from 1; 0 means not yet placed.
    pub line: u32,
}

/// One column of a result set or of a bulk load.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnMeta {
    /// Name; empty for an unnamed expression.
    pub name: String,
    /// Type.
    pub ty: SqlType,
    /// NULL is possible.
    pub nullable: bool,
    /// Identity column of a base table.
    pub identity: bool,
    /// Computed column or expression that cannot be updated.
    pub computed: bool,
    /// Collation of character types.
    pub collation: Option<Collation>,
}

/// Command codes of DONE tokens.
pub mod cmd {
    /// SELECT.
    pub const SELECT: u16 = 0xC1;
    /// INSERT.
    pub const INSERT: u16 = 0xC3;
    /// DELETE.
    pub const DELETE: u16 = 0xC4;
    /// UPDATE.
    pub const UPDATE: u16 = 0xC5;
    /// MERGE.
    pub const MERGE: u16 = 0x117;
    /// Any other statement.
    pub const OTHER: u16 = 0xFD;
}

/// End of one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Rows affected; none with NOCOUNT or where counting has no meaning.
    pub count: Option<u64>,
    /// Command code of [`cmd`].
    pub cmd: u16,
    /// The statement ran inside a procedure, trigger or dynamic batch (DONEINPROC).
    pub in_proc: bool,
    /// The statement failed.
    pub error: bool,
}

/// A change of session state that the client tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvChange {
    /// Current database: new, old.
    Database(String, String),
    /// Language: new, old.
    Language(String, String),
    /// A transaction began; its descriptor.
    BeginTransaction(u64),
    /// The transaction committed; its descriptor.
    CommitTransaction(u64),
    /// The transaction rolled back; its descriptor.
    RollbackTransaction(u64),
    /// The session was reset.
    ResetConnection,
}

/// The client is gone: the statement stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkClosed;

/// Answer of a sink.
pub type SinkResult = Result<(), SinkClosed>;

/// Where a batch writes its results, in wire order.
pub trait BatchSink {
    /// Starts a result set.
    fn columns(&mut self, columns: &[ColumnMeta]) -> SinkResult;
    /// One row of the result set that [`BatchSink::columns`] started.
    fn row(&mut self, values: &[Value]) -> SinkResult;
    /// End of a statement (and of its result set).
    fn done(&mut self, done: Done) -> SinkResult;
    /// An error message.
    fn error(&mut self, error: &SqlError);
    /// An informational message (PRINT, RAISERROR below 11, USE).
    fn info(&mut self, info: &SqlError);
    /// A change of session state.
    fn env_change(&mut self, change: EnvChange);
    /// Return status of a procedure.
    fn return_status(&mut self, status: i32);
    /// Output parameter of a procedure call.
    fn return_value(&mut self, name: &str, column: &ColumnMeta, value: &Value);
}

/// How a request ended. The wire sends the final DONE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEnd {
    /// All statements ran, or an error ended the batch after its ERROR token.
    Finished,
    /// The cancel handle fired; the wire answers with DONE_ATTN.
    Cancelled,
    /// The session cannot go on (severity 20 and above, or the sink closed).
    ConnectionBroken,
}

/// One parameter of an RPC request.
#[derive(Debug, Clone)]
pub struct RpcParam {
    /// Name with its `@`; empty means by position.
    pub name: String,
    /// Declared type on the wire.
    pub ty: SqlType,
    /// Value; [`Value::Null`] when absent.
    pub value: Value,
    /// By reference: its final value is returned.
    pub output: bool,
    /// The default value of the parameter is asked for.
    pub default: bool,
}

/// An RPC request. Procedure ids of MS-TDS are mapped to their names by the wire (`sp_executesql`, ...).
#[derive(Debug, Clone)]
pub struct RpcCall {
    /// Procedure name, one to three parts.
    pub procedure: String,
    /// Parameters in order.
    pub params: Vec<RpcParam>,
}

/// Isolation level of a transaction manager request; the codes of MS-TDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationRequest {
    /// Keep the session's level.
    Current,
    /// READ UNCOMMITTED.
    ReadUncommitted,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
    /// SNAPSHOT.
    Snapshot,
}

/// A transaction manager request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionRequest {
    /// TM_BEGIN_XACT.
    Begin {
        /// Level for the session from here on.
        isolation: IsolationRequest,
        /// Transaction name; may be empty.
        name: String,
    },
    /// TM_COMMIT_XACT; `begin` starts the next one at once.
    Commit {
        /// Start a new transaction after this one.
        begin: bool,
    },
    /// TM_ROLLBACK_XACT; a savepoint name rolls back to it.
    Rollback {
        /// Savepoint or transaction name; empty means the whole transaction.
        name: String,
        /// Start a new transaction after this one.
        begin: bool,
    },
    /// TM_SAVE_XACT.
    Save {
        /// Savepoint name.
        name: String,
    },
}

/// Stops what its session is running; may be used from any thread, also when nothing runs.
#[derive(Clone, Default)]
pub struct CancelHandle {
    flag: Arc<AtomicBool>,
    /// Reaches the lock wait of the session.
    locks: CancelToken,
}

impl CancelHandle {
    pub(crate) fn new(locks: CancelToken) -> Self {
        Self { flag: Arc::default(), locks }
    }

    /// Cancels the running request at its next row, statement or lock wait.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::SeqCst);
        self.locks.cancel();
    }

    /// Whether a cancel is pending.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Forgets a pending cancel. The session does so when a request ends; the wire does when it answers an
    /// attention for which nothing ran.
    pub fn clear(&self) {
        self.flag.store(false, Ordering::SeqCst);
        self.locks.clear();
    }
}
