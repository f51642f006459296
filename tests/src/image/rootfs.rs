//! The files of the image.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::elf::{self, Headers};
use super::{ImageError, Input};

/// Where the certificates are, on Debian and in the image.
const CA_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// One entry of the image; its owner is root, so that no process of the image can change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A folder with these permission bits.
    Folder(u32),
    /// A file with these permission bits and this content.
    File(u32, Vec<u8>),
    /// A symbolic link to this absolute path.
    Link(String),
}

/// The files of the image by absolute path, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rootfs {
    entries: BTreeMap<String, Entry>,
    architecture: &'static str,
}

impl Rootfs {
    /// Collects what `input` needs.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn assemble(input: &Input) -> Result<Rootfs, ImageError> {
        let mut rootfs = Rootfs::default();
        let mut headers = Vec::new();
        for name in &input.binaries {
            let path = input.bin_dir.join(name);
            let bytes = stripped(&path)?;
            headers.push((path.clone(), Headers::read(&path, &bytes)?));
            rootfs.insert(&format!("/usr/bin/{name}"), Entry::File(0o755, bytes));
        }
        if let Some((path, first)) = headers.first() {
            rootfs.architecture = first.architecture(path)?;
        }
        for (path, bytes) in elf::closure(&headers)? {
            if path.ends_with("/libcrypto.so.3")
                && let Some(folder) = openssl_folder(&bytes)
            {
                // Where OpenSSL itself looks for certificates when nobody tells it.
                rootfs.insert(&format!("{folder}/cert.pem"), Entry::Link(CA_BUNDLE.into()));
            }
            // Libraries are mapped, not run; the loader may be run by hand.
            let mode = if path.contains("/ld-linux") { 0o755 } else { 0o644 };
            rootfs.insert(&path, Entry::File(mode, bytes));
        }
        let bundle = fs::read(&input.ca_bundle).map_err(ImageError::at(&input.ca_bundle))?;
        rootfs.insert(CA_BUNDLE, Entry::File(0o644, bundle));
        rootfs.insert("/tmp", Entry::Folder(0o1777));
        Ok(rootfs)
    }

    /// Every entry, parents before children.
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// `amd64` or `arm64`.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    fn insert(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.entries.entry(path[..at].to_owned()).or_insert(Entry::Folder(0o755));
        }
        self.entries.insert(path.to_owned(), entry);
    }
}

/// The binary without debug sections, which are three quarters of it. Its symbol table stays, so that a backtrace has names.
fn stripped(path: &Path) -> Result<Vec<u8>, ImageError> {
    let refuse = |reason: String| ImageError::Strip { path: path.to_owned(), reason };
    fs::metadata(path).map_err(ImageError::at(path))?;
    let result = std::env::temp_dir().join(format!("native-transfer-strip-{}-{}", std::process::id(), unique()));
    let run = Command::new("strip").arg("--strip-debug").arg("-o").arg(&result).arg("--").arg(path).output();
    let outcome = match run {
        Ok(output) if output.status.success() => fs::read(&result).map_err(ImageError::at(&result)),
        Ok(output) => Err(refuse(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) => Err(refuse(error.to_string())),
    };
    match fs::remove_file(&result) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ImageError::at(&result)(error)),
        _ => outcome,
    }
}

/// A number that no other call of this process has got.
fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The folder that this libcrypto was compiled to look into (`openssl version -d` prints the same).
fn openssl_folder(libcrypto: &[u8]) -> Option<&str> {
    const KEY: &[u8] = b"OPENSSLDIR: \"";
    let at = libcrypto.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let end = at + libcrypto[at..].iter().take(256).position(|&byte| byte == b'"')?;
    std::str::from_utf8(&libcrypto[at..end]).ok().filter(|folder| folder.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_openssl_is_read_from_the_library() {
        assert_eq!(openssl_folder(b"..OPENSSLDIR: \"/usr/lib/ssl\"\0.."), Some("/usr/lib/ssl"));
        assert_eq!(openssl_folder(b"..OPENSSLDIR: \"relative\"\0.."), None);
        assert_eq!(openssl_folder(b"..OPENSSLDIR: \"/cut"), None);
        assert_eq!(openssl_folder(b""), None);
    }

    #[test]
    fn parents_come_before_children() {
        let mut rootfs = Rootfs::default();
        rootfs.insert("/a/b/c", Entry::Link("/x".into()));
        rootfs.insert("/a-b", Entry::Folder(0o755));
        let paths: Vec<&str> = rootfs.entries().keys().map(String::as_str).collect();
        assert_eq!(paths, ["/a", "/a-b", "/a/b", "/a/b/c"]);
    }
}
