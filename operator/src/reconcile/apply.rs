//! One step, performed: creates by deterministic names, deletes and patches bound to UID and resource version.
//!
//! An object of a name that exists already is ours only when it carries our UID label.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;

use super::build;
use super::decide::Step;
use super::decide::observation::Trouble;
use super::decide::state::Worker;
use super::dereference::{Look, template};
use crate::api::{ApiError, call, found};
use crate::crd::NativeTransfer;
use crate::crd::condition::Reason;
use crate::names;

/// How a step went.
#[derive(Debug, PartialEq, Eq)]
pub enum Performed {
    /// It is done, or was done already.
    Done,
    /// Something changed meanwhile: a new look decides.
    Stale,
    /// The API server refuses it and will again.
    Refused(Trouble),
}

/// Performs a step that was decided on a look whose resource now has the resource version `version`.
///
/// # Errors
/// [`ApiError`] where a new look has to find out what happened.
pub async fn perform(
    client: &Client,
    look: &Look,
    step: &Step,
    token: &str,
    version: &str,
) -> Result<Performed, ApiError> {
    if *step == Step::Nothing {
        return Ok(Performed::Done);
    }
    let owner = look.owner();
    let transfers: Api<NativeTransfer> = Api::namespaced(client.clone(), owner.namespace);
    let fresh = found(call("read the transfer again", transfers.get_metadata(owner.name)).await)?;
    if fresh.and_then(|fresh| fresh.metadata.resource_version).as_deref() != Some(version) {
        return Ok(Performed::Stale);
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), owner.namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), owner.namespace);
    match step {
        Step::Nothing => Ok(Performed::Done),
        Step::Guard => {
            let mut finalizers = look.transfer.finalizers().to_vec();
            finalizers.push(names::PUBLICATION_CUSTODY.to_owned());
            settle(set_finalizers(&transfers, owner.name, &finalizers, version).await)
        }
        Step::Unguard => {
            let finalizers = without(look.transfer.finalizers(), names::PUBLICATION_CUSTODY);
            settle(set_finalizers(&transfers, owner.name, &finalizers, version).await)
        }
        Step::CreateClaim => create_claim(&claims, look).await,
        Step::CreatePod(worker) => create_pod(&pods, look, worker, token).await,
        Step::StopPod { name, uid, only_unstarted } => {
            let seen = look.pods.iter().find(|pod| pod.uid().as_deref() == Some(uid));
            let version = seen.and_then(ResourceExt::resource_version).filter(|_| *only_unstarted);
            delete(&pods, name, uid, version).await
        }
        Step::ReleasePod { name, uid } => release(&pods, name, uid, names::RESULT_UNREAD).await,
        Step::RemovePod { name, uid } => delete(&pods, name, uid, None).await,
        Step::GrowClaim { uid } => grow_claim(&claims, look, uid).await,
        Step::ReleaseClaim { uid } => {
            let name = names::claim(owner.uid);
            match delete(&claims, &name, uid, None).await? {
                Performed::Done => release(&claims, &name, uid, names::JOURNAL_CUSTODY).await,
                other => Ok(other),
            }
        }
    }
}

fn without(finalizers: &[String], ours: &str) -> Vec<String> {
    finalizers.iter().filter(|finalizer| *finalizer != ours).cloned().collect()
}

/// An answer to a write: conflicts and absences are stale looks, refusals that last are told.
fn settle(answer: Result<(), ApiError>) -> Result<Performed, ApiError> {
    match answer {
        Ok(()) => Ok(Performed::Done),
        Err(error) if error.is_conflict() || error.is_absent() => Ok(Performed::Stale),
        Err(error) => match error.lasting() {
            Some(message) if error.is_namespace_terminating() => Ok(Performed::Refused(Trouble {
                reason: Reason::NamespaceTerminating,
                message: format!("The namespace is being deleted: {message}"),
            })),
            Some(message) => Ok(Performed::Refused(trouble(message))),
            None => Err(error),
        },
    }
}

fn trouble(message: &str) -> Trouble {
    Trouble { reason: Reason::CreationRefused, message: format!("The API server refuses: {message}") }
}

/// Writes a list of finalizers, if the object is still the one of that version.
async fn set_finalizers<K>(api: &Api<K>, name: &str, finalizers: &[String], version: &str) -> Result<(), ApiError>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}}));
    call("change finalizers", api.patch_metadata(name, &PatchParams::default(), &patch)).await.map(|_| ())
}

/// Takes our finalizer off an object of that UID.
async fn release<K>(api: &Api<K>, name: &str, uid: &str, ours: &str) -> Result<Performed, ApiError>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let Some(object) = found(call("read an object's metadata", api.get_metadata(name)).await)? else {
        return Ok(Performed::Done);
    };
    if object.uid().as_deref() != Some(uid) || !object.finalizers().iter().any(|finalizer| finalizer == ours) {
        return Ok(Performed::Done);
    }
    let version = object.resource_version().unwrap_or_default();
    settle(set_finalizers(api, name, &without(object.finalizers(), ours), &version).await)
}

async fn delete<K>(api: &Api<K>, name: &str, uid: &str, version: Option<String>) -> Result<Performed, ApiError>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: version };
    let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match call("delete an object", api.delete(name, &how)).await {
        Err(error) if error.is_absent() => Ok(Performed::Done),
        answer => settle(answer.map(|_| ())),
    }
}

async fn create_claim(claims: &Api<PersistentVolumeClaim>, look: &Look) -> Result<Performed, ApiError> {
    let Some((_, settings)) = &look.accepted else { return Ok(Performed::Stale) };
    let claim = build::claim(&look.owner(), settings);
    match call("create the journal's claim", claims.create(&parameters(), &claim)).await {
        // Whose it is shows the next look.
        Err(error) if error.exists() => Ok(Performed::Stale),
        answer => settle(answer.map(|_| ())),
    }
}

/// Raises what the claim asks for; whether the volume grows is its class's affair.
async fn grow_claim(claims: &Api<PersistentVolumeClaim>, look: &Look, uid: &str) -> Result<Performed, ApiError> {
    let Some((_, settings)) = &look.accepted else { return Ok(Performed::Stale) };
    let size = json!({"resources": {"requests": {"storage": settings.journal_size}}});
    let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "spec": size}));
    let name = names::claim(look.owner().uid);
    settle(call("grow the journal's claim", claims.patch(&name, &PatchParams::default(), &patch)).await.map(|_| ()))
}

async fn create_pod(pods: &Api<Pod>, look: &Look, worker: &Worker, token: &str) -> Result<Performed, ApiError> {
    let Some((frozen, settings)) = &look.accepted else { return Ok(Performed::Stale) };
    let owner = look.owner();
    let mut pod = build::pod(&build::Worker {
        owner,
        token,
        phase: worker.id.phase,
        attempt: i64::from(worker.id.attempt),
        try_: i64::from(worker.id.r#try),
        epoch_floor: i64::try_from(worker.epoch_floor).unwrap_or(i64::MAX),
        frozen,
        settings,
    });
    let template = template(frozen, settings, worker.id.phase);
    pod.annotations_mut().insert(names::TEMPLATE_ANNOTATION.to_owned(), template);
    let name = pod.name_any();
    match call("create a worker pod", pods.create(&parameters(), &pod)).await {
        Err(error) if error.exists() => {
            let stored = found(call("read a worker pod", pods.get_metadata(&name)).await)?;
            let ours = stored.is_some_and(|stored| {
                stored.labels().get(names::TRANSFER_UID_LABEL).is_some_and(|label| label == owner.uid)
            });
            let foreign = || trouble(&format!("a pod {name} that is not of this transfer has the worker's name"));
            Ok(if ours { Performed::Done } else { Performed::Refused(foreign()) })
        }
        answer => settle(answer.map(|_| ())),
    }
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() }
}
