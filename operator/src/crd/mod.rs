//! The custom resource: spec, status, conditions, rules, and the definition that the API server gets.

pub mod condition;
mod convert;
mod definition;
pub mod manifest;
#[cfg(test)]
mod reference_tests;
pub mod rules;
#[cfg(test)]
mod rules_tests;
pub mod spec;
pub mod status;
#[cfg(test)]
pub(crate) mod tests;

pub use definition::{DefinitionError, FILE, native_transfer, yaml};
pub use spec::{NativeTransfer, NativeTransferSpec};
pub use status::NativeTransferStatus;
