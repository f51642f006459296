//! The line that says how a cluster is used.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Result;
use super::daemons;
use super::layout::{Cluster, HOST_NAME, NODE};

/// What `testkit cluster up` prints when the cluster is ready, as one JSON line. What an existing cluster does not tell is
/// absent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Always true.
    pub ready: bool,
    /// Always `cluster`.
    pub kind: String,
    /// Whether testkit runs the cluster; an existing one is only used.
    pub owned: bool,
    /// Kubeconfig of an administrator.
    pub kubeconfig: PathBuf,
    /// The cluster's kubectl.
    pub kubectl: PathBuf,
    /// Helm 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<PathBuf>,
    /// crictl; it takes `containerd_socket` as `-r unix://...`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crictl: Option<PathBuf>,
    /// Name of the node, the first one of an existing cluster.
    pub node: String,
    /// Address at which pods reach servers of this machine; servers listen on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_address: Option<String>,
    /// Name of that address, which pods can resolve and certificates can bear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Audit log of the API server, one JSON event a line: every request, without bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_log: Option<PathBuf>,
    /// Socket of containerd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containerd_socket: Option<PathBuf>,
    /// Folder of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// Command that stops the kubelet; with `--freeze` it is held instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_stop: Option<Vec<String>>,
    /// Command that starts or thaws the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_start: Option<Vec<String>>,
    /// Control group of the cluster below each hierarchy of `/sys/fs/cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Folder of the daemons' logs, `NAME.log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
    /// The daemons that have a log and a record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub daemons: Vec<String>,
}

impl Ready {
    /// The line of a cluster of ours.
    pub(crate) fn of(cluster: &Cluster) -> Result<Ready> {
        let testkit = std::env::current_exe()?.display().to_string();
        let kubelet = |action: &str| {
            let dir = cluster.dir.display().to_string();
            Some([&testkit, "cluster", "kubelet", action, "--dir", &dir].map(str::to_owned).to_vec())
        };
        Ok(Ready {
            ready: true,
            kind: "cluster".into(),
            owned: true,
            kubeconfig: cluster.kubeconfig(),
            kubectl: cluster.programs.find("kubectl")?,
            helm: Some(cluster.programs.find("helm")?),
            crictl: Some(cluster.programs.find("crictl")?),
            node: NODE.into(),
            host_address: Some(cluster.host_address().to_string()),
            host_name: Some(HOST_NAME.into()),
            audit_log: Some(cluster.audit_log()),
            containerd_socket: Some(cluster.containerd_socket()),
            dir: Some(cluster.dir.clone()),
            kubelet_stop: kubelet("stop"),
            kubelet_start: kubelet("start"),
            cgroup: Some(cluster.cgroups.root()),
            logs: Some(cluster.path("log")),
            daemons: daemons::NAMES.map(str::to_owned).to_vec(),
        })
    }
}
