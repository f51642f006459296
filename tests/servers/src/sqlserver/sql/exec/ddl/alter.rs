//! ALTER TABLE.

use std::sync::Arc;

use super::super::super::api::SqlError;
use super::super::super::ast::TypeName;
use super::super::super::bind::same_name;
use super::super::super::error::{self, Result};
use super::super::super::plan::Row;
use super::super::super::state::{Cx, now_micros};
use super::super::super::stmt::{AlterAction, AlterTable, TableElement};
use super::super::super::{storage, types};
use super::super::dml::{Table, qualified};
use super::table::Builder;
use super::{put, table_of};
use crate::sqlserver::store::catalog::{Object, ObjectBody, TableDef};
use crate::sqlserver::store::{ReadMode, StoreError};
use crate::sqlserver::value::{self, CastOptions, Value};

/// Errors of a rewrite: those of the store are named later, when the context is free again.
enum RewriteError {
    Store(StoreError),
    Sql(SqlError),
}

impl From<StoreError> for RewriteError {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}

fn save(cx: &mut Cx<'_>, object: &Object, def: TableDef) -> Result<()> {
    let mut object = object.clone();
    object.body = ObjectBody::Table(def);
    object.modify_date = now_micros();
    put(cx, object)
}

fn rewrite(
    cx: &mut Cx<'_>,
    object: &Object,
    def: TableDef,
    mut convert: impl FnMut(&mut Cx<'_>, Row) -> Result<Row>,
) -> Result<()> {
    let mut object = object.clone();
    object.body = ObjectBody::Table(def);
    object.modify_date = now_micros();
    let txn = cx.st.txn();
    let result = txn.rewrite_table(object, |row| convert(cx, row).map_err(RewriteError::Sql));
    match result {
        Ok(()) => Ok(()),
        Err(RewriteError::Sql(e)) => Err(e),
        Err(RewriteError::Store(e)) => Err(storage::error(cx, e)),
    }
}

pub(super) fn alter_table(cx: &mut Cx<'_>, alter: &AlterTable) -> Result<()> {
    let object = table_of(cx, &alter.name, 4902)?;
    match &alter.action {
        AlterAction::Add { elements, check } => add(cx, &object, elements, *check),
        AlterAction::DropItems { columns, constraints } => {
            drop_constraints(cx, &object, constraints)?;
            let object = table_of(cx, &alter.name, 4902)?;
            drop_columns(cx, &object, columns)
        }
        AlterAction::AlterColumn { name, ty, nullable, collation } => {
            alter_column(cx, &object, name, ty, *nullable, collation.as_deref())
        }
        AlterAction::Check { enable, trust, names } => check_constraints(cx, &object, *enable, *trust, names),
        AlterAction::Trigger { enable, names } => super::module::set_triggers(cx, &object, *enable, names),
        AlterAction::Rebuild | AlterAction::SetLockEscalation => Ok(()),
        AlterAction::Switch { .. } => Err(error::unsupported("ALTER TABLE SWITCH")),
    }
}

/// ADD of columns and constraints; rows that are there get defaults and are checked.
fn add(cx: &mut Cx<'_>, object: &Arc<Object>, elements: &[TableElement], check: Option<bool>) -> Result<()> {
    let before = object.table().cloned().unwrap_or_default();
    let mut builder = Builder::new((**object).clone());
    for element in elements {
        builder.add(cx, element)?;
    }
    builder.finish_elements(cx, check)?;
    let def = builder.def;
    let old_width = before.columns.len();
    let has_rows = first_row(cx, object)?;
    if let Some(bad) = def.columns[old_width..].iter().find(|c| {
        has_rows
            && !c.nullable
            && c.default.is_none()
            && c.identity.is_none()
            && c.computed.is_none()
            && c.ty != value::SqlType::RowVersion
    }) {
        return Err(error::plain(
            4901,
            &format!(
                "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified, or the column being added is an identity or timestamp column, or alternatively if none of the previous conditions are satisfied the table must be empty to allow addition of this column. Column '{}' cannot be added to non-empty table '{}' because it does not satisfy these conditions.",
                bad.name, object.name
            ),
        ));
    }
    let new_checks = def.checks.len() > before.checks.len() || def.foreign_keys.len() > before.foreign_keys.len();
    if def.columns.len() == old_width {
        save(cx, object, def)?;
    } else {
        extend_rows(cx, object, def, old_width)?;
    }
    if new_checks && check != Some(false) && has_rows {
        validate(cx, object, before.checks.len(), before.foreign_keys.len())?;
    }
    Ok(())
}

fn first_row(cx: &mut Cx<'_>, object: &Object) -> Result<bool> {
    let txn = cx.st.txn();
    let mut scan = txn.scan(object.id, ReadMode::Committed).map_err(|e| storage::error(cx, e))?;
    match scan.next() {
        None => Ok(false),
        Some(Ok(_)) => Ok(true),
        Some(Err(e)) => Err(storage::error(cx, e)),
    }
}

fn extend_rows(cx: &mut Cx<'_>, object: &Arc<Object>, def: TableDef, old_width: usize) -> Result<()> {
    let mut changed = (**object).clone();
    changed.body = ObjectBody::Table(def.clone());
    let changed = Arc::new(changed);
    let table = Table::open(cx, Arc::clone(&changed), false)?;
    rewrite(cx, object, def.clone(), |cx, mut row| {
        row.resize(old_width, Value::Null);
        for (at, column) in def.columns.iter().enumerate().skip(old_width) {
            let value = if column.identity.is_some() {
                table.next_identity(at, cx)?
            } else if column.default.is_some() && !column.nullable {
                table.default_value(at, cx)?
            } else if column.ty == value::SqlType::RowVersion {
                let next = cx.st.txn().next_rowversion(object.database);
                Value::binary(&next.to_be_bytes())
            } else {
                Value::Null
            };
            row.push(value);
        }
        for (at, x, from) in &table.computed {
            if *at >= old_width {
                let value = x.eval(cx, &row)?;
                row[*at] = value::cast(&value, from, &def.columns[*at].ty, &CastOptions::IMPLICIT)?;
            }
        }
        Ok(row)
    })
}

/// Checks rows that are there against constraints from these positions on.
fn validate(cx: &mut Cx<'_>, object: &Arc<Object>, checks: usize, keys: usize) -> Result<()> {
    let txn = cx.st.txn();
    let Some(stored) = txn.object(object.id) else { return Ok(()) };
    let mut only = (*stored).clone();
    let Some(def) = stored.table() else { return Ok(()) };
    let mut def = def.clone();
    def.checks.drain(..checks.min(def.checks.len()));
    def.foreign_keys.drain(..keys.min(def.foreign_keys.len()));
    let width = def.columns.len();
    only.body = ObjectBody::Table(def);
    let table = Table::open(cx, Arc::new(only), false)?;
    let scan = txn.scan(object.id, ReadMode::Committed).map_err(|e| storage::error(cx, e))?;
    for item in scan {
        let item = item.map_err(|e| storage::error(cx, e))?;
        let row = item.values(width).map_err(|e| storage::error(cx, e))?;
        table.check_only(&row, cx)?;
        table.check_references(&row, cx, "ALTER TABLE")?;
    }
    Ok(())
}

fn drop_constraints(cx: &mut Cx<'_>, object: &Arc<Object>, names: &[(String, bool)]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let mut def = object.table().cloned().unwrap_or_default();
    for (name, if_exists) in names {
        if let Some(at) = def.indexes.iter().position(|i| i.constraint.is_some() && same_name(&i.name, name)) {
            let index = def.indexes[at].id;
            let txn = cx.st.txn();
            let user = txn.objects(object.database).into_iter().find_map(|o| {
                let t = o.table()?;
                let key = t.foreign_keys.iter().find(|k| k.referenced_table == object.id && k.key_index_id == index)?;
                Some((o.name.clone(), key.name.clone()))
            });
            if let Some((table, key)) = user {
                return Err(error::new(
                    3725,
                    16,
                    0,
                    &format!(
                        "The constraint '{name}' is being referenced by table '{table}', foreign key constraint '{key}'."
                    ),
                ));
            }
            def.indexes.remove(at);
        } else if let Some(at) = def.checks.iter().position(|c| same_name(&c.name, name)) {
            def.checks.remove(at);
        } else if let Some(at) = def.foreign_keys.iter().position(|k| same_name(&k.name, name)) {
            def.foreign_keys.remove(at);
        } else if let Some(column) =
            def.columns.iter_mut().find(|c| c.default.as_ref().is_some_and(|d| same_name(&d.name, name)))
        {
            column.default = None;
        } else if !if_exists {
            return Err(error::plain(3728, &format!("'{name}' is not a constraint.")));
        }
    }
    save(cx, object, def)
}

fn drop_columns(cx: &mut Cx<'_>, object: &Arc<Object>, names: &[(String, bool)]) -> Result<()> {
    let mut def = object.table().cloned().unwrap_or_default();
    let mut gone = Vec::new();
    for (name, if_exists) in names {
        let Some(at) = def.columns.iter().position(|c| same_name(&c.name, name)) else {
            if *if_exists {
                continue;
            }
            return Err(error::plain(
                4924,
                &format!(
                    "ALTER TABLE DROP COLUMN failed because column '{name}' does not exist in table '{}'.",
                    object.name
                ),
            ));
        };
        let id = def.columns[at].id;
        let users = dependents(&def, id);
        if !users.is_empty() {
            let mut message = String::new();
            for (kind, user) in &users {
                message.push_str(&format!("The {kind} '{user}' is dependent on column '{name}'. "));
            }
            return Err(error::plain(5074, message.trim_end()));
        }
        gone.push(at);
    }
    if gone.is_empty() {
        return Ok(());
    }
    if def.columns.len() == gone.len() {
        return Err(error::plain(
            4923,
            &format!(
                "ALTER TABLE DROP COLUMN failed because '{}' is the only data column in table '{}'. A table must have at least one data column.",
                names[0].0, object.name
            ),
        ));
    }
    let width = def.columns.len();
    let keep: Vec<usize> = (0..width).filter(|at| !gone.contains(at)).collect();
    def.columns = keep.iter().map(|at| def.columns[*at].clone()).collect();
    rewrite(cx, object, def, |_, mut row| {
        row.resize(width, Value::Null);
        Ok(keep.iter().map(|at| row[*at].clone()).collect())
    })
}

/// Constraints and indexes that use a column.
fn dependents(def: &TableDef, id: i32) -> Vec<(&'static str, String)> {
    let mut users = Vec::new();
    for index in &def.indexes {
        if index.keys.iter().any(|k| k.column_id == id) || index.included.contains(&id) {
            users.push((if index.constraint.is_some() { "object" } else { "index" }, index.name.clone()));
        }
    }
    let column = def.columns.iter().find(|c| c.id == id);
    if let Some(default) = column.and_then(|c| c.default.as_ref()) {
        users.push(("object", default.name.clone()));
    }
    let quoted = column.map_or_else(String::new, |c| format!("[{}]", c.name.to_lowercase()));
    for check in &def.checks {
        if check.definition.to_lowercase().contains(&quoted) {
            users.push(("object", check.name.clone()));
        }
    }
    for key in &def.foreign_keys {
        if key.columns.contains(&id) {
            users.push(("object", key.name.clone()));
        }
    }
    for other in &def.columns {
        if other.id != id && other.computed.as_ref().is_some_and(|c| c.definition.to_lowercase().contains(&quoted)) {
            users.push(("column", other.name.clone()));
        }
    }
    users
}

fn alter_column(
    cx: &mut Cx<'_>,
    object: &Arc<Object>,
    name: &str,
    ty: &TypeName,
    nullable: Option<bool>,
    collation: Option<&str>,
) -> Result<()> {
    let mut def = object.table().cloned().unwrap_or_default();
    let Some(at) = def.columns.iter().position(|c| same_name(&c.name, name)) else {
        return Err(error::plain(
            4924,
            &format!(
                "ALTER TABLE ALTER COLUMN failed because column '{name}' does not exist in table '{}'.",
                object.name
            ),
        ));
    };
    let old = def.columns[at].clone();
    if old.computed.is_some() || old.ty == value::SqlType::RowVersion {
        return Err(error::plain(
            4928,
            &format!("Cannot alter column '{name}' because it is 'COMPUTED' or 'timestamp'."),
        ));
    }
    let (mut to, declared) = types::resolve(cx, object.database, ty, 1)?;
    if let Some(collation) = collation {
        to = to.with_collation(types::collation(cx, collation)?);
    }
    let keyed = def.indexes.iter().any(|i| i.keys.iter().any(|k| k.column_id == old.id));
    let nullable = nullable.unwrap_or(true);
    if keyed && (std::mem::discriminant(&to) != std::mem::discriminant(&old.ty) || nullable && !old.nullable) {
        let user = def.indexes.iter().find(|i| i.keys.iter().any(|k| k.column_id == old.id)).map_or("", |i| &i.name);
        return Err(error::plain(5074, &format!("The object '{user}' is dependent on column '{name}'.")));
    }
    def.columns[at].ty = to;
    def.columns[at].declared_type = declared;
    def.columns[at].nullable = nullable;
    let database = super::super::super::lookup::database_name(cx, object.database);
    let table = qualified(cx, object);
    let width = def.columns.len();
    rewrite(cx, object, def, |cx, mut row| {
        row.resize(width, Value::Null);
        if row[at].is_null() {
            if !nullable {
                return Err(error::new(
                    515,
                    16,
                    2,
                    &format!(
                        "Cannot insert the value NULL into column '{name}', table '{database}.{table}'; column does not allow nulls. UPDATE fails."
                    ),
                ));
            }
            return Ok(row);
        }
        let converted = value::assign(&row[at], &old.ty, &to, cx.st.settings.date_format).map_err(|e| {
            if e.number == 8152 {
                return error::plain(2628, &format!("String or binary data would be truncated in table '{database}.{table}', column '{name}'. Truncated value: ''."));
            }
            e.into()
        })?;
        row[at] = converted;
        Ok(row)
    })
}

fn check_constraints(cx: &mut Cx<'_>, object: &Arc<Object>, enable: bool, trust: bool, names: &[String]) -> Result<()> {
    let mut def = object.table().cloned().unwrap_or_default();
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| same_name(n, name));
    for name in names {
        let known = def.checks.iter().any(|c| same_name(&c.name, name))
            || def.foreign_keys.iter().any(|k| same_name(&k.name, name));
        if !known {
            return Err(error::plain(4917, &format!("Constraint '{name}' does not exist.")));
        }
    }
    for check in def.checks.iter_mut().filter(|c| chosen(&c.name)) {
        check.disabled = !enable;
        check.not_trusted = !(enable && trust);
    }
    for key in def.foreign_keys.iter_mut().filter(|k| chosen(&k.name)) {
        key.disabled = !enable;
        key.not_trusted = !(enable && trust);
    }
    save(cx, object, def)?;
    if enable && trust {
        validate(cx, object, 0, 0)?;
    }
    Ok(())
}
