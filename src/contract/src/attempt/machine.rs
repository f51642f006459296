//! The machine of one attempt: which durable event may follow, and what is to be done next.
//!
//! The state of an attempt is its last durable event, so a live run and a replay are the same fold. Beside the version 2
//! events there is one more way to the end: a [`Settlement`], our own record, by which a run that is proved unpublished
//! drops the stage of an attempt in any state, once the writer's grant lock was obtained. It gives every state a way out
//! (design.md 3.16) without another link in the closed chain of events.

use super::{EventKind, WriterOutcome};
use crate::canon::Json;
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::identity::ImportBackend;

/// What happened to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEvent {
    /// A version 2 event became durable; with how the writer ended, where the event carries it.
    Recorded(EventKind, Option<WriterOutcome>),
    /// A settlement became durable.
    Settled(StageGone),
}

/// How the stage of a settled attempt was seen to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StageGone {
    /// It was proved ours and dropped in the same batch.
    Dropped,
    /// It was never created or already gone, seen with rights that show every object of the schema.
    AlreadyAbsent,
}

/// What the driver does next for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEffect {
    /// Open the writing session with its grant lock and create the stage.
    CreateStage,
    /// Make the grant durable.
    RecordGrant,
    /// Make durable that the writer is about to be launched.
    RecordWriting,
    /// Launch the writer.
    LaunchWriter,
    /// Look at the stage under its barrier.
    ObserveUnderBarrier,
    /// Compare count and digest with the file.
    JudgeContent,
    /// Make the receipt durable.
    CommitReceipt,
    /// Delete the chunk file: the stage holds its rows, or nothing will need them.
    DeleteChunkFile,
    /// Keep custody; nothing may be assumed about the stage.
    KeepCustody,
    /// Prove that the run is not published and cannot be.
    ProveNonpublication,
    /// Drop the stage and prove its absence.
    DropStage,
    /// Tell a person.
    CallPerson,
}

/// The state of a new attempt: its INTENT is durable.
pub const INITIAL: EventKind = EventKind::Intent;

/// What is to be done when an attempt has just begun.
pub const INITIAL_EFFECTS: &[AttemptEffect] = &[AttemptEffect::CreateStage];

/// The state after `event`, and what to do next.
///
/// # Errors
/// `mssql_native.invalid_journal_event_transition` when the event cannot follow.
pub fn step(
    state: EventKind,
    event: AttemptEvent,
    backend: ImportBackend,
) -> Result<(EventKind, &'static [AttemptEffect]), Refusal> {
    match event {
        AttemptEvent::Recorded(kind, outcome) => {
            let provable = kind != EventKind::PartialProved || backend == ImportBackend::SqlClient;
            if !state.next().contains(&kind) || !provable {
                return Err(cannot_follow());
            }
            Ok((kind, effects(kind, outcome)))
        }
        AttemptEvent::Settled(StageGone::Dropped | StageGone::AlreadyAbsent) => match state {
            EventKind::Intent
            | EventKind::StageOwned
            | EventKind::Granted
            | EventKind::Writing
            | EventKind::WriterTerminal
            | EventKind::Quiescent
            | EventKind::Verified
            | EventKind::Unknown
            | EventKind::PartialProved
            | EventKind::FailedRetirable
            | EventKind::IncidentRetained => Ok((EventKind::Retired, effects(EventKind::Retired, None))),
            EventKind::Retired => Err(cannot_follow()),
        },
    }
}

/// What to do when an attempt stands in a state: after the event that led there, or after a restart.
pub fn effects(state: EventKind, outcome: Option<WriterOutcome>) -> &'static [AttemptEffect] {
    match state {
        EventKind::Intent => INITIAL_EFFECTS,
        EventKind::StageOwned => &[AttemptEffect::RecordGrant],
        EventKind::Granted => &[AttemptEffect::RecordWriting],
        EventKind::Writing => &[AttemptEffect::LaunchWriter],
        EventKind::WriterTerminal => match outcome {
            Some(WriterOutcome::Success) => &[AttemptEffect::ObserveUnderBarrier],
            Some(
                WriterOutcome::Failure
                | WriterOutcome::Timeout
                | WriterOutcome::LostAck
                | WriterOutcome::CleanupFailed
                | WriterOutcome::CustodyLost,
            )
            | None => &[AttemptEffect::KeepCustody],
        },
        EventKind::Quiescent => &[AttemptEffect::JudgeContent],
        EventKind::Verified => &[AttemptEffect::CommitReceipt, AttemptEffect::DeleteChunkFile],
        EventKind::Unknown => &[AttemptEffect::KeepCustody],
        EventKind::PartialProved => &[AttemptEffect::ProveNonpublication],
        EventKind::FailedRetirable => &[AttemptEffect::DropStage],
        EventKind::IncidentRetained => &[AttemptEffect::KeepCustody, AttemptEffect::CallPerson],
        EventKind::Retired => &[AttemptEffect::DeleteChunkFile],
    }
}

fn cannot_follow() -> Refusal {
    Refusal::new(
        code::INVALID_JOURNAL_EVENT_TRANSITION,
        "An event does not follow from the attempt's history; nothing was written. This is a bug or a second writer: \
         inspect the run.",
    )
}

/// The durable record of a settled attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// The attempt.
    pub attempt_id: Digest,
    /// How its stage was seen to be gone.
    pub stage: StageGone,
    /// The run's proof of non-publication that it rests on.
    pub nonpublication_proof: Digest,
}

const SETTLEMENT_KIND: &str = "native-transfer.attempt-settlement.v1";

impl Settlement {
    /// The document.
    pub fn document(&self) -> Json {
        let stage = match self.stage {
            StageGone::Dropped => "dropped",
            StageGone::AlreadyAbsent => "already_absent",
        };
        Json::object([
            ("kind", Json::from(SETTLEMENT_KIND)),
            ("attempt_id", Json::from(self.attempt_id)),
            ("stage", Json::from(stage)),
            ("nonpublication_proof_sha256", Json::from(self.nonpublication_proof)),
        ])
    }

    /// Reads a stored settlement.
    ///
    /// # Errors
    /// `mssql_native.invalid_journal_event`.
    pub fn from_document(document: &Json) -> Result<Self, Refusal> {
        let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
        let read = || {
            let ours = document.as_object()?.len() == 4 && document.get("kind")?.as_str()? == SETTLEMENT_KIND;
            ours.then_some(())?;
            let stage = match document.get("stage")?.as_str()? {
                "dropped" => StageGone::Dropped,
                "already_absent" => StageGone::AlreadyAbsent,
                _ => return None,
            };
            Some(Settlement {
                attempt_id: digest("attempt_id")?,
                stage,
                nonpublication_proof: digest("nonpublication_proof_sha256")?,
            })
        };
        read().ok_or_else(|| {
            Refusal::new(
                code::INVALID_JOURNAL_EVENT,
                "A stored settlement is not of its closed form; it was changed or written by another version.",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table: `from: to to to`, for the backend that can prove the most.
    const TABLE: &str = "
        INTENT: STAGE_OWNED
        STAGE_OWNED: GRANTED
        GRANTED: WRITING UNKNOWN
        WRITING: WRITER_TERMINAL UNKNOWN
        WRITER_TERMINAL: QUIESCENT UNKNOWN
        QUIESCENT: VERIFIED UNKNOWN
        VERIFIED: FAILED_RETIRABLE
        UNKNOWN: QUIESCENT PARTIAL_PROVED INCIDENT_RETAINED
        PARTIAL_PROVED: FAILED_RETIRABLE
        FAILED_RETIRABLE: RETIRED
        INCIDENT_RETAINED:
        RETIRED:";

    fn allowed(from: EventKind, to: EventKind) -> bool {
        let row = TABLE.lines().filter_map(|line| line.trim().split_once(':')).find(|(name, _)| *name == from.text());
        row.expect("every state has a row").1.split_whitespace().any(|name| name == to.text())
    }

    #[test]
    fn every_pair_of_the_table() {
        for from in EventKind::ALL {
            for to in EventKind::ALL {
                for backend in [ImportBackend::Bcp, ImportBackend::SqlClient] {
                    let bcp_cannot = backend == ImportBackend::Bcp && to == EventKind::PartialProved;
                    let got = step(from, AttemptEvent::Recorded(to, None), backend);
                    let want = (allowed(from, to) && !bcp_cannot).then_some(to);
                    assert_eq!(got.ok().map(|(state, _)| state), want, "{from:?} -> {to:?} {backend:?}");
                }
            }
        }
    }

    #[test]
    fn every_state_but_the_last_can_be_settled() {
        for from in EventKind::ALL {
            let got = step(from, AttemptEvent::Settled(StageGone::AlreadyAbsent), ImportBackend::Bcp);
            assert_eq!(got.is_ok(), from != EventKind::Retired, "{from:?}");
        }
    }

    #[test]
    fn only_success_leads_to_the_barrier() {
        for outcome in WriterOutcome::ALL {
            let barrier = effects(EventKind::WriterTerminal, Some(outcome)) == [AttemptEffect::ObserveUnderBarrier];
            assert_eq!(barrier, outcome == WriterOutcome::Success, "{outcome:?}");
        }
    }

    #[test]
    fn a_settlement_reads_back() {
        for stage in [StageGone::Dropped, StageGone::AlreadyAbsent] {
            let proof = Digest::of(b"proof");
            let settlement = Settlement { attempt_id: Digest::of(b"a"), stage, nonpublication_proof: proof };
            assert_eq!(Settlement::from_document(&settlement.document()), Ok(settlement));
        }
        assert!(Settlement::from_document(&Json::Null).is_err());
    }
}
