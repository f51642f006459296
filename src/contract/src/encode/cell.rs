//! One cell of a block as a [`Value`].

use super::value::{Decimal, Value};
use crate::block::{Column, Values};
use crate::civil::{DAYS_0001_TO_1970, MICROS_PER_DAY};
use crate::source_type::{SourceKind, SourceType};

/// Whether a block column holds the representation of `source` and at least `rows` cells.
pub(super) fn fits(column: &Column, source: &SourceType, rows: usize) -> bool {
    let same = matches!(
        (&column.values, source.kind),
        (Values::Int8(_), SourceKind::Int8)
            | (Values::Int16(_), SourceKind::Int16)
            | (Values::Int32(_), SourceKind::Int32)
            | (Values::Int64(_), SourceKind::Int64 | SourceKind::DateTime(_) | SourceKind::DateTime64 { .. })
            | (Values::UInt8(_), SourceKind::UInt8)
            | (Values::UInt16(_), SourceKind::UInt16)
            | (Values::UInt32(_), SourceKind::UInt32)
            | (Values::UInt64(_), SourceKind::UInt64)
            | (Values::Bool(_), SourceKind::Bool)
            | (Values::Float32(_), SourceKind::Float32)
            | (Values::Float64(_), SourceKind::Float64)
            | (Values::String(_), SourceKind::String)
            | (Values::Uuid(_), SourceKind::Uuid)
            | (Values::Date(_), SourceKind::Date)
            | (Values::Date32(_), SourceKind::Date32)
            | (Values::Decimal(_), SourceKind::Decimal { .. })
    );
    same && column.values.len() >= rows && column.nulls.as_ref().is_none_or(|nulls| nulls.len() >= rows)
}

/// The cell of row `row`; the column fits its type.
pub(super) fn value<'a>(column: &'a Column, source: &SourceType, row: usize) -> Value<'a> {
    if column.is_null(row) {
        return Value::Null;
    }
    match &column.values {
        Values::Int8(v) => Value::Int(v[row].into()),
        Values::Int16(v) => Value::Int(v[row].into()),
        Values::Int32(v) => Value::Int(v[row].into()),
        Values::Int64(v) if source.is_timestamp() => timestamp(v[row]),
        Values::Int64(v) => Value::Int(v[row].into()),
        Values::UInt8(v) => Value::Int(v[row].into()),
        Values::UInt16(v) => Value::Int(v[row].into()),
        Values::UInt32(v) => Value::Int(v[row].into()),
        Values::UInt64(v) => Value::Int(v[row].into()),
        Values::Bool(v) if v[row] > 1 => Value::Int(v[row].into()),
        Values::Bool(v) => Value::Bool(v[row] == 1),
        Values::Float32(v) => Value::Float(v[row].into()),
        Values::Float64(v) => Value::Float(v[row]),
        Values::String(v) => Value::SourceBytes(v.get(row)),
        Values::Uuid(v) => Value::Uuid(v[row]),
        Values::Date(v) => date(v[row].into()),
        Values::Date32(v) => date(v[row].into()),
        Values::Decimal(v) => {
            let scale = if let SourceKind::Decimal { scale, .. } = source.kind { scale } else { 0 };
            Value::Decimal(Decimal::from_unscaled(v[row], scale))
        }
    }
}

fn date(days_since_1970: i64) -> Value<'static> {
    // Out of range stays out of range: no date column takes a day below 0 or beyond year 9999.
    Value::Date(i32::try_from(days_since_1970 + DAYS_0001_TO_1970).unwrap_or(-1))
}

fn timestamp(micros: i64) -> Value<'static> {
    let days = micros.div_euclid(MICROS_PER_DAY) + DAYS_0001_TO_1970;
    let days = i32::try_from(days).unwrap_or(-1);
    Value::DateTime { days, ticks: micros.rem_euclid(MICROS_PER_DAY) * 10, offset_seconds: None }
}
