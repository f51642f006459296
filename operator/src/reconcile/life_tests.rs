//! The table of kubernetes-observed.md j, each row as a real cluster reported it.

use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_000_000;

fn terminated(exit_code: i32, reason: &str) -> Value {
    json!({"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": "1970-01-12T13:40:00Z", "finishedAt": "1970-01-12T13:46:00Z"}})
}

fn running() -> Value {
    json!({"running": {"startedAt": "1970-01-12T13:40:00Z"}})
}

fn waiting(reason: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": "m"}})
}

fn unknown() -> Value {
    json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}})
}

struct Case {
    phase: &'static str,
    reason: Option<&'static str>,
    containers: Vec<Value>,
    deleted_seconds_ago: Option<i64>,
    node: bool,
    disruption: Option<&'static str>,
    ready: Option<&'static str>,
    scheduled: Option<&'static str>,
}

const PLAIN: fn() -> Case = || Case {
    phase: "Running",
    reason: None,
    containers: vec![],
    deleted_seconds_ago: None,
    node: true,
    disruption: None,
    ready: None,
    scheduled: None,
};

fn judge(case: &Case) -> Life {
    let mut conditions = Vec::new();
    if let Some(reason) = case.disruption {
        conditions.push(json!({"type": "DisruptionTarget", "status": "True", "reason": reason}));
    }
    if let Some(status) = case.ready {
        conditions.push(json!({"type": "Ready", "status": status}));
    }
    if let Some(message) = case.scheduled {
        conditions
            .push(json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}));
    }
    let statuses: Vec<Value> = case
        .containers
        .iter()
        .map(|state| json!({"name": "worker", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}))
        .collect();
    let mut pod = json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "worker"}]},
        "status": {"phase": case.phase, "reason": case.reason, "containerStatuses": statuses, "conditions": conditions},
    });
    if case.node {
        pod["spec"]["nodeName"] = json!("node1");
    }
    let mut pod: Pod = serde_json::from_value(pod).expect("a pod");
    pod.metadata.deletion_timestamp = case.deleted_seconds_ago.map(|ago| super::super::status::time(NOW - ago));
    life(&pod, NOW)
}

fn is_ended(life: &Life, code: i32) -> bool {
    matches!(life, Life::Dead(Death::Ended { exit_code, .. }) if *exit_code == code)
}

#[test]
fn a_container_that_the_kubelet_saw_end_is_dead_whatever_the_phase_says() {
    let rows = [
        ("Failed", None, 137, "OOMKilled", None, None),
        ("Failed", None, 9, "OOMKilled", None, None),
        ("Failed", None, 137, "Error", None, None),
        ("Succeeded", None, 0, "Completed", Some(5), None),
        ("Failed", None, 137, "Error", Some(5), None),
        ("Succeeded", None, 0, "Completed", Some(5), Some("EvictionByEvictionAPI")),
        ("Succeeded", None, 0, "Completed", Some(5), Some("PreemptionByScheduler")),
        ("Failed", Some("Evicted"), 137, "Error", None, None),
        ("Succeeded", None, 0, "Completed", None, None),
        ("Failed", Some("DeadlineExceeded"), 0, "Completed", None, None),
    ];
    for (phase, reason, code, container, deleted, disruption) in rows {
        let case = Case {
            phase,
            reason,
            containers: vec![terminated(code, container)],
            deleted_seconds_ago: deleted,
            disruption,
            ..PLAIN()
        };
        assert!(is_ended(&judge(&case), code), "{phase} {reason:?} {container}: {:?}", judge(&case));
    }
}

#[test]
fn a_pod_that_no_kubelet_took_never_started() {
    let refused = Case { phase: "Failed", reason: Some("OutOfcpu"), ..PLAIN() };
    assert_eq!(judge(&refused), Life::Dead(Death::NeverStarted));
    let unbound = Case { phase: "Pending", node: false, deleted_seconds_ago: Some(0), ..PLAIN() };
    assert_eq!(judge(&unbound), Life::Dead(Death::NeverStarted));
    let no_image = Case {
        phase: "Failed",
        containers: vec![waiting("ImagePullBackOff")],
        deleted_seconds_ago: Some(5),
        ..PLAIN()
    };
    assert_eq!(judge(&no_image), Life::Dead(Death::NeverStarted));
}

#[test]
fn nothing_is_proved_by_a_node_that_does_not_answer() {
    let rows = [
        // The kubelet is stopped, and the pod was deleted: its grace is long over.
        Case { containers: vec![running()], deleted_seconds_ago: Some(90), ready: Some("False"), ..PLAIN() },
        // The same by a NoExecute taint.
        Case {
            containers: vec![running()],
            deleted_seconds_ago: Some(0),
            disruption: Some("DeletionByTaintManager"),
            ..PLAIN()
        },
        // The node object is gone, and the process lives.
        Case {
            phase: "Failed",
            containers: vec![running()],
            deleted_seconds_ago: Some(0),
            disruption: Some("DeletionByPodGC"),
            ..PLAIN()
        },
        // The same before the kubelet had reported any container.
        Case { phase: "Failed", deleted_seconds_ago: Some(0), disruption: Some("DeletionByPodGC"), ..PLAIN() },
        // The node went silent, and nobody has deleted anything yet.
        Case { containers: vec![running()], ready: Some("False"), ..PLAIN() },
    ];
    for case in rows {
        assert_eq!(judge(&case), Life::Unreachable);
    }
}

#[test]
fn a_container_that_the_kubelet_does_not_find_is_lost() {
    assert_eq!(judge(&Case { phase: "Failed", containers: vec![unknown()], ..PLAIN() }), Life::Lost);
}

#[test]
fn one_container_that_still_runs_keeps_the_pod_alive() {
    let case = Case { containers: vec![terminated(0, "Completed"), running()], ready: Some("True"), ..PLAIN() };
    assert_eq!(judge(&case), Life::Running);
    let stopping =
        Case { containers: vec![running()], ready: Some("False"), deleted_seconds_ago: Some(-20), ..PLAIN() };
    assert_eq!(judge(&stopping), Life::Running, "within its grace");
}

#[test]
fn a_pod_that_has_not_started_says_why() {
    let reason = |case: Case| match judge(&case) {
        Life::Pending(trouble) => trouble.map(|trouble| trouble.reason),
        other => panic!("{other:?}"),
    };
    let pending = || Case { phase: "Pending", ..PLAIN() };
    let image = Case { containers: vec![waiting("ErrImageNeverPull")], ..pending() };
    assert_eq!(reason(image), Some(Reason::ImageUnavailable));
    assert_eq!(reason(Case { containers: vec![waiting("ContainerCreating")], ..pending() }), None);
    let full = Case { node: false, scheduled: Some("0/1 nodes are available: 1 Insufficient cpu."), ..pending() };
    assert_eq!(reason(full), Some(Reason::Unschedulable));
    let unbound = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    assert_eq!(reason(Case { node: false, scheduled: Some(unbound), ..pending() }), Some(Reason::JournalUnbound));
    assert_eq!(reason(Case { node: false, ..pending() }), None);
}

#[test]
fn events_name_what_status_does_not() {
    let secret = "MountVolume.SetUp failed for volume \"source\" : secret \"clickhouse-ro\" not found";
    let reason = |reason, message| trouble_of_event(reason, message).map(|trouble| trouble.reason);
    assert_eq!(reason("FailedMount", secret), Some(Reason::SecretMissing));
    assert_eq!(reason("FailedMount", "MountVolume.NewMounter initialization failed"), Some(Reason::JournalUnbound));
    assert_eq!(reason("Pulled", "ok"), None);
}
