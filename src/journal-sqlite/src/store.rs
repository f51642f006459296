//! Appending and reading records.

use std::fs::File;
use std::path::Path;

use contract::digest::Digest;
use contract::error::PortError;
use contract::port::journal::{
    Appended, Journal, JournalHeader, NewRecord, RECORD_BYTES_MAX, RECORDS_MAX, Record, SHARED,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::chain;
use crate::open::{self, damaged, io_error, load_header};

/// A journal under a root directory.
#[derive(Debug)]
pub struct SqliteJournal {
    connection: Connection,
    header: JournalHeader,
    last: (u64, Digest),
    /// Held for its lock; `None` for a reader.
    lock: Option<File>,
}

impl SqliteJournal {
    /// Opens the journal of `root` for writing, creating root and file if they are missing. Raises the epoch.
    ///
    /// # Errors
    /// `native_transfer.journal_locked` while another process writes, `native_transfer.journal_unavailable` when the
    /// volume fails, `mssql_native.invalid_journal` when the content is not an intact journal.
    pub fn open(root: &Path) -> Result<Self, PortError> {
        Self::open_above(root, 0)
    }

    /// As [`Self::open`], with an epoch above `floor` too: the highest epoch that was ever seen of this journal. A volume
    /// that was restored from an older copy then does not repeat an epoch that the target has fenced already.
    ///
    /// # Errors
    /// Those of [`Self::open`]; `native_transfer.epoch_floor_invalid` above [`crate::EPOCH_FLOOR_MAX`], nothing touched.
    pub fn open_above(root: &Path, floor: u64) -> Result<Self, PortError> {
        open::admit_floor(floor)?;
        std::fs::create_dir_all(root)
            .map_err(|e| io_error("the journal root cannot be created: check the volume and its permissions", e))?;
        let lock = open::lock(root)?;
        let opened = open::open_writable(root, floor)?;
        Ok(SqliteJournal { connection: opened.connection, header: opened.header, last: opened.last, lock: Some(lock) })
    }

    /// Opens the journal of `root` for reading only: no lock, no new epoch, nothing created. Appending is refused.
    ///
    /// # Errors
    /// `mssql_native.recovery_journal_unavailable` when there is none, `native_transfer.journal_unavailable` when it cannot be read, and
    /// `mssql_native.invalid_journal` when it is damaged.
    pub fn inspect(root: &Path) -> Result<Self, PortError> {
        let opened = open::open_readable(root)?;
        Ok(SqliteJournal { connection: opened.connection, header: opened.header, last: opened.last, lock: None })
    }

    fn guard(&self, tx: &Transaction<'_>) -> Result<(), PortError> {
        let current = load_header(tx)?.ok_or_else(|| damaged("the journal has no header"))?;
        let last: Option<i64> = tx
            .query_row("SELECT max(sequence) FROM records", [], |r| r.get(0))
            .map_err(|e| io_error("the journal cannot be read: check the volume", e))?;
        if current != self.header || last.unwrap_or(0) as u64 != self.last.0 {
            return Err(PortError::not_done(
                "native_transfer.journal_fenced",
                "a later process has opened this journal: this one must stop",
            ));
        }
        Ok(())
    }
}

/// The payload under a unique key, if there is one.
fn existing(tx: &Transaction<'_>, record: &NewRecord) -> Result<Option<String>, PortError> {
    tx.query_row(
        "SELECT payload FROM records WHERE run = ?1 AND kind = ?2 AND key = ?3",
        (&record.run, record.kind, &record.key),
        |r| r.get(0),
    )
    .optional()
    .map_err(|e| io_error("the journal cannot be read: check the volume", e))
}

fn insert(tx: &Transaction<'_>, record: &NewRecord, last: &mut (u64, Digest)) -> Result<(), PortError> {
    if record.payload.len() > RECORD_BYTES_MAX || last.0 >= RECORDS_MAX {
        return Err(PortError::not_done(
            "native_transfer.journal_bound_exceeded",
            "the record or the journal would exceed its bound: use a new journal root for further runs",
        ));
    }
    let sequence = last.0 + 1;
    let digest = chain::next(&last.1, sequence, &record.run, record.kind, &record.key, &record.payload);
    tx.execute(
        "INSERT INTO records (sequence, run, kind, key, payload, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (sequence as i64, &record.run, record.kind, &record.key, &record.payload, digest.as_bytes().as_slice()),
    )
    .map_err(|e| io_error("the journal cannot be written: check the volume", e))?;
    *last = (sequence, digest);
    Ok(())
}

impl Journal for SqliteJournal {
    fn header(&self) -> &JournalHeader {
        &self.header
    }

    fn append(&mut self, records: &[NewRecord]) -> Result<Appended, PortError> {
        if self.lock.is_none() {
            return Err(PortError::not_done(
                "native_transfer.journal_read_only",
                "this journal was opened for reading",
            ));
        }
        let (last, written) = self.append_durably(records)?;
        self.last = last;
        Ok(written)
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, PortError> {
        self.select(
            "SELECT sequence, run, kind, key, payload, digest FROM records WHERE run = ?1 ORDER BY sequence",
            [run],
        )
    }

    fn latest_shared(&self, kind: &str, key: &str) -> Result<Option<Record>, PortError> {
        let sql = "SELECT sequence, run, kind, key, payload, digest FROM records
                   WHERE run = ?1 AND kind = ?2 AND key = ?3 ORDER BY sequence DESC LIMIT 1";
        Ok(self.select(sql, [SHARED, kind, key])?.pop())
    }

    fn runs(&self) -> Result<Vec<String>, PortError> {
        let failed = |e| io_error("the journal cannot be read: check the volume", e);
        let mut statement = self
            .connection
            .prepare("SELECT run FROM records WHERE run <> ?1 GROUP BY run ORDER BY min(sequence)")
            .map_err(failed)?;
        let runs = statement.query_map([SHARED], |r| r.get(0)).map_err(failed)?;
        runs.collect::<rusqlite::Result<Vec<String>>>().map_err(failed)
    }
}

impl SqliteJournal {
    fn append_durably(&self, records: &[NewRecord]) -> Result<((u64, Digest), Appended), PortError> {
        let tx = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
            .map_err(|e| io_error("the journal cannot be written: check the volume", e))?;
        self.guard(&tx)?;
        let mut last = self.last;
        let mut outcome = Appended::Adopted;
        for record in records {
            match if record.unique { existing(&tx, record)? } else { None } {
                Some(payload) if payload == record.payload => {}
                Some(_) => return Err(damaged("a write-once record would change: the run must stop")),
                None => {
                    insert(&tx, record, &mut last)?;
                    outcome = Appended::Written;
                }
            }
        }
        // Why unknown: a commit that reports an I/O error may still be found after the next open.
        tx.commit().map_err(|e| {
            PortError::unknown(
                "native_transfer.journal_unavailable",
                "the journal could not be made durable: check the volume",
            )
            .caused_by(e)
        })?;
        Ok((last, outcome))
    }

    fn select<P: rusqlite::Params>(&self, sql: &str, params: P) -> Result<Vec<Record>, PortError> {
        let failed = |e| io_error("the journal cannot be read: check the volume", e);
        let mut statement = self.connection.prepare(sql).map_err(failed)?;
        let rows = statement
            .query_map(params, |r| {
                let digest: [u8; 32] = r.get(5)?;
                Ok(Record {
                    sequence: r.get::<_, i64>(0)? as u64,
                    run: r.get(1)?,
                    kind: r.get(2)?,
                    key: r.get(3)?,
                    payload: r.get(4)?,
                    digest: Digest::from_bytes(digest),
                })
            })
            .map_err(failed)?;
        rows.collect::<rusqlite::Result<Vec<Record>>>().map_err(failed)
    }
}
