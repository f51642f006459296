//! `stage_names_and_keys` and the binding group of `misc_contracts`: derived names and keys.

use contract::canon::{Json, strict};
use contract::digest::Digest;
use contract::identity::{self, BARRIER_TIMEOUT_SECONDS, VerificationIdentity};
use contract::names;

use super::identity::plan;
use super::{Case, Check, File, Run, run, same};

const REPR: &str = "informative: derived from a Python repr";
const PROCESS: &str = "informative: the prior system's process layout";

#[test]
fn stage_names_and_keys() {
    run(&File {
        name: "stage_names_and_keys",
        groups: &[
            ("attempt_table", Run::Skip(REPR)),
            ("attempt_table_repr_quoting", Run::Skip(REPR)),
            ("prepared_table", Run::Skip(REPR)),
            ("plan_binding", Run::Skip(REPR)),
            ("opaque_stage_id", Run::Check(opaque_stage_id)),
            ("attempt_id_v2", Run::Check(attempt_id)),
            ("writer_scope_applock", Run::Check(scope_applock)),
            ("preparation_applock", Run::Check(scope_applock)),
            ("sqlclient_grant_applock", Run::Check(grant_applock)),
            ("journal_keys", Run::Check(journal_keys)),
        ],
    });
}

#[test]
fn misc_contracts() {
    run(&File {
        name: "misc_contracts",
        groups: &[
            ("qualified_stage", Run::Check(qualified_stage)),
            ("ipc_request", Run::Skip(PROCESS)),
            ("ipc_result_accept", Run::Skip(PROCESS)),
            ("ipc_result_reject", Run::Skip(PROCESS)),
            ("stage_write_request_reject", Run::Skip(PROCESS)),
            ("stage_column_type", Run::Skip(PROCESS)),
            ("consumed_payload", Run::Skip(REPR)),
            ("file_wire_contract", Run::Skip(PROCESS)),
            ("schema_fingerprint", Run::Check(schema_fingerprint)),
            ("rolling_window", Run::Check(super::manifest::rolling_window)),
        ],
    });
}

fn opaque_stage_id(case: &Case) -> Check {
    let (key, stage) = (case.digest("invocation_key")?, case.text("qualified_stage")?);
    let key_text = key.to_string();
    let preimage = Json::array(["dpone.mssql-native-stage.v2", key_text.as_str(), stage]);
    same("preimage", String::from_utf8(strict(&preimage)).ok().as_deref(), Some(case.text("preimage_utf8")?))?;
    same("stage id", names::opaque_stage_id(key, stage), case.digest("stage_id")?)
}

fn attempt_id(case: &Case) -> Check {
    let (key, ordinal, nonce) = (case.digest("invocation_key")?, case.u64("ordinal")?, case.digest("nonce")?);
    let preimage = Json::Array(vec![key.into(), ordinal.into(), nonce.into()]);
    same("preimage", String::from_utf8(strict(&preimage)).ok().as_deref(), Some(case.text("preimage_utf8")?))?;
    same("attempt id", names::attempt_id(key, ordinal, nonce), case.digest("attempt_id")?)
}

fn scope_applock(case: &Case) -> Check {
    let identity = case.text("identity")?;
    let rebuilt = match identity.strip_prefix("prepare:") {
        Some(run_id) => names::preparation_scope(run_id),
        None => {
            let (run_id, attempt) = identity.rsplit_once(':').ok_or("an identity without an attempt")?;
            names::writer_scope(run_id, attempt)
        }
    };
    same("identity", rebuilt.as_str(), identity)?;
    same("resource", names::scope_applock(case.text("target_id")?, identity).as_str(), case.text("resource")?)
}

fn grant_applock(case: &Case) -> Check {
    // The program name also hashes an attempt, an object and a stage that the case does not give: informative.
    case.text("application_name")?;
    same("resource", names::grant_applock(case.digest("grant_token_sha256")?).as_str(), case.text("resource")?)
}

fn journal_keys(case: &Case) -> Check {
    let plan = plan(case.field("plan")?)?;
    let key = VerificationIdentity::bcp(plan.clone(), BARRIER_TIMEOUT_SECONDS).invocation_key();
    same("v1 key", names::journal_key_v1(&plan.target_id, &plan.run_id).as_str(), case.text("v1_key")?)?;
    same("v2 key", names::journal_key(key).as_str(), case.text("v2_key")?)?;
    let event_key = case.text("event_key")?;
    let mut parts = event_key.rsplit('/');
    let sequence: u64 = parts.next().and_then(|text| text.parse().ok()).ok_or("no sequence")?;
    let attempt = parts.next().ok_or("no attempt")?;
    let ordinal: u64 = parts.next().and_then(|text| text.parse().ok()).ok_or("no ordinal")?;
    same("event key", names::event_key(key, ordinal, attempt, sequence).as_str(), event_key)?;
    same("custody key", names::custody_key(&plan.target_id).as_str(), case.text("custody_key")?)?;
    same("plan key", names::recovery_plan_key(key).as_str(), case.text("recovery_plan_key")?)?;
    same("evidence key", names::evidence_key(&plan.run_id).as_str(), case.text("evidence_key")?)?;
    same("checkpoint key", names::checkpoint_key(&plan.run_id).as_str(), case.text("checkpoint_key")?)?;
    let proof: Digest = case.digest("nonpublication_proof")?;
    same("nonpublication proof", names::nonpublication_proof(key), proof)
}

fn qualified_stage(case: &Case) -> Check {
    same("valid", Some(names::is_qualified_stage(case.text("value")?)), case.field("valid")?.as_bool())
}

fn schema_fingerprint(case: &Case) -> Check {
    let columns = case.field("columns")?.as_array().ok_or("no columns")?;
    let columns =
        columns.iter().map(|c| (c["name"].as_str().unwrap_or_default(), c["dtype"].as_str().unwrap_or_default()));
    same("fingerprint", identity::schema_fingerprint(columns), case.digest("schema_fingerprint")?)
}
