//! Windows of a read: which rows they choose, in which partitions, under which calendar, and how many partitions are too many.

use contract::port::source::{Source as _, SourceMode};

use crate::kit::*;

const DAY: i64 = 86_400_000_000;
const HOUR: i64 = DAY / 24;
/// 2013-06-30 00:00 UTC: a window that starts here crosses into another month.
const JUNE_30: i64 = 15_886 * DAY;
const PARTITIONS: [&str; 3] = ["toYYYYMM(at)", "toYYYYMMDD(at)", "toDate(at)"];
const PROFILE_UNSUPPORTED: &str = "mssql_native.source_read_profile_unsupported";
const PROVENANCE_INCOMPLETE: &str = "mssql_native.source_provenance_incomplete";

/// Whether this process runs in time zone `zone`. The engine takes its server time zone from the process, once; when it is
/// another, the test `name` is run in a process of its own first, so that the caller has nothing left to do.
pub(crate) fn in_zone(zone: &str, name: &str) -> bool {
    in_process_with("TZ", zone, name)
}

/// One row an hour from `from` on, whose `k` is its instant in microseconds.
fn hours(table: &str, from: i64, count: usize) -> String {
    format!(
        "INSERT INTO d.{table} SELECT {from} + number * {HOUR} AS micros, fromUnixTimestamp64Micro(micros, 'UTC') \
         FROM numbers({count})"
    )
}

fn create(table: &str, column_type: &str, mode: SourceMode, partition: &str) -> String {
    let engine = if mode == RAW { "ReplacingMergeTree" } else { "MergeTree" };
    format!("CREATE TABLE d.{table} (k Int64, at {column_type}) ENGINE = {engine} ORDER BY k PARTITION BY {partition}")
}

async fn keys(kit: &Kit, table: &str, mode: SourceMode, start: i64, end: i64) -> Vec<i64> {
    let read = read(kit, &windowed(table, mode, "at", start, end)).await.expect("a read");
    let mut keys = read.int64(0);
    keys.sort_unstable();
    assert_eq!(read.eof.rows, keys.len() as u64);
    assert_eq!(read.eof.descriptor.is_some(), mode == RAW);
    keys
}

fn drop(kit: &Kit, table: &str) {
    kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
}

#[tokio::test]
async fn month_day_and_date_partitions_give_the_same_rows_and_bind_only_what_the_window_touches() {
    let kit = kit();
    for (number, (partition, ids)) in PARTITIONS
        .into_iter()
        .zip(["'201306', '201307'", "'20130630', '20130701', '20130702'", "'20130630', '20130701', '20130702'"])
        .enumerate()
    {
        let table = format!("window_{number}");
        let (start, end) = (JUNE_30 + 5 * HOUR + 1, JUNE_30 + 2 * DAY + 3 * HOUR);
        kit.run(&[
            &create(&table, "DateTime64(6, 'UTC')", RAW, partition),
            &hours(&table, JUNE_30 - 40 * DAY, 80 * 24),
        ]);
        let expected: Vec<i64> = (6..51).map(|hour| JUNE_30 + hour * HOUR).collect();
        assert_eq!(keys(&kit, &table, RAW, start, end).await, expected, "{partition}");
        let inventories = kit.logged(&format!("table = '{table}' AND active AND (partition_id IN ({ids})"));
        assert_eq!(inventories.len(), 3, "one inventory an acquisition: {partition}");
        drop(&kit, &table);
    }
}

#[tokio::test]
async fn a_window_without_rows_is_sealed_and_one_without_length_is_refused() {
    let kit = kit();
    for (number, partition) in PARTITIONS.into_iter().enumerate() {
        let table = format!("window_empty_{number}");
        kit.run(&[&create(&table, "DateTime64(6, 'UTC')", RAW, partition)]);
        let none: [i64; 0] = [];
        assert_eq!(keys(&kit, &table, RAW, JUNE_30, JUNE_30 + DAY).await, none, "no rows at all");
        kit.run(&[&hours(&table, JUNE_30, 24)]);
        assert_eq!(keys(&kit, &table, RAW, JUNE_30 + HOUR + 1, JUNE_30 + 2 * HOUR).await, none, "between two rows");
        assert_eq!(keys(&kit, &table, RAW, JUNE_30 - 400 * DAY, JUNE_30).await, none, "no partition");
        for end in [JUNE_30, JUNE_30 - 1] {
            let code = refusal(&kit, &windowed(&table, RAW, "at", JUNE_30, end)).await;
            assert_eq!(code, "rolling_window_bounds_out_of_range");
        }
        drop(&kit, &table);
    }
}

/// A coarser column is compared with a bound between two of its ticks as the instants that they are.
#[tokio::test]
async fn bounds_are_half_open_to_the_microsecond_whatever_the_scale_of_the_column() {
    let kit = kit();
    for (number, (mode, scale, tick)) in [
        (RAW, "DateTime64(6, 'UTC')", 1),
        (SourceMode::QueryVisible, "DateTime64(6, 'UTC')", 1),
        (RAW, "DateTime64(3, 'UTC')", 1000),
        (SourceMode::QueryVisible, "DateTime64(3, 'UTC')", 1000),
        (RAW, "DateTime('UTC')", 1_000_000),
        (SourceMode::QueryVisible, "DateTime('UTC')", 1_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("window_ticks_{number}");
        kit.run(&[
            &create(&table, scale, mode, "toYYYYMMDD(at)"),
            &format!(
                "INSERT INTO d.{table} SELECT {JUNE_30} + (number - 5) * {tick} AS micros, \
                 fromUnixTimestamp64Micro(micros, 'UTC') FROM numbers(10)"
            ),
        ]);
        let at = |ticks: i64| JUNE_30 + ticks * tick;
        let rows = |ticks: std::ops::Range<i64>| ticks.map(at).collect::<Vec<i64>>();
        assert_eq!(keys(&kit, &table, mode, at(0), at(3)).await, rows(0..3), "{scale}");
        assert_eq!(keys(&kit, &table, mode, at(-2), at(0)).await, rows(-2..0), "{scale}");
        assert_eq!(keys(&kit, &table, mode, at(0), at(0) + 1).await, rows(0..1), "{scale}");
        assert_eq!(keys(&kit, &table, mode, at(0) + 1, at(2) + 1).await, rows(1..3), "{scale}");
        assert_eq!(keys(&kit, &table, mode, at(-1) - tick + 1, at(1) - tick + 1).await, rows(-1..1), "{scale}");
        drop(&kit, &table);
    }
}

#[tokio::test]
async fn rows_without_a_window_value_are_in_no_window() {
    let kit = kit();
    for (table, mode) in [("window_null", RAW), ("window_null_plain", SourceMode::QueryVisible)] {
        let create = create(table, "Nullable(DateTime64(6, 'UTC'))", mode, "toYYYYMM(at)");
        kit.run(&[
            &format!("{create} SETTINGS allow_nullable_key = 1"),
            &hours(table, JUNE_30, 48),
            &format!("INSERT INTO d.{table} SELECT -1 - number, NULL FROM numbers(10)"),
        ]);
        let expected: Vec<i64> = (0..24).map(|hour| JUNE_30 + hour * HOUR).collect();
        assert_eq!(keys(&kit, table, mode, JUNE_30, JUNE_30 + DAY).await, expected);
        let everything = read(&kit, &request(table, mode)).await.expect("a read");
        assert_eq!(everything.eof.rows, 58, "a full refresh has them");
        drop(&kit, table);
    }
}

/// The calendar of an implicit column is that of server and session: both are UTC here, the session's because the read says
/// so against a profile in Tokyo.
#[tokio::test]
async fn implicit_calendars_of_a_server_in_utc_are_proven() {
    let kit = kit();
    let mut number = 0;
    for column_type in ["DateTime", "DateTime64(6)", "DateTime64(0)"] {
        for partition in PARTITIONS {
            number += 1;
            let table = format!("window_implicit_{number}");
            kit.run(&[&create(&table, column_type, RAW, partition), &hours(&table, JUNE_30 - DAY, 96)]);
            let expected: Vec<i64> = (0..30).map(|hour| JUNE_30 + hour * HOUR).collect();
            let found = keys(&kit, &table, RAW, JUNE_30, JUNE_30 + 30 * HOUR).await;
            assert_eq!(found, expected, "{column_type} {partition}");
            drop(&kit, &table);
        }
    }
}

/// A server in Berlin, a window over the day with 25 hours (2024-10-27) and over a midnight that is not one in UTC: columns
/// with a zone of their own give the same rows; an implicit calendar is refused where partitions depend on it.
#[tokio::test]
async fn a_server_in_another_zone_gives_the_same_rows_or_refuses() {
    if !in_zone("Europe/Berlin", "windows::a_server_in_another_zone_gives_the_same_rows_or_refuses") {
        return;
    }
    let kit = kit();
    assert_eq!(kit.value("SELECT serverTimezone()"), "Europe/Berlin");
    let sunday = 20_023 * DAY;
    assert_eq!(kit.value(&format!("SELECT fromUnixTimestamp64Micro({sunday}, 'UTC')")), "2024-10-27 00:00:00.000000");
    let mut number = 0;
    for (column_type, mode, explicit) in [
        ("DateTime64(6, 'UTC')", RAW, true),
        ("DateTime('UTC')", RAW, true),
        ("DateTime64(6)", RAW, false),
        ("DateTime", RAW, false),
        ("DateTime64(6)", SourceMode::QueryVisible, false),
        ("DateTime", SourceMode::QueryVisible, false),
    ] {
        for partition in PARTITIONS {
            number += 1;
            let table = format!("window_zone_{number}");
            kit.run(&[&create(&table, column_type, mode, partition), &hours(&table, sunday - DAY, 120)]);
            if mode == RAW && !explicit {
                let window = windowed(&table, mode, "at", sunday, sunday + DAY);
                assert_eq!(refusal(&kit, &window).await, PROFILE_UNSUPPORTED, "{column_type} {partition}");
                let everything = read(&kit, &request(&table, mode)).await.expect("no window, no calendar");
                assert_eq!(everything.int64(0), everything.int64(1));
            } else {
                for (start, hours) in [(sunday, 24), (sunday - 2 * HOUR, 2), (sunday + 23 * HOUR, 3)] {
                    let expected: Vec<i64> = (0..hours).map(|hour| start + hour * HOUR).collect();
                    let found = keys(&kit, &table, mode, start, start + hours * HOUR).await;
                    assert_eq!(found, expected, "{column_type} {partition}");
                }
            }
            drop(&kit, &table);
        }
    }
}

/// Ten years of daily partitions (3650) are read; more than 8192 are refused, by the window's own count before anything is
/// read and by the inventory of a read without a window.
#[tokio::test]
async fn ten_years_of_daily_partitions_are_read_and_more_than_8192_are_refused() {
    let kit = kit();
    let first = 7305 * DAY; // 1990-01-01
    kit.run(&[
        &create("window_days", "DateTime64(6, 'UTC')", RAW, "toYYYYMMDD(at)"),
        "SYSTEM STOP MERGES d.window_days",
        &format!(
            "INSERT INTO d.window_days SELECT {first} + number * {DAY} AS micros, fromUnixTimestamp64Micro(micros, 'UTC') \
             FROM numbers(8193) SETTINGS max_partitions_per_insert_block = 0"
        ),
    ]);
    let parts = "SELECT count() FROM system.parts WHERE table = 'window_days' AND active";
    assert_eq!(kit.value(parts), "8193");
    let days = |days: i64| windowed("window_days", RAW, "at", first, first + days * DAY);
    let years = read(&kit, &days(3650)).await.expect("ten years");
    assert_eq!(years.eof.rows, 3650);
    kit.source().await.admit(&days(8192)).await.expect("as many partitions as there may be");
    assert_eq!(refusal(&kit, &days(8193)).await, PROVENANCE_INCOMPLETE);
    assert_eq!(refusal(&kit, &request("window_days", RAW)).await, PROFILE_UNSUPPORTED);
    assert_eq!(kit.data_queries("window_days").len(), 1, "no refusal has read a row");
    drop(&kit, "window_days");
}

/// A table that was written in Tokyo's calendar and is attached by a server in UTC: the server itself no longer finds the
/// rows that June's last nine hours in UTC put into July. No zone of the column's own, no proof: a raw read refuses,
/// whether the server would lose the rows or not; a column in UTC was never in doubt.
#[tokio::test]
async fn partitions_of_another_calendar_are_refused_before_the_server_can_lose_their_rows() {
    let kit = kit();
    let night = (JUNE_30 + 15 * HOUR, JUNE_30 + 20 * HOUR);
    for (number, partition) in PARTITIONS.into_iter().enumerate() {
        for (column_type, implicit) in [("DateTime", true), ("DateTime64(6)", true), ("DateTime64(6, 'UTC')", false)] {
            let table = format!("window_calendar_{number}_{}", column_type.len());
            kit.run(&[
                "SET session_timezone = 'Asia/Tokyo'",
                &create(&table, column_type, RAW, partition),
                &hours(&table, JUNE_30 - DAY, 72),
                "SET session_timezone = 'UTC'",
            ]);
            for attached_again in [false, true] {
                if attached_again {
                    kit.run(&[&format!("DETACH TABLE d.{table} SYNC"), &format!("ATTACH TABLE d.{table}")]);
                }
                if implicit {
                    let window = windowed(&table, RAW, "at", night.0, night.1);
                    assert_eq!(refusal(&kit, &window).await, PROFILE_UNSUPPORTED, "{column_type} {partition}");
                } else {
                    let expected: Vec<i64> = (15..20).map(|hour| JUNE_30 + hour * HOUR).collect();
                    assert_eq!(keys(&kit, &table, RAW, night.0, night.1).await, expected, "{partition}");
                }
            }
            let found = kit.value(&format!(
                "SELECT count() FROM d.{table} WHERE at >= toDateTime64('2013-06-30 15:00:00', 6, 'UTC') AND \
                 at < toDateTime64('2013-06-30 20:00:00', 6, 'UTC')"
            ));
            assert_eq!(
                found,
                if implicit { "0" } else { "5" },
                "what the server itself finds: {column_type} {partition}"
            );
            drop(&kit, &table);
        }
    }
}
