//! Pairs of faults, by seed: a second failure while the first one is being dealt with.
//!
//! `NT_SIM_PAIRS=N` runs that many seeds, `NT_SIM_SEED=N` replays one.

use super::faults::{Fault, Site};
use super::process::Simulation;
use super::transfer::{Reads, Replaces, Transfer};

/// Seeds of an ordinary test run.
const PAIRS: u64 = 120;

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        // Knuth's multiplier; the upper bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }

    fn fault(&mut self, sites: &[Site]) -> (Site, Fault) {
        let site = sites[self.below(sites.len())].clone();
        let faults: Vec<Fault> = Fault::of(&site).collect();
        let fault = faults[self.below(faults.len())];
        (site, fault)
    }
}

/// Runs one seed; whether both faults took place.
fn pair(transfer: &Transfer, sites: &[Site], seed: u64) -> bool {
    let mut seeded = Seeded(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let first = seeded.fault(sites);
    // The calls that follow the first fault are found by running it alone.
    let alone = Simulation::new(transfer);
    alone.inject(&first.0, first.1);
    alone.settle();
    let trace = alone.faults.trace();
    let at = trace.iter().position(|site| *site == first.0).unwrap();
    let second = seeded.fault(&trace[at..]);
    // A third of the seeds race on real threads.
    let both = Simulation { threads: if seed.is_multiple_of(3) { 2 } else { 0 }, ..Simulation::new(transfer) };
    both.inject(&first.0, first.1);
    both.inject(&second.0, second.1);
    both.settle();
    both.faults.hits().len() == 2
}

#[test]
fn a_second_failure_is_survived_too() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let transfers =
        [Transfer::new(Replaces::Window, Reads::Raw, &[3]), Transfer::new(Replaces::All, Reads::Visible, &[1])];
    let sites = transfers.each_ref().map(Simulation::calls);
    let seeds = match number("NT_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NT_SIM_PAIRS").unwrap_or(PAIRS),
    };
    let (mut both, mut failed) = (0, Vec::new());
    let all = seeds.clone().count();
    for seed in seeds {
        let which = usize::try_from(seed % 2).unwrap();
        match std::panic::catch_unwind(|| pair(&transfers[which], &sites[which], seed)) {
            Ok(hit) => both += usize::from(hit),
            Err(_) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?}");
    assert!(both * 2 > all, "only {both} of {all} pairs were pairs");
}
