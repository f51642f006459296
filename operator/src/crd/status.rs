//! What the operator writes: a bounded projection that can be rebuilt from the journal and the receipt row.
//!
//! Numbers are `i64` because that is what Kubernetes keeps. Digests are 64 hexadecimal digits.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most entries of `status.history`.
pub const HISTORY_MAX: usize = 10;

/// Largest EOF descriptor that status repeats, bytes.
pub const EOF_INLINE_BYTES_MAX: usize = 32_768;

/// Status of a `NativeTransfer`.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct NativeTransferStatus {
    /// Generation of the spec that this status was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// State of the run in the words of the design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What applies where the spec says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<EffectiveStatus>,
    /// Highest journal epoch that any receipt has named. It never falls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub epoch: Option<i64>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunStatus>,
    /// The worker pod that was started last, or is about to be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerStatus>,
    /// Repetitions after failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryStatus>,
    /// Where the running worker is. It never feeds a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressStatus>,
    /// What the run holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custody: Option<CustodyStatus>,
    /// What is known about the publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<PublicationStatus>,
    /// Conditions, each with the generation that it was observed at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Ended attempts and runs, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<HistoryEntry>,
}

/// State of a run; the words are those of `contract::transfer`.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The plan is frozen; no row was read.
    Planned,
    /// The one source query is open, or was open.
    Extracting,
    /// The source end is sealed with every chunk verified.
    StageComplete,
    /// The publication transaction was begun.
    Publishing,
    /// The receipt is proved.
    Published,
    /// The evidence is saved.
    EvidenceComplete,
    /// Everything is done.
    Succeeded,
    /// Extraction ended, and some writer or stage is not proved settled.
    CustodyUnknown,
    /// Settled without publication; a new run must read the source again.
    ReextractRequired,
    /// Nobody knows whether the publication was committed.
    OutcomeUnknown,
    /// Ended without publication, proved; or refused before any effect.
    Failed,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 11] = [
        Phase::Planned,
        Phase::Extracting,
        Phase::StageComplete,
        Phase::Publishing,
        Phase::Published,
        Phase::EvidenceComplete,
        Phase::Succeeded,
        Phase::CustodyUnknown,
        Phase::ReextractRequired,
        Phase::OutcomeUnknown,
        Phase::Failed,
    ];

    /// The word as it stands in status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Planned => "Planned",
            Phase::Extracting => "Extracting",
            Phase::StageComplete => "StageComplete",
            Phase::Publishing => "Publishing",
            Phase::Published => "Published",
            Phase::EvidenceComplete => "EvidenceComplete",
            Phase::Succeeded => "Succeeded",
            Phase::CustodyUnknown => "CustodyUnknown",
            Phase::ReextractRequired => "ReextractRequired",
            Phase::OutcomeUnknown => "OutcomeUnknown",
            Phase::Failed => "Failed",
        }
    }

    /// The phase of a word of the engine.
    pub fn from_text(text: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.as_str() == text)
    }
}

/// What applies where the spec says nothing.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveStatus {
    /// The source table, database.table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub source: Option<String>,
    /// The target table, schema.table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub target: Option<String>,
    /// How rows are read: query_visible or exact_raw_rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub source_mode: Option<String>,
    /// What is replaced: full_refresh or partition_replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub strategy: Option<String>,
    /// Start of the window, inclusive, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub window_start: Option<String>,
    /// End of the window, exclusive, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub window_end: Option<String>,
    /// Keys of the manifest that have no effect on this route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 256)))]
    pub ignored_keys: Vec<String>,
    /// Image of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// Access mode of the journal claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<super::spec::AccessMode>,
    /// Extractions of one run at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// Longest time from the start of a run to its sealed end of source, seconds; absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<i64>,
    /// Wait before the first repetition, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_seconds: Option<i64>,
}

/// The run.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// The token of `spec.run` that it was started for.
    #[schemars(length(min = 1, max = 63))]
    pub token: String,
    /// The run id that the worker is given: UID/TOKEN/ATTEMPT.
    #[schemars(length(min = 1, max = 256))]
    pub id: String,
    /// First 16 hexadecimal digits of the SHA-256 of the run id, as in receipts and labels.
    #[schemars(length(min = 16, max = 16))]
    pub tag: String,
    /// Digest of the frozen plan. Written once per run.
    #[serde(rename = "planSHA256", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub plan_sha256: Option<String>,
    /// Counts extractions, from 1. It never falls within a run.
    #[schemars(range(min = 1))]
    pub attempt: i64,
    /// When the run was taken up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Ended attempts that count against `limits.attempts`; a suspended one does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub spent_attempts: Option<i64>,
    /// Pods of the current attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<TriesStatus>,
    /// How the run ended: Succeeded, Failed or ReextractRequired; absent while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Phase>,
    /// Code of a run that ended otherwise than Succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub result_code: Option<String>,
}

/// How many pods of each phase an attempt has had.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct TriesStatus {
    /// Admission pods.
    #[schemars(range(min = 0))]
    pub admit: i64,
    /// Extraction pods.
    #[schemars(range(min = 0))]
    pub extract: i64,
    /// Publication pods.
    #[schemars(range(min = 0))]
    pub publish: i64,
    /// Inspection pods.
    #[schemars(range(min = 0))]
    pub inspect: i64,
}

/// Phases of the engine, one pod each.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum WorkerPhase {
    /// Looks at source and target, touches nothing.
    Admit,
    /// Reads the source once and stages every chunk.
    Extract,
    /// Makes the rows visible.
    Publish,
    /// Says what the journal knows.
    Inspect,
}

impl WorkerPhase {
    /// Every phase.
    pub const ALL: [WorkerPhase; 4] =
        [WorkerPhase::Admit, WorkerPhase::Extract, WorkerPhase::Publish, WorkerPhase::Inspect];

    /// The phase as command, label and part of names.
    pub const fn as_str(self) -> &'static str {
        match self {
            WorkerPhase::Admit => "admit",
            WorkerPhase::Extract => "extract",
            WorkerPhase::Publish => "publish",
            WorkerPhase::Inspect => "inspect",
        }
    }

    /// The phase of a label.
    pub fn from_text(text: &str) -> Option<WorkerPhase> {
        WorkerPhase::ALL.into_iter().find(|phase| phase.as_str() == text)
    }
}

/// How far a worker pod has come.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkerState {
    /// It is about to be created, or was created and not seen yet.
    Intended,
    /// Its containers have not started.
    Pending,
    /// Its container is running.
    Running,
    /// Its end is proved.
    Terminated,
    /// Nobody knows whether it is running.
    Unreachable,
}

/// A worker pod. What identifies it is in status before the pod is created.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Name of the pod.
    #[schemars(length(min = 1, max = 63))]
    pub pod: String,
    /// Phase of the engine.
    pub phase: WorkerPhase,
    /// Attempt of the run.
    #[schemars(range(min = 1))]
    pub attempt: i64,
    /// Counts pods of this phase and attempt, from 1.
    #[serde(rename = "try")]
    #[schemars(range(min = 1))]
    pub try_: i64,
    /// The journal must open above this epoch.
    #[schemars(range(min = 0))]
    pub epoch_floor: i64,
    /// How far it has come.
    pub state: WorkerState,
    /// UID of the pod, once it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub uid: Option<String>,
    /// When its container started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When its end was taken into account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Not created before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Whether it only settles what an earlier try began; it never opens the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<bool>,
    /// Whether the target was found free for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
    /// For an inspection: the phase whose receipt is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspects: Option<WorkerPhase>,
    /// Why it was asked to stop: Suspend, Deadline, Deletion or Replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub cancel: Option<String>,
}

/// Repetitions after failures of one phase and attempt.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RetryStatus {
    /// Failures one after another.
    #[schemars(range(min = 0))]
    pub failures: i64,
    /// When the last failure was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// How the last container that left no receipt had ended, for example OOMKilled, exit code 137.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub cause: Option<String>,
    /// Code of the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub code: Option<String>,
}

/// Where the running worker is.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ProgressStatus {
    /// What it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub stage: Option<String>,
    /// Rows read from the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_read: Option<i64>,
    /// Native bytes encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_encoded: Option<i64>,
    /// Chunks sealed on the journal volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks_sealed: Option<i64>,
    /// Chunks verified in the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks_verified: Option<i64>,
    /// When it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Time>,
}

/// Who may touch the target's stages.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CustodyState {
    /// Nothing was claimed.
    None,
    /// Held by this run.
    Held,
    /// Released at both places.
    Released,
    /// Nobody knows.
    Unknown,
}

/// What the run holds.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct CustodyStatus {
    /// Who may touch the target's stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<CustodyState>,
    /// Rows that were captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub rows: Option<i64>,
    /// The sealed end of the source stream. Written once per attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eof: Option<EofStatus>,
    /// Identity of the target table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub target: Option<String>,
    /// The journal's claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalStatus>,
}

/// The sealed end of the source stream.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct EofStatus {
    /// Digest of the EOF descriptor.
    #[schemars(length(min = 64, max = 64))]
    pub sha256: String,
    /// Size of the EOF descriptor, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes: Option<i64>,
    /// The EOF descriptor itself, where it came with the receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub inline: Option<String>,
}

/// The journal's claim.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct JournalStatus {
    /// Name of the claim.
    #[schemars(length(min = 1, max = 63))]
    pub claim: String,
    /// UID of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub uid: Option<String>,
}

/// What is known about a publication.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A publication pod was intended: from here on the transaction may happen.
    Intended,
    /// The receipt is in the target.
    Committed,
    /// It did not happen, proved; it may be tried again.
    RolledBack,
    /// Nobody knows.
    Unknown,
    /// Given up by a person.
    Retired,
}

impl Outcome {
    /// The word as it stands in status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Intended => "Intended",
            Outcome::Committed => "Committed",
            Outcome::RolledBack => "RolledBack",
            Outcome::Unknown => "Unknown",
            Outcome::Retired => "Retired",
        }
    }
}

/// What is known about the publication.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PublicationStatus {
    /// The outcome.
    pub outcome: Outcome,
    /// When the publication was first intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_at: Option<Time>,
    /// Id of the receipt row in the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub receipt_id: Option<String>,
    /// When the target committed, by its own clock, as the receipt says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub committed_at: Option<String>,
    /// Digest of what was published.
    #[serde(rename = "workloadSHA256", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub workload_sha256: Option<String>,
    /// Digest of the evidence row in the target.
    #[serde(rename = "evidenceSHA256", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub evidence_sha256: Option<String>,
}

/// An ended attempt.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Token of the run.
    #[schemars(length(min = 1, max = 63))]
    pub token: String,
    /// Attempt of the run.
    #[schemars(range(min = 1))]
    pub attempt: i64,
    /// How it ended.
    pub phase: Phase,
    /// Code of the failure, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub code: Option<String>,
    /// Rows that were captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// Id of the receipt row in the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub receipt_id: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}
