//! TDS 7.2 to 7.4 (MS-TDS): packets, PRELOGIN and TLS, LOGIN7, requests, bulk load, tokens.
//!
//! Reading order: [`packet`] and [`prelogin`] (how bytes come in), [`connection`] (a socket's life on the async side),
//! [`session`] (the thread that answers requests with a `sql::Session`), [`response`] (tokens out, with back-pressure),
//! [`type_info`] and [`values`] (columns and cells in both directions), [`bulk`].
//!
//! A connection has three parties: the reader of the socket, the writer of the socket, and the session's thread, where
//! statements block as long as they like. Two bounded channels tie them: requests (and bulk chunks) in, packets out. So a
//! slow client blocks the statement that feeds it, a slow statement blocks the client that feeds it, and the reader stays
//! free to see an attention or the end of the client.

mod backend;
mod bulk;
mod connection;
mod controlled;
mod error;
mod errors;
mod headers;
mod login7;
mod packet;
mod prelogin;
mod prelogin_tls;
mod query_log;
mod reader;
mod response;
mod rpc;
mod session;
mod source;
mod tokens;
mod transaction;
mod turn;
mod type_info;
mod values;

#[cfg(test)]
mod tests;

pub use error::WireError;
pub use prelogin::Encryption;

pub(crate) use backend::Backend;
pub(crate) use connection::{Shared, serve, stopped};
pub(crate) use controlled::ControlledBackend;
pub(crate) use query_log::QueryLog;

/// Version in PRELOGIN and LOGINACK: 16.0.1000, SQL Server 2022; major, minor, build (big-endian).
const SERVER_VERSION: [u8; 4] = [16, 0, 0x03, 0xE8];
