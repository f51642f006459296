//! Keys, foreign keys, checks and defaults of a table in the making.

use super::super::super::super::ast::Name;
use super::super::super::super::bind::same_name;
use super::super::super::super::error::{self, Result};
use super::super::super::super::state::Cx;
use super::super::super::super::stmt::{Constraint, ConstraintKind, FkAction};
use super::super::super::super::{deparse, lookup, permission};
use super::super::super::dml::bind_condition_text;
use super::{Builder, columns_of};
use crate::sqlserver::store::catalog::{
    Check, Column, ForeignKey, Index, IndexKey, KeyConstraint, Object, ObjectId, ReferentialAction, TableDef,
};

impl Builder {
    pub(crate) fn add_constraint(
        &mut self,
        cx: &mut Cx<'_>,
        column: Option<i32>,
        constraint: &Constraint,
        check: Option<bool>,
    ) -> Result<()> {
        if let Some(name) = &constraint.name {
            self.check_name(cx, name)?;
        }
        let object_id = cx.st.engine.store.allocate_object_id();
        match &constraint.kind {
            ConstraintKind::Key { primary, clustered, columns } => {
                self.add_key(cx, constraint.name.as_ref(), object_id, *primary, *clustered, columns)
            }
            ConstraintKind::Check { condition, text } => {
                let definition = deparse::definition(condition, text);
                let cols = columns_of(&self.def);
                bind_condition_text(cx, &self.object, &definition, &cols)?;
                let column_name =
                    column.and_then(|id| self.def.columns.iter().find(|c| c.id == id)).map_or("", |c| &c.name);
                let (name, system_named) = match &constraint.name {
                    Some(name) => (name.clone(), false),
                    None => {
                        let table = self.object.name.clone();
                        (Self::generated(cx, "CK", &table, column_name, object_id), true)
                    }
                };
                self.def.checks.push(Check {
                    object_id,
                    name,
                    system_named,
                    definition,
                    parent_column_id: column.unwrap_or(0),
                    disabled: false,
                    not_trusted: check == Some(false),
                });
                Ok(())
            }
            ConstraintKind::Foreign { columns, table, referenced, on_delete, on_update } => {
                let actions = (action(*on_delete), action(*on_update));
                self.add_foreign(cx, constraint.name.as_ref(), object_id, columns, table, referenced, actions, check)
            }
            ConstraintKind::Default { value, text, column } => {
                let Some(at) = self.def.columns.iter().position(|c| same_name(&c.name, column)) else {
                    return Err(error::plain(
                        1752,
                        &format!(
                            "Column '{column}' in table '{}' is invalid for creating a default constraint.",
                            self.object.name
                        ),
                    ));
                };
                if self.def.columns[at].default.is_some() {
                    return Err(error::plain(1781, "Column already has a DEFAULT bound to it."));
                }
                let default = self.default(cx, constraint.name.as_ref(), value, text, column)?;
                self.def.columns[at].default = Some(default);
                Ok(())
            }
        }
    }

    fn add_key(
        &mut self,
        cx: &mut Cx<'_>,
        name: Option<&String>,
        object_id: ObjectId,
        primary: bool,
        clustered: Option<bool>,
        columns: &[(String, bool)],
    ) -> Result<()> {
        let is_primary = |i: &Index| i.constraint.as_ref().is_some_and(|c| c.primary);
        if primary && self.def.indexes.iter().any(is_primary) {
            return Err(error::new(
                1779,
                16,
                0,
                &format!("Table '{}' already has a primary key defined on it.", self.object.name),
            ));
        }
        let has_clustered = self.def.clustered_index().is_some();
        if clustered == Some(true) && has_clustered {
            return Err(error::new(
                1902,
                16,
                3,
                &format!(
                    "Cannot create more than one clustered index on table '{}'. Drop the existing clustered index before creating another.",
                    self.object.name
                ),
            ));
        }
        let cluster = clustered.unwrap_or(primary && !has_clustered);
        let mut keys = Vec::new();
        for (column, descending) in columns {
            let Some(at) = self.def.columns.iter().position(|c| same_name(&c.name, column)) else {
                return Err(error::new(
                    1911,
                    16,
                    1,
                    &format!("Column name '{column}' does not exist in the target table or view."),
                ));
            };
            check_key_type(&self.def.columns[at], &self.object.name)?;
            if primary && self.def.columns[at].nullable {
                // In CREATE TABLE a key column without NULL or NOT NULL becomes NOT NULL.
                if self.object.modify_date == self.object.create_date
                    && self.def.columns[at].computed.is_none()
                    && !self.stored(cx)
                {
                    self.def.columns[at].nullable = false;
                } else {
                    return Err(error::plain(
                        8111,
                        &format!(
                            "Cannot define PRIMARY KEY constraint on nullable column in table '{}'.",
                            self.object.name
                        ),
                    ));
                }
            }
            keys.push(IndexKey { column_id: self.def.columns[at].id, descending: *descending });
        }
        let (name, system_named) = match name {
            Some(name) => (name.clone(), false),
            None => {
                let table = self.object.name.clone();
                (Self::generated(cx, if primary { "PK" } else { "UQ" }, &table, "", object_id), true)
            }
        };
        let id = if cluster { 1 } else { self.def.indexes.iter().map(|i| i.id).max().unwrap_or(1).max(1) + 1 };
        self.def.indexes.push(Index {
            id,
            name,
            unique: true,
            ignore_dup_key: false,
            disabled: false,
            keys,
            included: Vec::new(),
            filter: None,
            columnstore: false,
            fill_factor: 0,
            data_compression: 0,
            constraint: Some(KeyConstraint { object_id, primary, system_named }),
        });
        Ok(())
    }

    /// Whether the table is there already (ALTER), not being created.
    fn stored(&self, cx: &mut Cx<'_>) -> bool {
        let txn = cx.st.txn();
        txn.object(self.object.id).is_some()
    }

    #[allow(
        clippy::too_many_arguments,
        clippy::too_many_lines,
        reason = "one constraint, its parts checked in SQL Server's order"
    )]
    fn add_foreign(
        &mut self,
        cx: &mut Cx<'_>,
        name: Option<&String>,
        object_id: ObjectId,
        columns: &[String],
        table: &Name,
        referenced: &[String],
        (on_delete, on_update): (ReferentialAction, ReferentialAction),
        check: Option<bool>,
    ) -> Result<()> {
        let (name, system_named) = match name {
            Some(name) => (name.clone(), false),
            None => {
                let own = self.object.name.clone();
                let first = columns.first().cloned().unwrap_or_default();
                (Self::generated(cx, "FK", &own, &first, object_id), true)
            }
        };
        let own = same_name(table.base(), &self.object.name) && table.schema().is_none_or(|_| true) && !self.stored(cx);
        let (other_id, other_def) = if own && find_other(cx, table)?.is_none() {
            (self.object.id, self.def.clone())
        } else {
            let other = find_other(cx, table)?;
            let Some(other) = other else {
                return Err(error::new(
                    1767,
                    16,
                    0,
                    &format!("Foreign key '{name}' references invalid table '{}'.", table.display()),
                ));
            };
            if !permission::has_object(cx, &other, "REFERENCES") {
                return Err(error::new(
                    1767,
                    16,
                    0,
                    &format!("Foreign key '{name}' references invalid table '{}'.", table.display()),
                ));
            }
            let def =
                if other.id == self.object.id { self.def.clone() } else { other.table().cloned().unwrap_or_default() };
            (other.id, def)
        };
        let mut mine = Vec::new();
        for column in columns {
            let Some(at) = self.def.columns.iter().position(|c| same_name(&c.name, column)) else {
                return Err(error::new(
                    1769,
                    16,
                    1,
                    &format!(
                        "Foreign key '{name}' references invalid column '{column}' in referencing table '{}'.",
                        self.object.name
                    ),
                ));
            };
            mine.push(at);
        }
        let key_index = find_key(&other_def, referenced);
        let Some((index, theirs)) = key_index else {
            if let Some(bad) = referenced.iter().find(|r| other_def.column_position(r).is_none()) {
                return Err(error::new(
                    1770,
                    16,
                    0,
                    &format!(
                        "Foreign key '{name}' references invalid column '{bad}' in referenced table '{}'.",
                        table.base()
                    ),
                ));
            }
            return Err(error::new(
                1776,
                16,
                0,
                &format!(
                    "There are no primary or candidate keys in the referenced table '{}' that match the referencing column list in the foreign key '{name}'.",
                    table.display()
                ),
            ));
        };
        if mine.len() != theirs.len() {
            return Err(error::new(
                8139,
                16,
                0,
                &format!(
                    "Number of referencing columns in foreign key differs from number of referenced columns, table '{}'.",
                    self.object.name
                ),
            ));
        }
        for (a, b) in mine.iter().zip(&theirs) {
            let (left, right) = (&self.def.columns[*a], &other_def.columns[*b]);
            if std::mem::discriminant(&left.ty) != std::mem::discriminant(&right.ty) {
                return Err(error::new(
                    1778,
                    16,
                    0,
                    &format!(
                        "Column '{}.{}' is not the same data type as referencing column '{}.{}' in foreign key '{name}'.",
                        table.base(),
                        right.name,
                        self.object.name,
                        left.name
                    ),
                ));
            }
        }
        self.def.foreign_keys.push(ForeignKey {
            object_id,
            name,
            system_named,
            columns: mine.iter().map(|at| self.def.columns[*at].id).collect(),
            referenced_table: other_id,
            referenced_columns: theirs.iter().map(|at| other_def.columns[*at].id).collect(),
            key_index_id: index,
            on_delete,
            on_update,
            disabled: false,
            not_trusted: check == Some(false),
        });
        Ok(())
    }
}

fn find_other(cx: &mut Cx<'_>, table: &Name) -> Result<Option<std::sync::Arc<Object>>> {
    let database = cx.st.database;
    let mode = super::super::LockMode::SchemaStability;
    let found = lookup::resolve(cx, table, database, None, mode, super::super::Hold::Transaction)?;
    Ok(found.filter(|o| o.table().is_some()))
}

/// The unique key over exactly the named columns; without names the primary key.
fn find_key(def: &TableDef, names: &[String]) -> Option<(i32, Vec<usize>)> {
    let positions =
        |index: &Index| -> Option<Vec<usize>> { index.keys.iter().map(|k| def.position_of_id(k.column_id)).collect() };
    if names.is_empty() {
        let index = def.indexes.iter().find(|i| i.constraint.as_ref().is_some_and(|c| c.primary))?;
        return Some((index.id, positions(index)?));
    }
    let wanted: Option<Vec<usize>> = names.iter().map(|n| def.column_position(n)).collect();
    let wanted = wanted?;
    for index in def.indexes.iter().filter(|i| i.unique && i.filter.is_none()) {
        let mut keys = positions(index)?;
        let mut sorted = wanted.clone();
        keys.sort_unstable();
        sorted.sort_unstable();
        if keys == sorted {
            return Some((index.id, wanted));
        }
    }
    None
}

fn action(action: FkAction) -> ReferentialAction {
    match action {
        FkAction::NoAction => ReferentialAction::NoAction,
        FkAction::Cascade => ReferentialAction::Cascade,
        FkAction::SetNull => ReferentialAction::SetNull,
        FkAction::SetDefault => ReferentialAction::SetDefault,
    }
}

pub(crate) fn check_key_type(column: &Column, table: &str) -> Result<()> {
    if column.ty.is_large() {
        return Err(error::plain(
            1919,
            &format!(
                "Column '{}' in table '{table}' is of a type that is invalid for use as a key column in an index.",
                column.name
            ),
        ));
    }
    Ok(())
}
