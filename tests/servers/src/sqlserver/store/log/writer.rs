//! Writing the log: appends in memory, one flush for all who wait.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::super::error::StoreError;
use super::super::store::Durability;
use super::frame::put_frame;
use super::{COMMIT, PART};

/// Bytes in memory from which parts are handed to the operating system.
const WRITE_ABOVE_BYTES: usize = 4 << 20;

/// Appends frames to the log file.
#[derive(Debug)]
pub(in super::super) struct LogWriter {
    pending: Mutex<Pending>,
    file: Mutex<Target>,
    length: AtomicU64,
    durability: Durability,
}

#[derive(Debug)]
struct Pending {
    buffer: Vec<u8>,
    /// Position in the file after the buffer.
    end: u64,
    sequence: u64,
}

#[derive(Debug)]
struct Target {
    file: File,
    /// Everything before this position is durable.
    flushed: u64,
    /// A write or flush failed: what the file holds behind `flushed` is unknown.
    failed: Option<io::ErrorKind>,
}

impl LogWriter {
    /// Goes on at the end of `file`, which is `length` bytes long and holds `sequence` frames.
    pub(in super::super) fn new(file: File, length: u64, sequence: u64, durability: Durability) -> Self {
        Self {
            pending: Mutex::new(Pending { buffer: Vec::new(), end: length, sequence }),
            file: Mutex::new(Target { file, flushed: length, failed: None }),
            length: AtomicU64::new(length),
            durability,
        }
    }

    /// Goes on in another file (the snapshot that replaces the old one). No transaction is writing.
    pub(in super::super) fn replace(&self, file: File, length: u64, sequence: u64) {
        let mut target = self.file.lock();
        let mut pending = self.pending.lock();
        *pending = Pending { buffer: Vec::new(), end: length, sequence };
        *target = Target { file, flushed: length, failed: None };
        self.length.store(length, Ordering::Relaxed);
    }

    /// Length of the log in bytes.
    pub(in super::super) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Adds a part of a transaction that goes on.
    pub(in super::super) fn append_part(&self, transaction: u64, operations: &[u8]) -> Result<(), StoreError> {
        self.append(PART, transaction, operations);
        if self.pending.lock().buffer.len() > WRITE_ABOVE_BYTES {
            let mut target = self.file.lock();
            self.write_pending(&mut target)?;
        }
        Ok(())
    }

    /// Adds the end of a transaction; returns the position to pass to [`LogWriter::flush`].
    pub(in super::super) fn append_commit(&self, transaction: u64, operations: &[u8]) -> u64 {
        self.append(COMMIT, transaction, operations)
    }

    fn append(&self, kind: u8, transaction: u64, operations: &[u8]) -> u64 {
        let mut guard = self.pending.lock();
        let pending = &mut *guard;
        let before = pending.buffer.len();
        put_frame(pending.sequence, &[&[kind], &transaction.to_le_bytes(), operations], &mut pending.buffer);
        pending.sequence += 1;
        pending.end += (pending.buffer.len() - before) as u64;
        self.length.store(pending.end, Ordering::Relaxed);
        pending.end
    }

    /// Waits until everything before `position` is durable. Whoever comes first flushes for all that wait.
    pub(in super::super) fn flush(&self, position: u64) -> Result<(), StoreError> {
        let mut target = self.file.lock();
        if target.flushed >= position {
            return Ok(());
        }
        let end = self.write_pending(&mut target)?;
        if self.durability == Durability::Fsync
            && let Err(error) = target.file.sync_data()
        {
            return Err(fail(&mut target, &error));
        }
        target.flushed = end;
        Ok(())
    }

    fn write_pending(&self, target: &mut Target) -> Result<u64, StoreError> {
        if let Some(kind) = target.failed {
            return Err(StoreError::LogFailed { kind });
        }
        let (buffer, end) = {
            let mut pending = self.pending.lock();
            (std::mem::take(&mut pending.buffer), pending.end)
        };
        match target.file.write_all(&buffer) {
            Ok(()) => Ok(end),
            Err(error) => Err(fail(target, &error)),
        }
    }
}

/// After a failed write the file's tail is unknown, so nothing may be written behind it.
fn fail(target: &mut Target, error: &io::Error) -> StoreError {
    target.failed = Some(error.kind());
    StoreError::LogFailed { kind: error.kind() }
}
