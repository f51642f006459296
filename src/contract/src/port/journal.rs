//! The durable journal: an append-only, hash-chained log of records, the truth about a run (design.md 3.1, 3.15).

use crate::digest::Digest;
use crate::error::PortError;

/// Longest payload of one record, bytes. Checked when a record is written, so that whatever was written can be read.
pub const RECORD_BYTES_MAX: usize = 256 * 1024;

/// Most records of one journal. A run of 1,024 chunks writes about ten records per chunk.
pub const RECORDS_MAX: u64 = 1_000_000;

/// Identity of an open journal; random at creation, never derived from a path, so that a moved volume still recovers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalHeader {
    /// 32 lower-case hex characters, drawn when the file was created.
    pub journal_id: String,
    /// Rises with each writable open, by more than one where a floor was given.
    pub epoch: u64,
    /// 64 hex characters drawn by this opener; together with `epoch` the run fence at the target.
    pub opener_nonce: String,
}

/// A record to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// SHA-256 hex of the run id, or [`SHARED`] for records that belong to a target rather than to one run.
    pub run: String,
    /// What the payload is, for example `transfer_event`.
    pub kind: &'static str,
    /// Key inside `(run, kind)`; with `unique` at most one record may carry it.
    pub key: String,
    /// Whether a second record with the same `(run, kind, key)` is refused. The same payload again is accepted and
    /// writes nothing (`Appended::Adopted`); another payload is `mssql_native.invalid_journal`.
    pub unique: bool,
    /// Strict canonical JSON.
    pub payload: String,
}

/// Value of [`NewRecord::run`] for records shared by all runs of a journal, such as local custody.
pub const SHARED: &str = "-";

/// A record as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Position in the chain, from 1.
    pub sequence: u64,
    /// See [`NewRecord::run`].
    pub run: String,
    /// See [`NewRecord::kind`].
    pub kind: String,
    /// See [`NewRecord::key`].
    pub key: String,
    /// Strict canonical JSON.
    pub payload: String,
    /// Digest over the previous record's digest and this record's fields.
    pub digest: Digest,
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// Every record was written and is durable.
    Written,
    /// Every record was there already with the same bytes.
    Adopted,
}

/// The journal as the runtime sees it. Calls block: a durable append is an fsync.
pub trait Journal: Send {
    /// The open journal's identity.
    fn header(&self) -> &JournalHeader;

    /// Appends records in one transaction; when it returns they are durable. The epoch is re-checked in the same
    /// transaction: a later opener makes this one fail with `native_transfer.journal_fenced`, nothing written.
    fn append(&mut self, records: &[NewRecord]) -> Result<Appended, PortError>;

    /// All records of one run in order, with the chain verified.
    fn records(&self, run: &str) -> Result<Vec<Record>, PortError>;

    /// The latest record of a kind and key among the shared ones.
    fn latest_shared(&self, kind: &str, key: &str) -> Result<Option<Record>, PortError>;

    /// The `run` values that have records, in order of first appearance.
    fn runs(&self) -> Result<Vec<String>, PortError>;
}
