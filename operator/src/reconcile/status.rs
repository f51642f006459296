//! Between what decisions know ([`State`]) and what the resource shows ([`NativeTransferStatus`]).
//!
//! Reading back gives the state that was written: status is the memory between two looks. What is only shown (effective
//! values, progress, history) is added here and never read by a decision.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::build::Owner;
use super::decide::state::{
    Cancel, Condition, Custody, Failure, Outcome, Publication, Rest, Run, Sealed, State, Tries, Worker, WorkerId,
};
use crate::crd::condition::{self, ConditionType, Reason, Verdict};
use crate::crd::status::{
    self as crd, CustodyState, CustodyStatus, EOF_INLINE_BYTES_MAX, EffectiveStatus, EofStatus, HISTORY_MAX,
    HistoryEntry, JournalStatus, NativeTransferStatus, Phase, ProgressStatus, PublicationStatus, RetryStatus,
    RunStatus, TriesStatus, WorkerState, WorkerStatus,
};
use crate::names;
use contract::worker::RunTag;

/// Seconds since the epoch of a time in status; its fraction is dropped.
pub fn seconds(time: &Time) -> i64 {
    time.0.as_second()
}

/// A time of status; times beyond the calendar become its end.
pub fn time(seconds: i64) -> Time {
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

fn small(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

/// What is shown besides the state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    /// What applies where the spec says nothing; the old one stays where `None`.
    pub effective: Option<EffectiveStatus>,
    /// How far the current pod has come; the old one stays where `None`.
    pub worker: Option<WorkerState>,
}

/// The state that a status holds.
pub fn read(status: Option<&NativeTransferStatus>) -> State {
    let Some(status) = status else { return State::default() };
    State {
        observed_generation: status.observed_generation.unwrap_or_default(),
        epoch: status.epoch.map_or(0, count),
        claim: status.custody.as_ref().and_then(|custody| custody.journal.as_ref()?.uid.clone()),
        run: status.run.as_ref().map(|run| read_run(status, run)),
        phase: status.phase,
        conditions: status.conditions.iter().filter_map(read_condition).collect(),
    }
}

fn read_condition(stored: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition) -> Option<Condition> {
    let verdict =
        [Verdict::True, Verdict::False, Verdict::Unknown].into_iter().find(|v| v.as_str() == stored.status)?;
    Some(Condition {
        kind: ConditionType::from_text(&stored.type_)?,
        verdict,
        reason: Reason::from_text(&stored.reason)?,
        message: stored.message.clone(),
    })
}

fn read_run(status: &NativeTransferStatus, run: &RunStatus) -> Run {
    let custody = status.custody.as_ref();
    let publication = status.publication.as_ref();
    let tries = run.tries.unwrap_or_default();
    let code = || run.result_code.clone().unwrap_or_default();
    Run {
        token: run.token.clone(),
        plan: run.plan_sha256.clone().unwrap_or_default(),
        started_at: run.started_at.as_ref().map_or(0, seconds),
        ended_at: run.finished_at.as_ref().map(seconds),
        attempt: small(run.attempt).max(1),
        spent: run.spent_attempts.map_or(0, small),
        tries: Tries {
            admit: small(tries.admit),
            extract: small(tries.extract),
            publish: small(tries.publish),
            inspect: small(tries.inspect),
        },
        worker: status.worker.as_ref().filter(|worker| worker.state != WorkerState::Terminated).map(read_worker),
        target: custody.and_then(|custody| custody.target.clone()),
        workload: publication.and_then(|publication| publication.workload_sha256.clone()),
        custody: match custody.and_then(|custody| custody.state) {
            None | Some(CustodyState::None) => Custody::None,
            Some(CustodyState::Held) => Custody::Held,
            Some(CustodyState::Released) => Custody::Released,
            Some(CustodyState::Unknown) => Custody::Unknown,
        },
        sealed: custody.and_then(|custody| {
            let eof = custody.eof.as_ref();
            Some(Sealed {
                rows: count(custody.rows?),
                sha256: eof.map(|eof| eof.sha256.clone()),
                descriptor: eof.and_then(|eof| eof.inline.clone()),
            })
        }),
        publication: publication.map(read_publication).unwrap_or_default(),
        failure: status.retry.as_ref().map(|retry| Failure {
            code: retry.code.clone().unwrap_or_default(),
            count: small(retry.failures),
            cause: retry.cause.clone(),
            at: retry.at.as_ref().map_or(0, seconds),
        }),
        rest: match run.result {
            Some(Phase::Succeeded) => Some(Rest::Succeeded),
            Some(Phase::Failed) => Some(Rest::Failed { code: code() }),
            Some(Phase::ReextractRequired) => Some(Rest::ReextractRequired { code: code() }),
            _ => None,
        },
    }
}

fn read_worker(worker: &WorkerStatus) -> Worker {
    Worker {
        id: WorkerId { attempt: small(worker.attempt), phase: worker.phase, r#try: small(worker.try_) },
        uid: worker.uid.clone(),
        started: worker.started_at.is_some(),
        settling: worker.settling.unwrap_or_default(),
        granted: worker.granted.unwrap_or_default(),
        epoch_floor: count(worker.epoch_floor),
        not_before: worker.not_before.as_ref().map_or(0, seconds),
        inspects: worker.inspects,
        cancel: worker.cancel.as_deref().and_then(|text| Cancel::ALL.into_iter().find(|cause| cause.text() == text)),
    }
}

fn read_publication(publication: &PublicationStatus) -> Publication {
    Publication {
        outcome: match publication.outcome {
            crd::Outcome::Intended => Outcome::Intent,
            crd::Outcome::Committed => Outcome::Committed,
            crd::Outcome::RolledBack | crd::Outcome::Retired => Outcome::RolledBack,
            crd::Outcome::Unknown => Outcome::Unknown,
        },
        intent_at: publication.intended_at.as_ref().map(seconds),
        receipt_id: publication.receipt_id.clone(),
        committed_at: publication.committed_at.clone(),
        evidence: publication.evidence_sha256.clone(),
    }
}

/// The status that shows a state, with the old one's history, progress and transition times.
pub fn write(
    owner: &Owner<'_>,
    state: &State,
    old: Option<&NativeTransferStatus>,
    shown: Shown,
    now: i64,
) -> NativeTransferStatus {
    let run = state.run.as_ref();
    let worker = run.and_then(|run| write_worker(owner, run, old, shown.worker, now));
    let same_pod = old.and_then(|old| old.worker.as_ref()).map(|worker| &worker.pod) == worker.as_ref().map(|w| &w.pod);
    NativeTransferStatus {
        observed_generation: Some(state.observed_generation),
        phase: state.phase,
        effective: shown.effective.or_else(|| old.and_then(|old| old.effective.clone())),
        epoch: (state.epoch > 0 || old.is_some_and(|old| old.epoch.is_some())).then(|| number(state.epoch)),
        run: run.map(|run| write_run(owner, run)),
        progress: old
            .and_then(|old| old.progress.clone())
            .filter(|_: &ProgressStatus| same_pod && run.is_some_and(|run| run.rest.is_none())),
        worker,
        retry: run.and_then(|run| run.failure.as_ref()).map(|failure| RetryStatus {
            failures: i64::from(failure.count),
            at: Some(time(failure.at)),
            code: Some(failure.code.clone()),
            cause: failure.cause.clone(),
        }),
        custody: run.map(|run| write_custody(owner, state, run)),
        publication: run.and_then(write_publication),
        conditions: write_conditions(state, old, now),
        history: history(state, old),
    }
}

fn write_run(owner: &Owner<'_>, run: &Run) -> RunStatus {
    let id = names::run_id(owner.uid, &run.token, i64::from(run.attempt));
    let (result, result_code) = match &run.rest {
        None => (None, None),
        Some(Rest::Succeeded) => (Some(Phase::Succeeded), None),
        Some(Rest::Failed { code }) => (Some(Phase::Failed), Some(code.clone())),
        Some(Rest::ReextractRequired { code }) => (Some(Phase::ReextractRequired), Some(code.clone())),
    };
    RunStatus {
        token: run.token.clone(),
        tag: RunTag::of(&id).to_string(),
        id,
        plan_sha256: Some(run.plan.clone()),
        attempt: i64::from(run.attempt),
        started_at: Some(time(run.started_at)),
        finished_at: run.ended_at.map(time),
        spent_attempts: (run.spent > 0).then(|| i64::from(run.spent)),
        tries: Some(TriesStatus {
            admit: i64::from(run.tries.admit),
            extract: i64::from(run.tries.extract),
            publish: i64::from(run.tries.publish),
            inspect: i64::from(run.tries.inspect),
        }),
        result,
        result_code,
    }
}

/// The current pod; at rest the last one, shown as terminated.
fn write_worker(
    owner: &Owner<'_>,
    run: &Run,
    old: Option<&NativeTransferStatus>,
    shown: Option<WorkerState>,
    now: i64,
) -> Option<WorkerStatus> {
    let before = old.and_then(|old| old.worker.as_ref());
    let Some(worker) = &run.worker else {
        return before.cloned().map(|mut last| {
            last.finished_at = last.finished_at.or_else(|| last.uid.is_some().then(|| time(now)));
            WorkerStatus { state: WorkerState::Terminated, ..last }
        });
    };
    let (attempt, r#try) = (i64::from(worker.id.attempt), i64::from(worker.id.r#try));
    let pod = names::pod(owner.uid, &run.token, worker.id.phase, attempt, r#try);
    let same = before.filter(|before| before.pod == pod);
    Some(WorkerStatus {
        phase: worker.id.phase,
        attempt,
        try_: r#try,
        epoch_floor: number(worker.epoch_floor),
        state: match (&worker.uid, shown) {
            (None, _) => WorkerState::Intended,
            (Some(_), Some(state)) if state != WorkerState::Terminated => state,
            (Some(_), _) if worker.started => WorkerState::Running,
            (Some(_), _) => WorkerState::Pending,
        },
        uid: worker.uid.clone(),
        started_at: worker.started.then(|| same.and_then(|same| same.started_at.clone()).unwrap_or_else(|| time(now))),
        finished_at: None,
        not_before: Some(time(worker.not_before)),
        settling: worker.settling.then_some(true),
        granted: worker.granted.then_some(true),
        inspects: worker.inspects,
        cancel: worker.cancel.map(|cause| cause.text().to_owned()),
        pod,
    })
}

fn write_custody(owner: &Owner<'_>, state: &State, run: &Run) -> CustodyStatus {
    let sealed = run.sealed.as_ref();
    CustodyStatus {
        state: Some(match run.custody {
            Custody::None => CustodyState::None,
            Custody::Held => CustodyState::Held,
            Custody::Released => CustodyState::Released,
            Custody::Unknown => CustodyState::Unknown,
        }),
        rows: sealed.map(|sealed| number(sealed.rows)),
        eof: sealed.and_then(|sealed| {
            Some(EofStatus {
                sha256: sealed.sha256.clone()?,
                bytes: sealed.descriptor.as_ref().map(|text| number(text.len() as u64)),
                inline: sealed.descriptor.clone().filter(|text| text.len() <= EOF_INLINE_BYTES_MAX),
            })
        }),
        target: run.target.clone(),
        journal: state
            .claim
            .as_ref()
            .map(|uid| JournalStatus { claim: names::claim(owner.uid), uid: Some(uid.clone()) }),
    }
}

fn write_publication(run: &Run) -> Option<PublicationStatus> {
    let publication = &run.publication;
    let outcome = match publication.outcome {
        Outcome::NotBegun => return None,
        Outcome::Intent => crd::Outcome::Intended,
        Outcome::Committed => crd::Outcome::Committed,
        Outcome::RolledBack => crd::Outcome::RolledBack,
        Outcome::Unknown => crd::Outcome::Unknown,
    };
    Some(PublicationStatus {
        outcome,
        intended_at: publication.intent_at.map(time),
        receipt_id: publication.receipt_id.clone(),
        committed_at: publication.committed_at.clone(),
        workload_sha256: run.workload.clone(),
        evidence_sha256: publication.evidence.clone(),
    })
}

fn write_conditions(
    state: &State,
    old: Option<&NativeTransferStatus>,
    now: i64,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    let before = old.map(|old| old.conditions.as_slice()).unwrap_or_default();
    let made = |own: &Condition| {
        let mut condition =
            condition::condition(own.kind, own.verdict, own.reason, &own.message, state.observed_generation, time(now));
        if let Some(same) = condition::find(before, own.kind).filter(|same| same.status == condition.status) {
            condition.last_transition_time = same.last_transition_time.clone();
        }
        condition
    };
    state.conditions.iter().map(made).collect()
}

/// The history with the attempt that was left, if one was.
fn history(state: &State, old: Option<&NativeTransferStatus>) -> Vec<HistoryEntry> {
    let Some(old) = old else { return Vec::new() };
    let mut history = old.history.clone();
    let (Some(before), Some(run)) = (&old.run, &state.run) else { return history };
    if (before.token.as_str(), before.attempt) != (run.token.as_str(), i64::from(run.attempt)) {
        let code = before.result_code.clone().or_else(|| old.retry.as_ref().and_then(|retry| retry.code.clone()));
        history.push(HistoryEntry {
            token: before.token.clone(),
            attempt: before.attempt,
            phase: before.result.unwrap_or(Phase::ReextractRequired),
            code: code.filter(|_| before.result != Some(Phase::Succeeded)),
            rows: old.custody.as_ref().and_then(|custody| custody.rows),
            receipt_id: old.publication.as_ref().and_then(|publication| publication.receipt_id.clone()),
            finished_at: before.finished_at.clone().or_else(|| old.retry.as_ref().and_then(|retry| retry.at.clone())),
        });
        let excess = history.len().saturating_sub(HISTORY_MAX);
        history.drain(..excess);
    }
    history
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::status::WorkerPhase;

    const OWNER: Owner<'_> = Owner { namespace: "ns", name: "t", uid: "0a6f2b1e-6c9d-4d0f-9d55-0f6f1f0e7a11" };

    fn full() -> State {
        let mut run = Run::new("1", &"a".repeat(64), 100);
        run.attempt = 2;
        run.spent = 1;
        run.tries = Tries { admit: 1, extract: 2, publish: 3, inspect: 4 };
        run.worker = Some(Worker {
            id: WorkerId { attempt: 2, phase: WorkerPhase::Inspect, r#try: 4 },
            uid: Some("pod".into()),
            started: true,
            settling: true,
            granted: true,
            epoch_floor: 9,
            not_before: 120,
            inspects: Some(WorkerPhase::Publish),
            cancel: Some(Cancel::Replaced),
        });
        run.target = Some("b".repeat(64));
        run.workload = Some("c".repeat(64));
        run.custody = Custody::Held;
        run.sealed = Some(Sealed { rows: 7, descriptor: Some("{}".into()), sha256: Some("d".repeat(64)) });
        run.publication = Publication {
            outcome: Outcome::Unknown,
            intent_at: Some(110),
            receipt_id: Some("r".into()),
            committed_at: Some("t".into()),
            evidence: Some("e".repeat(64)),
        };
        run.failure =
            Some(Failure { code: "x".into(), count: 3, cause: Some("OOMKilled, exit code 137".into()), at: 115 });
        State {
            observed_generation: 4,
            epoch: 9,
            claim: Some("claim".into()),
            run: Some(run),
            phase: Some(Phase::OutcomeUnknown),
            conditions: vec![Condition {
                kind: ConditionType::Ready,
                verdict: Verdict::Unknown,
                reason: Reason::OutcomeUnknown,
                message: "m".into(),
            }],
        }
    }

    #[test]
    fn a_state_reads_back_as_it_was_written() {
        let mut state = full();
        let status = write(&OWNER, &state, None, Shown::default(), 200);
        assert_eq!(read(Some(&status)), state);
        let text = serde_json::to_string(&status).expect("serializes");
        let stored: NativeTransferStatus = serde_json::from_str(&text).expect("reads back");
        assert_eq!(stored, status, "times keep whole seconds");
        assert_eq!(write(&OWNER, &state, Some(&stored), Shown::default(), 999), stored, "no write later");

        let run = state.run.as_mut().expect("run");
        run.worker = None;
        run.rest = Some(Rest::ReextractRequired { code: "x".into() });
        run.ended_at = Some(300);
        let rest = write(&OWNER, &state, Some(&stored), Shown::default(), 300);
        assert_eq!(read(Some(&rest)), state);
        assert_eq!(rest.worker.as_ref().map(|worker| worker.state), Some(WorkerState::Terminated));
    }

    #[test]
    fn an_attempt_that_is_left_goes_into_history() {
        let old = write(&OWNER, &full(), None, Shown::default(), 200);
        let mut state = full();
        let run = state.run.as_mut().expect("run");
        run.attempt = 3;
        run.sealed = None;
        let status = write(&OWNER, &state, Some(&old), Shown::default(), 300);
        assert_eq!(status.history.len(), 1);
        assert_eq!((status.history[0].attempt, status.history[0].rows), (2, Some(7)));
        let mut many = status.clone();
        many.history = vec![status.history[0].clone(); HISTORY_MAX];
        run_on(&mut state);
        assert_eq!(write(&OWNER, &state, Some(&many), Shown::default(), 400).history.len(), HISTORY_MAX);
    }

    fn run_on(state: &mut State) {
        state.run.as_mut().expect("run").attempt += 1;
    }

    #[test]
    fn a_transition_time_changes_with_the_status_only() {
        let mut state = full();
        let old = write(&OWNER, &state, None, Shown::default(), 200);
        state.conditions[0].message = "other".into();
        let same = write(&OWNER, &state, Some(&old), Shown::default(), 300);
        assert_eq!(seconds(&same.conditions[0].last_transition_time), 200);
        state.conditions[0].verdict = Verdict::True;
        let changed = write(&OWNER, &state, Some(&old), Shown::default(), 300);
        assert_eq!(seconds(&changed.conditions[0].last_transition_time), 300);
    }
}
