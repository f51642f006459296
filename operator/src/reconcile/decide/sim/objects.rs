//! What the API server holds and what really runs behind it.

use super::super::observation::{Death, Life, Receipt};
use super::super::state::{Outcome, Run, WorkerId};

/// The process of a pod, as it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Process {
    Waiting,
    Alive,
    Ended,
}

#[derive(Debug, Clone)]
pub(super) struct SimPod {
    pub(super) token: String,
    pub(super) id: WorkerId,
    pub(super) uid: String,
    pub(super) template: String,
    pub(super) created_at: i64,
    /// The object exists.
    pub(super) object: bool,
    pub(super) unread: bool,
    pub(super) deleting: bool,
    /// Its node answers.
    pub(super) reachable: bool,
    pub(super) process: Process,
    pub(super) ever_started: bool,
    /// Its container was lost by a kubelet that was down.
    pub(super) lost: bool,
    pub(super) claimed: bool,
    pub(super) terminated: bool,
    pub(super) message: Option<Receipt>,
    /// A person took the object away while nobody could say whether it acts.
    pub(super) vanished: bool,
}

/// The resource's own rules over status, as the API server enforces them.
pub(super) fn rules(old: &Run, new: &Run) {
    let (before, after) = (old.publication.outcome, new.publication.outcome);
    if (&old.token, old.attempt) == (&new.token, new.attempt) {
        let legal = before == after
            || matches!(before, Outcome::NotBegun | Outcome::Intent | Outcome::RolledBack)
                && after != Outcome::NotBegun
            || before == Outcome::Unknown && matches!(after, Outcome::Committed | Outcome::RolledBack);
        assert!(legal, "outcome {before:?} to {after:?}");
    } else {
        let known = matches!(before, Outcome::NotBegun | Outcome::RolledBack)
            || before == Outcome::Committed && old.token != new.token;
        assert!(known, "attempt left with outcome {before:?}");
    }
}

impl SimPod {
    pub(super) fn name(&self) -> String {
        format!("{}-{}-{}-{}", self.token, self.id.phase.as_str(), self.id.attempt, self.id.r#try)
    }

    pub(super) fn life(&self) -> Life {
        match self.process {
            _ if !self.reachable => Life::Unreachable,
            _ if self.lost => Life::Lost,
            Process::Waiting if self.deleting => Life::Dead(Death::NeverStarted),
            Process::Waiting => Life::Pending(None),
            Process::Alive => Life::Running,
            Process::Ended if self.ever_started => {
                Life::Dead(Death::Ended { exit_code: 0, reason: String::new(), finished_at: 0 })
            }
            Process::Ended => Life::Dead(Death::NeverStarted),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct SimClaim {
    pub(super) uid: String,
    pub(super) guarded: bool,
    pub(super) deleting: bool,
}
