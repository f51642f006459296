//! The log: what a restart brings back, torn ends, damage.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn options() -> StoreOptions {
    StoreOptions { durability: Durability::NoSync, ..StoreOptions::default() }
}

fn log_file(folder: &Path) -> PathBuf {
    let mut logs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "log"))
        .collect();
    assert_eq!(logs.len(), 1);
    logs.pop().unwrap()
}

/// A store with a few commits: the log's bytes, and after each commit its length and the rows then.
struct History {
    log: Vec<u8>,
    commits: Vec<(u64, Vec<(i32, i32)>)>,
    table: ObjectId,
}

fn history() -> History {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options()).unwrap();
    let table = keyed_table(&store, "t");
    let mut commits = vec![(store.log_bytes(), Vec::new())];
    for step in 0..5 {
        let transaction = store.begin(&session(51));
        for id in 0..3 {
            transaction.insert(table, &row(step * 10 + id, step)).unwrap();
        }
        if step > 0 {
            let found = find(&transaction, table, (step - 1) * 10, ReadMode::Update).unwrap().unwrap();
            transaction.update(table, found.id(), &row((step - 1) * 10, 99)).unwrap();
            let found = find(&transaction, table, (step - 1) * 10 + 1, ReadMode::Update).unwrap().unwrap();
            transaction.delete(table, found.id()).unwrap();
        }
        transaction.commit().unwrap();
        // What is rolled back leaves no trace.
        let transaction = store.begin(&session(51));
        transaction.truncate(table).unwrap();
        transaction.rollback();
        commits.push((store.log_bytes(), committed_rows(&store, table)));
    }
    drop(store);
    History { log: fs::read(log_file(folder.path())).unwrap(), commits, table }
}

/// Opens a store whose log has these bytes.
fn open_bytes(bytes: &[u8]) -> (tempfile::TempDir, Result<Arc<Store>, StoreError>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("redo-000000000000.log"), bytes).unwrap();
    let store = Store::open(folder.path(), options());
    (folder, store)
}

#[test]
fn a_log_cut_anywhere_gives_the_last_whole_commit() {
    let History { log, commits, table } = history();
    for cut in commits[0].0..=log.len() as u64 {
        let (folder, store) = open_bytes(&log[..usize::try_from(cut).unwrap()]);
        let store = store.unwrap();
        let (length, expected) = commits.iter().rfind(|(length, _)| *length <= cut).unwrap();
        assert_eq!(&committed_rows(&store, table), expected, "cut at {cut}");
        assert_eq!(store.log_bytes(), *length);
        // Work goes on behind the cut and comes back too.
        let transaction = store.begin(&session(51));
        transaction.insert(table, &row(1000, 1)).unwrap();
        transaction.commit().unwrap();
        drop((transaction, store));
        let store = Store::open(folder.path(), options()).unwrap();
        assert_eq!(committed_rows(&store, table).last(), Some(&(1000, 1)));
    }
}

#[test]
fn damage_in_the_last_frame_is_a_torn_end_and_earlier_damage_is_an_error() {
    let History { log, commits, table } = history();
    let last = commits[commits.len() - 2].0;
    for at in 0..log.len() as u64 {
        let mut bytes = log.clone();
        bytes[usize::try_from(at).unwrap()] ^= 0x10;
        let (_folder, store) = open_bytes(&bytes);
        if at >= last {
            assert_eq!(committed_rows(&store.unwrap(), table), commits[commits.len() - 2].1);
        } else {
            assert!(matches!(store, Err(StoreError::LogDamaged { offset }) if offset <= at), "at {at}");
        }
    }
}

#[test]
fn snapshots_keep_everything_and_shorten_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options()).unwrap();
    let table = keyed_table(&store, "t");
    for step in 0..200 {
        let transaction = store.begin(&session(51));
        if step > 0 {
            let found = find(&transaction, table, 1, ReadMode::Update).unwrap().unwrap();
            transaction.update(table, found.id(), &row(1, step)).unwrap();
        } else {
            transaction.insert(table, &row(1, step)).unwrap();
        }
        transaction.commit().unwrap();
    }
    let before = store.log_bytes();
    let writer = store.begin(&session(52));
    writer.insert(table, &row(2, 2)).unwrap();
    assert!(!store.checkpoint().unwrap(), "no snapshot while a transaction is writing");
    writer.commit().unwrap();
    assert!(store.checkpoint().unwrap());
    assert!(store.log_bytes() < before / 4);
    let transaction = store.begin(&session(52));
    transaction.insert(table, &row(3, 3)).unwrap();
    transaction.commit().unwrap();
    let next = store.allocate_object_id();
    drop((writer, transaction, store));
    log_file(folder.path());
    let store = Store::open(folder.path(), options()).unwrap();
    assert_eq!(committed_rows(&store, table), [(1, 199), (2, 2), (3, 3)]);
    assert_eq!(store.allocate_object_id(), next);
}

#[test]
fn an_unfinished_snapshot_is_ignored() {
    let History { log, commits, table } = history();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("redo-000000000000.log"), &log).unwrap();
    fs::write(folder.path().join("redo-000000000001.tmp"), &log[..100]).unwrap();
    let store = Store::open(folder.path(), options()).unwrap();
    assert_eq!(committed_rows(&store, table), commits.last().unwrap().1);
    assert!(!folder.path().join("redo-000000000001.tmp").exists());
}

#[test]
fn a_large_transaction_is_logged_in_parts_and_counts_only_with_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options()).unwrap();
    let table = heap_table(&store, "h");
    let base = store.log_bytes();
    for commit in [false, true] {
        let transaction = store.begin(&session(51));
        let mut load = transaction.bulk_load(table).unwrap();
        for id in 0..300_000 {
            load.push(&row(id, 0)).unwrap();
        }
        load.finish().unwrap();
        let mark = transaction.mark();
        transaction.insert(table, &row(-1, 0)).unwrap();
        transaction.rollback_to_mark(mark);
        assert!(store.log_bytes() > base + (1 << 20), "parts are in the log before the commit");
        if commit {
            transaction.commit().unwrap();
        } else {
            transaction.rollback();
        }
    }
    drop(store);
    let store = Store::open(folder.path(), options()).unwrap();
    let rows = committed_rows(&store, table);
    assert_eq!(rows.len(), 300_000);
    assert!(rows.iter().zip(0..).all(|((id, _), expected)| *id == expected));
}

#[test]
fn a_folder_has_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options()).unwrap();
    assert!(matches!(Store::open(folder.path(), options()), Err(StoreError::InUse)));
    drop(store);
    assert!(Store::open(folder.path(), options()).is_ok());
}

#[test]
fn counters_survive_but_do_not_roll_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), options()).unwrap();
    let table = heap_table(&store, "h");
    let key = CounterKey::Identity(table);
    let next = |transaction: &Transaction| transaction.next_counter(key, 1, 1, 1, 100);
    let mut transaction = store.begin(&session(51));
    assert_eq!(next(&transaction).unwrap(), 1);
    assert_eq!(next(&transaction).unwrap(), 2);
    transaction.rollback();
    transaction = store.begin(&session(51));
    assert_eq!(next(&transaction).unwrap(), 3);
    transaction.commit().unwrap();
    transaction = store.begin(&session(51));
    transaction.truncate(table).unwrap();
    assert_eq!(next(&transaction).unwrap(), 1);
    transaction.rollback();
    assert_eq!(store.counter(key), Some(3), "TRUNCATE's reset is undone");
    transaction = store.begin(&session(51));
    transaction.set_counter(key, Some(100));
    assert!(matches!(next(&transaction), Err(StoreError::CounterOverflow)));
    let first = transaction.next_rowversion(DATABASE);
    transaction.commit().unwrap();
    drop((transaction, store));
    let store = Store::open(folder.path(), options()).unwrap();
    assert_eq!(store.counter(key), Some(100));
    assert!(store.begin(&session(51)).next_rowversion(DATABASE) > first);
}
