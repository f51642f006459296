//! Parser and executor of T-SQL batches.
//!
//! [`api`] is the interface to the wire; [`Engine`] is the server, [`Session`] one connection.

pub mod api;
mod ast;
mod engine;
mod error;
mod lexer;
mod parse;
mod stmt;

pub use api::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, Done, EngineError, EngineOptions, EnvChange, IsolationRequest,
    LoginRequest, RpcCall, RpcParam, SinkClosed, SinkResult, SqlError, TransactionRequest, cmd,
};
pub use engine::{BulkLoad, Engine, Session};
