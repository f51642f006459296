//! The Kubernetes operator of native-transfer: the only member that knows Kubernetes.
//!
//! It starts phases of the engine as bare pods on one journal volume and projects what they say into status. The journal
//! is the truth about a run and the receipt row in SQL Server about publication; status can be rebuilt from both
//! (docs/internals/operator.md).
//!
//! Reading order: [`crd`] (the resource: spec, status, conditions, rules), then [`reconcile`] (one step of one resource).

pub mod api;
pub mod crd;
pub mod events;
pub mod health;
pub mod lease;
pub mod names;
pub mod reconcile;
pub mod run;
