//! The connection to the source breaks in the middle of the one SELECT.

use testkit::forward;
use testkit::transfer::{SOURCE_COLUMNS, TARGET_COLUMNS};

use super::kit::{FULL_REFRESH, RAW, Road, VISIBLE, manifest, source};

/// Parts of the table, each a block of the stream. Their rows have a kilobyte that hardly compresses.
const PARTS: u64 = 10;
const ROWS: u64 = 2_000;

/// Moves the table once as a measure, then cuts the connection when a part of that many bytes has come. A run that was
/// cut says `code`, publishes nothing and leaves nothing.
fn assert_settled_after_cuts(name: &str, engine: &str, mode: &str, code: &str) {
    let mut road = Road::new(name);
    source().run(&format!(
        "CREATE TABLE {name}.t ({SOURCE_COLUMNS}) ENGINE = {engine} ORDER BY id \
         SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1"
    ));
    for part in 0..PARTS {
        source().run(&format!(
            "INSERT INTO {name}.t SELECT number, hex(randomString(500)), 0.5, toDateTime64('2013-07-04', 6, 'UTC') \
             FROM numbers({}, {})",
            part * ROWS / PARTS,
            ROWS / PARTS
        ));
    }
    road.target.create("t", TARGET_COLUMNS);
    let server = ([127, 0, 0, 1], source().port()).into();
    let cut = forward::start_cutting(([127, 0, 0, 1], 0).into(), server).expect("an address");
    road.set("source", "port", cut.address().port().to_string().as_bytes());
    let path = road.manifest(&manifest(name, mode, FULL_REFRESH).replace("max_rows: 40, ", "max_rows: 100, "));

    let measure = road.run(&path, "measure");
    assert_eq!(measure.code, Some(0), "{measure:?}");
    let whole_bytes = cut.most_bytes();
    assert!(whole_bytes > ROWS * 400, "{whole_bytes} bytes on the connection of the read");
    road.target.run("DELETE FROM dbo.t");
    road.plant(-1, "2001-01-01");
    let old = road.target_content();

    for percent in [50, 90] {
        let cuts = cut.cuts();
        cut.after(whole_bytes * percent / 100);
        let run_id = format!("cut-{percent}");
        let ended = road.run(&path, &run_id);
        assert_eq!(cut.cuts(), cuts + 1, "{ended:?}");
        assert_eq!((ended.code, ended.refusal().as_str()), (Some(4), code), "{ended:?}");
        let read = ended.json()["rows_read"].as_u64().unwrap_or_default();
        assert!((1..ROWS).contains(&read), "cut in the middle of the rows: {ended:?}");
        assert_eq!(road.target.stages(), Vec::<String>::new());
        assert_eq!(road.target.custody(), ["clear"]);
        assert_eq!(road.target_content(), old);
        let inspected = road.inspect(&run_id);
        assert!(inspected.stdout.contains("custody          not held"), "{inspected:?}");
    }

    cut.after(u64::MAX);
    let whole = road.run(&path, "whole");
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert_eq!(road.target_content(), road.source_content());
}

#[test]
fn a_cut_read_of_what_the_query_sees_is_settled() {
    assert_settled_after_cuts("cut_visible", "MergeTree", VISIBLE, "mssql_native.source_reextract_required");
}

#[test]
fn a_cut_read_of_exact_raw_rows_is_settled() {
    assert_settled_after_cuts("cut_raw", "ReplacingMergeTree", RAW, "mssql_native.source_provenance_incomplete");
}
