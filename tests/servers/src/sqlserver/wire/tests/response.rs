//! The order of tokens and the bits of DONE.

use tokio::sync::mpsc;

use super::super::super::sql::{BatchSink, ColumnMeta, Done, EnvChange, SqlError, cmd};
use super::super::super::value::{Collation, SqlType, Value};
use super::super::response::{PacketQueue, Response};
use super::{column, hex};

/// Runs `write` on a thread of its own, as a session does, and returns the packets it sends.
fn packets(packet_bytes: usize, write: impl FnOnce(&PacketQueue) + Send + 'static) -> Vec<Vec<u8>> {
    let (sender, mut receiver) = mpsc::channel(1);
    let queue = PacketQueue { packets: sender, packet_bytes, session: 51, server_name: "S".into() };
    let writer = std::thread::spawn(move || write(&queue));
    let mut packets = Vec::new();
    while let Some(packet) = receiver.blocking_recv() {
        packets.push(packet);
    }
    writer.join().unwrap();
    packets
}

/// The payload of the one packet that `write` sends.
fn tokens(write: impl FnOnce(Response<'_>) + Send + 'static) -> Vec<u8> {
    let packets = packets(4096, |queue| write(Response::new(queue)));
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0][..2], [0x04, 0x01], "a tabular result that ends its message");
    assert_eq!(packets[0][4..6], [0, 51], "the session id");
    packets[0][8..].to_vec()
}

fn done(count: Option<u64>, cmd: u16) -> Done {
    Done { count, cmd, in_proc: false, error: false }
}

fn in_proc(count: Option<u64>, cmd: u16) -> Done {
    Done { in_proc: true, ..done(count, cmd) }
}

fn failure(number: i32) -> SqlError {
    SqlError { number, class: 16, state: 1, message: "m".into(), procedure: String::new(), line: 1 }
}

const FAILURE_208: &str = "AA 1200 D0000000 01 10 0100 6D00 01 5300 00 01000000";

/// The server response of MS-TDS 4.4: select 'foo' as 'bar'.
#[test]
fn a_result_set_is_the_one_of_the_specification() {
    let expected =
        hex("81 0100 00000000 2000 A7 0300 0904D00034 03 620061007200 D1 0300 666F6F FD 1000 C100 0100000000000000");
    let actual = tokens(|mut response| {
        let ty = SqlType::VarChar(super::super::super::value::Length::Sized(3), Collation::DEFAULT);
        let bar = ColumnMeta { computed: true, ..column("bar", ty, false) };
        response.columns(&[bar]).unwrap();
        response.row(&[Value::text("foo")]).unwrap();
        response.done(done(Some(1), cmd::SELECT)).unwrap();
        response.finish(false).unwrap();
    });
    assert_eq!(actual, expected);
}

#[test]
fn every_done_but_the_last_says_that_more_follows() {
    let actual = tokens(|mut response| {
        response.done(done(Some(2), cmd::INSERT)).unwrap();
        response.done(done(None, cmd::OTHER)).unwrap();
        response.finish(false).unwrap();
    });
    assert_eq!(actual, hex("FD 1100 C300 0200000000000000 FD 0000 FD00 0000000000000000"));
}

#[test]
fn an_empty_batch_is_answered_by_one_done() {
    assert_eq!(tokens(|response| response.finish(false).unwrap()), hex("FD 0000 FD00 0000000000000000"));
}

#[test]
fn an_error_that_ends_the_batch_shows_in_the_last_done() {
    let actual = tokens(|mut response| {
        response.done(done(Some(1), cmd::INSERT)).unwrap();
        response.error(&failure(208));
        response.finish(false).unwrap();
    });
    assert_eq!(actual, hex(&format!("FD 1100 C300 0100000000000000 {FAILURE_208} FD 0200 FD00 0000000000000000")));
}

#[test]
fn an_error_that_a_statement_has_reported_does_not_show_again() {
    let actual = tokens(|mut response| {
        response.error(&failure(208));
        response.done(Done { error: true, ..done(None, cmd::INSERT) }).unwrap();
        response.done(done(Some(1), cmd::INSERT)).unwrap();
        response.finish(false).unwrap();
    });
    let expected = format!("{FAILURE_208} FD 0300 C300 0000000000000000 FD 1000 C300 0100000000000000");
    assert_eq!(actual, hex(&expected));
}

#[test]
fn a_procedure_call_ends_with_status_output_and_doneproc() {
    let actual = tokens(|mut response| {
        response.begin_call([2u16].into_iter());
        response.done(in_proc(Some(1), cmd::INSERT)).unwrap();
        response.return_status(0);
        response.return_value("@n", &column("", SqlType::Int, false), &Value::Int(7));
        response.end_call();
        response.finish(false).unwrap();
    });
    let expected = "FF 1100 C300 0100000000000000 79 00000000
         AC 0200 02 40006E00 01 00000000 0900 26 04 04 07000000 FE 0000 E000 0000000000000000";
    assert_eq!(actual, hex(expected));
}

#[test]
fn a_procedure_inside_a_batch_ends_with_doneproc_and_more() {
    let actual = tokens(|mut response| {
        response.done(in_proc(Some(1), cmd::SELECT)).unwrap();
        response.return_status(-1);
        response.done(done(None, 0xE0)).unwrap();
        response.done(done(Some(3), cmd::DELETE)).unwrap();
        response.finish(false).unwrap();
    });
    let expected = "FF 1100 C100 0100000000000000 79 FFFFFFFF FE 0100 E000 0000000000000000
         FD 1000 C400 0300000000000000";
    assert_eq!(actual, hex(expected));
}

#[test]
fn an_attention_is_acknowledged_by_the_last_done_alone() {
    let actual = tokens(|mut response| {
        response.done(done(Some(1), cmd::INSERT)).unwrap();
        response.finish(true).unwrap();
    });
    assert_eq!(actual, hex("FD 1100 C300 0100000000000000 FD 2000 0000 0000000000000000"));
}

#[test]
fn transactions_are_announced_with_their_descriptor() {
    let actual = tokens(|mut response| {
        response.env_change(EnvChange::BeginTransaction(0x0102));
        response.env_change(EnvChange::CommitTransaction(0x0102));
        response.env_change(EnvChange::RollbackTransaction(0x0102));
        response.env_change(EnvChange::Database("b".into(), "a".into()));
        response.env_change(EnvChange::ResetConnection);
        response.finish(false).unwrap();
    });
    let expected = "E3 0B00 08 08 0201000000000000 00  E3 0B00 09 00 08 0201000000000000
         E3 0B00 0A 00 08 0201000000000000  E3 0700 01 01 6200 01 6100  E3 0300 12 00 00
         FD 0000 FD00 0000000000000000";
    assert_eq!(actual, hex(expected));
}

#[test]
fn rows_of_many_nulls_take_a_bitmap() {
    let actual = tokens(|mut response| {
        let columns = [column("a", SqlType::NVARCHAR_MAX, true), column("b", SqlType::Int, true)];
        response.columns(&columns).unwrap();
        response.row(&[Value::Null, Value::Int(1)]).unwrap();
        response.finish(false).unwrap();
    });
    let rows = hex("D2 01 04 01000000 FD 0000 FD00 0000000000000000");
    assert_eq!(actual[actual.len() - rows.len()..], rows);
}

#[test]
fn column_flags_tell_nullable_case_identity_and_computed() {
    let flags = |column: ColumnMeta| {
        let bytes = tokens(move |mut response| {
            response.columns(&[column]).unwrap();
            response.finish(false).unwrap();
        });
        u16::from_le_bytes([bytes[7], bytes[8]])
    };
    assert_eq!(flags(column("a", SqlType::Int, false)), 0x08);
    assert_eq!(flags(column("a", SqlType::Int, true)), 0x09);
    assert_eq!(flags(ColumnMeta { identity: true, ..column("a", SqlType::Int, false) }), 0x10);
    assert_eq!(flags(ColumnMeta { computed: true, ..column("a", SqlType::Int, true) }), 0x21);
    let binary = SqlType::NVARCHAR_MAX.with_collation(Collation::LATIN1_BIN2);
    assert_eq!(flags(column("a", binary, true)), 0x0B, "a binary collation distinguishes case");
}

/// A message whose payload fills its packets exactly must still end with EOM (mssql-rs #73).
#[test]
fn packets_are_full_and_the_last_one_ends_the_message_at_every_length() {
    for text_units in 0..300 {
        let text = "x".repeat(text_units);
        let expected = text.clone();
        let packets = packets(512, move |queue| {
            let mut response = Response::new(queue);
            response.columns(&[column("a", SqlType::NVARCHAR_MAX, true)]).unwrap();
            for _ in 0..3 {
                response.row(&[Value::text(&text)]).unwrap();
            }
            response.finish(false).unwrap();
        });
        let mut payload = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            let last = index + 1 == packets.len();
            assert_eq!(packet[1] & 1 == 1, last);
            assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
            assert!(last || packet.len() == 512);
            assert!(packet.len() > 8, "no packet is empty");
            assert_eq!(usize::from(packet[6]), (index + 1) % 256);
            payload.extend_from_slice(&packet[8..]);
        }
        let needle: Vec<u8> = super::utf16(&expected);
        let rows = payload.windows(needle.len().max(1)).filter(|window| **window == *needle).count();
        assert!(expected.is_empty() || rows >= 3);
        assert_eq!(payload[payload.len() - 13], 0xFD);
    }
}

#[test]
fn a_value_of_the_wrong_type_ends_the_connection_with_an_error() {
    let (sender, mut receiver) = mpsc::channel(8);
    let queue = PacketQueue { packets: sender, packet_bytes: 4096, session: 51, server_name: "S".into() };
    let mut response = Response::new(&queue);
    response.columns(&[column("a", SqlType::Int, false)]).unwrap();
    assert!(response.row(&[Value::text("no number")]).is_err());
    assert!(response.is_faulty());
    std::thread::spawn(move || assert!(response_finish(&queue))).join().unwrap();
    assert!(receiver.blocking_recv().is_some());
}

/// The queue of a faulty response still takes packets: the client must get the error.
fn response_finish(queue: &PacketQueue) -> bool {
    Response::new(queue).finish(false).is_ok()
}

#[test]
fn a_client_that_is_gone_closes_the_sink() {
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let queue = PacketQueue { packets: sender, packet_bytes: 512, session: 51, server_name: "S".into() };
    let mut response = Response::new(&queue);
    response.columns(&[column("a", SqlType::NVARCHAR_MAX, true)]).unwrap();
    assert!(response.row(&[Value::text(&"x".repeat(1000))]).is_err());
}
