//! What one look at the cluster found, in the core's own words.

use std::collections::BTreeSet;

use super::state::{Custody, State, WorkerId};
use crate::crd::condition::Reason;
use crate::crd::status::WorkerPhase;

/// What a worker said at its end: the parts of its receipt that decisions need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Phase of the pod.
    pub phase: WorkerPhase,
    /// 0 done, 1 refused, 3 unknown or held, 4 re-extract required.
    pub exit_code: u8,
    /// State in the spec's words.
    pub state: String,
    /// Stable code of what failed.
    pub code: Option<String>,
    /// Whether nothing of the attempt is left to be done by anyone.
    pub attempt_closed: bool,
    /// Journal epoch of the process.
    pub epoch: u64,
    /// Rows of the sealed end.
    pub rows: Option<u64>,
    /// Custody.
    pub custody: Custody,
    /// Identity of the target, hex.
    pub target: Option<String>,
    /// Workload digest, hex.
    pub workload: Option<String>,
    /// Id of the receipt row.
    pub receipt_id: Option<String>,
    /// Commit time.
    pub committed_at: Option<String>,
    /// Digest of the evidence row, hex.
    pub evidence: Option<String>,
    /// SHA-256 of the EOF descriptor, hex.
    pub eof: Option<String>,
    /// The EOF descriptor.
    pub descriptor: Option<String>,
}

/// Why a pod has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Condition reason, such as `ImageUnavailable`.
    pub reason: Reason,
    /// What the cluster says about it.
    pub message: String,
}

/// How a pod ended, proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Death {
    /// None of its containers ever ran.
    NeverStarted,
    /// Every container ended.
    Ended {
        /// Exit code of the worker's container.
        exit_code: i32,
        /// `OOMKilled`, `Error`, `Completed`, ...
        reason: String,
        /// When the last container ended.
        finished_at: i64,
    },
}

/// What a pod's status proves about its processes ([`crate::reconcile::life`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    /// Nothing ran yet, and it may start at any time.
    Pending(Option<Trouble>),
    /// It runs, as far as its node says.
    Running,
    /// Nobody can say: its node does not answer, or its object is kept after its node is gone.
    Unreachable,
    /// The kubelet answers and does not find the container any more; how it ended is lost.
    Lost,
    /// It ended.
    Dead(Death),
}

impl Life {
    /// Whether a process of it may still act.
    pub const fn may_act(&self) -> bool {
        matches!(self, Life::Pending(_) | Life::Running | Life::Unreachable)
    }
}

/// A pod of this transfer, found by UID label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Which worker it is; none for a pod of an earlier run.
    pub worker: Option<WorkerId>,
    /// Whether it still carries the finalizer `result-unread`.
    pub unread: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What its status proves.
    pub life: Life,
    /// Its receipt, when whole and of its own run and phase.
    pub receipt: Option<Receipt>,
    /// Digest of the mutable inputs it was built from.
    pub template: String,
    /// Order of creation among the pods of this transfer.
    pub created_at: i64,
}

/// The journal's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// There is none.
    Absent,
    /// One of that name belongs to something else.
    Foreign,
    /// Ours.
    Present {
        /// UID.
        uid: String,
        /// Whether it carries our finalizer.
        guarded: bool,
        /// Whether it is being deleted.
        deleting: bool,
        /// Whether its volume is gone (phase `Lost`).
        lost: bool,
        /// Whether it asks for less than `spec.journal.size`.
        short: bool,
    },
}

/// What a transfer that is not at rest means to its target, from the weakest right to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It waits for the target and could start now.
    Waits,
    /// It was granted the target: a pod of it works there, or may start at any time.
    Works,
    /// The target holds something of it, or may.
    Holds,
    /// Nobody knows whether its publication was committed.
    Unknown,
}

impl Standing {
    /// Whether everybody else waits, however old.
    pub fn occupies(self) -> bool {
        self > Standing::Waits
    }
}

/// Another transfer to the same target that is not at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Competitor {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Creation time.
    pub created_at: i64,
    /// What it means to the target.
    pub standing: Standing,
}

/// A plan that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Stable code.
    pub code: String,
    /// Message.
    pub message: String,
}

/// What spec and metadata ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// `spec.run.token`.
    pub token: String,
    /// `spec.suspend`.
    pub suspend: bool,
    /// `spec.limits.attempts`, at least 1.
    pub attempts: u32,
    /// `spec.limits.deadline`, seconds of a whole run.
    pub deadline_seconds: Option<i64>,
    /// `spec.limits.backoff`: first wait after a failure, seconds.
    pub backoff_seconds: i64,
    /// `spec.retention.workerPods`, seconds.
    pub retention_seconds: Option<i64>,
    /// Annotation `transfer.dpone.io/on-delete: publish`.
    pub publish_on_delete: bool,
    /// Digest of the frozen plan, or why there is none.
    pub plan: Result<String, Rejection>,
    /// Digest of what the next pod would be built from besides the plan.
    pub template: String,
}

/// One look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Seconds since the epoch.
    pub now: i64,
    /// Namespace of the transfer.
    pub namespace: String,
    /// UID of the transfer.
    pub uid: String,
    /// Its creation time.
    pub created_at: i64,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it carries our finalizer.
    pub guarded: bool,
    /// What is asked for.
    pub wish: Wish,
    /// What status remembers.
    pub state: State,
    /// Its pods, of every run.
    pub pods: Vec<Pod>,
    /// Its claim.
    pub claim: Claim,
    /// Other transfers to the same target, in the order of their right to it.
    pub competitors: Vec<Competitor>,
    /// Tokens of earlier runs, as far as the history in status goes.
    pub used_tokens: BTreeSet<String>,
    /// Why the last step of this transfer was refused by the API server, if it was.
    pub refused: Option<Trouble>,
}
