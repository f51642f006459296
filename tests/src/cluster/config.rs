//! The configuration files of the daemons. JSON wherever a daemon reads YAML.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Result;
use super::image::PAUSE;
use super::layout::{Cluster, HOST_NAME, POD_SUBNET};

/// Writes every file of `etc/`.
pub(crate) fn write(cluster: &Cluster) -> Result<()> {
    let etc = cluster.path("etc");
    fs::create_dir_all(etc.join("cni"))?;
    fs::write(etc.join("containerd.toml"), containerd(cluster))?;
    fs::write(etc.join("kubelet.json"), format!("{:#}", kubelet(cluster)))?;
    fs::write(etc.join("cni/10-testkit.conflist"), format!("{:#}", cni(&cluster.path("cni"))))?;
    fs::write(etc.join("audit-policy.json"), format!("{:#}", audit_policy()))?;
    fs::write(etc.join("Corefile"), corefile(cluster))?;
    fs::write(etc.join("hosts"), format!("{} {HOST_NAME}\n", cluster.host_address()))?;
    fs::write(etc.join("resolv.conf"), format!("nameserver {}\n", cluster.node_address()))?;
    Ok(())
}

/// containerd with the CRI plugin and nothing of the machine's own containerd.
fn containerd(cluster: &Cluster) -> String {
    let dir = cluster.dir.display();
    let cni = cluster.programs.cni.display();
    // An OOM score of -998 is not permitted everywhere, and runc dies of it.
    format!(
        r#"version = 2
root = "{dir}/containerd"
state = "{dir}/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.tracing"]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{dir}/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
disable_tcp_service = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "{dir}/etc/cni"
"#,
        socket = cluster.containerd_socket().display(),
    )
}

/// The kubelet's settings. Its signs of life are quicker than by default, so that a stopped kubelet is seen in 20 s.
fn kubelet(cluster: &Cluster) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true},
            "x509": {"clientCAFile": cluster.path("pki/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": cluster.path("pki/kubelet-server.crt"),
        "tlsPrivateKeyFile": cluster.path("pki/kubelet-server.key"),
        "containerRuntimeEndpoint": format!("unix://{}", cluster.containerd_socket().display()),
        "cgroupDriver": "cgroupfs", "cgroupRoot": cluster.cgroups.root(), "failCgroupV1": false,
        "failSwapOn": false, "enforceNodeAllocatable": [], "oomScoreAdj": 0,
        "clusterDNS": [cluster.node_address()], "clusterDomain": "cluster.local",
        "resolvConf": cluster.path("etc/resolv.conf"),
        "podLogsDir": cluster.path("log/pods"), "volumePluginDir": cluster.path("kubelet-plugins"),
        "address": cluster.node_address(), "healthzBindAddress": cluster.node_address().to_string(),
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%"},
        // Images come by load-image and cannot be fetched again.
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "4s", "nodeLeaseDurationSeconds": 12,
        "syncFrequency": "10s", "registerWithTaints": [],
    })
}

/// Pods on a bridge; their way out is this machine, with the node's address.
fn cni(state: &Path) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "testkit",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
                "ipam": {
                    "type": "host-local", "dataDir": state,
                    "ranges": [[{"subnet": POD_SUBNET}]], "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// Who did what to which object, without bodies: tests count the writes of each object.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    })
}

/// Names of the cluster, the name of this machine, and a quick no for all others.
fn corefile(cluster: &Cluster) -> String {
    let address = cluster.node_address();
    let kubeconfig = cluster.path("etc/admin.kubeconfig");
    let hosts = cluster.path("etc/hosts");
    format!(
        "cluster.local in-addr.arpa {{
    bind {address}
    errors
    ready {address}:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig} testkit
        pods insecure
        ttl 1
    }}
}}
{HOST_NAME} {{
    bind {address}
    errors
    hosts {hosts}
}}
. {{
    bind {address}
    errors
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
",
        kubeconfig = kubeconfig.display(),
        hosts = hosts.display(),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cluster::cgroup::Cgroups;
    use crate::cluster::programs::Programs;

    /// A cluster that is never started.
    pub(in crate::cluster) fn cluster() -> Cluster {
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        Cluster {
            dir: "/srv/c".into(),
            id: "0102ab00".into(),
            subnet: 7,
            programs: Programs { built: vec!["/cache/kubernetes".into()], cni: "/usr/lib/cni".into() },
            cgroups: Cgroups::detect(mounts, "ntc-0102ab00").expect("cgroups"),
            ready: false,
        }
    }

    #[test]
    fn everything_of_containerd_is_below_the_folder() {
        let text = containerd(&cluster());
        for line in text.lines().filter(|line| line.contains("\"/") && !line.starts_with("bin_dir")) {
            assert!(line.contains("\"/srv/c/"), "{line}");
        }
        assert!(text.contains("address = \"/srv/c/run/containerd.sock\""));
        assert!(text.contains("sandbox_image = \"testkit.local/pause:1\""));
    }

    #[test]
    fn pods_stay_in_the_cgroup_of_the_cluster_and_ask_its_dns() {
        let kubelet = kubelet(&cluster());
        assert_eq!(kubelet["cgroupRoot"], "/ntc-0102ab00");
        assert_eq!(kubelet["clusterDNS"], json!(["10.209.7.2"]));
    }

    #[test]
    fn dns_answers_at_the_node_and_knows_this_machine() {
        let text = corefile(&cluster());
        assert_eq!(text.matches("bind 10.209.7.2").count(), 3);
        assert!(text.contains("servers.testkit.internal {"));
    }

    #[test]
    fn every_request_is_audited_once() {
        assert_eq!(audit_policy()["omitStages"], json!(["RequestReceived"]));
        assert_eq!(audit_policy()["rules"], json!([{"level": "Metadata"}]));
    }
}
