//! The columns a result must have, by name and type text, and how each type lies on the wire.

use super::error::{Result, WireError};

/// Names and types that every block of a result must carry, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    columns: Vec<ShapeColumn>,
}

/// One expected column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeColumn {
    pub(crate) name: String,
    pub(crate) type_text: String,
    pub(crate) nullable: bool,
    pub(crate) layout: Layout,
}

/// How the values of a type lie on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Bool,
    Float32,
    Float64,
    String,
    Uuid,
    Date,
    Date32,
    /// `Decimal` of at most 9 digits.
    Decimal32,
    /// `Decimal` of at most 18 digits.
    Decimal64,
    /// `Decimal` of at most 38 digits.
    Decimal128,
}

impl Shape {
    /// Builds the shape of `(name, type text)` pairs. A type outside the reader's own list is an error here, so that no
    /// block is ever decoded by a guess.
    pub(crate) fn new<N: Into<String>, T: Into<String>>(columns: impl IntoIterator<Item = (N, T)>) -> Result<Self> {
        let columns = columns
            .into_iter()
            .map(|(name, type_text)| {
                let type_text = type_text.into();
                let (nullable, layout) =
                    parse_type(&type_text).ok_or(WireError::Request("a result type is not one of the reader's"))?;
                Ok(ShapeColumn { name: name.into(), type_text, nullable, layout })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Shape { columns })
    }

    pub(crate) fn columns(&self) -> &[ShapeColumn] {
        &self.columns
    }
}

/// Reads a type text exactly as a server spells it; no alias, no inner space beyond the server's own.
fn parse_type(text: &str) -> Option<(bool, Layout)> {
    if let Some(inner) = text.strip_prefix("Nullable(").and_then(|rest| rest.strip_suffix(')')) {
        return Some((true, parse_plain(inner)?));
    }
    Some((false, parse_plain(text)?))
}

fn parse_plain(text: &str) -> Option<Layout> {
    Some(match text {
        "Int8" => Layout::Int8,
        "Int16" => Layout::Int16,
        "Int32" => Layout::Int32,
        "Int64" => Layout::Int64,
        "UInt8" => Layout::UInt8,
        "UInt16" => Layout::UInt16,
        "UInt32" => Layout::UInt32,
        "UInt64" => Layout::UInt64,
        "Bool" => Layout::Bool,
        "Float32" => Layout::Float32,
        "Float64" => Layout::Float64,
        "String" => Layout::String,
        "UUID" => Layout::Uuid,
        "Date" => Layout::Date,
        "Date32" => Layout::Date32,
        _ => return parse_decimal(text),
    })
}

fn parse_decimal(text: &str) -> Option<Layout> {
    let (precision, scale) = text.strip_prefix("Decimal(")?.strip_suffix(')')?.split_once(',')?;
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if plain { digits.parse::<u8>().ok() } else { None }
    };
    let (precision, scale) = (number(precision)?, number(scale.trim_start())?);
    match precision {
        _ if scale > precision => None,
        1..=9 => Some(Layout::Decimal32),
        10..=18 => Some(Layout::Decimal64),
        19..=38 => Some(Layout::Decimal128),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Shape, parse_type};

    #[test]
    fn types_are_read_as_the_server_spells_them() {
        assert_eq!(parse_type("Nullable(Decimal(38, 38))"), Some((true, Layout::Decimal128)));
        assert_eq!(parse_type("Decimal(9, 0)"), Some((false, Layout::Decimal32)));
        assert_eq!(parse_type("Decimal(10, 2)"), Some((false, Layout::Decimal64)));
        for refused in [
            "Decimal(39, 0)",
            "Decimal(0, 0)",
            "Decimal(5, 6)",
            "Decimal(9 ,0)",
            "Decimal32(2)",
            "Nullable(Nullable(Int8))",
            "LowCardinality(String)",
            "FixedString(3)",
            "Array(Int8)",
            "DateTime",
            "int8",
            "Int8 ",
            "",
            "Nullable(",
        ] {
            assert_eq!(parse_type(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_shape_of_unknown_types_cannot_be_built() {
        assert!(Shape::new([("a", "Int8"), ("b", "IPv4")]).is_err());
    }
}
