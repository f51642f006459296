//! What an ELF file needs at run time, read from its headers. Nothing is ever run: `ldd` executes the file it looks at.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_AARCH64, EM_X86_64, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf::Machine};

use super::ImageError;

/// More libraries than this in one closure means that something else is wrong.
const LIBRARIES_MAX: usize = 128;

/// The part of an ELF file that the loader goes by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Headers {
    machine: Machine,
    interpreter: Option<String>,
    needed: Vec<String>,
}

impl Headers {
    /// Reads the headers of `bytes`, a 64-bit ELF file.
    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Headers, ImageError> {
        let refuse = |reason: String| ImageError::Elf { path: path.to_owned(), reason };
        let foreign = |error: object::read::Error| refuse(error.to_string());
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(foreign)?;
        let endian = header.endian().map_err(foreign)?;
        let mut interpreter = None;
        for segment in header.program_headers(endian, bytes).map_err(foreign)? {
            if let Some(text) = segment.interpreter(endian, bytes).map_err(foreign)? {
                interpreter = Some(text_of(text).ok_or_else(|| refuse("its loader has no readable name".into()))?);
            }
        }
        let sections = header.sections(endian, bytes).map_err(foreign)?;
        let table = sections.dynamic_table(endian, bytes).map_err(foreign)?;
        let mut needed = Vec::new();
        for entry in &table {
            if entry.tag == DT_RPATH || entry.tag == DT_RUNPATH {
                // Such a path would have to exist in the image too; no binary of ours has one.
                return Err(refuse("it brings a library search path of its own (RPATH or RUNPATH)".into()));
            }
            if entry.tag == DT_NEEDED {
                let name = text_of(table.string(entry).map_err(foreign)?).filter(|name| !name.contains('/'));
                needed.push(name.ok_or_else(|| refuse("a library that it needs has no plain name".into()))?);
            }
        }
        Ok(Headers { machine: header.e_machine(endian), interpreter, needed })
    }

    /// Docker's word for the machine.
    pub(super) fn architecture(&self, path: &Path) -> Result<&'static str, ImageError> {
        match self.machine {
            EM_X86_64 => Ok("amd64"),
            EM_AARCH64 => Ok("arm64"),
            other => {
                Err(ImageError::Elf { path: path.to_owned(), reason: format!("machine {} is not known", other.0) })
            }
        }
    }

    /// Where the loader of Debian and of Ubuntu looks when nothing is configured, in its order.
    fn search_path(&self) -> Vec<String> {
        let triplet = if self.machine == EM_AARCH64 { "aarch64-linux-gnu" } else { "x86_64-linux-gnu" };
        let multiarch = ["/lib", "/usr/lib"].map(|folder| format!("{folder}/{triplet}"));
        multiarch.into_iter().chain(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(String::from)).collect()
    }
}

fn text_of(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty() && text.len() <= 4096)?;
    Some(text.to_owned())
}

/// The shared libraries and loaders that `binaries` need, directly or through each other: path in the image -> bytes.
pub(super) fn closure(binaries: &[(PathBuf, Headers)]) -> Result<BTreeMap<String, Vec<u8>>, ImageError> {
    let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    let mut queue: VecDeque<(PathBuf, Headers)> = VecDeque::new();
    for (path, headers) in binaries {
        if let Some(loader) = &headers.interpreter {
            let bytes = fs::read(loader).map_err(ImageError::at(Path::new(loader)))?;
            // The C library names the loader as a library; the one that runs is the one of the header.
            let name = loader.rsplit('/').next().unwrap_or(loader);
            by_name.insert(name.to_owned(), loader.clone());
            found.insert(loader.clone(), bytes);
        }
        enqueue(path, headers, &mut by_name, &mut found, &mut queue)?;
    }
    while let Some((path, headers)) = queue.pop_front() {
        enqueue(&path, &headers, &mut by_name, &mut found, &mut queue)?;
    }
    Ok(found)
}

/// Finds the libraries that the file at `path` names and that are not there yet.
fn enqueue(
    path: &Path,
    headers: &Headers,
    by_name: &mut BTreeMap<String, String>,
    found: &mut BTreeMap<String, Vec<u8>>,
    queue: &mut VecDeque<(PathBuf, Headers)>,
) -> Result<(), ImageError> {
    for library in &headers.needed {
        if by_name.contains_key(library) {
            continue;
        }
        if by_name.len() >= LIBRARIES_MAX {
            let reason = format!("more than {LIBRARIES_MAX} libraries are needed");
            return Err(ImageError::Elf { path: path.to_owned(), reason });
        }
        let (place, bytes, its_headers) = find(path, headers, library)?;
        by_name.insert(library.clone(), place.clone());
        queue.push_back((PathBuf::from(&place), its_headers));
        found.insert(place, bytes);
    }
    Ok(())
}

/// The first file of that name for the same machine; files of another machine are passed over, as the loader does.
fn find(needed_by: &Path, headers: &Headers, library: &str) -> Result<(String, Vec<u8>, Headers), ImageError> {
    let searched = headers.search_path();
    for folder in &searched {
        let place = format!("{folder}/{library}");
        let Ok(bytes) = fs::read(&place) else { continue };
        match Headers::read(Path::new(&place), &bytes) {
            Ok(its) if its.machine == headers.machine => return Ok((place, bytes, its)),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Err(ImageError::LibraryMissing { needed_by: needed_by.to_owned(), library: library.to_owned(), searched })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn own_headers() -> (PathBuf, Headers) {
        let path = std::env::current_exe().unwrap();
        let bytes = fs::read(&path).unwrap();
        let headers = Headers::read(&path, &bytes).unwrap();
        (path, headers)
    }

    #[test]
    fn the_closure_of_this_process_is_what_the_kernel_has_mapped() {
        let mapped: BTreeSet<PathBuf> = fs::read_to_string("/proc/self/maps")
            .unwrap()
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .filter(|path| path.contains(".so"))
            .map(|path| fs::canonicalize(path).unwrap())
            .collect();
        let found = closure(&[own_headers()]).unwrap();
        let found: BTreeSet<PathBuf> = found.keys().map(|path| fs::canonicalize(path).unwrap()).collect();
        assert_eq!(found, mapped);
        assert!(found.len() >= 3, "loader, C library and at least one more: {found:?}");
    }

    #[test]
    fn a_library_that_is_nowhere_is_named_with_the_file_that_needs_it() {
        let (path, mut headers) = own_headers();
        headers.needed.push("libabsent.so.7".into());
        let text = closure(&[(path.clone(), headers)]).unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("{} needs libabsent.so.7, which is in none of /lib/", path.display())),
            "{text}"
        );
    }

    #[test]
    fn a_script_is_refused() {
        let error = Headers::read(Path::new("x"), b"#!/bin/sh\n").unwrap_err();
        assert!(matches!(error, ImageError::Elf { .. }), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_headers_never_panic(at in 0usize..4096, value: u8, cut in 0usize..8192) {
            let path = std::env::current_exe().unwrap();
            let mut bytes = vec![0; 8192];
            std::io::Read::read_exact(&mut fs::File::open(&path).unwrap(), &mut bytes).unwrap();
            bytes[at] = value;
            bytes.truncate(cut);
            let _ = Headers::read(&path, &bytes);
        }
    }
}
