//! The health script for Argo CD, run by a real Lua 5.1 with the libraries that Argo CD gives a script of its ConfigMap.

use std::fs;
use std::path::{Path, PathBuf};

use mlua::{Lua, LuaOptions, StdLib};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the script returns; any other field or type is an error for Argo CD too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Health {
    status: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tests {
    tests: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    health_status: Health,
    input_path: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../argocd/resource_customizations/transfer.dpone.io/NativeTransfer")
}

fn script() -> String {
    fs::read_to_string(folder().join("health.lua")).unwrap()
}

/// A value as Argo CD hands it to a script: null is nil, every number a Lua number, lists start at 1.
fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<mlua::Value> {
    Ok(match value {
        Value::Null => mlua::Value::Nil,
        Value::Bool(truth) => mlua::Value::Boolean(*truth),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap()),
        Value::String(text) => mlua::Value::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table()?;
            for item in items {
                table.raw_push(to_lua(lua, item)?)?;
            }
            mlua::Value::Table(table)
        }
        Value::Object(entries) => {
            let table = lua.create_table()?;
            for (key, entry) in entries {
                table.raw_set(key.as_str(), to_lua(lua, entry)?)?;
            }
            mlua::Value::Table(table)
        }
    })
}

fn run(script: &str, object: &Value) -> mlua::Result<Health> {
    // No string library, not even its methods on strings.
    let lua = Lua::new_with(StdLib::TABLE, LuaOptions::default())?;
    lua.globals().set("obj", to_lua(&lua, object)?)?;
    let answer: mlua::Table = lua.load(script).eval()?;
    for pair in answer.pairs::<String, mlua::Value>() {
        let (key, value) = pair?;
        assert!(["status", "message"].contains(&key.as_str()) && value.is_string(), "{key}: {value:?}");
    }
    Ok(Health { status: answer.get("status")?, message: answer.get("message")? })
}

#[test]
fn lua_is_5_1() {
    let lua = Lua::new_with(StdLib::TABLE, LuaOptions::default()).unwrap();
    assert_eq!(lua.globals().get::<String>("_VERSION").unwrap(), "Lua 5.1");
    assert!(lua.load("return ('x'):upper()").eval::<String>().is_err(), "the string library must be absent");
}

#[test]
fn every_case_of_the_test_data_has_its_health() {
    let tests: Tests = serde_norway::from_str(&fs::read_to_string(folder().join("health_test.yaml")).unwrap()).unwrap();
    let script = script();
    for case in &tests.tests {
        let object: Value =
            serde_norway::from_str(&fs::read_to_string(folder().join(&case.input_path)).unwrap()).unwrap();
        assert_eq!(run(&script, &object).unwrap(), case.health_status, "{}", case.input_path);
    }
    let files = fs::read_dir(folder().join("testdata")).unwrap().count();
    assert_eq!(files, tests.tests.len(), "every file of testdata is a case");
}

const CONDITIONS: [&str; 8] =
    ["Accepted", "CustodySecured", "Published", "Ready", "Reconciling", "Stalled", "Suspended", "DeletionBlocked"];

/// Phases of the engine, a missing one, and one that this script does not know.
fn phases() -> Vec<Value> {
    let known = contract::transfer::TransferState::ALL.iter().map(|state| json!(state.text()));
    known.chain([Value::Null, json!("FromTheFuture")]).collect()
}

#[test]
fn no_phase_and_condition_makes_an_error_or_a_false_healthy() {
    let script = script();
    let mut tried = 0;
    for phase in phases() {
        for kind in CONDITIONS {
            for status in ["True", "False", "Unknown"] {
                for (texts, deleting) in [(true, false), (false, false), (true, true)] {
                    let mut condition = json!({"type": kind, "status": status});
                    if texts {
                        condition["reason"] = json!("SomeReason");
                        condition["message"] = json!("Some message.");
                    }
                    let mut object = json!({
                        "metadata": {"name": "t", "generation": 3},
                        "status": {"observedGeneration": 3, "phase": phase, "conditions": [condition]},
                    });
                    if deleting {
                        object["metadata"]["deletionTimestamp"] = json!("2026-11-30T20:00:00Z");
                    }
                    let health = run(&script, &object).unwrap_or_else(|error| panic!("{object}: {error}"));
                    let known = ["Progressing", "Suspended", "Healthy", "Degraded"];
                    assert!(
                        known.contains(&health.status.as_str()) && !health.message.is_empty(),
                        "{object}: {health:?}"
                    );
                    let unknown = phase == "OutcomeUnknown" || (kind, status) == ("Published", "Unknown");
                    assert!(!unknown || health.status == "Degraded", "{object}: {health:?}");
                    let ready = (kind, status) == ("Ready", "True") && !unknown && !deleting;
                    assert_eq!(health.status == "Healthy", ready, "{object}: {health:?}");

                    // The same of an older generation is never more than Progressing.
                    object["metadata"]["generation"] = json!(4);
                    assert_eq!(run(&script, &object).unwrap().status, "Progressing", "{object}");
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, phases().len() * CONDITIONS.len() * 9);
}

#[test]
fn damaged_objects_make_no_error() {
    let script = script();
    for object in [
        json!({}),
        json!({"metadata": {}}),
        json!({"metadata": {"generation": 1}, "status": {}}),
        json!({"status": {"observedGeneration": 1}}),
        json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": []}}),
        json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": [{}]}}),
        json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": [{"type": "Stalled"}]}}),
    ] {
        let health = run(&script, &object).unwrap_or_else(|error| panic!("{object}: {error}"));
        assert_eq!(health.status, "Progressing", "{object}");
    }
}

#[test]
fn the_config_map_holds_the_same_script() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../argocd/argocd-cm.yaml");
    let map: Value = serde_norway::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(map, json!({"data": {"resource.customizations.health.transfer.dpone.io_NativeTransfer": script()}}));
}
