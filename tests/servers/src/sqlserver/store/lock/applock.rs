//! Application locks: the rules of `sp_getapplock`, `sp_releaseapplock`, `APPLOCK_MODE` and `APPLOCK_TEST`.

use std::sync::Arc;
use std::time::Duration;

use super::super::catalog::{DatabaseId, PrincipalId};
use super::super::session::Session;
use super::super::transaction::TransactionId;
use super::{LockFailure, LockManager, LockMode, Owner, Resource};

/// Name of an application lock: scoped to a database and a database principal, case sensitive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AppLockName {
    /// Database in which it was asked for.
    pub database: DatabaseId,
    /// `@DbPrincipal`; `public` is 0.
    pub principal: PrincipalId,
    /// `@Resource`, at most 255 characters.
    pub name: Arc<str>,
}

/// `@LockMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppLockMode {
    /// `Shared`.
    Shared,
    /// `Update`.
    Update,
    /// `IntentShared`.
    IntentShared,
    /// `IntentExclusive`.
    IntentExclusive,
    /// `Exclusive`.
    Exclusive,
}

impl AppLockMode {
    /// A mode by its name, without regard to case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "shared" => Some(Self::Shared),
            "update" => Some(Self::Update),
            "intentshared" => Some(Self::IntentShared),
            "intentexclusive" => Some(Self::IntentExclusive),
            "exclusive" => Some(Self::Exclusive),
            _ => None,
        }
    }

    fn mode(self) -> LockMode {
        match self {
            Self::Shared => LockMode::Shared,
            Self::Update => LockMode::Update,
            Self::IntentShared => LockMode::IntentShared,
            Self::IntentExclusive => LockMode::IntentExclusive,
            Self::Exclusive => LockMode::Exclusive,
        }
    }
}

/// `@LockOwner`, resolved against the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppLockOwner {
    /// `Session`.
    Session,
    /// `Transaction`, with the open transaction.
    Transaction(TransactionId),
}

impl AppLockOwner {
    fn owner(self, session: &Session) -> Owner {
        match self {
            Self::Session => Owner::Session(session.id()),
            Self::Transaction(id) => Owner::Transaction(id),
        }
    }
}

impl LockManager {
    /// `sp_getapplock`: 0 granted at once, 1 granted after waiting, -1 timeout, -2 cancelled, -3 deadlock victim.
    ///
    /// Repeated grants to one owner are counted. The caller answers bad parameters itself (-999, error 8116 and kin),
    /// and a Transaction owner without an open transaction.
    pub fn get_applock(
        &self,
        session: &Session,
        owner: AppLockOwner,
        name: &AppLockName,
        mode: AppLockMode,
        timeout: Option<Duration>,
    ) -> i32 {
        let resource = Resource::Application(name.clone());
        match self.acquire(session, owner.owner(session), resource, mode.mode(), timeout) {
            Ok(grant) => i32::from(grant.waited),
            Err(LockFailure::Timeout) => -1,
            Err(LockFailure::Cancelled) => -2,
            Err(LockFailure::Deadlock) => -3,
        }
    }

    /// `sp_releaseapplock`: 0 released (one count), -999 not held (error 1223).
    pub fn release_applock(&self, session: &Session, owner: AppLockOwner, name: &AppLockName) -> i32 {
        if self.release(owner.owner(session), &Resource::Application(name.clone())) { 0 } else { -999 }
    }

    /// `APPLOCK_MODE`: name of the mode that the owner holds, `NoLock` without one.
    #[must_use]
    pub fn applock_mode(&self, session: &Session, owner: AppLockOwner, name: &AppLockName) -> &'static str {
        match self.mode_held(owner.owner(session), &Resource::Application(name.clone())) {
            None => "NoLock",
            Some(LockMode::Shared) => "Shared",
            Some(LockMode::Update) => "Update",
            Some(LockMode::IntentShared) => "IntentShared",
            Some(LockMode::IntentExclusive) => "IntentExclusive",
            Some(LockMode::SharedIntentExclusive) => "SharedIntentExclusive",
            Some(LockMode::UpdateIntentExclusive) => "UpdateIntentExclusive",
            Some(_) => "Exclusive",
        }
    }

    /// `APPLOCK_TEST`: whether the lock would be granted at once.
    #[must_use]
    pub fn applock_test(&self, session: &Session, owner: AppLockOwner, name: &AppLockName, mode: AppLockMode) -> bool {
        let resource = Resource::Application(name.clone());
        self.is_available(session.id(), owner.owner(session), &resource, mode.mode())
    }
}
