//! The records of a run: their kinds, keys and payloads. Everything that a later process needs is in them.

use contract::canon::{Json, decode_object, strict};
use contract::error::{PortError, Refusal};
use contract::port::journal::{NewRecord, Record, SHARED};

/// Frozen plan, columns, identities: written once, before anything at the target.
pub(crate) const FROZEN: &str = "frozen_run";
/// Recovery plan v2 under its own key.
pub(crate) const RECOVERY_PLAN: &str = "recovery_plan";
/// Local custody of a target; shared by all runs of the journal.
pub(crate) const CUSTODY: &str = "custody";
/// What the claim at the target returned.
pub(crate) const CLAIMED: &str = "claimed";
/// What admission found, for a person; never an authority.
pub(crate) const ADMISSION: &str = "admission";
/// Nonce, grant and stage of an attempt, written with its INTENT.
pub(crate) const GRANT: &str = "grant";
/// A writer event v2.
pub(crate) const WRITER: &str = "writer_event";
/// A chunk receipt.
pub(crate) const RECEIPT: &str = "chunk_receipt";
/// EOF, receipts and metadata sealed together.
pub(crate) const COMPLETION: &str = "stage_complete";
/// The prepared table as observed after its fill.
pub(crate) const PREPARED: &str = "prepared";
/// The publication receipt as read back.
pub(crate) const PUBLISHED: &str = "published";
/// The evidence document.
pub(crate) const EVIDENCE: &str = "evidence";
/// The checkpoint document.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// A publication phase.
pub(crate) const PUBLICATION: &str = "publication";
/// The proof that the run ends unpublished.
pub(crate) const NONPUBLICATION: &str = "nonpublication_proof";
/// A stage whose absence was proved.
pub(crate) const RETIRED: &str = "stage_retired";
/// The first failure of the run; a later one never replaces it.
pub(crate) const FAILURE: &str = "failure";

/// A record that is made but not yet durable.
pub(crate) type PendingEvent = NewRecord;

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

fn text(payload: &Json) -> String {
    // Strict canonical JSON is UTF-8 by construction.
    String::from_utf8_lossy(&strict(payload)).into_owned()
}

/// All records of one run, by kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records(Vec<Record>);

impl Records {
    pub(crate) fn new(records: Vec<Record>) -> Self {
        Records(records)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Payloads of a kind in order, with their keys.
    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Record> + 'a {
        self.0.iter().filter(move |record| record.kind == kind)
    }

    /// The document of the only record of a kind.
    pub(crate) fn one(&self, kind: &str) -> Result<Option<Json>, PortError> {
        self.of(kind).last().map(document).transpose()
    }

    pub(crate) fn has(&self, kind: &str) -> bool {
        self.of(kind).next().is_some()
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
