//! Parser and executor of T-SQL batches.
//!
//! [`api`] is the interface to the wire; [`Engine`] is the server, [`Session`] one connection. A batch is parsed
//! (`lexer`, `parse`), each statement is bound when its turn comes (`bind`: names become slots, types are settled)
//! and executed (`exec`, `run`, `eval`). Catalog views compute their rows from the store's catalog (`catalog`).

pub mod api;
mod ast;
mod bind;
mod bulk;
mod catalog;
mod cursor;
mod deparse;
mod engine;
mod error;
mod eval;
mod exec;
mod format;
mod function;
mod lexer;
mod lookup;
mod module;
mod parse;
mod permission;
mod plan;
mod principal;
mod procs;
mod property;
mod run;
mod sequence;
mod state;
mod stmt;
mod storage;
mod sysfn;
mod typed;
mod types;
mod volume;

pub use api::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, Done, EngineError, EngineOptions, EnvChange, IsolationRequest,
    LoginRequest, RpcCall, RpcParam, SinkClosed, SinkResult, SqlError, TransactionRequest, cmd,
};
pub use engine::{BulkLoad, Engine, Session};

#[cfg(test)]
mod tests;
