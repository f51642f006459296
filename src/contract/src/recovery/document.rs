//! The documents that `inspect` and `inspect-all` print (contract.md 9.2): no coordinate, name or value in them.

use super::classify::Classification;
use crate::attempt::EventKind;
use crate::canon::Json;
use crate::digest::Digest;

/// One attempt as `inspect` shows it; both ids are hashed once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptSummary {
    /// Chunk ordinal.
    pub ordinal: u64,
    /// Attempt id.
    pub attempt_id: Digest,
    /// Opaque stage id, once a stage existed.
    pub stage_id: Option<Digest>,
    /// Last event.
    pub terminal: EventKind,
}

fn hashed_again(id: Digest) -> Digest {
    Digest::of(id.to_string().as_bytes())
}

/// The `inspect` document of one invocation.
pub fn inspect(
    invocation_key: Digest,
    classification: &Classification,
    artifact_refs: &[Digest],
    attempts: &[AttemptSummary],
) -> Json {
    let mut attempts: Vec<(u64, Digest, Option<Digest>, EventKind)> = attempts
        .iter()
        .map(|a| (a.ordinal, hashed_again(a.attempt_id), a.stage_id.map(hashed_again), a.terminal))
        .collect();
    attempts.sort_unstable_by_key(|(ordinal, id, _, _)| (*ordinal, *id));
    let attempts = attempts.into_iter().map(|(ordinal, attempt, stage, terminal)| {
        Json::object([
            ("ordinal", Json::from(ordinal)),
            ("attempt_id_sha256", Json::from(attempt)),
            ("stage_id_sha256", Json::from(stage)),
            ("terminal_event", Json::from(terminal.text())),
        ])
    });
    let actions = classification.actions.iter().map(|action| Json::from(action.text()));
    Json::object([
        ("schema_version", Json::from(2)),
        ("kind", Json::from("dpone.mssql-native-recovery.v2")),
        ("invocation_id", Json::from(invocation_key)),
        ("identity_sha256", Json::from(invocation_key)),
        ("state", Json::from(classification.state.text())),
        ("diagnostic_code", Json::from(classification.state.diagnostic())),
        ("permitted_actions", Json::Array(actions.collect())),
        ("artifact_refs", Json::Array(artifact_refs.iter().map(|reference| Json::from(*reference)).collect())),
        ("attempts", Json::Array(attempts.collect())),
    ])
}

/// The `inspect-all` document.
pub fn index(retained_custody_count: u64, items: Vec<Json>) -> Json {
    Json::object([
        ("schema_version", Json::from(1)),
        ("kind", Json::from("dpone.mssql-native-recovery-index.v1")),
        ("retained_custody_count", Json::from(retained_custody_count)),
        ("items", Json::Array(items)),
    ])
}
