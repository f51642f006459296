//! Which SQL Server type a source column gets: default, authored override, existing target (contract.md 3.2).

mod classify;
mod lossless;
mod schema;
mod target;

pub use classify::{Classification, Unsupported, classify};
pub use lossless::{keeps_every_value, may_keep_values};
pub use schema::{AdmittedColumn, CatalogSourceColumn, admit_source_schema, refuse_reserved_name, valid_identifier};
pub use target::{
    MappedColumn, SchemaChange, SchemaChangeKind, admit_target, compare_target, stage_columns, wire_layout,
};

use std::collections::BTreeMap;

use crate::code;
use crate::error::Refusal;
use crate::sql_type::SqlType;

/// Authored target types by column name, as they were written and proven to be types.
pub type Overrides = BTreeMap<String, String>;

/// The SQL Server type of column `name` of ClickHouse type `source`: the default, or the authored `override_text`.
///
/// # Errors
/// - `mssql_snapshot_reconciliation.source_physical_type_invalid:COL`: no SQL Server type holds the source's values;
/// - `mssql_snapshot_reconciliation.target_physical_type_invalid:COL`: the override is not a column type;
/// - `mssql_snapshot_reconciliation.lossy_target_type_forbidden:COL:A->B`: it could change a value.
pub fn resolve(name: &str, source: &str, override_text: Option<&str>) -> Result<SqlType, Refusal> {
    let default = classify(source).and_then(|class| class.target).ok_or_else(|| {
        Refusal::with_detail(
            code::SOURCE_PHYSICAL_TYPE_INVALID,
            name,
            "no SQL Server type holds this source column's values exactly; change the column on the source",
        )
    })?;
    let Some(text) = override_text else { return Ok(default) };
    let wanted = parse_override(name, text)?;
    if may_keep_values(default, wanted) {
        Ok(wanted)
    } else {
        Err(Refusal::with_detail(
            code::LOSSY_TARGET_TYPE_FORBIDDEN,
            &format!("{name}:{default}->{wanted}"),
            "the authored target type could change a value of this column; choose one that holds every source value",
        ))
    }
}

/// Reads an authored target type.
///
/// # Errors
/// `mssql_snapshot_reconciliation.target_physical_type_invalid:COL`.
pub fn parse_override(name: &str, text: &str) -> Result<SqlType, Refusal> {
    SqlType::parse(text).ok_or_else(|| {
        Refusal::with_detail(
            code::TARGET_PHYSICAL_TYPE_INVALID,
            name,
            "the authored target type is not a SQL Server column type of this route; write it as in CREATE TABLE",
        )
    })
}
