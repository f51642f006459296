//! Cells on the wire (MS-TDS 2.2.5.5 and 2.2.7.19): encoder for results, decoder for parameters and bulk rows.

use super::super::value::{
    Collation, Date, DateTime, DateTime2, DateTimeOffset, Decimal, SmallDateTime, SqlType, Text, Time, Value,
};
use super::source::{DecodeError, Source};
use super::type_info::{Form, WireType, token};

const PLP_NULL: u64 = u64::MAX;
const PLP_UNKNOWN_LENGTH: u64 = u64::MAX - 1;
/// Largest (max) value: 2^31 - 1 bytes.
const MAX_LARGE_BYTES: u64 = (1 << 31) - 1;
const SHORT_NULL: u16 = 0xFFFF;
const LONG_NULL: u32 = u32::MAX;
const TEXT_POINTER_BYTES: u8 = 16;
const TEXT_TIMESTAMP_BYTES: usize = 8;
const TICKS_PER_DAY: u64 = 864_000_000_000;
/// Day number of 9999-12-31, counted from 0001-01-01.
const LAST_DAY: i32 = 3_652_058;
/// First and last day of `datetime`, counted from 1900-01-01: 1753-01-01 and 9999-12-31.
const DATETIME_DAYS: std::ops::RangeInclusive<i32> = -53_690..=2_958_463;
/// 1/300 s in a day.
const DATETIME_TICKS_PER_DAY: u32 = 25_920_000;
const MINUTES_PER_DAY: u16 = 1440;
const MAX_OFFSET_MINUTES: i16 = 840;

/// A cell whose value does not belong to the type of its column: a fault of the engine, never of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch;

/// Appends one cell of a column of type `wire`.
pub(crate) fn put(out: &mut Vec<u8>, wire: WireType, value: &Value) -> Result<(), Mismatch> {
    if value.is_null() {
        return put_null(out, wire.form);
    }
    match wire.form {
        Form::Nothing | Form::LongLength => Err(Mismatch),
        Form::Fixed => put_bytes(out, wire.ty, value),
        Form::ByteLength => with_length(out, 1, |out| put_bytes(out, wire.ty, value)),
        Form::ShortLength => with_length(out, 2, |out| put_bytes(out, wire.ty, value)),
        Form::PartialLength => put_partial(out, wire.ty, value),
        Form::TextPointer => {
            // No client uses the pointer and the timestamp any more; only their lengths matter.
            out.push(TEXT_POINTER_BYTES);
            out.resize(out.len() + usize::from(TEXT_POINTER_BYTES) + TEXT_TIMESTAMP_BYTES, 0);
            with_length(out, 4, |out| put_bytes(out, wire.ty, value))
        }
        Form::Variant => with_length(out, 4, |out| put_variant(out, value)),
    }
}

fn put_null(out: &mut Vec<u8>, form: Form) -> Result<(), Mismatch> {
    match form {
        Form::Nothing => {}
        Form::Fixed | Form::LongLength => return Err(Mismatch),
        Form::ByteLength | Form::TextPointer => out.push(0),
        Form::ShortLength => out.extend_from_slice(&SHORT_NULL.to_le_bytes()),
        Form::PartialLength => out.extend_from_slice(&PLP_NULL.to_le_bytes()),
        Form::Variant => out.extend_from_slice(&[0; 4]),
    }
    Ok(())
}

/// Runs `write` and puts the number of bytes it wrote in front, in `width` bytes.
fn with_length(
    out: &mut Vec<u8>,
    width: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Mismatch>,
) -> Result<(), Mismatch> {
    let at = out.len();
    out.resize(at + width, 0);
    write(out)?;
    let length = u32::try_from(out.len() - at - width).map_err(|_| Mismatch)?;
    if width < 4 && length >= 1 << (8 * width) {
        return Err(Mismatch);
    }
    out[at..at + width].copy_from_slice(&length.to_le_bytes()[..width]);
    Ok(())
}

fn put_partial(out: &mut Vec<u8>, ty: SqlType, value: &Value) -> Result<(), Mismatch> {
    let at = out.len();
    out.resize(at + 12, 0);
    put_bytes(out, ty, value)?;
    let length = u32::try_from(out.len() - at - 12).map_err(|_| Mismatch)?;
    out[at..at + 8].copy_from_slice(&u64::from(length).to_le_bytes());
    if length == 0 {
        // No chunk at all: the four bytes that were kept for its length are the terminator.
        return Ok(());
    }
    out[at + 8..at + 12].copy_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    Ok(())
}

/// Appends the bytes of a value without any prefix.
fn put_bytes(out: &mut Vec<u8>, ty: SqlType, value: &Value) -> Result<(), Mismatch> {
    match (ty, value) {
        (SqlType::Bit, Value::Bit(bit)) => out.push(u8::from(*bit)),
        (SqlType::TinyInt, Value::TinyInt(number)) => out.push(*number),
        (SqlType::SmallInt, Value::SmallInt(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (SqlType::Int, Value::Int(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (SqlType::BigInt, Value::BigInt(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (SqlType::Real, Value::Real(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (SqlType::Float, Value::Float(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (SqlType::Decimal { .. }, Value::Decimal(number)) => put_decimal(out, ty, *number)?,
        (SqlType::Money, Value::Money(number)) => {
            // The high half comes first, each half little-endian.
            out.extend_from_slice(&number.to_le_bytes()[4..]);
            out.extend_from_slice(&number.to_le_bytes()[..4]);
        }
        (SqlType::SmallMoney, Value::Money(number)) => {
            out.extend_from_slice(&i32::try_from(*number).map_err(|_| Mismatch)?.to_le_bytes());
        }
        (
            SqlType::Char(_, collation) | SqlType::VarChar(_, collation) | SqlType::Text(collation),
            Value::String(text),
        ) => {
            out.extend_from_slice(&collation.encode(text));
        }
        (SqlType::NChar(..) | SqlType::NVarChar(..) | SqlType::NText(_), Value::String(text)) => {
            out.extend_from_slice(text.as_utf16le());
        }
        (SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Image | SqlType::RowVersion, Value::Binary(bytes)) => {
            out.extend_from_slice(bytes);
        }
        (SqlType::UniqueIdentifier, Value::Guid(bytes)) => out.extend_from_slice(bytes),
        _ => return put_temporal(out, ty, value),
    }
    Ok(())
}

fn put_temporal(out: &mut Vec<u8>, ty: SqlType, value: &Value) -> Result<(), Mismatch> {
    match (ty, value) {
        (SqlType::Date, Value::Date(date)) => put_days(out, date.days)?,
        (SqlType::Time(scale), Value::Time(time)) => put_ticks(out, time.ticks, scale),
        (SqlType::DateTime2(scale), Value::DateTime2(at)) => {
            put_ticks(out, at.ticks, scale);
            put_days(out, at.days)?;
        }
        (SqlType::DateTimeOffset(scale), Value::DateTimeOffset(at)) => {
            put_ticks(out, at.utc.ticks, scale);
            put_days(out, at.utc.days)?;
            out.extend_from_slice(&at.offset_minutes.to_le_bytes());
        }
        (SqlType::DateTime, Value::DateTime(at)) => {
            out.extend_from_slice(&at.days.to_le_bytes());
            out.extend_from_slice(&at.ticks.to_le_bytes());
        }
        (SqlType::SmallDateTime, Value::SmallDateTime(at)) => {
            out.extend_from_slice(&at.days.to_le_bytes());
            out.extend_from_slice(&at.minutes.to_le_bytes());
        }
        _ => return Err(Mismatch),
    }
    Ok(())
}

fn put_days(out: &mut Vec<u8>, days: i32) -> Result<(), Mismatch> {
    if !(0..=LAST_DAY).contains(&days) {
        return Err(Mismatch);
    }
    out.extend_from_slice(&days.to_le_bytes()[..3]);
    Ok(())
}

fn put_ticks(out: &mut Vec<u8>, ticks: u64, scale: u8) {
    let scaled = ticks / ticks_per_unit(scale);
    out.extend_from_slice(&scaled.to_le_bytes()[..time_bytes(scale)]);
}

fn put_decimal(out: &mut Vec<u8>, ty: SqlType, number: Decimal) -> Result<(), Mismatch> {
    let missing_digits = u32::from(ty.scale().checked_sub(number.scale()).ok_or(Mismatch)?);
    let unscaled = 10i128.checked_pow(missing_digits).and_then(|factor| number.unscaled().checked_mul(factor));
    let unscaled = unscaled.ok_or(Mismatch)?;
    let magnitude_bytes = usize::try_from(ty.max_length_bytes() - 1).map_err(|_| Mismatch)?;
    let magnitude = unscaled.unsigned_abs().to_le_bytes();
    if magnitude[magnitude_bytes..].iter().any(|byte| *byte != 0) {
        return Err(Mismatch);
    }
    out.push(u8::from(unscaled >= 0));
    out.extend_from_slice(&magnitude[..magnitude_bytes]);
    Ok(())
}

/// `sql_variant`: base type token, number of facet bytes, facets, value (MS-TDS 2.2.5.5.4).
fn put_variant(out: &mut Vec<u8>, value: &Value) -> Result<(), Mismatch> {
    let Value::Variant(inner) = value else { return Err(Mismatch) };
    let (ty, value) = &**inner;
    let wire = WireType::of(*ty, false);
    out.push(wire.token);
    match *ty {
        SqlType::Decimal { precision, scale } => out.extend_from_slice(&[2, precision, scale]),
        SqlType::Time(scale) | SqlType::DateTime2(scale) | SqlType::DateTimeOffset(scale) => {
            out.extend_from_slice(&[1, scale]);
        }
        _ if wire.form == Form::ShortLength => {
            let collation = ty.collation().map(|collation| collation.to_tds());
            out.push(if collation.is_some() { 7 } else { 2 });
            out.extend_from_slice(collation.as_ref().map_or(&[][..], |bytes| &bytes[..]));
            out.extend_from_slice(&ty.max_length_bytes().to_le_bytes());
        }
        _ if matches!(wire.form, Form::Fixed | Form::ByteLength) => out.push(0),
        _ => return Err(Mismatch),
    }
    put_bytes(out, *ty, value)
}

/// Reads one cell of type `wire`. `scratch` is where the chunks of a (max) value meet; it is kept from cell to cell so
/// that a short value costs no allocation of its own.
pub(crate) fn read(source: &mut impl Source, wire: WireType, scratch: &mut Vec<u8>) -> Result<Value, DecodeError> {
    let bytes = match wire.form {
        Form::Nothing => return Ok(Value::Null),
        Form::Fixed => {
            let length = usize::try_from(wire.ty.max_length_bytes()).map_err(|_| DecodeError::Length(wire.token))?;
            source.take(length)?
        }
        Form::ByteLength => match source.u8()? {
            0 => return Ok(Value::Null),
            length => source.take(usize::from(length))?,
        },
        Form::ShortLength => match source.u16()? {
            SHORT_NULL => return Ok(Value::Null),
            length => source.take(usize::from(length))?,
        },
        Form::PartialLength => {
            if !read_partial(source, scratch)? {
                return Ok(Value::Null);
            }
            return from_bytes(wire, scratch);
        }
        Form::TextPointer => {
            let pointer = source.u8()?;
            if pointer == 0 {
                return Ok(Value::Null);
            }
            source.take(usize::from(pointer) + TEXT_TIMESTAMP_BYTES)?;
            let length = source.u32()?;
            source.take(large_length(length, wire)?)?
        }
        Form::LongLength => match source.u32()? {
            LONG_NULL => return Ok(Value::Null),
            length => source.take(large_length(length, wire)?)?,
        },
        Form::Variant => match source.u32()? {
            0 => return Ok(Value::Null),
            _ => return Err(DecodeError::UnknownType(token::SQL_VARIANT)),
        },
    };
    from_bytes(wire, bytes)
}

fn large_length(length: u32, wire: WireType) -> Result<usize, DecodeError> {
    if u64::from(length) > MAX_LARGE_BYTES { Err(DecodeError::Length(wire.token)) } else { Ok(length as usize) }
}

/// A PLP value: announced length (or unknown), chunks, terminator. False for NULL.
fn read_partial(source: &mut impl Source, value: &mut Vec<u8>) -> Result<bool, DecodeError> {
    let announced = source.u64()?;
    if announced == PLP_NULL {
        return Ok(false);
    }
    value.clear();
    if announced != PLP_UNKNOWN_LENGTH && announced > MAX_LARGE_BYTES {
        return Err(DecodeError::Chunk);
    }
    loop {
        let chunk = source.u32()? as usize;
        if chunk == 0 {
            break;
        }
        let total = (value.len() + chunk) as u64;
        if total > MAX_LARGE_BYTES || (announced != PLP_UNKNOWN_LENGTH && total > announced) {
            return Err(DecodeError::Chunk);
        }
        value.extend_from_slice(source.take(chunk)?);
    }
    if announced != PLP_UNKNOWN_LENGTH && value.len() as u64 != announced {
        return Err(DecodeError::Chunk);
    }
    Ok(true)
}

fn text(ty: SqlType, bytes: &[u8]) -> Result<Text, DecodeError> {
    if !ty.is_unicode() {
        return Ok(ty.collation().unwrap_or(Collation::DEFAULT).decode(bytes));
    }
    if !bytes.len().is_multiple_of(2) {
        return Err(DecodeError::OddUnicode);
    }
    Ok(Text::from_utf16le(bytes))
}

/// A value from the bytes behind its prefix.
fn from_bytes(wire: WireType, bytes: &[u8]) -> Result<Value, DecodeError> {
    let length = DecodeError::Length(wire.token);
    let facet_limit = match wire.ty {
        SqlType::Char(..)
        | SqlType::VarChar(..)
        | SqlType::NChar(..)
        | SqlType::NVarChar(..)
        | SqlType::Binary(_)
        | SqlType::VarBinary(_) => usize::try_from(wire.ty.max_length_bytes()).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    if bytes.len() > facet_limit {
        return Err(length);
    }
    Ok(match wire.ty {
        SqlType::Bit => Value::Bit(exact::<1>(bytes, length)?[0] != 0),
        SqlType::TinyInt => Value::TinyInt(exact::<1>(bytes, length)?[0]),
        SqlType::SmallInt => Value::SmallInt(i16::from_le_bytes(exact(bytes, length)?)),
        SqlType::Int => Value::Int(i32::from_le_bytes(exact(bytes, length)?)),
        SqlType::BigInt => Value::BigInt(i64::from_le_bytes(exact(bytes, length)?)),
        SqlType::Real => {
            let number = f32::from_le_bytes(exact(bytes, length)?);
            Value::Real(if number.is_finite() { number } else { return Err(DecodeError::Value) })
        }
        SqlType::Float => {
            let number = f64::from_le_bytes(exact(bytes, length)?);
            Value::Float(if number.is_finite() { number } else { return Err(DecodeError::Value) })
        }
        SqlType::Decimal { precision, scale } => read_decimal(bytes, precision, scale, length)?,
        SqlType::SmallMoney => Value::Money(i64::from(i32::from_le_bytes(exact(bytes, length)?))),
        SqlType::Money => {
            let [h0, h1, h2, h3, l0, l1, l2, l3] = exact(bytes, length)?;
            Value::Money(i64::from_le_bytes([l0, l1, l2, l3, h0, h1, h2, h3]))
        }
        SqlType::UniqueIdentifier => Value::Guid(exact(bytes, length)?),
        SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Image | SqlType::RowVersion => Value::binary(bytes),
        ty if ty.is_character() => Value::String(text(ty, bytes)?),
        _ => return read_temporal(wire.ty, bytes, length),
    })
}

fn exact<const N: usize>(bytes: &[u8], error: DecodeError) -> Result<[u8; N], DecodeError> {
    bytes.try_into().map_err(|_| error)
}

fn read_decimal(bytes: &[u8], precision: u8, scale: u8, length: DecodeError) -> Result<Value, DecodeError> {
    let (sign, magnitude) = bytes.split_first().ok_or(length)?;
    if magnitude.len() > 16 || !magnitude.len().is_multiple_of(4) || *sign > 1 {
        return Err(length);
    }
    let mut wide = [0; 16];
    wide[..magnitude.len()].copy_from_slice(magnitude);
    let magnitude = u128::from_le_bytes(wide);
    let limit = 10u128.pow(u32::from(precision));
    if magnitude >= limit {
        return Err(DecodeError::Value);
    }
    // Below 10^38, so it fits with its sign.
    let magnitude = i128::try_from(magnitude).map_err(|_| DecodeError::Value)?;
    Ok(Value::Decimal(Decimal::new(if *sign == 1 { magnitude } else { -magnitude }, precision, scale)))
}

fn read_temporal(ty: SqlType, bytes: &[u8], length: DecodeError) -> Result<Value, DecodeError> {
    Ok(match ty {
        SqlType::Date => Value::Date(Date { days: read_days(bytes, length)? }),
        SqlType::Time(scale) => Value::Time(Time { ticks: read_ticks(bytes, scale, length)? }),
        SqlType::DateTime2(scale) => Value::DateTime2(read_date_time(bytes, scale, length)?),
        SqlType::DateTimeOffset(scale) => {
            let (at, offset) = bytes.split_last_chunk::<2>().ok_or(length)?;
            let offset_minutes = i16::from_le_bytes(*offset);
            if offset_minutes.abs() > MAX_OFFSET_MINUTES {
                return Err(DecodeError::Value);
            }
            Value::DateTimeOffset(DateTimeOffset { utc: read_date_time(at, scale, length)?, offset_minutes })
        }
        SqlType::DateTime => {
            let (days, ticks) = bytes.split_first_chunk::<4>().ok_or(length)?;
            let days = i32::from_le_bytes(*days);
            let ticks = u32::from_le_bytes(exact(ticks, length)?);
            if !DATETIME_DAYS.contains(&days) || ticks >= DATETIME_TICKS_PER_DAY {
                return Err(DecodeError::Value);
            }
            Value::DateTime(DateTime { days, ticks })
        }
        SqlType::SmallDateTime => {
            let (days, minutes) = bytes.split_first_chunk::<2>().ok_or(length)?;
            let minutes = u16::from_le_bytes(exact(minutes, length)?);
            if minutes >= MINUTES_PER_DAY {
                return Err(DecodeError::Value);
            }
            Value::SmallDateTime(SmallDateTime { days: u16::from_le_bytes(*days), minutes })
        }
        _ => return Err(DecodeError::Value),
    })
}

fn read_date_time(bytes: &[u8], scale: u8, length: DecodeError) -> Result<DateTime2, DecodeError> {
    let (ticks, days) = bytes.split_last_chunk::<3>().ok_or(length)?;
    Ok(DateTime2 { days: read_days(days, length)?, ticks: read_ticks(ticks, scale, length)? })
}

fn read_days(bytes: &[u8], length: DecodeError) -> Result<i32, DecodeError> {
    let [a, b, c] = exact(bytes, length)?;
    let days = i32::from_le_bytes([a, b, c, 0]);
    if days > LAST_DAY { Err(DecodeError::Value) } else { Ok(days) }
}

fn read_ticks(bytes: &[u8], scale: u8, length: DecodeError) -> Result<u64, DecodeError> {
    if bytes.len() != time_bytes(scale) {
        return Err(length);
    }
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let ticks = u64::from_le_bytes(wide).checked_mul(ticks_per_unit(scale)).ok_or(DecodeError::Value)?;
    if ticks >= TICKS_PER_DAY { Err(DecodeError::Value) } else { Ok(ticks) }
}

/// 100 ns ticks in the unit of a scale.
fn ticks_per_unit(scale: u8) -> u64 {
    10u64.pow(u32::from(7u8.saturating_sub(scale)))
}

fn time_bytes(scale: u8) -> usize {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}
