//! Integration tests of the test servers, one module per topic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod clickhouse;
mod sqlserver;
mod tls;
