//! The reader against a scripted server.

mod caps;
mod decoding;
mod endings;
mod hostile;
mod klickhouse;
mod memory;
mod model;
mod old_server;
mod properties;
pub(crate) mod script;
