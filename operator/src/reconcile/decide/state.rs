//! What status remembers between two looks: everything a decision needs that pods, claim and spec do not say themselves.
//!
//! Times are whole seconds since 1970-01-01T00:00:00Z; the core has no clock. The phase of the transfer is not among the
//! facts: it is derived from them ([`super::report`]), so the two cannot contradict each other.

use super::codes;
use super::observation::Standing;
use crate::crd::condition::{ConditionType, Reason, Verdict};
use crate::crd::status::{Phase, WorkerPhase};

/// Which pod of a run: its name follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId {
    /// The attempt, from 1.
    pub attempt: u32,
    /// The phase.
    pub phase: WorkerPhase,
    /// The pod's number within phase and attempt, from 1.
    pub r#try: u32,
}

/// Why a pod was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cancel {
    /// `spec.suspend`.
    Suspend,
    /// `limits.deadline` has passed.
    Deadline,
    /// The resource is being deleted.
    Deletion,
    /// Its template changed before any of its containers started.
    Replaced,
}

impl Cancel {
    /// Every reason.
    pub const ALL: [Cancel; 4] = [Cancel::Suspend, Cancel::Deadline, Cancel::Deletion, Cancel::Replaced];

    /// The word in status.
    pub const fn text(self) -> &'static str {
        match self {
            Cancel::Suspend => "Suspend",
            Cancel::Deadline => "Deadline",
            Cancel::Deletion => "Deletion",
            Cancel::Replaced => "Replaced",
        }
    }
}

/// The pod that is meant to run now: written before it is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Which.
    pub id: WorkerId,
    /// UID of the pod once it was seen.
    pub uid: Option<String>,
    /// Whether a container of it was seen started.
    pub started: bool,
    /// Whether it only settles what an earlier try began, and never opens the source.
    pub settling: bool,
    /// Whether the target was found free for it.
    pub granted: bool,
    /// `--epoch-floor`.
    pub epoch_floor: u64,
    /// Not created earlier.
    pub not_before: i64,
    /// For an inspect pod: whose receipt is missing.
    pub inspects: Option<WorkerPhase>,
    /// Why it was asked to stop.
    pub cancel: Option<Cancel>,
}

/// What is known about custody of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Custody {
    /// Never claimed by this run.
    #[default]
    None,
    /// Held by this run.
    Held,
    /// Held once, and released with proof.
    Released,
    /// A worker ended without saying.
    Unknown,
}

impl Custody {
    /// The word in receipt and status.
    pub const fn text(self) -> &'static str {
        match self {
            Custody::None => "none",
            Custody::Held => "held",
            Custody::Released => "released",
            Custody::Unknown => "unknown",
        }
    }

    /// Reads [`Custody::text`].
    pub fn from_text(text: &str) -> Option<Self> {
        [Custody::None, Custody::Held, Custody::Released, Custody::Unknown].into_iter().find(|word| word.text() == text)
    }

    /// Whether nothing at the target belongs to this run.
    pub const fn is_clear(self) -> bool {
        matches!(self, Custody::None | Custody::Released)
    }
}

/// The sealed end of source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Rows in verified stages.
    pub rows: u64,
    /// The EOF descriptor, canonical JSON, when the receipt carried it.
    pub descriptor: Option<String>,
    /// Its SHA-256, hex.
    pub sha256: Option<String>,
}

/// What is known about the publication transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outcome {
    /// No publish pod was meant to run yet.
    #[default]
    NotBegun,
    /// A publish pod was meant to run; it has not answered yet.
    Intent,
    /// The receipt row is there.
    Committed,
    /// Proved not to be there.
    RolledBack,
    /// Nobody knows.
    Unknown,
}

impl Outcome {
    /// The word in status; none while nothing began.
    pub const fn text(self) -> Option<&'static str> {
        match self {
            Outcome::NotBegun => None,
            Outcome::Intent => Some("Intent"),
            Outcome::Committed => Some("Committed"),
            Outcome::RolledBack => Some("RolledBack"),
            Outcome::Unknown => Some("Unknown"),
        }
    }

    /// Reads [`Outcome::text`].
    pub fn from_text(text: &str) -> Option<Self> {
        [Outcome::Intent, Outcome::Committed, Outcome::RolledBack, Outcome::Unknown]
            .into_iter()
            .find(|outcome| outcome.text() == Some(text))
    }
}

/// The publication of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publication {
    /// Outcome.
    pub outcome: Outcome,
    /// When the first publish pod was meant to run.
    pub intent_at: Option<i64>,
    /// Id of the receipt row.
    pub receipt_id: Option<String>,
    /// Commit time by the target's clock, as the receipt says it.
    pub committed_at: Option<String>,
    /// Digest of the evidence row, hex.
    pub evidence: Option<String>,
}

/// A coded failure, as a person reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// Ends of pods in a row that brought nothing further.
    pub count: u32,
    /// How the last container that said nothing had ended, such as `OOMKilled, exit code 137`. Kept until a pod succeeds.
    pub cause: Option<String>,
    /// When.
    pub at: i64,
}

impl Failure {
    /// The failure as a person reads it.
    pub fn explain(&self) -> String {
        explain_with(&self.code, self.cause.as_deref())
    }
}

/// A code as a person reads it, with how a container ended.
pub fn explain_with(code: &str, cause: Option<&str>) -> String {
    match cause {
        Some(cause) => format!("{} A worker's container ended without a receipt: {cause}.", codes::explain(code)),
        None => codes::explain(code),
    }
}

/// How a run came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Published, recorded, cleaned up, released.
    Succeeded,
    /// Ended before any effect, or cancelled before the first one.
    Failed {
        /// Stable code.
        code: String,
    },
    /// Settled without publication; only a new token goes on.
    ReextractRequired {
        /// Stable code.
        code: String,
    },
}

/// How many pods of each phase the current attempt has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tries {
    /// Admit pods.
    pub admit: u32,
    /// Extract pods.
    pub extract: u32,
    /// Publish pods.
    pub publish: u32,
    /// Inspect pods.
    pub inspect: u32,
}

impl Tries {
    /// The counter of a phase.
    pub fn of(&self, phase: WorkerPhase) -> u32 {
        match phase {
            WorkerPhase::Admit => self.admit,
            WorkerPhase::Extract => self.extract,
            WorkerPhase::Publish => self.publish,
            WorkerPhase::Inspect => self.inspect,
        }
    }

    pub(super) fn next(&mut self, phase: WorkerPhase) -> u32 {
        let counter = match phase {
            WorkerPhase::Admit => &mut self.admit,
            WorkerPhase::Extract => &mut self.extract,
            WorkerPhase::Publish => &mut self.publish,
            WorkerPhase::Inspect => &mut self.inspect,
        };
        *counter = counter.saturating_add(1);
        *counter
    }
}

/// One run: what one token started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// `spec.run.token` that started it.
    pub token: String,
    /// SHA-256 of the frozen plan, hex; never changes within a run.
    pub plan: String,
    /// When it was accepted.
    pub started_at: i64,
    /// When it came to rest.
    pub ended_at: Option<i64>,
    /// The current attempt, from 1.
    pub attempt: u32,
    /// Ended attempts that count against `limits.attempts`.
    pub spent: u32,
    /// Pods of the current attempt.
    pub tries: Tries,
    /// The pod that is meant to run now; none at rest.
    pub worker: Option<Worker>,
    /// Identity of the target, hex; known after admission.
    pub target: Option<String>,
    /// Workload digest, hex.
    pub workload: Option<String>,
    /// Custody.
    pub custody: Custody,
    /// The sealed end of source of the current attempt.
    pub sealed: Option<Sealed>,
    /// The publication of the current attempt.
    pub publication: Publication,
    /// The last coded failure; none after progress.
    pub failure: Option<Failure>,
    /// How it came to rest.
    pub rest: Option<Rest>,
}

impl Run {
    /// A run that nothing was done for yet.
    pub fn new(token: &str, plan: &str, now: i64) -> Self {
        Run {
            token: token.to_owned(),
            plan: plan.to_owned(),
            started_at: now,
            ended_at: None,
            attempt: 1,
            spent: 0,
            tries: Tries::default(),
            worker: None,
            target: None,
            workload: None,
            custody: Custody::None,
            sealed: None,
            publication: Publication::default(),
            failure: None,
            rest: None,
        }
    }

    /// What the target holds of this run, or may come to hold by what already runs; none when nothing.
    ///
    /// Another transfer to the same target waits while there is something.
    pub fn occupation(&self) -> Option<Standing> {
        let granted = self.worker.as_ref().is_some_and(|worker| worker.granted);
        match (&self.rest, self.publication.outcome) {
            (Some(_), _) => None,
            (None, Outcome::Unknown) => Some(Standing::Unknown),
            (None, _) if !self.custody.is_clear() => Some(Standing::Holds),
            (None, _) => granted.then_some(Standing::Works),
        }
    }

    /// Whether nothing of it is left: known outcome, custody clear.
    pub fn is_settled(&self) -> bool {
        self.custody.is_clear()
            && matches!(self.publication.outcome, Outcome::NotBegun | Outcome::Committed | Outcome::RolledBack)
    }
}

/// One condition of status; generation and times are added by who writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Type.
    pub kind: ConditionType,
    /// Status.
    pub verdict: Verdict,
    /// Reason.
    pub reason: Reason,
    /// What a person reads: code, meaning, what to do.
    pub message: String,
}

/// Status, as far as decisions write it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The generation this was decided for.
    pub observed_generation: i64,
    /// Highest journal epoch that was seen, over all runs.
    pub epoch: u64,
    /// UID of the journal's claim once it was seen.
    pub claim: Option<String>,
    /// The current or last run.
    pub run: Option<Run>,
    /// Phase in the spec's words; derived.
    pub phase: Option<Phase>,
    /// Conditions in a fixed order; derived.
    pub conditions: Vec<Condition>,
}

impl State {
    /// The condition of a type.
    pub fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}
