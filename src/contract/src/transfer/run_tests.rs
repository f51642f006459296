//! The fold over whole lives of a run.

use super::*;
use crate::attempt::Quiescence;
use crate::attempt::chain::{NewEvent, append, begin};
use crate::attempt::event::{ArtifactBinding, Observation, StageBinding, WriterBinding};
use crate::attempt::machine::StageGone;
use crate::canon::strict;
use crate::custody::ReleaseReason;
use crate::identity::{ChunkPlan, Companion, LayoutVersion};
use crate::recovery::classify::RecoveryState;

const TIME: &str = "2026-09-30T00:00:00Z";
const STAGE: &str = "[warehouse].[dpone].[dpone_native_x]";

struct Life {
    run: RunState,
    identity: VerificationIdentity,
}

fn text(value: &Json) -> String {
    String::from_utf8(strict(value)).expect("UTF-8")
}

impl Life {
    fn planned() -> Self {
        let field = |name: &str| name.to_owned();
        let plan = ChunkPlan {
            run_id: field("run"),
            target_id: field("target"),
            source_query_id: field("query"),
            window_fingerprint: field("window"),
            schema_fingerprint: field("schema"),
            wire_fingerprint: field("wire"),
        };
        let identity = VerificationIdentity::sqlclient(plan, 3600, &Companion::in_process(), LayoutVersion::V1);
        let mut life = Life { run: RunState::default(), identity };
        life.apply(kind::IDENTITY, &life.identity.document()).expect("identity");
        let plan = RecoveryPlan {
            invocation_id: life.identity.invocation_key(),
            schema: vec![("id".into(), "bigint".into())],
            window: None,
            authority: Json::object([]),
        };
        life.run.apply(kind::RECOVERY_PLAN, std::str::from_utf8(&plan.payload()).expect("ascii")).expect("plan");
        life
    }

    fn extracting() -> Self {
        let mut life = Life::planned();
        life.event(TransferEvent::CustodyClaimed).expect("claim");
        life.event(TransferEvent::ExtractionBegan).expect("begin");
        life
    }

    fn apply(&mut self, kind: &str, document: &Json) -> Result<(), Refusal> {
        self.run.apply(kind, &text(document))
    }

    fn event(&mut self, event: TransferEvent) -> Result<(), Refusal> {
        self.apply(kind::TRANSFER_EVENT, &event.document(Json::Null))
    }

    /// Brings one attempt of chunk `ordinal` to `until`.
    fn attempt(&mut self, ordinal: u64, until: EventKind) -> Digest {
        let key = self.identity.invocation_key();
        let nonce = Digest::of(&ordinal.to_be_bytes());
        let id = names::attempt_id(key, ordinal, nonce);
        let nonce = Json::object([("attempt_id", id.into()), ("nonce", nonce.into()), ("ordinal", ordinal.into())]);
        self.apply(kind::ATTEMPT_NONCE, &nonce).expect("nonce");
        let digest = Digest::of(b"bytes");
        let artifact =
            ArtifactBinding { ordinal, rows: 2, encoded_bytes: 16, file_sha256: digest, typed_digest: digest };
        let stage_id = names::opaque_stage_id(key, &format!("{STAGE}{ordinal}"));
        let stage = StageBinding { stage_id, owner_binding_sha256: digest, object_id: 7, schema_sha256: digest };
        let mut event = begin(&self.identity, id, &artifact, TIME).expect("intent");
        self.apply(kind::WRITER_EVENT, event.document()).expect("intent");
        let life = [
            EventKind::StageOwned,
            EventKind::Granted,
            EventKind::Writing,
            EventKind::WriterTerminal,
            EventKind::Quiescent,
            EventKind::Verified,
        ];
        for kind in life {
            if event.kind == until {
                break;
            }
            let observation = kind.has_observation().then(|| Observation {
                writer_outcome: WriterOutcome::Success,
                input_rows_consumed: Some(2),
                row_count: Some(2),
                count_overflow: Some(false),
                limbs: Some(std::array::from_fn(|_| "0".to_owned())),
                quiescence: Quiescence::Proved,
                diagnostic_code: "mssql_native.verified".into(),
            });
            let new = NewEvent {
                kind,
                stage: Some(stage.clone()),
                writer: kind.has_writer().then_some(WriterBinding { grant_token_sha256: digest }),
                observation,
                created_at: TIME.into(),
            };
            event = append(&self.identity, &event, &new).expect("follows");
            self.apply(kind::WRITER_EVENT, event.document()).expect("event");
        }
        id
    }

    fn receipt(&mut self, ordinal: u64, attempt: Digest, rows: u64) -> Result<(), Refusal> {
        let digest = Digest::of(b"bytes");
        let receipt = ChunkReceipt {
            ordinal,
            attempt_id: attempt.to_string(),
            stage_id: format!("{STAGE}{ordinal}"),
            rows,
            encoded_bytes: 16,
            file_sha256: digest,
            typed_digest: digest,
            consumed_part_evidence: BTreeMap::new(),
        };
        self.apply(kind::CHUNK_RECEIPT, &receipt.document())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        let metadata = Json::object([("version", Json::from(1))]);
        let receipts: Vec<ChunkReceipt> = self.run.receipts().cloned().collect();
        let completion = seal(&receipts, &metadata)?;
        let record = Json::object([("completion", completion.document()), ("metadata", metadata)]);
        self.apply(kind::COMPLETION, &record)
    }

    fn prove_unpublished(&mut self, proof: Digest) -> Result<(), Refusal> {
        self.apply(kind::NONPUBLICATION, &Json::object([("proof_sha256", proof.into())]))
    }

    fn settle(&mut self, attempt: Digest, proof: Digest) -> Result<(), Refusal> {
        let settlement = Settlement { attempt_id: attempt, stage: StageGone::Dropped, nonpublication_proof: proof };
        self.apply(kind::ATTEMPT_SETTLEMENT, &settlement.document())
    }

    #[track_caller]
    fn check(&self, transfer: TransferState, recovery: RecoveryState) {
        assert_eq!(self.run.transfer().map(|transfer| transfer.state), Some(transfer));
        assert_eq!(self.run.classify(false).state, recovery);
    }
}

fn sealed(chunks: u64) -> Life {
    let mut life = Life::extracting();
    for ordinal in 0..chunks {
        let attempt = life.attempt(ordinal, EventKind::Verified);
        life.receipt(ordinal, attempt, 2).expect("receipt");
    }
    life.complete().expect("completion");
    life.event(TransferEvent::EofSealed).expect("sealed");
    life
}

#[test]
fn a_run_that_succeeds() {
    let mut life = Life::planned();
    assert_eq!(life.run.next_effects(), [TransferEffect::ClaimCustody]);
    life = sealed(2);
    life.check(TransferState::StageComplete(Preparation::NotBegun), RecoveryState::VerifiedEof);
    assert_eq!(life.run.completion().map(|(completion, _)| completion.rows), Some(4));
    let road = [
        (TransferEvent::PreparationBegan, RecoveryState::VerifiedEof),
        (TransferEvent::PreparationDone, RecoveryState::VerifiedEof),
        (TransferEvent::PublicationBegan, RecoveryState::PublicationUnknown),
        (TransferEvent::PublicationConfirmed, RecoveryState::Published),
        (TransferEvent::EvidenceSaved, RecoveryState::Published),
        (TransferEvent::CheckpointSaved, RecoveryState::Succeeded),
        (TransferEvent::CustodyReleased(ReleaseReason::PublishedCleanup), RecoveryState::CustodyReleased),
    ];
    for (event, state) in road {
        assert!(!life.run.next_effects().is_empty(), "{event:?}");
        life.event(event).expect("in order");
        assert_eq!(life.run.classify(false).state, state, "{event:?}");
    }
    assert!(life.run.transfer().is_some_and(Transfer::is_finished));
    assert!(life.run.next_effects().is_empty());
}

#[test]
fn an_empty_run_completes_without_attempts() {
    sealed(0).check(TransferState::StageComplete(Preparation::NotBegun), RecoveryState::VerifiedEof);
}

#[test]
fn every_state_of_an_attempt_can_be_settled() {
    let reached = [
        EventKind::Intent,
        EventKind::StageOwned,
        EventKind::Granted,
        EventKind::Writing,
        EventKind::WriterTerminal,
        EventKind::Quiescent,
        EventKind::Verified,
    ];
    for until in reached {
        let mut life = Life::extracting();
        let attempt = life.attempt(0, until);
        life.event(TransferEvent::ExtractionStopped).expect("stopped");
        let proof = names::nonpublication_proof(life.identity.invocation_key());
        assert!(life.settle(attempt, proof).is_err(), "not before the proof");
        assert!(life.event(TransferEvent::Settled).is_err(), "not before the proof");
        life.prove_unpublished(proof).expect("proof");
        assert!(life.event(TransferEvent::Settled).is_err(), "not before the stage is gone");
        life.settle(attempt, proof).expect("settled");
        assert!(life.settle(attempt, proof).is_err(), "only once");
        life.event(TransferEvent::Settled).expect("settled");
        life.check(TransferState::ReextractRequired, RecoveryState::Retired);
        let release = TransferEvent::CustodyReleased(ReleaseReason::NonpublicationAllStagesRetired);
        life.event(release).expect("released");
        assert!(life.run.transfer().is_some_and(Transfer::is_finished), "{until:?}");
    }
}

#[test]
fn a_sealed_run_can_be_given_up_only_with_the_proof_under_the_lock() {
    let mut life = sealed(1);
    let key = life.identity.invocation_key();
    assert!(life.prove_unpublished(names::nonpublication_proof(key)).is_err());
    let proof = names::unpublished_proof(key);
    life.prove_unpublished(proof).expect("proof");
    let attempt = *life.run.attempts().keys().next().expect("one attempt");
    life.settle(attempt, proof).expect("settled");
    life.event(TransferEvent::Settled).expect("settled");
    life.check(TransferState::ReextractRequired, RecoveryState::Retired);
}

#[test]
fn a_publication_in_doubt_stays_in_doubt_until_proved() {
    let mut life = sealed(1);
    for event in [TransferEvent::PreparationBegan, TransferEvent::PreparationDone, TransferEvent::PublicationBegan] {
        life.event(event).expect("in order");
    }
    life.event(TransferEvent::PublicationUnknown).expect("doubt");
    life.check(TransferState::OutcomeUnknown, RecoveryState::PublicationUnknown);
    let key = life.identity.invocation_key();
    assert!(life.prove_unpublished(names::unpublished_proof(key)).is_err(), "not while in doubt");
    for reason in ReleaseReason::ALL {
        assert!(life.event(TransferEvent::CustodyReleased(reason)).is_err());
    }
    let mut absent = Life { run: life.run.clone(), identity: life.identity.clone() };
    absent.event(TransferEvent::AbsenceProved).expect("absent");
    absent.check(TransferState::Failed, RecoveryState::ReextractRequired);
    absent.prove_unpublished(names::unpublished_proof(key)).expect("proof");
    life.event(TransferEvent::PublicationConfirmed).expect("receipt");
    life.check(TransferState::Published, RecoveryState::Published);
}

#[test]
fn after_the_proof_no_attempt_goes_on() {
    let mut life = Life::extracting();
    let attempt = life.attempt(0, EventKind::WriterTerminal);
    let proof = names::nonpublication_proof(life.identity.invocation_key());
    life.prove_unpublished(proof).expect("proof");
    let last = life.run.attempts()[&attempt].events.last().cloned().expect("events");
    let new =
        NewEvent { kind: EventKind::Unknown, stage: None, writer: None, observation: None, created_at: TIME.into() };
    let next = append(&life.identity, &last, &new).expect("follows");
    let refused = life.apply(kind::WRITER_EVENT, next.document()).expect_err("frozen");
    assert_eq!(refused.code.as_str(), code::NONPUBLICATION_FROZEN);
    assert!(life.complete().is_err());
}

#[test]
fn receipts_and_completion_must_agree_with_the_events() {
    let mut life = Life::extracting();
    let attempt = life.attempt(0, EventKind::Verified);
    assert!(life.receipt(0, attempt, 3).is_err(), "other rows");
    assert!(life.receipt(1, attempt, 2).is_err(), "other ordinal");
    assert!(life.complete().is_err(), "a verified attempt without receipt");
    assert!(life.event(TransferEvent::EofSealed).is_err(), "nothing sealed");
    life.receipt(0, attempt, 2).expect("receipt");
    assert!(life.receipt(0, attempt, 2).is_err(), "twice");
    life.complete().expect("completion");
    assert!(life.complete().is_err(), "twice");
}

#[test]
fn foreign_records_are_refused() {
    let mut life = Life::extracting();
    let before = life.run.clone();
    for (kind, payload) in [("other", "{}"), (kind::IDENTITY, "[]"), (kind::TRANSFER_EVENT, "{}"), (kind::LIMITS, "x")]
    {
        assert!(life.run.apply(kind, payload).is_err(), "{kind} {payload}");
    }
    assert!(RunState::default().apply(kind::RECOVERY_PLAN, "{}").is_err());
    assert_eq!(life.run, before);
}
