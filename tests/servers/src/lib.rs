//! Test servers that know nothing of the product.

pub mod clickhouse;
pub mod sqlserver;
pub mod tls;
