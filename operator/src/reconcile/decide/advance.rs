//! From what is known to the next step: who is let go, taken up, created, stopped or waited for.

use super::codes;
use super::conclude;
use super::observation::{Claim, Competitor, Death, Life, Observation, Pod};
use super::state::{Cancel, Outcome, Run, State, Worker};
use super::{Step, Wait};
use crate::crd::condition::Reason;
use crate::crd::status::WorkerPhase;

/// Ended pods that stay for their logs, besides the current one.
const KEPT_PODS: usize = 3;

pub(super) fn advance(look: &Observation, state: &mut State) -> (Step, Wait) {
    if let Some(found) = others(look, state) {
        return found;
    }
    if look.deleting {
        return remove(look, state);
    }
    if let Some(pod) = expiries(look, state).find_map(|(at, pod)| (at <= look.now).then_some(pod)) {
        return (Step::RemovePod { name: pod.name.clone(), uid: pod.uid.clone() }, Wait::Step);
    }
    match &state.run {
        Some(run) if run.rest.is_none() => {}
        Some(run) if run.token == look.wish.token || !run.is_settled() => return (Step::Nothing, Wait::AtRest),
        Some(run) if look.used_tokens.contains(&look.wish.token) && run.is_settled() => {
            return (Step::Nothing, Wait::TokenUsed);
        }
        _ => match &look.wish.plan {
            Err(rejection) => return (Step::Nothing, Wait::Rejected(rejection.clone())),
            Ok(plan) => {
                let run = state.run.insert(Run::new(&look.wish.token, plan, look.now));
                conclude::begin(run, state.epoch, look.now);
            }
        },
    }
    drive(look, state)
}

/// Pods that are not the one that is meant to run: read ones are let go, and none may act beside it.
fn others(look: &Observation, state: &State) -> Option<(Step, Wait)> {
    let current = state.run.as_ref().and_then(|run| run.worker.as_ref());
    let is_current = |pod: &&Pod| {
        current.is_some_and(|worker| {
            pod.worker == Some(worker.id) && worker.uid.as_ref().is_none_or(|uid| *uid == pod.uid)
        })
    };
    let mut others: Vec<&Pod> = look.pods.iter().filter(|pod| !is_current(pod)).collect();
    if let Some(pod) = others.iter().find(|pod| pod.unread && !pod.life.may_act()) {
        return Some((Step::ReleasePod { name: pod.name.clone(), uid: pod.uid.clone() }, Wait::Step));
    }
    if let Some(pod) = others.iter().find(|pod| pod.life.may_act()) {
        let name = pod.name.clone();
        return Some(match pod.life {
            Life::Unreachable => (Step::Nothing, Wait::Unreachable { pod: name }),
            _ if pod.deleting => (Step::Nothing, Wait::Draining { pod: name }),
            _ => {
                let step = Step::StopPod { name: name.clone(), uid: pod.uid.clone(), only_unstarted: false };
                (step, Wait::Draining { pod: name })
            }
        });
    }
    others.retain(|pod| !pod.deleting);
    others.sort_by(|a, b| (b.created_at, &b.name).cmp(&(a.created_at, &a.name)));
    let kept = if look.deleting && state.run.as_ref().is_none_or(|run| run.rest.is_some()) { 0 } else { KEPT_PODS };
    let pod = others.get(kept)?;
    Some((Step::RemovePod { name: pod.name.clone(), uid: pod.uid.clone() }, Wait::Step))
}

/// Ended pods of a run at rest that do not stay for ever, with the time at which each goes.
fn expiries<'a>(look: &'a Observation, state: &State) -> impl Iterator<Item = (i64, &'a Pod)> {
    let rests = state.run.as_ref().is_some_and(|run| run.rest.is_some());
    look.wish.retention_seconds.filter(|_| rests).into_iter().flat_map(|seconds| {
        look.pods.iter().filter(|pod| !pod.unread && !pod.deleting).filter_map(move |pod| {
            let ended = match &pod.life {
                Life::Dead(Death::Ended { finished_at, .. }) => *finished_at,
                Life::Dead(Death::NeverStarted) | Life::Lost => pod.created_at,
                Life::Pending(_) | Life::Running | Life::Unreachable => return None,
            };
            Some((ended.saturating_add(seconds), pod))
        })
    })
}

/// When the next ended pod goes.
pub(super) fn next_expiry(look: &Observation, state: &State) -> Option<i64> {
    expiries(look, state).map(|(at, _)| at).min()
}

/// Goes on with the current run.
fn drive(look: &Observation, state: &mut State) -> (Step, Wait) {
    let State { run: Some(run), claim, .. } = state else { return (Step::Nothing, Wait::AtRest) };
    let Some(worker) = &mut run.worker else { return (Step::Nothing, Wait::Recording) };
    match look.pods.iter().find(|pod| pod.worker == Some(worker.id)) {
        Some(pod) => supervise(look, run.started_at, worker, pod),
        None => {
            let (step, wait) = launch(look, claim.as_deref(), run);
            // What cannot start before a person has done something keeps nobody else from the target.
            if wait.needs_a_person()
                && let Some(worker) = run.worker.as_mut().filter(|worker| opens_source(worker))
            {
                worker.granted = false;
            }
            (step, wait)
        }
    }
}

/// Whether a pod would open the source, or prepares to: what suspension, deadline and deletion cancel.
fn opens_source(worker: &Worker) -> bool {
    !worker.settling && matches!(worker.id.phase, WorkerPhase::Admit | WorkerPhase::Extract)
}

fn deadline_passed(look: &Observation, started_at: i64) -> bool {
    look.wish.deadline_seconds.is_some_and(|seconds| look.now >= started_at.saturating_add(seconds))
}

/// A pod that exists and has not ended.
fn supervise(look: &Observation, started_at: i64, worker: &mut Worker, pod: &Pod) -> (Step, Wait) {
    let unstarted = matches!(pod.life, Life::Pending(_)) && !worker.started;
    // The container was faster than its replacement: a worker that has started is not stopped for a template.
    if !unstarted && !pod.deleting && worker.cancel == Some(Cancel::Replaced) {
        worker.cancel = None;
    }
    let cancel = if opens_source(worker) && look.deleting {
        Some(Cancel::Deletion)
    } else if opens_source(worker) && deadline_passed(look, started_at) {
        Some(Cancel::Deadline)
    } else if opens_source(worker) && worker.id.phase == WorkerPhase::Extract && look.wish.suspend {
        Some(Cancel::Suspend)
    } else if unstarted && pod.template != look.wish.template {
        Some(Cancel::Replaced)
    } else {
        None
    };
    // A deletion outweighs what came before it; everything else stays as it was said first.
    if worker.cancel.is_none() || cancel == Some(Cancel::Deletion) {
        worker.cancel = cancel.or(worker.cancel);
    }
    let step = match worker.cancel {
        Some(cause) if !pod.deleting => {
            Step::StopPod { name: pod.name.clone(), uid: pod.uid.clone(), only_unstarted: cause == Cancel::Replaced }
        }
        _ => Step::Nothing,
    };
    let wait = match (&pod.life, worker.cancel) {
        (Life::Unreachable, _) => Wait::Unreachable { pod: pod.name.clone() },
        (_, Some(cause)) => Wait::Stopping(cause),
        (Life::Pending(trouble), None) => Wait::Starting(trouble.clone()),
        (_, None) => Wait::Working,
    };
    (step, wait)
}

/// The pod of status does not exist yet: everything that has to be true before it may.
fn launch(look: &Observation, claim: Option<&str>, run: &mut Run) -> (Step, Wait) {
    let Some(worker) = &mut run.worker else { return (Step::Nothing, Wait::AtRest) };
    if opens_source(worker) {
        if deadline_passed(look, run.started_at) {
            conclude::abandon(run, codes::DEADLINE_EXCEEDED, look.now);
            return (Step::Nothing, Wait::AtRest);
        }
        if look.wish.suspend {
            worker.granted = false;
            return (Step::Nothing, Wait::Suspended);
        }
    }
    match &look.wish.plan {
        Err(rejection) => return (Step::Nothing, Wait::Unbuildable(rejection.clone())),
        Ok(plan) if worker.id.phase != WorkerPhase::Inspect && *plan != run.plan => {
            return (Step::Nothing, Wait::PlanChanged);
        }
        Ok(_) => {}
    }
    if !look.guarded {
        // A resource that is being deleted takes no new finalizer, and without it nothing may be begun.
        let step = if look.deleting { Step::Nothing } else { Step::Guard };
        return (step, Wait::Step);
    }
    let begun = !run.custody.is_clear() || run.sealed.is_some();
    match &look.claim {
        Claim::Absent if begun => return (Step::Nothing, Wait::JournalLost),
        Claim::Absent => return (Step::CreateClaim, Wait::Step),
        Claim::Foreign => {
            return (Step::Nothing, Wait::JournalUnusable("a claim of its name belongs to something else"));
        }
        Claim::Present { lost: true, .. } => return (Step::Nothing, Wait::JournalLost),
        Claim::Present { uid, .. } if begun && claim.is_some_and(|seen| seen != uid) => {
            return (Step::Nothing, Wait::JournalLost);
        }
        // A namespace takes its claims with it.
        Claim::Present { deleting: true, .. } if look.deleting => return (Step::Nothing, Wait::NamespaceTerminating),
        Claim::Present { deleting: true, .. } => {
            return (Step::Nothing, Wait::JournalUnusable("the claim is being deleted, so no pod can use it any more"));
        }
        // Why only once: a class that forbids expansion must not keep the run from what its volume has room for.
        Claim::Present { uid, short: true, .. } if !look.deleting && look.refused.is_none() => {
            return (Step::GrowClaim { uid: uid.clone() }, Wait::Step);
        }
        Claim::Present { .. } => {}
    }
    if look.now < worker.not_before {
        return (Step::Nothing, Wait::Backoff { until: worker.not_before });
    }
    if worker.id.phase == WorkerPhase::Extract && !worker.settling && !worker.granted {
        if let Some(other) = before_us(look) {
            let standing = other.standing;
            let other = (other.namespace == look.namespace).then(|| other.name.clone());
            return (Step::Nothing, Wait::TargetBusy { other, standing });
        }
        worker.granted = true;
    }
    if worker.id.phase == WorkerPhase::Publish && run.publication.outcome == Outcome::RolledBack {
        let stored = look.state.run.as_ref().map(|run| run.publication.outcome);
        if stored == Some(Outcome::Unknown) {
            return (Step::Nothing, Wait::Recording);
        }
        run.publication.outcome = Outcome::Intent;
    }
    if look.refused.as_ref().is_some_and(|refused| refused.reason == Reason::NamespaceTerminating) {
        return (Step::Nothing, Wait::NamespaceTerminating);
    }
    (Step::CreatePod(worker.clone()), Wait::Step)
}

/// The transfer that uses our target, or has the older right to it.
fn before_us(look: &Observation) -> Option<&Competitor> {
    let ours = (look.created_at, look.uid.as_str());
    let older = |other: &&Competitor| (other.created_at, other.uid.as_str()) < ours;
    look.competitors
        .iter()
        .find(|other| other.standing.occupies())
        .or_else(|| look.competitors.iter().filter(older).min_by_key(|other| (other.created_at, other.uid.as_str())))
}

/// What rows that are sealed wait for in a deletion: a word, where a pod could still follow it.
fn held(look: &Observation) -> Wait {
    match look.claim {
        Claim::Present { deleting: true, .. } => Wait::NamespaceTerminating,
        _ => Wait::HeldInDeletion,
    }
}

/// The resource is being deleted: extraction is cancelled, publication waited for, custody settled; then all is let go.
fn remove(look: &Observation, state: &mut State) -> (Step, Wait) {
    if !look.guarded {
        return (Step::Nothing, Wait::Released);
    }
    if let Some(run) = state.run.as_mut() {
        if let Some(worker) = &run.worker {
            let exists = look.pods.iter().any(|pod| pod.worker == Some(worker.id));
            if !exists && opens_source(worker) {
                conclude::abandon(run, codes::CANCELLED, look.now);
                if let Some(found) = others(look, state) {
                    return found;
                }
            } else if !exists
                && worker.id.phase == WorkerPhase::Publish
                && !look.wish.publish_on_delete
                && !matches!(run.publication.outcome, Outcome::Unknown | Outcome::Committed)
            {
                return (Step::Nothing, held(look));
            } else {
                return drive(look, state);
            }
        } else if run.rest.is_none() && run.is_settled() {
            let code = run.failure.as_ref().map_or(codes::CANCELLED, |failure| failure.code.as_str()).to_owned();
            conclude::abandon(run, &code, look.now);
        }
        if state.run.as_ref().is_some_and(|run| !run.is_settled()) {
            return (Step::Nothing, held(look));
        }
    }
    match &look.claim {
        Claim::Present { uid, guarded, deleting, .. } if *guarded || !*deleting => {
            (Step::ReleaseClaim { uid: uid.clone() }, Wait::Step)
        }
        _ => (Step::Unguard, Wait::Released),
    }
}
