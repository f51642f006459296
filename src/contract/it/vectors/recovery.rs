//! `recovery_plan_v2`: transaction identities, window validity and the operator's classification.

use contract::attempt::EventKind;
use contract::canon::Json;
use contract::recovery::classify::{JournalPhase, JournalView, KnownCustody, PublicationPhase, classify};
use contract::recovery::plan::PlanWindow;
use contract::transaction::{
    CONTRACT_VERSION, Invocation, operation_key, operation_lock, owner_digest, receipt_id, scope_hash, target_lock,
    target_wide_scope,
};
use serde_json::Value;

use super::{Case, Check, File, Run, run, same};

const PATHS: &str = "informative: bindings of absolute paths";

#[test]
fn recovery_plan_v2() {
    run(&File {
        name: "recovery_plan_v2",
        groups: &[
            ("transaction_identity", Run::Check(transaction_identity)),
            ("plan_window_validity", Run::Check(window_validity)),
            ("classification", Run::Check(classification)),
            ("plan", Run::Skip(PATHS)),
            ("authority_accept", Run::Skip(PATHS)),
            ("authority_reject", Run::Skip(PATHS)),
        ],
    });
}

fn transaction_identity(case: &Case) -> Check {
    same("version", CONTRACT_VERSION, case.text("contract_version")?)?;
    let fields = case.field("invocation")?;
    let text = |key: &str| fields[key].as_str().unwrap_or_default();
    let invocation = Invocation::new(text("run_id"), text("process"), text("task_partition"));
    let invocation = invocation.map_err(|refusal| refusal.to_string())?;
    same("invocation", invocation.digest(), case.digest("invocation_digest")?)?;
    let target = case.digest("target_identity")?;
    let attempt_key = invocation.attempt_key(target);
    same("attempt key", attempt_key, case.digest("attempt_key")?)?;
    let scope = case.json("scope")?;
    if scope.get("kind").and_then(Json::as_str) == Some("target_wide") {
        same("target-wide scope", &target_wide_scope(), &scope)?;
    }
    let scope_hash = scope_hash(&scope);
    same("scope hash", scope_hash, case.digest("scope_hash")?)?;
    same("owner token", invocation.owner_token().as_str(), case.text("owner_token")?)?;
    same("owner digest", invocation.owner_digest(), case.digest("owner_digest")?)?;
    same("owner digest of the token", owner_digest(case.text("owner_token")?), case.digest("owner_digest")?)?;
    let operation = operation_key(attempt_key, scope_hash);
    same("operation key", operation, case.digest("operation_key")?)?;
    same("receipt id", receipt_id(operation).as_str(), case.text("receipt_id")?)?;
    same("target lock", target_lock(target).as_str(), case.text("target_lock")?)?;
    same("operation lock", operation_lock(operation).as_str(), case.text("operation_lock")?)
}

fn window_validity(case: &Case) -> Check {
    let window = case.json("window")?;
    let valid = window.is_null() || PlanWindow::from_document(&window).is_some();
    same("valid", Some(valid), case.field("valid")?.as_bool())
}

fn classification(case: &Case) -> Check {
    let terminals: Option<Vec<EventKind>> = case
        .field("terminal_events")?
        .as_array()
        .and_then(|events| events.iter().map(|event| event.as_str().and_then(EventKind::from_text)).collect());
    let publication = case.optional_text("publication_phase");
    let publication =
        publication.map(|text| PublicationPhase::from_text(text).ok_or("unknown publication phase")).transpose()?;
    let custody = match case.optional_text("custody_state") {
        None => KnownCustody::None,
        Some("held") => KnownCustody::Held,
        Some("clear") => KnownCustody::Clear,
        Some(other) => return Err(format!("unknown custody {other:?}")),
    };
    let got = classify(&JournalView {
        phase: JournalPhase::from_text(case.text("journal_phase")?).ok_or("unknown phase")?,
        publication,
        terminals: &terminals.ok_or("unknown event")?,
        custody,
        writers_proved_gone: false,
    });
    same("state", got.state.text(), case.text("state")?)?;
    same("diagnostic", got.state.diagnostic(), case.text("diagnostic_code")?)?;
    let actions: Vec<&str> = got.actions.iter().map(|action| action.text()).collect();
    let wanted = case.field("permitted_actions")?.as_array().into_iter().flatten();
    same("actions", actions, wanted.filter_map(Value::as_str).collect::<Vec<_>>())
}
