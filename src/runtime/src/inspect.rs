//! A run from its journal alone: no network, no effect (contract.md 9.2).

use contract::attempt::EventKind;
use contract::canon::Json;
use contract::custody::{CustodyRecord, CustodyState};
use contract::digest::Digest;
use contract::error::PortError;
use contract::names;
use contract::port::journal::Journal;
use contract::recovery::classify::{Classification, JournalPhase, JournalView, KnownCustody, classify};
use contract::recovery::document::{AttemptSummary, inspect as inspect_document};

use crate::context::run_key;
use crate::frozen::Frozen;
use crate::publish::phase;
use crate::records::{self, COMPLETION, CUSTODY, FAILURE, FROZEN, NONPUBLICATION, RECOVERY_PLAN, Records};
use crate::settle::{attempts, is_retired};

/// What a journal says about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The document of contract.md 9.2.
    pub document: Json,
    /// State in the recovery vocabulary, for example `VERIFIED_EOF`.
    pub recovery_state: &'static str,
    /// State in the spec's words, for example `StageComplete`.
    pub state: &'static str,
    /// What may be done, in words of commands.
    pub actions: Vec<&'static str>,
    /// Whether the journal says that this run holds its target.
    pub custody_held: bool,
    /// The first coded failure, if there was one.
    pub failure: Option<String>,
    /// Rows of the sealed end of source.
    pub rows: Option<u64>,
}

/// Reads the state of a run.
///
/// # Errors
/// `mssql_native.recovery_identity_invalid` when the journal has no such run, `mssql_native.invalid_journal` when a
/// record is not of its form.
pub fn inspect<J: Journal>(journal: &J, run_id: &str) -> Result<Inspection, PortError> {
    let records = Records::new(journal.records(&run_key(run_id))?);
    if records.is_empty() {
        return Err(PortError::not_done(
            "mssql_native.recovery_identity_invalid",
            "this journal has no run of that id: check --run-id and --journal-root",
        ));
    }
    let Some(frozen) = records.one(FROZEN)? else { return Ok(planned(run_id)) };
    let frozen = Frozen::from_document(&frozen)?;
    let custody = custody(journal, &frozen)?;
    let known = attempts(&records, &frozen)?;
    let summaries: Vec<AttemptSummary> = known
        .iter()
        .map(|known| AttemptSummary {
            ordinal: known.attempt.ordinal,
            attempt_id: known.attempt.attempt_id,
            stage_id: known.last.as_ref().and_then(|event| event.stage.as_ref()).map(|stage| stage.stage_id),
            terminal: match &known.last {
                _ if is_retired(&records, &known.attempt.definition.name.table) => EventKind::Retired,
                Some(event) => event.kind,
                None => EventKind::Intent,
            },
        })
        .collect();
    let terminals: Vec<EventKind> = summaries.iter().map(|summary| summary.terminal).collect();
    let settled = records.has(NONPUBLICATION);
    let view = JournalView {
        phase: match (records.has(COMPLETION), settled) {
            (true, _) => JournalPhase::StageComplete,
            (false, true) => JournalPhase::ReextractRequired,
            (false, false) => JournalPhase::Staging,
        },
        publication: phase(&records)?,
        terminals: &terminals,
        custody,
        writers_proved_gone: settled,
    };
    let classification = classify(&view);
    let refs: Vec<Digest> = [COMPLETION, RECOVERY_PLAN]
        .iter()
        .filter_map(|kind| records.of(kind).last().map(|record| Digest::of(record.payload.as_bytes())))
        .collect();
    let failure = records.of(FAILURE).next().map(records::document).transpose()?;
    let complete = records.one(COMPLETION)?;
    Ok(Inspection {
        document: inspect_document(frozen.identity.invocation_key(), &classification, &refs, &summaries),
        recovery_state: classification.state.text(),
        state: state(&view, &classification),
        actions: classification.actions.iter().map(|action| action.text()).collect(),
        custody_held: custody == KnownCustody::Held,
        failure: failure.and_then(|f| f.get("code").and_then(Json::as_str).map(str::to_string)),
        rows: complete.and_then(|c| c.get("complete").and_then(|c| c.get("rows")).and_then(Json::as_u64)),
    })
}

/// A run that was admitted and has done nothing.
fn planned(run_id: &str) -> Inspection {
    Inspection {
        document: Json::object([
            ("schema_version", Json::from(2)),
            ("kind", Json::from("dpone.mssql-native-recovery.v2")),
            ("run_id_sha256", Json::from(run_key(run_id))),
            ("state", Json::from("PLANNED")),
            ("permitted_actions", Json::array(["inspect"])),
        ]),
        recovery_state: "PLANNED",
        state: "Planned",
        actions: vec!["inspect"],
        custody_held: false,
        failure: None,
        rows: None,
    }
}

fn custody<J: Journal>(journal: &J, frozen: &Frozen) -> Result<KnownCustody, PortError> {
    let key = names::custody_key(&frozen.identity.plan.target_id);
    let Some(record) = journal.latest_shared(CUSTODY, &key)? else { return Ok(KnownCustody::None) };
    let ours = frozen.identity.invocation_key();
    Ok(match CustodyRecord::decode(record.payload.as_bytes())?.state {
        CustodyState::Held { holder, .. } if holder == ours => KnownCustody::Held,
        // Another run's custody says that ours was released before it could be claimed.
        CustodyState::Held { .. } | CustodyState::Clear(_) => KnownCustody::Clear,
    })
}

/// The spec's words for what the journal shows.
fn state(view: &JournalView<'_>, classification: &Classification) -> &'static str {
    use contract::recovery::classify::{PublicationPhase, RecoveryState};
    match classification.state {
        RecoveryState::CustodyReleased | RecoveryState::Succeeded => "Succeeded",
        RecoveryState::Published if view.publication == Some(PublicationPhase::EvidenceComplete) => "EvidenceComplete",
        RecoveryState::Published => "Published",
        RecoveryState::PublicationUnknown => "OutcomeUnknown",
        RecoveryState::VerifiedEof => "StageComplete",
        RecoveryState::IncidentRetained | RecoveryState::PartialProved | RecoveryState::WritingUnknown => {
            "CustodyUnknown"
        }
        _ if view.custody == KnownCustody::Held => "Extracting",
        RecoveryState::Retired | RecoveryState::ReextractRequired | RecoveryState::EmptyStaging => "ReextractRequired",
    }
}
