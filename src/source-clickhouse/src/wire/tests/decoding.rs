//! Values of every layout, exact, whole or cut into frames.

use contract::block::{Block, Column, Values};

use super::script::*;
use crate::wire::error::WireError;
use crate::wire::protocol::server;
use crate::wire::query::put_varint;
use crate::wire::shape::Shape;

/// Reads one block whose bytes come in frames of at most `frame` bytes.
async fn read_one(rows: u64, columns: &[(&str, &str, Vec<u8>)], frame: usize) -> Result<Block, WireError> {
    let shape = Shape::new(columns.iter().map(|(name, type_text, _)| (*name, *type_text))).expect("the reader's types");
    let packet = block_packet(server::DATA, &block_bytes(rows, columns), frame);
    let socket = Scripted::answering(&[packet, profile_info(rows), end_of_stream()]);
    let mut connection = running(socket, shape).await?;
    let block = connection.next_block().await?.expect("a block");
    assert!(connection.next_block().await?.is_none());
    Ok(block)
}

fn wire_text(values: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        put_varint(&mut out, value.len() as u64);
        out.extend_from_slice(value);
    }
    out
}

#[tokio::test]
async fn every_layout_is_exact_whatever_the_frames() {
    let long = vec![0xE2; 300];
    let uuid: Vec<u8> = (0..16).collect();
    let columns: Vec<(&str, &str, Vec<u8>)> = vec![
        ("i8", "Int8", vec![0x80, 0x7f]),
        ("i16", "Int16", [i16::MIN, i16::MAX].map(i16::to_le_bytes).concat()),
        ("i32", "Int32", [i32::MIN, i32::MAX].map(i32::to_le_bytes).concat()),
        ("i64", "Int64", [i64::MIN, i64::MAX].map(i64::to_le_bytes).concat()),
        ("u8", "UInt8", vec![0, 255]),
        ("u16", "UInt16", [0, u16::MAX].map(u16::to_le_bytes).concat()),
        ("u32", "UInt32", [0, u32::MAX].map(u32::to_le_bytes).concat()),
        ("u64", "UInt64", [1 << 63, u64::MAX].map(u64::to_le_bytes).concat()),
        ("b", "Bool", vec![0, 1]),
        ("f32", "Float32", [-0.0, f32::MIN_POSITIVE].map(f32::to_le_bytes).concat()),
        ("f64", "Float64", [5e-324, f64::MAX].map(f64::to_le_bytes).concat()),
        ("s", "String", wire_text(&[b"a\0b", &long])),
        ("id", "UUID", [uuid.clone(), vec![0xff; 16]].concat()),
        ("d", "Date", [0, u16::MAX].map(u16::to_le_bytes).concat()),
        ("d32", "Date32", [-25_567, 120_529].map(i32::to_le_bytes).concat()),
        ("p9", "Decimal(9, 2)", [-999_999_999, 1].map(i32::to_le_bytes).concat()),
        ("p18", "Decimal(18, 0)", [-999_999_999_999_999_999, 1].map(i64::to_le_bytes).concat()),
        ("p38", "Decimal(38, 38)", [-(10_i128.pow(38) - 1), 1].map(i128::to_le_bytes).concat()),
        ("ns", "Nullable(String)", [vec![1, 0], wire_text(&[b"", b""])].concat()),
        ("ni", "Nullable(Int64)", [vec![0, 1], [-1, 0].map(i64::to_le_bytes).concat()].concat()),
    ];
    let expected = vec![
        Values::Int8(vec![i8::MIN, i8::MAX]),
        Values::Int16(vec![i16::MIN, i16::MAX]),
        Values::Int32(vec![i32::MIN, i32::MAX]),
        Values::Int64(vec![i64::MIN, i64::MAX]),
        Values::UInt8(vec![0, 255]),
        Values::UInt16(vec![0, u16::MAX]),
        Values::UInt32(vec![0, u32::MAX]),
        Values::UInt64(vec![1 << 63, u64::MAX]),
        Values::Bool(vec![0, 1]),
        Values::Float32(vec![-0.0, f32::MIN_POSITIVE]),
        Values::Float64(vec![5e-324, f64::MAX]),
        Values::String(texts(&[b"a\0b", &long])),
        Values::Uuid(vec![[7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8], [0xff; 16]]),
        Values::Date(vec![0, u16::MAX]),
        Values::Date32(vec![-25_567, 120_529]),
        Values::Decimal(vec![-999_999_999, 1]),
        Values::Decimal(vec![-999_999_999_999_999_999, 1]),
        Values::Decimal(vec![-(10_i128.pow(38) - 1), 1]),
        Values::String(texts(&[b"", b""])),
        Values::Int64(vec![-1, 0]),
    ];
    let nulls = |index: usize| match index {
        18 => Some(vec![1, 0]),
        19 => Some(vec![0, 1]),
        _ => None,
    };
    let expected: Vec<Column> =
        expected.into_iter().enumerate().map(|(index, values)| Column { values, nulls: nulls(index) }).collect();
    for frame in [1, 2, 3, 5, 16, 100, usize::MAX] {
        let block = read_one(2, &columns, frame).await.expect("a block");
        assert_eq!(block, Block { rows: 2, columns: expected.clone() }, "frames of {frame}");
        let Values::Float32(floats) = &block.columns[9].values else { panic!("Float32") };
        assert!(floats[0].is_sign_negative());
    }
}

fn texts(values: &[&[u8]]) -> contract::block::StringColumn {
    let mut column = contract::block::StringColumn::default();
    values.iter().for_each(|value| column.push(value));
    column
}

#[tokio::test]
async fn flags_other_than_zero_and_one_are_refused() {
    let bad = read_one(2, &[("b", "Bool", vec![0, 2])], usize::MAX).await;
    assert!(matches!(bad, Err(WireError::Malformed(_))));
    let bad = read_one(1, &[("n", "Nullable(Int8)", vec![2, 0])], usize::MAX).await;
    assert!(matches!(bad, Err(WireError::Malformed(_))));
}

#[tokio::test]
async fn other_names_types_and_counts_are_refused() {
    let shape = || Shape::new([("a", "Int8"), ("b", "Int8")]).expect("types");
    let value = |name, type_text| (name, type_text, vec![1]);
    for columns in [
        vec![value("a", "Int8")],
        vec![value("b", "Int8"), value("a", "Int8")],
        vec![value("a", "Int8"), value("b", "UInt8")],
        vec![value("a", "Int8"), value("b", "Nullable(Int8)")],
        vec![value("a", "Int8"), value("b", "Int8"), value("c", "Int8")],
    ] {
        let (rows, end) = read_all(Scripted::answering(&[data(1, &columns)]), shape()).await;
        assert!(rows == 0 && matches!(end, Err(WireError::ShapeChanged)), "{end:?}");
    }
}

#[tokio::test]
async fn bytes_between_blocks_are_refused() {
    let mut plain = block_bytes(1, &[("n", "Int64", vec![0; 8])]);
    plain.push(0);
    let (_, end) =
        read_all(Scripted::answering(&[block_packet(server::DATA, &plain, usize::MAX)]), number_shape()).await;
    assert!(matches!(end, Err(WireError::Malformed(_))));
}

#[tokio::test]
async fn overflow_rows_and_rows_without_columns_are_refused() {
    let mut plain = block_bytes(1, &[("n", "Int64", vec![0; 8])]);
    plain[1] = 1;
    let (_, end) =
        read_all(Scripted::answering(&[block_packet(server::DATA, &plain, usize::MAX)]), number_shape()).await;
    assert!(matches!(end, Err(WireError::Malformed(_))));
    let (_, end) = read_all(Scripted::answering(&[data(3, &[])]), number_shape()).await;
    assert!(matches!(end, Err(WireError::Malformed(_))));
}
