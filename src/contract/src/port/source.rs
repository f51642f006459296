//! The source port: ClickHouse as the runtime needs it (spec raw-snapshot-design "Detailed algorithm", contract.md 2).

use std::future::Future;

use crate::block::Block;
use crate::digest::{Digest, TypedSum};
use crate::error::PortError;
use crate::raw::parts::PartRow;

/// How rows are read (spec, "Manifest/schema").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceMode {
    /// Plain `MergeTree` in `Atomic`: the rows an ordinary SELECT sees.
    QueryVisible,
    /// A replacing engine without `FINAL`: every row version the SELECT sees, with provenance.
    ExactRawRows(ReplicaScope),
}

/// Which replica answers in raw mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaScope {
    /// `single_server`, for `ReplacingMergeTree`.
    SingleServer,
    /// `connected_replica`, for `ReplicatedReplacingMergeTree`.
    ConnectedReplica,
}

/// A half-open UTC window over one column, frozen before anything is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenWindow {
    /// Window column.
    pub column: String,
    /// Inclusive start, microseconds since the Unix epoch.
    pub start_micros: i64,
    /// Exclusive end, microseconds since the Unix epoch.
    pub end_micros: i64,
}

/// One relation to read and the limits of the read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRequest {
    /// Database of the relation.
    pub database: String,
    /// Table name.
    pub table: String,
    /// Mode of reading.
    pub mode: SourceMode,
    /// The window of a `partition_replace`; `None` for a full refresh.
    pub window: Option<FrozenWindow>,
    /// `max_execution_time` of the one SELECT and our own deadline for it, seconds (1..=86,400).
    pub query_seconds: u32,
    /// The route's `max_row_bytes`: sets the block size asked for and the hard cap per decoded block.
    pub max_row_bytes: u64,
}

/// One admitted column in catalog order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumn {
    /// Name.
    pub name: String,
    /// Type text as `system.columns` spells it.
    pub type_text: String,
    /// Select expression of the frozen projection.
    pub expression: String,
    /// Type that the block header must carry for it.
    pub header_type: String,
}

/// The facts of one admission. Two admissions of one session are compared before the SELECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceAdmission {
    /// The request that was admitted.
    pub request: SourceRequest,
    /// `toString(uuid)` of the relation.
    pub relation_uuid: String,
    /// Engine of the relation: its signature ([`crate::raw::engine`]) in raw mode, `MergeTree` in query_visible mode.
    pub engine: String,
    /// `toString(revision())` of the server.
    pub server_revision: String,
    /// Business columns in catalog order.
    pub columns: Vec<SourceColumn>,
    /// The SELECT with named placeholders instead of bounds (its digest is in the raw profile).
    pub query_shape: String,
    /// Strict canonical bytes of `dpone.clickhouse-raw-snapshot-profile.v1`; `None` in query_visible mode.
    pub profile: Option<RawProfileDocument>,
    /// The guard settings this server knows, beside the frozen ones (design.md 3.5).
    pub guards: GuardSettings,
    /// Physical profile at admission; `None` in query_visible mode.
    pub physical_profile_sha256: Option<String>,
    /// Who reads and under which row policies ([`crate::raw::freeze::access_authority_sha256`]); `None` in raw mode, whose
    /// profile has it.
    pub access_sha256: Option<String>,
    /// How the connected replica stood at admission; `None` without one. Diagnostic: it is recorded and never judged.
    pub replica: Option<ReplicaStatus>,
}

/// What a replica says of its own state in `system.replicas`, without asking Keeper.
///
/// None of it changes which rows are read: a replica that is read-only, has lost its Keeper session or is behind gives
/// the rows that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// `is_readonly`: it takes no inserts and fetches nothing.
    pub is_readonly: bool,
    /// `is_session_expired`: it has no session with Keeper.
    pub is_session_expired: bool,
    /// `queue_size`: entries of the log that it has not carried out, as far as it knows.
    pub queue_size: u64,
    /// `absolute_delay`: seconds, as the replica itself estimates them.
    pub absolute_delay_seconds: u64,
}

/// The frozen raw profile as bytes and digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawProfileDocument {
    /// Strict canonical JSON.
    pub canonical: Vec<u8>,
    /// SHA-256 of it, lower-case hex.
    pub sha256: String,
}

/// Guard settings as evidence: a second, versioned list that never enters the profile digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardSettings {
    /// Version of the list that was asked for.
    pub version: &'static str,
    /// Name and value of each guard the server knows, in list order.
    pub sent: Vec<(String, String)>,
    /// Guards of the list that this server does not know.
    pub unknown_to_server: Vec<String>,
}

/// What the proven end of the stream established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEof {
    /// Rows read.
    pub rows: u64,
    /// Decoded bytes of all blocks.
    pub decoded_bytes: u64,
    /// Strict canonical bytes of `dpone.clickhouse-raw-query-snapshot.v1`; `None` in query_visible mode.
    pub descriptor: Option<Vec<u8>>,
    /// Which rows of which parts were read, for evidence; `None` in query_visible mode, which reads no provenance.
    pub coverage: Option<PartCoverage>,
}

/// The parts that a raw read touched. The descriptor binds `sha256`; the rest is detail for evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartCoverage {
    /// Digest of `{part: [rows, sum]}` of the touched parts.
    pub sha256: Digest,
    /// Whether it is proved that no row was read twice.
    pub offset_uniqueness: OffsetUniqueness,
    /// Active parts in the inventory that was taken before the query.
    pub inventory_parts: u64,
    /// Those of them that hold patches of lightweight updates.
    pub patch_parts: u64,
    /// The touched parts in name order.
    pub parts: Vec<PartRead>,
}

/// One touched part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRead {
    /// The part as the inventory has it.
    pub part: PartRow,
    /// Rows read from it.
    pub rows: u64,
    /// Sum of the digests of the rows' `[part, offset]`.
    pub offsets_sum: TypedSum,
}

/// What is known of repeated rows in a stream with offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetUniqueness {
    /// No row of any part came twice.
    Proved,
    /// The offsets were too scattered to keep; each was in range.
    NotProved,
}

impl OffsetUniqueness {
    /// The word in evidence.
    pub fn text(self) -> &'static str {
        match self {
            OffsetUniqueness::Proved => "proved",
            OffsetUniqueness::NotProved => "not_proved",
        }
    }
}

/// One dedicated session of the source. It never reconnects, opens at most one query, and is not used after an error.
pub trait Source: Send + 'static {
    /// Reads the catalog and decides whether the relation is admitted; freezes the raw profile.
    fn admit(&mut self, request: &SourceRequest) -> impl Future<Output = Result<SourceAdmission, PortError>> + Send;

    /// Admits again, compares (`source_snapshot_profile_changed`), and sends the one SELECT under `query_id`
    /// (`dpone-native-` and 32 hex digits).
    fn open(
        &mut self,
        admission: &SourceAdmission,
        query_id: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// The next block with business columns only; `None` only after the server's own end of stream.
    fn next_block(&mut self) -> impl Future<Output = Result<Option<Block>, PortError>> + Send;

    /// Observes the source again after the end of stream, seals the end and disconnects.
    fn finish(self) -> impl Future<Output = Result<SourceEof, PortError>> + Send;

    /// Cancels what runs, waits a bounded time for its end, and closes the socket.
    fn cancel(self) -> impl Future<Output = ()> + Send;
}

/// Opens source sessions. Recovery paths are given no factory at all: after EOF the source cannot be reopened.
pub trait SourceFactory: Send + Sync {
    /// The session type.
    type Session: Source;

    /// Connects over TLS, checks certificate and host name, and exchanges hellos.
    fn connect(&self) -> impl Future<Output = Result<Self::Session, PortError>> + Send;
}
