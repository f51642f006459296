//! From a validated journal to one of eleven states with its diagnostic and permitted actions (contract.md 9.3).

use crate::attempt::EventKind;
use crate::code;

/// The operator's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecoveryState {
    /// Nothing was staged.
    EmptyStaging,
    /// Some writer's fate is open.
    WritingUnknown,
    /// Some stage is proved ours, whatever it holds.
    PartialProved,
    /// The source end is sealed; publication has not begun.
    VerifiedEof,
    /// Settled or settleable without publication; the source must be read again by a new run.
    ReextractRequired,
    /// A publication was begun and its outcome is not known.
    PublicationUnknown,
    /// Published; evidence or state is not yet complete.
    Published,
    /// Everything is done.
    Succeeded,
    /// Every stage is gone.
    Retired,
    /// Done, and the target is free.
    CustodyReleased,
    /// Only a person can go on.
    IncidentRetained,
}

impl RecoveryState {
    /// The text in documents.
    pub const fn text(self) -> &'static str {
        match self {
            RecoveryState::EmptyStaging => "EMPTY_STAGING",
            RecoveryState::WritingUnknown => "WRITING_UNKNOWN",
            RecoveryState::PartialProved => "PARTIAL_PROVED",
            RecoveryState::VerifiedEof => "VERIFIED_EOF",
            RecoveryState::ReextractRequired => "REEXTRACT_REQUIRED",
            RecoveryState::PublicationUnknown => "PUBLICATION_UNKNOWN",
            RecoveryState::Published => "PUBLISHED",
            RecoveryState::Succeeded => "SUCCEEDED",
            RecoveryState::Retired => "RETIRED",
            RecoveryState::CustodyReleased => "CUSTODY_RELEASED",
            RecoveryState::IncidentRetained => "INCIDENT_RETAINED",
        }
    }

    /// The diagnostic code of the state.
    pub const fn diagnostic(self) -> &'static str {
        match self {
            RecoveryState::EmptyStaging => code::EMPTY_STAGING,
            RecoveryState::WritingUnknown => code::WRITER_ACK_LOST,
            RecoveryState::PartialProved => code::PARTIAL_STAGE_PROVED,
            RecoveryState::VerifiedEof => code::VERIFIED_EOF_RECOVERABLE,
            RecoveryState::ReextractRequired => code::PRE_EOF_REEXTRACT_REQUIRED,
            RecoveryState::PublicationUnknown => code::PUBLICATION_OUTCOME_UNKNOWN,
            RecoveryState::Published => code::PUBLISHED_RECOVERABLE,
            RecoveryState::Succeeded => code::RECOVERY_SUCCEEDED,
            RecoveryState::Retired => code::STAGES_RETIRED,
            RecoveryState::CustodyReleased => code::CUSTODY_RELEASED,
            RecoveryState::IncidentRetained => code::INCIDENT_RETAINED,
        }
    }
}

/// What an operator may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Look.
    Inspect,
    /// Find out what happened, by target evidence.
    Reconcile,
    /// Go on towards publication and completion.
    Resume,
    /// Prove non-publication, drop stages, release custody.
    Retire,
}

impl Action {
    /// The text in documents and commands.
    pub const fn text(self) -> &'static str {
        match self {
            Action::Inspect => "inspect",
            Action::Reconcile => "reconcile",
            Action::Resume => "resume",
            Action::Retire => "retire",
        }
    }

    /// The action of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        [Action::Inspect, Action::Reconcile, Action::Resume, Action::Retire].into_iter().find(|a| a.text() == text)
    }
}

/// Phase of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JournalPhase {
    /// Before the source end was sealed.
    Staging,
    /// The source end is sealed.
    StageComplete,
    /// Marked as to be extracted again.
    ReextractRequired,
}

impl JournalPhase {
    /// The phase of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "staging" => Some(JournalPhase::Staging),
            "stage_complete" => Some(JournalPhase::StageComplete),
            "reextract_required" => Some(JournalPhase::ReextractRequired),
            _ => None,
        }
    }
}

/// Phase of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PublicationPhase {
    /// The prepared table is being made.
    Preparing,
    /// The prepared table is verified.
    Prepared,
    /// The publication transaction was begun.
    Publishing,
    /// The receipt is proved.
    Published,
    /// The evidence is saved.
    EvidenceComplete,
    /// The checkpoint is saved.
    Succeeded,
}

impl PublicationPhase {
    /// Every phase, in order.
    pub const ALL: [PublicationPhase; 6] = [
        PublicationPhase::Preparing,
        PublicationPhase::Prepared,
        PublicationPhase::Publishing,
        PublicationPhase::Published,
        PublicationPhase::EvidenceComplete,
        PublicationPhase::Succeeded,
    ];

    /// The text in records.
    pub const fn text(self) -> &'static str {
        match self {
            PublicationPhase::Preparing => "preparing",
            PublicationPhase::Prepared => "prepared",
            PublicationPhase::Publishing => "publishing",
            PublicationPhase::Published => "published",
            PublicationPhase::EvidenceComplete => "evidence-complete",
            PublicationPhase::Succeeded => "succeeded",
        }
    }

    /// The phase of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        PublicationPhase::ALL.into_iter().find(|phase| phase.text() == text)
    }
}

/// Custody of the target as far as the journal knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KnownCustody {
    /// No record.
    None,
    /// Held.
    Held,
    /// Clear.
    Clear,
}

/// What a classification looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalView<'a> {
    /// Phase of the journal.
    pub phase: JournalPhase,
    /// Phase of the publication, if one was begun.
    pub publication: Option<PublicationPhase>,
    /// The last event of each attempt.
    pub terminals: &'a [EventKind],
    /// Custody.
    pub custody: KnownCustody,
    /// Whether it is durable that the sessions of all retained attempts are gone at the target.
    pub writers_proved_gone: bool,
}

/// A classification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// The state.
    pub state: RecoveryState,
    /// Permitted actions, always with `inspect`.
    pub actions: Vec<Action>,
}

/// Classifies; the first condition that holds wins.
///
/// Two states permit more than in the prior system, so that there is a way out of each (design.md 3.16): an empty
/// staging can be inspected, and a sealed but unpublished run can be retired (retire proves absence under the
/// publication lock itself). An incident can be retired once its writers are proved gone.
pub fn classify(view: &JournalView<'_>) -> Classification {
    let state = state(view);
    let held = view.custody == KnownCustody::Held;
    let more: &[Action] = match state {
        RecoveryState::CustodyReleased => &[],
        RecoveryState::Retired if held => &[Action::Retire],
        RecoveryState::Succeeded if held => &[Action::Resume],
        RecoveryState::IncidentRetained if view.writers_proved_gone => &[Action::Retire],
        RecoveryState::Retired | RecoveryState::Succeeded | RecoveryState::IncidentRetained => &[],
        RecoveryState::Published => &[Action::Resume],
        RecoveryState::PublicationUnknown | RecoveryState::PartialProved | RecoveryState::WritingUnknown => {
            &[Action::Reconcile]
        }
        RecoveryState::VerifiedEof => &[Action::Resume, Action::Retire],
        RecoveryState::ReextractRequired | RecoveryState::EmptyStaging => &[Action::Retire],
    };
    let actions = [Action::Inspect].iter().chain(more).copied().collect();
    Classification { state, actions }
}

fn state(view: &JournalView<'_>) -> RecoveryState {
    let any = |kinds: &[EventKind]| view.terminals.iter().any(|terminal| kinds.contains(terminal));
    let all_retired =
        !view.terminals.is_empty() && view.terminals.iter().all(|terminal| *terminal == EventKind::Retired);
    if view.publication == Some(PublicationPhase::Succeeded) && view.custody == KnownCustody::Clear {
        return RecoveryState::CustodyReleased;
    }
    if all_retired {
        return RecoveryState::Retired;
    }
    if let Some(publication) = view.publication {
        return match publication {
            PublicationPhase::Succeeded => RecoveryState::Succeeded,
            PublicationPhase::Published | PublicationPhase::EvidenceComplete => RecoveryState::Published,
            PublicationPhase::Publishing => RecoveryState::PublicationUnknown,
            PublicationPhase::Preparing | PublicationPhase::Prepared => RecoveryState::VerifiedEof,
        };
    }
    if any(&[EventKind::IncidentRetained]) {
        RecoveryState::IncidentRetained
    } else if any(&[EventKind::PartialProved]) {
        RecoveryState::PartialProved
    } else if any(&[EventKind::Unknown, EventKind::Writing, EventKind::Granted]) {
        RecoveryState::WritingUnknown
    } else {
        match view.phase {
            JournalPhase::StageComplete => RecoveryState::VerifiedEof,
            JournalPhase::ReextractRequired => RecoveryState::ReextractRequired,
            JournalPhase::Staging if view.terminals.is_empty() => RecoveryState::EmptyStaging,
            JournalPhase::Staging => RecoveryState::ReextractRequired,
        }
    }
}
