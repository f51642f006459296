//! The binaries of a cluster.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Result;

/// Where the binaries are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Programs {
    /// Folders of what was built.
    pub(crate) built: Vec<PathBuf>,
    /// Folder of the CNI plugins.
    pub(crate) cni: PathBuf,
}

impl Programs {
    /// A built binary, else one of the machine's.
    ///
    /// # Errors
    /// It is nowhere.
    pub(crate) fn find(&self, name: &str) -> Result<PathBuf> {
        let built = self.built.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        built.or_else(|| on_path(name)).ok_or_else(|| format!("the program {name} is not on this machine").into())
    }
}

/// Folders that hold administrators' programs, also where PATH leaves them out.
const SYSTEM_FOLDERS: [&str; 5] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin"];

/// PATH of everything that the cluster starts.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program `name` on PATH or in the system's folders.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
