//! Observing space at the three moments that ask for it.

use contract::capacity;
use contract::error::PortError;
use contract::port::target::Target;
use contract::port::world::World;

use crate::context::RunContext;
use crate::frozen::Frozen;

/// The target has room; anything that cannot be seen is a refusal.
pub(crate) async fn require<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Result<(), PortError> {
    let seen = context.target.capacity(&frozen.request).await?;
    capacity::admit_target(&context.plan.limits, &seen).map_err(PortError::from)
}
