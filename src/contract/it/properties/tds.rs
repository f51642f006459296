//! The two encoders of one row tied together: the TDS row of sealed bytes decodes to the values of the block.

use contract::encode::{EncodedRows, RowEncoder, TdsError, TdsRowEncoder, Value};
use contract::layout::WireLayout;
use contract::source_type::SourceType;
use proptest::prelude::*;

use super::block::{P1_FORMS, block, cell, layout};

const MAX_ROW_BYTES: u64 = 1 << 20;

/// Takes `n` bytes off the front.
fn take<'a>(wire: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, rest) = wire.split_at(n);
    *wire = rest;
    head
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Reads one field as MS-TDS 2.2.5.4 and 2.2.5.2.3 define it, and compares it with the value.
fn check(wire: &mut &[u8], declared: &str, nullable_forms: bool, value: &Value<'_>) {
    let nullable = declared.ends_with("nullable");
    if declared.starts_with("nvarchar") {
        let total = number(take(wire, 8));
        if total == u64::MAX {
            assert_eq!(*value, Value::Null);
            return;
        }
        let mut text = Vec::new();
        loop {
            let chunk = number(take(wire, 4)) as usize;
            if chunk == 0 {
                break;
            }
            text.extend_from_slice(take(wire, chunk));
        }
        assert_eq!(text.len() as u64, total);
        let Value::SourceBytes(bytes) = value else { panic!("not a text: {value:?}") };
        let units: Vec<u8> =
            std::str::from_utf8(bytes).expect("UTF-8").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text, units);
        return;
    }
    let payload = if nullable || nullable_forms || declared.starts_with("datetime2") {
        let length = take(wire, 1)[0];
        if length == 0 {
            assert_eq!(*value, Value::Null);
            return;
        }
        assert_eq!(length, 8);
        take(wire, 8)
    } else {
        take(wire, 8)
    };
    match value {
        Value::Int(value) => assert_eq!(number(payload) as i64, i64::try_from(*value).expect("bigint")),
        Value::Float(value) => assert_eq!(number(payload), value.to_bits()),
        Value::DateTime { days, ticks, .. } => {
            assert_eq!(number(&payload[..5]) as i64 * 10, *ticks);
            assert_eq!(number(&payload[5..]), *days as u64);
        }
        other => panic!("not a value of the four types: {other:?}"),
    }
}

fn native(
    layout: &WireLayout,
    sources: &[SourceType],
    rows: usize,
    seed: u64,
) -> (contract::block::Block, EncodedRows) {
    let block = block(sources, rows, 0, seed);
    let encoder = RowEncoder::new(layout.clone(), sources.to_vec(), MAX_ROW_BYTES).expect("forms");
    let mut out = EncodedRows::default();
    encoder.encode(&block, 0..rows, &mut out).expect("tame values encode");
    (block, out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tds_rows_carry_the_blocks_values(
        forms in prop::collection::vec(0..P1_FORMS, 1..8), rows in 0usize..40, nullable_forms: bool, seed: u64,
    ) {
        let (layout, sources) = layout(&forms);
        let (block, encoded) = native(&layout, &sources, rows, seed);
        let tds = TdsRowEncoder::new(&layout, MAX_ROW_BYTES, nullable_forms).expect("admitted");
        let mut wire = Vec::new();
        prop_assert_eq!(tds.encode(&encoded.bytes, &mut wire), Ok((rows as u64, encoded.bytes.len())));
        let mut rest = wire.as_slice();
        for row in 0..rows {
            prop_assert_eq!(take(&mut rest, 1)[0], 0xD1);
            for ((column, source), wire_column) in block.columns.iter().zip(&sources).zip(layout.columns()) {
                check(&mut rest, &wire_column.declared, nullable_forms, &cell(column, source, row));
            }
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn pieces_of_a_file_give_the_same_wire(
        forms in prop::collection::vec(0..P1_FORMS, 1..6), rows in 1usize..30, piece in 1usize..200, seed: u64,
    ) {
        let (layout, sources) = layout(&forms);
        let (_, encoded) = native(&layout, &sources, rows, seed);
        let tds = TdsRowEncoder::new(&layout, MAX_ROW_BYTES, false).expect("admitted");
        let mut whole = Vec::new();
        tds.encode(&encoded.bytes, &mut whole).expect("rows");
        let (mut wire, mut buffer, mut total) = (Vec::new(), Vec::new(), 0);
        for piece in encoded.bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            let (rows, consumed) = tds.encode(&buffer, &mut wire).expect("rows");
            total += rows;
            buffer.drain(..consumed);
        }
        prop_assert_eq!((wire, buffer.len(), total), (whole, 0, rows as u64));
    }

    /// Whatever the bytes are, both readers of the sealed file see the same rows, or both refuse it.
    #[test]
    fn any_bytes_are_the_same_rows_to_both_readers(
        forms in prop::collection::vec(0..P1_FORMS, 1..6), rows in 0usize..6, damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..60), seed: u64,
    ) {
        // Low enough that rows run into it at every kind of field.
        const BOUND: u64 = 40;
        let (layout, sources) = layout(&forms);
        let mut bytes = native(&layout, &sources, rows, seed).1.bytes;
        bytes.extend(noise);
        for (at, value) in damage {
            if let Some(byte) = (!bytes.is_empty()).then(|| at.index(bytes.len())).and_then(|at| bytes.get_mut(at)) {
                *byte = value;
            }
        }
        let tds = TdsRowEncoder::new(&layout, BOUND, false).expect("admitted");
        let mut wire = Vec::new();
        match (tds.encode(&bytes, &mut wire), walk(&layout, &bytes, BOUND)) {
            (Ok(got), Ok(want)) => prop_assert_eq!(got, want),
            (Err(TdsError::Malformed(got)), Err(want)) => prop_assert_eq!(got, want),
            (Err(TdsError::Time { .. }), _) => {}
            (got, want) => prop_assert!(false, "the wire encoder says {:?}, the cursor {:?}", got, want),
        }
    }
}

/// Rows and bytes up to the first incomplete row, by the cursor.
fn walk(layout: &WireLayout, bytes: &[u8], bound: u64) -> Result<(u64, usize), contract::encode::RowFault> {
    let (mut rows, mut at, mut fields) = (0, 0, Vec::new());
    while at < bytes.len() {
        match contract::encode::split_row(layout, &bytes[at..], bound, &mut fields)? {
            None => break,
            Some(length) => {
                rows += 1;
                at += length;
            }
        }
    }
    Ok((rows, at))
}

#[test]
fn a_time_finer_than_the_column_is_refused() {
    let layout = WireLayout::new([("t", "datetime2(6)")]).expect("layout");
    let tds = TdsRowEncoder::new(&layout, 64, false).expect("admitted");
    let day_end = 864_000_000_000u64;
    let row = |ticks: u64, days: u64| (ticks | days << 40).to_le_bytes();
    let mut wire = Vec::new();
    assert_eq!(tds.encode(&row(10, 3_652_058), &mut wire), Ok((1, 8)));
    assert_eq!(wire, [0xD1, 8, 1, 0, 0, 0, 0, 0xDA, 0xB9, 0x37]);
    for (ticks, days) in [(1, 0), (day_end, 0), (0, 3_652_059)] {
        assert_eq!(tds.encode(&row(ticks, days), &mut wire), Err(TdsError::Time { column: 0 }));
    }
    assert_eq!(wire.len(), 10, "a refused row leaves nothing behind");
}
