//! Clock and randomness of the process.

use std::time::{SystemTime, UNIX_EPOCH};

use contract::civil::Instant;
use contract::digest::Digest;
use contract::error::PortError;
use contract::port::world::World;

/// The operating system's clock and random numbers.
pub(crate) struct SystemWorld;

impl World for SystemWorld {
    fn now(&self) -> Instant {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        Instant::from_micros(micros)
            .or_else(|| Instant::from_micros(0))
            .unwrap_or_else(|| unreachable!("1970 is a date"))
    }

    fn random(&self) -> Result<Digest, PortError> {
        random_bytes().map(Digest::from_bytes)
    }
}

/// 32 random bytes.
pub(crate) fn random_bytes() -> Result<[u8; 32], PortError> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| {
        PortError::not_done("native_transfer.entropy_unavailable", "the operating system gives no random numbers")
            .caused_by(std::io::Error::other(e.to_string()))
    })?;
    Ok(bytes)
}
