//! Random answers, and a second decoder of plain blocks that knows nothing but slices. Both serve the property targets.

use contract::block::{Block, Column, Values};
use proptest::prelude::*;

use super::script::*;
use crate::wire::frame::{METHOD_LZ4, METHOD_NONE, METHOD_ZSTD, framed};
use crate::wire::protocol::server;
use crate::wire::query::put_varint;
use crate::wire::shape::Shape;

/// Type texts of every layout with the bytes of a value; 0 is a text.
const TYPES: [(&str, usize); 18] = [
    ("String", 0),
    ("Bool", 1),
    ("Int8", 1),
    ("Int16", 2),
    ("Int32", 4),
    ("Int64", 8),
    ("UInt8", 1),
    ("UInt16", 2),
    ("UInt32", 4),
    ("UInt64", 8),
    ("Float32", 4),
    ("Float64", 8),
    ("UUID", 16),
    ("Date", 2),
    ("Date32", 4),
    ("Decimal(9, 2)", 4),
    ("Decimal(18, 0)", 8),
    ("Decimal(38, 10)", 16),
];

/// One column of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    index: usize,
    nullable: bool,
}

impl Kind {
    fn width(self) -> usize {
        TYPES[self.index].1
    }

    fn type_text(self) -> String {
        let inner = TYPES[self.index].0;
        if self.nullable { format!("Nullable({inner})") } else { inner.to_owned() }
    }
}

/// Rows, and the bytes of each column as a server sends them.
pub(crate) type Plain = (u64, Vec<Vec<u8>>);

/// A whole answer before it is put into frames.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) blocks: Vec<Plain>,
    pub(crate) method: u8,
    pub(crate) frame_bytes: usize,
}

impl Answer {
    pub(crate) fn shape(&self) -> Shape {
        let column = |(at, kind): (usize, &Kind)| (format!("c{at}"), kind.type_text());
        Shape::new(self.kinds.iter().enumerate().map(column)).expect("the reader's types")
    }

    /// The plain bytes of one block.
    pub(crate) fn plain(&self, block: &Plain) -> Vec<u8> {
        let texts: Vec<_> =
            self.kinds.iter().enumerate().map(|(at, kind)| (format!("c{at}"), kind.type_text())).collect();
        let columns: Vec<(&str, &str, Vec<u8>)> =
            texts.iter().zip(&block.1).map(|((name, text), bytes)| (&**name, &**text, bytes.clone())).collect();
        block_bytes(block.0, &columns)
    }

    /// The frames of plain bytes.
    pub(crate) fn frames(&self, plain: &[u8]) -> Vec<Vec<u8>> {
        let frame = |piece: &[u8]| {
            let payload = match self.method {
                METHOD_LZ4 => lz4_flex::block::compress(piece),
                METHOD_ZSTD => zstd::bulk::compress(piece, 1).expect("a payload"),
                _ => piece.to_vec(),
            };
            framed(self.method, piece.len() as u32, &payload)
        };
        plain.chunks(self.frame_bytes).map(frame).collect()
    }

    pub(crate) fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.0).sum()
    }

    /// Data packets of these frames, and the end of a result of `rows`.
    pub(crate) fn packets(frames: &[Vec<Vec<u8>>], rows: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for frames in frames {
            out.extend_from_slice(&[server::DATA as u8, 0]);
            out.extend_from_slice(&frames.concat());
            out.extend_from_slice(&progress());
        }
        [out, profile_info(rows), end_of_stream()].concat()
    }
}

fn values(width: usize, rows: usize) -> BoxedStrategy<Vec<u8>> {
    if width > 0 {
        return proptest::collection::vec(any::<u8>(), width * rows).boxed();
    }
    let text = prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => (100_usize..400).prop_map(|length| vec![b'x'; length]),
    ];
    let join = |texts: Vec<Vec<u8>>| {
        let mut out = Vec::new();
        for text in texts {
            put_varint(&mut out, text.len() as u64);
            out.extend_from_slice(&text);
        }
        out
    };
    proptest::collection::vec(text, rows).prop_map(join).boxed()
}

fn flags(rows: usize) -> BoxedStrategy<Vec<u8>> {
    proptest::collection::vec(0_u8..2, rows).boxed()
}

fn column(kind: Kind, rows: usize) -> BoxedStrategy<Vec<u8>> {
    let inner = if TYPES[kind.index].0 == "Bool" { flags(rows) } else { values(kind.width(), rows) };
    let nulls = if kind.nullable { flags(rows) } else { Just(Vec::new()).boxed() };
    (nulls, inner).prop_map(|(nulls, inner)| [nulls, inner].concat()).boxed()
}

/// Answers of a few columns, blocks and rows.
pub(crate) fn answers() -> BoxedStrategy<Answer> {
    let kind = (0..TYPES.len(), any::<bool>()).prop_map(|(index, nullable)| Kind { index, nullable });
    let blocks = |kinds: Vec<Kind>| {
        let block = (1_usize..12).prop_flat_map({
            let kinds = kinds.clone();
            move |rows| {
                let columns: Vec<_> = kinds.iter().map(|kind| column(*kind, rows)).collect();
                columns.prop_map(move |columns| (rows as u64, columns))
            }
        });
        (Just(kinds), proptest::collection::vec(block, 1..4))
    };
    let method = proptest::sample::select(vec![METHOD_LZ4, METHOD_NONE, METHOD_ZSTD]);
    let frame_bytes = prop_oneof![1_usize..60, Just(usize::MAX)];
    (proptest::collection::vec(kind, 1..5).prop_flat_map(blocks), method, frame_bytes)
        .prop_map(|((kinds, blocks), method, frame_bytes)| Answer { kinds, blocks, method, frame_bytes })
        .boxed()
}

/// What the reader made of a block, back in the bytes of a server.
pub(crate) fn encoded(block: &Block, kinds: &[Kind]) -> Plain {
    let column = |(column, kind): (&Column, &Kind)| {
        let mut out = column.nulls.clone().unwrap_or_default();
        put_values(&mut out, &column.values, kind.width());
        out
    };
    (block.rows as u64, block.columns.iter().zip(kinds).map(column).collect())
}

fn put_values(out: &mut Vec<u8>, values: &Values, width: usize) {
    match values {
        Values::Int8(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::UInt8(v) | Values::Bool(v) => out.extend(v),
        Values::Int16(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::UInt16(v) | Values::Date(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Int32(v) | Values::Date32(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::UInt32(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Int64(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::UInt64(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Float32(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Float64(v) => v.iter().for_each(|v| out.extend(v.to_le_bytes())),
        Values::Decimal(v) => v.iter().for_each(|v| out.extend(&v.to_le_bytes()[..width])),
        Values::Uuid(v) => {
            for half in v.iter().flat_map(|v| v.chunks(8)) {
                out.extend(half.iter().rev());
            }
        }
        Values::String(v) => {
            let mut start = 0;
            for end in &v.ends {
                put_varint(out, u64::from(*end) - start as u64);
                out.extend_from_slice(&v.bytes[start..*end as usize]);
                start = *end as usize;
            }
        }
    }
}

/// Rows of each column and of its null map.
pub(crate) fn lengths(block: &Block) -> Vec<usize> {
    let length = |values: &Values| match values {
        Values::Int8(v) => v.len(),
        Values::UInt8(v) | Values::Bool(v) => v.len(),
        Values::Int16(v) => v.len(),
        Values::UInt16(v) | Values::Date(v) => v.len(),
        Values::Int32(v) | Values::Date32(v) => v.len(),
        Values::UInt32(v) => v.len(),
        Values::Int64(v) => v.len(),
        Values::UInt64(v) => v.len(),
        Values::Float32(v) => v.len(),
        Values::Float64(v) => v.len(),
        Values::Decimal(v) => v.len(),
        Values::Uuid(v) => v.len(),
        Values::String(v) => v.ends.len(),
    };
    block
        .columns
        .iter()
        .flat_map(|column| [Some(length(&column.values)), column.nulls.as_ref().map(Vec::len)])
        .flatten()
        .collect()
}

/// Decodes the plain bytes of a block, all of them, or says that they are none. `None` inside: a block without columns.
pub(crate) fn decode(mut plain: &[u8], kinds: &[Kind]) -> Option<Option<Plain>> {
    let input = &mut plain;
    for field in 0.. {
        match varint(input)? {
            0 => break,
            _ if field == 2 => return None,
            1 => (take(input, 1)? == [0]).then_some(())?,
            2 => drop(take(input, 4)?),
            _ => return None,
        }
    }
    let (columns, rows) = (varint(input)?, varint(input)?);
    if columns == 0 {
        return (rows == 0 && input.is_empty()).then_some(None);
    }
    (columns == kinds.len() as u64).then_some(())?;
    let mut decoded = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        for expected in [format!("c{at}"), kind.type_text()] {
            let length = varint(input)?;
            (take(input, length)? == expected.as_bytes()).then_some(())?;
        }
        let mut column = Vec::new();
        let flags = u8::from(kind.nullable) + u8::from(TYPES[kind.index].0 == "Bool");
        for _ in 0..flags {
            let flags = take(input, rows)?;
            flags.iter().all(|flag| *flag < 2).then_some(())?;
            column.extend_from_slice(flags);
        }
        match kind.width() {
            _ if TYPES[kind.index].0 == "Bool" => {}
            0 => {
                for _ in 0..rows {
                    let length = varint(input)?;
                    put_varint(&mut column, length);
                    column.extend_from_slice(take(input, length)?);
                }
            }
            width => column.extend_from_slice(take(input, rows.checked_mul(width as u64)?)?),
        }
        decoded.push(column);
    }
    input.is_empty().then_some(Some((rows, decoded)))
}

fn take<'a>(input: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(usize::try_from(count).ok()?)?;
    *input = rest;
    Some(taken)
}

fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u128;
    for shift in 0..10 {
        let byte = take(input, 1)?[0];
        value |= u128::from(byte & 0x7f) << (7 * shift);
        if byte < 0x80 {
            return u64::try_from(value).ok();
        }
    }
    None
}
