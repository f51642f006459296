//! What a case on a real cluster needs: the cluster with the product installed as its chart says, and a namespace with both
//! ends of a transfer.
//!
//! Everything is done as a person would do it, by `kubectl` and `helm`; deaths come from signals, cgroups, the API and a
//! stopped kubelet, never from a written status.
#![allow(clippy::expect_used, clippy::panic, clippy::missing_panics_doc, reason = "a case ends where its kit fails")]

pub mod audit;
pub mod case;
pub mod cluster;
pub mod kubectl;
pub mod process;

pub use case::Case;
pub use cluster::Cluster;
pub use kubectl::Kubectl;
