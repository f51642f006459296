//! Chunk receipts and the completion record that binds them at EOF (contract.md 5.3, 8).

use crate::canon::{Json, Object, legacy, legacy_digest};
use crate::code;
use crate::digest::{Digest, TypedSum};
use crate::error::Refusal;
use crate::names::order_key;

/// The receipt of one verified chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkReceipt {
    /// Chunk ordinal.
    pub ordinal: u64,
    /// Attempt that wrote it.
    pub attempt_id: String,
    /// Bracketed three-part name of the stage.
    pub stage_id: String,
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub encoded_bytes: u64,
    /// SHA-256 of the file.
    pub file_sha256: Digest,
    /// Multiset digest of the rows.
    pub typed_digest: Digest,
    /// Evidence of the consumed part; see [`consumed_part_evidence`].
    pub consumed_part_evidence: Object,
}

/// The evidence that a receipt carries.
pub fn consumed_part_evidence(
    ordinal: u64,
    sum: &TypedSum,
    object_id: i32,
    plan_binding: &str,
    wire_contract: Digest,
) -> Object {
    let members = [
        ("order_key", Json::from(order_key(ordinal))),
        ("native_typed_sum", Json::from(*sum)),
        ("native_object_id", Json::from(object_id)),
        ("native_plan_binding", Json::from(plan_binding)),
        ("wire_contract_sha256", Json::from(wire_contract)),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

impl ChunkReceipt {
    /// The document of eight keys.
    pub fn document(&self) -> Json {
        Json::object([
            ("ordinal", Json::from(self.ordinal)),
            ("attempt_id", Json::from(&self.attempt_id)),
            ("stage_id", Json::from(&self.stage_id)),
            ("rows", Json::from(self.rows)),
            ("encoded_bytes", Json::from(self.encoded_bytes)),
            ("file_sha256", Json::from(self.file_sha256)),
            ("typed_digest", Json::from(self.typed_digest)),
            ("consumed_part_evidence", Json::Object(self.consumed_part_evidence.clone())),
        ])
    }

    /// Reads a stored receipt.
    ///
    /// # Errors
    /// `mssql_native.invalid_receipt`.
    pub fn from_document(document: &Json) -> Result<Self, Refusal> {
        let text = |key: &str| document.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let number = |key: &str| document.get(key)?.as_u64();
        let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
        let read = || {
            (document.as_object()?.len() == 8).then_some(())?;
            Some(ChunkReceipt {
                ordinal: number("ordinal")?,
                attempt_id: text("attempt_id")?,
                stage_id: text("stage_id")?,
                rows: number("rows")?,
                encoded_bytes: number("encoded_bytes")?,
                file_sha256: digest("file_sha256")?,
                typed_digest: digest("typed_digest")?,
                consumed_part_evidence: document.get("consumed_part_evidence")?.as_object()?.clone(),
            })
        };
        read().ok_or_else(|| {
            Refusal::new(
                code::INVALID_RECEIPT,
                "A stored chunk receipt is not of its closed form; it was changed or written by another version.",
            )
        })
    }

    /// The typed sum in the evidence.
    pub fn typed_sum(&self) -> Option<TypedSum> {
        let sum = self.consumed_part_evidence.get("native_typed_sum")?.as_int()?;
        TypedSum::from_integer(&sum.to_biguint()?)
    }
}

/// What the completion record binds: the receipts in order and the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Rows of all receipts.
    pub rows: u64,
    /// Legacy ascii digest of the receipt list.
    pub receipt_digest: Digest,
    /// Legacy ascii digest of the metadata.
    pub metadata_digest: Digest,
}

impl Completion {
    /// The record of `{rows, receipt_digest, metadata_digest}`.
    pub fn document(&self) -> Json {
        Json::object([
            ("rows", Json::from(self.rows)),
            ("receipt_digest", Json::from(self.receipt_digest)),
            ("metadata_digest", Json::from(self.metadata_digest)),
        ])
    }
}

/// The legacy ascii bytes of the receipt list.
pub fn receipts_preimage(receipts: &[ChunkReceipt]) -> Vec<u8> {
    legacy(&Json::Array(receipts.iter().map(ChunkReceipt::document).collect()))
}

/// Seals receipts and metadata.
///
/// # Errors
/// `mssql_native.noncontiguous_receipts` when the ordinals are not 0, 1, 2, ...; `mssql_native.shared_stage_identity`
/// when two receipts name one stage; `mssql_native.total_encoded_bytes_exceeded` when the rows do not fit a number.
pub fn seal(receipts: &[ChunkReceipt], metadata: &Json) -> Result<Completion, Refusal> {
    let contiguous = receipts.iter().zip(0u64..).all(|(receipt, ordinal)| receipt.ordinal == ordinal);
    if !contiguous {
        return Err(Refusal::new(
            code::NONCONTIGUOUS_RECEIPTS,
            "The chunks of the run are not all verified; it cannot be completed. Inspect it.",
        ));
    }
    let mut stages: Vec<&str> = receipts.iter().map(|receipt| receipt.stage_id.as_str()).collect();
    stages.sort_unstable();
    if stages.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::new(
            code::SHARED_STAGE_IDENTITY,
            "Two chunks claim the same stage; nothing may be published from it. Inspect the run.",
        ));
    }
    let rows = receipts.iter().try_fold(0u64, |rows, receipt| rows.checked_add(receipt.rows));
    let rows = rows.ok_or_else(|| {
        Refusal::new(code::TOTAL_ENCODED_BYTES_EXCEEDED, "The receipts claim more rows than a run can have.")
    })?;
    Ok(Completion {
        rows,
        receipt_digest: Digest::of(&receipts_preimage(receipts)),
        metadata_digest: legacy_digest(metadata),
    })
}

/// Seals again what is stored and compares.
///
/// # Errors
/// `mssql_native.stage_complete_changed` on any difference; otherwise as [`seal`].
pub fn verify(stored: &Completion, receipts: &[ChunkReceipt], metadata: &Json) -> Result<(), Refusal> {
    if seal(receipts, metadata)? == *stored {
        return Ok(());
    }
    Err(Refusal::new(
        code::STAGE_COMPLETE_CHANGED,
        "The completion record does not match its receipts or metadata; do not publish, inspect the journal.",
    ))
}

/// Total rows and typed sum of all receipts: the workload that preparation must reproduce.
pub fn workload(receipts: &[ChunkReceipt]) -> Option<(u64, TypedSum)> {
    receipts.iter().try_fold((0u64, TypedSum::ZERO), |(rows, mut sum), receipt| {
        sum.add(&receipt.typed_sum()?);
        Some((rows.checked_add(receipt.rows)?, sum))
    })
}
