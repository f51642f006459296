//! `journal_records`: completion digests, custody records, event chains and their transition table.

use contract::attempt::chain::{EventFault, NewEvent, append, begin, check_chain, read};
use contract::attempt::event::{ArtifactBinding, Observation, StageBinding, WriterBinding, WriterEvent};
use contract::attempt::{EventKind, Quiescence, WriterOutcome};
use contract::canon::{Json, strict};
use contract::completion::{ChunkReceipt, receipts_preimage, seal, verify};
use contract::custody::CustodyRecord;
use contract::digest::Digest;
use contract::identity::{ChunkPlan, VerificationIdentity};
use contract::names;
use num_bigint::BigInt;
use serde_json::Value;

use super::case::json;
use super::{Case, Check, File, Run, fail, run, same};

#[test]
fn journal_records() {
    run(&File {
        name: "journal_records",
        groups: &[
            ("completion", Run::Check(completion)),
            ("custody_accept", Run::Check(custody)),
            ("custody_reject", Run::Check(custody)),
            ("event_chain", Run::Check(event_chain)),
            ("event_chain_reject", Run::Check(event_chain_refused)),
            ("transition_table", Run::Check(transition_table)),
        ],
    });
}

/// A value in which `{"int": "..."}` stands for an integer.
fn untag(value: Json) -> Result<Json, String> {
    Ok(match value {
        Json::Object(members) => match (members.len(), members.get("int").and_then(Json::as_str)) {
            (1, Some(digits)) => Json::Int(digits.parse::<BigInt>().map_err(|error| error.to_string())?),
            _ => {
                let members = members.into_iter().map(|(key, value)| Ok((key, untag(value)?)));
                Json::Object(members.collect::<Result<_, String>>()?)
            }
        },
        Json::Array(items) => Json::Array(items.into_iter().map(untag).collect::<Result<_, _>>()?),
        other => other,
    })
}

fn completion(case: &Case) -> Check {
    let stored = untag(case.json("receipts")?)?;
    let receipts = stored.as_array().ok_or("receipts are no array")?;
    let receipts: Vec<ChunkReceipt> =
        receipts.iter().map(ChunkReceipt::from_document).collect::<Result<_, _>>().map_err(|r| r.to_string())?;
    let form = case.text("receipts_preimage_sha_form")?;
    same("form", form.starts_with("legacy ascii"), true)?;
    let preimage = receipts_preimage(&receipts);
    same("preimage digest", Digest::of(&preimage), case.digest("receipt_digest")?)?;
    same("preimage", preimage, case.bytes("receipts_preimage_hex")?)?;
    let metadata = untag(case.json("metadata")?)?;
    let completion = seal(&receipts, &metadata).map_err(|refusal| refusal.to_string())?;
    same("rows", completion.rows, case.u64("rows")?)?;
    same("receipt digest", completion.receipt_digest, case.digest("receipt_digest")?)?;
    same("metadata digest", completion.metadata_digest, case.digest("metadata_digest")?)?;
    verify(&completion, &receipts, &metadata).map_err(|refusal| refusal.to_string())
}

fn custody(case: &Case) -> Check {
    let document = case.json("fields")?;
    match case.verdict(CustodyRecord::from_document(&document))? {
        None => same("payload", None, case.optional_text("payload")),
        Some(record) => {
            let payload = case.text("payload")?;
            same("payload", String::from_utf8(record.payload()).ok().as_deref(), Some(payload))?;
            let decoded = CustodyRecord::decode(payload.as_bytes()).map_err(|refusal| refusal.to_string())?;
            same("decoded", decoded, record)
        }
    }
}

fn event_chain(case: &Case) -> Check {
    let identity = VerificationIdentity::from_document(&case.json("identity")?).map_err(|r| r.to_string())?;
    let (attempt_id, nonce) = (case.digest("attempt_id")?, case.digest("nonce")?);
    let documents = case.field("events")?.as_array().ok_or("events are no array")?;
    let digests = case.field("event_sha256")?.as_array().ok_or("no digests")?;
    same("digests", digests.len(), documents.len())?;
    let mut events: Vec<WriterEvent> = Vec::new();
    for (document, digest) in documents.iter().zip(digests) {
        let document = json(document)?;
        let event = read(&identity, document.clone(), events.last(), attempt_id).map_err(|fault| fault.to_string())?;
        same("canonical", event.canonical(), strict(&document))?;
        same("digest", event.sha256().to_string().as_str(), digest.as_str().unwrap_or_default())?;
        let rebuilt = rebuild(&identity, events.last(), &event).map_err(|fault| fault.to_string())?;
        same("rebuilt", &rebuilt, &event)?;
        events.push(event);
    }
    let first = events.first().ok_or("no events")?;
    let made = names::attempt_id(identity.invocation_key(), first.artifact.ordinal, nonce);
    same("attempt id", made, attempt_id)?;
    check_chain(&identity, &events, nonce, false).map_err(|refusal| refusal.to_string())?;
    same("foreign nonce", check_chain(&identity, &events, attempt_id, false).is_err(), true)
}

/// The event made again from its parts, as a live run makes it.
fn rebuild(
    identity: &VerificationIdentity,
    previous: Option<&WriterEvent>,
    event: &WriterEvent,
) -> Result<WriterEvent, EventFault> {
    let Some(previous) = previous else {
        return begin(identity, event.attempt_id, &event.artifact, &event.created_at);
    };
    let new = NewEvent {
        kind: event.kind,
        stage: event.stage.clone(),
        writer: event.writer.clone(),
        observation: event.observation.clone(),
        created_at: event.created_at.clone(),
    };
    append(identity, previous, &new)
}

/// A BCP identity; the refused chains of the file do not say theirs.
fn some_identity() -> VerificationIdentity {
    let text = |digit: &str| digit.repeat(64);
    let plan = ChunkPlan {
        run_id: text("1"),
        target_id: text("2"),
        source_query_id: text("3"),
        window_fingerprint: text("4"),
        schema_fingerprint: text("5"),
        wire_fingerprint: text("6"),
    };
    VerificationIdentity::bcp(plan, 30)
}

fn observation(value: &Value) -> Result<Observation, String> {
    let text = |key: &str| value[key].as_str().ok_or_else(|| format!("no {key}"));
    let limbs = match value["limbs"].as_array() {
        None => None,
        Some(limbs) => {
            let limbs: Vec<String> = limbs.iter().filter_map(|limb| limb.as_str().map(str::to_owned)).collect();
            Some(limbs.try_into().map_err(|_| "limbs")?)
        }
    };
    Ok(Observation {
        writer_outcome: WriterOutcome::from_text(text("writer_outcome")?).ok_or("writer_outcome")?,
        input_rows_consumed: value["input_rows_consumed"].as_u64(),
        row_count: value["row_count"].as_u64(),
        count_overflow: value["count_overflow"].as_bool(),
        limbs,
        quiescence: Quiescence::from_text(text("quiescence")?).ok_or("quiescence")?,
        diagnostic_code: text("diagnostic_code")?.to_owned(),
    })
}

fn event_chain_refused(case: &Case) -> Check {
    let identity = some_identity();
    let observations = case.field("observations")?;
    let steps = case.field("steps")?.as_array().ok_or("steps are no array")?;
    let digest = Digest::of(b"some digest");
    let artifact =
        ArtifactBinding { ordinal: 0, rows: 2, encoded_bytes: 16, file_sha256: digest, typed_digest: digest };
    let mut last: Option<WriterEvent> = None;
    for (index, step) in steps.iter().enumerate() {
        let kind = step[0].as_str().and_then(EventKind::from_text).ok_or("unknown kind")?;
        let observed = step[1].as_str().map(|name| observation(&observations[name])).transpose()?;
        let stage =
            StageBinding { stage_id: digest, owner_binding_sha256: digest, object_id: 7, schema_sha256: digest };
        let made = match &last {
            None => begin(&identity, digest, &artifact, "2026-09-30T00:00:00Z"),
            Some(previous) => append(
                &identity,
                previous,
                &NewEvent {
                    kind,
                    stage: kind.has_stage().then_some(stage),
                    writer: kind.has_writer().then_some(WriterBinding { grant_token_sha256: digest }),
                    observation: observed,
                    created_at: "2026-09-30T00:00:01.5Z".into(),
                },
            ),
        };
        match made {
            Ok(event) => last = Some(event),
            Err(fault) if index + 1 == steps.len() => {
                same("reason", fault.to_string().as_str(), case.text("reason")?)?;
                return same("code", fault.into_refusal().code.as_str(), case.text("journal_error")?);
            }
            Err(fault) => return fail(format!("step {index} was refused: {fault}")),
        }
    }
    fail("the whole chain was accepted")
}

fn transition_table(case: &Case) -> Check {
    let table = case.field("next_events")?.as_object().ok_or("no table")?;
    same("kinds", table.len(), EventKind::ALL.len())?;
    for kind in EventKind::ALL {
        let wanted = table.get(kind.text()).and_then(Value::as_array).ok_or("a kind is missing")?;
        let mut wanted: Vec<&str> = wanted.iter().filter_map(Value::as_str).collect();
        let mut next: Vec<&str> = kind.next().iter().map(|kind| kind.text()).collect();
        wanted.sort_unstable();
        next.sort_unstable();
        same(kind.text(), next, wanted)?;
    }
    Ok(())
}
