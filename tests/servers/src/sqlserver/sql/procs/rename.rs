//! `sp_rename`.

use super::super::ast::Name;
use super::super::bind::same_name;
use super::super::error::{self, Result};
use super::super::exec::{self, Argument, Returned};
use super::super::state::{Cx, now_micros};
use super::super::{lookup, parse, permission, storage};
use super::{Args, plain};
use crate::sqlserver::store::catalog::{Object, ObjectBody};

pub(super) fn rename(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["objname", "newname", "objtype"] };
    let (Some(old), Some(new)) = (a.text(0)?, a.text(1)?) else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_rename' expects parameter '@objname', which was not supplied.",
        ));
    };
    let kind = a.text(2)?.map_or_else(|| "OBJECT".to_owned(), |k| k.to_uppercase());
    let mut name = parse::parse_name(&old)?;
    let missing = || {
        error::plain(
            15225,
            &format!(
                "No item by the name of '{old}' could be found in the current database '', given that @itemtype was input as '{kind}'."
            ),
        )
    };
    let part = if kind == "COLUMN" || kind == "INDEX" { name.parts.pop() } else { None };
    if name.parts.is_empty() {
        return Err(error::plain(
            15248,
            &format!("Either the parameter @objname is ambiguous or the claimed @objtype ({kind}) is wrong."),
        ));
    }
    let database = cx.st.database;
    let found = lookup::resolve(
        cx,
        &name,
        database,
        None,
        crate::sqlserver::store::lock::LockMode::SchemaModification,
        crate::sqlserver::store::Hold::Transaction,
    )?;
    let mut object: Object = match found {
        Some(object) => (*object).clone(),
        None => return rename_constraint(cx, &name, &new, missing()),
    };
    permission::check_alter(cx, &object)?;
    match part {
        None => object.name.clone_from(&new),
        Some(part) => {
            let ObjectBody::Table(table) = &mut object.body else { return Err(missing()) };
            if kind == "COLUMN" {
                if table.columns.iter().any(|c| same_name(&c.name, &new)) {
                    return Err(error::plain(
                        15335,
                        &format!(
                            "Error: The new name '{new}' is already in use as a COLUMN name and would cause a duplicate that is not permitted."
                        ),
                    ));
                }
                let column = table.columns.iter_mut().find(|c| same_name(&c.name, &part)).ok_or_else(missing)?;
                column.name.clone_from(&new);
            } else {
                let index = table.indexes.iter_mut().find(|i| same_name(&i.name, &part)).ok_or_else(missing)?;
                index.name.clone_from(&new);
            }
        }
    }
    object.modify_date = now_micros();
    put_renamed(cx, object, &new)
}

fn put_renamed(cx: &mut Cx<'_>, object: Object, new: &str) -> Result<Returned> {
    let txn = cx.st.txn();
    txn.put(object).map_err(|e| match e {
        crate::sqlserver::store::StoreError::NameExists => error::plain(15335, &format!("Error: The new name '{new}' is already in use as a OBJECT name and would cause a duplicate that is not permitted.")),
        other => storage::error(cx, other),
    })?;
    exec::finish_statement(cx)?;
    cx.out.info(&exec::placed(
        cx,
        error::new(
            15477,
            0,
            1,
            "Caution: Changing any part of an object name could break scripts and stored procedures.",
        ),
    ));
    Ok(plain(0))
}

fn rename_constraint(
    cx: &mut Cx<'_>,
    name: &Name,
    new: &str,
    missing: super::super::api::SqlError,
) -> Result<Returned> {
    let database = cx.st.database;
    let txn = cx.st.txn();
    for schema in lookup::schemas_of(cx, name, database, None) {
        let Some(owner) = txn.user_of_name(database, schema, name.base()) else { continue };
        permission::check_alter(cx, &owner)?;
        let mut object = (*owner).clone();
        let ObjectBody::Table(table) = &mut object.body else { continue };
        let names = table
            .indexes
            .iter_mut()
            .filter(|i| i.constraint.is_some())
            .map(|i| &mut i.name)
            .chain(table.checks.iter_mut().map(|c| &mut c.name))
            .chain(table.foreign_keys.iter_mut().map(|k| &mut k.name))
            .chain(table.columns.iter_mut().filter_map(|c| c.default.as_mut()).map(|d| &mut d.name));
        let mut found = false;
        for entry in names {
            if same_name(entry, name.base()) {
                new.clone_into(entry);
                found = true;
            }
        }
        if found {
            return put_renamed(cx, object, new);
        }
    }
    Err(missing)
}
