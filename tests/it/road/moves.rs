//! Transfers that succeed: what the target holds is what the source returned.

use super::kit::{FULL_REFRESH, ONE_DAY, RAW, Road, VISIBLE, manifest, source};

fn succeed(road: &Road, text: &str, run_id: &str) -> serde_json::Value {
    let ended = road.run(&road.manifest(text), run_id);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json()
}

/// Nothing is left of a finished run: no stage, no custody.
fn assert_settled(road: &mut Road) {
    assert_eq!(road.target.stages(), Vec::<String>::new());
    assert_eq!(road.target.custody(), ["clear"]);
}

#[test]
fn a_full_refresh_replaces_the_table_by_truncate_and_by_delete() {
    for (name, mode, extra) in
        [("full_truncate", VISIBLE, ""), ("full_delete", VISIBLE, "full_refresh: {clear: delete}\n        ")]
    {
        let mut road = Road::new(name);
        road.flights("MergeTree", 150);
        road.plant(-1, "2001-01-01");
        let text = manifest(name, mode, FULL_REFRESH)
            .replace("staging_schema: stage", &format!("{extra}staging_schema: stage"));
        let outcome = succeed(&road, &text, "run-1");
        assert_eq!((outcome["rows"].as_u64(), outcome["chunks"].as_u64()), (Some(150), Some(4)), "{outcome}");
        assert_eq!(outcome["replaced_rows"].as_u64(), Some(1), "{outcome}");
        assert_eq!(road.target_content(), road.source_content());
        assert_settled(&mut road);
        assert_eq!(road.target.value("SELECT COUNT(*) FROM dpone.dpone_load_receipt"), "1");
        assert_eq!(road.target.value("SELECT COUNT(*) FROM dpone.native_transfer_evidence"), "1");
        // The same run again publishes nothing again.
        let again = succeed(&road, &text, "run-1");
        assert_eq!(again["receipt_id"], outcome["receipt_id"]);
        assert_eq!(road.target.value("SELECT COUNT(*) FROM dpone.dpone_load_receipt"), "1");
        // Another run replaces it once more.
        source().run(&format!("INSERT INTO {name}.t VALUES (1000, 'new', 1, '2013-07-04 01:00:00')"));
        assert_eq!(succeed(&road, &text, "run-2")["rows"].as_u64(), Some(151));
        assert_eq!(road.target_content(), road.source_content());
        assert_settled(&mut road);
    }
}

#[test]
fn a_replacing_merge_tree_gives_every_version_and_every_duplicate() {
    let mut road = Road::new("replacing");
    source().run(
        "CREATE TABLE replacing.t (id Int64, name Nullable(String), x Nullable(Float64), at DateTime64(6, 'UTC'), \
                  version Int64, is_deleted UInt8) ENGINE = ReplacingMergeTree(version, is_deleted) ORDER BY id",
    );
    source().run("SYSTEM STOP MERGES replacing.t");
    for _ in 0..2 {
        source().run("INSERT INTO replacing.t SELECT number, 'same', 1.5, toDateTime64('2013-07-04 00:00:00', 6, 'UTC'), 1, 0 FROM numbers(50)");
    }
    source().run("INSERT INTO replacing.t SELECT number, 'later', NULL, toDateTime64('2013-07-04 00:00:00', 6, 'UTC'), 2, 1 FROM numbers(10)");
    let columns = format!("{}, version bigint NOT NULL, is_deleted bigint NOT NULL", testkit::transfer::TARGET_COLUMNS);
    road.target.create("t", &columns);
    let text = manifest("replacing", RAW, FULL_REFRESH)
        .replace("columns: {x:", "columns: {is_deleted: {target_type: {mssql: bigint}}, x:");
    assert_eq!(succeed(&road, &text, "run-1")["rows"].as_u64(), Some(110));
    assert_eq!(
        road.target.rows("SELECT id, name, x, version, is_deleted FROM dbo.t"),
        source().rows("SELECT id, name, x, version, is_deleted FROM replacing.t")
    );
    assert_settled(&mut road);
}

#[test]
fn a_partition_replace_changes_its_day_and_nothing_else() {
    let mut road = Road::new("one_day");
    road.flights("MergeTree", 100);
    source().run("INSERT INTO one_day.t VALUES (900, 'before', 1, '2013-07-03 23:59:59.999999'), (901, 'end', 1, '2013-07-05 00:00:00')");
    road.plant(-1, "2013-07-03T23:59:59.999999");
    road.plant(-2, "2013-07-04T00:00:00");
    road.plant(-3, "2013-07-04T23:59:59.999999");
    road.plant(-4, "2013-07-05T00:00:00");
    let outcome = succeed(&road, &manifest("one_day", VISIBLE, ONE_DAY), "run-1");
    assert_eq!((outcome["rows"].as_u64(), outcome["replaced_rows"].as_u64()), (Some(100), Some(2)), "{outcome}");
    let mut expected = source().rows(
        "SELECT id, name, x, toString(at) FROM one_day.t WHERE at >= '2013-07-04 00:00:00' AND at < '2013-07-05 00:00:00'",
    );
    expected.push("-1\tplanted\t0.5\t2013-07-03 23:59:59.999999".into());
    expected.push("-4\tplanted\t0.5\t2013-07-05 00:00:00.000000".into());
    expected.sort();
    assert_eq!(road.target_content(), expected);
    assert_settled(&mut road);
}

#[test]
fn an_empty_valid_window_clears_its_day_and_nothing_else() {
    for (name, mode, engine) in
        [("empty_visible", VISIBLE, "MergeTree"), ("empty_raw", RAW, "ReplacingMergeTree PARTITION BY toYYYYMM(at)")]
    {
        let mut road = Road::new(name);
        road.flights(engine, 0);
        source().run(&format!("INSERT INTO {name}.t VALUES (1, 'other day', 1, '2013-07-06 00:00:00')"));
        road.plant(-1, "2013-07-03T23:59:59.999999");
        road.plant(-2, "2013-07-04T12:00:00");
        road.plant(-3, "2013-07-05T00:00:00");
        let outcome = succeed(&road, &manifest(name, mode, ONE_DAY), "run-1");
        assert_eq!((outcome["rows"].as_u64(), outcome["replaced_rows"].as_u64()), (Some(0), Some(1)), "{outcome}");
        assert_eq!(road.target.rows("SELECT id FROM dbo.t"), ["-1", "-3"]);
        assert_settled(&mut road);
        assert_eq!(
            road.target.value("SELECT release_reason FROM dpone.native_transfer_custody"),
            "empty_completion_cleanup"
        );
    }
}

/// The widest layout that the target can digest itself, and one column more.
#[test]
fn a_hundred_columns_pass_and_one_more_is_refused() {
    let mut road = Road::new("wide");
    let (kinds, types) = (
        ["Int64", "Nullable(Float64)", "Nullable(String)", "DateTime64(6, 'UTC')"],
        ["bigint NOT NULL", "float(53) NULL", "nvarchar(max) NULL", "datetime2(6) NOT NULL"],
    );
    let list =
        |count: usize, of: [&str; 4]| (0..count).map(|n| format!("c{n} {}", of[n % 4])).collect::<Vec<_>>().join(", ");
    for (table, count) in [("t", 100), ("u", 101)] {
        source().run(&format!("CREATE TABLE wide.{table} ({}) ENGINE = MergeTree ORDER BY c0", list(count, kinds)));
        let values = (0..count)
            .map(|n| match n % 4 {
                0 => format!("number * {n}"),
                1 => format!("if(number = {n} % 3, NULL, number + 0.25)"),
                2 => format!("if(number = {n} % 5, NULL, repeat('é', {n}))"),
                _ => format!("toDateTime64('2013-07-04 00:00:00', 6, 'UTC') + {n}"),
            })
            .collect::<Vec<_>>()
            .join(", ");
        source().run(&format!("INSERT INTO wide.{table} SELECT {values} FROM numbers(20)"));
        road.target.create(table, &list(count, types));
    }
    let overrides = |count: usize| {
        let floats = (0..count).filter(|n| n % 4 == 1).map(|n| format!("c{n}: {{target_type: {{mssql: float(53)}}}}"));
        format!("columns: {{{}}}", floats.collect::<Vec<_>>().join(", "))
    };
    let text = manifest("wide", VISIBLE, FULL_REFRESH);
    let wide = |count| text.replace("columns: {x: {target_type: {mssql: float(53)}}}", &overrides(count));
    assert_eq!(succeed(&road, &wide(100), "run-1")["rows"].as_u64(), Some(20));
    let select = |casts: &dyn Fn(usize) -> String| (0..100).map(casts).collect::<Vec<_>>().join(", ");
    let source_select = select(&|n| if n % 4 == 3 { format!("toString(c{n})") } else { format!("c{n}") });
    let target_select =
        select(&|n| if n % 4 == 3 { format!("CONVERT(varchar(26), c{n}, 121)") } else { format!("c{n}") });
    assert_eq!(
        road.target.rows(&format!("SELECT {target_select} FROM dbo.t")),
        source().rows(&format!("SELECT {source_select} FROM wide.t"))
    );
    let refused = road.run(&road.manifest(&wide(101).replace("name: t}", "name: u}")), "run-2");
    assert_eq!((refused.code, refused.refusal().as_str()), (Some(1), "mssql_native.target_digest_column_count"));
    assert_settled(&mut road);
}
