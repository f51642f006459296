//! The lock table.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::session::{Session, SessionId};
use super::waiter::{Outcome, Waiter};
use super::{Grant, Granted, LockFailure, LockInfo, LockMode, LockStatus, Owner, Resource};

/// Grants, queues and releases locks. All methods may be called from any thread.
#[derive(Debug, Default)]
pub struct LockManager {
    table: Mutex<LockTable>,
}

#[derive(Debug, Default)]
struct LockTable {
    entries: HashMap<Resource, Entry>,
    owned: HashMap<Owner, HashSet<Resource>>,
    /// The resource for which a session waits.
    waiting: HashMap<SessionId, Resource>,
}

#[derive(Debug, Default)]
struct Entry {
    holders: Vec<Holder>,
    queue: VecDeque<Request>,
}

#[derive(Debug)]
struct Holder {
    session: SessionId,
    owner: Owner,
    mode: LockMode,
    count: u32,
}

#[derive(Debug)]
struct Request {
    session: SessionId,
    owner: Owner,
    /// Mode after the grant: a conversion asks for the combination.
    mode: LockMode,
    conversion: bool,
    priority: i32,
    waiter: Arc<Waiter>,
}

impl Entry {
    fn holder(&self, owner: Owner) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.owner == owner)
    }

    /// No other session holds a mode that excludes `mode`.
    fn is_free_for(&self, session: SessionId, mode: LockMode) -> bool {
        self.holders.iter().all(|holder| holder.session == session || holder.mode.is_compatible_with(mode))
    }

    fn put_holder(&mut self, session: SessionId, owner: Owner, mode: LockMode) {
        match self.holders.iter_mut().find(|holder| holder.owner == owner) {
            Some(holder) => {
                holder.mode = mode;
                holder.count += 1;
            }
            None => self.holders.push(Holder { session, owner, mode, count: 1 }),
        }
    }
}

impl LockManager {
    /// Obtains `resource` in `mode` for `owner`, waiting up to `timeout` (none: for ever; zero: not at all).
    ///
    /// The caller's thread blocks while it waits. A request by an owner that already holds the resource converts
    /// it to the combined mode, ahead of new requests.
    ///
    /// # Errors
    /// [`LockFailure`]; the owner then holds what it held before.
    pub fn acquire(
        &self,
        session: &Session,
        owner: Owner,
        resource: Resource,
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<Grant, LockFailure> {
        let id = session.id();
        let mut table = self.table.lock();
        let entry = table.entries.entry(resource.clone()).or_default();
        let held = entry.holder(owner).map(|holder| holder.mode);
        let wanted = held.map_or(mode, |held| held.combine(mode));
        let granted = match held {
            Some(held) if held == wanted => Granted::AlreadyHeld,
            Some(from) => Granted::Converted { from },
            None => Granted::New,
        };
        // Whoever shares the resource within the session already may not queue behind those who wait for the session.
        let ahead_of_queue = held.is_some() || entry.holders.iter().any(|holder| holder.session == id);
        if entry.is_free_for(id, wanted) && (ahead_of_queue || entry.queue.is_empty()) {
            entry.put_holder(id, owner, wanted);
            table.owned.entry(owner).or_default().insert(resource);
            return Ok(Grant { granted, waited: false });
        }
        if timeout == Some(Duration::ZERO) {
            table.forget_if_unused(&resource);
            return Err(LockFailure::Timeout);
        }
        let waiter = Arc::new(Waiter::new());
        let request = Request {
            session: id,
            owner,
            mode: wanted,
            conversion: ahead_of_queue,
            priority: session.deadlock_priority(),
            waiter: Arc::clone(&waiter),
        };
        table.enqueue(&resource, request);
        table.break_deadlocks(id);
        drop(table);
        self.wait(session, &resource, &waiter, timeout)?;
        Ok(Grant { granted, waited: true })
    }

    fn wait(
        &self,
        session: &Session,
        resource: &Resource,
        waiter: &Arc<Waiter>,
        timeout: Option<Duration>,
    ) -> Result<(), LockFailure> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        session.cancel_token().attach(waiter);
        waiter.wait(deadline);
        session.cancel_token().detach();
        let mut table = self.table.lock();
        // Read again under the table lock: a grant may have come between the timeout and here.
        let failure = match waiter.outcome() {
            Outcome::Granted => return Ok(()),
            Outcome::Waiting => LockFailure::Timeout,
            Outcome::Cancelled => LockFailure::Cancelled,
            Outcome::Deadlock => LockFailure::Deadlock,
        };
        table.dequeue(session.id(), resource);
        Err(failure)
    }

    /// Gives one count of `owner`'s lock back, the lock itself with the last one; false if the owner does not hold it.
    pub fn release(&self, owner: Owner, resource: &Resource) -> bool {
        let mut table = self.table.lock();
        let Some(entry) = table.entries.get_mut(resource) else { return false };
        let Some(position) = entry.holders.iter().position(|holder| holder.owner == owner) else { return false };
        entry.holders[position].count -= 1;
        if entry.holders[position].count == 0 {
            entry.holders.swap_remove(position);
            if let Some(owned) = table.owned.get_mut(&owner) {
                owned.remove(resource);
            }
            table.promote(resource);
        }
        true
    }

    /// Gives `owner`'s lock back whatever its count.
    pub fn release_fully(&self, owner: Owner, resource: &Resource) {
        let mut table = self.table.lock();
        if let Some(owned) = table.owned.get_mut(&owner) {
            owned.remove(resource);
        }
        table.drop_holder(owner, resource);
    }

    /// Lowers `owner`'s lock back to a mode that it held before.
    pub fn downgrade(&self, owner: Owner, resource: &Resource, mode: LockMode) {
        let mut table = self.table.lock();
        let Some(entry) = table.entries.get_mut(resource) else { return };
        if let Some(holder) = entry.holders.iter_mut().find(|holder| holder.owner == owner) {
            holder.mode = mode;
        }
        table.promote(resource);
    }

    /// Releases everything that `owner` holds.
    pub fn release_owner(&self, owner: Owner) {
        let mut table = self.table.lock();
        for resource in table.owned.remove(&owner).unwrap_or_default() {
            table.drop_holder(owner, &resource);
        }
    }

    /// The mode in which `owner` holds `resource`.
    #[must_use]
    pub fn mode_held(&self, owner: Owner, resource: &Resource) -> Option<LockMode> {
        let table = self.table.lock();
        table.entries.get(resource)?.holder(owner).map(|holder| holder.mode)
    }

    /// Whether `session` would get `resource` in `mode` at once.
    #[must_use]
    pub fn is_available(&self, session: SessionId, owner: Owner, resource: &Resource, mode: LockMode) -> bool {
        let table = self.table.lock();
        let Some(entry) = table.entries.get(resource) else { return true };
        let wanted = entry.holder(owner).map_or(mode, |holder| holder.mode.combine(mode));
        entry.is_free_for(session, wanted) && (entry.holder(owner).is_some() || entry.queue.is_empty())
    }

    /// The session for whose lock `session` waits; none if it does not wait.
    #[must_use]
    pub fn blocker_of(&self, session: SessionId) -> Option<SessionId> {
        self.table.lock().blockers(session).first().copied()
    }

    /// Everything held and asked for, for `sys.dm_tran_locks`.
    #[must_use]
    pub fn snapshot(&self) -> Vec<LockInfo> {
        let table = self.table.lock();
        let mut rows = Vec::new();
        for (resource, entry) in &table.entries {
            rows.extend(entry.holders.iter().map(|holder| LockInfo {
                resource: resource.clone(),
                mode: holder.mode,
                status: LockStatus::Granted,
                session: holder.session,
                owner: holder.owner,
                count: holder.count,
            }));
            rows.extend(entry.queue.iter().map(|request| LockInfo {
                resource: resource.clone(),
                mode: request.mode,
                status: if request.conversion { LockStatus::Converting } else { LockStatus::Waiting },
                session: request.session,
                owner: request.owner,
                count: 0,
            }));
        }
        rows
    }
}

impl LockTable {
    fn forget_if_unused(&mut self, resource: &Resource) {
        if self.entries.get(resource).is_some_and(|entry| entry.holders.is_empty() && entry.queue.is_empty()) {
            self.entries.remove(resource);
        }
    }

    fn drop_holder(&mut self, owner: Owner, resource: &Resource) {
        if let Some(entry) = self.entries.get_mut(resource) {
            entry.holders.retain(|holder| holder.owner != owner);
            self.promote(resource);
        }
    }

    /// Conversions wait before new requests, each kind in order of arrival.
    fn enqueue(&mut self, resource: &Resource, request: Request) {
        self.waiting.insert(request.session, resource.clone());
        let entry = self.entries.entry(resource.clone()).or_default();
        if request.conversion {
            let position = entry.queue.iter().take_while(|other| other.conversion).count();
            entry.queue.insert(position, request);
        } else {
            entry.queue.push_back(request);
        }
    }

    fn dequeue(&mut self, session: SessionId, resource: &Resource) {
        self.waiting.remove(&session);
        if let Some(entry) = self.entries.get_mut(resource) {
            entry.queue.retain(|request| request.session != session);
            self.promote(resource);
        }
    }

    /// Grants what can be granted from the head of the queue on.
    fn promote(&mut self, resource: &Resource) {
        let Some(entry) = self.entries.get_mut(resource) else { return };
        while let Some(request) = entry.queue.front() {
            if !entry.is_free_for(request.session, request.mode) {
                break;
            }
            let Some(request) = entry.queue.pop_front() else { break };
            self.waiting.remove(&request.session);
            // A wait that ended otherwise in this moment leaves the queue without a lock.
            if request.waiter.finish(Outcome::Granted) {
                entry.put_holder(request.session, request.owner, request.mode);
                self.owned.entry(request.owner).or_default().insert(resource.clone());
            }
        }
        self.forget_if_unused(resource);
    }

    /// Sessions for which `session` waits: conflicting holders and everyone before it in the queue.
    fn blockers(&self, session: SessionId) -> Vec<SessionId> {
        let Some(entry) = self.waiting.get(&session).and_then(|resource| self.entries.get(resource)) else {
            return Vec::new();
        };
        let Some(position) = entry.queue.iter().position(|request| request.session == session) else {
            return Vec::new();
        };
        let request = &entry.queue[position];
        let holders = entry
            .holders
            .iter()
            .filter(|holder| holder.session != session && !holder.mode.is_compatible_with(request.mode))
            .map(|holder| holder.session);
        let before = entry.queue.iter().take(position).map(|other| other.session);
        holders.chain(before).collect()
    }

    /// The sessions of a cycle of waits through `start`, `start` first.
    fn find_cycle(&self, start: SessionId) -> Option<Vec<SessionId>> {
        let mut path = vec![(start, self.blockers(start))];
        let mut seen = HashSet::from([start]);
        while let Some((_, blockers)) = path.last_mut() {
            match blockers.pop() {
                None => {
                    path.pop();
                }
                Some(next) if next == start => return Some(path.into_iter().map(|(session, _)| session).collect()),
                Some(next) => {
                    if seen.insert(next) {
                        path.push((next, self.blockers(next)));
                    }
                }
            }
        }
        None
    }

    /// Ends waits until `requester` is in no cycle: the victim is the session with the lowest deadlock priority,
    /// the requester among equals.
    fn break_deadlocks(&mut self, requester: SessionId) {
        while let Some(cycle) = self.find_cycle(requester) {
            // `min_by_key` takes the first of equals, and the cycle begins with the requester.
            let Some(victim) = cycle.into_iter().min_by_key(|session| self.priority(*session)) else { return };
            let Some(resource) = self.waiting.get(&victim).cloned() else { return };
            if let Some(entry) = self.entries.get(&resource)
                && let Some(request) = entry.queue.iter().find(|request| request.session == victim)
            {
                request.waiter.finish(Outcome::Deadlock);
            }
            self.dequeue(victim, &resource);
        }
    }

    fn priority(&self, session: SessionId) -> i32 {
        self.waiting
            .get(&session)
            .and_then(|resource| self.entries.get(resource))
            .and_then(|entry| entry.queue.iter().find(|request| request.session == session))
            .map_or(0, |request| request.priority)
    }
}
