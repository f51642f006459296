//! The sealed end of source: receipts, EOF and metadata, co-bound in one record (spec "Identity and artifacts").

use contract::canon::{Json, Object};
use contract::completion::{self, ChunkReceipt, Completion};
use contract::digest::{Digest, TypedSum};
use contract::error::PortError;
use contract::raw::eof::EofDescriptor;
use contract::raw::extension;
use contract::raw::profile::RawProfile;

use crate::frozen::{Claimed, Frozen};
use crate::publish::{check_completion, workload};
use crate::records::{self, COMPLETION, RECEIPT, Records};

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
        let (rows, sum) = workload(&receipts)?;
        Ok(Sealed { receipts, rows, sum, completion, metadata, completed_at })
    }

    /// The record that makes the run stage-complete.
    pub(crate) fn document(&self) -> Json {
        Json::object([
            ("complete", self.completion.document()),
            ("completion_metadata", self.metadata.clone()),
            ("completed_at", Json::from(&self.completed_at)),
        ])
    }

    /// The sealed end as the journal holds it, with every digest recomputed and the raw extension restored.
    pub(crate) fn restore(records: &Records, frozen: &Frozen) -> Result<Option<Self>, PortError> {
        let Some(document) = records.one(COMPLETION)? else { return Ok(None) };
        let mut receipts = Vec::new();
        for record in records.of(RECEIPT) {
            receipts.push(ChunkReceipt::from_document(&records::document(record)?)?);
        }
        receipts.sort_by_key(|receipt| receipt.ordinal);
        let stored = document.get("complete").ok_or_else(records::invalid)?;
        let metadata = document.get("completion_metadata").cloned().ok_or_else(records::invalid)?;
        let completed_at = document.get("completed_at").and_then(Json::as_str).ok_or_else(records::invalid)?;
        let digest = |key: &str| stored.get(key)?.as_str()?.parse::<Digest>().ok();
        let read = || {
            Some(Completion {
                rows: stored.get("rows")?.as_u64()?,
                receipt_digest: digest("receipt_digest")?,
                metadata_digest: digest("metadata_digest")?,
            })
        };
        let completion = read().ok_or_else(records::invalid)?;
        check_completion(&completion, &receipts, &metadata)?;
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
        let (rows, sum) = workload(&receipts)?;
        Ok(Some(Sealed { receipts, rows, sum, completion, metadata, completed_at: completed_at.to_string() }))
    }

    /// What the receipt's payload digest stands for.
    pub(crate) fn manifest(&self, frozen: &Frozen) -> Json {
        let members: Object = [
            ("kind".to_string(), Json::from("native-transfer.payload-manifest.v1")),
            ("complete".to_string(), self.completion.document()),
            ("frozen_run_sha256".to_string(), Json::from(frozen.sha256())),
            ("typed_sum".to_string(), Json::from(self.sum)),
        ]
        .into_iter()
        .collect();
        Json::Object(members)
    }
}
