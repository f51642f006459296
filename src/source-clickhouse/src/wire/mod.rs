//! The ClickHouse native protocol as a client of revision 54448 speaks it.
//!
//! The revision is chosen so that the server sends dense columns, no addendum, no profile events and no query parameters
//! (facts: `ProtocolDefines.h` of ClickHouse). Everything that arrives is bounded before memory is set aside for it, and
//! everything that this client did not ask for is an error: the one proof of a complete result is the EndOfStream packet.

mod block;
mod client;
mod error;
mod frame;
mod protocol;
mod query;
mod shape;
mod stream;

pub(crate) use block::{RESULT_CAP_FLOOR_BYTES, block_cap_bytes};
pub(crate) use client::{Connection, Credentials, Limits, decoded_bytes};
pub(crate) use error::WireError;
pub(crate) use query::{Query, ResultBound, Setting};
pub(crate) use shape::Shape;

#[cfg(test)]
mod tests;
