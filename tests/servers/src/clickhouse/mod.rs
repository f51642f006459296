//! ClickHouse native protocol and HTTP in front of `libchdb.so`.
