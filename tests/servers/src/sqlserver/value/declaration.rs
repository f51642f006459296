//! Types as declarations and CAST write them.

use super::{Collation, Length, SqlType, ValueError};

impl SqlType {
    /// A type by its name in a declaration or CAST and its facets, `-1` for `max`.
    ///
    /// Names are not case sensitive; synonyms of the standard are known. `length_default` is the length of a
    /// character or binary type without facets: 30 in CAST and CONVERT, 1 in a declaration.
    ///
    /// # Errors
    /// 243 for an unknown name; 131, 1001, 1002, 192, 2716 for facets that the type does not take.
    pub fn from_name(
        name: &str,
        facets: &[i64],
        length_default: u16,
        collation: Collation,
    ) -> Result<Self, ValueError> {
        let lower = name.to_ascii_lowercase();
        let lower = lower.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let plain = |ty: Self| if facets.is_empty() { Ok(ty) } else { Err(facets_not_taken(&lower)) };
        match lower.as_str() {
            "bit" => plain(Self::Bit),
            "tinyint" => plain(Self::TinyInt),
            "smallint" => plain(Self::SmallInt),
            "int" | "integer" => plain(Self::Int),
            "bigint" => plain(Self::BigInt),
            "decimal" | "dec" | "numeric" => decimal_of(&lower, facets),
            "smallmoney" => plain(Self::SmallMoney),
            "money" => plain(Self::Money),
            "real" => plain(Self::Real),
            "float" | "double precision" => match facets {
                [] => Ok(Self::Float),
                [1..=24] => Ok(Self::Real),
                [25..=53] => Ok(Self::Float),
                [other] => Err(ValueError::new(
                    2750,
                    1,
                    format!(
                        "Column or parameter #1: Specified column precision {other} is greater than the maximum precision of 53."
                    ),
                )),
                _ => Err(facets_not_taken(&lower)),
            },
            "char" | "character" => {
                fixed_length(&lower, facets, length_default, 8000).map(|n| Self::Char(n, collation))
            }
            "nchar" | "national char" | "national character" => {
                fixed_length(&lower, facets, length_default, 4000).map(|n| Self::NChar(n, collation))
            }
            "varchar" | "char varying" | "character varying" => {
                variable_length(&lower, facets, length_default, 8000).map(|n| Self::VarChar(n, collation))
            }
            "nvarchar" | "national char varying" | "national character varying" => {
                variable_length(&lower, facets, length_default, 4000).map(|n| Self::NVarChar(n, collation))
            }
            "text" => plain(Self::Text(collation)),
            "ntext" | "national text" => plain(Self::NText(collation)),
            "image" => plain(Self::Image),
            "binary" => fixed_length(&lower, facets, length_default, 8000).map(Self::Binary),
            "varbinary" | "binary varying" => {
                variable_length(&lower, facets, length_default, 8000).map(Self::VarBinary)
            }
            "rowversion" | "timestamp" => plain(Self::RowVersion),
            "date" => plain(Self::Date),
            "time" => fraction_scale(&lower, facets).map(Self::Time),
            "datetime2" => fraction_scale(&lower, facets).map(Self::DateTime2),
            "datetimeoffset" => fraction_scale(&lower, facets).map(Self::DateTimeOffset),
            "datetime" => plain(Self::DateTime),
            "smalldatetime" => plain(Self::SmallDateTime),
            "uniqueidentifier" => plain(Self::UniqueIdentifier),
            "sql_variant" => plain(Self::SqlVariant),
            "sysname" => plain(Self::NVarChar(Length::Sized(128), collation)),
            _ => Err(ValueError::new(243, 1, format!("Type {name} is not a defined system type."))),
        }
    }
}

fn facets_not_taken(name: &str) -> ValueError {
    ValueError::new(
        2716,
        1,
        format!("Column, parameter, or variable #1: Cannot specify a column width on data type {name}."),
    )
}

fn decimal_of(name: &str, facets: &[i64]) -> Result<SqlType, ValueError> {
    let (precision, scale) = match facets {
        [] => (18, 0),
        [precision] => (*precision, 0),
        [precision, scale] => (*precision, *scale),
        _ => return Err(facets_not_taken(name)),
    };
    if precision > 38 {
        let text = format!(
            "Column or parameter #1: Specified column precision {precision} is greater than the maximum precision of 38."
        );
        return Err(ValueError::new(2750, 1, text));
    }
    if scale > precision {
        let text = format!(
            "Column or parameter #1: Specified column scale {scale} is greater than the specified precision of {precision}."
        );
        return Err(ValueError::new(2751, 1, text));
    }
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..), Ok(scale)) => Ok(SqlType::Decimal { precision, scale }),
        _ => Err(ValueError::syntax(1001, 1, "Line 1: Length or precision specification 0 is invalid.")),
    }
}

fn fixed_length(name: &str, facets: &[i64], default: u16, cap: u16) -> Result<u16, ValueError> {
    match facets {
        [] => Ok(default),
        [0] => Err(ValueError::syntax(1001, 1, "Line 1: Length or precision specification 0 is invalid.")),
        [length] => match u16::try_from(*length) {
            Ok(length) if length <= cap => Ok(length),
            _ => Err(ValueError::syntax(
                131,
                2,
                format!(
                    "The size ({length}) given to the type '{name}' exceeds the maximum allowed for any data type ({cap})."
                ),
            )),
        },
        _ => Err(facets_not_taken(name)),
    }
}

fn variable_length(name: &str, facets: &[i64], default: u16, cap: u16) -> Result<Length, ValueError> {
    if facets == [-1] { Ok(Length::Max) } else { fixed_length(name, facets, default, cap).map(Length::Sized) }
}

fn fraction_scale(name: &str, facets: &[i64]) -> Result<u8, ValueError> {
    match facets {
        [] => Ok(7),
        [scale] => match u8::try_from(*scale) {
            Ok(scale) if scale <= 7 => Ok(scale),
            _ => Err(ValueError::syntax(1002, 1, format!("Line 1: Specified scale {scale} is invalid."))),
        },
        _ => Err(facets_not_taken(name)),
    }
}
