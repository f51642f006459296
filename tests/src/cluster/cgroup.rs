//! The control groups of a cluster: one parent for its daemons and its pods, so that none of its processes can be missed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::Result;
use super::wait::{Patience, wait_until};

/// Controllers that a kubelet wants on cgroup v1.
const NEEDED: [&str; 5] = ["cpu", "cpuacct", "cpuset", "memory", "pids"];
/// How long killed processes may take until they are gone.
const KILL_MAX: Duration = Duration::from_secs(30);

/// The mounted hierarchies and the cluster's place in them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cgroups {
    /// 1 or 2.
    pub(crate) version: u8,
    /// Mount points: one for version 2, all hierarchies for version 1.
    mounts: Vec<PathBuf>,
    /// The mount point in which the daemons are found again: pods are in all.
    tracked: PathBuf,
    /// Name of the cluster's group, at the top.
    name: String,
}

impl Cgroups {
    /// Finds what is mounted on this machine (the text of `/proc/self/mounts`).
    pub(crate) fn detect(mounts: &str, name: &str) -> Result<Cgroups> {
        let entries: Vec<(PathBuf, &str, Vec<&str>)> = mounts
            .lines()
            .filter_map(|line| {
                let mut fields = line.split(' ').skip(1);
                let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
                Some((PathBuf::from(point), kind, options.split(',').collect()))
            })
            .collect();
        let hierarchies: Vec<&(PathBuf, &str, Vec<&str>)> =
            entries.iter().filter(|(_, kind, _)| *kind == "cgroup").collect();
        let with = |controller: &str| hierarchies.iter().find(|(_, _, options)| options.contains(&controller));
        if with("memory").is_some() {
            if let Some(missing) = NEEDED.iter().find(|controller| with(controller).is_none()) {
                return Err(format!("cgroup v1 controller {missing} is not mounted: a kubelet needs it").into());
            }
            let tracked = with("pids").map(|entry| entry.0.clone()).unwrap_or_default();
            // In a hybrid setup runc makes groups in the unified hierarchy too.
            let all = entries.iter().filter(|(_, kind, _)| kind.starts_with("cgroup"));
            let mounts = all.map(|(point, _, _)| point.clone()).collect();
            return Ok(Cgroups { version: 1, mounts, tracked, name: name.to_owned() });
        }
        let unified = entries.iter().find(|(_, kind, _)| *kind == "cgroup2");
        let Some((point, _, _)) = unified else {
            return Err("no cgroup hierarchy with a memory controller is mounted on this machine".into());
        };
        Ok(Cgroups { version: 2, mounts: vec![point.clone()], tracked: point.clone(), name: name.to_owned() })
    }

    /// The group below which the kubelet puts its pods.
    pub(crate) fn root(&self) -> String {
        format!("/{}", self.name)
    }

    /// File that takes the pid of a daemon.
    pub(crate) fn daemons(&self) -> PathBuf {
        self.tracked.join(&self.name).join("daemons/cgroup.procs")
    }

    /// Makes the groups.
    pub(crate) fn create(&self) -> Result<()> {
        for mount in &self.mounts {
            let group = mount.join(&self.name);
            if self.version == 2 {
                delegate(mount)?;
            }
            fs::create_dir_all(&group)
                .map_err(|error| format!("the cgroup {} cannot be made: {error}", group.display()))?;
            if self.version == 2 {
                delegate(&group)?;
            }
        }
        fs::create_dir_all(self.tracked.join(&self.name).join("daemons"))?;
        Ok(())
    }

    /// Every process of the cluster.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let mut found: Vec<i32> = Vec::new();
        for mount in &self.mounts {
            for group in groups(&mount.join(&self.name)) {
                // A group that was removed meanwhile holds nothing.
                let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
                found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Kills every process of the cluster and waits until all are gone.
    pub(crate) fn kill_all(&self) -> Result<()> {
        wait_until(&Patience::new("the processes of the cluster to end", KILL_MAX), || {
            let pids = self.pids();
            for pid in &pids {
                self.kill(*pid)?;
            }
            Ok(pids.is_empty())
        })
        .map_err(|error| format!("{error}; still there: {:?}", self.pids()).into())
    }

    /// Kills one process if it is still one of the cluster's when nobody else can get its pid.
    fn kill(&self, pid: i32) -> Result<()> {
        let Some(pid) = Pid::from_raw(pid) else { return Ok(()) };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())).unwrap_or_default();
        if is_member(&groups, &self.name) {
            match pidfd_send_signal(&handle, Signal::KILL) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(format!("process {pid:?} cannot be killed: {error}").into()),
            }
        }
        Ok(())
    }

    /// Removes the groups; they hold no process any more.
    pub(crate) fn remove(&self) -> Result<()> {
        for mount in &self.mounts {
            let top = mount.join(&self.name);
            // The kernel needs a moment after the last process of a group is gone.
            wait_until(&Patience::new("the control groups to become empty", KILL_MAX), || {
                for group in groups(&top) {
                    match fs::remove_dir(&group) {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Ok(false),
                        Err(error) => return Err(format!("{}: {error}", group.display()).into()),
                    }
                }
                Ok(!top.exists())
            })?;
        }
        Ok(())
    }

    /// Whether any group is left.
    pub(crate) fn exist(&self) -> bool {
        self.mounts.iter().any(|mount| mount.join(&self.name).exists())
    }
}

/// Hands the controllers of a version 2 group down to its children.
fn delegate(group: &Path) -> Result<()> {
    let available = fs::read_to_string(group.join("cgroup.controllers"))?;
    for controller in available.split_whitespace() {
        let needed = NEEDED.contains(&controller);
        let written = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
        if let (true, Err(error)) = (needed, written) {
            return Err(format!("controller {controller} of {} cannot be delegated: {error}", group.display()).into());
        }
    }
    Ok(())
}

/// The group and all below it, children before their parents.
fn groups(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let children = fs::read_dir(top).into_iter().flatten().flatten();
    for child in children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir())) {
        found.extend(groups(&child.path()));
    }
    if top.exists() {
        found.push(top.to_owned());
    }
    found
}

/// Whether `/proc/PID/cgroup` names the group `name` or one below it.
fn is_member(text: &str, name: &str) -> bool {
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| path.split('/').nth(1) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
";

    #[test]
    fn version_1_is_seen_beside_a_unified_hierarchy() {
        let cgroups = Cgroups::detect(HYBRID, "ntc-1").expect("v1");
        assert_eq!(cgroups.version, 1);
        assert_eq!(cgroups.mounts.len(), 6);
        assert_eq!(cgroups.daemons(), Path::new("/sys/fs/cgroup/pids/ntc-1/daemons/cgroup.procs"));
    }

    #[test]
    fn version_2_is_seen() {
        let cgroups = Cgroups::detect("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n", "ntc-1").expect("v2");
        assert_eq!((cgroups.version, cgroups.mounts.len()), (2, 1));
    }

    #[test]
    fn a_missing_controller_is_named() {
        let without = HYBRID.replace("pids", "freezer");
        assert!(Cgroups::detect(&without, "x").expect_err("no pids").to_string().contains("controller pids"));
        assert!(Cgroups::detect("proc /proc proc rw 0 0\n", "x").is_err());
    }

    #[test]
    fn only_members_count() {
        assert!(is_member("9:pids:/ntc-1/kubepods/pod7\n0::/\n", "ntc-1"));
        assert!(is_member("0::/ntc-1/daemons", "ntc-1"));
        assert!(!is_member("9:pids:/ntc-12/daemons\n0::/user/ntc-1\n", "ntc-1"));
    }
}
