//! Admission: observe the target, admit the source on the session that will read it, freeze the run.

use contract::canon::{Json, strict_digest};
use contract::error::{PortError, Refusal};
use contract::identity::{
    BARRIER_TIMEOUT_SECONDS, ChunkPlan, Companion, LayoutVersion, VerificationIdentity, schema_fingerprint, target_id,
};
use contract::layout::WireLayout;
use contract::lineage::lineage_id;
use contract::manifest::{Plan, Strategy};
use contract::mapping::{AdmittedColumn, MappedColumn, admit_target};
use contract::port::source::SourceAdmission;
use contract::port::target::{OperationIdentity, StageColumn, TableName, TargetObservation, TargetTable};
use contract::raw::marker::{legacy_binding, marker, window_fingerprint};
use contract::source_evidence;
use contract::target_layout;
use contract::transaction::{self, Invocation, PhysicalTarget};

use crate::frozen::Frozen;

/// The target admits the transfer: catalog, grants, table. Returns the observed table.
pub(crate) fn target(seen: &TargetObservation) -> Result<&TargetTable, Refusal> {
    if let Some(grant) = seen.missing_grants.first() {
        // The catalog's own tables are named too when they are missing, so that is looked at first.
        if seen.catalog_faults.is_empty() && seen.table.is_some() {
            return Err(Refusal::with_detail(
                "native_transfer.target_grant_missing",
                grant,
                "the loader lacks this right at the target: grant it, see `native-transfer target-catalog print`",
            ));
        }
    }
    if let Some(fault) = seen.catalog_faults.first() {
        return Err(Refusal::with_detail(
            "native_transfer.target_catalog_missing",
            fault,
            "the state catalog is missing or not the printed one: a DBA runs `native-transfer target-catalog print` once",
        ));
    }
    seen.table.as_ref().ok_or_else(|| {
        Refusal::new(
            "native_transfer.target_table_missing",
            "the target table does not exist or is not visible to the loader: create it, or grant SELECT on it",
        )
    })
}

/// Source columns mapped onto the target's, all of them in the target-local layout matrix.
pub(crate) fn columns(
    plan: &Plan,
    source: &SourceAdmission,
    table: &TargetTable,
) -> Result<(Vec<MappedColumn>, WireLayout), Refusal> {
    let admitted = source.columns.iter().map(AdmittedColumn::try_from).collect::<Result<Vec<_>, _>>()?;
    let mapped = admit_target(&admitted, &plan.overrides, &table.columns, plan.lineage)?;
    let wire: Vec<(String, String)> = mapped.iter().map(|c| (c.source.name.clone(), c.wire_type())).collect();
    let layout = WireLayout::new(wire.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    target_layout::admit_row(&layout)?;
    Ok((mapped, layout))
}

/// Freezes a run from what both ends showed.
pub(crate) fn freeze(
    plan: &Plan,
    run_id: &str,
    seen: &TargetObservation,
    source: &SourceAdmission,
    started_at: String,
) -> Result<Frozen, Refusal> {
    let table = target(seen)?;
    let (mapped, layout) = columns(plan, source, table)?;
    let stage_columns: Vec<StageColumn> = mapped
        .iter()
        .map(|c| StageColumn {
            name: c.source.name.clone(),
            type_text: c.type_text.clone(),
            nullable: c.source.source_type.nullable,
        })
        .collect();
    let operation = operation(plan, run_id, seen, table)?;
    let window = plan.source_request().window;
    let binding = legacy_binding(&source.relation_uuid, &operation.route_fingerprint.to_string(), window.as_ref())?;
    let source_query_id = match &source.profile {
        Some(profile) => marker(binding, contract::digest::Digest::of(&profile.canonical)),
        None => binding.to_string(),
    };
    let chunk_plan = ChunkPlan {
        run_id: operation.operation_key.to_string(),
        target_id: target_id(operation.target_identity, &seen.database, &table.name.schema, &table.name.table)
            .to_string(),
        source_query_id,
        window_fingerprint: window_fingerprint(window.as_ref())?.to_string(),
        schema_fingerprint: schema_fingerprint(
            source.columns.iter().map(|column| (column.name.as_str(), column.type_text.as_str())),
        )
        .to_string(),
        wire_fingerprint: layout.wire_fingerprint(),
    };
    let identity = VerificationIdentity::sqlclient(
        chunk_plan,
        BARRIER_TIMEOUT_SECONDS,
        &Companion::in_process(),
        LayoutVersion::V1,
    );
    let mut request = plan.target_request();
    request.table = table.name.clone();
    Ok(Frozen {
        plan_sha256: plan_digest(plan),
        request,
        database: seen.database.clone(),
        target_fingerprint: table.fingerprint,
        operation,
        identity,
        columns: stage_columns,
        source_types: mapped.iter().map(|c| c.source.source_type.as_str().to_string()).collect(),
        relation_uuid: source.relation_uuid.clone(),
        profile: source.profile.clone(),
        started_at,
        guards: source_evidence::guards(source),
    })
}

/// Digest of what makes a plan this plan: the route and the frozen bounds.
pub(crate) fn plan_digest(plan: &Plan) -> contract::digest::Digest {
    let bounds = plan.window().map_or(Json::Null, |window| {
        Json::object([("start", Json::from(window.start().isoformat())), ("end", Json::from(window.end().isoformat()))])
    });
    strict_digest(&Json::object([("route", plan.route.clone()), ("bounds", bounds)]))
}

fn operation(
    plan: &Plan,
    run_id: &str,
    seen: &TargetObservation,
    table: &TargetTable,
) -> Result<OperationIdentity, Refusal> {
    let invocation = invocation(plan, run_id, &table.name)?;
    let binding_id =
        seen.registry_binding.unwrap_or_else(|| transaction::binding_id(&table.name.schema, &table.name.table));
    let [server_name, machine_name, instance_name, replica_name] = seen.server_names.clone();
    let target_identity = PhysicalTarget {
        server_name,
        machine_name,
        instance_name,
        replica_name,
        database: seen.database.clone(),
        database_create_token: seen.database_create_token.clone(),
        binding_id: binding_id.to_string(),
    }
    .identity();
    let attempt_key = invocation.attempt_key(target_identity);
    let scope_hash = transaction::scope_hash(&transaction::target_wide_scope());
    let operation_key = transaction::operation_key(attempt_key, scope_hash);
    let strategy = match plan.strategy {
        Strategy::FullRefresh { .. } => "full_refresh",
        Strategy::PartitionReplace { .. } => "partition_replace",
    };
    Ok(OperationIdentity {
        target_identity,
        binding_id,
        invocation_digest: invocation.digest(),
        attempt_key,
        scope_hash,
        operation_key,
        owner_digest: invocation.owner_digest(),
        route_fingerprint: plan.route_fingerprint(),
        load_id: lineage_id(&operation_key),
        strategy: strategy.to_string(),
    })
}

/// The invocation of a run: who asks for which part of which table.
pub(crate) fn invocation(plan: &Plan, run_id: &str, table: &TableName) -> Result<Invocation, Refusal> {
    let partition = plan.window().map_or_else(
        || "full".to_string(),
        |window| format!("{}/{}", window.start().isoformat(), window.end().isoformat()),
    );
    Invocation::new(run_id, &format!("{}.{}", table.schema, table.table), &partition)
}

/// A refusal before any effect.
pub(crate) fn refused(refusal: Refusal) -> PortError {
    PortError::from(refusal)
}
