//! The closed list of source types, as the catalog spells them (contract.md 3.2).

use crate::code;
use crate::error::Refusal;

const PLAIN: [&str; 17] = [
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float32",
    "Float64",
    "String",
    "UUID",
    "Date",
    "Date32",
    "Bool",
    "DateTime",
    "DateTime('UTC')",
];

/// Admits a column type.
///
/// # Errors
/// `mssql_native.source_type_unsupported`.
pub fn admit(type_text: &str) -> Result<(), Refusal> {
    let bare = type_text.strip_prefix("Nullable(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(type_text);
    if PLAIN.contains(&bare) || is_decimal(bare) || is_datetime64(bare) {
        return Ok(());
    }
    Err(Refusal::new(
        code::SOURCE_TYPE_UNSUPPORTED,
        "A source column has a type that cannot be carried exactly; read from a table without it or convert it there.",
    ))
}

/// The arguments of `NAME(a)` or `NAME(a, b)`.
fn arguments<'a>(text: &'a str, name: &str) -> Option<(&'a str, Option<&'a str>)> {
    let inside = text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
    match inside.split_once(',') {
        None => Some((inside, None)),
        Some((first, second)) => Some((first, Some(second.trim_start()))),
    }
}

fn is_decimal(text: &str) -> bool {
    let Some((precision, Some(scale))) = arguments(text, "Decimal") else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let in_range = precision.parse::<u8>().is_ok_and(|precision| (1..=38).contains(&precision));
    digits(precision) && !precision.starts_with('0') && in_range && digits(scale)
}

fn is_datetime64(text: &str) -> bool {
    match arguments(text, "DateTime64") {
        Some((scale, zone)) => matches!(scale.as_bytes(), [b'0'..=b'6']) && matches!(zone, None | Some("'UTC'")),
        None => false,
    }
}
