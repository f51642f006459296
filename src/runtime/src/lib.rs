//! Execution over ports: driver, pipeline, settlement.
//!
//! Reading order: `driver` (one run and what each end means), `admit` and `frozen` (what is decided before the first
//! effect), `claim` (custody before any row), `pipeline` with `frames`, `spool` and `chunk` (rows into verified stages), `sealed` (the end of source),
//! `publish` (from there to custody released), `settle` (what a failed run leaves), `inspect` (a run from its journal
//! alone), `facts` and `receipt` (what is told of a run). `records` says what is durable; `measure` runs the first half of the
//! pipeline alone, and `qualify` does so several times.

mod admit;
mod capacity;
mod chunk;
mod claim;
mod context;
mod driver;
mod evidence;
mod facts;
mod frames;
mod frozen;
mod inspect;
mod journal;
pub mod measure;
mod observations;
mod pipeline;
mod progress;
mod publish;
pub mod qualify;
mod receipt;
mod records;
mod report;
mod sealed;
mod settle;
#[cfg(test)]
mod sim;
mod spool;

pub use driver::{Request, Scope, run};
pub use facts::RunFacts;
pub use inspect::{Inspection, evidence_of, inspect};
pub use observations::{Observations, Operation, Phase, PhaseSummary};
pub use progress::{Progress, ProgressReading};
pub use receipt::ended_early;
pub use report::{End, Outcome};
pub use tokio_util::sync::CancellationToken;
