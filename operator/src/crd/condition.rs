//! Conditions: types and reasons, a closed vocabulary.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Longest message of a condition, bytes. Kubernetes allows 32,768; nobody reads more than this.
pub const MESSAGE_BYTES_MAX: usize = 1024;

macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)* }

        impl $name {
            /// Every word, in the order of this file.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The word as it stands in status.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => stringify!($variant),)* }
            }

            /// What the word says, as it stands in docs/reference/api.md.
            pub fn meaning(self) -> &'static str {
                match self { $($name::$variant => concat!($($doc),+).trim_start(),)* }
            }

            /// The word of a text.
            pub fn from_text(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Types of conditions.
    ConditionType {
        /// The spec is valid and the operator works on it.
        Accepted,
        /// The source end is sealed with every chunk verified: the source is not needed any more.
        CustodySecured,
        /// The rows are in the target table. Unknown means exactly that: nobody knows yet.
        Published,
        /// The transfer has succeeded and nothing remains to be done.
        Ready,
        /// Something is going on, or is waited for. Present only while true.
        Reconciling,
        /// It does not go on by itself, or has not for long; the message says what to do. Present only while true.
        Stalled,
        /// The extraction is cancelled by `spec.suspend`. Present only while true.
        Suspended,
        /// The resource is being deleted and must stay. Present only while true.
        DeletionBlocked,
    }
}

words! {
    /// Reasons of conditions.
    Reason {
        /// Accepted: the plan is frozen.
        ManifestAccepted,
        /// Accepted, Stalled: the spec is refused; the message begins with the code.
        ManifestRejected,
        /// Accepted, Stalled: `spec.run.token` names an earlier run, whose outcome stays as it is.
        TokenUsed,

        /// CustodySecured, Published: the run has not come so far.
        NotStarted,
        /// CustodySecured: the extraction is running.
        Capturing,
        /// CustodySecured: the source end is sealed.
        EofRecorded,
        /// CustodySecured: the extraction ended early.
        Interrupted,

        /// Published: the publication is running.
        InProgress,
        /// Published: the receipt is in the target.
        Committed,
        /// Published: the publication was rolled back, proved.
        RolledBack,
        /// Published, Stalled, DeletionBlocked: nobody knows whether the publication was committed.
        OutcomeUnknown,

        /// Ready: everything is done.
        Succeeded,
        /// Ready, Reconciling: the spec is being taken up.
        Planning,
        /// Ready, Reconciling: the admission pod is looked for or running.
        Admitting,
        /// Ready, Reconciling: the extraction pod is looked for or running.
        Extracting,
        /// Ready, Reconciling: the publication pod is looked for or running.
        Publishing,
        /// Ready, Reconciling: the journal is asked what became of a worker.
        Inspecting,
        /// Ready, Reconciling: an ended attempt is being settled.
        Settling,
        /// Ready, Reconciling: another transfer works on the same target.
        TargetBusy,
        /// Ready, Reconciling: the target's custody is held by another invocation.
        CustodyHeldElsewhere,
        /// Ready, Reconciling: source or target do not answer; it is tried again.
        Unreachable,
        /// Ready, Reconciling: a worker ended without settling; it is tried again.
        Retrying,
        /// Ready: no proof that a worker has ended, so nothing is started.
        WorkerUnreachable,

        /// Ready, Reconciling: the image cannot be pulled.
        ImageUnavailable,
        /// Ready, Reconciling: no node takes the pod.
        Unschedulable,
        /// Ready, Reconciling: the journal's claim is not bound, or its volume cannot be mounted.
        JournalUnbound,
        /// Ready, Reconciling: a Secret is missing, or lacks a key.
        SecretMissing,
        /// Ready, Reconciling: the namespace or its policies refuse a pod or a claim.
        CreationRefused,
        /// Ready, Stalled: the journal's claim or volume is gone although the run holds custody.
        JournalLost,
        /// Ready, Stalled, DeletionBlocked: the namespace, or the journal's claim, is being deleted, and a pod that is needed cannot start.
        NamespaceTerminating,
        /// Ready, Stalled: the plan made from the spec is not the one that the run was started with.
        PlanChanged,

        /// Ready, Stalled: refused before any effect, for a cause that does not go away by itself.
        ConfigurationRefused,
        /// Ready, Stalled: settled without publication; the source must be read again.
        ReextractRequired,
        /// Ready, Stalled, DeletionBlocked: some writer or stage is not proved settled.
        CustodyUnknown,

        /// Ready, Suspended: `spec.suspend` is true.
        SuspendRequested,
        /// Ready, DeletionBlocked: rows are captured and not published.
        CustodyHeld,
        /// DeletionBlocked: a publication is running.
        PublicationRunning,
        /// Ready, DeletionBlocked: an extraction is being cancelled.
        Deleting,
    }
}

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// Nobody knows.
    Unknown,
}

impl Verdict {
    /// The status as Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::True => "True",
            Verdict::False => "False",
            Verdict::Unknown => "Unknown",
        }
    }
}

/// Makes a condition. `now` is its transition time until [`set`] finds that nothing has changed.
pub fn condition(
    kind: ConditionType,
    verdict: Verdict,
    reason: Reason,
    message: &str,
    generation: i64,
    now: Time,
) -> Condition {
    Condition {
        type_: kind.as_str().to_owned(),
        status: verdict.as_str().to_owned(),
        reason: reason.as_str().to_owned(),
        message: bounded(message),
        observed_generation: Some(generation),
        last_transition_time: now,
    }
}

/// The condition of a type.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

/// Puts a condition in its place; its transition time changes only with its status.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition) {
    match conditions.iter_mut().find(|old| old.type_ == condition.type_) {
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time.clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

/// Takes a condition away.
pub fn remove(conditions: &mut Vec<Condition>, kind: ConditionType) {
    conditions.retain(|condition| condition.type_ != kind.as_str());
}

fn bounded(message: &str) -> String {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}
