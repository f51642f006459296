//! Custody at both places and the durable recovery plan, before any row (spec "Detailed algorithm" steps 3 to 5).
//!
//! ```text
//! intend     the frozen run and our own custody record are durable; nothing at the target yet
//! claim      one batch at the target: registry, fence, attempt, operation, custody
//! record     identity, recovery plan, limits and the claim's answer are durable
//! ```

use contract::canon::Json;
use contract::civil::Instant;
use contract::code;
use contract::custody::CustodyRecord;
use contract::digest::Digest;
use contract::error::{Fate, PortError, Refusal};
use contract::names;
use contract::port::journal::NewRecord;
use contract::port::target::{Claim, ClaimOutcome, Target};
use contract::port::world::World;
use contract::recovery::plan::{
    Bindings, Operation, PlanWindow, RecoveryPlan, authority as plan_authority, state_store_binding, work_root_binding,
};
use contract::transfer::TransferEvent;
use contract::transfer::run::kind;

use crate::admit;
use crate::context::{RunContext, fenced};
use crate::frozen::{Claimed, Frozen};
use crate::records::{self, CUSTODY, FROZEN};

/// Seconds of an operation's lease; publication does not depend on it, a takeover by another owner does.
const LEASE_SECONDS: u32 = 3600;

/// Why there is no recorded claim.
#[derive(Debug)]
pub(crate) enum Unclaimed {
    /// Another invocation holds the target: nothing of ours is there.
    Held(PortError),
    /// This request changed nothing at the target. An earlier one may have.
    NotMade(PortError),
    /// The claim may stand at the target, or stands there without its record here.
    Open(PortError),
}

impl Unclaimed {
    pub(crate) fn into_error(self) -> PortError {
        match self {
            Unclaimed::Held(error) | Unclaimed::NotMade(error) | Unclaimed::Open(error) => error,
        }
    }
}

/// The intent of a claim: the frozen run and our own custody record, before anything at the target.
pub(crate) async fn intend<T: Target, W: World>(context: &RunContext<T, W>, frozen: &Frozen) -> Result<(), PortError> {
    let target_id = &frozen.identity.plan.target_id;
    let present = context.custody(target_id).await?;
    let (held, _) = CustodyRecord::claim(
        present.as_ref(),
        Digest::of(target_id.as_bytes()),
        frozen.identity.invocation_key(),
        context.journal.header().epoch,
    )?;
    let mut batch = vec![
        records::once(&context.run_key, FROZEN, "run", &frozen.document()),
        records::shared(CUSTODY, &names::custody_key(target_id), &held.document()),
    ];
    batch.extend(records::plan(&context.run_key, context.plan_document));
    context.record(batch).await
}

/// Claims custody at the target and records the answer. Repeating an unanswered claim decides whether it was made.
pub(crate) async fn claim<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
) -> Result<Claimed, Unclaimed> {
    let request = Claim {
        request: frozen.request.clone(),
        operation: frozen.operation.clone(),
        holder: frozen.identity.invocation_key(),
        fence: context.fence(frozen),
        lease_seconds: LEASE_SECONDS,
    };
    match context.target.claim(&request).await {
        Ok(ClaimOutcome::Claimed { generation, operation_epoch, custody_epoch, claimed_at }) => {
            let claimed = Claimed { generation, operation_epoch, custody_epoch, claimed_at };
            record(context, frozen, &claimed).await.map_err(Unclaimed::Open)?;
            Ok(claimed)
        }
        Ok(ClaimOutcome::Held { .. }) => Err(Unclaimed::Held(PortError::from(Refusal::new(
            code::CUSTODY_HELD,
            "another run holds this target: inspect and settle it first",
        )))),
        Ok(ClaimOutcome::Fenced) => Err(Unclaimed::Open(fenced())),
        Err(error) if error.fate == Fate::NotDone => Err(Unclaimed::NotMade(error)),
        Err(error) => Err(Unclaimed::Open(error)),
    }
}

async fn record<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
) -> Result<(), PortError> {
    let run = &context.run_key;
    context
        .record(vec![
            records::once(run, kind::IDENTITY, "identity", &frozen.identity.document()),
            recovery_plan(context, frozen, claimed)?,
            records::once(run, kind::LIMITS, "limits", &context.plan.limits.document()),
            records::event(run, TransferEvent::CustodyClaimed, claimed.document()),
        ])
        .await
}

/// The recovery plan under its key, in the bytes of its contract.
fn recovery_plan<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
) -> Result<NewRecord, PortError> {
    let invocation_id = frozen.identity.invocation_key();
    let plan = RecoveryPlan {
        invocation_id,
        schema: frozen.wire_columns(),
        window: context.plan.window().map(|window| PlanWindow {
            column: window.column().to_string(),
            start: window.start(),
            end: window.end(),
        }),
        authority: authority(context, frozen, claimed)?,
    };
    Ok(NewRecord {
        run: context.run_key.clone(),
        kind: kind::RECOVERY_PLAN,
        key: names::recovery_plan_key(invocation_id),
        unique: true,
        // The legacy form is ASCII.
        payload: String::from_utf8(plan.payload()).map_err(|_| records::invalid())?,
    })
}

/// The recovery authority: what binds the plan to journal, route and operation.
pub(crate) fn authority<T: Target, W: World>(
    context: &RunContext<T, W>,
    frozen: &Frozen,
    claimed: &Claimed,
) -> Result<Json, PortError> {
    let journal_id = &context.journal.header().journal_id;
    let o = &frozen.operation;
    let bindings = Bindings {
        authored_route_sha256: o.route_fingerprint,
        verification_identity_sha256: frozen.identity.invocation_key(),
        target_connection_sha256: o.target_identity,
        state_store_sha256: state_store_binding(journal_id),
        work_root_sha256: work_root_binding(journal_id),
    };
    let positive = |value: i64| u64::try_from(value).map_err(|_| records::invalid());
    let operation = Operation {
        invocation: admit::invocation(&context.plan, &context.run_id, &frozen.request.table)?,
        target_identity: o.target_identity,
        route_fingerprint: o.route_fingerprint,
        load_id: o.load_id.clone(),
        target_database: frozen.database.clone(),
        target_schema: frozen.request.table.schema.clone(),
        target_table: frozen.request.table.table.clone(),
        strategy: o.strategy.clone(),
        generation: positive(claimed.generation)?,
        is_current_generation: true,
        operation_key: o.operation_key,
        scope_hash: o.scope_hash,
        owner_digest: o.owner_digest,
        epoch: positive(claimed.operation_epoch)?,
        lease_expires_at: Instant::parse(&claimed.claimed_at)
            .and_then(|at| at.checked_add_micros(i64::from(LEASE_SECONDS) * 1_000_000)),
    };
    Ok(plan_authority(&bindings, &operation))
}
