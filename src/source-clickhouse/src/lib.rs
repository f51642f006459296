//! ClickHouse native reader, catalog and raw snapshot.
