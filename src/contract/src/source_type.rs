//! ClickHouse column types that the route admits, and how each column is selected (contract.md 3.2).

use crate::code;
use crate::error::Refusal;

/// A type that the route admits, as `system.columns` spells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceType {
    /// The value's type.
    pub kind: SourceKind,
    /// Whether it is wrapped in `Nullable(...)`.
    pub nullable: bool,
    text: String,
}

/// The admitted value types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are ClickHouse's own names")]
pub enum SourceKind {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Bool,
    String,
    Uuid,
    Date,
    Date32,
    /// `Decimal(p, s)`; the scale is as the catalog says it, ClickHouse itself keeps it within the precision.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point.
        scale: u32,
    },
    /// `DateTime` or `DateTime('UTC')`.
    DateTime(Calendar),
    /// `DateTime64(s)` or `DateTime64(s, 'UTC')`, `s` from 0 to 6.
    DateTime64 {
        /// Decimal digits of a second.
        scale: u8,
        /// Where the calendar comes from.
        calendar: Calendar,
    },
}

/// Where a timestamp column's calendar comes from; it decides whether the server's time zone has to be proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Calendar {
    /// The type says `'UTC'`.
    Utc,
    /// The type says nothing: server and session time zone count.
    ServerAndSession,
}

impl SourceType {
    /// Reads a type as the catalog spells it. The grammar is exact: no alias, no other case, no extra space.
    ///
    /// # Errors
    /// `mssql_native.source_type_unsupported`; the message says why and what to select instead where that is known.
    pub fn parse(text: &str) -> Result<SourceType, Refusal> {
        let inner = text.strip_prefix("Nullable(").and_then(|rest| rest.strip_suffix(')'));
        let kind = kind(inner.unwrap_or(text)).ok_or_else(|| unsupported(text))?;
        Ok(SourceType { kind, nullable: inner.is_some(), text: text.to_owned() })
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the column is a timestamp, selected as integer microseconds.
    pub fn is_timestamp(&self) -> bool {
        matches!(self.kind, SourceKind::DateTime(_) | SourceKind::DateTime64 { .. })
    }

    /// The type of the column in the header of the result: that of the catalog, or `Int64` for a timestamp.
    pub fn header_type(&self) -> &str {
        header_type(&self.text)
    }
}

fn unsupported(text: &str) -> Refusal {
    let why = crate::mapping::classify(text).and_then(|class| class.unsupported);
    let message = match why {
        Some(why) => format!(
            "a source column's type cannot be transferred: {}; store {} in a table of its own and transfer that",
            why.reason, why.workaround
        ),
        None => {
            "a source column's type is outside the admitted list (integers to 64 bits, floats, Decimal to 38 digits, \
                 String, UUID, Date, Date32, Bool, DateTime and DateTime64 to six digits in UTC, each also Nullable)"
                .to_owned()
        }
    };
    Refusal { code: crate::error::Code::new(code::SOURCE_TYPE_UNSUPPORTED), message: message.into() }
}

fn kind(text: &str) -> Option<SourceKind> {
    Some(match text {
        "Int8" => SourceKind::Int8,
        "Int16" => SourceKind::Int16,
        "Int32" => SourceKind::Int32,
        "Int64" => SourceKind::Int64,
        "UInt8" => SourceKind::UInt8,
        "UInt16" => SourceKind::UInt16,
        "UInt32" => SourceKind::UInt32,
        "UInt64" => SourceKind::UInt64,
        "Float32" => SourceKind::Float32,
        "Float64" => SourceKind::Float64,
        "Bool" => SourceKind::Bool,
        "String" => SourceKind::String,
        "UUID" => SourceKind::Uuid,
        "Date" => SourceKind::Date,
        "Date32" => SourceKind::Date32,
        "DateTime" => SourceKind::DateTime(Calendar::ServerAndSession),
        "DateTime('UTC')" => SourceKind::DateTime(Calendar::Utc),
        _ => return parameterised(text),
    })
}

fn parameterised(text: &str) -> Option<SourceKind> {
    if let Some(arguments) = arguments(text, "Decimal") {
        let (precision, scale) = arguments.split_once(',')?;
        let canonical = !precision.starts_with('0') && precision.len() <= 2;
        let precision = canonical.then(|| digits(precision)).flatten().filter(|p| (1..=38).contains(p))?;
        return Some(SourceKind::Decimal { precision: precision as u8, scale: digits(scale.trim_start())? });
    }
    let arguments = arguments(text, "DateTime64")?;
    let (scale, calendar) = match arguments.split_once(',') {
        None => (arguments, Calendar::ServerAndSession),
        Some((scale, zone)) => (scale, (zone.trim_start() == "'UTC'").then_some(Calendar::Utc)?),
    };
    let scale = (scale.len() == 1).then(|| digits(scale)).flatten().filter(|s| *s <= 6)?;
    Some(SourceKind::DateTime64 { scale: scale as u8, calendar })
}

fn arguments<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
}

fn digits(text: &str) -> Option<u32> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok())?
}

/// The `SELECT` expression of column `name` of type `text`: the quoted name, or microseconds since the epoch in UTC for a
/// timestamp. The caller has checked the name (`mssql_native.source_identifier_invalid`).
pub fn select_expression(name: &str, text: &str) -> String {
    if is_timestamp_text(text) {
        format!("toUnixTimestamp64Micro(toDateTime64(`{name}`, 6, 'UTC')) AS `{name}`")
    } else {
        format!("`{name}`")
    }
}

/// The type that the result's header must show for a column of type `text`.
pub fn header_type(text: &str) -> &str {
    match (is_timestamp_text(text), text.starts_with("Nullable(")) {
        (true, true) => "Nullable(Int64)",
        (true, false) => "Int64",
        (false, _) => text,
    }
}

fn is_timestamp_text(text: &str) -> bool {
    text.strip_prefix("Nullable(").unwrap_or(text).starts_with("DateTime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_exact() {
        let decimal = SourceKind::Decimal { precision: 38, scale: 10 };
        assert_eq!(SourceType::parse("Decimal(38, 10)").map(|t| t.kind), Ok(decimal));
        let micros = SourceKind::DateTime64 { scale: 6, calendar: Calendar::Utc };
        let parsed = SourceType::parse("Nullable(DateTime64(6,  'UTC'))").expect("admitted");
        assert_eq!((parsed.kind, parsed.nullable, parsed.header_type()), (micros, true, "Nullable(Int64)"));
        let refused = ["int64", "Nullable(Nullable(Int8))", "DateTime64(7)", "DateTime('Etc/UTC')", "Decimal(09,2)"];
        let refused =
            refused.into_iter().chain(["Decimal(39,0)", "Decimal(9 ,2)", " Int8", "Decimal(9,)", "", "Nullable()"]);
        for text in refused {
            let code = SourceType::parse(text).expect_err(text).code;
            assert_eq!(code.as_str(), code::SOURCE_TYPE_UNSUPPORTED, "{text}");
        }
    }
}
