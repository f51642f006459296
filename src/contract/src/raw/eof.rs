//! The EOF descriptor: what the proven end of the one SELECT established (contract.md 2.2).

use num_bigint::BigUint;

use crate::canon::{Json, strict_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;

/// Kind of the EOF descriptor and of the extension that carries it.
pub const EOF_KIND: &str = "dpone.clickhouse-raw-query-snapshot.v1";

/// `dpone.clickhouse-raw-query-snapshot.v1`, seven keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EofDescriptor {
    /// SHA-256 of the UTF-8 query id.
    pub vendor_query_id_sha256: Digest,
    /// Rows returned.
    pub rows: BigUint,
    /// Digest of the touched-part coverage.
    pub touched_part_coverage_sha256: Digest,
    /// Physical profile before the query.
    pub before_physical_profile_sha256: Digest,
    /// Physical profile after the end of the stream.
    pub after_physical_profile_sha256: Digest,
    /// Whether both physical profiles are equal. Not a claim that nothing changed in between.
    pub endpoint_authority_agreement: bool,
}

impl EofDescriptor {
    /// The descriptor of a finished stream.
    pub fn seal(query_id: &str, rows: u64, coverage: Digest, before: Digest, after: Digest) -> Self {
        EofDescriptor {
            vendor_query_id_sha256: Digest::of(query_id.as_bytes()),
            rows: rows.into(),
            touched_part_coverage_sha256: coverage,
            before_physical_profile_sha256: before,
            after_physical_profile_sha256: after,
            endpoint_authority_agreement: before == after,
        }
    }

    /// The document.
    pub fn document(&self) -> Json {
        Json::object([
            ("kind", Json::from(EOF_KIND)),
            ("vendor_query_id_sha256", Json::from(self.vendor_query_id_sha256)),
            ("rows", Json::from(self.rows.clone())),
            ("touched_part_coverage_sha256", Json::from(self.touched_part_coverage_sha256)),
            ("before_physical_profile_sha256", Json::from(self.before_physical_profile_sha256)),
            ("after_physical_profile_sha256", Json::from(self.after_physical_profile_sha256)),
            ("endpoint_authority_agreement", Json::from(self.endpoint_authority_agreement)),
        ])
    }

    /// Reads a stored document: exactly the seven keys, no coercion.
    ///
    /// # Errors
    /// `mssql_native.source_snapshot_eof_invalid`.
    pub fn from_document(document: &Json) -> Result<Self, Refusal> {
        let digest = |key: &str| document.get(key)?.as_str()?.parse().ok();
        let read = || -> Option<EofDescriptor> {
            if document.as_object()?.len() != 7 || document.get("kind")?.as_str()? != EOF_KIND {
                return None;
            }
            Some(EofDescriptor {
                vendor_query_id_sha256: digest("vendor_query_id_sha256")?,
                rows: document.get("rows")?.as_int()?.to_biguint()?,
                touched_part_coverage_sha256: digest("touched_part_coverage_sha256")?,
                before_physical_profile_sha256: digest("before_physical_profile_sha256")?,
                after_physical_profile_sha256: digest("after_physical_profile_sha256")?,
                endpoint_authority_agreement: document.get("endpoint_authority_agreement")?.as_bool()?,
            })
        };
        read().ok_or_else(|| {
            Refusal::new(
                code::SOURCE_SNAPSHOT_EOF_INVALID,
                "A stored EOF descriptor is not as it was sealed; do not publish, inspect the journal.",
            )
        })
    }

    /// SHA-256 of the canonical document.
    pub fn sha256(&self) -> Digest {
        strict_digest(&self.document())
    }
}
