//! A model of API server, kubelet, engine and two operator processes, driven by seeds, with every fault that we know of.
//!
//! Checked in every step: no second live pod without proof that the first one ended; no publish before the source end is
//! sealed; one source query and at most one commit per attempt; epoch and attempt never fall; nothing is let go while
//! custody is held or the outcome unknown. Checked at the end, when faults have stopped: a rest state, and not one write
//! more.

mod engine;
mod objects;
mod world;

use std::time::{Duration, Instant};

use world::World;

use super::state::Rest;
use super::{Step, decide};

/// Seeds of one run of the test, and the time it may take at most on a busy machine.
const SEEDS: u64 = 8_000;
const BUDGET: Duration = Duration::from_secs(15);

#[test]
fn every_seed_keeps_the_promises_and_comes_to_rest() {
    let begun = Instant::now();
    let mut ends = [0u32; 4];
    let mut seeds = 0;
    for seed in 1..=SEEDS {
        if begun.elapsed() > BUDGET {
            break;
        }
        let mut world = World::new(seed);
        let moves = 40 + (seed % 120);
        for _ in 0..moves {
            world.disturb();
        }
        world.calm(seed);
        let look = world.look();
        if world.gone {
            ends[3] += 1;
        } else {
            let again = decide(&look);
            assert_eq!(again.step, Step::Nothing, "seed {seed}: {:#?}", look.state);
            assert_eq!(again.state, look.state, "seed {seed}: idle and yet a write");
            match look.state.run.as_ref().and_then(|run| run.rest.as_ref()) {
                Some(Rest::Succeeded) => ends[0] += 1,
                Some(Rest::Failed { .. }) => ends[1] += 1,
                Some(Rest::ReextractRequired { .. }) => ends[2] += 1,
                None => panic!("seed {seed} did not come to rest: {:#?}\n{}", look.state, world.story()),
            }
        }
        seeds = seed;
    }
    assert!(seeds >= 300, "only {seeds} seeds in the time: make the model cheaper");
    assert!(ends.iter().all(|count| *count > 0), "some end was never reached: {ends:?}");
}
