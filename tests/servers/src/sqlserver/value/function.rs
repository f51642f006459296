//! Scalar built-in functions.

use std::sync::atomic::AtomicU64;

use super::{DateFormat, DateTime2, SqlType, Value, ValueError};

/// What a function sees of the session and the statement.
#[derive(Debug)]
pub struct FunctionContext {
    /// The statement's clock in UTC; GETDATE and its kin give this value in the whole statement.
    pub now_utc: DateTime2,
    /// Offset of the server's local time from UTC.
    pub offset_minutes: i16,
    /// First day of the week, 1 = Monday ... 7 = Sunday (SET DATEFIRST); 7 for us_english.
    pub date_first: u8,
    /// SET DATEFORMAT.
    pub date_format: DateFormat,
    /// State of RAND() and NEWID(); seed it from the operating system per session.
    pub random_state: AtomicU64,
}

/// An argument as resolution sees it.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// An expression of this type.
    Typed {
        /// Its type; [`SqlType::Null`] for the literal NULL.
        ty: SqlType,
        /// Whether it can be NULL.
        nullable: bool,
    },
    /// A bare word such as the `day` of `DATEADD(day, 1, x)`; it is not passed to [`ScalarFunction::call`].
    Keyword(&'a str),
}

type Implementation = Box<dyn Fn(&[Value], &FunctionContext) -> Result<Value, ValueError> + Send + Sync>;

/// A function whose types are settled: resolve once per expression, call once per row.
pub struct ScalarFunction {
    /// Name in upper case.
    pub name: &'static str,
    /// Type of the result.
    pub result: SqlType,
    /// Whether the result can be NULL.
    pub nullable: bool,
    /// Whether equal arguments give equal results; false for GETDATE, NEWID, RAND.
    pub deterministic: bool,
    implementation: Implementation,
}

impl ScalarFunction {
    /// Calls the function with the values of its typed arguments, in order.
    ///
    /// # Errors
    /// Those of the function.
    pub fn call(&self, arguments: &[Value], context: &FunctionContext) -> Result<Value, ValueError> {
        (self.implementation)(arguments, context)
    }
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}() -> {}", self.name, self.result)
    }
}

/// Finds a built-in by name (any case) and settles its types.
///
/// # Errors
/// 195 for an unknown name; 174, 189 for a wrong number of arguments; 8116 for a wrong type; 155 for a wrong datepart.
pub fn resolve_function(name: &str, arguments: &[Argument<'_>]) -> Result<ScalarFunction, ValueError> {
    if !name.eq_ignore_ascii_case("PI") {
        return Err(ValueError::syntax(195, 10, format!("'{name}' is not a recognized built-in function name.")));
    }
    if !arguments.is_empty() {
        return Err(ValueError::syntax(174, 1, "The pi function requires 0 argument(s)."));
    }
    Ok(ScalarFunction {
        name: "PI",
        result: SqlType::Float,
        nullable: false,
        deterministic: true,
        implementation: Box::new(|_, _| Ok(Value::Float(std::f64::consts::PI))),
    })
}
