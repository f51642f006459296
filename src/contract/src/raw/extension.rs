//! `completion_metadata.source_snapshot_v1`: the raw snapshot as the completion record carries it (contract.md 2.2).

use super::bounds;
use super::eof::{EOF_KIND, EofDescriptor};
use super::marker::SourceBinding;
use super::profile::RawProfile;
use crate::canon::Json;
use crate::code;
use crate::error::Refusal;

const MODE: &str = "exact_raw_rows";

/// Builds the extension of a sealed raw run.
///
/// # Errors
/// `mssql_native.source_snapshot_binding_invalid` or `source_snapshot_extension_invalid` when `binding` is no version 1
/// marker, `source_snapshot_invalid` when the whole is larger than its cap.
pub fn build(binding: &str, profile: &RawProfile, eof: &EofDescriptor) -> Result<Json, Refusal> {
    if SourceBinding::parse(binding)?.version() != Some(1) {
        return Err(invalid());
    }
    let extension = Json::object([
        ("kind", Json::from(EOF_KIND)),
        ("mode", Json::from(MODE)),
        ("source_query_binding", Json::from(binding)),
        ("profile", profile.document()),
        ("source_snapshot_profile_sha256", Json::from(profile.sha256())),
        ("source_eof", eof.document()),
        ("source_eof_descriptor_sha256", Json::from(eof.sha256())),
    ]);
    bounds::check(&extension)?;
    Ok(extension)
}

/// Verifies a stored extension against the run's binding and the completion record's `rows` as stored.
///
/// # Errors
/// `mssql_native.source_snapshot_extension_invalid` on any disagreement; `source_snapshot_binding_invalid` when
/// `binding` itself is unreadable; the codes of the size cap, the profile and the EOF descriptor for their faults.
pub fn restore(extension: &Json, binding: &str, completed_rows: &Json) -> Result<(RawProfile, EofDescriptor), Refusal> {
    let text = |key: &str| extension.get(key).and_then(Json::as_str);
    let (Some(profile), Some(eof)) = (extension.get("profile"), extension.get("source_eof")) else {
        return Err(invalid());
    };
    let shape = extension.as_object().is_some_and(|fields| fields.len() == 7)
        && extension.get("source_snapshot_profile_sha256").is_some()
        && extension.get("source_eof_descriptor_sha256").is_some()
        && text("kind") == Some(EOF_KIND)
        && text("mode") == Some(MODE)
        && text("source_query_binding") == Some(binding);
    if !shape || SourceBinding::parse(binding)?.version() != Some(1) {
        return Err(invalid());
    }
    let completed_rows = completed_rows.as_int().and_then(num_bigint::BigInt::to_biguint).ok_or_else(invalid)?;
    bounds::check(extension)?;
    let profile = RawProfile::from_document(profile)?;
    let eof = EofDescriptor::from_document(eof)?;
    let agrees = text("source_snapshot_profile_sha256") == Some(profile.sha256().to_string().as_str())
        && text("source_eof_descriptor_sha256") == Some(eof.sha256().to_string().as_str())
        && eof.rows == completed_rows;
    if agrees { Ok((profile, eof)) } else { Err(invalid()) }
}

fn invalid() -> Refusal {
    Refusal::new(
        code::SOURCE_SNAPSHOT_EXTENSION_INVALID,
        "The stored raw snapshot does not agree with its binding, its digests or the completed rows; do not publish, \
         inspect the journal.",
    )
}
