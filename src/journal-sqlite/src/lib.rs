//! Durable journal on SQLite: append-only, hash-chained, bounded when written (design.md 3.15).
//!
//! One file `journal.sqlite` under a root directory holds the records of every run of that root and the custody records
//! of its targets; `journal.lock` beside it admits one writer. The tables first:
//!
//! ```text
//! header (one row)   format, journal_id, epoch, opener_nonce
//! records            sequence (1, 2, ...), run, kind, key, payload, digest
//! ```
//!
//! `digest` chains each record to the one before it, so a record that was altered, removed or inserted is found when the
//! journal is opened. The journal's identity is random and lies inside the file: a volume that is mounted elsewhere is
//! still the same journal. Rollback-journal mode with `synchronous=FULL` is used on every volume, because WAL needs
//! shared memory that network volumes do not give.

mod chain;
mod open;
mod store;

pub use open::{EPOCH_FLOOR_MAX, JOURNAL_FILE, LOCK_FILE};
pub use store::SqliteJournal;

#[cfg(test)]
mod tests;
