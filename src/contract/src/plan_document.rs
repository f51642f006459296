//! What `plan` prints: the route as it would run, as JSON and as Markdown (contract.md 10).
//!
//! Both are free of credentials and of everything that only a connection could tell.

use std::fmt::Write as _;

use crate::canon::{Json, Object};
use crate::identity::{ImportBackend, LayoutVersion};
use crate::manifest::policy::VerificationBackend;
use crate::manifest::{Clear, Preview, Strategy};
use crate::raw::selector::mode_texts;

/// The plan as JSON: `mssql_native` as the prior system's sections, `plan` with what is ours.
pub fn json(plan: &Preview) -> Json {
    let path = format!("clickhouse_bounded_mssql_native_{}", plan.import.text());
    Json::object([
        ("kind", Json::from("native-transfer.plan.v1")),
        ("mssql_native", Json::Object(mssql_native(plan))),
        ("bulk_path", Json::from(path)),
        ("state_tables", state_tables()),
        ("plan", own(plan)),
    ])
}

fn mssql_native(plan: &Preview) -> Object {
    let mut section = Object::new();
    let mut put = |key: &str, value: Json| {
        section.insert(key.to_owned(), value);
    };
    put("status", Json::from("live_preflight_required"));
    put("live_preflight", Json::from("not_run"));
    put("source_query_count", Json::from(1));
    put("source_projection", Json::from("catalog_columns_explicitly_named"));
    put("offset_pagination", Json::from(false));
    put("parallelism_scope", Json::from("native_encoding_and_file_import"));
    put("transport", Json::from("bounded_native_files"));
    put("import_backend", Json::from(plan.import.text()));
    put("limits", plan.limits.document());
    put("spool_payload_bound", Json::from(plan.limits.spool_payload_bound()));
    put("spool_bound_scope", Json::from("encoded_payload_only_excludes_driver_and_server_memory"));
    put("sql_capacity_policy", Json::from("observed_stop_threshold"));
    put("publication_scope", publication_scope(plan));
    put("publication", Json::from("existing_target_transaction_with_commit_receipt"));
    put("resume", Json::from("source_free_after_verified_eof;partial_extraction_requires_reextract"));
    put("required_dependencies", Json::array(dependencies(plan)));
    if plan.import == ImportBackend::SqlClient {
        put("layout_version", Json::from(layout_number(plan)));
        put("verification_strategy", Json::from(verification_strategy(plan)));
    }
    if plan.verification_authored {
        let version = if target_local(plan) { 2 } else { 1 };
        put("verification_backend", Json::from(plan.verification.text()));
        put("verification_identity_version", Json::from(version));
        if target_local(plan) {
            put("writer_proof_capability", Json::from(plan.import.proof_capability()));
            put("admission", admission(plan));
        }
    }
    if plan.limits.stages_differ() {
        let counts = [("encoding", plan.limits.encoders()), ("import", plan.limits.importers())];
        put("stage_concurrency", Json::object(counts.map(|(stage, count)| (stage, Json::from(count)))));
    }
    if plan.mode_authored {
        put("source_snapshot", source_snapshot(plan));
    }
    section
}

fn target_local(plan: &Preview) -> bool {
    plan.verification == VerificationBackend::TargetLocal
}

fn layout_number(plan: &Preview) -> u8 {
    if plan.layout == LayoutVersion::V2 { 2 } else { 1 }
}

fn verification_strategy(plan: &Preview) -> &'static str {
    if plan.layout == LayoutVersion::V2 { "persisted_row_hash" } else { "canonical_target_readback" }
}

fn publication_scope(plan: &Preview) -> Json {
    match &plan.strategy {
        Strategy::FullRefresh { .. } => Json::object([("mode", Json::from("full_refresh"))]),
        Strategy::PartitionReplace { spec, .. } => spec.document(),
    }
}

fn dependencies(plan: &Preview) -> Vec<&'static str> {
    let mut dependencies = vec![
        "native_runtime_factory",
        "durable_chunk_journal",
        "lease_and_target_admission",
        "independent_guarded_import_connections",
        "quality_evidence_state_callbacks",
    ];
    if target_local(plan) {
        dependencies.push("stable_target_custody");
        dependencies.push(match plan.import {
            ImportBackend::Bcp => "supervised_bcp_writer",
            ImportBackend::SqlClient => "verified_sqlclient_companion",
        });
        dependencies.push("target_local_digest");
    }
    dependencies
}

fn admission(plan: &Preview) -> Json {
    Json::object([
        ("schema_version", Json::from(2)),
        ("kind", Json::from("dpone.mssql-native-admission.v2")),
        ("status", Json::from("blocked")),
        ("import_backend", Json::from(plan.import.text())),
        ("verification_backend", Json::from(plan.verification.text())),
        ("identity_version", Json::from(2)),
        ("capability_id", Json::from(plan.import.proof_capability())),
        ("blockers", Json::array(["mssql_native.live_preflight_required"])),
        ("warnings", Json::array(["mssql_native.live_preflight_not_run"])),
    ])
}

fn source_snapshot(plan: &Preview) -> Json {
    let (mode, scope) = mode_texts(plan.mode);
    Json::object([
        ("mode", Json::from(mode)),
        ("replica_scope", Json::from(scope)),
        ("authority", Json::from("declared")),
        ("live_observation", Json::from("not_run")),
    ])
}

fn state_tables() -> Json {
    let tables = [
        ("target_identity_registry", "dpone_target_identity"),
        ("target_fence", "dpone_target_fence"),
        ("load_attempt", "dpone_load_attempt"),
        ("load_operation", "dpone_load_operation"),
        ("load_receipt", "dpone_load_receipt"),
    ];
    Json::object(tables.map(|(role, table)| (role, Json::from(table))))
}

fn own(plan: &Preview) -> Json {
    let window = match &plan.strategy {
        Strategy::PartitionReplace { window: Some(window), .. } => Json::object([
            ("column", Json::from(window.column())),
            ("start", Json::from(window.start().isoformat())),
            ("end", Json::from(window.end().isoformat())),
        ]),
        _ => Json::Null,
    };
    let refusal = plan.require_runnable().err();
    Json::object([
        ("name", Json::from(plan.name.clone())),
        ("route", plan.route.clone()),
        ("route_fingerprint", Json::from(plan.route_fingerprint())),
        ("window", window),
        ("required_free_spool_bytes", Json::from(plan.limits.required_free_spool_bytes())),
        ("retained_work_capacity", Json::from(plan.limits.retained_work_capacity())),
        ("runnable", Json::from(refusal.is_none())),
        ("run_refusal", Json::from(refusal.map(|refusal| refusal.code.as_str().to_owned()))),
        ("ignored_keys", Json::array(&plan.ignored_keys)),
    ])
}

/// The plan as Markdown for a person.
pub fn markdown(plan: &Preview) -> String {
    let mut text = String::new();
    let title = plan.name.as_deref().unwrap_or("transfer");
    let (mode, scope) = mode_texts(plan.mode);
    let rows = match (mode, scope) {
        (mode, Some(scope)) => format!("{mode} on {scope}: every row version of one SELECT"),
        (mode, None) => format!("{mode}: the rows of one SELECT"),
    };
    let limits = &plan.limits;
    let mut rows_of = |heading: &str, rows: &[(&str, String)]| {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n## {heading}\n\n| | |\n|---|---|\n");
        for (key, value) in rows {
            let _ = writeln!(text, "| {key} | {value} |");
        }
    };
    rows_of(
        "What moves",
        &[
            ("source", format!("`{}`.`{}`", cell(&plan.source.database), cell(&plan.source.table))),
            ("rows", rows),
            ("target", format!("`{}`.`{}`", cell(&plan.sink.schema), cell(&plan.sink.table))),
            ("replaced", replaced(plan)),
            ("lineage columns", plan.lineage.as_str().to_owned()),
            ("authored types", authored_types(plan)),
        ],
    );
    rows_of(
        "How",
        &[
            ("writer", plan.import.text().to_owned()),
            ("verifier", plan.verification.text().to_owned()),
            ("catalog and staging schema", format!("`{}`, `{}`", cell(&plan.state_schema), cell(&plan.staging_schema))),
            ("query time", format!("{} s at most", plan.query_seconds)),
            ("route fingerprint", plan.route_fingerprint().to_string()),
        ],
    );
    rows_of(
        "Bounds",
        &[
            ("chunk", format!("{} rows, {} bytes", limits.max_rows, limits.max_bytes)),
            ("row", format!("{} bytes", limits.max_row_bytes)),
            (
                "encoders, importers, pending",
                format!("{}, {}, {}", limits.encoders(), limits.importers(), limits.max_pending),
            ),
            (
                "local disk",
                format!(
                    "{} bytes of chunks, {} bytes free",
                    limits.spool_payload_bound(),
                    limits.required_free_spool_bytes()
                ),
            ),
            ("all chunks", format!("{} bytes", limits.max_total_encoded_bytes)),
            (
                "staging tables",
                format!("{}, stop at {} bytes", limits.max_staging_tables, limits.stage_allocated_bytes_stop_threshold),
            ),
        ],
    );
    let verdict = match plan.require_runnable() {
        Ok(()) => "Nothing was connected: permissions, types and capacity are checked by `admit` and `run`.".to_owned(),
        Err(refusal) => format!("`run` refuses this plan: {refusal}."),
    };
    let ignored = plan.ignored_keys.iter().map(|key| format!("- `{}` has no effect here\n", cell(key)));
    format!("# Plan of {}\n{text}\n{verdict}\n{}", cell(title), ignored.collect::<String>())
}

/// What the publication replaces, as a sentence.
fn replaced(plan: &Preview) -> String {
    match &plan.strategy {
        Strategy::FullRefresh { clear: Clear::Truncate } => {
            "the whole table (TRUNCATE and INSERT in one transaction)".to_owned()
        }
        Strategy::FullRefresh { clear: Clear::Delete } => {
            "the whole table (DELETE and INSERT in one transaction)".to_owned()
        }
        Strategy::PartitionReplace { spec, window: None } => {
            format!("rows of a window on `{}` (no interval given yet; one transaction)", cell(spec.column()))
        }
        Strategy::PartitionReplace { window: Some(window), .. } => format!(
            "rows with `{}` from {} to before {} (one transaction)",
            cell(window.column()),
            window.start().isoformat_z(),
            window.end().isoformat_z()
        ),
    }
}

fn authored_types(plan: &Preview) -> String {
    if plan.overrides.is_empty() {
        return "none".to_owned();
    }
    let types: Vec<String> = plan.overrides.iter().map(|(name, text)| format!("`{}` {text}", cell(name))).collect();
    types.join(", ")
}

/// Authored text inside a table cell: what Markdown would take for a border or a code mark is replaced.
fn cell(text: &str) -> String {
    text.chars().map(|c| if c == '|' || c == '`' || c.is_control() { '?' } else { c }).collect()
}
