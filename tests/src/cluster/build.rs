//! The Go modules of `e2e/cluster`, built once for each content of their files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::Result;
use super::layout::hex;
use super::programs::on_path;
use super::wait::{Patience, wait_until};

/// A module: what it builds, how long that takes on two cores, and the linker's flags.
struct Module {
    name: &'static str,
    packages: &'static [&'static str],
    minutes: &'static str,
    flags: &'static str,
}

/// Clients would see version 0.0.0 of an unstamped Kubernetes.
const KUBERNETES_FLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 \
     -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37";

const MODULES: [Module; 5] = [
    Module { name: "kubernetes", packages: &["tool"], minutes: "about 7 minutes", flags: KUBERNETES_FLAGS },
    Module { name: "etcd", packages: &["tool"], minutes: "about a minute", flags: "-s -w" },
    Module { name: "crictl", packages: &["tool"], minutes: "about a minute", flags: "-s -w" },
    Module { name: "helm", packages: &["tool"], minutes: "about 2 minutes", flags: "-s -w" },
    Module {
        name: "local",
        packages: &["./coredns", "./pause", "./provisioner"],
        minutes: "about 2 minutes",
        flags: "-s -w",
    },
];

/// How long another process may build the same module.
const BUILD_MAX: Duration = Duration::from_secs(40 * 60);

/// Builds what is not in the cache; the folders of the binaries.
///
/// # Errors
/// Go is missing, or a build failed: its own words are on standard error.
pub(crate) fn ensure() -> Result<Vec<PathBuf>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/cluster");
    let cache = cache()?;
    MODULES.iter().map(|module| module.ensure(&sources.join(module.name), &cache)).collect()
}

impl Module {
    fn ensure(&self, source: &Path, cache: &Path) -> Result<PathBuf> {
        let folder = cache.join(format!("cluster-{}-{}", self.name, self.key(source)?));
        if folder.is_dir() {
            return Ok(folder);
        }
        fs::create_dir_all(cache)?;
        let lock = File::create(cache.join(format!("cluster-{}.lock", self.name)))?;
        let patience = Patience::new(format!("another build of {} to end", self.name), BUILD_MAX);
        wait_until(&patience, || Ok(lock.try_lock().is_ok()))?;
        if !folder.is_dir() {
            self.build(source, &folder)?;
        }
        Ok(folder)
    }

    /// Everything that decides what the binaries are.
    fn key(&self, source: &Path) -> Result<String> {
        let mut files = files(source)
            .map_err(|error| format!("the sources of the cluster are not at {}: {error}", source.display()))?;
        files.sort();
        let mut digest = Sha256::new();
        digest.update(self.flags);
        for file in files {
            let name = file.strip_prefix(source)?.display().to_string();
            let content = fs::read(&file)?;
            digest.update(format!("\n{name} {}\n", content.len()));
            digest.update(content);
        }
        Ok(hex(&digest.finalize()[..8]))
    }

    fn build(&self, source: &Path, folder: &Path) -> Result<()> {
        let go = on_path("go").ok_or("Go is missing: it builds the cluster (tools/setup.sh installs it)")?;
        eprintln!("testkit: building {} ({}, once)", self.name, self.minutes);
        let start = Instant::now();
        let partial = folder.with_extension("partial");
        fs::create_dir_all(&partial)?;
        let status = Command::new(go)
            .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", self.flags, "-o"])
            .arg(partial.join(""))
            .args(self.packages)
            .current_dir(source)
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(format!("{} cannot be built (go build in {}: {status})", self.name, source.display()).into());
        }
        fs::rename(partial, folder)?;
        eprintln!("testkit: built {} in {} s", self.name, start.elapsed().as_secs());
        Ok(())
    }
}

/// The cache of everything that is fetched or built for the tests.
fn cache() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("NT_CACHE").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME").ok_or("neither NT_CACHE nor HOME is set: there is no place for a cache")?;
    Ok(Path::new(&home).join(".cache/native-transfer"))
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_follows_names_and_contents() {
        let folder = tempfile::tempdir().expect("folder");
        let key = || MODULES[1].key(folder.path()).expect("key");
        fs::write(folder.path().join("go.mod"), "module a").expect("write");
        let first = key();
        assert_eq!(first, key());
        fs::write(folder.path().join("go.mod"), "module b").expect("write");
        let second = key();
        fs::rename(folder.path().join("go.mod"), folder.path().join("go.sum")).expect("rename");
        assert!(first != second && second != key());
    }

    #[test]
    fn every_module_is_in_the_repository() {
        for module in MODULES {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/cluster").join(module.name);
            assert!(folder.join("go.sum").is_file(), "{}", module.name);
        }
    }
}
