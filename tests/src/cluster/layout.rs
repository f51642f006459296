//! What one cluster owns: folder, addresses, names. Written down before anything is started.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Result;
use super::cgroup::Cgroups;
use super::programs::Programs;

/// Name of the only node.
pub(crate) const NODE: &str = "node1";
/// Addresses of Services.
pub(crate) const SERVICE_SUBNET: &str = "10.96.0.0/16";
/// Address of the Service `kubernetes.default`, the first of the subnet.
pub(crate) const API_SERVICE: &str = "10.96.0.1";
/// Addresses of pods. Each cluster has a network namespace of its own, so all can use the same.
pub(crate) const POD_SUBNET: &str = "10.244.0.0/24";
/// Port of the API server.
pub(crate) const API_PORT: u16 = 6443;
/// Name by which pods reach servers of this machine.
pub(crate) const HOST_NAME: &str = "servers.testkit.internal";
/// Longest path of a Unix socket, without the final zero.
const SOCKET_PATH_MAX: usize = 107;

/// One cluster, as recorded in `cluster.json` of its folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cluster {
    /// Folder of everything that the cluster writes, absolute and without symbolic links.
    pub(crate) dir: PathBuf,
    /// Eight hex digits, the same for the same folder.
    pub(crate) id: String,
    /// Third octet of the addresses of this machine and the node.
    pub(crate) subnet: u8,
    /// The binaries that it runs.
    pub(crate) programs: Programs,
    /// Its control groups.
    pub(crate) cgroups: Cgroups,
    /// Whether `up` came to its end.
    pub(crate) ready: bool,
}

impl Cluster {
    /// The cluster of `dir`, or `None` where there is none.
    pub(crate) fn load(dir: &Path) -> Result<Option<Cluster>> {
        let file = dir.join("cluster.json");
        match fs::read(&file) {
            Ok(text) => Ok(Some(
                serde_json::from_slice(&text).map_err(|error| format!("{} cannot be read: {error}", file.display()))?,
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{} cannot be read: {error}", file.display()).into()),
        }
    }

    /// The running cluster of `dir`.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn load_existing(dir: &Path) -> Result<Cluster> {
        Self::load(dir)?
            .ok_or_else(|| format!("there is no cluster in {}: testkit cluster up --dir {0}", dir.display()).into())
    }

    /// Writes `cluster.json`, whole or not at all.
    pub(crate) fn save(&self) -> Result<()> {
        let partial = self.dir.join("cluster.json.partial");
        fs::write(&partial, serde_json::to_vec_pretty(self)?)?;
        fs::rename(partial, self.dir.join("cluster.json"))?;
        Ok(())
    }

    /// This machine as the node and its pods see it.
    pub(crate) fn host_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 209, self.subnet, 1)
    }

    /// The node; the API server and DNS listen here.
    pub(crate) fn node_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 209, self.subnet, 2)
    }

    /// End of the link to the node that stays in this machine's network.
    pub(crate) fn link(&self) -> String {
        format!("nt{}", self.id)
    }

    /// URL of the API server.
    pub(crate) fn server(&self) -> String {
        format!("https://{}:{API_PORT}", self.node_address())
    }

    /// A file or folder below the cluster's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// Log of a daemon.
    pub(crate) fn log(&self, daemon: &str) -> PathBuf {
        self.dir.join("log").join(format!("{daemon}.log"))
    }

    /// Audit log of the API server.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.path("log/audit.log")
    }

    /// Socket of containerd.
    pub(crate) fn containerd_socket(&self) -> PathBuf {
        self.path("run/containerd.sock")
    }
}

/// Eight hex digits that stand for a folder.
pub(crate) fn id_of(dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    hex(&Sha256::digest(dir.as_os_str().as_bytes())[..4])
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The first subnet, counted from one that the folder's id chooses, that nothing on this machine uses.
///
/// `in_use` is the text of `ip -4 route` and `ip -4 addr`.
pub(crate) fn free_subnet(id: &str, in_use: &str) -> Option<u8> {
    let start = u8::from_str_radix(id.get(..2)?, 16).ok()?;
    (0..=u8::MAX).map(|step| start.wrapping_add(step)).find(|subnet| !in_use.contains(&format!("10.209.{subnet}.")))
}

/// Refuses a folder whose sockets would have names longer than the kernel takes.
pub(crate) fn check_socket_length(dir: &Path) -> Result<()> {
    let longest = dir.join("kubelet/pod-resources/kubelet.sock");
    if longest.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(format!("{} is too long for the sockets of a cluster: use a shorter --dir", dir.display()).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_in_use_is_passed_over() {
        assert_eq!(free_subnet("fe000000", ""), Some(254));
        let used = "10.209.254.0/30 dev nt1 proto kernel\n10.209.255.0/30 dev nt2\n    inet 10.209.0.1/30";
        assert_eq!(free_subnet("fe000000", used), Some(1));
        let all: String = (0..=255).map(|subnet| format!("10.209.{subnet}.0/30\n")).collect();
        assert_eq!(free_subnet("fe000000", &all), None);
    }

    #[test]
    fn a_folder_keeps_its_id_and_its_link_name_fits_the_kernel() {
        let id = id_of(Path::new("/srv/demo/.cluster"));
        assert_eq!(id, id_of(Path::new("/srv/demo/.cluster")));
        assert_ne!(id, id_of(Path::new("/srv/test/.cluster")));
        assert!("nt".len() + id.len() <= 15);
    }

    #[test]
    fn a_long_folder_is_refused() {
        assert!(check_socket_length(Path::new("/srv/.cluster")).is_ok());
        assert!(check_socket_length(&Path::new("/").join("x".repeat(90))).is_err());
    }
}
