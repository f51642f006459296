//! Appending to and reading a chain of writer events; both go through the same validation.

use super::EventKind;
use super::WriterOutcome;
use super::event::{
    ArtifactBinding, EVENT_KIND, EVENT_SCHEMA_VERSION, Observation, StageBinding, WriterBinding, WriterEvent,
};
pub use super::validate::EventFault;
use super::validate::validate;
use crate::canon::Json;
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::identity::{ImportBackend, VerificationIdentity};
use crate::names;

/// What a new event adds; everything else comes from the chain and the identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The kind.
    pub kind: EventKind,
    /// The stage; kept from the previous event when `None`.
    pub stage: Option<StageBinding>,
    /// The writer; kept from the previous event when `None`.
    pub writer: Option<WriterBinding>,
    /// The observation; kept from the previous event when `None`.
    pub observation: Option<Observation>,
    /// UTC time text ending in `Z`.
    pub created_at: String,
}

/// The first event of an attempt.
///
/// # Errors
/// The fault of the time text.
pub fn begin(
    identity: &VerificationIdentity,
    attempt_id: Digest,
    artifact: &ArtifactBinding,
    created_at: &str,
) -> Result<WriterEvent, EventFault> {
    let new = NewEvent {
        kind: EventKind::Intent,
        stage: None,
        writer: None,
        observation: None,
        created_at: created_at.to_owned(),
    };
    build(identity, attempt_id, artifact, None, &new)
}

/// The event after `previous`.
///
/// # Errors
/// The first rule that the event breaks; [`EventFault::into_refusal`] gives its stable code.
pub fn append(
    identity: &VerificationIdentity,
    previous: &WriterEvent,
    new: &NewEvent,
) -> Result<WriterEvent, EventFault> {
    build(identity, previous.attempt_id, &previous.artifact, Some(previous), new)
}

fn build(
    identity: &VerificationIdentity,
    attempt_id: Digest,
    artifact: &ArtifactBinding,
    previous: Option<&WriterEvent>,
    new: &NewEvent,
) -> Result<WriterEvent, EventFault> {
    let sequence = previous.map_or(0, |previous| previous.sequence + 1);
    let kept = |key: &str| previous.and_then(|p| p.document.get(key)).cloned().unwrap_or(Json::Null);
    let stage = new.stage.as_ref().map_or_else(|| kept("stage_binding"), Json::from);
    let writer = new.writer.as_ref().map_or_else(|| kept("writer_binding"), |writer| writer_document(identity, writer));
    let observation = new.observation.as_ref().map_or_else(|| kept("observation"), Json::from);
    let document = Json::object([
        ("schema_version", Json::from(EVENT_SCHEMA_VERSION)),
        ("kind", Json::from(EVENT_KIND)),
        ("invocation_key", Json::from(identity.invocation_key())),
        ("ordinal", Json::from(artifact.ordinal)),
        ("attempt_id", Json::from(attempt_id)),
        ("sequence", Json::from(sequence)),
        ("previous_sha256", Json::from(previous.map(WriterEvent::sha256))),
        ("event", Json::from(new.kind.text())),
        ("stage_binding", stage),
        ("artifact_binding", Json::from(artifact)),
        ("writer_binding", writer),
        ("observation", observation),
        ("created_at", Json::from(&new.created_at)),
    ]);
    validate(identity, document, previous, sequence, attempt_id)
}

fn writer_document(identity: &VerificationIdentity, writer: &WriterBinding) -> Json {
    Json::object([
        ("import_backend", Json::from(identity.import_backend.text())),
        ("writer_proof_capability", Json::from(identity.import_backend.proof_capability())),
        ("protocol_sha256", Json::from(identity.companion_protocol_sha256)),
        ("package_sha256", Json::from(identity.companion_package_sha256)),
        ("capability_sha256", Json::from(identity.capability_layout_sha256)),
        ("grant_token_sha256", Json::from(writer.grant_token_sha256)),
        ("timeout_policy_sha256", Json::from(identity.timeout_policy_sha256)),
    ])
}

/// Reads one stored event after `previous`.
///
/// # Errors
/// The first rule that the event breaks.
pub fn read(
    identity: &VerificationIdentity,
    document: Json,
    previous: Option<&WriterEvent>,
    attempt_id: Digest,
) -> Result<WriterEvent, EventFault> {
    let sequence = previous.map_or(0, |previous| previous.sequence + 1);
    validate(identity, document, previous, sequence, attempt_id)
}

/// Checks a whole chain beyond its single links: the attempt's nonce, the terminal proof of BCP, and that a verified
/// stage is only retired after the run was proved unpublished.
///
/// # Errors
/// `mssql_native.invalid_journal_event`.
pub fn check_chain(
    identity: &VerificationIdentity,
    events: &[WriterEvent],
    nonce: Digest,
    nonpublication_proved: bool,
) -> Result<(), Refusal> {
    let fault = chain_fault(identity, events, nonce, nonpublication_proved);
    fault.map_or(Ok(()), |fault| Err(fault.into_stored_refusal()))
}

fn chain_fault(
    identity: &VerificationIdentity,
    events: &[WriterEvent],
    nonce: Digest,
    nonpublication_proved: bool,
) -> Option<EventFault> {
    let Some(first) = events.first() else {
        return Some(EventFault::Beginning);
    };
    if first.attempt_id != names::attempt_id(identity.invocation_key(), first.artifact.ordinal, nonce) {
        return Some(EventFault::AttemptNonce);
    }
    let mut terminal_success = false;
    for pair in events.windows(2) {
        let [previous, event] = pair else { continue };
        terminal_success |= previous.kind == EventKind::WriterTerminal && succeeded(previous);
        let recovered = previous.kind == EventKind::Unknown && event.kind == EventKind::Quiescent;
        if identity.import_backend == ImportBackend::Bcp && recovered && !(terminal_success && succeeded(previous)) {
            return Some(EventFault::TerminalProofMissing);
        }
        let retired = previous.kind == EventKind::Verified && event.kind == EventKind::FailedRetirable;
        if retired && !nonpublication_proved {
            return Some(EventFault::RetirementProofMissing);
        }
    }
    None
}

pub(super) fn succeeded(event: &WriterEvent) -> bool {
    event.observation.as_ref().is_some_and(|observation| observation.writer_outcome == WriterOutcome::Success)
}

impl EventFault {
    /// The refusal of an event that was about to be appended.
    pub fn into_refusal(self) -> Refusal {
        Refusal::new(
            code::INVALID_JOURNAL_EVENT_TRANSITION,
            "An event does not follow from the attempt's history; nothing was written. This is a bug or a second writer: \
             inspect the run.",
        )
    }

    /// The refusal of an event that was found stored.
    pub fn into_stored_refusal(self) -> Refusal {
        Refusal::new(
            code::INVALID_JOURNAL_EVENT,
            "The journal holds an event that does not follow from the attempt's history; it was changed or written by \
             another version. Do not act on it.",
        )
    }
}
