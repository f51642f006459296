//! Images without a registry: they are imported into containerd from a file.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Result;
use super::layout::{Cluster, hex};
use super::namespaces::output;
use super::process::check_alive;
use super::wait::{Patience, wait_until};
use super::{layout, tar};

/// Image of the process that holds a pod's namespaces.
pub(crate) const PAUSE: &str = "testkit.local/pause:1";

/// How long the kubelet's view of the images may lag behind containerd's.
const SEEN_MAX: Duration = Duration::from_secs(30);

/// Makes the pause image from its program and imports it.
pub(crate) fn load_pause(cluster: &Cluster) -> Result<()> {
    let program = fs::read(cluster.programs.find("pause")?)?;
    let file = cluster.path("run/pause.tar");
    fs::write(&file, docker_archive(PAUSE, "pause", &program)?)?;
    import(cluster, &file)?;
    Ok(())
}

/// Imports a docker-archive or OCI layout; the names that pods use, once the kubelet sees them.
///
/// # Errors
/// The file cannot be read, is no image archive, or holds no name.
pub(crate) fn load(dir: &Path, archive: &Path) -> Result<Vec<String>> {
    let cluster = Cluster::load(dir)?.ok_or_else(|| {
        format!(
            "there is no cluster in {}; an image for a cluster that testkit did not start goes through its registry",
            dir.display()
        )
    })?;
    check_alive(&cluster, "containerd")?;
    import(&cluster, archive)
}

fn import(cluster: &Cluster, archive: &Path) -> Result<Vec<String>> {
    // ctr's own message for a missing file names no file.
    let archive = archive.canonicalize().map_err(|error| format!("{}: {error}", archive.display()))?;
    let ctr = cluster.programs.find("ctr")?;
    let said = output(
        Command::new(ctr)
            .arg("--address")
            .arg(cluster.containerd_socket())
            .args(["--namespace", "k8s.io", "images", "import", "--digests"])
            .arg(&archive),
    )?;
    let images = imported(&said);
    if images.is_empty() {
        return Err(format!("{} holds no image with a name", archive.display()).into());
    }
    let endpoint = format!("unix://{}", cluster.containerd_socket().display());
    let crictl = cluster.programs.find("crictl")?;
    for image in &images {
        let patience = Patience::new(format!("the image {image} to be seen by the kubelet"), SEEN_MAX);
        wait_until(&patience.log(cluster.log("containerd")), || {
            let mut command = Command::new(&crictl);
            command.args(["--runtime-endpoint", &endpoint, "--image-endpoint", &endpoint, "inspecti", "-q", image]);
            Ok(output(&mut command).is_ok())
        })?;
    }
    Ok(images)
}

/// Names in `unpacking NAME (sha256:...)...done`.
fn imported(said: &str) -> Vec<String> {
    said.lines()
        .filter_map(|line| line.strip_prefix("unpacking ")?.split_once(" (sha256:"))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !name.starts_with("import-"))
        .collect()
}

/// A docker-archive with one static program.
fn docker_archive(image: &str, program: &str, content: &[u8]) -> Result<Vec<u8>> {
    let layer = tar::archive(&[(program, 0o755, content)])?;
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "config": {"Entrypoint": [format!("/{program}")], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", layout::hex(&Sha256::digest(&layer)))]},
    })
    .to_string();
    let config_name = format!("{}.json", hex(&Sha256::digest(&config)));
    let manifest = json!([{"Config": config_name, "RepoTags": [image], "Layers": ["layer.tar"]}]).to_string();
    tar::archive(&[
        ("manifest.json", 0o644, manifest.as_bytes()),
        (&config_name, 0o644, config.as_bytes()),
        ("layer.tar", 0o644, &layer),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_what_was_imported() {
        let said = "unpacking testkit.local/a:1 (sha256:0123)...done\nunpacking docker.io/library/b:2 (sha256:45)...\n";
        assert_eq!(imported(said), ["testkit.local/a:1", "docker.io/library/b:2"]);
        assert!(imported("unpacking import-2026-01-01@sha256:77 (sha256:77)...done").is_empty());
        assert!(imported("").is_empty());
    }

    #[test]
    fn the_same_program_gives_the_same_archive() {
        let archive = || docker_archive(PAUSE, "pause", b"\x7fELF").expect("archive");
        assert_eq!(archive(), archive());
        assert!(String::from_utf8_lossy(&archive()).contains("\"RepoTags\":[\"testkit.local/pause:1\"]"));
    }
}
