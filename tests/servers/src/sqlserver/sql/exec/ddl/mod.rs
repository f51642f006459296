//! CREATE, ALTER, DROP, TRUNCATE.

mod alter;
mod drop;
mod index;
mod module;
mod object;
mod table;

use std::sync::Arc;

use super::super::ast::Name;
use super::super::error::{self, Result};
use super::super::state::{Cx, now_micros};
use super::super::stmt::Kind;
use super::super::{lookup, permission, storage};
use super::{Flow, done_plain, transaction};
use crate::sqlserver::store::catalog::{DBO_SCHEMA, DatabaseId, Object, ObjectBody, ObjectId, SchemaId, TEMPDB};
use crate::sqlserver::store::{Hold, lock::LockMode};

pub(crate) use drop::drop_temporary;
pub(super) use module::enable_triggers;
pub(crate) use table::{create_from_columns, declare_table_variable};

pub(super) fn execute(cx: &mut Cx<'_>, kind: &Kind) -> Result<Flow> {
    transaction::check_writable(cx)?;
    transaction::implicit(cx);
    match kind {
        Kind::CreateTable(table) => table::create(cx, table)?,
        Kind::AlterTable(alter) => alter::alter_table(cx, alter)?,
        Kind::Drop { kind, if_exists, names } => drop::drop(cx, *kind, *if_exists, names)?,
        Kind::DropIndex { if_exists, items } => index::drop(cx, *if_exists, items)?,
        Kind::CreateIndex(index) => index::create(cx, index)?,
        Kind::AlterIndex { index, table, action } => index::alter(cx, index.as_deref(), table, action)?,
        Kind::CreateSchema { name, owner } => object::create_schema(cx, name, owner.as_deref())?,
        Kind::AlterSchema { schema, object } => object::transfer(cx, schema, object)?,
        Kind::CreateModule(module) => module::create(cx, module)?,
        Kind::CreateSequence { name, ty, options } => object::create_sequence(cx, name, ty.as_ref(), options)?,
        Kind::CreateType { name, base, .. } => object::create_type(cx, name, base)?,
        Kind::CreateSynonym { name, target } => object::create_synonym(cx, name, target)?,
        Kind::CreateDatabase(name) => object::create_database(cx, name)?,
        Kind::DropDatabase { if_exists, names } => object::drop_databases(cx, *if_exists, names)?,
        Kind::AlterDatabase { name, text } => object::alter_database(cx, name, text)?,
        _ => return Err(error::unsupported("statement")),
    }
    done_plain(cx)
}

/// Where a new object goes: database, schema, and its session if it is temporary.
pub(super) struct Place {
    pub(super) database: DatabaseId,
    pub(super) schema: SchemaId,
    pub(super) session: Option<i32>,
}

/// Settles where an object of this name is created.
pub(super) fn place(cx: &mut Cx<'_>, name: &Name) -> Result<Place> {
    if name.base().starts_with("##") {
        return Err(error::unsupported("global temporary table"));
    }
    if name.base().starts_with('#') {
        return Ok(Place { database: TEMPDB, schema: DBO_SCHEMA, session: Some(i32::from(cx.st.id)) });
    }
    let current = cx.st.database;
    let Some(database) = lookup::database(cx, name.database(), current)? else {
        let shown = name.database().unwrap_or_default();
        return Err(error::plain(2702, &format!("Database '{shown}' does not exist.")));
    };
    let schema = match name.schema() {
        None => lookup::default_schema(cx, database),
        Some(schema) => {
            let txn = cx.st.txn();
            txn.find_schema(database, schema).map(|s| s.id).ok_or_else(|| {
                error::plain(2760, &format!("The specified schema name \"{schema}\" either does not exist or you do not have permission to use it."))
            })?
        }
    };
    Ok(Place { database, schema, session: None })
}

/// Refuses a name that is taken.
pub(super) fn check_free(cx: &mut Cx<'_>, place: &Place, name: &str) -> Result<()> {
    let txn = cx.st.txn();
    let taken = txn.user_of_name(place.database, place.schema, name);
    let taken = taken.filter(|o| o.session.is_none() || o.session == place.session);
    if taken.is_some() {
        return Err(error::new(2714, 16, 6, &format!("There is already an object named '{name}' in the database.")));
    }
    Ok(())
}

/// A record for a new object.
pub(super) fn new_object(cx: &mut Cx<'_>, place: &Place, name: &str, body: ObjectBody) -> Object {
    let now = now_micros();
    Object {
        database: place.database,
        id: cx.st.engine.store.allocate_object_id(),
        schema: place.schema,
        name: name.to_owned(),
        session: place.session,
        owner: None,
        create_date: now,
        modify_date: now,
        body,
    }
}

pub(super) fn put(cx: &mut Cx<'_>, object: Object) -> Result<()> {
    let name = object.name.clone();
    let txn = cx.st.txn();
    txn.put(object).map_err(|e| match e {
        crate::sqlserver::store::StoreError::NameExists => {
            error::new(2714, 16, 6, &format!("There is already an object named '{name}' in the database."))
        }
        other => storage::error(cx, other),
    })
}

/// Finds an object of a statement that changes it, locked against all use.
pub(super) fn find_locked(cx: &mut Cx<'_>, name: &Name) -> Result<Option<Arc<Object>>> {
    let database = cx.st.database;
    lookup::resolve(cx, name, database, None, LockMode::SchemaModification, Hold::Transaction)
}

/// A table of ALTER and the like; 4902 and 1088 name it in their own ways.
pub(super) fn table_of(cx: &mut Cx<'_>, name: &Name, number: i32) -> Result<Arc<Object>> {
    let missing = || {
        error::new(
            number,
            16,
            1,
            &format!(
                "Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                name.display()
            ),
        )
    };
    let object = find_locked(cx, name)?.filter(|o| o.table().is_some()).ok_or_else(missing)?;
    permission::check_alter(cx, &object).map_err(|_| missing())?;
    Ok(object)
}

pub(super) fn truncate(cx: &mut Cx<'_>, name: &Name) -> Result<Flow> {
    transaction::check_writable(cx)?;
    transaction::implicit(cx);
    let found = find_locked(cx, name)?.filter(|o| o.table().is_some());
    let Some(object) = found else {
        return Err(error::new(
            4701,
            16,
            1,
            &format!(
                "Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                name.base()
            ),
        ));
    };
    permission::check_alter(cx, &object)?;
    let txn = cx.st.txn();
    let referenced = txn.objects(object.database).into_iter().any(|o| {
        o.id != object.id && o.table().is_some_and(|t| t.foreign_keys.iter().any(|k| k.referenced_table == object.id))
    });
    if referenced {
        return Err(error::plain(
            4712,
            &format!(
                "Cannot truncate table '{}' because it is being referenced by a FOREIGN KEY constraint.",
                name.display()
            ),
        ));
    }
    txn.truncate(object.id).map_err(|e| storage::error(cx, e))?;
    done_plain(cx)
}

/// Notes a temporary table of the running procedure.
pub(super) fn note_temporary(cx: &mut Cx<'_>, place: &Place, id: ObjectId) {
    if place.session.is_some() && cx.st.frames.len() > 1 {
        cx.st.frame_mut().temp_tables.push(id);
    }
}
