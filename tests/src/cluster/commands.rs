//! The command line of `testkit cluster`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use clap::{Args, Subcommand};

use super::daemons::NAMES;
use super::layout::Cluster;
use super::process::{Life, Record};
use super::programs::on_path;
use super::wait::{Patience, wait_until};
use super::{Result, build, down, existing, image, kubelet, namespaces, up};

/// How long another command may hold the folder: `up` with a build from nothing.
const LOCK_MAX: Duration = Duration::from_secs(45 * 60);

/// A single-node Kubernetes on this machine; needs root (or sudo).
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Args)]
struct Folder {
    /// Folder of the cluster.
    #[arg(long, default_value = ".cluster", value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build the binaries that are not in the cache, and nothing else.
    Build,
    /// Bring the cluster up and print one JSON line. A running one is left as it is.
    Up {
        #[command(flatten)]
        folder: Folder,
        /// Use this cluster instead of starting one; also taken from the variable KUBECONFIG.
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
        /// Address at which pods of that other cluster reach servers of this machine.
        #[arg(long, value_name = "ADDRESS", requires = "kubeconfig")]
        host_address: Option<String>,
    },
    /// End everything that `up` started and delete what it wrote, except the logs.
    Down {
        #[command(flatten)]
        folder: Folder,
    },
    /// Say what runs, one JSON line; exit code 1 if it is not all.
    Status {
        #[command(flatten)]
        folder: Folder,
    },
    /// Import an image from a docker-archive or OCI tar and print its names. Pods use it with imagePullPolicy Never.
    LoadImage {
        #[command(flatten)]
        folder: Folder,
        /// The archive.
        file: PathBuf,
    },
    /// Stop the kubelet, or start it again with the same arguments.
    Kubelet {
        #[command(subcommand)]
        action: KubeletAction,
    },
}

#[derive(Debug, Subcommand)]
enum KubeletAction {
    /// SIGTERM, and wait for its end. The pods' containers go on.
    Stop {
        #[command(flatten)]
        folder: Folder,
        /// SIGSTOP instead: the process stays and does nothing.
        #[arg(long)]
        freeze: bool,
    },
    /// Start or thaw it, and wait until the node is Ready.
    Start {
        #[command(flatten)]
        folder: Folder,
    },
}

/// Runs one command.
///
/// # Errors
/// One line for people: what is missing or did not come up, and where its log is.
pub fn run(arguments: Arguments) -> Result<()> {
    // Daemons inherit it: under a narrow one containerd would unpack images that only root can enter. Secrets are written with
    // modes of their own.
    rustix::process::umask(rustix::fs::Mode::WGRP | rustix::fs::Mode::WOTH);
    match arguments.action {
        Action::Build => build::ensure().map(|_| ()),
        Action::Up { folder, kubeconfig, host_address } => match kubeconfig.or_else(kubeconfig_of_environment) {
            Some(kubeconfig) => print(&existing::check(&kubeconfig, host_address)?),
            None => {
                if !is_root() {
                    // As the user, so that the cache stays theirs.
                    build::ensure()?;
                }
                as_root(&folder, true, |dir| print(&up::up(dir)?))
            }
        },
        Action::Down { folder } => as_root(&folder, false, |dir| {
            let was = down::down(dir)?;
            eprintln!(
                "testkit: {} {}",
                if was { "removed the cluster in" } else { "there is no cluster in" },
                dir.display()
            );
            Ok(())
        }),
        Action::Status { folder } => status(&folder),
        Action::LoadImage { folder, file } => {
            as_root(&folder, false, |dir| print(&serde_json::json!({"images": image::load(dir, &file)?})))
        }
        Action::Kubelet { action: KubeletAction::Stop { folder, freeze } } => {
            as_root(&folder, false, |dir| kubelet::stop(dir, freeze))
        }
        Action::Kubelet { action: KubeletAction::Start { folder } } => as_root(&folder, false, kubelet::start_again),
    }
}

fn kubeconfig_of_environment() -> Option<PathBuf> {
    std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn print(line: &impl serde::Serialize) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(line)?)?;
    stdout.flush()?;
    Ok(())
}

/// Does `work` as root, alone with the folder. A user runs the same command again through sudo.
fn as_root(folder: &Folder, create: bool, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if !is_root() {
        return again_with_sudo();
    }
    if create {
        fs::create_dir_all(&folder.dir)?;
    } else if !folder.dir.exists() {
        // Nothing is there; each command says so in its own words.
        return work(&folder.dir);
    }
    let dir = folder.dir.canonicalize()?;
    let lock = File::open(&dir)?;
    let patience = Patience::new(format!("another testkit cluster command on {} to end", dir.display()), LOCK_MAX);
    wait_until(&patience, || Ok(lock.try_lock().is_ok()))?;
    work(&dir)?;
    hand_over(&dir)
}

/// A kubeconfig made through sudo belongs to the user who asked for it.
fn hand_over(dir: &Path) -> Result<()> {
    let id = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let kubeconfig = dir.join("kubeconfig");
    if let (Some(user), Some(group), true) = (id("SUDO_UID"), id("SUDO_GID"), kubeconfig.exists()) {
        std::os::unix::fs::chown(kubeconfig, Some(user), Some(group))?;
    }
    Ok(())
}

fn again_with_sudo() -> Result<()> {
    if on_path("sudo").is_none() {
        return Err("a cluster needs root, and this machine has no sudo: run it as root".into());
    }
    let status: ExitStatus = Command::new("sudo")
        .arg("--preserve-env=NT_CACHE,HOME,PATH")
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .status()?;
    std::process::exit(status.code().unwrap_or(1));
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn status(folder: &Folder) -> Result<()> {
    let dir = folder.dir.canonicalize().unwrap_or_else(|_| folder.dir.clone());
    let Some(cluster) = Cluster::load(&dir)? else {
        print(&serde_json::json!({"running": false, "dir": dir}))?;
        return Err(format!("there is no cluster in {}", dir.display()).into());
    };
    let mut daemons = serde_json::Map::new();
    let mut running = cluster.ready && namespaces::exist(&cluster)?;
    for name in NAMES {
        let life = match Record::load(&cluster, name)?.map(|record| record.life()) {
            Some(Life::Running) => "running",
            Some(Life::Frozen) => "frozen",
            Some(Life::Ended) => "ended",
            None => "stopped",
        };
        running &= life == "running";
        daemons.insert(name.to_owned(), life.into());
    }
    print(&serde_json::json!({
        "running": running, "dir": cluster.dir, "kubeconfig": cluster.kubeconfig(), "daemons": daemons,
        "processes": cluster.cgroups.pids().len(), "link": namespaces::link_exists(&cluster),
        "cgroup_version": cluster.cgroups.version, "cgroups": cluster.cgroups.exist(),
    }))?;
    if running { Ok(()) } else { Err("not everything of the cluster runs; its logs are in log/".into()) }
}
