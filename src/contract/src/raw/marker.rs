//! The binding marker: how a run's `source_query_id` names the frozen profile (contract.md 1.2, 2.2).

use super::query::window_identity;
use crate::canon::{Json, legacy_digest, strict_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::port::source::FrozenWindow;

/// Text before the hex digits of a version 1 marker.
pub const MARKER_PREFIX: &str = "clickhouse.raw-query.v1:";

const BINDING_KIND: &str = "dpone.clickhouse-raw-query-binding.v1";

/// The array that the legacy source binding hashes: `[relation uuid, route fingerprint hex, window or null]`.
///
/// # Errors
/// As [`window_identity`].
pub fn legacy_binding_preimage(
    relation_uuid: &str,
    route_fingerprint: &str,
    window: Option<&FrozenWindow>,
) -> Result<Json, Refusal> {
    Ok(Json::Array(vec![Json::from(relation_uuid), Json::from(route_fingerprint), window_identity(window)?]))
}

/// The legacy source binding, the `source_query_id` of query_visible runs: legacy ascii digest of the preimage.
///
/// # Errors
/// As [`window_identity`].
pub fn legacy_binding(
    relation_uuid: &str,
    route_fingerprint: &str,
    window: Option<&FrozenWindow>,
) -> Result<Digest, Refusal> {
    legacy_binding_preimage(relation_uuid, route_fingerprint, window).map(|preimage| legacy_digest(&preimage))
}

/// `window_fingerprint` of the chunk plan: legacy ascii digest of the window array, or of `null`.
///
/// # Errors
/// As [`window_identity`].
pub fn window_fingerprint(window: Option<&FrozenWindow>) -> Result<Digest, Refusal> {
    window_identity(window).map(|identity| legacy_digest(&identity))
}

/// The document that a marker hashes.
pub fn marker_preimage(legacy_source_binding: Digest, profile: Digest) -> Json {
    Json::object([
        ("kind", Json::from(BINDING_KIND)),
        ("legacy_source_binding_sha256", Json::from(legacy_source_binding)),
        ("source_snapshot_profile_sha256", Json::from(profile)),
    ])
}

/// The marker of a raw run.
pub fn marker(legacy_source_binding: Digest, profile: Digest) -> String {
    format!("{MARKER_PREFIX}{}", strict_digest(&marker_preimage(legacy_source_binding, profile)))
}

/// What a stored `source_query_id` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceBinding {
    /// A bare digest: a query_visible run.
    Legacy(Digest),
    /// A version 1 marker: a raw run.
    RawV1(Digest),
}

impl SourceBinding {
    /// Reads a stored binding.
    ///
    /// # Errors
    /// `mssql_native.source_snapshot_binding_invalid` for an unknown version or any other text.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let parsed = match text.strip_prefix(MARKER_PREFIX) {
            Some(hex) => hex.parse().map(SourceBinding::RawV1),
            None => text.parse().map(SourceBinding::Legacy),
        };
        parsed.map_err(|_| {
            Refusal::new(
                code::SOURCE_SNAPSHOT_BINDING_INVALID,
                "The stored source binding is neither a plain digest nor a version 1 marker; it was written by another \
                 version or changed. Do not act on it.",
            )
        })
    }

    /// The marker version: none for a legacy binding.
    pub fn version(self) -> Option<u32> {
        match self {
            SourceBinding::Legacy(_) => None,
            SourceBinding::RawV1(_) => Some(1),
        }
    }
}
