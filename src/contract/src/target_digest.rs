//! Reading the one row of the target's digest query (contract.md 3.4).

use crate::code;
use crate::digest::{Digest, TypedSum, fold_limbs, native_multiset_digest};
use crate::encode::Decimal;
use crate::error::Refusal;
use crate::port::target::DigestObservation;

/// The most rows that a digest query can be asked to expect.
const EXPECTED_ROWS_MAX: u64 = i64::MAX as u64 - 1;

/// What the target says its rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetDigest {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the row hashes.
    pub sum: TypedSum,
}

impl TargetDigest {
    /// The multiset digest.
    pub fn digest(&self) -> Digest {
        native_multiset_digest(self.rows, &self.sum)
    }
}

/// The row as it came: any of its values may be NULL or of another shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateRow<'a> {
    /// Number of rows.
    pub rows: Option<i64>,
    /// Whether there are more rows than expected.
    pub overflow: Option<bool>,
    /// Word sums as decimal texts, most significant word first.
    pub limbs: Vec<Option<&'a str>>,
}

impl AggregateRow<'_> {
    /// Checks the row against the number of rows expected and folds the word sums. Fewer rows than expected is a valid
    /// answer: the caller compares digests.
    ///
    /// # Errors
    /// `mssql_native.target_digest_expected_rows`, `..._row_shape` (not eight word sums), `..._row_values` (a count that
    /// is NULL, negative or beyond what TOP allows), `..._count_overflow`, `..._limb` (NULL, fractional or impossible).
    pub fn decode(&self, expected_rows: u64) -> Result<TargetDigest, Refusal> {
        if expected_rows > EXPECTED_ROWS_MAX {
            return Err(Refusal::new(code::TARGET_DIGEST_EXPECTED_ROWS, "the expected number of rows is out of range"));
        }
        let limbs: &[Option<&str>; 8] = self.limbs.as_slice().try_into().map_err(|_| {
            Refusal::new(code::TARGET_DIGEST_ROW_SHAPE, "the target's digest query returned another number of columns")
        })?;
        let rows = self.rows.and_then(|rows| u64::try_from(rows).ok()).filter(|rows| *rows <= expected_rows + 1);
        let (Some(rows), Some(overflow)) = (rows, self.overflow) else {
            return Err(Refusal::new(
                code::TARGET_DIGEST_ROW_VALUES,
                "the target's digest query returned a count that it cannot have counted",
            ));
        };
        if overflow || rows > expected_rows {
            return Err(Refusal::new(
                code::TARGET_DIGEST_COUNT_OVERFLOW,
                "the target table holds more rows than were written; another session wrote into it",
            ));
        }
        let mut words = [0i128; 8];
        for (word, limb) in words.iter_mut().zip(limbs) {
            let integer = limb.and_then(Decimal::parse).and_then(|limb| limb.coefficient(38, 0));
            *word = integer.ok_or_else(|| {
                Refusal::new(
                    code::TARGET_DIGEST_LIMB,
                    "the target's digest query returned a partial sum that is no number",
                )
            })?;
        }
        Ok(TargetDigest { rows, sum: fold_limbs(rows, &words)? })
    }
}

/// Decodes what the target port observed.
///
/// # Errors
/// Those of [`AggregateRow::decode`].
pub fn decode(observation: &DigestObservation, expected_rows: u64) -> Result<TargetDigest, Refusal> {
    let limbs = observation.limbs.iter().map(|limb| Some(limb.as_str())).collect();
    AggregateRow { rows: Some(observation.row_count), overflow: Some(observation.overflow), limbs }
        .decode(expected_rows)
}
