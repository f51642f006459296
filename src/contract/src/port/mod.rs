//! Ports: what the runtime asks of the outside, as traits over facts and requests of this crate.
//!
//! A port method performs one effect and reports what is known about it: `Ok` with an observation, or a
//! [`PortError`](crate::error::PortError) with its [`Fate`](crate::error::Fate). No port method decides anything; the
//! decisions are functions of `contract` over the observations. Anything that an adapter cannot classify is
//! `Fate::Unknown`.

pub mod journal;
pub mod source;
pub mod target;
pub mod world;
