//! What a run says of its source afterwards, against what the source itself says.

use std::process::{Command, Stdio};

use contract::digest::Digest;
use serde_json::Value;

use super::kit::{Ended, FULL_REFRESH, ONE_DAY, RAW, Road, VISIBLE, binary, manifest, source};

/// `inspect --evidence` of a run.
pub(super) fn evidence(road: &Road, run_id: &str) -> Value {
    let mut command = Command::new(binary());
    command.args(["inspect", "--evidence", "--run-id", run_id, "--journal-root"]).arg(road.journal());
    let ended = Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the product starts"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()
}

fn sha256(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

/// `part_sha256 rows physical_rows level mask hash` of each part that gives rows, by the source's own words.
fn touched(database: &str) -> Vec<String> {
    source().rows(&format!(
        "SELECT lower(hex(SHA256(p.name))), r.n, p.rows, p.level, p.has_lightweight_delete, p.hash_of_all_files \
         FROM system.parts AS p INNER JOIN (SELECT _part AS name, count() AS n FROM {database}.t GROUP BY _part) AS r \
         ON r.name = p.name WHERE p.database = '{database}' AND p.table = 't' AND p.active"
    ))
}

#[test]
fn evidence_of_a_raw_read_names_what_the_source_itself_shows() {
    let mut road = Road::new("evidence_raw");
    road.flights("ReplacingMergeTree", 100);
    source().run("DELETE FROM evidence_raw.t WHERE id = 3");
    source().run("SYSTEM STOP MERGES evidence_raw.t");
    source().run("INSERT INTO evidence_raw.t SELECT number, 'again', 1, toDateTime64('2013-07-04 00:00:00', 6, 'UTC') FROM numbers(20)");
    let ended = road.run(&road.manifest(&manifest("evidence_raw", RAW, FULL_REFRESH)), "run-1");
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let evidence = evidence(&road, "run-1");
    let said = &evidence["source"];
    assert_eq!(
        (said["mode"].as_str(), said["replica_scope"].as_str()),
        (Some("exact_raw_rows"), Some("single_server"))
    );
    assert!(said["engine"].as_str().is_some_and(|engine| engine.starts_with("ReplacingMergeTree:sha256:")), "{said}");
    let uuid = source().run("SELECT uuid FROM system.tables WHERE database = 'evidence_raw' AND name = 't'");
    assert_eq!(said["relation_uuid"].as_str(), Some(uuid.trim()));
    assert_eq!(said["server_revision"].as_str(), Some(source().run("SELECT revision()").trim()));
    assert_eq!((said["rows"].as_u64(), said["ddl_exclusion"].as_str()), (Some(119), Some("observed")));
    let settings = said["effective_settings"].as_array().expect("settings");
    assert!(settings.contains(&serde_json::json!(["final", 0])), "{settings:?}");
    let sent = said["guard_settings"]["sent"].as_array().expect("guards");
    assert!(sent.contains(&serde_json::json!(["optimize_use_projections", "0"])), "{sent:?}");

    // The query that the source's log has under this id is the one data SELECT.
    let query_id = said["query_id"].as_str().expect("an id");
    assert_eq!(source().times_asked(&[query_id, "FROM `evidence_raw`.`t`"]), 1);
    let eof = &said["source_eof"];
    assert_eq!(eof["vendor_query_id_sha256"].as_str(), Some(sha256(query_id).as_str()));
    assert_eq!(said["source_eof_descriptor_sha256"].as_str(), Some(sha256(&eof.to_string()).as_str()));
    assert_eq!(eof["endpoint_authority_agreement"].as_bool(), Some(true));

    let coverage = &said["part_coverage"];
    assert_eq!(coverage["sha256"], eof["touched_part_coverage_sha256"]);
    assert_eq!(coverage["offset_uniqueness"].as_str(), Some("proved"));
    assert_eq!((coverage["inventory_parts"].as_u64(), coverage["patch_parts"].as_u64()), (Some(2), Some(0)));
    let word = |part: &Value, key: &str| part[key].as_str().map_or_else(|| part[key].to_string(), str::to_owned);
    let columns = ["part_sha256", "rows", "physical_rows", "level", "has_lightweight_delete", "hash_of_all_files"];
    let parts = coverage["parts"].as_array().expect("parts");
    let mut listed: Vec<String> =
        parts.iter().map(|part| columns.map(|column| word(part, column)).join("\t")).collect();
    listed.sort();
    assert_eq!(listed, touched("evidence_raw"));
    let pages = evidence["source_parts"].as_array().expect("pages");
    assert_eq!((pages.len(), &pages[0]["parts"]), (1, &coverage["parts"]));

    let kept = road.target.value("SELECT document FROM dpone.native_transfer_evidence");
    assert_eq!(evidence["operational"].to_string(), kept, "the target keeps the same document");
    assert_eq!(&evidence["operational"]["native_transfer_v1"]["source"], said);
}

#[test]
fn evidence_of_the_default_mode_claims_no_provenance() {
    let mut road = Road::new("evidence_visible");
    road.flights("MergeTree", 10);
    let ended = road.run(&road.manifest(&manifest("evidence_visible", VISIBLE, ONE_DAY)), "run-1");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let evidence = evidence(&road, "run-1");
    let said = &evidence["source"];
    assert_eq!((said["mode"].as_str(), said["engine"].as_str()), (Some("query_visible"), Some("MergeTree")));
    assert_eq!(said["authority"]["access_sha256"].as_str().map(str::len), Some(64));
    for absent in ["replica_scope", "source_eof", "source_eof_descriptor_sha256", "part_coverage"] {
        assert!(said[absent].is_null(), "{absent}: {said}");
    }
    assert_eq!(evidence["source_parts"].as_array().map(Vec::len), Some(0));
}

/// Before the end of source there is nothing to say, and nothing is said.
#[test]
fn evidence_of_a_run_without_an_end_is_empty() {
    let mut road = Road::new("evidence_none");
    road.flights("MergeTree", 10);
    let path = road.manifest(&manifest("evidence_none", VISIBLE, FULL_REFRESH));
    let admitted = Ended::of(road.command("admit", &path, "run-1").spawn().expect("the product starts"));
    assert_eq!(admitted.code, Some(0), "{admitted:?}");
    let evidence = evidence(&road, "run-1");
    assert!(evidence["source"].is_null() && evidence["operational"].is_null(), "{evidence}");
    let mut other = Command::new(binary());
    other.args(["inspect", "--evidence", "--run-id", "other", "--journal-root"]).arg(road.journal());
    let refused = Ended::of(other.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the product starts"));
    assert_eq!((refused.code, refused.refusal().as_str()), (Some(1), "mssql_native.recovery_identity_invalid"));
}

/// One page of parts stands in the document itself; more stand in the journal, and the document has their digest.
#[test]
fn evidence_of_many_parts_stays_bounded_and_loses_none() {
    let mut road = Road::new("evidence_parts");
    road.flights("ReplacingMergeTree PARTITION BY id", 0);
    source().run("SYSTEM STOP MERGES evidence_parts.t");
    let insert = |first: u64, count: u64| {
        source().run(&format!(
            "INSERT INTO evidence_parts.t SELECT number, 'n', 1, toDateTime64('2013-07-04 00:00:00', 6, 'UTC') \
             FROM numbers({first}, {count}) SETTINGS max_partitions_per_insert_block = 0"
        ));
    };
    let path = road.manifest(&manifest("evidence_parts", RAW, FULL_REFRESH));
    for (first, count, run, pages) in [(0, 400, "run-1", 1), (400, 1, "run-2", 2)] {
        insert(first, count);
        let ended = road.run(&path, run);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let evidence = evidence(&road, run);
        let coverage = &evidence["source"]["part_coverage"];
        let listed: Vec<&Value> =
            evidence["source_parts"].as_array().expect("pages").iter().map(|page| &page["parts"]).collect();
        assert_eq!((listed.len(), coverage["touched_parts"].as_u64()), (pages, Some(first + count)));
        let all: Vec<Value> = listed.iter().flat_map(|page| page.as_array().expect("parts").clone()).collect();
        assert_eq!(coverage["parts"].is_null(), pages > 1);
        assert_eq!(coverage["parts_sha256"].as_str(), Some(sha256(&Value::from(all).to_string()).as_str()));
        let key = "WHERE operation_key = (SELECT TOP 1 operation_key FROM dpone.dpone_load_receipt ORDER BY committed_at_utc DESC)";
        let kept = road.target.value(&format!("SELECT document FROM dpone.native_transfer_evidence {key}"));
        assert_eq!(evidence["operational"].to_string(), kept, "the target keeps the same document");
    }
}
