//! ClickHouse native reader, catalog and raw snapshot.
//!
//! One [`ClickHouseSource`] is one TLS connection to one server. It admits one relation, sends exactly one SELECT and
//! hands its rows over in column blocks. The end is proven only by the server's EndOfStream packet; every other end is an
//! error that poisons the connection (docs/adr/0001-clickhouse-reader.md).
//!
//! ```text
//! options --tls--> wire::Connection --catalog--> facts --admission (contract::raw)--> SourceAdmission
//!                        |
//!                        +--one SELECT--> blocks --session--> business columns + coverage --> SourceEof
//! ```
//!
//! Rights the source user needs: SELECT on the table; SELECT on `system.{tables, databases, columns, settings, parts,
//! mutations, row_policies}` (and `replicas` for a connected replica) with SHOW ROW POLICIES; a profile that lets it set the
//! frozen settings and guards (`readonly = 2` at most). No right to write anything.
//!
//! Reading order: `options` (how to reach a server), `session` (the life of a read), `admission` and `catalog` (what is
//! looked at), `guards` (settings of every query), `wire` (the protocol).

mod admission;
mod catalog;
mod fault;
mod guards;
mod options;
mod session;
mod tls;
mod wire;

pub use options::{ClientIdentity, ConnectOptions, SILENCE_LIMIT, Timeouts};
pub use session::{ClickHouseSource, ClickHouseSourceFactory};
