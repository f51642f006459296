//! The server and its sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, EngineError, EngineOptions, EnvChange, IsolationRequest,
    LoginRequest, RpcCall, SqlError, TransactionRequest,
};
use super::bulk::Load;
use super::error::{self, BATCH_ABORTED, CANCELLED, CLOSED, Result};
use super::exec::{self, Argument, ProcedureCall};
use super::principal::{self, SYSADMIN, hash_password, new_sid, password_fits, record, salt};
use super::state::{Cx, Frame, Identity, Isolation, Settings, State, function_context, now_micros};
use super::stmt::NameOrVar;
use crate::sqlserver::store::catalog::{DatabaseId, MASTER, Membership, PrincipalKind, Scope, TEMPDB};
use crate::sqlserver::store::{self, SessionId, Store, StoreOptions};
use crate::sqlserver::value::{SqlType, Value};

/// First session id of a client; lower ones belong to the server.
const FIRST_SESSION: i32 = 51;

/// What other sessions see of one.
#[derive(Debug, Clone)]
pub(crate) struct SessionInfo {
    pub(crate) id: u16,
    pub(crate) login_time: i64,
    pub(crate) host_name: String,
    pub(crate) program_name: String,
    pub(crate) client_interface: String,
    pub(crate) client_address: String,
    pub(crate) client_pid: u32,
    pub(crate) login_name: String,
    pub(crate) original_login: String,
    pub(crate) encrypted: bool,
    pub(crate) packet_size: u32,
    pub(crate) database: DatabaseId,
    pub(crate) isolation: i16,
    pub(crate) lock_timeout: i32,
    pub(crate) transactions: u32,
    pub(crate) transaction_id: u64,
    pub(crate) running: bool,
}

struct Registered {
    info: SessionInfo,
    cancel: CancelHandle,
}

/// The server: data, sessions and settings.
pub struct Engine {
    pub(crate) options: EngineOptions,
    pub(crate) store: Arc<Store>,
    pub(crate) started: i64,
    folder: PathBuf,
    next_session: AtomicI32,
    sessions: Mutex<HashMap<u16, Registered>>,
}

/// Total and available bytes of the volume of the data folder.
pub(crate) fn volume_bytes(engine: &Engine) -> (u64, u64) {
    super::volume::bytes(&engine.folder).unwrap_or((0, 0))
}

/// The data folder as catalog views show it.
pub(crate) fn folder(engine: &Engine) -> String {
    engine.folder.display().to_string()
}

fn start_error(e: impl std::fmt::Display) -> EngineError {
    EngineError::DataFolder(e.to_string())
}

impl Engine {
    /// Opens the data folder, creating it when it is empty.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(data_dir: &Path, options: EngineOptions) -> std::result::Result<Arc<Self>, EngineError> {
        let store = Store::open(data_dir, StoreOptions::default()).map_err(start_error)?;
        Self::start(store, data_dir, options)
    }

    /// An engine whose data is gone with it, for tests.
    ///
    /// # Errors
    /// The first databases cannot be made.
    pub fn in_memory(options: EngineOptions) -> std::result::Result<Arc<Self>, EngineError> {
        Self::start(Store::in_memory(), Path::new("/"), options)
    }

    fn start(store: Arc<Store>, folder: &Path, options: EngineOptions) -> std::result::Result<Arc<Self>, EngineError> {
        let session = store::Session::new(SessionId(1));
        let txn = store.begin(&session);
        if txn.principals(Scope::Server).is_empty() {
            principal::server_principals(&txn).map_err(start_error)?;
            principal::database_principals(&txn, MASTER).map_err(start_error)?;
            principal::database_principals(&txn, TEMPDB).map_err(start_error)?;
            for (id, name) in [(3, "model"), (4, "msdb")] {
                principal::new_database(&txn, DatabaseId(id), name).map_err(start_error)?;
            }
        } else if txn.principals(Scope::Database(TEMPDB)).is_empty() {
            principal::database_principals(&txn, TEMPDB).map_err(start_error)?;
        }
        if txn.find_database(&options.database).is_none() {
            let id = txn.databases().iter().map(|d| d.id.0).max().unwrap_or(4).max(4) + 1;
            principal::new_database(&txn, DatabaseId(id), &options.database).map_err(start_error)?;
        }
        for (name, password) in &options.users {
            let found = principal::find(&txn, Scope::Server, name);
            let mut row = match found {
                Some(found) => (*found).clone(),
                None => {
                    let next = txn.principals(Scope::Server).iter().map(|p| p.id.0).max().unwrap_or(0).max(256) + 1;
                    let mut row = record(Scope::Server, next, name, PrincipalKind::Sql, false);
                    row.sid = new_sid();
                    row.default_database = Some(options.database.clone());
                    row
                }
            };
            row.disabled = false;
            let known = row.password_hash.as_deref().is_some_and(|h| password_fits(password, h));
            if !known {
                row.password_hash = Some(hash_password(password, &salt()));
            }
            let id = row.id;
            txn.put(row).map_err(start_error)?;
            txn.put(Membership { scope: Scope::Server, role: SYSADMIN, member: id }).map_err(start_error)?;
        }
        txn.commit().map_err(start_error)?;
        Ok(Arc::new(Self {
            options,
            store,
            started: now_micros(),
            folder: folder.to_owned(),
            next_session: AtomicI32::new(FIRST_SESSION),
            sessions: Mutex::new(HashMap::new()),
        }))
    }

    fn registry(&self) -> MutexGuard<'_, HashMap<u16, Registered>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sessions in order of their ids.
    pub(crate) fn sessions(&self) -> Vec<SessionInfo> {
        let mut found: Vec<SessionInfo> = self.registry().values().map(|r| r.info.clone()).collect();
        found.sort_by_key(|s| s.id);
        found
    }

    /// Cancels what a session runs; false if there is no such session.
    pub(crate) fn kill(&self, id: u16) -> bool {
        match self.registry().get(&id) {
            Some(found) => {
                found.cancel.cancel();
                true
            }
            None => false,
        }
    }

    /// Refreshes what other sessions see of one.
    pub(crate) fn note(&self, state: &State) {
        if let Some(found) = self.registry().get_mut(&state.id) {
            found.info.database = state.database;
            found.info.isolation = state.settings.isolation.code();
            found.info.lock_timeout = i32::try_from(state.settings.lock_timeout_ms).unwrap_or(i32::MAX);
            found.info.transactions = state.trancount;
            found.info.transaction_id = state.txn.as_ref().map_or(0, |t| t.id().0);
            found.info.login_name.clone_from(&state.identity.login);
        }
    }

    fn set_running(&self, id: u16, running: bool) {
        if let Some(found) = self.registry().get_mut(&id) {
            found.info.running = running;
        }
    }

    fn free_id(&self) -> i32 {
        loop {
            let id = self.next_session.fetch_add(1, Ordering::Relaxed);
            if id > 32_000 {
                self.next_session.store(FIRST_SESSION, Ordering::Relaxed);
            }
            let taken = u16::try_from(id).is_ok_and(|id| self.registry().contains_key(&id));
            if !taken {
                return id;
            }
        }
    }

    /// Checks a login and starts its session.
    ///
    /// # Errors
    /// 18456 for a wrong name or password, 4060 for a database that cannot be opened.
    #[allow(clippy::too_many_lines, reason = "most lines are the first values of a session's fields")]
    pub fn login(self: &Arc<Self>, request: &LoginRequest) -> std::result::Result<Session, SqlError> {
        let id = self.free_id();
        let store_session = store::Session::new(SessionId(id));
        let txn = self.store.begin(&store_session);
        let found = principal::find(&txn, Scope::Server, &request.user);
        let fits = |hash: &Vec<u8>| password_fits(&request.password, hash);
        let login =
            found.filter(|p| p.kind == PrincipalKind::Sql && !p.disabled && p.password_hash.as_ref().is_some_and(fits));
        let Some(login) = login else {
            return Err(error::new(18456, 14, 1, &format!("Login failed for user '{}'.", request.user)).at_line(1));
        };
        let wanted = request.database.clone().filter(|d| !d.is_empty());
        let asked = wanted.clone().or_else(|| login.default_database.clone()).unwrap_or_else(|| "master".into());
        let database = txn.find_database(&asked);
        txn.rollback();
        let refused = || {
            error::new(
                4060,
                11,
                1,
                &format!("Cannot open database \"{asked}\" requested by the login. The login failed."),
            )
            .at_line(1)
        };
        let Some(database) = database else { return Err(refused()) };
        let id = u16::try_from(id).map_err(|_| {
            error::new(
                17809,
                20,
                3,
                "Could not connect because the maximum number of user connections has been reached.",
            )
        })?;
        let cancel = CancelHandle::new(store_session.cancel_token().clone());
        let state = State {
            engine: Arc::clone(self),
            id,
            login: request.clone(),
            store_session,
            cancel: cancel.clone(),
            database: database.id,
            database_name: database.name.clone(),
            settings: Settings::default(),
            identity: Identity { login: login.name.clone(), login_id: login.id, user: None },
            impersonation: Vec::new(),
            txn: None,
            variable_txn: None,
            trancount: 0,
            txn_name: String::new(),
            tries: Vec::new(),
            uncatchable: None,
            doomed: false,
            hold: 0,
            frames: vec![Frame::default()],
            rowcount: 0,
            error: 0,
            fetch_status: 0,
            identity_value: None,
            scope_identity: vec![None],
            caught: Vec::new(),
            context: function_context(),
            context_info: Value::Null,
            session_context: HashMap::new(),
            prepared: HashMap::new(),
            next_handle: 0,
            cursors: HashMap::new(),
            bulk: None,
            nest_level: 0,
            trigger_depth: 0,
            line: 1,
            modules: HashMap::new(),
            next_internal: 0,
            null_eliminated: false,
            scratch: Vec::new(),
        };
        let mut session = Session { state, cancel: cancel.clone() };
        let mut sink = Discard;
        let mut cx = session.context(&mut sink);
        let user = principal::user_in(&mut cx, database.id);
        exec::discard_idle(&mut cx);
        if user.is_none() {
            return Err(refused());
        }
        let info = SessionInfo {
            id,
            login_time: now_micros(),
            host_name: request.host_name.clone(),
            program_name: request.app_name.clone(),
            client_interface: request.client_interface.clone(),
            client_address: request.client_address.clone(),
            client_pid: request.client_pid,
            login_name: login.name.clone(),
            original_login: login.name.clone(),
            encrypted: request.encrypted,
            packet_size: request.packet_size,
            database: database.id,
            isolation: Isolation::ReadCommitted.code(),
            lock_timeout: -1,
            transactions: 0,
            transaction_id: 0,
            running: false,
        };
        self.registry().insert(id, Registered { info, cancel });
        Ok(session)
    }
}

/// A sink for work whose messages nobody reads.
struct Discard;

impl BatchSink for Discard {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> super::api::SinkResult {
        Ok(())
    }
    fn row(&mut self, _values: &[Value]) -> super::api::SinkResult {
        Ok(())
    }
    fn done(&mut self, _done: super::api::Done) -> super::api::SinkResult {
        Ok(())
    }
    fn error(&mut self, _error: &SqlError) {}
    fn info(&mut self, _info: &SqlError) {}
    fn env_change(&mut self, _change: EnvChange) {}
    fn return_status(&mut self, _status: i32) {}
    fn return_value(&mut self, _name: &str, _column: &ColumnMeta, _value: &Value) {}
}

/// One connection's session. Dropping it rolls back, releases its locks and drops its temporary tables.
pub struct Session {
    state: State,
    cancel: CancelHandle,
}

impl Session {
    /// `@@SPID`.
    pub fn id(&self) -> u16 {
        self.state.id
    }

    /// The handle that stops what runs here.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Name of the current database.
    pub fn database(&self) -> &str {
        &self.state.database_name
    }

    pub(super) fn context<'a>(&'a mut self, out: &'a mut dyn BatchSink) -> Cx<'a> {
        Cx { st: &mut self.state, out, outer: Vec::new(), in_proc: false }
    }

    /// Runs a request and settles what is left of it.
    fn request(&mut self, out: &mut dyn BatchSink, body: impl FnOnce(&mut Cx<'_>) -> Result<()>) -> BatchEnd {
        let engine = Arc::clone(&self.state.engine);
        let id = self.state.id;
        engine.set_running(id, true);
        // Variables live as long as their batch; temporary tables live on.
        let temporary: Vec<_> = self.state.frames.drain(..).flat_map(|f| f.tables.into_values()).collect();
        self.state.frames.push(Frame::default());
        self.state.nest_level = 0;
        self.state.trigger_depth = 0;
        self.state.hold = 0;
        self.state.tries.clear();
        self.state.caught.clear();
        self.state.uncatchable = None;
        self.state.scope_identity.truncate(1);
        let mut cx = self.context(out);
        exec::ddl::drop_temporary(&mut cx, &temporary);
        cx.st.tick();
        let result = body(&mut cx);
        let end = settle(&mut cx, result);
        engine.note(cx.st);
        engine.set_running(id, false);
        self.cancel.clear();
        end
    }

    /// Runs a batch of statements.
    pub fn run_batch(&mut self, sql: &str, out: &mut dyn BatchSink) -> BatchEnd {
        self.request(out, |cx| exec::run_text(cx, sql).map(|_| ()))
    }

    /// Runs a procedure call.
    pub fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd {
        self.request(out, |cx| run_rpc(cx, call))
    }

    /// Runs a transaction manager request.
    pub fn transaction(&mut self, request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd {
        self.request(out, |cx| run_transaction(cx, &request).map_err(|e| report(cx, e)))
    }

    /// Starts the bulk load that the last `INSERT BULK` announced, with the columns of the client's COLMETADATA.
    ///
    /// # Errors
    /// No bulk load was announced, or the columns do not fit it.
    pub fn bulk_columns(&mut self, columns: &[ColumnMeta]) -> std::result::Result<BulkLoad<'_>, SqlError> {
        let mark = self.state.txn.as_ref().map(|t| t.mark());
        let mut sink = Discard;
        let mut cx = self.context(&mut sink);
        cx.st.tick();
        match Load::open(&mut cx, columns) {
            Ok(load) => Ok(BulkLoad { session: self, load: Some(load), mark }),
            Err(e) => {
                let e = exec::placed(&cx, e);
                exec::discard_idle(&mut cx);
                Err(e)
            }
        }
    }

    /// Brings the session back to its state after login (the reset bit of a TDS packet).
    pub fn reset_connection(&mut self) {
        let mut sink = Discard;
        let mut cx = self.context(&mut sink);
        exec::transaction::abort(&mut cx);
        exec::discard_idle(&mut cx);
        let state = &mut self.state;
        // Temporary tables and session locks end; the login's database and settings return.
        let closed = state.engine.store.close_session(&state.store_session);
        debug_assert!(closed.is_ok(), "dropping temporary tables writes nothing to disk");
        state.settings = Settings::default();
        state.store_session.set_lock_timeout_ms(-1);
        state.store_session.set_deadlock_priority(0);
        state.prepared.clear();
        state.cursors.clear();
        state.session_context.clear();
        state.context_info = Value::Null;
        state.identity_value = None;
        state.scope_identity = vec![None];
        state.frames = vec![Frame::default()];
        if let Some(first) = state.impersonation.first().cloned() {
            state.identity = first;
            state.impersonation.clear();
        }
        let wanted = state.login.database.clone().filter(|d| !d.is_empty());
        let mut cx = self.context(&mut sink);
        let txn = cx.st.txn();
        let login = cx.st.identity.login_id;
        let default =
            txn.principals(Scope::Server).into_iter().find(|p| p.id == login).and_then(|p| p.default_database.clone());
        let home = wanted.or(default).and_then(|name| txn.find_database(&name));
        if let Some(home) = home {
            cx.st.database = home.id;
            cx.st.database_name.clone_from(&home.name);
        }
        exec::discard_idle(&mut cx);
        self.cancel.clear();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut sink = Discard;
        let mut cx = self.context(&mut sink);
        exec::transaction::abort(&mut cx);
        exec::discard_idle(&mut cx);
        let state = &self.state;
        let closed = state.engine.store.close_session(&state.store_session);
        debug_assert!(closed.is_ok(), "dropping temporary tables writes nothing to disk");
        state.engine.registry().remove(&state.id);
    }
}

/// Ends a request: what is doomed is rolled back, what was cancelled is told.
fn settle(cx: &mut Cx<'_>, result: Result<()>) -> BatchEnd {
    cx.st.hold = 0;
    exec::discard_idle(cx);
    let end = match result {
        Ok(()) => BatchEnd::Finished,
        Err(e) => match e.number {
            CANCELLED => {
                if cx.st.settings.xact_abort {
                    exec::transaction::abort(cx);
                }
                BatchEnd::Cancelled
            }
            CLOSED => BatchEnd::ConnectionBroken,
            BATCH_ABORTED | error::SCOPE_ABORTED => BatchEnd::Finished,
            _ => {
                cx.out.error(&e);
                BatchEnd::Finished
            }
        },
    };
    if cx.st.doomed && cx.st.trancount > 0 {
        let e = exec::placed(
            cx,
            error::new(
                3998,
                16,
                1,
                "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.",
            ),
        );
        cx.out.error(&e);
        exec::transaction::abort(cx);
    }
    end
}

/// Reports an error of a request that is no statement.
fn report(cx: &mut Cx<'_>, e: SqlError) -> SqlError {
    if error::is_marker(&e) {
        return e;
    }
    let e = exec::placed(cx, e);
    cx.out.error(&e);
    error::marker(BATCH_ABORTED)
}

fn run_rpc(cx: &mut Cx<'_>, call: RpcCall) -> Result<()> {
    let name = super::parse::parse_name(&call.procedure).map_err(|e| report(cx, e))?;
    let mut args = Vec::new();
    for param in &call.params {
        let value = if param.default { None } else { Some((param.value.clone(), param.ty)) };
        args.push(Argument { name: param.name.clone(), value, output: param.output, target: None });
    }
    cx.in_proc = true;
    let result =
        exec::call_procedure(cx, ProcedureCall { name, args }).and_then(|r| exec::finish_statement(cx).map(|()| r));
    match result {
        Ok(returned) => {
            cx.out.return_status(returned.status);
            for (_, name, ty, value) in &returned.outputs {
                let meta = ColumnMeta {
                    name: name.clone(),
                    ty: if *ty == SqlType::Null { SqlType::Int } else { *ty },
                    nullable: true,
                    identity: false,
                    computed: false,
                    collation: ty.collation(),
                };
                cx.out.return_value(name, &meta, value);
            }
            Ok(())
        }
        Err(e) => {
            let e = report(cx, e);
            if e.number == error::SCOPE_ABORTED { Ok(()) } else { Err(e) }
        }
    }
}

fn run_transaction(cx: &mut Cx<'_>, request: &TransactionRequest) -> Result<()> {
    match request {
        TransactionRequest::Begin { isolation, name } => {
            cx.st.settings.isolation = match isolation {
                IsolationRequest::Current => cx.st.settings.isolation,
                IsolationRequest::ReadUncommitted => Isolation::ReadUncommitted,
                IsolationRequest::ReadCommitted => Isolation::ReadCommitted,
                IsolationRequest::RepeatableRead => Isolation::RepeatableRead,
                IsolationRequest::Serializable => Isolation::Serializable,
                IsolationRequest::Snapshot => Isolation::Snapshot,
            };
            exec::transaction::start(cx, name);
        }
        TransactionRequest::Commit { begin } => {
            exec::transaction::commit(cx)?;
            if *begin {
                exec::transaction::start(cx, "");
            }
        }
        TransactionRequest::Rollback { name, begin } => {
            let name = Some(NameOrVar::Name(name.clone())).filter(|_| !name.is_empty());
            exec::transaction::rollback(cx, name.as_ref())?;
            if *begin {
                exec::transaction::start(cx, "");
            }
        }
        TransactionRequest::Save { name } => {
            exec::transaction::save(cx, &NameOrVar::Name(name.clone()))?;
        }
    }
    Ok(())
}

/// A bulk load under way. Dropping it without [`BulkLoad::finish`] undoes its rows.
pub struct BulkLoad<'a> {
    session: &'a mut Session,
    load: Option<Load>,
    mark: Option<store::Mark>,
}

impl BulkLoad<'_> {
    /// Adds one row, a value for each column of COLMETADATA.
    ///
    /// # Errors
    /// The row breaks a rule; the load is over.
    pub fn row(&mut self, values: Vec<Value>) -> std::result::Result<(), SqlError> {
        let Some(load) = &mut self.load else {
            return Err(error::plain(4022, "Bulk load data was expected but not sent. The batch will be terminated."));
        };
        let mut sink = Discard;
        let mut cx = self.session.context(&mut sink);
        let result = cx.check_cancel().and_then(|()| load.row(&mut cx, &values)).map_err(|e| exec::placed(&cx, e));
        if result.is_err() {
            self.undo();
        }
        result
    }

    /// Ends the load; the number of rows.
    ///
    /// # Errors
    /// A rule of the table is broken; nothing stays.
    pub fn finish(mut self) -> std::result::Result<u64, SqlError> {
        let Some(load) = self.load.take() else {
            return Err(error::plain(4022, "Bulk load data was expected but not sent. The batch will be terminated."));
        };
        let mut sink = Discard;
        let mut cx = self.session.context(&mut sink);
        let result = load.finish(&mut cx).and_then(|rows| exec::finish_statement(&mut cx).map(|()| rows));
        let result = result.map_err(|e| exec::placed(&cx, e));
        if result.is_err() {
            self.undo();
        }
        result
    }

    /// Undoes the load.
    pub fn abort(mut self) {
        self.undo();
    }

    fn undo(&mut self) {
        self.load = None;
        let mut sink = Discard;
        let mut cx = self.session.context(&mut sink);
        let strict = cx.st.settings.xact_abort;
        match (self.mark, cx.st.txn.clone()) {
            (Some(mark), Some(txn)) if cx.st.trancount > 0 && !strict => {
                txn.rollback_to_mark(mark);
                txn.end_statement();
            }
            _ => exec::transaction::abort(&mut cx),
        }
    }
}

impl Drop for BulkLoad<'_> {
    fn drop(&mut self) {
        if self.load.is_some() {
            self.undo();
        }
    }
}
