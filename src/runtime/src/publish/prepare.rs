//! The prepared table: all verified stages in one, with the lineage columns, digested again (contract.md 6.2 to 6.4).

use contract::canon::Json;
use contract::digest::Digest;
use contract::error::PortError;
use contract::lineage::{FrameworkColumn, lineage_id};
use contract::names;
use contract::port::target::{
    DigestObservation, LineageColumn, LineageValue, PrepareRequest, PreparedObservation, PreparedRef, StageColumn,
    StageDefinition, StageRef, TableName, Target, WriterGrant,
};
use contract::port::world::World;
use contract::transfer::{Preparation, TransferEvent, TransferState};

use crate::chunk::{Attempt, compare};
use crate::context::RunContext;
use crate::frozen::Frozen;
use crate::records;
use crate::sealed::Sealed;

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
pub(super) async fn prepare<T: Target, W: World>(
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

pub(super) async fn verify_prepared<T: Target, W: World>(
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
pub(super) fn prepared_facts<T: Target, W: World>(
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
pub(super) fn lineage_columns<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Vec<LineageColumn> {
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
