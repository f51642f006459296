//! A TDS 7.4 server with an own T-SQL layer, row store, lock manager and redo log.

pub mod control;
mod server;
pub mod sql;
pub mod store;
pub mod value;
pub mod wire;

pub use server::{RunningServer, ServerOptions, SqlServer, StartError};
pub use wire::Encryption;
