//! Parts and pending mutations: the inventory that provenance is checked against, and its digest (contract.md 2.4).

use std::collections::BTreeMap;

use super::{CATALOG_BYTES_MAX, CATALOG_ROWS_MAX};
use crate::canon::{Json, strict, strict_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;

/// One active part as `system.parts` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRow {
    /// Part name, unique among the active parts of a table.
    pub name: String,
    /// Partition id; patch parts start with `patch-`.
    pub partition_id: String,
    /// Physical rows, lightweight-deleted ones included.
    pub rows: u64,
    /// Data version.
    pub data_version: u64,
    /// Merge level.
    pub level: u64,
    /// 1 when a lightweight delete mask exists.
    pub has_lightweight_delete: u64,
    /// Checksum, 32 hex digits.
    pub hash_of_all_files: String,
    /// Checksum, 32 hex digits.
    pub hash_of_uncompressed_files: String,
    /// Checksum, 32 hex digits.
    pub uncompressed_hash_of_compressed_files: String,
}

impl From<&PartRow> for Json {
    fn from(part: &PartRow) -> Self {
        Json::object([
            ("name", Json::from(&part.name)),
            ("partition_id", Json::from(&part.partition_id)),
            ("rows", Json::from(part.rows)),
            ("data_version", Json::from(part.data_version)),
            ("level", Json::from(part.level)),
            ("has_lightweight_delete", Json::from(part.has_lightweight_delete)),
            ("hash_of_all_files", Json::from(&part.hash_of_all_files)),
            ("hash_of_uncompressed_files", Json::from(&part.hash_of_uncompressed_files)),
            ("uncompressed_hash_of_compressed_files", Json::from(&part.uncompressed_hash_of_compressed_files)),
        ])
    }
}

impl PartRow {
    /// Reads a recorded row; numbers must be non-negative integers (a boolean is none).
    ///
    /// # Errors
    /// `mssql_native.source_provenance_incomplete`.
    pub fn from_document(row: &Json) -> Result<Self, Refusal> {
        let text = |key: &str| row.get(key).and_then(Json::as_str).map(str::to_owned).ok_or_else(incomplete);
        let number = |key: &str| row.get(key).and_then(Json::as_u64).ok_or_else(incomplete);
        if row.as_object().is_none_or(|fields| fields.len() != 9) {
            return Err(incomplete());
        }
        Ok(PartRow {
            name: text("name")?,
            partition_id: text("partition_id")?,
            rows: number("rows")?,
            data_version: number("data_version")?,
            level: number("level")?,
            has_lightweight_delete: number("has_lightweight_delete")?,
            hash_of_all_files: text("hash_of_all_files")?,
            hash_of_uncompressed_files: text("hash_of_uncompressed_files")?,
            uncompressed_hash_of_compressed_files: text("uncompressed_hash_of_compressed_files")?,
        })
    }

    /// Whether the part holds patches of lightweight updates instead of rows.
    pub fn is_patch(&self) -> bool {
        self.partition_id.starts_with("patch-")
    }

    fn is_complete(&self) -> bool {
        let hashes =
            [&self.hash_of_all_files, &self.hash_of_uncompressed_files, &self.uncompressed_hash_of_compressed_files];
        !self.name.is_empty()
            && !self.partition_id.is_empty()
            && self.has_lightweight_delete <= 1
            && hashes.iter().all(|hash| is_nonzero_hash(hash))
    }
}

fn is_nonzero_hash(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.bytes().any(|byte| byte != b'0')
}

fn incomplete() -> Refusal {
    Refusal::new(
        code::SOURCE_PROVENANCE_INCOMPLETE,
        "The source's parts do not carry complete identities and checksums; check system.parts of the table.",
    )
}

/// The active parts of a read, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInventory {
    parts: BTreeMap<String, PartRow>,
}

impl PartInventory {
    /// Admits the rows of one catalog read.
    ///
    /// # Errors
    /// `mssql_native.source_read_profile_unsupported` above 8192 rows or 8 MiB of canonical metadata (never truncated),
    /// `mssql_native.source_provenance_incomplete` for an incomplete or repeated part.
    pub fn new(rows: Vec<PartRow>) -> Result<Self, Refusal> {
        if rows.len() > CATALOG_ROWS_MAX || strict(&Json::array(&rows)).len() > CATALOG_BYTES_MAX {
            return Err(Refusal::new(
                code::SOURCE_READ_PROFILE_UNSUPPORTED,
                "The table has more active parts than one snapshot may bind (8192 rows, 8 MiB of metadata); let it \
                 merge or read a window.",
            ));
        }
        let mut parts = BTreeMap::new();
        for row in rows {
            if !row.is_complete() || parts.insert(row.name.clone(), row).is_some() {
                return Err(incomplete());
            }
        }
        Ok(PartInventory { parts })
    }

    /// The parts in name order.
    pub fn iter(&self) -> impl Iterator<Item = &PartRow> {
        self.parts.values()
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether the table has no active part.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// Refuses mutations that are pending before the read; after it they only change the digest.
///
/// # Errors
/// `mssql_native.source_read_profile_unsupported`.
pub fn refuse_pending_mutations(mutation_ids: &[String]) -> Result<(), Refusal> {
    if mutation_ids.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        code::SOURCE_READ_PROFILE_UNSUPPORTED,
        "The table has unfinished mutations; wait until system.mutations shows them done, then start again.",
    ))
}

/// SHA-256 of the canonical list of `{mutation_id}`.
pub fn mutations_digest(mutation_ids: &[String]) -> Digest {
    strict_digest(&Json::Array(mutation_ids.iter().map(|id| Json::object([("mutation_id", Json::from(id))])).collect()))
}

/// The preimage of the physical profile: `[relation_uuid, replica digest or null, {name: part}, mutations digest]`.
pub fn physical_profile(
    relation_uuid: &str,
    replica_identity: Option<Digest>,
    parts: &PartInventory,
    pending_mutations: &[String],
) -> Json {
    let parts = parts.parts.iter().map(|(name, part)| (name.clone(), Json::from(part))).collect();
    Json::Array(vec![
        Json::from(relation_uuid),
        Json::from(replica_identity),
        Json::Object(parts),
        Json::from(mutations_digest(pending_mutations)),
    ])
}
