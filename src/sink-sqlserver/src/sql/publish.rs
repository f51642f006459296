//! The one publication transaction, in steps on one session (contract.md 6.5).
//!
//! ```text
//! begin     locks, fence, custody, operation; the receipt if it is there already
//! barrier   prepared table is ours; its digest is taken under an exclusive lock (by the caller)
//! mutate    server clock, old rows out, new rows in, counts
//! receipt   the receipt row with both catalog fingerprints
//! commit    COMMIT; its answer is never believed alone
//! ```

use contract::digest::Digest;
use contract::port::target::{Mutation, OperationIdentity, PublishRequest, StageColumn, TargetRequest};
use contract::transaction::{operation_lock, target_lock};

use super::ident::{binary, bracket, fence_check, instant, literal, prologue, qualified, transaction_lock};
use super::stage;

/// Opens the transaction and proves the right to publish. Result: the receipt row of this operation, if there is one.
pub(crate) fn begin(request: &PublishRequest) -> String {
    let s = bracket(&request.request.state_schema);
    let o = &request.operation;
    let throw = |condition: String, code: &str| format!("IF {condition}\n  BEGIN ;THROW 51000, N'{code}', 1; END;\n");
    let mut text = prologue(request.lock_timeout_ms);
    text.push_str("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;\nDECLARE @rc int;\nBEGIN TRANSACTION;\n");
    text.push_str(&transaction_lock(
        &target_lock(o.target_identity),
        request.lock_timeout_ms,
        "native_transfer.target_busy",
    ));
    text.push_str(&transaction_lock(
        &operation_lock(o.operation_key),
        request.lock_timeout_ms,
        "native_transfer.target_busy",
    ));
    text.push_str(&fence_check(&request.request.state_schema, &request.fence));
    text.push_str(&throw(
        format!(
            "NOT EXISTS (SELECT 1 FROM {s}.[native_transfer_custody] WITH (UPDLOCK, HOLDLOCK) WHERE target_identity = {} \
             AND holder = {} AND custody_epoch = {} AND state = N'held')",
            binary(&o.target_identity),
            binary(&request.holder),
            request.custody_epoch
        ),
        "native_transfer.custody_lost",
    ));
    text.push_str(&throw(
        format!(
            "NOT EXISTS (SELECT 1 FROM {s}.[dpone_target_fence] WITH (UPDLOCK, HOLDLOCK) WHERE target_identity = {} \
             AND current_generation = {} AND current_attempt_key = {})",
            binary(&o.target_identity),
            request.generation,
            binary(&o.attempt_key)
        ),
        "DPONE_LOAD_OPERATION_STALE_ATTEMPT_GENERATION",
    ));
    text.push_str(&throw(
        format!(
            "NOT EXISTS (SELECT 1 FROM {s}.[dpone_load_operation] WITH (UPDLOCK, HOLDLOCK) WHERE operation_key = {} \
             AND current_epoch = {} AND current_owner_digest = {})",
            binary(&o.operation_key),
            request.operation_epoch,
            binary(&o.owner_digest)
        ),
        "DPONE_LOAD_OPERATION_ALREADY_OWNED",
    ));
    text.push_str(&receipt_query(&request.request, o));
    text
}

/// Zero or one row: the receipt of an operation.
pub(crate) fn receipt_query(request: &TargetRequest, operation: &OperationIdentity) -> String {
    format!(
        "SELECT receipt_id, CONVERT(varchar(64), owner_digest, 2), operation_epoch, \
         CONVERT(varchar(64), payload_manifest_sha256, 2), CONVERT(varchar(64), mutation_plan_sha256, 2), inserted_rows, \
         replaced_rows, CONVERT(varchar(27), committed_at_utc, 126)\n\
         FROM {}.[dpone_load_receipt] WHERE operation_key = {};\n",
        bracket(&request.state_schema),
        binary(&operation.operation_key),
    )
}

/// Reads the receipt while holding both publication locks; the transaction changes nothing and is rolled back.
pub(crate) fn probe(request: &TargetRequest, operation: &OperationIdentity, lock_timeout_ms: u32) -> String {
    format!(
        "{}DECLARE @rc int;\nBEGIN TRANSACTION;\n{}{}{}ROLLBACK TRANSACTION;\n",
        prologue(lock_timeout_ms),
        transaction_lock(&target_lock(operation.target_identity), lock_timeout_ms, "native_transfer.target_busy"),
        transaction_lock(&operation_lock(operation.operation_key), lock_timeout_ms, "native_transfer.target_busy"),
        receipt_query(request, operation),
    )
}

/// Proves the prepared table ours and holds it exclusively until the transaction ends.
pub(crate) fn hold_prepared(request: &PublishRequest) -> String {
    let table = qualified(&request.prepared.stage.definition.name);
    format!(
        "DECLARE @held int = (SELECT COUNT(*) FROM (SELECT TOP (1) 1 AS one FROM {table} WITH (TABLOCKX, HOLDLOCK)) AS h);\n{}",
        stage::identity_check(&request.prepared.stage),
    )
}

/// Moves the rows. One row: replaced rows, inserted rows, rows now in the scope, server clock.
pub(crate) fn mutate(request: &PublishRequest) -> String {
    let target = qualified(&request.request.table);
    let prepared = qualified(&request.prepared.stage.definition.name);
    let columns = column_names(&request.columns);
    let (scope, clear) = match &request.mutation {
        Mutation::FullRefresh { delete: false } => (String::new(), format!("TRUNCATE TABLE {target};")),
        Mutation::FullRefresh { delete: true } => (String::new(), format!("DELETE FROM {target};")),
        Mutation::PartitionReplace { column, start, end } => {
            let column = bracket(column);
            let scope = format!(
                " WHERE {column} >= CONVERT(datetime2(6), {}, 121) AND {column} < CONVERT(datetime2(6), {}, 121)",
                literal(start),
                literal(end)
            );
            let clear = format!("DELETE FROM {target}{scope};");
            (scope, clear)
        }
    };
    let clock = request
        .loaded_at_column
        .as_ref()
        .map_or(String::new(), |column| format!("UPDATE {prepared} SET {} = @now;\n", bracket(column)));
    format!(
        "DECLARE @replaced bigint, @inserted bigint, @total bigint, @now datetime2(7) = SYSUTCDATETIME();\n{clock}\
         SELECT @replaced = COUNT_BIG(*) FROM {target} WITH (TABLOCKX, HOLDLOCK){scope};\n{clear}\n\
         INSERT INTO {target} WITH (TABLOCK) ({columns})\nSELECT {columns} FROM {prepared};\nSET @inserted = ROWCOUNT_BIG();\n\
         SELECT @total = COUNT_BIG(*) FROM {target}{scope};\n\
         SELECT @replaced, @inserted, @total, CONVERT(varchar(27), @now, 126);\n"
    )
}

fn column_names(columns: &[StageColumn]) -> String {
    columns.iter().map(|c| bracket(&c.name)).collect::<Vec<_>>().join(", ")
}

/// Counts and fingerprints of the mutation, for the receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MutationFacts {
    pub(crate) replaced_rows: u64,
    pub(crate) inserted_rows: u64,
    pub(crate) loaded_at: String,
    pub(crate) before: Digest,
    pub(crate) after: Digest,
}

/// Inserts the receipt row.
pub(crate) fn receipt(request: &PublishRequest, facts: &MutationFacts) -> String {
    let (o, r) = (&request.operation, &request.receipt);
    let rows = r.rows.to_string();
    let columns: Vec<(&str, String)> = vec![
        ("receipt_id", literal(&r.receipt_id)),
        ("operation_key", binary(&o.operation_key)),
        ("attempt_key", binary(&o.attempt_key)),
        ("scope_hash", binary(&o.scope_hash)),
        ("operation_epoch", request.operation_epoch.to_string()),
        ("owner_digest", binary(&o.owner_digest)),
        ("load_id", literal(&o.load_id)),
        ("payload_manifest_sha256", binary(&r.payload_manifest_sha256)),
        ("declared_rows", rows.clone()),
        ("actual_raw_rows", rows.clone()),
        ("actual_native_rows", rows),
        ("native_contract_sha256", binary(&r.native_contract_sha256)),
        ("mutation_plan_sha256", binary(&r.mutation_plan_sha256)),
        ("target_before_sha256", binary(&facts.before)),
        ("target_after_sha256", binary(&facts.after)),
        ("extraction_started_at_utc", instant(&r.extraction_started_at)),
        ("extraction_completed_at_utc", instant(&r.extraction_completed_at)),
        ("extraction_clock_authority", literal(&r.extraction_clock_authority)),
        ("snapshot_acquired_at_utc", instant(&r.snapshot_acquired_at)),
        ("snapshot_authority", literal(&r.snapshot_authority)),
        ("source_token_sha256", binary(&r.source_token_sha256)),
        ("loaded_at_utc", instant(&facts.loaded_at)),
        ("inserted_rows", facts.inserted_rows.to_string()),
        ("updated_rows", "0".to_string()),
        ("total_rows", facts.inserted_rows.to_string()),
        ("staging_rows", r.rows.to_string()),
        ("replaced_rows", facts.replaced_rows.to_string()),
        ("committed_at_utc", "SYSUTCDATETIME()".to_string()),
    ];
    let names: Vec<String> = columns.iter().map(|(name, _)| (*name).to_string()).collect();
    let values: Vec<String> = columns.into_iter().map(|(_, value)| value).collect();
    format!(
        "INSERT INTO {}.[dpone_load_receipt] ({})\nVALUES ({});\n",
        bracket(&request.request.state_schema),
        names.join(", "),
        values.join(", "),
    )
}

/// The last statement of the transaction.
pub(crate) const COMMIT: &str = "COMMIT TRANSACTION;\n";
/// Rolls back whatever is open; harmless without a transaction.
pub(crate) const ROLLBACK: &str = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;\n";
