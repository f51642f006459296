//! Whole connections over a real socket, against the scripted engine.

use std::net::Shutdown;
use std::sync::atomic::Ordering;

use super::super::super::value::Value;
use super::scripted::{Client, Event, PATIENCE, ScriptedServer};
use super::{hex, utf16};

const DONE_ERROR: u16 = 0x02;
const DONE_COUNT: u16 = 0x10;
const DONE_ATTENTION: u16 = 0x20;

/// COLMETADATA of one bigint column, and one of its rows.
const BULK_COLUMNS: &str = "81 0100 00000000 0900 26 08 01 6100";
const BULK_ROW: &str = "D1 08 0500000000000000";
const BULK_DONE: &str = "FD 0000 0000 0000000000000000";

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn a_login_is_answered_with_everything_that_clients_wait_for() {
    let server = ScriptedServer::start();
    let answer = Client::connect(server.addr).log_in("right");
    let packet_size = [hex("E3 1300 04 04"), utf16("4096"), hex("04"), utf16("4096")].concat();
    for (what, bytes) in [
        ("database", [hex("E3 1300 01 02"), utf16("db"), hex("06"), utf16("master")].concat()),
        ("collation", hex("E3 0800 07 05 0904D00034 00")),
        ("language", [hex("E3 1700 02 0A"), utf16("us_english"), hex("00")].concat()),
        ("packet size, also when it is the default", packet_size),
        ("version 7.4", hex("AD 3200 01 74000004 14")),
    ] {
        assert!(contains(&answer, &bytes), "{what}: {answer:02X?}");
    }
    assert!(!contains(&answer, &hex("AE FF")), "no feature was asked for");
}

#[test]
fn a_wrong_password_is_error_18456_and_the_end() {
    let server = ScriptedServer::start();
    let mut client = Client::connect(server.addr);
    let answer = client.log_in("wrong");
    assert_eq!(answer[0], 0xAA);
    assert_eq!(i32::from_le_bytes([answer[3], answer[4], answer[5], answer[6]]), 18456);
    client.expect_end();
}

#[test]
fn a_running_statement_is_cancelled_by_an_attention_and_the_session_goes_on() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    for _ in 0..3 {
        client.batch("wait");
        assert_eq!(server.event(), Event::Waiting);
        client.attention();
        client.expect_done(DONE_ATTENTION);
        client.batch("rows 2");
        client.expect_done(DONE_COUNT);
    }
}

#[test]
fn an_attention_while_nothing_runs_is_acknowledged_and_cancels_nothing() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.attention();
    client.expect_done(DONE_ATTENTION);
    client.batch("rows 2");
    client.expect_done(DONE_COUNT);
}

/// Whatever the interleaving, an attention is acknowledged exactly once, and the next request is not cancelled.
#[test]
fn an_attention_that_races_with_the_end_of_a_statement_hits_nothing_else() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    for _ in 0..200 {
        client.batch("nothing");
        client.attention();
        let answer = client.answer();
        if answer[answer.len() - 12] & 0x20 == 0 {
            client.expect_done(DONE_ATTENTION);
        }
        client.batch("rows 1");
        client.expect_done(DONE_COUNT);
    }
}

#[test]
fn an_attention_stops_a_large_result() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.batch("rows 1000000000");
    client.attention();
    client.expect_done(DONE_ATTENTION);
    assert!(server.script.rows_produced.load(Ordering::SeqCst) < 1_000_000_000);
    client.batch("rows 1");
    client.expect_done(DONE_COUNT);
}

#[test]
fn a_client_that_dies_ends_its_waiting_statement_and_session() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.batch("wait");
    assert_eq!(server.event(), Event::Waiting);
    drop(client);
    assert_eq!(server.event(), Event::Dropped);
}

/// The engine is blocked by the bounded queue, not by memory: it never gets to the end of a result that nobody reads.
#[test]
fn a_client_that_reads_nothing_blocks_its_statement_until_it_dies() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.batch("rows 1000000000");
    let mut seen = 0;
    loop {
        // The count stops growing when socket buffers and queue are full.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = server.script.rows_produced.load(Ordering::SeqCst);
        if now > 0 && now == seen {
            break;
        }
        seen = now;
    }
    assert!(seen < 100_000, "{seen} rows of 2 kB are not in any buffer");
    drop(client);
    assert_eq!(server.event(), Event::Dropped);
}

#[test]
fn an_error_leaves_the_session_and_severity_20_ends_it() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.batch("fail");
    client.expect_done(DONE_ERROR);
    client.batch("die");
    client.expect_done(DONE_ERROR);
    client.expect_end();
    assert_eq!(server.event(), Event::Dropped);
}

#[test]
fn the_reset_bit_resets_before_the_request_runs() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.packet(0x01, 0x09, &[hex("16000000 12000000 0200 0000000000000000 01000000"), utf16("rows 1")].concat());
    let answer = client.expect_done(DONE_COUNT);
    assert_eq!(answer[..6], hex("E3 0300 12 0000"));
    assert_eq!(server.event(), Event::Reset);
}

#[test]
fn calls_and_transaction_requests_are_answered_in_their_form() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    let headers = hex("16000000 12000000 0200 0000000000000000 01000000");
    client.packet(0x03, 1, &[headers.clone(), hex("0100 7000 0000 00 00 38 01000000")].concat());
    assert_eq!(client.answer(), hex("79 01000000 FE 0000 E000 0000000000000000"));
    client.packet(0x03, 1, &[headers.clone(), hex("FFFF 6300 0000")].concat());
    client.expect_done(DONE_ERROR);
    client.packet(0x0E, 1, &[headers.clone(), hex("0500 00 00")].concat());
    assert_eq!(client.answer(), hex("E3 0B00 08 08 0700000000000000 00 FD 0000 FD00 0000000000000000"));
    client.packet(0x0E, 1, &[headers, hex("0000 0000")].concat());
    client.expect_done(DONE_ERROR);
}

#[test]
fn a_message_of_many_packets_is_one_request() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    let message = [hex("16000000 12000000 0200 0000000000000000 01000000"), utf16("rows 3")].concat();
    for (index, byte) in message.iter().enumerate() {
        client.packet(0x01, u8::from(index + 1 == message.len()), &[*byte]);
    }
    client.expect_done(DONE_COUNT);
}

#[test]
fn a_message_that_is_withdrawn_does_nothing_and_is_answered() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    let message = [hex("16000000 12000000 0200 0000000000000000 01000000"), utf16("rows 3")].concat();
    client.packet(0x01, 0, &message);
    client.packet(0x01, 0x03, &[]);
    client.expect_done(0);
    client.packet(0x01, 0, &message);
    client.attention();
    client.expect_done(DONE_ATTENTION);
    assert_eq!(server.script.rows_produced.load(Ordering::SeqCst), 0);
    client.batch("rows 1");
    client.expect_done(DONE_COUNT);
}

#[test]
fn bytes_that_are_not_tds_end_the_connection() {
    let headers_cut = "16000000 12000000";
    for (kind, payload) in [(0x01, headers_cut), (0x03, headers_cut), (0x0E, headers_cut), (0x10, ""), (0x55, "")] {
        let server = ScriptedServer::start();
        let mut client = server.client();
        client.packet(kind, 1, &hex(payload));
        client.expect_end();
        assert_eq!(server.event(), Event::Dropped, "{kind:#x}");
    }
}

#[test]
fn bulk_rows_reach_the_engine_while_the_message_is_under_way() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.packet(0x07, 0, &hex(&format!("{BULK_COLUMNS} {BULK_ROW}")));
    assert_eq!(server.event(), Event::Row(vec![Value::BigInt(5)]));
    client.packet(0x07, 1, &hex(BULK_DONE));
    let answer = client.expect_done(DONE_COUNT);
    assert_eq!(answer, hex("FD 1000 C300 0100000000000000"));
    assert_eq!(server.event(), Event::BulkFinished);
}

#[test]
fn a_bulk_load_is_undone_by_attention_ignore_bit_cut_message_and_death() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    let start = hex(&format!("{BULK_COLUMNS} {BULK_ROW}"));
    let begin = |client: &mut Client| {
        client.packet(0x07, 0, &start);
        assert_eq!(server.event(), Event::Row(vec![Value::BigInt(5)]));
    };
    begin(&mut client);
    client.attention();
    client.expect_done(DONE_ATTENTION);
    assert_eq!(server.event(), Event::BulkUndone);

    begin(&mut client);
    client.packet(0x07, 0x03, &[]);
    client.expect_done(0);
    assert_eq!(server.event(), Event::BulkUndone);

    // As freebcp ends its message: no DONE token.
    begin(&mut client);
    client.packet(0x07, 1, &[]);
    let answer = client.expect_done(DONE_ERROR);
    assert_eq!(answer[3..7], 4804i32.to_le_bytes());
    assert_eq!(server.event(), Event::BulkUndone);

    begin(&mut client);
    client.0.shutdown(Shutdown::Both).unwrap();
    assert_eq!(server.event(), Event::BulkUndone);
    assert_eq!(server.event(), Event::Dropped);
}

#[test]
fn a_refused_bulk_row_is_reported_after_the_whole_message() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    let bad = "D1 08 FFFFFFFFFFFFFFFF";
    client.packet(0x07, 0, &hex(&format!("{BULK_COLUMNS} {bad} {BULK_ROW}")));
    for _ in 0..1000 {
        client.packet(0x07, 0, &hex(BULK_ROW));
    }
    client.packet(0x07, 1, &hex(BULK_DONE));
    let answer = client.expect_done(DONE_ERROR);
    assert_eq!(answer[3..7], 515i32.to_le_bytes());
    assert_eq!(server.event(), Event::BulkUndone);
    client.batch("rows 1");
    client.expect_done(DONE_COUNT);
}

/// The load waits (for a lock), its queue is full, and the end of the client stands behind data that nobody reads.
#[test]
fn a_stalled_bulk_load_ends_with_its_client() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.packet(0x07, 0, &hex(&format!("{BULK_COLUMNS} D1 08 FEFFFFFFFFFFFFFF")));
    assert_eq!(server.event(), Event::Waiting);
    for _ in 0..40 {
        client.packet(0x07, 0, &hex(BULK_ROW));
    }
    drop(client);
    assert_eq!(server.event(), Event::BulkUndone);
    assert_eq!(server.event(), Event::Dropped);
}

#[test]
fn a_server_that_stops_ends_its_sessions() {
    let server = ScriptedServer::start();
    let mut client = server.client();
    client.batch("wait");
    assert_eq!(server.event(), Event::Waiting);
    let events = server.stop();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Event::Dropped));
    client.expect_end();
}
