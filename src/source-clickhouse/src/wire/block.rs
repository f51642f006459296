//! Decoding of one block: header against the expected shape, then every column in bulk.

use bytemuck::Pod;
use contract::block::{Block, Column, StringColumn, Values};
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::{Result, WireError};
use super::frame::{FrameBuffers, Frames};
use super::shape::{Layout, Shape, ShapeColumn};
use super::stream::{Pieces, Wire};

// Fixed-width columns are copied as memory: the wire is little-endian, and so must the machine be.
#[cfg(target_endian = "big")]
compile_error!("the native reader copies columns as little-endian memory");

/// Least hard cap of decoded bytes per block (design.md 3.4).
pub(crate) const RESULT_CAP_FLOOR_BYTES: usize = 32 << 20;

/// Room for block info, names and types beside the columns' own bytes.
const HEADER_SLACK_BYTES: usize = 1 << 20;

/// The hard cap of decoded bytes per block: `max(32 MiB, 2 x max_row_bytes)`, and below the 4 GiB of string offsets.
pub(crate) fn block_cap_bytes(max_row_bytes: u64) -> usize {
    let twice = usize::try_from(max_row_bytes.saturating_mul(2)).unwrap_or(usize::MAX);
    twice.clamp(RESULT_CAP_FLOOR_BYTES, (u32::MAX as usize) - HEADER_SLACK_BYTES)
}

/// Reads one block whose decoded columns may take `cap` bytes. `None` for a block without columns, which carries nothing.
pub(crate) async fn read_block<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    buffers: &mut FrameBuffers,
    shape: &Shape,
    cap: usize,
) -> Result<Option<Block>> {
    let mut frames = Frames::start(wire, buffers, cap.saturating_add(HEADER_SLACK_BYTES));
    read_info(&mut frames).await?;
    let (columns, rows) = (frames.varint().await?, frames.varint().await?);
    let block = if columns == 0 {
        if rows != 0 {
            return Err(WireError::Malformed("a block has rows without columns"));
        }
        None
    } else {
        if columns != shape.columns().len() as u64 {
            return Err(WireError::ShapeChanged);
        }
        let rows = usize::try_from(rows).map_err(|_| WireError::BlockTooLarge)?;
        let mut budget = Budget(cap);
        let mut decoded = Vec::with_capacity(shape.columns().len());
        for column in shape.columns() {
            expect_text(&mut frames, &column.name).await?;
            expect_text(&mut frames, &column.type_text).await?;
            decoded.push(read_column(&mut frames, column, rows, &mut budget).await?);
        }
        Some(Block { rows, columns: decoded })
    };
    if !frames.finished() {
        return Err(WireError::Malformed("bytes follow the end of a block"));
    }
    Ok(block)
}

/// Block info: numbered fields up to a zero. Overflow rows exist only with totals, which nobody asks for.
async fn read_info<S: AsyncRead + AsyncWrite + Unpin>(frames: &mut Frames<'_, S>) -> Result<()> {
    for _ in 0..3 {
        match frames.varint().await? {
            0 => return Ok(()),
            1 if frames.u8().await? == 0 => {}
            2 => frames.exact(&mut [0; 4]).await?,
            _ => return Err(WireError::Malformed("a block carries unknown information")),
        }
    }
    Err(WireError::Malformed("a block carries unknown information"))
}

/// Compares a text of the header with the expected one without setting memory aside for it.
async fn expect_text<S: AsyncRead + AsyncWrite + Unpin>(frames: &mut Frames<'_, S>, expected: &str) -> Result<()> {
    if frames.varint().await? != expected.len() as u64 {
        return Err(WireError::ShapeChanged);
    }
    for byte in expected.bytes() {
        if frames.u8().await? != byte {
            return Err(WireError::ShapeChanged);
        }
    }
    Ok(())
}

/// Decoded bytes that a block may still take.
struct Budget(usize);

impl Budget {
    /// Takes `count` values of `width` bytes before memory is set aside for them.
    fn charge(&mut self, count: usize, width: usize) -> Result<()> {
        let bytes = count.checked_mul(width).ok_or(WireError::BlockTooLarge)?;
        self.0 = self.0.checked_sub(bytes).ok_or(WireError::BlockTooLarge)?;
        Ok(())
    }
}

async fn read_column<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<'_, S>,
    column: &ShapeColumn,
    rows: usize,
    budget: &mut Budget,
) -> Result<Column> {
    let nulls = if column.nullable { Some(flags(frames, rows, budget).await?) } else { None };
    let values = match column.layout {
        Layout::Int8 => Values::Int8(numbers(frames, rows, budget).await?),
        Layout::Int16 => Values::Int16(numbers(frames, rows, budget).await?),
        Layout::Int32 => Values::Int32(numbers(frames, rows, budget).await?),
        Layout::Int64 => Values::Int64(numbers(frames, rows, budget).await?),
        Layout::UInt8 => Values::UInt8(numbers(frames, rows, budget).await?),
        Layout::UInt16 => Values::UInt16(numbers(frames, rows, budget).await?),
        Layout::UInt32 => Values::UInt32(numbers(frames, rows, budget).await?),
        Layout::UInt64 => Values::UInt64(numbers(frames, rows, budget).await?),
        Layout::Bool => Values::Bool(flags(frames, rows, budget).await?),
        Layout::Float32 => Values::Float32(numbers(frames, rows, budget).await?),
        Layout::Float64 => Values::Float64(numbers(frames, rows, budget).await?),
        Layout::String => Values::String(strings(frames, rows, budget).await?),
        Layout::Uuid => Values::Uuid(uuids(frames, rows, budget).await?),
        Layout::Date => Values::Date(numbers(frames, rows, budget).await?),
        Layout::Date32 => Values::Date32(numbers(frames, rows, budget).await?),
        Layout::Decimal32 => Values::Decimal(widened::<i32, S>(frames, rows, budget).await?),
        Layout::Decimal64 => Values::Decimal(widened::<i64, S>(frames, rows, budget).await?),
        Layout::Decimal128 => Values::Decimal(numbers(frames, rows, budget).await?),
    };
    Ok(Column { values, nulls })
}

/// Fixed-width values, copied as memory.
async fn numbers<T: Pod, S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<'_, S>,
    rows: usize,
    budget: &mut Budget,
) -> Result<Vec<T>> {
    budget.charge(rows, size_of::<T>())?;
    let mut values = vec![T::zeroed(); rows];
    frames.exact(bytemuck::cast_slice_mut(&mut values)).await?;
    Ok(values)
}

/// Bytes that may only be 0 or 1: `Bool` and null maps.
async fn flags<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<'_, S>,
    rows: usize,
    budget: &mut Budget,
) -> Result<Vec<u8>> {
    let flags = numbers::<u8, S>(frames, rows, budget).await?;
    if flags.iter().any(|flag| *flag > 1) {
        return Err(WireError::Malformed("a flag is neither 0 nor 1"));
    }
    Ok(flags)
}

/// Narrow decimals, sign extended.
async fn widened<T: Pod + Into<i128>, S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<'_, S>,
    rows: usize,
    budget: &mut Budget,
) -> Result<Vec<i128>> {
    budget.charge(rows, size_of::<i128>())?;
    let narrow = numbers::<T, S>(frames, rows, budget).await?;
    Ok(narrow.into_iter().map(Into::into).collect())
}

/// UUIDs: two little-endian halves on the wire, one big-endian number in text order.
async fn uuids<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<'_, S>,
    rows: usize,
    budget: &mut Budget,
) -> Result<Vec<[u8; 16]>> {
    let mut values = numbers::<[u8; 16], S>(frames, rows, budget).await?;
    for value in &mut values {
        value[..8].reverse();
        value[8..].reverse();
    }
    Ok(values)
}

/// Strings: whole values are copied from the frame in a tight loop; only a value that crosses frames takes the slow way.
async fn strings<S: AsyncRead + AsyncWrite + Unpin>(
    frames: &mut Frames<'_, S>,
    rows: usize,
    budget: &mut Budget,
) -> Result<StringColumn> {
    budget.charge(rows, size_of::<u32>())?;
    let mut column = StringColumn { bytes: Vec::new(), ends: Vec::with_capacity(rows) };
    while column.ends.len() < rows {
        frames.refill().await?;
        let used = take_whole_strings(frames.rest(), rows, &mut column, budget)?;
        frames.advance(used);
        if column.ends.len() < rows && !frames.rest().is_empty() {
            let length = usize::try_from(frames.varint().await?).map_err(|_| WireError::BlockTooLarge)?;
            budget.charge(length, 1)?;
            let start = column.bytes.len();
            column.bytes.resize(start + length, 0);
            frames.exact(&mut column.bytes[start..]).await?;
            column.ends.push(end_offset(&column)?);
        }
    }
    Ok(column)
}

/// Takes values as long as they lie completely in `bytes`; returns how many bytes they took.
fn take_whole_strings(bytes: &[u8], rows: usize, column: &mut StringColumn, budget: &mut Budget) -> Result<usize> {
    let mut position = 0;
    while column.ends.len() < rows {
        let Some((length, start)) = whole_varint(bytes, position) else { break };
        let Some(value) = usize::try_from(length).ok().and_then(|length| bytes.get(start..start.checked_add(length)?))
        else {
            break;
        };
        budget.charge(value.len(), 1)?;
        column.bytes.extend_from_slice(value);
        column.ends.push(end_offset(column)?);
        position = start + value.len();
    }
    Ok(position)
}

/// The number at `position` and where it ends, if its bytes are all there; longer than 64 bits counts as not there, so
/// that the slow way reports it.
fn whole_varint(bytes: &[u8], position: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(position)?;
    if first < 0x80 {
        return Some((u64::from(first), position + 1));
    }
    let mut value = u64::from(first & 0x7f);
    for (index, shift) in (7..63).step_by(7).enumerate() {
        let byte = *bytes.get(position + 1 + index)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, position + 2 + index));
        }
    }
    None
}

fn end_offset(column: &StringColumn) -> Result<u32> {
    u32::try_from(column.bytes.len()).map_err(|_| WireError::BlockTooLarge)
}
