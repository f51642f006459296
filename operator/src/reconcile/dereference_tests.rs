//! Who competes for a target, and in which order.

use super::*;
use crate::crd::condition::{Reason, Verdict};
use crate::crd::status::HistoryEntry;
use crate::crd::tests::example;
use crate::reconcile::decide::state::{Condition, Outcome, Run, State, Worker};

const TARGET: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const NOW: i64 = 1_000;

/// An admitted run that waits to be granted the target.
fn waiting() -> Run {
    let mut run = Run::new("1", &"b".repeat(64), 10);
    run.target = Some(TARGET.into());
    run.worker = Some(Worker {
        id: WorkerId { attempt: 1, phase: WorkerPhase::Extract, r#try: 1 },
        uid: None,
        started: false,
        settling: false,
        granted: false,
        epoch_floor: 0,
        not_before: 20,
        inspects: None,
        cancel: None,
    });
    run
}

fn transfer(name: &str, created: i64, state: &State) -> NativeTransfer {
    let mut transfer = example("flights-day.yaml");
    transfer.metadata.name = Some(name.into());
    transfer.metadata.uid = Some(format!("uid-{name}"));
    transfer.metadata.creation_timestamp = Some(status::time(created));
    let status = status::write(&owner(&transfer), state, None, status::Shown::default(), 30);
    transfer.status = Some(status);
    transfer
}

fn standing(state: &State, change: impl FnOnce(&mut NativeTransfer)) -> Option<Standing> {
    let mut transfer = transfer("t", 10, state);
    change(&mut transfer);
    competitor(&transfer, TARGET, NOW).map(|competitor| competitor.standing)
}

fn of(run: Run) -> State {
    State { run: Some(run), ..State::default() }
}

#[test]
fn what_holds_nothing_and_cannot_start_keeps_nobody_from_the_target() {
    assert_eq!(standing(&of(waiting()), |_| {}), Some(Standing::Waits));
    assert_eq!(standing(&of(waiting()), |transfer| transfer.spec.suspend = Some(true)), None, "suspended");
    let deleted = |transfer: &mut NativeTransfer| transfer.metadata.deletion_timestamp = Some(status::time(40));
    assert_eq!(standing(&of(waiting()), deleted), None, "going away");
    let mut later = waiting();
    later.worker.as_mut().expect("a worker").not_before = NOW + 1;
    assert_eq!(standing(&of(later), |_| {}), None, "between two tries");
    let stalled = Condition {
        kind: ConditionType::Stalled,
        verdict: Verdict::True,
        reason: Reason::PlanChanged,
        message: "m".into(),
    };
    let state = State { conditions: vec![stalled.clone()], ..of(waiting()) };
    assert_eq!(standing(&state, |_| {}), None, "stalled");

    let mut held = waiting();
    held.custody = Custody::Held;
    let state = State { conditions: vec![stalled], ..of(held.clone()) };
    assert_eq!(standing(&state, |_| {}), Some(Standing::Holds), "stalled, and yet it holds custody");
    assert_eq!(standing(&of(held.clone()), |transfer| transfer.spec.suspend = Some(true)), Some(Standing::Holds));
    held.publication.outcome = Outcome::Unknown;
    assert_eq!(standing(&of(held), deleted), Some(Standing::Unknown));
    let mut other = waiting();
    other.target = Some("c".repeat(64));
    assert_eq!(standing(&of(other), |_| {}), None, "another target");
}

#[test]
fn whoever_occupies_the_target_is_read_first_and_then_the_older() {
    let mut granted = waiting();
    granted.worker.as_mut().expect("a worker").granted = true;
    let waits = of(waiting());
    let mut known = [
        transfer("young", 30, &waits),
        transfer("b", 20, &waits),
        transfer("us", 5, &waits),
        transfer("a", 20, &waits),
        transfer("works", 40, &of(granted)),
        transfer("old", 10, &waits),
    ];
    for _ in 0..known.len() {
        known.rotate_left(1);
        let cache = known.iter().cloned().map(Arc::new).collect();
        let names: Vec<String> = candidates(cache, "uid-us", TARGET).iter().map(|other| other.name_any()).collect();
        assert_eq!(names, ["works", "old", "a", "b", "young"]);
    }
}

#[test]
fn tokens_of_the_history_are_used_but_not_the_one_that_runs() {
    let mut transfer = transfer("t", 10, &of(waiting()));
    let entry = |token: &str| HistoryEntry {
        token: token.into(),
        attempt: 1,
        phase: crate::crd::status::Phase::ReextractRequired,
        code: None,
        rows: None,
        receipt_id: None,
        finished_at: None,
    };
    transfer.status.as_mut().expect("a status").history = vec![entry("0"), entry("1")];
    assert_eq!(used_tokens(&transfer), BTreeSet::from(["0".to_owned()]));
}
