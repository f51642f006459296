//! The lines of "Decisions" in docs/internals/operator.md, one test or more for each. The rest is the simulation's.

use std::collections::BTreeSet;

use super::observation::{
    Claim, Competitor, Death, Life, Observation, Pod, Receipt, Rejection, Standing, Trouble, Wish,
};
use super::state::{Cancel, Custody, Outcome, Rest, Run, State, WorkerId};
use super::{Decision, Step, Wait, codes, decide};
use crate::crd::condition::{ConditionType, Reason, Verdict};
use crate::crd::status::{Phase, WorkerPhase};

const NOW: i64 = 1_000;

fn look() -> Observation {
    Observation {
        now: NOW,
        namespace: "ns".into(),
        uid: "m".into(),
        created_at: 10,
        generation: 3,
        deleting: false,
        guarded: true,
        wish: Wish {
            token: "1".into(),
            suspend: false,
            attempts: 1,
            deadline_seconds: None,
            backoff_seconds: 10,
            retention_seconds: None,
            publish_on_delete: false,
            plan: Ok("plan".into()),
            template: "t".into(),
        },
        state: State::default(),
        pods: Vec::new(),
        claim: Claim::Present { uid: "claim".into(), guarded: true, deleting: false, lost: false, short: false },
        competitors: Vec::new(),
        used_tokens: BTreeSet::new(),
        refused: None,
    }
}

/// Stores what was decided and lets time pass up to the next try.
fn store(look: &mut Observation, decision: &Decision) {
    look.state = decision.state.clone();
    if let Wait::Backoff { until } = decision.wait {
        look.now = until;
    }
}

/// The pod that status intends.
fn pod(look: &Observation, life: Life, receipt: Option<Receipt>) -> Pod {
    let id = intended(&look.state);
    Pod {
        name: format!("{}-{}-{}", id.phase.as_str(), id.attempt, id.r#try),
        uid: format!("uid-{}-{}-{}", id.phase.as_str(), id.attempt, id.r#try),
        worker: Some(id),
        unread: true,
        deleting: false,
        life,
        receipt,
        template: "t".into(),
        created_at: NOW,
    }
}

fn run(state: &State) -> &Run {
    state.run.as_ref().expect("a run")
}

fn intended(state: &State) -> WorkerId {
    run(state).worker.as_ref().expect("a worker").id
}

fn ended() -> Life {
    Life::Dead(Death::Ended { exit_code: 1, reason: "Error".into(), finished_at: NOW })
}

fn receipt(phase: WorkerPhase, exit_code: u8, state: &str, code: Option<&str>, custody: Custody) -> Receipt {
    Receipt {
        phase,
        exit_code,
        state: state.into(),
        code: code.map(str::to_owned),
        attempt_closed: custody == Custody::Released,
        epoch: 5,
        rows: (state == "StageComplete").then_some(7),
        custody,
        target: Some("target".into()),
        workload: None,
        receipt_id: None,
        committed_at: None,
        evidence: None,
        eof: None,
        descriptor: None,
    }
}

/// A look whose current pod is of a phase: the run got there by good receipts.
fn at(phase: WorkerPhase) -> Observation {
    let mut look = look();
    let first = decide(&look);
    store(&mut look, &first);
    for (done, state) in [(WorkerPhase::Admit, "Planned"), (WorkerPhase::Extract, "StageComplete")] {
        if intended(&look.state).phase == phase {
            break;
        }
        let custody = if done == WorkerPhase::Admit { Custody::None } else { Custody::Held };
        let pod = pod(&look, ended(), Some(receipt(done, 0, state, None, custody)));
        look.pods = vec![pod];
        let decision = decide(&look);
        store(&mut look, &decision);
        look.pods.clear();
    }
    let granted = decide(&look);
    assert!(matches!(&granted.step, Step::CreatePod(worker) if worker.id.phase == phase), "{:?}", granted.step);
    store(&mut look, &granted);
    look
}

/// What follows when the current pod ends so.
fn end(look: &mut Observation, life: Life, receipt: Option<Receipt>) -> Decision {
    let pod = pod(look, life, receipt);
    look.pods = vec![pod];
    let decision = decide(look);
    store(look, &decision);
    decision
}

fn reason(decision: &Decision, kind: ConditionType) -> Option<Reason> {
    decision.state.condition(kind).map(|condition| condition.reason)
}

#[test]
fn line_1_a_refused_manifest_starts_nothing_and_stays_refused() {
    let mut look = look();
    look.claim = Claim::Absent;
    look.wish.plan = Err(Rejection { code: "native_transfer.unknown_key".into(), message: "m".into() });
    let decision = decide(&look);
    assert_eq!((&decision.step, decision.again_after), (&Step::Nothing, None));
    assert_eq!(reason(&decision, ConditionType::Accepted), Some(Reason::ManifestRejected));
    assert_eq!(decision.state.phase, Some(Phase::Failed));
    store(&mut look, &decision);
    assert_eq!(decide(&look).state, look.state, "no write when nothing changed");
    look.wish.plan = Ok("plan".into());
    assert!(decide(&look).state.run.is_some(), "a corrected setting is taken up");
}

#[test]
fn line_2_finalizer_then_claim_then_admit_and_the_intent_is_stored_first() {
    let mut look = look();
    look.guarded = false;
    look.claim = Claim::Absent;
    let guard = decide(&look);
    assert_eq!(guard.step, Step::Guard);
    assert_eq!(intended(&guard.state).phase, WorkerPhase::Admit);
    store(&mut look, &guard);
    look.guarded = true;
    let claim = decide(&look);
    assert_eq!(claim.step, Step::CreateClaim);
    look.claim = Claim::Present { uid: "claim".into(), guarded: true, deleting: false, lost: false, short: false };
    let create = decide(&look);
    assert!(matches!(&create.step, Step::CreatePod(worker) if Some(worker) == run(&create.state).worker.as_ref()));
}

#[test]
fn line_2_one_target_is_used_by_one_transfer_after_the_other() {
    let other = |standing, created_at, namespace: &str| Competitor {
        namespace: namespace.into(),
        name: "other".into(),
        uid: "a".into(),
        created_at,
        standing,
    };
    let look = before_the_grant();
    let verdict = |competitor: Competitor| {
        let mut look = look.clone();
        look.competitors = vec![competitor];
        decide(&look)
    };
    for (standing, word) in
        [(Standing::Works, "works on"), (Standing::Holds, "holds custody"), (Standing::Unknown, "nobody knows")]
    {
        let busy = verdict(other(standing, 99, "ns"));
        assert_eq!(busy.step, Step::Nothing);
        assert_eq!(busy.wait, Wait::TargetBusy { other: Some("other".into()), standing });
        let told = busy.state.condition(ConditionType::Reconciling).expect("a reason");
        assert_eq!(told.reason, Reason::TargetBusy);
        assert!(told.message.contains("Transfer other") && told.message.contains(word), "{}", told.message);
    }
    let foreign = verdict(other(Standing::Holds, 99, "elsewhere"));
    let told = foreign.state.condition(ConditionType::Reconciling).expect("a reason");
    assert!(!told.message.contains("Transfer other"), "other namespaces are not named: {}", told.message);
    let waits = |created_at| verdict(other(Standing::Waits, created_at, "ns"));
    assert!(matches!(waits(5).wait, Wait::TargetBusy { .. }), "the older one first");
    assert!(matches!(waits(10).wait, Wait::TargetBusy { .. }), "then the lower UID");
    assert!(matches!(waits(11).step, Step::CreatePod(_)));
}

/// A look at an admitted transfer before its extraction is granted the target.
fn before_the_grant() -> Observation {
    let mut look = look();
    let admit = decide(&look);
    store(&mut look, &admit);
    end(&mut look, ended(), Some(receipt(WorkerPhase::Admit, 0, "Planned", None, Custody::None)));
    // Back to before the grant, which the same decision gave because nobody else was there.
    look.pods.clear();
    if let Some(worker) = look.state.run.as_mut().and_then(|run| run.worker.as_mut()) {
        worker.granted = false;
    }
    look
}

#[test]
fn line_2_what_needs_a_person_before_its_first_pod_gives_the_target_back() {
    let mut look = before_the_grant();
    let granted = decide(&look);
    assert_eq!(run(&granted.state).occupation(), Some(Standing::Works));
    store(&mut look, &granted);
    look.wish.plan = Err(Rejection { code: "native_transfer.worker_image_refused".into(), message: "m".into() });
    let stalled = decide(&look);
    assert!(matches!(stalled.wait, Wait::Unbuildable(_)));
    assert_eq!(run(&stalled.state).occupation(), None);
    store(&mut look, &stalled);
    look.wish.plan = Ok("plan".into());
    assert_eq!(run(&decide(&look).state).occupation(), Some(Standing::Works), "and asks for it again");
}

#[test]
fn line_2_custody_held_by_another_is_waited_for_with_a_new_attempt_that_costs_none() {
    let mut look = at(WorkerPhase::Extract);
    let mut refused = receipt(WorkerPhase::Extract, 1, "Failed", Some("mssql_native.custody_held"), Custody::None);
    refused.attempt_closed = true;
    let decision = end(&mut look, ended(), Some(refused));
    let again = decide(&look);
    store(&mut look, &again);
    assert_eq!(run(&look.state).spent, 0);
    assert!(run(&decision.state).rest.is_none());
    look.pods.clear();
    let waiting = decide(&look);
    assert_eq!(intended(&waiting.state), WorkerId { attempt: 2, phase: WorkerPhase::Extract, r#try: 1 });
}

#[test]
fn line_3_a_sealed_end_is_held_and_published() {
    let look = at(WorkerPhase::Publish);
    assert_eq!(run(&look.state).custody, Custody::Held);
    assert_eq!(run(&look.state).publication.outcome, Outcome::Intent);
    assert_eq!(run(&look.state).sealed.as_ref().map(|sealed| sealed.rows), Some(7));
    assert_eq!(look.state.epoch, 5, "the floor of the next process");
}

#[test]
fn line_3_exit_4_goes_on_only_while_attempts_are_left_and_the_cause_may_pass() {
    let settled = |code| Some(receipt(WorkerPhase::Extract, 4, "ReextractRequired", Some(code), Custody::Released));
    let mut once = at(WorkerPhase::Extract);
    let decision = end(&mut once, ended(), settled("native_transfer.source_unreachable"));
    assert!(matches!(run(&decision.state).rest, Some(Rest::ReextractRequired { .. })));
    assert_eq!(reason(&decision, ConditionType::Stalled), Some(Reason::ReextractRequired));

    let mut twice = at(WorkerPhase::Extract);
    twice.wish.attempts = 2;
    end(&mut twice, ended(), settled("native_transfer.source_unreachable"));
    assert_eq!(intended(&twice.state).attempt, 2);

    let mut data = at(WorkerPhase::Extract);
    data.wish.attempts = 9;
    let decision = end(&mut data, ended(), settled("mssql_native_invalid_value"));
    assert!(run(&decision.state).rest.is_some(), "the same rows give the same end");
}

#[test]
fn line_3_exit_1_is_final_for_a_configuration_and_repeated_for_infrastructure() {
    let refused = |code| Some(receipt(WorkerPhase::Admit, 1, "Failed", Some(code), Custody::None));
    let mut lasting = at(WorkerPhase::Admit);
    let decision = end(&mut lasting, ended(), refused("native_transfer.target_grant_missing"));
    assert!(matches!(run(&decision.state).rest, Some(Rest::Failed { .. })));
    assert_eq!(decision.state.phase, Some(Phase::Failed));

    let mut passing = at(WorkerPhase::Admit);
    let decision = end(&mut passing, ended(), refused("native_transfer.source_unreachable"));
    let worker = run(&decision.state).worker.clone().expect("a worker");
    assert_eq!((worker.id.attempt, worker.id.r#try, worker.not_before), (1, 2, NOW + 10));
}

#[test]
fn line_3_a_refused_publish_never_gives_up_what_is_held() {
    let mut look = at(WorkerPhase::Publish);
    let refused = receipt(WorkerPhase::Publish, 1, "Failed", Some("native_transfer.connection_invalid"), Custody::None);
    let decision = end(&mut look, ended(), Some(refused));
    assert_eq!(run(&decision.state).custody, Custody::Held);
    assert_eq!(intended(&decision.state).phase, WorkerPhase::Publish);
}

#[test]
fn line_3_exit_3_is_repeated_with_a_growing_wait_and_calls_a_person_after_the_third() {
    let mut look = at(WorkerPhase::Publish);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let before = look.now;
        let code = Some("mssql_transaction.commit_outcome_unknown");
        let decision =
            end(&mut look, ended(), Some(receipt(WorkerPhase::Publish, 3, "OutcomeUnknown", code, Custody::Held)));
        waits.push(run(&decision.state).worker.as_ref().expect("a worker").not_before - before);
        let stalled = decision.state.condition(ConditionType::Stalled).is_some();
        assert_eq!(stalled, waits.len() >= 3);
        assert_eq!(decision.state.phase, Some(Phase::OutcomeUnknown));
        let published = decision.state.condition(ConditionType::Published).map(|condition| condition.verdict);
        assert_eq!(published, Some(Verdict::Unknown));
        look.now = run(&look.state).worker.as_ref().expect("a worker").not_before;
        look.pods.clear();
        let created = decide(&look);
        assert!(matches!(created.step, Step::CreatePod(_)));
        store(&mut look, &created);
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
}

#[test]
fn line_4_a_silent_end_is_asked_of_the_journal() {
    for (phase, shown) in [(WorkerPhase::Extract, Phase::CustodyUnknown), (WorkerPhase::Publish, Phase::OutcomeUnknown)]
    {
        let mut look = at(phase);
        let decision = end(&mut look, ended(), None);
        assert_eq!(intended(&decision.state).phase, WorkerPhase::Inspect);
        assert_eq!(decision.state.phase, Some(shown));
        assert!(matches!(decision.step, Step::ReleasePod { .. }), "its end is in status");
    }
}

#[test]
fn line_4_what_the_journal_says_decides_the_next_pod() {
    let no_run = Some("mssql_native.recovery_identity_invalid");
    let rows = [
        (WorkerPhase::Extract, 1, "", no_run, Custody::None, WorkerPhase::Extract, false),
        (WorkerPhase::Extract, 0, "Planned", None, Custody::None, WorkerPhase::Extract, false),
        (WorkerPhase::Extract, 0, "Extracting", None, Custody::Held, WorkerPhase::Extract, true),
        (WorkerPhase::Extract, 0, "StageComplete", None, Custody::Held, WorkerPhase::Publish, false),
        (WorkerPhase::Publish, 0, "Publishing", None, Custody::Held, WorkerPhase::Publish, false),
        (WorkerPhase::Publish, 0, "Succeeded", None, Custody::Released, WorkerPhase::Publish, false),
    ];
    for (silent, exit, state, code, custody, next, settling) in rows {
        let mut look = at(silent);
        end(&mut look, ended(), None);
        let decision = end(&mut look, ended(), Some(receipt(WorkerPhase::Inspect, exit, state, code, custody)));
        let worker = run(&decision.state).worker.clone().expect("a worker");
        assert_eq!((worker.id.phase, worker.settling, worker.id.attempt), (next, settling, 1), "{silent:?} {state}");
    }
}

#[test]
fn line_4_a_journal_that_forgot_what_it_held_is_lost_not_empty() {
    let mut look = at(WorkerPhase::Publish);
    end(&mut look, ended(), None);
    let gone = receipt(WorkerPhase::Inspect, 1, "", Some("mssql_native.recovery_journal_unavailable"), Custody::None);
    let decision = end(&mut look, ended(), Some(gone));
    assert_eq!(intended(&decision.state).phase, WorkerPhase::Inspect);
    assert_eq!(run(&decision.state).failure.as_ref().map(|failure| failure.code.as_str()), Some(codes::JOURNAL_LOST));
    assert_eq!(run(&decision.state).custody, Custody::Held);
    look.pods.clear();
    look.claim = Claim::Absent;
    assert_eq!(decide(&look).wait, Wait::JournalLost, "and no new claim is made");
}

#[test]
fn line_5_without_proof_nothing_is_started() {
    for (phase, shown) in [(WorkerPhase::Extract, Phase::CustodyUnknown), (WorkerPhase::Publish, Phase::OutcomeUnknown)]
    {
        let mut look = at(phase);
        let pod = pod(&look, Life::Unreachable, None);
        look.pods = vec![pod];
        let decision = decide(&look);
        assert_eq!(decision.step, Step::Nothing);
        assert_eq!(decision.state.phase, Some(shown));
        let ready = decision.state.condition(ConditionType::Ready).expect("Ready");
        assert_eq!((ready.verdict, ready.reason), (Verdict::Unknown, Reason::WorkerUnreachable));
        store(&mut look, &decision);
        look.pods[0].life = Life::Running;
        let back = decide(&look);
        assert_eq!(back.wait, Wait::Working, "it goes on by itself");
        assert_eq!(intended(&back.state), intended(&decision.state));
    }
}

#[test]
fn line_5_a_pod_whose_object_or_container_is_gone_is_asked_of_the_journal() {
    let mut lost = at(WorkerPhase::Extract);
    assert_eq!(intended(&end(&mut lost, Life::Lost, None).state).phase, WorkerPhase::Inspect);
    let mut gone = at(WorkerPhase::Extract);
    let running = end(&mut gone, Life::Running, None);
    assert_eq!(running.wait, Wait::Working);
    gone.pods.clear();
    assert_eq!(intended(&decide(&gone).state).phase, WorkerPhase::Inspect);
}

#[test]
fn line_6_a_pod_that_cannot_start_says_why_and_is_replaced_by_a_changed_template() {
    let mut look = at(WorkerPhase::Extract);
    let trouble = Trouble { reason: Reason::ImageUnavailable, message: "ErrImageNeverPull".into() };
    let waiting = end(&mut look, Life::Pending(Some(trouble)), None);
    assert_eq!(reason(&waiting, ConditionType::Reconciling), Some(Reason::ImageUnavailable));
    assert_eq!(waiting.step, Step::Nothing);
    look.wish.template = "other".into();
    let replaced = decide(&look);
    assert!(matches!(&replaced.step, Step::StopPod { only_unstarted: true, .. }));
    store(&mut look, &replaced);
    let next = end(&mut look, Life::Dead(Death::NeverStarted), None);
    assert_eq!(intended(&next.state), WorkerId { attempt: 1, phase: WorkerPhase::Extract, r#try: 2 });
    assert!(run(&next.state).failure.is_none(), "it is no failure");
    let mut running = at(WorkerPhase::Extract);
    end(&mut running, Life::Running, None);
    running.wish.template = "other".into();
    assert_eq!(decide(&running).step, Step::Nothing, "what runs is left alone");
}

#[test]
fn line_7_suspension_cancels_an_extraction_and_never_a_publication() {
    let mut look = at(WorkerPhase::Extract);
    end(&mut look, Life::Running, None);
    look.wish.suspend = true;
    let stop = decide(&look);
    assert!(matches!(&stop.step, Step::StopPod { only_unstarted: false, .. }));
    store(&mut look, &stop);
    let code = Some("native_transfer.cancelled");
    let settled = receipt(WorkerPhase::Extract, 4, "ReextractRequired", code, Custody::Released);
    end(&mut look, ended(), Some(settled));
    look.pods.clear();
    let waits = decide(&look);
    assert_eq!((&waits.step, &waits.wait), (&Step::Nothing, &Wait::Suspended));
    assert!(waits.state.condition(ConditionType::Suspended).is_some());
    assert_eq!(run(&waits.state).spent, 0, "a suspended attempt does not count");
    store(&mut look, &waits);
    look.wish.suspend = false;
    look.now += 60;
    assert!(matches!(&decide(&look).step, Step::CreatePod(worker) if worker.id.attempt == 2));

    let mut publish = at(WorkerPhase::Publish);
    end(&mut publish, Life::Running, None);
    publish.wish.suspend = true;
    assert_eq!((decide(&publish).step, decide(&publish).wait), (Step::Nothing, Wait::Working));
}

#[test]
fn line_7_a_deadline_cancels_an_extraction_under_its_own_code() {
    let mut look = at(WorkerPhase::Extract);
    end(&mut look, Life::Running, None);
    look.wish.deadline_seconds = Some(60);
    look.wish.attempts = 5;
    look.now = NOW + 61;
    let stop = decide(&look);
    assert_eq!(run(&stop.state).worker.as_ref().and_then(|worker| worker.cancel), Some(Cancel::Deadline));
    store(&mut look, &stop);
    let code = Some("native_transfer.cancelled");
    let settled = receipt(WorkerPhase::Extract, 4, "ReextractRequired", code, Custody::Released);
    let rest = end(&mut look, ended(), Some(settled));
    let expected = Rest::ReextractRequired { code: codes::DEADLINE_EXCEEDED.into() };
    assert_eq!(run(&rest.state).rest, Some(expected));
}

#[test]
fn line_8_deletion_before_the_first_effect_lets_everything_go_in_order() {
    let mut look = at(WorkerPhase::Extract);
    look.deleting = true;
    let claim = decide(&look);
    assert_eq!(claim.step, Step::ReleaseClaim { uid: "claim".into() });
    store(&mut look, &claim);
    look.claim = Claim::Absent;
    assert_eq!(decide(&look).step, Step::Unguard);
}

#[test]
fn line_8_deletion_cancels_an_extraction_and_waits_for_its_settlement() {
    let mut look = at(WorkerPhase::Extract);
    end(&mut look, Life::Running, None);
    look.deleting = true;
    let stop = decide(&look);
    assert!(matches!(stop.step, Step::StopPod { .. }));
    assert_eq!(reason(&stop, ConditionType::DeletionBlocked), Some(Reason::Deleting));
}

#[test]
fn line_8_held_custody_blocks_a_deletion_until_a_person_says_publish() {
    let mut look = at(WorkerPhase::Publish);
    look.deleting = true;
    let blocked = decide(&look);
    assert_eq!((&blocked.step, &blocked.wait), (&Step::Nothing, &Wait::HeldInDeletion));
    assert_eq!(reason(&blocked, ConditionType::DeletionBlocked), Some(Reason::CustodyHeld));
    look.wish.publish_on_delete = true;
    assert!(matches!(decide(&look).step, Step::CreatePod(_)));
}

#[test]
fn line_8_a_publication_in_doubt_goes_on_in_deletion() {
    let mut look = at(WorkerPhase::Publish);
    end(&mut look, Life::Running, None);
    look.deleting = true;
    let running = decide(&look);
    assert_eq!((&running.step, &running.wait), (&Step::Nothing, &Wait::Working));
    assert_eq!(reason(&running, ConditionType::DeletionBlocked), Some(Reason::PublicationRunning));
    store(&mut look, &running);
    let inspect = end(&mut look, ended(), None);
    assert_eq!(reason(&inspect, ConditionType::DeletionBlocked), Some(Reason::OutcomeUnknown));
    look.pods.clear();
    assert!(matches!(decide(&look).step, Step::CreatePod(_)));
}

#[test]
fn line_9_a_token_starts_a_run_when_the_last_one_is_known_and_not_before() {
    let mut look = at(WorkerPhase::Extract);
    look.wish.token = "2".into();
    assert_eq!(run(&decide(&look).state).token, "1");
    let code = Some("native_transfer.source_unreachable");
    let settled = receipt(WorkerPhase::Extract, 4, "ReextractRequired", code, Custody::Released);
    end(&mut look, ended(), Some(settled));
    look.pods.clear();
    let next = decide(&look);
    assert_eq!((run(&next.state).token.as_str(), run(&next.state).attempt), ("2", 1));
    assert_eq!(next.state.epoch, 5, "the epoch is the journal's and stays");
    store(&mut look, &next);
    let again = decide(&look);
    assert_eq!(run(&again.state).token, "2", "the same token again does nothing");
}

#[test]
fn line_9_a_token_of_an_earlier_run_starts_nothing_and_changes_no_outcome() {
    let mut look = at(WorkerPhase::Publish);
    let done = receipt(WorkerPhase::Publish, 0, "Succeeded", None, Custody::Released);
    let rest = end(&mut look, ended(), Some(done));
    look.pods.clear();
    look.used_tokens.insert("0".into());
    look.wish.token = "0".into();
    let refused = decide(&look);
    assert_eq!((&refused.step, refused.again_after), (&Step::Nothing, None));
    assert_eq!(run(&refused.state), run(&rest.state));
    assert_eq!(refused.state.phase, Some(Phase::Succeeded));
    let accepted = refused.state.condition(ConditionType::Accepted).expect("Accepted");
    assert_eq!((accepted.verdict, accepted.reason), (Verdict::False, Reason::TokenUsed));
    assert!(accepted.message.starts_with("native_transfer.run_token_used:"), "{}", accepted.message);
    let published = refused.state.condition(ConditionType::Published).expect("Published");
    assert_eq!(published.verdict, Verdict::True);
    store(&mut look, &refused);
    assert_eq!(decide(&look).state, look.state, "no write when nothing changed");
    look.wish.token = "2".into();
    assert_eq!(run(&decide(&look).state).token, "2");
}

#[test]
fn line_9_a_journal_that_knows_the_run_of_a_forgotten_token_publishes_nothing_in_its_name() {
    let mut look = at(WorkerPhase::Extract);
    let mut old = receipt(WorkerPhase::Extract, 0, "Succeeded", None, Custody::Released);
    old.receipt_id = Some("r-1".into());
    let refused = end(&mut look, ended(), Some(old));
    assert_eq!(run(&refused.state).rest, Some(Rest::Failed { code: codes::RUN_TOKEN_USED.into() }));
    assert_eq!(run(&refused.state).publication.outcome, Outcome::NotBegun);
    assert_eq!(refused.state.phase, Some(Phase::Failed));
}

#[test]
fn sealed_rows_whose_claim_goes_with_the_namespace_are_told_the_way_out() {
    let mut look = at(WorkerPhase::Publish);
    look.deleting = true;
    look.pods.clear();
    let waits = decide(&look);
    assert_eq!(reason(&waits, ConditionType::DeletionBlocked), Some(Reason::CustodyHeld));
    let Claim::Present { deleting, .. } = &mut look.claim else { panic!("no claim") };
    *deleting = true;
    for publish_on_delete in [false, true] {
        look.wish.publish_on_delete = publish_on_delete;
        let blocked = decide(&look);
        assert_eq!(blocked.step, Step::Nothing);
        assert_eq!(reason(&blocked, ConditionType::DeletionBlocked), Some(Reason::NamespaceTerminating));
    }
}

#[test]
fn a_namespace_that_takes_no_pod_any_more_is_told_and_nothing_is_dropped() {
    let mut look = at(WorkerPhase::Publish);
    end(&mut look, Life::Running, None);
    look.deleting = true;
    end(&mut look, ended(), None);
    look.pods.clear();
    assert!(matches!(decide(&look).step, Step::CreatePod(_)), "it is tried once");
    look.refused = Some(Trouble { reason: Reason::NamespaceTerminating, message: "m".into() });
    let blocked = decide(&look);
    assert_eq!((&blocked.step, blocked.again_after), (&Step::Nothing, None));
    assert_eq!(reason(&blocked, ConditionType::DeletionBlocked), Some(Reason::NamespaceTerminating));
    assert_eq!(reason(&blocked, ConditionType::Stalled), Some(Reason::NamespaceTerminating));
    let message = &blocked.state.condition(ConditionType::DeletionBlocked).expect("blocked").message;
    for part in ["nobody knows whether", &crate::names::claim("m"), "m/1/1", "terminating-namespace.md"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(run(&blocked.state).custody, Custody::Held);
    store(&mut look, &blocked);
    assert_eq!(decide(&look).state, look.state, "no write when nothing changed");
}

#[test]
fn a_pod_that_nobody_intends_is_stopped_before_anything_starts() {
    let mut look = at(WorkerPhase::Extract);
    let mut stranger = pod(&look, Life::Running, None);
    stranger.worker = None;
    look.pods = vec![stranger];
    let decision = decide(&look);
    assert!(matches!(decision.step, Step::StopPod { .. }));
    look.pods[0].life = Life::Unreachable;
    assert_eq!(decide(&look).step, Step::Nothing);
}

#[test]
fn a_claim_grows_before_the_next_pod_and_a_refusal_stops_nothing() {
    let mut look = look();
    look.claim = Claim::Present { uid: "claim".into(), guarded: true, deleting: false, lost: false, short: true };
    let grown = decide(&look);
    assert_eq!(grown.step, Step::GrowClaim { uid: "claim".into() });
    store(&mut look, &grown);
    look.refused = Some(Trouble { reason: Reason::CreationRefused, message: "the class forbids it".into() });
    assert!(matches!(decide(&look).step, Step::CreatePod(_)));
}

#[test]
fn ended_pods_of_a_run_at_rest_go_after_their_retention() {
    let mut look = look();
    let first = decide(&look);
    store(&mut look, &first);
    let code = Some("mssql_native.composition_required");
    let refused = receipt(WorkerPhase::Admit, 1, "Failed", code, Custody::None);
    look.pods = vec![pod(&look, ended(), Some(refused))];
    let rest = decide(&look);
    assert_eq!(rest.step, Step::ReleasePod { name: "admit-1-1".into(), uid: "uid-admit-1-1".into() });
    store(&mut look, &rest);
    look.pods[0].unread = false;
    assert_eq!((decide(&look).step, decide(&look).again_after), (Step::Nothing, None), "without a retention it stays");
    look.wish.retention_seconds = Some(60);
    assert_eq!((decide(&look).step, decide(&look).again_after), (Step::Nothing, Some(60)));
    look.now = NOW + 60;
    assert_eq!(decide(&look).step, Step::RemovePod { name: "admit-1-1".into(), uid: "uid-admit-1-1".into() });
}

#[test]
fn a_pod_that_started_before_its_replacement_goes_on() {
    let mut look = look();
    let first = decide(&look);
    store(&mut look, &first);
    look.pods = vec![pod(&look, Life::Pending(None), None)];
    look.wish.template = "other".into();
    let replaced = decide(&look);
    assert!(matches!(replaced.step, Step::StopPod { only_unstarted: true, .. }), "{:?}", replaced.step);
    store(&mut look, &replaced);
    look.pods[0].life = Life::Running;
    assert_eq!(decide(&look).step, Step::Nothing);
}

#[test]
fn a_worker_that_has_run_is_never_taken_for_one_that_has_not() {
    let mut look = look();
    let first = decide(&look);
    store(&mut look, &first);
    look.pods = vec![pod(&look, Life::Running, None)];
    let running = decide(&look);
    store(&mut look, &running);
    look.pods[0].life = Life::Dead(Death::NeverStarted);
    let silent = decide(&look).state;
    assert_eq!(run(&silent).failure.as_ref().map(|failure| failure.code.as_str()), Some(codes::RECEIPT_MISSING));
}

#[test]
fn a_journal_that_is_gone_after_it_gave_an_epoch_is_lost_even_if_nothing_is_known_to_be_held() {
    let mut look = at(WorkerPhase::Extract);
    look.state.epoch = 1;
    look.deleting = true;
    end(&mut look, ended(), None);
    let gone = receipt(WorkerPhase::Inspect, 1, "", Some("mssql_native.recovery_journal_unavailable"), Custody::None);
    let decision = end(&mut look, ended(), Some(gone));
    assert_eq!(run(&decision.state).failure.as_ref().map(|failure| failure.code.as_str()), Some(codes::JOURNAL_LOST));
    assert_eq!(run(&decision.state).custody, Custody::Unknown);
    assert!(!matches!(decision.step, Step::ReleaseClaim { .. } | Step::Unguard), "{:?}", decision.step);
}

#[test]
fn a_suspension_that_a_later_pod_settles_is_no_attempt() {
    let mut look = at(WorkerPhase::Extract);
    look.wish.suspend = true;
    end(&mut look, ended(), None);
    end(&mut look, ended(), Some(receipt(WorkerPhase::Inspect, 0, "Extracting", None, Custody::Held)));
    let code = Some("mssql_native.pre_eof_reextract_required");
    let settled =
        end(&mut look, ended(), Some(receipt(WorkerPhase::Extract, 4, "ReextractRequired", code, Custody::Released)));
    assert_eq!((run(&settled.state).rest.clone(), run(&settled.state).spent), (None, 0));
}
