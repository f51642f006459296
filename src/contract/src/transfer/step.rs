//! The one transition function of a transfer; live run and replay both go through it.

use super::{Preparation, Transfer, TransferCustody, TransferEffect, TransferEvent, TransferState};
use crate::code;
use crate::custody::ReleaseReason;
use crate::error::Refusal;

type Step = (Transfer, &'static [TransferEffect]);

/// The transfer after `event`, and what to do next.
///
/// # Errors
/// `mssql_native.publication_phase_order` for an event of publication out of order,
/// `mssql_native.invalid_journal_event_transition` for any other event that cannot follow.
pub fn step(transfer: Transfer, event: TransferEvent) -> Result<Step, Refusal> {
    match event {
        TransferEvent::CustodyClaimed => claim(transfer),
        TransferEvent::CustodyReleased(reason) => release(transfer, reason),
        TransferEvent::Refused => refuse(transfer),
        TransferEvent::ExtractionBegan
        | TransferEvent::EofSealed
        | TransferEvent::ExtractionStopped
        | TransferEvent::Settled
        | TransferEvent::PreparationBegan
        | TransferEvent::PreparationDone
        | TransferEvent::PublicationBegan
        | TransferEvent::PublicationConfirmed
        | TransferEvent::PublicationRolledBack
        | TransferEvent::PublicationUnknown
        | TransferEvent::AbsenceProved
        | TransferEvent::EvidenceSaved
        | TransferEvent::CheckpointSaved => {
            // Everything that touches rows needs the target in hand.
            if transfer.custody != TransferCustody::Held {
                return Err(out_of_order(event));
            }
            let state = next(transfer.state, event).ok_or_else(|| out_of_order(event))?;
            Ok((Transfer { state, ..transfer }, effects(state)))
        }
    }
}

/// The state after an event that touches rows, or `None` if it cannot follow.
fn next(state: TransferState, event: TransferEvent) -> Option<TransferState> {
    use TransferState as S;
    match event {
        TransferEvent::ExtractionBegan => (state == S::Planned).then_some(S::Extracting),
        TransferEvent::EofSealed => (state == S::Extracting).then_some(S::StageComplete(Preparation::NotBegun)),
        TransferEvent::ExtractionStopped => (state == S::Extracting).then_some(S::CustodyUnknown),
        TransferEvent::Settled => match state {
            S::Extracting | S::CustodyUnknown | S::StageComplete(_) => Some(S::ReextractRequired),
            S::Failed => Some(S::Failed),
            S::Planned
            | S::Publishing
            | S::Published
            | S::EvidenceComplete
            | S::Succeeded
            | S::ReextractRequired
            | S::OutcomeUnknown => None,
        },
        TransferEvent::PreparationBegan => match state {
            S::StageComplete(_) => Some(S::StageComplete(Preparation::Begun)),
            S::Planned
            | S::Extracting
            | S::Publishing
            | S::Published
            | S::EvidenceComplete
            | S::Succeeded
            | S::CustodyUnknown
            | S::ReextractRequired
            | S::OutcomeUnknown
            | S::Failed => None,
        },
        TransferEvent::PreparationDone => {
            (state == S::StageComplete(Preparation::Begun)).then_some(S::StageComplete(Preparation::Done))
        }
        TransferEvent::PublicationBegan => (state == S::StageComplete(Preparation::Done)).then_some(S::Publishing),
        TransferEvent::PublicationConfirmed => {
            matches!(state, S::Publishing | S::OutcomeUnknown).then_some(S::Published)
        }
        TransferEvent::PublicationRolledBack => (state == S::Publishing).then_some(S::StageComplete(Preparation::Done)),
        TransferEvent::PublicationUnknown => (state == S::Publishing).then_some(S::OutcomeUnknown),
        TransferEvent::AbsenceProved => (state == S::OutcomeUnknown).then_some(S::Failed),
        TransferEvent::EvidenceSaved => (state == S::Published).then_some(S::EvidenceComplete),
        TransferEvent::CheckpointSaved => (state == S::EvidenceComplete).then_some(S::Succeeded),
        TransferEvent::CustodyClaimed | TransferEvent::CustodyReleased(_) | TransferEvent::Refused => None,
    }
}

/// What to do in a state while custody is held: after the event that led there, or after a restart.
///
/// After a restart in `Extracting` the query is never resumed: the driver records `ExtractionStopped` first.
pub fn effects(state: TransferState) -> &'static [TransferEffect] {
    match state {
        TransferState::Planned => &[TransferEffect::OpenSource],
        TransferState::Extracting => &[TransferEffect::Extract],
        TransferState::StageComplete(Preparation::NotBegun) => &[TransferEffect::BeginPreparation],
        TransferState::StageComplete(Preparation::Begun) => &[TransferEffect::Prepare],
        TransferState::StageComplete(Preparation::Done) => &[TransferEffect::BeginPublication],
        TransferState::Publishing => &[TransferEffect::Publish],
        TransferState::Published => &[TransferEffect::SaveEvidence],
        TransferState::EvidenceComplete => &[TransferEffect::SaveCheckpoint],
        TransferState::Succeeded => &[TransferEffect::CleanUp],
        TransferState::CustodyUnknown => &[TransferEffect::SettleAttempts],
        TransferState::ReextractRequired => {
            &[TransferEffect::ReleaseCustody(ReleaseReason::NonpublicationAllStagesRetired)]
        }
        TransferState::OutcomeUnknown => &[TransferEffect::ProbeReceipt, TransferEffect::CallPerson],
        TransferState::Failed => &[TransferEffect::SettleAttempts],
    }
}

fn claim(transfer: Transfer) -> Result<Step, Refusal> {
    if transfer != Transfer::PLANNED {
        return Err(out_of_order(TransferEvent::CustodyClaimed));
    }
    let held = Transfer { custody: TransferCustody::Held, ..transfer };
    Ok((held, effects(held.state)))
}

/// A refusal before any row: without custody the run is over, with custody nothing was staged and it is released.
fn refuse(transfer: Transfer) -> Result<Step, Refusal> {
    let failed = Transfer { state: TransferState::Failed, ..transfer };
    let effects: &[TransferEffect] = match transfer.custody {
        TransferCustody::Unclaimed => &[],
        TransferCustody::Held => &[TransferEffect::ReleaseCustody(ReleaseReason::NonpublicationAllStagesRetired)],
        TransferCustody::Released(_) => return Err(out_of_order(TransferEvent::Refused)),
    };
    if transfer.state == TransferState::Planned {
        Ok((failed, effects))
    } else {
        Err(out_of_order(TransferEvent::Refused))
    }
}

/// Custody goes with the proof that fits the state, and only once.
fn release(transfer: Transfer, reason: ReleaseReason) -> Result<Step, Refusal> {
    let fits = match (transfer.state, reason) {
        (TransferState::Succeeded, ReleaseReason::PublishedCleanup | ReleaseReason::EmptyCompletionCleanup) => true,
        (TransferState::ReextractRequired | TransferState::Failed, ReleaseReason::NonpublicationAllStagesRetired) => {
            true
        }
        (
            TransferState::Planned
            | TransferState::Extracting
            | TransferState::StageComplete(_)
            | TransferState::Publishing
            | TransferState::Published
            | TransferState::EvidenceComplete
            | TransferState::Succeeded
            | TransferState::CustodyUnknown
            | TransferState::ReextractRequired
            | TransferState::OutcomeUnknown
            | TransferState::Failed,
            ReleaseReason::PublishedCleanup
            | ReleaseReason::NonpublicationAllStagesRetired
            | ReleaseReason::EmptyCompletionCleanup,
        ) => false,
    };
    if fits && transfer.custody == TransferCustody::Held {
        return Ok((Transfer { custody: TransferCustody::Released(reason), ..transfer }, &[]));
    }
    Err(Refusal::new(
        code::CUSTODY_RELEASE_UNPROVED,
        "Custody cannot be released in this state: neither a finished publication nor its absence is proved. Inspect \
         the run.",
    ))
}

fn out_of_order(event: TransferEvent) -> Refusal {
    let publication = matches!(
        event,
        TransferEvent::PublicationBegan
            | TransferEvent::PublicationConfirmed
            | TransferEvent::PublicationRolledBack
            | TransferEvent::PublicationUnknown
            | TransferEvent::AbsenceProved
            | TransferEvent::EvidenceSaved
            | TransferEvent::CheckpointSaved
    );
    if publication {
        Refusal::new(
            code::PUBLICATION_PHASE_ORDER,
            "A step of the publication came out of order; nothing was written. Inspect the run.",
        )
    } else {
        Refusal::new(
            code::INVALID_JOURNAL_EVENT_TRANSITION,
            "A step of the run came out of order; nothing was written. Inspect the run.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Json;

    /// Every transition with custody held: `state event: state`.
    const HELD: &[(&str, &str, &str)] = &[
        ("Planned", "refused", "Failed"),
        ("Planned", "extraction_began", "Extracting"),
        ("Extracting", "eof_sealed", "StageComplete NotBegun"),
        ("Extracting", "extraction_stopped", "CustodyUnknown"),
        ("Extracting", "settled", "ReextractRequired"),
        ("CustodyUnknown", "settled", "ReextractRequired"),
        ("StageComplete NotBegun", "settled", "ReextractRequired"),
        ("StageComplete Begun", "settled", "ReextractRequired"),
        ("StageComplete Done", "settled", "ReextractRequired"),
        ("Failed", "settled", "Failed"),
        ("StageComplete NotBegun", "preparation_began", "StageComplete Begun"),
        ("StageComplete Begun", "preparation_began", "StageComplete Begun"),
        ("StageComplete Done", "preparation_began", "StageComplete Begun"),
        ("StageComplete Begun", "preparation_done", "StageComplete Done"),
        ("StageComplete Done", "publication_began", "Publishing"),
        ("Publishing", "publication_confirmed", "Published"),
        ("OutcomeUnknown", "publication_confirmed", "Published"),
        ("Publishing", "publication_rolled_back", "StageComplete Done"),
        ("Publishing", "publication_unknown", "OutcomeUnknown"),
        ("OutcomeUnknown", "absence_proved", "Failed"),
        ("Published", "evidence_saved", "EvidenceComplete"),
        ("EvidenceComplete", "checkpoint_saved", "Succeeded"),
    ];

    /// Which reason releases custody in which state.
    const RELEASES: &[(&str, &str)] = &[
        ("Succeeded", "published_cleanup"),
        ("Succeeded", "empty_completion_cleanup"),
        ("ReextractRequired", "nonpublication_all_stages_retired"),
        ("Failed", "nonpublication_all_stages_retired"),
    ];

    fn name(state: TransferState) -> String {
        match state {
            TransferState::StageComplete(preparation) => format!("StageComplete {preparation:?}"),
            other => other.text().to_owned(),
        }
    }

    #[test]
    fn every_state_and_event_with_custody_held() {
        for state in TransferState::ALL {
            for event in TransferEvent::ALL {
                let got = step(Transfer { state, custody: TransferCustody::Held }, event);
                if let TransferEvent::CustodyReleased(reason) = event {
                    let want = RELEASES.contains(&(name(state).as_str(), reason.text()));
                    assert_eq!(got.is_ok(), want, "{state:?} {event:?}");
                    continue;
                }
                let want = HELD.iter().find(|(from, by, _)| *from == name(state) && *by == event.text());
                let got = got.ok().map(|(transfer, _)| name(transfer.state));
                assert_eq!(got.as_deref(), want.map(|(_, _, to)| *to), "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn without_custody_only_a_claim_or_a_refusal_follows() {
        for state in TransferState::ALL {
            for event in TransferEvent::ALL {
                let got = step(Transfer { state, custody: TransferCustody::Unclaimed }, event).is_ok();
                let begins = matches!(event, TransferEvent::CustodyClaimed | TransferEvent::Refused);
                assert_eq!(got, state == TransferState::Planned && begins, "{state:?} {event:?}");
                let released = TransferCustody::Released(ReleaseReason::PublishedCleanup);
                assert!(step(Transfer { state, custody: released }, event).is_err(), "{state:?} {event:?}");
            }
        }
    }

    /// No sequence of events reaches a published state without a confirmed publication, or frees the target in doubt.
    #[test]
    fn custody_is_never_released_in_doubt() {
        let mut seen = vec![Transfer::PLANNED];
        let mut at = 0;
        while let Some(transfer) = seen.get(at).copied() {
            at += 1;
            for event in TransferEvent::ALL {
                if let Ok((next, _)) = step(transfer, event) {
                    if matches!(next.custody, TransferCustody::Released(_)) {
                        let settled = matches!(
                            next.state,
                            TransferState::Succeeded | TransferState::ReextractRequired | TransferState::Failed
                        );
                        assert!(settled && next.is_finished(), "{transfer:?} {event:?}");
                    }
                    if !seen.contains(&next) {
                        seen.push(next);
                    }
                }
            }
        }
        let states: std::collections::BTreeSet<String> = seen.iter().map(|transfer| name(transfer.state)).collect();
        assert_eq!(states.len(), TransferState::ALL.len(), "every state is reachable");
    }

    /// Every reachable unfinished state has a way out: some event is accepted.
    #[test]
    fn every_unfinished_state_has_a_way_out() {
        for state in TransferState::ALL {
            let transfer = Transfer { state, custody: TransferCustody::Held };
            assert!(TransferEvent::ALL.iter().any(|event| step(transfer, *event).is_ok()), "{state:?}");
            assert!(!effects(state).is_empty(), "{state:?}");
        }
    }

    #[test]
    fn events_read_back() {
        for event in TransferEvent::ALL {
            let facts = Json::object([("rows", Json::from(3))]);
            assert_eq!(TransferEvent::from_document(&event.document(facts.clone())), Ok((event, facts)));
        }
        assert!(TransferEvent::from_document(&Json::Null).is_err());
    }
}
