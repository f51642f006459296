//! DROP of objects.

use super::super::super::ast::Name;
use super::super::super::error::{self, Result};
use super::super::super::state::Cx;
use super::super::super::stmt::ObjectKind;
use super::super::super::{permission, storage, types};
use super::super::security;
use super::find_locked;
use crate::sqlserver::store::catalog::{CatalogKey, ObjectBody, ObjectId, Scope};

fn word(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Table => "table",
        ObjectKind::View => "view",
        ObjectKind::Procedure => "procedure",
        ObjectKind::Function => "function",
        ObjectKind::Trigger => "trigger",
        ObjectKind::Schema => "schema",
        ObjectKind::Sequence => "sequence object",
        ObjectKind::Synonym => "synonym",
        ObjectKind::Type => "type",
        ObjectKind::Login => "login",
        ObjectKind::User => "user",
        ObjectKind::Role => "role",
        ObjectKind::ServerRole => "server role",
    }
}

fn is_kind(body: &ObjectBody, kind: ObjectKind) -> bool {
    matches!(
        (body, kind),
        (ObjectBody::Table(_), ObjectKind::Table)
            | (ObjectBody::View(_), ObjectKind::View)
            | (ObjectBody::Procedure(_), ObjectKind::Procedure)
            | (
                ObjectBody::ScalarFunction(_) | ObjectBody::InlineFunction(_) | ObjectBody::TableFunction(_),
                ObjectKind::Function
            )
            | (ObjectBody::Trigger(_), ObjectKind::Trigger)
            | (ObjectBody::Sequence(_), ObjectKind::Sequence)
            | (ObjectBody::Synonym(_), ObjectKind::Synonym)
    )
}

pub(super) fn drop(cx: &mut Cx<'_>, kind: ObjectKind, if_exists: bool, names: &[Name]) -> Result<()> {
    for name in names {
        match kind {
            ObjectKind::Schema => drop_schema(cx, if_exists, name)?,
            ObjectKind::Type => drop_type(cx, if_exists, name)?,
            ObjectKind::Login | ObjectKind::User | ObjectKind::Role | ObjectKind::ServerRole => {
                security::drop_principal(cx, kind, if_exists, name.base())?;
            }
            _ => drop_object(cx, kind, if_exists, name)?,
        }
    }
    Ok(())
}

fn missing(kind: ObjectKind, name: &Name) -> super::super::super::api::SqlError {
    error::new(
        3701,
        11,
        5,
        &format!(
            "Cannot drop the {} '{}', because it does not exist or you do not have permission.",
            word(kind),
            name.display()
        ),
    )
}

fn drop_object(cx: &mut Cx<'_>, kind: ObjectKind, if_exists: bool, name: &Name) -> Result<()> {
    let Some(object) = find_locked(cx, name)? else {
        return if if_exists { Ok(()) } else { Err(missing(kind, name)) };
    };
    if !is_kind(&object.body, kind) {
        if if_exists && !matches!(object.body, ObjectBody::Table(_) | ObjectBody::View(_)) {
            return Ok(());
        }
        return Err(error::new(
            3705,
            16,
            1,
            &format!(
                "Cannot use DROP {} with '{}' because '{}' is a {}. Use DROP {}.",
                word(kind).to_uppercase(),
                name.display(),
                name.display(),
                type_word(&object.body),
                type_word(&object.body).to_uppercase()
            ),
        ));
    }
    if object.session.is_none() && permission::check_alter(cx, &object).is_err() {
        return Err(missing(kind, name));
    }
    let txn = cx.st.txn();
    if kind == ObjectKind::Table {
        let referenced = txn.objects(object.database).into_iter().any(|o| {
            o.id != object.id
                && o.table().is_some_and(|t| t.foreign_keys.iter().any(|k| k.referenced_table == object.id))
        });
        if referenced {
            return Err(error::plain(
                3726,
                &format!(
                    "Could not drop object '{}' because it is referenced by a FOREIGN KEY constraint.",
                    name.display()
                ),
            ));
        }
    }
    remove_with_dependents(cx, object.id, object.database)
}

fn type_word(body: &ObjectBody) -> &'static str {
    match body {
        ObjectBody::Table(_) => "table",
        ObjectBody::View(_) => "view",
        ObjectBody::Procedure(_) => "procedure",
        ObjectBody::Trigger(_) => "trigger",
        ObjectBody::Sequence(_) => "sequence object",
        ObjectBody::Synonym(_) => "synonym",
        _ => "function",
    }
}

/// Removes an object with its triggers, permissions and extended properties.
fn remove_with_dependents(
    cx: &mut Cx<'_>,
    id: ObjectId,
    database: crate::sqlserver::store::catalog::DatabaseId,
) -> Result<()> {
    let txn = cx.st.txn();
    let mut keys: Vec<CatalogKey> = Vec::new();
    let temporary = txn.object(id).is_some_and(|o| o.session.is_some());
    if !temporary {
        for object in txn.objects(database) {
            if object.parent() == Some(id) {
                keys.push(CatalogKey::Object(object.id));
            }
        }
        for permission in txn.permissions(Scope::Database(database)) {
            if permission.key.class == 1 && permission.key.major_id == id.0 {
                keys.push(CatalogKey::Permission(permission.key.clone()));
            }
        }
        for property in txn.extended_properties(database) {
            if property.key.class == 1 && property.key.major_id == id.0 {
                keys.push(CatalogKey::Property(property.key.clone()));
            }
        }
    }
    keys.push(CatalogKey::Object(id));
    for key in keys {
        txn.remove(&key).map_err(|e| storage::error(cx, e))?;
    }
    Ok(())
}

fn drop_schema(cx: &mut Cx<'_>, if_exists: bool, name: &Name) -> Result<()> {
    let database = cx.st.database;
    let txn = cx.st.txn();
    let Some(schema) = txn.find_schema(database, name.base()) else {
        if if_exists {
            return Ok(());
        }
        return Err(error::new(
            15151,
            16,
            1,
            &format!(
                "Cannot drop the schema '{}', because it does not exist or you do not have permission.",
                name.base()
            ),
        ));
    };
    permission::check_create(cx, database, schema.id, "CREATE SCHEMA")?;
    if let Some(object) = txn.objects(database).into_iter().find(|o| o.schema == schema.id) {
        return Err(error::plain(
            3729,
            &format!(
                "Cannot drop schema '{}' because it is being referenced by object '{}'.",
                name.base(),
                object.name
            ),
        ));
    }
    txn.remove(&CatalogKey::Schema(database, schema.id)).map_err(|e| storage::error(cx, e))
}

fn drop_type(cx: &mut Cx<'_>, if_exists: bool, name: &Name) -> Result<()> {
    let database = cx.st.database;
    let key = types::alias_key(name.schema().unwrap_or("dbo"), name.base());
    let txn = cx.st.txn();
    if txn.setting(Scope::Database(database), &key).is_none() {
        return if if_exists { Ok(()) } else { Err(missing(ObjectKind::Type, name)) };
    }
    txn.remove(&CatalogKey::Setting(Scope::Database(database), key)).map_err(|e| storage::error(cx, e))
}

/// Drops temporary tables and table variables of a frame that ended.
pub(crate) fn drop_temporary(cx: &mut Cx<'_>, tables: &[ObjectId]) {
    if tables.is_empty() {
        return;
    }
    let txn = cx.st.txn();
    let variables = cx.st.variable_txn.clone();
    for id in tables {
        let owner = if txn.object(*id).is_some() { Some(&txn) } else { variables.as_ref() };
        // A table that the transaction already undid is gone.
        if let Some(owner) = owner.filter(|t| t.object(*id).is_some()) {
            let _gone = owner.remove(&CatalogKey::Object(*id));
        }
    }
    if cx.st.trancount == 0
        && cx.st.hold == 0
        && let Some(txn) = cx.st.txn.take()
    {
        // Nothing is logged for tempdb; a failure here leaves a table that the session's end removes.
        let _ended = txn.commit();
    }
}
