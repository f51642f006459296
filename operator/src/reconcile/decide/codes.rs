//! Which coded failures pass by themselves, and which need a person.

/// `limits.deadline` has passed before the end of source.
pub const DEADLINE_EXCEEDED: &str = "native_transfer.deadline_exceeded";
/// The journal's claim or its content is not there any more although the run held custody.
pub const JOURNAL_LOST: &str = "native_transfer.journal_lost";
/// The resource was deleted before anything began.
pub const CANCELLED: &str = "native_transfer.cancelled";
/// A worker ended and left no readable receipt.
pub const RECEIPT_MISSING: &str = "native_transfer.receipt_missing";
/// The plan made from the resource is not the one that the run was started with.
pub const PLAN_DIGEST_MISMATCH: &str = "native_transfer.plan_digest_mismatch";

/// The token names a run that the transfer has had before.
pub const RUN_TOKEN_USED: &str = contract::code::RUN_TOKEN_USED;

/// Another run holds the target.
const CUSTODY_HELD: &str = "mssql_native.custody_held";

/// What a refusal before any effect asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Infrastructure: the same again after a while.
    Passing,
    /// Another transfer holds the target: the same again after a while.
    TargetBusy,
    /// It stays so until somebody changes something.
    Lasting,
}

/// Refusals by infrastructure, which is nobody's mistake in the resource.
const PASSING: &[&str] = &[
    "mssql_native.target_capacity_unavailable",
    "mssql_native.target_volume_headroom_insufficient",
    "native_transfer.cancelled",
    "native_transfer.entropy_unavailable",
    "native_transfer.journal_fenced",
    "native_transfer.journal_locked",
    "native_transfer.journal_unavailable",
    "native_transfer.run_fenced",
    "native_transfer.source_unreachable",
    "native_transfer.spool_unavailable",
    "native_transfer.target_answer_invalid",
    "native_transfer.target_busy",
    "native_transfer.target_connection_lost",
    "native_transfer.target_unreachable",
    "native_transfer.worker_files_unavailable",
    "native_transfer.worker_panicked",
];

/// Settled ends whose cause lies in the rows or in the proof: reading the source again gives the same end.
const IN_THE_DATA: &[&str] = &[
    "mssql_native.encoder_size_authority_changed",
    "mssql_native.invalid_utf8_source_text",
    "mssql_native.ordinary_columns_required",
    "mssql_native.server_count_mismatch",
    "mssql_native.source_type_unsupported",
    "mssql_native.typed_digest_mismatch",
    DEADLINE_EXCEEDED,
];

/// Where the whole code or its base (`BASE:DETAIL`) is of the list.
fn listed(list: &[&str], code: &str) -> bool {
    let base = code.split(':').next().unwrap_or(code);
    list.contains(&code) || list.contains(&base)
}

/// What a refusal before any effect asks for. An unknown code is lasting: a new token repeats it when a person wants.
pub fn class(code: &str) -> Class {
    match code {
        CUSTODY_HELD => Class::TargetBusy,
        code if listed(PASSING, code) => Class::Passing,
        _ => Class::Lasting,
    }
}

/// Whether another extraction may end otherwise than the settled one with this code.
///
/// `mssql_native_*` are the codes of single values (contract.md 3.1): the same rows give them again.
pub fn worth_another_attempt(code: &str) -> bool {
    !listed(IN_THE_DATA, code) && !code.starts_with("mssql_native_")
}

/// Whether the journal says that it has never had this run.
pub fn no_such_run(code: Option<&str>) -> bool {
    code == Some("mssql_native.recovery_identity_invalid") || no_journal(code)
}

/// Whether there is no journal on the volume.
pub fn no_journal(code: Option<&str>) -> bool {
    code == Some("mssql_native.recovery_journal_unavailable")
}

/// Whether a publish process found no sealed end of source in the journal.
pub fn nothing_sealed(code: Option<&str>) -> bool {
    code == Some("mssql_native.source_EOF_required")
}

/// Meaning and remedy of a code for a condition's message; what is not in the tables is named alone.
pub fn explain(code: &str) -> String {
    let base = code.split(':').next().unwrap_or(code);
    contract::code::all()
        .iter()
        .chain(contract::code_ports::PORT_CODES)
        .find(|entry| entry.code == code || entry.code == base)
        .map_or_else(|| code.to_owned(), |entry| format!("{code}: {} {}", entry.meaning, entry.remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_code_is_explained() {
        let own = [
            DEADLINE_EXCEEDED,
            JOURNAL_LOST,
            CANCELLED,
            RECEIPT_MISSING,
            PLAN_DIGEST_MISMATCH,
            RUN_TOKEN_USED,
            CUSTODY_HELD,
        ];
        for code in PASSING.iter().chain(IN_THE_DATA).chain(&own) {
            assert_ne!(explain(code), *code, "{code} stands in no table");
        }
    }

    #[test]
    fn classes() {
        assert_eq!(class("native_transfer.source_unreachable"), Class::Passing);
        assert_eq!(class("mssql_native.custody_held"), Class::TargetBusy);
        assert_eq!(class("native_transfer.target_grant_missing"), Class::Lasting);
        assert_eq!(class("something.new"), Class::Lasting);
        assert!(worth_another_attempt("native_transfer.source_unreachable"));
        assert!(worth_another_attempt("native_transfer.cancelled"));
        assert!(!worth_another_attempt("mssql_native_invalid_value"));
        assert!(!worth_another_attempt("mssql_native.typed_digest_mismatch"));
    }
}
