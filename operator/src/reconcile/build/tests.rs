use std::collections::BTreeSet;

use contract::digest::Digest;
use contract::worker::{FrozenPlan, RunTag};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use serde_json::{Value, json};

use super::*;
use crate::crd::spec::{ImagePullPolicy, LimitsSpec, ResourceAmounts, ResourcesSpec, SecretReference, WorkersSpec};
use crate::crd::tests::example;
use crate::crd::{NativeTransfer, status::WorkerPhase};
use crate::reconcile::validate::{Accepted, Defaults, ImagePrefix, validate};

const UID: &str = "0a6f2b1e-6c9d-4d0f-9d55-0f6f1f0e7a11";

const OWNER: Owner<'static> = Owner { namespace: "analytics", name: "flights-2013-07-04", uid: UID };

fn accepted(change: impl FnOnce(&mut NativeTransfer)) -> Accepted {
    let mut transfer = example("flights-day.yaml");
    change(&mut transfer);
    let defaults = Defaults {
        image: "registry.example/native-transfer@sha256:abc".to_owned(),
        image_pull_policy: Some(ImagePullPolicy::IfNotPresent),
        image_pull_secrets: Vec::new(),
        allowed_images: vec![ImagePrefix::new("mine").expect("a prefix")],
    };
    validate(&transfer, &defaults).expect("accepted")
}

fn worker(accepted: &Accepted, phase: WorkerPhase) -> Worker<'_> {
    Worker {
        owner: OWNER,
        token: &accepted.token,
        phase,
        attempt: 2,
        try_: 3,
        epoch_floor: 7,
        frozen: &accepted.frozen,
        settings: &accepted.settings,
    }
}

fn built(phase: WorkerPhase) -> Pod {
    pod(&worker(&accepted(|_| {}), phase))
}

fn spec(pod: &Pod) -> &PodSpec {
    pod.spec.as_ref().expect("a spec")
}

fn only_container(pod: &Pod) -> &Container {
    match spec(pod).containers.as_slice() {
        [container] => container,
        other => panic!("{} containers", other.len()),
    }
}

fn volume<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let volumes = pod["spec"]["volumes"].as_array().expect("volumes");
    volumes.iter().find(|volume| volume["name"] == name).unwrap_or(&Value::Null)
}

#[test]
fn a_worker_is_named_and_labelled_as_the_interface_says() {
    let accepted = accepted(|_| {});
    let worker = worker(&accepted, WorkerPhase::Extract);
    let pod = pod(&worker);
    let hash = Digest::of(format!("{UID}/1").as_bytes()).to_string();
    assert_eq!(pod.metadata.name, Some(format!("ntr-{}-extract-2-3", &hash[..12])));
    assert_eq!(pod.metadata.namespace.as_deref(), Some("analytics"));
    assert_eq!(pod.metadata.finalizers, Some(vec!["transfer.dpone.io/result-unread".to_owned()]));
    assert_eq!(pod.metadata.owner_references, None);
    assert_eq!(
        serde_json::to_value(&pod.metadata.labels).expect("json"),
        json!({
            "app.kubernetes.io/name": "native-transfer",
            "app.kubernetes.io/component": "worker",
            "app.kubernetes.io/managed-by": "native-transfer-operator",
            "transfer.dpone.io/transfer-uid": UID,
            "transfer.dpone.io/run": RunTag::of(&format!("{UID}/1/2")).as_str(),
            "transfer.dpone.io/phase": "extract",
            "transfer.dpone.io/attempt": "2",
            "transfer.dpone.io/try": "3",
        })
    );
}

#[test]
fn a_worker_is_told_everything_in_its_arguments_and_files() {
    let accepted = accepted(|_| {});
    for phase in [WorkerPhase::Admit, WorkerPhase::Extract, WorkerPhase::Publish] {
        let pod = pod(&worker(&accepted, phase));
        let container = only_container(&pod);
        assert_eq!(container.command, Some(vec!["/usr/bin/native-transfer".to_owned()]));
        let line = format!(
            "{} -f /etc/native-transfer/plan/transfer.json --plan-sha256 {} --connections /etc/native-transfer/connections \
             --journal-root /var/lib/native-transfer/journal --run-id {UID}/1/2 --epoch-floor 7 \
             --receipt /dev/termination-log --progress-listen 0.0.0.0:8080 \
             --progress-identity-file /etc/native-transfer/plan/uid --output json",
            phase.as_str(),
            accepted.frozen.sha256(),
        );
        assert_eq!(container.args.as_ref().expect("args").join(" "), line);
    }
    let pod = pod(&worker(&accepted, WorkerPhase::Inspect));
    let line = format!(
        "inspect --run-id {UID}/1/2 --journal-root /var/lib/native-transfer/journal --receipt /dev/termination-log"
    );
    assert_eq!(only_container(&pod).args.as_ref().expect("args").join(" "), line);
}

#[test]
fn the_plan_annotation_is_the_document_that_the_digest_names() {
    let accepted = accepted(|_| {});
    let pod = pod(&worker(&accepted, WorkerPhase::Extract));
    let annotations = pod.metadata.annotations.as_ref().expect("annotations");
    let text = &annotations["transfer.dpone.io/plan"];
    assert_eq!(Digest::of(text.as_bytes()), accepted.frozen.sha256());
    assert_eq!(FrozenPlan::parse(text.as_bytes()).expect("a frozen plan"), accepted.frozen);
    let pod = serde_json::to_value(&pod).expect("json");
    assert_eq!(
        volume(&pod, "plan")["downwardAPI"],
        json!({"defaultMode": 0o440, "items": [
            {"path": "transfer.json",
             "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['transfer.dpone.io/plan']"}},
            {"path": "uid", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}},
        ]})
    );
}

#[test]
fn annotations_of_the_largest_plan_fit_into_an_object() {
    let accepted = accepted(|transfer| {
        transfer.spec.manifest.0.insert("description".to_owned(), "\u{1f600}".repeat(16_000).into());
    });
    assert!(accepted.frozen.text().len() > 64_000);
    let pod = pod(&worker(&accepted, WorkerPhase::Extract));
    let annotations = pod.metadata.annotations.expect("annotations");
    let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!(bytes <= 256 << 10, "{bytes}");
}

#[test]
fn secrets_reach_a_worker_as_files_that_name_their_role() {
    let pod = serde_json::to_value(built(WorkerPhase::Extract)).expect("json");
    for (role, secret) in [("source", "clickhouse-ro"), ("target", "mssql-loader")] {
        let item = |key: &str| json!({"key": key, "path": key});
        let required = ["host", "port", "user", "password", "database", "transfer.dpone.io.role"].map(item);
        let optional = ["ca.crt", "tls.crt", "tls.key"].map(item);
        assert_eq!(
            volume(&pod, &format!("{role}-connection"))["projected"],
            json!({"defaultMode": 0o440, "sources": [
                {"secret": {"name": secret, "items": required}},
                {"secret": {"name": secret, "items": optional, "optional": true}},
            ]})
        );
        let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array().expect("mounts");
        let mount = mounts.iter().find(|mount| mount["name"] == format!("{role}-connection")).expect("a mount");
        assert_eq!(mount["mountPath"], format!("/etc/native-transfer/connections/{role}"));
        assert_eq!(mount["readOnly"], true);
    }
}

#[test]
fn no_secret_and_no_environment_anywhere_else() {
    for phase in WorkerPhase::ALL {
        let pod = serde_json::to_value(built(phase)).expect("json");
        let text = pod.to_string();
        for word in ["\"env\"", "envFrom", "secretKeyRef", "serviceAccountToken", "hostPath", "\"secretName\""] {
            assert!(!text.contains(word), "{word} in {}", phase.as_str());
        }
        let container = &pod["spec"]["containers"][0];
        for (place, value) in [("args", &container["args"]), ("annotations", &pod["metadata"]["annotations"])] {
            for name in ["clickhouse-ro", "mssql-loader"] {
                assert!(!value.to_string().contains(name), "{name} in {place}");
            }
        }
        assert_eq!(text.contains("clickhouse-ro"), phase != WorkerPhase::Inspect, "{}", phase.as_str());
        assert_eq!(text.contains("mssql-loader"), phase != WorkerPhase::Inspect, "{}", phase.as_str());
    }
}

#[test]
fn every_field_of_restricted_pod_security_is_set() {
    for phase in WorkerPhase::ALL {
        let built = built(phase);
        let pod = serde_json::to_value(&built).expect("json");
        let spec = &pod["spec"];
        for forbidden in ["hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers", "nodeName"] {
            assert!(spec[forbidden].is_null(), "{forbidden}");
        }
        assert_eq!(
            spec["securityContext"],
            json!({"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"}})
        );
        assert_eq!(
            spec["containers"][0]["securityContext"],
            json!({"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true,
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"}})
        );
        assert!(spec["containers"][0]["ports"][0]["hostPort"].is_null());
        let kinds: BTreeSet<&str> = (spec["volumes"].as_array().expect("volumes").iter())
            .flat_map(|volume| volume.as_object().expect("a volume").keys().map(String::as_str))
            .collect();
        let allowed = BTreeSet::from(["name", "persistentVolumeClaim", "emptyDir", "downwardAPI", "projected"]);
        assert!(kinds.is_subset(&allowed), "{kinds:?}");
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec["enableServiceLinks"], false);
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(spec["containers"][0]["terminationMessagePath"], "/dev/termination-log");
        assert_eq!(spec["containers"][0]["terminationMessagePolicy"], "File");
    }
}

#[test]
fn a_worker_gets_time_to_settle_and_no_deadline_of_the_kubelet() {
    let accepted = accepted(|transfer| {
        transfer.spec.limits = Some(LimitsSpec { deadline: Some("PT2H".to_owned()), ..LimitsSpec::default() });
    });
    let times = |phase| {
        let pod = pod(&worker(&accepted, phase));
        (spec(&pod).termination_grace_period_seconds, spec(&pod).active_deadline_seconds)
    };
    assert_eq!(times(WorkerPhase::Admit), (Some(30), None));
    assert_eq!(times(WorkerPhase::Extract), (Some(120), None));
    assert_eq!(times(WorkerPhase::Publish), (Some(300), None));
    assert_eq!(times(WorkerPhase::Inspect), (Some(30), None));
}

#[test]
fn memory_follows_from_the_plan() {
    // (C + 1) * 16 MiB + 96 MiB with C = 1 + 2, and half as much again or 128 MiB.
    let amounts = |phase| serde_json::to_value(&only_container(&built(phase)).resources).expect("json");
    assert_eq!(
        amounts(WorkerPhase::Extract),
        json!({"requests": {"cpu": "500m", "memory": "160Mi", "ephemeral-storage": "64Mi"},
            "limits": {"memory": "288Mi", "ephemeral-storage": "256Mi"}})
    );
    assert_eq!(amounts(WorkerPhase::Inspect)["requests"]["memory"], "96Mi");
}

#[test]
fn a_default_never_contradicts_an_authored_amount() {
    let amounts = |requests: Option<&str>, limits: Option<&str>| {
        let amount = |text: &str| ResourceAmounts { memory: Some(text.to_owned()), ..ResourceAmounts::default() };
        let resources = ResourcesSpec { requests: requests.map(amount), limits: limits.map(amount) };
        let accepted = accepted(|transfer| {
            transfer.spec.workers = Some(WorkersSpec { resources: Some(resources), ..WorkersSpec::default() });
        });
        let pod = pod(&worker(&accepted, WorkerPhase::Extract));
        let resources = serde_json::to_value(&only_container(&pod).resources).expect("json");
        (resources["requests"]["memory"].clone(), resources["limits"]["memory"].clone())
    };
    assert_eq!(amounts(Some("8Gi"), None), (json!("8Gi"), Value::Null));
    assert_eq!(amounts(None, Some("64Mi")), (json!("64Mi"), json!("64Mi")));
    assert_eq!(amounts(Some("1Gi"), Some("2Gi")), (json!("1Gi"), json!("2Gi")));
}

#[test]
fn authored_worker_fields_reach_the_pod() {
    let tolerations = serde_json::from_value(json!([{"key": "batch", "operator": "Exists"}])).expect("tolerations");
    let accepted = accepted(|transfer| {
        transfer.spec.workers = Some(WorkersSpec {
            image: Some("mine:1".to_owned()),
            image_pull_policy: Some(ImagePullPolicy::Always),
            image_pull_secrets: vec![SecretReference { name: "registry".to_owned() }],
            node_selector: [("disk".to_owned(), "fast".to_owned())].into(),
            tolerations,
            priority_class_name: Some("batch".to_owned()),
            resources: None,
        });
    });
    let pod = serde_json::to_value(pod(&worker(&accepted, WorkerPhase::Extract))).expect("json");
    assert_eq!(pod["spec"]["containers"][0]["image"], "mine:1");
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(pod["spec"]["nodeSelector"], json!({"disk": "fast"}));
    assert_eq!(pod["spec"]["tolerations"], json!([{"key": "batch", "operator": "Exists"}]));
    assert_eq!(pod["spec"]["priorityClassName"], "batch");
    let plain = serde_json::to_value(built(WorkerPhase::Extract)).expect("json");
    for absent in ["imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName"] {
        assert!(plain["spec"][absent].is_null(), "{absent}");
    }
}

#[test]
fn the_same_decision_gives_the_same_bytes() {
    let bytes = |phase| serde_json::to_vec(&built(phase)).expect("json");
    for phase in WorkerPhase::ALL {
        assert_eq!(bytes(phase), bytes(phase));
    }
}

#[test]
fn the_journal_claim_outlives_its_transfer() {
    let accepted = accepted(|_| {});
    let claim = serde_json::to_value(claim(&OWNER, &accepted.settings)).expect("json");
    let hash = Digest::of(UID.as_bytes()).to_string();
    assert_eq!(
        claim,
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": format!("ntr-{}-journal", &hash[..12]),
                "namespace": "analytics",
                "finalizers": ["transfer.dpone.io/journal-custody"],
                "annotations": {"transfer.dpone.io/transfer": "flights-2013-07-04"},
                "labels": {
                    "app.kubernetes.io/name": "native-transfer",
                    "app.kubernetes.io/component": "worker",
                    "app.kubernetes.io/managed-by": "native-transfer-operator",
                    "transfer.dpone.io/transfer-uid": UID,
                },
            },
            "spec": {
                "accessModes": ["ReadWriteOncePod"],
                "resources": {"requests": {"storage": "5Gi"}},
                "storageClassName": "standard",
                "volumeMode": "Filesystem",
            },
        })
    );
    let pod = serde_json::to_value(built(WorkerPhase::Inspect)).expect("json");
    assert_eq!(volume(&pod, "journal")["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"]);
}
