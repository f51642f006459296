//! ClickHouse native reader, catalog and raw snapshot.
//!
//! One [`ClickHouseSource`] is one TLS connection to one server. It admits one relation, sends exactly one SELECT and
//! hands its rows over in column blocks. The end is proven only by the server's EndOfStream packet; every other end is an
//! error that poisons the connection (docs/adr/0001-clickhouse-reader.md).
//!
//! Reading order: [`options`] and [`request`] (what goes in and out), `session` (the life of a read), `catalog` (what
//! admission looks at), `wire` (the protocol).

mod options;
mod request;
mod session;

pub use options::{ClientIdentity, ConnectOptions, SILENCE_LIMIT, Timeouts};
pub use request::{
    FrozenWindow, GuardSettings, RawProfileDocument, ReplicaScope, SourceAdmission, SourceColumn, SourceEof,
    SourceMode, SourceRequest,
};
pub use session::ClickHouseSource;
