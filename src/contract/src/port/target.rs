//! The target port: SQL Server as the runtime needs it (contract.md 5 to 7, design.md 3.6 to 3.9, 3.14, 3.23 to 3.26).
//!
//! The order of calls is the runtime's; the meaning of each observation is decided in `contract`. Every statement that
//! creates, alters or drops something compares the run fence in the same batch, so that a copied journal cannot act.

use std::future::Future;
use std::io::Read;

use crate::digest::Digest;
use crate::error::PortError;

/// A table of the target database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// Schema, in catalog spelling once it was observed.
    pub schema: String,
    /// Table, in catalog spelling once it was observed.
    pub table: String,
}

/// What to observe at admission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRequest {
    /// The table that is published to.
    pub table: TableName,
    /// Schema of the transaction-state catalog and of our own two tables.
    pub state_schema: String,
    /// Schema in which stages and the prepared table are made.
    pub staging_schema: String,
    /// Whether publication truncates the table, which needs ALTER on it.
    pub truncates: bool,
}

/// A column of the existing target table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetColumn {
    /// Name in catalog spelling.
    pub name: String,
    /// Type in the catalog's spelling of contract.md 3.2, for example `float(53)` or `datetime2(6)`.
    pub type_text: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Collation of a character column.
    pub collation: Option<String>,
    /// Identity, computed, rowversion, generated always or similar: a column that a load cannot write.
    pub not_writable: Option<&'static str>,
}

/// The existing target table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetTable {
    /// Name in catalog spelling.
    pub name: TableName,
    /// `OBJECT_ID`.
    pub object_id: i32,
    /// Columns in ordinal order.
    pub columns: Vec<TargetColumn>,
    /// Digest of columns, indexes, constraints and triggers: the catalog fingerprint compared around publication.
    pub fingerprint: Digest,
}

/// Everything observed at admission. A missing or denied observation is an error of the call, never an empty value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetObservation {
    /// Server, machine, instance and physical names, case-folded to lower case, in this order.
    pub server_names: [String; 4],
    /// Database name.
    pub database: String,
    /// Token of the database's creation (create date and recovery fork or family identifiers), text.
    pub database_create_token: String,
    /// `SERVERPROPERTY('ProductVersion')`.
    pub product_version: String,
    /// Objects of the state catalog that are missing or not as printed by `target-catalog print`.
    pub catalog_faults: Vec<String>,
    /// Rights that the principal lacks, as a DBA would grant them (`ALTER ON SCHEMA::dpone` and so on).
    pub missing_grants: Vec<String>,
    /// `binding_id` of the registry row of the table, if there is one.
    pub registry_binding: Option<Digest>,
    /// The target table, if it exists and is visible.
    pub table: Option<TargetTable>,
}

/// Space as observed (contract.md 5.5). Observations, not reservations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityObservation {
    /// Reserved bytes of all tables named `dpone[_]native[_]%` in the database.
    pub stage_allocated_bytes: u64,
    /// Number of those tables.
    pub stage_tables: u64,
    /// Bytes that each data volume can still give: free space inside files plus growth that the volume allows.
    pub data_volume_headroom_bytes: Vec<u64>,
    /// Bytes that the log can still give.
    pub log_headroom_bytes: u64,
}

/// Compared and swapped on each writable open of the journal and compared in every batch that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFence {
    /// Operation whose fence this is.
    pub operation_key: Digest,
    /// Journal epoch of the opener.
    pub epoch: u64,
    /// Nonce of the opener, hex of 32 bytes.
    pub opener_nonce: Digest,
}

/// Identities of one attempt at the target, all made by `contract` (contract.md 7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationIdentity {
    /// Physical target identity (32 bytes).
    pub target_identity: Digest,
    /// `binding_id` for the registry row, used only if the table has none yet (design.md 3.23).
    pub binding_id: Digest,
    /// Digest of the invocation.
    pub invocation_digest: Digest,
    /// Attempt key.
    pub attempt_key: Digest,
    /// Scope hash.
    pub scope_hash: Digest,
    /// Operation key.
    pub operation_key: Digest,
    /// Owner digest.
    pub owner_digest: Digest,
    /// Route fingerprint.
    pub route_fingerprint: Digest,
    /// Load id (26 characters, design.md 3.22).
    pub load_id: String,
    /// Strategy text, `full_refresh` or `partition_replace`.
    pub strategy: String,
}

/// One SERIALIZABLE batch before any source row: registry row, fence, attempt, operation, custody, run fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The table and schemas.
    pub request: TargetRequest,
    /// The attempt's identities.
    pub operation: OperationIdentity,
    /// Holder of custody: the invocation key of identity v2.
    pub holder: Digest,
    /// The opener's fence.
    pub fence: RunFence,
    /// Lease of the operation, seconds.
    pub lease_seconds: u32,
}

/// Result of [`Target::claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// Custody and operation are ours.
    Claimed {
        /// Generation of the attempt in the target fence.
        generation: i64,
        /// Epoch of the operation row.
        operation_epoch: i64,
        /// Epoch of the custody row.
        custody_epoch: i64,
        /// Server clock at the claim, RFC 3339 with `Z`.
        claimed_at: String,
    },
    /// Another invocation holds custody of this target; nothing was changed.
    Held {
        /// The holder's invocation key.
        holder: Digest,
    },
    /// Another opener of the same journal, or a copy of it, has a later fence; nothing was changed.
    Fenced,
}

/// A stage or prepared table as it is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageDefinition {
    /// Schema and name.
    pub name: TableName,
    /// Value of the extended property `dpone_native_owner`, hex of this digest.
    pub owner_binding: Digest,
    /// Columns in order.
    pub columns: Vec<StageColumn>,
}

/// A column of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageColumn {
    /// Name.
    pub name: String,
    /// SQL type text, for example `nvarchar(max)`.
    pub type_text: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
}

/// A stage that exists: its definition and the object id seen after creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageRef {
    /// The definition it was created from.
    pub definition: StageDefinition,
    /// `OBJECT_ID` recorded at creation.
    pub object_id: i32,
}

/// The right to write one chunk: the session-owned applock that the writing session holds while it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterGrant {
    /// Applock resource name (contract.md 1.2), not secret.
    pub lock_resource: String,
    /// Program name of the session, so that a person finds it in `sys.dm_exec_sessions`.
    pub application_name: String,
    /// How long to wait for the lock, milliseconds.
    pub lock_timeout_ms: u32,
    /// The opener's fence.
    pub fence: RunFence,
}

/// A sealed chunk as the writer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkFacts {
    /// Ordinal, from 0, contiguous.
    pub ordinal: u64,
    /// Rows in the file.
    pub rows: u64,
    /// Bytes of the file.
    pub encoded_bytes: u64,
    /// SHA-256 of the file.
    pub file_sha256: Digest,
}

/// What the writer knows at the end of its bulk load (contract.md 5.1 vocabulary).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterTerminal {
    /// Rows that went into the bulk stream.
    pub rows_sent: u64,
    /// `COUNT_BIG(*)` of the stage inside the importing transaction, before COMMIT.
    pub rows_counted: u64,
}

/// One aggregate observation of a stage or prepared table: the fields of contract.md 3.4 before folding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestObservation {
    /// `COUNT_BIG(*)` of the hashed rows, capped at expected + 1.
    pub row_count: i64,
    /// Whether there were more rows than expected.
    pub overflow: bool,
    /// Eight limb sums as decimal texts, word 0 first.
    pub limbs: [String; 8],
}

/// How rows get their lineage columns when the prepared table is filled (design.md 3.22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageColumn {
    /// Column name, `__dpone__load_id` and so on.
    pub name: String,
    /// SQL type text.
    pub type_text: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// The value written.
    pub value: LineageValue,
}

/// Value of a lineage column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineageValue {
    /// The same text in every row.
    Text(String),
    /// A placeholder that publication replaces with the server clock inside its transaction.
    LoadedAt,
    /// Server clock when the prepared table was filled.
    ExtractedAt,
    /// Digest of the row's key columns (contract.md 6.4).
    RowId {
        /// Text before the key frames: `v1|source_type|schema|table;`.
        identity: String,
        /// Key columns in order.
        key_columns: Vec<String>,
    },
    /// NULL.
    Null,
}

/// Fill the prepared table from verified stages, in one transaction (design.md 3.24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareRequest {
    /// The prepared table to create: business columns, then lineage columns.
    pub prepared: StageDefinition,
    /// Business columns, as in the stages.
    pub business_columns: Vec<StageColumn>,
    /// Lineage columns with their values, in order after the business columns.
    pub lineage: Vec<LineageColumn>,
    /// Verified stages in chunk order.
    pub stages: Vec<StageRef>,
    /// Applock that serialises preparation and is held until the session closes.
    pub lock_resource: String,
    /// Rows that the stages hold together.
    pub expected_rows: u64,
    /// The opener's fence.
    pub fence: RunFence,
}

/// The prepared table after its fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedObservation {
    /// `OBJECT_ID` of the prepared table.
    pub object_id: i32,
    /// Digest over the business columns.
    pub business: DigestObservation,
    /// Digest over all columns; equal to `business` without lineage columns.
    pub full: DigestObservation,
}

/// The prepared table, to be verified again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedRef {
    /// The table.
    pub stage: StageRef,
    /// Business columns.
    pub business_columns: Vec<StageColumn>,
    /// Rows expected.
    pub expected_rows: u64,
    /// Applock of preparation.
    pub lock_resource: String,
}

/// How the target's old content goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// Replace the whole table.
    FullRefresh {
        /// DELETE instead of TRUNCATE (`sink.options.full_refresh.clear: delete`).
        delete: bool,
    },
    /// Replace the half-open UTC window of one column; NULLs and rows outside stay.
    PartitionReplace {
        /// Window column.
        column: String,
        /// Inclusive start as `YYYY-MM-DD HH:MM:SS.ffffff`, UTC.
        start: String,
        /// Exclusive end, same form.
        end: String,
    },
}

/// Fields of the receipt that the runtime supplies (contract.md 7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptFacts {
    /// `mssql-generic-v1:` + operation hex.
    pub receipt_id: String,
    /// SHA-256 of the completed payload manifest.
    pub payload_manifest_sha256: Digest,
    /// Rows declared = raw = native.
    pub rows: u64,
    /// Digest of the native wire contract.
    pub native_contract_sha256: Digest,
    /// Digest of the mutation plan.
    pub mutation_plan_sha256: Digest,
    /// RFC 3339 with `Z`.
    pub extraction_started_at: String,
    /// RFC 3339 with `Z`.
    pub extraction_completed_at: String,
    /// Whose clock those two are.
    pub extraction_clock_authority: String,
    /// RFC 3339 with `Z`.
    pub snapshot_acquired_at: String,
    /// `clickhouse.raw-query-snapshot.v1` or `clickhouse.query-snapshot.v1`.
    pub snapshot_authority: String,
    /// Profile digest (raw) or digest of the relation UUID (plain).
    pub source_token_sha256: Digest,
}

/// The one publication transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishRequest {
    /// The table and schemas.
    pub request: TargetRequest,
    /// The attempt's identities.
    pub operation: OperationIdentity,
    /// Generation that the claim returned.
    pub generation: i64,
    /// Operation epoch that the claim returned.
    pub operation_epoch: i64,
    /// Holder of custody; must still hold it inside the transaction.
    pub holder: Digest,
    /// Custody epoch that the claim returned.
    pub custody_epoch: i64,
    /// The opener's fence.
    pub fence: RunFence,
    /// The prepared table.
    pub prepared: PreparedRef,
    /// Full-row digest recorded after the fill; compared again before and inside the transaction.
    pub prepared_full: DigestObservation,
    /// All columns written, in order.
    pub columns: Vec<StageColumn>,
    /// Column that receives the server clock, if the lineage has one.
    pub loaded_at_column: Option<String>,
    /// What happens to the old rows.
    pub mutation: Mutation,
    /// Catalog fingerprint observed at admission.
    pub target_fingerprint: Digest,
    /// Receipt fields.
    pub receipt: ReceiptFacts,
    /// Applock wait, milliseconds.
    pub lock_timeout_ms: u32,
}

/// A receipt row as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// `mssql-generic-v1:` + operation hex.
    pub receipt_id: String,
    /// Owner digest of the committing operation.
    pub owner_digest: Digest,
    /// Epoch of the committing operation.
    pub operation_epoch: i64,
    /// SHA-256 of the payload manifest.
    pub payload_manifest_sha256: Digest,
    /// Digest of the mutation plan.
    pub mutation_plan_sha256: Digest,
    /// Rows inserted.
    pub inserted_rows: u64,
    /// Rows that were replaced (deleted) by the publication, where counted.
    pub replaced_rows: Option<u64>,
    /// Server clock of the commit, RFC 3339 with `Z`.
    pub committed_at: String,
}

/// Answer of [`Target::probe_receipt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptProbe {
    /// The receipt is there: the publication happened.
    Present(Receipt),
    /// No receipt, read while holding the publication applocks: no publication of this operation is in flight, and
    /// with the fence raised none can follow.
    AbsentUnderLock,
}

/// How the absence of a retired table was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageRetirement {
    /// It was ours and unpublished, and the same batch dropped it.
    Dropped,
    /// It was never created or already gone, seen with rights that show every object of the schema.
    AlreadyAbsent,
}

/// Release of custody with its reason (contract.md 8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustodyRelease {
    /// The table and schemas.
    pub request: TargetRequest,
    /// Physical target identity.
    pub target_identity: Digest,
    /// Holder that releases.
    pub holder: Digest,
    /// Epoch that the claim returned.
    pub custody_epoch: i64,
    /// `published_cleanup`, `nonpublication_all_stages_retired` or `empty_completion_cleanup`.
    pub reason: &'static str,
    /// The opener's fence.
    pub fence: RunFence,
}

/// SQL Server.
pub trait Target: Send + Sync + 'static {
    /// A session that writes and verifies one chunk.
    type Writer: StageWriter;

    /// Observes identity, catalog, grants and the target table. No effect.
    fn observe(&self, request: &TargetRequest) -> impl Future<Output = Result<TargetObservation, PortError>> + Send;

    /// Observes space. No effect; a denied or missing view is `mssql_native.target_capacity_unavailable`.
    fn capacity(&self, request: &TargetRequest) -> impl Future<Output = Result<CapacityObservation, PortError>> + Send;

    /// Claims custody and operation in one SERIALIZABLE batch. Repeating it with the same identities is harmless.
    fn claim(&self, claim: &Claim) -> impl Future<Output = Result<ClaimOutcome, PortError>> + Send;

    /// Raises the run fence to this opener's epoch; `Ok(false)` if a later one is there. For re-opened journals.
    fn raise_fence(
        &self,
        request: &TargetRequest,
        fence: &RunFence,
    ) -> impl Future<Output = Result<bool, PortError>> + Send;

    /// Opens the session of one chunk and takes its grant applock. Not granted in time =
    /// `mssql_native.sqlclient_writer_not_settled` with `Fate::NotDone`: the former writer may still live.
    fn open_writer(&self, grant: &WriterGrant) -> impl Future<Output = Result<Self::Writer, PortError>> + Send;

    /// Creates and fills the prepared table and digests it, in one session holding the preparation applock.
    fn prepare(&self, request: &PrepareRequest) -> impl Future<Output = Result<PreparedObservation, PortError>> + Send;

    /// Digests the prepared table again: business and full.
    fn verify_prepared(
        &self,
        prepared: &PreparedRef,
    ) -> impl Future<Output = Result<PreparedObservation, PortError>> + Send;

    /// The publication transaction. An existing exact receipt is returned without a second publication. After a failed
    /// or unanswered COMMIT the receipt is read on a fresh session; if it stays unproved the error is
    /// `mssql_transaction.commit_outcome_unknown` with `Fate::Unknown`. Every other error rolled back: `Fate::NotDone`.
    fn publish(&self, request: &PublishRequest) -> impl Future<Output = Result<Receipt, PortError>> + Send;

    /// Reads the receipt under the publication applocks, on a session that never wrote.
    fn probe_receipt(
        &self,
        request: &TargetRequest,
        operation: &OperationIdentity,
        lock_timeout_ms: u32,
    ) -> impl Future<Output = Result<ReceiptProbe, PortError>> + Send;

    /// Drops a stage or prepared table that carries our owner mark (and the object id, when it was recorded), after the
    /// grant applock was obtained, and proves its absence. A foreign owner mark is refused.
    fn retire_stage(
        &self,
        grant: &WriterGrant,
        definition: &StageDefinition,
        object_id: Option<i32>,
    ) -> impl Future<Output = Result<StageRetirement, PortError>> + Send;

    /// Saves the sanitized evidence document once (design.md 3.25); the same bytes again are accepted.
    fn save_evidence(
        &self,
        request: &TargetRequest,
        operation: &OperationIdentity,
        document: &str,
        document_sha256: &Digest,
        fence: &RunFence,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Releases custody. Releasing what this holder has already released is accepted, also after another has claimed the
    /// target since: a later custody epoch follows only from a cleared row.
    fn release_custody(&self, release: &CustodyRelease) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// One session that owns the grant applock from open to close.
pub trait StageWriter: Send {
    /// Creates the heap and its owner mark in one transaction; returns the object id.
    fn create_stage(&mut self, definition: &StageDefinition) -> impl Future<Output = Result<i32, PortError>> + Send;

    /// Bulk-loads the sealed native rows in one explicit transaction: INSERT BULK, COUNT_BIG, COMMIT (design.md 3.9).
    /// `Fate::NotDone` only when the transaction is proved rolled back.
    fn write(
        &mut self,
        stage: &StageRef,
        chunk: &ChunkFacts,
        rows: Box<dyn Read + Send>,
    ) -> impl Future<Output = Result<WriterTerminal, PortError>> + Send;

    /// The exact-stage barrier: identity, digest, identity in one transaction under TABLOCKX, HOLDLOCK (contract.md 5.2).
    fn verify(
        &mut self,
        stage: &StageRef,
        expected_rows: u64,
    ) -> impl Future<Output = Result<DigestObservation, PortError>> + Send;

    /// Reserved bytes of all stage tables of the database, seen on this session (contract.md 5.5).
    fn allocated_bytes(&mut self) -> impl Future<Output = Result<u64, PortError>> + Send;

    /// Releases the applock and closes the session.
    fn close(self) -> impl Future<Output = Result<(), PortError>> + Send;
}
