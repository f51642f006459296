//! The closed `source_snapshot` selector (spec "Manifest/schema", contract.md 10).

use crate::canon::Json;
use crate::code;
use crate::error::Refusal;
use crate::port::source::{ReplicaScope, SourceMode};

/// The text of a replica scope in manifests and documents.
pub fn scope_text(scope: ReplicaScope) -> &'static str {
    match scope {
        ReplicaScope::SingleServer => "single_server",
        ReplicaScope::ConnectedReplica => "connected_replica",
    }
}

/// Mode and replica scope as manifests and documents name them.
pub fn mode_texts(mode: SourceMode) -> (&'static str, Option<&'static str>) {
    match mode {
        SourceMode::QueryVisible => ("query_visible", None),
        SourceMode::ExactRawRows(scope) => ("exact_raw_rows", Some(scope_text(scope))),
    }
}

/// The replica scope of a text, or `None`.
pub fn scope_from_text(text: &str) -> Option<ReplicaScope> {
    [ReplicaScope::SingleServer, ReplicaScope::ConnectedReplica].into_iter().find(|scope| scope_text(*scope) == text)
}

/// The mode that `source.options.native_transfer` selects; `None` when the manifest has no such object.
///
/// An absent `source_snapshot` is `query_visible` and is never written back.
///
/// # Errors
/// `mssql_native.source_snapshot_mode_invalid` for anything outside the closed selector.
pub fn select(native_transfer: Option<&Json>) -> Result<SourceMode, Refusal> {
    let options = match native_transfer {
        // The prior system treats every falsy value as absence.
        None | Some(Json::Null | Json::Bool(false)) => return Ok(SourceMode::QueryVisible),
        Some(Json::Object(options)) => options,
        Some(other) if is_empty(other) => return Ok(SourceMode::QueryVisible),
        Some(_) => return Err(invalid()),
    };
    let Some(selector) = options.get("source_snapshot") else {
        return Ok(SourceMode::QueryVisible);
    };
    let fields = selector.as_object().ok_or_else(invalid)?;
    let text = |key: &str| fields.get(key).and_then(Json::as_str);
    match (fields.len(), text("mode"), text("replica_scope")) {
        (1, Some("query_visible"), None) => Ok(SourceMode::QueryVisible),
        (2, Some("exact_raw_rows"), Some(scope)) => {
            scope_from_text(scope).map(SourceMode::ExactRawRows).ok_or_else(invalid)
        }
        _ => Err(invalid()),
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Str(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Int(value) => value.bits() == 0,
        Json::Float(value) => value.get() == 0.0,
        Json::Null | Json::Bool(_) | Json::Object(_) => false,
    }
}

fn invalid() -> Refusal {
    Refusal::new(
        code::SOURCE_SNAPSHOT_MODE_INVALID,
        "source_snapshot is {mode: query_visible}, or {mode: exact_raw_rows, replica_scope: single_server or \
         connected_replica}; write one of these or remove it.",
    )
}
