//! A run from its journal alone: no network, no effect (contract.md 9.2).

use contract::canon::Json;
use contract::digest::Digest;
use contract::error::PortError;
use contract::port::journal::Journal;
use contract::recovery::document::inspect as inspect_document;
use contract::transfer::run::kind;

use crate::context::run_key;
use crate::facts::{self, RunFacts};
use crate::records::{self, EVIDENCE, Records, SOURCE_EVIDENCE, SOURCE_PARTS};

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
    /// Epoch of the journal; looking does not raise it.
    pub epoch: u64,
    /// What a receipt repeats.
    pub facts: RunFacts,
}

/// Reads the state of a run.
///
/// # Errors
/// `mssql_native.recovery_identity_invalid` when the journal has no such run, `mssql_native.invalid_journal` when a
/// record is not of its form.
pub fn inspect<J: Journal>(journal: &J, run_id: &str) -> Result<Inspection, PortError> {
    let records = read(journal, run_id)?;
    let epoch = journal.header().epoch;
    let Some(frozen) = facts::frozen(&records)? else {
        return Ok(planned(run_id, epoch, RunFacts::read(&records, None, false)?));
    };
    let (kind, key) = facts::custody_key(&frozen);
    let custody_held = facts::holds(&frozen, journal.latest_shared(kind, &key)?.as_ref())?;
    let facts = RunFacts::read(&records, Some(&frozen), custody_held)?;
    let state = records.fold()?;
    let settled = state.nonpublication().is_some();
    let classification = state.classify(settled);
    let refs: Vec<Digest> = [kind::COMPLETION, kind::RECOVERY_PLAN]
        .iter()
        .filter_map(|kind| records.of(kind).last().map(|record| Digest::of(record.payload.as_bytes())))
        .collect();
    let invocation = frozen.identity.invocation_key();
    Ok(Inspection {
        document: inspect_document(invocation, &classification, &refs, &state.attempt_summaries()),
        recovery_state: classification.state.text(),
        // Before its claim is recorded a run is planned, whatever became of the claim.
        state: state.transfer().map_or("Planned", |transfer| transfer.state.text()),
        actions: classification.actions.iter().map(|action| action.text()).collect(),
        custody_held,
        failure: facts.failure.clone(),
        rows: facts.rows,
        epoch,
        facts,
    })
}

/// What a journal proves of a run, as one document: `source` and its pages of parts once the end of source is sealed,
/// `operational` once the run is published; null before.
///
/// # Errors
/// As for [`inspect`].
pub fn evidence_of<J: Journal>(journal: &J, run_id: &str) -> Result<Json, PortError> {
    let records = read(journal, run_id)?;
    let pages: Result<Vec<Json>, PortError> = records.of(SOURCE_PARTS).map(records::document).collect();
    let operational = records.last(EVIDENCE)?.unwrap_or(Json::Null);
    Ok(Json::object([
        ("kind", Json::from("native-transfer.run-evidence.v1")),
        ("source", records.last(SOURCE_EVIDENCE)?.unwrap_or(Json::Null)),
        ("source_parts", Json::Array(pages?)),
        ("operational", operational),
    ]))
}

fn read<J: Journal>(journal: &J, run_id: &str) -> Result<Records, PortError> {
    let records = Records::new(journal.records(&run_key(run_id))?);
    if records.is_empty() {
        return Err(PortError::not_done(
            "mssql_native.recovery_identity_invalid",
            "this journal has no run of that id: check --run-id and --journal-root",
        ));
    }
    Ok(records)
}

/// A run that was admitted and has done nothing.
fn planned(run_id: &str, epoch: u64, facts: RunFacts) -> Inspection {
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
        epoch,
        facts,
    }
}
