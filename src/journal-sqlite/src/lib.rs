//! Durable journal on SQLite.
