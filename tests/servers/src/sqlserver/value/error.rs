//! Errors of values with SQL Server's number, class, state and text.

use super::SqlType;

/// An error as SQL Server reports it (sys.messages; "Database engine events and errors" of Microsoft's documentation).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ValueError {
    /// Error number, for example 8134.
    pub number: i32,
    /// Severity class, 15 for what a compile would find, 16 for what a row causes.
    pub class: u8,
    /// State.
    pub state: u8,
    /// Text with its parameters filled in.
    pub message: String,
}

impl ValueError {
    /// An error of class 16.
    #[must_use]
    pub fn new(number: i32, state: u8, message: impl Into<String>) -> Self {
        Self { number, class: 16, state, message: message.into() }
    }

    /// An error of class 15: wrong syntax, unknown names.
    #[must_use]
    pub fn syntax(number: i32, state: u8, message: impl Into<String>) -> Self {
        Self { number, class: 15, state, message: message.into() }
    }

    /// Whether TRY_CAST turns this error into NULL: errors that the value causes, not errors of the types.
    #[must_use]
    pub fn depends_on_value(&self) -> bool {
        !matches!(self.number, 206 | 257 | 281 | 402 | 403 | 529 | 8116 | 8117 | 9809)
    }

    /// Error 2628, what SQL Server 2019 and later report in place of 8152.
    #[must_use]
    pub fn truncation_in(table: &str, column: &str, value: &str) -> Self {
        Self::new(
            2628,
            1,
            format!(
                "String or binary data would be truncated in table '{table}', column '{column}'. Truncated value: '{value}'."
            ),
        )
    }

    pub(super) fn not_allowed_implicitly(from: &SqlType, to: &SqlType) -> Self {
        Self::new(
            257,
            3,
            format!(
                "Implicit conversion from data type {} to {} is not allowed. Use the CONVERT function to run this query.",
                from.name(),
                to.name()
            ),
        )
    }

    pub(super) fn not_allowed_explicitly(from: &SqlType, to: &SqlType) -> Self {
        Self::new(
            529,
            2,
            format!("Explicit conversion from data type {} to {} is not allowed.", from.name(), to.name()),
        )
    }

    pub(super) fn type_clash(from: &SqlType, to: &SqlType) -> Self {
        Self::new(206, 2, format!("Operand type clash: {} is incompatible with {}", from.name(), to.name()))
    }

    pub(super) fn converting(from: &SqlType, to: &SqlType) -> Self {
        Self::new(8114, 5, format!("Error converting data type {} to {}.", from.message_name(), to.message_name()))
    }

    pub(super) fn overflow(from: &str, to: &SqlType) -> Self {
        let state = if matches!(to, SqlType::Decimal { .. }) { 8 } else { 2 };
        Self::new(
            8115,
            state,
            format!("Arithmetic overflow error converting {from} to data type {}.", to.message_name()),
        )
    }

    pub(super) fn divide_by_zero() -> Self {
        Self::new(8134, 1, "Divide by zero error encountered.")
    }

    pub(super) fn date_syntax() -> Self {
        Self::new(241, 1, "Conversion failed when converting date and/or time from character string.")
    }

    pub(super) fn date_range(from: &SqlType, to: &SqlType) -> Self {
        Self::new(
            242,
            3,
            format!(
                "The conversion of a {} data type to a {} data type resulted in an out-of-range value.",
                from.name(),
                to.name()
            ),
        )
    }

    pub(super) fn invalid_argument(ty: &SqlType, position: usize, function: &str) -> Self {
        Self::new(
            8116,
            1,
            format!(
                "Argument data type {} is invalid for argument {position} of {function} function.",
                ty.message_name()
            ),
        )
    }

    pub(super) fn invalid_operand(ty: &SqlType, operator: &str) -> Self {
        Self::new(8117, 1, format!("Operand data type {} is invalid for {operator} operator.", ty.message_name()))
    }

    pub(super) fn incompatible(left: &SqlType, right: &SqlType, operator: &str) -> Self {
        Self::new(
            402,
            1,
            format!(
                "The data types {} and {} are incompatible in the {operator} operator.",
                left.message_name(),
                right.message_name()
            ),
        )
    }
}
