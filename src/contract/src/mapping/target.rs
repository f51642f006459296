//! Comparison of the resolved columns with an existing target table (contract.md 3.2).
//!
//! The target's catalog spelling is what the wire uses afterwards; the comparison only decides whether it may.

use super::{AdmittedColumn, Overrides, keeps_every_value, resolve};
use crate::code;
use crate::error::Refusal;
use crate::layout::WireLayout;
use crate::lineage::LineagePreset;
use crate::port::target::{StageColumn, TargetColumn as CatalogColumn};
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

/// The native layout of rows of these columns.
///
/// # Errors
/// Those of [`WireLayout::new`].
pub fn wire_layout(columns: &[MappedColumn]) -> Result<WireLayout, Refusal> {
    let declared: Vec<String> = columns.iter().map(MappedColumn::wire_type).collect();
    let names = columns.iter().map(|column| column.source.name.as_str());
    WireLayout::new(names.zip(declared.iter().map(String::as_str)))
}

/// The columns of a stage that takes rows of these columns: NULL is allowed where the source may have one.
pub fn stage_columns(columns: &[MappedColumn]) -> Vec<StageColumn> {
    let stage = |column: &MappedColumn| StageColumn {
        name: column.source.name.clone(),
        type_text: column.type_text.clone(),
        nullable: column.source.source_type.nullable,
    };
    columns.iter().map(stage).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_type::SourceType;

    fn source(name: &str, text: &str) -> AdmittedColumn {
        AdmittedColumn { name: name.to_owned(), source_type: SourceType::parse(text).expect(text) }
    }

    fn target(name: &str, type_text: &str, nullable: bool) -> CatalogColumn {
        CatalogColumn {
            name: name.to_owned(),
            type_text: type_text.to_owned(),
            nullable,
            collation: None,
            not_writable: None,
        }
    }

    /// The kinds of difference of one column; `wanted` is the resolved type.
    fn kinds(wanted: &str, nullable: bool, existing: CatalogColumn) -> Vec<&'static str> {
        let wanted = SqlType::parse(wanted).expect(wanted);
        let changes = compare_target(&[("a", wanted, nullable)], &[existing]);
        changes.into_iter().map(|change| change.kind.as_str()).collect()
    }

    #[test]
    fn differences_have_their_kinds() {
        for (wanted, existing, want) in [
            ("float", "float(53)", vec![]),
            ("decimal(20,0)", "numeric(20,0)", vec![]),
            ("decimal(20,0)", "bigint", vec!["type_widen"]),
            ("nvarchar(max)", "nvarchar(100)", vec!["type_widen"]),
            ("tinyint", "bigint", vec!["type_change"]),
            ("real", "float(53)", vec!["type_change"]),
            ("datetime2(0)", "datetime2(6)", vec!["type_change"]),
            ("bit", "bigint", vec!["type_change"]),
            ("date", "datetime2(6)", vec!["type_change"]),
            ("bigint", "xml", vec!["type_change"]),
        ] {
            assert_eq!(kinds(wanted, false, target("a", existing, false)), want, "{wanted} over {existing}");
        }
        assert_eq!(kinds("bigint", true, target("a", "bigint", false)), ["nullability_relax"]);
        assert_eq!(kinds("bigint", false, target("a", "bigint", true)), ["nullability_tighten"]);
        assert_eq!(kinds("bigint", false, target("A", "bigint", false)), ["column_case_change"]);
        assert_eq!(kinds("bigint", false, target("b", "bigint", false)), ["column_missing", "column_unexpected"]);
        let identity = CatalogColumn { not_writable: Some("identity"), ..target("a", "bigint", false) };
        assert_eq!(kinds("bigint", false, identity), ["column_not_writable"]);
    }

    #[test]
    fn an_existing_target_gives_the_wire_its_spelling() {
        let columns = [source("id", "Int64"), source("x", "Nullable(Float64)"), source("d", "UInt8")];
        let overrides = Overrides::from([("d".to_owned(), "bigint".to_owned())]);
        let catalog = [
            target("id", "bigint", true),
            target("x", "float(53)", true),
            target("d", "bigint", false),
            target("__dpone__load_id", "varchar(26)", false),
            target("__dpone__loaded_at", "datetime2(7)", false),
        ];
        let mapped = admit_target(&columns, &overrides, &catalog, LineagePreset::Minimal).expect("admitted");
        let wire: Vec<String> = mapped.iter().map(MappedColumn::wire_type).collect();
        assert_eq!(wire, ["bigint", "float(53) nullable", "bigint"]);
        let layout = wire_layout(&mapped).expect("layout");
        let stage: Vec<(String, bool)> =
            stage_columns(&mapped).into_iter().map(|c| (c.type_text, c.nullable)).collect();
        assert_eq!(stage, [("bigint".into(), false), ("float(53)".into(), true), ("bigint".into(), false)]);
        assert!(crate::target_layout::admit_row(&layout).is_ok());

        let code = |overrides: &Overrides, catalog: &[CatalogColumn], preset| {
            admit_target(&columns, overrides, catalog, preset).expect_err("refused").code.to_string()
        };
        let none = Overrides::new();
        assert_eq!(
            code(&none, &catalog, LineagePreset::Minimal),
            "native_transfer.target_schema_mismatch:type_change:d"
        );
        let off = code(&overrides, &catalog, LineagePreset::Off);
        assert_eq!(off, "native_transfer.lineage_columns_mismatch:__dpone__load_id");
        let bare = code(&overrides, &catalog[..3], LineagePreset::Minimal);
        assert_eq!(bare, "native_transfer.lineage_columns_mismatch:__dpone__load_id");
    }

    #[test]
    fn narrow_text_is_refused() {
        let overrides = Overrides::from([("t".to_owned(), "varchar(10)".to_owned())]);
        let catalog = [target("t", "varchar(10)", false)];
        let refusal = admit_target(&[source("t", "String")], &overrides, &catalog, LineagePreset::Off);
        assert_eq!(refusal.expect_err("refused").code.as_str(), code::UTF8_COLLATION_AUTHORITY_REQUIRED);
    }
}
