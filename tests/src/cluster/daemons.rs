//! The daemons and their arguments.

use std::ffi::OsString;
use std::path::Path;

use super::Result;
use super::layout::{API_PORT, Cluster, NODE, POD_SUBNET, SERVICE_SUBNET};
use super::process::Daemon;

/// Port of etcd inside the cluster's network namespace.
const ETCD: &str = "http://127.0.0.1:2379";

/// Every daemon; `down` and `status` go by this list.
pub(crate) const NAMES: [&str; 9] = [
    "containerd",
    "etcd",
    "apiserver",
    "controller-manager",
    "scheduler",
    "kubelet",
    "kube-proxy",
    "coredns",
    "provisioner",
];

/// How the daemon `name` of [`NAMES`] is started.
pub(crate) fn daemon(cluster: &Cluster, name: &str) -> Result<Daemon> {
    let (name, program, arguments) = match name {
        "containerd" => ("containerd", "containerd", containerd(cluster)),
        "etcd" => ("etcd", "server", etcd(cluster)),
        "apiserver" => ("apiserver", "kube-apiserver", apiserver(cluster)),
        "controller-manager" => ("controller-manager", "kube-controller-manager", controller_manager(cluster)),
        "scheduler" => ("scheduler", "kube-scheduler", scheduler(cluster)),
        "kubelet" => ("kubelet", "kubelet", kubelet(cluster)),
        "kube-proxy" => ("kube-proxy", "kube-proxy", kube_proxy(cluster)),
        "coredns" => ("coredns", "coredns", Flags::default().file("-conf", &cluster.path("etc/Corefile"))),
        "provisioner" => ("provisioner", "provisioner", provisioner(cluster)),
        other => return Err(format!("there is no daemon {other}").into()),
    };
    Ok(Daemon { name, program: cluster.programs.find(program)?, arguments: arguments.0 })
}

/// Arguments of a program, `--name=value`.
#[derive(Default)]
struct Flags(Vec<OsString>);

impl Flags {
    fn set(mut self, name: &str, value: &str) -> Self {
        self.0.push(format!("{name}={value}").into());
        self
    }

    fn file(mut self, name: &str, path: &Path) -> Self {
        let mut argument = OsString::from(format!("{name}="));
        argument.push(path);
        self.0.push(argument);
        self
    }
}

fn containerd(cluster: &Cluster) -> Flags {
    Flags::default().file("--config", &cluster.path("etc/containerd.toml"))
}

/// Durability is not wanted of a cluster that lives an hour.
fn etcd(cluster: &Cluster) -> Flags {
    Flags::default()
        .file("--data-dir", &cluster.path("etcd"))
        .set("--listen-client-urls", ETCD)
        .set("--advertise-client-urls", ETCD)
        .set("--listen-peer-urls", "http://127.0.0.1:2380")
        .set("--initial-advertise-peer-urls", "http://127.0.0.1:2380")
        .set("--initial-cluster", "default=http://127.0.0.1:2380")
        .set("--unsafe-no-fsync", "true")
}

fn apiserver(cluster: &Cluster) -> Flags {
    let pki = |name: &str| cluster.path("pki").join(name);
    Flags::default()
        .set("--etcd-servers", ETCD)
        .set("--advertise-address", &cluster.node_address().to_string())
        .set("--bind-address", "0.0.0.0")
        .set("--secure-port", &API_PORT.to_string())
        .set("--service-cluster-ip-range", SERVICE_SUBNET)
        .set("--authorization-mode", "Node,RBAC")
        .set("--enable-admission-plugins", "NodeRestriction,PodSecurity")
        .set("--allow-privileged", "true")
        .file("--client-ca-file", &pki("ca.crt"))
        .file("--tls-cert-file", &pki("apiserver.crt"))
        .file("--tls-private-key-file", &pki("apiserver.key"))
        .file("--kubelet-client-certificate", &pki("apiserver-kubelet.crt"))
        .file("--kubelet-client-key", &pki("apiserver-kubelet.key"))
        .file("--kubelet-certificate-authority", &pki("ca.crt"))
        // The node's name resolves nowhere.
        .set("--kubelet-preferred-address-types", "InternalIP")
        .set("--service-account-issuer", "https://kubernetes.default.svc.cluster.local")
        .file("--service-account-signing-key-file", &pki("service-accounts.key"))
        .file("--service-account-key-file", &pki("service-accounts.pub"))
        .file("--audit-policy-file", &cluster.path("etc/audit-policy.json"))
        .file("--audit-log-path", &cluster.audit_log())
        // One file: who counts writes must not miss those of a file that was rotated away.
        .set("--audit-log-maxsize", "4000")
}

/// What a component of the control plane needs to act and to be asked, as the only one of its kind.
fn component(cluster: &Cluster, name: &str) -> Flags {
    let kubeconfig = cluster.path(&format!("etc/{name}.kubeconfig"));
    Flags::default()
        .file("--kubeconfig", &kubeconfig)
        .file("--authentication-kubeconfig", &kubeconfig)
        .file("--authorization-kubeconfig", &kubeconfig)
        .set("--bind-address", "127.0.0.1")
        .set("--leader-elect", "false")
}

fn controller_manager(cluster: &Cluster) -> Flags {
    component(cluster, "controller-manager")
        .set("--use-service-account-credentials", "true")
        .file("--service-account-private-key-file", &cluster.path("pki/service-accounts.key"))
        .file("--root-ca-file", &cluster.path("pki/ca.crt"))
        .set("--node-monitor-period", "2s")
        .set("--node-monitor-grace-period", "20s")
}

fn scheduler(cluster: &Cluster) -> Flags {
    component(cluster, "scheduler")
}

fn kubelet(cluster: &Cluster) -> Flags {
    Flags::default()
        .file("--config", &cluster.path("etc/kubelet.json"))
        .file("--kubeconfig", &cluster.path("etc/kubelet.kubeconfig"))
        .file("--root-dir", &cluster.path("kubelet"))
        .file("--cert-dir", &cluster.path("kubelet/pki"))
        .set("--hostname-override", NODE)
        .set("--node-ip", &cluster.node_address().to_string())
}

/// The limits of connection tracking belong to the machine; a network namespace cannot set them.
fn kube_proxy(cluster: &Cluster) -> Flags {
    Flags::default()
        .file("--kubeconfig", &cluster.path("etc/kube-proxy.kubeconfig"))
        .set("--hostname-override", NODE)
        .set("--proxy-mode", "iptables")
        .set("--cluster-cidr", POD_SUBNET)
        .set("--healthz-bind-address", &format!("{}:10256", cluster.node_address()))
        .set("--conntrack-max-per-core", "0")
        .set("--conntrack-tcp-timeout-established", "0")
        .set("--conntrack-tcp-timeout-close-wait", "0")
}

fn provisioner(cluster: &Cluster) -> Flags {
    Flags::default()
        .file("--kubeconfig", &cluster.path("etc/admin.kubeconfig"))
        .file("--dir", &cluster.path("volumes"))
        .set("--node", NODE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::config::tests::cluster;

    #[test]
    fn the_api_server_judges_by_rbac_and_audits() {
        let arguments = apiserver(&cluster()).0;
        for expected in [
            "--authorization-mode=Node,RBAC",
            "--advertise-address=10.209.7.2",
            "--audit-log-path=/srv/c/log/audit.log",
            "--client-ca-file=/srv/c/pki/ca.crt",
        ] {
            assert!(arguments.contains(&expected.into()), "{expected}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = daemon(&cluster(), "scheduler").expect_err("nothing is built").to_string();
        assert!(error.contains("kube-scheduler"), "{error}");
        assert!(daemon(&cluster(), "teapot").is_err());
    }
}
