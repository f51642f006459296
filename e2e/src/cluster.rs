//! The cluster of the cases: brought up once, with the images loaded and the charts installed.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{OnceLock, RwLock};

use serde_json::Value;
use testkit::ends::{Source, built};
use testkit::spawn;

use crate::kubectl::Kubectl;

/// Namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "native-transfer-system";
/// Release and Deployment of the operator.
pub const OPERATOR: &str = "native-transfer";
/// The image of operator and workers.
pub const IMAGE: &str = "native-transfer:e2e";

/// The cluster, ready.
#[derive(Debug)]
pub struct Cluster {
    /// Administrator's `kubectl`.
    pub kubectl: Kubectl,
    /// Address at which pods reach servers of this machine.
    pub host_address: IpAddr,
    /// Name of the node.
    pub node: String,
    /// Audit log of the API server.
    pub audit_log: PathBuf,
    /// The source of all cases.
    pub source: Source,
    /// Whoever disturbs the node or the operator takes it alone, every other case with the others.
    pub calm: RwLock<()>,
    folder: PathBuf,
    owned: bool,
}

static CLUSTER: OnceLock<Cluster> = OnceLock::new();

/// The cluster; the first caller brings it up.
pub fn cluster() -> &'static Cluster {
    CLUSTER.get_or_init(Cluster::up)
}

/// Ends the cluster if a case brought it up. `KEEP_CLUSTER=1` leaves it for the next run.
pub fn down() {
    let Some(cluster) = CLUSTER.get() else { return };
    if !cluster.owned || std::env::var_os("KEEP_CLUSTER").is_some() {
        return;
    }
    testkit(&["cluster", "down", "--dir", text(&cluster.folder)]);
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of UTF-8")
}

/// Runs `testkit`; returns what it printed.
fn testkit(arguments: &[&str]) -> String {
    let output = Command::new(spawn::binary().expect("testkit is built"))
        .args(arguments)
        .env_remove("KUBECONFIG")
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("testkit starts");
    assert!(output.status.success(), "testkit {} failed", arguments.join(" "));
    String::from_utf8(output.stdout).expect("text")
}

fn field<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_else(|| panic!("the cluster does not say its {key}: {line}"))
}

impl Cluster {
    fn up() -> Cluster {
        let folder =
            std::env::var_os("E2E_CLUSTER_DIR").map_or_else(|| repository().join(".cluster-e2e"), PathBuf::from);
        let line: Value =
            serde_json::from_str(testkit(&["cluster", "up", "--dir", text(&folder)]).trim()).expect("a JSON line");
        let host_address: IpAddr = field(&line, "host_address").parse().expect("an address");
        let cluster = Cluster {
            kubectl: Kubectl { program: field(&line, "kubectl").into(), kubeconfig: field(&line, "kubeconfig").into() },
            host_address,
            node: field(&line, "node").to_owned(),
            audit_log: field(&line, "audit_log").into(),
            source: Source::start(Some(host_address)),
            calm: RwLock::new(()),
            owned: line["owned"] == true,
            folder,
        };
        cluster.load_image();
        cluster.install(field(&line, "helm"));
        cluster
    }

    fn load_image(&self) {
        let worker = built("cli", "native-transfer");
        built("operator", "native-transfer-operator");
        let binaries = worker.parent().expect("a folder");
        let archive = self.folder.join("image.tar");
        testkit(&["image", "build", "--name", IMAGE, "--bin-dir", text(binaries), "--output", text(&archive)]);
        testkit(&["cluster", "load-image", "--dir", text(&self.folder), text(&archive)]);
    }

    /// Installs or upgrades both charts, as `docs/start.md` says, with the image that was loaded.
    fn install(&self, helm: &str) {
        let run = |arguments: &[&str]| {
            let output = Command::new(helm)
                .arg("--kubeconfig")
                .arg(&self.kubectl.kubeconfig)
                .args(arguments)
                .output()
                .expect("helm");
            assert!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
        };
        let charts = repository().join("charts");
        let chart = |name: &str| text(&charts.join(name)).to_owned();
        run(&[
            "upgrade",
            "--install",
            "native-transfer-crds",
            &chart("native-transfer-crds"),
            "-n",
            OPERATOR_NAMESPACE,
            "--create-namespace",
        ]);
        let (repository, tag) = IMAGE.split_once(':').expect("a tag");
        run(&[
            "upgrade",
            "--install",
            OPERATOR,
            &chart("native-transfer"),
            "-n",
            OPERATOR_NAMESPACE,
            "--set",
            &format!("image.repository={repository},image.tag={tag},image.pullPolicy=Never"),
            // A case names a tag of it that does not exist.
            "--set",
            &format!("worker.allowedImagePrefixes={{{repository}}}"),
        ]);
        // A kept cluster has an operator of an earlier image under the same name.
        let deployment = format!("deployment/{OPERATOR}");
        self.kubectl.run(&["rollout", "restart", &deployment, "-n", OPERATOR_NAMESPACE]);
        self.kubectl.run(&["rollout", "status", &deployment, "-n", OPERATOR_NAMESPACE, "--timeout=120s"]);
    }

    /// Stops the kubelet; containers go on.
    pub fn stop_kubelet(&self) {
        testkit(&["cluster", "kubelet", "stop", "--dir", text(&self.folder)]);
    }

    /// Starts the kubelet again and waits for the node.
    pub fn start_kubelet(&self) {
        testkit(&["cluster", "kubelet", "start", "--dir", text(&self.folder)]);
    }

    /// Sets the number of operators, and waits for it.
    pub fn scale_operator(&self, replicas: u32) {
        let deployment = format!("deployment/{OPERATOR}");
        self.kubectl.run(&["scale", &deployment, "-n", OPERATOR_NAMESPACE, &format!("--replicas={replicas}")]);
        if replicas > 0 {
            self.kubectl.run(&["rollout", "status", &deployment, "-n", OPERATOR_NAMESPACE, "--timeout=120s"]);
        } else {
            self.kubectl.run(&[
                "wait",
                "--for=delete",
                "pod",
                "-n",
                OPERATOR_NAMESPACE,
                "-l",
                "app.kubernetes.io/component=operator",
                "--timeout=120s",
            ]);
        }
    }
}
