//! The version 2 writer event: a closed document that links to its predecessor by digest.

use super::{EventKind, Quiescence, WriterOutcome};
use crate::canon::{Json, strict, strict_digest};
use crate::digest::Digest;

/// Kind of the document.
pub const EVENT_KIND: &str = "dpone.mssql-native-writer-state.v2";

/// Schema version of the document.
pub const EVENT_SCHEMA_VERSION: u64 = 2;

/// The sealed file that the attempt writes; the same in every event of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactBinding {
    /// Chunk ordinal.
    pub ordinal: u64,
    /// Rows in the file.
    pub rows: u64,
    /// Bytes of the file.
    pub encoded_bytes: u64,
    /// SHA-256 of the file.
    pub file_sha256: Digest,
    /// Multiset digest of the file's rows.
    pub typed_digest: Digest,
}

/// The stage; set from STAGE_OWNED on and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageBinding {
    /// Opaque stage id.
    pub stage_id: Digest,
    /// Owner mark.
    pub owner_binding_sha256: Digest,
    /// `OBJECT_ID`, positive.
    pub object_id: u64,
    /// Digest of the stage's schema.
    pub schema_sha256: Digest,
}

/// The writer and its grant; set from GRANTED on and never changed. Backend and capability are those of the identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterBinding {
    /// Digest of the grant token; the token itself is never written.
    pub grant_token_sha256: Digest,
}

/// What was seen of writer and stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// How the writer ended.
    pub writer_outcome: WriterOutcome,
    /// Rows that the writer says it consumed.
    pub input_rows_consumed: Option<u64>,
    /// Rows counted in the stage.
    pub row_count: Option<u64>,
    /// Whether there were more rows than expected.
    pub count_overflow: Option<bool>,
    /// Eight limb sums in decimal, word 0 first.
    pub limbs: Option<[String; 8]>,
    /// Proof that nobody writes any more.
    pub quiescence: Quiescence,
    /// A code of the form `a.b`.
    pub diagnostic_code: String,
}

/// A writer event. Made by [`super::chain::append`] or read by [`super::chain::read`].
#[derive(Debug, Clone, PartialEq)]
pub struct WriterEvent {
    /// Invocation the event belongs to.
    pub invocation_key: Digest,
    /// Attempt the event belongs to.
    pub attempt_id: Digest,
    /// Position in the chain, from 0.
    pub sequence: u64,
    /// Digest of the previous event.
    pub previous_sha256: Option<Digest>,
    /// The kind.
    pub kind: EventKind,
    /// The stage.
    pub stage: Option<StageBinding>,
    /// The file.
    pub artifact: ArtifactBinding,
    /// The writer.
    pub writer: Option<WriterBinding>,
    /// The observation.
    pub observation: Option<Observation>,
    /// UTC time text ending in `Z`.
    pub created_at: String,
    /// The whole document, so that re-encoding cannot differ.
    pub(super) document: Json,
}

impl WriterEvent {
    /// The document.
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// The strict canonical bytes, as they are stored.
    pub fn canonical(&self) -> Vec<u8> {
        strict(&self.document)
    }

    /// SHA-256 of the canonical bytes: the next event links to it.
    pub fn sha256(&self) -> Digest {
        strict_digest(&self.document)
    }
}

impl From<&ArtifactBinding> for Json {
    fn from(artifact: &ArtifactBinding) -> Self {
        Json::object([
            ("ordinal", Json::from(artifact.ordinal)),
            ("rows", Json::from(artifact.rows)),
            ("encoded_bytes", Json::from(artifact.encoded_bytes)),
            ("file_sha256", Json::from(artifact.file_sha256)),
            ("typed_digest", Json::from(artifact.typed_digest)),
        ])
    }
}

impl From<&StageBinding> for Json {
    fn from(stage: &StageBinding) -> Self {
        Json::object([
            ("stage_id", Json::from(stage.stage_id)),
            ("owner_binding_sha256", Json::from(stage.owner_binding_sha256)),
            ("object_id", Json::from(stage.object_id)),
            ("schema_sha256", Json::from(stage.schema_sha256)),
        ])
    }
}

impl From<&Observation> for Json {
    fn from(observation: &Observation) -> Self {
        Json::object([
            ("writer_outcome", Json::from(observation.writer_outcome.text())),
            ("input_rows_consumed", Json::from(observation.input_rows_consumed)),
            ("row_count", Json::from(observation.row_count)),
            ("count_overflow", Json::from(observation.count_overflow)),
            ("limbs", observation.limbs.as_ref().map_or(Json::Null, Json::array)),
            ("quiescence", Json::from(observation.quiescence.text())),
            ("diagnostic_code", Json::from(&observation.diagnostic_code)),
        ])
    }
}
