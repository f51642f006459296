//! Reports of rows that ClickHouse returned otherwise than a table holds them (the bug log, part A), each as a test of its
//! own named after its row. The profile of the test user is set against an exact read, so that what is read shows that the
//! settings of the query win; where the engine at hand no longer has the defect, the setting that closes its path is looked
//! for in the query log as well.

use contract::block::{Block, Values};
use contract::canon::{Json, decode_object};
use contract::encode::{EncodedRows, RowEncoder};
use contract::layout::WireLayout;
use contract::port::source::{Source as _, SourceMode};
use contract::raw::coverage::Coverage;
use contract::raw::parts::{PartInventory, PartRow};
use contract::source_type::SourceType;

use crate::kit::*;
use crate::windows::in_zone;

const DAY: i64 = 86_400_000_000;
const PROFILE_UNSUPPORTED: &str = "mssql_native.source_read_profile_unsupported";
const TYPE_UNSUPPORTED: &str = "mssql_native.source_type_unsupported";

fn sorted(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values
}

/// The one data SELECT of `table` with its settings.
fn select_of(kit: &Kit, table: &str) -> Vec<(String, String, bool)> {
    let queries = kit.data_queries(table);
    assert_eq!(queries.len(), 1, "one data query: {queries:?}");
    queries.into_iter().next().expect("one").settings
}

fn assert_sent(kit: &Kit, table: &str, wanted: &[(&str, &str)]) {
    let settings = select_of(kit, table);
    for (name, value) in wanted {
        let sent = ((*name).to_owned(), (*value).to_owned(), true);
        assert!(settings.contains(&sent), "{name} = {value} is not among {settings:?}");
    }
}

fn texts(blocks: &[Block], column: usize) -> Vec<Vec<u8>> {
    let values = blocks.iter().flat_map(|block| match &block.columns[column].values {
        Values::String(texts) => (0..block.rows).map(|row| texts.get(row).to_vec()).collect::<Vec<_>>(),
        other => panic!("String expected, {other:?} found"),
    });
    values.collect()
}

/// `FINAL` hides versions by `is_deleted`, and a merge may clean them up; a raw read delivers every version as it is.
#[tokio::test]
async fn a1_every_version_arrives_whatever_final_would_hide() {
    let kit = kit();
    for (table, settings) in
        [("a1", ""), ("a1_cleanup", " SETTINGS allow_experimental_replacing_merge_with_cleanup = 1")]
    {
        kit.run(&[
            &format!(
                "CREATE TABLE d.{table} (k Int64, v Int64, is_deleted UInt8) \
                 ENGINE = ReplacingMergeTree(v, is_deleted) ORDER BY k{settings}"
            ),
            &format!("SYSTEM STOP MERGES d.{table}"),
            &format!("INSERT INTO d.{table} VALUES (1, 1, 0)"),
            &format!("INSERT INTO d.{table} VALUES (1, 3, 1)"),
            &format!("INSERT INTO d.{table} VALUES (1, 2, 0)"),
        ]);
        assert_eq!(kit.value(&format!("SELECT count() FROM d.{table} FINAL")), "0");
        let read = read(&kit, &request(table, RAW)).await.expect("a read");
        let mut rows: Vec<(i64, u8)> = Vec::new();
        for block in &read.blocks {
            let Values::UInt8(deleted) = &block.columns[2].values else { panic!("UInt8") };
            let Values::Int64(versions) = &block.columns[1].values else { panic!("Int64") };
            rows.extend(versions.iter().copied().zip(deleted.iter().copied()));
        }
        rows.sort_unstable();
        assert_eq!(rows, [(1, 0), (2, 0), (3, 1)], "{table}");
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}

/// The user's profile has `final = 1`; what `FINAL` does across partitions changed with settings and versions. The refusal
/// of a profile that wins over the query is in `guards` and `contract::raw::settings`: here the query wins.
#[tokio::test]
async fn a2_a_profile_with_final_does_not_reach_the_read() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a2 (k Int64, v Int64) ENGINE = ReplacingMergeTree(v) ORDER BY k PARTITION BY v % 2",
        "SYSTEM STOP MERGES d.a2",
        "INSERT INTO d.a2 VALUES (1, 1)",
        "INSERT INTO d.a2 VALUES (1, 2)",
        "INSERT INTO d.a2 VALUES (1, 4)",
    ]);
    assert_eq!(kit.value("SELECT count() < 3 FROM d.a2 FINAL"), "1");
    let read = read(&kit, &request("a2", RAW)).await.expect("a read");
    assert_eq!(sorted(read.int64(1)), [1, 2, 4]);
    assert_sent(&kit, "a2", &[("final", "0")]);
    kit.run(&["DROP TABLE d.a2 SYNC"]);
}

/// A DELETE whose mutation waits is refused in raw mode by name, and not half applied in query-visible mode; one that is
/// done is in the rows.
#[tokio::test]
async fn a3_a_lightweight_delete_is_pending_and_refused_or_done_and_seen() {
    let kit = kit();
    for (table, engine, mode) in
        [("a3", "ReplacingMergeTree", RAW), ("a3_plain", "MergeTree", SourceMode::QueryVisible)]
    {
        kit.run(&[
            &format!("CREATE TABLE d.{table} (k Int64) ENGINE = {engine} ORDER BY k"),
            &format!("INSERT INTO d.{table} SELECT number FROM numbers(100)"),
            &format!("SYSTEM STOP MERGES d.{table}"),
            &format!("DELETE FROM d.{table} WHERE k < 10 SETTINGS lightweight_deletes_sync = 0"),
        ]);
        match mode {
            SourceMode::ExactRawRows(_) => {
                assert_eq!(refusal(&kit, &request(table, mode)).await, PROFILE_UNSUPPORTED);
            }
            SourceMode::QueryVisible => {
                let pending = read(&kit, &request(table, mode)).await.expect("a read");
                assert_eq!(pending.eof.rows, 100, "none of a pending DELETE");
            }
        }
        kit.run(&[
            &format!("SYSTEM START MERGES d.{table}"),
            &format!("DELETE FROM d.{table} WHERE k >= 90 SETTINGS lightweight_deletes_sync = 2"),
        ]);
        let done = read(&kit, &request(table, mode)).await.expect("a read");
        assert_eq!(sorted(done.int64(0)), (10..90).collect::<Vec<i64>>(), "{table}");
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}

/// Patch parts over a window: values are patched, and the plan that read them late is off.
#[tokio::test]
async fn a5_patched_values_arrive_in_a_windowed_read() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a5 (k Int64, v Int64, t String, at DateTime64(6, 'UTC')) ENGINE = ReplacingMergeTree ORDER BY k \
         PARTITION BY toYYYYMM(at) SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1",
        "INSERT INTO d.a5 SELECT number, 0, 'old', fromUnixTimestamp64Micro(number * 3600000000, 'UTC') FROM numbers(1000)",
        "SYSTEM STOP MERGES d.a5",
        "UPDATE d.a5 SET v = k + 7, t = 'new' WHERE k % 3 = 0 SETTINGS enable_lightweight_update = 1",
    ]);
    let patches =
        "SELECT count() > 0 FROM system.parts WHERE table = 'a5' AND active AND startsWith(partition_id, 'patch-')";
    assert_eq!(kit.value(patches), "1");
    let read = read(&kit, &windowed("a5", RAW, "at", DAY, 2 * DAY)).await.expect("a read");
    let rows: Vec<_> = read.int64(0).into_iter().zip(read.int64(1)).zip(texts(&read.blocks, 2)).collect();
    assert_eq!(rows.len(), 24);
    for ((k, v), t) in rows {
        let patched = k % 3 == 0;
        assert!((24..48).contains(&k));
        assert_eq!(v, if patched { k + 7 } else { 0 }, "{k}");
        assert_eq!(t, if patched { b"new" } else { b"old" }, "{k}");
    }
    let guards = [("apply_patch_parts", "1"), ("query_plan_optimize_lazy_materialization", "0")];
    assert_sent(&kit, "a5", &guards);
    kit.run(&["DROP TABLE d.a5 SYNC"]);
}

/// The query condition cache, filled by another session's PREWHERE with IN over a skip index and by the window's own
/// condition, must not decide which granules we read.
#[tokio::test]
async fn a6_the_query_condition_cache_of_another_session_hides_no_row() {
    let kit = kit();
    let condition = "at >= toDateTime64('1970-01-01 00:00:00.000000', 6, 'UTC') AND \
         at < toDateTime64('1970-01-02 00:00:00.000000', 6, 'UTC')";
    kit.run(&[
        "CREATE TABLE d.a6 (k Int64, v Int64, at DateTime64(6, 'UTC'), INDEX i v TYPE set(100) GRANULARITY 1) \
         ENGINE = ReplacingMergeTree ORDER BY k PARTITION BY toYYYYMM(at) SETTINGS index_granularity = 128",
        "INSERT INTO d.a6 SELECT number, number % 977, fromUnixTimestamp64Micro(number * 1000000, 'UTC') FROM numbers(100000)",
    ]);
    for _ in 0..2 {
        for others in ["PREWHERE v IN (3, 5) WHERE", "PREWHERE v IN (SELECT 7) WHERE", "WHERE v = 976 AND", "WHERE"] {
            kit.value(&format!(
                "SELECT count() FROM d.a6 {others} {condition} SETTINGS use_query_condition_cache = 1, use_skip_indexes_on_data_read = 1"
            ));
        }
    }
    let read = read(&kit, &windowed("a6", RAW, "at", 0, DAY)).await.expect("a read");
    assert_eq!(sorted(read.int64(0)), (0..86_400).collect::<Vec<i64>>());
    assert_sent(&kit, "a6", &[("use_query_condition_cache", "0"), ("use_skip_indexes_on_data_read", "0")]);
    kit.run(&["DROP TABLE d.a6 SYNC"]);
}

/// A cache that ignores the filter under which it was filled would empty the read of who sees more. The embedded engine has
/// one user only, so the other user's policy is played by `additional_table_filters`, which the engine applies in the same
/// place; the setting that turns the cache off is what protects a read between two users.
#[tokio::test]
async fn a7_a_cache_filled_under_a_filter_hides_no_row() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a7 (k Int64, at DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY k SETTINGS index_granularity = 128",
        "INSERT INTO d.a7 SELECT number, fromUnixTimestamp64Micro(number * 1000000, 'UTC') FROM numbers(100000)",
    ]);
    let filtered = "SELECT count() FROM d.a7 WHERE at >= toDateTime64('1970-01-01 00:00:00.000000', 6, 'UTC') AND \
         at < toDateTime64('1970-01-02 00:00:00.000000', 6, 'UTC') \
         SETTINGS use_query_condition_cache = 1, additional_table_filters = {'d.a7': 'k < 0'}";
    assert_eq!((kit.value(filtered), kit.value(filtered)), ("0".into(), "0".into()));
    let read = read(&kit, &windowed("a7", SourceMode::QueryVisible, "at", 0, DAY)).await.expect("a read");
    assert_eq!(sorted(read.int64(0)), (0..86_400).collect::<Vec<i64>>());
    assert_sent(&kit, "a7", &[("use_query_condition_cache", "0")]);
    kit.run(&["DROP TABLE d.a7 SYNC"]);
}

/// A projection sorted the other way numbers its own rows, and an engine uses projections unless it is told not to; the
/// coverage that the seal binds must be that of the table's own offsets.
#[tokio::test]
async fn a10_offsets_are_those_of_the_part_and_not_of_a_projection() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a10 (k Int64, at DateTime64(6, 'UTC'), PROJECTION p (SELECT k, at ORDER BY at)) \
         ENGINE = ReplacingMergeTree ORDER BY k PARTITION BY toYYYYMM(at) \
         SETTINGS deduplicate_merge_projection_mode = 'rebuild', index_granularity = 128",
        "INSERT INTO d.a10 SELECT number, fromUnixTimestamp64Micro((99999 - number) * 20000000, 'UTC') FROM numbers(100000)",
    ]);
    let part = kit.value("SELECT name FROM system.parts WHERE table = 'a10' AND active AND partition = '197001'");
    assert_eq!(
        kit.value(&format!("SELECT rows FROM system.projection_parts WHERE parent_name = '{part}' AND table = 'a10'")),
        "100000"
    );
    let read = read(&kit, &windowed("a10", RAW, "at", 0, DAY)).await.expect("a read");
    assert_eq!(sorted(read.int64(0)), (95_680..100_000).collect::<Vec<i64>>());

    // Rows are stored in the order of k, so a row's offset is its k; a projection would say 99,999 - k.
    let zeroless = "0123456789abcdef0123456789abcdef".to_owned();
    let inventory = PartInventory::new(vec![PartRow {
        name: part.clone(),
        partition_id: "197001".into(),
        rows: 100_000,
        data_version: 1,
        level: 0,
        has_lightweight_delete: 0,
        hash_of_all_files: zeroless.clone(),
        hash_of_uncompressed_files: zeroless.clone(),
        uncompressed_hash_of_compressed_files: zeroless,
    }]);
    let mut expected = Coverage::new(&inventory.expect("an inventory"));
    for offset in 95_680..100_000 {
        expected.observe(part.as_bytes(), offset).expect("a row");
    }
    let descriptor = decode_object(&read.eof.descriptor.expect("a descriptor")).expect("JSON");
    let sealed = descriptor.get("touched_part_coverage_sha256").and_then(Json::as_str);
    assert_eq!(sealed, Some(expected.sha256().to_string().as_str()));
    let guards = [
        ("optimize_use_projections", "0"),
        ("prefer_optimize_projection", "0"),
        ("force_optimize_projection", "0"),
        ("optimize_use_implicit_projections", "0"),
    ];
    let known: Vec<_> = guards.into_iter().filter(|(name, _)| kit.server.engine().knows_setting(name)).collect();
    assert!(known.len() >= 3, "{known:?}");
    assert_sent(&kit, "a10", &known);
    kit.run(&["DROP TABLE d.a10 SYNC"]);
}

/// A projection may still hold rows that a lightweight DELETE removed from the part.
#[tokio::test]
async fn a11_deleted_rows_do_not_come_back_through_a_projection() {
    let kit = kit();
    for (table, projections) in [("a11_drop", "drop"), ("a11_rebuild", "rebuild")] {
        kit.run(&[
            &format!(
                "CREATE TABLE d.{table} (k Int64, v Int64, PROJECTION p (SELECT k, v ORDER BY v)) \
                 ENGINE = ReplacingMergeTree ORDER BY k SETTINGS lightweight_mutation_projection_mode = '{projections}', \
                 deduplicate_merge_projection_mode = 'rebuild'"
            ),
            &format!("INSERT INTO d.{table} SELECT number, -number FROM numbers(10000)"),
            &format!("DELETE FROM d.{table} WHERE k % 2 = 0 SETTINGS lightweight_deletes_sync = 2"),
        ]);
        let read = read(&kit, &request(table, RAW)).await.expect("a read");
        assert_eq!(sorted(read.int64(0)), (0..5000).map(|half| 2 * half + 1).collect::<Vec<i64>>(), "{table}");
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}

/// The profile limits the rows to read and says `break`: without the query's own `throw` the read would end early and
/// cleanly.
#[tokio::test]
async fn a13_a_limit_of_the_profile_is_an_error_and_never_a_short_result() {
    let kit = kit();
    let rows = 2 * ROWS_TO_READ_MAX - 1000;
    kit.run(&[
        "CREATE TABLE d.a13 (k Int8) ENGINE = MergeTree ORDER BY tuple()",
        &format!("INSERT INTO d.a13 SELECT 1 FROM numbers({})", rows / 2),
        &format!("INSERT INTO d.a13 SELECT 1 FROM numbers({})", rows / 2),
    ]);
    let short = "SELECT sum(k) FROM d.a13 SETTINGS read_overflow_mode = 'break'";
    let short: i64 = kit.value(short).parse().expect("a number");
    assert!(short < rows, "the profile's limit is in effect: {short}");
    let error = read(&kit, &request("a13", SourceMode::QueryVisible)).await.expect_err("too many rows");
    assert!(error.message.contains("ClickHouse error 158"), "{error}");

    kit.run(&["CREATE TABLE d.a13_small (k Int8) ENGINE = MergeTree ORDER BY k", "INSERT INTO d.a13_small VALUES (1)"]);
    read(&kit, &request("a13_small", SourceMode::QueryVisible)).await.expect("a read");
    let modes = ["read_overflow_mode", "result_overflow_mode", "timeout_overflow_mode", "sort_overflow_mode"];
    let modes: Vec<_> = modes.into_iter().chain(["set_overflow_mode"]).map(|name| (name, "throw")).collect();
    assert_sent(&kit, "a13_small", &modes);
    kit.run(&["DROP TABLE d.a13 SYNC", "DROP TABLE d.a13_small SYNC"]);
}

/// One SELECT, never pages. A profile with `limit` would keep the test server itself from reading the engine's own tables,
/// so what is shown is that such a setting cuts, that ours is sent as 0, and that every row arrives; a server that applied
/// a limit all the same is refused in `wire::tests::endings`.
#[tokio::test]
async fn a14_one_select_without_limit_or_offset_reads_everything() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a14 (k Int64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d.a14 SELECT number FROM numbers(300000)",
    ]);
    assert_eq!(kit.value("SELECT k FROM d.a14 ORDER BY k SETTINGS limit = 5, offset = 7"), "7", "such settings cut");
    let read = read(&kit, &request("a14", SourceMode::QueryVisible)).await.expect("a read");
    assert!(read.blocks.len() > 1, "more than one block");
    assert_eq!(sorted(read.int64(0)), (0..300_000).collect::<Vec<i64>>());
    assert_sent(&kit, "a14", &[("limit", "0"), ("offset", "0")]);
    let text = &kit.data_queries("a14")[0].text;
    assert!(!text.contains("LIMIT") && !text.contains("OFFSET"), "{text}");
    kit.run(&["DROP TABLE d.a14 SYNC"]);
}

/// Server in New York, sessions of the profile in Tokyo, a window over the hour that New York skips (2024-03-10 07:00 UTC)
/// and one over the hour it has twice (2024-11-03): bounds are one literal form in UTC and choose the same rows, whatever
/// the column's zone is.
#[tokio::test]
async fn a15_bounds_mean_the_same_instants_under_every_time_zone() {
    if !in_zone("America/New_York", "query_semantics::a15_bounds_mean_the_same_instants_under_every_time_zone") {
        return;
    }
    let kit = kit();
    let minute = 60_000_000;
    assert_eq!(kit.value("SELECT serverTimezone()"), "America/New_York");
    for (number, (column_type, mode)) in [
        ("DateTime64(6, 'UTC')", RAW),
        ("DateTime('UTC')", RAW),
        ("DateTime64(6, 'UTC')", SourceMode::QueryVisible),
        ("DateTime64(3)", SourceMode::QueryVisible),
        ("DateTime", SourceMode::QueryVisible),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("a15_{number}");
        let engine = if mode == RAW { "ReplacingMergeTree" } else { "MergeTree" };
        kit.run(&[&format!(
            "CREATE TABLE d.{table} (k Int64, at {column_type}) ENGINE = {engine} ORDER BY k PARTITION BY toYYYYMM(at)"
        )]);
        // 2024-03-10 07:00 UTC and 2024-11-03 06:00 UTC, the instants at which New York changes its clocks.
        for change in [1_710_054_000_000_000, 1_730_613_600_000_000] {
            kit.run(&[&format!(
                "INSERT INTO d.{table} SELECT {change} + (number - 180) * {minute} AS micros, \
                 fromUnixTimestamp64Micro(micros, 'UTC') FROM numbers(360)"
            )]);
            let (start, end) = (change - 90 * minute, change + 30 * minute);
            let read = read(&kit, &windowed(&table, mode, "at", start, end)).await.expect("a read");
            let expected: Vec<i64> = (-90..30).map(|offset| change + offset * minute).collect();
            assert_eq!(sorted(read.int64(0)), expected, "{column_type} {mode:?}");
            assert_eq!(sorted(read.int64(1)), expected, "{column_type} {mode:?}");
        }
        let queries = kit.data_queries(&table);
        let bounds = "at` >= toDateTime64('2024-03-10 05:30:00.000000', 6, 'UTC')";
        assert!(queries[0].text.contains(bounds), "{}", queries[0].text);
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}

/// Beyond 2262 nanoseconds overflow; microseconds are exact to the type's end, and a scale above 6 is refused.
#[tokio::test]
async fn a17_timestamps_beyond_2262_and_at_the_epoch_are_exact() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a17 (k Int64, at DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d.a17 VALUES (0, '1970-01-01 00:00:00.000000'), (1, '2262-04-12 00:00:00.000001'), \
         (2, '2299-12-31 23:59:59.999999'), (3, '1969-12-31 23:59:59.999999'), (4, '1900-01-01 00:00:00.000001')",
        "CREATE TABLE d.a17_9 (k Int64, at DateTime64(9, 'UTC')) ENGINE = MergeTree ORDER BY k",
        "CREATE TABLE d.a17_7 (k Int64, at Nullable(DateTime64(7))) ENGINE = MergeTree ORDER BY k",
    ]);
    let read = read(&kit, &request("a17", SourceMode::QueryVisible)).await.expect("a read");
    let expected = [0, 9_223_372_800_000_001, 10_413_791_999_999_999, -1, -2_208_988_799_999_999];
    assert_eq!((read.int64(0), read.int64(1)), (vec![0, 1, 2, 3, 4], expected.to_vec()));
    for table in ["a17_9", "a17_7"] {
        assert_eq!(refusal(&kit, &request(table, SourceMode::QueryVisible)).await, TYPE_UNSUPPORTED);
    }
    kit.run(&["DROP TABLE d.a17 SYNC", "DROP TABLE d.a17_9 SYNC", "DROP TABLE d.a17_7 SYNC"]);
}

/// What the target's row encoding makes of the first `rows` rows of a block of one column.
fn encode(block: &Block, source: &str, declared: &str, rows: usize) -> Result<EncodedRows, (String, usize)> {
    let layout = WireLayout::new([("v", declared)]).expect(declared);
    let sources = vec![SourceType::parse(source).expect(source)];
    let encoder = RowEncoder::new(layout, sources, 1 << 20).expect("a form");
    let mut out = EncodedRows::default();
    let column = block.columns[1].clone();
    let block = Block { rows: block.rows, columns: vec![column] };
    encoder.encode(&block, 0..rows, &mut out).map_err(|error| (error.to_string(), error.row))?;
    Ok(out)
}

/// The source delivers every `UInt64` as it is; `decimal(20,0)` holds all of them, `bigint` refuses from 2^63 on, before
/// anything could be published.
#[tokio::test]
async fn a18_unsigned_numbers_beyond_bigint_are_delivered_and_refused_by_bigint_only() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.a18 (k Int64, v UInt64) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d.a18 VALUES (0, 0), (1, 9223372036854775807), (2, 9223372036854775808), (3, 18446744073709551615)",
    ]);
    let read = read(&kit, &request("a18", SourceMode::QueryVisible)).await.expect("a read");
    let [block] = read.blocks.as_slice() else { panic!("one block") };
    assert_eq!(block.columns[1].values, Values::UInt64(vec![0, (1 << 63) - 1, 1 << 63, u64::MAX]));
    assert_eq!(encode(block, "UInt64", "decimal(20,0)", 4).expect("exact").rows(), 4);
    assert_eq!(encode(block, "UInt64", "bigint", 2).expect("exact").rows(), 2);
    let (message, row) = encode(block, "UInt64", "bigint", 4).expect_err("2^63");
    assert_eq!(row, 2, "{message}");
    assert!(!message.contains("9223372036854775808"), "{message}");
    kit.run(&["DROP TABLE d.a18 SYNC"]);
}

/// `LowCardinality` is refused by its name in the catalog, in both modes and nullable or not, before a dictionary could be
/// misread. That the reader takes none for a plain column either is `wire::tests::old_server`.
#[tokio::test]
async fn a20_low_cardinality_is_refused_at_admission() {
    let kit = kit();
    for (table, engine, mode, text_type) in [
        ("a20", "ReplacingMergeTree", RAW, "LowCardinality(Nullable(String))"),
        ("a20_plain", "MergeTree", SourceMode::QueryVisible, "LowCardinality(String)"),
    ] {
        let null = if text_type.contains("Nullable") { "NULL" } else { "''" };
        kit.run(&[
            &format!("CREATE TABLE d.{table} (k Int64, v {text_type}) ENGINE = {engine} ORDER BY k"),
            &format!(
                "INSERT INTO d.{table} SELECT number, multiIf(number = 0, {null}, number = 1, '', toString(number)) \
                 FROM numbers(70000)"
            ),
        ]);
        assert_eq!(refusal(&kit, &request(table, mode)).await, TYPE_UNSUPPORTED);
        assert!(kit.data_queries(table).is_empty(), "no row was asked for");
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}

/// A setting that a server does not know must not be left out in silence: each setting of the read is sent as important, so
/// that such a server answers UNKNOWN_SETTING. The engine at hand knows them all; the answer of one that does not is played
/// in `wire::tests::old_server`.
#[tokio::test]
async fn a21_every_setting_of_the_read_is_one_that_a_server_must_know() {
    let kit = kit();
    kit.run(&["CREATE TABLE d.a21 (k Int64) ENGINE = ReplacingMergeTree ORDER BY k"]);
    let mut source = kit.source().await;
    let admission = source.admit(&request("a21", RAW)).await.expect("an admission");
    source.open(&admission, QUERY_ID).await.expect("a query");
    source.cancel().await;
    let sent = select_of(&kit, "a21");
    let optional: Vec<_> = sent.iter().filter(|(_, _, important)| !important).collect();
    assert!(optional.is_empty(), "{optional:?}");
    for (name, value) in contract::raw::settings::FIXED {
        assert!(sent.contains(&(name.to_owned(), value.text(), true)), "{name}");
    }
    for (name, value) in &admission.guards.sent {
        assert!(sent.contains(&(name.clone(), value.clone(), true)), "{name}");
    }
    kit.run(&["DROP TABLE d.a21 SYNC"]);
}

/// Bytes arrive as they are stored. Text that is not UTF-8 is refused by the row encoder with the row's ordinal and without
/// the value (`contract`: `a_character_cut_by_a_row_boundary_is_refused`); NUL is a character like any other.
#[tokio::test]
async fn a23_nul_is_kept_and_text_that_is_not_utf8_is_refused_by_ordinal() {
    let kit = kit();
    kit.run(&["CREATE TABLE d.a23 (k Int64, s String) ENGINE = MergeTree ORDER BY k"]);
    for (row, hex) in ["610062", "FF", "EDA080"].into_iter().enumerate() {
        kit.run(&[&format!("INSERT INTO d.a23 SELECT {row}, unhex('{hex}')")]);
    }
    kit.run(&["OPTIMIZE TABLE d.a23 FINAL"]);
    let read = read(&kit, &request("a23", SourceMode::QueryVisible)).await.expect("a read");
    let expected: [&[u8]; 3] = [b"a\0b", b"\xFF", b"\xED\xA0\x80"];
    assert_eq!(texts(&read.blocks, 1), expected);
    let [block] = read.blocks.as_slice() else { panic!("one block") };
    assert_eq!(encode(block, "String", "nvarchar(max)", 1).expect("a NUL is text").rows(), 1);
    for (first, row) in [(0, 1), (2, 0)] {
        let Values::String(all) = &block.columns[1].values else { panic!("String") };
        let mut tail = contract::block::StringColumn::default();
        (first..3).for_each(|row| tail.push(all.get(row)));
        let mut part = Block { rows: 3 - first, columns: block.columns.clone() };
        part.columns[1].values = Values::String(tail);
        let (message, found) = encode(&part, "String", "nvarchar(max)", 3 - first).expect_err("no UTF-8");
        assert_eq!(found, row, "{message}");
        assert!(message.starts_with("mssql_native.invalid_utf8_source_text"), "{message}");
        assert!(!message.contains('\u{FFFD}') && !message.contains("a\0b"), "{message}");
    }
    kit.run(&["DROP TABLE d.a23 SYNC"]);
}
