//! The rules of one event against its predecessor, in the order in which they are reported.

use super::chain::succeeded;
use super::event::{
    ArtifactBinding, EVENT_KIND, EVENT_SCHEMA_VERSION, Observation, StageBinding, WriterBinding, WriterEvent,
};
use super::{EventKind, Quiescence, WriterOutcome};
use crate::canon::Json;
use crate::civil::Instant;
use crate::digest::Digest;
use crate::identity::{ImportBackend, VerificationIdentity};

/// The first rule that an event breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventFault {
    /// Missing or extra keys.
    #[error("event shape")]
    Shape,
    /// Other schema version, kind or invocation.
    #[error("event identity")]
    Identity,
    /// Other attempt, ordinal or position.
    #[error("event sequence")]
    Sequence,
    /// No UTC time text.
    #[error("event timestamp")]
    Timestamp,
    /// A chain that does not begin with INTENT.
    #[error("event beginning")]
    Beginning,
    /// A kind that may not follow, or a broken link.
    #[error("event transition/link")]
    TransitionOrLink,
    /// An unknown kind.
    #[error("event type")]
    Kind,
    /// Missing or extra keys of the file binding.
    #[error("artifact shape")]
    ArtifactShape,
    /// Ill-typed values of the file binding.
    #[error("artifact values")]
    ArtifactValues,
    /// A stage before it can exist.
    #[error("premature stage")]
    PrematureStage,
    /// A missing, malformed or changed stage.
    #[error("stage binding")]
    Stage,
    /// A writer before it can exist.
    #[error("premature writer")]
    PrematureWriter,
    /// A missing, malformed or changed writer.
    #[error("writer binding")]
    Writer,
    /// An observation before there is something to observe.
    #[error("premature observation")]
    PrematureObservation,
    /// A missing or malformed observation.
    #[error("observation")]
    Observation,
    /// QUIESCENT or PARTIAL_PROVED without proved quiescence.
    #[error("quiescence proof")]
    Quiescence,
    /// BCP cannot prove a partial stage.
    #[error("bcp partial proof forbidden")]
    BcpPartial,
    /// BCP verifies only after an acknowledged success.
    #[error("bcp terminal success required")]
    BcpTerminal,
    /// BCP's own count differs from the file.
    #[error("bcp vendor count")]
    BcpCount,
    /// BCP success without an earlier acknowledged one.
    #[error("bcp success authority missing")]
    BcpSuccess,
    /// VERIFIED without count and digest.
    #[error("verification proof")]
    Verification,
    /// The attempt id is not made of its nonce.
    #[error("attempt nonce")]
    AttemptNonce,
    /// BCP recovered from UNKNOWN without an acknowledged success.
    #[error("bcp terminal proof missing")]
    TerminalProofMissing,
    /// A verified stage retired without proof of non-publication.
    #[error("retirement proof missing")]
    RetirementProofMissing,
}

type Rule<T> = Result<T, EventFault>;

pub(super) fn validate(
    identity: &VerificationIdentity,
    document: Json,
    previous: Option<&WriterEvent>,
    sequence: u64,
    attempt_id: Digest,
) -> Rule<WriterEvent> {
    closed(
        &document,
        &[
            "schema_version",
            "kind",
            "invocation_key",
            "ordinal",
            "attempt_id",
            "sequence",
            "previous_sha256",
            "event",
            "stage_binding",
            "artifact_binding",
            "writer_binding",
            "observation",
            "created_at",
        ],
        EventFault::Shape,
    )?;
    let invocation_key = identity.invocation_key();
    let ours = number(&document, "schema_version") == Some(EVENT_SCHEMA_VERSION)
        && text(&document, "kind") == Some(EVENT_KIND)
        && digest(&document, "invocation_key") == Some(invocation_key);
    demand(ours, EventFault::Identity)?;
    let ordinal = number(&document, "ordinal").ok_or(EventFault::Sequence)?;
    let placed = digest(&document, "attempt_id") == Some(attempt_id) && number(&document, "sequence") == Some(sequence);
    demand(placed, EventFault::Sequence)?;
    let created_at = text(&document, "created_at").filter(|text| is_utc(text)).ok_or(EventFault::Timestamp)?;
    let created_at = created_at.to_owned();
    let kind = text(&document, "event").and_then(EventKind::from_text);
    let previous_sha256 = link(&document, previous, ordinal, kind)?;
    let kind = kind.ok_or(EventFault::Kind)?;
    let artifact = artifact(&document, ordinal)?;
    let stage = stage(&document, kind, previous)?;
    let writer = writer(&document, kind, previous, identity)?;
    let observation = observation(&document, kind)?;
    let event = WriterEvent {
        invocation_key,
        attempt_id,
        sequence,
        previous_sha256,
        kind,
        stage,
        artifact,
        writer,
        observation,
        created_at,
        document,
    };
    proofs(&event, previous, identity.import_backend)?;
    Ok(event)
}

fn link(
    document: &Json,
    previous: Option<&WriterEvent>,
    ordinal: u64,
    kind: Option<EventKind>,
) -> Rule<Option<Digest>> {
    let Some(previous) = previous else {
        let begins = kind == Some(EventKind::Intent) && is_null(document, "previous_sha256");
        return if begins { Ok(None) } else { Err(EventFault::Beginning) };
    };
    let expected = previous.sha256();
    let follows = kind.is_some_and(|kind| previous.kind.next().contains(&kind))
        && digest(document, "previous_sha256") == Some(expected)
        && ordinal == previous.artifact.ordinal
        && document.get("artifact_binding") == previous.document.get("artifact_binding");
    if follows { Ok(Some(expected)) } else { Err(EventFault::TransitionOrLink) }
}

fn artifact(document: &Json, ordinal: u64) -> Rule<ArtifactBinding> {
    let artifact = document.get("artifact_binding").unwrap_or(&Json::Null);
    let keys = ["ordinal", "rows", "encoded_bytes", "file_sha256", "typed_digest"];
    closed(artifact, &keys, EventFault::ArtifactShape)?;
    demand(number(artifact, "ordinal") == Some(ordinal), EventFault::ArtifactShape)?;
    let read = || {
        Some(ArtifactBinding {
            ordinal,
            rows: number(artifact, "rows")?,
            encoded_bytes: number(artifact, "encoded_bytes")?,
            file_sha256: digest(artifact, "file_sha256")?,
            typed_digest: digest(artifact, "typed_digest")?,
        })
    };
    read().ok_or(EventFault::ArtifactValues)
}

fn stage(document: &Json, kind: EventKind, previous: Option<&WriterEvent>) -> Rule<Option<StageBinding>> {
    if !kind.has_stage() {
        demand(is_null(document, "stage_binding"), EventFault::PrematureStage)?;
        return Ok(None);
    }
    let stage = document.get("stage_binding").unwrap_or(&Json::Null);
    closed(stage, &["stage_id", "owner_binding_sha256", "object_id", "schema_sha256"], EventFault::Stage)?;
    let read = || {
        Some(StageBinding {
            stage_id: digest(stage, "stage_id")?,
            owner_binding_sha256: digest(stage, "owner_binding_sha256")?,
            object_id: number(stage, "object_id").filter(|id| *id > 0)?,
            schema_sha256: digest(stage, "schema_sha256")?,
        })
    };
    let stage = read().ok_or(EventFault::Stage)?;
    let kept = previous.and_then(|previous| previous.stage.as_ref()).is_none_or(|before| *before == stage);
    if kept { Ok(Some(stage)) } else { Err(EventFault::Stage) }
}

fn writer(
    document: &Json,
    kind: EventKind,
    previous: Option<&WriterEvent>,
    identity: &VerificationIdentity,
) -> Rule<Option<WriterBinding>> {
    if !kind.has_writer() {
        demand(is_null(document, "writer_binding"), EventFault::PrematureWriter)?;
        return Ok(None);
    }
    let writer = document.get("writer_binding").unwrap_or(&Json::Null);
    let keys = [
        "import_backend",
        "writer_proof_capability",
        "protocol_sha256",
        "package_sha256",
        "capability_sha256",
        "grant_token_sha256",
        "timeout_policy_sha256",
    ];
    closed(writer, &keys, EventFault::Writer)?;
    let bound = text(writer, "import_backend") == Some(identity.import_backend.text())
        && text(writer, "writer_proof_capability") == Some(identity.import_backend.proof_capability())
        && digest(writer, "protocol_sha256") == Some(identity.companion_protocol_sha256)
        && digest(writer, "package_sha256") == Some(identity.companion_package_sha256)
        && digest(writer, "capability_sha256") == Some(identity.capability_layout_sha256)
        && digest(writer, "timeout_policy_sha256") == Some(identity.timeout_policy_sha256);
    demand(bound, EventFault::Writer)?;
    let grant_token_sha256 = digest(writer, "grant_token_sha256").ok_or(EventFault::Writer)?;
    let writer = WriterBinding { grant_token_sha256 };
    let kept = previous.and_then(|previous| previous.writer.as_ref()).is_none_or(|before| *before == writer);
    if kept { Ok(Some(writer)) } else { Err(EventFault::Writer) }
}

fn observation(document: &Json, kind: EventKind) -> Rule<Option<Observation>> {
    if !kind.has_observation() {
        demand(is_null(document, "observation"), EventFault::PrematureObservation)?;
        return Ok(None);
    }
    let value = document.get("observation").unwrap_or(&Json::Null);
    let keys = [
        "writer_outcome",
        "input_rows_consumed",
        "row_count",
        "count_overflow",
        "limbs",
        "quiescence",
        "diagnostic_code",
    ];
    closed(value, &keys, EventFault::Observation)?;
    read_observation(value).map(Some).ok_or(EventFault::Observation)
}

fn read_observation(value: &Json) -> Option<Observation> {
    let optional_number = |key: &str| match value.get(key)? {
        Json::Null => Some(None),
        number => number.as_u64().map(Some),
    };
    let count_overflow = match value.get("count_overflow")? {
        Json::Null => None,
        overflow => Some(overflow.as_bool()?),
    };
    let limbs = match value.get("limbs")? {
        Json::Null => None,
        limbs => Some(read_limbs(limbs.as_array()?)?),
    };
    Some(Observation {
        writer_outcome: WriterOutcome::from_text(text(value, "writer_outcome")?)?,
        input_rows_consumed: optional_number("input_rows_consumed")?,
        row_count: optional_number("row_count")?,
        count_overflow,
        limbs,
        quiescence: Quiescence::from_text(text(value, "quiescence")?)?,
        diagnostic_code: text(value, "diagnostic_code").filter(|text| is_diagnostic(text))?.to_owned(),
    })
}

fn read_limbs(limbs: &[Json]) -> Option<[String; 8]> {
    let canonical = |text: &&str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && (*text == "0" || !text.starts_with('0'))
    };
    let texts: Option<Vec<String>> =
        limbs.iter().map(|limb| limb.as_str().filter(canonical).map(str::to_owned)).collect();
    texts?.try_into().ok()
}

/// Whether a text is `name.name` of lower-case letters, digits and underscores, each starting with a letter.
fn is_diagnostic(text: &str) -> bool {
    let name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    text.split_once('.').is_some_and(|(domain, detail)| name(domain) && name(detail))
}

fn proofs(event: &WriterEvent, previous: Option<&WriterEvent>, backend: ImportBackend) -> Rule<()> {
    let Some(observation) = &event.observation else {
        return Ok(());
    };
    let proved = observation.quiescence == Quiescence::Proved;
    let wants_quiescence = matches!(event.kind, EventKind::Quiescent | EventKind::PartialProved);
    demand(proved || !wants_quiescence, EventFault::Quiescence)?;
    if backend == ImportBackend::Bcp {
        bcp_proofs(event, observation, previous)?;
    }
    let verified = proved
        && observation.row_count == Some(event.artifact.rows)
        && observation.count_overflow == Some(false)
        && observation.limbs.is_some();
    demand(verified || event.kind != EventKind::Verified, EventFault::Verification)
}

fn bcp_proofs(event: &WriterEvent, observation: &Observation, previous: Option<&WriterEvent>) -> Rule<()> {
    let success = observation.writer_outcome == WriterOutcome::Success;
    let after_success = |kinds: &[EventKind]| previous.is_some_and(|p| kinds.contains(&p.kind) && succeeded(p));
    match event.kind {
        EventKind::PartialProved => Err(EventFault::BcpPartial),
        EventKind::Quiescent => {
            let failed_terminal =
                previous.is_some_and(|previous| previous.kind == EventKind::WriterTerminal && !succeeded(previous));
            demand(success && !failed_terminal, EventFault::BcpTerminal)
        }
        EventKind::Verified => demand(success, EventFault::BcpTerminal),
        EventKind::WriterTerminal => {
            let counted = observation.input_rows_consumed == Some(event.artifact.rows);
            demand(counted || !success, EventFault::BcpCount)
        }
        EventKind::Unknown => {
            let authority = after_success(&[EventKind::WriterTerminal, EventKind::Quiescent]);
            demand(authority || !success, EventFault::BcpSuccess)
        }
        EventKind::Intent
        | EventKind::StageOwned
        | EventKind::Granted
        | EventKind::Writing
        | EventKind::FailedRetirable
        | EventKind::IncidentRetained
        | EventKind::Retired => Ok(()),
    }
}

/// `YYYY-MM-DDTHH:MM:SS[.digits]Z` of a time that exists.
fn is_utc(text: &str) -> bool {
    let Some(bare) = text.strip_suffix('Z') else {
        return false;
    };
    let (whole, fraction) = bare.split_once('.').unwrap_or((bare, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    digits && Instant::parse(&format!("{whole}Z")).is_some()
}

fn demand(holds: bool, fault: EventFault) -> Rule<()> {
    if holds { Ok(()) } else { Err(fault) }
}

/// Demands an object with exactly these keys.
fn closed(value: &Json, keys: &[&str], fault: EventFault) -> Rule<()> {
    let exact = value
        .as_object()
        .is_some_and(|members| members.len() == keys.len() && keys.iter().all(|key| members.contains_key(*key)));
    demand(exact, fault)
}

fn text<'a>(value: &'a Json, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn number(value: &Json, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

fn digest(value: &Json, key: &str) -> Option<Digest> {
    text(value, key)?.parse().ok()
}

fn is_null(value: &Json, key: &str) -> bool {
    value.get(key).is_some_and(Json::is_null)
}
