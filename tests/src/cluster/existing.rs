//! A cluster that somebody else runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Result;
use super::build;
use super::namespaces::output;
use super::programs::{Programs, on_path};
use super::ready::Ready;

/// How long the cluster may take to answer.
const ANSWER_MAX: &str = "--request-timeout=20s";

/// Checks that the cluster of a kubeconfig answers.
pub(crate) fn check(kubeconfig: &Path, host_address: Option<String>) -> Result<Ready> {
    let kubeconfig =
        kubeconfig.canonicalize().map_err(|error| format!("kubeconfig {}: {error}", kubeconfig.display()))?;
    let kubectl = match on_path("kubectl") {
        Some(kubectl) => kubectl,
        None => Programs { built: build::ensure()?, cni: PathBuf::new() }.find("kubectl")?,
    };
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(&kubectl);
        command.arg("--kubeconfig").arg(&kubeconfig).arg(ANSWER_MAX).args(arguments);
        output(&mut command)
            .map_err(|error| format!("the cluster of {} does not answer: {error}", kubeconfig.display()))
    };
    ask(&["get", "--raw", "/readyz"])?;
    let nodes = ask(&["get", "nodes", "-o", "name"])?;
    let node = nodes.lines().next().and_then(|line| line.strip_prefix("node/")).unwrap_or_default().to_owned();
    if node.is_empty() {
        return Err(format!("the cluster of {} has no node", kubeconfig.display()).into());
    }
    Ok(Ready {
        ready: true,
        kind: "cluster".into(),
        owned: false,
        kubectl: kubectl.clone(),
        helm: on_path("helm"),
        kubeconfig,
        crictl: None,
        node,
        host_address,
        host_name: None,
        audit_log: None,
        containerd_socket: None,
        dir: None,
        kubelet_stop: None,
        kubelet_start: None,
        cgroup: None,
        logs: None,
        daemons: Vec::new(),
    })
}
