//! What changed between two states and is worth an event. Events are for people: nothing is ever decided by them.

use super::codes;
use super::state::{Outcome, Rest, Run, State};
use crate::crd::condition::{ConditionType, Reason};

/// An event to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether it is of type `Warning`.
    pub warning: bool,
    /// Reason, CamelCase.
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
}

fn normal(reason: &'static str, message: impl Into<String>) -> Note {
    Note { warning: false, reason, message: message.into() }
}

fn warning(reason: &'static str, message: impl Into<String>) -> Note {
    Note { warning: true, reason, message: message.into() }
}

/// The notes of one decision.
pub(super) fn between(old: &State, new: &State) -> Vec<Note> {
    let mut notes = Vec::new();
    match (&old.run, &new.run) {
        (None, Some(run)) => accepted(run, &mut notes),
        (Some(before), Some(run)) if before.token != run.token => accepted(run, &mut notes),
        (Some(before), Some(run)) => within(before, run, &mut notes),
        (_, None) => {}
    }
    conditions(old, new, &mut notes);
    notes
}

fn accepted(run: &Run, notes: &mut Vec<Note>) {
    notes.push(normal("Accepted", format!("Run {} is accepted.", run.token)));
}

fn within(before: &Run, run: &Run, notes: &mut Vec<Note>) {
    if let Some(worker) = run.worker.as_ref().filter(|worker| worker.uid.is_some()) {
        let known = before.worker.as_ref().is_some_and(|old| old.id == worker.id && old.uid.is_some());
        if !known {
            let (phase, id) = (worker.id.phase.as_str(), worker.id);
            notes.push(normal("WorkerStarted", format!("Pod of {phase}, attempt {}, try {}.", id.attempt, id.r#try)));
        }
    }
    if let Some(failure) = run.failure.as_ref().filter(|failure| before.failure.as_ref() != Some(failure)) {
        notes.push(warning("WorkerFailed", failure.explain()));
    }
    if let (None, Some(sealed)) = (&before.sealed, &run.sealed) {
        notes.push(normal("CustodySecured", format!("{} rows are sealed and verified.", sealed.rows)));
    }
    if before.publication.outcome != run.publication.outcome {
        match run.publication.outcome {
            Outcome::NotBegun => {}
            Outcome::Intent => notes.push(normal("PublicationIntentRecorded", "The publication may begin.")),
            Outcome::Committed => notes.push(normal("Published", "The receipt is in the target.")),
            Outcome::RolledBack => notes.push(warning("RolledBack", "Nothing was published, proved.")),
            Outcome::Unknown => {
                notes.push(warning("OutcomeUnknown", "Nobody knows whether the publication was committed."))
            }
        }
    }
    if before.rest.is_none() {
        match &run.rest {
            Some(Rest::Succeeded) => notes.push(normal("Succeeded", "Published, recorded and cleaned up.")),
            Some(Rest::Failed { code }) => notes.push(warning("Failed", codes::explain(code))),
            Some(Rest::ReextractRequired { code }) => notes.push(warning("ReextractRequired", codes::explain(code))),
            None => {}
        }
    }
}

/// Conditions that call for a person, or say why nothing moves, when they appear or change their reason.
fn conditions(old: &State, new: &State, notes: &mut Vec<Note>) {
    let appeared = |kind| {
        let reason = |state: &State| state.condition(kind).map(|condition| (condition.verdict, condition.reason));
        (reason(old) != reason(new)).then(|| new.condition(kind)).flatten()
    };
    if let Some(condition) = appeared(ConditionType::Accepted).filter(|c| c.reason == Reason::ManifestRejected) {
        notes.push(warning("Rejected", condition.message.clone()));
    }
    if let Some(condition) = appeared(ConditionType::DeletionBlocked) {
        notes.push(warning("DeletionBlocked", condition.message.clone()));
    }
    if let Some(condition) = appeared(ConditionType::Suspended) {
        notes.push(normal("Suspended", condition.message.clone()));
    }
    let told = [
        Reason::TargetBusy,
        Reason::WorkerUnreachable,
        Reason::ImageUnavailable,
        Reason::Unschedulable,
        Reason::JournalUnbound,
        Reason::JournalLost,
        Reason::SecretMissing,
        Reason::CreationRefused,
        Reason::NamespaceTerminating,
        Reason::TokenUsed,
    ];
    if let Some(condition) = appeared(ConditionType::Ready).filter(|condition| told.contains(&condition.reason)) {
        notes.push(warning(condition.reason.as_str(), condition.message.clone()));
    }
}
