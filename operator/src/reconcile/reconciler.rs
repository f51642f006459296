//! The reconciler: look, decide, store the status, take the step; again until nothing is left to do now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::runtime::reflector::Store;
use kube::{Client, ResourceExt};

use super::apply::{self, Performed};
use super::decide::observation::{Competitor, Life, Trouble};
use super::decide::state::Run;
use super::decide::{Decision, Step, Wait, decide};
use super::dereference::{self, Look};
use super::validate::Defaults;
use super::{progress, status};
use crate::api::{ApiError, call, found};
use crate::crd::NativeTransfer;
use crate::crd::status::{NativeTransferStatus, WorkerPhase, WorkerState};
use crate::events::Events;
use crate::names;

/// Most steps of one transfer before others get their turn.
const STEPS_MAX: usize = 8;

/// A transfer that reports nothing is looked at again after this, in case that an event was lost.
const RESYNC: Duration = Duration::from_mins(30);

/// Progress is asked for, and written, at most this often.
const PROGRESS_SECONDS: i64 = 10;

/// A refused step is tried again after this.
const REFUSED_AGAIN: Duration = Duration::from_secs(20);

/// A look that was overtaken is repeated after this.
const STALE_AGAIN: Duration = Duration::from_millis(200);

/// Most other transfers of one target that are read before a grant.
const COMPETITORS_MAX: usize = 32;

/// What reconciles share.
pub struct Context {
    /// Client without a retry layer.
    pub client: Client,
    /// What the operator brings to every pod.
    pub defaults: Defaults,
    /// Events.
    pub events: Events,
    /// Caches of transfers, one per watched namespace: who else may want a target.
    pub stores: Mutex<Vec<Store<NativeTransfer>>>,
    /// Held from the last look at a target to the stored grant, so that two transfers of one process never both get it.
    gate: tokio::sync::Mutex<()>,
    /// What the API server last refused, by UID.
    refusals: Mutex<BTreeMap<String, Trouble>>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("defaults", &self.defaults).finish_non_exhaustive()
    }
}

impl Context {
    /// A context without caches yet.
    pub fn new(client: Client, defaults: Defaults, events: Events) -> Self {
        Context {
            client,
            defaults,
            events,
            stores: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    fn refused(&self, uid: &str) -> Option<Trouble> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).get(uid).cloned()
    }

    fn refuse(&self, uid: &str, trouble: Option<Trouble>) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble {
            Some(trouble) => refusals.insert(uid.to_owned(), trouble),
            None => refusals.remove(uid),
        };
    }

    async fn look(&self, namespace: &str, name: &str) -> Result<Option<Look>, ApiError> {
        let now = Timestamp::now().as_second();
        let look = dereference::look(&self.client, &self.defaults, namespace, name, now).await?;
        let Some(mut look) = look else { return Ok(None) };
        look.observation.refused = self.refused(&look.observation.uid);
        if let Some(target) = wanted_target(look.observation.state.run.as_ref()) {
            look.observation.competitors = self.competitors(&target, &look.observation.uid, now).await?;
        }
        Ok(Some(look))
    }

    /// The other transfers to a target that are not at rest: found in the caches, then read again.
    async fn competitors(&self, target: &str, uid: &str, now: i64) -> Result<Vec<Competitor>, ApiError> {
        let known: Vec<Arc<NativeTransfer>> = {
            let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
            stores.iter().flat_map(Store::state).collect()
        };
        let mut competitors = Vec::new();
        for other in dereference::candidates(known, uid, target).iter().take(COMPETITORS_MAX) {
            let api: Api<NativeTransfer> = Api::namespaced(self.client.clone(), &other.namespace().unwrap_or_default());
            let fresh = found(call("read another transfer", api.get(&other.name_any())).await)?;
            competitors.extend(fresh.and_then(|fresh| dereference::competitor(&fresh, target, now)));
        }
        Ok(competitors)
    }

    async fn store(&self, look: &Look, wanted: NativeTransferStatus) -> Result<Option<String>, ApiError> {
        let api: Api<NativeTransfer> = Api::namespaced(self.client.clone(), look.owner().namespace);
        let mut transfer = look.transfer.clone();
        transfer.status = Some(wanted);
        transfer.metadata.managed_fields = None;
        let parameters = PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let answer = api.replace_status(look.owner().name, &parameters, &transfer);
        match call("write the transfer's status", answer).await {
            Ok(stored) => Ok(stored.resource_version()),
            Err(error) if error.is_conflict() || error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The target that a run waits to be granted.
fn wanted_target(run: Option<&Run>) -> Option<String> {
    let run = run.filter(|run| run.rest.is_none())?;
    let worker = run.worker.as_ref()?;
    let waits = worker.id.phase == WorkerPhase::Extract && !worker.settling && !worker.granted;
    run.target.clone().filter(|_| waits)
}

/// Reconciles one transfer; when to look again.
///
/// # Errors
/// [`ApiError`]: nothing is known to be lost by it, a new look decides.
pub async fn reconcile(context: &Context, namespace: &str, name: &str) -> Result<Duration, ApiError> {
    for _ in 0..STEPS_MAX {
        let Some(look) = context.look(namespace, name).await? else { return Ok(RESYNC) };
        let decision = decide(&look.observation);
        // A first decision to grant is made again behind the gate, on a look of its own.
        let (_gate, look, decision) = if grants(&look, &decision) {
            let gate = context.gate.lock().await;
            let Some(look) = context.look(namespace, name).await? else { return Ok(RESYNC) };
            let decision = decide(&look.observation);
            (Some(gate), look, decision)
        } else {
            (None, look, decision)
        };
        match turn(context, &look, &decision).await? {
            Turn::Again => {}
            Turn::After(wait) => return Ok(wait),
        }
    }
    Ok(STALE_AGAIN)
}

fn grants(look: &Look, decision: &Decision) -> bool {
    let granted =
        |run: Option<&Run>| run.and_then(|run| run.worker.as_ref()).is_some_and(|worker| worker.granted).then_some(());
    granted(look.observation.state.run.as_ref()) != granted(decision.state.run.as_ref())
}

enum Turn {
    Again,
    After(Duration),
}

/// Stores the status of a decision, then takes its step.
async fn turn(context: &Context, look: &Look, decision: &Decision) -> Result<Turn, ApiError> {
    let owner = look.owner();
    let old = look.transfer.status.as_ref();
    let shown = status::Shown { effective: look.effective.clone(), worker: shown_worker(look, decision) };
    let mut wanted = status::write(&owner, &decision.state, old, shown, look.observation.now);
    if decision.step == Step::Nothing && decision.wait == Wait::Working {
        show_progress(look, decision, &mut wanted).await;
    }
    let mut version = look.transfer.resource_version().unwrap_or_default();
    // A resource that lets go of everything is not written any more: its last word is its disappearance.
    if old != Some(&wanted) && decision.step != Step::Unguard && decision.wait != Wait::Released {
        match context.store(look, wanted).await? {
            Some(stored) => version = stored,
            None => return Ok(Turn::After(STALE_AGAIN)),
        }
        context.events.publish(&look.transfer, &decision.notes).await;
    }
    let token = decision.state.run.as_ref().map_or("", |run| run.token.as_str());
    match apply::perform(&context.client, look, &decision.step, token, &version).await? {
        Performed::Stale => return Ok(Turn::After(STALE_AGAIN)),
        Performed::Refused(trouble) => {
            tracing::warn!(namespace = owner.namespace, name = owner.name, message = %trouble.message, "a step was refused");
            let news = look.observation.refused.as_ref() != Some(&trouble);
            context.refuse(owner.uid, Some(trouble));
            return Ok(Turn::After(if news { STALE_AGAIN } else { REFUSED_AGAIN }));
        }
        Performed::Done => {
            if decision.step != Step::Nothing {
                tracing::info!(namespace = owner.namespace, name = owner.name, step = ?decision.step, "step");
                context.refuse(owner.uid, None);
            }
        }
    }
    Ok(match (&decision.step, decision.again_after) {
        (Step::Unguard, _) => Turn::After(RESYNC),
        (_, Some(0)) => Turn::Again,
        (_, Some(_)) if decision.wait == Wait::Working => Turn::After(seconds(PROGRESS_SECONDS)),
        (_, Some(wait)) => Turn::After(seconds(wait)),
        (_, None) => Turn::After(RESYNC),
    })
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// How far the current pod has come, as its status says.
fn shown_worker(look: &Look, decision: &Decision) -> Option<WorkerState> {
    let worker = decision.state.run.as_ref()?.worker.as_ref()?;
    let pod = look.observation.pods.iter().find(|pod| pod.worker == Some(worker.id))?;
    Some(match pod.life {
        Life::Pending(_) => WorkerState::Pending,
        Life::Running => WorkerState::Running,
        Life::Unreachable => WorkerState::Unreachable,
        Life::Lost | Life::Dead(_) => WorkerState::Terminated,
    })
}

async fn show_progress(look: &Look, decision: &Decision, wanted: &mut NativeTransferStatus) {
    let Some(run) = &decision.state.run else { return };
    let Some(worker) = &run.worker else { return };
    let due = wanted
        .progress
        .as_ref()
        .and_then(|progress| progress.observed_at.as_ref())
        .is_none_or(|at| look.observation.now >= status::seconds(at) + PROGRESS_SECONDS);
    let pod = look.pods.iter().find(|pod| pod.metadata.uid == worker.uid);
    let Some(pod) = pod.filter(|_| due && worker.id.phase != WorkerPhase::Inspect) else { return };
    let run_id = names::run_id(look.owner().uid, &run.token, i64::from(worker.id.attempt));
    if let Some(answer) = progress::ask(pod, &run_id, look.observation.now).await
        && progress::moved(wanted.progress.as_ref(), &answer)
    {
        wanted.progress = Some(answer);
    }
}
