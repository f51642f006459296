//! A run as its journal tells it: the fold of the records that are durable, in order.
//!
//! The live run applies each record right after it became durable, a restart applies them all: the same function, so a
//! restart cannot come to another view than the process that died.

use std::collections::BTreeMap;

use super::{Preparation, Transfer, TransferCustody, TransferEffect, TransferEvent, TransferState, effects, step};
use crate::attempt::chain::{check_chain, read};
use crate::attempt::event::WriterEvent;
use crate::attempt::machine::{self, AttemptEvent, Settlement};
use crate::attempt::{EventKind, WriterOutcome};
use crate::canon::{Json, decode_object};
use crate::code;
use crate::completion::{ChunkReceipt, Completion, seal};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::identity::VerificationIdentity;
use crate::names;
use crate::recovery::classify::{Classification, JournalPhase, JournalView, KnownCustody, PublicationPhase, classify};
use crate::recovery::document::AttemptSummary;
use crate::recovery::plan::RecoveryPlan;

/// Kinds of the journal records of a run; see [`RunState::apply`] for their payloads.
pub mod kind {
    /// The identity document; the first record of a run.
    pub const IDENTITY: &str = "identity";
    /// The recovery plan's payload; the second record.
    pub const RECOVERY_PLAN: &str = "recovery_plan";
    /// The durable limits record.
    pub const LIMITS: &str = "limits";
    /// A [`super::TransferEvent`] with its facts.
    pub const TRANSFER_EVENT: &str = "transfer_event";
    /// `{attempt_id, nonce, ordinal}` of an attempt, before its first event.
    pub const ATTEMPT_NONCE: &str = "attempt_nonce";
    /// A version 2 writer event.
    pub const WRITER_EVENT: &str = "writer_event";
    /// A [`super::Settlement`].
    pub const ATTEMPT_SETTLEMENT: &str = "attempt_settlement";
    /// A chunk receipt.
    pub const CHUNK_RECEIPT: &str = "chunk_receipt";
    /// `{completion, metadata}`.
    pub const COMPLETION: &str = "completion";
    /// `{proof_sha256}` of non-publication.
    pub const NONPUBLICATION: &str = "nonpublication";
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Chunk ordinal.
    pub ordinal: u64,
    /// The nonce that its id is made of.
    pub nonce: Digest,
    /// Its events.
    pub events: Vec<WriterEvent>,
    /// Its settlement.
    pub settlement: Option<Settlement>,
}

impl Attempt {
    /// The state: the last event, or RETIRED once settled; INTENT's predecessor is no state, so `None` before it.
    pub fn state(&self) -> Option<EventKind> {
        let last = self.events.last().map(|event| event.kind);
        last.map(|last| self.settlement.map_or(last, |_| EventKind::Retired))
    }

    /// How the writer ended, where the last event says it.
    pub fn outcome(&self) -> Option<WriterOutcome> {
        self.events.last()?.observation.as_ref().map(|observation| observation.writer_outcome)
    }
}

/// What the journal of a run says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    identity: Option<VerificationIdentity>,
    plan: Option<RecoveryPlan>,
    limits: Option<Json>,
    transfer: Option<Transfer>,
    facts: BTreeMap<&'static str, Json>,
    attempts: BTreeMap<Digest, Attempt>,
    receipts: BTreeMap<u64, ChunkReceipt>,
    completion: Option<(Completion, Json)>,
    nonpublication: Option<Digest>,
}

impl RunState {
    /// Applies one durable record.
    ///
    /// # Errors
    /// `mssql_native.invalid_journal` for an unknown or misplaced record; otherwise the code of the rule that the
    /// record breaks. The state is unchanged then.
    pub fn apply(&mut self, kind: &str, payload: &str) -> Result<(), Refusal> {
        let document = || decode_object(payload.as_bytes()).map(Json::Object).map_err(|_| foreign());
        match kind {
            kind::IDENTITY => self.apply_identity(&document()?),
            kind::RECOVERY_PLAN => self.apply_plan(payload),
            kind::LIMITS => self.apply_limits(document()?),
            kind::TRANSFER_EVENT => self.apply_transfer_event(&document()?),
            kind::ATTEMPT_NONCE => self.apply_nonce(&document()?),
            kind::WRITER_EVENT => self.apply_writer_event(document()?),
            kind::ATTEMPT_SETTLEMENT => self.apply_settlement(&document()?),
            kind::CHUNK_RECEIPT => self.apply_receipt(&document()?),
            kind::COMPLETION => self.apply_completion(&document()?),
            kind::NONPUBLICATION => self.apply_nonpublication(&document()?),
            _ => Err(foreign()),
        }
    }

    /// Identity of the run.
    pub fn identity(&self) -> Option<&VerificationIdentity> {
        self.identity.as_ref()
    }

    /// The recovery plan.
    pub fn plan(&self) -> Option<&RecoveryPlan> {
        self.plan.as_ref()
    }

    /// The durable limits record.
    pub fn limits(&self) -> Option<&Json> {
        self.limits.as_ref()
    }

    /// The transfer, once its recovery plan is durable.
    pub fn transfer(&self) -> Option<Transfer> {
        self.transfer
    }

    /// Facts of the last transfer event of that text, see [`TransferEvent::text`].
    pub fn facts(&self, event: &str) -> Option<&Json> {
        self.facts.get(event)
    }

    /// Attempts by id.
    pub fn attempts(&self) -> &BTreeMap<Digest, Attempt> {
        &self.attempts
    }

    /// Receipts in chunk order.
    pub fn receipts(&self) -> impl Iterator<Item = &ChunkReceipt> {
        self.receipts.values()
    }

    /// The sealed completion with its metadata.
    pub fn completion(&self) -> Option<&(Completion, Json)> {
        self.completion.as_ref()
    }

    /// The proof that the run is not published, if it is durable.
    pub fn nonpublication(&self) -> Option<Digest> {
        self.nonpublication
    }

    /// What to do next for the transfer, after a restart as in the live run.
    pub fn next_effects(&self) -> &'static [TransferEffect] {
        match self.transfer {
            None => &[],
            Some(transfer) => match transfer.custody {
                TransferCustody::Unclaimed if transfer.state == TransferState::Planned => {
                    &[TransferEffect::ClaimCustody]
                }
                TransferCustody::Unclaimed | TransferCustody::Released(_) => &[],
                TransferCustody::Held => effects(transfer.state),
            },
        }
    }

    /// Whether every attempt's stage is proved gone.
    pub fn all_retired(&self) -> bool {
        self.attempts.values().all(|attempt| matches!(attempt.state(), Some(EventKind::Retired) | None))
    }

    /// The operator's view.
    pub fn classify(&self, writers_proved_gone: bool) -> Classification {
        let terminals: Vec<EventKind> = self.attempts.values().filter_map(Attempt::state).collect();
        let (phase, publication, custody) = self.phases();
        classify(&JournalView { phase, publication, terminals: &terminals, custody, writers_proved_gone })
    }

    /// The attempts as `inspect` shows them.
    pub fn attempt_summaries(&self) -> Vec<AttemptSummary> {
        let summary = |(id, attempt): (&Digest, &Attempt)| {
            Some(AttemptSummary {
                ordinal: attempt.ordinal,
                attempt_id: *id,
                stage_id: attempt.events.last()?.stage.as_ref().map(|stage| stage.stage_id),
                terminal: attempt.state()?,
            })
        };
        self.attempts.iter().filter_map(summary).collect()
    }

    fn phases(&self) -> (JournalPhase, Option<PublicationPhase>, KnownCustody) {
        let sealed = if self.completion.is_some() { JournalPhase::StageComplete } else { JournalPhase::Staging };
        let Some(transfer) = self.transfer else {
            return (sealed, None, KnownCustody::None);
        };
        let custody = match transfer.custody {
            TransferCustody::Unclaimed => KnownCustody::None,
            TransferCustody::Held => KnownCustody::Held,
            TransferCustody::Released(_) => KnownCustody::Clear,
        };
        let (phase, publication) = match transfer.state {
            TransferState::Planned
            | TransferState::Extracting
            | TransferState::CustodyUnknown
            | TransferState::StageComplete(Preparation::NotBegun) => (sealed, None),
            TransferState::ReextractRequired | TransferState::Failed => (JournalPhase::ReextractRequired, None),
            TransferState::StageComplete(Preparation::Begun) => (sealed, Some(PublicationPhase::Preparing)),
            TransferState::StageComplete(Preparation::Done) => (sealed, Some(PublicationPhase::Prepared)),
            TransferState::Publishing | TransferState::OutcomeUnknown => (sealed, Some(PublicationPhase::Publishing)),
            TransferState::Published => (sealed, Some(PublicationPhase::Published)),
            TransferState::EvidenceComplete => (sealed, Some(PublicationPhase::EvidenceComplete)),
            TransferState::Succeeded => (sealed, Some(PublicationPhase::Succeeded)),
        };
        (phase, publication, custody)
    }

    fn identified(&self) -> Result<&VerificationIdentity, Refusal> {
        self.identity.as_ref().ok_or_else(foreign)
    }

    fn state(&self) -> Option<TransferState> {
        self.transfer.map(|transfer| transfer.state)
    }

    fn apply_identity(&mut self, document: &Json) -> Result<(), Refusal> {
        let identity = VerificationIdentity::from_document(document)?;
        match &self.identity {
            None => {
                self.identity = Some(identity);
                Ok(())
            }
            Some(present) if *present == identity => Ok(()),
            Some(_) => Err(Refusal::new(
                code::JOURNAL_IDENTITY_CHANGED,
                "The run's journal carries another identity; use the manifest and version that started it, or retire it.",
            )),
        }
    }

    fn apply_plan(&mut self, payload: &str) -> Result<(), Refusal> {
        let plan = RecoveryPlan::decode(payload.as_bytes(), self.identified()?.invocation_key())?;
        if self.transfer.is_some() {
            return Err(foreign());
        }
        self.plan = Some(plan);
        self.transfer = Some(Transfer::PLANNED);
        Ok(())
    }

    fn apply_limits(&mut self, limits: Json) -> Result<(), Refusal> {
        if self.limits.as_ref().is_some_and(|present| *present != limits) {
            return Err(foreign());
        }
        self.limits = Some(limits);
        Ok(())
    }

    fn apply_transfer_event(&mut self, document: &Json) -> Result<(), Refusal> {
        let (event, facts) = TransferEvent::from_document(document)?;
        let transfer = self.transfer.ok_or_else(foreign)?;
        match event {
            TransferEvent::EofSealed if self.completion.is_none() => {
                return Err(Refusal::new(
                    code::SOURCE_EOF_REQUIRED,
                    "The source end is not sealed, so the run cannot be completed; inspect it.",
                ));
            }
            TransferEvent::Settled if self.nonpublication.is_none() => return Err(unproved()),
            TransferEvent::Settled if !self.all_retired() => return Err(unverified()),
            _ => {}
        }
        let (next, _) = step(transfer, event)?;
        self.transfer = Some(next);
        self.facts.insert(event.text(), facts);
        Ok(())
    }

    fn apply_nonce(&mut self, document: &Json) -> Result<(), Refusal> {
        let key = self.identified()?.invocation_key();
        let digest = |name: &str| document.get(name)?.as_str()?.parse::<Digest>().ok();
        let read = || Some((digest("attempt_id")?, digest("nonce")?, document.get("ordinal")?.as_u64()?));
        let (attempt_id, nonce, ordinal) = read().ok_or_else(foreign)?;
        let ours = attempt_id == names::attempt_id(key, ordinal, nonce) && !self.attempts.contains_key(&attempt_id);
        if !ours || self.state() != Some(TransferState::Extracting) {
            return Err(foreign());
        }
        self.frozen()?;
        self.attempts.insert(attempt_id, Attempt { ordinal, nonce, events: Vec::new(), settlement: None });
        Ok(())
    }

    fn apply_writer_event(&mut self, document: Json) -> Result<(), Refusal> {
        let identity = self.identity.as_ref().ok_or_else(foreign)?;
        let attempt_id = document.get("attempt_id").and_then(Json::as_str).and_then(|text| text.parse().ok());
        let attempt_id: Digest = attempt_id.ok_or_else(foreign)?;
        let attempt = self.attempts.get(&attempt_id).ok_or_else(foreign)?;
        let event = read(identity, document, attempt.events.last(), attempt_id)
            .map_err(crate::attempt::chain::EventFault::into_stored_refusal)?;
        if event.artifact.ordinal != attempt.ordinal {
            return Err(foreign());
        }
        let retiring = matches!(event.kind, EventKind::FailedRetirable | EventKind::Retired);
        if retiring && self.nonpublication.is_none() {
            return Err(unproved());
        }
        if !retiring {
            self.frozen()?;
        }
        if let Some(state) = attempt.state() {
            let outcome = event.observation.as_ref().map(|observation| observation.writer_outcome);
            machine::step(state, AttemptEvent::Recorded(event.kind, outcome), identity.import_backend)?;
        }
        let mut events = attempt.events.clone();
        events.push(event);
        check_chain(identity, &events, attempt.nonce, self.nonpublication.is_some())?;
        if let Some(attempt) = self.attempts.get_mut(&attempt_id) {
            attempt.events = events;
        }
        Ok(())
    }

    fn apply_settlement(&mut self, document: &Json) -> Result<(), Refusal> {
        let settlement = Settlement::from_document(document)?;
        let backend = self.identified()?.import_backend;
        if self.nonpublication != Some(settlement.nonpublication_proof) {
            return Err(unproved());
        }
        let attempt = self.attempts.get_mut(&settlement.attempt_id).ok_or_else(foreign)?;
        let state = attempt.state().unwrap_or(machine::INITIAL);
        machine::step(state, AttemptEvent::Settled(settlement.stage), backend)?;
        attempt.settlement = Some(settlement);
        Ok(())
    }

    fn apply_receipt(&mut self, document: &Json) -> Result<(), Refusal> {
        let key = self.identified()?.invocation_key();
        let receipt = ChunkReceipt::from_document(document)?;
        let attempt = receipt.attempt_id.parse().ok().and_then(|id: Digest| self.attempts.get(&id));
        let agrees = attempt.is_some_and(|attempt| agrees(key, attempt, &receipt));
        if !agrees || self.receipts.contains_key(&receipt.ordinal) {
            return Err(Refusal::new(
                code::RECEIPT_EVENT_MISMATCH,
                "A chunk receipt does not agree with the verified event of its attempt; nothing may be published. \
                 Inspect the run.",
            ));
        }
        self.receipts.insert(receipt.ordinal, receipt);
        Ok(())
    }

    fn apply_completion(&mut self, document: &Json) -> Result<(), Refusal> {
        let (Some(stored), Some(metadata)) = (document.get("completion"), document.get("metadata")) else {
            return Err(foreign());
        };
        if self.state() != Some(TransferState::Extracting) || self.completion.is_some() {
            return Err(foreign());
        }
        self.frozen()?;
        let verified = |attempt: &Attempt| {
            attempt.state() == Some(EventKind::Verified) && self.receipts.contains_key(&attempt.ordinal)
        };
        if !self.attempts.values().all(verified) {
            return Err(unverified());
        }
        let receipts: Vec<ChunkReceipt> = self.receipts.values().cloned().collect();
        let completion = seal(&receipts, metadata)?;
        if completion.document() != *stored {
            return Err(Refusal::new(
                code::STAGE_COMPLETE_CHANGED,
                "The completion record does not match its receipts or metadata; do not publish, inspect the journal.",
            ));
        }
        self.completion = Some((completion, metadata.clone()));
        Ok(())
    }

    fn apply_nonpublication(&mut self, document: &Json) -> Result<(), Refusal> {
        let key = self.identified()?.invocation_key();
        let proof = document.get("proof_sha256").and_then(Json::as_str).and_then(|text| text.parse::<Digest>().ok());
        let fits = match self.state() {
            Some(TransferState::Extracting | TransferState::CustodyUnknown) => {
                proof == Some(names::nonpublication_proof(key)) && self.completion.is_none()
            }
            Some(TransferState::StageComplete(_) | TransferState::Failed) => {
                proof == Some(names::unpublished_proof(key))
            }
            Some(
                TransferState::Planned
                | TransferState::Publishing
                | TransferState::Published
                | TransferState::EvidenceComplete
                | TransferState::Succeeded
                | TransferState::ReextractRequired
                | TransferState::OutcomeUnknown,
            )
            | None => false,
        };
        if !fits {
            return Err(foreign());
        }
        self.nonpublication = proof;
        Ok(())
    }

    /// After the proof of non-publication no attempt goes on.
    fn frozen(&self) -> Result<(), Refusal> {
        match self.nonpublication {
            None => Ok(()),
            Some(_) => Err(Refusal::new(
                code::NONPUBLICATION_FROZEN,
                "The run is proved unpublished, so no attempt of it may go on; retire it and start a new run.",
            )),
        }
    }
}

/// Whether a receipt is the one of a verified attempt.
fn agrees(key: Digest, attempt: &Attempt, receipt: &ChunkReceipt) -> bool {
    let Some(event) = attempt.events.last().filter(|_| attempt.state() == Some(EventKind::Verified)) else {
        return false;
    };
    let artifact = &event.artifact;
    let stage = event.stage.as_ref().map(|stage| stage.stage_id);
    receipt.ordinal == attempt.ordinal
        && stage == Some(names::opaque_stage_id(key, &receipt.stage_id))
        && receipt.rows == artifact.rows
        && receipt.encoded_bytes == artifact.encoded_bytes
        && receipt.file_sha256 == artifact.file_sha256
        && receipt.typed_digest == artifact.typed_digest
}

fn foreign() -> Refusal {
    Refusal::new(
        code::INVALID_JOURNAL,
        "The journal holds a record that does not belong here or is not known; use the version that wrote it.",
    )
}

fn unproved() -> Refusal {
    Refusal::new(
        code::NONPUBLICATION_REQUIRED,
        "Stages are retired only after the run is proved unpublished; reconcile the run first.",
    )
}

fn unverified() -> Refusal {
    Refusal::new(code::UNVERIFIED_ATTEMPTS, "An attempt of the run is neither verified nor retired; reconcile the run.")
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
