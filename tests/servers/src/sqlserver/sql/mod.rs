//! Parser and executor of T-SQL batches.
//!
//! [`api`] is the interface to the wire; [`Engine`] is the server, [`Session`] one connection.

pub mod api;
mod engine;
mod error;

pub use api::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, Done, EngineError, EngineOptions, EnvChange, IsolationRequest,
    LoginRequest, RpcCall, RpcParam, SinkClosed, SinkResult, SqlError, TransactionRequest, cmd,
};
pub use engine::{BulkLoad, Engine, Session};
