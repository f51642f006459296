//! After the receipt: evidence, checkpoint, clean-up, custody (contract.md 6.5, 8; design.md 3.25).

use contract::canon::{Json, strict, strict_digest};
use contract::custody::ReleaseReason;
use contract::error::PortError;
use contract::port::target::{Receipt, StageDefinition, StageRetirement, Target, WriterGrant};
use contract::port::world::World;
use contract::transfer::{TransferEvent, TransferState};
use contract::worker::Stage;

use super::prepare::{lineage_columns, preparation_grant, prepared_definition, prepared_facts};
use crate::context::RunContext;
use crate::evidence;
use crate::frozen::{Claimed, Frozen};
use crate::records::{self, CHECKPOINT, CLEANED, EVIDENCE, SOURCE_EVIDENCE};
use crate::sealed::Sealed;
use crate::settle;

/// Evidence, checkpoint, clean-up, custody: in this order, each repeatable.
pub(super) async fn finish<T: Target, W: World>(
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
    let records = context.records().await?;
    let document = match records.last(EVIDENCE)? {
        Some(document) => document,
        None => {
            let source = records.last(SOURCE_EVIDENCE)?.ok_or_else(records::invalid)?;
            let document = evidence::document(context, frozen, sealed, source, receipt);
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
