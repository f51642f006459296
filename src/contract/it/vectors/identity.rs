//! `verification_identity_v2`: components, documents, invocation keys and refusals.

use contract::canon::{Json, strict, strict_digest};
use contract::identity::{ChunkPlan, Companion, LayoutVersion, VerificationIdentity, barrier_timeout, component};
use serde_json::Value;

use super::{Case, Check, File, Run, fail, run, same};

#[test]
fn verification_identity_v2() {
    run(&File {
        name: "verification_identity_v2",
        groups: &[
            ("component", Run::Check(component_document)),
            ("bcp", Run::Check(bcp)),
            ("sqlclient", Run::Check(sqlclient)),
            ("reject", Run::Check(refused)),
            ("timeout_reject", Run::Check(timeout_refused)),
        ],
    });
}

fn component_document(case: &Case) -> Check {
    let document = case.json("document")?;
    let name = case.text("name")?;
    let ours = match document.get("domain").and_then(Json::as_str).unwrap_or_default() {
        "dpone.mssql-native.companion-protocol.v1" => component::absent_protocol(),
        "dpone.mssql-native.companion-package.v1" => component::absent_package(),
        "dpone.mssql-native.capability-layout.v1" => component::bcp_capability(),
        "dpone.mssql-native.timeout-policy.v1" => {
            let seconds = name.rsplit('_').next().and_then(|text| text.parse().ok()).ok_or("no timeout in the name")?;
            component::timeout_policy(seconds)
        }
        "dpone.mssql-sqlclient.protocol.v1" => {
            let second = document.get("protocol").and_then(Json::as_str).is_some_and(|text| text.ends_with(".v2"));
            component::sqlclient_protocol(if second { LayoutVersion::V2 } else { LayoutVersion::V1 })
        }
        domain => return fail(format!("unknown component {domain:?}")),
    };
    same("document", &ours, &document)?;
    same("canonical", String::from_utf8(strict(&ours)).ok().as_deref(), Some(case.text("canonical_utf8")?))?;
    same("digest", strict_digest(&ours), case.digest("sha256")?)
}

pub fn plan(value: &Value) -> Result<ChunkPlan, String> {
    let text = |key: &str| value[key].as_str().map(str::to_owned).ok_or_else(|| format!("no {key}"));
    Ok(ChunkPlan {
        run_id: text("run_id")?,
        target_id: text("target_id")?,
        source_query_id: text("source_query_id")?,
        window_fingerprint: text("window_fingerprint")?,
        schema_fingerprint: text("schema_fingerprint")?,
        wire_fingerprint: text("wire_fingerprint")?,
    })
}

fn timeout(case: &Case) -> Result<u64, String> {
    barrier_timeout(&case.json("timeout_seconds")?).map_err(|refusal| refusal.to_string())
}

fn bcp(case: &Case) -> Check {
    accepted(case, &VerificationIdentity::bcp(plan(case.field("plan")?)?, timeout(case)?))
}

fn sqlclient(case: &Case) -> Check {
    let layout = match case.u64("layout_version")? {
        1 => LayoutVersion::V1,
        2 => LayoutVersion::V2,
        other => return fail(format!("layout {other}")),
    };
    let companion =
        Companion::from_document(&case.json("companion")?, layout).map_err(|refusal| refusal.to_string())?;
    let plan = plan(case.field("plan")?)?;
    accepted(case, &VerificationIdentity::sqlclient(plan, timeout(case)?, &companion, layout))
}

fn accepted(case: &Case, identity: &VerificationIdentity) -> Check {
    let document = case.json("document")?;
    same("document", &identity.document(), &document)?;
    same("canonical", identity.canonical(), case.bytes("canonical_hex")?)?;
    same("invocation key", identity.invocation_key(), case.digest("invocation_key")?)?;
    let round_trip = VerificationIdentity::from_document(&document).as_ref() == Ok(identity);
    same("round trip", Some(round_trip), case.field("round_trip")?.as_bool())
}

fn refused(case: &Case) -> Check {
    case.verdict(VerificationIdentity::from_document(&case.json("document")?)).map(|_| ())
}

fn timeout_refused(case: &Case) -> Check {
    case.verdict(barrier_timeout(&case.json("timeout_seconds")?)).map(|_| ())
}
