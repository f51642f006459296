//! The cluster's network and mount namespaces, and its link to this machine.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::Result;
use super::layout::{Cluster, free_subnet};
use super::mounts;
use super::programs::SYSTEM_PATH;

/// Folders whose names are fixed in containerd, the kubelet or CNI: each cluster sees its own.
const PRIVATE_FOLDERS: [&str; 5] =
    ["/run/containerd", "/run/netns", "/var/lib/kubelet", "/var/lib/cni", "/var/log/containers"];

/// Inside both namespaces, with the private folders as arguments. Bridged packets must pass iptables, or a pod does not
/// reach a Service whose pod is on the same bridge.
const INSIDE: &str = r#"set -e
ip link set lo up
for folder; do mount -t tmpfs -o mode=0755 tmpfs "$folder"; done
echo 1 >/proc/sys/net/ipv4/ip_forward
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables; fi"#;

/// Chooses addresses that nothing on this machine uses.
pub(crate) fn choose_subnet(id: &str) -> Result<u8> {
    let routes = output(Command::new("ip").args(["-4", "route", "show", "table", "all"]))?;
    let addresses = output(Command::new("ip").args(["-4", "address", "show"]))?;
    free_subnet(id, &format!("{routes}\n{addresses}"))
        .ok_or_else(|| "all of 10.209.0.0/16 is in use on this machine: no addresses are left for a cluster".into())
}

/// Makes the namespaces and the link.
pub(crate) fn create(cluster: &Cluster) -> Result<()> {
    if !Path::new("/proc/sys/net/bridge").exists() {
        // Built into some kernels, a module of most others.
        output(Command::new("modprobe").arg("br_netfilter"))
            .map_err(|error| format!("bridged packets do not pass iptables here, Services would not work: {error}"))?;
    }
    for folder in PRIVATE_FOLDERS {
        fs::create_dir_all(folder)?;
    }
    let ns = cluster.path("ns");
    fs::create_dir_all(&ns)?;
    // A namespace file can be bound only on a mount that does not propagate.
    run("mount", [OsStr::new("--bind"), ns.as_os_str(), ns.as_os_str()])?;
    run("mount", [OsStr::new("--make-private"), ns.as_os_str()])?;
    fs::write(ns.join("net"), "")?;
    fs::write(ns.join("mnt"), "")?;
    output(
        Command::new("unshare")
            .arg(format!("--net={}", ns.join("net").display()))
            .arg(format!("--mount={}", ns.join("mnt").display()))
            .args(["--propagation", "private", "--", "/bin/sh", "-c", INSIDE, "sh"])
            .args(PRIVATE_FOLDERS),
    )?;
    connect(cluster)
}

/// A pair of interfaces with one address each.
fn connect(cluster: &Cluster) -> Result<()> {
    let (link, peer) = (cluster.link(), format!("{}p", cluster.link()));
    let net = cluster.path("ns/net").display().to_string();
    let host = format!("{}/30", cluster.host_address());
    let node = format!("{}/30", cluster.node_address());
    run("ip", ["link", "add", &link, "type", "veth", "peer", "name", &peer])?;
    run("ip", ["link", "set", &peer, "netns", &net])?;
    run("ip", ["address", "add", &host, "dev", &link])?;
    run("ip", ["link", "set", &link, "up"])?;
    for arguments in [
        vec!["link", "set", &peer, "name", "eth0"],
        vec!["address", "add", &node, "dev", "eth0"],
        vec!["link", "set", "eth0", "up"],
    ] {
        output(inside(cluster, "ip").args(arguments))?;
    }
    let host = cluster.host_address().to_string();
    output(inside(cluster, "ip").args(["route", "add", "default", "via", &host]))?;
    Ok(())
}

/// A command inside the cluster's namespaces.
pub(crate) fn inside(cluster: &Cluster, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net={}", cluster.path("ns/net").display()))
        .arg(format!("--mount={}", cluster.path("ns/mnt").display()))
        .arg("--")
        .arg(program);
    command
}

/// Whether the namespaces are there: they are not after a reboot.
pub(crate) fn exist(cluster: &Cluster) -> Result<bool> {
    let mounts = mounts::list(&cluster.path("ns"))?;
    Ok(mounts.contains(&cluster.path("ns/net")) && mounts.contains(&cluster.path("ns/mnt")))
}

/// Takes the link and the namespaces away. With the last process gone their mounts, bridges, addresses and rules go too.
pub(crate) fn remove(cluster: &Cluster) -> Result<()> {
    if link_exists(cluster) {
        run("ip", ["link", "delete", &cluster.link()])?;
    }
    mounts::unmount_below(&cluster.dir)
}

/// Whether the link is there.
pub(crate) fn link_exists(cluster: &Cluster) -> bool {
    Path::new("/sys/class/net").join(cluster.link()).exists()
}

/// Runs a command to its end.
pub(crate) fn run<I: IntoIterator<Item: AsRef<OsStr>>>(program: &str, arguments: I) -> Result<()> {
    output(Command::new(program).args(arguments)).map(|_| ())
}

/// Runs a command; its standard output.
///
/// # Errors
/// The command is missing or failed: its own words.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = format!("{} {}", program_name(command), arguments_text(command));
    let result: Output = command
        .env("PATH", SYSTEM_PATH)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    if !result.status.success() {
        let words = String::from_utf8_lossy(&result.stderr);
        return Err(format!("{name} failed ({}): {}", result.status, words.trim()).into());
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

fn program_name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn arguments_text(command: &Command) -> String {
    let texts = command.get_args().map(|argument| argument.to_string_lossy());
    // A script would drown the message.
    texts.filter(|text| !text.contains('\n')).collect::<Vec<_>>().join(" ")
}
