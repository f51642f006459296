//! Bulk messages: what is decoded, at every cut of the packets, and what is refused.

use tokio::sync::mpsc;

use super::super::super::value::{Length, SqlType, Value};
use super::super::bulk::{BulkChunk, BulkStream, Ended, Item};
use super::hex;

/// Two columns: bigint NOT NULL `a`, nvarchar(max) `b`.
const COLUMNS: &str = "81 0200 00000000 0800 7F 01 6100 00000000 0900 E7 FFFF 0904D00034 01 6200";
const DONE: &str = "FD 0000 0000 0000000000000000";

/// Feeds a message in packets of `packet_bytes` and returns what comes out.
fn decode(message: &[u8], packet_bytes: usize, last: BulkChunk) -> Result<Vec<Vec<Value>>, Ended> {
    let (sender, receiver) = mpsc::channel(message.len() + 2);
    for packet in message.chunks(packet_bytes) {
        sender.try_send(BulkChunk::Data(packet.to_vec())).unwrap();
    }
    sender.try_send(last).unwrap();
    let mut stream = BulkStream::new(receiver);
    let columns = stream.columns()?;
    let mut rows = Vec::new();
    loop {
        match stream.next(&columns, &mut Vec::new())? {
            Item::Row(row) => rows.push(row),
            Item::Done => return Ok(rows),
        }
    }
}

fn error_number(body: &str) -> i32 {
    match decode(&hex(body), 7, BulkChunk::End) {
        Err(Ended::Failed(error)) => error.number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_are_the_same_at_every_cut_of_the_packets() {
    let message = format!(
        "{COLUMNS} D1 0100000000000000 0400000000000000 02000000 6100 02000000 6200 00000000
         D2 02 FEFFFFFFFFFFFFFF  D1 0300000000000000 FEFFFFFFFFFFFFFF 00000000 {DONE}"
    );
    let message = hex(&message);
    let expected = vec![
        vec![Value::BigInt(1), Value::text("ab")],
        vec![Value::BigInt(-2), Value::Null],
        vec![Value::BigInt(3), Value::text("")],
    ];
    for packet_bytes in 1..=message.len() {
        assert_eq!(decode(&message, packet_bytes, BulkChunk::End).unwrap(), expected, "packets of {packet_bytes}");
    }
}

#[test]
fn a_count_of_four_bytes_in_the_final_done_is_accepted() {
    let message = hex(&format!("{COLUMNS} FD 0000 0000 00000000"));
    assert_eq!(decode(&message, 5, BulkChunk::End).unwrap(), Vec::<Vec<Value>>::new());
}

#[test]
fn columns_keep_their_names_types_and_nullability() {
    let (sender, receiver) = mpsc::channel(2);
    sender.try_send(BulkChunk::Data(hex(COLUMNS))).unwrap();
    let columns = BulkStream::new(receiver).columns().unwrap();
    let metas: Vec<_> = columns.metas().iter().map(|meta| (meta.name.as_str(), meta.ty, meta.nullable)).collect();
    assert_eq!(metas, [("a", SqlType::BigInt, false), ("b", SqlType::NVARCHAR_MAX, true)]);
    assert!(matches!(columns.metas()[1].ty, SqlType::NVarChar(Length::Max, _)));
}

#[test]
fn a_message_cut_anywhere_is_error_4804_and_never_a_load() {
    let message = hex(&format!("{COLUMNS} D1 0100000000000000 0200000000000000 02000000 6100 00000000 {DONE}"));
    for length in 0..message.len() {
        let short_count = message.len() - 4;
        match decode(&message[..length], 3, BulkChunk::End) {
            Err(Ended::Failed(error)) => assert_eq!(error.number, 4804, "cut at {length}"),
            Ok(_) if length == short_count => {}
            other => panic!("cut at {length}: {other:?}"),
        }
        assert!(
            matches!(decode(&message[..length], 3, BulkChunk::Withdrawn), Err(Ended::Withdrawn)),
            "cut at {length}"
        );
    }
}

#[test]
fn a_withdrawn_message_is_no_load_even_when_it_is_complete() {
    let message = hex(&format!("{COLUMNS} {DONE}"));
    assert!(matches!(decode(&message, 8, BulkChunk::Withdrawn), Err(Ended::Withdrawn)));
}

#[test]
fn bad_rows_have_the_numbers_of_sql_server() {
    let row = |cells: &str| format!("{COLUMNS} D1 {cells} {DONE}");
    assert_eq!(error_number(&row("0100000000000000 0400000000000000 02000000 6100 00000000")), 4897, "too short");
    assert_eq!(error_number(&row("0100000000000000 0100000000000000 02000000 6100 00000000")), 4897, "too long");
    assert_eq!(error_number(&row("0100000000000000 FDFFFFFFFFFFFFFF 00000000")), 4897, "above 2^31 - 1");
    assert_eq!(error_number(&row("0100000000000000 FEFFFFFFFFFFFFFF 03000000 610062 00000000")), 4895, "odd");
    assert_eq!(error_number(&format!("{COLUMNS} AA")), 4002, "an unknown token");
    assert_eq!(error_number(&format!("{COLUMNS} {DONE} 00")), 4002, "bytes behind the end");
    assert_eq!(error_number("D1 01"), 4894, "no COLMETADATA");
    assert_eq!(error_number("81 FFFF"), 4894, "no columns");
    assert_eq!(error_number("81 0100 00000000 0900 99 01 6100"), 4816, "an unknown type");
    assert_eq!(error_number("81 0100 00000000 0900 26 03 01 6100"), 4816, "an integer of three bytes");
    assert_eq!(error_number("81 0100 00000000 0900 62 491F0000 01 6100"), 4816, "sql_variant");
    let one = |ty: &str, cell: &str| error_number(&format!("81 0100 00000000 0900 {ty} 01 6100 D1 {cell} {DONE}"));
    assert_eq!(one("26 08", "04 01000000"), 4815, "four bytes in a bigint");
    assert_eq!(one("6D 08", "08 000000000000F87F"), 7339, "NaN");
    assert_eq!(one("6D 08", "08 000000000000F07F"), 7339, "infinity");
    assert_eq!(one("2A 06", "08 0060AD3A14 15460B"), 7339, "more than 24 h");
    assert_eq!(one("2A 06", "08 0000000000 DBB937"), 7339, "the day after 9999-12-31");
    assert_eq!(one("2A 06", "07 00000000 15460B"), 4815, "a length of another scale");
    assert_eq!(one("E7 0400 0904D00034", "0600 610062006300"), 4815, "three characters in nvarchar(2)");
}

#[test]
fn negative_zero_and_denormals_are_values() {
    let message =
        hex(&format!("81 0100 00000000 0900 6D 08 01 6100 D1 08 0000000000000080 D1 08 0100000000000000 D1 00 {DONE}"));
    let rows = decode(&message, 4, BulkChunk::End).unwrap();
    let Value::Float(zero) = rows[0][0] else { panic!("{:?}", rows[0]) };
    assert!(zero == 0.0 && zero.is_sign_negative());
    assert_eq!(rows[1], [Value::Float(5e-324)]);
    assert_eq!(rows[2], [Value::Null]);
}
