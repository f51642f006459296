//! What the resolvers share: counting arguments, settling their types, converting their values.

use std::ops::RangeInclusive;

use super::super::conversion::{CastOptions, cast};
use super::super::{Collation, Decimal, Length, SqlType, Text, Value, ValueError};
use super::{Argument, FunctionContext, ScalarFunction};

/// A function with the arguments it was written with.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) arguments: &'a [Argument<'a>],
}

/// An argument's type and the type in which the function takes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) from: SqlType,
    pub(super) to: SqlType,
}

impl Taken {
    /// The converted value.
    pub(super) fn value(&self, value: &Value) -> Result<Value, ValueError> {
        cast(value, &self.from, &self.to, &CastOptions::EXPLICIT)
    }

    pub(super) fn text(&self, value: &Value) -> Result<Option<Text>, ValueError> {
        match self.value(value)? {
            Value::String(text) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    pub(super) fn integer(&self, value: &Value) -> Result<Option<i64>, ValueError> {
        self.value(value).map(|value| value.as_i64())
    }

    pub(super) fn float(&self, value: &Value) -> Result<Option<f64>, ValueError> {
        match self.value(value)? {
            Value::Float(value) => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    pub(super) fn decimal(&self, value: &Value) -> Result<Option<Decimal>, ValueError> {
        match self.value(value)? {
            Value::Decimal(value) => Ok(Some(value)),
            _ => Ok(None),
        }
    }
}

impl Call<'_> {
    /// Checks the number of arguments.
    pub(super) fn count(&self, allowed: RangeInclusive<usize>) -> Result<(), ValueError> {
        if allowed.contains(&self.arguments.len()) {
            return Ok(());
        }
        let name = self.name.to_ascii_lowercase();
        let (low, high) = (*allowed.start(), *allowed.end());
        Err(if low == high {
            ValueError::syntax(174, 1, format!("The {name} function requires {low} argument(s)."))
        } else {
            ValueError::syntax(189, 1, format!("The {name} function requires {low} to {high} arguments."))
        })
    }

    /// The type of argument `index`; a bare word is a column name that does not exist.
    pub(super) fn ty(&self, index: usize) -> Result<SqlType, ValueError> {
        match self.arguments.get(index) {
            Some(Argument::Typed { ty, .. }) => Ok(*ty),
            Some(Argument::Keyword(word)) => Err(ValueError::new(207, 1, format!("Invalid column name '{word}'."))),
            None => Ok(SqlType::Null),
        }
    }

    /// Whether any argument can be NULL.
    pub(super) fn nullable(&self) -> bool {
        self.arguments.iter().any(|argument| matches!(argument, Argument::Typed { nullable: true, .. }))
    }

    pub(super) fn invalid(&self, index: usize) -> ValueError {
        let ty = self.ty(index).unwrap_or(SqlType::Null);
        ValueError::invalid_argument(&ty, index + 1, &self.name.to_ascii_lowercase())
    }

    /// An argument taken as text; numbers, dates and uniqueidentifiers are converted.
    pub(super) fn text(&self, index: usize) -> Result<Taken, ValueError> {
        let from = self.ty(index)?;
        let to = match from {
            _ if from.is_character() && !from.is_legacy_large() => from,
            SqlType::Text(collation) => SqlType::VarChar(Length::Max, collation),
            SqlType::NText(collation) => SqlType::NVarChar(Length::Max, collation),
            SqlType::Image | SqlType::SqlVariant | SqlType::RowVersion => return Err(self.invalid(index)),
            SqlType::Binary(length) | SqlType::VarBinary(Length::Sized(length)) => SqlType::varchar(length),
            SqlType::VarBinary(Length::Max) => SqlType::VARCHAR_MAX,
            SqlType::Null => SqlType::varchar(1),
            _ => SqlType::varchar(display_length(&from)),
        };
        Ok(Taken { from, to })
    }

    /// An argument taken as `to`.
    pub(super) fn taken_as(&self, index: usize, to: SqlType) -> Result<Taken, ValueError> {
        let from = self.ty(index)?;
        super::super::conversion::check_conversion(&from, &to, super::super::conversion::Strictness::Implicit)
            .map_err(|_| self.invalid(index))?;
        Ok(Taken { from, to })
    }

    /// An argument taken as `int`.
    pub(super) fn int(&self, index: usize) -> Result<Taken, ValueError> {
        self.taken_as(index, SqlType::Int)
    }

    /// An argument taken as `float`.
    pub(super) fn float(&self, index: usize) -> Result<Taken, ValueError> {
        self.taken_as(index, SqlType::Float)
    }

    /// A deterministic function that is NULL only if an argument is.
    pub(super) fn returns(
        &self,
        result: SqlType,
        implementation: impl Fn(&[Value], &FunctionContext) -> Result<Value, ValueError> + Send + Sync + 'static,
    ) -> Result<ScalarFunction, ValueError> {
        let (name, nullable) = (self.name, self.nullable());
        Ok(ScalarFunction { name, result, nullable, deterministic: true, implementation: Box::new(implementation) })
    }

    /// A deterministic function that can be NULL whatever its arguments are.
    pub(super) fn may_return_null(
        &self,
        result: SqlType,
        implementation: impl Fn(&[Value], &FunctionContext) -> Result<Value, ValueError> + Send + Sync + 'static,
    ) -> Result<ScalarFunction, ValueError> {
        self.returns(result, implementation).map(|function| ScalarFunction { nullable: true, ..function })
    }
}

/// A variable-length type of the same kind as `ty`; a function that can lengthen its input passes the longest.
pub(super) fn variable(ty: &SqlType, length: Option<Length>) -> SqlType {
    let collation = ty.collation().unwrap_or(Collation::DEFAULT);
    let own = match ty {
        SqlType::Char(length, _) | SqlType::NChar(length, _) => Length::Sized(*length),
        SqlType::VarChar(length, _) | SqlType::NVarChar(length, _) => *length,
        _ => Length::Max,
    };
    let length = if own == Length::Max { Length::Max } else { length.unwrap_or(own) };
    if ty.is_unicode() { SqlType::NVarChar(length, collation) } else { SqlType::VarChar(length, collation) }
}

/// The longest sized type of the same kind, `max` if the input is.
pub(super) fn longest(ty: &SqlType) -> SqlType {
    variable(ty, Some(Length::Sized(if ty.is_unicode() { 4000 } else { 8000 })))
}

/// `int`, or `bigint` where the argument is a `max` type.
pub(super) fn position_type(ty: &SqlType) -> SqlType {
    if ty.is_large() { SqlType::BigInt } else { SqlType::Int }
}

/// A count or position as [`position_type`].
pub(super) fn position(value: usize, ty: &SqlType) -> Value {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    if *ty == SqlType::BigInt { Value::BigInt(value) } else { Value::Int(i32::try_from(value).unwrap_or(i32::MAX)) }
}

/// Characters that the text of a value takes at most.
pub(super) fn display_length(ty: &SqlType) -> u16 {
    match ty {
        SqlType::Bit => 1,
        SqlType::TinyInt => 3,
        SqlType::SmallInt => 6,
        SqlType::Int => 12,
        SqlType::BigInt => 24,
        SqlType::Decimal { precision, .. } => u16::from(*precision) + 3,
        SqlType::UniqueIdentifier => 36,
        _ => 50,
    }
}
