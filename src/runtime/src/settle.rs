//! Settlement of a run that ends before its end of source: prove, retire, release (spec "Detailed algorithm" step 12).
//!
//! ```text
//! fence      this opener is the one that may act
//! settle     each grant's applock obtained: its writer's session is gone
//! probe      no receipt under the publication locks: nothing was published, nothing is in flight
//! proof      the non-publication proof is durable
//! retire     each stage proved ours and dropped, or proved absent
//! release    custody at the target, then in the journal; the chunk files go
//! ```
//!
//! Each step is repeatable; a step that cannot be proved leaves everything as it is and custody held.

use contract::attempt::EventKind;
use contract::attempt::chain::{self, NewEvent};
use contract::attempt::event::{Observation, WriterEvent};
use contract::attempt::{Quiescence, WriterOutcome};
use contract::canon::{Json, decode_object};
use contract::custody::{CustodyRecord, ReleaseReason};
use contract::digest::Digest;
use contract::error::PortError;
use contract::names;
use contract::port::target::{
    Claim, ClaimOutcome, CustodyRelease, ReceiptProbe, StageRef, StageRetirement, StageWriter, Target,
};
use contract::port::world::World;

use crate::chunk::Attempt;
use crate::context::RunContext;
use crate::frozen::{Claimed, Frozen};
use crate::progress::Stage;
use crate::records::{self, CLAIMED, CUSTODY, GRANT, NONPUBLICATION, RETIRED, Records, WRITER};

/// Seconds of an operation's lease; publication does not depend on it, a takeover by another owner does.
pub(crate) const LEASE_SECONDS: u32 = 3600;

/// Settles a frozen run. `Ok` = custody is released at both places.
pub(crate) async fn settle<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Result<(), PortError> {
    context.progress.enter(Stage::Settling);
    let records = context.records().await?;
    let Some(claimed) = claim_again(context, frozen, &records).await? else {
        // Another run holds the target, so this one never did: only our own record is to be cleared.
        return release_local(context, frozen, ReleaseReason::NonpublicationAllStagesRetired).await;
    };
    let attempts = attempts(&records, frozen)?;
    for attempt in attempts.iter().filter(|attempt| !is_retired(&records, &attempt.attempt.definition.name.table)) {
        prove_settled(context, frozen, attempt).await?;
    }
    let probe =
        context.target.probe_receipt(&frozen.request, &frozen.operation, context.publication_lock_timeout_ms).await?;
    if let ReceiptProbe::Present(_) = probe {
        return Err(PortError::unknown(
            "mssql_native.publication_unresolved",
            "the target holds a receipt of a run whose source never ended: keep everything and compare journal and receipt",
        ));
    }
    let proof = names::nonpublication_proof(frozen.identity.invocation_key());
    let payload = Json::object([("proof_sha256", Json::from(proof))]);
    context.append(vec![records::once(&context.run_key, NONPUBLICATION, "proof", &payload)]).await?;
    for attempt in &attempts {
        retire(context, frozen, attempt).await?;
    }
    release(context, frozen, &claimed, ReleaseReason::NonpublicationAllStagesRetired).await
}

/// The claim as recorded, or made again: whether an unanswered claim took place is decided by repeating it.
async fn claim_again<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    records: &Records,
) -> Result<Option<Claimed>, PortError> {
    if let Some(document) = records.one(CLAIMED)? {
        context.raise_fence(frozen).await?;
        return Claimed::from_document(&document).map(Some);
    }
    match context.target.claim(&claim(context, frozen)).await? {
        ClaimOutcome::Claimed { generation, operation_epoch, custody_epoch, claimed_at } => {
            let claimed = Claimed { generation, operation_epoch, custody_epoch, claimed_at };
            context.append(vec![records::once(&context.run_key, CLAIMED, "claim", &claimed.document())]).await?;
            Ok(Some(claimed))
        }
        ClaimOutcome::Held { .. } => Ok(None),
        ClaimOutcome::Fenced => Err(fenced()),
    }
}

/// The claim of a frozen run under this opener's fence.
pub(crate) fn claim<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Claim {
    Claim {
        request: frozen.request.clone(),
        operation: frozen.operation.clone(),
        holder: frozen.identity.invocation_key(),
        fence: context.fence(frozen),
        lease_seconds: LEASE_SECONDS,
    }
}

pub(crate) fn fenced() -> PortError {
    PortError::not_done(
        "native_transfer.run_fenced",
        "a later opener of this journal, or of a copy of it, has taken over: this process must not act; look at the other one",
    )
}

/// An attempt with what the journal knows of it.
pub(crate) struct KnownAttempt {
    pub(crate) attempt: Attempt,
    pub(crate) last: Option<WriterEvent>,
}

impl KnownAttempt {
    /// The object id recorded at creation.
    pub(crate) fn object_id(&self) -> Option<i32> {
        self.last.as_ref().and_then(|event| event.stage.as_ref()).and_then(|stage| i32::try_from(stage.object_id).ok())
    }
}

/// All attempts of a run, their event chains verified.
pub(crate) fn attempts(records: &Records, frozen: &Frozen) -> Result<Vec<KnownAttempt>, PortError> {
    let mut known = Vec::new();
    for record in records.of(GRANT) {
        let attempt = Attempt::from_record(&records::document(record)?, &frozen.columns)?;
        known.push(KnownAttempt { attempt, last: None });
    }
    for record in records.of(WRITER) {
        let document = decode_object(record.payload.as_bytes()).map(Json::Object).map_err(|_| records::invalid())?;
        let id = document.get("attempt_id").and_then(Json::as_str).and_then(|text| text.parse::<Digest>().ok());
        let known = known.iter_mut().find(|known| Some(known.attempt.attempt_id) == id).ok_or_else(records::invalid)?;
        let event = chain::read(&frozen.identity, document, known.last.as_ref(), known.attempt.attempt_id)
            .map_err(|fault| fault.into_stored_refusal())?;
        known.last = Some(event);
    }
    Ok(known)
}

/// Whether a table's retirement is recorded.
pub(crate) fn is_retired(records: &Records, table: &str) -> bool {
    records.of(RETIRED).any(|record| record.key == table)
}

/// Obtains the grant's lock, which the writer's session held: it is gone. What the stage holds is recorded where the
/// attempt's history allows it.
async fn prove_settled<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    known: &KnownAttempt,
) -> Result<(), PortError> {
    let mut writer = context.target.open_writer(&known.attempt.grant(&context.fence(frozen))).await?;
    let observed = match (&known.last, known.object_id()) {
        (Some(last), Some(object_id)) if !matches!(last.kind, EventKind::Verified | EventKind::PartialProved) => {
            let stage = StageRef { definition: known.attempt.definition.clone(), object_id };
            let first = writer.verify(&stage, last.artifact.rows).await;
            let second = writer.verify(&stage, last.artifact.rows).await;
            match (first, second) {
                (Ok(first), Ok(second)) if first == second => Some(first),
                _ => None,
            }
        }
        _ => None,
    };
    writer.close().await?;
    let (Some(last), Some(observation)) = (&known.last, observed) else { return Ok(()) };
    let seen = Observation {
        writer_outcome: WriterOutcome::CustodyLost,
        input_rows_consumed: None,
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
        ..seen.clone()
    };
    let steps = [(EventKind::Unknown, Some(unknown)), (EventKind::PartialProved, Some(seen))];
    follow(context, frozen, last.clone(), steps).await.map(drop)
}

/// Appends the events that may follow, in order, skipping those that are behind already.
async fn follow<T: Target, W: World, const N: usize>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    mut last: WriterEvent,
    steps: [(EventKind, Option<Observation>); N],
) -> Result<WriterEvent, PortError> {
    let mut batch = Vec::new();
    for (kind, observation) in steps {
        if !last.kind.next().contains(&kind) {
            continue;
        }
        let new = NewEvent { kind, stage: None, writer: None, observation, created_at: context.now() };
        last = chain::append(&frozen.identity, &last, &new).map_err(|fault| fault.into_refusal())?;
        let key =
            names::event_key(last.invocation_key, last.artifact.ordinal, &last.attempt_id.to_string(), last.sequence);
        batch.push(records::once(&context.run_key, WRITER, &key, last.document()));
    }
    if !batch.is_empty() {
        context.append(batch).await?;
    }
    Ok(last)
}

/// Drops one attempt's stage and records that it is gone.
async fn retire<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    known: &KnownAttempt,
) -> Result<(), PortError> {
    let records = context.records().await?;
    if is_retired(&records, &known.attempt.definition.name.table) {
        return Ok(());
    }
    let grant = known.attempt.grant(&context.fence(frozen));
    let retirement = context.target.retire_stage(&grant, &known.attempt.definition, known.object_id()).await?;
    let current = attempts(&records, frozen)?;
    let last = current.into_iter().find(|a| a.attempt.attempt_id == known.attempt.attempt_id).and_then(|a| a.last);
    if let Some(last) = last {
        let steps =
            [(EventKind::FailedRetirable, last.observation.clone()), (EventKind::Retired, last.observation.clone())];
        follow(context, frozen, last, steps).await?;
    }
    retired(context, &known.attempt.definition.name.table, retirement).await
}

/// Records that a table is gone.
pub(crate) async fn retired<T: Target, W: World>(
    context: &RunContext<T, W>,
    table: &str,
    retirement: StageRetirement,
) -> Result<(), PortError> {
    let how = match retirement {
        StageRetirement::Dropped => "dropped",
        StageRetirement::AlreadyAbsent => "absent",
    };
    let payload =
        Json::object([("table", Json::from(table)), ("how", Json::from(how)), ("at", Json::from(context.now()))]);
    context.append(vec![records::once(&context.run_key, RETIRED, table, &payload)]).await
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
    release_local(context, frozen, reason).await
}

async fn release_local<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    reason: ReleaseReason,
) -> Result<(), PortError> {
    let key = names::custody_key(&frozen.identity.plan.target_id);
    let held = context.custody(&frozen.identity.plan.target_id).await?;
    let Some(held) = held else { return Ok(()) };
    let clear: CustodyRecord = held.release(frozen.identity.invocation_key(), reason)?;
    if clear != held {
        context.append(vec![records::shared(CUSTODY, &key, &clear.document())]).await?;
    }
    context.spool.clear()
}
