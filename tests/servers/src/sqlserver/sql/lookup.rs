//! Names to databases, schemas and objects.

use std::sync::Arc;

use super::ast::Name;
use super::bind::Binder;
use super::error::{self, Result};
use super::state::Cx;
use super::storage;
use crate::sqlserver::store::Hold;
use crate::sqlserver::store::catalog::{
    DBO_SCHEMA, Database, DatabaseId, Object, ObjectBody, Schema, SchemaId, TEMPDB,
};
use crate::sqlserver::store::lock::LockMode;

/// The database of a name, by default the current one.
pub(crate) fn database(cx: &mut Cx<'_>, name: Option<&str>, default: DatabaseId) -> Result<Option<DatabaseId>> {
    let Some(name) = name else { return Ok(Some(default)) };
    let txn = cx.st.txn();
    Ok(txn.find_database(name).map(|d| d.id))
}

/// The record of a database.
pub(crate) fn database_record(cx: &mut Cx<'_>, id: DatabaseId) -> Option<Arc<Database>> {
    let txn = cx.st.txn();
    txn.databases().into_iter().find(|d| d.id == id)
}

/// Name of a database.
pub(crate) fn database_name(cx: &mut Cx<'_>, id: DatabaseId) -> String {
    database_record(cx, id).map_or_else(String::new, |d| d.name.clone())
}

/// Default schema of the session in a database.
pub(crate) fn default_schema(cx: &mut Cx<'_>, database: DatabaseId) -> SchemaId {
    let name = super::principal::default_schema(cx, database);
    let txn = cx.st.txn();
    name.and_then(|n| txn.find_schema(database, &n)).map_or(DBO_SCHEMA, |s| s.id)
}

/// A schema by id.
pub(crate) fn schema(cx: &mut Cx<'_>, database: DatabaseId, id: SchemaId) -> Option<Arc<Schema>> {
    let txn = cx.st.txn();
    txn.schemas(database).into_iter().find(|s| s.id == id)
}

/// Name of an object's schema.
pub(crate) fn schema_name(cx: &mut Cx<'_>, object: &Object) -> String {
    schema(cx, object.database, object.schema).map_or_else(|| "dbo".to_owned(), |s| s.name.clone())
}

/// Schemas in which a name is looked for, in order.
pub(crate) fn schemas_of(
    cx: &mut Cx<'_>,
    name: &Name,
    database: DatabaseId,
    inside: Option<SchemaId>,
) -> Vec<SchemaId> {
    if let Some(schema) = name.schema() {
        let txn = cx.st.txn();
        return txn.find_schema(database, schema).map(|s| s.id).into_iter().collect();
    }
    let first = inside.unwrap_or_else(|| default_schema(cx, database));
    if first == DBO_SCHEMA { vec![first] } else { vec![first, DBO_SCHEMA] }
}

/// Finds an object and locks its definition for the statement.
pub(crate) fn resolve(
    cx: &mut Cx<'_>,
    name: &Name,
    default_database: DatabaseId,
    inside: Option<SchemaId>,
    mode: LockMode,
    hold: Hold,
) -> Result<Option<Arc<Object>>> {
    if name.base().starts_with('#') {
        let txn = cx.st.txn();
        let found = txn.resolve(TEMPDB, DBO_SCHEMA, name.base(), mode, hold);
        return found.map_err(|e| storage::error(cx, e));
    }
    let Some(database) = database(cx, name.database(), default_database)? else { return Ok(None) };
    for schema in schemas_of(cx, name, database, inside) {
        let txn = cx.st.txn();
        let found = txn.resolve(database, schema, name.base(), mode, hold).map_err(|e| storage::error(cx, e))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Finds an object without a lock, for functions and catalog procedures.
pub(crate) fn find(cx: &mut Cx<'_>, name: &Name) -> Option<Arc<Object>> {
    let txn = cx.st.txn();
    if name.base().starts_with('#') {
        return txn.find_object(TEMPDB, DBO_SCHEMA, name.base());
    }
    let default = cx.st.database;
    let database = database(cx, name.database(), default).ok()??;
    let schemas = schemas_of(cx, name, database, None);
    schemas.into_iter().find_map(|schema| txn.find_object(database, schema, name.base()))
}

/// A table, view or synonym of a query.
pub(crate) fn table_or_view(binder: &mut Binder<'_, '_>, name: &Name) -> Result<Arc<Object>> {
    let (database, schema) = (binder.database, binder.schema);
    let found = resolve(binder.cx, name, database, schema, LockMode::SchemaStability, Hold::Statement)?;
    match found {
        Some(object) if matches!(object.body, ObjectBody::Table(_) | ObjectBody::View(_) | ObjectBody::Synonym(_)) => {
            Ok(object)
        }
        _ => {
            if let Some(database) = name.database() {
                let txn = binder.cx.st.txn();
                if !database.is_empty() && txn.find_database(database).is_none() {
                    return Err(error::unknown_object(&name.display()));
                }
            }
            Err(error::unknown_object(&name.display()))
        }
    }
}
