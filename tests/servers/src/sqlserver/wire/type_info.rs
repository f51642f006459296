//! TYPE_INFO (MS-TDS 2.2.5.6): how a data type and the form of its values are announced.

use super::super::value::{Collation, Length, SqlType};
use super::source::{DecodeError, Source};

/// Type tokens.
pub(crate) mod token {
    pub(crate) const NULL: u8 = 0x1F;
    pub(crate) const IMAGE: u8 = 0x22;
    pub(crate) const TEXT: u8 = 0x23;
    pub(crate) const GUID: u8 = 0x24;
    pub(crate) const INTN: u8 = 0x26;
    pub(crate) const DATEN: u8 = 0x28;
    pub(crate) const TIMEN: u8 = 0x29;
    pub(crate) const DATETIME2N: u8 = 0x2A;
    pub(crate) const DATETIMEOFFSETN: u8 = 0x2B;
    pub(crate) const INT1: u8 = 0x30;
    pub(crate) const BIT: u8 = 0x32;
    pub(crate) const INT2: u8 = 0x34;
    pub(crate) const INT4: u8 = 0x38;
    pub(crate) const DATETIM4: u8 = 0x3A;
    pub(crate) const FLT4: u8 = 0x3B;
    pub(crate) const MONEY: u8 = 0x3C;
    pub(crate) const DATETIME: u8 = 0x3D;
    pub(crate) const FLT8: u8 = 0x3E;
    pub(crate) const SQL_VARIANT: u8 = 0x62;
    pub(crate) const NTEXT: u8 = 0x63;
    pub(crate) const BITN: u8 = 0x68;
    pub(crate) const DECIMALN: u8 = 0x6A;
    pub(crate) const NUMERICN: u8 = 0x6C;
    pub(crate) const FLTN: u8 = 0x6D;
    pub(crate) const MONEYN: u8 = 0x6E;
    pub(crate) const DATETIMN: u8 = 0x6F;
    pub(crate) const MONEY4: u8 = 0x7A;
    pub(crate) const INT8: u8 = 0x7F;
    pub(crate) const BIG_VARBINARY: u8 = 0xA5;
    pub(crate) const BIG_VARCHAR: u8 = 0xA7;
    pub(crate) const BIG_BINARY: u8 = 0xAD;
    pub(crate) const BIG_CHAR: u8 = 0xAF;
    pub(crate) const NVARCHAR: u8 = 0xE7;
    pub(crate) const NCHAR: u8 = 0xEF;
}

/// Announced length of the (max) types; their values are partially length-prefixed (PLP).
const MAX_MARK: u16 = 0xFFFF;
/// Largest length in bytes of the sized character and binary types.
const MAX_SIZED_BYTES: u16 = 8000;
/// UserType of `rowversion`.
const USER_TYPE_TIMESTAMP: u32 = 80;

/// How the values of a column or parameter are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Without prefix; NULL is not possible.
    Fixed,
    /// One byte of length; 0 is NULL.
    ByteLength,
    /// Two bytes of length; 0xFFFF is NULL.
    ShortLength,
    /// Eight bytes of length, then chunks; all ones is NULL.
    PartialLength,
    /// `text` and its kin in rows: text pointer, timestamp, four bytes of length.
    TextPointer,
    /// `text` and its kin in parameters: four bytes of length; all ones is NULL.
    LongLength,
    /// Four bytes of length; 0 is NULL.
    Variant,
    /// No bytes at all: the value is NULL.
    Nothing,
}

/// A type as announced on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireType {
    /// The type token.
    pub(crate) token: u8,
    pub(crate) ty: SqlType,
    pub(crate) form: Form,
}

impl WireType {
    /// The announcement of a result column or output parameter: SQL Server uses the fixed tokens for NOT NULL.
    pub(crate) fn of(ty: SqlType, nullable: bool) -> Self {
        use SqlType as T;
        let fixed_or = |fixed: u8, variable: u8| {
            if nullable { (variable, Form::ByteLength) } else { (fixed, Form::Fixed) }
        };
        let sized_or_max = |length: Length| match length {
            Length::Sized(_) => Form::ShortLength,
            Length::Max => Form::PartialLength,
        };
        let (token, form) = match ty {
            T::Null => (token::INTN, Form::ByteLength),
            T::Bit => fixed_or(token::BIT, token::BITN),
            T::TinyInt => fixed_or(token::INT1, token::INTN),
            T::SmallInt => fixed_or(token::INT2, token::INTN),
            T::Int => fixed_or(token::INT4, token::INTN),
            T::BigInt => fixed_or(token::INT8, token::INTN),
            T::Decimal { .. } => (token::DECIMALN, Form::ByteLength),
            T::SmallMoney => fixed_or(token::MONEY4, token::MONEYN),
            T::Money => fixed_or(token::MONEY, token::MONEYN),
            T::Real => fixed_or(token::FLT4, token::FLTN),
            T::Float => fixed_or(token::FLT8, token::FLTN),
            T::Char(..) => (token::BIG_CHAR, Form::ShortLength),
            T::VarChar(length, _) => (token::BIG_VARCHAR, sized_or_max(length)),
            T::Text(_) => (token::TEXT, Form::TextPointer),
            T::NChar(..) => (token::NCHAR, Form::ShortLength),
            T::NVarChar(length, _) => (token::NVARCHAR, sized_or_max(length)),
            T::NText(_) => (token::NTEXT, Form::TextPointer),
            T::Binary(_) | T::RowVersion => (token::BIG_BINARY, Form::ShortLength),
            T::VarBinary(length) => (token::BIG_VARBINARY, sized_or_max(length)),
            T::Image => (token::IMAGE, Form::TextPointer),
            T::Date => (token::DATEN, Form::ByteLength),
            T::Time(_) => (token::TIMEN, Form::ByteLength),
            T::DateTime2(_) => (token::DATETIME2N, Form::ByteLength),
            T::DateTimeOffset(_) => (token::DATETIMEOFFSETN, Form::ByteLength),
            T::DateTime => fixed_or(token::DATETIME, token::DATETIMN),
            T::SmallDateTime => fixed_or(token::DATETIM4, token::DATETIMN),
            T::UniqueIdentifier => (token::GUID, Form::ByteLength),
            T::SqlVariant => (token::SQL_VARIANT, Form::Variant),
        };
        Self { token, ty, form }
    }

    /// UserType of COLMETADATA and RETURNVALUE.
    pub(crate) fn user_type(self) -> u32 {
        if self.ty == SqlType::RowVersion { USER_TYPE_TIMESTAMP } else { 0 }
    }

    /// Appends TYPE_INFO. The table name of `text` and its kin follows separately in COLMETADATA.
    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.push(self.token);
        match self.form {
            Form::Fixed | Form::Nothing => {}
            Form::ByteLength => self.put_byte_length_facets(out),
            Form::ShortLength | Form::PartialLength => {
                let bytes = u16::try_from(self.ty.max_length_bytes()).unwrap_or(MAX_MARK);
                out.extend_from_slice(&bytes.to_le_bytes());
                put_collation(self.ty, out);
            }
            Form::TextPointer | Form::LongLength => {
                let bytes: u32 = if self.token == token::NTEXT { 0x7FFF_FFFE } else { 0x7FFF_FFFF };
                out.extend_from_slice(&bytes.to_le_bytes());
                put_collation(self.ty, out);
            }
            Form::Variant => out.extend_from_slice(&8009u32.to_le_bytes()),
        }
    }

    fn put_byte_length_facets(self, out: &mut Vec<u8>) {
        match self.ty {
            SqlType::Date => {}
            SqlType::Time(scale) | SqlType::DateTime2(scale) | SqlType::DateTimeOffset(scale) => out.push(scale),
            SqlType::Decimal { precision, scale } => out.extend_from_slice(&[max_byte(self.ty), precision, scale]),
            _ => out.push(max_byte(self.ty)),
        }
    }

    /// Reads TYPE_INFO as clients send it for parameters and bulk columns.
    pub(crate) fn parse(source: &mut impl Source) -> Result<Self, DecodeError> {
        let code = source.u8()?;
        if let Some(ty) = fixed_type(code) {
            return Ok(Self { token: code, ty, form: Form::Fixed });
        }
        let (ty, form) = match code {
            token::NULL => (SqlType::Null, Form::Nothing),
            token::INTN | token::BITN | token::FLTN | token::MONEYN | token::DATETIMN | token::GUID => {
                (sized_type(code, source.u8()?)?, Form::ByteLength)
            }
            token::DECIMALN | token::NUMERICN => (decimal(code, source)?, Form::ByteLength),
            token::DATEN => (SqlType::Date, Form::ByteLength),
            token::TIMEN | token::DATETIME2N | token::DATETIMEOFFSETN => {
                (temporal(code, source.u8()?)?, Form::ByteLength)
            }
            token::BIG_CHAR
            | token::BIG_VARCHAR
            | token::NCHAR
            | token::NVARCHAR
            | token::BIG_BINARY
            | token::BIG_VARBINARY => string(code, source)?,
            token::TEXT | token::NTEXT | token::IMAGE => (large(code, source)?, Form::TextPointer),
            token::SQL_VARIANT => {
                source.u32()?;
                (SqlType::SqlVariant, Form::Variant)
            }
            other => return Err(DecodeError::UnknownType(other)),
        };
        Ok(Self { token: code, ty, form })
    }
}

fn max_byte(ty: SqlType) -> u8 {
    u8::try_from(ty.max_length_bytes()).unwrap_or(u8::MAX)
}

fn put_collation(ty: SqlType, out: &mut Vec<u8>) {
    if let Some(collation) = ty.collation() {
        out.extend_from_slice(&collation.to_tds());
    }
}

fn fixed_type(code: u8) -> Option<SqlType> {
    Some(match code {
        token::BIT => SqlType::Bit,
        token::INT1 => SqlType::TinyInt,
        token::INT2 => SqlType::SmallInt,
        token::INT4 => SqlType::Int,
        token::INT8 => SqlType::BigInt,
        token::FLT4 => SqlType::Real,
        token::FLT8 => SqlType::Float,
        token::MONEY4 => SqlType::SmallMoney,
        token::MONEY => SqlType::Money,
        token::DATETIM4 => SqlType::SmallDateTime,
        token::DATETIME => SqlType::DateTime,
        _ => return None,
    })
}

fn sized_type(code: u8, bytes: u8) -> Result<SqlType, DecodeError> {
    Ok(match (code, bytes) {
        (token::INTN, 1) => SqlType::TinyInt,
        (token::INTN, 2) => SqlType::SmallInt,
        (token::INTN, 4) => SqlType::Int,
        (token::INTN, 8) => SqlType::BigInt,
        (token::BITN, 1) => SqlType::Bit,
        (token::FLTN, 4) => SqlType::Real,
        (token::FLTN, 8) => SqlType::Float,
        (token::MONEYN, 4) => SqlType::SmallMoney,
        (token::MONEYN, 8) => SqlType::Money,
        (token::DATETIMN, 4) => SqlType::SmallDateTime,
        (token::DATETIMN, 8) => SqlType::DateTime,
        (token::GUID, 16) => SqlType::UniqueIdentifier,
        _ => return Err(DecodeError::Length(code)),
    })
}

fn decimal(code: u8, source: &mut impl Source) -> Result<SqlType, DecodeError> {
    let (bytes, precision, scale) = (source.u8()?, source.u8()?, source.u8()?);
    let sensible = (2..=17).contains(&bytes) && (1..=38).contains(&precision) && scale <= precision;
    if sensible { Ok(SqlType::Decimal { precision, scale }) } else { Err(DecodeError::Length(code)) }
}

fn temporal(code: u8, scale: u8) -> Result<SqlType, DecodeError> {
    if scale > 7 {
        return Err(DecodeError::Length(code));
    }
    Ok(match code {
        token::TIMEN => SqlType::Time(scale),
        token::DATETIME2N => SqlType::DateTime2(scale),
        _ => SqlType::DateTimeOffset(scale),
    })
}

fn string(code: u8, source: &mut impl Source) -> Result<(SqlType, Form), DecodeError> {
    let bytes = source.u16()?;
    let collation = match code {
        token::BIG_BINARY | token::BIG_VARBINARY => Collation::DEFAULT,
        _ => collation(source)?,
    };
    if bytes == MAX_MARK {
        return Ok(match code {
            token::BIG_VARCHAR => (SqlType::VarChar(Length::Max, collation), Form::PartialLength),
            token::NVARCHAR => (SqlType::NVarChar(Length::Max, collation), Form::PartialLength),
            token::BIG_VARBINARY => (SqlType::VarBinary(Length::Max), Form::PartialLength),
            _ => return Err(DecodeError::Length(code)),
        });
    }
    let unicode = matches!(code, token::NCHAR | token::NVARCHAR);
    if bytes > MAX_SIZED_BYTES || (unicode && bytes % 2 != 0) {
        return Err(DecodeError::Length(code));
    }
    // Clients announce an empty value as a type of length 0, which no declaration can have.
    let length = if unicode { bytes / 2 } else { bytes }.max(1);
    let ty = match code {
        token::BIG_CHAR => SqlType::Char(length, collation),
        token::BIG_VARCHAR => SqlType::VarChar(Length::Sized(length), collation),
        token::NCHAR => SqlType::NChar(length, collation),
        token::NVARCHAR => SqlType::NVarChar(Length::Sized(length), collation),
        token::BIG_BINARY => SqlType::Binary(length),
        _ => SqlType::VarBinary(Length::Sized(length)),
    };
    Ok((ty, Form::ShortLength))
}

fn large(code: u8, source: &mut impl Source) -> Result<SqlType, DecodeError> {
    source.u32()?;
    Ok(match code {
        token::TEXT => SqlType::Text(collation(source)?),
        token::NTEXT => SqlType::NText(collation(source)?),
        _ => SqlType::Image,
    })
}

/// The collation of a client's value. What matters here is the code page of its `varchar` bytes: a client may send a
/// collation that this server has no name for, and its conversion to the column's collation follows anyway.
fn collation(source: &mut impl Source) -> Result<Collation, DecodeError> {
    const UTF8: u8 = 0x04;
    let bytes: [u8; 5] = source.array()?;
    let known = [Collation::DEFAULT, Collation::LATIN1_BIN2, Collation::LATIN1_100_BIN2_UTF8];
    Ok(known.into_iter().find(|collation| collation.to_tds() == bytes).unwrap_or(if bytes[3] & UTF8 != 0 {
        Collation::LATIN1_100_BIN2_UTF8
    } else {
        Collation::DEFAULT
    }))
}
