//! What this machine must offer, and the Debian packages that are installed where it does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Result;
use super::programs::on_path;

/// Programs and the packages that bring them.
const PROGRAMS: [(&str, &str); 8] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("conntrack", "conntrack"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
];
/// Where distributions put the CNI plugins.
const CNI_FOLDERS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
const CNI_PACKAGE: &str = "containernetworking-plugins";

/// Installs what is missing; the folder of the CNI plugins.
///
/// # Errors
/// Not x86_64 Linux, not root, no apt-get, or a package that does not install.
pub(crate) fn ensure() -> Result<PathBuf> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("a cluster needs x86_64 Linux".into());
    }
    let mut missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| on_path(program).is_none()).map(|(_, package)| *package).collect();
    if cni_folder().is_none() {
        missing.push(CNI_PACKAGE);
    }
    missing.dedup();
    if !missing.is_empty() {
        install(&missing)?;
    }
    for (program, package) in PROGRAMS {
        on_path(program).ok_or_else(|| format!("{program} is missing after the package {package} was installed"))?;
    }
    cni_folder().ok_or_else(|| format!("the CNI plugins are missing; the package is {CNI_PACKAGE}").into())
}

fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if on_path("apt-get").is_none() {
        return Err(format!("this machine has no apt-get: install {names} by its own means").into());
    }
    eprintln!("testkit: the cluster needs these Debian packages and installs them now: {names}");
    for arguments in
        [vec!["update", "-qq"], [vec!["install", "-y", "-qq", "--no-install-recommends"], packages.to_vec()].concat()]
    {
        let status = Command::new("apt-get")
            .args(&arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(format!("apt-get {} failed: {names} cannot be installed", arguments[0]).into());
        }
    }
    Ok(())
}

fn cni_folder() -> Option<PathBuf> {
    CNI_FOLDERS.iter().map(Path::new).find(|folder| folder.join("bridge").is_file()).map(Path::to_owned)
}
