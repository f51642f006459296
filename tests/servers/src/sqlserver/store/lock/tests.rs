//! Application locks and the lock table by itself.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::super::catalog::{DatabaseId, PrincipalId};
use super::super::session::{Session, SessionId};
use super::super::transaction::TransactionId;
use super::*;

fn name(text: &str) -> AppLockName {
    AppLockName { database: DatabaseId(5), principal: PrincipalId(0), name: text.into() }
}

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn application_locks_are_counted_and_case_sensitive() {
    let locks = LockManager::default();
    let (one, two) = (Session::new(SessionId(51)), Session::new(SessionId(52)));
    let owner = AppLockOwner::Session;
    for _ in 0..2 {
        assert_eq!(locks.get_applock(&one, owner, &name("a"), AppLockMode::Exclusive, NOW), 0);
    }
    assert_eq!(locks.get_applock(&two, owner, &name("A"), AppLockMode::Exclusive, NOW), 0);
    assert_eq!(locks.get_applock(&two, owner, &name("a"), AppLockMode::Shared, NOW), -1);
    assert_eq!(locks.applock_mode(&one, owner, &name("a")), "Exclusive");
    assert_eq!(locks.applock_mode(&two, owner, &name("a")), "NoLock");
    assert!(!locks.applock_test(&two, owner, &name("a"), AppLockMode::Shared));
    assert_eq!(locks.release_applock(&one, owner, &name("a")), 0);
    assert_eq!(locks.get_applock(&two, owner, &name("a"), AppLockMode::Shared, NOW), -1);
    assert_eq!(locks.release_applock(&one, owner, &name("a")), 0);
    assert_eq!(locks.release_applock(&one, owner, &name("a")), -999);
    assert!(locks.applock_test(&two, owner, &name("a"), AppLockMode::Shared));
    assert_eq!(locks.get_applock(&two, owner, &name("a"), AppLockMode::Shared, NOW), 0);
}

#[test]
fn owners_of_one_session_do_not_block_each_other_but_end_apart() {
    let locks = LockManager::default();
    let (one, two) = (Session::new(SessionId(51)), Session::new(SessionId(52)));
    let transaction = AppLockOwner::Transaction(TransactionId(7));
    assert_eq!(locks.get_applock(&one, AppLockOwner::Session, &name("a"), AppLockMode::Exclusive, NOW), 0);
    assert_eq!(locks.get_applock(&one, transaction, &name("a"), AppLockMode::Exclusive, NOW), 0);
    locks.release_owner(Owner::Transaction(TransactionId(7)));
    assert_eq!(locks.get_applock(&two, AppLockOwner::Session, &name("a"), AppLockMode::Exclusive, NOW), -1);
    locks.release_owner(Owner::Session(SessionId(51)));
    assert_eq!(locks.get_applock(&two, AppLockOwner::Session, &name("a"), AppLockMode::Exclusive, NOW), 0);
}

#[test]
fn a_waiter_gets_the_lock_after_its_release_with_code_1() {
    let locks = Arc::new(LockManager::default());
    let one = Session::new(SessionId(51));
    assert_eq!(locks.get_applock(&one, AppLockOwner::Session, &name("a"), AppLockMode::Exclusive, NOW), 0);
    let waiter = {
        let locks = Arc::clone(&locks);
        thread::spawn(move || {
            let two = Session::new(SessionId(52));
            locks.get_applock(&two, AppLockOwner::Session, &name("a"), AppLockMode::Exclusive, None)
        })
    };
    while locks.blocker_of(SessionId(52)) != Some(SessionId(51)) {
        thread::yield_now();
    }
    let waiting = locks.snapshot().into_iter().find(|lock| lock.session == SessionId(52)).unwrap();
    assert_eq!((waiting.status, waiting.mode), (LockStatus::Waiting, LockMode::Exclusive));
    assert_eq!(locks.release_applock(&one, AppLockOwner::Session, &name("a")), 0);
    assert_eq!(waiter.join().unwrap(), 1);
}

#[test]
fn two_shared_holders_that_convert_are_a_deadlock() {
    let locks = Arc::new(LockManager::default());
    let one = Session::new(SessionId(51));
    let (owner, shared) = (AppLockOwner::Session, AppLockMode::Shared);
    assert_eq!(locks.get_applock(&one, owner, &name("a"), shared, NOW), 0);
    let other = {
        let locks = Arc::clone(&locks);
        thread::spawn(move || {
            let two = Session::new(SessionId(52));
            assert_eq!(locks.get_applock(&two, owner, &name("a"), shared, NOW), 0);
            let code = locks.get_applock(&two, owner, &name("a"), AppLockMode::Exclusive, None);
            locks.release_owner(Owner::Session(SessionId(52)));
            code
        })
    };
    while locks.blocker_of(SessionId(52)).is_none() {
        thread::yield_now();
    }
    // The request that closes the cycle is the victim; the other goes on once the victim lets go.
    assert_eq!(locks.get_applock(&one, owner, &name("a"), AppLockMode::Exclusive, None), -3);
    locks.release_owner(Owner::Session(SessionId(51)));
    assert_eq!(other.join().unwrap(), 1);
    assert!(locks.snapshot().is_empty());
}

#[test]
fn a_timeout_leaves_nothing_behind_and_lets_the_next_pass() {
    let locks = Arc::new(LockManager::default());
    let one = Session::new(SessionId(51));
    let (owner, shared) = (AppLockOwner::Session, AppLockMode::Shared);
    assert_eq!(locks.get_applock(&one, owner, &name("a"), shared, NOW), 0);
    let reader = {
        let locks = Arc::clone(&locks);
        thread::spawn(move || {
            // Queues behind session 52's exclusive request and is let through when that gives up.
            while locks.blocker_of(SessionId(52)).is_none() {
                thread::yield_now();
            }
            let three = Session::new(SessionId(53));
            locks.get_applock(&three, owner, &name("a"), shared, None)
        })
    };
    let two = Session::new(SessionId(52));
    assert_eq!(locks.get_applock(&two, owner, &name("a"), AppLockMode::Exclusive, Some(Duration::from_millis(50))), -1);
    assert!(reader.join().unwrap() >= 0);
    assert_eq!(locks.snapshot().len(), 2);
}
