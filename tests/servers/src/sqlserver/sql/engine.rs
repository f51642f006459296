//! The server and its sessions.

use std::path::Path;
use std::sync::Arc;

use super::super::value::Value;
use super::api::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, EngineError, EngineOptions, LoginRequest, RpcCall, SqlError,
    TransactionRequest,
};
use super::error;

/// The server: data, sessions and settings.
pub struct Engine {
    options: EngineOptions,
}

impl Engine {
    /// Opens the data folder, creating it when it is empty.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(_data_dir: &Path, options: EngineOptions) -> Result<Arc<Self>, EngineError> {
        Ok(Arc::new(Self { options }))
    }

    /// Checks a login and starts its session.
    ///
    /// # Errors
    /// 18456 for a wrong name or password, 4060 for a database that cannot be opened.
    pub fn login(self: &Arc<Self>, request: &LoginRequest) -> Result<Session, SqlError> {
        let known = self.options.users.iter().any(|(u, p)| *u == request.user && *p == request.password);
        if !known {
            return Err(error::new(18456, 14, 1, &format!("Login failed for user '{}'.", request.user)));
        }
        let database = request.database.clone().unwrap_or_else(|| self.options.database.clone());
        Ok(Session { _engine: Arc::clone(self), cancel: CancelHandle::default(), database })
    }
}

/// One connection's session. Dropping it rolls back, releases its locks and drops its temporary tables.
pub struct Session {
    _engine: Arc<Engine>,
    cancel: CancelHandle,
    database: String,
}

impl Session {
    /// `@@SPID`.
    pub fn id(&self) -> u16 {
        51
    }

    /// The handle that stops what runs here.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Name of the current database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Runs a batch of statements.
    pub fn run_batch(&mut self, _sql: &str, out: &mut dyn BatchSink) -> BatchEnd {
        out.error(&error::unsupported("batch"));
        BatchEnd::Finished
    }

    /// Runs a procedure call.
    pub fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd {
        out.error(&error::unsupported(&call.procedure));
        BatchEnd::Finished
    }

    /// Runs a transaction manager request.
    pub fn transaction(&mut self, _request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd {
        out.error(&error::unsupported("transaction manager request"));
        BatchEnd::Finished
    }

    /// Starts the bulk load that the last `INSERT BULK` announced, with the columns of the client's COLMETADATA.
    ///
    /// # Errors
    /// No bulk load was announced, or the columns do not fit it.
    pub fn bulk_columns(&mut self, _columns: &[ColumnMeta]) -> Result<BulkLoad<'_>, SqlError> {
        Err(error::unsupported("INSERT BULK"))
    }

    /// Brings the session back to its state after login (the reset bit of a TDS packet).
    pub fn reset_connection(&mut self) {
        self.cancel.clear();
    }
}

/// A bulk load under way. Dropping it without [`BulkLoad::finish`] undoes its rows.
pub struct BulkLoad<'a> {
    _session: &'a mut Session,
}

impl BulkLoad<'_> {
    /// Adds one row, a value for each column of COLMETADATA.
    ///
    /// # Errors
    /// The row breaks a rule; the load is over.
    pub fn row(&mut self, _values: Vec<Value>) -> Result<(), SqlError> {
        Err(error::unsupported("INSERT BULK"))
    }

    /// Ends the load; the number of rows.
    ///
    /// # Errors
    /// A rule of the table is broken; nothing stays.
    pub fn finish(self) -> Result<u64, SqlError> {
        Err(error::unsupported("INSERT BULK"))
    }

    /// Undoes the load.
    pub fn abort(self) {}
}
