//! The journal against real files: chain, epoch, lock, write-once, damage.

use contract::port::journal::{Appended, Journal, NewRecord, RECORD_BYTES_MAX, SHARED};
use rusqlite::Connection;

use crate::{EPOCH_FLOOR_MAX, JOURNAL_FILE, SqliteJournal};

fn record(run: &str, kind: &'static str, key: &str, payload: &str, unique: bool) -> NewRecord {
    NewRecord { run: run.into(), kind, key: key.into(), unique, payload: payload.into() }
}

#[test]
fn records_come_back_in_order_after_a_reopen_and_the_epoch_rises() {
    let root = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(root.path()).unwrap();
    let first = journal.header().clone();
    journal.append(&[record("r", "event", "1", "{}", false), record("r", "event", "2", "[1]", false)]).unwrap();
    journal.append(&[record(SHARED, "custody", "t", "{\"a\":1}", false)]).unwrap();
    drop(journal);
    let journal = SqliteJournal::open(root.path()).unwrap();
    assert_eq!(journal.header().journal_id, first.journal_id);
    assert_eq!(journal.header().epoch, first.epoch + 1);
    assert_ne!(journal.header().opener_nonce, first.opener_nonce);
    let payloads: Vec<_> = journal.records("r").unwrap().into_iter().map(|r| (r.sequence, r.payload)).collect();
    assert_eq!(payloads, [(1, "{}".to_string()), (2, "[1]".to_string())]);
    assert_eq!(journal.latest_shared("custody", "t").unwrap().unwrap().payload, "{\"a\":1}");
    assert_eq!(journal.runs().unwrap(), ["r"]);
}

#[test]
fn an_epoch_is_above_its_floor_and_stays_there() {
    let root = tempfile::tempdir().unwrap();
    let epoch = |floor| SqliteJournal::open_above(root.path(), floor).map(|journal| journal.header().epoch);
    assert_eq!(epoch(7).unwrap(), 8, "a new journal");
    assert_eq!(epoch(3).unwrap(), 9, "its own epoch is higher");
    assert_eq!(epoch(9).unwrap(), 10, "an equal floor");
    assert_eq!(epoch(40).unwrap(), 41);
    assert_eq!(SqliteJournal::inspect(root.path()).unwrap().header().epoch, 41, "durable");
    assert_eq!(SqliteJournal::open(root.path()).unwrap().header().epoch, 42);
}

#[test]
fn an_absurd_floor_is_refused_before_anything_is_touched() {
    let root = tempfile::tempdir().unwrap();
    for floor in [EPOCH_FLOOR_MAX + 1, u64::MAX] {
        let code = SqliteJournal::open_above(&root.path().join("new"), floor).unwrap_err().code;
        assert_eq!(code.as_str(), "native_transfer.epoch_floor_invalid");
    }
    assert!(!root.path().join("new").exists());
    assert_eq!(SqliteJournal::open_above(root.path(), EPOCH_FLOOR_MAX).unwrap().header().epoch, EPOCH_FLOOR_MAX + 1);
}

#[test]
fn a_second_writer_is_refused_while_a_reader_is_not() {
    let root = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(root.path()).unwrap();
    journal.append(&[record("r", "event", "1", "{}", false)]).unwrap();
    let code = SqliteJournal::open(root.path()).unwrap_err().code;
    assert_eq!(code.as_str(), "native_transfer.journal_locked");
    let mut reader = SqliteJournal::inspect(root.path()).unwrap();
    assert_eq!(reader.records("r").unwrap().len(), 1);
    assert_eq!(reader.header().epoch, 1, "inspection leaves the epoch");
    let code = reader.append(&[record("r", "event", "2", "{}", false)]).unwrap_err().code;
    assert_eq!(code.as_str(), "native_transfer.journal_read_only");
}

#[test]
fn a_write_once_record_is_adopted_when_equal_and_refused_when_changed() {
    let root = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(root.path()).unwrap();
    let plan = record("r", "plan", "k", "{\"v\":1}", true);
    assert_eq!(journal.append(std::slice::from_ref(&plan)).unwrap(), Appended::Written);
    assert_eq!(journal.append(std::slice::from_ref(&plan)).unwrap(), Appended::Adopted);
    let refused = journal.append(&[record("r", "event", "1", "{}", false), record("r", "plan", "k", "{}", true)]);
    assert_eq!(refused.unwrap_err().code.as_str(), "mssql_native.invalid_journal");
    assert_eq!(journal.records("r").unwrap().len(), 1, "the whole batch is undone");
    journal.append(&[record("r", "event", "1", "{}", false)]).unwrap();
}

#[test]
fn a_later_opener_fences_an_earlier_one_even_without_the_lock() {
    let root = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(root.path()).unwrap();
    // What a second opener on a volume without working locks does.
    let other = Connection::open(root.path().join(JOURNAL_FILE)).unwrap();
    other.execute("UPDATE header SET epoch = epoch + 1", []).unwrap();
    let code = journal.append(&[record("r", "event", "1", "{}", false)]).unwrap_err().code;
    assert_eq!(code.as_str(), "native_transfer.journal_fenced");
}

#[test]
fn every_altered_field_removed_or_inserted_record_is_found() {
    let damages = [
        "UPDATE records SET payload = '{\"x\":2}' WHERE sequence = 2",
        "UPDATE records SET key = 'other' WHERE sequence = 2",
        "UPDATE records SET kind = 'other' WHERE sequence = 2",
        "UPDATE records SET run = 'other' WHERE sequence = 2",
        "UPDATE records SET digest = zeroblob(32) WHERE sequence = 3",
        "DELETE FROM records WHERE sequence = 2",
        "INSERT INTO records SELECT 4, run, kind, key, payload, digest FROM records WHERE sequence = 3",
        "UPDATE header SET journal_id = '00000000000000000000000000000000'",
        "DELETE FROM header",
        "UPDATE header SET format = 2",
    ];
    for damage in damages {
        let root = tempfile::tempdir().unwrap();
        let mut journal = SqliteJournal::open(root.path()).unwrap();
        for key in ["1", "2", "3"] {
            journal.append(&[record("r", "event", key, "{}", false)]).unwrap();
        }
        drop(journal);
        let raw = Connection::open(root.path().join(JOURNAL_FILE)).unwrap();
        assert_eq!(raw.execute(damage, []).unwrap(), 1, "{damage}");
        drop(raw);
        for opened in [SqliteJournal::inspect(root.path()), SqliteJournal::open(root.path())] {
            assert_eq!(opened.unwrap_err().code.as_str(), "mssql_native.invalid_journal", "{damage}");
        }
    }
}

#[test]
fn foreign_files_and_oversized_records_are_refused() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(
        SqliteJournal::inspect(root.path()).unwrap_err().code.as_str(),
        "mssql_native.recovery_journal_unavailable"
    );
    // A root that cannot be looked into is not an empty one.
    let file = root.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let below = SqliteJournal::inspect(&file.join("below")).unwrap_err();
    assert_eq!(below.code.as_str(), "native_transfer.journal_unavailable");
    let mut journal = SqliteJournal::open(root.path()).unwrap();
    let long = "x".repeat(RECORD_BYTES_MAX + 1);
    let code = journal.append(&[record("r", "event", "1", &long, false)]).unwrap_err().code;
    assert_eq!(code.as_str(), "native_transfer.journal_bound_exceeded");
    drop(journal);
    std::fs::write(root.path().join(JOURNAL_FILE), b"not a database at all, but some text of a person").unwrap();
    assert!(SqliteJournal::open(root.path()).is_err());
    assert!(SqliteJournal::inspect(root.path()).is_err());
}
