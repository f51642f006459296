//! What a finished read says about its source: durable with the sealed end, sanitized, never an authority (spec
//! raw-snapshot-design "Observe" and "Identity and artifacts").
//!
//! The completion record holds the digests that recovery checks. This document holds what a person needs to understand
//! them: engine, scope, settings, identities, query id, coverage. Parts are named by the digest of their name, because a
//! part's name starts with its partition id and that may be a value of the data
//! (`SELECT lower(hex(SHA256(name))) FROM system.parts` finds them again).

use crate::canon::{Json, decode_object, strict_digest};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::port::source::{PartCoverage, PartRead, ReplicaStatus, SourceAdmission, SourceEof};
use crate::raw::profile::RawProfile;
use crate::raw::selector::mode_texts;
use crate::raw::settings::profile_settings;

/// Kind of the document.
pub const SOURCE_EVIDENCE_KIND: &str = "native-transfer.source-evidence.v1";

/// Touched parts in one page. A page of so many, and a document that holds one page, stay far below
/// [`crate::port::journal::RECORD_BYTES_MAX`].
pub const PARTS_PER_PAGE: usize = 400;

/// The document of a finished read. The details of its parts stand in [`pages`]; where one page holds them all they are
/// repeated here.
///
/// # Errors
/// `mssql_native.source_snapshot_profile_invalid` for a profile that is not of its form.
pub fn document(admission: &SourceAdmission, query_id: &str, eof: &SourceEof) -> Result<Json, Refusal> {
    let (mode, scope) = mode_texts(admission.request.mode);
    let profile = match &admission.profile {
        Some(profile) => Some(RawProfile::from_document(&decoded(&profile.canonical))?),
        None => None,
    };
    let settings = profile_settings(admission.request.query_seconds.into());
    let settings = settings.iter().map(|(name, value)| Json::Array(vec![Json::from(name), Json::from(value)]));
    let schema = admission.columns.iter().map(|column| Json::array([&column.name, &column.type_text]));
    Ok(Json::object([
        ("kind", Json::from(SOURCE_EVIDENCE_KIND)),
        ("mode", Json::from(mode)),
        ("replica_scope", Json::from(scope)),
        ("engine", Json::from(&admission.engine)),
        // The only database engine that either mode admits.
        ("database_engine", Json::from("Atomic")),
        ("server_revision", Json::from(&admission.server_revision)),
        ("relation_uuid", Json::from(&admission.relation_uuid)),
        ("schema_sha256", Json::from(strict_digest(&Json::Array(schema.collect())))),
        ("query_shape_sha256", Json::from(Digest::of(admission.query_shape.as_bytes()))),
        ("query_id", Json::from(query_id)),
        ("authority", authority(admission, profile.as_ref())),
        ("effective_settings", Json::Array(settings.collect())),
        ("guard_settings", guards(admission)),
        ("rows", Json::from(eof.rows)),
        ("source_eof", eof.descriptor.as_deref().map_or(Json::Null, decoded)),
        ("source_eof_descriptor_sha256", Json::from(eof.descriptor.as_deref().map(Digest::of))),
        ("replica_status", admission.replica.map_or(Json::Null, replica_status)),
        ("part_coverage", eof.coverage.as_ref().map_or(Json::Null, coverage)),
        ("ddl_exclusion", Json::from("observed")),
    ]))
}

/// The touched parts in name order, page by page; none in query_visible mode.
pub fn pages(eof: &SourceEof) -> Vec<Json> {
    let parts = eof.coverage.as_ref().map_or(&[][..], |coverage| &coverage.parts);
    parts.chunks(PARTS_PER_PAGE).map(page).collect()
}

/// Whose authority the read had: what three acquisitions found equal.
fn authority(admission: &SourceAdmission, profile: Option<&RawProfile>) -> Json {
    match profile {
        // The default mode binds user, roles, policies and filters in one digest.
        None => Json::object([("access_sha256", Json::from(admission.access_sha256.as_deref()))]),
        Some(profile) => Json::object([
            ("source_snapshot_profile_sha256", Json::from(profile.sha256())),
            ("endpoint_authority_sha256", Json::from(profile.endpoint_authority_sha256)),
            ("replica_identity_sha256", Json::from(profile.replica_identity_sha256)),
            ("principal_authority_sha256", Json::from(profile.principal_authority_sha256)),
            ("row_policy_sha256", Json::from(profile.row_policy_sha256)),
            ("policy_filtered", Json::from(profile.policy_filtered)),
        ]),
    }
}

fn replica_status(status: ReplicaStatus) -> Json {
    Json::object([
        ("is_readonly", Json::from(status.is_readonly)),
        ("is_session_expired", Json::from(status.is_session_expired)),
        ("queue_size", Json::from(status.queue_size)),
        ("absolute_delay_seconds", Json::from(status.absolute_delay_seconds)),
    ])
}

/// The guard settings of a read: what was sent beside the frozen ones, and what this server does not know.
pub fn guards(admission: &SourceAdmission) -> Json {
    let sent = admission.guards.sent.iter().map(|(name, value)| Json::array([name.as_str(), value.as_str()]));
    Json::object([
        ("version", Json::from(admission.guards.version)),
        ("sent", Json::Array(sent.collect())),
        ("unknown_to_server", Json::array(admission.guards.unknown_to_server.iter().map(String::as_str))),
    ])
}

fn coverage(coverage: &PartCoverage) -> Json {
    let inline = (coverage.parts.len() <= PARTS_PER_PAGE).then(|| page(&coverage.parts));
    Json::object([
        ("sha256", Json::from(coverage.sha256)),
        ("offset_uniqueness", Json::from(coverage.offset_uniqueness.text())),
        ("inventory_parts", Json::from(coverage.inventory_parts)),
        ("patch_parts", Json::from(coverage.patch_parts)),
        ("touched_parts", Json::from(coverage.parts.len() as u64)),
        ("parts_sha256", Json::from(strict_digest(&page(&coverage.parts)))),
        ("parts", inline.unwrap_or(Json::Null)),
    ])
}

fn page(parts: &[PartRead]) -> Json {
    Json::Array(parts.iter().map(part).collect())
}

fn part(read: &PartRead) -> Json {
    Json::object([
        ("part_sha256", Json::from(Digest::of(read.part.name.as_bytes()))),
        ("rows", Json::from(read.rows)),
        ("offsets_sum", Json::from(read.offsets_sum)),
        ("physical_rows", Json::from(read.part.rows)),
        ("data_version", Json::from(read.part.data_version)),
        ("level", Json::from(read.part.level)),
        ("has_lightweight_delete", Json::from(read.part.has_lightweight_delete)),
        ("hash_of_all_files", Json::from(&read.part.hash_of_all_files)),
    ])
}

/// Bytes that were made canonical here. Anything else reads as null, which no profile and no descriptor is.
fn decoded(canonical: &[u8]) -> Json {
    decode_object(canonical).map_or(Json::Null, Json::Object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::TypedSum;
    use crate::port::journal::RECORD_BYTES_MAX;
    use crate::port::source::{GuardSettings, OffsetUniqueness, SourceMode, SourceRequest};
    use crate::raw::parts::PartRow;

    fn admission(mode: SourceMode) -> SourceAdmission {
        SourceAdmission {
            request: SourceRequest {
                database: "secret_database".into(),
                table: "secret_table".into(),
                mode,
                window: None,
                query_seconds: 600,
                max_row_bytes: 1 << 20,
            },
            relation_uuid: "6f1b6c1e-0000-4000-8000-000000000001".into(),
            engine: "MergeTree".into(),
            server_revision: "54513".into(),
            columns: Vec::new(),
            query_shape: "SELECT".into(),
            profile: None,
            guards: GuardSettings {
                version: "v",
                sent: vec![("final".into(), "0".into())],
                unknown_to_server: Vec::new(),
            },
            physical_profile_sha256: None,
            access_sha256: Some("a".repeat(64)),
            replica: None,
        }
    }

    fn eof(parts: usize) -> SourceEof {
        let read = |index: usize| PartRead {
            part: PartRow {
                name: format!("secret-{index}_1_1_0"),
                partition_id: format!("secret-{index}"),
                rows: u64::MAX,
                data_version: u64::MAX,
                level: u64::MAX,
                has_lightweight_delete: 1,
                hash_of_all_files: "f".repeat(32),
                hash_of_uncompressed_files: "f".repeat(32),
                uncompressed_hash_of_compressed_files: "f".repeat(32),
            },
            rows: u64::MAX,
            offsets_sum: TypedSum::from_be_bytes(&[0xff; 32]),
        };
        let coverage = PartCoverage {
            sha256: Digest::of(b"coverage"),
            offset_uniqueness: OffsetUniqueness::NotProved,
            inventory_parts: parts as u64,
            patch_parts: 0,
            parts: (0..parts).map(read).collect(),
        };
        SourceEof { rows: 7, decoded_bytes: 7, descriptor: None, coverage: Some(coverage) }
    }

    fn text(json: &Json) -> String {
        String::from_utf8(crate::canon::strict(json)).expect("canonical JSON is UTF-8")
    }

    #[test]
    fn every_page_and_the_document_fit_in_a_record() {
        for (parts, pages_expected) in [(0, 0), (1, 1), (PARTS_PER_PAGE, 1), (PARTS_PER_PAGE + 1, 2), (8192, 21)] {
            let eof = eof(parts);
            let document = document(&admission(SourceMode::QueryVisible), "dpone-native-1", &eof).expect("a document");
            let pages = pages(&eof);
            assert_eq!(pages.len(), pages_expected);
            for written in pages.iter().chain([&document]) {
                // The operational evidence holds the document and little else.
                assert!(text(written).len() < RECORD_BYTES_MAX - 32 * 1024, "{parts} parts");
            }
            let coverage = document.get("part_coverage").expect("coverage");
            assert_eq!(coverage.get("touched_parts").and_then(Json::as_u64), Some(parts as u64));
            let inline = coverage.get("parts").expect("parts").as_array().map(<[Json]>::len);
            assert_eq!(inline, (parts <= PARTS_PER_PAGE).then_some(parts), "all parts or none");
            let all: Vec<Json> = pages.iter().flat_map(|page| page.as_array().expect("a list").to_vec()).collect();
            let digest = strict_digest(&Json::Array(all)).to_string();
            assert_eq!(coverage.get("parts_sha256").and_then(Json::as_str), Some(digest.as_str()));
        }
    }

    #[test]
    fn nothing_names_relation_partition_or_part() {
        let eof = eof(3);
        let document = document(&admission(SourceMode::QueryVisible), "dpone-native-1", &eof).expect("a document");
        for written in pages(&eof).iter().chain([&document]) {
            assert!(!text(written).contains("secret"), "{written:?}");
        }
        assert!(text(&document).contains(&Digest::of(b"secret-2_1_1_0").to_string()));
    }

    #[test]
    fn the_default_mode_says_that_it_reads_no_provenance() {
        let eof = SourceEof { coverage: None, ..eof(0) };
        let document = document(&admission(SourceMode::QueryVisible), "dpone-native-1", &eof).expect("a document");
        assert_eq!(document.get("part_coverage"), Some(&Json::Null));
        assert_eq!(document.get("source_eof"), Some(&Json::Null));
        assert_eq!(document.get("mode").and_then(Json::as_str), Some("query_visible"));
        assert_eq!(document.get("ddl_exclusion").and_then(Json::as_str), Some("observed"));
        assert!(pages(&eof).is_empty());
    }
}
