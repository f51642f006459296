//! Admission of a source table's columns (contract.md 2.6, 3.2).

use std::collections::HashSet;

use crate::code;
use crate::error::Refusal;
use crate::port::source::{self as port, SourceMode};
use crate::source_type::{SourceType, header_type, select_expression};

/// A row of `system.columns`, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogSourceColumn {
    /// Column name.
    pub name: String,
    /// Type text.
    pub type_text: String,
    /// `''` for an ordinary column, else `DEFAULT`, `MATERIALIZED`, `ALIAS`, ...
    pub default_kind: String,
}

/// An admitted source column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedColumn {
    /// Column name: one plain identifier.
    pub name: String,
    /// Its admitted type.
    pub source_type: SourceType,
}

impl AdmittedColumn {
    /// The expression in the SELECT list.
    pub fn select_expression(&self) -> String {
        select_expression(&self.name, self.source_type.as_str())
    }

    /// The type in the result's header.
    pub fn header_type(&self) -> &str {
        header_type(self.source_type.as_str())
    }
}

impl From<&AdmittedColumn> for port::SourceColumn {
    fn from(column: &AdmittedColumn) -> Self {
        port::SourceColumn {
            name: column.name.clone(),
            type_text: column.source_type.as_str().to_owned(),
            expression: column.select_expression(),
            header_type: column.header_type().to_owned(),
        }
    }
}

/// Reads a column that an admission or a durable record holds.
///
/// # Errors
/// `mssql_native.source_type_unsupported` when the record's type is not one that this release admits.
impl TryFrom<&port::SourceColumn> for AdmittedColumn {
    type Error = Refusal;

    fn try_from(column: &port::SourceColumn) -> Result<Self, Refusal> {
        Ok(AdmittedColumn { name: column.name.clone(), source_type: SourceType::parse(&column.type_text)? })
    }
}

/// Names that raw mode adds to the projection and strips again.
const PROVENANCE_COLUMNS: [&str; 2] = ["_part", "_part_offset"];

/// Prefix of the columns that lineage adds to the target.
const FRAMEWORK_PREFIX: &str = "__dpone__";

/// Admits the columns of a table, in catalog order, before any row is read.
///
/// `window_column` is the column of the transfer's window, if it has one.
///
/// # Errors
/// `ordinary_columns_required` (no column, or one with a default expression or computed), `duplicate_columns`,
/// `source_identifier_invalid`, `source_provenance_incomplete` (reserved name in raw mode), `source_type_unsupported`,
/// `native_transfer.reserved_column_name`, `window_column_missing` (absent, or not a timestamp).
pub fn admit_source_schema(
    columns: &[CatalogSourceColumn],
    mode: SourceMode,
    window_column: Option<&str>,
) -> Result<Vec<AdmittedColumn>, Refusal> {
    if columns.is_empty() || columns.iter().any(|column| !column.default_kind.is_empty()) {
        return Err(Refusal::new(
            code::ORDINARY_COLUMNS_REQUIRED,
            "every column of the source table must be an ordinary stored column without a default expression",
        ));
    }
    let mut names = HashSet::new();
    if !columns.iter().all(|column| names.insert(column.name.as_str())) {
        return Err(Refusal::new(code::DUPLICATE_COLUMNS, "the source catalog lists a column name twice"));
    }
    let admitted = columns.iter().map(|column| admit(column, mode)).collect::<Result<Vec<_>, _>>()?;
    if let Some(window) = window_column
        && !admitted.iter().any(|column| column.name == window && column.source_type.is_timestamp())
    {
        return Err(Refusal::new(
            code::WINDOW_COLUMN_MISSING,
            "the window column must be a DateTime or DateTime64 column of the source table",
        ));
    }
    Ok(admitted)
}

fn admit(column: &CatalogSourceColumn, mode: SourceMode) -> Result<AdmittedColumn, Refusal> {
    if matches!(mode, SourceMode::ExactRawRows(_)) && PROVENANCE_COLUMNS.contains(&column.name.as_str()) {
        return Err(Refusal::new(
            code::SOURCE_PROVENANCE_INCOMPLETE,
            "a column is named _part or _part_offset, which hides the part provenance; rename it on the source",
        ));
    }
    if !valid_identifier(&column.name) {
        return Err(Refusal::new(
            code::SOURCE_IDENTIFIER_INVALID,
            "a source name is not a plain identifier (letters, digits and underscore, not starting with a digit)",
        ));
    }
    refuse_reserved_name(&column.name)?;
    Ok(AdmittedColumn { name: column.name.clone(), source_type: SourceType::parse(&column.type_text)? })
}

/// Refuses a source column whose name belongs to the lineage columns, in whatever mode it is read.
///
/// # Errors
/// `native_transfer.reserved_column_name:NAME`.
pub fn refuse_reserved_name(name: &str) -> Result<(), Refusal> {
    if !name.to_ascii_lowercase().starts_with(FRAMEWORK_PREFIX) {
        return Ok(());
    }
    Err(Refusal::with_detail(
        code::RESERVED_COLUMN_NAME,
        name,
        "names starting with __dpone__ belong to the lineage columns; rename the column on the source",
    ))
}

/// Whether `name` is `[A-Za-z_][A-Za-z0-9_]*`.
pub fn valid_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::source::ReplicaScope;

    const RAW: SourceMode = SourceMode::ExactRawRows(ReplicaScope::SingleServer);

    fn code(columns: &[(&str, &str, &str)], mode: SourceMode, window: Option<&str>) -> String {
        let columns: Vec<_> = columns
            .iter()
            .map(|(name, type_text, default_kind)| CatalogSourceColumn {
                name: (*name).to_owned(),
                type_text: (*type_text).to_owned(),
                default_kind: (*default_kind).to_owned(),
            })
            .collect();
        admit_source_schema(&columns, mode, window).map_or_else(|refusal| refusal.code.to_string(), |_| "ok".to_owned())
    }

    #[test]
    fn columns_are_admitted_or_named_wrong() {
        let plain = SourceMode::QueryVisible;
        let good = [("id", "Int64", ""), ("at", "DateTime64(6, 'UTC')", "")];
        assert_eq!(code(&good, RAW, Some("at")), "ok");
        assert_eq!(code(&good, RAW, Some("id")), code::WINDOW_COLUMN_MISSING);
        assert_eq!(code(&good, RAW, Some("none")), code::WINDOW_COLUMN_MISSING);
        assert_eq!(code(&[], plain, None), code::ORDINARY_COLUMNS_REQUIRED);
        assert_eq!(code(&[("a", "Int64", "ALIAS")], plain, None), code::ORDINARY_COLUMNS_REQUIRED);
        assert_eq!(code(&[("a", "Int64", ""), ("a", "Int64", "")], plain, None), code::DUPLICATE_COLUMNS);
        assert_eq!(code(&[("a b", "Int64", "")], plain, None), code::SOURCE_IDENTIFIER_INVALID);
        assert_eq!(code(&[("_part", "String", "")], RAW, None), code::SOURCE_PROVENANCE_INCOMPLETE);
        assert_eq!(code(&[("_part", "String", "")], plain, None), "ok");
        assert_eq!(code(&[("a", "Array(Int8)", "")], plain, None), code::SOURCE_TYPE_UNSUPPORTED);
        let reserved = code(&[("__dpone__x", "Int64", "")], plain, None);
        assert_eq!(reserved, "native_transfer.reserved_column_name:__dpone__x");
    }
}
