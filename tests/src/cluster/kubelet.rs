//! Stopping the kubelet and starting it again, as tests of a lost node need it.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::Result;
use super::daemons::daemon;
use super::layout::Cluster;
use super::process::{Life, Record, check_alive, start};
use super::up;

/// How long the kubelet may take to end.
const END_MAX: Duration = Duration::from_secs(15);

/// Ends the kubelet, or holds it with SIGSTOP. One that does not run is no error.
pub(crate) fn stop(dir: &Path, freeze: bool) -> Result<()> {
    let cluster = Cluster::load_existing(dir)?;
    match Record::load(&cluster, "kubelet")? {
        Some(record) if freeze => record.signal(Signal::STOP).map(|_| ()),
        Some(record) => record.stop(&cluster, END_MAX),
        None => Ok(()),
    }
}

/// Thaws the kubelet, or starts it again with the same arguments, and waits until it answers.
pub(crate) fn start_again(dir: &Path) -> Result<()> {
    let cluster = Cluster::load_existing(dir)?;
    match Record::load(&cluster, "kubelet")? {
        Some(record) if record.life() == Life::Frozen => {
            record.signal(Signal::CONT)?;
        }
        _ => {
            start(&cluster, &daemon(&cluster, "kubelet")?)?;
        }
    }
    up::wait_for_kubelet(&cluster)?;
    // kube-proxy ends itself when its Node object is deleted; the kubelet has registered the node again.
    if check_alive(&cluster, "kube-proxy").is_err() {
        up::start_proxy(&cluster)?;
    }
    Ok(())
}
