//! The decision: from one look at the cluster to the status that should stand and the one step that follows.
//!
//! Pure: no clock, no network, no randomness. Who performs it writes the status first, with compare-and-swap, and takes
//! the step only when that was stored; so a process that dies between the two leaves an intent that the next look finds.
//!
//! 1. `absorb`: what became of the pod that was meant to run ([`conclude`]).
//! 2. [`advance`]: read pods are let go; a run is taken up; the next pod is created, or stopped, or waited for.
//! 3. [`report`]: phase and conditions, derived from what stands now.

mod advance;
pub mod codes;
mod conclude;
mod notes;
pub mod observation;
mod report;
pub mod state;

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;

use observation::{Claim, Death, Life, Observation, Rejection, Standing, Trouble};
use state::{Cancel, State, Worker};

use self::conclude::{Circumstances, End};
pub use self::notes::Note;

/// What is done next, at most one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing; it is waited.
    Nothing,
    /// Our finalizer goes onto the resource, before its first child exists.
    Guard,
    /// The journal's claim is created, with its finalizer.
    CreateClaim,
    /// The pod of status is created.
    CreatePod(Worker),
    /// A pod is asked to stop; its finalizer keeps its result.
    StopPod {
        /// Name.
        name: String,
        /// UID: no other pod of that name is meant.
        uid: String,
        /// Only as long as none of its containers has started.
        only_unstarted: bool,
    },
    /// A pod whose end is in status loses its finalizer.
    ReleasePod {
        /// Name.
        name: String,
        /// UID.
        uid: String,
    },
    /// An old pod whose end is in status is removed.
    RemovePod {
        /// Name.
        name: String,
        /// UID.
        uid: String,
    },
    /// The claim asks for `spec.journal.size`, which has grown.
    GrowClaim {
        /// UID.
        uid: String,
    },
    /// The claim is deleted and loses its finalizer.
    ReleaseClaim {
        /// UID.
        uid: String,
    },
    /// The resource loses our finalizer: nothing of it is left.
    Unguard,
}

/// What the transfer waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The spec is refused.
    Rejected(Rejection),
    /// The spec of a run that has begun: its next pod cannot be built from it.
    Unbuildable(Rejection),
    /// A step of ours.
    Step,
    /// What was learned to be stored, before anything is built on it.
    Recording,
    /// The end of the running pod.
    Working,
    /// The start of the created pod.
    Starting(Option<Trouble>),
    /// The end of a pod that was asked to stop.
    Stopping(Cancel),
    /// The time of the next try.
    Backoff {
        /// Seconds since the epoch.
        until: i64,
    },
    /// Another transfer to the same target; its name only when it is of the same namespace.
    TargetBusy {
        /// The other one.
        other: Option<String>,
        /// What it means to the target.
        standing: Standing,
    },
    /// A token that was never used.
    TokenUsed,
    /// The namespace is being deleted and takes no pod any more.
    NamespaceTerminating,
    /// `spec.suspend` to be lifted.
    Suspended,
    /// Proof that a pod has ended.
    Unreachable {
        /// Its name.
        pod: String,
    },
    /// A pod that is not meant to run, to end.
    Draining {
        /// Its name.
        pod: String,
    },
    /// The journal's claim or volume is gone although custody is held.
    JournalLost,
    /// The claim is usable: it belongs to something else, or is being deleted.
    JournalUnusable(&'static str),
    /// The plan made from the resource is another one than the run's.
    PlanChanged,
    /// A person's word: custody is held and the resource is being deleted.
    HeldInDeletion,
    /// Nothing; a new token starts again.
    AtRest,
    /// Nothing; the resource may go.
    Released,
}

impl Wait {
    /// Whether no pod can be created before somebody has changed something.
    fn needs_a_person(&self) -> bool {
        matches!(
            self,
            Wait::Unbuildable(_)
                | Wait::PlanChanged
                | Wait::JournalLost
                | Wait::JournalUnusable(_)
                | Wait::NamespaceTerminating
        )
    }
}

/// What follows from one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Status that should stand.
    pub state: State,
    /// The step, after the status was stored.
    pub step: Step,
    /// What is waited for.
    pub wait: Wait,
    /// Look again after so many seconds even when nothing is reported; never when none.
    pub again_after: Option<i64>,
    /// What is worth an event.
    pub notes: Vec<Note>,
}

/// Decides.
pub fn decide(look: &Observation) -> Decision {
    let mut state = look.state.clone();
    state.observed_generation = look.generation;
    absorb(look, &mut state);
    if let (Some(run), Some(stored)) = (state.run.as_mut(), look.state.run.as_ref()) {
        let around = Circumstances { wish: &look.wish, deleting: look.deleting, now: look.now };
        if !look.deleting {
            conclude::next_attempt(run, stored, state.epoch, around);
        }
    }
    let (step, wait) = advance::advance(look, &mut state);
    report::project(look, &wait, &mut state);
    let again_after = again_after(look, &state, &step, &wait);
    let notes = notes::between(&look.state, &state);
    Decision { state, step, wait, again_after, notes }
}

/// Takes what became of the claim and of the pod that was meant to run into the state.
fn absorb(look: &Observation, state: &mut State) {
    if let Claim::Present { uid, lost: false, .. } = &look.claim {
        let clear = state.run.as_ref().is_none_or(|run| run.custody.is_clear() && run.sealed.is_none());
        if state.claim.is_none() || clear {
            state.claim = Some(uid.clone());
        }
    }
    let Some(run) = state.run.as_mut() else { return };
    let Some(worker) = run.worker.as_mut() else { return };
    let pod = look.pods.iter().find(|pod| pod.worker == Some(worker.id));
    let known = worker.uid.as_deref();
    let end = match pod {
        None if known.is_none() => return,
        None => End::Silent(None),
        Some(pod) if known.is_some_and(|uid| uid != pod.uid) => End::Silent(None),
        Some(pod) => {
            worker.uid = Some(pod.uid.clone());
            worker.started |= matches!(pod.life, Life::Running | Life::Lost | Life::Dead(Death::Ended { .. }));
            match (&pod.life, &pod.receipt) {
                (Life::Dead(Death::Ended { .. }), Some(receipt)) => End::Receipt(receipt),
                (Life::Dead(Death::Ended { exit_code, reason, .. }), None) => End::Silent(Some((reason, *exit_code))),
                (Life::Lost, _) => End::Silent(None),
                // A kubelet may refuse again what it ran before it was restarted.
                (Life::Dead(Death::NeverStarted), _) if worker.started => End::Silent(None),
                (Life::Dead(Death::NeverStarted), _) => End::NeverStarted,
                (Life::Pending(_) | Life::Running | Life::Unreachable, _) => return,
            }
        }
    };
    let around = Circumstances { wish: &look.wish, deleting: look.deleting, now: look.now };
    conclude::conclude(run, &mut state.epoch, end, around);
}

/// How often a pod that has not started is looked at: events about it are not watched.
const STARTING_SECONDS: i64 = 10;
/// How often a condition is looked at that no watch reports.
const POLL_SECONDS: i64 = 30;

fn again_after(look: &Observation, state: &State, step: &Step, wait: &Wait) -> Option<i64> {
    if *step != Step::Nothing || *wait == Wait::Recording {
        return Some(0);
    }
    let deadline = state
        .run
        .as_ref()
        .filter(|run| run.rest.is_none() && run.sealed.is_none())
        .and_then(|run| Some(run.started_at.saturating_add(look.wish.deadline_seconds?) - look.now))
        .filter(|seconds| *seconds > 0);
    let own = match wait {
        Wait::Backoff { until } => Some((until - look.now).max(1)),
        Wait::Starting(_) | Wait::TargetBusy { .. } => Some(STARTING_SECONDS),
        Wait::Unreachable { .. }
        | Wait::Draining { .. }
        | Wait::Stopping(_)
        | Wait::JournalLost
        | Wait::JournalUnusable(_)
        | Wait::Working
        | Wait::Recording
        | Wait::Step => Some(POLL_SECONDS),
        Wait::AtRest | Wait::TokenUsed => advance::next_expiry(look, state).map(|at| (at - look.now).max(1)),
        Wait::Rejected(_)
        | Wait::Unbuildable(_)
        | Wait::Suspended
        | Wait::PlanChanged
        | Wait::NamespaceTerminating
        | Wait::HeldInDeletion
        | Wait::Released => None,
    };
    match (own, deadline) {
        (Some(own), Some(deadline)) => Some(own.min(deadline)),
        (own, deadline) => own.or(deadline),
    }
}
