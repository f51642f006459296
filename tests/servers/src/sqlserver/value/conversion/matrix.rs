//! Which conversions exist (the chart in "CAST and CONVERT (Transact-SQL)").

use super::super::{SqlType, ValueError};
use super::Strictness;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Implicitly,
    Explicitly,
    Never,
}

/// Groups of types that the chart treats alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Null,
    Integer,
    Decimal,
    Approximate,
    Money,
    Character,
    Unicode,
    LegacyText,
    Binary,
    Image,
    RowVersion,
    LegacyDateTime,
    Date,
    Time,
    DateTime2,
    Guid,
    Variant,
}

fn group(ty: &SqlType) -> Group {
    match ty {
        SqlType::Null => Group::Null,
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt => Group::Integer,
        SqlType::Decimal { .. } => Group::Decimal,
        SqlType::Real | SqlType::Float => Group::Approximate,
        SqlType::SmallMoney | SqlType::Money => Group::Money,
        SqlType::Char(..) | SqlType::VarChar(..) => Group::Character,
        SqlType::NChar(..) | SqlType::NVarChar(..) => Group::Unicode,
        SqlType::Text(_) | SqlType::NText(_) => Group::LegacyText,
        SqlType::Binary(_) | SqlType::VarBinary(_) => Group::Binary,
        SqlType::Image => Group::Image,
        SqlType::RowVersion => Group::RowVersion,
        SqlType::DateTime | SqlType::SmallDateTime => Group::LegacyDateTime,
        SqlType::Date => Group::Date,
        SqlType::Time(_) => Group::Time,
        SqlType::DateTime2(_) | SqlType::DateTimeOffset(_) => Group::DateTime2,
        SqlType::UniqueIdentifier => Group::Guid,
        SqlType::SqlVariant => Group::Variant,
    }
}

fn allowed(from: &SqlType, to: &SqlType) -> Allowed {
    use Allowed::{Explicitly, Implicitly, Never};
    use Group::{
        Approximate, Binary, Character, Date, DateTime2, Decimal, Guid, Image, Integer, LegacyDateTime, LegacyText,
        Money, Null, RowVersion, Time, Unicode, Variant,
    };
    match (group(from), group(to)) {
        (Null, _) | (_, Null) => Implicitly,
        (Variant, Variant) => Implicitly,
        (Variant, LegacyText | Image | RowVersion) => Never,
        (Variant, _) => Explicitly,
        (LegacyText | Image | RowVersion, Variant) => Never,
        (_, Variant) => {
            if from.is_large() {
                Never
            } else {
                Implicitly
            }
        }

        (Money, Character | Unicode) => Explicitly,
        (Integer | Decimal | Approximate | Money, Integer | Decimal | Approximate | Money | Character | Unicode) => {
            Implicitly
        }
        (Integer | Decimal | Money | Approximate, Binary | LegacyDateTime) => Implicitly,
        (Integer | Decimal | Money, RowVersion) => Implicitly,
        (Integer | Decimal | Approximate | Money, _) => Never,

        (Character | Unicode, Character | Unicode | LegacyText) => Implicitly,
        (Character | Unicode, Integer | Decimal | Approximate | Money) => Implicitly,
        (Character | Unicode, LegacyDateTime | Date | Time | DateTime2 | Guid) => Implicitly,
        (Character | Unicode, Binary) => Explicitly,
        (Character, RowVersion) => Explicitly,
        (Character, Image) => Implicitly,
        (Unicode, _) => Never,
        (LegacyText, Character | Unicode | LegacyText) => Implicitly,
        (LegacyText, _) => Never,

        (Binary, Approximate | LegacyText) => Never,
        (Binary, Date | Time | DateTime2) => Explicitly,
        (Binary, _) => Implicitly,
        (Image, Binary | RowVersion | Image) => Implicitly,
        (Image, _) => Never,
        (RowVersion, Approximate | Unicode | LegacyText | Date | Time | DateTime2 | Guid) => Never,
        (RowVersion, _) => Implicitly,

        (LegacyDateTime, Integer | Decimal | Approximate | Money | Binary) => Explicitly,
        (LegacyDateTime, Character | Unicode | LegacyDateTime | Date | Time | DateTime2) => Implicitly,
        (LegacyDateTime, _) => Never,
        (Date, Time) | (Time, Date) => Never,
        (Date | Time | DateTime2, Character | Unicode | LegacyDateTime | Date | Time | DateTime2) => Implicitly,
        (Date | Time | DateTime2, Binary) => Explicitly,
        (Date | Time | DateTime2, _) => Never,

        (Guid, Guid | Binary | Character | Unicode) => Implicitly,
        (Guid, _) => Never,
    }
}

/// Whether the conversion exists at all; SQL Server decides this when it compiles the statement.
///
/// # Errors
/// 206 or 257 for an implicit conversion, 529 for an explicit one.
pub fn check_conversion(from: &SqlType, to: &SqlType, strictness: Strictness) -> Result<(), ValueError> {
    match (allowed(from, to), strictness) {
        (Allowed::Implicitly, _) | (Allowed::Explicitly, Strictness::Explicit) => Ok(()),
        (Allowed::Explicitly, Strictness::Implicit) => Err(ValueError::not_allowed_implicitly(from, to)),
        (Allowed::Never, Strictness::Implicit) => Err(ValueError::type_clash(from, to)),
        (Allowed::Never, Strictness::Explicit) => Err(ValueError::not_allowed_explicitly(from, to)),
    }
}
