//! The machine of one transfer, in the words of the spec (raw-snapshot-design "State and failure semantics").
//!
//! ```text
//! Planned -> Extracting -> StageComplete -> Publishing -> Published -> EvidenceComplete -> Succeeded
//!               |   \            |            |   \           ^
//!               |    \           |            |    OutcomeUnknown -> Failed
//!               |     CustodyUnknown          (rolled back: StageComplete)
//!               |          v     v
//!               +----> ReextractRequired
//! ```
//!
//! Custody of the target is a second coordinate: a state says what is known about rows, custody says who may write.

pub mod run;
mod step;

pub use step::{effects, step};

use crate::canon::Json;
use crate::code;
use crate::custody::ReleaseReason;
use crate::error::Refusal;

/// How far preparation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preparation {
    /// No prepared table was intended yet.
    NotBegun,
    /// The prepared table's intent is durable.
    Begun,
    /// The prepared table is verified.
    Done,
}

/// States of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferState {
    /// The recovery plan is durable; no row was read.
    Planned,
    /// The one source query is open or was open.
    Extracting,
    /// The source end is sealed with every chunk verified.
    StageComplete(Preparation),
    /// The publication transaction was begun.
    Publishing,
    /// The receipt is proved.
    Published,
    /// The evidence is saved.
    EvidenceComplete,
    /// The checkpoint is saved.
    Succeeded,
    /// Extraction ended and some writer or stage is not proved settled.
    CustodyUnknown,
    /// Settled without publication; a new run must read the source again.
    ReextractRequired,
    /// Nobody knows whether the publication was committed.
    OutcomeUnknown,
    /// Ended without publication, proved.
    Failed,
}

impl TransferState {
    /// Every state.
    pub const ALL: [TransferState; 13] = [
        TransferState::Planned,
        TransferState::Extracting,
        TransferState::StageComplete(Preparation::NotBegun),
        TransferState::StageComplete(Preparation::Begun),
        TransferState::StageComplete(Preparation::Done),
        TransferState::Publishing,
        TransferState::Published,
        TransferState::EvidenceComplete,
        TransferState::Succeeded,
        TransferState::CustodyUnknown,
        TransferState::ReextractRequired,
        TransferState::OutcomeUnknown,
        TransferState::Failed,
    ];

    /// The spec's word, the same in status, conditions and documents.
    pub const fn text(self) -> &'static str {
        match self {
            TransferState::Planned => "Planned",
            TransferState::Extracting => "Extracting",
            TransferState::StageComplete(_) => "StageComplete",
            TransferState::Publishing => "Publishing",
            TransferState::Published => "Published",
            TransferState::EvidenceComplete => "EvidenceComplete",
            TransferState::Succeeded => "Succeeded",
            TransferState::CustodyUnknown => "CustodyUnknown",
            TransferState::ReextractRequired => "ReextractRequired",
            TransferState::OutcomeUnknown => "OutcomeUnknown",
            TransferState::Failed => "Failed",
        }
    }
}

/// Custody as this run knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferCustody {
    /// Not claimed yet.
    Unclaimed,
    /// Held by this run, here and at the target.
    Held,
    /// Released at both places.
    Released(ReleaseReason),
}

/// A transfer: what is known about its rows, and who may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// State.
    pub state: TransferState,
    /// Custody.
    pub custody: TransferCustody,
}

impl Transfer {
    /// A transfer whose recovery plan has just become durable.
    pub const PLANNED: Transfer = Transfer { state: TransferState::Planned, custody: TransferCustody::Unclaimed };

    /// Whether nothing remains to be done by anyone.
    pub const fn is_finished(self) -> bool {
        matches!(
            (self.state, self.custody),
            (
                TransferState::Succeeded | TransferState::ReextractRequired | TransferState::Failed,
                TransferCustody::Released(_)
            ) | (TransferState::Failed, TransferCustody::Unclaimed)
        )
    }
}

/// What became durable about a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferEvent {
    /// Custody was claimed at both places.
    CustodyClaimed,
    /// Refused before any row: drift, capacity, a claim held by another.
    Refused,
    /// The one source query is about to be sent.
    ExtractionBegan,
    /// The source end and every receipt were sealed.
    EofSealed,
    /// Extraction ended early, and not everything is settled.
    ExtractionStopped,
    /// Every attempt is settled and the run is proved unpublished.
    Settled,
    /// The prepared table's intent.
    PreparationBegan,
    /// The prepared table is verified.
    PreparationDone,
    /// The publication's intent.
    PublicationBegan,
    /// The receipt was read back.
    PublicationConfirmed,
    /// The transaction was rolled back, or absence was proved while nothing was in doubt.
    PublicationRolledBack,
    /// Nobody knows whether the transaction was committed.
    PublicationUnknown,
    /// After doubt: absence proved under the publication locks with the fence raised.
    AbsenceProved,
    /// The evidence is saved.
    EvidenceSaved,
    /// The checkpoint is saved.
    CheckpointSaved,
    /// Custody was released at both places.
    CustodyReleased(ReleaseReason),
}

impl TransferEvent {
    /// Every event.
    pub const ALL: [TransferEvent; 18] = [
        TransferEvent::CustodyClaimed,
        TransferEvent::Refused,
        TransferEvent::ExtractionBegan,
        TransferEvent::EofSealed,
        TransferEvent::ExtractionStopped,
        TransferEvent::Settled,
        TransferEvent::PreparationBegan,
        TransferEvent::PreparationDone,
        TransferEvent::PublicationBegan,
        TransferEvent::PublicationConfirmed,
        TransferEvent::PublicationRolledBack,
        TransferEvent::PublicationUnknown,
        TransferEvent::AbsenceProved,
        TransferEvent::EvidenceSaved,
        TransferEvent::CheckpointSaved,
        TransferEvent::CustodyReleased(ReleaseReason::PublishedCleanup),
        TransferEvent::CustodyReleased(ReleaseReason::NonpublicationAllStagesRetired),
        TransferEvent::CustodyReleased(ReleaseReason::EmptyCompletionCleanup),
    ];

    /// The text in records.
    pub const fn text(self) -> &'static str {
        match self {
            TransferEvent::CustodyClaimed => "custody_claimed",
            TransferEvent::Refused => "refused",
            TransferEvent::ExtractionBegan => "extraction_began",
            TransferEvent::EofSealed => "eof_sealed",
            TransferEvent::ExtractionStopped => "extraction_stopped",
            TransferEvent::Settled => "settled",
            TransferEvent::PreparationBegan => "preparation_began",
            TransferEvent::PreparationDone => "preparation_done",
            TransferEvent::PublicationBegan => "publication_began",
            TransferEvent::PublicationConfirmed => "publication_confirmed",
            TransferEvent::PublicationRolledBack => "publication_rolled_back",
            TransferEvent::PublicationUnknown => "publication_unknown",
            TransferEvent::AbsenceProved => "absence_proved",
            TransferEvent::EvidenceSaved => "evidence_saved",
            TransferEvent::CheckpointSaved => "checkpoint_saved",
            TransferEvent::CustodyReleased(_) => "custody_released",
        }
    }

    /// The record's payload: the event with the facts that belong to it under `facts`.
    pub fn document(self, facts: Json) -> Json {
        let reason = match self {
            TransferEvent::CustodyReleased(reason) => Json::from(reason.text()),
            _ => Json::Null,
        };
        Json::object([("event", Json::from(self.text())), ("release_reason", reason), ("facts", facts)])
    }

    /// Reads a stored payload: the event and its facts.
    ///
    /// # Errors
    /// `mssql_native.invalid_journal`.
    pub fn from_document(document: &Json) -> Result<(Self, Json), Refusal> {
        let read = || {
            (document.as_object()?.len() == 3).then_some(())?;
            let facts = document.get("facts")?.clone();
            let event = TransferEvent::ALL.into_iter().find(|event| event.document(facts.clone()) == *document)?;
            Some((event, facts))
        };
        read().ok_or_else(|| {
            Refusal::new(
                code::INVALID_JOURNAL,
                "The journal holds a record that this version does not know; use the version that wrote it.",
            )
        })
    }
}

/// What the driver does next for a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferEffect {
    /// Claim custody at both places.
    ClaimCustody,
    /// Acquire the profile again, compare it and open the one source query.
    OpenSource,
    /// Read blocks, seal and import chunks, until the proven end or a failure.
    Extract,
    /// Join the workers and settle every attempt by proof.
    SettleAttempts,
    /// Verify the stages again and make the prepared table's intent durable.
    BeginPreparation,
    /// Create, fill and verify the prepared table.
    Prepare,
    /// Verify once more and make the publication's intent durable.
    BeginPublication,
    /// Look for the receipt, then run the publication transaction.
    Publish,
    /// Read the receipt under the publication locks.
    ProbeReceipt,
    /// Save the evidence document.
    SaveEvidence,
    /// Save the checkpoint.
    SaveCheckpoint,
    /// Drop the prepared table and the stages, with proof.
    CleanUp,
    /// Release custody at both places for the reason.
    ReleaseCustody(ReleaseReason),
    /// Tell a person what is not proved and which command settles it.
    CallPerson,
}
