//! Identifiers, literals and the small texts that many statements share.

use contract::digest::Digest;
use contract::port::target::{RunFence, TableName};

/// `[name]` with `]` doubled. Lengths are bounded by the plan and by the catalog (128 characters).
pub(crate) fn bracket(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

/// `[schema].[table]`.
pub(crate) fn qualified(name: &TableName) -> String {
    format!("{}.{}", bracket(&name.schema), bracket(&name.table))
}

/// `N'text'` with quotes doubled.
pub(crate) fn literal(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// `0x...` of a digest, the form of every `binary(32)` column.
pub(crate) fn binary(digest: &Digest) -> String {
    format!("0x{digest}")
}

/// A `datetime2(7)` from `YYYY-MM-DDTHH:MM:SS[.fffffff][Z]`; style 126 does not depend on language or date format.
pub(crate) fn instant(text: &str) -> String {
    format!("CONVERT(datetime2(7), {}, 126)", literal(text.trim_end_matches('Z')))
}

/// Session options of every batch that changes something. XACT_ABORT makes each error roll the transaction back, so a
/// failed batch that was answered is a batch that did nothing.
pub(crate) fn prologue(lock_timeout_ms: u32) -> String {
    format!("SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT {lock_timeout_ms};\n")
}

/// Throws `native_transfer.run_fenced` unless our fence is the one in the target. The row stays share-locked
/// until the transaction ends, so a later opener waits for us or we see it, and importers do not wait for each other.
pub(crate) fn fence_check(state_schema: &str, fence: &RunFence) -> String {
    format!(
        "IF NOT EXISTS (SELECT 1 FROM {}.[native_transfer_run_fence] WITH (HOLDLOCK) \
         WHERE operation_key = {} AND journal_epoch = {} AND opener_nonce = {})\n\
         BEGIN ;THROW 51000, N'native_transfer.run_fenced', 1; END;\n",
        bracket(state_schema),
        binary(&fence.operation_key),
        fence.epoch,
        binary(&fence.opener_nonce),
    )
}

/// Takes a transaction-owned exclusive applock or throws `code`.
pub(crate) fn transaction_lock(resource: &str, timeout_ms: u32, code: &str) -> String {
    format!(
        "EXEC @rc = sys.sp_getapplock @Resource = {}, @LockMode = N'Exclusive', @LockOwner = N'Transaction', \
         @LockTimeout = {timeout_ms};\n\
         IF @rc < 0 BEGIN ;THROW 51000, {}, 1; END;\n",
        literal(resource),
        literal(code),
    )
}
