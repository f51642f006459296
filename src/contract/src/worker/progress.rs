//! The progress document: what `GET /progress` of a worker answers. It feeds no decision.

use super::words::{RunTag, Stage};
use crate::canon::{Json, decode_object, strict};

/// Kind of the document.
pub const PROGRESS_KIND: &str = "native-transfer.progress.v1";

/// Longest document that is read; one that is written has less than a quarter of it.
pub const PROGRESS_BYTES_MAX: usize = 4096;

/// Longest pod UID.
const POD_UID_BYTES_MAX: usize = 64;

/// How far a live process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// UID of the pod that answers: an address may belong to another pod by now.
    pub pod_uid: String,
    /// The run.
    pub run: RunTag,
    /// Number of the attempt, where the run id ends in one.
    pub attempt: Option<u64>,
    /// Journal epoch of the process.
    pub epoch: u64,
    /// Where it is.
    pub stage: Stage,
    /// Rows that left the source.
    pub rows_read: u64,
    /// Native bytes sealed.
    pub bytes_encoded: u64,
    /// Chunks sealed.
    pub chunks_sealed: u64,
    /// Chunks verified inside SQL Server.
    pub chunks_verified: u64,
}

impl Progress {
    /// The strict canonical document.
    pub fn encode(&self) -> String {
        let document = Json::object([
            ("kind", Json::from(PROGRESS_KIND)),
            ("pod_uid", Json::from(&self.pod_uid)),
            ("run", Json::from(self.run.as_str())),
            ("attempt", Json::from(self.attempt)),
            ("epoch", Json::from(self.epoch)),
            ("stage", Json::from(self.stage.text())),
            ("rows_read", Json::from(self.rows_read)),
            ("bytes_encoded", Json::from(self.bytes_encoded)),
            ("chunks_sealed", Json::from(self.chunks_sealed)),
            ("chunks_verified", Json::from(self.chunks_verified)),
        ]);
        String::from_utf8_lossy(&strict(&document)).into_owned()
    }

    /// Reads the answer of the pod `pod_uid` about the run `run`; anything else is `None`.
    pub fn parse(bytes: &[u8], pod_uid: &str, run: &RunTag) -> Option<Self> {
        if bytes.len() > PROGRESS_BYTES_MAX {
            return None;
        }
        let document = Json::Object(decode_object(bytes).ok()?);
        let number = |key: &str| document.get(key)?.as_u64();
        let text = |key: &str| document.get(key)?.as_str();
        let progress = Progress {
            pod_uid: text("pod_uid").filter(|uid| uid.len() <= POD_UID_BYTES_MAX)?.to_owned(),
            run: text("run")?.parse().ok()?,
            attempt: document.get("attempt")?.as_u64(),
            epoch: number("epoch")?,
            stage: Stage::from_text(text("stage")?)?,
            rows_read: number("rows_read")?,
            bytes_encoded: number("bytes_encoded")?,
            chunks_sealed: number("chunks_sealed")?,
            chunks_verified: number("chunks_verified")?,
        };
        // One comparison for kind, unknown keys, an ill-typed attempt and the canonical form.
        let whole = progress.encode().as_bytes() == bytes;
        (whole && progress.pod_uid == pod_uid && progress.run == *run).then_some(progress)
    }
}
