//! From a manifest to a [`Plan`]: the only door to everything that runs (contract.md 10, design.md 4).
//!
//! [`parse`] takes a `NativeTransfer` resource or a `dpone.batch.v1` file; [`Plan::from_process`] takes one process of
//! either as data. Both refuse with the code of the first check that fails: the document's shape and its keys, then the
//! checks of [`policy`] in their documented order, then what only this product's own options need.

mod document;
mod keys;
mod plan;
pub mod policy;

pub use document::{API_VERSION, Process, parse, preview, processes};
pub use plan::{Clear, Plan, Preview, SourceRelation, Strategy};
