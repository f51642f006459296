//! The image of the product, built from a folder of binaries without Docker.
//!
//! It holds what the binaries need and nothing else: the binaries, the shared libraries that their ELF headers name, the
//! loader, one bundle of CA certificates and `/tmp`. No shell, no package manager, no `/etc/passwd`: it runs as uid 65532.
//! The same input gives the same bytes: owners, times and the order of entries are fixed.

mod archive;
pub mod command;
mod elf;
mod name;
mod rootfs;
mod stage;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use archive::Configuration;
pub use name::ImageName;
pub use rootfs::{Entry, Rootfs};
pub use stage::{Staged, stage};

/// The user and the group of every process in the image; no file names them.
pub const USER: &str = "65532:65532";

/// Why no image was made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not an ELF file of a kind that can be packaged.
    #[error("{path}: {reason}")]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No folder of the loader's search path holds a library.
    #[error("{needed_by} needs {library}, which is in none of {}", searched.join(", "))]
    LibraryMissing {
        /// The file that names the library.
        needed_by: PathBuf,
        /// Name of the library.
        library: String,
        /// Folders that were searched.
        searched: Vec<String>,
    },
    /// The name is not one that a container runtime takes.
    #[error("`{0}` is not an image name like native-transfer:1.0 or registry.example.com/team/native-transfer:1.0")]
    Name(String),
    /// SOURCE_DATE_EPOCH is not a number of seconds.
    #[error("SOURCE_DATE_EPOCH must be a number of seconds since 1970")]
    Epoch,
    /// `strip` failed.
    #[error("strip {path}: {reason}")]
    Strip {
        /// The binary.
        path: PathBuf,
        /// What strip said.
        reason: String,
    },
}

impl ImageError {
    /// An error at `path`.
    fn at(path: &Path) -> impl FnOnce(io::Error) -> ImageError + use<'_> {
        move |source| ImageError::File { path: path.to_owned(), source }
    }
}

/// What goes into the image.
#[derive(Clone, Debug)]
pub struct Input {
    /// Folder of the binaries.
    pub bin_dir: PathBuf,
    /// Names of the binaries in it; they become `/usr/bin/NAME`, and the first is the entry point.
    pub binaries: Vec<String>,
    /// PEM file of the CA certificates that count where a connection brings none.
    pub ca_bundle: PathBuf,
    /// Seconds since 1970 that every entry of the image carries.
    pub epoch: u64,
}

/// An image that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Image {
    /// Full name, as a container runtime shows it.
    pub name: String,
    /// `sha256:` and the digest of the manifest; the same input gives the same.
    pub digest: String,
    /// Size of the archive.
    pub bytes: u64,
}

/// Builds the image of `input` and writes it to `output`, an archive that `ctr images import`, `docker load` and
/// `podman load` take.
///
/// # Errors
/// See [`ImageError`]; an archive that was begun is not left behind.
pub fn build(input: &Input, name: &ImageName, output: &Path) -> Result<Image, ImageError> {
    let rootfs = Rootfs::assemble(input)?;
    let archive = archive::Archive::of(&rootfs, &Configuration::of(input), name, input.epoch)?;
    // A reader must never see half an archive.
    let partial = output.with_extension("partial");
    std::fs::write(&partial, &archive.bytes).map_err(ImageError::at(&partial))?;
    std::fs::rename(&partial, output).map_err(ImageError::at(output))?;
    Ok(Image { name: name.full().to_owned(), digest: archive.digest, bytes: archive.bytes.len() as u64 })
}
