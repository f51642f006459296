//! Measures the road up to the sealed file: the pipeline itself, with importers that throw each chunk away.

use std::path::Path;
use std::sync::Arc;

use contract::encode::RowEncoder;
use contract::error::PortError;
use contract::limits::Limits;
use contract::port::source::Source;
use tokio_util::sync::CancellationToken;

use crate::observations::{Observations, Phase, PhaseSummary};
use crate::pipeline::{self, Importer};
use crate::progress::Progress;
use crate::spool::{SealedChunk, Spool};

/// What was read and sealed, and the work it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sealing {
    /// Rows sealed; as many as the source sent.
    pub rows: u64,
    /// Bytes of the decoded source blocks.
    pub decoded_bytes: u64,
    /// Native bytes sealed.
    pub encoded_bytes: u64,
    /// Sealed files.
    pub chunks: u64,
    /// Waiting for and decoding source blocks.
    pub read: PhaseSummary,
    /// Encoding and sealing.
    pub encode: PhaseSummary,
}

/// Reads an opened source to its proved end, seals every chunk in a file below `root`, and removes it at once.
///
/// # Errors
/// Those of the source, of the encoder and of the spool.
pub async fn read_and_seal<S: Source>(
    source: S,
    encoder: RowEncoder,
    limits: Limits,
    root: &Path,
    stop: &CancellationToken,
) -> Result<Sealing, PortError> {
    let spool = Spool::new(root, "measure");
    spool.create()?;
    let discard = Arc::new(Discard { spool, observations: Observations::default(), progress: Progress::default() });
    let extracted = pipeline::run(source, Arc::clone(&discard), Arc::new(encoder), limits, stop).await;
    let cleared = discard.spool.clear();
    // The first failure is the one to report.
    let extracted = extracted?;
    cleared?;
    Ok(Sealing {
        rows: extracted.receipts.iter().map(|chunk| chunk.rows).sum(),
        decoded_bytes: extracted.eof.decoded_bytes,
        encoded_bytes: extracted.receipts.iter().map(|chunk| chunk.encoded_bytes).sum(),
        chunks: extracted.receipts.len() as u64,
        read: discard.observations.summary(Phase::Read),
        encode: discard.observations.summary(Phase::Encode),
    })
}

/// Removes what was sealed.
struct Discard {
    spool: Spool,
    observations: Observations,
    progress: Progress,
}

impl Importer for Discard {
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
        self.spool.remove(chunk.ordinal)?;
        Ok(chunk)
    }
}
