//! SQL Server sessions, bulk writer, SQL text and publication.
//!
//! Reading order: [`options`] (how to reach the server), `tls` (who it must prove to be), `session` (one connection with
//! its deadlines), `sql` (every statement we send, as pure text), `writer` (one chunk), `target` (the port).
//!
//! Invariants, stated as absences: no session is used after an error that the server did not report; no session
//! reconnects by itself; no certificate is trusted that the given CA did not sign; no COMMIT is believed alone.

mod bulk;
mod error;
pub mod measure;
mod observation;
mod options;
mod probe;
mod publication;
mod session;
mod sql;
mod target;
mod tls;
mod writer;

pub use options::{ConnectOptions, Timeouts};
pub use sql::catalog::{CATALOG_VERSION, batches as catalog_batches, script as catalog_script};
pub use target::SqlServerTarget;
pub use writer::SqlServerWriter;
