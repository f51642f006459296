//! `GRANT`, `DENY`, `REVOKE`.

use super::super::error::{self, Result};
use super::super::lookup;
use super::super::permission::{self, Target};
use super::super::principal;
use super::super::state::Cx;
use super::super::stmt::{Permission, PermissionVerb, Securable};
use super::super::storage;
use super::security::no_principal;
use super::{Flow, done_plain, transaction};
use crate::sqlserver::store::catalog::{
    CatalogKey, Object, Permission as Record, PermissionKey, PermissionState, PrincipalId, Scope,
};

/// Class and id of a securable.
struct Place {
    scope: Scope,
    class: u8,
    major: i32,
    object: Option<std::sync::Arc<Object>>,
}

const SERVER_PERMISSIONS: &[&str] = &[
    "VIEW SERVER STATE",
    "CONTROL SERVER",
    "ALTER ANY LOGIN",
    "ALTER ANY CONNECTION",
    "VIEW ANY DATABASE",
    "VIEW ANY DEFINITION",
    "CREATE ANY DATABASE",
    "ALTER ANY DATABASE",
    "ADMINISTER BULK OPERATIONS",
    "CONNECT SQL",
    "ALTER SERVER STATE",
    "ALTER SETTINGS",
    "IMPERSONATE ANY LOGIN",
    "VIEW SERVER PERFORMANCE STATE",
    "VIEW SERVER SECURITY STATE",
];

const OBJECT_PERMISSIONS: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "REFERENCES",
    "EXECUTE",
    "ALTER",
    "CONTROL",
    "VIEW DEFINITION",
    "TAKE OWNERSHIP",
    "VIEW CHANGE TRACKING",
    "RECEIVE",
    "UNMASK",
];

const DATABASE_PERMISSIONS: &[&str] = &[
    "CREATE TABLE",
    "CREATE VIEW",
    "CREATE PROCEDURE",
    "CREATE FUNCTION",
    "CREATE SCHEMA",
    "CREATE ROLE",
    "CREATE TYPE",
    "CREATE SYNONYM",
    "CREATE SEQUENCE",
    "CREATE DEFAULT",
    "CREATE RULE",
    "CONNECT",
    "VIEW DATABASE STATE",
    "ALTER ANY SCHEMA",
    "ALTER ANY USER",
    "ALTER ANY ROLE",
    "BACKUP DATABASE",
    "BACKUP LOG",
    "SHOWPLAN",
    "VIEW DATABASE PERFORMANCE STATE",
    "VIEW DATABASE SECURITY STATE",
    "ALTER ANY DATABASE DDL TRIGGER",
    "AUTHENTICATE",
    "CHECKPOINT",
];

fn place_of(cx: &mut Cx<'_>, on: Option<&Securable>, permission: &str) -> Result<Place> {
    let database = cx.st.database;
    let scope = Scope::Database(database);
    let unknown = |name: &str| {
        error::plain(
            15151,
            &format!("Cannot find the object '{name}', because it does not exist or you do not have permission."),
        )
    };
    Ok(match on {
        None if SERVER_PERMISSIONS.contains(&permission) => {
            Place { scope: Scope::Server, class: 100, major: 0, object: None }
        }
        None => Place { scope, class: 0, major: 0, object: None },
        Some(Securable::DatabaseNamed(name)) => {
            let txn = cx.st.txn();
            let found = txn.find_database(name).ok_or_else(|| unknown(name))?;
            Place { scope: Scope::Database(found.id), class: 0, major: 0, object: None }
        }
        Some(Securable::Schema(name)) => {
            let txn = cx.st.txn();
            let found = txn.find_schema(database, name).ok_or_else(|| {
                error::plain(
                    15151,
                    &format!(
                        "Cannot find the schema '{name}', because it does not exist or you do not have permission."
                    ),
                )
            })?;
            Place { scope, class: 3, major: found.id.0, object: None }
        }
        Some(Securable::Object(name)) => {
            let found = lookup::find(cx, name).ok_or_else(|| unknown(name.base()))?;
            Place { scope: Scope::Database(found.database), class: 1, major: found.id.0, object: Some(found) }
        }
        Some(Securable::Principal(name)) => {
            let found = principal::find_user(cx, database, name).ok_or_else(|| no_principal("user", name))?;
            Place { scope, class: 4, major: found.id.0, object: None }
        }
        Some(Securable::Login(name)) => {
            let found = principal::find_login(cx, name).ok_or_else(|| no_principal("login", name))?;
            Place { scope: Scope::Server, class: 101, major: found.id.0, object: None }
        }
        Some(Securable::Type(_)) => return Err(error::unsupported("permission on a type")),
    })
}

fn check_may_grant(cx: &mut Cx<'_>, place: &Place) -> Result<()> {
    let denied =
        || error::new(15151, 16, 1, "Cannot find the object, because it does not exist or you do not have permission.");
    let allowed = match (place.scope, place.class, &place.object) {
        (Scope::Server, ..) => permission::is_sysadmin(cx),
        (Scope::Database(_), 1, Some(object)) => permission::has_object(cx, object, "CONTROL"),
        (Scope::Database(database), 3, _) => {
            let schema = crate::sqlserver::store::catalog::SchemaId(place.major);
            permission::has(cx, Target::Schema(database, schema), "CONTROL")
        }
        (Scope::Database(database), ..) => permission::has(cx, Target::Database(database), "CONTROL"),
    };
    if allowed { Ok(()) } else { Err(denied()) }
}

/// `ALL` and lists of names as single permissions.
fn expand(name: &str, place: &Place) -> Result<Vec<String>> {
    if name == "ALL" {
        let names: &[&str] = match &place.object {
            Some(object) if matches!(object.body.type_code(), "P") => &["EXECUTE"],
            Some(_) => &["SELECT", "INSERT", "UPDATE", "DELETE", "REFERENCES"],
            None => {
                &["CREATE TABLE", "CREATE VIEW", "CREATE PROCEDURE", "CREATE FUNCTION", "BACKUP DATABASE", "BACKUP LOG"]
            }
        };
        return Ok(names.iter().map(|n| (*n).to_owned()).collect());
    }
    let known = SERVER_PERMISSIONS.contains(&name)
        || OBJECT_PERMISSIONS.contains(&name)
        || DATABASE_PERMISSIONS.contains(&name)
        || name == "IMPERSONATE";
    if !known {
        let first = name.split(' ').next().unwrap_or(name);
        return Err(error::syntax(first, 0));
    }
    if place.class == 1 && DATABASE_PERMISSIONS.contains(&name) {
        return Err(error::plain(
            4629,
            "Permissions on server scoped catalog views or stored procedures or extended stored procedures can be granted only when the current database is master",
        ));
    }
    Ok(vec![name.to_owned()])
}

pub(super) fn permission(cx: &mut Cx<'_>, statement: &Permission) -> Result<Flow> {
    transaction::check_writable(cx)?;
    transaction::implicit(cx);
    for (name, columns) in &statement.permissions {
        if !columns.is_empty() {
            return Err(error::unsupported("column permissions"));
        }
        let place = place_of(cx, statement.on.as_ref(), name)?;
        check_may_grant(cx, &place)?;
        for single in expand(name, &place)? {
            for grantee in &statement.principals {
                let txn = cx.st.txn();
                let Some(who) = principal::find(&txn, place.scope, grantee) else {
                    return Err(no_principal(if place.scope == Scope::Server { "login" } else { "user" }, grantee));
                };
                if who.id == principal::DBO && place.scope != Scope::Server {
                    return Err(error::plain(
                        15151,
                        "Cannot grant, deny, or revoke permissions to sa, dbo, entity owner, information_schema, sys, or yourself.",
                    ));
                }
                apply(cx, statement, &place, &single, who.id)?;
            }
        }
    }
    done_plain(cx)
}

fn apply(cx: &mut Cx<'_>, statement: &Permission, place: &Place, name: &str, grantee: PrincipalId) -> Result<()> {
    let key = PermissionKey {
        scope: place.scope,
        class: place.class,
        major_id: place.major,
        minor_id: 0,
        grantee,
        permission: name.to_owned(),
    };
    let txn = cx.st.txn();
    let state = match statement.verb {
        PermissionVerb::Revoke => {
            let record = CatalogKey::Permission(key);
            if txn.record(&record).is_some() {
                txn.remove(&record).map_err(|e| storage::error(cx, e))?;
            }
            return Ok(());
        }
        PermissionVerb::Deny => PermissionState::Deny,
        PermissionVerb::Grant if statement.with_grant => PermissionState::GrantWithOption,
        PermissionVerb::Grant => PermissionState::Grant,
    };
    txn.put(Record { key, grantor: principal::DBO, state }).map_err(|e| storage::error(cx, e))
}
