//! What sessions see of each other. Threads are ordered by observing that they wait for a lock, never by sleeping.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use super::super::lock::{LockFailure, LockMode};
use super::*;

/// Returns once a session waits for a lock.
fn until_waiting(store: &Store, id: i32) {
    while store.locks().blocker_of(SessionId(id)).is_none() {
        thread::yield_now();
    }
}

/// Runs `work` in a transaction of session `id` on a thread of its own and commits.
fn spawn<T: Send + 'static>(
    store: &Arc<Store>,
    id: i32,
    work: impl FnOnce(&Arc<Transaction>) -> T + Send + 'static,
) -> JoinHandle<T> {
    let store = Arc::clone(store);
    thread::spawn(move || {
        let transaction = store.begin(&session(id));
        let outcome = work(&transaction);
        transaction.commit().unwrap();
        outcome
    })
}

fn with_rows(count: i32) -> (Arc<Store>, ObjectId) {
    let store = Store::in_memory();
    let table = keyed_table(&store, "t");
    let transaction = store.begin(&session(50));
    for id in 1..=count {
        transaction.insert(table, &row(id, 0)).unwrap();
    }
    transaction.commit().unwrap();
    (store, table)
}

fn set(transaction: &Arc<Transaction>, table: ObjectId, id: i32, v: i32) -> Result<bool, StoreError> {
    match find(transaction, table, id, ReadMode::Update)? {
        Some(found) => transaction.update(table, found.id(), &row(id, v)),
        None => Ok(false),
    }
}

fn no_wait(id: i32) -> Arc<Session> {
    let session = session(id);
    session.set_lock_timeout_ms(0);
    session
}

fn is_timeout<T>(outcome: &Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Lock(LockFailure::Timeout)))
}

#[test]
fn writers_of_different_rows_do_not_block() {
    let (store, table) = with_rows(2);
    let (first, second) = (store.begin(&session(51)), store.begin(&no_wait(52)));
    assert!(set(&first, table, 1, 10).unwrap());
    assert!(set(&second, table, 2, 20).unwrap());
    assert!(is_timeout(&set(&second, table, 1, 30)));
    first.commit().unwrap();
    assert!(set(&second, table, 1, 30).unwrap());
    second.commit().unwrap();
    assert_eq!(committed_rows(&store, table), [(1, 30), (2, 20)]);
}

#[test]
fn readers_wait_for_uncommitted_rows_unless_told_otherwise() {
    let (store, table) = with_rows(3);
    let writer = store.begin(&session(51));
    set(&writer, table, 1, 10).unwrap();
    let two = find(&writer, table, 2, ReadMode::Update).unwrap().unwrap();
    writer.delete(table, two.id()).unwrap();
    writer.insert(table, &row(4, 40)).unwrap();
    let read = |mode| {
        let reader = store.begin(&no_wait(52));
        let scan = reader.scan(table, mode).unwrap();
        scan.map(|found| Ok(pair(&found?.values(2)?))).collect::<Result<Vec<_>, StoreError>>()
    };
    assert!(is_timeout(&read(ReadMode::Committed)));
    assert_eq!(read(ReadMode::Dirty).unwrap(), [(1, 10), (3, 0), (4, 40)]);
    assert_eq!(read(ReadMode::SkipLocked).unwrap(), [(3, 0)]);
    assert_eq!(rows(&writer, table), [(1, 10), (3, 0), (4, 40)]);
    let waiting = spawn(&store, 53, move |reader| rows(reader, table));
    until_waiting(&store, 53);
    writer.rollback();
    assert_eq!(waiting.join().unwrap(), [(1, 0), (2, 0), (3, 0)]);
}

#[test]
fn a_duplicate_key_waits_for_the_end_of_the_other_insert() {
    let (store, table) = with_rows(0);
    for commit in [false, true] {
        let first = store.begin(&session(51));
        first.insert(table, &row(1, 1)).unwrap();
        let second = spawn(&store, 52, move |transaction| transaction.insert(table, &row(1, 2)).map(|_| ()));
        until_waiting(&store, 52);
        if commit {
            first.commit().unwrap();
            let outcome = second.join().unwrap();
            assert!(matches!(outcome, Err(StoreError::DuplicateKey { .. })));
        } else {
            first.rollback();
            second.join().unwrap().unwrap();
            let cleaner = store.begin(&session(53));
            let found = find(&cleaner, table, 1, ReadMode::Update).unwrap().unwrap();
            cleaner.delete(table, found.id()).unwrap();
            cleaner.commit().unwrap();
        }
    }
    assert_eq!(committed_rows(&store, table), [(1, 1)]);
}

#[test]
fn a_changed_key_can_be_found_again_after_rollback() {
    let (store, table) = with_rows(1);
    let writer = store.begin(&session(51));
    let found = find(&writer, table, 1, ReadMode::Update).unwrap().unwrap();
    writer.update(table, found.id(), &row(7, 7)).unwrap();
    let by_old = spawn(&store, 52, move |it| find(it, table, 1, ReadMode::Committed).unwrap().is_some());
    let by_new = spawn(&store, 53, move |it| find(it, table, 7, ReadMode::Committed).unwrap().is_some());
    until_waiting(&store, 52);
    until_waiting(&store, 53);
    writer.rollback();
    assert!(by_old.join().unwrap());
    assert!(!by_new.join().unwrap());
}

#[test]
fn a_table_lock_keeps_everybody_out() {
    let (store, table) = with_rows(2);
    let barrier = store.begin(&session(51));
    barrier.lock_table(table, LockMode::Exclusive, Hold::Transaction).unwrap();
    barrier.end_statement();
    let other = store.begin(&no_wait(52));
    assert!(is_timeout(&other.scan(table, ReadMode::Committed).map(|_| ())));
    assert!(is_timeout(&other.insert(table, &row(9, 9))));
    assert!(is_timeout(&other.bulk_load(table).map(|_| ())));
    assert!(other.scan(table, ReadMode::Dirty).is_ok(), "NOLOCK passes an X lock");
    other.rollback();
    let writer = spawn(&store, 53, move |transaction| transaction.insert(table, &row(9, 9)).map(|_| ()));
    until_waiting(&store, 53);
    barrier.commit().unwrap();
    writer.join().unwrap().unwrap();
}

#[test]
fn a_table_lock_waits_for_writers_and_later_comers_queue_behind_it() {
    let (store, table) = with_rows(1);
    let writer = store.begin(&session(51));
    writer.insert(table, &row(5, 5)).unwrap();
    let (sender, order) = mpsc::channel();
    let late = sender.clone();
    let barrier = spawn(&store, 52, move |transaction| {
        transaction.lock_table(table, LockMode::Exclusive, Hold::Transaction).unwrap();
        sender.send("barrier").unwrap();
    });
    until_waiting(&store, 52);
    let reader = spawn(&store, 53, move |transaction| {
        transaction.lock_table(table, LockMode::IntentShared, Hold::Statement).unwrap();
        late.send("reader").unwrap();
    });
    until_waiting(&store, 53);
    writer.commit().unwrap();
    barrier.join().unwrap();
    reader.join().unwrap();
    assert_eq!(order.iter().collect::<Vec<_>>(), ["barrier", "reader"]);
}

#[test]
fn repeatable_read_and_update_locks_hold_rows() {
    let (store, table) = with_rows(2);
    let reader = store.begin(&session(51));
    find(&reader, table, 1, ReadMode::Shared).unwrap().unwrap();
    find(&reader, table, 2, ReadMode::Update).unwrap().unwrap();
    reader.end_statement();
    let other = store.begin(&no_wait(52));
    assert!(is_timeout(&set(&other, table, 1, 1)));
    assert!(is_timeout(&find(&other, table, 2, ReadMode::Update)));
    assert!(find(&other, table, 2, ReadMode::Shared).unwrap().is_some());
    assert!(find(&other, table, 2, ReadMode::UpdateSkipLocked).unwrap().is_none());
    other.rollback();
    reader.commit().unwrap();
}

#[test]
fn many_row_locks_become_a_table_lock() {
    let (store, table) = with_rows(6000);
    let writer = store.begin(&session(51));
    let scan = writer.scan(table, ReadMode::Update).unwrap();
    assert_eq!(scan.inspect(|found| assert!(found.is_ok())).count(), 6000);
    writer.end_statement();
    let other = store.begin(&no_wait(52));
    assert!(is_timeout(&other.lock_table(table, LockMode::IntentShared, Hold::Statement)));
}

#[test]
fn the_deadlock_victim_has_the_lower_priority_else_is_the_requester() {
    for (priority, victim) in [(0, 52), (-5, 51)] {
        let (store, table) = with_rows(2);
        let weak = session(51);
        weak.set_deadlock_priority(priority);
        let first = store.begin(&weak);
        set(&first, table, 1, 1).unwrap();
        let (sender, receiver) = mpsc::channel();
        let second = spawn(&store, 52, move |transaction| {
            let start = transaction.mark();
            set(transaction, table, 2, 2).unwrap();
            sender.send(()).unwrap();
            until_waiting(transaction.store(), 51);
            let outcome = set(transaction, table, 1, 3);
            if outcome.is_err() {
                transaction.rollback_to_mark(start);
            }
            outcome
        });
        receiver.recv().unwrap();
        let one = set(&first, table, 2, 4);
        let deadlocked = |it: &Result<bool, StoreError>| matches!(it, Err(StoreError::Lock(LockFailure::Deadlock)));
        if victim == 51 {
            assert!(deadlocked(&one));
            first.rollback();
            assert!(second.join().unwrap().unwrap());
            assert_eq!(committed_rows(&store, table), [(1, 3), (2, 2)]);
        } else {
            assert!(one.unwrap());
            first.commit().unwrap();
            assert!(deadlocked(&second.join().unwrap()));
            assert_eq!(committed_rows(&store, table), [(1, 1), (2, 4)]);
        }
    }
}

#[test]
fn a_wait_can_be_cancelled() {
    let (store, table) = with_rows(1);
    let writer = store.begin(&session(51));
    set(&writer, table, 1, 1).unwrap();
    let waiting = session(52);
    let token = waiting.cancel_token().clone();
    let thread = {
        let (store, waiting) = (Arc::clone(&store), Arc::clone(&waiting));
        thread::spawn(move || set(&store.begin(&waiting), table, 1, 2))
    };
    until_waiting(&store, 52);
    token.cancel();
    let outcome = thread.join().unwrap();
    assert!(matches!(outcome, Err(StoreError::Lock(LockFailure::Cancelled))));
    assert_eq!(store.locks().blocker_of(SessionId(52)), None);
}

#[test]
fn an_uncommitted_table_is_waited_for_by_name() {
    let store = Store::in_memory();
    let object = table(&store, "fresh", vec![column(1, "id", SqlType::Int)], vec![]);
    for commit in [false, true] {
        let maker = store.begin(&session(51));
        maker.put(object.clone()).unwrap();
        let user = spawn(&store, 52, |transaction| {
            let mode = LockMode::SchemaStability;
            transaction.resolve(DATABASE, DBO_SCHEMA, "FRESH", mode, Hold::Statement).unwrap().is_some()
        });
        until_waiting(&store, 52);
        if commit {
            maker.commit().unwrap();
        } else {
            maker.rollback();
        }
        assert_eq!(user.join().unwrap(), commit);
    }
}

#[test]
fn concurrent_transfers_keep_the_sum() {
    let (store, table) = with_rows(4);
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let session = session(60 + number);
                for step in 0..200 {
                    let transaction = store.begin(&session);
                    let (from, to) = ((number + step) % 4 + 1, (number * step + 1) % 4 + 1);
                    let moved = transfer(&transaction, table, from, to);
                    match moved {
                        Ok(()) => transaction.commit().unwrap(),
                        Err(StoreError::Lock(LockFailure::Deadlock)) => transaction.rollback(),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(committed_rows(&store, table).iter().map(|(_, v)| v).sum::<i32>(), 0);
    assert!(store.locks().snapshot().is_empty());
}

fn transfer(transaction: &Arc<Transaction>, table: ObjectId, from: i32, to: i32) -> Result<(), StoreError> {
    for (id, change) in [(from, -1), (to, 1)] {
        let found = find(transaction, table, id, ReadMode::Update)?.unwrap();
        let (_, v) = pair(&found.values(2)?);
        transaction.update(table, found.id(), &row(id, v + change))?;
    }
    Ok(())
}
