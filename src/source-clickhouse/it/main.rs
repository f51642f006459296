//! The source against the real engine behind `servers::clickhouse`.

mod admission;
mod endpoint;
mod kit;
mod streaming;
mod values;
