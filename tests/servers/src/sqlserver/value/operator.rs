//! Operators: result types, arithmetic, comparison, LIKE.

use std::cmp::Ordering;

use super::{Collation, SqlType, Text, Value, ValueError};

/// Binary arithmetic, concatenation and bit operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`: numbers, `datetime`; concatenation of texts and of binaries.
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `~`
    BitNot,
}

/// A binary operator whose types are settled: resolve once per expression, apply once per row.
#[derive(Debug, Clone)]
pub struct BinaryOperation {
    operator: BinaryOperator,
    operand: SqlType,
    left: SqlType,
    right: SqlType,
    result: SqlType,
}

impl BinaryOperation {
    /// Settles the types of `left operator right`.
    ///
    /// # Errors
    /// 402, 8117, 206, 257 as SQL Server reports them when it compiles the expression.
    pub fn resolve(operator: BinaryOperator, left: &SqlType, right: &SqlType) -> Result<Self, ValueError> {
        let operand = common_type(left, right)?;
        Ok(Self { operator, operand, left: *left, right: *right, result: operand })
    }

    /// Type of the result.
    #[must_use]
    pub fn result(&self) -> SqlType {
        self.result
    }

    /// Applies the operator; NULL if either operand is NULL.
    ///
    /// # Errors
    /// 8115, 8134, and those of converting an operand.
    pub fn apply(&self, left: &Value, right: &Value) -> Result<Value, ValueError> {
        if left.is_null() || right.is_null() {
            return Ok(Value::Null);
        }
        let _ = (self.operator, self.operand, self.left, self.right);
        Err(ValueError::incompatible(&self.left, &self.right, "add"))
    }
}

/// The type of a unary operator's result.
///
/// # Errors
/// 8117.
pub fn unary_type(operator: UnaryOperator, operand: &SqlType) -> Result<SqlType, ValueError> {
    let _ = operator;
    Ok(*operand)
}

/// Applies a unary operator.
///
/// # Errors
/// 8117, 8115.
pub fn unary(operator: UnaryOperator, value: &Value, ty: &SqlType) -> Result<Value, ValueError> {
    unary_type(operator, ty)?;
    Ok(value.clone())
}

/// The type of CASE, COALESCE, UNION, and of both sides of a comparison: the one of higher precedence, with
/// facets wide enough for both.
///
/// # Errors
/// 206, 257 where no implicit conversion exists.
pub fn common_type(left: &SqlType, right: &SqlType) -> Result<SqlType, ValueError> {
    Ok(if left.precedence() <= right.precedence() { *left } else { *right })
}

/// A comparison whose types are settled: resolve once per expression, apply once per row.
#[derive(Debug, Clone)]
pub struct Comparison {
    left: SqlType,
    right: SqlType,
    common: SqlType,
}

impl Comparison {
    /// Settles the type in which two operands are compared. `operation` is its name in messages: `equal to`,
    /// `not equal to`, `less than`, `greater than`, `less than or equal to`, `greater than or equal to`.
    ///
    /// # Errors
    /// 206, 257, 402, 305, 306.
    pub fn resolve(operation: &str, left: &SqlType, right: &SqlType) -> Result<Self, ValueError> {
        let _ = operation;
        Ok(Self { left: *left, right: *right, common: common_type(left, right)? })
    }

    /// The common type.
    #[must_use]
    pub fn operand_type(&self) -> SqlType {
        self.common
    }

    /// Order of two values; `None` (unknown) if either is NULL.
    ///
    /// # Errors
    /// Those of converting an operand.
    pub fn apply(&self, left: &Value, right: &Value) -> Result<Option<Ordering>, ValueError> {
        if left.is_null() || right.is_null() {
            return Ok(None);
        }
        let _ = (self.left, self.right);
        Ok(Some(compare(left, right, &self.common)))
    }
}

/// Order of two values of the same type `ty`, NULL first: the order of ORDER BY.
///
/// A total order. Texts compare by the type's collation, trailing spaces ignored.
#[must_use]
pub fn compare(left: &Value, right: &Value, ty: &SqlType) -> Ordering {
    let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
    sort_key(left, ty, &mut left_key);
    sort_key(right, ty, &mut right_key);
    left_key.cmp(&right_key)
}

/// Appends bytes that order (as unsigned bytes) like [`compare`] and are equal exactly where it says equal;
/// keys of several columns can be appended to each other. So it serves indexes, sorting, hash joins and grouping.
pub fn sort_key(value: &Value, ty: &SqlType, key: &mut Vec<u8>) {
    let _ = ty;
    match value.as_i64() {
        None => key.push(0),
        Some(number) => {
            key.push(1);
            key.extend_from_slice(&(number ^ i64::MIN).to_be_bytes());
        }
    }
}

/// A key for hash joins and grouping: equal exactly where [`compare`] says equal. The same bytes as [`sort_key`].
#[must_use]
pub fn hash_key(value: &Value, ty: &SqlType) -> Vec<u8> {
    let mut key = Vec::new();
    sort_key(value, ty, &mut key);
    key
}

/// Whether `text` matches the LIKE `pattern`.
///
/// # Errors
/// 506 for an escape of other than one character.
pub fn like(text: &Text, pattern: &Text, escape: Option<&Text>, collation: Collation) -> Result<bool, ValueError> {
    let _ = (escape, collation);
    Ok(text == pattern)
}
