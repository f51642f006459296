//! Daemons: started into the cluster's namespaces and cgroup, recorded, and found again by pid and start time.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::Result;
use super::layout::Cluster;
use super::programs::SYSTEM_PATH;
use super::wait::{Patience, wait_until};

/// Enters the cgroup, a session and the namespaces, then becomes the daemon: the pid stays the same throughout.
const ENTER: &str = r#"procs=$1 net=$2 mnt=$3; shift 3; echo $$ >"$procs" || exit 125
exec setsid nsenter --net="$net" --mount="$mnt" -- "$@""#;

/// How a daemon is started.
#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    /// Name of its record and log.
    pub(crate) name: &'static str,
    /// Its program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
}

/// A daemon that was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of the daemon.
    pub(crate) name: String,
    /// Its process.
    pub(crate) pid: i32,
    /// When the process started, in clock ticks since boot: a process that got the same pid later has another.
    started_ticks: u64,
    /// Which boot that was.
    boot: String,
}

/// What a recorded process does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs.
    Running,
    /// SIGSTOP holds it.
    Frozen,
    /// It has ended; its pid may belong to another by now.
    Ended,
}

impl Record {
    /// The record of a daemon, or `None` if it was not started, or was stopped by us.
    pub(crate) fn load(cluster: &Cluster, name: &str) -> Result<Option<Record>> {
        match fs::read(file(cluster, name)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What the process does now.
    pub(crate) fn life(&self) -> Life {
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", self.pid)) else { return Life::Ended };
        match parse_stat(&stat) {
            Some((state, started)) if started == self.started_ticks && boot().is_ok_and(|boot| boot == self.boot) => {
                match state {
                    'Z' | 'X' | 'x' => Life::Ended,
                    'T' => Life::Frozen,
                    _ => Life::Running,
                }
            }
            _ => Life::Ended,
        }
    }

    /// Sends a signal to this very process; `false` if it has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<bool> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(false) };
        // The handle is taken first: whoever it names, the check after it is about the same process.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(false) };
        if self.life() == Life::Ended {
            return Ok(false);
        }
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(format!("{} (pid {}) takes no signal: {error}", self.name, self.pid).into()),
        }
    }

    /// Asks the process to end, kills it after `grace`, and forgets it.
    pub(crate) fn stop(&self, cluster: &Cluster, grace: Duration) -> Result<()> {
        let ended = || Ok(self.life() == Life::Ended);
        if self.signal(Signal::TERM)? {
            // A frozen process sees the signal when it is thawed.
            self.signal(Signal::CONT)?;
            if wait_until(&Patience::new("its end", grace), ended).is_err() {
                self.signal(Signal::KILL)?;
                let patience = Patience::new(format!("{} to end", self.name), Duration::from_secs(10));
                wait_until(&patience.log(cluster.log(&self.name)), ended)?;
            }
        }
        fs::remove_file(file(cluster, &self.name))?;
        Ok(())
    }
}

/// Starts a daemon unless it runs already.
pub(crate) fn start(cluster: &Cluster, daemon: &Daemon) -> Result<Record> {
    if let Some(record) = Record::load(cluster, daemon.name)?
        && record.life() != Life::Ended
    {
        return Ok(record);
    }
    let log = OpenOptions::new().create(true).append(true).open(cluster.log(daemon.name))?;
    let child = Command::new("/bin/sh")
        .args(["-c", ENTER, "sh"])
        .arg(cluster.cgroups.daemons())
        .args([cluster.path("ns/net"), cluster.path("ns/mnt")])
        .arg(&daemon.program)
        .args(&daemon.arguments)
        .env_clear()
        .env("PATH", SYSTEM_PATH)
        .env("HOME", cluster.path("home"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", daemon.name))?;
    let pid = i32::try_from(child.id())?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, started_ticks) = parse_stat(&stat).ok_or("the kernel's description of a process cannot be read")?;
    let record = Record { name: daemon.name.to_owned(), pid, started_ticks, boot: boot()? };
    fs::write(file(cluster, daemon.name), serde_json::to_vec(&record)?)?;
    Ok(record)
}

/// An error if the daemon has ended, with the last words of its log.
pub(crate) fn check_alive(cluster: &Cluster, name: &str) -> Result<()> {
    match Record::load(cluster, name)? {
        Some(record) if record.life() != Life::Ended => Ok(()),
        _ => Err(format!("{name} has ended; {}", last_words(&cluster.log(name))).into()),
    }
}

/// Where the log is and how it ends.
fn last_words(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    let last = last.into_iter().rev().collect::<Vec<_>>().join("\n  ");
    format!("its log {} ends with:\n  {last}", log.display())
}

fn file(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.dir.join("run").join(format!("{name}.pid.json"))
}

fn boot() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// State and start time of `/proc/PID/stat`; the program's name in it may hold blanks and parentheses.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 22 of proc(5); the state is field 3.
    let started = fields.nth(18)?.parse().ok()?;
    Some((state, started))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: u32) -> Record {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
        let (_, started_ticks) = parse_stat(&stat).expect("stat");
        Record { name: "x".into(), pid: pid.try_into().expect("pid"), started_ticks, boot: boot().expect("boot") }
    }

    #[test]
    fn a_program_name_with_blanks_and_parentheses_is_read() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 10 11";
        assert_eq!(parse_stat(stat), Some(('S', 98765)));
        assert_eq!(parse_stat("42 (sh) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_reused_pid_is_another_process_and_gets_no_signal() {
        let own = record(std::process::id());
        assert_eq!(own.life(), Life::Running);
        let earlier = Record { started_ticks: own.started_ticks - 1, ..own.clone() };
        assert_eq!(earlier.life(), Life::Ended);
        assert!(!earlier.signal(Signal::KILL).expect("no signal is no error"));
        let before_reboot = Record { boot: "another".into(), ..own };
        assert_eq!(before_reboot.life(), Life::Ended);
    }

    #[test]
    fn frozen_and_ended_processes_are_told_apart() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let record = record(child.id());
        assert!(record.signal(Signal::STOP).expect("signal"));
        let patience = Patience::new("the stop", Duration::from_secs(10));
        wait_until(&patience, || Ok(record.life() == Life::Frozen)).expect("frozen");
        assert!(record.signal(Signal::KILL).expect("signal"));
        wait_until(&patience, || Ok(record.life() == Life::Ended)).expect("a zombie counts as ended");
        child.wait().expect("wait");
    }
}
