//! The recovery gate: what a stored raw run must still agree with before any connection is opened (contract.md 2.6).

use super::extension;
use super::marker::{self, SourceBinding};
use super::profile::RawProfile;
use crate::canon::Json;
use crate::code;
use crate::completion::{ChunkReceipt, Completion, verify};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::identity::{ChunkPlan, schema_fingerprint};
use crate::port::source::{FrozenWindow, SourceMode};
use crate::raw::query::window_identity;
use crate::recovery::classify::Action;

/// Key of the extension in the completion metadata.
pub const EXTENSION_KEY: &str = "source_snapshot_v1";

/// What is stored about a run's completion.
#[derive(Debug, Clone, Copy)]
pub struct Completed<'a> {
    /// The completion record.
    pub completion: &'a Completion,
    /// Its receipts in order.
    pub receipts: &'a [ChunkReceipt],
    /// Its metadata, with the extension for a raw run.
    pub metadata: &'a Json,
}

/// What the manifest and the plan say now.
#[derive(Debug, Clone, Copy)]
pub struct Selected<'a> {
    /// The selected mode.
    pub mode: SourceMode,
    /// The stored chunk plan.
    pub plan: &'a ChunkPlan,
    /// The frozen window.
    pub window: Option<&'a FrozenWindow>,
    /// Route fingerprint, hex.
    pub route_fingerprint: &'a str,
}

/// Lets a stored run pass to recovery. A query_visible run passes as it is; a raw run must agree with itself.
///
/// `endpoint_authority_agreement: false` does not block: it says something about repeatability, not about the rows.
///
/// # Errors
/// `mssql_native.source_snapshot_binding_invalid` when mode, marker, profile or window disagree,
/// `source_snapshot_eof_required` when an unsealed raw run carries an extension, a completion or is to be resumed,
/// `source_snapshot_completion_changed`, `source_snapshot_schema_changed` and the codes of [`extension::restore`] for a
/// sealed one.
pub fn check(selected: &Selected<'_>, action: Action, completed: Option<Completed<'_>>) -> Result<(), Refusal> {
    let binding = SourceBinding::parse(&selected.plan.source_query_id)?;
    let stored = completed.and_then(|completed| completed.metadata.get(EXTENSION_KEY));
    let scope = match (binding, selected.mode) {
        (SourceBinding::Legacy(_), SourceMode::QueryVisible) if stored.is_none() => return Ok(()),
        (SourceBinding::RawV1(_), SourceMode::ExactRawRows(scope)) => scope,
        (
            SourceBinding::Legacy(_) | SourceBinding::RawV1(_),
            SourceMode::QueryVisible | SourceMode::ExactRawRows(_),
        ) => {
            return Err(disagrees());
        }
    };
    let Some(completed) = completed else {
        return match action {
            Action::Resume => Err(Refusal::new(
                code::SOURCE_SNAPSHOT_EOF_REQUIRED,
                "The run's source end was never sealed, so it cannot be resumed; inspect, reconcile or retire it.",
            )),
            Action::Inspect | Action::Reconcile | Action::Retire => Ok(()),
        };
    };
    verify(completed.completion, completed.receipts, completed.metadata).map_err(|_| {
        Refusal::new(
            code::SOURCE_SNAPSHOT_COMPLETION_CHANGED,
            "The completion record of a raw run does not match its own digests; do not publish, inspect the journal.",
        )
    })?;
    let marker = &selected.plan.source_query_id;
    let extension = stored.unwrap_or(&Json::Null);
    let (profile, _) = extension::restore(extension, marker, &Json::from(completed.completion.rows))?;
    if profile.replica_scope != scope {
        return Err(disagrees());
    }
    agree(selected, &profile, completed.metadata)?;
    let columns = profile.ordered_schema.iter().map(|[name, type_text, _]| (name.as_str(), type_text.as_str()));
    if schema_fingerprint(columns).to_string() != selected.plan.schema_fingerprint {
        return Err(Refusal::new(
            code::SOURCE_SNAPSHOT_SCHEMA_CHANGED,
            "The sealed source schema is not the one that the run was planned from; do not publish, inspect the run.",
        ));
    }
    Ok(())
}

/// Compares the restored profile with what the plan says now.
fn agree(selected: &Selected<'_>, profile: &RawProfile, metadata: &Json) -> Result<(), Refusal> {
    let window = selected.window;
    let stored_window = profile.window.as_ref().map_or(Json::Null, Json::array);
    let fingerprint = marker::window_fingerprint(window)?.to_string();
    let legacy: Digest = marker::legacy_binding(&profile.relation_uuid, selected.route_fingerprint, window)?;
    let uuid = metadata.get("source_relation_uuid").and_then(Json::as_str);
    let agrees = stored_window == window_identity(window)?
        && fingerprint == selected.plan.window_fingerprint
        && uuid.is_none_or(|uuid| uuid == profile.relation_uuid)
        && marker::marker(legacy, profile.sha256()) == selected.plan.source_query_id;
    if agrees { Ok(()) } else { Err(disagrees()) }
}

fn disagrees() -> Refusal {
    Refusal::new(
        code::SOURCE_SNAPSHOT_BINDING_INVALID,
        "The stored run and the selected source mode, window or route disagree; use the manifest that started the run.",
    )
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
