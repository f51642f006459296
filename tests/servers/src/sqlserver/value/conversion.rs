//! CAST, CONVERT, TRY_CAST and assignment.

use super::{DateFormat, SqlType, Value, ValueError};

/// Who asked for a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// CAST or CONVERT.
    #[default]
    Explicit,
    /// An operator, a comparison, a function argument.
    Implicit,
}

/// Options of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CastOptions {
    /// Third argument of CONVERT.
    pub style: Option<i32>,
    /// Explicit or implicit.
    pub strictness: Strictness,
    /// SET DATEFORMAT of the session.
    pub date_format: DateFormat,
}

impl CastOptions {
    /// What an operator or an assignment uses.
    pub const IMPLICIT: Self = Self { style: None, strictness: Strictness::Implicit, date_format: DateFormat::Mdy };
    /// What CAST uses.
    pub const EXPLICIT: Self = Self { style: None, strictness: Strictness::Explicit, date_format: DateFormat::Mdy };
}

/// Whether the conversion exists at all; SQL Server decides this when it compiles the statement.
///
/// # Errors
/// 206, 257 or 529.
pub fn check_conversion(from: &SqlType, to: &SqlType, strictness: Strictness) -> Result<(), ValueError> {
    match strictness {
        _ if from == to => Ok(()),
        Strictness::Explicit => Err(ValueError::not_allowed_explicitly(from, to)),
        Strictness::Implicit => Err(ValueError::not_allowed_implicitly(from, to)),
    }
}

/// Converts a value. Texts and binaries that are too long are cut, as CAST does.
///
/// # Errors
/// The errors of [`check_conversion`], and those of the value (220, 241, 242, 245, 248, 8114, 8115, ...).
pub fn cast(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    check_conversion(from, to, options.strictness)?;
    Ok(value.clone())
}

/// TRY_CAST and TRY_CONVERT: NULL where the value cannot be converted.
///
/// # Errors
/// Errors of the types (529, 281, 9809) remain errors.
pub fn try_cast(value: &Value, from: &SqlType, to: &SqlType, options: &CastOptions) -> Result<Value, ValueError> {
    match cast(value, from, to, options) {
        Err(error) if error.depends_on_value() => Ok(Value::Null),
        other => other,
    }
}

/// Converts a value for a column of INSERT and UPDATE: implicitly, and a text or binary that is too long
/// (trailing spaces, trailing zero bytes of `binary` excepted) is error 8152 instead of being cut.
///
/// A server that knows table and column reports [`ValueError::truncation_in`] instead.
///
/// # Errors
/// 8152 and the errors of [`cast`].
pub fn assign(value: &Value, from: &SqlType, to: &SqlType, date_format: DateFormat) -> Result<Value, ValueError> {
    cast(value, from, to, &CastOptions { date_format, ..CastOptions::IMPLICIT })
}
