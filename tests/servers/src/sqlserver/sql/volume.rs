//! Size of the volume of the data folder.

use std::path::Path;

/// Total and available bytes; none if the operating system does not tell.
#[allow(unsafe_code, reason = "statvfs fills a struct that the standard library does not wrap")]
pub(super) fn bytes(folder: &Path) -> Option<(u64, u64)> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    let mut stats = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `path` ends with a NUL, and the struct is large enough for what the call writes.
    let answer = unsafe { libc::statvfs(path.as_ptr(), stats.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so the struct is filled in; zeroes are valid for the rest.
    let stats = unsafe { stats.assume_init() };
    Some((stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize))
}
