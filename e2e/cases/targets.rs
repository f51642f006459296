//! Two transfers.

use e2e::Case;
use e2e::case::WRITER;
use servers::sqlserver::control::{Breakpoint, Then, When};

/// The first chunk of any extraction.
fn extraction() -> Breakpoint {
    Breakpoint::hold("", When::Rows(5)).on_bulk()
}

/// The writer of the first chunk, before it begins. Not later: a chunk's transaction keeps the row of its run fence locked,
/// which is the whole table in our test server.
fn writer() -> Breakpoint {
    Breakpoint::hold("sp_getapplock", When::Before).of(WRITER)
}

pub(crate) fn one_target_is_used_in_turn() {
    let mut case = Case::new("one-target");
    case.table("t", 50);
    let held = case.hold(extraction());
    case.apply(&case.document("t"));
    case.until_held(held);
    let second = case.document("t").replacen("metadata: {name: t}", "metadata: {name: u}", 1);
    case.apply(&second);
    let waiting = case.until_reason("u", "Reconciling", "TargetBusy");
    assert_eq!(case.pods("extract").len(), 1, "{:#}", waiting["status"]);
    case.release(held, Then::GoOn);
    case.until_phase("t", "Succeeded");
    case.until_phase("u", "Succeeded");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "2");
}

pub(crate) fn two_targets_are_used_at_once() {
    let mut case = Case::new("two-targets");
    case.table("t", 50);
    case.table("u", 50);
    let first = case.hold(writer());
    case.apply(&case.document("t"));
    case.until_held(first);
    let second = case.hold(writer());
    case.apply(&case.document("u"));
    // Both are in the middle of their extraction now.
    case.until_held(second);
    case.release(second, Then::GoOn);
    case.release(first, Then::GoOn);
    case.until_phase("t", "Succeeded");
    case.until_phase("u", "Succeeded");
    case.assert_moved("t");
    case.assert_moved("u");
    assert_eq!(case.receipts(), "2");
}
