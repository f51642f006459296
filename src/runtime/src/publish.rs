//! From a sealed end of source to custody released: prepare, publish, evidence, checkpoint, clean-up (contract.md 6).
//!
//! Every step looks first whether it was done before, so the whole is safe to repeat in another process. No source
//! factory reaches this module.

mod finish;
mod prepare;

use std::collections::HashMap;
use std::sync::Arc;

use contract::canon::{Json, strict_digest};
use contract::completion::ChunkReceipt;
use contract::digest::Digest;
use contract::error::{Fate, PortError};
use contract::port::target::{
    PublishRequest, Receipt, ReceiptFacts, ReceiptProbe, StageColumn, StageRef, StageWriter, Target, WriterGrant,
};
use contract::port::world::World;
use contract::transaction;
use contract::transfer::{TransferEvent, TransferState};
use contract::worker::Stage;
use tokio::task::JoinSet;

use self::finish::finish;
pub(crate) use self::prepare::retire_prepared;
use self::prepare::{Prepared, prepare, verify_prepared};
use crate::capacity;
use crate::chunk::{Attempt, compare};
use crate::context::RunContext;
use crate::evidence;
use crate::frozen::{Claimed, Frozen};
use crate::records;
use crate::sealed::Sealed;
use crate::settle;

/// Publishes a sealed run and finishes it. Returns the receipt.
pub(crate) async fn publish<T: Target, W: World>(
    context: &Arc<RunContext<T, W>>,
    frozen: &Frozen,
    claimed: &Claimed,
    sealed: &Sealed,
) -> Result<Receipt, PortError> {
    let receipt = published(context, frozen, claimed, sealed).await?;
    finish(context, frozen, claimed, sealed, &receipt).await?;
    Ok(receipt)
}

/// The receipt of the run's publication, which is made if it is not there.
async fn published<T: Target, W: World>(
    context: &Arc<RunContext<T, W>>,
    frozen: &Frozen,
    claimed: &Claimed,
    sealed: &Sealed,
) -> Result<Receipt, PortError> {
    let confirmed = context.look(|state| state.facts(TransferEvent::PublicationConfirmed.text()).cloned());
    if let Some(document) = confirmed {
        return receipt_from(&document);
    }
    if let Some(receipt) = resolve_doubt(context, frozen).await? {
        return Ok(receipt);
    }
    context.progress.enter(Stage::Preparing);
    let prepared = context.until_stopped(ready(context, frozen, sealed)).await?;
    // From here on a stop is not looked at: the transaction is carried to an outcome that is known.
    context.progress.enter(Stage::Publishing);
    context.advance(TransferEvent::PublicationBegan, Json::Null).await?;
    let request = publish_request(context, frozen, claimed, sealed, &prepared);
    match context.target.publish(&request).await {
        Ok(receipt) => confirm(context, receipt).await,
        Err(error) => {
            let event = match error.fate {
                Fate::NotDone => TransferEvent::PublicationRolledBack,
                Fate::Unknown => TransferEvent::PublicationUnknown,
            };
            let facts = Json::object([("code", Json::from(error.code.as_str()))]);
            // Why not returned: the publication's failure is the one to report. Without this record the run stays in
            // doubt, and the next process asks for the receipt.
            if let Err(unrecorded) = context.advance(event, facts).await {
                tracing::warn!(code = %unrecorded.code, "the publication's failure could not be journaled");
            }
            Err(error)
        }
    }
}

/// Makes and verifies all that the publication transaction needs; nothing of it is visible to a reader of the target.
async fn ready<T: Target, W: World>(
    context: &Arc<RunContext<T, W>>,
    frozen: &Frozen,
    sealed: &Sealed,
) -> Result<Prepared, PortError> {
    capacity::require(context, frozen).await?;
    let stages = stages(context, frozen, sealed).await?;
    verify_stages(context, frozen, sealed, &stages).await?;
    let prepared = prepare(context, frozen, sealed, &stages).await?;
    capacity::require(context, frozen).await?;
    verify_stages(context, frozen, sealed, &stages).await?;
    verify_prepared(context, sealed, &prepared).await?;
    Ok(prepared)
}

/// After an earlier process began to publish, the receipt decides before anything else.
///
/// Read under both locks with the fence raised, its absence proves that no publication of ours is in flight and none of
/// an earlier opener can follow.
async fn resolve_doubt<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
) -> Result<Option<Receipt>, PortError> {
    let state = context.transfer().map(|transfer| transfer.state);
    let absent = match state {
        Some(TransferState::Publishing) => TransferEvent::PublicationRolledBack,
        Some(TransferState::OutcomeUnknown) => TransferEvent::AbsenceProved,
        _ => return Ok(None),
    };
    let (request, operation) = (&frozen.request, &frozen.operation);
    let probe = context.target.probe_receipt(request, operation, context.publication_lock_timeout_ms);
    match context.until_stopped(probe).await? {
        ReceiptProbe::Present(receipt) => confirm(context, receipt).await.map(Some),
        ReceiptProbe::AbsentUnderLock => {
            context.advance(absent, Json::Null).await?;
            if absent == TransferEvent::AbsenceProved { Err(absence_proved()) } else { Ok(None) }
        }
    }
}

/// The code of a run whose unknown publication turned out not to have happened.
pub(crate) fn absence_proved() -> PortError {
    PortError::not_done(
        "mssql_native.publication_absence_proved",
        "the publication in doubt did not take place: the run is settled; start a new run with a new id",
    )
}

/// The verified stages in chunk order.
async fn stages<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    sealed: &Sealed,
) -> Result<Vec<(Attempt, StageRef)>, PortError> {
    let attempts = settle::attempts(&context.records().await?, frozen)?;
    let by_id: HashMap<String, Attempt> =
        attempts.into_iter().map(|attempt| (attempt.attempt_id.to_string(), attempt)).collect();
    sealed
        .receipts
        .iter()
        .map(|receipt| {
            let attempt = by_id.get(&receipt.attempt_id).cloned().ok_or_else(records::invalid)?;
            let object_id = settle::object_id(context, attempt.attempt_id).ok_or_else(records::invalid)?;
            let stage = StageRef { definition: attempt.definition.clone(), object_id };
            Ok((attempt, stage))
        })
        .collect()
}

/// Digests every stage again, at most I at once.
async fn verify_stages<T: Target, W: World>(
    context: &Arc<RunContext<T, W>>,
    frozen: &Frozen,
    sealed: &Sealed,
    stages: &[(Attempt, StageRef)],
) -> Result<(), PortError> {
    let mut waiting: Vec<(WriterGrant, StageRef, ChunkReceipt)> = stages
        .iter()
        .zip(&sealed.receipts)
        .rev()
        .map(|((attempt, stage), receipt)| (attempt.grant(&context.fence(frozen)), stage.clone(), receipt.clone()))
        .collect();
    let workers = usize::try_from(context.plan.limits.importers()).unwrap_or(1);
    let mut running = JoinSet::new();
    loop {
        while running.len() < workers {
            let Some((grant, stage, receipt)) = waiting.pop() else { break };
            let target = Arc::clone(&context.target);
            running.spawn(async move {
                let mut writer = target.open_writer(&grant).await?;
                let observation = writer.verify(&stage, receipt.rows).await?;
                writer.close().await?;
                let sum = receipt.typed_sum().ok_or_else(records::invalid)?;
                compare(&observation, receipt.rows, &sum)
            });
        }
        match running.join_next().await {
            None => return Ok(()),
            Some(Ok(verdict)) => verdict?,
            Some(Err(panicked)) => {
                return Err(PortError::not_done("native_transfer.worker_panicked", "a verifier ended unexpectedly")
                    .caused_by(panicked));
            }
        }
    }
}

fn publish_request<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
    sealed: &Sealed,
    prepared: &Prepared,
) -> PublishRequest {
    let columns = prepared.reference.stage.definition.columns.clone();
    let loaded_at = columns.iter().find(|c| c.name == "__dpone__loaded_at").map(|c| c.name.clone());
    PublishRequest {
        request: frozen.request.clone(),
        operation: frozen.operation.clone(),
        generation: claimed.generation,
        operation_epoch: claimed.operation_epoch,
        holder: frozen.identity.invocation_key(),
        custody_epoch: claimed.custody_epoch,
        fence: context.fence(frozen),
        prepared: prepared.reference.clone(),
        prepared_full: prepared.full.clone(),
        loaded_at_column: loaded_at,
        mutation: context.plan.mutation(),
        target_fingerprint: frozen.target_fingerprint,
        receipt: receipt_facts(context, frozen, sealed, &columns),
        columns,
        lock_timeout_ms: context.publication_lock_timeout_ms,
    }
}

/// The receipt's own fields; a pure function of frozen run and completion, so that every repetition makes the same.
fn receipt_facts<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    sealed: &Sealed,
    columns: &[StageColumn],
) -> ReceiptFacts {
    let names = columns.iter().map(|c| Json::from(&c.name)).collect();
    let mutation = Json::object([
        ("kind", Json::from("native-transfer.mutation-plan.v1")),
        ("strategy", Json::from(&frozen.operation.strategy)),
        ("mutation", evidence::mutation_document(&context.plan.mutation())),
        ("columns", Json::Array(names)),
    ]);
    let (authority, token) = match &frozen.profile {
        Some(profile) => ("clickhouse.raw-query-snapshot.v1", Digest::of(&profile.canonical)),
        None => ("clickhouse.query-snapshot.v1", Digest::of(frozen.relation_uuid.as_bytes())),
    };
    ReceiptFacts {
        receipt_id: transaction::receipt_id(frozen.operation.operation_key),
        payload_manifest_sha256: strict_digest(&sealed.manifest(frozen)),
        rows: sealed.rows,
        native_contract_sha256: Digest::of(frozen.identity.plan.wire_fingerprint.as_bytes()),
        mutation_plan_sha256: strict_digest(&mutation),
        extraction_started_at: frozen.started_at.clone(),
        extraction_completed_at: sealed.completed_at.clone(),
        extraction_clock_authority: "native-transfer.worker".to_string(),
        snapshot_acquired_at: frozen.started_at.clone(),
        snapshot_authority: authority.to_string(),
        source_token_sha256: token,
    }
}

async fn confirm<T: Target, W: World>(context: &RunContext<T, W>, receipt: Receipt) -> Result<Receipt, PortError> {
    context.advance(TransferEvent::PublicationConfirmed, receipt_document(&receipt)).await?;
    Ok(receipt)
}

fn receipt_document(receipt: &Receipt) -> Json {
    Json::object([
        ("receipt_id", Json::from(&receipt.receipt_id)),
        ("owner_digest", Json::from(receipt.owner_digest)),
        ("operation_epoch", Json::from(receipt.operation_epoch)),
        ("payload_manifest_sha256", Json::from(receipt.payload_manifest_sha256)),
        ("mutation_plan_sha256", Json::from(receipt.mutation_plan_sha256)),
        ("inserted_rows", Json::from(receipt.inserted_rows)),
        ("replaced_rows", Json::from(receipt.replaced_rows)),
        ("committed_at", Json::from(&receipt.committed_at)),
    ])
}

/// A receipt as the journal holds it.
pub(crate) fn receipt_from(document: &Json) -> Result<Receipt, PortError> {
    let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
    let text = |key: &str| document.get(key)?.as_str().map(str::to_string);
    let read = || {
        Some(Receipt {
            receipt_id: text("receipt_id")?,
            owner_digest: digest("owner_digest")?,
            operation_epoch: document.get("operation_epoch")?.as_i64()?,
            payload_manifest_sha256: digest("payload_manifest_sha256")?,
            mutation_plan_sha256: digest("mutation_plan_sha256")?,
            inserted_rows: document.get("inserted_rows")?.as_u64()?,
            replaced_rows: document.get("replaced_rows")?.as_u64(),
            committed_at: text("committed_at")?,
        })
    };
    read().ok_or_else(records::invalid)
}
