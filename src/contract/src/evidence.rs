//! The write-once records after a publication: operational evidence and checkpoint (contract.md 8).

use crate::canon::{Json, legacy};
use crate::digest::Digest;
use crate::identity::ImportBackend;

/// The operational evidence of a published run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationalEvidence {
    /// Invocation key.
    pub invocation_id: Digest,
    /// Writer.
    pub import_backend: ImportBackend,
    /// Rows published.
    pub rows: u64,
    /// Digest of the chunk receipts.
    pub receipt_digest: Digest,
    /// Id of the receipt row at the target.
    pub commit_receipt_id: String,
}

impl OperationalEvidence {
    /// The payload in the legacy ascii form. It is written once; other bytes are
    /// `mssql_native.operational_evidence_changed`.
    pub fn payload(&self) -> Vec<u8> {
        legacy(&Json::object([
            ("schema_version", Json::from(1)),
            ("kind", Json::from("dpone.mssql-native-operational-evidence.v1")),
            ("invocation_id", Json::from(self.invocation_id)),
            ("import_backend", Json::from(self.import_backend.text())),
            ("rows", Json::from(self.rows)),
            ("receipt_digest", Json::from(self.receipt_digest)),
            ("commit_receipt_id", Json::from(&self.commit_receipt_id)),
        ]))
    }
}

/// The payload of the checkpoint record. The source keeps no cursor, so there is nothing to advance but the fact.
pub fn checkpoint_payload(commit_receipt_id: &str) -> Vec<u8> {
    legacy(&Json::object([
        ("schema_version", Json::from(1)),
        ("kind", Json::from("dpone.mssql-native-stateless-checkpoint.v1")),
        ("commit_receipt_id", Json::from(commit_receipt_id)),
        ("source_checkpoint", Json::from("stateless")),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payloads_are_closed_and_sorted() {
        let evidence = OperationalEvidence {
            invocation_id: Digest::from_bytes([0xab; 32]),
            import_backend: ImportBackend::SqlClient,
            rows: 3,
            receipt_digest: Digest::from_bytes([0xcd; 32]),
            commit_receipt_id: "mssql-generic-v1:é".into(),
        };
        let (ab, cd) = ("ab".repeat(32), "cd".repeat(32));
        let expected = format!(
            "{{\"commit_receipt_id\":\"mssql-generic-v1:\\u00e9\",\"import_backend\":\"mssql_sqlclient\",\
             \"invocation_id\":\"{ab}\",\"kind\":\"dpone.mssql-native-operational-evidence.v1\",\
             \"receipt_digest\":\"{cd}\",\"rows\":3,\"schema_version\":1}}"
        );
        assert_eq!(String::from_utf8(evidence.payload()), Ok(expected));
        let checkpoint = "{\"commit_receipt_id\":\"r\",\"kind\":\"dpone.mssql-native-stateless-checkpoint.v1\",\
                          \"schema_version\":1,\"source_checkpoint\":\"stateless\"}";
        assert_eq!(String::from_utf8(checkpoint_payload("r")).as_deref(), Ok(checkpoint));
    }
}
