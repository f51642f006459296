//! What is refused before any row is read, and with which code.

use contract::port::source::{ReplicaScope, Source as _, SourceMode};

use crate::kit::*;

#[tokio::test]
async fn engines_databases_and_names_outside_the_contract_are_refused() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.e_plain (k Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE d.e_replacing (k Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "CREATE TABLE d.e_summing (k Int64) ENGINE = SummingMergeTree ORDER BY k",
        "CREATE TABLE d.e_memory (k Int64) ENGINE = Memory",
        "CREATE VIEW d.e_view AS SELECT * FROM d.e_plain",
        "CREATE DATABASE m ENGINE = Memory",
        "CREATE TABLE m.t (k Int64) ENGINE = Memory",
    ]);
    let plain = SourceMode::QueryVisible;
    let connected = SourceMode::ExactRawRows(ReplicaScope::ConnectedReplica);
    for (table, mode, code) in [
        ("e_replacing", plain, "mssql_native.plain_mergetree_atomic_required"),
        ("e_summing", plain, "mssql_native.plain_mergetree_atomic_required"),
        ("e_memory", plain, "mssql_native.plain_mergetree_atomic_required"),
        ("e_view", plain, "mssql_native.plain_mergetree_atomic_required"),
        ("nowhere", plain, "mssql_native.plain_mergetree_atomic_required"),
        ("e_plain", RAW, "mssql_native.replacing_raw_snapshot_required"),
        ("e_summing", RAW, "mssql_native.replacing_raw_snapshot_required"),
        ("e_view", RAW, "mssql_native.replacing_raw_snapshot_required"),
        ("nowhere", RAW, "mssql_native.replacing_raw_snapshot_required"),
        ("e_replacing", connected, "mssql_native.replica_scope_unproven"),
        ("e; DROP TABLE x", RAW, "mssql_native.source_identifier_invalid"),
        ("", plain, "mssql_native.source_identifier_invalid"),
    ] {
        assert_eq!(refusal(&kit, &request(table, mode)).await, code, "{table} {mode:?}");
    }
    for (mode, code) in
        [(RAW, "mssql_native.replacing_raw_snapshot_required"), (plain, "mssql_native.plain_mergetree_atomic_required")]
    {
        let mut request = request("t", mode);
        request.database = "m".into();
        assert_eq!(refusal(&kit, &request).await, code);
    }
}

#[tokio::test]
async fn columns_outside_the_contract_are_refused() {
    let kit = kit();
    for (number, (columns, mode, code)) in [
        ("k Int64, _part String", RAW, "mssql_native.source_provenance_incomplete"),
        ("k Int64, _part_offset UInt64", RAW, "mssql_native.source_provenance_incomplete"),
        ("k Int64, v Int64 DEFAULT 1", RAW, "mssql_native.ordinary_columns_required"),
        ("k Int64, v Int64 MATERIALIZED k", SourceMode::QueryVisible, "mssql_native.ordinary_columns_required"),
        ("k Int64, v Int64 ALIAS k", SourceMode::QueryVisible, "mssql_native.ordinary_columns_required"),
        ("k Int64, `a-b` Int64", RAW, "mssql_native.source_identifier_invalid"),
        ("k Int64, v LowCardinality(String)", RAW, "mssql_native.source_type_unsupported"),
        (
            "k Int64, v LowCardinality(Nullable(String))",
            SourceMode::QueryVisible,
            "mssql_native.source_type_unsupported",
        ),
        ("k Int64, v FixedString(3)", RAW, "mssql_native.source_type_unsupported"),
        ("k Int64, v Array(Int64)", RAW, "mssql_native.source_type_unsupported"),
        ("k Int64, v Enum8('a' = 1)", RAW, "mssql_native.source_type_unsupported"),
        ("k Int64, v DateTime64(9, 'UTC')", RAW, "mssql_native.source_type_unsupported"),
        ("k Int64, v DateTime('Asia/Tokyo')", RAW, "mssql_native.source_type_unsupported"),
        ("k Int64, v Decimal(50, 2)", RAW, "mssql_native.source_type_unsupported"),
        ("k Int64, v UInt128", RAW, "mssql_native.source_type_unsupported"),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("columns_{number}");
        let engine = if mode == RAW { "ReplacingMergeTree" } else { "MergeTree" };
        kit.run(&[&format!("CREATE TABLE d.{table} ({columns}) ENGINE = {engine} ORDER BY k")]);
        assert_eq!(refusal(&kit, &request(&table, mode)).await, code, "{columns}");
    }
}

#[tokio::test]
async fn windows_partitions_and_mutations_outside_the_contract_are_refused() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.w_hash (k Int64, at DateTime64(6, 'UTC')) ENGINE = ReplacingMergeTree ORDER BY k PARTITION BY k % 3",
        "CREATE TABLE d.w_text (k Int64, at String) ENGINE = ReplacingMergeTree ORDER BY k PARTITION BY toYYYYMM(toDate(at))",
        "CREATE TABLE d.w_plain (k Int64) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE d.mutated (k Int64, v Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "INSERT INTO d.mutated SELECT number, number FROM numbers(10)",
        "SYSTEM STOP MERGES d.mutated",
        "ALTER TABLE d.mutated UPDATE v = 0 WHERE 1 SETTINGS mutations_sync = 0",
    ]);
    let day = 86_400_000_000;
    let code = refusal(&kit, &windowed("w_hash", RAW, "at", 0, day)).await;
    assert_eq!(code, "mssql_native.source_provenance_incomplete");
    let code = refusal(&kit, &windowed("w_text", RAW, "at", 0, day)).await;
    assert_eq!(code, "mssql_native.source_provenance_incomplete");
    let code = refusal(&kit, &windowed("w_plain", SourceMode::QueryVisible, "at", 0, day)).await;
    assert_eq!(code, "mssql_native.window_column_missing");
    let code = refusal(&kit, &windowed("w_hash", RAW, "at", day, 0)).await;
    assert_eq!(code, "rolling_window_bounds_out_of_range");
    assert_eq!(refusal(&kit, &request("mutated", RAW)).await, "mssql_native.source_read_profile_unsupported");
    let mut endless = request("w_plain", SourceMode::QueryVisible);
    endless.query_seconds = 0;
    assert_eq!(refusal(&kit, &endless).await, "mssql_native.source_read_profile_unsupported");
}

#[tokio::test]
async fn a_row_policy_is_bound_and_its_rows_are_what_arrives() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.filtered (id Int64) ENGINE = ReplacingMergeTree ORDER BY id",
        "INSERT INTO d.filtered SELECT number FROM numbers(100)",
        "CREATE TABLE d.unfiltered (id Int64) ENGINE = ReplacingMergeTree ORDER BY id",
    ]);
    let filtered = read(&kit, &request("filtered", RAW)).await.expect("a read");
    assert_eq!(filtered.int64(0), [0, 1, 2, 3, 4]);
    let policy_filtered = |admission: &contract::port::source::SourceAdmission| {
        let profile = admission.profile.as_ref().expect("a profile");
        let document = contract::canon::decode_object(&profile.canonical).expect("JSON");
        document.get("policy_filtered").and_then(contract::canon::Json::as_bool)
    };
    assert_eq!(policy_filtered(&filtered.admission), Some(true));
    let unfiltered = kit.source().await.admit(&request("unfiltered", RAW)).await.expect("an admission");
    assert_eq!(policy_filtered(&unfiltered), Some(false));
}

#[tokio::test]
async fn admission_is_repeatable_and_records_the_guards() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.repeatable (k Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "INSERT INTO d.repeatable SELECT number FROM numbers(10)",
    ]);
    let request = request("repeatable", RAW);
    let mut first = kit.source().await;
    let admitted = first.admit(&request).await.expect("an admission");
    assert_eq!(first.admit(&request).await.expect("again"), admitted);
    // Another connection has another local port but the same peer, certificate and user: the same profile.
    assert_eq!(kit.source().await.admit(&request).await.expect("elsewhere"), admitted);
    let sent: Vec<&str> = admitted.guards.sent.iter().map(|(name, _)| name.as_str()).collect();
    for guard in ["use_query_condition_cache", "optimize_use_projections", "session_timezone", "max_block_size"] {
        assert!(sent.contains(&guard), "{guard} is not among {sent:?}");
    }
    let physical = first.physical_profile(&request).await.expect("a physical profile").map(|digest| digest.to_string());
    assert_eq!(physical, admitted.physical_profile_sha256);
    first.ping().await.expect("a pong");
}
