//! Every rule has a change that it lets through and one that it refuses, judged by the same expressions offline.

use std::collections::BTreeSet;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use super::rules::RULES;
use super::tests::{example, schema};

/// A resource as the API server holds it: an example with the status of a running extraction.
fn stored() -> Value {
    let mut object = serde_json::to_value(example("flights-day.yaml")).expect("json");
    object["status"] = cases()["status"].clone();
    object
}

/// `object` with the changes of a case.
fn with(mut object: Value, changes: &Value) -> Value {
    for (pointer, value) in changes.as_object().expect("changes") {
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

/// The cases: a stored resource's status, and changes of it by JSON pointer with what becomes of each. A null takes a
/// member away. The file is data, so that the same changes can be sent to a real API server.
fn cases() -> Value {
    serde_json::from_str(include_str!("rules_cases.json")).expect("cases")
}

#[test]
fn every_rule_accepts_and_rejects_what_it_says() {
    let (judge, mut seen) = (Judge::new(), BTreeSet::new());
    for case in cases()["cases"].as_array().expect("a list") {
        let rule = case["rule"].as_str().expect("a rule");
        let before = with(stored(), &case["before"]);
        let after = with(before.clone(), &case["change"]);
        let refused = judge.refusals(Some(&before), &after);
        let accepted = case["accepted"].as_bool().expect("a verdict");
        if accepted {
            assert_eq!(refused, BTreeSet::new(), "{case}");
        } else {
            assert!(refused.contains(&message(rule)), "{case}: {refused:?}");
        }
        seen.insert((rule.to_owned(), accepted));
    }
    for rule in RULES {
        for verdict in [true, false] {
            assert!(seen.contains(&(rule.name.to_owned(), verdict)), "{} is never {verdict}", rule.name);
        }
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
