//! The raw snapshot files: profile, EOF descriptor, marker, coverage, physical profile, engine and selector.

use std::collections::BTreeMap;

use contract::canon::{Json, strict, strict_digest};
use contract::digest::Digest;
use contract::error::Refusal;
use contract::port::source::{FrozenWindow, ReplicaScope, SourceMode};
use contract::raw::coverage::Coverage;
use contract::raw::eof::EofDescriptor;
use contract::raw::facts::SourceFacts;
use contract::raw::freeze::{Frozen, RawRequest, freeze};
use contract::raw::marker::{self, SourceBinding};
use contract::raw::parts::{PartInventory, PartRow, mutations_digest, physical_profile};
use contract::raw::profile::RawProfile;
use contract::raw::{engine, extension, selector};
use contract::window::WindowSpec;
use serde_json::Value;

use super::case::json;
use super::facts::{facts, items, mutation, string, strings};
use super::{Case, Check, File, Run, fail, run, same};

#[test]
fn profile_descriptor() {
    run(&File {
        name: "profile_descriptor",
        groups: &[
            ("from_server_metadata", Run::Check(profile_from_facts)),
            ("window_timezone", Run::Check(profile_from_facts)),
            ("schema", Run::Check(profile_from_facts)),
            ("window_timezone_reject", Run::Check(profile_refused)),
            ("from_server_metadata_reject", Run::Check(profile_refused)),
            ("settings_reject", Run::Check(profile_refused)),
            ("schema_reject", Run::Check(profile_refused)),
            ("relation_reject", Run::Check(profile_refused)),
            ("physical_admission_reject", Run::Check(profile_refused)),
            ("document_accept", Run::Check(profile_document)),
            ("document_reject", Run::Check(profile_document)),
            ("document_size_cap", Run::Check(profile_size)),
        ],
    });
}

#[test]
fn eof_descriptor() {
    run(&File {
        name: "eof_descriptor",
        groups: &[
            ("from_stream", Run::Check(eof_from_stream)),
            ("document_accept", Run::Check(eof_document)),
            ("document_reject", Run::Check(eof_document)),
            ("extension_restore_accept", Run::Check(extension_restore)),
            ("extension_restore_reject", Run::Check(extension_restore)),
        ],
    });
}

#[test]
fn binding_marker() {
    run(&File {
        name: "binding_marker",
        groups: &[
            ("marker", Run::Check(marker_of_profile)),
            ("legacy_binding", Run::Check(legacy_binding)),
            ("version", Run::Check(marker_version)),
        ],
    });
}

#[test]
fn touched_part_coverage() {
    run(&File {
        name: "touched_part_coverage",
        groups: &[
            ("from_stream", Run::Check(coverage)),
            ("random", Run::Check(coverage)),
            ("single_offset", Run::Check(single_offset)),
        ],
    });
}

#[test]
fn physical_profiles() {
    run(&File {
        name: "physical_profile",
        groups: &[("from_catalog", Run::Check(physical)), ("random", Run::Check(physical))],
    });
}

#[test]
fn engine_and_selector() {
    run(&File {
        name: "engine_and_selector",
        groups: &[
            ("accept", Run::Check(engine_signature)),
            ("reject", Run::Check(engine_signature)),
            ("selector", Run::Check(selected_mode)),
        ],
    });
}

fn scope(case: &Case) -> Result<ReplicaScope, String> {
    selector::scope_from_text(case.text("replica_scope")?).ok_or_else(|| "unknown scope".into())
}

/// What a case's metadata is read with: the request and the catalog facts.
fn inputs(case: &Case) -> Result<(RawRequest, Result<SourceFacts, Refusal>), String> {
    let metadata = case.field("server_metadata")?;
    let relation = case.field("relation")?;
    let timeout = metadata["send_receive_timeout"].as_f64().ok_or("no timeout")?;
    let request = RawRequest {
        database: string(&relation[0])?,
        table: string(&relation[1])?,
        scope: scope(case)?,
        window: case.get("window").map(frozen_window).transpose()?,
        max_execution_time_seconds: (timeout as u64).max(1),
        refuse_mutations: true,
    };
    Ok((request, facts(metadata)?))
}

/// The window as the manifest would have it, frozen at the case's interval end.
fn frozen_window(window: &Value) -> Result<FrozenWindow, String> {
    let mut authored = json(window)?;
    let interval_end = match &mut authored {
        Json::Object(members) => members.remove("interval_end"),
        _ => None,
    };
    let spec = WindowSpec::parse(&authored).map_err(|refusal| refusal.to_string())?;
    let frozen = spec.freeze(interval_end.as_ref()).map_err(|refusal| refusal.to_string())?;
    Ok(frozen.frozen())
}

fn frozen(case: &Case) -> Result<Result<Frozen, Refusal>, String> {
    let (request, facts) = inputs(case)?;
    Ok(facts.and_then(|facts| freeze(&request, &facts)))
}

fn profile_refused(case: &Case) -> Check {
    case.verdict(frozen(case)?).map(|_| ())
}

fn profile_from_facts(case: &Case) -> Check {
    let (request, facts) = inputs(case)?;
    let frozen = facts.and_then(|facts| freeze(&request, &facts)).map_err(|refusal| refusal.to_string())?;
    let profile = &frozen.profile;
    same("document", profile.document(), case.json("document")?)?;
    same("canonical", profile.canonical(), case.bytes("canonical_hex")?)?;
    same("digest", profile.sha256(), case.digest("sha256")?)?;
    same("query", frozen.query_shape.as_str(), case.text("query")?)?;
    let ids = case.get("partition_ids").map(strings).transpose()?;
    same("partition ids", frozen.partition_ids.clone(), ids)?;
    let parameters = match &request.window {
        None => Vec::new(),
        Some(window) => contract::raw::query::window_parameters(window).map_err(|r| r.to_string())?.to_vec(),
    };
    let parameters = Json::object(parameters.iter().map(|(name, text)| (*name, Json::from(text))));
    same("query parameters", parameters, case.json("query_parameters")?)?;
    sub_digests(case, &frozen)?;
    let read_back = RawProfile::from_document(&profile.document()).map_err(|refusal| refusal.to_string())?;
    same("read back", &read_back, profile)
}

fn sub_digests(case: &Case, frozen: &Frozen) -> Check {
    let preimages = &frozen.preimages;
    let expected = case.field("sub_digests")?.as_object().ok_or("no sub digests")?;
    let mut known = BTreeMap::from([
        ("partition_key", &preimages.partition_key),
        ("sorting_key", &preimages.sorting_key),
        ("primary_key", &preimages.primary_key),
        ("query_shape", &preimages.query_shape),
        ("projection", &preimages.projection),
        ("typed_parameters", &preimages.typed_parameters),
        ("engine_full", &preimages.engine_full),
        ("principal_authority", &preimages.principal_authority),
        ("row_policy", &preimages.row_policy),
        ("endpoint_authority", &preimages.endpoint_authority),
    ]);
    if let Some(replica) = &preimages.replica_identity {
        known.insert("replica_identity", replica);
    }
    same("sub digest names", known.keys().copied().collect::<Vec<_>>(), sorted_keys(expected))?;
    for (name, preimage) in known {
        let wanted = &expected[name];
        same(name, String::from_utf8(strict(preimage)).ok().as_deref(), wanted["preimage_canonical_utf8"].as_str())?;
        same(name, strict_digest(preimage).to_string().as_str(), wanted["sha256"].as_str().unwrap_or_default())?;
    }
    Ok(())
}

fn sorted_keys(object: &serde_json::Map<String, Value>) -> Vec<&str> {
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// A document whose long texts are written as `x repeated 70000 times`.
fn expand(document: Json) -> Json {
    match document {
        Json::Str(text) => {
            let repeated = text
                .split_once(" repeated ")
                .and_then(|(unit, rest)| Some(unit.repeat(rest.strip_suffix(" times")?.parse().ok()?)));
            Json::Str(repeated.unwrap_or(text))
        }
        Json::Object(fields) => Json::Object(fields.into_iter().map(|(key, value)| (key, expand(value))).collect()),
        other => other,
    }
}

fn profile_document(case: &Case) -> Check {
    let document = expand(case.json("document")?);
    let Some(profile) = case.verdict(RawProfile::from_document(&document))? else {
        return Ok(());
    };
    same("document", profile.document(), document)?;
    same("canonical", profile.canonical(), case.bytes("canonical_hex")?)?;
    same("digest", profile.sha256(), case.digest("sha256")?)
}

fn profile_size(case: &Case) -> Check {
    let mut document = case.json("base_document")?;
    let length = usize::try_from(case.u64("engine_signature_length")?).map_err(|error| error.to_string())?;
    if let Json::Object(fields) = &mut document {
        fields.insert("engine_signature".into(), Json::from("x".repeat(length)));
    }
    match case.verdict(RawProfile::from_document(&document))? {
        Some(profile) => same("digest", profile.sha256(), case.digest("sha256")?),
        None => same("digest", None, case.optional_text("sha256")),
    }
}

fn eof_from_stream(case: &Case) -> Check {
    let document = case.json("document")?;
    let read = EofDescriptor::from_document(&document).map_err(|refusal| refusal.to_string())?;
    let rows = u64::try_from(&read.rows).map_err(|error| error.to_string())?;
    let eof = EofDescriptor::seal(
        case.text("vendor_query_id")?,
        rows,
        read.touched_part_coverage_sha256,
        read.before_physical_profile_sha256,
        read.after_physical_profile_sha256,
    );
    same("document", eof.document(), document)?;
    same("canonical", strict(&eof.document()), case.bytes("canonical_hex")?)?;
    same("digest", eof.sha256(), case.digest("sha256")?)?;
    let stored = case.json("extension_source_snapshot_v1")?;
    let profile = RawProfile::from_document(stored.get("profile").unwrap_or(&Json::Null));
    let profile = profile.map_err(|refusal| refusal.to_string())?;
    same("profile digest", profile.sha256(), case.digest("profile_sha256")?)?;
    let binding = marker::marker(case.digest("legacy_source_binding_sha256")?, profile.sha256());
    same("binding", binding.as_str(), case.text("source_query_binding")?)?;
    let built = extension::build(&binding, &profile, &eof).map_err(|refusal| refusal.to_string())?;
    same("extension", &built, &stored)?;
    same("extension digest", strict_digest(&built), case.digest("extension_canonical_sha256")?)?;
    let restored = extension::restore(&stored, &binding, &Json::from(rows)).map_err(|refusal| refusal.to_string())?;
    same("restored", restored, (profile, eof))
}

fn eof_document(case: &Case) -> Check {
    let document = case.json("document")?;
    let Some(eof) = case.verdict(EofDescriptor::from_document(&document))? else {
        return Ok(());
    };
    same("canonical", strict(&eof.document()), case.bytes("canonical_hex")?)?;
    same("digest", eof.sha256(), case.digest("sha256")?)
}

fn extension_restore(case: &Case) -> Check {
    let stored = expand(case.json("extension")?);
    let restored = extension::restore(&stored, case.text("binding")?, &case.json("completed_rows")?);
    match case.verdict(restored)? {
        None => Ok(()),
        Some((profile, eof)) => {
            let built =
                extension::build(case.text("binding")?, &profile, &eof).map_err(|refusal| refusal.to_string())?;
            same("rebuilt", built, stored)
        }
    }
}

fn marker_of_profile(case: &Case) -> Check {
    let (legacy, profile) =
        (case.digest("legacy_source_binding_sha256")?, case.digest("source_snapshot_profile_sha256")?);
    let preimage = String::from_utf8(strict(&marker::marker_preimage(legacy, profile))).map_err(|e| e.to_string())?;
    same("preimage", preimage.as_str(), case.text("preimage_canonical_utf8")?)?;
    same("marker", marker::marker(legacy, profile).as_str(), case.text("marker")?)
}

/// A window given as `[column, start, end]` texts.
fn window_of_texts(value: &Value) -> Result<FrozenWindow, String> {
    let micros = |index: usize| -> Result<i64, String> {
        let text = string(&value[index])?;
        contract::civil::Instant::parse(&text).map(|i| i.micros()).ok_or_else(|| format!("no instant: {text}"))
    };
    Ok(FrozenWindow { column: string(&value[0])?, start_micros: micros(1)?, end_micros: micros(2)? })
}

fn legacy_binding(case: &Case) -> Check {
    let window = case.get("window").map(window_of_texts).transpose()?;
    let (uuid, route) = (case.text("relation_uuid")?, case.text("route_fingerprint_hex")?);
    let refusal = |refusal: Refusal| refusal.to_string();
    let preimage = marker::legacy_binding_preimage(uuid, route, window.as_ref()).map_err(refusal)?;
    let text = String::from_utf8(contract::canon::legacy(&preimage)).map_err(|error| error.to_string())?;
    same("preimage", text.as_str(), case.text("preimage_utf8")?)?;
    let binding = marker::legacy_binding(uuid, route, window.as_ref()).map_err(refusal)?;
    same("binding", binding, case.digest("legacy_source_binding_sha256")?)?;
    let fingerprint = marker::window_fingerprint(window.as_ref()).map_err(refusal)?;
    same("window fingerprint", fingerprint, case.digest("window_fingerprint")?)
}

fn marker_version(case: &Case) -> Check {
    let parsed = case.verdict(SourceBinding::parse(case.text("value")?))?;
    let want = case.get("version").and_then(Value::as_u64);
    same("version", parsed.and_then(SourceBinding::version).map(u64::from), want)
}

/// An inventory that admits every given offset of every given part.
fn inventory_for(offsets: &[(String, u64)]) -> Result<PartInventory, String> {
    let mut names: Vec<&String> = offsets.iter().map(|(part, _)| part).collect();
    names.sort_unstable();
    names.dedup();
    let hash = "f".repeat(32);
    let rows = names.into_iter().map(|name| PartRow {
        name: name.clone(),
        partition_id: "all".into(),
        rows: u64::MAX,
        data_version: 0,
        level: 0,
        has_lightweight_delete: 0,
        hash_of_all_files: hash.clone(),
        hash_of_uncompressed_files: hash.clone(),
        uncompressed_hash_of_compressed_files: hash.clone(),
    });
    PartInventory::new(rows.collect()).map_err(|refusal| refusal.to_string())
}

fn cover(offsets: &[(String, u64)]) -> Result<Coverage, String> {
    let mut coverage = Coverage::new(&inventory_for(offsets)?);
    for (part, offset) in offsets {
        coverage.observe(part.as_bytes(), *offset).map_err(|refusal| refusal.to_string())?;
    }
    Ok(coverage)
}

fn coverage(case: &Case) -> Check {
    let offset = |pair: &Value| Ok((string(&pair[0])?, pair[1].as_u64().ok_or("no offset")?));
    let offsets = items(case.field("offsets")?, offset)?;
    let coverage = cover(&offsets)?;
    let document = coverage.document();
    let canonical = String::from_utf8(strict(&document)).map_err(|error| error.to_string())?;
    same("canonical", canonical.as_str(), case.text("canonical_utf8")?)?;
    same("digest", coverage.sha256(), case.digest("sha256")?)?;
    same("rows", coverage.rows(), offsets.len() as u64)?;
    let wanted = case.field("coverage")?.as_object().ok_or("no coverage")?;
    let touched = document.as_object().ok_or("no document")?;
    same("parts", touched.keys().map(String::as_str).collect::<Vec<_>>(), sorted_keys(wanted))?;
    for (part, pair) in touched {
        let [Json::Int(rows), Json::Int(sum)] = pair.as_array().unwrap_or_default() else {
            return fail("a pair of integers");
        };
        let want = &wanted[part];
        same("pair", want.as_array().map(Vec::len), Some(2))?;
        same("part rows", rows.to_string(), want[0].to_string().trim_matches('"').to_owned())?;
        same("part sum", sum.to_string(), want[1].to_string().trim_matches('"').to_owned())?;
    }
    Ok(())
}

fn single_offset(case: &Case) -> Check {
    let (part, offset) = (case.text("part")?.to_owned(), case.u64("offset")?);
    let preimage = Json::Array(vec![Json::from(&part), Json::from(offset)]);
    let text = String::from_utf8(strict(&preimage)).map_err(|error| error.to_string())?;
    same("preimage", text.as_str(), case.text("preimage_utf8")?)?;
    same("digest", Digest::of(text.as_bytes()), case.digest("sha256")?)?;
    let sum = cover(&[(part.clone(), offset)])?.document();
    let sum = sum.get(&part).and_then(Json::as_array).and_then(|pair| pair[1].as_int().cloned());
    same("integer", sum, Some(case.integer("as_integer")?))
}

fn physical(case: &Case) -> Check {
    let refusal = |refusal: Refusal| refusal.to_string();
    let rows: Vec<Json> = items(case.field("parts")?, json)?;
    let rows = rows.iter().map(PartRow::from_document).collect::<Result<Vec<_>, _>>().map_err(refusal)?;
    let parts = PartInventory::new(rows).map_err(refusal)?;
    let mutations = items(case.field("pending_mutations")?, mutation)?;
    same("mutations", mutations_digest(&mutations), case.digest("pending_mutations_sha256")?)?;
    let replica = case.get("replica_identity_sha256").is_some().then(|| case.digest("replica_identity_sha256"));
    let profile = physical_profile(case.text("relation_uuid")?, replica.transpose()?, &parts, &mutations);
    let canonical = String::from_utf8(strict(&profile)).map_err(|error| error.to_string())?;
    same("canonical", canonical.as_str(), case.text("canonical_utf8")?)?;
    same("digest", strict_digest(&profile), case.digest("sha256")?)
}

fn engine_signature(case: &Case) -> Check {
    let got = engine::signature(case.text("engine")?, case.text("engine_full")?, scope(case)?);
    let got = case.verdict(got)?;
    same("signature", got.as_deref(), case.optional_text("engine_signature"))
}

fn selected_mode(case: &Case) -> Check {
    let options = case.json("native_transfer")?;
    let (mode, scope) = match case.verdict(selector::select(Some(&options)))? {
        None => (None, None),
        Some(SourceMode::QueryVisible) => (Some("query_visible"), None),
        Some(SourceMode::ExactRawRows(scope)) => (Some("exact_raw_rows"), Some(selector::scope_text(scope))),
    };
    same("mode", mode, case.optional_text("mode"))?;
    same("scope", scope, case.optional_text("replica_scope"))
}
