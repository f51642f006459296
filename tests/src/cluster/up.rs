//! Bringing a cluster up.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::cgroup::Cgroups;
use super::daemons::{NAMES, daemon};
use super::layout::{Cluster, NODE, check_socket_length, id_of};
use super::process::{check_alive, start};
use super::programs::Programs;
use super::ready::Ready;
use super::wait::{Patience, wait_until};
use super::{Result, build, certificates, config, down, image, namespaces, packages, storage};

/// How long one part may take on a busy machine; a healthy one needs a tenth of it.
const PART_MAX: Duration = Duration::from_secs(180);

/// Brings up the cluster of `dir`, or finds it running.
///
/// # Errors
/// What the machine lacks, or the part that did not come up and its log. Nothing is left running then.
pub(crate) fn up(dir: &Path) -> Result<Ready> {
    if let Some(cluster) = Cluster::load(dir)? {
        if cluster.ready && namespaces::exist(&cluster)? {
            return running(&cluster);
        }
        eprintln!("testkit: clearing away what an earlier cluster in {} left", dir.display());
        down::remove(&cluster)?;
    }
    let cluster = prepare(dir)?;
    match bring_up(cluster.clone()) {
        Ok(ready) => Ok(ready),
        Err(error) => match down::remove(&cluster) {
            Ok(()) => Err(error),
            Err(left) => Err(format!("{error}\nand what was started could not be removed: {left}").into()),
        },
    }
}

/// A cluster that was brought up earlier: the kubelet may have been stopped by a test, everything else must run.
fn running(cluster: &Cluster) -> Result<Ready> {
    for name in NAMES.iter().filter(|name| !["kubelet", "kube-proxy"].contains(name)) {
        check_alive(cluster, name).map_err(|error| {
            format!(
                "the cluster in {0} is damaged: {error}\ntestkit cluster down --dir {0} removes it",
                cluster.dir.display()
            )
        })?;
    }
    super::kubelet::start_again(&cluster.dir)?;
    Ready::of(cluster)
}

/// Everything that can be refused before anything is started.
fn prepare(dir: &Path) -> Result<Cluster> {
    check_socket_length(dir)?;
    let cni = packages::ensure()?;
    let programs = Programs { built: build::ensure()?, cni };
    let id = id_of(dir);
    let cgroups = Cgroups::detect(&fs::read_to_string("/proc/self/mounts")?, &format!("ntc-{id}"))?;
    let subnet = namespaces::choose_subnet(&id)?;
    Ok(Cluster { dir: dir.to_owned(), id, subnet, programs, cgroups, ready: false })
}

fn bring_up(mut cluster: Cluster) -> Result<Ready> {
    let begin = Instant::now();
    down::forget_logs(&cluster)?;
    for folder in ["run", "log/pods", "pki", "etc", "home", "volumes", "kubelet", "kubelet-plugins", "cni"] {
        fs::create_dir_all(cluster.path(folder))?;
    }
    // Written first: `down` must find whatever comes after it.
    cluster.save()?;
    cluster.cgroups.create()?;
    namespaces::create(&cluster)?;
    config::write(&cluster)?;
    certificates::create(&cluster)?;
    start_control_plane(&cluster)?;
    start_node(&cluster)?;
    cluster.ready = true;
    cluster.save()?;
    eprintln!("testkit: the cluster is ready after {:.1} s", begin.elapsed().as_secs_f64());
    Ready::of(&cluster)
}

fn start_control_plane(cluster: &Cluster) -> Result<()> {
    for name in ["containerd", "etcd", "apiserver"] {
        start(cluster, &daemon(cluster, name)?)?;
    }
    wait_for(cluster, "containerd", "containerd to listen", || {
        Ok(std::os::unix::net::UnixStream::connect(cluster.containerd_socket()).is_ok())
    })?;
    wait_for(cluster, "apiserver", "the API server to be ready", || {
        check_alive(cluster, "etcd")?;
        Ok(kubectl(cluster, &["get", "--raw", "/readyz"], None).is_ok())
    })?;
    for name in ["controller-manager", "scheduler"] {
        start(cluster, &daemon(cluster, name)?)?;
    }
    Ok(())
}

fn start_node(cluster: &Cluster) -> Result<()> {
    start(cluster, &daemon(cluster, "kubelet")?)?;
    for name in ["coredns", "provisioner"] {
        start(cluster, &daemon(cluster, name)?)?;
    }
    image::load_pause(cluster)?;
    kubectl(cluster, &["apply", "-f", "-"], Some(&storage::class().to_string()))?;
    wait_for_kubelet(cluster)?;
    start_proxy(cluster)?;
    wait_for(cluster, "coredns", "DNS to be ready", || Ok(http_ok(cluster, 8181, "/ready")))?;
    // Pods of the default namespace are refused until the account is there.
    wait_for(cluster, "controller-manager", "the default service account", || {
        Ok(kubectl(cluster, &["get", "serviceaccount", "default", "-o", "name"], None).is_ok())
    })?;
    check_alive(cluster, "provisioner")
}

/// Waits until the kubelet answers and the node is Ready: its status outlives it for a while.
pub(crate) fn wait_for_kubelet(cluster: &Cluster) -> Result<()> {
    wait_for(cluster, "kubelet", "the kubelet to answer", || Ok(http_ok(cluster, 10248, "/healthz")))?;
    let ready = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
    wait_for(cluster, "kubelet", "the node to be Ready", || {
        Ok(kubectl(cluster, &["get", "node", NODE, "-o", ready], None).is_ok_and(|status| status == "True"))
    })
}

/// Starts kube-proxy and waits until its rules are written.
pub(crate) fn start_proxy(cluster: &Cluster) -> Result<()> {
    start(cluster, &daemon(cluster, "kube-proxy")?)?;
    wait_for(cluster, "kube-proxy", "the rules of Services", || Ok(http_ok(cluster, 10256, "/healthz")))
}

/// Waits for a sign of a daemon; its death ends the wait.
fn wait_for(cluster: &Cluster, name: &str, what: &str, mut sign: impl FnMut() -> Result<bool>) -> Result<()> {
    let patience = Patience::new(what, PART_MAX).log(cluster.log(name));
    wait_until(&patience, || {
        check_alive(cluster, name)?;
        sign()
    })
}

/// Runs the cluster's kubectl as administrator.
pub(crate) fn kubectl(cluster: &Cluster, arguments: &[&str], input: Option<&str>) -> Result<String> {
    let mut child = Command::new(cluster.programs.find("kubectl")?)
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .arg("--request-timeout=20s")
        .args(arguments)
        .env_clear()
        .env("HOME", cluster.path("home"))
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        stdin.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("kubectl {} failed: {}", arguments.join(" "), words.trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a daemon's health page at the node answers 200.
fn http_ok(cluster: &Cluster, port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let limit = Duration::from_secs(2);
        let mut socket = TcpStream::connect_timeout(&SocketAddr::from((cluster.node_address(), port)), limit)?;
        socket.set_read_timeout(Some(limit))?;
        write!(socket, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut status = [0; 12];
        socket.read_exact(&mut status)?;
        Ok(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}
