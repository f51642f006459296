//! Opening: lock, schema, epoch, chain.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use contract::digest::Digest;
use contract::error::PortError;
use contract::port::journal::{JournalHeader, RECORD_BYTES_MAX, RECORDS_MAX};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::chain;

/// Name of the database file under the journal root.
pub const JOURNAL_FILE: &str = "journal.sqlite";
/// Name of the lock file under the journal root.
pub const LOCK_FILE: &str = "journal.lock";

/// Highest epoch floor. A journal opened every second reaches it after 31 years, so a higher one is a mistake, and one that
/// could never be taken back: epochs only rise, here and in the fence at the target.
pub const EPOCH_FLOOR_MAX: u64 = 1_000_000_000;

const FORMAT: i64 = 1;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const SCHEMA: &str = "
CREATE TABLE header (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  format INTEGER NOT NULL,
  journal_id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  opener_nonce TEXT NOT NULL
) STRICT;
CREATE TABLE records (
  sequence INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  payload TEXT NOT NULL,
  digest BLOB NOT NULL
) STRICT;
CREATE INDEX records_by_key ON records (run, kind, key);
";

/// An open database with a verified chain.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) header: JournalHeader,
    pub(crate) last: (u64, Digest),
}

pub(crate) fn io_error(message: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> PortError {
    PortError::not_done("native_transfer.journal_unavailable", message).caused_by(error)
}

pub(crate) fn damaged(message: &'static str) -> PortError {
    PortError::not_done("mssql_native.invalid_journal", message)
}

/// Takes the writer's lock of a root. The lock lives as long as the file handle.
pub(crate) fn lock(root: &Path) -> Result<File, PortError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(root.join(LOCK_FILE))
        .map_err(|e| io_error("the journal root cannot be written: check the volume and its permissions", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PortError::not_done(
            "native_transfer.journal_locked",
            "another process writes to this journal root: wait for it, or use another --journal-root",
        )),
        Err(TryLockError::Error(e)) => Err(io_error("the journal volume does not support file locks", e)),
    }
}

/// Refuses a floor that no journal can have reached.
pub(crate) fn admit_floor(floor: u64) -> Result<(), PortError> {
    if floor <= EPOCH_FLOOR_MAX {
        return Ok(());
    }
    Err(PortError::not_done(
        "native_transfer.epoch_floor_invalid",
        "the epoch floor is higher than any journal can have been opened: correct --epoch-floor",
    ))
}

/// Opens for writing: creates the file if it is missing, raises the epoch above itself and `floor`, verifies the chain.
pub(crate) fn open_writable(root: &Path, floor: u64) -> Result<Opened, PortError> {
    let mut connection = Connection::open(root.join(JOURNAL_FILE))
        .map_err(|e| io_error("the journal cannot be opened: check the volume and its permissions", e))?;
    configure(&connection)?;
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|e| io_error("the journal cannot be written: check the volume", e))?;
    let header = raise_epoch(&tx, floor)?;
    tx.commit().map_err(|e| io_error("the journal's epoch could not be made durable: check the volume", e))?;
    let last = verify(&connection, &header)?;
    Ok(Opened { connection, header, last })
}

/// Opens for reading: nothing in the journal changes, the epoch stays.
pub(crate) fn open_readable(root: &Path) -> Result<Opened, PortError> {
    let path = root.join(JOURNAL_FILE);
    // Only a file that is proved absent is no journal: one that cannot be looked at may hold custody.
    if !path.try_exists().map_err(|e| io_error("the journal cannot be looked at: check the volume", e))? {
        return Err(PortError::not_done(
            "mssql_native.recovery_journal_unavailable",
            "there is no journal under this root: give the --journal-root of the run",
        ));
    }
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read_write = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Why twice: after a crash SQLite must first undo the last, uncommitted transaction, which a read-only handle may
    // not do. The second handle does nothing else.
    read(&path, read_only).or_else(|first| read(&path, read_write).map_err(|_| first))
}

fn read(path: &Path, flags: OpenFlags) -> Result<Opened, PortError> {
    let unavailable = |e| io_error("the journal cannot be read: check the volume", e);
    let connection = Connection::open_with_flags(path, flags).map_err(unavailable)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(unavailable)?;
    let header =
        load_header(&connection)?.ok_or_else(|| damaged("the journal has no header: it is not a journal of ours"))?;
    let last = verify(&connection, &header)?;
    Ok(Opened { connection, header, last })
}

fn configure(connection: &Connection) -> Result<(), PortError> {
    let run = || -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "DELETE")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "trusted_schema", "OFF")
    };
    run().map_err(|e| io_error("the journal cannot be opened: it is not an SQLite database or the volume fails", e))
}

fn raise_epoch(tx: &Transaction<'_>, floor: u64) -> Result<JournalHeader, PortError> {
    let failed = |e| io_error("the journal's header cannot be written: check the volume", e);
    let nonce = random_hex::<32>()?;
    let tables: i64 =
        tx.query_row("SELECT count(*) FROM sqlite_master WHERE type = 'table'", [], |r| r.get(0)).map_err(failed)?;
    if tables == 0 {
        tx.execute_batch(SCHEMA).map_err(failed)?;
        let header = JournalHeader { journal_id: random_hex::<16>()?, epoch: floor + 1, opener_nonce: nonce };
        let row = (FORMAT, &header.journal_id, header.epoch as i64, &header.opener_nonce);
        tx.execute("INSERT INTO header VALUES (1, ?1, ?2, ?3, ?4)", row).map_err(failed)?;
        return Ok(header);
    }
    let old = load_header(tx)?.ok_or_else(|| damaged("the journal has no header: it is not a journal of ours"))?;
    let header = JournalHeader { epoch: old.epoch.max(floor) + 1, opener_nonce: nonce, ..old };
    tx.execute("UPDATE header SET epoch = ?1, opener_nonce = ?2", (header.epoch as i64, &header.opener_nonce))
        .map_err(failed)?;
    Ok(header)
}

/// The header, or `None` if the table is empty.
pub(crate) fn load_header(connection: &Connection) -> Result<Option<JournalHeader>, PortError> {
    let row = connection.query_row("SELECT format, journal_id, epoch, opener_nonce FROM header", [], |r| {
        Ok((r.get::<_, i64>(0)?, r.get::<_, String>(1)?, r.get::<_, i64>(2)?, r.get::<_, String>(3)?))
    });
    let (format, journal_id, epoch, opener_nonce) = match row {
        Ok(row) => row,
        Err(rusqlite::Error::QueryReturnedNoRows) => return Ok(None),
        Err(e) => return Err(damaged("the journal's header cannot be read: it is damaged or not ours").caused_by(e)),
    };
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    if format != FORMAT {
        return Err(damaged("the journal has another format version: use the release that wrote it"));
    }
    if epoch < 1 || !hex(&journal_id, 32) || !hex(&opener_nonce, 64) {
        return Err(damaged("the journal's header is damaged: restore the volume from its copy"));
    }
    Ok(Some(JournalHeader { journal_id, epoch: epoch as u64, opener_nonce }))
}

/// Walks the whole chain; returns the last sequence and digest.
fn verify(connection: &Connection, header: &JournalHeader) -> Result<(u64, Digest), PortError> {
    let unreadable =
        |e| damaged("a record of the journal cannot be read: restore the volume from its copy").caused_by(e);
    let mut statement = connection
        .prepare("SELECT sequence, run, kind, key, payload, digest FROM records ORDER BY sequence")
        .map_err(unreadable)?;
    let mut rows = statement.query([]).map_err(unreadable)?;
    let mut last = (0u64, chain::genesis(&header.journal_id));
    while let Some(row) = rows.next().map_err(unreadable)? {
        let text = |index| -> Result<String, PortError> { row.get::<_, String>(index).map_err(unreadable) };
        let sequence = row.get::<_, i64>(0).map_err(unreadable)?;
        let (run, kind, key, payload) = (text(1)?, text(2)?, text(3)?, text(4)?);
        let digest: Vec<u8> = row.get(5).map_err(unreadable)?;
        if sequence != last.0 as i64 + 1 || sequence as u64 > RECORDS_MAX || payload.len() > RECORD_BYTES_MAX {
            return Err(damaged("the journal's records are not contiguous: restore the volume from its copy"));
        }
        let expected = chain::next(&last.1, sequence as u64, &run, &kind, &key, &payload);
        if digest.as_slice() != expected.as_bytes().as_slice() {
            return Err(damaged("a record of the journal was altered: restore the volume from its copy"));
        }
        last = (sequence as u64, expected);
    }
    Ok(last)
}

fn random_hex<const N: usize>() -> Result<String, PortError> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(|e| {
        PortError::not_done("native_transfer.journal_unavailable", "the operating system gives no random numbers")
            .caused_by(std::io::Error::other(e.to_string()))
    })?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
