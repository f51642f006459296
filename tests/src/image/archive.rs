//! The archive: an OCI image layout (image-spec v1, image-layout.md) that is a `docker save` archive at the same time.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Entry, ImageError, ImageName, Input, Rootfs, USER};

/// What a runtime reads about the image besides its files. `Dockerfile` must say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// User and group.
    pub user: String,
    /// Program that runs when none is named.
    pub entrypoint: Vec<String>,
    /// Environment, `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Labels.
    pub labels: Vec<(String, String)>,
}

impl Configuration {
    /// The configuration of an image of `input`.
    pub fn of(input: &Input) -> Configuration {
        Configuration {
            user: USER.into(),
            entrypoint: input.binaries.first().map(|name| format!("/usr/bin/{name}")).into_iter().collect(),
            environment: vec!["PATH=/usr/bin".into()],
            labels: vec![
                ("org.opencontainers.image.title".into(), "native-transfer".into()),
                ("org.opencontainers.image.licenses".into(), "Apache-2.0".into()),
            ],
        }
    }
}

/// The bytes of an archive.
pub(super) struct Archive {
    /// Digest of the manifest.
    pub(super) digest: String,
    /// The whole file.
    pub(super) bytes: Vec<u8>,
}

impl Archive {
    pub(super) fn of(
        rootfs: &Rootfs,
        configuration: &Configuration,
        name: &ImageName,
        epoch: u64,
    ) -> Result<Archive, ImageError> {
        let layer = layer(rootfs, epoch).map_err(ImageError::at(Path::new("layer")))?;
        let layer_digest = digest(&layer);
        let config = config(rootfs, configuration, &layer_digest, epoch)?.to_string().into_bytes();
        let config_digest = digest(&config);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config_digest, config.len()),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer_digest, layer.len())],
        });
        let manifest = manifest.to_string().into_bytes();
        let manifest_digest = digest(&manifest);
        let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest_digest, manifest.len());
        entry["annotations"] = json!({
            // containerd takes the whole name from here, other tools the tag.
            "io.containerd.image.name": name.full(),
            "org.opencontainers.image.ref.name": name.tag(),
        });
        let media_type = "application/vnd.oci.image.index.v1+json";
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": [entry]});
        let docker = json!([{
            "Config": blob_path(&config_digest),
            "RepoTags": [name.full().strip_prefix("docker.io/library/").unwrap_or(name.full())],
            "Layers": [blob_path(&layer_digest)],
        }]);
        let mut files = vec![
            (blob_path(&config_digest), config),
            (blob_path(&layer_digest), layer),
            (blob_path(&manifest_digest), manifest),
            ("index.json".into(), index.to_string().into_bytes()),
            ("manifest.json".into(), docker.to_string().into_bytes()),
            ("oci-layout".into(), json!({"imageLayoutVersion": "1.0.0"}).to_string().into_bytes()),
        ];
        files.sort();
        let bytes = outer(&files, epoch).map_err(ImageError::at(Path::new("archive")))?;
        Ok(Archive { digest: manifest_digest, bytes })
    }
}

fn config(rootfs: &Rootfs, configuration: &Configuration, layer_digest: &str, epoch: u64) -> Result<Value, ImageError> {
    let seconds = i64::try_from(epoch).map_err(|_| ImageError::Epoch)?;
    let moment = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| ImageError::Epoch)?;
    let created = moment.format(&Rfc3339).map_err(|_| ImageError::Epoch)?;
    let labels: serde_json::Map<String, Value> =
        configuration.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    Ok(json!({
        "architecture": rootfs.architecture(),
        "os": "linux",
        "created": created,
        "config": {
            "User": configuration.user,
            "Entrypoint": configuration.entrypoint,
            "Env": configuration.environment,
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        "history": [{"created": created, "created_by": "testkit image build"}],
    }))
}

/// The files as one tar, not compressed: registries and `ctr push` compress, and no compressor's version changes the digest.
fn layer(rootfs: &Rootfs, epoch: u64) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, entry) in rootfs.entries() {
        let path = path.trim_start_matches('/');
        match entry {
            Entry::Folder(mode) => {
                let mut header = header(tar::EntryType::Directory, *mode, 0, epoch);
                tar.append_data(&mut header, format!("{path}/"), io::empty())?;
            }
            Entry::File(mode, content) => {
                let mut header = header(tar::EntryType::Regular, *mode, content.len(), epoch);
                tar.append_data(&mut header, path, content.as_slice())?;
            }
            Entry::Link(target) => {
                tar.append_link(&mut header(tar::EntryType::Symlink, 0o777, 0, epoch), path, target)?;
            }
        }
    }
    tar.into_inner()
}

fn outer(files: &[(String, Vec<u8>)], epoch: u64) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for folder in ["blobs/", "blobs/sha256/"] {
        tar.append_data(&mut header(tar::EntryType::Directory, 0o755, 0, epoch), folder, io::empty())?;
    }
    for (path, content) in files {
        tar.append_data(&mut header(tar::EntryType::Regular, 0o644, content.len(), epoch), path, content.as_slice())?;
    }
    tar.into_inner()
}

/// A header in which nothing comes from this machine.
fn header(kind: tar::EntryType, mode: u32, bytes: usize, epoch: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(epoch);
    header.set_size(bytes as u64);
    header
}

fn descriptor(media_type: &str, digest: &str, bytes: usize) -> Value {
    json!({"mediaType": media_type, "digest": digest, "size": bytes})
}

fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::from("sha256:"), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
