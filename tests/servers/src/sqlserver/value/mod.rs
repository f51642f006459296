//! Values, types, conversions, operators and built-in functions of SQL Server, without any I/O.
//!
//! Reading order: [`SqlType`] and [`Value`] (what a cell is), [`Collation`] (how text compares and
//! which bytes a `varchar` has), [`cast`] and [`check_conversion`] (CAST, CONVERT, assignment),
//! [`BinaryOperation`] and [`compare`] (operators), [`resolve_function`] (scalar built-ins).
//!
//! Everything that the server decides before it sees a row (types, "not allowed" errors) is decided
//! by functions over [`SqlType`]; what depends on the row is decided by functions over [`Value`].
//! Errors carry SQL Server's number, class, state and text ([`ValueError`]).

mod bytes;
mod collation;
mod conversion;
mod decimal;
mod declaration;
mod error;
mod function;
mod literal;
mod operator;
mod temporal;
mod types;

#[cfg(test)]
mod tests;

pub use bytes::{Bytes, Text};
pub use collation::{Coercibility, Collation};
pub use conversion::{CastOptions, Strictness, assign, cast, check_conversion, try_cast};
pub use decimal::Decimal;
pub use error::ValueError;
pub use function::{Argument, FunctionContext, ScalarFunction, function_names, resolve_function};
pub use literal::{binary_literal, money_literal, number_literal, string_literal};
pub use operator::{
    BinaryOperation, BinaryOperator, Comparison, UnaryOperator, common_type, compare, hash_key, like, sort_key, unary,
    unary_type,
};
pub use temporal::{Date, DateFormat, DateTime, DateTime2, DateTimeOffset, SmallDateTime, Time};
pub use types::{Length, SqlType};

use std::sync::Arc;

/// One cell. The type of the cell ([`SqlType`]) is kept beside it, once per column.
///
/// 32 bytes; cloning never copies more than that (long texts and binaries are shared).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// `bit`.
    Bit(bool),
    /// `tinyint`, 0 to 255.
    TinyInt(u8),
    /// `smallint`.
    SmallInt(i16),
    /// `int`.
    Int(i32),
    /// `bigint`.
    BigInt(i64),
    /// `decimal` and `numeric`.
    Decimal(Decimal),
    /// `money` and `smallmoney`, in ten-thousandths.
    Money(i64),
    /// `real`, never NaN or infinite.
    Real(f32),
    /// `float`, never NaN or infinite.
    Float(f64),
    /// `char`, `varchar`, `nchar`, `nvarchar` and their legacy kin, as UTF-16 code units.
    String(Text),
    /// `binary`, `varbinary`, `image`, `rowversion`.
    Binary(Bytes),
    /// `date`.
    Date(Date),
    /// `time(n)`.
    Time(Time),
    /// `datetime2(n)`.
    DateTime2(DateTime2),
    /// `datetimeoffset(n)`.
    DateTimeOffset(DateTimeOffset),
    /// `datetime`.
    DateTime(DateTime),
    /// `smalldatetime`.
    SmallDateTime(SmallDateTime),
    /// `uniqueidentifier`, in the byte order in which SQL Server stores it (first three groups little-endian).
    Guid([u8; 16]),
    /// `sql_variant`: a value with its base type.
    Variant(Arc<(SqlType, Value)>),
}

impl Value {
    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A character value.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::String(Text::from(text))
    }

    /// A binary value.
    #[must_use]
    pub fn binary(bytes: &[u8]) -> Self {
        Self::Binary(Bytes::from(bytes))
    }

    /// The value of an integer family cell (`bit`, `tinyint` ... `bigint`).
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Bit(value) => Some(i64::from(*value)),
            Self::TinyInt(value) => Some(i64::from(*value)),
            Self::SmallInt(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(i64::from(*value)),
            Self::BigInt(value) => Some(*value),
            _ => None,
        }
    }
}
