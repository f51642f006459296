//! Phase and conditions: what a person, `kubectl wait` and Argo CD read. Derived from the run and from what is waited for.

use super::Wait;
use super::codes;
use super::observation::{Life, Observation, Standing};
use super::state::{Cancel, Condition, Custody, Failure, Outcome, Rest, Run, State, Worker, explain_with};
use crate::crd::condition::{ConditionType, Reason, Verdict};
use crate::crd::status::{Phase, WorkerPhase};
use crate::names;

/// Failures in a row after which a person is called.
const STALLED_AFTER: u32 = 3;

/// Puts phase and conditions into the state.
pub(super) fn project(look: &Observation, wait: &Wait, state: &mut State) {
    let unreachable = unreachable(look, state.run.as_ref());
    state.phase = phase(state.run.as_ref(), wait, unreachable);
    let headline = headline(look, state.run.as_ref(), wait);
    let mut conditions = vec![accepted(wait)];
    conditions.push(custody_secured(state.run.as_ref()));
    conditions.push(published(state.run.as_ref(), unreachable));
    conditions.push(headline.ready());
    conditions.extend(headline.activity());
    if *wait == Wait::Suspended || matches!(wait, Wait::Stopping(Cancel::Suspend)) {
        let message = "spec.suspend is true: no extraction is started. A publication is never touched.";
        conditions.push(condition(ConditionType::Suspended, Verdict::True, Reason::SuspendRequested, message));
    }
    if look.deleting && *wait != Wait::Released {
        conditions.extend(deletion_blocked(look, state.run.as_ref(), wait));
    }
    state.conditions = conditions;
}

fn condition(kind: ConditionType, verdict: Verdict, reason: Reason, message: impl Into<String>) -> Condition {
    Condition { kind, verdict, reason, message: message.into() }
}

/// Whether nobody can say if the current worker still acts.
fn unreachable(look: &Observation, run: Option<&Run>) -> bool {
    run.and_then(|run| run.worker.as_ref()).is_some_and(|worker| {
        look.pods.iter().any(|pod| pod.worker == Some(worker.id) && pod.life == Life::Unreachable)
    })
}

fn phase(run: Option<&Run>, wait: &Wait, unreachable: bool) -> Option<Phase> {
    let Some(run) = run else { return matches!(wait, Wait::Rejected(_)).then_some(Phase::Failed) };
    if matches!(wait, Wait::Rejected(_)) {
        return Some(Phase::Failed);
    }
    match &run.rest {
        Some(Rest::Succeeded) => return Some(Phase::Succeeded),
        Some(Rest::Failed { .. }) => return Some(Phase::Failed),
        Some(Rest::ReextractRequired { .. }) => return Some(Phase::ReextractRequired),
        None => {}
    }
    let worker = run.worker.as_ref();
    let runs = |phase| worker.is_some_and(|worker| worker.id.phase == phase && worker.uid.is_some());
    Some(match run.publication.outcome {
        Outcome::Committed => Phase::Published,
        Outcome::Unknown => Phase::OutcomeUnknown,
        _ if runs(WorkerPhase::Publish) && unreachable => Phase::OutcomeUnknown,
        _ if runs(WorkerPhase::Publish) => Phase::Publishing,
        _ if worker.is_none() => Phase::ReextractRequired,
        _ if run.sealed.is_some() => Phase::StageComplete,
        _ if !run.custody.is_clear() => Phase::CustodyUnknown,
        _ if runs(WorkerPhase::Extract) && unreachable => Phase::CustodyUnknown,
        _ if runs(WorkerPhase::Extract) => Phase::Extracting,
        _ if run.attempt > 1 => Phase::ReextractRequired,
        _ => Phase::Planned,
    })
}

fn accepted(wait: &Wait) -> Condition {
    match wait {
        Wait::Rejected(rejection) => condition(
            ConditionType::Accepted,
            Verdict::False,
            Reason::ManifestRejected,
            format!("{}: {}", rejection.code, rejection.message),
        ),
        Wait::TokenUsed => {
            condition(ConditionType::Accepted, Verdict::False, Reason::TokenUsed, codes::explain(codes::RUN_TOKEN_USED))
        }
        _ => condition(ConditionType::Accepted, Verdict::True, Reason::ManifestAccepted, "The plan is frozen."),
    }
}

fn custody_secured(run: Option<&Run>) -> Condition {
    let (verdict, reason, message) = match run {
        Some(Run { sealed: Some(sealed), rest, .. }) if !matches!(rest, Some(Rest::ReextractRequired { .. })) => (
            Verdict::True,
            Reason::EofRecorded,
            format!("{} rows are sealed and verified; the source is not needed any more.", sealed.rows),
        ),
        Some(
            Run { custody: Custody::Held | Custody::Unknown, .. }
            | Run { rest: Some(Rest::ReextractRequired { .. }), .. },
        ) => (Verdict::False, Reason::Interrupted, "The extraction ended before the source did.".to_owned()),
        Some(Run { worker: Some(Worker { id, uid: Some(_), .. }), .. }) if id.phase == WorkerPhase::Extract => {
            (Verdict::False, Reason::Capturing, "The source is being read.".to_owned())
        }
        _ => (Verdict::False, Reason::NotStarted, "No row was read.".to_owned()),
    };
    condition(ConditionType::CustodySecured, verdict, reason, message)
}

fn published(run: Option<&Run>, unreachable: bool) -> Condition {
    let outcome = run.map_or(Outcome::NotBegun, |run| run.publication.outcome);
    let publishes =
        run.and_then(|run| run.worker.as_ref()).is_some_and(|worker| worker.id.phase == WorkerPhase::Publish);
    let (verdict, reason, message) = match outcome {
        Outcome::Committed => (Verdict::True, Reason::Committed, "The receipt is in the target."),
        Outcome::Unknown => (Verdict::Unknown, Reason::OutcomeUnknown, OUTCOME_UNKNOWN),
        Outcome::Intent if publishes && unreachable => (Verdict::Unknown, Reason::OutcomeUnknown, OUTCOME_UNKNOWN),
        Outcome::Intent => (Verdict::False, Reason::InProgress, "The target has its old content until the commit."),
        Outcome::RolledBack => (Verdict::False, Reason::RolledBack, "Nothing was published, proved."),
        Outcome::NotBegun => (Verdict::False, Reason::NotStarted, "Nothing was published."),
    };
    condition(ConditionType::Published, verdict, reason, message)
}

const OUTCOME_UNKNOWN: &str = "Nobody knows yet whether the publication was committed. Everything is kept; the receipt \
                               row in the target decides, and publish is repeated until it can be read.";

/// What is going on, in one condition's worth.
struct Headline {
    verdict: Verdict,
    reason: Reason,
    message: String,
    activity: Option<ConditionType>,
}

impl Headline {
    fn new(verdict: Verdict, reason: Reason, message: impl Into<String>, activity: Option<ConditionType>) -> Self {
        Headline { verdict, reason, message: message.into(), activity }
    }

    fn going(reason: Reason, message: impl Into<String>) -> Self {
        Headline::new(Verdict::False, reason, message, Some(ConditionType::Reconciling))
    }

    fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Headline::new(Verdict::False, reason, message, Some(ConditionType::Stalled))
    }

    fn ready(&self) -> Condition {
        condition(ConditionType::Ready, self.verdict, self.reason, self.message.clone())
    }

    fn activity(&self) -> Option<Condition> {
        self.activity.map(|kind| condition(kind, Verdict::True, self.reason, self.message.clone()))
    }
}

fn headline(look: &Observation, run: Option<&Run>, wait: &Wait) -> Headline {
    match wait {
        Wait::Rejected(rejection) => {
            Headline::stalled(Reason::ManifestRejected, format!("{}: {}", rejection.code, rejection.message))
        }
        Wait::Unbuildable(rejection) => {
            Headline::stalled(Reason::ConfigurationRefused, format!("{}: {}", rejection.code, rejection.message))
        }
        Wait::Suspended => {
            Headline::new(Verdict::False, Reason::SuspendRequested, "Set spec.suspend to false to go on.", None)
        }
        Wait::Unreachable { pod } => Headline::new(
            Verdict::Unknown,
            Reason::WorkerUnreachable,
            format!(
                "Nobody can say whether pod {pod} still acts: its node does not answer. Nothing is started until its end is \
                 proved. Bring the node back; or, when it is certainly powered off, remove the finalizer \
                 transfer.dpone.io/result-unread from that pod and delete it."
            ),
            Some(ConditionType::Reconciling),
        ),
        Wait::Starting(Some(trouble)) => Headline::going(trouble.reason, trouble.message.clone()),
        Wait::TokenUsed => Headline::stalled(Reason::TokenUsed, codes::explain(codes::RUN_TOKEN_USED)),
        Wait::NamespaceTerminating => {
            Headline::stalled(Reason::NamespaceTerminating, run.map_or_else(String::new, |run| terminating(look, run)))
        }
        Wait::TargetBusy { other, standing } => {
            Headline::going(Reason::TargetBusy, target_busy(other.as_deref(), *standing))
        }
        Wait::JournalLost => Headline::stalled(Reason::JournalLost, codes::explain(codes::JOURNAL_LOST)),
        Wait::JournalUnusable(why) => {
            Headline::stalled(Reason::JournalUnbound, format!("The journal's claim cannot be used: {why}."))
        }
        Wait::PlanChanged => Headline::stalled(Reason::PlanChanged, codes::explain(codes::PLAN_DIGEST_MISMATCH)),
        Wait::HeldInDeletion => Headline::stalled(Reason::CustodyHeld, HELD_IN_DELETION),
        Wait::Released => {
            Headline::new(Verdict::False, Reason::Deleting, "Nothing is left; the resource may go.", None)
        }
        Wait::AtRest
        | Wait::Step
        | Wait::Recording
        | Wait::Working
        | Wait::Starting(None)
        | Wait::Stopping(_)
        | Wait::Backoff { .. }
        | Wait::Draining { .. } => match (run, &look.refused) {
            (Some(Run { rest: Some(rest), failure, .. }), _) => at_rest(rest, failure.as_ref()),
            (_, Some(refused)) => Headline::going(refused.reason, refused.message.clone()),
            (Some(run), None) => underway(run, wait),
            (None, None) => Headline::going(Reason::Planning, "The spec is being taken up."),
        },
    }
}

fn target_busy(other: Option<&str>, standing: Standing) -> String {
    let other = other.map_or_else(|| "A transfer of another namespace".to_owned(), |name| format!("Transfer {name}"));
    match standing {
        Standing::Waits => format!("{other} is older and takes the same target table first; this one follows."),
        Standing::Works => format!("{other} works on the same target table; this one follows."),
        Standing::Holds => {
            format!("{other} holds custody of the same target table; this one follows when that is settled.")
        }
        Standing::Unknown => format!(
            "{other} has the same target table, and nobody knows whether its publication was committed; this one follows \
             when that is known."
        ),
    }
}

/// What a run still holds in a namespace that takes no pod any more, and the way out.
fn terminating(look: &Observation, run: &Run) -> String {
    let phase = run.worker.as_ref().map_or("worker", |worker| worker.id.phase.as_str());
    let holds = match (run.publication.outcome, run.custody, &run.sealed) {
        (Outcome::Unknown, _, _) => "nobody knows whether its publication was committed".to_owned(),
        (Outcome::Committed, _, _) => "it is published, and its last records are missing".to_owned(),
        (_, Custody::Held | Custody::Unknown, Some(sealed)) => {
            format!("{} sealed rows are held and not published", sealed.rows)
        }
        _ => "an ended extraction may still hold the target".to_owned(),
    };
    format!(
        "The namespace or the journal's claim is being deleted, so the {phase} pod that this transfer still needs cannot start: {holds}. \
         Nothing is dropped: the journal stays on claim {}. Settle run {} from another namespace, as \
         docs/guide/terminating-namespace.md says, and remove the finalizer {} from this resource then.",
        names::claim(&look.uid),
        names::run_id(&look.uid, &run.token, i64::from(run.attempt)),
        names::PUBLICATION_CUSTODY,
    )
}

const HELD_IN_DELETION: &str = "Rows are sealed in the target's stages and not published, and the resource is being deleted. \
                                Nothing is published by itself any more: annotate it with transfer.dpone.io/on-delete=publish \
                                to publish them.";

fn at_rest(rest: &Rest, failure: Option<&Failure>) -> Headline {
    let explain = |code: &str| explain_with(code, failure.and_then(|failure| failure.cause.as_deref()));
    match rest {
        Rest::Succeeded => Headline::new(Verdict::True, Reason::Succeeded, "Published, recorded and cleaned up.", None),
        Rest::Failed { code } => Headline::stalled(
            Reason::ConfigurationRefused,
            format!("{} Nothing was begun. Set spec.run.token to a new value to try again.", explain(code)),
        ),
        Rest::ReextractRequired { code } => Headline::stalled(
            Reason::ReextractRequired,
            format!(
                "{} Nothing was published and nothing is left. Set spec.run.token to a new value to read the source again.",
                explain(code)
            ),
        ),
    }
}

/// An active run.
fn underway(run: &Run, wait: &Wait) -> Headline {
    let waits = matches!(wait, Wait::Backoff { .. });
    if let Some(failure) = &run.failure {
        if failure.count >= STALLED_AFTER {
            let reason = match (run.publication.outcome, run.custody) {
                (Outcome::Unknown, _) => Reason::OutcomeUnknown,
                _ if failure.code == codes::JOURNAL_LOST => Reason::JournalLost,
                (_, Custody::Held | Custody::Unknown) if run.sealed.is_none() => Reason::CustodyUnknown,
                _ => retry_reason(&failure.code),
            };
            let message = format!(
                "{} It is repeated for ever, at most every five minutes; {} ends in a row brought nothing.",
                failure.explain(),
                failure.count
            );
            return Headline::stalled(reason, message);
        }
        if waits {
            return Headline::going(retry_reason(&failure.code), failure.explain());
        }
    }
    let Some(worker) = &run.worker else { return Headline::going(Reason::Planning, "The next step is being chosen.") };
    let (reason, message) = match worker.id.phase {
        _ if matches!(wait, Wait::Stopping(Cancel::Deletion)) => {
            (Reason::Deleting, "The extraction is being cancelled and settled.")
        }
        _ if matches!(wait, Wait::Stopping(_)) => (Reason::Settling, "The extraction is being cancelled and settled."),
        WorkerPhase::Admit => (Reason::Admitting, "Source and target are being looked at."),
        WorkerPhase::Extract if worker.settling => (Reason::Settling, "An ended attempt is being settled."),
        WorkerPhase::Extract => (Reason::Extracting, "The source is being read."),
        WorkerPhase::Publish => (Reason::Publishing, "The sealed rows are being published."),
        WorkerPhase::Inspect => (Reason::Inspecting, "The journal is asked what became of the last pod."),
    };
    Headline::going(reason, message)
}

fn retry_reason(code: &str) -> Reason {
    match code {
        "mssql_native.custody_held" => Reason::CustodyHeldElsewhere,
        "native_transfer.source_unreachable" | "native_transfer.target_unreachable" => Reason::Unreachable,
        codes::JOURNAL_LOST => Reason::JournalLost,
        _ => Reason::Retrying,
    }
}

fn deletion_blocked(look: &Observation, run: Option<&Run>, wait: &Wait) -> Option<Condition> {
    let run = run?;
    if *wait == Wait::NamespaceTerminating {
        let message = terminating(look, run);
        return Some(condition(ConditionType::DeletionBlocked, Verdict::True, Reason::NamespaceTerminating, message));
    }
    let publishes =
        run.worker.as_ref().is_some_and(|worker| worker.id.phase == WorkerPhase::Publish && worker.uid.is_some());
    let (reason, message) = match (run.publication.outcome, run.custody) {
        (Outcome::Unknown, _) => (Reason::OutcomeUnknown, OUTCOME_UNKNOWN),
        _ if publishes => (Reason::PublicationRunning, "A publication is running; it is waited for."),
        _ if *wait == Wait::HeldInDeletion => (Reason::CustodyHeld, HELD_IN_DELETION),
        (Outcome::Committed, _) => (Reason::PublicationRunning, "A publication is being finished; it is waited for."),
        (_, Custody::Held) if run.sealed.is_some() => (Reason::CustodyHeld, HELD_IN_DELETION),
        (_, Custody::Held | Custody::Unknown) => {
            (Reason::CustodyUnknown, "An ended extraction is being settled; it is waited for.")
        }
        _ if run.worker.is_some() => (Reason::Deleting, "The extraction is being cancelled; it is waited for."),
        _ => return None,
    };
    Some(condition(ConditionType::DeletionBlocked, Verdict::True, reason, message))
}
