//! The server and its sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{BatchSink, CancelHandle, ColumnMeta, EngineError, EngineOptions, EnvChange, LoginRequest, SqlError};
use super::error;
use super::exec;
use super::principal::{self, SYSADMIN, hash_password, new_sid, password_fits, record, salt};
use super::state::{Frame, Identity, Isolation, Settings, State, function_context, now_micros};
use crate::sqlserver::store::catalog::{DatabaseId, MASTER, Membership, PrincipalKind, Scope, TEMPDB};
use crate::sqlserver::store::{self, SessionId, Store, StoreOptions};
use crate::sqlserver::value::Value;

mod bulk;
mod session;

pub use self::bulk::BulkLoad;
pub use self::session::Session;

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
pub(super) struct Discard;

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
