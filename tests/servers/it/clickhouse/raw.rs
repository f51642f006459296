//! The native protocol byte by byte, at the revisions that the server speaks.

use proptest::prelude::*;

use super::wire::{Client, Packet, empty_block, hello, query, text, varint};
use super::{PASSWORD, USER, fixture};

const REVISIONS: [u64; 3] = [54_448, 54_453, 54_500];
const IMPORTANT: u64 = 1;

fn exception_code(packets: &[Packet]) -> i32 {
    match packets.last() {
        Some(Packet::Exception { code, name, message, stack, nested }) => {
            assert_eq!((name.as_str(), stack.as_str(), *nested), ("DB::Exception", "", 0));
            assert!(message.starts_with("DB::Exception: "), "{message}");
            *code
        }
        other => panic!("an exception, not {other:?}"),
    }
}

/// The values of all blocks of an answer that ends well.
fn values(packets: &[Packet]) -> Vec<u8> {
    assert_eq!(packets.last(), Some(&Packet::EndOfStream), "{packets:?}");
    let data = packets.iter().filter_map(|packet| match packet {
        Packet::Data { values, .. } => Some(values.as_slice()),
        _ => None,
    });
    data.collect::<Vec<_>>().concat()
}

#[test]
fn an_answer_has_the_packets_of_a_server() {
    for revision in REVISIONS {
        let mut client = Client::connect(revision);
        assert_eq!(client.server_revision, 54_453);
        let packets = client.ask(&[], "SELECT number AS n, toString(number) AS s FROM numbers(3)");
        let columns = vec![("n".to_owned(), "UInt64".to_owned()), ("s".to_owned(), "String".to_owned())];
        let mut bytes: Vec<u8> = (0_u64..3).flat_map(u64::to_le_bytes).collect();
        bytes.extend(b"0|1|2|");
        assert_eq!(
            packets,
            [
                Packet::Data { columns: columns.clone(), rows: 0, values: Vec::new() },
                Packet::Data { columns, rows: 3, values: bytes },
                Packet::Progress { read_rows: 3, written_rows: 0 },
                Packet::ProfileInfo { rows: 3, blocks: 1 },
                Packet::Data { columns: Vec::new(), rows: 0, values: Vec::new() },
                Packet::EndOfStream,
            ]
        );
        client.send(&varint(4));
        assert_eq!(client.packet(), Packet::Pong);
    }
}

#[test]
fn old_clients_and_strangers_are_refused() {
    for (revision, user, password, code) in [
        (54_447, USER, PASSWORD, 48),
        (54_448, USER, "wrong", 516),
        (54_448, "nobody", PASSWORD, 516),
        (54_448, " INTERSERVER SECRET ", "", 516),
    ] {
        let mut client = Client::open(revision);
        client.send(&hello(revision, "", user, password));
        assert_eq!(exception_code(&[client.packet()]), code);
        assert_eq!(client.rest(), b"");
    }
    let mut client = Client::connect(54_448);
    client.send(&query(54_448, "", &[], "secret", "SELECT 1"));
    assert_eq!(exception_code(&client.answer()), 516);
    assert_eq!(values(&client.ask(&[], "SELECT 1")), [1]);
}

#[test]
fn settings_of_a_query_end_with_it() {
    let mut client = Client::connect(54_448);
    values(&client.ask(&[], "SET max_block_size = 4321"));
    let ask = "SELECT toString(getSetting('max_block_size')), toString(getSetting('limit'))";
    for failing in
        ["SELECT * FROM nowhere", "SELECT throwIf(number = 3) FROM numbers(100)", "SELEC", "DROP TABLE nowhere"]
    {
        exception_code(&client.ask(&[("max_block_size", IMPORTANT, "77"), ("limit", 0, "5")], failing));
        assert_eq!(values(&client.ask(&[], ask)), b"4321|0|");
    }
    assert_eq!(values(&client.ask(&[("max_block_size", 0, "77"), ("max_block_size", 0, "78")], ask)), b"78|0|");
    let changed =
        "SELECT name FROM system.settings WHERE changed AND name IN ('max_block_size', 'limit', 'max_threads')";
    values(&client.ask(&[("limit", 0, "1"), ("max_threads", 0, "2")], "SELECT 1"));
    assert_eq!(values(&client.ask(&[], changed)), b"max_block_size|");
    // A limit of the session that is also sent with the query.
    values(&client.ask(&[], "SET max_rows_to_read = 10, read_overflow_mode = 'break'"));
    let rows = "SELECT count() FROM (SELECT * FROM numbers(1000))";
    assert_eq!(exception_code(&client.ask(&[("read_overflow_mode", IMPORTANT, "throw")], rows)), 158);
    let lifted = client.ask(&[("max_rows_to_read", IMPORTANT, "0")], rows);
    assert_eq!(values(&lifted), 1000_u64.to_le_bytes());
    let both = "SELECT toString(getSetting('max_rows_to_read')), toString(getSetting('read_overflow_mode'))";
    assert_eq!(values(&client.ask(&[], both)), b"10|break|");
}

#[test]
fn an_unknown_setting_counts_only_when_it_is_important() {
    let mut client = Client::connect(54_448);
    let packets = client.ask(&[("no_such_setting", IMPORTANT, "1")], "SELECT 1");
    assert_eq!(exception_code(&packets), 115);
    assert_eq!(packets.len(), 1);
    assert_eq!(values(&client.ask(&[("no_such_setting", 0, "1")], "SELECT 1")), [1]);
    assert_eq!(exception_code(&client.ask(&[("max_threads", IMPORTANT, "many")], "SELECT 1")), 27);
    assert_eq!(values(&client.ask(&[], "SELECT 1")), [1]);
}

#[test]
fn exceptions_come_before_and_amid_rows() {
    let mut client = Client::connect(54_448);
    let before = client.ask(&[], "SELECT * FROM nowhere");
    assert_eq!((exception_code(&before), before.len()), (60, 1));
    let amid = client.ask(&[], "SELECT throwIf(number = 1000000) FROM numbers(2000000)");
    assert_eq!(exception_code(&amid), 395);
    let rows = |packet: &Packet| match packet {
        Packet::Data { rows, .. } => *rows,
        _ => 0,
    };
    assert!(amid.iter().map(rows).sum::<u64>() > 0, "rows came first");
    assert_eq!(exception_code(&client.ask(&[], "SELECT 1; SELECT 2")), 62);
    assert_eq!(exception_code(&client.ask(&[], "SELECT 1 INTO OUTFILE '/nowhere'")), 48);
    assert_eq!(values(&client.ask(&[], "SELECT 7;")), [7]);
}

#[test]
fn cancel_ends_what_runs_and_the_connection_goes_on() {
    let mut client = Client::connect(54_448);
    // One that streams, one that would never answer, one that is no SELECT.
    for sql in [
        "SELECT number FROM system.numbers",
        "SELECT count() FROM system.numbers WHERE NOT ignore(sipHash64(number))",
        "CREATE TABLE IF NOT EXISTS endless ENGINE = Null AS SELECT * FROM system.numbers",
    ] {
        client.send(&query(54_448, "", &[("max_threads", 0, "2")], "", sql));
        client.send(&varint(3));
        let packets = client.answer();
        assert_eq!(packets.last(), Some(&Packet::EndOfStream), "{sql}");
        assert_eq!(values(&client.ask(&[], "SELECT 8")), [8]);
    }
    // With nothing to cancel it says nothing.
    client.send(&varint(3));
    assert_eq!(values(&client.ask(&[], "SELECT 9")), [9]);
}

#[test]
fn a_client_that_leaves_ends_its_query() {
    let mut leaving = Client::connect(54_448);
    let mark = "SELECT count() FROM system.numbers WHERE NOT ignore(sipHash64(number), 'leaving')";
    leaving.send(&query(54_448, "", &[], "", mark));
    let mut watcher = Client::connect(54_448);
    let running = "SELECT count() FROM system.processes WHERE query LIKE '%leaving%' AND query NOT LIKE '%processes%'";
    let mut until = |count: u64| while values(&watcher.ask(&[], running)) != count.to_le_bytes() {};
    until(1);
    drop(leaving);
    until(0);
}

#[test]
fn sparse_and_nullable_columns_come_plain() {
    let mut client = Client::connect(54_448);
    for sql in [
        "DROP TABLE IF EXISTS sparse",
        "CREATE TABLE sparse (id UInt64, a UInt64, n Nullable(Int64)) ENGINE = MergeTree ORDER BY id \
         SETTINGS ratio_of_defaults_for_sparse_serialization = 0.9",
        "INSERT INTO sparse SELECT number, if(number % 100 = 0, number, 0), if(number % 100 = 0, number, NULL) FROM numbers(1000)",
    ] {
        values(&client.ask(&[], sql));
    }
    let kinds = "SELECT serialization_kind FROM system.parts_columns \
                 WHERE table = 'sparse' AND column = 'a' AND active";
    assert_eq!(values(&client.ask(&[], kinds)), b"Sparse|");
    let kept = |row: u64| if row.is_multiple_of(100) { row } else { 0 };
    let dense: Vec<u8> = (0..1000).flat_map(|row| kept(row).to_le_bytes()).collect();
    // Not assert_eq: a failure would print thousands of zeros.
    assert!(values(&client.ask(&[], "SELECT a FROM sparse ORDER BY id")) == dense, "a sparse column comes dense");
    let nullable = values(&client.ask(&[], "SELECT n FROM sparse ORDER BY id"));
    let (nulls, numbers) = nullable.split_at(1000);
    for row in 0..1000 {
        let is_null = row % 100 != 0;
        assert_eq!(nulls[row], u8::from(is_null), "row {row}");
        assert!(is_null || numbers[8 * row..8 * row + 8] == (row as u64).to_le_bytes(), "row {row}");
    }
}

#[test]
fn an_insert_may_be_cancelled_and_is_then_not_there() {
    let mut client = Client::connect(54_448);
    values(&client.ask(&[], "DROP TABLE IF EXISTS rows"));
    values(&client.ask(&[], "CREATE TABLE rows (a UInt64) ENGINE = MergeTree ORDER BY a"));
    let block = [varint(2), text(""), vec![0], varint(1), varint(1), text("a"), text("UInt64"), vec![5; 8]].concat();
    for (ends, count) in [(varint(3), 0_u64), (empty_block(), 1)] {
        client.send(&query(54_448, "", &[], "", "INSERT INTO rows FORMAT Native"));
        let sample = Packet::Data { columns: vec![("a".into(), "UInt64".into())], rows: 0, values: Vec::new() };
        assert_eq!(client.packet(), sample);
        client.send(&block);
        client.send(&ends);
        assert_eq!(client.answer().last(), Some(&Packet::EndOfStream));
        assert_eq!(values(&client.ask(&[], "SELECT count() FROM rows")), count.to_le_bytes());
    }
    let misfit = [varint(2), text(""), vec![0], varint(1), varint(1), text("z"), text("UInt64"), vec![5; 8]].concat();
    client.send(&query(54_448, "", &[], "", "INSERT INTO rows VALUES"));
    client.packet();
    client.send(&misfit);
    client.send(&empty_block());
    assert_eq!(exception_code(&client.answer()), 10);
    assert_eq!(values(&client.ask(&[], "SELECT count() FROM rows")), 1_u64.to_le_bytes());
}

#[test]
fn queries_are_logged_without_passwords() {
    let mut client = Client::connect(54_448);
    client.send(&query(54_448, "logged-id", &[("max_threads", IMPORTANT, "2")], "", "SELECT 'logged'"));
    values(&client.answer());
    let log = std::fs::read_to_string(&fixture().query_log).unwrap();
    let entry = log.lines().find(|line| line.contains("logged-id")).unwrap();
    let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
    assert_eq!(entry["query"], "SELECT 'logged'");
    assert_eq!(entry["user"], USER);
    assert_eq!(entry["settings"], serde_json::json!([{"name": "max_threads", "value": "2", "important": true}]));
    assert!(!log.contains(PASSWORD));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_end_only_their_connection(bytes in proptest::collection::vec(any::<u8>(), 0..300), greeted: bool) {
        let mut client = if greeted { Client::connect(54_448) } else { Client::open(54_448) };
        client.send(&bytes);
        client.hang_up();
        client.rest();
        assert_eq!(values(&Client::connect(54_448).ask(&[], "SELECT 1")), [1]);
    }
}
