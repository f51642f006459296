//! One attempt to write one chunk into one stage: its durable events, their order, and the machine that drives it
//! (contract.md 5.3, 8).

pub mod chain;
pub mod event;
pub mod machine;
mod validate;

/// The events of an attempt, which are also its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// The sealed file is durable; nothing at the target yet.
    Intent,
    /// The stage exists and carries our mark.
    StageOwned,
    /// The writer's grant is durable.
    Granted,
    /// The writer was launched.
    Writing,
    /// The writer ended and said how.
    WriterTerminal,
    /// Nobody can write any more: proved under the stage barrier.
    Quiescent,
    /// The stage holds exactly the file's rows.
    Verified,
    /// Nobody knows whether the writer wrote, or still writes.
    Unknown,
    /// The writer is gone and the stage is proved ours, whatever it holds.
    PartialProved,
    /// The stage may be dropped: the run is proved unpublished.
    FailedRetirable,
    /// Only a person can settle it.
    IncidentRetained,
    /// The stage is proved gone.
    Retired,
}

impl EventKind {
    /// Every kind, in order of a life.
    pub const ALL: [EventKind; 12] = [
        EventKind::Intent,
        EventKind::StageOwned,
        EventKind::Granted,
        EventKind::Writing,
        EventKind::WriterTerminal,
        EventKind::Quiescent,
        EventKind::Verified,
        EventKind::Unknown,
        EventKind::PartialProved,
        EventKind::FailedRetirable,
        EventKind::IncidentRetained,
        EventKind::Retired,
    ];

    /// The text in documents.
    pub const fn text(self) -> &'static str {
        match self {
            EventKind::Intent => "INTENT",
            EventKind::StageOwned => "STAGE_OWNED",
            EventKind::Granted => "GRANTED",
            EventKind::Writing => "WRITING",
            EventKind::WriterTerminal => "WRITER_TERMINAL",
            EventKind::Quiescent => "QUIESCENT",
            EventKind::Verified => "VERIFIED",
            EventKind::Unknown => "UNKNOWN",
            EventKind::PartialProved => "PARTIAL_PROVED",
            EventKind::FailedRetirable => "FAILED_RETIRABLE",
            EventKind::IncidentRetained => "INCIDENT_RETAINED",
            EventKind::Retired => "RETIRED",
        }
    }

    /// The kind of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        EventKind::ALL.into_iter().find(|kind| kind.text() == text)
    }

    /// The kinds that may follow this one in a chain of version 2 events.
    pub const fn next(self) -> &'static [EventKind] {
        match self {
            EventKind::Intent => &[EventKind::StageOwned],
            EventKind::StageOwned => &[EventKind::Granted],
            EventKind::Granted => &[EventKind::Writing, EventKind::Unknown],
            EventKind::Writing => &[EventKind::WriterTerminal, EventKind::Unknown],
            EventKind::WriterTerminal => &[EventKind::Quiescent, EventKind::Unknown],
            EventKind::Quiescent => &[EventKind::Verified, EventKind::Unknown],
            EventKind::Verified | EventKind::PartialProved => &[EventKind::FailedRetirable],
            EventKind::Unknown => &[EventKind::Quiescent, EventKind::PartialProved, EventKind::IncidentRetained],
            EventKind::FailedRetirable => &[EventKind::Retired],
            EventKind::IncidentRetained | EventKind::Retired => &[],
        }
    }

    /// Whether an event of this kind names the stage.
    pub const fn has_stage(self) -> bool {
        !matches!(self, EventKind::Intent)
    }

    /// Whether an event of this kind names the writer.
    pub const fn has_writer(self) -> bool {
        !matches!(self, EventKind::Intent | EventKind::StageOwned)
    }

    /// Whether an event of this kind carries an observation.
    pub const fn has_observation(self) -> bool {
        !matches!(self, EventKind::Intent | EventKind::StageOwned | EventKind::Granted | EventKind::Writing)
    }
}

/// How a writer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriterOutcome {
    /// Acknowledged, ended, counted.
    Success,
    /// Ended with an error.
    Failure,
    /// Did not end in time.
    Timeout,
    /// Ended without a readable acknowledgement.
    LostAck,
    /// Its own resources could not be cleaned up.
    CleanupFailed,
    /// It could not be proved to have ended.
    CustodyLost,
}

impl WriterOutcome {
    /// Every outcome.
    pub const ALL: [WriterOutcome; 6] = [
        WriterOutcome::Success,
        WriterOutcome::Failure,
        WriterOutcome::Timeout,
        WriterOutcome::LostAck,
        WriterOutcome::CleanupFailed,
        WriterOutcome::CustodyLost,
    ];

    /// The text in documents.
    pub const fn text(self) -> &'static str {
        match self {
            WriterOutcome::Success => "success",
            WriterOutcome::Failure => "failure",
            WriterOutcome::Timeout => "timeout",
            WriterOutcome::LostAck => "lost_ack",
            WriterOutcome::CleanupFailed => "cleanup_failed",
            WriterOutcome::CustodyLost => "custody_lost",
        }
    }

    /// The outcome of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        WriterOutcome::ALL.into_iter().find(|outcome| outcome.text() == text)
    }
}

/// Whether nobody can write to the stage any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quiescence {
    /// Not looked at.
    Unverified,
    /// Proved under the barrier.
    Proved,
    /// The proof failed.
    Failed,
}

impl Quiescence {
    /// The text in documents.
    pub const fn text(self) -> &'static str {
        match self {
            Quiescence::Unverified => "unverified",
            Quiescence::Proved => "proved",
            Quiescence::Failed => "failed",
        }
    }

    /// The value of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        [Quiescence::Unverified, Quiescence::Proved, Quiescence::Failed].into_iter().find(|value| value.text() == text)
    }
}
