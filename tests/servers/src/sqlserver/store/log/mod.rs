//! Redo log: what committed transactions did, in the order in which it was done.
//!
//! One file `redo-<generation>.log` in the data folder, made of frames:
//!
//! | field | bytes | meaning |
//! |---|---|---|
//! | magic | 4 | `NTR1` |
//! | length | 4 | of the payload, little-endian |
//! | checksum | 4 | CRC-32 of sequence and payload |
//! | sequence | 8 | 0, 1, 2, ... within the file |
//! | payload | length | kind (1 part, 2 commit), transaction id (8), operations |
//!
//! A transaction is one commit frame, after part frames if it was large. Parts of a transaction without a commit
//! frame are ignored. Since a row's lock is held until its transaction ends, applying the operations of committed
//! transactions in file order gives what they left behind. A snapshot is a file of the next generation that
//! begins with the whole state as one transaction; it gets its name only when it is complete.

mod frame;
mod operation;
mod replay;
mod snapshot;
mod writer;

pub(super) use operation::{Operation, encode_append_start};
pub(super) use replay::{Recovered, replay};
pub(super) use snapshot::{SnapshotSource, write_snapshot};
pub(super) use writer::LogWriter;

use std::path::{Path, PathBuf};

/// Kind of a frame with a part of a transaction's operations.
const PART: u8 = 1;
/// Kind of a frame that ends and commits a transaction.
const COMMIT: u8 = 2;

/// File of a generation.
fn file_of(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("redo-{generation:012}.log"))
}
