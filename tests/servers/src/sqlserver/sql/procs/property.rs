//! Extended properties: `sp_addextendedproperty` and its kin.

use super::super::bind::same_name;
use super::super::error::{self, Result};
use super::super::exec::{self, Argument, Returned};
use super::super::state::Cx;
use super::super::{permission, storage};
use super::{Args, plain};
use crate::sqlserver::store::catalog::{CatalogKey, ExtendedProperty, PropertyKey};
use crate::sqlserver::value::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PropertyAction {
    Add,
    Update,
    Drop,
}

/// sp_addextendedproperty and its kin.
pub(super) fn property(cx: &mut Cx<'_>, args: &[Argument], action: PropertyAction) -> Result<Returned> {
    let names: &[&str] = if action == PropertyAction::Drop {
        &["name", "level0type", "level0name", "level1type", "level1name", "level2type", "level2name"]
    } else {
        &["name", "value", "level0type", "level0name", "level1type", "level1name", "level2type", "level2name"]
    };
    let a = Args { args, names };
    let shift = usize::from(action != PropertyAction::Drop);
    let Some(name) = a.text(0)? else {
        return Err(error::plain(
            15600,
            "An invalid parameter or option was specified for procedure 'sp_addextendedproperty'.",
        ));
    };
    let mut levels = Vec::new();
    for level in 0..3 {
        if let (Some(kind), Some(target)) = (a.text(1 + shift + 2 * level)?, a.text(2 + shift + 2 * level)?) {
            levels.push((kind.to_lowercase(), target));
        }
    }
    let (class, major, minor, shown) = property_target(cx, &levels)?;
    let database = cx.st.database;
    let key = PropertyKey {
        database,
        class,
        major_id: major,
        minor_id: minor,
        folded_name: crate::sqlserver::store::catalog::fold_name(&name),
    };
    let record = CatalogKey::Property(key.clone());
    let txn = cx.st.txn();
    let exists = txn.record(&record).is_some();
    match action {
        PropertyAction::Add if exists => {
            return Err(error::plain(
                15233,
                &format!("Property cannot be added. Property '{name}' already exists for '{shown}'."),
            ));
        }
        PropertyAction::Update | PropertyAction::Drop if !exists => {
            return Err(error::plain(
                15217,
                &format!("Property cannot be updated or deleted. Property '{name}' does not exist for '{shown}'."),
            ));
        }
        PropertyAction::Drop => txn.remove(&record).map_err(|e| storage::error(cx, e))?,
        _ => {
            let value = a.value(1).map_or(Value::Null, |v| v.0);
            let value = match value {
                Value::Variant(inner) => inner.1.clone(),
                other => other,
            };
            txn.put(ExtendedProperty { key, name, value }).map_err(|e| storage::error(cx, e))?;
        }
    }
    exec::finish_statement(cx)?;
    Ok(plain(0))
}

fn property_target(cx: &mut Cx<'_>, levels: &[(String, String)]) -> Result<(u8, i32, i32, String)> {
    let database = cx.st.database;
    let denied = |shown: &str| {
        error::plain(
            15135,
            &format!(
                "Object is invalid. Extended properties are not permitted on '{shown}', or the object does not exist."
            ),
        )
    };
    let shown: Vec<&str> = levels.iter().map(|l| l.1.as_str()).collect();
    let shown = if shown.is_empty() { "database".to_owned() } else { shown.join(".") };
    let Some((kind, schema_name)) = levels.first() else {
        if !permission::has(cx, permission::Target::Database(database), "ALTER") {
            return Err(denied(&shown));
        }
        return Ok((0, 0, 0, shown));
    };
    if kind == "user" && levels.len() == 1 {
        return super::super::principal::find_user(cx, database, schema_name)
            .map(|p| (4, p.id.0, 0, shown.clone()))
            .ok_or_else(|| denied(&shown));
    }
    if kind != "schema" && kind != "user" {
        return Err(error::plain(
            15600,
            "An invalid parameter or option was specified for procedure 'sp_addextendedproperty'.",
        ));
    }
    let txn = cx.st.txn();
    let Some(schema) = txn.find_schema(database, schema_name) else { return Err(denied(&shown)) };
    let Some((_, object_name)) = levels.get(1) else {
        return Ok((3, schema.id.0, 0, shown));
    };
    let Some(object) = txn.find_object(database, schema.id, object_name) else { return Err(denied(&shown)) };
    if !permission::has_object(cx, &object, "ALTER") {
        return Err(denied(&shown));
    }
    let Some((kind, part)) = levels.get(2) else { return Ok((1, object.id.0, 0, shown)) };
    let table = object.table();
    match kind.as_str() {
        "column" => {
            let column = table.and_then(|t| t.columns.iter().find(|c| same_name(&c.name, part)));
            column.map(|c| (1, object.id.0, c.id, shown.clone())).ok_or_else(|| denied(&shown))
        }
        "index" => {
            let index = table.and_then(|t| t.indexes.iter().find(|i| same_name(&i.name, part)));
            index.map(|i| (7, object.id.0, i.id, shown.clone())).ok_or_else(|| denied(&shown))
        }
        "constraint" => {
            let found = super::super::catalog::constraints_of(&object).into_iter().find(|c| same_name(&c.name, part));
            found.map(|c| (1, c.id, 0, shown.clone())).ok_or_else(|| denied(&shown))
        }
        "trigger" => {
            let found = txn.find_object(database, schema.id, part).filter(|o| o.parent() == Some(object.id));
            found.map(|o| (1, o.id.0, 0, shown.clone())).ok_or_else(|| denied(&shown))
        }
        _ => Err(denied(&shown)),
    }
}
