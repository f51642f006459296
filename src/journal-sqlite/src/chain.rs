//! The digest that ties a record to its predecessor.

use contract::digest::Digest;
use sha2::{Digest as _, Sha256};

/// Digest of the empty chain of one journal.
pub(crate) fn genesis(journal_id: &str) -> Digest {
    let mut hash = Sha256::new();
    field(&mut hash, b"native-transfer.journal.v1");
    field(&mut hash, journal_id.as_bytes());
    Digest::from_bytes(hash.finalize().into())
}

/// Digest of a record: every field is framed by its length, so no two records share a preimage.
pub(crate) fn next(previous: &Digest, sequence: u64, run: &str, kind: &str, key: &str, payload: &str) -> Digest {
    let mut hash = Sha256::new();
    hash.update(previous.as_bytes());
    hash.update(sequence.to_be_bytes());
    for text in [run, kind, key, payload] {
        field(&mut hash, text.as_bytes());
    }
    Digest::from_bytes(hash.finalize().into())
}

fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}
