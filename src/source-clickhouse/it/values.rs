//! Every admitted type, exact, from the real engine; row versions, masks and patches as a query sees them.

use contract::block::{Column, StringColumn, Values};
use contract::canon::decode_object;
use contract::port::source::SourceMode;

use crate::kit::*;

const ALL_TYPES: &str = "i8 Int8, i16 Int16, i32 Int32, i64 Int64, u8 UInt8, u16 UInt16, u32 UInt32, u64 UInt64, \
    f32 Float32, f64 Float64, s String, id UUID, dt Date, d32 Date32, b Bool, p9 Decimal(9, 2), p18 Decimal(18, 9), \
    p38 Decimal(38, 10), t DateTime, tu DateTime('UTC'), t0 DateTime64(0), t6 DateTime64(6, 'UTC'), \
    ns Nullable(String), nt Nullable(DateTime64(3, 'UTC')), nd Nullable(Decimal(38, 38))";

const LOW: &str = "(-128, -32768, -2147483648, -9223372036854775808, 0, 0, 0, 0, -0.0, 5e-324, 'a\\0b', \
    '00010203-0405-0607-0809-0a0b0c0d0e0f', '1970-01-01', '1900-01-01', false, -9999999.99, -999999999.999999999, \
    '-9999999999999999999999999999.9999999999', 0, 0, '1900-01-01 00:00:00', '1900-01-01 00:00:00.000001', NULL, NULL, NULL)";

const HIGH: &str = "(127, 32767, 2147483647, 9223372036854775807, 255, 65535, 4294967295, 18446744073709551615, \
    3.4028235e38, 1.7976931348623157e308, unhex('FFEDA080'), 'ffffffff-ffff-ffff-ffff-ffffffffffff', '2149-06-06', \
    '2299-12-31', true, 9999999.99, 999999999.999999999, '9999999999999999999999999999.9999999999', 4294967295, \
    4294967295, '2299-12-31 23:59:59', '2262-04-12 00:00:00.000000', '', '1969-12-31 23:59:59.999', \
    '-0.99999999999999999999999999999999999999')";

fn texts(values: &[&[u8]]) -> Values {
    let mut column = StringColumn::default();
    values.iter().for_each(|value| column.push(value));
    Values::String(column)
}

fn expected() -> Vec<Column> {
    let plain = |values| Column { values, nulls: None };
    let nullable = |values| Column { values, nulls: Some(vec![1, 0]) };
    let p38 = 99_999_999_999_999_999_999_999_999_999_999_999_999;
    vec![
        plain(Values::Int8(vec![i8::MIN, i8::MAX])),
        plain(Values::Int16(vec![i16::MIN, i16::MAX])),
        plain(Values::Int32(vec![i32::MIN, i32::MAX])),
        plain(Values::Int64(vec![i64::MIN, i64::MAX])),
        plain(Values::UInt8(vec![0, u8::MAX])),
        plain(Values::UInt16(vec![0, u16::MAX])),
        plain(Values::UInt32(vec![0, u32::MAX])),
        plain(Values::UInt64(vec![0, u64::MAX])),
        plain(Values::Float32(vec![-0.0, f32::MAX])),
        plain(Values::Float64(vec![5e-324, f64::MAX])),
        plain(texts(&[b"a\0b", &[0xFF, 0xED, 0xA0, 0x80]])),
        plain(Values::Uuid(vec![[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [0xff; 16]])),
        plain(Values::Date(vec![0, u16::MAX])),
        plain(Values::Date32(vec![-25_567, 120_529])),
        plain(Values::Bool(vec![0, 1])),
        plain(Values::Decimal(vec![-999_999_999, 999_999_999])),
        plain(Values::Decimal(vec![-999_999_999_999_999_999, 999_999_999_999_999_999])),
        plain(Values::Decimal(vec![-p38, p38])),
        plain(Values::Int64(vec![0, 4_294_967_295_000_000])),
        plain(Values::Int64(vec![0, 4_294_967_295_000_000])),
        plain(Values::Int64(vec![-2_208_988_800_000_000, 10_413_791_999_000_000])),
        plain(Values::Int64(vec![-2_208_988_799_999_999, 9_223_372_800_000_000])),
        nullable(texts(&[b"", b""])),
        nullable(Values::Int64(vec![0, -1000])),
        nullable(Values::Decimal(vec![0, -p38])),
    ]
}

#[tokio::test]
async fn every_admitted_type_is_exact_in_both_modes() {
    let kit = kit();
    for (table, engine, mode) in
        [("types_plain", "MergeTree", SourceMode::QueryVisible), ("types_raw", "ReplacingMergeTree", RAW)]
    {
        kit.run(&[
            &format!("CREATE TABLE d.{table} ({ALL_TYPES}) ENGINE = {engine} ORDER BY i8"),
            &format!("INSERT INTO d.{table} VALUES {LOW}, {HIGH}"),
        ]);
        let read = read(&kit, &request(table, mode)).await.expect("a read");
        assert_eq!(read.eof.rows, 2);
        assert_eq!(read.blocks.len(), 1);
        for (column, (found, expected)) in read.blocks[0].columns.iter().zip(expected()).enumerate() {
            // Values under a NULL have no meaning.
            let values_matter = expected.nulls.is_none();
            assert_eq!(found.nulls, expected.nulls, "{table} column {column}");
            assert!(!values_matter || found.values == expected.values, "{table} column {column}: {found:?}");
            assert!(
                values_matter || last(&found.values) == last(&expected.values),
                "{table} column {column}: {found:?}"
            );
        }
        let Values::Float32(floats) = &read.blocks[0].columns[8].values else { panic!("Float32") };
        assert!(floats[0].is_sign_negative());
    }
}

/// The second and last value as a column of its own.
fn last(values: &Values) -> Values {
    match values {
        Values::String(column) => texts(&[column.get(1)]),
        Values::Int64(values) => Values::Int64(values[1..].to_vec()),
        Values::Decimal(values) => Values::Decimal(values[1..].to_vec()),
        other => panic!("no nullable test column holds {other:?}"),
    }
}

#[tokio::test]
async fn versions_deleted_markers_and_duplicates_all_arrive() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.versions (k Int64, v Int64, is_deleted UInt8) ENGINE = ReplacingMergeTree(v, is_deleted) ORDER BY k",
        "SYSTEM STOP MERGES d.versions",
        "INSERT INTO d.versions SELECT 1, 1, 0",
        "INSERT INTO d.versions SELECT 1, 2, 0",
        "INSERT INTO d.versions SELECT 1, 3, 1",
        "INSERT INTO d.versions SELECT 1, 3, 1",
    ]);
    assert_eq!(kit.value("SELECT count() FROM d.versions FINAL"), "0");
    let read = read(&kit, &request("versions", RAW)).await.expect("a read");
    let mut versions = read.int64(1);
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 3]);
    let descriptor = decode_object(&read.eof.descriptor.expect("a descriptor")).expect("JSON");
    assert_eq!(descriptor.get("rows").and_then(contract::canon::Json::as_u64), Some(4));
    assert_eq!(descriptor.get("endpoint_authority_agreement").and_then(contract::canon::Json::as_bool), Some(true));
    let queries = kit.logged("FROM `d`.`versions`");
    assert_eq!(queries.iter().filter(|line| !line.contains("EXPLAIN ")).count(), 1, "one data query: {queries:?}");
}

#[tokio::test]
async fn masks_and_patches_are_applied_as_a_query_sees_them() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.masked (k Int64, t String) ENGINE = ReplacingMergeTree ORDER BY k \
         SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1",
        "INSERT INTO d.masked SELECT number, 'old' FROM numbers(1000)",
        "DELETE FROM d.masked WHERE k % 10 = 0",
        "SYSTEM STOP MERGES d.masked",
        "SET enable_lightweight_update = 1",
        "UPDATE d.masked SET t = 'new' WHERE k = 7",
    ]);
    let read = read(&kit, &request("masked", RAW)).await.expect("a read");
    let keys = read.int64(0);
    assert_eq!(keys.len(), 900);
    assert!(keys.iter().all(|key| key % 10 != 0));
    let at = keys.iter().position(|key| *key == 7).expect("row 7");
    let Values::String(texts) = &read.blocks[0].columns[1].values else { panic!("String") };
    assert_eq!(texts.get(at), b"new");
    assert_eq!((0..900).filter(|row| texts.get(*row) == b"old").count(), 899);
}

#[tokio::test]
async fn b2_sparse_columns_arrive_dense() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.sparse (k Int64, v Int64, s String, n Nullable(Int64)) ENGINE = ReplacingMergeTree ORDER BY k \
         SETTINGS ratio_of_defaults_for_sparse_serialization = 0.9",
        "INSERT INTO d.sparse SELECT number, if(number % 100 = 0, number, 0), if(number % 100 = 0, 'x', ''), \
         if(number % 100 = 0, number, NULL) FROM numbers(100000)",
    ]);
    let sparse =
        "SELECT count() > 0 FROM system.parts_columns WHERE table = 'sparse' AND serialization_kind = 'Sparse'";
    assert_eq!(kit.value(sparse), "1");
    let read = read(&kit, &request("sparse", RAW)).await.expect("a read");
    let expected: Vec<i64> = read.int64(0).iter().map(|key| if key % 100 == 0 { *key } else { 0 }).collect();
    assert_eq!(expected.len(), 100_000);
    assert_eq!(read.int64(1), expected);
}

#[tokio::test]
async fn a_window_is_half_open_and_binds_its_partitions() {
    let kit = kit();
    let day = 86_400_000_000_i64;
    let start = 15_887 * day; // 2013-07-01
    kit.run(&[
        "CREATE TABLE d.windowed (k Int64, at DateTime64(6, 'UTC')) ENGINE = ReplacingMergeTree ORDER BY k PARTITION BY toYYYYMM(at)",
        "INSERT INTO d.windowed SELECT number, toDateTime64('2013-06-30 00:00:00.000000', 6, 'UTC') + toIntervalHour(number) \
         FROM numbers(100)",
        "INSERT INTO d.windowed VALUES (1000, '2013-07-01 23:59:59.999999'), (1001, '2013-07-02 00:00:00.000000')",
    ]);
    for mode in [RAW] {
        let read = read(&kit, &windowed("windowed", mode, "at", start, start + day)).await.expect("a read");
        let mut keys = read.int64(0);
        keys.sort_unstable();
        assert_eq!(keys, (24..48).chain([1000]).collect::<Vec<i64>>());
        assert!(read.admission.query_shape.contains("%(start)s"));
    }
    let empty = read(&kit, &windowed("windowed", RAW, "at", 0, day)).await.expect("an empty read");
    assert!(empty.eof.rows == 0 && empty.eof.descriptor.is_some());
}

#[tokio::test]
async fn strings_larger_than_frames_and_many_blocks_are_exact() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.long (k Int64, s String) ENGINE = MergeTree ORDER BY k",
        "INSERT INTO d.long SELECT number, repeat(toString(number % 10), number * 6000) FROM numbers(150)",
    ]);
    let read = read(&kit, &request("long", SourceMode::QueryVisible)).await.expect("a read");
    assert_eq!(read.eof.rows, 150);
    for block in &read.blocks {
        let Values::Int64(keys) = &block.columns[0].values else { panic!("Int64") };
        let Values::String(texts) = &block.columns[1].values else { panic!("String") };
        for (row, key) in keys.iter().enumerate() {
            let digit = b'0' + (key % 10) as u8;
            assert!(texts.get(row).len() as i64 == key * 6000 && texts.get(row).iter().all(|byte| *byte == digit));
        }
    }
}
