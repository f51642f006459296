//! What the workers really did: active time, wall time, overlap (contract.md 12). Never the configured counts.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A phase of work whose operations may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting for and decoding source blocks.
    Read,
    /// Encoding and sealing chunks.
    Encode,
    /// Bulk load and verification of chunks.
    Import,
}

/// Summary of one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseSummary {
    /// Operations.
    pub operations: u64,
    /// From the first start to the last end, seconds.
    pub wall_seconds: f64,
    /// Sum of all operations, seconds.
    pub active_seconds: f64,
    /// Most operations at once.
    pub peak_workers: usize,
}

impl PhaseSummary {
    /// Active over wall time; `None` when nothing was measured.
    pub fn effective_parallelism(&self) -> Option<f64> {
        (self.wall_seconds > 0.0).then(|| self.active_seconds / self.wall_seconds)
    }
}

#[derive(Debug, Default)]
struct Track {
    operations: u64,
    active: Duration,
    first: Option<Instant>,
    last: Option<Instant>,
    running: usize,
    peak: usize,
}

/// Shared record of all phases.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    tracks: Arc<Mutex<[Track; 3]>>,
}

/// One running operation; it ends when dropped.
#[derive(Debug)]
pub struct Operation {
    observations: Observations,
    phase: Phase,
    start: Instant,
}

impl Observations {
    /// Starts an operation.
    pub fn start(&self, phase: Phase, now: Instant) -> Operation {
        if let Ok(mut tracks) = self.tracks.lock() {
            let track = &mut tracks[phase as usize];
            track.running += 1;
            track.peak = track.peak.max(track.running);
            track.first.get_or_insert(now);
        }
        Operation { observations: self.clone(), phase, start: now }
    }

    /// The summary of a phase so far.
    pub fn summary(&self, phase: Phase) -> PhaseSummary {
        let Ok(tracks) = self.tracks.lock() else {
            return PhaseSummary { operations: 0, wall_seconds: 0.0, active_seconds: 0.0, peak_workers: 0 };
        };
        let track = &tracks[phase as usize];
        let wall = match (track.first, track.last) {
            (Some(first), Some(last)) => last.saturating_duration_since(first),
            _ => Duration::ZERO,
        };
        PhaseSummary {
            operations: track.operations,
            wall_seconds: wall.as_secs_f64(),
            active_seconds: track.active.as_secs_f64(),
            peak_workers: track.peak,
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let end = Instant::now();
        if let Ok(mut tracks) = self.observations.tracks.lock() {
            let track = &mut tracks[self.phase as usize];
            track.operations += 1;
            track.running = track.running.saturating_sub(1);
            track.active += end.saturating_duration_since(self.start);
            track.last = Some(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_measured_from_operations() {
        let observations = Observations::default();
        let now = Instant::now();
        let first = observations.start(Phase::Encode, now);
        let second = observations.start(Phase::Encode, now);
        drop(first);
        drop(second);
        let summary = observations.summary(Phase::Encode);
        assert_eq!((summary.operations, summary.peak_workers), (2, 2));
        assert!(summary.active_seconds >= summary.wall_seconds);
        assert_eq!(observations.summary(Phase::Import).operations, 0);
        assert_eq!(observations.summary(Phase::Import).effective_parallelism(), None);
    }
}
