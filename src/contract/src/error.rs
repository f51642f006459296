//! Stable codes and the fate of an effect.
//!
//! A [`Code`] is the text before `: ` of a message; it never changes once released and has a page under
//! `docs/reference/errors/`. The message tells a person what to do and never holds a value, host, path or secret.

use std::borrow::Cow;
use std::fmt;

/// A stable error code, for example `mssql_native.custody_held` or `mssql_native.invalid_limit:max_rows`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(Cow<'static, str>);

impl Code {
    /// A code known at compile time.
    pub const fn new(text: &'static str) -> Self {
        Code(Cow::Borrowed(text))
    }

    /// A code with a detail that is part of it, such as a limit's or a column's name: `BASE:DETAIL`.
    pub fn with_detail(base: &'static str, detail: &str) -> Self {
        Code(Cow::Owned(format!("{base}:{detail}")))
    }

    /// A code read back from a durable record.
    pub fn from_record(text: String) -> Self {
        Code(Cow::Owned(text))
    }

    /// The code's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known about an effect whose call failed.
///
/// There is no third value for "probably": whatever is not proven not to have happened is unknown (design.md 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The effect did not take place and cannot take place any more.
    NotDone,
    /// The effect may have taken place, or may still take place.
    Unknown,
}

/// A pure refusal: a decision of this crate that something is not admitted. Nothing has happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// What a person can do about it; without values, hosts, paths or secrets.
    pub message: Cow<'static, str>,
}

impl Refusal {
    /// A refusal with a fixed code and message.
    pub const fn new(code: &'static str, message: &'static str) -> Self {
        Refusal { code: Code::new(code), message: Cow::Borrowed(message) }
    }

    /// A refusal whose code carries a detail (`BASE:DETAIL`).
    pub fn with_detail(base: &'static str, detail: &str, message: impl Into<Cow<'static, str>>) -> Self {
        Refusal { code: Code::with_detail(base, detail), message: message.into() }
    }
}

/// The failure of a port call, with the fate of its effect.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct PortError {
    /// The stable code.
    pub code: Code,
    /// What a person can do about it; without values, hosts, paths or secrets.
    pub message: Cow<'static, str>,
    /// Whether the effect may have happened.
    pub fate: Fate,
    /// The adapter's own error, for logs; its text is never shown to users or stored.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl PortError {
    /// A failure of an effect that provably did not take place.
    pub fn not_done(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        PortError { code: Code::new(code), message: message.into(), fate: Fate::NotDone, source: None }
    }

    /// A failure after which nobody knows whether the effect took place.
    pub fn unknown(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        PortError { code: Code::new(code), message: message.into(), fate: Fate::Unknown, source: None }
    }

    /// The same failure with its cause attached.
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}

impl From<Refusal> for PortError {
    fn from(refusal: Refusal) -> Self {
        PortError { code: refusal.code, message: refusal.message, fate: Fate::NotDone, source: None }
    }
}
