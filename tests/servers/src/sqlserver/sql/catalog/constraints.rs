//! Catalog views of constraints: keys, checks, defaults, foreign keys.

use super::super::error::Result;
use super::super::plan::Row;
use super::super::state::Cx;
use super::objects::object_row;
use super::{Source, bit, int, or_null, row, text, tiny, visible};
use crate::sqlserver::store::catalog::{Object, ReferentialAction};
use crate::sqlserver::value::Value;

/// A constraint as an object of its own.
pub(crate) struct ConstraintRow {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) definition: Option<String>,
    system_named: bool,
    column: i32,
    index: Option<i32>,
    disabled: bool,
    not_trusted: bool,
}

/// Constraints of a table.
pub(crate) fn constraints_of(object: &Object) -> Vec<ConstraintRow> {
    let mut rows = Vec::new();
    let Some(table) = object.table() else { return rows };
    let blank = |id: i32, name: &str, kind: &'static str, system_named: bool| ConstraintRow {
        id,
        name: name.to_owned(),
        kind,
        definition: None,
        system_named,
        column: 0,
        index: None,
        disabled: false,
        not_trusted: false,
    };
    for index in &table.indexes {
        if let Some(c) = &index.constraint {
            let kind = if c.primary { "PK" } else { "UQ" };
            rows.push(ConstraintRow {
                index: Some(index.id),
                ..blank(c.object_id.0, &index.name, kind, c.system_named)
            });
        }
    }
    for check in &table.checks {
        rows.push(ConstraintRow {
            definition: Some(check.definition.clone()),
            column: check.parent_column_id,
            disabled: check.disabled,
            not_trusted: check.not_trusted,
            ..blank(check.object_id.0, &check.name, "C ", check.system_named)
        });
    }
    for column in &table.columns {
        if let Some(d) = &column.default {
            rows.push(ConstraintRow {
                definition: Some(d.definition.clone()),
                column: column.id,
                ..blank(d.object_id.0, &d.name, "D ", d.system_named)
            });
        }
    }
    for key in &table.foreign_keys {
        rows.push(ConstraintRow {
            disabled: key.disabled,
            not_trusted: key.not_trusted,
            ..blank(key.object_id.0, &key.name, "F ", key.system_named)
        });
    }
    rows
}

fn constraint_rows(
    cx: &mut Cx<'_>,
    source: &Source,
    kinds: &[&str],
    more: impl Fn(&ConstraintRow, &Object) -> Row,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        for c in constraints_of(&object) {
            if kinds.contains(&c.kind) {
                let mut row = object_row(&object, c.id, &c.name, c.kind, object.id.0);
                row.extend(more(&c, &object));
                rows.push(row);
            }
        }
    }
    rows
}

pub(super) fn key_constraints(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(constraint_rows(cx, source, &["PK", "UQ"], |c, _| row![or_null(c.index, int), bit(c.system_named), bit(true)]))
}

pub(super) fn check_constraints(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(constraint_rows(cx, source, &["C "], |c, _| {
        row![
            bit(c.disabled),
            bit(false),
            bit(c.not_trusted),
            int(c.column),
            or_null(c.definition.as_deref(), text),
            bit(false),
            bit(c.system_named)
        ]
    }))
}

pub(super) fn default_constraints(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(constraint_rows(cx, source, &["D "], |c, _| {
        row![int(c.column), or_null(c.definition.as_deref(), text), bit(c.system_named)]
    }))
}

fn referential(action: ReferentialAction) -> (u8, &'static str) {
    match action {
        ReferentialAction::NoAction => (0, "NO_ACTION"),
        ReferentialAction::Cascade => (1, "CASCADE"),
        ReferentialAction::SetNull => (2, "SET_NULL"),
        ReferentialAction::SetDefault => (3, "SET_DEFAULT"),
    }
}

pub(super) fn foreign_keys(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(constraint_rows(cx, source, &["F "], |c, object| {
        let key = object.table().and_then(|t| t.foreign_keys.iter().find(|k| k.object_id.0 == c.id));
        let Some(key) = key else { return Row::new() };
        let (delete, update) = (referential(key.on_delete), referential(key.on_update));
        row![
            int(key.referenced_table.0),
            int(key.key_index_id),
            bit(key.disabled),
            bit(false),
            bit(key.not_trusted),
            tiny(delete.0),
            text(delete.1),
            tiny(update.0),
            text(update.1),
            bit(key.system_named),
        ]
    }))
}

pub(super) fn foreign_key_columns(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        for key in object.table().map_or(&[][..], |t| &t.foreign_keys) {
            for (at, (mine, theirs)) in key.columns.iter().zip(&key.referenced_columns).enumerate() {
                let ordinal = i32::try_from(at + 1).unwrap_or(0);
                rows.push(row![
                    int(key.object_id.0),
                    int(ordinal),
                    int(object.id.0),
                    int(*mine),
                    int(key.referenced_table.0),
                    int(*theirs)
                ]);
            }
        }
    }
    Ok(rows)
}
