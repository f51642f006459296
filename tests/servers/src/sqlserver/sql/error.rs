//! Construction of messages with SQL Server's numbers ("Database engine events and errors" of Microsoft's documentation).

use super::api::SqlError;
use crate::sqlserver::value::ValueError;

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

/// Marks the end of a batch whose error has been reported.
pub(crate) const BATCH_ABORTED: i32 = -4;

/// Marks the end of a procedure or dynamic batch whose error has been reported; the caller goes on.
pub(crate) const SCOPE_ABORTED: i32 = -5;

/// Whether this is a marker and not a message.
pub(crate) fn is_marker(error: &SqlError) -> bool {
    matches!(error.number, CANCELLED | CLOSED | BATCH_ABORTED | SCOPE_ABORTED)
}

pub(crate) fn marker(number: i32) -> SqlError {
    new(number, 0, 0, "")
}

/// Errors of names and syntax, which end the scope whose text has them.
pub(crate) fn is_compile_error(number: i32) -> bool {
    matches!(
        number,
        102 | 104..=109 | 111 | 113 | 116 | 117 | 119 | 120 | 121 | 127 | 130 | 134..=145 | 147 | 156 | 164 | 168 | 174 | 178 | 189 | 191 | 195 | 205 | 206..=209 | 213 | 229 | 230 | 235
            | 239 | 240 | 243 | 252 | 257 | 263 | 264 | 306 | 313 | 321 | 402 | 403 | 408 | 447 | 448 | 468 | 529 | 1003 | 1007 | 1013 | 1023 | 1038 | 1060 | 1062 | 1087 | 2715 | 2716 | 3952
            | 4104 | 4108 | 4112 | 4121 | 4127 | 4145 | 4151 | 5309 | 8116 | 8117 | 8120 | 8127 | 8133 | 8155..=8159 | 8161 | 10709 | 10741 | 10742 | 10744 | 10752 | 10753 | 10759 | 40517
    )
}

/// Errors that end the batch and roll the transaction back even with XACT_ABORT OFF: conversions and deadlocks.
pub(crate) fn is_batch_abort(number: i32) -> bool {
    matches!(number, 217 | 241 | 244 | 245 | 248 | 295 | 1205 | 3609 | 3930 | 8114 | 8169)
}
