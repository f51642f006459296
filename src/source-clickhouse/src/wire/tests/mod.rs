//! The reader against a scripted server.

mod decoding;
mod endings;
mod hostile;
mod klickhouse;
pub(crate) mod script;
