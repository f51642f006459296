//! One chunk from its sealed file into a verified stage (contract.md 5.3).
//!
//! ```text
//! INTENT + grant      durable before anything at the target
//! open writer         the session takes the grant applock and keeps it to the end
//! create stage        heap and owner mark in one transaction
//! STAGE_OWNED, GRANTED, WRITING     durable before the first byte
//! write               bulk load in one explicit transaction
//! WRITER_TERMINAL     what the writer says
//! verify              the exact-stage barrier
//! QUIESCENT, VERIFIED, receipt      then the file goes
//! ```

use std::sync::Arc;

use contract::attempt::chain::{self, NewEvent};
use contract::attempt::event::{ArtifactBinding, Observation, StageBinding, WriterBinding, WriterEvent};
use contract::attempt::{EventKind, Quiescence, WriterOutcome};
use contract::canon::{Json, strict_digest};
use contract::capacity;
use contract::completion::{ChunkReceipt, consumed_part_evidence};
use contract::digest::{Digest, TypedSum, native_multiset_digest};
use contract::error::{Fate, PortError};
use contract::names;
use contract::port::journal::NewRecord;
use contract::port::target::{
    ChunkFacts, DigestObservation, RunFence, StageColumn, StageDefinition, StageRef, StageWriter, TableName, Target,
    WriterGrant,
};
use contract::port::world::World;
use contract::target_digest;
use contract::transfer::run::kind;

use crate::context::RunContext;
use crate::frozen::Frozen;
use crate::observations::{Observations, Phase};
use crate::pipeline::Importer;
use crate::progress::Progress;
use crate::records::{self, GRANT};
use crate::spool::{SealedChunk, Spool};

/// How long a new grant's own lock may take; nobody else knows its name.
const GRANT_LOCK_TIMEOUT_MS: u32 = 30_000;

/// What every chunk of a run shares.
#[derive(Debug)]
pub(crate) struct ImportContext<T, W> {
    pub(crate) run: Arc<RunContext<T, W>>,
    pub(crate) frozen: Frozen,
    pub(crate) fence: RunFence,
}

/// The names and grant of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) ordinal: u64,
    pub(crate) attempt_id: Digest,
    pub(crate) grant_token_sha256: Digest,
    pub(crate) definition: StageDefinition,
}

impl Attempt {
    /// The record that lets a later process find session lock and stage again.
    fn record(&self) -> Json {
        Json::object([
            ("ordinal", Json::from(self.ordinal)),
            ("attempt_id", Json::from(self.attempt_id)),
            ("grant_token_sha256", Json::from(self.grant_token_sha256)),
            ("schema", Json::from(&self.definition.name.schema)),
            ("table", Json::from(&self.definition.name.table)),
            ("owner_binding", Json::from(self.definition.owner_binding)),
        ])
    }

    /// The record that proves how the attempt's id is made.
    fn nonce_record(&self, nonce: Digest) -> Json {
        Json::object([
            ("attempt_id", Json::from(self.attempt_id)),
            ("nonce", Json::from(nonce)),
            ("ordinal", Json::from(self.ordinal)),
        ])
    }

    /// Reads the record of [`Attempt::record`].
    pub(crate) fn from_record(document: &Json, columns: &[StageColumn]) -> Result<Self, PortError> {
        let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
        let text = |key: &str| document.get(key)?.as_str().map(str::to_string);
        let read = || {
            Some(Attempt {
                ordinal: document.get("ordinal")?.as_u64()?,
                attempt_id: digest("attempt_id")?,
                grant_token_sha256: digest("grant_token_sha256")?,
                definition: StageDefinition {
                    name: TableName { schema: text("schema")?, table: text("table")? },
                    owner_binding: digest("owner_binding")?,
                    columns: columns.to_vec(),
                },
            })
        };
        read().ok_or_else(records::invalid)
    }

    /// The grant of the attempt under an opener's fence.
    pub(crate) fn grant(&self, fence: &RunFence) -> WriterGrant {
        let stage = names::opaque_stage_id(
            fence.operation_key,
            &names::qualified_stage(None, &self.definition.name.schema, &self.definition.name.table),
        );
        WriterGrant {
            lock_resource: names::grant_applock(self.grant_token_sha256),
            application_name: names::writer_application(self.attempt_id, self.grant_token_sha256, 0, stage),
            lock_timeout_ms: GRANT_LOCK_TIMEOUT_MS,
            fence: fence.clone(),
        }
    }
}

/// The journaled life of one attempt.
struct Chain<'a, T, W> {
    context: &'a ImportContext<T, W>,
    last: WriterEvent,
}

impl<T: Target, W: World> Chain<'_, T, W> {
    /// The next event, not yet durable.
    fn next(&mut self, new: NewEvent) -> Result<NewRecord, PortError> {
        let event =
            chain::append(&self.context.frozen.identity, &self.last, &new).map_err(|fault| fault.into_refusal())?;
        let record = self.context.event_record(&event);
        self.last = event;
        Ok(record)
    }

    fn plain(&self, kind: EventKind) -> NewEvent {
        NewEvent { kind, stage: None, writer: None, observation: None, created_at: self.context.now() }
    }

    fn observed(&self, kind: EventKind, observation: Observation) -> NewEvent {
        NewEvent { observation: Some(observation), ..self.plain(kind) }
    }
}

impl<T: Target, W: World> Importer for ImportContext<T, W> {
    type Receipt = ChunkReceipt;

    fn spool(&self) -> &Spool {
        &self.run.spool
    }

    fn observations(&self) -> &Observations {
        &self.run.observations
    }

    fn progress(&self) -> &Progress {
        &self.run.progress
    }

    async fn import(&self, chunk: SealedChunk) -> Result<ChunkReceipt, PortError> {
        self.load(chunk).await
    }
}

impl<T: Target, W: World> ImportContext<T, W> {
    fn now(&self) -> String {
        self.run.now()
    }

    fn event_record(&self, event: &WriterEvent) -> NewRecord {
        let key = names::event_key(
            event.invocation_key,
            event.artifact.ordinal,
            &event.attempt_id.to_string(),
            event.sequence,
        );
        records::once(&self.run.run_key, kind::WRITER_EVENT, &key, event.document())
    }

    fn new_attempt(&self, ordinal: u64) -> Result<(Attempt, Digest), PortError> {
        let nonce = self.run.world.random()?;
        let attempt_id = names::attempt_id(self.frozen.identity.invocation_key(), ordinal, nonce);
        let stage = names::stage_table(&self.frozen.identity.plan, attempt_id);
        let attempt = Attempt {
            ordinal,
            attempt_id,
            grant_token_sha256: Digest::of(self.run.world.random()?.as_bytes()),
            definition: StageDefinition {
                name: TableName { schema: self.frozen.request.staging_schema.clone(), table: stage.table },
                owner_binding: stage.owner_binding,
                columns: self.frozen.columns.clone(),
            },
        };
        Ok((attempt, nonce))
    }

    /// Loads and verifies one chunk; returns its receipt, which is durable.
    async fn load(&self, chunk: SealedChunk) -> Result<ChunkReceipt, PortError> {
        let _operation = self.run.observations.start(Phase::Import, std::time::Instant::now());
        let (attempt, nonce) = self.new_attempt(chunk.ordinal)?;
        let artifact = ArtifactBinding {
            ordinal: chunk.ordinal,
            rows: chunk.rows,
            encoded_bytes: chunk.encoded_bytes,
            file_sha256: chunk.file_sha256,
            typed_digest: native_multiset_digest(chunk.rows, &chunk.sum),
        };
        let intent = chain::begin(&self.frozen.identity, attempt.attempt_id, &artifact, &self.now())
            .map_err(|fault| fault.into_refusal())?;
        let id = attempt.attempt_id.to_string();
        let nonce = records::once(&self.run.run_key, kind::ATTEMPT_NONCE, &id, &attempt.nonce_record(nonce));
        let grant = records::once(&self.run.run_key, GRANT, &id, &attempt.record());
        self.run.record(vec![nonce, grant, self.event_record(&intent)]).await?;
        let mut chain = Chain { context: self, last: intent };
        let mut writer = self.run.target.open_writer(&attempt.grant(&self.fence)).await?;
        let receipt = self.write_and_verify(&mut writer, &mut chain, &attempt, &chunk).await?;
        // Why not an error: the receipt is durable; the session ends with its socket.
        if let Err(error) = writer.close().await {
            tracing::debug!(code = %error.code, "a writer session did not close in order");
        }
        self.run.spool.remove(chunk.ordinal)?;
        self.run.progress.verified();
        Ok(receipt)
    }

    async fn write_and_verify(
        &self,
        writer: &mut T::Writer,
        chain: &mut Chain<'_, T, W>,
        attempt: &Attempt,
        chunk: &SealedChunk,
    ) -> Result<ChunkReceipt, PortError> {
        self.check_allocation(writer).await?;
        let object_id = writer.create_stage(&attempt.definition).await?;
        let stage = StageRef { definition: attempt.definition.clone(), object_id };
        let owned = NewEvent { stage: Some(self.stage_binding(&stage)?), ..chain.plain(EventKind::StageOwned) };
        let granted = NewEvent {
            writer: Some(WriterBinding { grant_token_sha256: attempt.grant_token_sha256 }),
            ..chain.plain(EventKind::Granted)
        };
        let writing = chain.plain(EventKind::Writing);
        let events = vec![chain.next(owned)?, chain.next(granted)?, chain.next(writing)?];
        self.run.record(events).await?;
        let rows = self.run.spool.open(chunk.ordinal, chunk.encoded_bytes, &chunk.file_sha256)?;
        let facts = ChunkFacts {
            ordinal: chunk.ordinal,
            rows: chunk.rows,
            encoded_bytes: chunk.encoded_bytes,
            file_sha256: chunk.file_sha256,
        };
        let terminal = match writer.write(&stage, &facts, Box::new(rows)).await {
            Ok(terminal) => terminal,
            Err(error) => return Err(self.writer_failed(chain, error).await),
        };
        let ended =
            terminal_observation(WriterOutcome::Success, Some(terminal.rows_sent), "mssql_native.writer_terminal");
        let event = chain.observed(EventKind::WriterTerminal, ended);
        let event = chain.next(event)?;
        self.run.record(vec![event]).await?;
        let verified = match writer.verify(&stage, chunk.rows).await {
            Ok(observation) => compare(&observation, chunk.rows, &chunk.sum).map(|()| observation),
            Err(error) => Err(error),
        };
        let observation = match verified {
            Ok(observation) => observation,
            Err(error) => return Err(self.observation_failed(chain, chunk, error).await),
        };
        self.check_allocation(writer).await?;
        self.verified(chain, &stage, chunk, &observation).await
    }

    /// QUIESCENT, VERIFIED and the receipt, durable together.
    async fn verified(
        &self,
        chain: &mut Chain<'_, T, W>,
        stage: &StageRef,
        chunk: &SealedChunk,
        observation: &DigestObservation,
    ) -> Result<ChunkReceipt, PortError> {
        let seen = Observation {
            writer_outcome: WriterOutcome::Success,
            input_rows_consumed: Some(chunk.rows),
            row_count: Some(chunk.rows),
            count_overflow: Some(false),
            limbs: Some(observation.limbs.clone()),
            quiescence: Quiescence::Proved,
            diagnostic_code: "mssql_native.stage_verified".to_string(),
        };
        let quiescent = chain.observed(EventKind::Quiescent, seen.clone());
        let verified = chain.observed(EventKind::Verified, seen);
        let events = [chain.next(quiescent)?, chain.next(verified)?];
        let name = &stage.definition.name;
        let receipt = ChunkReceipt {
            ordinal: chunk.ordinal,
            attempt_id: chain.last.attempt_id.to_string(),
            stage_id: names::qualified_stage(Some(&self.frozen.database), &name.schema, &name.table),
            rows: chunk.rows,
            encoded_bytes: chunk.encoded_bytes,
            file_sha256: chunk.file_sha256,
            typed_digest: native_multiset_digest(chunk.rows, &chunk.sum),
            consumed_part_evidence: consumed_part_evidence(
                chunk.ordinal,
                &chunk.sum,
                stage.object_id,
                &names::plan_binding(&self.frozen.identity.plan),
                Digest::of(self.frozen.identity.plan.wire_fingerprint.as_bytes()),
            ),
        };
        let key = names::order_key(chunk.ordinal);
        let mut batch = events.to_vec();
        batch.push(records::once(&self.run.run_key, kind::CHUNK_RECEIPT, &key, &receipt.document()));
        self.run.record(batch).await?;
        Ok(receipt)
    }

    fn stage_binding(&self, stage: &StageRef) -> Result<StageBinding, PortError> {
        let name = &stage.definition.name;
        let qualified = names::qualified_stage(Some(&self.frozen.database), &name.schema, &name.table);
        let columns = stage
            .definition
            .columns
            .iter()
            .map(|c| Json::Array(vec![Json::from(&c.name), Json::from(&c.type_text), Json::from(c.nullable)]));
        Ok(StageBinding {
            stage_id: names::opaque_stage_id(self.frozen.identity.invocation_key(), &qualified),
            owner_binding_sha256: stage.definition.owner_binding,
            object_id: u64::try_from(stage.object_id).map_err(|_| records::invalid())?,
            schema_sha256: strict_digest(&Json::Array(columns.collect())),
        })
    }

    async fn check_allocation(&self, writer: &mut T::Writer) -> Result<(), PortError> {
        let allocated = writer.allocated_bytes().await?;
        capacity::check_allocation(&self.run.plan.limits, allocated).map_err(PortError::from)
    }

    /// Records how the writer failed; the error of the writer stays the one that is reported.
    async fn writer_failed(&self, chain: &mut Chain<'_, T, W>, error: PortError) -> PortError {
        let outcome = if error.fate == Fate::NotDone { WriterOutcome::Failure } else { WriterOutcome::CustodyLost };
        let mut events = Vec::new();
        if error.fate == Fate::NotDone {
            let ended = terminal_observation(outcome, None, "mssql_native.writer_failed");
            let event = chain.observed(EventKind::WriterTerminal, ended);
            events.extend(chain.next(event).ok());
        }
        let unknown = terminal_observation(outcome, None, "mssql_native.writer_uncertain");
        let event = chain.observed(EventKind::Unknown, unknown);
        events.extend(chain.next(event).ok());
        self.note(events).await;
        error
    }

    async fn observation_failed(
        &self,
        chain: &mut Chain<'_, T, W>,
        chunk: &SealedChunk,
        error: PortError,
    ) -> PortError {
        let failed = Observation {
            quiescence: Quiescence::Failed,
            ..terminal_observation(WriterOutcome::Success, Some(chunk.rows), "mssql_native.stage_observation_failed")
        };
        let event = chain.observed(EventKind::Unknown, failed);
        let events = chain.next(event).into_iter().collect();
        self.note(events).await;
        error
    }

    /// Appends events that describe a failure. If that fails too, recovery finds the attempt one event earlier, which
    /// settles the same way.
    async fn note(&self, events: Vec<NewRecord>) {
        if let Err(error) = self.run.record(events).await {
            tracing::warn!(code = %error.code, "the failure of a chunk could not be journaled");
        }
    }
}

fn terminal_observation(outcome: WriterOutcome, rows: Option<u64>, diagnostic: &str) -> Observation {
    Observation {
        writer_outcome: outcome,
        input_rows_consumed: rows,
        row_count: None,
        count_overflow: None,
        limbs: None,
        quiescence: Quiescence::Unverified,
        diagnostic_code: diagnostic.to_string(),
    }
}

/// Compares a digest observation with the rows and sum it must show.
pub(crate) fn compare(observation: &DigestObservation, rows: u64, sum: &TypedSum) -> Result<(), PortError> {
    let seen = target_digest::decode(observation, rows)?;
    if seen.rows == rows && seen.sum == *sum {
        return Ok(());
    }
    Err(PortError::not_done(
        "mssql_native.typed_digest_mismatch",
        "the rows inside SQL Server are not the rows that were sealed: nothing is published and the stage is kept",
    ))
}
