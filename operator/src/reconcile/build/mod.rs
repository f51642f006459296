//! Objects as pure functions of what is decided: the worker pod and the journal claim (docs/internals/operator.md).
//!
//! Nothing here reads a Secret, a clock or the cluster: the same decision always gives the same bytes, so creating an
//! object twice is the same as creating it once.

mod claim;
mod pod;
#[cfg(test)]
mod tests;

pub use claim::claim;
pub use pod::pod;

use std::collections::BTreeMap;

use contract::worker::FrozenPlan;

use super::validate::Settings;
use crate::crd::status::WorkerPhase;
use crate::names;

/// User, group and file group of every worker: the image's only user.
pub const WORKER_UID: i64 = 65_532;

/// Path of the binary in the image.
pub const BINARY: &str = "/usr/bin/native-transfer";

/// Folder of the frozen plan and the pod's UID.
pub const PLAN_FOLDER: &str = "/etc/native-transfer/plan";

/// Folder of the two connections.
pub const CONNECTIONS_FOLDER: &str = "/etc/native-transfer/connections";

/// Mount of the journal volume.
pub const JOURNAL_VOLUME: &str = "/var/lib/native-transfer";

/// Root of the journal on its volume.
pub const JOURNAL_ROOT: &str = "/var/lib/native-transfer/journal";

/// Where the receipt is left.
pub const RECEIPT_FILE: &str = "/dev/termination-log";

/// Port of the progress endpoint.
pub const PROGRESS_PORT: i32 = 8080;

/// Name of the one container.
pub const CONTAINER: &str = "worker";

/// The transfer that an object belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Name, for people.
    pub name: &'a str,
    /// UID, which everything is found by.
    pub uid: &'a str,
}

/// A worker pod as it is decided.
#[derive(Debug, Clone, Copy)]
pub struct Worker<'a> {
    /// The transfer.
    pub owner: Owner<'a>,
    /// Token of the run.
    pub token: &'a str,
    /// Phase of the engine.
    pub phase: WorkerPhase,
    /// Attempt of the run, from 1.
    pub attempt: i64,
    /// Try of the phase, from 1.
    pub try_: i64,
    /// The journal must open above this epoch.
    pub epoch_floor: i64,
    /// The document that the worker reads.
    pub frozen: &'a FrozenPlan,
    /// What its pods look like.
    pub settings: &'a Settings,
}

impl Worker<'_> {
    /// Name of the pod.
    pub fn pod_name(&self) -> String {
        names::pod(self.owner.uid, self.token, self.phase, self.attempt, self.try_)
    }

    /// The run id.
    pub fn run_id(&self) -> String {
        names::run_id(self.owner.uid, self.token, self.attempt)
    }
}

/// Labels of everything that belongs to a transfer. Labels of the transfer itself are never copied: a tool that tracks
/// its resources by a label would take the children for its own and prune them.
fn labels(owner: &Owner<'_>) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "native-transfer"),
        ("app.kubernetes.io/component", "worker"),
        ("app.kubernetes.io/managed-by", names::FIELD_MANAGER),
        (names::TRANSFER_UID_LABEL, owner.uid),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}
