//! Row bytes: how a row is kept in pages, in the redo log and in catalog documents.
//!
//! A row is a sequence of values. A value is a tag byte and its payload, so that a row can be read without
//! its table: rows written before a column was added simply end earlier (the missing values are NULL).
//!
//! | tag | payload |
//! |---|---|
//! | 0 NULL, 1 false, 2 true | none |
//! | 3 tinyint, 4 smallint, 5 int, 6 bigint, 8 money, 9 real, 10 float | little-endian, natural width |
//! | 7 decimal | precision, scale, magnitude length, two's complement little-endian without redundant sign bytes |
//! | 11 text | LEB128 length, UTF-16LE bytes |
//! | 12 text of units below 256 | LEB128 length, one byte per unit |
//! | 13 binary | LEB128 length, bytes |
//! | 14 date, 15 time, 16 datetime2, 17 datetimeoffset | days (4), ticks (5), days + ticks, days + ticks + offset (2) |
//! | 18 datetime, 19 smalldatetime, 20 guid | days (4) + ticks (4), days (2) + minutes (2), 16 bytes |
//! | 21 `sql_variant` | LEB128 length, JSON of its base type, value |

use std::sync::Arc;

use super::catalog::serde_value::{type_from_json, type_to_json};
use super::error::StoreError;
use crate::sqlserver::value::{
    Bytes, Date, DateTime, DateTime2, DateTimeOffset, Decimal, SmallDateTime, Text, Time, Value,
};

const BAD: StoreError = StoreError::BadBytes("row bytes");
/// Variants do not nest in SQL Server; the bound keeps decoding of foreign bytes from recursing.
const MAX_VARIANT_DEPTH: u8 = 1;

/// Appends an unsigned LEB128 number.
pub(crate) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        #[allow(clippy::cast_possible_truncation, reason = "seven bits are kept")]
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    #[allow(clippy::cast_possible_truncation, reason = "below 0x80")]
    out.push(number as u8);
}

/// Appends the bytes of a row.
pub(crate) fn encode_row(row: &[Value], out: &mut Vec<u8>) {
    for value in row {
        encode_value(value, out);
    }
}

/// Appends one value.
pub(crate) fn encode_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bit(bit) => out.push(1 + u8::from(*bit)),
        Value::TinyInt(it) => out.extend_from_slice(&[3, *it]),
        Value::SmallInt(it) => put(out, 4, &it.to_le_bytes()),
        Value::Int(it) => put(out, 5, &it.to_le_bytes()),
        Value::BigInt(it) => put(out, 6, &it.to_le_bytes()),
        Value::Decimal(it) => encode_decimal(it, out),
        Value::Money(it) => put(out, 8, &it.to_le_bytes()),
        Value::Real(it) => put(out, 9, &it.to_le_bytes()),
        Value::Float(it) => put(out, 10, &it.to_le_bytes()),
        Value::String(text) => encode_text(text, out),
        Value::Binary(bytes) => {
            out.push(13);
            put_varint(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
        Value::Date(it) => put(out, 14, &it.days.to_le_bytes()),
        Value::Time(it) => put(out, 15, &it.ticks.to_le_bytes()[..5]),
        Value::DateTime2(it) => encode_datetime2(16, it, out),
        Value::DateTimeOffset(it) => {
            encode_datetime2(17, &it.utc, out);
            out.extend_from_slice(&it.offset_minutes.to_le_bytes());
        }
        Value::DateTime(it) => {
            put(out, 18, &it.days.to_le_bytes());
            out.extend_from_slice(&it.ticks.to_le_bytes());
        }
        Value::SmallDateTime(it) => {
            put(out, 19, &it.days.to_le_bytes());
            out.extend_from_slice(&it.minutes.to_le_bytes());
        }
        Value::Guid(bytes) => put(out, 20, bytes),
        Value::Variant(variant) => {
            let ty = type_to_json(&variant.0);
            out.push(21);
            put_varint(ty.len() as u64, out);
            out.extend_from_slice(ty.as_bytes());
            encode_value(&variant.1, out);
        }
    }
}

fn put(out: &mut Vec<u8>, tag: u8, payload: &[u8]) {
    out.push(tag);
    out.extend_from_slice(payload);
}

fn encode_decimal(decimal: &Decimal, out: &mut Vec<u8>) {
    let bytes = decimal.unscaled().to_le_bytes();
    let sign = if decimal.unscaled() < 0 { 0xff } else { 0 };
    let mut length = bytes.len();
    while length > 1 && bytes[length - 1] == sign && (bytes[length - 2] ^ sign) & 0x80 == 0 {
        length -= 1;
    }
    #[allow(clippy::cast_possible_truncation, reason = "at most 16")]
    out.extend_from_slice(&[7, decimal.precision(), decimal.scale(), length as u8]);
    out.extend_from_slice(&bytes[..length]);
}

fn encode_text(text: &Text, out: &mut Vec<u8>) {
    let bytes = text.as_utf16le();
    let narrow = bytes.len() >= 2 && bytes.chunks_exact(2).all(|unit| unit[1] == 0);
    if narrow {
        out.push(12);
        put_varint((bytes.len() / 2) as u64, out);
        out.extend(bytes.chunks_exact(2).map(|unit| unit[0]));
    } else {
        out.push(11);
        put_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }
}

fn encode_datetime2(tag: u8, value: &DateTime2, out: &mut Vec<u8>) {
    put(out, tag, &value.days.to_le_bytes());
    out.extend_from_slice(&value.ticks.to_le_bytes()[..5]);
}

/// Reads bounded fields from foreign bytes.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], StoreError> {
        let (head, tail) = self.bytes.split_at_checked(length).ok_or(BAD)?;
        self.bytes = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        self.take(N)?.try_into().map_err(|_| BAD)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, StoreError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn i32(&mut self) -> Result<i32, StoreError> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i128(&mut self) -> Result<i128, StoreError> {
        self.array().map(i128::from_le_bytes)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, StoreError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(BAD);
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BAD)
    }

    /// A byte string with its LEB128 length.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8], StoreError> {
        let length = usize::try_from(self.varint()?).map_err(|_| BAD)?;
        self.take(length)
    }

    fn ticks(&mut self) -> Result<u64, StoreError> {
        let mut bytes = [0; 8];
        bytes[..5].copy_from_slice(self.take(5)?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn datetime2(&mut self) -> Result<DateTime2, StoreError> {
        Ok(DateTime2 { days: self.i32()?, ticks: self.ticks()? })
    }

    /// The next value.
    pub(crate) fn value(&mut self) -> Result<Value, StoreError> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: u8) -> Result<Value, StoreError> {
        Ok(match self.u8()? {
            0 => Value::Null,
            1 => Value::Bit(false),
            2 => Value::Bit(true),
            3 => Value::TinyInt(self.u8()?),
            4 => Value::SmallInt(i16::from_le_bytes(self.array()?)),
            5 => Value::Int(self.i32()?),
            6 => Value::BigInt(i64::from_le_bytes(self.array()?)),
            7 => Value::Decimal(self.decimal()?),
            8 => Value::Money(i64::from_le_bytes(self.array()?)),
            9 => Value::Real(f32::from_le_bytes(self.array()?)),
            10 => Value::Float(f64::from_le_bytes(self.array()?)),
            11 => {
                let bytes = self.counted()?;
                if bytes.len() % 2 != 0 {
                    return Err(BAD);
                }
                Value::String(Text::from_utf16le(bytes))
            }
            12 => {
                let units = self.counted()?;
                let mut wide = Vec::with_capacity(2 * units.len());
                wide.extend(units.iter().flat_map(|unit| [*unit, 0]));
                Value::String(Text::from_utf16le(wide))
            }
            13 => Value::Binary(Bytes::from(self.counted()?)),
            14 => Value::Date(Date { days: self.i32()? }),
            15 => Value::Time(Time { ticks: self.ticks()? }),
            16 => Value::DateTime2(self.datetime2()?),
            17 => Value::DateTimeOffset(DateTimeOffset {
                utc: self.datetime2()?,
                offset_minutes: i16::from_le_bytes(self.array()?),
            }),
            18 => Value::DateTime(DateTime { days: self.i32()?, ticks: u32::from_le_bytes(self.array()?) }),
            19 => Value::SmallDateTime(SmallDateTime {
                days: u16::from_le_bytes(self.array()?),
                minutes: u16::from_le_bytes(self.array()?),
            }),
            20 => Value::Guid(self.array()?),
            21 if depth < MAX_VARIANT_DEPTH => {
                let ty = std::str::from_utf8(self.counted()?).ok().and_then(type_from_json).ok_or(BAD)?;
                Value::Variant(Arc::new((ty, self.value_at(depth + 1)?)))
            }
            _ => return Err(BAD),
        })
    }

    fn decimal(&mut self) -> Result<Decimal, StoreError> {
        let [precision, scale, length] = self.array()?;
        let payload = self.take(usize::from(length))?;
        let last = *payload.last().ok_or(BAD)?;
        if payload.len() > 16 {
            return Err(BAD);
        }
        let mut bytes = [if last & 0x80 == 0 { 0 } else { 0xff }; 16];
        bytes[..payload.len()].copy_from_slice(payload);
        Ok(Decimal::new(i128::from_le_bytes(bytes), precision, scale))
    }

    /// Passes over the next value.
    pub(crate) fn skip(&mut self) -> Result<(), StoreError> {
        let fixed = match self.u8()? {
            0..=2 => 0,
            3 => 1,
            4 => 2,
            5 | 9 | 14 | 19 => 4,
            6 | 8 | 10 | 18 => 8,
            7 => usize::from(self.array::<3>()?[2]),
            11..=13 => {
                self.counted()?;
                0
            }
            15 => 5,
            16 => 9,
            17 => 11,
            20 => 16,
            21 => {
                self.counted()?;
                self.value_at(MAX_VARIANT_DEPTH)?;
                0
            }
            _ => return Err(BAD),
        };
        self.take(fixed).map(|_| ())
    }
}

/// Decodes all values of a row, adding NULL for columns that the row does not have yet.
pub(crate) fn decode_row(bytes: &[u8], columns: usize, out: &mut Vec<Value>) -> Result<(), StoreError> {
    let mut reader = Reader::new(bytes);
    for _ in 0..columns {
        out.push(if reader.is_empty() { Value::Null } else { reader.value()? });
    }
    Ok(())
}

/// Decodes the values that are `needed` into their places of `out`; the others keep what they are.
pub(crate) fn decode_needed(bytes: &[u8], needed: &[bool], out: &mut [Value]) -> Result<(), StoreError> {
    let mut reader = Reader::new(bytes);
    let end = needed.iter().rposition(|it| *it).map_or(0, |last| last + 1);
    for (place, needed) in out.iter_mut().zip(&needed[..end]) {
        match (*needed, reader.is_empty()) {
            (true, false) => *place = reader.value()?,
            (true, true) => *place = Value::Null,
            (false, false) => reader.skip()?,
            (false, true) => {}
        }
    }
    Ok(())
}

/// Decodes the value at `position`, NULL where the row ends before it.
pub(crate) fn decode_column(bytes: &[u8], position: usize) -> Result<Value, StoreError> {
    let mut reader = Reader::new(bytes);
    for _ in 0..position {
        if reader.is_empty() {
            return Ok(Value::Null);
        }
        reader.skip()?;
    }
    if reader.is_empty() { Ok(Value::Null) } else { reader.value() }
}

/// Decodes bytes that hold exactly one value.
pub(crate) fn decode_single(bytes: &[u8]) -> Result<Value, StoreError> {
    let mut reader = Reader::new(bytes);
    let value = reader.value()?;
    if reader.is_empty() { Ok(value) } else { Err(BAD) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sqlserver::value::SqlType;

    /// One value of each kind.
    fn value() -> impl Strategy<Value = Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bit),
            any::<u8>().prop_map(Value::TinyInt),
            any::<i16>().prop_map(Value::SmallInt),
            any::<i32>().prop_map(Value::Int),
            any::<i64>().prop_map(Value::BigInt),
            (any::<i128>(), 1u8..=38, 0u8..=38).prop_map(|(n, p, s)| Value::Decimal(Decimal::new(n >> 2, p, s))),
            (-300i128..300).prop_map(|n| Value::Decimal(Decimal::new(n, 10, 2))),
            any::<i64>().prop_map(Value::Money),
            (-1e30f32..1e30).prop_map(Value::Real),
            (-1e300f64..1e300).prop_map(Value::Float),
            prop::collection::vec(any::<u16>(), 0..40).prop_map(|units| Value::String(Text::from_units(&units))),
            "[ -~]{0,40}".prop_map(|text| Value::text(&text)),
            prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| Value::binary(&bytes)),
            (0..3_652_058i32).prop_map(|days| Value::Date(Date { days })),
            (0..864_000_000_000u64).prop_map(|ticks| Value::Time(Time { ticks })),
        ];
        let temporal = prop_oneof![
            (any::<i32>(), 0..864_000_000_000u64).prop_map(|(days, ticks)| Value::DateTime2(DateTime2 { days, ticks })),
            (any::<i32>(), 0..864_000_000_000u64, any::<i16>()).prop_map(|(days, ticks, offset_minutes)| {
                Value::DateTimeOffset(DateTimeOffset { utc: DateTime2 { days, ticks }, offset_minutes })
            }),
            (any::<i32>(), any::<u32>()).prop_map(|(days, ticks)| Value::DateTime(DateTime { days, ticks })),
            (any::<u16>(), any::<u16>())
                .prop_map(|(days, minutes)| Value::SmallDateTime(SmallDateTime { days, minutes })),
            any::<[u8; 16]>().prop_map(Value::Guid),
            any::<i32>().prop_map(|n| Value::Variant(Arc::new((SqlType::Int, Value::Int(n))))),
            Just(Value::Variant(Arc::new((SqlType::nvarchar(5), Value::text("abc"))))),
        ];
        prop_oneof![plain, temporal]
    }

    proptest! {
        #[test]
        fn rows_come_back(row in prop::collection::vec(value(), 0..12), added in 0usize..3, pattern in any::<u16>()) {
            let mut bytes = Vec::new();
            encode_row(&row, &mut bytes);
            let mut decoded = Vec::new();
            decode_row(&bytes, row.len() + added, &mut decoded).unwrap();
            let mut expected = row.clone();
            expected.resize(row.len() + added, Value::Null);
            prop_assert_eq!(&decoded, &expected);
            for (position, value) in expected.iter().enumerate() {
                prop_assert_eq!(&decode_column(&bytes, position).unwrap(), value);
            }
            let needed: Vec<bool> = (0..expected.len()).map(|position| pattern >> position & 1 == 1).collect();
            let mut partly = vec![Value::Int(-7); expected.len()];
            decode_needed(&bytes, &needed, &mut partly).unwrap();
            for ((value, needed), expected) in partly.iter().zip(&needed).zip(&expected) {
                prop_assert_eq!(value, if *needed { expected } else { &Value::Int(-7) });
            }
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            let _outcome = decode_row(&bytes, 20, &mut out);
            for position in 0..20 {
                let _outcome = decode_column(&bytes, position);
            }
        }

        #[test]
        fn numbers_come_back(number in any::<u64>()) {
            let mut bytes = Vec::new();
            put_varint(number, &mut bytes);
            prop_assert_eq!(Reader::new(&bytes).varint().unwrap(), number);
        }
    }
}
