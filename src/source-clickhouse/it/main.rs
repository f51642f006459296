//! The source against the real engine behind `servers::clickhouse`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod admission;
mod certificates;
mod endpoint;
mod kit;
mod order;
mod query_semantics;
mod races;
mod streaming;
mod values;
mod versions;
mod windows;
mod writes;
