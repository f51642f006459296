//! Every ClickHouse type and the SQL Server type that would hold it, or why none does.
//!
//! Only the types of [`crate::source_type`] are ever transferred. The wider table is here so that a refusal can say what
//! is wrong with a column and what to select in its place.

use crate::sql_type::{DecimalName, Length, SqlType};

/// What is known about a ClickHouse type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification {
    /// The SQL Server type, if one holds the values. A text such as `nvarchar(9000)` that SQL Server cannot declare is
    /// `None` here and valid in `target_text`.
    pub target: Option<SqlType>,
    /// The target type's text.
    pub target_text: Option<String>,
    /// Whether every value survives exactly.
    pub lossless: bool,
    /// Why there is no type, where there is none.
    pub unsupported: Option<Unsupported>,
}

/// Why a type cannot be transferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The reason.
    pub reason: String,
    /// What to select instead on the source.
    pub workaround: String,
}

/// Looks a type up; `None` when the spelling is not one of ClickHouse's.
///
/// `Nullable`, `LowCardinality` and `SimpleAggregateFunction` wrappers are looked through.
pub fn classify(text: &str) -> Option<Classification> {
    let base = unwrap(text.trim());
    if let Some(target) = scalar(base) {
        return Some(mapped(target, true));
    }
    if let Some((reason, workaround)) = unsupported(base) {
        return Some(refused(reason, workaround));
    }
    parameterised(base)
}

fn mapped(target: SqlType, lossless: bool) -> Classification {
    Classification { target: Some(target), target_text: Some(target.to_string()), lossless, unsupported: None }
}

fn refused(reason: impl Into<String>, workaround: impl Into<String>) -> Classification {
    let why = Unsupported { reason: reason.into(), workaround: workaround.into() };
    Classification { target: None, target_text: None, lossless: false, unsupported: Some(why) }
}

fn scalar(base: &str) -> Option<SqlType> {
    Some(match base {
        "Int8" | "Int16" => SqlType::SmallInt,
        "Int32" | "UInt16" => SqlType::Int,
        "Int64" | "UInt32" => SqlType::BigInt,
        "UInt8" => SqlType::TinyInt,
        "UInt64" => SqlType::Decimal { name: DecimalName::Decimal, precision: 20, scale: 0 },
        "Float32" | "BFloat16" => SqlType::Real,
        "Float64" => SqlType::Float(None),
        "String" => SqlType::NVarChar(Length::Max),
        "Date" | "Date32" => SqlType::Date,
        "Bool" => SqlType::Bit,
        "UUID" => SqlType::UniqueIdentifier,
        "IPv4" => SqlType::VarChar(Length::Of(15)),
        "IPv6" => SqlType::VarChar(Length::Of(45)),
        _ => return None,
    })
}

const AS_JSON: &str = "toJSONString(column)";
const AS_TEXT: &str = "toString(column)";
const TOO_WIDE: &str = "its integers can have more than the 38 digits of the widest SQL Server decimal";
const NO_SCALAR: &str = "SQL Server has no scalar type for nested values";
const NO_SHAPE: &str = "its values have no fixed type, so rows of one column could need different SQL Server types";

/// Reason and workaround for a type without a scalar counterpart.
fn unsupported(base: &str) -> Option<(&'static str, &'static str)> {
    let name = base.split('(').next().unwrap_or(base);
    Some(match name {
        "Int128" | "Int256" | "UInt128" | "UInt256" => (TOO_WIDE, "CAST(column AS Decimal(38, 0))"),
        "Array" | "Tuple" | "Map" | "Nested" => (NO_SCALAR, AS_JSON),
        "Point" | "Ring" | "Polygon" | "MultiPolygon" | "LineString" | "MultiLineString" => (NO_SCALAR, AS_JSON),
        "JSON" | "Object" => (NO_SHAPE, AS_JSON),
        "Variant" | "Dynamic" => (NO_SHAPE, AS_TEXT),
        "AggregateFunction" => ("it holds the engine's internal aggregation state", "finalizeAggregation(column)"),
        "Time" | "Time64" => ("it is a duration that may pass 24 hours, which SQL Server's time cannot hold", AS_TEXT),
        "Nothing" => ("it holds no values", "no such column"),
        _ if name.starts_with("Interval") => ("an interval is not a storable value", AS_TEXT),
        _ => return None,
    })
}

fn parameterised(base: &str) -> Option<Classification> {
    let (name, arguments) = match base.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')')?)),
        None => (base, None),
    };
    match (name.to_ascii_lowercase().as_str(), arguments) {
        ("decimal", Some(arguments)) => {
            let (precision, scale) = arguments.split_once(',')?;
            decimal(number(precision)?, number(scale)?)
        }
        ("decimal32", Some(scale)) => decimal(9, number(scale)?),
        ("decimal64", Some(scale)) => decimal(18, number(scale)?),
        ("decimal128", Some(scale)) => decimal(38, number(scale)?),
        ("decimal256", Some(scale)) => decimal(76, number(scale)?),
        ("fixedstring", Some(length)) => {
            let text = format!("nvarchar({})", number(length)?);
            let target = SqlType::parse(&text);
            Some(Classification { target, target_text: Some(text), lossless: true, unsupported: None })
        }
        ("datetime64", arguments) => {
            let scale = match arguments {
                None => 3,
                Some(arguments) => number(zoned(arguments)?)?,
            };
            Some(mapped(SqlType::DateTime2(scale.min(7) as u8), scale <= 7))
        }
        ("datetime" | "datetime32", arguments) => {
            let zone_only = arguments.is_none_or(|zone| quoted(zone.trim()));
            zone_only.then(|| mapped(SqlType::DateTime2(0), true))
        }
        ("enum" | "enum8" | "enum16", Some(_)) => Some(mapped(SqlType::NVarChar(Length::Max), true)),
        _ => None,
    }
}

fn decimal(precision: u32, scale: u32) -> Option<Classification> {
    if precision > 38 {
        return Some(refused(
            format!("its {precision} digits exceed the 38 of the widest SQL Server decimal"),
            format!("CAST(column AS Decimal(38, {}))", scale.min(38)),
        ));
    }
    let text = format!("decimal({precision},{scale})");
    let target = SqlType::parse(&text);
    Some(Classification { target, target_text: Some(text), lossless: true, unsupported: None })
}

/// The first argument of `precision[, 'zone']`.
fn zoned(arguments: &str) -> Option<&str> {
    match arguments.split_once(',') {
        None => Some(arguments),
        Some((precision, zone)) => quoted(zone.trim()).then_some(precision),
    }
}

fn quoted(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('\'') && text.ends_with('\'') && !text[1..text.len() - 1].contains('\'')
}

fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Removes wrappers that do not change the stored value's type.
fn unwrap(mut text: &str) -> &str {
    loop {
        let Some((name, rest)) = text.split_once('(') else { return text };
        let Some(inner) = rest.strip_suffix(')') else { return text };
        text = match name.to_ascii_lowercase().as_str() {
            "nullable" | "lowcardinality" if !inner.is_empty() => inner.trim(),
            "simpleaggregatefunction" => match inner.split_once(',') {
                Some((_, value)) if !value.trim().is_empty() => value.trim(),
                _ => return text,
            },
            _ => return text,
        };
    }
}
