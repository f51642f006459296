//! Comparison of the resolved columns with an existing target table (contract.md 3.2).
//!
//! The target's catalog spelling is what the wire uses afterwards; the comparison only decides whether it may.

use super::{AdmittedColumn, Overrides, keeps_every_value, resolve};
use crate::code;
use crate::error::Refusal;
use crate::lineage::LineagePreset;
use crate::port::target::TargetColumn as CatalogColumn;
use crate::sql_type::SqlType;

/// A business column as it is going to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedColumn {
    /// The source column.
    pub source: AdmittedColumn,
    /// The SQL Server type.
    pub sql: SqlType,
    /// The type's text in the catalog's spelling.
    pub type_text: String,
}

impl MappedColumn {
    /// The wire schema text: target type, and ` nullable` when the source is `Nullable(...)`.
    pub fn wire_type(&self) -> String {
        let suffix = if self.source.source_type.nullable { " nullable" } else { "" };
        format!("{}{suffix}", self.type_text)
    }
}

/// How a column differs from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaChangeKind {
    /// The target's type would have to grow.
    TypeWiden,
    /// The types are of different families, or the target's is wider than what was resolved.
    TypeChange,
    /// A NULL of the source has no place in a NOT NULL target column.
    NullabilityRelax,
    /// The target allows NULL where the source never has one.
    NullabilityTighten,
    /// Names differ only in case.
    ColumnCaseChange,
    /// The target lacks the column.
    ColumnMissing,
    /// The target has a column that the source lacks.
    ColumnUnexpected,
    /// The server fills the column itself (identity, computed, rowversion).
    ColumnNotWritable,
}

impl SchemaChangeKind {
    /// The change's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            SchemaChangeKind::TypeWiden => "type_widen",
            SchemaChangeKind::TypeChange => "type_change",
            SchemaChangeKind::NullabilityRelax => "nullability_relax",
            SchemaChangeKind::NullabilityTighten => "nullability_tighten",
            SchemaChangeKind::ColumnCaseChange => "column_case_change",
            SchemaChangeKind::ColumnMissing => "column_missing",
            SchemaChangeKind::ColumnUnexpected => "column_unexpected",
            SchemaChangeKind::ColumnNotWritable => "column_not_writable",
        }
    }

    /// Whether the transfer is refused. A target column that merely allows NULL holds every source value, so that is
    /// the one difference that passes: the target table is the owner's and is never altered.
    pub fn is_breaking(self) -> bool {
        self != SchemaChangeKind::NullabilityTighten
    }
}

/// One difference between the resolved columns and the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChange {
    /// What differs.
    pub kind: SchemaChangeKind,
    /// The column, in the source's spelling where it has one.
    pub column: String,
}

/// All differences of business columns, in source order, then unexpected target columns in catalog order.
///
/// `resolved` is each column's name, resolved type and nullability; lineage columns must have been taken out of
/// `catalog` before.
pub fn compare_target(resolved: &[(&str, SqlType, bool)], catalog: &[CatalogColumn]) -> Vec<SchemaChange> {
    let mut changes = Vec::new();
    let mut add = |kind, column: &str| changes.push(SchemaChange { kind, column: column.to_owned() });
    for &(name, wanted, nullable) in resolved {
        match find(catalog, name) {
            None => add(SchemaChangeKind::ColumnMissing, name),
            Some(existing) if existing.name != name => add(SchemaChangeKind::ColumnCaseChange, name),
            Some(existing) if existing.not_writable.is_some() => add(SchemaChangeKind::ColumnNotWritable, name),
            Some(existing) => {
                match SqlType::parse(&existing.type_text) {
                    Some(actual) if actual.same_storage(wanted) => {}
                    Some(actual) if keeps_every_value(actual, wanted) => add(SchemaChangeKind::TypeWiden, name),
                    _ => add(SchemaChangeKind::TypeChange, name),
                }
                match (nullable, existing.nullable) {
                    (true, false) => add(SchemaChangeKind::NullabilityRelax, name),
                    (false, true) => add(SchemaChangeKind::NullabilityTighten, name),
                    _ => {}
                }
            }
        }
    }
    for column in catalog {
        if !resolved.iter().any(|(name, ..)| same_name(name, &column.name)) {
            add(SchemaChangeKind::ColumnUnexpected, &column.name);
        }
    }
    changes
}

/// Admits the columns of an existing target: resolves every type, compares, checks the lineage columns of `preset`, and
/// returns the business columns in source order with the catalog's spelling.
///
/// # Errors
/// Those of [`resolve`]; `native_transfer.target_schema_mismatch:KIND:COL` for the first breaking difference;
/// `mssql_native.utf8_collation_authority_required` for a varchar or char column;
/// `native_transfer.lineage_columns_mismatch:COL` when the framework columns differ from the preset.
pub fn admit_target(
    source: &[AdmittedColumn],
    overrides: &Overrides,
    catalog: &[CatalogColumn],
    preset: LineagePreset,
) -> Result<Vec<MappedColumn>, Refusal> {
    let (framework, business): (Vec<_>, Vec<_>) =
        catalog.iter().cloned().partition(|c| crate::lineage::is_reserved(&c.name));
    let resolved = source
        .iter()
        .map(|column| {
            let sql =
                resolve(&column.name, column.source_type.as_str(), overrides.get(&column.name).map(String::as_str))?;
            Ok((column.name.as_str(), sql, column.source_type.nullable))
        })
        .collect::<Result<Vec<_>, Refusal>>()?;
    if let Some(change) = compare_target(&resolved, &business).into_iter().find(|change| change.kind.is_breaking()) {
        return Err(mismatch(&change));
    }
    if resolved.iter().any(|(_, sql, _)| sql.is_narrow_text()) {
        return Err(Refusal::new(
            code::UTF8_COLLATION_AUTHORITY_REQUIRED,
            "varchar and char columns store text in a collation's code page; use nvarchar",
        ));
    }
    preset.admit(&framework)?;
    Ok(source
        .iter()
        .zip(resolved)
        .map(|(column, (name, sql, _))| MappedColumn {
            source: column.clone(),
            // The comparison proved that the column exists; a missing one would have been refused above.
            type_text: find(&business, name).map_or_else(|| sql.catalog_spelling(), |c| c.type_text.to_lowercase()),
            sql,
        })
        .collect())
}

fn mismatch(change: &SchemaChange) -> Refusal {
    let message = match change.kind {
        SchemaChangeKind::TypeWiden => "the target column is narrower than the source; widen it in the target table",
        SchemaChangeKind::TypeChange => {
            "the target column has another type; name it in sink.options.physical_design if it holds every source value"
        }
        SchemaChangeKind::NullabilityRelax => "the source column may be NULL but the target column is NOT NULL",
        SchemaChangeKind::NullabilityTighten => "the target column allows NULL",
        SchemaChangeKind::ColumnCaseChange => {
            "the target column's name differs in upper and lower case; rename one of them"
        }
        SchemaChangeKind::ColumnMissing => "the target table lacks this source column",
        SchemaChangeKind::ColumnUnexpected => "the target table has a column that the source table lacks",
        SchemaChangeKind::ColumnNotWritable => {
            "the server fills this target column itself, so it cannot hold the source's values"
        }
    };
    Refusal::with_detail(code::TARGET_SCHEMA_MISMATCH, &format!("{}:{}", change.kind.as_str(), change.column), message)
}

fn find<'a>(catalog: &'a [CatalogColumn], name: &str) -> Option<&'a CatalogColumn> {
    catalog.iter().find(|column| column.name == name).or_else(|| catalog.iter().find(|c| same_name(&c.name, name)))
}

fn same_name(left: &str, right: &str) -> bool {
    left.to_lowercase() == right.to_lowercase()
}
