//! Evidence and checkpoint: what was done, without coordinates, values or secrets (contract.md 8, 12; design.md 3.25).

use contract::canon::Json;
use contract::digest::native_multiset_digest;
use contract::error::PortError;
use contract::port::journal::NewRecord;
use contract::port::source::{SourceAdmission, SourceEof};
use contract::port::target::{Mutation, Receipt, Target};
use contract::port::world::World;
use contract::source_evidence;

use crate::context::RunContext;
use crate::frozen::Frozen;
use crate::observations::{Phase, PhaseSummary};
use crate::records::{self, SOURCE_EVIDENCE, SOURCE_PARTS};
use crate::sealed::Sealed;

/// What a finished read leaves in the journal beside its completion.
pub(crate) fn source_records(
    run: &str,
    admission: &SourceAdmission,
    query_id: &str,
    eof: &SourceEof,
) -> Result<Vec<NewRecord>, PortError> {
    let document = source_evidence::document(admission, query_id, eof)?;
    let mut written = vec![records::once(run, SOURCE_EVIDENCE, "source", &document)];
    for (index, page) in source_evidence::pages(eof).into_iter().enumerate() {
        let page = Json::object([("page", Json::from(index as u64)), ("parts", page)]);
        written.push(records::once(run, SOURCE_PARTS, &index.to_string(), &page));
    }
    Ok(written)
}

/// The evidence document of a published run.
pub(crate) fn document<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    sealed: &Sealed,
    source: Json,
    receipt: &Receipt,
) -> Json {
    let bytes: u64 = sealed.receipts.iter().map(|r| r.encoded_bytes).sum();
    let phases = [("read", Phase::Read), ("encode", Phase::Encode), ("import_verify", Phase::Import)];
    let observed = phases.map(|(name, phase)| (name, phase_document(&context.observations.summary(phase))));
    Json::object([
        ("schema_version", Json::from(1)),
        ("kind", Json::from("dpone.mssql-native-operational-evidence.v1")),
        ("invocation_id", Json::from(frozen.identity.invocation_key())),
        ("import_backend", Json::from(frozen.identity.import_backend.text())),
        ("rows", Json::from(sealed.rows)),
        ("receipt_digest", Json::from(sealed.completion.receipt_digest)),
        ("commit_receipt_id", Json::from(&receipt.receipt_id)),
        ("native_transfer_v1", native(frozen, sealed, source, receipt, bytes, Json::object(observed))),
    ])
}

fn native(frozen: &Frozen, sealed: &Sealed, source: Json, receipt: &Receipt, bytes: u64, observed: Json) -> Json {
    Json::object([
        ("target_identity", Json::from(frozen.operation.target_identity)),
        ("operation_key", Json::from(frozen.operation.operation_key)),
        ("strategy", Json::from(&frozen.operation.strategy)),
        ("source_query_binding", Json::from(&frozen.identity.plan.source_query_id)),
        ("source", source),
        ("chunks", Json::from(sealed.receipts.len() as u64)),
        ("encoded_bytes", Json::from(bytes)),
        ("typed_digest", Json::from(native_multiset_digest(sealed.rows, &sealed.sum))),
        ("typed_digest_meaning", Json::from("probabilistic evidence of an equal multiset of rows")),
        ("inserted_rows", Json::from(receipt.inserted_rows)),
        ("replaced_rows", Json::from(receipt.replaced_rows)),
        ("committed_at", Json::from(&receipt.committed_at)),
        ("observations", observed),
        ("certification", Json::from("UNVERIFIED on a real server")),
    ])
}

fn phase_document(summary: &PhaseSummary) -> Json {
    // Floats do not enter canonical documents of ours; milliseconds do.
    let millis = |seconds: f64| Json::from((seconds * 1000.0) as u64);
    Json::object([
        ("operations", Json::from(summary.operations)),
        ("wall_ms", millis(summary.wall_seconds)),
        ("worker_active_ms", millis(summary.active_seconds)),
        ("peak_workers", Json::from(summary.peak_workers as u64)),
    ])
}

/// The checkpoint: a stateless source keeps none.
pub(crate) fn checkpoint(receipt: &Receipt) -> Json {
    Json::object([
        ("schema_version", Json::from(1)),
        ("kind", Json::from("dpone.mssql-native-stateless-checkpoint.v1")),
        ("commit_receipt_id", Json::from(&receipt.receipt_id)),
        ("source_checkpoint", Json::from("stateless")),
    ])
}

/// What happens to the old rows, as a document.
pub(crate) fn mutation_document(mutation: &Mutation) -> Json {
    match mutation {
        Mutation::FullRefresh { delete } => {
            Json::object([("full_refresh", Json::from(if *delete { "delete" } else { "truncate" }))])
        }
        Mutation::PartitionReplace { column, start, end } => {
            Json::object([("column", Json::from(column)), ("start", Json::from(start)), ("end", Json::from(end))])
        }
    }
}
