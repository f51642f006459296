//! The prepared table: created, filled from the verified stages, digested (contract.md 6.1, design.md 3.24).

use contract::error::Refusal;
use contract::port::target::{LineageColumn, LineageValue, PrepareRequest, StageColumn, StageRef};

use super::digest;
use super::ident::{bracket, literal, qualified};
use super::stage;

/// The free-form lineage column: hashed as a constant, and every value must be NULL.
pub(crate) const META_COLUMN: &str = "__dpone__meta";

/// Stages per INSERT statement: the server compiles large UNION ALL lists badly.
const STAGES_PER_STATEMENT: usize = 32;

/// INSERT statements of the fill, one per group of stages.
pub(crate) fn fill(request: &PrepareRequest) -> Vec<String> {
    let business = names(&request.business_columns);
    let lineage: Vec<String> = request.lineage.iter().map(|c| bracket(&c.name)).collect();
    let target = [business.as_slice(), lineage.as_slice()].concat().join(", ");
    let values = request.lineage.iter().map(|c| lineage_expression(c, &request.business_columns)).collect::<Vec<_>>();
    let selected = [business.as_slice(), values.as_slice()].concat().join(", ");
    request
        .stages
        .chunks(STAGES_PER_STATEMENT)
        .map(|group| {
            let union = group.iter().map(|s| select(&business, s)).collect::<Vec<_>>().join("\nUNION ALL ");
            format!(
                "INSERT INTO {} WITH (TABLOCK) ({target})\nSELECT {selected}\nFROM ({union}) AS s;\n",
                qualified(&request.prepared.name),
            )
        })
        .collect()
}

fn select(columns: &[String], stage: &StageRef) -> String {
    format!("SELECT {} FROM {}", columns.join(", "), qualified(&stage.definition.name))
}

fn names(columns: &[StageColumn]) -> Vec<String> {
    columns.iter().map(|c| bracket(&c.name)).collect()
}

fn lineage_expression(column: &LineageColumn, business: &[StageColumn]) -> String {
    let convert = |value: String| format!("CONVERT({}, {value})", column.type_text);
    match &column.value {
        LineageValue::Text(text) => convert(literal(text)),
        // Why a fixed placeholder: publication overwrites it with the server's clock inside its transaction.
        LineageValue::LoadedAt => convert("N'0001-01-01T00:00:00'".to_string()),
        LineageValue::ExtractedAt => convert("SYSUTCDATETIME()".to_string()),
        LineageValue::RowId { identity, key_columns } => row_id(identity, key_columns, business),
        LineageValue::Null => convert("NULL".to_string()),
    }
}

/// `CONVERT(varchar(64), HASHBYTES('SHA2_256', ...), 2)` over the identity text and one frame per key column
/// (contract.md 6.4): `TYPE:` then `N;`, or `V`, the byte length, `:`, the value's hex text and `;`.
fn row_id(identity: &str, key_columns: &[String], business: &[StageColumn]) -> String {
    let frames = key_columns
        .iter()
        .filter_map(|key| business.iter().find(|c| &c.name == key))
        .map(|column| {
            let name = format!("s.{}", bracket(&column.name));
            let bytes = match column.type_text.as_str() {
                "nvarchar(max)" => format!("CONVERT(varbinary(max), {name})"),
                "datetime2(6)" => format!("CONVERT(varbinary(max), CONVERT(binary(9), CONVERT(datetime2(7), {name})))"),
                _ => format!("CONVERT(varbinary(max), CONVERT(binary(8), {name}))"),
            };
            format!(
                "CONVERT(varchar(max), {}) + CASE WHEN {name} IS NULL THEN 'N;' ELSE 'V' + \
                 CONVERT(varchar(20), DATALENGTH({bytes})) + ':' + CONVERT(varchar(max), {bytes}, 2) + ';' END",
                literal(&format!("{}:", column.type_text)),
            )
        })
        .collect::<Vec<_>>();
    let head = format!("CONVERT(varchar(max), {})", literal(identity));
    let text = std::iter::once(head).chain(frames).collect::<Vec<_>>().join("\n  + ");
    format!("CONVERT(varchar(64), HASHBYTES('SHA2_256', {text}), 2)")
}

/// Throws if any row carries free-form metadata; empty without that column.
pub(crate) fn metadata_guard(prepared: &stage::StageColumns<'_>) -> String {
    if !prepared.columns.iter().any(|c| c.name == META_COLUMN) {
        return String::new();
    }
    format!(
        "IF EXISTS (SELECT 1 FROM {} WHERE {} IS NOT NULL) \
         BEGIN ;THROW 51000, N'mssql_native.unbounded_metadata_changed', 1; END;\n",
        prepared.table,
        bracket(META_COLUMN),
    )
}

/// The digest of the prepared table: two hashes when it has lineage columns, else one.
pub(crate) fn digest(
    prepared: &StageRef,
    business: &[StageColumn],
    expected_rows: u64,
) -> Result<(String, usize), Refusal> {
    let table = qualified(&prepared.definition.name);
    let all = &prepared.definition.columns;
    let guard = metadata_guard(&stage::StageColumns { table: &table, columns: all });
    let (text, fields) = if all.len() == business.len() {
        (digest::single(&table, business, expected_rows)?, digest::SINGLE_FIELDS)
    } else {
        (digest::double(&table, business, all, expected_rows)?, digest::DOUBLE_FIELDS)
    };
    Ok((format!("{guard}{text}"), fields))
}
