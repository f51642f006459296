//! The files of the image as a folder, for `COPY` of a Dockerfile, with a list of their digests.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Entry, ImageError, Rootfs};

/// A folder that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Staged {
    /// Folder that is the root of the image.
    pub rootfs: PathBuf,
    /// Its files and their digests, as `sha256sum --check` reads them from inside the folder.
    pub sums: PathBuf,
    /// How many files.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
}

/// Writes `rootfs` to `output/rootfs` and the digests to `output/rootfs.sha256`. `output/rootfs` must not exist.
///
/// # Errors
/// See [`ImageError`].
pub fn stage(rootfs: &Rootfs, output: &Path) -> Result<Staged, ImageError> {
    let root = output.join("rootfs");
    fs::create_dir_all(output).map_err(ImageError::at(output))?;
    fs::create_dir(&root).map_err(ImageError::at(&root))?;
    let mut sums = String::new();
    let (mut files, mut bytes) = (0, 0);
    for (path, entry) in rootfs.entries() {
        let path = path.trim_start_matches('/');
        let place = root.join(path);
        match entry {
            Entry::Folder(_) => fs::create_dir(&place).map_err(ImageError::at(&place))?,
            Entry::Link(target) => symlink(target, &place).map_err(ImageError::at(&place))?,
            Entry::File(_, content) => {
                fs::write(&place, content).map_err(ImageError::at(&place))?;
                for byte in Sha256::digest(content) {
                    // Writing to a String cannot fail.
                    let _ = write!(sums, "{byte:02x}");
                }
                sums.push_str("  ");
                sums.push_str(path);
                sums.push('\n');
                files += 1;
                bytes += content.len() as u64;
            }
        }
        if let Entry::Folder(mode) | Entry::File(mode, _) = entry {
            // Set apart from the creation: the umask must not decide.
            fs::set_permissions(&place, fs::Permissions::from_mode(*mode)).map_err(ImageError::at(&place))?;
        }
    }
    let list = output.join("rootfs.sha256");
    fs::write(&list, sums).map_err(ImageError::at(&list))?;
    Ok(Staged { rootfs: root, sums: list, files, bytes })
}
