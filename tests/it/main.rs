//! Integration tests of the whole road, one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod argo_cd;
mod chart;
mod clickhouse;
mod direction;
mod error_pages;
mod image;
mod road;
