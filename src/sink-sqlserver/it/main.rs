//! The SQL Server adapter against the TDS server: one session's whole chunk, cuts at each step, and the port.

#![allow(clippy::expect_used, clippy::panic, reason = "tests fail by panicking, helpers of theirs too")]

mod custody;
mod kit;
mod observation;
mod preparation;
mod publication;
mod spike;
mod tls;
mod values;
