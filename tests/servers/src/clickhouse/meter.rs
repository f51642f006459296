//! How far a streamed query has come.
//!
//! The engine's interface counts what is read while a piece is fetched and forgets what its threads read between two
//! fetches. `system.processes` knows it all, but costs a query; so it is asked as often as a server reports progress (each
//! 100 ms), and at a piece of another size than the one before, which may be the last. What is reported is never too much;
//! of a long result it may be a little less than what was read.

use std::time::{Duration, Instant};

use super::connection::Counts;
use super::engine::Engine;

/// `interactive_delay` of a server.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// The least time between two questions once a result has more than a few pieces.
const ASK_OFTEN: Duration = Duration::from_millis(10);
const PIECES_FEW: u64 = 8;

pub(super) struct Meter<'a> {
    engine: &'a Engine,
    thread_id: i32,
    asked: Instant,
    pieces: u64,
    rows_before: u64,
    /// Counted by the interface.
    counted: Counts,
    /// Reported so far.
    reported: Counts,
}

impl<'a> Meter<'a> {
    /// Measures the query that runs on the thread `thread_id` of the engine.
    pub(super) fn new(engine: &'a Engine, thread_id: i32) -> Meter<'a> {
        Meter {
            engine,
            thread_id,
            asked: Instant::now(),
            pieces: 0,
            rows_before: 0,
            counted: Counts::default(),
            reported: Counts::default(),
        }
    }

    /// What to report with a piece of which the interface counts `piece`: the work since the report before.
    pub(super) fn step(&mut self, piece: Counts) -> Counts {
        self.counted.read_rows += piece.read_rows;
        self.counted.read_bytes += piece.read_bytes;
        let mut now = self.counted;
        let may_be_last = self.pieces > 0 && piece.rows != self.rows_before;
        let since_asked = self.asked.elapsed();
        if since_asked >= ASK_AGAIN || (may_be_last && (self.pieces < PIECES_FEW || since_asked >= ASK_OFTEN)) {
            self.asked = Instant::now();
            if let Some(known) = self.engine.progress(self.thread_id) {
                now.read_rows = now.read_rows.max(known.read_rows);
                now.read_bytes = now.read_bytes.max(known.read_bytes);
                now.rows_to_read = known.rows_to_read;
            }
        }
        self.pieces += 1;
        self.rows_before = piece.rows;
        let before = self.reported;
        let since = |now: u64, before: u64| now.saturating_sub(before);
        self.reported = Counts {
            read_rows: now.read_rows.max(before.read_rows),
            read_bytes: now.read_bytes.max(before.read_bytes),
            rows_to_read: now.rows_to_read.max(before.rows_to_read),
            ..before
        };
        Counts {
            read_rows: since(now.read_rows, before.read_rows),
            read_bytes: since(now.read_bytes, before.read_bytes),
            rows_to_read: since(now.rows_to_read, before.rows_to_read),
            ..piece
        }
    }
}
