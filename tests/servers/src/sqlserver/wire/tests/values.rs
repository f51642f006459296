//! Cells: known bytes, and everything that is written is read back.

use proptest::prelude::*;

use super::super::super::value::{
    Bytes, Collation, Date, DateTime, DateTime2, DateTimeOffset, Decimal, Length, SmallDateTime, SqlType, Text, Time,
    Value,
};
use super::super::reader::Reader;
use super::super::source::DecodeError;
use super::super::type_info::WireType;
use super::super::values;
use super::hex;

fn announced(ty: SqlType, nullable: bool) -> Vec<u8> {
    let mut out = Vec::new();
    WireType::of(ty, nullable).put(&mut out);
    out
}

fn bytes(ty: SqlType, nullable: bool, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    values::put(&mut out, WireType::of(ty, nullable), value).expect("a value of its type");
    out
}

/// 2023-11-14 and 22:13:20.1234567 of it.
const DAY: i32 = 738_837;
const TICKS: u64 = 800_001_234_567;

#[test]
fn types_are_announced_in_the_form_of_their_nullability() {
    assert_eq!(announced(SqlType::Int, false), hex("38"));
    assert_eq!(announced(SqlType::Int, true), hex("26 04"));
    assert_eq!(announced(SqlType::BigInt, false), hex("7F"));
    assert_eq!(announced(SqlType::Float, true), hex("6D 08"));
    assert_eq!(announced(SqlType::Bit, true), hex("68 01"));
    assert_eq!(announced(SqlType::decimal(38, 0), false), hex("6A 11 26 00"));
    assert_eq!(announced(SqlType::DateTime2(6), false), hex("2A 06"));
    assert_eq!(announced(SqlType::Date, true), hex("28"));
    assert_eq!(announced(SqlType::NVARCHAR_MAX, true), hex("E7 FFFF 0904D00034"));
    assert_eq!(announced(SqlType::nvarchar(50), true), hex("E7 6400 0904D00034"));
    assert_eq!(announced(SqlType::varbinary(8000), true), hex("A5 401F"));
    assert_eq!(announced(SqlType::RowVersion, false), hex("AD 0800"));
    assert_eq!(announced(SqlType::SqlVariant, true), hex("62 491F0000"));
}

#[test]
fn cells_have_the_bytes_of_the_specification() {
    assert_eq!(bytes(SqlType::BigInt, false, &Value::BigInt(-2)), hex("FEFFFFFFFFFFFFFF"));
    assert_eq!(bytes(SqlType::BigInt, true, &Value::BigInt(-2)), hex("08 FEFFFFFFFFFFFFFF"));
    assert_eq!(bytes(SqlType::BigInt, true, &Value::Null), hex("00"));
    assert_eq!(bytes(SqlType::Float, true, &Value::Float(-0.0)), hex("08 0000000000000080"));
    assert_eq!(bytes(SqlType::Money, false, &Value::Money(-1)), hex("FFFFFFFF FFFFFFFF"));
    assert_eq!(bytes(SqlType::Money, false, &Value::Money(0x1_0000_0002)), hex("01000000 02000000"));
    let number = Value::Decimal(Decimal::new(-12345, 9, 2));
    assert_eq!(bytes(SqlType::decimal(9, 2), true, &number), hex("05 00 39300000"));
    assert_eq!(bytes(SqlType::decimal(38, 2), true, &number), hex("11 00 39300000 00000000 00000000 00000000"));
    assert_eq!(bytes(SqlType::NVARCHAR_MAX, true, &Value::text("")), hex("0000000000000000 00000000"));
    assert_eq!(bytes(SqlType::NVARCHAR_MAX, true, &Value::text("a")), hex("0200000000000000 02000000 6100 00000000"));
    assert_eq!(bytes(SqlType::NVARCHAR_MAX, true, &Value::Null), hex("FFFFFFFFFFFFFFFF"));
    assert_eq!(bytes(SqlType::nvarchar(5), true, &Value::text("")), hex("0000"));
    assert_eq!(bytes(SqlType::nvarchar(5), true, &Value::Null), hex("FFFF"));
    assert_eq!(bytes(SqlType::varchar(5), true, &Value::text("é€")), hex("0200 E980"), "code page 1252");
    let at = DateTime2 { days: DAY, ticks: TICKS };
    assert_eq!(bytes(SqlType::DateTime2(7), false, &Value::DateTime2(at)), hex("08 8716CA43BA 15460B"));
    let micros = DateTime2 { days: DAY, ticks: TICKS / 10 * 10 };
    assert_eq!(bytes(SqlType::DateTime2(6), false, &Value::DateTime2(micros))[..1], hex("08"));
    let seconds = DateTime2 { days: DAY, ticks: 800_000_000_000 };
    assert_eq!(bytes(SqlType::DateTime2(0), false, &Value::DateTime2(seconds)), hex("06 803801 15460B"));
}

/// `sql_variant`: base type, facet bytes, facets, value.
#[test]
fn variants_carry_their_base_type() {
    let variant = |ty, value| bytes(SqlType::SqlVariant, true, &Value::Variant(std::sync::Arc::new((ty, value))));
    assert_eq!(variant(SqlType::Int, Value::Int(7)), hex("06000000 38 00 07000000"));
    let text = variant(SqlType::nvarchar(3), Value::text("ab"));
    assert_eq!(text, hex("0D000000 E7 07 0904D00034 0600 61006200"));
    assert_eq!(bytes(SqlType::SqlVariant, true, &Value::Null), hex("00000000"));
}

#[test]
fn a_value_that_is_not_of_its_column_is_refused() {
    let refused =
        |ty, nullable, value: &Value| values::put(&mut Vec::new(), WireType::of(ty, nullable), value).is_err();
    assert!(refused(SqlType::Int, false, &Value::Null));
    assert!(refused(SqlType::Int, true, &Value::BigInt(1)));
    assert!(refused(SqlType::decimal(5, 1), true, &Value::Decimal(Decimal::new(1, 5, 2))), "it would be cut");
    assert!(refused(SqlType::decimal(9, 0), true, &Value::Decimal(Decimal::new(1 << 40, 38, 0))));
}

/// Any type that a client may send, with any of its values.
fn typed_value() -> impl Strategy<Value = (SqlType, Value)> {
    let length = prop_oneof![(1u16..=4000).prop_map(Length::Sized), Just(Length::Max)];
    let units = prop::collection::vec(any::<u16>(), 0..20);
    let scale = 0u8..=7;
    let days = 0i32..=3_652_058;
    let ticks = 0u64..864_000_000_000;
    let whole = |ticks: u64, scale: u8| ticks - ticks % 10u64.pow(u32::from(7 - scale));
    prop_oneof![
        any::<bool>().prop_map(|v| (SqlType::Bit, Value::Bit(v))),
        any::<u8>().prop_map(|v| (SqlType::TinyInt, Value::TinyInt(v))),
        any::<i16>().prop_map(|v| (SqlType::SmallInt, Value::SmallInt(v))),
        any::<i32>().prop_map(|v| (SqlType::Int, Value::Int(v))),
        any::<i64>().prop_map(|v| (SqlType::BigInt, Value::BigInt(v))),
        any::<i64>().prop_map(|v| (SqlType::Money, Value::Money(v))),
        any::<i32>().prop_map(|v| (SqlType::SmallMoney, Value::Money(v.into()))),
        any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|v| (SqlType::Float, Value::Float(v))),
        any::<f32>().prop_filter("finite", |v| v.is_finite()).prop_map(|v| (SqlType::Real, Value::Real(v))),
        (1u8..=38, any::<i128>()).prop_flat_map(|(precision, any)| {
            let value = any % 10i128.pow(u32::from(precision));
            (0..=precision).prop_map(move |scale| {
                (SqlType::Decimal { precision, scale }, Value::Decimal(Decimal::new(value, precision, scale)))
            })
        }),
        (length, units).prop_map(|(length, units)| {
            let fitting = units.len().min(length.limit());
            (SqlType::NVarChar(length, Collation::DEFAULT), Value::String(Text::from_units(&units[..fitting])))
        }),
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| (SqlType::VARBINARY_MAX, Value::Binary(Bytes::from(bytes)))),
        "[ -~é€]{0,30}".prop_map(|text| (SqlType::varchar(30), Value::text(&text))),
        any::<[u8; 16]>().prop_map(|guid| (SqlType::UniqueIdentifier, Value::Guid(guid))),
        days.clone().prop_map(|days| (SqlType::Date, Value::Date(Date { days }))),
        (ticks.clone(), scale.clone()).prop_map(move |(ticks, scale)| {
            (SqlType::Time(scale), Value::Time(Time { ticks: whole(ticks, scale) }))
        }),
        (days.clone(), ticks.clone(), scale.clone()).prop_map(move |(days, ticks, scale)| {
            (SqlType::DateTime2(scale), Value::DateTime2(DateTime2 { days, ticks: whole(ticks, scale) }))
        }),
        (days, ticks, scale, -840i16..=840).prop_map(move |(days, ticks, scale, offset_minutes)| {
            let utc = DateTime2 { days, ticks: whole(ticks, scale) };
            (SqlType::DateTimeOffset(scale), Value::DateTimeOffset(DateTimeOffset { utc, offset_minutes }))
        }),
        (-53_690i32..=2_958_463, 0u32..25_920_000)
            .prop_map(|(days, ticks)| (SqlType::DateTime, Value::DateTime(DateTime { days, ticks }))),
        (any::<u16>(), 0u16..1440).prop_map(|(days, minutes)| (
            SqlType::SmallDateTime,
            Value::SmallDateTime(SmallDateTime { days, minutes })
        )),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((ty, value) in typed_value(), nullable in any::<bool>()) {
        let mut message = announced(ty, nullable);
        message.extend(bytes(ty, nullable, &value));
        let mut reader = Reader::new(&message);
        let wire = WireType::parse(&mut reader).unwrap();
        prop_assert_eq!(wire.ty, ty);
        prop_assert_eq!(values::read(&mut reader, wire, &mut Vec::new()).unwrap(), value);
        prop_assert!(reader.is_empty());
        for length in 0..message.len() {
            let mut reader = Reader::new(&message[..length]);
            let outcome = WireType::parse(&mut reader).and_then(|wire| values::read(&mut reader, wire, &mut Vec::new()));
            prop_assert_eq!(outcome.unwrap_err(), DecodeError::Truncated);
        }
    }
}
