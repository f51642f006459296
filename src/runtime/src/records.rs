//! The records of a run. Those that the fold of `contract::transfer::run` knows carry its kinds; the rest, named here, is
//! what the runtime needs besides: coordinates of a restart, never a state.

use contract::canon::{Json, decode_object, strict};
use contract::digest::Digest;
use contract::error::{PortError, Refusal};
use contract::port::journal::{NewRecord, Record, SHARED};
use contract::transfer::TransferEvent;
use contract::transfer::run::{RunState, kind};

/// Frozen plan, columns, identities: written once, before anything at the target.
pub(crate) const FROZEN: &str = "frozen_run";
/// Local custody of a target; shared by all runs of the journal.
pub(crate) const CUSTODY: &str = "custody";
/// Grant and stage of an attempt, written with its nonce and INTENT.
pub(crate) const GRANT: &str = "grant";
/// The evidence document.
pub(crate) const EVIDENCE: &str = "evidence";
/// What the finished read says about its source ([`contract::source_evidence`]); written with the sealed end.
pub(crate) const SOURCE_EVIDENCE: &str = "source_evidence";
/// A page of the parts that the read touched.
pub(crate) const SOURCE_PARTS: &str = "source_parts";
/// The checkpoint document.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// What admission found, for a person; never an authority.
pub(crate) const ADMISSION: &str = "admission";
/// The first failure of the run; a later one never replaces it.
pub(crate) const FAILURE: &str = "failure";
/// `{sha256}` of the frozen plan that a process was given; its content stands in the frozen run.
pub(crate) const PLAN: &str = "plan_document";
/// A table whose retirement after publication was proved.
pub(crate) const CLEANED: &str = "stage_cleaned";

/// A record that may be written once under its key.
pub(crate) fn once(run: &str, kind: &'static str, key: &str, payload: &Json) -> NewRecord {
    NewRecord { run: run.to_string(), kind, key: key.to_string(), unique: true, payload: text(payload) }
}

/// A record of a series.
pub(crate) fn next(run: &str, kind: &'static str, key: &str, payload: &Json) -> NewRecord {
    NewRecord { unique: false, ..once(run, kind, key, payload) }
}

/// A record shared by all runs.
pub(crate) fn shared(kind: &'static str, key: &str, payload: &Json) -> NewRecord {
    next(SHARED, kind, key, payload)
}

/// The frozen plan that a process was given, where it was given one.
pub(crate) fn plan(run: &str, sha256: Option<Digest>) -> Option<NewRecord> {
    sha256.map(|sha256| next(run, PLAN, "plan", &Json::object([("sha256", Json::from(sha256))])))
}

/// A transfer event with its facts.
pub(crate) fn event(run: &str, event: TransferEvent, facts: Json) -> NewRecord {
    next(run, kind::TRANSFER_EVENT, event.text(), &event.document(facts))
}

/// Whether the fold of a run's state knows the record.
pub(crate) fn folds(kind: &str) -> bool {
    !matches!(
        kind,
        FROZEN
            | CUSTODY
            | GRANT
            | EVIDENCE
            | SOURCE_EVIDENCE
            | SOURCE_PARTS
            | CHECKPOINT
            | ADMISSION
            | FAILURE
            | PLAN
            | CLEANED
    )
}

fn text(payload: &Json) -> String {
    // Strict canonical JSON is UTF-8 by construction.
    String::from_utf8_lossy(&strict(payload)).into_owned()
}

/// All records of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records(Vec<Record>);

impl Records {
    pub(crate) fn new(records: Vec<Record>) -> Self {
        Records(records)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records of a kind in order.
    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Record> + 'a {
        self.0.iter().filter(move |record| record.kind == kind)
    }

    /// The document of the last record of a kind.
    pub(crate) fn last(&self, kind: &str) -> Result<Option<Json>, PortError> {
        self.of(kind).last().map(document).transpose()
    }

    /// The run's state: the same fold as in the live run.
    pub(crate) fn fold(&self) -> Result<RunState, PortError> {
        let mut state = RunState::default();
        for record in self.0.iter().filter(|record| folds(&record.kind)) {
            state.apply(&record.kind, &record.payload)?;
        }
        Ok(state)
    }
}

/// The document of a record.
pub(crate) fn document(record: &Record) -> Result<Json, PortError> {
    decode_object(record.payload.as_bytes()).map(Json::Object).map_err(|_| invalid())
}

/// A record that is not of its form. The chain was intact, so another version wrote it.
pub(crate) fn invalid() -> PortError {
    PortError::from(Refusal::new(
        "mssql_native.invalid_journal",
        "a record of the journal is not of its form: use the release that wrote it, and do not act on the run by hand",
    ))
}
