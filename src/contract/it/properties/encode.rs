//! The block encoder and the single-value encoder give the same rows and the same refusals; the cursor takes any bytes.

use contract::block::{Block, Column, StringColumn, Values};
use contract::digest::{Digest, TypedSum};
use contract::encode::{EncodeError, EncodedRows, Field, NativeRows, RowEncoder, encode_values, split_row};
use contract::layout::WireLayout;
use contract::source_type::SourceType;
use proptest::prelude::*;

use super::block::{FORMS, GOOD_FORMS, block, cell, layout};

const MAX_ROW_BYTES: u64 = 1 << 20;

/// Every row by the single-value rules, or the first refusal in row order.
fn one_by_one(
    layout: &WireLayout,
    sources: &[SourceType],
    block: &Block,
    max_row_bytes: u64,
) -> Result<EncodedRows, EncodeError> {
    let mut out = EncodedRows::default();
    for row in 0..block.rows {
        let values: Vec<_> =
            block.columns.iter().zip(sources).map(|(column, source)| cell(column, source, row)).collect();
        let start = out.bytes.len();
        encode_values(layout, &values, max_row_bytes, &mut out.bytes).map_err(|(code, column)| EncodeError {
            code,
            row,
            column,
        })?;
        out.ends.push(out.bytes.len() as u32);
        out.sum.add_hash(Digest::of(&out.bytes[start..]).as_bytes());
    }
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn blocks_and_values_agree(
        forms in prop::collection::vec(0..GOOD_FORMS, 1..8),
        rows in prop_oneof![4 => 0usize..40, 1 => 500usize..1200],
        wild in prop_oneof![Just(0u64), Just(2), Just(200)],
        max_row_bytes in prop_oneof![4 => Just(MAX_ROW_BYTES), 1 => 1u64..80],
        seed: u64,
    ) {
        let (layout, sources) = layout(&forms);
        let block = block(&sources, rows, wild, seed);
        let encoder = RowEncoder::new(layout.clone(), sources.clone(), max_row_bytes).expect("forms");
        let want = one_by_one(&layout, &sources, &block, max_row_bytes);

        let mut got = EncodedRows::default();
        let verdict = encoder.encode(&block, 0..rows, &mut got);
        match &want {
            Ok(want) => {
                prop_assert_eq!(verdict, Ok(()));
                prop_assert_eq!((&got.bytes, &got.ends, got.sum), (&want.bytes, &want.ends, want.sum));
            }
            Err(refusal) => {
                prop_assert_eq!(verdict, Err(*refusal));
                prop_assert_eq!((got.bytes.len(), got.ends.len(), got.sum), (0, 0, TypedSum::ZERO));
            }
        }

        // Sizes measured before encoding are the sizes of the encoded rows, and a row over the bound is refused early.
        let mut sizes = Vec::new();
        match (encoder.measure(&block, &mut sizes), &want) {
            (Ok(()), Ok(want)) => {
                let starts = std::iter::once(0).chain(want.ends.iter().copied());
                let encoded: Vec<u32> = starts.zip(&want.ends).map(|(start, end)| end - start).collect();
                prop_assert_eq!(&sizes, &encoded);
            }
            (Ok(()), Err(_)) => {}
            (Err(early), _) => prop_assert!(want.is_err(), "measure refuses what encodes: {}", early),
        }
    }

    #[test]
    fn a_cut_block_gives_the_same_rows(
        forms in prop::collection::vec(0..GOOD_FORMS, 1..6), rows in 1usize..60, cut in 0usize..60, seed: u64,
    ) {
        let (layout, sources) = layout(&forms);
        let block = block(&sources, rows, 0, seed);
        let encoder = RowEncoder::new(layout, sources, MAX_ROW_BYTES).expect("forms");
        let mut whole = EncodedRows::default();
        let verdict = encoder.encode(&block, 0..rows, &mut whole);
        let mut parts = EncodedRows::default();
        let cut = cut.min(rows);
        let halves = encoder.encode(&block, 0..cut, &mut parts).and_then(|()| encoder.encode(&block, cut..rows, &mut parts));
        prop_assert_eq!(halves, verdict);
        if verdict.is_ok() {
            prop_assert_eq!((whole.bytes, whole.ends, whole.sum), (parts.bytes, parts.ends, parts.sum));
        }
    }

    #[test]
    fn the_cursor_takes_any_bytes(
        forms in prop::collection::vec(0..FORMS.len(), 1..6), bytes in prop::collection::vec(any::<u8>(), 0..300),
        max_row_bytes in 0u64..400,
    ) {
        let (layout, _) = layout(&forms);
        let mut rows = NativeRows::new(&layout, &bytes, max_row_bytes);
        let mut fields: Vec<Field<'_>> = Vec::new();
        let mut read = 0;
        while let Ok(Some(row)) = rows.next_row(&mut fields) {
            prop_assert!(!row.is_empty() && row.len() as u64 <= max_row_bytes);
            prop_assert_eq!(fields.len(), forms.len());
            read += row.len();
        }
        prop_assert!(read <= bytes.len());
    }

    #[test]
    fn the_cursor_finds_every_row_again(
        forms in prop::collection::vec(0..GOOD_FORMS, 1..6), rows in 0usize..30, cut: prop::sample::Index, seed: u64,
    ) {
        let (layout, sources) = layout(&forms);
        let block = block(&sources, rows, 0, seed);
        let Ok(want) = one_by_one(&layout, &sources, &block, MAX_ROW_BYTES) else { return Ok(()) };
        let mut cursor = NativeRows::new(&layout, &want.bytes, MAX_ROW_BYTES);
        let mut fields = Vec::new();
        let mut start = 0;
        for end in &want.ends {
            let row = cursor.next_row(&mut fields).expect("a row");
            prop_assert_eq!(row, Some(&want.bytes[start..*end as usize]));
            start = *end as usize;
        }
        prop_assert_eq!(cursor.next_row(&mut fields), Ok(None));
        // A row cut short asks for more and is never taken for a shorter row.
        if let Some(end) = want.ends.first() {
            let cut = cut.index(*end as usize);
            prop_assert_eq!(split_row(&layout, &want.bytes[..cut], MAX_ROW_BYTES, &mut fields), Ok(None));
        }
    }
}

#[test]
fn a_pair_without_a_form_is_refused_at_once() {
    let (layout, sources) = layout(&[GOOD_FORMS]);
    let refusal = RowEncoder::new(layout, sources, MAX_ROW_BYTES).expect_err("String has no form in bigint");
    assert_eq!(refusal.code.as_str(), "mssql_native_unsupported_type");
}

/// A character whose bytes lie in two rows is valid in the column's buffer and in neither row.
#[test]
fn a_character_cut_by_a_row_boundary_is_refused() {
    let (wire, sources) = layout(&[4]);
    let encoder = RowEncoder::new(wire, sources, MAX_ROW_BYTES).expect("forms");
    let mut texts = StringColumn::default();
    [b"plain" as &[u8], b"\xC3", b"\xA9"].into_iter().for_each(|text| texts.push(text));
    let block = Block { rows: 3, columns: vec![Column { values: Values::String(texts), nulls: None }] };
    let refusal = encoder.encode(&block, 0..3, &mut EncodedRows::default()).expect_err("row 1 is no text");
    assert_eq!((refusal.code, refusal.row), ("mssql_native.invalid_utf8_source_text", 1));
}

/// What the cursor must not take for a field of the column.
#[test]
fn fields_that_a_column_cannot_have_are_faults() {
    let wide = |length: u64, payload: &[u8]| [&length.to_le_bytes() as &[u8], payload].concat();
    for (declared, bytes) in [
        ("nvarchar(max)", vec![0xFF; 8]),
        ("bit", vec![0xFF]),
        ("varchar(8)", vec![0xFF, 0xFF]),
        ("bigint nullable", vec![7, 0, 0, 0, 0, 0, 0, 0]),
        ("nvarchar(max)", wide(3, b"abc")),
        ("varbinary(max)", wide(1 << 63, b"")),
        ("varbinary(max)", wide(MAX_ROW_BYTES, b"")),
        ("nvarchar(2)", vec![6, 0, 1, 0, 1, 0, 1, 0]),
        ("binary(2)", vec![1, 0, 9]),
    ] {
        let layout = WireLayout::new([("v", declared)]).expect(declared);
        let verdict = split_row(&layout, &bytes, MAX_ROW_BYTES, &mut Vec::new());
        assert!(verdict.is_err(), "{declared}: {verdict:?}");
    }
}

#[test]
fn a_block_of_another_shape_is_refused() {
    let (wire, sources) = layout(&[0, 4]);
    let encoder = RowEncoder::new(wire, sources, MAX_ROW_BYTES).expect("forms");
    let (_, others) = layout(&[4, 0]);
    let mut out = EncodedRows::default();
    let swapped = encoder.encode(&block(&others, 3, 0, 1), 0..3, &mut out).expect_err("columns are swapped");
    assert_eq!((swapped.code, swapped.column), ("mssql_native_columns_mismatch", 0));
    let (_, fewer) = layout(&[0]);
    let short = encoder.encode(&block(&fewer, 3, 0, 1), 0..3, &mut out).expect_err("a column is missing");
    assert_eq!((short.code, short.column), ("mssql_native_columns_mismatch", 1));
}
