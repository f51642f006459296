//! SHA-256 digests, the typed sum of row hashes and the multiset digest (contract.md 1.1, 3.3, 3.4).

use std::fmt;
use std::str::FromStr;

use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use crate::code;
use crate::error::Refusal;

/// The algorithm id that names the typed sum and the multiset digest in identities and receipts.
pub const DIGEST_ALGORITHM_ID: &str = "mssql-native-sha256-sum-v1";

/// A SHA-256 digest: 32 bytes, written as 64 lower-case hex digits (upper case is refused everywhere).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A text that is not 64 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hex digits")]
pub struct NotADigest;

impl Digest {
    /// SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// A digest from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 0xf)];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        if text.len() != 64 {
            return Err(NotADigest);
        }
        let mut bytes = [0u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = hex_value(pair[0])? << 4 | hex_value(pair[1])?;
        }
        Ok(Digest(bytes))
    }
}

fn hex_value(digit: u8) -> Result<u8, NotADigest> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(NotADigest),
    }
}

/// A sum of row hashes as big-endian 256-bit integers, modulo 2^256: order does not matter, multiplicity does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TypedSum {
    /// Least significant word first.
    words: [u64; 4],
}

impl TypedSum {
    /// The sum of no rows.
    pub const ZERO: TypedSum = TypedSum { words: [0; 4] };

    /// Adds one row hash.
    #[inline]
    pub fn add_hash(&mut self, hash: &[u8; 32]) {
        self.add(&TypedSum::from_be_bytes(hash));
    }

    /// Adds another sum.
    #[inline]
    pub fn add(&mut self, other: &TypedSum) {
        let mut carry = false;
        for (word, addend) in self.words.iter_mut().zip(other.words) {
            let (sum, overflow) = word.overflowing_add(addend);
            let (sum, carried) = sum.overflowing_add(u64::from(carry));
            *word = sum;
            carry = overflow | carried;
        }
    }

    /// The sum whose big-endian bytes these are.
    #[inline]
    pub fn from_be_bytes(bytes: &[u8; 32]) -> Self {
        let mut words = [0u64; 4];
        for (word, chunk) in words.iter_mut().rev().zip(bytes.chunks_exact(8)) {
            let mut be = [0u8; 8];
            be.copy_from_slice(chunk);
            *word = u64::from_be_bytes(be);
        }
        TypedSum { words }
    }

    /// The 32 big-endian bytes.
    pub fn to_be_bytes(self) -> [u8; 32] {
        let mut bytes = [0u8; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.words.iter().rev()) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The sum of a non-negative integer below 2^256, or `None` for any larger one.
    pub fn from_integer(value: &BigUint) -> Option<Self> {
        let digits = value.to_u64_digits();
        let mut words = [0u64; 4];
        if digits.len() > words.len() {
            return None;
        }
        words[..digits.len()].copy_from_slice(&digits);
        Some(TypedSum { words })
    }

    /// `self * 2^32 + word`, modulo 2^256.
    fn shift_add(&mut self, word: u128) {
        let [a, b, c, d] = self.words;
        self.words = [a << 32, b << 32 | a >> 32, c << 32 | b >> 32, d << 32 | c >> 32];
        self.add(&TypedSum { words: [word as u64, (word >> 64) as u64, 0, 0] });
    }
}

impl From<TypedSum> for BigUint {
    fn from(sum: TypedSum) -> Self {
        BigUint::from_bytes_be(&sum.to_be_bytes())
    }
}

/// The sum in decimal.
impl fmt::Display for TypedSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&BigUint::from(*self), f)
    }
}

impl fmt::Debug for TypedSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text that [`native_multiset_digest`] hashes: `["mssql-native-sha256-sum-v1", ROWS, SUM]`, with spaces.
pub fn multiset_preimage(rows: u64, sum: &TypedSum) -> String {
    format!("[\"{DIGEST_ALGORITHM_ID}\", {rows}, {sum}]")
}

/// The digest of a multiset of rows, from its row count and the sum of its row hashes (contract.md 3.3).
pub fn native_multiset_digest(rows: u64, sum: &TypedSum) -> Digest {
    Digest::of(multiset_preimage(rows, sum).as_bytes())
}

/// Folds the eight 32-bit column sums of the target's hash words into one typed sum (contract.md 3.4).
///
/// `limbs[i]` is the sum over `rows` rows of word `i` of the row hash, word 0 being the most significant.
///
/// # Errors
/// `mssql_native.target_digest_limb` when a limb lies outside `0 ..= rows * (2^32 - 1)`: no set of rows gives such a sum.
pub fn fold_limbs(rows: u64, limbs: &[i128; 8]) -> Result<TypedSum, Refusal> {
    let largest = u128::from(rows) * u128::from(u32::MAX);
    let mut total = TypedSum::ZERO;
    for limb in limbs {
        let word = u128::try_from(*limb).ok().filter(|word| *word <= largest).ok_or_else(|| {
            Refusal::new(
                code::TARGET_DIGEST_LIMB,
                "The target's digest query returned an impossible partial sum; keep the stage and inspect it.",
            )
        })?;
        total.shift_add(word);
    }
    Ok(total)
}

/// Splits a sum of hashes into the eight word sums that [`fold_limbs`] takes, for a single row hash.
///
/// The result folds back to the hash; the tests and the in-memory target use it.
pub fn hash_limbs(hash: &[u8; 32]) -> [i128; 8] {
    let mut limbs = [0i128; 8];
    for (limb, word) in limbs.iter_mut().zip(hash.chunks_exact(4)) {
        *limb = word.iter().fold(0, |value, byte| value << 8 | i128::from(*byte));
    }
    limbs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference_sum(hashes: &[[u8; 32]]) -> BigUint {
        let modulus = BigUint::from(1u8) << 256u32;
        hashes.iter().map(|hash| BigUint::from_bytes_be(hash)).sum::<BigUint>() % modulus
    }

    #[test]
    fn a_digest_is_exactly_64_lower_case_digits() {
        let digest = Digest::of(b"");
        let text = digest.to_string();
        assert_eq!(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(text.parse(), Ok(digest));
        for other in [&text[1..], &text.to_uppercase(), &format!("{text}\n"), &format!(" {}", &text[1..])] {
            assert_eq!(other.parse::<Digest>(), Err(NotADigest), "{other:?}");
        }
    }

    #[test]
    fn limbs_outside_the_row_count_are_refused() {
        let largest = i128::from(u32::MAX);
        let at = |limb: i128| fold_limbs(2, &[0, 0, 0, limb, 0, 0, 0, 0]);
        assert!(at(2 * largest).is_ok());
        assert!(at(2 * largest + 1).is_err());
        assert!(at(-1).is_err());
        assert!(fold_limbs(0, &[1, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert_eq!(fold_limbs(0, &[0; 8]), Ok(TypedSum::ZERO));
        assert!(fold_limbs(u64::MAX, &[i128::from(u64::MAX) * largest; 8]).is_ok());
    }

    #[test]
    fn integers_beyond_256_bits_are_no_sum() {
        let largest = (BigUint::from(1u8) << 256u32) - 1u8;
        assert_eq!(TypedSum::from_integer(&largest).map(BigUint::from), Some(largest.clone()));
        assert_eq!(TypedSum::from_integer(&(largest + 1u8)), None);
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_big_integers(hashes in prop::collection::vec(any::<[u8; 32]>(), 0..20)) {
            let mut sum = TypedSum::ZERO;
            hashes.iter().for_each(|hash| sum.add_hash(hash));
            prop_assert_eq!(BigUint::from(sum), reference_sum(&hashes));
        }

        #[test]
        fn limb_sums_fold_to_the_sum(hashes in prop::collection::vec(any::<[u8; 32]>(), 0..20)) {
            let mut limbs = [0i128; 8];
            for hash in &hashes {
                limbs.iter_mut().zip(hash_limbs(hash)).for_each(|(sum, limb)| *sum += limb);
            }
            let folded = fold_limbs(hashes.len() as u64, &limbs).expect("within bounds");
            prop_assert_eq!(BigUint::from(folded), reference_sum(&hashes));
        }
    }
}
