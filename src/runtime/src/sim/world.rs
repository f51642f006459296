//! Clock and randomness of the simulation: both count, over all processes of a world.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use contract::civil::Instant;
use contract::digest::Digest;
use contract::error::PortError;
use contract::port::world::World;

use super::faults::{Faults, refused};

/// 2013-07-05T00:00:00Z.
const START_MICROS: i64 = 1_372_982_400_000_000;

#[derive(Debug, Clone)]
pub(super) struct SimWorld {
    ticks: Arc<AtomicI64>,
    faults: Faults,
}

impl SimWorld {
    pub(super) fn new(faults: Faults) -> Self {
        SimWorld { ticks: Arc::default(), faults }
    }

    fn tick(&self) -> i64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn nonce(&self) -> Digest {
        Digest::of(&self.tick().to_be_bytes())
    }
}

impl World for SimWorld {
    fn now(&self) -> Instant {
        Instant::from_micros(START_MICROS + self.tick() * 1_000_000).unwrap()
    }

    fn random(&self) -> Result<Digest, PortError> {
        match self.faults.enter("world random") {
            None => Ok(self.nonce()),
            Some(_) => Err(refused()),
        }
    }
}
