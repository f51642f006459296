//! The road up to the sealed file alone: the pipeline itself, with importers that throw each chunk away or leave it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::digest::TypedSum;
use contract::encode::RowEncoder;
use contract::error::PortError;
use contract::limits::Limits;
use contract::port::source::{Source, SourceEof};
use tokio_util::sync::CancellationToken;

use crate::observations::{Observations, Phase, PhaseSummary};
use crate::pipeline::{self, Importer};
use crate::progress::Progress;
use crate::spool::{SealedChunk, Spool};

/// What becomes of a sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// It is removed at once, so that any table can be measured.
    Removed,
    /// It stays, for whoever compares it.
    Kept,
}

/// What was read and sealed, and the work it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealing {
    /// Rows sealed; as many as the source sent.
    pub rows: u64,
    /// Bytes of the decoded source blocks.
    pub decoded_bytes: u64,
    /// Native bytes sealed.
    pub encoded_bytes: u64,
    /// Sealed files.
    pub chunks: u64,
    /// Sum of all row hashes.
    pub sum: TypedSum,
    /// The proved end of the source.
    pub eof: SourceEof,
    /// The sealed files in order, when they were kept.
    pub files: Vec<PathBuf>,
    /// Waiting for and decoding source blocks.
    pub read: PhaseSummary,
    /// Encoding and sealing.
    pub encode: PhaseSummary,
}

/// Reads an opened source to its proved end and seals every chunk in a file below `root`.
///
/// # Errors
/// Those of the source, of the encoder and of the spool.
pub async fn read_and_seal<S: Source>(
    source: S,
    encoder: RowEncoder,
    limits: Limits,
    root: &Path,
    files: Files,
    stop: &CancellationToken,
) -> Result<Sealing, PortError> {
    let spool = Spool::new(root, "measure");
    spool.create()?;
    let sealer = Sealer { spool, files, observations: Observations::default(), progress: Progress::default() };
    let sealer = Arc::new(sealer);
    let extracted = pipeline::run(source, Arc::clone(&sealer), Arc::new(encoder), limits, stop).await;
    let cleared = if files == Files::Removed || extracted.is_err() { sealer.spool.clear() } else { Ok(()) };
    // The first failure is the one to report.
    let extracted = extracted?;
    cleared?;
    let mut sum = TypedSum::default();
    extracted.receipts.iter().for_each(|chunk| sum.add(&chunk.sum));
    let kept = extracted.receipts.iter().filter(|_| files == Files::Kept);
    let files = kept.map(|chunk| sealer.spool.path(chunk.ordinal)).collect();
    Ok(Sealing {
        rows: extracted.receipts.iter().map(|chunk| chunk.rows).sum(),
        decoded_bytes: extracted.eof.decoded_bytes,
        eof: extracted.eof,
        encoded_bytes: extracted.receipts.iter().map(|chunk| chunk.encoded_bytes).sum(),
        chunks: extracted.receipts.len() as u64,
        sum,
        files,
        read: sealer.observations.summary(Phase::Read),
        encode: sealer.observations.summary(Phase::Encode),
    })
}

/// The importer of sealed files that go nowhere.
struct Sealer {
    spool: Spool,
    files: Files,
    observations: Observations,
    progress: Progress,
}

impl Importer for Sealer {
    type Receipt = SealedChunk;

    fn spool(&self) -> &Spool {
        &self.spool
    }

    fn observations(&self) -> &Observations {
        &self.observations
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    async fn import(&self, chunk: SealedChunk) -> Result<SealedChunk, PortError> {
        if self.files == Files::Removed {
            self.spool.remove(chunk.ordinal)?;
        }
        Ok(chunk)
    }
}
