//! One look: fresh reads of the transfer, its pods, its claim and, where it matters, of the other transfers to its target.
//!
//! Caches only say when to look. Children are found by the transfer's UID, never by its name.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod as CorePod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use contract::worker::{CustodyWord, FrozenPlan, Receipt as WorkerReceipt, RunTag, StateWord};

use super::build::{self, Owner};
use super::decide::observation::{
    Claim, Competitor, Life, Observation, Pod, Receipt, Rejection, Standing, Trouble, Wish,
};
use super::decide::state::{Custody, Run, WorkerId};
use super::validate::{self, Defaults, Settings};
use super::{life, quantity, status};
use crate::api::{ApiError, call, found};
use crate::crd::NativeTransfer;
use crate::crd::condition::ConditionType;
use crate::crd::status::{EffectiveStatus, WorkerPhase};
use crate::names;

/// Most events that are read about one pod.
const EVENTS_MAX: u32 = 20;

/// A look with what performing a step needs of it.
#[derive(Debug)]
pub struct Look {
    /// What decisions see.
    pub observation: Observation,
    /// The resource as it was read.
    pub transfer: NativeTransfer,
    /// Its pods as they were read.
    pub pods: Vec<CorePod>,
    /// What its pods are built from; none when the spec is refused.
    pub accepted: Option<(FrozenPlan, Settings)>,
    /// What applies where the spec says nothing.
    pub effective: Option<EffectiveStatus>,
}

impl Look {
    /// Whose children these are.
    pub fn owner(&self) -> Owner<'_> {
        owner(&self.transfer)
    }
}

/// Whose children belong to a transfer.
pub fn owner(transfer: &NativeTransfer) -> Owner<'_> {
    Owner {
        namespace: transfer.metadata.namespace.as_deref().unwrap_or_default(),
        name: transfer.metadata.name.as_deref().unwrap_or_default(),
        uid: transfer.metadata.uid.as_deref().unwrap_or_default(),
    }
}

/// Reads everything that a decision about a transfer needs; `None` when it is gone.
///
/// # Errors
/// [`ApiError`]: nothing is decided on half a look.
pub async fn look(
    client: &Client,
    defaults: &Defaults,
    namespace: &str,
    name: &str,
    now: i64,
) -> Result<Option<Look>, ApiError> {
    let transfers: Api<NativeTransfer> = Api::namespaced(client.clone(), namespace);
    let Some(transfer) = found(call("read the transfer", transfers.get(name)).await)? else { return Ok(None) };
    let uid = transfer.uid().unwrap_or_default();
    let pods: Api<CorePod> = Api::namespaced(client.clone(), namespace);
    let children = ListParams::default().labels(&names::children(&uid));
    let pods = call("list the transfer's pods", pods.list(&children)).await?.items;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    let claim = found(call("read the journal's claim", claims.get(&names::claim(&uid))).await)?;

    let state = status::read(transfer.status.as_ref());
    let validated = validate::validate(&transfer, defaults);
    let (wish, accepted, effective) = match validated {
        Ok(validated) => {
            let mut wish = wish(&transfer, Ok(validated.frozen.sha256().to_string()));
            let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
            wish.attempts = u32::try_from(validated.settings.attempts).unwrap_or(1);
            wish.deadline_seconds = validated.settings.deadline.map(seconds);
            wish.backoff_seconds = seconds(validated.settings.backoff);
            wish.retention_seconds = validated.settings.worker_pods_retention.map(seconds);
            if let Some(worker) = state.run.as_ref().and_then(|run| run.worker.as_ref()) {
                wish.template = template(&validated.frozen, &validated.settings, worker.id.phase);
            }
            (wish, Some((validated.frozen, validated.settings)), Some(validated.effective))
        }
        Err(refusal) => {
            let rejection = Rejection { code: refusal.code.to_string(), message: refusal.message.to_string() };
            (wish(&transfer, Err(rejection)), None, None)
        }
    };
    let mut seen: Vec<Pod> = pods.iter().map(|pod| pod_of(pod, &uid, state.run.as_ref(), now)).collect();
    explain_waiting(client, namespace, &mut seen, now).await;
    let observation = Observation {
        now,
        namespace: namespace.to_owned(),
        created_at: created_at(&transfer),
        generation: transfer.metadata.generation.unwrap_or_default(),
        deleting: transfer.metadata.deletion_timestamp.is_some(),
        guarded: transfer.finalizers().iter().any(|finalizer| finalizer == names::PUBLICATION_CUSTODY),
        wish,
        state,
        pods: seen,
        claim: claim_of(claim.as_ref(), &uid, accepted.as_ref().map(|(_, settings)| settings)),
        competitors: Vec::new(),
        used_tokens: used_tokens(&transfer),
        refused: None,
        uid,
    };
    Ok(Some(Look { observation, transfer, pods, accepted, effective }))
}

/// Creation time of a transfer, seconds since the epoch.
pub fn created_at(transfer: &NativeTransfer) -> i64 {
    transfer.metadata.creation_timestamp.as_ref().map_or(0, status::seconds)
}

fn wish(transfer: &NativeTransfer, plan: Result<String, Rejection>) -> Wish {
    let publish = transfer.annotations().get(names::ON_DELETE_ANNOTATION).is_some_and(|word| word == "publish");
    Wish {
        token: validate::token(&transfer.spec).to_owned(),
        suspend: transfer.spec.suspend.unwrap_or_default(),
        attempts: 1,
        deadline_seconds: None,
        backoff_seconds: 10,
        retention_seconds: None,
        publish_on_delete: publish,
        plan,
        template: String::new(),
    }
}

/// Digest of what a pod of a phase is built from besides its number: when it changes, a pod that never started is replaced.
pub fn template(frozen: &FrozenPlan, settings: &Settings, phase: WorkerPhase) -> String {
    let owner = Owner { namespace: "", name: "", uid: "" };
    let worker = build::Worker { owner, token: "", phase, attempt: 1, try_: 1, epoch_floor: 0, frozen, settings };
    let spec = build::pod(&worker).spec;
    // A pod specification always serializes; an empty text would only mean that nothing is replaced.
    let text = serde_json::to_string(&spec).unwrap_or_default();
    let mut digest = contract::digest::Digest::of(text.as_bytes()).to_string();
    digest.truncate(16);
    digest
}

fn pod_of(pod: &CorePod, uid: &str, run: Option<&Run>, now: i64) -> Pod {
    let label = |key: &str| pod.labels().get(key).map(String::as_str);
    let name = pod.name_any();
    let worker = run.and_then(|run| {
        let id = WorkerId {
            attempt: label(names::ATTEMPT_LABEL)?.parse().ok()?,
            phase: WorkerPhase::from_text(label(names::PHASE_LABEL)?)?,
            r#try: label(names::TRY_LABEL)?.parse().ok()?,
        };
        // The name carries UID and token, so a pod of another run is never taken for one of this.
        let meant = names::pod(uid, &run.token, id.phase, i64::from(id.attempt), i64::from(id.r#try));
        (meant == name).then_some(id)
    });
    let receipt = worker.zip(run).and_then(|(id, run)| receipt_of(pod, uid, run, id));
    Pod {
        worker,
        unread: pod.finalizers().iter().any(|finalizer| finalizer == names::RESULT_UNREAD),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        life: life::life(pod, now),
        receipt,
        template: pod.annotations().get(names::TEMPLATE_ANNOTATION).cloned().unwrap_or_default(),
        created_at: pod.metadata.creation_timestamp.as_ref().map_or(0, status::seconds),
        uid: pod.uid().unwrap_or_default(),
        name,
    }
}

/// The receipt in a pod's termination message, when it is whole and of this very run and phase.
fn receipt_of(pod: &CorePod, uid: &str, run: &Run, id: WorkerId) -> Option<Receipt> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let worker = containers.iter().find(|container| container.name == build::CONTAINER)?;
    let message = worker.state.as_ref()?.terminated.as_ref()?.message.as_deref()?;
    let tag = RunTag::of(&names::run_id(uid, &run.token, i64::from(id.attempt)));
    let receipt = WorkerReceipt::parse(message, &tag).ok()?;
    (WorkerPhase::from(receipt.phase) == id.phase).then(|| convert(receipt))
}

fn convert(receipt: WorkerReceipt) -> Receipt {
    let descriptor = receipt.eof.as_ref().map(|eof| contract::canon::strict(&eof.document()));
    Receipt {
        phase: receipt.phase.into(),
        exit_code: receipt.exit.code(),
        state: receipt.state.map_or("", StateWord::text).to_owned(),
        code: receipt.code,
        attempt_closed: receipt.attempt_closed,
        epoch: receipt.epoch.unwrap_or_default(),
        rows: receipt.rows,
        custody: match receipt.custody {
            CustodyWord::None => Custody::None,
            CustodyWord::Held => Custody::Held,
            CustodyWord::Released => Custody::Released,
            CustodyWord::Unknown => Custody::Unknown,
        },
        target: receipt.target.map(|digest| digest.to_string()),
        workload: receipt.workload.map(|digest| digest.to_string()),
        receipt_id: receipt.receipt_id,
        committed_at: receipt.committed_at,
        evidence: receipt.evidence.map(|digest| digest.to_string()),
        eof: receipt.eof.as_ref().map(|eof| eof.sha256().to_string()),
        descriptor: descriptor.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn claim_of(claim: Option<&PersistentVolumeClaim>, uid: &str, settings: Option<&Settings>) -> Claim {
    let Some(claim) = claim else { return Claim::Absent };
    if claim.labels().get(names::TRANSFER_UID_LABEL).is_none_or(|label| label != uid) {
        return Claim::Foreign;
    }
    let asked = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref()?.get("storage"));
    let asked = asked.and_then(|size| quantity::bytes(&size.0));
    let wished = settings.and_then(|settings| quantity::bytes(&settings.journal_size));
    Claim::Present {
        uid: claim.uid().unwrap_or_default(),
        guarded: claim.finalizers().iter().any(|finalizer| finalizer == names::JOURNAL_CUSTODY),
        deleting: claim.metadata.deletion_timestamp.is_some(),
        lost: claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost"),
        short: asked.zip(wished).is_some_and(|(asked, wished)| asked < wished),
    }
}

/// What a young pod waits for passes: the volume of the pod before it, the scheduler, a first mount. After this many seconds
/// it is told.
const YOUNG_SECONDS: i64 = 8;

/// Volumes and Secrets that cannot be mounted show in events alone. They are for people: a failure to read them is not one.
async fn explain_waiting(client: &Client, namespace: &str, pods: &mut [Pod], now: i64) {
    for pod in pods.iter_mut().filter(|pod| matches!(pod.life, Life::Pending(_))) {
        if now < pod.created_at.saturating_add(YOUNG_SECONDS) {
            pod.life = Life::Pending(None);
            continue;
        }
        if pod.life != Life::Pending(None) {
            continue;
        }
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        let about = ListParams::default().fields(&format!("involvedObject.uid={}", pod.uid)).limit(EVENTS_MAX);
        match call("list events of a pod", events.list(&about)).await {
            Ok(list) => pod.life = Life::Pending(last_trouble(&list.items)),
            Err(error) => tracing::debug!(%error, "events of a waiting pod"),
        }
    }
}

fn last_trouble(events: &[Event]) -> Option<Trouble> {
    let at = |event: &Event| event.last_timestamp.as_ref().map_or(0, status::seconds);
    let newest = events.iter().max_by_key(|event| at(event))?;
    life::trouble_of_event(newest.reason.as_deref()?, newest.message.as_deref().unwrap_or_default())
}

/// Tokens of earlier runs that the history in status still names.
fn used_tokens(transfer: &NativeTransfer) -> BTreeSet<String> {
    let Some(status) = &transfer.status else { return BTreeSet::new() };
    let current = status.run.as_ref().map(|run| run.token.as_str());
    let earlier = status.history.iter().map(|entry| &entry.token);
    earlier.filter(|token| Some(token.as_str()) != current).cloned().collect()
}

/// The cached transfers that may compete for a target, those first that occupy it and then the older ones: whoever reads
/// only the first few of them misses none that matters.
pub fn candidates(known: Vec<Arc<NativeTransfer>>, uid: &str, target: &str) -> Vec<Arc<NativeTransfer>> {
    let others = known.into_iter().filter(|other| other.uid().as_deref() != Some(uid) && may_want(other, target));
    let mut others: Vec<Arc<NativeTransfer>> = others.collect();
    others.sort_by_cached_key(|other| {
        let run = status::read(other.status.as_ref()).run;
        let occupies = run.is_some_and(|run| run.occupation().is_some());
        (!occupies, created_at(other), other.uid())
    });
    others
}

/// Whether a cached transfer may be a competitor: of this target, or of one that its cached status does not know yet.
fn may_want(other: &NativeTransfer, target: &str) -> bool {
    let Some(status) = &other.status else { return false };
    let ended = status.run.as_ref().is_none_or(|run| run.result.is_some());
    let known = status.custody.as_ref().and_then(|custody| custody.target.as_deref());
    !ended && known.is_none_or(|known| known == target)
}

/// What another transfer means to a target; nothing where it holds nothing and could not start now: suspended, stalled,
/// between two tries, or going away.
pub fn competitor(transfer: &NativeTransfer, target: &str, now: i64) -> Option<Competitor> {
    let state = status::read(transfer.status.as_ref());
    let run = state.run.as_ref().filter(|run| run.rest.is_none() && run.target.as_deref() == Some(target))?;
    let waits = state.condition(ConditionType::Stalled).is_none()
        && run.worker.as_ref().is_some_and(|worker| {
            worker.id.phase == WorkerPhase::Extract
                && !worker.settling
                && !worker.granted
                && worker.not_before <= now
                && !transfer.spec.suspend.unwrap_or_default()
                && transfer.metadata.deletion_timestamp.is_none()
        });
    Some(Competitor {
        namespace: transfer.namespace().unwrap_or_default(),
        name: transfer.name_any(),
        uid: transfer.uid().unwrap_or_default(),
        created_at: created_at(transfer),
        standing: run.occupation().or(waits.then_some(Standing::Waits))?,
    })
}

#[cfg(test)]
#[path = "dereference_tests.rs"]
mod tests;
