//! The sealed end of source: receipts, EOF and metadata, co-bound in one record (spec "Identity and artifacts").

use contract::canon::Json;
use contract::completion::{self, ChunkReceipt, Completion};
use contract::digest::TypedSum;
use contract::error::PortError;
use contract::raw::eof::EofDescriptor;
use contract::raw::extension;
use contract::raw::profile::RawProfile;
use contract::transfer::TransferEvent;
use contract::transfer::run::RunState;

use crate::frozen::{Claimed, Frozen};
use crate::records;

/// A completed extraction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sealed {
    pub(crate) receipts: Vec<ChunkReceipt>,
    pub(crate) rows: u64,
    pub(crate) sum: TypedSum,
    pub(crate) completion: Completion,
    pub(crate) metadata: Json,
    pub(crate) completed_at: String,
}

/// The completion metadata of a frozen run; in raw mode with the snapshot extension.
pub(crate) fn metadata(
    frozen: &Frozen,
    claimed: &Claimed,
    authority: &Json,
    eof: Option<&[u8]>,
) -> Result<Json, PortError> {
    let schema = frozen.wire_columns().into_iter().map(|(name, wire)| Json::array([name, wire]));
    let relation = frozen.columns.iter().zip(&frozen.source_types);
    let relation = relation.map(|(column, source)| Json::array([column.name.as_str(), source.as_str()]));
    let mut members: Vec<(&str, Json)> = vec![
        ("version", Json::from(1)),
        ("source_relation_uuid", Json::from(&frozen.relation_uuid)),
        ("schema", Json::Array(schema.collect())),
        ("relation_schema", Json::Array(relation.collect())),
        ("relation_dialect", Json::from("clickhouse")),
        ("lifecycle", Json::object([("started_at", Json::from(&frozen.started_at))])),
        ("mutation", Json::object([("strategy", Json::from(&frozen.operation.strategy))])),
        ("operation_key", Json::from(frozen.operation.operation_key)),
        ("generation", Json::from(claimed.generation)),
        ("recovery_authority_v1", authority.clone()),
    ];
    if let (Some(profile), Some(eof)) = (&frozen.profile, eof) {
        let profile = RawProfile::from_document(&decoded(&profile.canonical)?)?;
        let eof = EofDescriptor::from_document(&decoded(eof)?)?;
        let binding = &frozen.identity.plan.source_query_id;
        members.push(("source_snapshot_v1", extension::build(binding, &profile, &eof)?));
    }
    Ok(Json::object(members))
}

fn decoded(canonical: &[u8]) -> Result<Json, PortError> {
    contract::canon::decode_object(canonical).map(Json::Object).map_err(|_| records::invalid())
}

impl Sealed {
    /// Seals what was extracted.
    pub(crate) fn new(receipts: Vec<ChunkReceipt>, metadata: Json, completed_at: String) -> Result<Self, PortError> {
        let completion = completion::seal(&receipts, &metadata)?;
        let (rows, sum) = completion::workload(&receipts).ok_or_else(records::invalid)?;
        Ok(Sealed { receipts, rows, sum, completion, metadata, completed_at })
    }

    /// The completion record.
    pub(crate) fn document(&self) -> Json {
        Json::object([("completion", self.completion.document()), ("metadata", self.metadata.clone())])
    }

    /// Facts of the event that makes the run stage-complete.
    pub(crate) fn facts(&self) -> Json {
        Json::object([("completed_at", Json::from(&self.completed_at)), ("rows", Json::from(self.rows))])
    }

    /// The sealed end as a state has it, with every digest recomputed and the raw extension restored against the frozen
    /// profile and the row count.
    pub(crate) fn restore(state: &RunState, frozen: &Frozen) -> Result<Option<Self>, PortError> {
        let Some((completion, metadata)) = state.completion() else { return Ok(None) };
        let Some(facts) = state.facts(TransferEvent::EofSealed.text()) else { return Ok(None) };
        let receipts: Vec<ChunkReceipt> = state.receipts().cloned().collect();
        completion::verify(completion, &receipts, metadata)?;
        match (&frozen.profile, metadata.get("source_snapshot_v1")) {
            (None, None) => {}
            (Some(profile), Some(snapshot)) => {
                let binding = &frozen.identity.plan.source_query_id;
                let (restored, _) = extension::restore(snapshot, binding, &Json::from(completion.rows))?;
                if restored.canonical() != profile.canonical {
                    return Err(records::invalid());
                }
            }
            _ => return Err(records::invalid()),
        }
        let completed_at = facts.get("completed_at").and_then(Json::as_str).ok_or_else(records::invalid)?;
        let (rows, sum) = completion::workload(&receipts).ok_or_else(records::invalid)?;
        Ok(Some(Sealed {
            receipts,
            rows,
            sum,
            completion: *completion,
            metadata: metadata.clone(),
            completed_at: completed_at.to_string(),
        }))
    }

    /// What the receipt's payload digest stands for.
    pub(crate) fn manifest(&self, frozen: &Frozen) -> Json {
        Json::object([
            ("kind", Json::from("native-transfer.payload-manifest.v1")),
            ("complete", self.completion.document()),
            ("frozen_run_sha256", Json::from(frozen.sha256())),
            ("typed_sum", Json::from(self.sum)),
        ])
    }
}
