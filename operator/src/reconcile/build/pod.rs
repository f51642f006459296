//! The worker pod: restricted, without token, its plan and its Secrets as files.

use std::collections::BTreeMap;

use contract::capacity::PROCESS_BYTES;
use contract::worker::RunTag;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EmptyDirVolumeSource,
    KeyToPath, LocalObjectReference, ObjectFieldSelector, PersistentVolumeClaimVolumeSource, Pod, PodSecurityContext,
    PodSpec, ProjectedVolumeSource, ResourceRequirements, SeccompProfile, SecretProjection, SecurityContext, Volume,
    VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use super::{
    BINARY, CONNECTIONS_FOLDER, CONTAINER, JOURNAL_ROOT, JOURNAL_VOLUME, PLAN_FOLDER, PROGRESS_PORT, RECEIPT_FILE,
    WORKER_UID, Worker, labels,
};
use crate::crd::spec::ResourceAmounts;
use crate::crd::status::WorkerPhase;
use crate::names;

/// Keys that a connection's Secret must have, or the kubelet does not start the container. The role is what makes a
/// Secret a connection: who may create a transfer, and with it choose the worker's image, reaches these Secrets and no other
/// of the namespace.
pub(super) const REQUIRED_KEYS: [&str; 6] = ["host", "port", "user", "password", "database", "transfer.dpone.io.role"];

/// Keys that it may have.
pub(super) const OPTIONAL_KEYS: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

/// Mode of mounted files: the worker's group reads them.
const FILE_MODE: i32 = 0o440;

/// Bound of /tmp, which a worker hardly uses.
const TMP_SIZE: &str = "64Mi";

/// Processor time that is reserved where the resource asks for nothing else. There is no limit: throttling a reader
/// prolongs the one source query.
const CPU_REQUEST: &str = "500m";

/// Reserved and greatest space for logs and /tmp.
const EPHEMERAL_REQUEST: &str = "64Mi";
const EPHEMERAL_LIMIT: &str = "256Mi";

/// The pod of a worker.
///
/// It has no ownerReference: a foreground deletion of the transfer would kill a publication.
pub fn pod(worker: &Worker<'_>) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(worker.pod_name()),
            namespace: Some(worker.owner.namespace.to_owned()),
            labels: Some(pod_labels(worker)),
            annotations: Some(annotations(worker)),
            finalizers: Some(vec![names::RESULT_UNREAD.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: Some(pod_spec(worker)),
        status: None,
    }
}

fn pod_labels(worker: &Worker<'_>) -> BTreeMap<String, String> {
    let mut labels = labels(&worker.owner);
    let own = [
        (names::RUN_LABEL, RunTag::of(&worker.run_id()).to_string()),
        (names::PHASE_LABEL, worker.phase.as_str().to_owned()),
        (names::ATTEMPT_LABEL, worker.attempt.to_string()),
        (names::TRY_LABEL, worker.try_.to_string()),
    ];
    labels.extend(own.map(|(key, value)| (key.to_owned(), value)));
    labels
}

fn annotations(worker: &Worker<'_>) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from([
        (names::TRANSFER_ANNOTATION.to_owned(), worker.owner.name.to_owned()),
        // An autoscaler that empties a node would waste the whole extraction.
        ("cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(), "false".to_owned()),
    ]);
    if reads_plan(worker.phase) {
        annotations.insert(names::PLAN_ANNOTATION.to_owned(), worker.frozen.text().to_owned());
    }
    annotations
}

/// `inspect` looks at the journal alone.
fn reads_plan(phase: WorkerPhase) -> bool {
    phase != WorkerPhase::Inspect
}

fn pod_spec(worker: &Worker<'_>) -> PodSpec {
    let authored = &worker.settings.workers;
    PodSpec {
        automount_service_account_token: Some(false),
        containers: vec![container(worker)],
        enable_service_links: Some(false),
        image_pull_secrets: some(
            authored
                .image_pull_secrets
                .iter()
                .map(|secret| LocalObjectReference { name: secret.name.clone() })
                .collect(),
        ),
        node_selector: Some(authored.node_selector.clone()).filter(|labels| !labels.is_empty()),
        priority_class_name: authored.priority_class_name.clone(),
        restart_policy: Some("Never".to_owned()),
        security_context: Some(PodSecurityContext {
            fs_group: Some(WORKER_UID),
            // Chunk files may be many; their group is right once it is right at the root.
            fs_group_change_policy: Some("OnRootMismatch".to_owned()),
            run_as_group: Some(WORKER_UID),
            run_as_non_root: Some(true),
            run_as_user: Some(WORKER_UID),
            seccomp_profile: Some(runtime_default()),
            ..PodSecurityContext::default()
        }),
        termination_grace_period_seconds: Some(grace_seconds(worker.phase)),
        tolerations: some(authored.tolerations.clone()),
        volumes: Some(volumes(worker)),
        ..PodSpec::default()
    }
}

/// Time to settle after SIGTERM, seconds.
fn grace_seconds(phase: WorkerPhase) -> i64 {
    match phase {
        WorkerPhase::Extract => 120,
        WorkerPhase::Publish => 300,
        WorkerPhase::Admit | WorkerPhase::Inspect => 30,
    }
}

fn container(worker: &Worker<'_>) -> Container {
    let settings = worker.settings;
    let port = ContainerPort {
        container_port: PROGRESS_PORT,
        name: Some("progress".to_owned()),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    Container {
        name: CONTAINER.to_owned(),
        image: Some(settings.image.clone()),
        image_pull_policy: settings.image_pull_policy.map(|policy| policy.as_str().to_owned()),
        command: Some(vec![BINARY.to_owned()]),
        args: Some(arguments(worker)),
        ports: reads_plan(worker.phase).then(|| vec![port]),
        resources: Some(resources(worker)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
            privileged: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_group: Some(WORKER_UID),
            run_as_non_root: Some(true),
            run_as_user: Some(WORKER_UID),
            seccomp_profile: Some(runtime_default()),
            ..SecurityContext::default()
        }),
        termination_message_path: Some(RECEIPT_FILE.to_owned()),
        termination_message_policy: Some("File".to_owned()),
        volume_mounts: Some(mounts(worker.phase)),
        ..Container::default()
    }
}

fn runtime_default() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }
}

fn arguments(worker: &Worker<'_>) -> Vec<String> {
    let run_id = worker.run_id();
    let phase = worker.phase.as_str();
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    if !reads_plan(worker.phase) {
        return text(&[phase, "--run-id", &run_id, "--journal-root", JOURNAL_ROOT, "--receipt", RECEIPT_FILE]);
    }
    let document = format!("{PLAN_FOLDER}/transfer.json");
    let identity = format!("{PLAN_FOLDER}/uid");
    let digest = worker.frozen.sha256().to_string();
    let floor = worker.epoch_floor.to_string();
    let listen = format!("0.0.0.0:{PROGRESS_PORT}");
    text(&[
        phase,
        "-f",
        &document,
        "--plan-sha256",
        &digest,
        "--connections",
        CONNECTIONS_FOLDER,
        "--journal-root",
        JOURNAL_ROOT,
        "--run-id",
        &run_id,
        "--epoch-floor",
        &floor,
        "--receipt",
        RECEIPT_FILE,
        "--progress-listen",
        &listen,
        "--progress-identity-file",
        &identity,
        "--output",
        "json",
    ])
}

/// Requests and limits: what the resource says, and for the rest what the plan can reach.
///
/// Extraction and publication reserve the bound of resident memory and may take half as much again, because the bound is
/// about our own buffers and a limit that is met is a killed pod.
fn resources(worker: &Worker<'_>) -> ResourceRequirements {
    const MIB: u64 = 1 << 20;
    let memory = match worker.phase {
        WorkerPhase::Extract | WorkerPhase::Publish => worker.settings.resident_bytes_max,
        WorkerPhase::Admit | WorkerPhase::Inspect => PROCESS_BYTES,
    };
    let mebibytes = |bytes: u64| format!("{}Mi", bytes.div_ceil(MIB));
    let limit = memory.saturating_add((memory / 2).max(128 * MIB));
    let authored = worker.settings.workers.resources.clone().unwrap_or_default();
    let (requests, limits) = (authored.requests.unwrap_or_default(), authored.limits.unwrap_or_default());
    // A request of ours never stands beside a smaller limit of the resource, nor the other way round.
    let request = |request: &Option<String>, limit: &Option<String>, default: String| {
        request.clone().or_else(|| limit.clone()).unwrap_or(default)
    };
    let limited = |limit: &Option<String>, request: &Option<String>, default: String| {
        limit.clone().or_else(|| request.is_none().then_some(default))
    };
    amounts(
        ResourceAmounts {
            cpu: Some(request(&requests.cpu, &limits.cpu, CPU_REQUEST.to_owned())),
            memory: Some(request(&requests.memory, &limits.memory, mebibytes(memory))),
            ephemeral_storage: Some(request(
                &requests.ephemeral_storage,
                &limits.ephemeral_storage,
                EPHEMERAL_REQUEST.to_owned(),
            )),
        },
        ResourceAmounts {
            cpu: limits.cpu.clone(),
            memory: limited(&limits.memory, &requests.memory, mebibytes(limit)),
            ephemeral_storage: limited(
                &limits.ephemeral_storage,
                &requests.ephemeral_storage,
                EPHEMERAL_LIMIT.to_owned(),
            ),
        },
    )
}

fn amounts(requests: ResourceAmounts, limits: ResourceAmounts) -> ResourceRequirements {
    let block = |amounts: ResourceAmounts| {
        let named =
            [("cpu", amounts.cpu), ("memory", amounts.memory), ("ephemeral-storage", amounts.ephemeral_storage)];
        named.into_iter().filter_map(|(name, amount)| Some((name.to_owned(), Quantity(amount?)))).collect()
    };
    ResourceRequirements { requests: Some(block(requests)), limits: Some(block(limits)), claims: None }
}

fn volumes(worker: &Worker<'_>) -> Vec<Volume> {
    let mut volumes = vec![
        Volume {
            name: "journal".to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: names::claim(worker.owner.uid),
                read_only: None,
            }),
            ..Volume::default()
        },
        Volume {
            name: "tmp".to_owned(),
            empty_dir: Some(EmptyDirVolumeSource {
                size_limit: Some(Quantity(TMP_SIZE.to_owned())),
                ..EmptyDirVolumeSource::default()
            }),
            ..Volume::default()
        },
    ];
    if reads_plan(worker.phase) {
        volumes.push(plan_volume());
        volumes.push(connection_volume("source", &worker.settings.source_secret));
        volumes.push(connection_volume("target", &worker.settings.target_secret));
    }
    volumes
}

fn plan_volume() -> Volume {
    let file = |path: &str, field: String| DownwardAPIVolumeFile {
        field_ref: Some(ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: field }),
        path: path.to_owned(),
        ..DownwardAPIVolumeFile::default()
    };
    let items = vec![
        file("transfer.json", format!("metadata.annotations['{}']", names::PLAN_ANNOTATION)),
        file("uid", "metadata.uid".to_owned()),
    ];
    Volume {
        name: "plan".to_owned(),
        downward_api: Some(DownwardAPIVolumeSource {
            default_mode: Some(FILE_MODE),
            items: Some(items),
            ..DownwardAPIVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn connection_volume(role: &str, secret: &str) -> Volume {
    let source = |keys: &[&str], optional: Option<bool>| VolumeProjection {
        secret: Some(SecretProjection {
            name: secret.to_owned(),
            items: Some(
                keys.iter()
                    .map(|key| KeyToPath { key: (*key).to_owned(), path: (*key).to_owned(), ..KeyToPath::default() })
                    .collect(),
            ),
            optional,
        }),
        ..VolumeProjection::default()
    };
    Volume {
        name: format!("{role}-connection"),
        projected: Some(ProjectedVolumeSource {
            default_mode: Some(FILE_MODE),
            sources: Some(vec![source(&REQUIRED_KEYS, None), source(&OPTIONAL_KEYS, Some(true))]),
            ..ProjectedVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn mounts(phase: WorkerPhase) -> Vec<VolumeMount> {
    let mount = |name: &str, path: &str, read_only: bool| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(read_only),
        ..VolumeMount::default()
    };
    let mut mounts = vec![mount("journal", JOURNAL_VOLUME, false), mount("tmp", "/tmp", false)];
    if reads_plan(phase) {
        mounts.push(mount("plan", PLAN_FOLDER, true));
        mounts.push(mount("source-connection", &format!("{CONNECTIONS_FOLDER}/source"), true));
        mounts.push(mount("target-connection", &format!("{CONNECTIONS_FOLDER}/target"), true));
    }
    mounts
}

fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}
