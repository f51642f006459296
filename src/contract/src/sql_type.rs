//! SQL Server column types that the route can write, and their exact spelling (contract.md 3.1-3.2).
//!
//! Two grammars read a type text. [`SqlType::parse`] is strict: it is used for authored overrides and generated DDL and
//! refuses whatever `CREATE TABLE` would refuse. [`SqlType::parse_declared`] also fills in SQL Server's defaults
//! (`datetime2` is `datetime2(7)`); it reads declarations of a wire layout.

use std::fmt;

/// Length of a variable type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// A bound: characters of the n-types (UTF-16 code units), bytes of the others.
    Of(u16),
    /// `(max)`.
    Max,
}

/// Spelling of an exact numeric type; both are one type to SQL Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecimalName {
    /// `decimal`.
    Decimal,
    /// `numeric`.
    Numeric,
}

/// A SQL Server column type with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// `bit`.
    Bit,
    /// `tinyint`, 0 to 255.
    TinyInt,
    /// `smallint`.
    SmallInt,
    /// `int`.
    Int,
    /// `bigint`.
    BigInt,
    /// `real`.
    Real,
    /// `float` (`None`) or `float(p)`, 1 to 53; below 25 it is stored in four bytes.
    Float(Option<u8>),
    /// `decimal(p,s)` or `numeric(p,s)`.
    Decimal {
        /// The authored spelling.
        name: DecimalName,
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// `money`.
    Money,
    /// `smallmoney`.
    SmallMoney,
    /// `uniqueidentifier`.
    UniqueIdentifier,
    /// `date`.
    Date,
    /// `time(s)`.
    Time(u8),
    /// `datetime2(s)`.
    DateTime2(u8),
    /// `datetimeoffset(s)`.
    DateTimeOffset(u8),
    /// `datetime`.
    DateTime,
    /// `smalldatetime`.
    SmallDateTime,
    /// `nvarchar(n)` or `nvarchar(max)`.
    NVarChar(Length),
    /// `varchar(n)` or `varchar(max)`.
    VarChar(Length),
    /// `varbinary(n)` or `varbinary(max)`.
    VarBinary(Length),
    /// `nchar(n)`.
    NChar(u16),
    /// `char(n)`.
    Char(u16),
    /// `binary(n)`.
    Binary(u16),
}

impl SqlType {
    /// Reads an authored type: any case, spaces ignored, every parameter that SQL Server has no safe default for present.
    /// `None` for anything `CREATE TABLE` would not take or this route cannot write.
    pub fn parse(text: &str) -> Option<SqlType> {
        let (base, arguments) = split(text)?;
        parse(&base, arguments.as_deref(), false)
    }

    /// Reads a declaration with SQL Server's defaults for missing parameters: `datetime2` has scale 7, `decimal` is
    /// (18,0), a text or binary type without length has length 1.
    pub fn parse_declared(text: &str) -> Option<SqlType> {
        let (base, arguments) = split(text)?;
        parse(&base, arguments.as_deref(), true)
    }

    /// The type's name without parameters, as the layout documents spell it.
    pub fn base_name(self) -> &'static str {
        match self {
            SqlType::Bit => "bit",
            SqlType::TinyInt => "tinyint",
            SqlType::SmallInt => "smallint",
            SqlType::Int => "int",
            SqlType::BigInt => "bigint",
            SqlType::Real => "real",
            SqlType::Float(_) => "float",
            SqlType::Decimal { name: DecimalName::Decimal, .. } => "decimal",
            SqlType::Decimal { name: DecimalName::Numeric, .. } => "numeric",
            SqlType::Money => "money",
            SqlType::SmallMoney => "smallmoney",
            SqlType::UniqueIdentifier => "uniqueidentifier",
            SqlType::Date => "date",
            SqlType::Time(_) => "time",
            SqlType::DateTime2(_) => "datetime2",
            SqlType::DateTimeOffset(_) => "datetimeoffset",
            SqlType::DateTime => "datetime",
            SqlType::SmallDateTime => "smalldatetime",
            SqlType::NVarChar(_) => "nvarchar",
            SqlType::VarChar(_) => "varchar",
            SqlType::VarBinary(_) => "varbinary",
            SqlType::NChar(_) => "nchar",
            SqlType::Char(_) => "char",
            SqlType::Binary(_) => "binary",
        }
    }

    /// The spelling that SQL Server's catalog gives back: `float` becomes `float(53)`, `float(24)` becomes `real`.
    pub fn catalog_spelling(self) -> String {
        match self {
            SqlType::Float(precision) if precision.unwrap_or(53) >= 25 => "float(53)".to_owned(),
            SqlType::Float(_) => "real".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether both are the same type to SQL Server: `float` is `float(53)`, `numeric` is `decimal`.
    pub fn same_storage(self, other: SqlType) -> bool {
        self.comparable() == other.comparable()
    }

    /// The type with spelling differences removed.
    fn comparable(self) -> SqlType {
        match self {
            SqlType::Float(precision) if precision.unwrap_or(53) >= 25 => SqlType::Float(None),
            SqlType::Float(_) => SqlType::Real,
            SqlType::Decimal { precision, scale, .. } => {
                SqlType::Decimal { name: DecimalName::Decimal, precision, scale }
            }
            other => other,
        }
    }

    /// Bits of an IEEE mantissa that the type keeps: 24 or 53; `None` for other types.
    pub fn float_bits(self) -> Option<u8> {
        match self.comparable() {
            SqlType::Real => Some(24),
            SqlType::Float(_) => Some(53),
            _ => None,
        }
    }

    /// Whether the type holds text in an encoding that depends on a collation.
    pub fn is_narrow_text(self) -> bool {
        matches!(self, SqlType::VarChar(_) | SqlType::Char(_))
    }

    /// Whether the type holds text.
    pub fn is_text(self) -> bool {
        self.is_narrow_text() || matches!(self, SqlType::NVarChar(_) | SqlType::NChar(_))
    }
}

/// The canonical spelling: lower case, no spaces, `datetime2(7)` never shortened.
impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.base_name();
        match *self {
            SqlType::Float(Some(precision)) => write!(f, "{base}({precision})"),
            SqlType::Decimal { precision, scale, .. } => write!(f, "{base}({precision},{scale})"),
            SqlType::Time(scale) | SqlType::DateTime2(scale) | SqlType::DateTimeOffset(scale) => {
                write!(f, "{base}({scale})")
            }
            SqlType::NVarChar(Length::Max) | SqlType::VarChar(Length::Max) | SqlType::VarBinary(Length::Max) => {
                write!(f, "{base}(max)")
            }
            SqlType::NVarChar(Length::Of(n)) | SqlType::VarChar(Length::Of(n)) | SqlType::VarBinary(Length::Of(n)) => {
                write!(f, "{base}({n})")
            }
            SqlType::NChar(n) | SqlType::Char(n) | SqlType::Binary(n) => write!(f, "{base}({n})"),
            _ => f.write_str(base),
        }
    }
}

/// Splits `base(arguments)` after removing white space and lowering the case.
fn split(text: &str) -> Option<(String, Option<Vec<String>>)> {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    match plain.split_once('(') {
        None => Some((plain, None)),
        Some((base, rest)) => {
            let inner = rest.strip_suffix(')')?;
            Some((base.to_owned(), Some(inner.split(',').map(str::to_owned).collect())))
        }
    }
}

fn parse(base: &str, arguments: Option<&[String]>, defaults: bool) -> Option<SqlType> {
    let simple = match base {
        "bit" => Some(SqlType::Bit),
        "tinyint" => Some(SqlType::TinyInt),
        "smallint" => Some(SqlType::SmallInt),
        "int" => Some(SqlType::Int),
        "bigint" => Some(SqlType::BigInt),
        "real" => Some(SqlType::Real),
        "money" => Some(SqlType::Money),
        "smallmoney" => Some(SqlType::SmallMoney),
        "uniqueidentifier" => Some(SqlType::UniqueIdentifier),
        "date" => Some(SqlType::Date),
        "datetime" => Some(SqlType::DateTime),
        "smalldatetime" => Some(SqlType::SmallDateTime),
        _ => None,
    };
    if let Some(simple) = simple {
        return arguments.is_none().then_some(simple);
    }
    match (base, arguments) {
        ("float", None) => Some(SqlType::Float(None)),
        ("float", Some([precision])) => Some(SqlType::Float(Some(number(precision, 1, 53)? as u8))),
        ("decimal" | "numeric", arguments) => parse_decimal(base, arguments, defaults),
        ("time" | "datetime2" | "datetimeoffset", arguments) => {
            let scale = match arguments {
                None => 7,
                Some([scale]) => number(scale, 0, 7)? as u8,
                Some(_) => return None,
            };
            Some(match base {
                "time" => SqlType::Time(scale),
                "datetime2" => SqlType::DateTime2(scale),
                _ => SqlType::DateTimeOffset(scale),
            })
        }
        _ => parse_sized(base, arguments, defaults),
    }
}

fn parse_decimal(base: &str, arguments: Option<&[String]>, defaults: bool) -> Option<SqlType> {
    let (precision, scale) = match arguments {
        Some([precision, scale]) => {
            let precision = number(precision, 1, 38)?;
            (precision, number(scale, 0, precision)?)
        }
        Some([precision]) if defaults => (number(precision, 1, 38)?, 0),
        None if defaults => (18, 0),
        _ => return None,
    };
    let name = if base == "decimal" { DecimalName::Decimal } else { DecimalName::Numeric };
    Some(SqlType::Decimal { name, precision: precision as u8, scale: scale as u8 })
}

fn parse_sized(base: &str, arguments: Option<&[String]>, defaults: bool) -> Option<SqlType> {
    let limit = match base {
        "nvarchar" | "nchar" => 4000,
        "varchar" | "char" | "varbinary" | "binary" => 8000,
        _ => return None,
    };
    let length = match arguments {
        Some([one]) if one == "max" => Length::Max,
        Some([one]) => Length::Of(number(one, 1, limit)? as u16),
        None if defaults => Length::Of(1),
        _ => return None,
    };
    match (base, length) {
        ("nvarchar", length) => Some(SqlType::NVarChar(length)),
        ("varchar", length) => Some(SqlType::VarChar(length)),
        ("varbinary", length) => Some(SqlType::VarBinary(length)),
        ("nchar", Length::Of(n)) => Some(SqlType::NChar(n)),
        ("char", Length::Of(n)) => Some(SqlType::Char(n)),
        ("binary", Length::Of(n)) => Some(SqlType::Binary(n)),
        _ => None,
    }
}

/// A decimal number of ASCII digits within `min..=max`.
fn number(text: &str, min: u32, max: u32) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse::<u32>().ok())??;
    (min..=max).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authored_types_are_normalised() {
        for (text, expected) in [
            (" Decimal( 18 , 4 ) ", "decimal(18,4)"),
            ("NUMERIC(5,0)", "numeric(5,0)"),
            ("float", "float"),
            ("float(53)", "float(53)"),
            ("DateTime2", "datetime2(7)"),
            ("nvarchar(MAX)", "nvarchar(max)"),
            ("char(8000)", "char(8000)"),
        ] {
            assert_eq!(SqlType::parse(text).map(|t| t.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_create_table_refuses_is_refused() {
        let refused = ["", "bogus", "int(4)", "decimal(39,0)", "decimal(5,6)", "decimal(5)", "float(0)", "float(54)"];
        for text in refused.into_iter().chain(["datetime2(8)", "nvarchar(4001)", "nchar(max)", "varchar", "varchar(0)"])
        {
            assert_eq!(SqlType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn catalog_spelling_expands_float_only() {
        let spelled = |text: &str| SqlType::parse(text).map(SqlType::catalog_spelling);
        assert_eq!(spelled("float").as_deref(), Some("float(53)"));
        assert_eq!(spelled("float(24)").as_deref(), Some("real"));
        assert_eq!(spelled("datetime2(6)").as_deref(), Some("datetime2(6)"));
    }
}
