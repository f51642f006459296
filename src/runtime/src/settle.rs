//! Settlement of a run that ends unpublished: prove, retire, release (spec "Detailed algorithm" step 12).
//!
//! ```text
//! refresh    the state is what the journal says, whatever this process had begun to record
//! fence      this opener is the one that may act
//! settle     each grant's applock obtained: its writer's session is gone
//! probe      no receipt under the publication locks: nothing was published, nothing is in flight
//! proof      the non-publication proof is durable; no attempt goes on after it
//! retire     each stage and the prepared table proved ours and dropped, or proved absent
//! release    custody at the target, then in the journal; the chunk files go
//! ```
//!
//! Each step is repeatable; a step that cannot be proved leaves everything as it is and custody held.

use contract::attempt::chain::{self, NewEvent};
use contract::attempt::event::{Observation, WriterEvent};
use contract::attempt::machine::{Settlement, StageGone};
use contract::attempt::{EventKind, Quiescence, WriterOutcome};
use contract::canon::Json;
use contract::custody::{CustodyRecord, ReleaseReason};
use contract::digest::Digest;
use contract::error::PortError;
use contract::names;
use contract::port::target::{
    CustodyRelease, DigestObservation, ReceiptProbe, StageRef, StageRetirement, StageWriter, Target,
};
use contract::port::world::World;
use contract::transfer::run::kind;
use contract::transfer::{TransferCustody, TransferEvent, TransferState};
use contract::worker::Stage;

use crate::chunk::Attempt;
use crate::context::RunContext;
use crate::frozen::{Claimed, Frozen};
use crate::publish;
use crate::records::{self, CUSTODY, GRANT, Records};

/// Settles a claimed run that is not published and will not be. `Ok` = custody is released at both places.
pub(crate) async fn settle<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
) -> Result<(), PortError> {
    context.progress.enter(Stage::Settling);
    context.refresh().await?;
    context.raise_fence(frozen).await?;
    let sealed = context.look(|state| state.completion().is_some());
    match context.transfer().map(|transfer| transfer.state) {
        // Claimed, and no row was ever asked for: there is nothing to retire.
        Some(TransferState::Planned) => context.advance(TransferEvent::Refused, Json::Null).await?,
        Some(TransferState::Failed) if !sealed => {}
        Some(TransferState::ReextractRequired) => {}
        state => {
            if state == Some(TransferState::Extracting) {
                context.advance(TransferEvent::ExtractionStopped, Json::Null).await?;
            }
            retire_all(context, frozen).await?;
        }
    }
    release(context, frozen, claimed, ReleaseReason::NonpublicationAllStagesRetired).await
}

/// Proves every writer gone and the run unpublished, then drops whatever the run made.
async fn retire_all<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Result<(), PortError> {
    let attempts = attempts(&context.records().await?, frozen)?;
    for attempt in &attempts {
        if !is_settled(context, attempt.attempt_id) {
            prove_settled(context, frozen, attempt).await?;
        }
    }
    prove_unpublished(context, frozen).await?;
    for attempt in &attempts {
        retire(context, frozen, attempt).await?;
    }
    publish::retire_prepared(context, frozen).await?;
    context.advance(TransferEvent::Settled, Json::Null).await
}

/// The attempts of a run with their grants.
pub(crate) fn attempts(records: &Records, frozen: &Frozen) -> Result<Vec<Attempt>, PortError> {
    records.of(GRANT).map(|record| Attempt::from_record(&records::document(record)?, &frozen.columns)).collect()
}

/// The last event of an attempt.
fn last_event<T: Target, W: World>(context: &RunContext<T, W>, attempt_id: Digest) -> Option<WriterEvent> {
    context.look(|state| state.attempts().get(&attempt_id).and_then(|attempt| attempt.events.last().cloned()))
}

/// The object id recorded when an attempt's stage was created.
pub(crate) fn object_id<T: Target, W: World>(context: &RunContext<T, W>, attempt_id: Digest) -> Option<i32> {
    let stage = last_event(context, attempt_id)?.stage?;
    i32::try_from(stage.object_id).ok()
}

fn is_settled<T: Target, W: World>(context: &RunContext<T, W>, attempt_id: Digest) -> bool {
    let state = context.look(|state| state.attempts().get(&attempt_id).and_then(|attempt| attempt.state()));
    state == Some(EventKind::Retired)
}

/// Obtains the grant's lock, which the writer's session held: it is gone. What the stage holds is recorded where the
/// attempt's history allows it.
async fn prove_settled<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    attempt: &Attempt,
) -> Result<(), PortError> {
    let mut writer = context.target.open_writer(&attempt.grant(&context.fence(frozen))).await?;
    let last = last_event(context, attempt.attempt_id);
    let observed = match (&last, object_id(context, attempt.attempt_id)) {
        (Some(last), Some(object_id)) if follows_unknown(last.kind) => {
            let stage = StageRef { definition: attempt.definition.clone(), object_id };
            observe_twice(&mut writer, &stage, last.artifact.rows).await
        }
        _ => None,
    };
    // Why not an error: the lock was granted, which is the proof. Dropping the stage asks for it again.
    if let Err(error) = writer.close().await {
        tracing::debug!(code = %error.code, "a session that settled an attempt did not close in order");
    }
    let proved = context.look(|state| state.nonpublication().is_some());
    let (Some(last), Some(observation), false) = (last, observed, proved) else { return Ok(()) };
    record_partial(context, frozen, last, observation).await
}

/// Whether an attempt in this state can still become UNKNOWN, or is.
fn follows_unknown(kind: EventKind) -> bool {
    kind == EventKind::Unknown || kind.next().contains(&EventKind::Unknown)
}

/// Two equal observations under the grant's lock; a stage that is gone or strange gives none and is settled all the same.
async fn observe_twice<S: StageWriter>(writer: &mut S, stage: &StageRef, rows: u64) -> Option<DigestObservation> {
    let first = writer.verify(stage, rows).await.ok()?;
    let second = writer.verify(stage, rows).await.ok()?;
    (first == second).then_some(first)
}

/// UNKNOWN and PARTIAL_PROVED, as far as they may follow.
async fn record_partial<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    mut last: WriterEvent,
    observation: DigestObservation,
) -> Result<(), PortError> {
    let outcome = last.observation.as_ref().map_or(WriterOutcome::CustodyLost, |seen| seen.writer_outcome);
    let partial = Observation {
        writer_outcome: outcome,
        input_rows_consumed: last.observation.as_ref().and_then(|seen| seen.input_rows_consumed),
        row_count: u64::try_from(observation.row_count).ok(),
        count_overflow: Some(observation.overflow),
        limbs: Some(observation.limbs),
        quiescence: Quiescence::Proved,
        diagnostic_code: "mssql_native.partial_stage_proved".to_string(),
    };
    let unknown = Observation {
        quiescence: Quiescence::Unverified,
        row_count: None,
        count_overflow: None,
        limbs: None,
        diagnostic_code: "mssql_native.writer_uncertain".to_string(),
        ..partial.clone()
    };
    let mut batch = Vec::new();
    for (kind, observation) in [(EventKind::Unknown, unknown), (EventKind::PartialProved, partial)] {
        if !last.kind.next().contains(&kind) {
            continue;
        }
        let new =
            NewEvent { kind, stage: None, writer: None, observation: Some(observation), created_at: context.now() };
        last = chain::append(&frozen.identity, &last, &new).map_err(|fault| fault.into_refusal())?;
        let (id, ordinal) = (last.attempt_id.to_string(), last.artifact.ordinal);
        let key = names::event_key(last.invocation_key, ordinal, &id, last.sequence);
        batch.push(records::once(&context.run_key, kind::WRITER_EVENT, &key, last.document()));
    }
    if batch.is_empty() { Ok(()) } else { context.record(batch).await }
}

/// No receipt under the publication locks, then the durable proof that rests on it.
async fn prove_unpublished<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Result<(), PortError> {
    if context.look(|state| state.nonpublication().is_some()) {
        return Ok(());
    }
    let (request, operation) = (&frozen.request, &frozen.operation);
    let probe = context.target.probe_receipt(request, operation, context.publication_lock_timeout_ms).await?;
    if let ReceiptProbe::Present(_) = probe {
        return Err(PortError::unknown(
            "mssql_native.publication_unresolved",
            "the target holds a receipt of a run that its journal says is unpublished: keep everything and compare both",
        ));
    }
    let key = frozen.identity.invocation_key();
    let sealed = context.look(|state| state.completion().is_some());
    let proof = if sealed { names::unpublished_proof(key) } else { names::nonpublication_proof(key) };
    let payload = Json::object([("proof_sha256", Json::from(proof))]);
    context.record(vec![records::once(&context.run_key, kind::NONPUBLICATION, "proof", &payload)]).await
}

/// Drops one attempt's stage and records that it is gone.
async fn retire<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    attempt: &Attempt,
) -> Result<(), PortError> {
    if is_settled(context, attempt.attempt_id) {
        return Ok(());
    }
    let grant = attempt.grant(&context.fence(frozen));
    let object_id = object_id(context, attempt.attempt_id);
    let stage = match context.target.retire_stage(&grant, &attempt.definition, object_id).await? {
        StageRetirement::Dropped => StageGone::Dropped,
        StageRetirement::AlreadyAbsent => StageGone::AlreadyAbsent,
    };
    let proof = context.look(contract::transfer::run::RunState::nonpublication).ok_or_else(records::invalid)?;
    let settlement = Settlement { attempt_id: attempt.attempt_id, stage, nonpublication_proof: proof };
    let id = attempt.attempt_id.to_string();
    let record = records::once(&context.run_key, kind::ATTEMPT_SETTLEMENT, &id, &settlement.document());
    context.record(vec![record]).await
}

/// Releases custody at the target, then in the journal, then removes the chunk files.
pub(crate) async fn release<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
    reason: ReleaseReason,
) -> Result<(), PortError> {
    let release = CustodyRelease {
        request: frozen.request.clone(),
        target_identity: frozen.operation.target_identity,
        holder: frozen.identity.invocation_key(),
        custody_epoch: claimed.custody_epoch,
        reason: reason.text(),
        fence: context.fence(frozen),
    };
    context.target.release_custody(&release).await?;
    let held = matches!(context.transfer().map(|transfer| transfer.custody), Some(TransferCustody::Held));
    if held {
        context.advance(TransferEvent::CustodyReleased(reason), Json::Null).await?;
    }
    release_local(context, frozen, reason).await
}

/// Clears our own record of custody, where it is ours, and removes the chunk files.
pub(crate) async fn release_local<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    reason: ReleaseReason,
) -> Result<(), PortError> {
    let key = names::custody_key(&frozen.identity.plan.target_id);
    if let Some(held) = context.custody(&frozen.identity.plan.target_id).await? {
        let clear: CustodyRecord = held.release(frozen.identity.invocation_key(), reason)?;
        if clear != held {
            context.record(vec![records::shared(CUSTODY, &key, &clear.document())]).await?;
        }
    }
    context.spool.clear()
}
