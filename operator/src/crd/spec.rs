//! What a person writes: the spec of a `NativeTransfer`.
//!
//! There are no defaults in the schema (a default that the API server fills in is drift for a GitOps tool); what applies
//! where a field is absent stands in `status.effective`. Everything outside of `manifest` is closed and bounded here;
//! `manifest` is checked by the operator, so that its refusals carry the same codes as the command line's.

#![allow(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type of its own, which the lint takes for one attribute"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::status::NativeTransferStatus;

/// One bounded transfer of a ClickHouse table, or of one window of it, into a SQL Server table.
///
/// `manifest` and `interval` are immutable: other content is another transfer with another name.
#[derive(CustomResource, JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "transfer.dpone.io",
    version = "v1alpha1",
    kind = "NativeTransfer",
    plural = "nativetransfers",
    shortname = "ntr",
    category = "transfer",
    namespaced,
    status = "NativeTransferStatus",
    derive = "PartialEq",
    doc = "Moves the rows of one ClickHouse SELECT into one SQL Server table exactly: the table then holds them, or its old content.",
    selectable = ".status.phase",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Published",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Published\")].status"
    ),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Rows", type_ = "integer", json_path = ".status.custody.rows"),
    printcolumn(name = "Attempt", type_ = "integer", json_path = ".status.run.attempt"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Run", type_ = "string", json_path = ".status.run.token", priority = 1),
    printcolumn(name = "Target", type_ = "string", json_path = ".status.effective.target", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NativeTransferSpec {
    /// Secrets with the connections of source and target.
    pub connections: Connections,
    /// The interval that a window hangs on. Required for a window; never the wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// One process of a dpone.batch.v1 manifest: source, sink, strategy. Immutable.
    pub manifest: Manifest,
    /// The volume that holds the journal and the sealed chunk files.
    pub journal: JournalSpec,
    /// The run that is wanted. A new token starts a new run; it is accepted when the outcome of the last one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunSpec>,
    /// Cancels the extraction, with proof, and starts no other one while it is true. A publication is never touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How worker pods look. Applies from the next pod on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersSpec>,
    /// Time and attempts. Applies from the next pod on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsSpec>,
    /// How long finished things stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionSpec>,
}

/// The two ends of the transfer.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Connections {
    /// The ClickHouse server that is read.
    pub source: Connection,
    /// The SQL Server database that is written.
    pub target: Connection,
}

/// One end: where its connection is kept.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// A Secret of the same namespace with the keys host, port, user, password, database and transfer.dpone.io.role
    /// (`source` or `target`), and optionally ca.crt, tls.crt, tls.key. Only the worker reads it, as files. May change.
    pub secret_ref: SecretReference,
}

/// A Secret of the same namespace.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub name: String,
}

/// The interval that a window hangs on.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// The interval's end, exclusive, an RFC 3339 time such as 2013-07-05T00:00:00Z.
    #[schemars(length(max = 64))]
    pub end: String,
}

/// The volume of the journal.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct JournalSpec {
    /// StorageClass of the claim; the cluster's default class where absent. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub storage_class_name: Option<String>,
    /// Size of the claim, a quantity such as 5Gi. It must hold the journal and the chunks in flight, with 1 GiB to spare. May
    /// only grow.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]{1,19}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"))]
    pub size: String,
    /// Access mode of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<AccessMode>,
}

/// Access mode of the claim; ReadWriteOncePod where absent. ReadWriteOnce is for drivers that know nothing better; modes of
/// many nodes are not offered, because the journal has one writer. Immutable.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AccessMode {
    /// One pod at a time, kept by scheduler and kubelet.
    #[default]
    ReadWriteOncePod,
    /// One node at a time.
    ReadWriteOnce,
}

impl AccessMode {
    /// The mode as Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            AccessMode::ReadWriteOncePod => "ReadWriteOncePod",
            AccessMode::ReadWriteOnce => "ReadWriteOnce",
        }
    }
}

/// The run that is wanted.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RunSpec {
    /// Names the run; "1" where absent. The same token again does nothing, and that of an earlier run is refused.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"))]
    pub token: String,
}

/// How worker pods look.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(rename_all = "camelCase")]
pub struct WorkersSpec {
    /// Image of the worker; the operator's own where absent, and another one only as far as the operator allows. A digest is
    /// better than a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// When the image is pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets with credentials of the registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub image_pull_secrets: Vec<SecretReference>,
    /// Requests and limits of the one container; what is absent follows from the manifest's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesSpec>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that a node may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tolerations: Vec<Toleration>,
    /// PriorityClass of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub priority_class_name: Option<String>,
}

/// When the image is pulled; the kubelet's rule where absent.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImagePullPolicy {
    /// At each start.
    Always,
    /// Only where the node lacks it.
    IfNotPresent,
    /// Never; it must be on the node.
    Never,
}

impl ImagePullPolicy {
    /// The policy as Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ImagePullPolicy::Always => "Always",
            ImagePullPolicy::IfNotPresent => "IfNotPresent",
            ImagePullPolicy::Never => "Never",
        }
    }
}

/// Requests and limits of the worker container.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesSpec {
    /// What is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceAmounts>,
    /// What is not exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceAmounts>,
}

/// Amounts of the resources of one container. They are texts, so that no tool rewrites them.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct ResourceAmounts {
    /// Processors, a quantity such as 500m or 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]{1,9}(\.[0-9]{1,3}|m)?$"))]
    pub cpu: Option<String>,
    /// Memory, a quantity such as 512Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]{1,19}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"))]
    pub memory: Option<String>,
    /// Space for logs and /tmp on the node, a quantity such as 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]{1,19}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"))]
    pub ephemeral_storage: Option<String>,
}

/// Time and attempts.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct LimitsSpec {
    /// Longest time from the start of a run to its sealed end of source, an ISO 8601 duration such as PT6H; none where
    /// absent. What is not sealed by then is cancelled and settled. A publication has no deadline: it is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$"))]
    pub deadline: Option<String>,
    /// Extractions of one run at most, 1 to 100; 1 where absent. Another one starts only after the last is settled with
    /// proof. A suspended one does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub attempts: Option<i32>,
    /// Wait before the first repetition, an ISO 8601 duration; it doubles up to five minutes. PT10S where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$"))]
    pub backoff: Option<String>,
}

/// How long finished things stay. The resource itself is never deleted by the operator.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
pub struct RetentionSpec {
    /// How long an ended worker pod with its log stays once the run is at rest, an ISO 8601 duration; until the resource is
    /// deleted where absent. At most three ended pods stay in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$"))]
    pub worker_pods: Option<String>,
}
