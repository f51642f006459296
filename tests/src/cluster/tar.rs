//! A tar archive of a few small files (POSIX ustar), the same bytes for the same files.

use super::Result;

/// Size of a record.
const BLOCK: usize = 512;
/// Most bytes of a name.
const NAME_MAX: usize = 99;

/// An archive of `(name, mode, content)`, owned by root, without times.
///
/// # Errors
/// A name is longer than a header holds.
pub(crate) fn archive(files: &[(&str, u32, &[u8])]) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    for (name, mode, content) in files {
        archive.extend(header(name, *mode, content.len())?);
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn header(name: &str, mode: u32, size: usize) -> Result<[u8; BLOCK]> {
    if name.len() > NAME_MAX {
        return Err(format!("the name {name} is too long for a tar header").into());
    }
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, "00000000000");
    // The checksum is over the header with blanks in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_machine_s_tar_reads_it_back() {
        let folder = tempfile::tempdir().expect("folder");
        let content = vec![b'x'; 700];
        let archive = archive(&[("pause", 0o755, &content), ("b", 0o644, b"second\n")]).expect("archive");
        assert_eq!(archive.len() % BLOCK, 0);
        std::fs::write(folder.path().join("a.tar"), archive).expect("write");
        let status = Command::new("tar").args(["-xf", "a.tar"]).current_dir(folder.path()).status().expect("tar");
        assert!(status.success());
        assert_eq!(std::fs::read(folder.path().join("pause")).expect("pause"), content);
        assert_eq!(std::fs::read(folder.path().join("b")).expect("b"), b"second\n");
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path().join("pause")).expect("pause").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn a_long_name_is_refused() {
        assert!(archive(&[(&"n".repeat(100), 0o644, b"")]).is_err());
    }
}
