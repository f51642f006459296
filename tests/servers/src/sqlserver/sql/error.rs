//! Construction of messages with SQL Server's numbers ("Database engine events and errors" of Microsoft's documentation).

use super::super::value::ValueError;
use super::api::SqlError;

/// An error that a statement raises.
pub(crate) type Result<T> = std::result::Result<T, SqlError>;

impl SqlError {
    /// Sets the line unless it is already known.
    pub(crate) fn at_line(mut self, line: u32) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

impl From<ValueError> for SqlError {
    fn from(error: ValueError) -> Self {
        new(error.number, error.class, error.state, &error.message)
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Msg {}, Level {}, State {}: {}", self.number, self.class, self.state, self.message)
    }
}

impl std::error::Error for SqlError {}

pub(crate) fn new(number: i32, class: u8, state: u8, message: &str) -> SqlError {
    SqlError { number, class, state, message: message.to_owned(), procedure: String::new(), line: 0 }
}

/// An error of class 16 and state 1.
pub(crate) fn plain(number: i32, message: &str) -> SqlError {
    new(number, 16, 1, message)
}

pub(crate) fn syntax(near: &str, line: u32) -> SqlError {
    new(102, 15, 1, &format!("Incorrect syntax near '{near}'.")).at_line(line)
}

pub(crate) fn syntax_keyword(near: &str, line: u32) -> SqlError {
    new(156, 15, 1, &format!("Incorrect syntax near the keyword '{near}'.")).at_line(line)
}

/// A construct of T-SQL that this server does not have.
pub(crate) fn unsupported(what: &str) -> SqlError {
    new(40517, 16, 1, &format!("Keyword or statement option '{what}' is not supported in this version of SQL Server."))
}

pub(crate) fn unknown_object(name: &str) -> SqlError {
    plain(208, &format!("Invalid object name '{name}'."))
}

pub(crate) fn unknown_column(name: &str) -> SqlError {
    plain(207, &format!("Invalid column name '{name}'."))
}

pub(crate) fn unbound_identifier(name: &str) -> SqlError {
    plain(4104, &format!("The multi-part identifier \"{name}\" could not be bound."))
}

pub(crate) fn undeclared(name: &str) -> SqlError {
    new(137, 15, 2, &format!("Must declare the scalar variable \"{name}\"."))
}

pub(crate) fn undeclared_table(name: &str) -> SqlError {
    new(1087, 15, 2, &format!("Must declare the table variable \"{name}\"."))
}

pub(crate) fn unknown_procedure(name: &str) -> SqlError {
    new(2812, 16, 62, &format!("Could not find stored procedure '{name}'."))
}

pub(crate) fn unknown_function(name: &str) -> SqlError {
    new(195, 15, 10, &format!("'{name}' is not a recognized built-in function name."))
}

pub(crate) fn permission_on_object(action: &str, object: &str, database: &str, schema: &str) -> SqlError {
    let message = format!(
        "The {action} permission was denied on the object '{object}', database '{database}', schema '{schema}'."
    );
    new(229, 14, 5, &message)
}

pub(crate) fn cancelled() -> SqlError {
    new(CANCELLED, 11, 0, "Operation cancelled by user.")
}

/// Number of the internal error that stands for an attention; no TRY block catches it.
pub(crate) const CANCELLED: i32 = -2;

/// Number of the internal error that stands for a closed sink.
pub(crate) const CLOSED: i32 = -3;
