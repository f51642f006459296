//! `manifest_accept_reject`: options to resolved limits and window, or the code of the first failing check.

use contract::canon::{Json, Object};
use contract::identity::LayoutVersion;
use contract::manifest::policy::{self, Options, Policy};
use contract::port::source::SourceMode;
use contract::raw::selector::scope_text;
use contract::window::WindowSpec;
use serde_json::Value;

use super::{Case, Check, File, Run, fail, run, same};

#[test]
fn manifest_accept_reject() {
    run(&File {
        name: "manifest_accept_reject",
        groups: &[
            ("options", Run::Check(options)),
            ("limits", Run::Check(options)),
            ("chunking", Run::Check(options)),
            ("backend", Run::Check(options)),
            ("layout", Run::Check(options)),
            ("source_snapshot", Run::Check(options)),
            ("source_policy", Run::Check(options)),
            ("window", Run::Check(options)),
        ],
    });
}

fn options(case: &Case) -> Check {
    // What the released predecessor said does not bind.
    let _ = case.get("error_0_88_0");
    let Json::Object(options) = case.json("options")? else { return fail("options is no object") };
    let configured = |key: &str| -> bool {
        let attributes = case.get("config_attributes").and_then(|attributes| attributes.get(key));
        attributes.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)) && value != "")
    };
    let verdict = policy::check(Options {
        options: &options,
        mode: case.text("load_strategy")?,
        strategy: None,
        additional_scope: configured("with_dedup") || configured("custom_predicate"),
        interval_optional: false,
    });
    same("accepted", Some(verdict.is_ok()), case.field("accepted")?.as_bool())?;
    let code = verdict.as_ref().err().map(|refusal| refusal.code.as_str());
    // A code is the text before `: `; what follows is the prior system's message.
    let want = case.optional_text("error").map(|text| text.split(": ").next().unwrap_or(text));
    same("code", code, want)?;
    match verdict {
        Ok(policy) => resolved(&policy, &case.json("resolved")?),
        Err(_) => same("resolved", case.get("resolved"), None),
    }
}

fn resolved(policy: &Policy, want: &Json) -> Check {
    let limits = &policy.limits;
    let (mode, scope) = match policy.mode {
        SourceMode::QueryVisible => ("query_visible", None),
        SourceMode::ExactRawRows(scope) => ("exact_raw_rows", Some(scope_text(scope))),
    };
    let snapshot = Json::object([("mode", Json::from(mode)), ("replica_scope", Json::from(scope))]);
    let window = policy.window.as_ref().and_then(|(_, window)| window.as_ref());
    let got = Json::object([
        ("limits", limits.document()),
        ("effective_encoding_parallelism", Json::from(limits.encoders())),
        ("effective_import_parallelism", Json::from(limits.importers())),
        ("retained_work_capacity", Json::from(limits.retained_work_capacity())),
        ("spool_payload_bound", Json::from(limits.spool_payload_bound())),
        ("required_free_spool_bytes", Json::from(limits.required_free_spool_bytes())),
        ("verification_backend", Json::from(policy.verification.text())),
        ("import_backend", Json::from(policy.import.text())),
        ("layout_version", Json::from(if policy.layout == LayoutVersion::V2 { 2 } else { 1 })),
        ("window", Json::from(window.map(|window| window.document()))),
        ("window_fingerprint_rolling", Json::from(window.map(|window| window.fingerprint()))),
        ("source_snapshot", snapshot),
    ]);
    let (Json::Object(got), Json::Object(want)) = (&got, want) else { return fail("resolved is no object") };
    let keys = |object: &Object| object.keys().cloned().collect::<Vec<_>>();
    same("resolved keys", keys(got), keys(want))?;
    want.iter().try_for_each(|(key, value)| same(key, got.get(key), Some(value)))
}

/// `misc_contracts`, group `rolling_window`: an authored window and an interval end to the frozen document.
pub(super) fn rolling_window(case: &Case) -> Check {
    let authored = Json::object([
        ("column", case.json("column")?),
        ("anchor", Json::from("data_interval_end")),
        ("lookback", case.json("lookback")?),
        ("chunk_interval", case.json("chunk_interval")?),
    ]);
    let spec = WindowSpec::parse(&authored).map_err(|error| error.to_string())?;
    let window = spec.freeze(Some(&case.json("interval_end")?)).map_err(|error| error.to_string())?;
    same("frozen", window.document(), case.json("frozen")?)?;
    same("fingerprint", window.fingerprint(), case.digest("fingerprint")?)
}
