//! Writers of one column over a batch of rows: no dispatch and no allocation per cell.
//!
//! A writer returns `false` as soon as a cell is not plainly writable; the caller then redoes the batch value by value,
//! which finds the exact refusal. So nothing here decides what a refusal is called.

use crate::block::{Column, StringColumn, Values};
use crate::civil::{DAYS_0001_TO_1970, Instant, MICROS_PER_DAY};
use crate::layout::WireColumn;
use crate::source_type::{SourceKind, SourceType};
use crate::sql_type::SqlType;

use super::field::{DAYS_TO_10000, mixed_endian};

/// How a column's values become payload bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer(SqlType),
    /// A bit from a truth value.
    Bit,
    /// A 4-byte float.
    Real,
    /// An 8-byte float.
    Float,
    /// A decimal: the source's unscaled value times or divided by a power of ten.
    Decimal { precision: u8, scale: u8, power: Power },
    /// A UUID.
    Uuid,
    /// A date.
    Date,
    /// A timestamp in microseconds, which must be a multiple of `unit`.
    DateTime2 { unit: i64 },
    /// UTF-16 text.
    Wide,
    /// UTF-8 text.
    Narrow,
    /// Raw bytes.
    Binary,
}

/// How an unscaled value is brought to the target's scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    Times(i128),
    Over(i128),
}

/// The form of a pair of types; `None` when the route has none for it.
pub(super) fn form(source: &SourceType, column: &WireColumn) -> Option<Form> {
    use SourceKind as K;
    let integer =
        matches!(source.kind, K::Int8 | K::Int16 | K::Int32 | K::Int64 | K::UInt8 | K::UInt16 | K::UInt32 | K::UInt64);
    Some(match (source.kind, column.sql) {
        (_, SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt) if integer => {
            Form::Integer(column.sql)
        }
        (_, SqlType::Decimal { precision, scale, .. }) if integer => decimal(0, precision, scale)?,
        (K::Decimal { scale: from, .. }, SqlType::Decimal { precision, scale, .. }) => decimal(from, precision, scale)?,
        (K::Bool, SqlType::Bit) => Form::Bit,
        (K::Float32 | K::Float64, SqlType::Real | SqlType::Float(_)) => match column.fixed_length {
            Some(4) => Form::Real,
            _ => Form::Float,
        },
        (K::Uuid, SqlType::UniqueIdentifier) => Form::Uuid,
        (K::Date | K::Date32, SqlType::Date) => Form::Date,
        (K::DateTime(_) | K::DateTime64 { .. }, SqlType::DateTime2(scale)) => {
            Form::DateTime2 { unit: 10i64.pow(u32::from(6u8.saturating_sub(scale))) }
        }
        (K::String, SqlType::NVarChar(_) | SqlType::NChar(_)) => Form::Wide,
        (K::String, SqlType::VarChar(_) | SqlType::Char(_)) => Form::Narrow,
        (K::String, SqlType::VarBinary(_) | SqlType::Binary(_)) => Form::Binary,
        _ => return None,
    })
}

fn decimal(from: u32, precision: u8, scale: u8) -> Option<Form> {
    let power = |exponent: u32| 10i128.checked_pow(exponent);
    let power = match u32::from(scale).checked_sub(from) {
        Some(up) => Power::Times(power(up)?),
        None => Power::Over(power(from - u32::from(scale))?),
    };
    Some(Form::Decimal { precision, scale, power })
}

/// Where a batch's cells go.
pub(super) struct Batch<'a> {
    /// First row of the batch in the block.
    pub(super) first: usize,
    /// Next free position of each row in `bytes`.
    pub(super) cursor: &'a mut [u32],
    /// All rows of the batch.
    pub(super) bytes: &'a mut [u8],
}

/// Adds the encoded size of every cell of `rows` to `sizes`. Sizes of text that is not UTF-8 are not meaningful, those
/// rows are refused later.
pub(super) fn add_sizes(wire: &WireColumn, form: Form, column: &Column, first: usize, sizes: &mut [u32]) {
    let prefix = u32::from(wire.prefix_width);
    if let Some(length) = wire.fixed_length {
        let full = prefix + u32::from(length);
        match &column.nulls {
            None => sizes.iter_mut().for_each(|size| *size = size.saturating_add(full)),
            Some(nulls) => {
                for (size, null) in sizes.iter_mut().zip(&nulls[first..]) {
                    *size = size.saturating_add(if *null == 0 { full } else { prefix });
                }
            }
        }
        return;
    }
    let Values::String(texts) = &column.values else { return };
    let all = span(texts, first, sizes.len());
    let wide = form == Form::Wide;
    let ascii = wide && all.is_ascii();
    for (index, size) in sizes.iter_mut().enumerate() {
        let row = first + index;
        let payload = if column.is_null(row) {
            0
        } else if !wide {
            texts.get(row).len()
        } else if ascii {
            texts.get(row).len() * 2
        } else {
            utf16_units(texts.get(row)) * 2
        };
        *size = size.saturating_add(prefix).saturating_add(u32::try_from(payload).unwrap_or(u32::MAX));
    }
}

/// The bytes of rows `first .. first + rows`.
fn span(texts: &StringColumn, first: usize, rows: usize) -> &[u8] {
    if rows == 0 {
        return &[];
    }
    let start = if first == 0 { 0 } else { texts.ends[first - 1] as usize };
    &texts.bytes[start..texts.ends[first + rows - 1] as usize]
}

/// UTF-16 code units of valid UTF-8: one per character, one more per character outside the basic plane.
fn utf16_units(utf8: &[u8]) -> usize {
    let starts = utf8.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
    starts + utf8.iter().filter(|byte| **byte >= 0xF0).count()
}

/// Writes a column's cells; `false` if one of them needs a closer look.
pub(super) fn write(
    wire: &WireColumn,
    form: Form,
    source: &SourceType,
    column: &Column,
    batch: &mut Batch<'_>,
) -> bool {
    match form {
        Form::Integer(sql) => integer(wire, sql, column, batch),
        Form::Bit => match &column.values {
            Values::Bool(v) => put(wire, column, batch, |row| (v[row] <= 1).then_some([v[row]])),
            _ => false,
        },
        Form::Real => match &column.values {
            Values::Float32(v) => put(wire, column, batch, |row| v[row].is_finite().then(|| v[row].to_le_bytes())),
            Values::Float64(v) => put(wire, column, batch, |row| {
                let narrow = v[row] as f32;
                (narrow.is_finite() && f64::from(narrow) == v[row]).then(|| narrow.to_le_bytes())
            }),
            _ => false,
        },
        Form::Float => match &column.values {
            Values::Float64(v) => put(wire, column, batch, |row| v[row].is_finite().then(|| v[row].to_le_bytes())),
            Values::Float32(v) => {
                put(wire, column, batch, |row| v[row].is_finite().then(|| f64::from(v[row]).to_le_bytes()))
            }
            _ => false,
        },
        Form::Decimal { precision, scale, power } => {
            put(wire, column, batch, |row| decimal_bytes(unscaled(&column.values, row)?, precision, scale, power))
        }
        Form::Uuid => match &column.values {
            Values::Uuid(v) => put(wire, column, batch, |row| Some(mixed_endian(v[row]))),
            _ => false,
        },
        Form::Date => match &column.values {
            Values::Date(v) => put(wire, column, batch, |row| date_bytes(v[row].into())),
            Values::Date32(v) => put(wire, column, batch, |row| date_bytes(v[row].into())),
            _ => false,
        },
        Form::DateTime2 { unit } => match &column.values {
            Values::Int64(v) if source.is_timestamp() && unit == 1 => {
                put(wire, column, batch, |row| timestamp_bytes(v[row]))
            }
            Values::Int64(v) if source.is_timestamp() => {
                put(wire, column, batch, |row| if v[row] % unit == 0 { timestamp_bytes(v[row]) } else { None })
            }
            _ => false,
        },
        Form::Wide | Form::Narrow | Form::Binary => match &column.values {
            Values::String(texts) => text(wire, form, column, texts, batch),
            _ => false,
        },
    }
}

/// Writes cells of `W` payload bytes.
#[inline]
fn put<const W: usize>(
    wire: &WireColumn,
    column: &Column,
    batch: &mut Batch<'_>,
    payload: impl Fn(usize) -> Option<[u8; W]>,
) -> bool {
    let first = batch.first;
    let prefixed = wire.prefix_width != 0;
    let bytes = &mut *batch.bytes;
    let mut rows = batch.cursor.iter_mut().enumerate();
    match &column.nulls {
        None if prefixed => rows.all(|(index, at)| place(bytes, at, payload(first + index), true)),
        None => rows.all(|(index, at)| place(bytes, at, payload(first + index), false)),
        Some(nulls) if wire.nullable => rows.zip(&nulls[first..]).all(|((index, at), null)| {
            if *null == 0 {
                place(bytes, at, payload(first + index), true)
            } else {
                place(bytes, at, Some([0xFF]), false)
            }
        }),
        Some(nulls) => rows
            .zip(&nulls[first..])
            .all(|((index, at), null)| *null == 0 && place(bytes, at, payload(first + index), prefixed)),
    }
}

/// Puts one field at `at` and moves it on.
#[inline(always)]
fn place<const W: usize>(bytes: &mut [u8], at: &mut u32, payload: Option<[u8; W]>, prefixed: bool) -> bool {
    let Some(payload) = payload else { return false };
    let head = usize::from(prefixed);
    let start = *at as usize;
    let Some(field) = bytes.get_mut(start..start + head + W) else { return false };
    if prefixed {
        field[0] = W as u8;
    }
    field[head..].copy_from_slice(&payload);
    *at += (head + W) as u32;
    true
}

fn integer(wire: &WireColumn, sql: SqlType, column: &Column, batch: &mut Batch<'_>) -> bool {
    match &column.values {
        Values::Int8(v) => sized(wire, sql, column, v, batch),
        Values::Int16(v) => sized(wire, sql, column, v, batch),
        Values::Int32(v) => sized(wire, sql, column, v, batch),
        Values::Int64(v) => sized(wire, sql, column, v, batch),
        Values::UInt8(v) => sized(wire, sql, column, v, batch),
        Values::UInt16(v) => sized(wire, sql, column, v, batch),
        Values::UInt32(v) => sized(wire, sql, column, v, batch),
        Values::UInt64(v) => sized(wire, sql, column, v, batch),
        _ => false,
    }
}

fn sized<T: Copy + TryInto<i64>>(
    wire: &WireColumn,
    sql: SqlType,
    column: &Column,
    values: &[T],
    batch: &mut Batch<'_>,
) -> bool {
    let value = |row: usize| -> Option<i64> { values[row].try_into().ok() };
    match sql {
        SqlType::TinyInt => put(wire, column, batch, |row| Some(u8::try_from(value(row)?).ok()?.to_le_bytes())),
        SqlType::SmallInt => put(wire, column, batch, |row| Some(i16::try_from(value(row)?).ok()?.to_le_bytes())),
        SqlType::Int => put(wire, column, batch, |row| Some(i32::try_from(value(row)?).ok()?.to_le_bytes())),
        _ => put(wire, column, batch, |row| Some(value(row)?.to_le_bytes())),
    }
}

fn unscaled(values: &Values, row: usize) -> Option<i128> {
    Some(match values {
        Values::Decimal(v) => v[row],
        Values::UInt64(v) => v[row].into(),
        Values::Int64(v) => v[row].into(),
        Values::UInt32(v) => v[row].into(),
        Values::Int32(v) => v[row].into(),
        Values::UInt16(v) => v[row].into(),
        Values::Int16(v) => v[row].into(),
        Values::UInt8(v) => v[row].into(),
        Values::Int8(v) => v[row].into(),
        _ => return None,
    })
}

fn decimal_bytes(unscaled: i128, precision: u8, scale: u8, power: Power) -> Option<[u8; 19]> {
    let number = match power {
        Power::Times(power) => unscaled.checked_mul(power)?,
        Power::Over(power) => (unscaled % power == 0).then_some(unscaled / power)?,
    };
    let magnitude = number.unsigned_abs();
    if magnitude >= 10u128.pow(u32::from(precision)) {
        return None;
    }
    let mut bytes = [0u8; 19];
    bytes[..3].copy_from_slice(&[precision, scale, u8::from(number >= 0)]);
    bytes[3..].copy_from_slice(&magnitude.to_le_bytes());
    Some(bytes)
}

fn date_bytes(days_since_1970: i64) -> Option<[u8; 3]> {
    let days = days_since_1970 + DAYS_0001_TO_1970;
    let [a, b, c, ..] = days.to_le_bytes();
    (0..i64::from(DAYS_TO_10000)).contains(&days).then_some([a, b, c])
}

#[inline]
fn timestamp_bytes(micros: i64) -> Option<[u8; 8]> {
    if !(Instant::MIN.micros()..=Instant::MAX.micros()).contains(&micros) {
        return None;
    }
    // Counted from year 1 both parts are non-negative, so plain unsigned division is the floor.
    let since_year_1 = (micros - Instant::MIN.micros()) as u64;
    let days = since_year_1 / MICROS_PER_DAY as u64;
    let ticks = (since_year_1 % MICROS_PER_DAY as u64) * 10;
    // Five bytes of ticks, three of days; ticks of a day are below 2^40.
    Some((ticks | (days << 40)).to_le_bytes())
}

fn text(wire: &WireColumn, form: Form, column: &Column, texts: &StringColumn, batch: &mut Batch<'_>) -> bool {
    let rows = batch.cursor.len();
    let all = span(texts, batch.first, rows);
    let ascii = all.is_ascii();
    // Text must be UTF-8 row by row: valid as a whole, and no row ends inside a character.
    if form != Form::Binary && !ascii {
        let base = texts.bytes.len().min(if batch.first == 0 { 0 } else { texts.ends[batch.first - 1] as usize });
        let ends = &texts.ends[batch.first..batch.first + rows];
        match std::str::from_utf8(all) {
            Ok(all) if ends.iter().all(|end| all.is_char_boundary(*end as usize - base)) => {}
            _ => return false,
        }
    }
    let prefix = usize::from(wire.prefix_width);
    let bound = wire.max_payload().map_or(usize::MAX, |max| max as usize);
    let exact = wire.is_exact_length();
    for (index, at) in batch.cursor.iter_mut().enumerate() {
        let row = batch.first + index;
        let start = *at as usize;
        if column.is_null(row) {
            let Some(field) = batch.bytes.get_mut(start..start + prefix) else { return false };
            if !wire.nullable {
                return false;
            }
            field.fill(0xFF);
            *at += prefix as u32;
            continue;
        }
        let source = texts.get(row);
        let length = match form {
            Form::Wide if ascii => source.len() * 2,
            Form::Wide => utf16_units(source) * 2,
            _ => source.len(),
        };
        let Some(field) = batch.bytes.get_mut(start..start + prefix + length) else { return false };
        if length > bound || (exact && length != bound) {
            return false;
        }
        let (head, payload) = field.split_at_mut(prefix);
        head.copy_from_slice(&(length as u64).to_le_bytes()[..prefix]);
        match form {
            Form::Wide if ascii || source.len() * 2 == length => widen(source, payload),
            Form::Wide => transcode(source, payload),
            _ => payload.copy_from_slice(source),
        }
        *at += (prefix + length) as u32;
    }
    true
}

/// ASCII to UTF-16LE.
#[inline]
fn widen(ascii: &[u8], out: &mut [u8]) {
    for (unit, byte) in out.chunks_exact_mut(2).zip(ascii) {
        unit.copy_from_slice(&[*byte, 0]);
    }
}

/// Valid UTF-8 to UTF-16LE.
fn transcode(utf8: &[u8], out: &mut [u8]) {
    let text = std::str::from_utf8(utf8).unwrap_or_default();
    for (slot, unit) in out.chunks_exact_mut(2).zip(text.encode_utf16()) {
        slot.copy_from_slice(&unit.to_le_bytes());
    }
}
