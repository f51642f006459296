//! Clock and randomness, so that the runtime itself has neither.

use crate::civil::Instant;
use crate::digest::Digest;
use crate::error::PortError;

/// What the composition root gives the runtime of the outside world.
pub trait World: Send + Sync + 'static {
    /// The time now, UTC with microseconds. It only labels records and receipts; no decision depends on it.
    fn now(&self) -> Instant;

    /// 32 random bytes from the operating system.
    fn random(&self) -> Result<Digest, PortError>;
}
