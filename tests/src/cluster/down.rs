//! Taking a cluster away, whatever is left of it.

use std::fs;
use std::io;
use std::path::Path;

use super::layout::Cluster;
use super::{Result, mounts, namespaces};

/// Removes the cluster of `dir`; its logs stay until the next `up`. `false` if there was none.
pub(crate) fn down(dir: &Path) -> Result<bool> {
    match Cluster::load(dir)? {
        Some(cluster) => remove(&cluster).map(|()| true),
        None => Ok(false),
    }
}

/// Ends every process, then takes away namespaces, groups and files.
pub(crate) fn remove(cluster: &Cluster) -> Result<()> {
    cluster.cgroups.kill_all()?;
    namespaces::remove(cluster)?;
    cluster.cgroups.remove()?;
    let left = mounts::list(&cluster.dir)?;
    if !left.is_empty() {
        return Err(format!("still mounted, so nothing is deleted: {left:?}").into());
    }
    for entry in fs::read_dir(&cluster.dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        // The record goes last: until then `down` can be run again.
        if name != "log" && name != "cluster.json" {
            remove_path(&path)?;
        }
    }
    fs::remove_file(cluster.path("cluster.json"))?;
    Ok(())
}

/// Deletes the logs of the last cluster.
pub(crate) fn forget_logs(cluster: &Cluster) -> Result<()> {
    remove_path(&cluster.path("log"))
}

fn remove_path(path: &Path) -> Result<()> {
    let removed = if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{} cannot be deleted: {error}", path.display()).into()),
    }
}
