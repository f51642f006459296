//! `testkit cluster`: a single-node Kubernetes of real parts on this machine, without Docker and without a registry.
//!
//! Everything runs in a network namespace, a mount namespace and a cgroup of its own, so that several clusters stand side by
//! side, and `down` finds every process, mount and address whatever died before it (docs/internals/test-cluster.md).

mod build;
mod certificates;
mod cgroup;
mod commands;
mod config;
mod daemons;
mod down;
mod existing;
mod image;
mod kubelet;
mod layout;
mod mounts;
mod namespaces;
mod packages;
mod process;
mod programs;
mod ready;
mod storage;
mod tar;
mod up;
mod wait;

pub use commands::{Arguments, run};
pub use ready::Ready;

/// Errors of this command are read by people: what was tried, what is missing, and which log says more.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
