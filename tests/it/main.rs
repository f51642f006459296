//! Integration tests of the whole road, one binary.

mod clickhouse;
mod direction;
mod error_pages;
