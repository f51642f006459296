//! Between open and end: failures of the server, drift, cancelling.

use contract::error::Fate;
use contract::port::source::{Source as _, SourceMode};

use crate::kit::*;

#[tokio::test]
async fn b3_an_exception_after_rows_is_an_error_and_the_session_is_dead() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.explosive (id Int64) ENGINE = MergeTree ORDER BY id",
        "INSERT INTO d.explosive SELECT number FROM numbers(300000)",
    ]);
    let request = request("explosive", SourceMode::QueryVisible);
    let mut source = kit.source().await;
    let admission = source.admit(&request).await.expect("an admission");
    source.open(&admission, QUERY_ID).await.expect("a query");
    let error = loop {
        match source.next_block().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a clean end"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.code.as_str(), error.fate), ("mssql_native.source_reextract_required", Fate::NotDone));
    assert!(error.message.contains("395"), "{error}");
    assert!(source.next_block().await.is_err());
    assert!(source.admit(&request).await.is_err());
    assert!(source.finish().await.is_err());
}

#[tokio::test]
async fn drift_between_admission_and_open_is_noticed() {
    let kit = kit();
    let drop_and_create = |engine: &str| {
        kit.run(&[
            "DROP TABLE IF EXISTS d.drift SYNC",
            &format!("CREATE TABLE d.drift (k Int64) ENGINE = {engine} ORDER BY k"),
        ]);
    };
    for (engine, mode, change, code) in [
        ("ReplacingMergeTree", RAW, None, "mssql_native.source_snapshot_profile_changed"),
        ("ReplacingMergeTree", RAW, Some("ADD COLUMN v Int64"), "mssql_native.source_snapshot_profile_changed"),
        ("MergeTree", SourceMode::QueryVisible, None, "mssql_native.source_identity_changed"),
        ("MergeTree", SourceMode::QueryVisible, Some("ADD COLUMN v Int64"), "mssql_native.source_schema_changed"),
    ] {
        drop_and_create(engine);
        let mut source = kit.source().await;
        let admission = source.admit(&request("drift", mode)).await.expect("an admission");
        match change {
            Some(change) => kit.run(&[&format!("ALTER TABLE d.drift {change}")]),
            None => drop_and_create(engine),
        }
        let error = source.open(&admission, QUERY_ID).await.expect_err("drift");
        assert_eq!(error.code.as_str(), code, "{engine} {change:?}");
    }
}

#[tokio::test]
async fn drift_before_the_end_is_sealed_is_noticed() {
    let kit = kit();
    for (table, engine, mode, code) in [
        ("late_raw", "ReplacingMergeTree", RAW, "mssql_native.source_snapshot_profile_changed"),
        ("late_plain", "MergeTree", SourceMode::QueryVisible, "mssql_native.source_schema_changed"),
    ] {
        kit.run(&[
            &format!("CREATE TABLE d.{table} (k Int64) ENGINE = {engine} ORDER BY k"),
            &format!("INSERT INTO d.{table} SELECT number FROM numbers(10)"),
        ]);
        let mut source = kit.source().await;
        let admission = source.admit(&request(table, mode)).await.expect("an admission");
        source.open(&admission, QUERY_ID).await.expect("a query");
        while source.next_block().await.expect("rows").is_some() {}
        kit.run(&[&format!("ALTER TABLE d.{table} ADD COLUMN v Int64")]);
        assert_eq!(source.finish().await.expect_err("drift").code.as_str(), code);
    }
}

#[tokio::test]
async fn parts_that_change_during_the_read_only_end_the_agreement() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.moving (k Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "INSERT INTO d.moving SELECT number FROM numbers(10)",
    ]);
    let mut source = kit.source().await;
    let admission = source.admit(&request("moving", RAW)).await.expect("an admission");
    source.open(&admission, QUERY_ID).await.expect("a query");
    while source.next_block().await.expect("rows").is_some() {}
    kit.run(&["INSERT INTO d.moving SELECT 77"]);
    let eof = source.finish().await.expect("a sealed end");
    let descriptor = contract::canon::decode_object(&eof.descriptor.expect("a descriptor")).expect("JSON");
    let agreement = descriptor.get("endpoint_authority_agreement").and_then(contract::canon::Json::as_bool);
    assert_eq!((eof.rows, agreement), (10, Some(false)));
}

#[tokio::test]
async fn an_unfinished_stream_cannot_be_sealed_and_query_ids_are_checked() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.unread (k Int64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d.unread SELECT number FROM numbers(10)",
    ]);
    let mut source = kit.source().await;
    let admission = source.admit(&request("unread", SourceMode::QueryVisible)).await.expect("an admission");
    for id in ["", "dpone-native-", "dpone-native-0123456789ABCDEF0123456789ABCDEF", "x"] {
        assert!(source.open(&admission, id).await.is_err(), "{id}");
    }
    source.open(&admission, QUERY_ID).await.expect("a query");
    assert!(source.open(&admission, QUERY_ID).await.is_err(), "one query only");
    assert!(source.finish().await.is_err());
}

#[tokio::test]
async fn b5_a_cancelled_read_ends_at_the_server() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.cancelled (k Int64, s String) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d.cancelled SELECT number, repeat('x', 100) FROM numbers(2000000)",
    ]);
    let mut source = kit.source().await;
    let admission = source.admit(&request("cancelled", SourceMode::QueryVisible)).await.expect("an admission");
    source.open(&admission, QUERY_ID).await.expect("a query");
    assert!(source.next_block().await.expect("rows").is_some());
    source.cancel().await;
    let running = "SELECT count() FROM system.processes WHERE query LIKE '%FROM `d`.`cancelled`%' AND query NOT LIKE '%processes%'";
    // The socket is closed; the server's thread may still be on its way out.
    for _ in 0..1000 {
        if kit.value(running) == "0" {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the query still runs");
}

#[tokio::test]
async fn the_query_carries_its_id_and_every_frozen_setting() {
    let kit = kit();
    kit.run(&["CREATE TABLE d.observed (k Int64) ENGINE = ReplacingMergeTree ORDER BY k"]);
    read(&kit, &request("observed", RAW)).await.expect("a read");
    let selects: Vec<String> =
        kit.logged("FROM `d`.`observed`").into_iter().filter(|line| line.contains(QUERY_ID)).collect();
    assert_eq!(selects.len(), 1, "exactly one data query: {selects:?}");
    for setting in
        ["final", "apply_patch_parts", "sort_overflow_mode", "use_query_condition_cache", "max_execution_time"]
    {
        assert!(selects[0].contains(setting), "{setting}: {}", selects[0]);
    }
}
