//! Processes of pods, as the host sees them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Ids of the processes whose command line has all of `parts`.
pub fn find(parts: &[&str]) -> Vec<i32> {
    let folders = fs::read_dir("/proc").expect("/proc").flatten();
    folders
        .filter_map(|folder| {
            let pid = folder.file_name().to_str()?.parse().ok()?;
            // A process may end between the listing and the reading.
            let line = fs::read(folder.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            parts.iter().all(|part| line.contains(part)).then_some(pid)
        })
        .collect()
}

/// SIGKILL to the one process of a pod whose command line has all of `parts`.
///
/// # Panics
/// There is no such process, or more than one.
pub fn kill(pod_uid: &str, parts: &[&str]) {
    let mut found = find(parts);
    // Other clusters of this machine may run the same program.
    found.retain(|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(pod_uid)));
    assert_eq!(found.len(), 1, "one process with {parts:?}");
    let pid = Pid::from_raw(found[0]).expect("a process id");
    kill_process(pid, Signal::KILL).expect("the signal is sent");
}
