//! Stores changes of rows and follows foreign keys that refer to them.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::super::error::{self, Result};
use super::super::super::plan::Row;
use super::super::super::state::Cx;
use super::super::super::storage;
use super::{Table, qualified};
use crate::sqlserver::store::catalog::{ForeignKey, Object, ReferentialAction};
use crate::sqlserver::store::{ReadMode, RowId};
use crate::sqlserver::value::{Value, sort_key};

/// One changed row; without a new one it is deleted.
pub(super) struct Change {
    pub(super) id: RowId,
    pub(super) old: Row,
    pub(super) new: Option<Row>,
}

/// Writes the changes, then checks keys in both directions.
pub(super) fn apply(cx: &mut Cx<'_>, table: &Table, changes: &[Change], updated: &[usize], verb: &str) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let txn = table.txn(cx);
    let id = table.object.id;
    let mut replaced = Vec::new();
    for change in changes {
        match &change.new {
            Some(new) => replaced.push((change.id, new.clone())),
            None => {
                txn.delete(id, change.id).map_err(|e| storage::error(cx, e))?;
            }
        }
    }
    if !replaced.is_empty() {
        txn.update_many(id, &replaced).map_err(|e| storage::error(cx, e))?;
    }
    if table.has_references() {
        for change in changes {
            if let Some(new) = &change.new {
                table.check_references(new, cx, verb)?;
            }
        }
    }
    if table.variable {
        return Ok(());
    }
    for (child, key) in referring(cx, &table.object) {
        follow(cx, table, &child, &key, changes, updated, verb)?;
    }
    Ok(())
}

/// Enabled foreign keys that refer to a table.
fn referring(cx: &mut Cx<'_>, object: &Object) -> Vec<(Arc<Object>, ForeignKey)> {
    let txn = cx.st.txn();
    if object.session.is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for child in txn.objects(object.database) {
        let Some(def) = child.table() else { continue };
        for key in def.foreign_keys.iter().filter(|k| !k.disabled && k.referenced_table == object.id) {
            found.push((Arc::clone(&child), key.clone()));
        }
    }
    found
}

fn follow(
    cx: &mut Cx<'_>,
    table: &Table,
    child: &Arc<Object>,
    key: &ForeignKey,
    changes: &[Change],
    updated: &[usize],
    verb: &str,
) -> Result<()> {
    let def = table.def();
    let Some(child_def) = child.table() else { return Ok(()) };
    let theirs: Vec<usize> = key.referenced_columns.iter().filter_map(|id| def.position_of_id(*id)).collect();
    let mine: Vec<usize> = key.columns.iter().filter_map(|id| child_def.position_of_id(*id)).collect();
    let moved = changes.iter().any(|c| c.new.is_none()) || updated.iter().any(|at| theirs.contains(at));
    if !moved {
        return Ok(());
    }
    // Old keys that no row has any more, with the new values of the row that had them.
    let bytes = |row: &[Value]| {
        let mut out = Vec::new();
        for at in &theirs {
            sort_key(&row[*at], &def.columns[*at].ty, &mut out);
        }
        out
    };
    let mut gone: HashMap<Vec<u8>, Option<&Row>> = HashMap::new();
    for change in changes {
        let old = bytes(&change.old);
        if change.new.as_ref().is_none_or(|new| bytes(new) != old) {
            gone.insert(old, change.new.as_ref());
        }
    }
    for change in changes {
        if let Some(new) = &change.new {
            gone.remove(&bytes(new));
        }
    }
    if gone.is_empty() {
        return Ok(());
    }
    let txn = cx.st.txn();
    let mut hits: Vec<(RowId, Row, Option<Row>)> = Vec::new();
    let scan = txn.scan(child.id, ReadMode::Committed).map_err(|e| storage::error(cx, e))?;
    let columns = child_def.columns.len();
    for item in scan {
        let item = item.map_err(|e| storage::error(cx, e))?;
        let row = item.values(columns).map_err(|e| storage::error(cx, e))?;
        if mine.iter().any(|at| row[*at].is_null()) {
            continue;
        }
        let mut found = Vec::new();
        for (at, their) in mine.iter().zip(&theirs) {
            sort_key(&row[*at], &def.columns[*their].ty, &mut found);
        }
        if let Some(new) = gone.get(&found) {
            hits.push((item.id(), row, new.cloned()));
        }
    }
    if hits.is_empty() {
        return Ok(());
    }
    let action = if verb == "DELETE" { key.on_delete } else { key.on_update };
    if action == ReferentialAction::NoAction {
        return Err(conflict(cx, table, child, key, &mine, verb));
    }
    cascade(cx, child, action, &mine, &theirs, hits, verb)
}

fn conflict(
    cx: &mut Cx<'_>,
    table: &Table,
    child: &Arc<Object>,
    key: &ForeignKey,
    mine: &[usize],
    verb: &str,
) -> super::super::super::api::SqlError {
    let kind = if child.id == table.object.id { "SAME TABLE REFERENCE" } else { "REFERENCE" };
    let name = qualified(cx, child);
    let column = match (mine, child.table()) {
        ([one], Some(def)) => format!(", column '{}'", def.columns[*one].name),
        _ => String::new(),
    };
    error::new(
        547,
        16,
        0,
        &format!(
            "The {verb} statement conflicted with the {kind} constraint \"{}\". The conflict occurred in database \"{}\", table \"{name}\"{column}.",
            key.name, table.database_name
        ),
    )
}

fn cascade(
    cx: &mut Cx<'_>,
    child: &Arc<Object>,
    action: ReferentialAction,
    mine: &[usize],
    theirs: &[usize],
    hits: Vec<(RowId, Row, Option<Row>)>,
    verb: &str,
) -> Result<()> {
    let table = Table::open(cx, Arc::clone(child), false)?;
    let mut changes = Vec::with_capacity(hits.len());
    for (id, old, parent) in hits {
        let deletes = action == ReferentialAction::Cascade && verb == "DELETE";
        let new = if deletes {
            None
        } else {
            let mut new = old.clone();
            for (at, their) in mine.iter().zip(theirs) {
                new[*at] = match (action, &parent) {
                    (ReferentialAction::Cascade, Some(parent)) => parent[*their].clone(),
                    (ReferentialAction::SetDefault, _) => table.default_value(*at, cx)?,
                    _ => Value::Null,
                };
            }
            table.complete(&mut new, cx, "UPDATE")?;
            Some(new)
        };
        changes.push(Change { id, old, new });
    }
    let verb = if changes.iter().any(|c| c.new.is_none()) { "DELETE" } else { "UPDATE" };
    apply(cx, &table, &changes, mine, verb)
}
