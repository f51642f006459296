//! From a sealed end of source to custody released: prepare, publish, evidence, checkpoint, clean-up (contract.md 6).
//!
//! Every step looks first whether it was done before, so the whole is safe to repeat in another process. No source
//! factory reaches this module.

use std::collections::HashMap;
use std::sync::Arc;

use contract::canon::{Json, strict, strict_digest};
use contract::completion::ChunkReceipt;
use contract::custody::ReleaseReason;
use contract::digest::Digest;
use contract::error::{Fate, PortError};
use contract::lineage::{FrameworkColumn, lineage_id};
use contract::names;
use contract::port::target::{
    DigestObservation, LineageColumn, LineageValue, PrepareRequest, PreparedObservation, PreparedRef, PublishRequest,
    Receipt, ReceiptFacts, ReceiptProbe, StageColumn, StageDefinition, StageRef, StageRetirement, StageWriter,
    TableName, Target, WriterGrant,
};
use contract::port::world::World;
use contract::transaction;
use contract::transfer::{Preparation, TransferEvent, TransferState};
use tokio::task::JoinSet;

use crate::capacity;
use crate::chunk::{Attempt, compare};
use crate::context::RunContext;
use crate::evidence;
use crate::frozen::{Claimed, Frozen};
use crate::progress::Stage;
use crate::records::{self, CHECKPOINT, CLEANED, EVIDENCE};
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
    capacity::require(context, frozen).await?;
    let stages = stages(context, frozen, sealed).await?;
    verify_stages(context, frozen, sealed, &stages).await?;
    let prepared = prepare(context, frozen, sealed, &stages).await?;
    capacity::require(context, frozen).await?;
    verify_stages(context, frozen, sealed, &stages).await?;
    verify_prepared(context, sealed, &prepared).await?;
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
    match context.target.probe_receipt(request, operation, context.publication_lock_timeout_ms).await? {
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

/// The prepared table as the journal knows it.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) reference: PreparedRef,
    pub(crate) full: DigestObservation,
}

/// The prepared table's definition: business columns, then lineage columns.
pub(crate) fn prepared_definition(frozen: &Frozen, lineage: &[LineageColumn]) -> StageDefinition {
    let table = names::prepared_table(&frozen.identity.plan);
    let framework = lineage.iter().map(|c| StageColumn {
        name: c.name.clone(),
        type_text: c.type_text.clone(),
        nullable: c.nullable,
    });
    StageDefinition {
        name: TableName { schema: frozen.request.staging_schema.clone(), table: table.table },
        owner_binding: table.owner_binding,
        columns: frozen.columns.iter().cloned().chain(framework).collect(),
    }
}

fn preparation_lock(frozen: &Frozen) -> String {
    let plan = &frozen.identity.plan;
    names::scope_applock(&plan.target_id, &names::preparation_scope(&plan.run_id))
}

/// The grant under which the prepared table is retired: the preparation lock.
pub(crate) fn preparation_grant<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> WriterGrant {
    WriterGrant {
        lock_resource: preparation_lock(frozen),
        application_name: "native-transfer prepare".to_string(),
        lock_timeout_ms: 30_000,
        fence: context.fence(frozen),
    }
}

/// Drops the prepared table of a run that is proved unpublished, if one was ever intended.
pub(crate) async fn retire_prepared<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
) -> Result<(), PortError> {
    if context.look(|state| state.facts(TransferEvent::PreparationBegan.text()).is_none()) {
        return Ok(());
    }
    let definition = prepared_definition(frozen, &lineage_columns(context, frozen));
    let object_id = prepared_facts(context)?.map(|(id, _)| id);
    context.target.retire_stage(&preparation_grant(context, frozen), &definition, object_id).await.map(drop)
}

/// Makes and digests the prepared table, or proves the one that is there.
async fn prepare<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    sealed: &Sealed,
    stages: &[(Attempt, StageRef)],
) -> Result<Prepared, PortError> {
    let lineage = lineage_columns(context, frozen);
    let definition = prepared_definition(frozen, &lineage);
    let reference = |object_id: i32| PreparedRef {
        stage: StageRef { definition: definition.clone(), object_id },
        business_columns: frozen.columns.clone(),
        expected_rows: sealed.rows,
        lock_resource: preparation_lock(frozen),
    };
    let state = context.transfer().map(|transfer| transfer.state);
    if state == Some(TransferState::StageComplete(Preparation::Done))
        && let Some((object_id, full)) = prepared_facts(context)?
    {
        return Ok(Prepared { reference: reference(object_id), full });
    }
    context.advance(TransferEvent::PreparationBegan, Json::Null).await?;
    // What an interrupted preparation left: ours by its mark, or nothing.
    context.target.retire_stage(&preparation_grant(context, frozen), &definition, None).await?;
    let observation = context
        .target
        .prepare(&PrepareRequest {
            prepared: definition.clone(),
            business_columns: frozen.columns.clone(),
            lineage,
            stages: stages.iter().map(|(_, stage)| stage.clone()).collect(),
            lock_resource: preparation_lock(frozen),
            expected_rows: sealed.rows,
            fence: context.fence(frozen),
        })
        .await?;
    compare(&observation.business, sealed.rows, &sealed.sum).map_err(prepared_mismatch)?;
    context.advance(TransferEvent::PreparationDone, prepared_document(&observation)).await?;
    Ok(Prepared { reference: reference(observation.object_id), full: observation.full })
}

fn prepared_mismatch(error: PortError) -> PortError {
    PortError::not_done(
        "mssql_native.prepared_digest_mismatch",
        "the prepared table does not hold the verified rows: nothing is published; find out who writes to the staging schema",
    )
    .caused_by(error)
}

async fn verify_prepared<T: Target, W: World>(
    context: &RunContext<T, W>,
    sealed: &Sealed,
    prepared: &Prepared,
) -> Result<(), PortError> {
    let seen = context.target.verify_prepared(&prepared.reference).await?;
    compare(&seen.business, sealed.rows, &sealed.sum).map_err(prepared_mismatch)?;
    if seen.full == prepared.full {
        return Ok(());
    }
    Err(PortError::not_done(
        "mssql_native.prepared_content_changed",
        "the prepared table was altered after its verification: nothing is published; find out who writes to the staging schema",
    ))
}

fn prepared_document(observation: &PreparedObservation) -> Json {
    Json::object([
        ("object_id", Json::from(observation.object_id)),
        ("row_count", Json::from(observation.full.row_count)),
        ("limbs", Json::array(observation.full.limbs.iter().map(String::as_str))),
    ])
}

/// Object id and full digest of the prepared table, if one was verified.
fn prepared_facts<T: Target, W: World>(
    context: &RunContext<T, W>,
) -> Result<Option<(i32, DigestObservation)>, PortError> {
    let facts = context.look(|state| state.facts(TransferEvent::PreparationDone.text()).cloned());
    facts.map(|facts| prepared_from(&facts)).transpose()
}

fn prepared_from(document: &Json) -> Result<(i32, DigestObservation), PortError> {
    let read = || {
        let object_id = i32::try_from(document.get("object_id")?.as_i64()?).ok()?;
        let row_count = document.get("row_count")?.as_i64()?;
        let limbs: Vec<String> =
            document.get("limbs")?.as_array()?.iter().map(|l| l.as_str().map(str::to_string)).collect::<Option<_>>()?;
        Some((object_id, DigestObservation { row_count, overflow: false, limbs: limbs.try_into().ok()? }))
    };
    read().ok_or_else(records::invalid)
}

/// The lineage columns of the plan's preset with their values (design.md 3.22).
fn lineage_columns<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Vec<LineageColumn> {
    let keys: Vec<String> = frozen.columns.iter().map(|c| c.name.clone()).collect();
    let value = |column: &FrameworkColumn| match column.name {
        "__dpone__load_id" => LineageValue::Text(frozen.operation.load_id.clone()),
        "__dpone__run_id" => LineageValue::Text(lineage_id(&Digest::of(context.run_id.as_bytes()))),
        "__dpone__loaded_at" => LineageValue::LoadedAt,
        "__dpone__extracted_at" => LineageValue::ExtractedAt,
        "__dpone__row_id" => LineageValue::RowId {
            identity: format!("v1|clickhouse|{}|{};", context.plan.source.database, context.plan.source.table),
            key_columns: keys.clone(),
        },
        _ => LineageValue::Null,
    };
    context
        .plan
        .lineage
        .columns()
        .iter()
        .map(|column| LineageColumn {
            name: column.name.to_string(),
            type_text: column.type_text.to_string(),
            nullable: column.nullable,
            value: value(column),
        })
        .collect()
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

/// Evidence, checkpoint, clean-up, custody: in this order, each repeatable.
async fn finish<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
    sealed: &Sealed,
    receipt: &Receipt,
) -> Result<(), PortError> {
    context.progress.enter(Stage::Finishing);
    let at = |context: &RunContext<T, W>| context.transfer().map(|transfer| transfer.state);
    if at(context) == Some(TransferState::Published) {
        save_evidence(context, frozen, sealed, receipt).await?;
    }
    if at(context) == Some(TransferState::EvidenceComplete) {
        let checkpoint = records::once(&context.run_key, CHECKPOINT, "checkpoint", &evidence::checkpoint(receipt));
        let saved = records::event(&context.run_key, TransferEvent::CheckpointSaved, Json::Null);
        context.record(vec![checkpoint, saved]).await?;
    }
    clean_up(context, frozen).await?;
    let reason = match sealed.receipts.is_empty() {
        true => ReleaseReason::EmptyCompletionCleanup,
        false => ReleaseReason::PublishedCleanup,
    };
    settle::release(context, frozen, claimed, reason).await
}

/// The evidence document, durable here first and then in the target, where it outlives the run.
async fn save_evidence<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    sealed: &Sealed,
    receipt: &Receipt,
) -> Result<(), PortError> {
    let document = match context.records().await?.last(EVIDENCE)? {
        Some(document) => document,
        None => {
            let document = evidence::document(context, frozen, sealed, receipt);
            context.record(vec![records::once(&context.run_key, EVIDENCE, "evidence", &document)]).await?;
            document
        }
    };
    let text = String::from_utf8_lossy(&strict(&document)).into_owned();
    let (request, operation, sha256) = (&frozen.request, &frozen.operation, strict_digest(&document));
    context.target.save_evidence(request, operation, &text, &sha256, &context.fence(frozen)).await?;
    context.advance(TransferEvent::EvidenceSaved, Json::object([("document_sha256", Json::from(sha256))])).await
}

/// Drops the prepared table and every stage, each proved ours and its absence proved.
async fn clean_up<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Result<(), PortError> {
    let records = context.records().await?;
    let cleaned = |table: &str| records.of(CLEANED).any(|record| record.key == table);
    let definition = prepared_definition(frozen, &lineage_columns(context, frozen));
    if !cleaned(&definition.name.table) {
        let object_id = prepared_facts(context)?.map(|(id, _)| id);
        let grant = preparation_grant(context, frozen);
        clean_one(context, &grant, &definition, object_id).await?;
    }
    for attempt in settle::attempts(&records, frozen)? {
        if !cleaned(&attempt.definition.name.table) {
            let grant = attempt.grant(&context.fence(frozen));
            clean_one(context, &grant, &attempt.definition, settle::object_id(context, attempt.attempt_id)).await?;
        }
    }
    Ok(())
}

async fn clean_one<T: Target, W: World>(
    context: &RunContext<T, W>,
    grant: &WriterGrant,
    definition: &StageDefinition,
    object_id: Option<i32>,
) -> Result<(), PortError> {
    let how = match context.target.retire_stage(grant, definition, object_id).await? {
        StageRetirement::Dropped => "dropped",
        StageRetirement::AlreadyAbsent => "absent",
    };
    let table = &definition.name.table;
    let payload =
        Json::object([("table", Json::from(table)), ("how", Json::from(how)), ("at", Json::from(context.now()))]);
    context.record(vec![records::once(&context.run_key, CLEANED, table, &payload)]).await
}
