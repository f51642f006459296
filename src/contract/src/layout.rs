//! Native BCP layout of a row: prefix widths and payload lengths of every field (contract.md 3.1).

use crate::canon::{Json, strict_digest};
use crate::code;
use crate::error::Refusal;
use crate::sql_type::{Length, SqlType};

/// Layout of one column on the native wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireColumn {
    /// Column name.
    pub name: String,
    /// The declaration as written, for example `float(53) nullable`: admission compares this text.
    pub declared: String,
    /// The SQL Server type.
    pub sql: SqlType,
    /// Whether NULL may occur.
    pub nullable: bool,
    /// Bytes of the length prefix: 0, 1, 2 or 8.
    pub prefix_width: u8,
    /// Payload bytes of a fixed type; `None` for text and binary.
    pub fixed_length: Option<u8>,
}

impl WireColumn {
    /// The layout of a declaration such as `decimal(9,2)` or `bigint nullable`.
    ///
    /// # Errors
    /// `mssql_native_unsupported_type`: not a type of the native profile, or `char(n)` NOT NULL, which has no framing.
    pub fn new(name: &str, declared: &str) -> Result<WireColumn, Refusal> {
        let (base, nullable) = split_nullable(declared);
        let sql = SqlType::parse_declared(&base).filter(|sql| nullable || !matches!(sql, SqlType::Char(_)));
        let sql = sql.ok_or_else(|| {
            Refusal::new(code::UNSUPPORTED_TYPE, "a target column's type has no layout in the native profile")
        })?;
        let fixed_length = fixed_length(sql);
        let prefix_width = match sql {
            SqlType::NVarChar(Length::Max) | SqlType::VarChar(Length::Max) | SqlType::VarBinary(Length::Max) => 8,
            _ if fixed_length.is_none() => 2,
            SqlType::Bit | SqlType::UniqueIdentifier | SqlType::Decimal { .. } => 1,
            _ => u8::from(nullable),
        };
        Ok(WireColumn {
            name: name.to_owned(),
            declared: declared.to_owned(),
            sql,
            nullable,
            prefix_width,
            fixed_length,
        })
    }

    /// Precision of a decimal, numeric or explicit float.
    pub fn precision(&self) -> Option<u8> {
        match self.sql {
            SqlType::Decimal { precision, .. } => Some(precision),
            SqlType::Float(precision) => precision,
            _ => None,
        }
    }

    /// Physical scale: that of a decimal; 7 for every time type, because their payload counts 100 ns at any scale.
    pub fn scale(&self) -> Option<u8> {
        match self.sql {
            SqlType::Decimal { scale, .. } => Some(scale),
            SqlType::Time(_) | SqlType::DateTime2(_) | SqlType::DateTimeOffset(_) => Some(7),
            _ => None,
        }
    }

    /// Encoding of text and binary payloads, as the layout documents name it.
    pub fn encoding(&self) -> Option<&'static str> {
        match self.sql {
            SqlType::NVarChar(_) | SqlType::NChar(_) => Some("utf-16le"),
            _ => self.fixed_length.is_none().then_some("utf-8"),
        }
    }

    /// The largest payload in bytes: the bound of a sized type, or the fixed length; `None` for `(max)`.
    pub fn max_payload(&self) -> Option<u32> {
        match self.sql {
            SqlType::NVarChar(Length::Of(n)) | SqlType::NChar(n) => Some(u32::from(n) * 2),
            SqlType::VarChar(Length::Of(n)) | SqlType::VarBinary(Length::Of(n)) => Some(u32::from(n)),
            SqlType::Char(n) | SqlType::Binary(n) => Some(u32::from(n)),
            _ => self.fixed_length.map(u32::from),
        }
    }

    /// Whether every payload has exactly [`max_payload`](Self::max_payload) bytes.
    pub fn is_exact_length(&self) -> bool {
        self.fixed_length.is_some() || matches!(self.sql, SqlType::NChar(_) | SqlType::Char(_) | SqlType::Binary(_))
    }

    /// The column's layout document: the ten members of the wire fingerprint.
    pub fn document(&self) -> Json {
        Json::object([
            ("name", Json::from(&self.name)),
            ("source_type", Json::from(&self.declared)),
            ("target_type", Json::from(self.clickhouse_type())),
            ("nullable", Json::from(self.nullable)),
            ("storage_type", Json::from(self.sql.base_name())),
            ("prefix_width", Json::from(self.prefix_width)),
            ("fixed_length", Json::from(self.fixed_length)),
            ("precision", Json::from(self.precision())),
            ("scale", Json::from(self.scale())),
            ("encoding", Json::from(self.encoding())),
        ])
    }

    /// The ClickHouse type that the layout documents name for the column; it describes, nothing is decided by it.
    pub fn clickhouse_type(&self) -> String {
        let plain = match self.sql {
            SqlType::Bit => "Bool".to_owned(),
            SqlType::TinyInt => "UInt8".to_owned(),
            SqlType::SmallInt => "Int16".to_owned(),
            SqlType::Int => "Int32".to_owned(),
            SqlType::BigInt => "Int64".to_owned(),
            SqlType::Real => "Float32".to_owned(),
            SqlType::Float(_) => "Float64".to_owned(),
            // The documents name the widest common decimal for a declaration that gives no precision.
            SqlType::Decimal { .. } if !self.declared.contains('(') => "Decimal(38,9)".to_owned(),
            SqlType::Decimal { precision, scale, .. } => format!("Decimal({precision},{scale})"),
            SqlType::Money => "Decimal(19,4)".to_owned(),
            SqlType::SmallMoney => "Decimal(10,4)".to_owned(),
            SqlType::UniqueIdentifier => "UUID".to_owned(),
            SqlType::Date => "Date".to_owned(),
            SqlType::DateTime2(scale) => format!("DateTime64({scale})"),
            SqlType::DateTimeOffset(scale) => format!("DateTime64({scale}, 'UTC')"),
            SqlType::DateTime => "DateTime64(3)".to_owned(),
            SqlType::SmallDateTime => "DateTime64(0)".to_owned(),
            _ => "String".to_owned(),
        };
        if self.nullable { format!("Nullable({plain})") } else { plain }
    }
}

/// Layout of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireLayout {
    columns: Vec<WireColumn>,
}

impl WireLayout {
    /// The layout of `(name, declaration)` pairs, in column order.
    ///
    /// # Errors
    /// Those of [`WireColumn::new`]; `mssql_native_columns_mismatch` for no column, an empty or a repeated name.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<WireLayout, Refusal> {
        let columns = columns
            .into_iter()
            .map(|(name, declared)| WireColumn::new(name, declared))
            .collect::<Result<Vec<_>, _>>()?;
        let distinct: std::collections::HashSet<_> = columns.iter().map(|column| &column.name).collect();
        if columns.is_empty() || distinct.len() != columns.len() || distinct.iter().any(|name| name.is_empty()) {
            return Err(Refusal::new(code::COLUMNS_MISMATCH, "a layout needs at least one column and distinct names"));
        }
        Ok(WireLayout { columns })
    }

    /// The columns in order.
    pub fn columns(&self) -> &[WireColumn] {
        &self.columns
    }

    /// Fewest bytes that a row can take: every prefix, and the payloads that are always there.
    pub fn min_row_bytes(&self) -> u64 {
        let least = |column: &WireColumn| {
            let payload = if column.nullable { 0 } else { column.fixed_length.unwrap_or(0) };
            u64::from(column.prefix_width) + u64::from(payload)
        };
        self.columns.iter().map(least).sum()
    }

    /// The documents of all columns.
    pub fn document(&self) -> Json {
        Json::array(self.columns.iter().map(WireColumn::document))
    }

    /// `sha256:` and the strict canonical digest of [`document`](Self::document): ours in place of the prior system's
    /// digest of a Python repr (design.md 3.3).
    pub fn wire_fingerprint(&self) -> String {
        format!("sha256:{}", strict_digest(&self.document()))
    }

    /// `sha256:` and the strict canonical digest of the `[name, declaration]` pairs.
    pub fn schema_hash(&self) -> String {
        let pair = |column: &WireColumn| Json::array([&column.name, &column.declared]);
        format!("sha256:{}", strict_digest(&Json::array(self.columns.iter().map(pair))))
    }
}

/// Removes the word `nullable` and says whether the declaration allows NULL.
fn split_nullable(declared: &str) -> (String, bool) {
    let lower = declared.trim().to_lowercase();
    match lower.strip_suffix("nullable") {
        Some(base) if base.ends_with(char::is_whitespace) => (base.trim_end().to_owned(), true),
        _ => (lower, false),
    }
}

fn fixed_length(sql: SqlType) -> Option<u8> {
    Some(match sql {
        SqlType::Bit | SqlType::TinyInt => 1,
        SqlType::SmallInt => 2,
        SqlType::Date => 3,
        SqlType::Int | SqlType::Real | SqlType::SmallMoney | SqlType::SmallDateTime => 4,
        SqlType::Float(precision) if precision.unwrap_or(53) <= 24 => 4,
        SqlType::Time(_) => 5,
        SqlType::BigInt | SqlType::Float(_) | SqlType::Money | SqlType::DateTime | SqlType::DateTime2(_) => 8,
        SqlType::DateTimeOffset(_) => 10,
        SqlType::UniqueIdentifier => 16,
        SqlType::Decimal { .. } => 19,
        SqlType::NVarChar(_) | SqlType::VarChar(_) | SqlType::VarBinary(_) => return None,
        SqlType::NChar(_) | SqlType::Char(_) | SqlType::Binary(_) => return None,
    })
}
