//! The claim: registry row, fence, attempt, operation, custody and run fence in one SERIALIZABLE batch (contract.md 7,
//! design.md 3.14, 3.23), and its counterparts.

use contract::port::target::{Claim, CustodyRelease, OperationIdentity, RunFence, TargetRequest};
use contract::transaction::target_lock;

use super::ident::{binary, bracket, fence_check, literal, prologue, transaction_lock};

/// The claim batch. One row: verdict (`claimed`, `held`, `fenced`), generation, operation epoch, custody epoch, holder,
/// server time. The verdicts `held` and `fenced` change nothing.
pub(crate) fn claim(claim: &Claim, lock_timeout_ms: u32) -> String {
    let s = bracket(&claim.request.state_schema);
    let mut text = prologue(lock_timeout_ms);
    text.push_str(
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;\n\
         DECLARE @rc int, @verdict nvarchar(16) = N'claimed', @generation bigint, @operation_epoch bigint,\n  \
         @custody_epoch bigint, @holder binary(32), @state nvarchar(8), @fence_epoch bigint, @fence_nonce binary(32),\n  \
         @owner binary(32), @now datetime2(7) = SYSUTCDATETIME();\nBEGIN TRANSACTION;\n",
    );
    text.push_str(&transaction_lock(
        &target_lock(claim.operation.target_identity),
        lock_timeout_ms,
        "native_transfer.target_busy",
    ));
    text.push_str(&observe_custody_and_fence(&s, claim));
    text.push_str("IF @verdict = N'claimed'\nBEGIN\n");
    text.push_str(&registry(&s, claim));
    text.push_str(&raise(&s, &claim.fence));
    text.push_str(&custody(&s, claim));
    text.push_str(&attempt(&s, claim));
    text.push_str(&operation(&s, claim));
    text.push_str(
        "END;\nCOMMIT TRANSACTION;\n\
         SELECT @verdict, @generation, @operation_epoch, @custody_epoch, CONVERT(varchar(64), @holder, 2), \
         CONVERT(varchar(27), @now, 126);\n",
    );
    text
}

fn observe_custody_and_fence(s: &str, claim: &Claim) -> String {
    let target = binary(&claim.operation.target_identity);
    let holder = binary(&claim.holder);
    let nonce = binary(&claim.fence.opener_nonce);
    format!(
        "SELECT @holder = holder, @state = state, @custody_epoch = custody_epoch\n\
         FROM {s}.[native_transfer_custody] WITH (UPDLOCK, HOLDLOCK) WHERE target_identity = {target};\n\
         SELECT @fence_epoch = journal_epoch, @fence_nonce = opener_nonce\n\
         FROM {s}.[native_transfer_run_fence] WITH (UPDLOCK, HOLDLOCK) WHERE operation_key = {key};\n\
         IF @state = N'held' AND @holder <> {holder} SET @verdict = N'held';\n\
         ELSE IF @fence_epoch > {epoch} OR (@fence_epoch = {epoch} AND @fence_nonce <> {nonce}) SET @verdict = N'fenced';\n",
        key = binary(&claim.fence.operation_key),
        epoch = claim.fence.epoch,
    )
}

fn registry(s: &str, claim: &Claim) -> String {
    let (schema, table) = (literal(&claim.request.table.schema), literal(&claim.request.table.table));
    let binding = binary(&claim.operation.binding_id);
    format!(
        "IF NOT EXISTS (SELECT 1 FROM {s}.[dpone_target_identity] WITH (UPDLOCK, HOLDLOCK) \
         WHERE schema_name = {schema} AND table_name = {table})\n  \
         INSERT INTO {s}.[dpone_target_identity] (binding_id, schema_name, table_name) VALUES ({binding}, {schema}, {table});\n\
         IF NOT EXISTS (SELECT 1 FROM {s}.[dpone_target_identity] WHERE schema_name = {schema} AND table_name = {table} \
         AND binding_id = {binding})\n  BEGIN ;THROW 51000, N'mssql_native.recovery_target_changed', 1; END;\n",
    )
}

/// Raises the run fence to ours; repeating it is harmless.
fn raise(s: &str, fence: &RunFence) -> String {
    let (key, nonce) = (binary(&fence.operation_key), binary(&fence.opener_nonce));
    format!(
        "IF @fence_epoch IS NULL\n  \
         INSERT INTO {s}.[native_transfer_run_fence] (operation_key, journal_epoch, opener_nonce, updated_at_utc)\n  \
         VALUES ({key}, {epoch}, {nonce}, @now);\n\
         ELSE IF @fence_epoch < {epoch}\n  \
         UPDATE {s}.[native_transfer_run_fence] SET journal_epoch = {epoch}, opener_nonce = {nonce}, updated_at_utc = @now\n  \
         WHERE operation_key = {key};\n",
        epoch = fence.epoch,
    )
}

fn custody(s: &str, claim: &Claim) -> String {
    let (target, holder) = (binary(&claim.operation.target_identity), binary(&claim.holder));
    format!(
        "IF @state IS NULL\nBEGIN\n  SET @custody_epoch = 1;\n  \
         INSERT INTO {s}.[native_transfer_custody] (target_identity, holder, custody_epoch, state, release_reason, updated_at_utc)\n  \
         VALUES ({target}, {holder}, 1, N'held', NULL, @now);\nEND\n\
         ELSE IF @state = N'clear'\nBEGIN\n  SET @custody_epoch = @custody_epoch + 1;\n  \
         UPDATE {s}.[native_transfer_custody] SET holder = {holder}, custody_epoch = @custody_epoch, state = N'held', \
         release_reason = NULL, updated_at_utc = @now\n  WHERE target_identity = {target};\nEND;\nSET @holder = {holder};\n",
    )
}

fn attempt(s: &str, claim: &Claim) -> String {
    let o = &claim.operation;
    let (target, key, route) = (binary(&o.target_identity), binary(&o.attempt_key), binary(&o.route_fingerprint));
    format!(
        "SELECT @generation = generation FROM {s}.[dpone_load_attempt] WITH (UPDLOCK, HOLDLOCK) WHERE attempt_key = {key};\n\
         IF @generation IS NULL\nBEGIN\n  \
         SELECT @generation = current_generation + 1 FROM {s}.[dpone_target_fence] WITH (UPDLOCK, HOLDLOCK) WHERE target_identity = {target};\n  \
         IF @generation IS NULL\n  BEGIN\n    SET @generation = 1;\n    \
         INSERT INTO {s}.[dpone_target_fence] (target_identity, current_generation, current_attempt_key, current_route_fingerprint, updated_at_utc)\n    \
         VALUES ({target}, 1, {key}, {route}, @now);\n  END\n  ELSE\n    \
         UPDATE {s}.[dpone_target_fence] SET current_generation = @generation, current_attempt_key = {key}, \
         current_route_fingerprint = {route}, updated_at_utc = @now WHERE target_identity = {target};\n  \
         INSERT INTO {s}.[dpone_load_attempt] (attempt_key, target_identity, generation, invocation_digest, route_fingerprint, \
         first_load_id, target_database, target_schema, target_table, strategy, created_at_utc)\n  \
         VALUES ({key}, {target}, @generation, {invocation}, {route}, {load}, DB_NAME(), {schema}, {table}, {strategy}, @now);\nEND\n\
         ELSE IF NOT EXISTS (SELECT 1 FROM {s}.[dpone_target_fence] WHERE target_identity = {target} \
         AND current_generation = @generation AND current_attempt_key = {key})\n  \
         BEGIN ;THROW 51000, N'DPONE_LOAD_OPERATION_STALE_ATTEMPT_GENERATION', 1; END;\n",
        invocation = binary(&o.invocation_digest),
        load = literal(&o.load_id),
        schema = literal(&claim.request.table.schema),
        table = literal(&claim.request.table.table),
        strategy = literal(&o.strategy),
    )
}

fn operation(s: &str, claim: &Claim) -> String {
    let o = &claim.operation;
    let (key, owner) = (binary(&o.operation_key), binary(&o.owner_digest));
    let lease = format!("DATEADD(second, {}, @now)", claim.lease_seconds);
    format!(
        "SELECT @operation_epoch = current_epoch, @owner = current_owner_digest\n\
         FROM {s}.[dpone_load_operation] WITH (UPDLOCK, HOLDLOCK) WHERE operation_key = {key};\n\
         IF @operation_epoch IS NULL\nBEGIN\n  SET @operation_epoch = 1;\n  \
         INSERT INTO {s}.[dpone_load_operation] (operation_key, attempt_key, scope_hash, current_epoch, current_owner_digest, \
         lease_expires_at_utc, updated_at_utc)\n  VALUES ({key}, {attempt}, {scope}, 1, {owner}, {lease}, @now);\nEND\n\
         ELSE IF @owner <> {owner}\n  BEGIN ;THROW 51000, N'DPONE_LOAD_OPERATION_ALREADY_OWNED', 1; END\n\
         ELSE\n  UPDATE {s}.[dpone_load_operation] SET lease_expires_at_utc = {lease}, updated_at_utc = @now \
         WHERE operation_key = {key} AND lease_expires_at_utc < {lease};\n",
        attempt = binary(&o.attempt_key),
        scope = binary(&o.scope_hash),
    )
}

/// Raises the run fence alone. One row: 1 when ours stands, 0 when a later opener's does.
pub(crate) fn raise_fence(request: &TargetRequest, fence: &RunFence, lock_timeout_ms: u32) -> String {
    let s = bracket(&request.state_schema);
    let (key, nonce) = (binary(&fence.operation_key), binary(&fence.opener_nonce));
    format!(
        "{}SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;\n\
         DECLARE @fence_epoch bigint, @now datetime2(7) = SYSUTCDATETIME();\nBEGIN TRANSACTION;\n\
         SELECT @fence_epoch = journal_epoch FROM {s}.[native_transfer_run_fence] WITH (UPDLOCK, HOLDLOCK) WHERE operation_key = {key};\n\
         {}COMMIT TRANSACTION;\n\
         SELECT COUNT(*) FROM {s}.[native_transfer_run_fence] WHERE operation_key = {key} AND journal_epoch = {} \
         AND opener_nonce = {nonce};\n",
        prologue(lock_timeout_ms),
        raise(&s, fence),
        fence.epoch,
    )
}

/// Releases custody: held by us at this epoch, or released by us at this epoch already, whether or not another has
/// claimed the target since. One row: 1 when our claim is released.
pub(crate) fn release(release: &CustodyRelease, lock_timeout_ms: u32) -> String {
    let s = bracket(&release.request.state_schema);
    let mine = format!(
        "target_identity = {} AND holder = {} AND custody_epoch = {}",
        binary(&release.target_identity),
        binary(&release.holder),
        release.custody_epoch
    );
    format!(
        "{}BEGIN TRANSACTION;\n{}\
         UPDATE {s}.[native_transfer_custody] SET state = N'clear', release_reason = {}, updated_at_utc = SYSUTCDATETIME()\n\
         WHERE {mine} AND state = N'held';\nCOMMIT TRANSACTION;\n\
         SELECT COUNT(*) FROM {s}.[native_transfer_custody] WHERE ({mine} AND state = N'clear') \
         OR (target_identity = {} AND custody_epoch > {});\n",
        prologue(lock_timeout_ms),
        fence_check(&release.request.state_schema, &release.fence),
        literal(release.reason),
        binary(&release.target_identity),
        release.custody_epoch,
    )
}

/// Saves the evidence document once. One row: rows that hold exactly this document.
pub(crate) fn save_evidence(
    request: &TargetRequest,
    operation: &OperationIdentity,
    document: &str,
    document_sha256: &contract::digest::Digest,
    fence: &RunFence,
    lock_timeout_ms: u32,
) -> String {
    let s = bracket(&request.state_schema);
    let (key, sha) = (binary(&operation.operation_key), binary(document_sha256));
    format!(
        "{}BEGIN TRANSACTION;\n{}\
         IF NOT EXISTS (SELECT 1 FROM {s}.[native_transfer_evidence] WITH (UPDLOCK, HOLDLOCK) WHERE operation_key = {key})\n  \
         INSERT INTO {s}.[native_transfer_evidence] (operation_key, document_sha256, document, saved_at_utc)\n  \
         VALUES ({key}, {sha}, {}, SYSUTCDATETIME());\nCOMMIT TRANSACTION;\n\
         SELECT COUNT(*) FROM {s}.[native_transfer_evidence] WHERE operation_key = {key} AND document_sha256 = {sha};\n",
        prologue(lock_timeout_ms),
        fence_check(&request.state_schema, fence),
        literal(document),
    )
}
