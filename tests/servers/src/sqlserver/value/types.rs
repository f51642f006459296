//! The system data types.

use super::Collation;

/// Declared length of a variable-length type: bytes for `varchar` and `varbinary`, byte pairs for `nvarchar`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Length {
    /// `(n)`: 1 to 8000 bytes, 1 to 4000 byte pairs.
    Sized(u16),
    /// `(max)`: up to 2^31 - 1 bytes.
    Max,
}

impl Length {
    /// The limit as a count; `usize::MAX` for `max`.
    #[must_use]
    pub fn limit(self) -> usize {
        match self {
            Self::Sized(length) => usize::from(length),
            Self::Max => usize::MAX,
        }
    }

    /// `length` if it is at most `cap`, else `Max`.
    #[must_use]
    pub fn sized_or_max(length: usize, cap: u16) -> Self {
        match u16::try_from(length) {
            Ok(length) if length <= cap => Self::Sized(length),
            _ => Self::Max,
        }
    }
}

/// A data type with its facets. Character types carry their collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the data type of that name")]
pub enum SqlType {
    /// The type of the literal NULL before it meets another type; a column made of it is `int`.
    Null,
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Decimal {
        precision: u8,
        scale: u8,
    },
    SmallMoney,
    Money,
    Real,
    Float,
    Char(u16, Collation),
    VarChar(Length, Collation),
    Text(Collation),
    NChar(u16, Collation),
    NVarChar(Length, Collation),
    NText(Collation),
    Binary(u16),
    VarBinary(Length),
    Image,
    RowVersion,
    Date,
    /// Scale 0 to 7.
    Time(u8),
    /// Scale 0 to 7.
    DateTime2(u8),
    /// Scale 0 to 7.
    DateTimeOffset(u8),
    DateTime,
    SmallDateTime,
    UniqueIdentifier,
    SqlVariant,
}

impl SqlType {
    /// `varchar(length)` in the default collation.
    #[must_use]
    pub const fn varchar(length: u16) -> Self {
        Self::VarChar(Length::Sized(length), Collation::DEFAULT)
    }

    /// `nvarchar(length)` in the default collation.
    #[must_use]
    pub const fn nvarchar(length: u16) -> Self {
        Self::NVarChar(Length::Sized(length), Collation::DEFAULT)
    }

    /// `nvarchar(max)` in the default collation.
    pub const NVARCHAR_MAX: Self = Self::NVarChar(Length::Max, Collation::DEFAULT);
    /// `varchar(max)` in the default collation.
    pub const VARCHAR_MAX: Self = Self::VarChar(Length::Max, Collation::DEFAULT);
    /// `varbinary(max)`.
    pub const VARBINARY_MAX: Self = Self::VarBinary(Length::Max);
    /// `sysname`, the type of identifiers.
    pub const SYSNAME: Self = Self::nvarchar(128);

    /// `varbinary(length)`.
    #[must_use]
    pub const fn varbinary(length: u16) -> Self {
        Self::VarBinary(Length::Sized(length))
    }

    /// `decimal(precision, scale)`.
    #[must_use]
    pub const fn decimal(precision: u8, scale: u8) -> Self {
        Self::Decimal { precision, scale }
    }

    /// The name as sys.types has it, without facets.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Bit => "bit",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Decimal { .. } => "decimal",
            Self::SmallMoney => "smallmoney",
            Self::Money => "money",
            Self::Real => "real",
            Self::Float => "float",
            Self::Char(..) => "char",
            Self::VarChar(..) => "varchar",
            Self::Text(_) => "text",
            Self::NChar(..) => "nchar",
            Self::NVarChar(..) => "nvarchar",
            Self::NText(_) => "ntext",
            Self::Binary(_) => "binary",
            Self::VarBinary(_) => "varbinary",
            Self::Image => "image",
            Self::RowVersion => "timestamp",
            Self::Date => "date",
            Self::Time(_) => "time",
            Self::DateTime2(_) => "datetime2",
            Self::DateTimeOffset(_) => "datetimeoffset",
            Self::DateTime => "datetime",
            Self::SmallDateTime => "smalldatetime",
            Self::UniqueIdentifier => "uniqueidentifier",
            Self::SqlVariant => "sql_variant",
        }
    }

    /// The name in error texts: as [`name`](Self::name), `numeric` for decimals, `(max)` spelled out.
    #[must_use]
    pub fn message_name(&self) -> &'static str {
        match self {
            Self::Decimal { .. } => "numeric",
            Self::VarChar(Length::Max, _) => "varchar(max)",
            Self::NVarChar(Length::Max, _) => "nvarchar(max)",
            Self::VarBinary(Length::Max) => "varbinary(max)",
            other => other.name(),
        }
    }

    /// `max_length` of sys.columns: bytes, -1 for `max`.
    #[must_use]
    pub fn max_length_bytes(&self) -> i16 {
        let bytes = |length: u16| i16::try_from(length).unwrap_or(i16::MAX);
        match self {
            Self::Bit | Self::TinyInt => 1,
            Self::SmallInt => 2,
            Self::Null | Self::Int | Self::Real | Self::SmallMoney | Self::SmallDateTime => 4,
            Self::BigInt | Self::Money | Self::Float | Self::DateTime | Self::RowVersion => 8,
            Self::Decimal { precision, .. } => match precision {
                0..=9 => 5,
                10..=19 => 9,
                20..=28 => 13,
                _ => 17,
            },
            Self::Char(length, _) | Self::Binary(length) => bytes(*length),
            Self::VarChar(Length::Sized(length), _) | Self::VarBinary(Length::Sized(length)) => bytes(*length),
            Self::NChar(length, _) | Self::NVarChar(Length::Sized(length), _) => bytes(2 * length),
            Self::VarChar(Length::Max, _) | Self::NVarChar(Length::Max, _) | Self::VarBinary(Length::Max) => -1,
            Self::Text(_) | Self::NText(_) | Self::Image | Self::UniqueIdentifier => 16,
            Self::Date => 3,
            Self::Time(scale) => time_bytes(*scale),
            Self::DateTime2(scale) => time_bytes(*scale) + 3,
            Self::DateTimeOffset(scale) => time_bytes(*scale) + 5,
            Self::SqlVariant => 8016,
        }
    }

    /// `precision` of sys.columns.
    #[must_use]
    pub fn precision(&self) -> u8 {
        let fraction = |base: u8, scale: u8| if scale == 0 { base } else { base + 1 + scale };
        match self {
            Self::Bit => 1,
            Self::TinyInt => 3,
            Self::SmallInt => 5,
            Self::Null | Self::Int | Self::SmallMoney | Self::Date => 10,
            Self::BigInt | Self::Money => 19,
            Self::Decimal { precision, .. } => *precision,
            Self::Real => 24,
            Self::Float => 53,
            Self::Time(scale) => fraction(8, *scale),
            Self::DateTime2(scale) => fraction(19, *scale),
            Self::DateTimeOffset(scale) => fraction(26, *scale),
            Self::DateTime => 23,
            Self::SmallDateTime => 16,
            _ => 0,
        }
    }

    /// `scale` of sys.columns.
    #[must_use]
    pub fn scale(&self) -> u8 {
        match self {
            Self::Decimal { scale, .. } | Self::Time(scale) | Self::DateTime2(scale) | Self::DateTimeOffset(scale) => {
                *scale
            }
            Self::SmallMoney | Self::Money => 4,
            Self::DateTime => 3,
            _ => 0,
        }
    }

    /// The collation of a character type.
    #[must_use]
    pub fn collation(&self) -> Option<Collation> {
        match self {
            Self::Char(_, collation)
            | Self::VarChar(_, collation)
            | Self::Text(collation)
            | Self::NChar(_, collation)
            | Self::NVarChar(_, collation)
            | Self::NText(collation) => Some(*collation),
            _ => None,
        }
    }

    /// The same type in another collation; types without collation stay as they are.
    #[must_use]
    pub fn with_collation(self, collation: Collation) -> Self {
        match self {
            Self::Char(length, _) => Self::Char(length, collation),
            Self::VarChar(length, _) => Self::VarChar(length, collation),
            Self::Text(_) => Self::Text(collation),
            Self::NChar(length, _) => Self::NChar(length, collation),
            Self::NVarChar(length, _) => Self::NVarChar(length, collation),
            Self::NText(_) => Self::NText(collation),
            other => other,
        }
    }

    /// `char`, `varchar`, `nchar`, `nvarchar`, `text`, `ntext`.
    #[must_use]
    pub fn is_character(&self) -> bool {
        self.collation().is_some()
    }

    /// `nchar`, `nvarchar`, `ntext`.
    #[must_use]
    pub fn is_unicode(&self) -> bool {
        matches!(self, Self::NChar(..) | Self::NVarChar(..) | Self::NText(_))
    }

    /// `binary`, `varbinary`, `image`, `rowversion`.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        matches!(self, Self::Binary(_) | Self::VarBinary(_) | Self::Image | Self::RowVersion)
    }

    /// `bit`, `tinyint`, `smallint`, `int`, `bigint`.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::Bit | Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt)
    }

    /// `money`, `smallmoney`.
    #[must_use]
    pub fn is_money(&self) -> bool {
        matches!(self, Self::Money | Self::SmallMoney)
    }

    /// Integers, `decimal`, money, `real`, `float`.
    #[must_use]
    pub fn is_number(&self) -> bool {
        self.is_integer() || self.is_money() || matches!(self, Self::Decimal { .. } | Self::Real | Self::Float)
    }

    /// `real`, `float`.
    #[must_use]
    pub fn is_approximate(&self) -> bool {
        matches!(self, Self::Real | Self::Float)
    }

    /// `date`, `time`, `datetime2`, `datetimeoffset`, `datetime`, `smalldatetime`.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            Self::Date
                | Self::Time(_)
                | Self::DateTime2(_)
                | Self::DateTimeOffset(_)
                | Self::DateTime
                | Self::SmallDateTime
        )
    }

    /// `text`, `ntext`, `image`.
    #[must_use]
    pub fn is_legacy_large(&self) -> bool {
        matches!(self, Self::Text(_) | Self::NText(_) | Self::Image)
    }

    /// `(max)` types and the legacy large ones.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.is_legacy_large()
            || matches!(
                self,
                Self::VarChar(Length::Max, _) | Self::NVarChar(Length::Max, _) | Self::VarBinary(Length::Max)
            )
    }

    /// Rank in "Data type precedence (Transact-SQL)"; the lower number wins.
    #[must_use]
    pub fn precedence(&self) -> u8 {
        match self {
            Self::SqlVariant => 1,
            Self::DateTimeOffset(_) => 2,
            Self::DateTime2(_) => 3,
            Self::DateTime => 4,
            Self::SmallDateTime => 5,
            Self::Date => 6,
            Self::Time(_) => 7,
            Self::Float => 8,
            Self::Real => 9,
            Self::Decimal { .. } => 10,
            Self::Money => 11,
            Self::SmallMoney => 12,
            Self::BigInt => 13,
            Self::Int => 14,
            Self::SmallInt => 15,
            Self::TinyInt => 16,
            Self::Bit => 17,
            Self::NText(_) => 18,
            Self::Text(_) => 19,
            Self::Image => 20,
            Self::RowVersion => 21,
            Self::UniqueIdentifier => 22,
            Self::NVarChar(..) => 23,
            Self::NChar(..) => 24,
            Self::VarChar(..) => 25,
            Self::Char(..) => 26,
            Self::VarBinary(_) => 27,
            Self::Binary(_) => 28,
            Self::Null => 29,
        }
    }
}

/// The declaration, for example `decimal(38,0)` or `nvarchar(max)`.
impl std::fmt::Display for SqlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name();
        match self {
            Self::Decimal { precision, scale } => write!(f, "{name}({precision},{scale})"),
            Self::Char(length, _) | Self::NChar(length, _) | Self::Binary(length) => write!(f, "{name}({length})"),
            Self::VarChar(length, _) | Self::NVarChar(length, _) | Self::VarBinary(length) => match length {
                Length::Sized(length) => write!(f, "{name}({length})"),
                Length::Max => write!(f, "{name}(max)"),
            },
            Self::Time(scale) | Self::DateTime2(scale) | Self::DateTimeOffset(scale) => write!(f, "{name}({scale})"),
            _ => f.write_str(name),
        }
    }
}

/// Bytes of the time part at `scale` (MS-TDS 2.2.5.5.1.8).
fn time_bytes(scale: u8) -> i16 {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}
