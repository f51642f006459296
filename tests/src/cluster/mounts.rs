//! What is mounted below the cluster's folder in this machine's mount namespace.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

use super::Result;

/// Mount points at or below `dir`, the deepest and latest first (the text of `/proc/self/mountinfo`).
pub(crate) fn below(mountinfo: &str, dir: &Path) -> Vec<PathBuf> {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
    let mut found: Vec<PathBuf> = points.filter(|point| point.starts_with(dir)).collect();
    found.reverse();
    found.sort_by_key(|point| std::cmp::Reverse(point.components().count()));
    found
}

/// Unmounts everything at or below `dir`.
pub(crate) fn unmount_below(dir: &Path) -> Result<()> {
    for point in list(dir)? {
        unmount(&point, UnmountFlags::DETACH)
            .map_err(|error| format!("{} cannot be unmounted: {error}", point.display()))?;
    }
    Ok(())
}

/// Mount points at or below `dir` now.
pub(crate) fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(below(&fs::read_to_string("/proc/self/mountinfo")?, dir))
}

/// The kernel writes blank, tab, line end and backslash as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = if first == b'\\' { tail.get(..3).and_then(octal) } else { None };
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deepest_first_and_only_below() {
        let text = "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 254:0 /srv/c/ns /srv/c/ns rw - ext4 /dev/vda rw
31 30 0:4 net:[4026532] /srv/c/ns/net rw - nsfs nsfs rw
32 30 0:4 mnt:[4026533] /srv/c/ns/mnt rw - nsfs nsfs rw
33 21 0:50 / /srv/cluster rw - tmpfs tmpfs rw
";
        let found = below(text, Path::new("/srv/c"));
        assert_eq!(found, ["/srv/c/ns/mnt", "/srv/c/ns/net", "/srv/c/ns"].map(PathBuf::from));
    }

    #[test]
    fn escaped_names_are_read() {
        let text = "30 21 254:0 / /srv/my\\040cluster/a\\134b rw - ext4 /dev/vda rw\n";
        assert_eq!(below(text, Path::new("/srv/my cluster")), [PathBuf::from("/srv/my cluster/a\\b")]);
        assert_eq!(unescape("trailing\\"), PathBuf::from("trailing\\"));
    }
}
