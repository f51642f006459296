//! Sealed chunk files: created exclusively, fsynced, made read-only, hashed again before each use (contract.md 3.3).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use contract::digest::{Digest, TypedSum};
use contract::encode::{EncodedRows, RowEncoder};
use contract::error::{Code, Fate, PortError};
use sha2::{Digest as _, Sha256};

use crate::frames::Frame;

/// Rows encoded before they are written out; keeps the buffer small beside the frame.
const WRITE_BYTES: usize = 1 << 20;
/// Rows per call of the encoder, so that the buffer is looked at often enough.
const ENCODE_ROWS: usize = 4096;

/// The spool directory of one run.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    root: PathBuf,
    directory: PathBuf,
}

/// A sealed chunk and what was measured while it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedChunk {
    pub(crate) ordinal: u64,
    pub(crate) rows: u64,
    pub(crate) encoded_bytes: u64,
    pub(crate) file_sha256: Digest,
    pub(crate) sum: TypedSum,
}

impl Spool {
    /// The directory of a run below the journal root. Nothing is created yet.
    pub(crate) fn new(root: &Path, run_key: &str) -> Self {
        Spool { root: root.to_owned(), directory: root.join("chunks").join(run_key) }
    }

    /// Creates the directory with mode 0700.
    pub(crate) fn create(&self) -> Result<(), PortError> {
        fs::create_dir_all(&self.directory).map_err(unavailable)?;
        fs::set_permissions(&self.directory, Permissions::from_mode(0o700)).map_err(unavailable)
    }

    /// Bytes that the volume can still take from us.
    pub(crate) fn free_bytes(&self) -> Result<u64, PortError> {
        let stat = rustix::fs::statvfs(&self.root).map_err(|e| unavailable(e.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    pub(crate) fn path(&self, ordinal: u64) -> PathBuf {
        self.directory.join(format!("{ordinal}.native"))
    }

    /// Encodes a frame into its sealed file.
    pub(crate) fn seal(&self, encoder: &RowEncoder, frame: &Frame) -> Result<SealedChunk, PortError> {
        let path = self.path(frame.ordinal);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(unavailable)?;
        let mut rows = EncodedRows::with_capacity(WRITE_BYTES + WRITE_BYTES / 4, ENCODE_ROWS);
        let mut sealed = SealedChunk {
            ordinal: frame.ordinal,
            rows: 0,
            encoded_bytes: 0,
            file_sha256: Digest::of(b""),
            sum: TypedSum::ZERO,
        };
        let mut hash = Sha256::new();
        for (block, range) in &frame.slices {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start + ENCODE_ROWS);
                encoder.encode(block, start..end, &mut rows).map_err(|e| encoding(&e))?;
                if rows.bytes.len() >= WRITE_BYTES {
                    flush(&mut file, &mut rows, &mut hash, &mut sealed)?;
                }
                start = end;
            }
        }
        flush(&mut file, &mut rows, &mut hash, &mut sealed)?;
        if sealed.rows != frame.rows || sealed.encoded_bytes != frame.bytes {
            return Err(PortError::not_done(
                "mssql_native.encoder_size_authority_changed",
                "a chunk was encoded to another size than it was measured: do not use this build",
            ));
        }
        sealed.file_sha256 = Digest::from_bytes(hash.finalize().into());
        file.set_permissions(Permissions::from_mode(0o400)).map_err(unavailable)?;
        file.sync_all().map_err(unavailable)?;
        File::open(&self.directory).and_then(|d| d.sync_all()).map_err(unavailable)?;
        Ok(sealed)
    }

    /// Opens a sealed file and proves its bytes; what is returned reads the very file that was hashed.
    pub(crate) fn open(&self, ordinal: u64, bytes: u64, sha256: &Digest) -> Result<File, PortError> {
        let changed = || {
            PortError::not_done(
                "mssql_native.retained_file_changed",
                "a sealed chunk file is not what was sealed: check the volume; settle the run and start a new one",
            )
        };
        let mut file = File::open(self.path(ordinal)).map_err(|e| changed().caused_by(e))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0u8; 1 << 18];
        let mut length = 0u64;
        loop {
            let read = file.read(&mut buffer).map_err(|e| changed().caused_by(e))?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
            length += read as u64;
        }
        if length != bytes || Digest::from_bytes(hash.finalize().into()) != *sha256 {
            return Err(changed());
        }
        file.seek(SeekFrom::Start(0)).map_err(|e| changed().caused_by(e))?;
        Ok(file)
    }

    /// Removes a chunk's file once its stage is verified.
    pub(crate) fn remove(&self, ordinal: u64) -> Result<(), PortError> {
        match fs::remove_file(self.path(ordinal)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(unavailable(e)),
            _ => Ok(()),
        }
    }

    /// Removes the directory with whatever is left in it.
    pub(crate) fn clear(&self) -> Result<(), PortError> {
        match fs::remove_dir_all(&self.directory) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(unavailable(e)),
            _ => Ok(()),
        }
    }
}

fn flush(
    file: &mut File,
    rows: &mut EncodedRows,
    hash: &mut Sha256,
    sealed: &mut SealedChunk,
) -> Result<(), PortError> {
    file.write_all(&rows.bytes).map_err(unavailable)?;
    hash.update(&rows.bytes);
    sealed.rows += rows.rows();
    sealed.encoded_bytes += rows.bytes.len() as u64;
    sealed.sum.add(&rows.sum);
    rows.clear();
    Ok(())
}

pub(crate) fn encoding(error: &contract::encode::EncodeError) -> PortError {
    PortError {
        code: Code::new(error.code),
        message: "a source value has no exact form in its target column: look at the page of this code; nothing was published".into(),
        fate: Fate::NotDone,
        source: Some(Box::new(*error)),
    }
}

fn unavailable(error: std::io::Error) -> PortError {
    PortError::not_done(
        "native_transfer.spool_unavailable",
        "the chunk files cannot be written: check free space and permissions of the journal volume",
    )
    .caused_by(error)
}
