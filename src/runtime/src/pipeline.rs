//! The pipeline: one producer, bounded frames, E encoders, I importers, and an end that is proved (contract.md 5.5).
//!
//! ```text
//! source --blocks--> producer --frames--> E encoders --sealed files--> I importers --receipts-->
//!                    (permits: at most C = max(E, I) + max_pending chunks between frame and verified stage)
//! ```
//!
//! The first failure stops everything: the producer cancels the query, waiting frames are dropped, running encoders and
//! importers are joined. Nothing of this module runs on after it has returned.

use std::sync::Arc;
use std::time::Instant;

use contract::capacity;
use contract::encode::RowEncoder;
use contract::error::PortError;
use contract::limits::Limits;
use contract::port::source::{Source, SourceEof};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::frames::{Frame, FrameCutter};
use crate::observations::{Observations, Phase};
use crate::progress::Progress;
use crate::spool::{SealedChunk, Spool};

/// Where chunks go, and what the stages before it share.
pub(crate) trait Importer: Send + Sync + 'static {
    /// What a chunk leaves once it has arrived.
    type Receipt: Send + 'static;

    /// Where chunks are sealed.
    fn spool(&self) -> &Spool;

    /// Where work is measured.
    fn observations(&self) -> &Observations;

    /// Where work is counted.
    fn progress(&self) -> &Progress;

    /// Takes one sealed chunk to its end and removes its file.
    fn import(&self, chunk: SealedChunk) -> impl Future<Output = Result<Self::Receipt, PortError>> + Send;
}

/// What a finished extraction knows.
#[derive(Debug)]
pub(crate) struct Extracted<R> {
    pub(crate) eof: SourceEof,
    /// One per chunk, in the order of the stream.
    pub(crate) receipts: Vec<R>,
    pub(crate) rows: u64,
}

/// A chunk on its way keeps its permit until its stage is verified or the run has failed.
struct Work<C> {
    content: C,
    permit: OwnedSemaphorePermit,
}

/// A receipt under the ordinal of its chunk.
type Ordered<R> = (u64, R);

type Queue<C> = Arc<Mutex<mpsc::Receiver<Work<C>>>>;

/// Runs the whole pipeline over an open query.
pub(crate) async fn run<S: Source, I: Importer>(
    source: S,
    context: Arc<I>,
    encoder: Arc<RowEncoder>,
    limits: Limits,
    stop: &CancellationToken,
) -> Result<Extracted<I::Receipt>, PortError> {
    // Why a child: the outer token says that a person or the kubelet wants an end, the inner one that a worker failed.
    let failed = stop.child_token();
    let permits = Arc::new(Semaphore::new(count(limits.retained_work_capacity())));
    let (frames, frame_queue) = mpsc::channel(count(limits.max_pending));
    let (sealed, sealed_queue) = mpsc::channel(count(limits.max_pending));
    let frame_queue: Queue<Frame> = Arc::new(Mutex::new(frame_queue));
    let sealed_queue: Queue<SealedChunk> = Arc::new(Mutex::new(sealed_queue));
    let mut workers: JoinSet<Result<Vec<Ordered<I::Receipt>>, PortError>> = JoinSet::new();
    for _ in 0..limits.encoders() {
        let (context, encoder, queue) = (Arc::clone(&context), Arc::clone(&encoder), Arc::clone(&frame_queue));
        workers.spawn(guarded(encode_all(context, encoder, queue, sealed.clone(), failed.clone()), failed.clone()));
    }
    drop((sealed, frame_queue));
    for _ in 0..limits.importers() {
        let (context, queue) = (Arc::clone(&context), Arc::clone(&sealed_queue));
        workers.spawn(guarded(import_all(context, queue, failed.clone()), failed.clone()));
    }
    drop(sealed_queue);
    let producer = Producer { context: Arc::clone(&context), encoder, limits, frames, permits, rows: 0 };
    let produced = produce(source, producer, &failed).await;
    if produced.is_err() {
        failed.cancel();
    }
    let mut first = None;
    let mut receipts = Vec::new();
    while let Some(joined) = workers.join_next().await {
        match joined {
            Ok(Ok(done)) => receipts.extend(done),
            Ok(Err(error)) => keep_primary(&mut first, error),
            Err(panicked) => keep_primary(
                &mut first,
                PortError::unknown("native_transfer.worker_panicked", "a worker ended unexpectedly: please report it")
                    .caused_by(panicked),
            ),
        }
    }
    // Why this order: a producer stopped because a worker failed reports `cancelled`, which is not the cause.
    match (produced, first) {
        (_, Some(error)) if error.code.as_str() != CANCELLED => Err(error),
        (Err(error), _) | (Ok(_), Some(error)) => Err(error),
        (Ok((eof, rows)), None) => {
            receipts.sort_by_key(|(ordinal, _)| *ordinal);
            Ok(Extracted { eof, receipts: receipts.into_iter().map(|(_, receipt)| receipt).collect(), rows })
        }
    }
}

const CANCELLED: &str = "native_transfer.cancelled";

/// The code of a run that was asked to stop.
pub(crate) fn cancelled() -> PortError {
    PortError::not_done(CANCELLED, "the run was asked to stop before the end of the source: start a new run")
}

/// The first failure that is more than a consequence of another one.
fn keep_primary(first: &mut Option<PortError>, error: PortError) {
    if first.as_ref().is_none_or(|known| known.code.as_str() == CANCELLED) {
        *first = Some(error);
    }
}

fn count(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// Stops the others as soon as one fails or panics.
async fn guarded<R>(
    work: impl Future<Output = Result<R, PortError>>,
    failed: CancellationToken,
) -> Result<R, PortError> {
    let stops_others = failed.drop_guard();
    let result = work.await;
    if result.is_ok() {
        stops_others.disarm();
    }
    result
}

struct Producer<I> {
    context: Arc<I>,
    encoder: Arc<RowEncoder>,
    limits: Limits,
    frames: mpsc::Sender<Work<Frame>>,
    permits: Arc<Semaphore>,
    rows: u64,
}

/// Reads to the proved end, or cancels the query.
async fn produce<S: Source, I: Importer>(
    mut source: S,
    mut producer: Producer<I>,
    failed: &CancellationToken,
) -> Result<(SourceEof, u64), PortError> {
    let read = tokio::select! {
        read = producer.read(&mut source) => read,
        () = failed.cancelled() => Err(cancelled()),
    };
    let rows = producer.rows;
    // The encoders end when the last sender is gone.
    drop(producer);
    match read {
        Ok(()) => {
            let eof = source.finish().await?;
            if eof.rows == rows {
                return Ok((eof, rows));
            }
            Err(PortError::not_done(
                "mssql_native.source_snapshot_row_count_mismatch",
                "the source counted other rows than were read: do not use this build",
            ))
        }
        Err(error) => {
            source.cancel().await;
            Err(error)
        }
    }
}

impl<I: Importer> Producer<I> {
    async fn read<S: Source>(&mut self, source: &mut S) -> Result<(), PortError> {
        let mut cutter = FrameCutter::new(self.limits.max_rows, self.limits.max_bytes);
        let mut sizes = Vec::new();
        let mut total = 0u64;
        let observations: Observations = self.context.observations().clone();
        loop {
            let operation = observations.start(Phase::Read, Instant::now());
            let block = source.next_block().await?;
            drop(operation);
            let Some(block) = block else { break };
            self.encoder.measure(&block, &mut sizes).map_err(|error| self.refuse_row(&error))?;
            total += sizes.iter().map(|size| u64::from(*size)).sum::<u64>();
            capacity::check_total(&self.limits, total)?;
            self.rows += block.rows as u64;
            self.context.progress().rows_read(block.rows as u64);
            for frame in cutter.push(&Arc::new(block), &sizes) {
                self.send(frame).await?;
            }
        }
        match cutter.finish() {
            Some(frame) => self.send(frame).await,
            None => Ok(()),
        }
    }

    fn refuse_row(&self, error: &contract::encode::EncodeError) -> PortError {
        tracing::error!(
            code = error.code,
            row = self.rows + error.row as u64,
            column = error.column,
            "a source row has no exact form"
        );
        crate::spool::encoding(error)
    }

    async fn send(&self, frame: Frame) -> Result<(), PortError> {
        capacity::check_ordinal(&self.limits, frame.ordinal)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| cancelled())?;
        self.frames.send(Work { content: frame, permit }).await.map_err(|_| cancelled())
    }
}

/// The next piece of work, or `None` when the queue ended.
async fn take<C>(queue: &Queue<C>, failed: &CancellationToken) -> Result<Option<Work<C>>, PortError> {
    tokio::select! {
        biased;
        () = failed.cancelled() => Err(cancelled()),
        work = async { queue.lock().await.recv().await } => Ok(work),
    }
}

async fn encode_all<I: Importer>(
    context: Arc<I>,
    encoder: Arc<RowEncoder>,
    queue: Queue<Frame>,
    sealed: mpsc::Sender<Work<SealedChunk>>,
    failed: CancellationToken,
) -> Result<Vec<Ordered<I::Receipt>>, PortError> {
    while let Some(work) = take(&queue, &failed).await? {
        let (spool, encoder, observations) =
            (context.spool().clone(), Arc::clone(&encoder), context.observations().clone());
        let frame = work.content;
        let seal = tokio::task::spawn_blocking(move || {
            let _operation = observations.start(Phase::Encode, Instant::now());
            spool.seal(&encoder, &frame)
        });
        let chunk = seal.await.map_err(|panicked| {
            PortError::not_done("native_transfer.worker_panicked", "an encoder ended unexpectedly: please report it")
                .caused_by(panicked)
        })??;
        context.progress().sealed(chunk.encoded_bytes);
        let next = Work { content: chunk, permit: work.permit };
        tokio::select! {
            sent = sealed.send(next) => sent.map_err(|_| cancelled())?,
            () = failed.cancelled() => return Err(cancelled()),
        }
    }
    Ok(Vec::new())
}

async fn import_all<I: Importer>(
    context: Arc<I>,
    queue: Queue<SealedChunk>,
    failed: CancellationToken,
) -> Result<Vec<Ordered<I::Receipt>>, PortError> {
    let mut receipts = Vec::new();
    while let Some(work) = take(&queue, &failed).await? {
        // Why not raced against `failed`: a bulk load that is cut leaves an open question; one that ends answers it.
        receipts.push((work.content.ordinal, context.import(work.content).await?));
        drop(work.permit);
    }
    Ok(receipts)
}
