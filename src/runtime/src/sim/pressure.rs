//! Back-pressure: what is between source and target is bounded, whatever stalls.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Semaphore;

use super::process::{Ended, Simulation};
use super::transfer::{Reads, Replaces, Transfer};
use crate::driver::Scope;
use crate::report::End;

/// Each block is one chunk.
const BLOCKS: usize = 40;

#[test]
fn a_stalled_target_stops_the_source() {
    let gate = Arc::new(Semaphore::new(0));
    let transfer = Transfer::new(Replaces::All, Reads::Visible, &[2; BLOCKS]);
    let simulation = Simulation { gate: Some(Arc::clone(&gate)), ..Simulation::new(&transfer) };
    let limits = transfer.plan.limits;
    let chunks = simulation.root.path().join("chunks").join(&simulation.run_key()[..32]);
    let pulled = Arc::clone(&simulation.pulled);
    let watcher = std::thread::spawn(move || {
        // C chunks hold a permit, the next waits for one, and the block behind it has closed its frame.
        let bound = u32::try_from(limits.retained_work_capacity() + 2).unwrap();
        while pulled.load(Ordering::Relaxed) < bound {
            std::thread::yield_now();
        }
        let mut most_files = 0;
        for _ in 0..2000 {
            std::thread::yield_now();
            most_files = most_files.max(std::fs::read_dir(&chunks).map(Iterator::count).unwrap_or(0));
        }
        let seen = (pulled.load(Ordering::Relaxed), most_files);
        gate.add_permits(BLOCKS);
        (seen, bound)
    });
    let ended = simulation.process(Scope::Run);
    let ((blocks, files), bound) = watcher.join().unwrap();
    assert_eq!(blocks, bound, "the source was read no further");
    assert!(files as u64 <= limits.retained_work_capacity(), "{files} chunk files");
    assert!(matches!(ended, Ended::With(End::Succeeded { chunks: 40, .. })), "{ended:#?}");
}
