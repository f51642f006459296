//! Arithmetic, concatenation and bit operators.

use super::super::conversion::{CastOptions, cast, fit_binary, fit_text};
use super::super::decimal::{Rounding, divide, divide_rounded, multiply, power_of_ten, rescale};
use super::super::{DateTime, Decimal, Length, SmallDateTime, SqlType, Value, ValueError};
use super::types::{as_decimal, binary_length, character_length, common_collation, common_type, decimal_result};
use super::{BinaryOperator, UnaryOperator};

/// A binary operator whose types are settled: resolve once per expression, apply once per row.
#[derive(Debug, Clone)]
pub struct BinaryOperation {
    operator: BinaryOperator,
    left: Operand,
    right: Operand,
    result: SqlType,
}

/// How an operand arrives and the type in which the operator takes it.
#[derive(Debug, Clone, Copy)]
struct Operand {
    given: SqlType,
    taken: SqlType,
}

impl Operand {
    fn convert(&self, value: &Value) -> Result<Value, ValueError> {
        cast(value, &self.given, &self.taken, &CastOptions::IMPLICIT)
    }
}

impl BinaryOperation {
    /// Settles the types of `left operator right`.
    ///
    /// # Errors
    /// 402, 8117, 206, 257 as SQL Server reports them when it compiles the expression.
    pub fn resolve(operator: BinaryOperator, left: &SqlType, right: &SqlType) -> Result<Self, ValueError> {
        let (taken_left, taken_right, result) = settle(operator, left, right)?;
        Ok(Self {
            operator,
            left: Operand { given: *left, taken: taken_left },
            right: Operand { given: *right, taken: taken_right },
            result,
        })
    }

    /// As [`resolve`](Self::resolve), with the values of operands that are literals: an integer literal beside a
    /// `decimal` counts as a decimal of just its digits, which decides the scale of `1.0 / 3`.
    ///
    /// # Errors
    /// Those of [`resolve`](Self::resolve).
    pub fn resolve_literals(
        operator: BinaryOperator,
        left: (&SqlType, Option<&Value>),
        right: (&SqlType, Option<&Value>),
    ) -> Result<Self, ValueError> {
        let mut resolved = Self::resolve(operator, left.0, right.0)?;
        if let (SqlType::Decimal { .. }, true) = (resolved.result, left.0.is_integer() || right.0.is_integer()) {
            let narrow = |(ty, literal): (&SqlType, Option<&Value>)| match literal.and_then(Value::as_i64) {
                Some(value) if ty.is_integer() => {
                    let digits = value.unsigned_abs().to_string().len();
                    SqlType::Decimal { precision: u8::try_from(digits).unwrap_or(19), scale: 0 }
                }
                _ => *ty,
            };
            let (narrow_left, narrow_right) = (narrow(left), narrow(right));
            let narrowed = Self::resolve(operator, &narrow_left, &narrow_right)?;
            resolved.left.taken = narrowed.left.taken;
            resolved.right.taken = narrowed.right.taken;
            resolved.result = narrowed.result;
        }
        Ok(resolved)
    }

    /// Type of the result.
    #[must_use]
    pub fn result(&self) -> SqlType {
        self.result
    }

    /// The operator and the types in which its operands are given.
    #[must_use]
    pub fn operands(&self) -> (BinaryOperator, SqlType, SqlType) {
        (self.operator, self.left.given, self.right.given)
    }

    /// Applies the operator; NULL if either operand is NULL.
    ///
    /// # Errors
    /// 8115, 8134, and those of converting an operand.
    pub fn apply(&self, left: &Value, right: &Value) -> Result<Value, ValueError> {
        match (left, right) {
            (Value::Null, _) | (_, Value::Null) => return Ok(Value::Null),
            // The common case of a digest: pieces of bytes.
            (Value::Binary(left), Value::Binary(right)) if self.result.is_binary() => {
                return Ok(Value::Binary(fit_binary(&left.concat(right), &self.result)));
            }
            _ => {}
        }
        let (left, right) = (self.left.convert(left)?, self.right.convert(right)?);
        match &self.result {
            SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt => {
                integer(self.operator, &left, &right, &self.result)
            }
            SqlType::Decimal { precision, scale } => match (left, right) {
                (Value::Decimal(left), Value::Decimal(right)) => {
                    decimal(self.operator, left, right, *precision, *scale).map(Value::Decimal)
                }
                _ => Err(self.unexpected()),
            },
            SqlType::Money | SqlType::SmallMoney => match (left, right) {
                (Value::Money(left), Value::Money(right)) => money(self.operator, left, right, &self.result),
                _ => Err(self.unexpected()),
            },
            SqlType::Real | SqlType::Float => {
                float(self.operator, &left, &right, &self.result).ok_or_else(|| self.unexpected())?
            }
            SqlType::DateTime | SqlType::SmallDateTime => datetime(self.operator, &left, &right, &self.result),
            _ => match (left, right) {
                (Value::String(left), Value::String(right)) => {
                    Ok(Value::String(fit_text(&left.concat(&right), &self.result)))
                }
                (Value::Binary(left), Value::Binary(right)) => {
                    Ok(Value::Binary(fit_binary(&left.concat(&right), &self.result)))
                }
                _ => Err(self.unexpected()),
            },
        }
    }

    fn unexpected(&self) -> ValueError {
        ValueError::incompatible(&self.left.given, &self.right.given, self.operator.name())
    }
}

/// The types in which both operands are taken, and the result's.
fn settle(
    operator: BinaryOperator,
    left: &SqlType,
    right: &SqlType,
) -> Result<(SqlType, SqlType, SqlType), ValueError> {
    let incompatible = || ValueError::incompatible(left, right, operator.name());
    // NULL takes the other side's type; two NULLs are int.
    match (left, right) {
        (SqlType::Null, SqlType::Null) => return Ok((SqlType::Int, SqlType::Int, SqlType::Int)),
        (SqlType::Null, other) => {
            return settle(operator, other, other).map(|(_, taken, result)| (taken, taken, result));
        }
        (other, SqlType::Null) => {
            return settle(operator, other, other).map(|(taken, _, result)| (taken, taken, result));
        }
        _ => {}
    }
    if left.is_legacy_large() || right.is_legacy_large() {
        return Err(incompatible());
    }
    if operator == BinaryOperator::Add {
        if left.is_character() && right.is_character() {
            return Ok(concatenated_text(left, right));
        }
        if let (Some(first), Some(second)) = (binary_length(left), binary_length(right)) {
            let fixed = matches!((left, right), (SqlType::Binary(_), SqlType::Binary(_)));
            let result = match joined_length(first, second, 8000) {
                Length::Sized(length) if fixed => SqlType::Binary(length),
                length => SqlType::VarBinary(length),
            };
            return Ok((*left, *right, result));
        }
    }
    if left.is_character() && right.is_character() || left.is_binary() && right.is_binary() {
        return Err(ValueError::invalid_operand(left, operator.name()));
    }
    if left.is_character() && right.is_binary() || left.is_binary() && right.is_character() {
        return Err(incompatible());
    }
    settle_numbers(operator, left, right)
}

fn settle_numbers(
    operator: BinaryOperator,
    left: &SqlType,
    right: &SqlType,
) -> Result<(SqlType, SqlType, SqlType), ValueError> {
    let incompatible = || ValueError::incompatible(left, right, operator.name());
    let (high, low) = if left.precedence() <= right.precedence() { (left, right) } else { (right, left) };
    match high {
        SqlType::DateTime | SqlType::SmallDateTime
            if matches!(operator, BinaryOperator::Add | BinaryOperator::Subtract) =>
        {
            let known = matches!(low, SqlType::DateTime | SqlType::SmallDateTime);
            if !known && !low.is_number() && !low.is_character() && !low.is_binary() {
                return Err(incompatible());
            }
            return Ok((*high, *high, *high));
        }
        _ if high.is_temporal() || matches!(high, SqlType::UniqueIdentifier | SqlType::SqlVariant) => {
            let same = std::mem::discriminant(left) == std::mem::discriminant(right);
            return Err(if same {
                ValueError::invalid_operand(high, operator.name())
            } else if low.is_number() {
                ValueError::type_clash(left, right)
            } else {
                incompatible()
            });
        }
        _ => {}
    }
    // A common type exists for numbers with texts and binaries too; this finds the clashes.
    common_type(left, right)?;
    let whole = |ty: &SqlType| ty.is_integer();
    if operator.is_bitwise() {
        let fits = |ty: &SqlType| whole(ty) || matches!(ty, SqlType::Binary(_) | SqlType::VarBinary(_));
        return if whole(high) && fits(low) { Ok((*high, *high, *high)) } else { Err(incompatible()) };
    }
    match high {
        SqlType::Bit => Err(incompatible()),
        SqlType::Float | SqlType::Real if operator == BinaryOperator::Modulo => Err(incompatible()),
        SqlType::Decimal { .. } => {
            let exact = |ty: &SqlType| as_decimal(ty).or_else(|| as_decimal(high));
            let (first, second) = (exact(left).unwrap_or((38, 0)), exact(right).unwrap_or((38, 0)));
            let taken = |(precision, scale)| SqlType::Decimal { precision, scale };
            Ok((taken(first), taken(second), decimal_result(operator, first, second)))
        }
        _ => Ok((*high, *high, *high)),
    }
}

fn concatenated_text(left: &SqlType, right: &SqlType) -> (SqlType, SqlType, SqlType) {
    let unicode = left.is_unicode() || right.is_unicode();
    let cap = if unicode { 4000 } else { 8000 };
    let lengths = (character_length(left).unwrap_or(Length::Max), character_length(right).unwrap_or(Length::Max));
    let length = joined_length(lengths.0, lengths.1, cap);
    let collation = common_collation(left, right);
    let fixed =
        matches!((left, right), (SqlType::Char(..) | SqlType::NChar(..), SqlType::Char(..) | SqlType::NChar(..)));
    let result = match (unicode, length) {
        (true, Length::Sized(length)) if fixed => SqlType::NChar(length, collation),
        (false, Length::Sized(length)) if fixed => SqlType::Char(length, collation),
        (true, length) => SqlType::NVarChar(length, collation),
        (false, length) => SqlType::VarChar(length, collation),
    };
    (*left, *right, result)
}

fn joined_length(first: Length, second: Length, cap: u16) -> Length {
    match (first, second) {
        (Length::Sized(first), Length::Sized(second)) => Length::Sized(first.saturating_add(second).min(cap)),
        _ => Length::Max,
    }
}

fn integer(operator: BinaryOperator, left: &Value, right: &Value, result: &SqlType) -> Result<Value, ValueError> {
    let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) else {
        return Err(ValueError::invalid_operand(result, operator.name()));
    };
    let computed = match operator {
        BinaryOperator::Add => left.checked_add(right),
        BinaryOperator::Subtract => left.checked_sub(right),
        BinaryOperator::Multiply => left.checked_mul(right),
        BinaryOperator::Divide | BinaryOperator::Modulo if right == 0 => return Err(ValueError::divide_by_zero()),
        BinaryOperator::Divide => left.checked_div(right),
        BinaryOperator::Modulo => Some(left.wrapping_rem(right)),
        BinaryOperator::BitAnd => Some(left & right),
        BinaryOperator::BitOr => Some(left | right),
        BinaryOperator::BitXor => Some(left ^ right),
    };
    computed.and_then(|value| integer_value(value, result)).ok_or_else(|| ValueError::overflow("expression", result))
}

fn integer_value(value: i64, ty: &SqlType) -> Option<Value> {
    Some(match ty {
        SqlType::Bit => Value::Bit(value != 0),
        SqlType::TinyInt => Value::TinyInt(u8::try_from(value).ok()?),
        SqlType::SmallInt => Value::SmallInt(i16::try_from(value).ok()?),
        SqlType::Int => Value::Int(i32::try_from(value).ok()?),
        _ => Value::BigInt(value),
    })
}

fn decimal(
    operator: BinaryOperator,
    left: Decimal,
    right: Decimal,
    precision: u8,
    scale: u8,
) -> Result<Decimal, ValueError> {
    let computed = match operator {
        BinaryOperator::Multiply => multiply(left, right, precision, scale),
        BinaryOperator::Divide | BinaryOperator::Modulo if right.unscaled() == 0 => {
            return Err(ValueError::divide_by_zero());
        }
        BinaryOperator::Divide => divide(left, right, precision, scale),
        _ => {
            let common = left.scale().max(right.scale());
            let aligned = |value: Decimal| value.unscaled().checked_mul(power_of_ten(common - value.scale()));
            let pair = aligned(left).zip(aligned(right));
            let exact = pair.and_then(|(left, right)| match operator {
                BinaryOperator::Add => left.checked_add(right),
                BinaryOperator::Subtract => left.checked_sub(right),
                _ => Some(left.wrapping_rem(right)),
            });
            exact.and_then(|unscaled| rescale(unscaled, common, precision, scale, Rounding::HalfAwayFromZero))
        }
    };
    computed.ok_or_else(|| ValueError::overflow("expression", &SqlType::Decimal { precision, scale }))
}

fn money(operator: BinaryOperator, left: i64, right: i64, result: &SqlType) -> Result<Value, ValueError> {
    let (wide_left, wide_right) = (i128::from(left), i128::from(right));
    let computed = match operator {
        BinaryOperator::Add => wide_left + wide_right,
        BinaryOperator::Subtract => wide_left - wide_right,
        BinaryOperator::Multiply => divide_rounded(wide_left * wide_right, 10_000, Rounding::HalfAwayFromZero),
        BinaryOperator::Divide | BinaryOperator::Modulo if right == 0 => return Err(ValueError::divide_by_zero()),
        BinaryOperator::Divide => wide_left * 10_000 / wide_right,
        _ => wide_left % wide_right,
    };
    let fits = i64::try_from(computed).ok().filter(|value| *result == SqlType::Money || i32::try_from(*value).is_ok());
    fits.map(Value::Money).ok_or_else(|| ValueError::overflow("expression", result))
}

/// `None` if an operand is no float.
#[allow(clippy::cast_possible_truncation, reason = "real arithmetic is rounded to real")]
fn float(operator: BinaryOperator, left: &Value, right: &Value, result: &SqlType) -> Option<Result<Value, ValueError>> {
    let number = |value: &Value| match value {
        Value::Float(value) => Some(*value),
        Value::Real(value) => Some(f64::from(*value)),
        _ => None,
    };
    let (left, right) = (number(left)?, number(right)?);
    let computed = match operator {
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide if right == 0.0 => return Some(Err(ValueError::divide_by_zero())),
        BinaryOperator::Divide => left / right,
        _ => return None,
    };
    let value = match result {
        SqlType::Real => Value::Real(computed as f32),
        _ => Value::Float(computed),
    };
    let finite = match &value {
        Value::Real(value) => value.is_finite(),
        _ => computed.is_finite(),
    };
    Some(if finite { Ok(value) } else { Err(ValueError::overflow("expression", result)) })
}

/// Days and times of day since 1900 add and subtract.
fn datetime(operator: BinaryOperator, left: &Value, right: &Value, result: &SqlType) -> Result<Value, ValueError> {
    let overflow = || ValueError::overflow("expression", result);
    let ticks = |value: &Value| match value {
        Value::DateTime(value) => Some(value.total_ticks()),
        Value::SmallDateTime(value) => DateTime::from_datetime2(value.to_datetime2()).map(DateTime::total_ticks),
        _ => None,
    };
    let (left, right) = (ticks(left).ok_or_else(overflow)?, ticks(right).ok_or_else(overflow)?);
    let total = if operator == BinaryOperator::Add { left + right } else { left - right };
    let datetime = DateTime::from_total_ticks(total).ok_or_else(overflow)?;
    if *result == SqlType::DateTime {
        return Ok(Value::DateTime(datetime));
    }
    SmallDateTime::from_datetime2(datetime.to_datetime2()).map(Value::SmallDateTime).ok_or_else(overflow)
}

/// The type of a unary operator's result.
///
/// # Errors
/// 8117.
pub fn unary_type(operator: UnaryOperator, operand: &SqlType) -> Result<SqlType, ValueError> {
    let (name, valid) = match operator {
        UnaryOperator::Plus => ("plus", operand.is_number() || operand.is_character() || operand.is_binary()),
        UnaryOperator::Minus => ("minus", operand.is_number() && *operand != SqlType::Bit),
        UnaryOperator::BitNot => ("'~'", operand.is_integer()),
    };
    match operand {
        SqlType::Null => Ok(SqlType::Int),
        SqlType::TinyInt if operator == UnaryOperator::Minus => Ok(SqlType::SmallInt),
        _ if valid => Ok(*operand),
        _ => Err(ValueError::invalid_operand(operand, name)),
    }
}

/// Applies a unary operator; NULL stays NULL.
///
/// # Errors
/// 8117, 8115.
pub fn unary(operator: UnaryOperator, value: &Value, ty: &SqlType) -> Result<Value, ValueError> {
    let result = unary_type(operator, ty)?;
    let overflow = || ValueError::overflow("expression", &result);
    Ok(match (operator, value) {
        (_, Value::Null) | (UnaryOperator::Plus, _) => value.clone(),
        (UnaryOperator::BitNot, Value::Bit(value)) => Value::Bit(!value),
        (UnaryOperator::BitNot, Value::TinyInt(value)) => Value::TinyInt(!value),
        (UnaryOperator::BitNot, _) => {
            value.as_i64().and_then(|value| integer_value(!value, &result)).ok_or_else(overflow)?
        }
        (UnaryOperator::Minus, Value::Decimal(value)) => {
            Value::Decimal(Decimal::new(-value.unscaled(), value.precision(), value.scale()))
        }
        (UnaryOperator::Minus, Value::Money(value)) => Value::Money(value.checked_neg().ok_or_else(overflow)?),
        (UnaryOperator::Minus, Value::Real(value)) => Value::Real(-value),
        (UnaryOperator::Minus, Value::Float(value)) => Value::Float(-value),
        (UnaryOperator::Minus, _) => {
            let negated = value.as_i64().and_then(i64::checked_neg);
            negated.and_then(|value| integer_value(value, &result)).ok_or_else(overflow)?
        }
    })
}
