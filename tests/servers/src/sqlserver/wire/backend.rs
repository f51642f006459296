//! What the wire needs from the engine. The seam lets connections be tested with scripted sessions, where the moment of
//! each step is known.

use std::sync::Arc;

use super::super::sql::{
    BatchEnd, BatchSink, BulkLoad, CancelHandle, ColumnMeta, Engine, LoginRequest, RpcCall, Session, SqlError,
    TransactionRequest,
};
use super::super::value::Value;

/// An engine that sessions are opened on.
pub(crate) trait Backend: Send + Sync {
    /// See [`Engine::login`].
    fn login(&self, request: &LoginRequest) -> Result<Box<dyn SqlSession>, SqlError>;
}

/// See [`Session`]; dropping it ends the session.
pub(crate) trait SqlSession {
    fn id(&self) -> u16;
    fn cancel_handle(&self) -> CancelHandle;
    fn database(&self) -> &str;
    fn run_batch(&mut self, sql: &str, out: &mut dyn BatchSink) -> BatchEnd;
    fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd;
    fn transaction(&mut self, request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd;
    fn bulk_columns(&mut self, columns: &[ColumnMeta]) -> Result<Box<dyn BulkRows + '_>, SqlError>;
    fn reset_connection(&mut self);

    /// The connection ends without another byte to the client: a test control cut it.
    fn is_cut(&self) -> bool {
        false
    }
}

/// See [`BulkLoad`]; dropping it undoes the load.
pub(crate) trait BulkRows {
    fn row(&mut self, values: Vec<Value>) -> Result<(), SqlError>;
    fn finish(self: Box<Self>) -> Result<u64, SqlError>;
    fn abort(self: Box<Self>);
}

impl Backend for Arc<Engine> {
    fn login(&self, request: &LoginRequest) -> Result<Box<dyn SqlSession>, SqlError> {
        Ok(Box::new(Engine::login(self, request)?))
    }
}

impl SqlSession for Session {
    fn id(&self) -> u16 {
        Session::id(self)
    }

    fn cancel_handle(&self) -> CancelHandle {
        Session::cancel_handle(self)
    }

    fn database(&self) -> &str {
        Session::database(self)
    }

    fn run_batch(&mut self, sql: &str, out: &mut dyn BatchSink) -> BatchEnd {
        Session::run_batch(self, sql, out)
    }

    fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd {
        Session::run_rpc(self, call, out)
    }

    fn transaction(&mut self, request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd {
        Session::transaction(self, request, out)
    }

    fn bulk_columns(&mut self, columns: &[ColumnMeta]) -> Result<Box<dyn BulkRows + '_>, SqlError> {
        Ok(Box::new(Session::bulk_columns(self, columns)?))
    }

    fn reset_connection(&mut self) {
        Session::reset_connection(self);
    }
}

impl BulkRows for BulkLoad<'_> {
    fn row(&mut self, values: Vec<Value>) -> Result<(), SqlError> {
        BulkLoad::row(self, values)
    }

    fn finish(self: Box<Self>) -> Result<u64, SqlError> {
        BulkLoad::finish(*self)
    }

    fn abort(self: Box<Self>) {
        BulkLoad::abort(*self);
    }
}
