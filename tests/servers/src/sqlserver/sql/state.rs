//! What a session remembers between and during statements.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::api::{BatchSink, CancelHandle, LoginRequest, SqlError};
use super::cursor::Cursor;
use super::engine::Engine;
use super::error::{self, Result};
use super::stmt::{InsertBulk, Stmt};
use crate::sqlserver::store::catalog::{DatabaseId, ObjectId, PrincipalId};
use crate::sqlserver::store::{self, Transaction};
use crate::sqlserver::value::{DateFormat, DateTime2, FunctionContext, SqlType, Value};

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
    Snapshot,
}

impl Isolation {
    /// `transaction_isolation_level` of sys.dm_exec_sessions.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::ReadUncommitted => 1,
            Self::ReadCommitted => 2,
            Self::RepeatableRead => 3,
            Self::Serializable => 4,
            Self::Snapshot => 5,
        }
    }
}

/// SET options.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a SET option of its own")]
pub(crate) struct Settings {
    pub(crate) nocount: bool,
    pub(crate) xact_abort: bool,
    pub(crate) implicit_transactions: bool,
    pub(crate) quoted_identifier: bool,
    pub(crate) ansi_nulls: bool,
    pub(crate) ansi_warnings: bool,
    pub(crate) ansi_padding: bool,
    pub(crate) ansi_null_dflt_on: bool,
    pub(crate) concat_null_yields_null: bool,
    pub(crate) arithabort: bool,
    pub(crate) fmtonly: bool,
    pub(crate) noexec: bool,
    pub(crate) parseonly: bool,
    pub(crate) rowcount: u64,
    pub(crate) textsize: i32,
    pub(crate) date_first: u8,
    pub(crate) date_format: DateFormat,
    pub(crate) language: String,
    pub(crate) lock_timeout_ms: i64,
    pub(crate) deadlock_priority: i32,
    pub(crate) isolation: Isolation,
    pub(crate) identity_insert: Option<ObjectId>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nocount: false,
            xact_abort: false,
            implicit_transactions: false,
            quoted_identifier: true,
            ansi_nulls: true,
            ansi_warnings: true,
            ansi_padding: true,
            ansi_null_dflt_on: true,
            concat_null_yields_null: true,
            arithabort: false,
            fmtonly: false,
            noexec: false,
            parseonly: false,
            rowcount: 0,
            textsize: 2_147_483_647,
            date_first: 7,
            date_format: DateFormat::Mdy,
            language: "us_english".into(),
            lock_timeout_ms: -1,
            deadlock_priority: 0,
            isolation: Isolation::ReadCommitted,
            identity_insert: None,
        }
    }
}

/// A variable or parameter.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) ty: SqlType,
    pub(crate) value: Value,
}

/// Rows of `inserted` and `deleted` for a running trigger.
#[derive(Debug, Clone)]
pub(crate) struct TriggerRows {
    pub(crate) table: ObjectId,
    pub(crate) inserted: Arc<Vec<Vec<Value>>>,
    pub(crate) deleted: Arc<Vec<Vec<Value>>>,
    /// Positions of updated columns.
    pub(crate) updated: Vec<usize>,
}

/// Variables of a batch, procedure or trigger.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) names: HashMap<String, usize>,
    pub(crate) vars: Vec<Variable>,
    /// Table variables: name to temporary object.
    pub(crate) tables: HashMap<String, ObjectId>,
    /// Name of the procedure, function or trigger.
    pub(crate) module: String,
    pub(crate) module_id: i32,
    /// Type of a function's result.
    pub(crate) returns: Option<SqlType>,
    pub(crate) trigger: Option<TriggerRows>,
    /// Temporary tables made here; dropped when a procedure's frame ends.
    pub(crate) temp_tables: Vec<ObjectId>,
}

impl Frame {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(&name.to_lowercase()).copied()
    }

    pub(crate) fn declare(&mut self, name: &str, ty: SqlType, value: Value) {
        match self.find(name) {
            // A DECLARE that runs again (in a loop) keeps the variable.
            Some(at) => self.vars[at].ty = ty,
            None => {
                self.names.insert(name.to_lowercase(), self.vars.len());
                self.vars.push(Variable { ty, value });
            }
        }
    }
}

/// The error that a CATCH block handles.
#[derive(Debug, Clone)]
pub(crate) struct Caught {
    pub(crate) error: SqlError,
}

/// A prepared statement.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) text: Arc<str>,
    pub(crate) params: Vec<super::stmt::Param>,
}

/// Security context: the login and the database user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) login: String,
    pub(crate) login_id: PrincipalId,
    /// EXECUTE AS USER: acts inside this database only.
    pub(crate) user: Option<(DatabaseId, PrincipalId, String)>,
}

/// One session.
pub(crate) struct State {
    pub(crate) engine: Arc<Engine>,
    pub(crate) id: u16,
    pub(crate) login: LoginRequest,
    pub(crate) store_session: Arc<store::Session>,
    pub(crate) cancel: CancelHandle,
    pub(crate) database: DatabaseId,
    pub(crate) database_name: String,
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    /// Contexts that REVERT returns to.
    pub(crate) impersonation: Vec<Identity>,
    pub(crate) txn: Option<Arc<Transaction>>,
    /// Transaction in which table variables live; it ends with each statement.
    pub(crate) variable_txn: Option<Arc<Transaction>>,
    pub(crate) trancount: u32,
    /// Name of the outermost transaction.
    pub(crate) txn_name: String,
    /// Frames of the TRY blocks that are running.
    pub(crate) tries: Vec<usize>,
    /// No TRY of this frame or a deeper one catches the error under way: it was found by the compiler.
    pub(crate) uncatchable: Option<usize>,
    /// The transaction can only be rolled back.
    pub(crate) doomed: bool,
    /// Nesting of data statements that keep an autocommit transaction open (functions, triggers).
    pub(crate) hold: u32,
    pub(crate) frames: Vec<Frame>,
    pub(crate) rowcount: u64,
    pub(crate) error: i32,
    pub(crate) fetch_status: i32,
    pub(crate) identity_value: Option<Value>,
    pub(crate) scope_identity: Vec<Option<Value>>,
    pub(crate) caught: Vec<Caught>,
    pub(crate) context: FunctionContext,
    pub(crate) context_info: Value,
    pub(crate) session_context: HashMap<String, Value>,
    pub(crate) prepared: HashMap<i32, Prepared>,
    pub(crate) next_handle: i32,
    pub(crate) cursors: HashMap<String, Cursor>,
    pub(crate) bulk: Option<InsertBulk>,
    pub(crate) nest_level: u32,
    pub(crate) trigger_depth: u32,
    pub(crate) line: u32,
    /// Parsed module texts by object id and modification time.
    pub(crate) modules: HashMap<(i32, i64), Arc<Stmt>>,
    pub(crate) next_internal: u64,
    /// An aggregate of the statement skipped a NULL (message 8153).
    pub(crate) null_eliminated: bool,
    /// Lent to expressions that put bytes together.
    pub(crate) scratch: Vec<u8>,
}

impl State {
    pub(crate) fn frame(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The transaction of the running statement; an autocommit one begins here.
    pub(crate) fn txn(&mut self) -> Arc<Transaction> {
        if let Some(txn) = &self.txn {
            return Arc::clone(txn);
        }
        let txn = self.engine.store.begin(&self.store_session);
        self.txn = Some(Arc::clone(&txn));
        txn
    }

    /// The transaction of table variables.
    pub(crate) fn variable_txn(&mut self) -> Arc<Transaction> {
        if let Some(txn) = &self.variable_txn {
            return Arc::clone(txn);
        }
        let txn = self.engine.store.begin(&self.store_session);
        self.variable_txn = Some(Arc::clone(&txn));
        txn
    }

    /// Sets the clock that GETDATE and its kin show for one statement.
    pub(crate) fn tick(&mut self) {
        self.context.now_utc = now_utc();
        self.context.date_first = self.settings.date_first;
        self.context.date_format = self.settings.date_format;
    }

    /// A number for names that the server makes up.
    pub(crate) fn internal_number(&mut self) -> u64 {
        self.next_internal += 1;
        self.next_internal
    }
}

/// The present time in UTC.
pub(crate) fn now_utc() -> DateTime2 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ticks = since.as_nanos() / 100;
    let per_day = 864_000_000_000_u128;
    // Days from 0001-01-01 to 1970-01-01.
    let days = i32::try_from(ticks / per_day).unwrap_or(0) + 719_162;
    DateTime2 { days, ticks: u64::try_from(ticks % per_day).unwrap_or(0) }
}

/// A catalog time as `datetime2`.
pub(crate) fn from_micros(micros: i64) -> DateTime2 {
    let per_day = 86_400_000_000;
    let days = i32::try_from(micros.div_euclid(per_day)).unwrap_or(0) + 719_162;
    DateTime2 { days, ticks: u64::try_from(micros.rem_euclid(per_day)).unwrap_or(0) * 10 }
}

/// The present time as catalog records keep it.
pub(crate) fn now_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A catalog time as `datetime`, the type of create_date columns.
pub(crate) fn datetime_from_micros(micros: i64) -> Value {
    let at = from_micros(micros);
    let ticks = u32::try_from(at.ticks * 3 / 100_000).unwrap_or(0);
    Value::DateTime(crate::sqlserver::value::DateTime { days: at.days - 693_595, ticks })
}

pub(crate) fn function_context() -> FunctionContext {
    let mut seed = [0; 8];
    // Without entropy RAND starts from the clock.
    if getrandom::fill(&mut seed).is_err() {
        seed = now_utc().ticks.to_le_bytes();
    }
    FunctionContext {
        now_utc: now_utc(),
        offset_minutes: 0,
        date_first: 7,
        date_format: DateFormat::Mdy,
        random_state: AtomicU64::new(u64::from_le_bytes(seed)),
    }
}

/// State and output of a running statement.
pub(crate) struct Cx<'a> {
    pub(crate) st: &'a mut State,
    pub(crate) out: &'a mut dyn BatchSink,
    /// Rows of enclosing query scopes that correlated subqueries read.
    pub(crate) outer: Vec<Vec<Value>>,
    /// Statements run inside a procedure, trigger or dynamic batch.
    pub(crate) in_proc: bool,
}

impl Cx<'_> {
    /// Stops a cancelled statement.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        if self.st.cancel.is_cancelled() { Err(error::cancelled()) } else { Ok(()) }
    }
}
