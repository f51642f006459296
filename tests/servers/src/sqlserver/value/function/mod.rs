//! Scalar built-in functions ("Built-in functions (Transact-SQL)").
//!
//! A function is found and typed once per expression ([`resolve_function`]) and called once per row
//! ([`ScalarFunction::call`]). Functions that are not built here are error 195, as unknown ones are.

mod call;
mod date;
mod date_parts;
mod format;
mod hash;
mod json;
mod logic;
mod math;
mod rounding;
mod search;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};

use super::{DateFormat, DateTime2, DateTimeOffset, SqlType, Value, ValueError};
use call::Call;

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

impl FunctionContext {
    /// The statement's clock with the server's offset.
    fn now(&self) -> DateTimeOffset {
        DateTimeOffset { utc: self.now_utc, offset_minutes: self.offset_minutes }
    }

    /// The next 64 random bits (the generator is SplitMix64).
    fn random_bits(&self) -> u64 {
        let state = self.random_state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut bits = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
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

type Resolver = fn(&Call<'_>) -> Result<ScalarFunction, ValueError>;

const TABLES: &[&[(&str, Resolver)]] = &[
    text::FUNCTIONS,
    search::FUNCTIONS,
    math::FUNCTIONS,
    date::FUNCTIONS,
    logic::FUNCTIONS,
    hash::FUNCTIONS,
    format::FUNCTIONS,
    json::FUNCTIONS,
];

/// Every built-in of this layer, in upper case.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().copied().flatten().map(|(name, _)| *name)
}

/// Finds a built-in by name (any case) and settles its types. `CURRENT_TIMESTAMP` is found under its name, the
/// expression `x AT TIME ZONE 'UTC'` under `AT TIME ZONE`.
///
/// # Errors
/// 195 for an unknown name; 174, 189 for a wrong number of arguments; 8116 for a wrong type; 155 for a wrong datepart.
pub fn resolve_function(name: &str, arguments: &[Argument<'_>]) -> Result<ScalarFunction, ValueError> {
    let upper = name.to_ascii_uppercase();
    let found = TABLES.iter().copied().flatten().find(|(known, _)| *known == upper);
    let Some((known, resolver)) = found else {
        return Err(ValueError::syntax(195, 10, format!("'{name}' is not a recognized built-in function name.")));
    };
    resolver(&Call { name: known, arguments })
}
