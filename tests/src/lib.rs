//! Test kit: servers, proxy and the integration tests of the whole road.

pub mod control;
pub mod forward;
pub mod spawn;
