//! CREATE, DROP and ALTER INDEX.

use super::super::super::ast::Name;
use super::super::super::bind::same_name;
use super::super::super::deparse;
use super::super::super::error::{self, Result};
use super::super::super::state::{Cx, now_micros};
use super::super::super::stmt::CreateIndex;
use super::table::check_key_type;
use super::{put, table_of};
use crate::sqlserver::store::catalog::{Index, IndexKey, ObjectBody, TableDef};

/// Adds an index to a definition.
pub(super) fn add(def: &mut TableDef, table: &str, index: &CreateIndex) -> Result<()> {
    if def.indexes.iter().any(|i| same_name(&i.name, &index.name)) {
        return Err(error::new(
            1913,
            16,
            1,
            &format!(
                "The operation failed because an index or statistics with name '{}' already exists on table '{table}'.",
                index.name
            ),
        ));
    }
    if index.clustered && def.clustered_index().is_some() {
        return Err(error::new(
            1902,
            16,
            3,
            &format!(
                "Cannot create more than one clustered index on table '{table}'. Drop the existing clustered index before creating another."
            ),
        ));
    }
    let find = |name: &String| {
        def.columns.iter().find(|c| same_name(&c.name, name)).ok_or_else(|| {
            error::new(1911, 16, 1, &format!("Column name '{name}' does not exist in the target table or view."))
        })
    };
    let mut keys = Vec::new();
    for (name, descending) in &index.columns {
        let column = find(name)?;
        check_key_type(column, table)?;
        keys.push(IndexKey { column_id: column.id, descending: *descending });
    }
    let included = index.include.iter().map(|n| find(n).map(|c| c.id)).collect::<Result<Vec<_>>>()?;
    if index.unique && index.filter.is_some() {
        return Err(error::unsupported("filtered unique index"));
    }
    let id = if index.clustered { 1 } else { def.indexes.iter().map(|i| i.id).max().unwrap_or(1).max(1) + 1 };
    def.indexes.push(Index {
        id,
        name: index.name.clone(),
        unique: index.unique,
        ignore_dup_key: index.ignore_dup_key,
        disabled: false,
        keys,
        included,
        filter: index.filter.as_ref().map(|(expr, text)| deparse::definition(expr, text)),
        columnstore: false,
        fill_factor: 0,
        data_compression: 0,
        constraint: None,
    });
    Ok(())
}

fn store(cx: &mut Cx<'_>, object: &super::Object, def: TableDef) -> Result<()> {
    let mut object = object.clone();
    object.body = ObjectBody::Table(def);
    object.modify_date = now_micros();
    put(cx, object)
}

pub(super) fn create(cx: &mut Cx<'_>, index: &CreateIndex) -> Result<()> {
    if index.ignore_dup_key {
        return Err(error::unsupported("IGNORE_DUP_KEY"));
    }
    let object = table_of(cx, &index.table, 1088)?;
    let mut def = object.table().cloned().unwrap_or_default();
    if index.drop_existing {
        def.indexes.retain(|i| !same_name(&i.name, &index.name) || i.constraint.is_some());
    }
    add(&mut def, &object.name, index)?;
    store(cx, &object, def)
}

pub(super) fn drop(cx: &mut Cx<'_>, if_exists: bool, items: &[(String, Name)]) -> Result<()> {
    for (name, table) in items {
        let missing = || {
            error::new(
                3701,
                11,
                7,
                &format!(
                    "Cannot drop the index '{}.{name}', because it does not exist or you do not have permission.",
                    table.display()
                ),
            )
        };
        let object = match table_of(cx, table, 1088) {
            Ok(object) => object,
            Err(_) if if_exists => continue,
            Err(e) if e.number == 1088 => return Err(missing()),
            Err(e) => return Err(e),
        };
        let mut def = object.table().cloned().unwrap_or_default();
        let Some(at) = def.indexes.iter().position(|i| same_name(&i.name, name)) else {
            if if_exists {
                continue;
            }
            return Err(missing());
        };
        if let Some(constraint) = &def.indexes[at].constraint {
            let kind = if constraint.primary { "PRIMARY KEY" } else { "UNIQUE KEY" };
            return Err(error::new(
                3723,
                16,
                4,
                &format!(
                    "An explicit DROP INDEX is not allowed on index '{}.{name}'. It is being used for {kind} constraint enforcement.",
                    table.display()
                ),
            ));
        }
        def.indexes.remove(at);
        store(cx, &object, def)?;
    }
    Ok(())
}

pub(super) fn alter(cx: &mut Cx<'_>, index: Option<&str>, table: &Name, action: &str) -> Result<()> {
    let object = table_of(cx, table, 1088)?;
    let mut def = object.table().cloned().unwrap_or_default();
    let mut found = index.is_none();
    for entry in &mut def.indexes {
        if index.is_none_or(|name| same_name(name, &entry.name)) {
            found = true;
            match action {
                "disable" => entry.disabled = true,
                "rebuild" => entry.disabled = false,
                _ => {}
            }
        }
    }
    if !found {
        let name = index.unwrap_or_default();
        return Err(error::new(2727, 11, 1, &format!("Cannot find index '{name}'.")));
    }
    store(cx, &object, def)
}
