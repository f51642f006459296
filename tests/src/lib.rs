//! Test kit: servers, proxy and the integration tests of the whole road.

pub mod cluster;
pub mod control;
pub mod ends;
pub mod forward;
pub mod image;
pub mod reader;
pub mod relay;
pub mod spawn;
pub mod transfer;
