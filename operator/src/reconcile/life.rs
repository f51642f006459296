//! What the status of a pod proves about its processes (facts of a real Kubernetes 1.37: docs/internals/operator.md).
//!
//! Dead is only what a kubelet has said to be dead: every container terminated, with its end, under the same pod UID; or a
//! pod that no node ever took; or one that a kubelet refused without creating a container. A phase, an exit code of 0, a
//! deletion timestamp, a missing node or the absence of the object prove nothing.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::decide::observation::{Death, Life, Trouble};
use super::status::seconds;
use crate::crd::condition::Reason;

/// How long after the end of its grace a pod that still runs is believed to be stopping, seconds.
const OVERDUE_SECONDS: i64 = 60;

/// What the kubelet says of a container that it cannot find any more.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// Classifies a pod.
pub fn life(pod: &Pod, now: i64) -> Life {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    let deleted_at = pod.metadata.deletion_timestamp.as_ref().map(seconds);
    let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref().is_some_and(|node| !node.is_empty()));
    let phase = status.phase.as_deref().unwrap_or_default();
    let terminal = matches!(phase, "Succeeded" | "Failed");
    let conditions = status.conditions.unwrap_or_default();

    if containers.iter().any(lost) {
        return Life::Lost;
    }
    if !containers.is_empty() && containers.iter().all(|container| end(container).is_some()) {
        return ended(&containers);
    }
    if !bound {
        // The scheduler binds no pod that is being deleted.
        return if terminal || deleted_at.is_some() {
            Life::Dead(Death::NeverStarted)
        } else {
            pending(&conditions, &containers)
        };
    }
    let collected = disruption(&conditions) == Some("DeletionByPodGC");
    if terminal {
        let started = containers.iter().any(|container| running(container) || end(container).is_some());
        // A pod whose node object is gone is called failed by the garbage collector, whatever its processes do.
        let refused = !collected && !started && (status.reason.is_some() || deleted_at.is_some());
        return if refused { Life::Dead(Death::NeverStarted) } else { Life::Unreachable };
    }
    let overdue = deleted_at.is_some_and(|at| now > at.saturating_add(OVERDUE_SECONDS));
    if overdue || collected || disruption(&conditions) == Some("DeletionByTaintManager") && deleted_at.is_some() {
        return Life::Unreachable;
    }
    if containers.iter().any(running) {
        let silent = condition(&conditions, "Ready").is_some_and(|ready| ready.status != "True");
        return if silent && deleted_at.is_none() { Life::Unreachable } else { Life::Running };
    }
    pending(&conditions, &containers)
}

/// When and how a container ended.
fn end(container: &ContainerStatus) -> Option<(i32, &str, i64)> {
    let terminated = container.state.as_ref()?.terminated.as_ref()?;
    let finished_at = seconds(terminated.finished_at.as_ref()?);
    Some((terminated.exit_code, terminated.reason.as_deref().unwrap_or_default(), finished_at))
}

fn running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Terminated, by a kubelet that does not know how.
fn lost(container: &ContainerStatus) -> bool {
    container.state.as_ref().and_then(|state| state.terminated.as_ref()).is_some_and(|terminated| {
        terminated.reason.as_deref() == Some(STATUS_UNKNOWN) || terminated.finished_at.is_none()
    })
}

fn ended(containers: &[ContainerStatus]) -> Life {
    let worker = containers.iter().find(|container| container.name == super::build::CONTAINER).or(containers.first());
    let (exit_code, reason, _) = worker.and_then(end).unwrap_or((-1, "", 0));
    let finished_at = containers.iter().filter_map(end).map(|(_, _, at)| at).max().unwrap_or_default();
    Life::Dead(Death::Ended { exit_code, reason: reason.to_owned(), finished_at })
}

fn condition<'a>(conditions: &'a [PodCondition], kind: &str) -> Option<&'a PodCondition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn disruption(conditions: &[PodCondition]) -> Option<&str> {
    condition(conditions, "DisruptionTarget").filter(|target| target.status == "True")?.reason.as_deref()
}

/// Why a pod has not started, as far as its own status says; events say more about volumes and Secrets.
fn pending(conditions: &[PodCondition], containers: &[ContainerStatus]) -> Life {
    let scheduling = condition(conditions, "PodScheduled").filter(|scheduled| scheduled.status == "False");
    if let Some(message) = scheduling.and_then(|scheduled| scheduled.message.as_deref()) {
        let claim = message.contains("persistentvolumeclaim") || message.contains("PersistentVolumeClaim");
        let reason = if claim { Reason::JournalUnbound } else { Reason::Unschedulable };
        return Life::Pending(Some(Trouble { reason, message: format!("No node takes the pod: {message}") }));
    }
    let waiting = containers.iter().find_map(|container| container.state.as_ref()?.waiting.as_ref());
    let trouble = waiting.and_then(|waiting| {
        let why = waiting.reason.as_deref()?;
        let reason = match why {
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable" => Reason::ImageUnavailable,
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => Reason::CreationRefused,
            _ => return None,
        };
        let detail = waiting.message.as_deref().unwrap_or("no further word of the kubelet");
        Some(Trouble { reason, message: format!("{why}: {detail}") })
    });
    Life::Pending(trouble)
}

/// What an event about a pod that has not started means.
pub fn trouble_of_event(reason: &str, message: &str) -> Option<Trouble> {
    let kind = match reason {
        "FailedMount" | "FailedAttachVolume" if message.to_ascii_lowercase().contains("secret") => {
            Reason::SecretMissing
        }
        "FailedMount" | "FailedAttachVolume" => Reason::JournalUnbound,
        "FailedScheduling" if message.to_ascii_lowercase().contains("persistentvolumeclaim") => Reason::JournalUnbound,
        "FailedScheduling" => Reason::Unschedulable,
        _ => return None,
    };
    Some(Trouble { reason: kind, message: message.to_owned() })
}

#[cfg(test)]
#[path = "life_tests.rs"]
mod tests;
