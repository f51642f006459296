//! Every rule has a change that it lets through and one that it refuses, judged by the same expressions offline.

use std::collections::BTreeSet;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::{Value, json};

use super::rules::RULES;
use super::tests::{example, schema};

const PLAN_A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const PLAN_B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A resource as the API server holds it: an example with the status of a running extraction.
fn stored() -> Value {
    let mut object = serde_json::to_value(example("flights-day.yaml")).expect("json");
    object["status"] = json!({
        "phase": "Extracting",
        "epoch": 3,
        "run": {"token": "1", "id": "u/1/1", "tag": "0123456789abcdef", "planSHA256": PLAN_A, "attempt": 1},
        "custody": {"state": "Held", "eof": {"sha256": PLAN_A, "inline": "{}"}},
    });
    object
}

/// `object` with `value` at a JSON pointer; null takes the member away.
fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = object.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object");
        if value.is_null() {
            parent.remove(key);
        } else {
            parent.insert(key.to_owned(), value.clone());
        }
    }
    object
}

/// The rules, compiled once.
struct Judge {
    schema: CompiledSchema,
    validator: Validator,
}

impl Judge {
    fn new() -> Self {
        Judge { schema: compile_schema(&schema()), validator: Validator::new() }
    }

    /// Messages of the rules that refuse the change.
    fn refusals(&self, old: Option<&Value>, new: &Value) -> BTreeSet<String> {
        let result = self.validator.validate_compiled(&self.schema, new, old);
        result.err().map(|errors| errors.iter().map(|error| error.message.clone()).collect()).unwrap_or_default()
    }
}

fn message(rule: &str) -> String {
    RULES.iter().find(|known| known.name == rule).expect("a rule").message.to_owned()
}

/// A change of a stored resource, and what becomes of it.
struct Case {
    rule: &'static str,
    before: Vec<(&'static str, Value)>,
    change: Vec<(&'static str, Value)>,
    accepted: bool,
}

fn accepts(rule: &'static str, before: &[(&'static str, Value)], change: &[(&'static str, Value)]) -> Case {
    Case { rule, before: before.to_vec(), change: change.to_vec(), accepted: true }
}

fn rejects(rule: &'static str, before: &[(&'static str, Value)], change: &[(&'static str, Value)]) -> Case {
    Case { rule, before: before.to_vec(), change: change.to_vec(), accepted: false }
}

fn publication(outcome: &str) -> (&'static str, Value) {
    ("/status/publication", json!({"outcome": outcome, "receiptId": "r-1"}))
}

fn attempt(attempt: i64) -> (&'static str, Value) {
    ("/status/run/attempt", json!(attempt))
}

fn spec_cases() -> Vec<Case> {
    let manifest = "manifest-immutable";
    let none = &[] as &[(&str, Value)];
    let settled = [("/status/phase", json!("Succeeded")), ("/status/custody/state", json!("Released"))];
    let token = [("/spec/run", json!({"token": "2"}))];
    vec![
        accepts(manifest, none, &[("/spec/suspend", json!(true))]),
        rejects(manifest, none, &[("/spec/manifest/source/table/name", json!("other"))]),
        rejects(manifest, none, &[("/spec/manifest/extra", json!({"added": 1}))]),
        rejects(manifest, &[("/spec/manifest/extra", json!(1))], &[("/spec/manifest/extra", Value::Null)]),
        accepts("interval-immutable", &[("/spec/interval", Value::Null)], &[("/spec/suspend", json!(true))]),
        rejects("interval-immutable", none, &[("/spec/interval/end", json!("2013-07-06T00:00:00Z"))]),
        rejects("interval-immutable", none, &[("/spec/interval", Value::Null)]),
        rejects("interval-immutable", &[("/spec/interval", Value::Null)], &[("/spec/interval", json!({"end": "x"}))]),
        accepts("journal-class-immutable", none, &[("/spec/journal/size", json!("6Gi"))]),
        rejects("journal-class-immutable", none, &[("/spec/journal/storageClassName", json!("fast"))]),
        rejects("journal-class-immutable", none, &[("/spec/journal/storageClassName", Value::Null)]),
        accepts("journal-access-mode-immutable", none, &[("/spec/suspend", json!(false))]),
        rejects("journal-access-mode-immutable", none, &[("/spec/journal/accessMode", json!("ReadWriteOnce"))]),
        accepts("journal-size-grows", none, &[("/spec/journal/size", json!("5.5Gi"))]),
        accepts("journal-size-grows", none, &[("/spec/journal/size", json!("5120Mi"))]),
        rejects("journal-size-grows", none, &[("/spec/journal/size", json!("5G"))]),
        accepts("run-token-after-known-outcome", &settled, &token),
        accepts("run-token-after-known-outcome", &[("/status", Value::Null)], &token),
        // An absent run means token 1, so spelling it out is no change.
        accepts("run-token-after-known-outcome", none, &[("/spec/run", Value::Null)]),
        rejects("run-token-after-known-outcome", none, &token),
        rejects("run-token-after-known-outcome", &[("/status/phase", json!("OutcomeUnknown"))], &token),
        rejects("run-token-after-known-outcome", &[("/status/phase", json!("Failed"))], &token),
        accepts("journal-size-grows", none, &[("/spec/connections/target/secretRef/name", json!("other"))]),
        accepts("journal-size-grows", none, &[("/spec/workers", json!({"image": "worker:2"}))]),
        accepts("journal-size-grows", none, &[("/spec/limits", json!({"attempts": 3}))]),
    ]
}

fn run_cases() -> Vec<Case> {
    let none = &[] as &[(&str, Value)];
    let no_eof = ("/status/custody/eof", Value::Null);
    let next_run = ("/status/run", json!({"token": "2", "id": "u/2/1", "tag": "0123456789abcdef", "attempt": 1}));
    vec![
        accepts("status-epoch-never-falls", none, &[("/status/epoch", json!(4))]),
        rejects("status-epoch-never-falls", none, &[("/status/epoch", json!(2))]),
        rejects("status-epoch-never-falls", none, &[("/status/epoch", Value::Null)]),
        rejects("status-epoch-never-falls", none, &[("/status", Value::Null)]),
        accepts("status-attempt-never-falls", none, &[attempt(2), no_eof.clone()]),
        accepts("status-attempt-never-falls", &[attempt(5)], &[next_run.clone(), no_eof.clone()]),
        rejects("status-attempt-never-falls", &[attempt(2)], &[attempt(1)]),
        rejects("status-attempt-never-falls", none, &[("/status/run", Value::Null)]),
        rejects("status-attempt-never-falls", none, &[("/status", Value::Null)]),
        accepts(
            "status-plan-write-once",
            &[("/status/run/planSHA256", Value::Null)],
            &[("/status/run/planSHA256", json!(PLAN_B))],
        ),
        accepts("status-plan-write-once", none, &[next_run.clone(), no_eof.clone()]),
        rejects("status-plan-write-once", none, &[("/status/run/planSHA256", json!(PLAN_B))]),
        rejects("status-plan-write-once", none, &[("/status/run/planSHA256", Value::Null)]),
        rejects(
            "status-plan-write-once",
            none,
            &[attempt(2), ("/status/run/planSHA256", json!(PLAN_B)), no_eof.clone()],
        ),
        accepts("status-eof-write-once", &[no_eof.clone()], &[("/status/custody/eof", json!({"sha256": PLAN_B}))]),
        accepts(
            "status-eof-write-once",
            &[("/status/custody/eof/inline", Value::Null)],
            &[("/status/custody/eof/inline", json!("{}"))],
        ),
        accepts("status-eof-write-once", none, &[attempt(2), ("/status/custody/eof", json!({"sha256": PLAN_B}))]),
        rejects("status-eof-write-once", none, &[("/status/custody/eof/sha256", json!(PLAN_B))]),
        rejects("status-eof-write-once", none, &[("/status/custody/eof/inline", json!("{\"a\":1}"))]),
        rejects("status-eof-write-once", none, &[no_eof]),
        rejects("status-eof-write-once", none, &[("/status/custody", Value::Null)]),
    ]
}

fn publication_cases() -> Vec<Case> {
    let no_eof = ("/status/custody/eof", Value::Null);
    let left = "status-attempt-left-with-known-outcome";
    let step = "status-outcome-transition";
    let receipt = "status-receipt-write-once";
    let next_run = ("/status/run", json!({"token": "2", "id": "u/2/1", "tag": "0123456789abcdef", "attempt": 1}));
    let none = ("/status/publication", Value::Null);
    let mut cases = vec![
        accepts(left, &[publication("RolledBack")], &[attempt(2), no_eof.clone(), none.clone()]),
        accepts(left, &[publication("Committed")], &[next_run.clone(), no_eof.clone(), none.clone()]),
        rejects(left, &[publication("Committed")], &[attempt(2), no_eof.clone(), none.clone()]),
        rejects(left, &[publication("Unknown")], &[next_run.clone(), no_eof.clone(), none.clone()]),
        rejects(left, &[publication("Unknown")], &[attempt(2), no_eof.clone(), none.clone()]),
        rejects(left, &[publication("Intended")], &[next_run, no_eof, none.clone()]),
        accepts(receipt, &[("/status/publication", json!({"outcome": "Intended"}))], &[publication("Committed")]),
        rejects(receipt, &[publication("Committed")], &[("/status/publication/receiptId", json!("r-2"))]),
        rejects(receipt, &[publication("Committed")], &[("/status/publication/receiptId", Value::Null)]),
        rejects(step, &[publication("Committed")], &[none.clone()]),
        rejects(step, &[publication("Unknown")], &[none]),
    ];
    let words = ["Intended", "Committed", "RolledBack", "Unknown", "Retired"];
    for before in words {
        for after in words {
            let accepted = before == after
                || matches!(before, "Intended" | "RolledBack")
                || (before == "Unknown" && after != "Intended");
            cases.push(Case {
                rule: step,
                before: vec![publication(before)],
                change: vec![("/status/publication/outcome", json!(after))],
                accepted,
            });
        }
    }
    cases
}

#[test]
fn every_rule_accepts_and_rejects_what_it_says() {
    let (judge, mut seen) = (Judge::new(), BTreeSet::new());
    for case in spec_cases().into_iter().chain(run_cases()).chain(publication_cases()) {
        let before = with(stored(), &case.before);
        let after = with(before.clone(), &case.change);
        let refused = judge.refusals(Some(&before), &after);
        let told = format!("{}: {:?} on {:?}", case.rule, case.change, case.before);
        if case.accepted {
            assert_eq!(refused, BTreeSet::new(), "{told}");
        } else {
            assert!(refused.contains(&message(case.rule)), "{told}: {refused:?}");
        }
        seen.insert((case.rule, case.accepted));
    }
    for rule in RULES {
        assert!(seen.contains(&(rule.name, true)) && seen.contains(&(rule.name, false)), "{} is not tried", rule.name);
    }
}

#[test]
fn a_resource_is_accepted_when_it_is_new_and_when_it_does_not_change() {
    let judge = Judge::new();
    assert_eq!(judge.refusals(None, &stored()), BTreeSet::new());
    assert_eq!(judge.refusals(Some(&stored()), &stored()), BTreeSet::new());
}

#[test]
fn rules_compile() {
    let judge = Judge::new();
    assert!(!judge.schema.has_errors(), "{:?}", judge.schema.compilation_errors());
}
