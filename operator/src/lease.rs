//! Leader election by one `coordination.k8s.io/v1` Lease, with fail-stop.
//!
//! Every write replaces the Lease under its resourceVersion, so of two candidates one gets a conflict. A holder that could
//! not renew within [`RENEW_DEADLINE`] ends its process at once: that is sooner than any other candidate may take the Lease
//! ([`DURATION`] after the last change that the *candidate* saw, by the candidate's own clock), so clocks need not agree.
//! Should the judgement still be wrong, status writes are compare-and-swap and the journal fences workers.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};

use crate::api::{ApiError, call_within, found};

/// Name of the Lease where none is given.
pub const NAME: &str = "native-transfer-operator";

/// How long a Lease that nobody renews stays taken.
pub const DURATION: Duration = Duration::from_secs(20);

/// How long a holder may go without a renewal before it ends.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(12);

/// How often it is renewed, or looked at.
const PERIOD: Duration = Duration::from_secs(3);

/// Longest wait for one answer about the Lease.
const CALL: Duration = Duration::from_secs(4);

/// What a look at the Lease allows, by what was seen before.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claimable {
    /// It is free, ours, or was not renewed for its whole duration.
    Yes,
    /// Somebody holds it.
    No,
}

/// What a candidate saw last, and when.
#[derive(Debug, Clone, Default)]
struct Seen {
    version: Option<String>,
    since: Option<Instant>,
}

impl Seen {
    fn judge(&mut self, lease: &Lease, identity: &str, now: Instant) -> Claimable {
        let version = lease.resource_version();
        if self.version != version || self.since.is_none() {
            self.version = version;
            self.since = Some(now);
        }
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(DURATION, Duration::from_secs);
        let silent = self.since.is_some_and(|since| now.duration_since(since) >= duration);
        if holder.is_empty() || holder == identity || silent { Claimable::Yes } else { Claimable::No }
    }
}

/// A candidate for the Lease, then its holder.
#[derive(Debug, Clone)]
pub struct Elector {
    leases: Api<Lease>,
    name: String,
    identity: String,
}

impl Elector {
    /// A candidate for a Lease of a namespace. `identity` must be another one in every process.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str) -> Self {
        Elector { leases: Api::namespaced(client, namespace), name: name.to_owned(), identity: identity.to_owned() }
    }

    /// Waits until the Lease is ours. Errors are logged and tried again: a candidate has nothing to lose.
    pub async fn acquire(&self) {
        let mut seen = Seen::default();
        loop {
            match self.try_acquire(&mut seen).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the leader's Lease could not be taken"),
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn try_acquire(&self, seen: &mut Seen) -> Result<bool, ApiError> {
        let current = found(call_within(CALL, "read the Lease", self.leases.get(&self.name)).await)?;
        let written = match current {
            None => {
                let lease = Lease {
                    metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
                    spec: Some(self.spec(None, true)),
                };
                call_within(CALL, "create the Lease", self.leases.create(&PostParams::default(), &lease)).await
            }
            Some(lease) => {
                if seen.judge(&lease, &self.identity, Instant::now()) == Claimable::No {
                    return Ok(false);
                }
                self.replace(&lease, true).await
            }
        };
        match written {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() || error.exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Renews until renewal fails for too long; then says why. The caller ends its process.
    pub async fn hold(&self) -> &'static str {
        let mut renewed = tokio::time::Instant::now();
        loop {
            match tokio::time::timeout_at(renewed + RENEW_DEADLINE, self.renew_once()).await {
                Ok(Some(begun)) => renewed = begun,
                Ok(None) => return "another process holds the leader's Lease",
                Err(_) => return "the leader's Lease could not be renewed in time",
            }
        }
    }

    /// The next renewal: when it was begun, or `None` when somebody else holds the Lease. Failures are tried again.
    async fn renew_once(&self) -> Option<tokio::time::Instant> {
        loop {
            tokio::time::sleep(PERIOD).await;
            let begun = tokio::time::Instant::now();
            match self.renew().await {
                Ok(true) => return Some(begun),
                Ok(false) => return None,
                Err(error) => tracing::warn!(%error, "the leader's Lease could not be renewed"),
            }
        }
    }

    async fn renew(&self) -> Result<bool, ApiError> {
        let Some(lease) = found(call_within(CALL, "read the Lease", self.leases.get(&self.name)).await)? else {
            return Ok(false);
        };
        if self.is_holder(&lease) {
            match self.replace(&lease, false).await {
                Ok(_) => Ok(true),
                // Somebody else wrote it: the next look says who.
                Err(error) if error.is_conflict() => Ok(false),
                Err(error) => Err(error),
            }
        } else {
            Ok(false)
        }
    }

    /// Gives the Lease back, so that the next candidate need not wait. Best effort: it expires by itself.
    pub async fn release(&self) {
        let released = async {
            let Some(mut lease) = found(call_within(CALL, "read the Lease", self.leases.get(&self.name)).await)? else {
                return Ok::<(), ApiError>(());
            };
            if self.is_holder(&lease) {
                if let Some(spec) = lease.spec.as_mut() {
                    spec.holder_identity = Some(String::new());
                }
                let parameters = PostParams::default();
                let answer = self.leases.replace(&self.name, &parameters, &lease);
                call_within(CALL, "release the Lease", answer).await?;
            }
            Ok(())
        };
        if let Err(error) = released.await {
            tracing::warn!(%error, "the leader's Lease was not released; it expires");
        }
    }

    fn is_holder(&self, lease: &Lease) -> bool {
        lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) == Some(self.identity.as_str())
    }

    async fn replace(&self, lease: &Lease, taken: bool) -> Result<Lease, ApiError> {
        let mut next = lease.clone();
        next.spec = Some(self.spec(lease.spec.as_ref(), taken));
        call_within(CALL, "renew the Lease", self.leases.replace(&self.name, &PostParams::default(), &next)).await
    }

    fn spec(&self, old: Option<&LeaseSpec>, taken: bool) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let transitions = old.and_then(|old| old.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: if taken { Some(now.clone()) } else { old.and_then(|old| old.acquire_time.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(transitions.saturating_add(i32::from(taken))),
            ..LeaseSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(version: &str, holder: &str) -> Lease {
        Lease {
            metadata: ObjectMeta { resource_version: Some(version.into()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(20),
                ..LeaseSpec::default()
            }),
        }
    }

    #[test]
    fn a_lease_is_taken_only_after_its_duration_passed_without_a_change() {
        let begin = Instant::now();
        let mut seen = Seen::default();
        assert_eq!(seen.judge(&lease("1", "other"), "me", begin), Claimable::No);
        assert_eq!(seen.judge(&lease("1", "other"), "me", begin + Duration::from_secs(19)), Claimable::No);
        assert_eq!(seen.judge(&lease("2", "other"), "me", begin + Duration::from_secs(21)), Claimable::No, "renewed");
        assert_eq!(seen.judge(&lease("2", "other"), "me", begin + Duration::from_secs(42)), Claimable::Yes);
        assert_eq!(Seen::default().judge(&lease("1", ""), "me", begin), Claimable::Yes, "released");
        assert_eq!(Seen::default().judge(&lease("1", "me"), "me", begin), Claimable::Yes, "ours");
    }

    #[test]
    fn a_holder_ends_before_anybody_else_may_begin() {
        assert!(RENEW_DEADLINE < DURATION);
        assert!(crate::api::CALL_DEADLINE < DURATION);
    }
}
