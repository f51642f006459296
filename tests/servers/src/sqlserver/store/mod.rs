//! Row store, lock manager, transactions, redo log, catalog objects.
//!
//! # How to use it
//! One [`Store`] per server, one [`Session`] per connection, one [`Transaction`] per explicit or autocommit
//! transaction. All calls are synchronous; those that take locks block the calling thread, so they belong on a
//! session's own thread. [`Session::cancel_token`] ends a wait from outside.
//!
//! A statement follows this order: [`Transaction::resolve`] the names (takes Sch-S), [`Transaction::lock_table`] if a
//! hint or the isolation level asks for a table lock, [`Transaction::mark`], read and write, and
//! [`Transaction::end_statement`]. If the statement fails, [`Transaction::rollback_to_mark`] undoes its work.
//!
//! | isolation or hint | table lock | [`ReadMode`] |
//! |---|---|---|
//! | READ UNCOMMITTED, NOLOCK | Sch-S (statement) | [`ReadMode::Dirty`] |
//! | READ COMMITTED | IS (statement) | [`ReadMode::Committed`] |
//! | READPAST | IS (statement) | [`ReadMode::SkipLocked`] |
//! | REPEATABLE READ | IS (transaction) | [`ReadMode::Shared`] |
//! | SERIALIZABLE, HOLDLOCK | S (transaction): coarser than SQL Server's key ranges | [`ReadMode::Committed`] |
//! | UPDLOCK, target of UPDATE and DELETE | IX (transaction) | [`ReadMode::Update`] |
//! | UPDLOCK + HOLDLOCK | U (transaction) | [`ReadMode::Committed`] |
//! | TABLOCK (read), TABLOCKX | S or X | [`ReadMode::Committed`] |
//!
//! Reads and writes take the intent lock that they need by themselves; a stronger lock taken before is respected.

pub mod catalog;
mod error;
pub mod heap;
pub mod lock;
mod log;
mod row;
mod session;
#[allow(clippy::module_inception, reason = "the store itself, beside its parts")]
mod store;
#[cfg(test)]
mod tests;
mod transaction;

pub use error::StoreError;
pub use heap::RowId;
pub use session::{CancelToken, Session, SessionId};
pub use store::{Allocation, CounterKey, Durability, Store, StoreOptions, utc_now};
pub use transaction::{BulkLoad, Hold, Mark, ReadMode, RowRef, Scan, Transaction, TransactionId};
