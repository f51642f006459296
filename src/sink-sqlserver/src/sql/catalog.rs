//! The transaction-state catalog that a DBA creates once per state schema (contract.md 7, design.md 3.14, 3.23, 3.25).
//!
//! `native-transfer target-catalog print` prints [`script`]; the runtime never creates any of it. Five tables are those
//! of the prior system, three are ours: custody, run fence and evidence. Triggers keep what must not change from
//! changing, whoever tries.

use super::ident::{bracket, literal};

/// Version that [`script`] prints and admission asks for.
pub const CATALOG_VERSION: u32 = 2;

/// Tables of the catalog with their columns, in order: what admission compares.
pub(crate) const TABLES: &[(&str, &[&str])] = &[
    ("dpone_target_identity", &["binding_id", "schema_name", "table_name"]),
    (
        "dpone_target_fence",
        &[
            "target_identity",
            "current_generation",
            "current_attempt_key",
            "current_route_fingerprint",
            "updated_at_utc",
        ],
    ),
    (
        "dpone_load_attempt",
        &[
            "attempt_key",
            "target_identity",
            "generation",
            "invocation_digest",
            "route_fingerprint",
            "first_load_id",
            "target_database",
            "target_schema",
            "target_table",
            "strategy",
            "created_at_utc",
        ],
    ),
    (
        "dpone_load_operation",
        &[
            "operation_key",
            "attempt_key",
            "scope_hash",
            "current_epoch",
            "current_owner_digest",
            "lease_expires_at_utc",
            "updated_at_utc",
        ],
    ),
    (
        "dpone_load_receipt",
        &[
            "receipt_id",
            "operation_key",
            "attempt_key",
            "scope_hash",
            "operation_epoch",
            "owner_digest",
            "load_id",
            "payload_manifest_sha256",
            "declared_rows",
            "actual_raw_rows",
            "actual_native_rows",
            "native_contract_sha256",
            "mutation_plan_sha256",
            "target_before_sha256",
            "target_after_sha256",
            "extraction_started_at_utc",
            "extraction_completed_at_utc",
            "extraction_clock_authority",
            "snapshot_acquired_at_utc",
            "snapshot_authority",
            "source_token_sha256",
            "loaded_at_utc",
            "inserted_rows",
            "updated_rows",
            "total_rows",
            "staging_rows",
            "replaced_rows",
            "soft_deleted_rows",
            "reactivated_rows",
            "unchanged_rows",
            "hard_deleted_rows",
            "active_rows",
            "committed_at_utc",
        ],
    ),
    (
        "native_transfer_custody",
        &["target_identity", "holder", "custody_epoch", "state", "release_reason", "updated_at_utc"],
    ),
    ("native_transfer_run_fence", &["operation_key", "journal_epoch", "opener_nonce", "updated_at_utc"]),
    ("native_transfer_evidence", &["operation_key", "document_sha256", "document", "saved_at_utc"]),
];

/// Triggers of the catalog: each must exist and be enabled.
pub(crate) const TRIGGERS: &[&str] = &[
    "trg_dpone_target_identity_immutable",
    "trg_dpone_target_fence_monotonic",
    "trg_dpone_load_attempt_immutable",
    "trg_dpone_load_operation_fence",
    "trg_dpone_load_receipt_immutable",
    "trg_native_transfer_custody_fence",
    "trg_native_transfer_run_fence_monotonic",
    "trg_native_transfer_evidence_immutable",
];

/// The script for one state schema, its staging schema and the principal that loads. Batches are separated by `GO`, as
/// `sqlcmd`, `tsql` and Management Studio read them. Running it twice is harmless.
pub fn script(state_schema: &str, staging_schema: &str, principal: &str) -> String {
    let batches = batches(state_schema, staging_schema, principal);
    let head = format!(
        "-- native-transfer: transaction-state catalog, version {CATALOG_VERSION}. SQL Server 2016 SP2 or later.\n\
         -- Run once as a DBA in the target database. The loader never creates or alters these objects.\n",
    );
    batches.iter().fold(head, |text, batch| format!("{text}{batch}\nGO\n"))
}

/// The same script as separate batches, for clients that know no `GO`.
pub fn batches(state_schema: &str, staging_schema: &str, principal: &str) -> Vec<String> {
    let s = bracket(state_schema);
    let mut batches = vec![create_schema(state_schema)];
    if staging_schema != state_schema {
        batches.push(create_schema(staging_schema));
    }
    for (name, body) in table_bodies(&s).into_iter().chain(own_table_bodies()) {
        batches.push(format!(
            "IF OBJECT_ID({}, N'U') IS NULL\nCREATE TABLE {s}.{} (\n{body}\n);",
            literal(&format!("{s}.[{name}]")),
            bracket(name),
        ));
    }
    for (name, table, events, body) in triggers() {
        let create = format!(
            "CREATE TRIGGER {s}.[{name}] ON {s}.[{table}] AFTER {events} AS\nBEGIN\nSET NOCOUNT ON;\n{body}END"
        );
        batches.push(format!(
            "IF OBJECT_ID({}, N'TR') IS NULL\nEXEC ({});",
            literal(&format!("{s}.[{name}]")),
            literal(&create),
        ));
    }
    batches.push(grants(&s, &bracket(staging_schema), &bracket(principal)));
    batches
}

fn create_schema(name: &str) -> String {
    format!("IF SCHEMA_ID({}) IS NULL EXEC ({});", literal(name), literal(&format!("CREATE SCHEMA {}", bracket(name))))
}

/// Rights of the loader on the catalog, the staging schema and the observations. Rights on each target table are
/// granted with the table (docs/reference/grants.md).
fn grants(state: &str, staging: &str, principal: &str) -> String {
    let mut lines = Vec::new();
    for (table, _) in TABLES {
        let rights = match *table {
            "dpone_target_fence" | "dpone_load_operation" | "native_transfer_custody" | "native_transfer_run_fence" => {
                "SELECT, INSERT, UPDATE"
            }
            _ => "SELECT, INSERT",
        };
        lines.push(format!("GRANT {rights} ON {state}.[{table}] TO {principal};"));
    }
    lines.push(format!("GRANT VIEW DEFINITION ON SCHEMA::{state} TO {principal};"));
    lines.push(format!("GRANT CONTROL ON SCHEMA::{staging} TO {principal};"));
    lines.push(format!("GRANT CREATE TABLE TO {principal};"));
    lines.push(format!("GRANT VIEW DATABASE STATE TO {principal};"));
    lines.push(
        "-- Volume and log observations are server-scoped: GRANT VIEW SERVER STATE TO [login of the loader]; (in master)"
            .to_string(),
    );
    lines.join("\n")
}

fn table_bodies(s: &str) -> Vec<(&'static str, String)> {
    let digest = "binary(32) NOT NULL";
    let utc = "datetime2(7) NOT NULL";
    vec![
        (
            "dpone_target_identity",
            format!(
                "  [binding_id] {digest} CONSTRAINT [pk_dpone_target_identity] PRIMARY KEY,\n\
                 \x20 [schema_name] nvarchar(128) NOT NULL,\n  [table_name] nvarchar(128) NOT NULL,\n\
                 \x20 CONSTRAINT [uq_dpone_target_identity] UNIQUE ([schema_name], [table_name])"
            ),
        ),
        (
            "dpone_target_fence",
            format!(
                "  [target_identity] {digest} CONSTRAINT [pk_dpone_target_fence] PRIMARY KEY,\n\
                 \x20 [current_generation] bigint NOT NULL CONSTRAINT [ck_dpone_target_fence] CHECK ([current_generation] >= 1),\n\
                 \x20 [current_attempt_key] {digest},\n  [current_route_fingerprint] {digest},\n  [updated_at_utc] {utc}"
            ),
        ),
        (
            "dpone_load_attempt",
            format!(
                "  [attempt_key] {digest} CONSTRAINT [pk_dpone_load_attempt] PRIMARY KEY,\n\
                 \x20 [target_identity] {digest},\n  [generation] bigint NOT NULL,\n\
                 \x20 [invocation_digest] {digest} CONSTRAINT [uq_dpone_load_attempt_invocation] UNIQUE,\n\
                 \x20 [route_fingerprint] {digest},\n  [first_load_id] nvarchar(128) NOT NULL,\n\
                 \x20 [target_database] nvarchar(256) NOT NULL,\n  [target_schema] nvarchar(256) NOT NULL,\n\
                 \x20 [target_table] nvarchar(256) NOT NULL,\n  [strategy] nvarchar(64) NOT NULL,\n  [created_at_utc] {utc},\n\
                 \x20 CONSTRAINT [uq_dpone_load_attempt_generation] UNIQUE ([target_identity], [generation])"
            ),
        ),
        (
            "dpone_load_operation",
            format!(
                "  [operation_key] {digest} CONSTRAINT [pk_dpone_load_operation] PRIMARY KEY,\n\
                 \x20 [attempt_key] {digest} CONSTRAINT [fk_dpone_load_operation_attempt] REFERENCES {s}.[dpone_load_attempt] ([attempt_key]),\n\
                 \x20 [scope_hash] {digest},\n\
                 \x20 [current_epoch] bigint NOT NULL CONSTRAINT [ck_dpone_load_operation_epoch] CHECK ([current_epoch] >= 1),\n\
                 \x20 [current_owner_digest] {digest},\n  [lease_expires_at_utc] datetime2(7) NULL,\n  [updated_at_utc] {utc},\n\
                 \x20 CONSTRAINT [uq_dpone_load_operation_scope] UNIQUE ([attempt_key], [scope_hash]),\n\
                 \x20 CONSTRAINT [uq_dpone_load_operation_owner] UNIQUE ([operation_key], [current_epoch], [current_owner_digest])"
            ),
        ),
        ("dpone_load_receipt", receipt_body(s)),
    ]
}

/// The receipt pins operation, epoch and owner by its foreign key.
fn receipt_body(s: &str) -> String {
    let digest = "binary(32) NOT NULL";
    let utc = "datetime2(7) NOT NULL";
    let optional_counts = ["staging", "replaced", "soft_deleted", "reactivated", "unchanged", "hard_deleted", "active"]
        .iter()
        .map(|name| format!("  [{name}_rows] bigint NULL"))
        .collect::<Vec<_>>()
        .join(",\n");
    format!(
        "  [receipt_id] nvarchar(128) NOT NULL CONSTRAINT [pk_dpone_load_receipt] PRIMARY KEY,\n\
                 \x20 [operation_key] {digest} CONSTRAINT [uq_dpone_load_receipt_operation] UNIQUE,\n\
                 \x20 [attempt_key] {digest},\n  [scope_hash] {digest},\n  [operation_epoch] bigint NOT NULL,\n\
                 \x20 [owner_digest] {digest},\n  [load_id] nvarchar(128) NOT NULL,\n  [payload_manifest_sha256] {digest},\n\
                 \x20 [declared_rows] bigint NOT NULL,\n  [actual_raw_rows] bigint NOT NULL,\n  [actual_native_rows] bigint NOT NULL,\n\
                 \x20 [native_contract_sha256] {digest},\n  [mutation_plan_sha256] {digest},\n\
                 \x20 [target_before_sha256] {digest},\n  [target_after_sha256] {digest},\n\
                 \x20 [extraction_started_at_utc] {utc},\n  [extraction_completed_at_utc] {utc},\n\
                 \x20 [extraction_clock_authority] nvarchar(64) NOT NULL,\n  [snapshot_acquired_at_utc] {utc},\n\
                 \x20 [snapshot_authority] nvarchar(64) NOT NULL,\n  [source_token_sha256] {digest},\n  [loaded_at_utc] {utc},\n\
                 \x20 [inserted_rows] bigint NOT NULL,\n  [updated_rows] bigint NOT NULL,\n  [total_rows] bigint NOT NULL,\n\
                 {optional_counts},\n  [committed_at_utc] {utc},\n\
                 \x20 CONSTRAINT [fk_dpone_load_receipt_operation] FOREIGN KEY ([operation_key], [operation_epoch], [owner_digest])\n\
                 \x20   REFERENCES {s}.[dpone_load_operation] ([operation_key], [current_epoch], [current_owner_digest]),\n\
                 \x20 CONSTRAINT [ck_dpone_load_receipt_rows] CHECK ([declared_rows] = [actual_raw_rows] AND [actual_raw_rows] = [actual_native_rows]),\n\
                 \x20 CONSTRAINT [ck_dpone_load_receipt_clock] CHECK ([committed_at_utc] >= [loaded_at_utc])"
    )
}

/// Our own three tables.
fn own_table_bodies() -> Vec<(&'static str, String)> {
    let digest = "binary(32) NOT NULL";
    let utc = "datetime2(7) NOT NULL";
    vec![
        (
            "native_transfer_custody",
            format!(
                "  [target_identity] {digest} CONSTRAINT [pk_native_transfer_custody] PRIMARY KEY,\n  [holder] {digest},\n\
                 \x20 [custody_epoch] bigint NOT NULL CONSTRAINT [ck_native_transfer_custody_epoch] CHECK ([custody_epoch] >= 1),\n\
                 \x20 [state] nvarchar(8) NOT NULL CONSTRAINT [ck_native_transfer_custody_state] CHECK ([state] IN (N'held', N'clear')),\n\
                 \x20 [release_reason] nvarchar(64) NULL,\n  [updated_at_utc] {utc},\n\
                 \x20 CONSTRAINT [ck_native_transfer_custody_reason] CHECK (([state] = N'held' AND [release_reason] IS NULL)\n\
                 \x20   OR ([state] = N'clear' AND [release_reason] IN (N'published_cleanup', N'nonpublication_all_stages_retired', N'empty_completion_cleanup')))"
            ),
        ),
        (
            "native_transfer_run_fence",
            format!(
                "  [operation_key] {digest} CONSTRAINT [pk_native_transfer_run_fence] PRIMARY KEY,\n\
                 \x20 [journal_epoch] bigint NOT NULL CONSTRAINT [ck_native_transfer_run_fence] CHECK ([journal_epoch] >= 1),\n\
                 \x20 [opener_nonce] {digest},\n  [updated_at_utc] {utc}"
            ),
        ),
        (
            "native_transfer_evidence",
            format!(
                "  [operation_key] {digest} CONSTRAINT [pk_native_transfer_evidence] PRIMARY KEY,\n\
                 \x20 [document_sha256] {digest},\n  [document] nvarchar(max) NOT NULL,\n  [saved_at_utc] {utc}"
            ),
        ),
    ]
}

/// `IF condition` then THROW of a token.
fn throw_if(condition: &str, token: &str) -> String {
    format!("IF {condition}\n  BEGIN ;THROW 51000, N'{token}', 1; END;\n")
}

fn immutable(token: &str) -> String {
    throw_if("EXISTS (SELECT 1 FROM deleted)", token)
}

fn triggers() -> Vec<(&'static str, &'static str, &'static str, String)> {
    let gone = |key: &str| {
        format!(
            "EXISTS (SELECT 1 FROM deleted AS d WHERE NOT EXISTS (SELECT 1 FROM inserted AS i WHERE i.{key} = d.{key}))"
        )
    };
    let changed = |key: &str, condition: &str| {
        format!("EXISTS (SELECT 1 FROM inserted AS i JOIN deleted AS d ON d.{key} = i.{key} WHERE {condition})")
    };
    let fence = throw_if(&gone("target_identity"), "DPONE_TARGET_FENCE_IMMUTABLE")
        + &throw_if(
            &changed(
                "target_identity",
                "i.current_generation <> d.current_generation + 1 OR i.current_attempt_key = d.current_attempt_key",
            ),
            "DPONE_TARGET_FENCE_GENERATION_INVALID",
        );
    let custody = throw_if(&gone("target_identity"), "NATIVE_TRANSFER_CUSTODY_IMMUTABLE")
        + &throw_if(
            &changed(
                "target_identity",
                "NOT ((d.state = N'clear' AND i.state = N'held' AND i.custody_epoch = d.custody_epoch + 1)\n    \
                 OR (d.state = N'held' AND i.state = N'clear' AND i.holder = d.holder AND i.custody_epoch = d.custody_epoch))",
            ),
            "NATIVE_TRANSFER_CUSTODY_TRANSITION_INVALID",
        );
    let run_fence = throw_if(&gone("operation_key"), "NATIVE_TRANSFER_RUN_FENCE_IMMUTABLE")
        + &throw_if(
            &changed("operation_key", "i.journal_epoch <= d.journal_epoch"),
            "NATIVE_TRANSFER_RUN_FENCE_EPOCH_INVALID",
        );
    vec![
        (
            "trg_dpone_target_identity_immutable",
            "dpone_target_identity",
            "UPDATE, DELETE",
            immutable("DPONE_TARGET_IDENTITY_IMMUTABLE"),
        ),
        ("trg_dpone_target_fence_monotonic", "dpone_target_fence", "UPDATE, DELETE", fence),
        (
            "trg_dpone_load_attempt_immutable",
            "dpone_load_attempt",
            "UPDATE, DELETE",
            immutable("DPONE_LOAD_ATTEMPT_IMMUTABLE"),
        ),
        (
            "trg_dpone_load_operation_fence",
            "dpone_load_operation",
            "UPDATE, DELETE",
            operation_fence(&gone("operation_key"), &changed),
        ),
        (
            "trg_dpone_load_receipt_immutable",
            "dpone_load_receipt",
            "UPDATE, DELETE",
            immutable("DPONE_LOAD_RECEIPT_IMMUTABLE"),
        ),
        ("trg_native_transfer_custody_fence", "native_transfer_custody", "UPDATE, DELETE", custody),
        ("trg_native_transfer_run_fence_monotonic", "native_transfer_run_fence", "UPDATE, DELETE", run_fence),
        (
            "trg_native_transfer_evidence_immutable",
            "native_transfer_evidence",
            "UPDATE, DELETE",
            immutable("NATIVE_TRANSFER_EVIDENCE_IMMUTABLE"),
        ),
    ]
}

/// The operation row: a heartbeat of its owner may only extend the lease; another owner takes over only after expiry and
/// with the next epoch.
fn operation_fence(gone: &str, changed: &dyn Fn(&str, &str) -> String) -> String {
    let same_owner = "i.current_owner_digest = d.current_owner_digest AND i.current_epoch = d.current_epoch";
    throw_if(gone, "DPONE_LOAD_OPERATION_IMMUTABLE")
        + &throw_if(
            &changed("operation_key", "i.attempt_key <> d.attempt_key OR i.scope_hash <> d.scope_hash"),
            "DPONE_LOAD_OPERATION_IDENTITY_COLLISION",
        )
        + &throw_if(
            &changed(
                "operation_key",
                "(i.lease_expires_at_utc IS NULL AND d.lease_expires_at_utc IS NOT NULL) \
                 OR (i.lease_expires_at_utc IS NOT NULL AND d.lease_expires_at_utc IS NULL)",
            ),
            "DPONE_LOAD_OPERATION_LEASE_MODE_MISMATCH",
        )
        + &throw_if(
            &changed("operation_key", &format!("{same_owner} AND i.lease_expires_at_utc < d.lease_expires_at_utc")),
            "DPONE_LOAD_OPERATION_LEASE_EXPIRED",
        )
        + &throw_if(
            &changed(
                "operation_key",
                "i.current_owner_digest <> d.current_owner_digest AND \
                 (d.lease_expires_at_utc IS NULL OR d.lease_expires_at_utc > SYSUTCDATETIME())",
            ),
            "DPONE_LOAD_OPERATION_ALREADY_OWNED",
        )
        + &throw_if(
            &changed(
                "operation_key",
                &format!(
                    "NOT ({same_owner}) AND NOT (i.current_owner_digest <> d.current_owner_digest \
                     AND i.current_epoch = d.current_epoch + 1)"
                ),
            ),
            "DPONE_LOAD_OPERATION_EPOCH_INVALID",
        )
}
