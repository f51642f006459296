//! What a run tells while it goes on: for a progress bar or a pod's endpoint, never for a decision.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use contract::worker::Stage;

#[derive(Debug, Default)]
struct Counters {
    stage: AtomicU8,
    rows_read: AtomicU64,
    bytes_encoded: AtomicU64,
    chunks_sealed: AtomicU64,
    chunks_verified: AtomicU64,
}

/// Shared counters of a run.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counters>);

/// One reading of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgressReading {
    /// Where the run is.
    pub stage: Stage,
    /// Rows that left the source.
    pub rows_read: u64,
    /// Native bytes sealed.
    pub bytes_encoded: u64,
    /// Chunks sealed.
    pub chunks_sealed: u64,
    /// Chunks verified inside SQL Server.
    pub chunks_verified: u64,
}

impl Progress {
    /// The counters now.
    pub fn read(&self) -> ProgressReading {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stage = Stage::ALL.get(usize::from(self.0.stage.load(Ordering::Relaxed))).copied();
        ProgressReading {
            stage: stage.unwrap_or(Stage::Ended),
            rows_read: load(&self.0.rows_read),
            bytes_encoded: load(&self.0.bytes_encoded),
            chunks_sealed: load(&self.0.chunks_sealed),
            chunks_verified: load(&self.0.chunks_verified),
        }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.0.stage.store(stage as u8, Ordering::Relaxed);
    }

    pub(crate) fn rows_read(&self, rows: u64) {
        self.0.rows_read.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn sealed(&self, bytes: u64) {
        self.0.bytes_encoded.fetch_add(bytes, Ordering::Relaxed);
        self.0.chunks_sealed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn verified(&self) {
        self.0.chunks_verified.fetch_add(1, Ordering::Relaxed);
    }
}
