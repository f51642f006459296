//! Logins, users, roles: who acts, and which roles that gives.

use std::sync::Arc;

use super::state::{Cx, function_context, now_micros};
use crate::sqlserver::store::catalog::{
    DBO_SCHEMA, Database, DatabaseId, MASTER, Membership, Principal, PrincipalId, PrincipalKind, Schema, Scope, TEMPDB,
};
use crate::sqlserver::store::{StoreError, Transaction};
use crate::sqlserver::value::{Argument, Collation, SqlType, Value, resolve_function};

/// User `dbo`.
pub(crate) const DBO: PrincipalId = PrincipalId(1);
const GUEST: PrincipalId = PrincipalId(2);
/// Role `public` of a database.
pub(crate) const PUBLIC: PrincipalId = PrincipalId(0);
/// Server role `sysadmin`.
pub(crate) const SYSADMIN: PrincipalId = PrincipalId(3);
/// Database role `db_owner`.
pub(crate) const DB_OWNER: PrincipalId = PrincipalId(16_384);

const DATABASE_ROLES: &[(i32, &str)] = &[
    (0, "public"),
    (16_384, "db_owner"),
    (16_385, "db_accessadmin"),
    (16_386, "db_securityadmin"),
    (16_387, "db_ddladmin"),
    (16_389, "db_backupoperator"),
    (16_390, "db_datareader"),
    (16_391, "db_datawriter"),
    (16_392, "db_denydatareader"),
    (16_393, "db_denydatawriter"),
];

const SERVER_ROLES: &[(i32, &str)] = &[
    (2, "public"),
    (3, "sysadmin"),
    (4, "securityadmin"),
    (5, "serveradmin"),
    (6, "setupadmin"),
    (7, "processadmin"),
    (8, "diskadmin"),
    (9, "dbcreator"),
    (10, "bulkadmin"),
];

/// A principal with the common fields filled in.
pub(crate) fn record(scope: Scope, id: i32, name: &str, kind: PrincipalKind, fixed: bool) -> Principal {
    let now = now_micros();
    Principal {
        scope,
        id: PrincipalId(id),
        name: name.to_owned(),
        kind,
        sid: sid_of(id),
        owner: (kind == PrincipalKind::Role).then_some(DBO),
        default_schema: (kind == PrincipalKind::Sql).then(|| "dbo".to_owned()),
        default_database: None,
        password_hash: None,
        disabled: false,
        fixed_role: fixed,
        create_date: now,
        modify_date: now,
    }
}

fn sid_of(id: i32) -> Vec<u8> {
    if id == 1 { vec![1] } else { id.to_le_bytes().to_vec() }
}

/// A fresh security identifier of a login.
pub(crate) fn new_sid() -> Vec<u8> {
    let mut sid = vec![0; 16];
    // Without entropy the clock keeps identifiers apart.
    if getrandom::fill(&mut sid).is_err() {
        sid[..8].copy_from_slice(&now_micros().to_le_bytes());
    }
    sid
}

/// Principals of a database.
pub(crate) fn database_principals(txn: &Transaction, database: DatabaseId) -> Result<(), StoreError> {
    let scope = Scope::Database(database);
    for (id, name) in DATABASE_ROLES {
        txn.put(record(scope, *id, name, PrincipalKind::Role, *id >= 16_384))?;
    }
    txn.put(record(scope, DBO.0, "dbo", PrincipalKind::Sql, false))?;
    let mut guest = record(scope, GUEST.0, "guest", PrincipalKind::Sql, false);
    guest.default_schema = Some("guest".into());
    // CONNECT is granted to guest in system databases only.
    guest.disabled = database.0 > 4;
    txn.put(guest)?;
    for (id, name) in [(3, "INFORMATION_SCHEMA"), (4, "sys")] {
        let mut principal = record(scope, id, name, PrincipalKind::Sql, false);
        principal.default_schema = None;
        txn.put(principal)?;
    }
    txn.put(Membership { scope, role: DB_OWNER, member: DBO })
}

/// Roles of the server and the login `sa`, which nobody can use.
pub(crate) fn server_principals(txn: &Transaction) -> Result<(), StoreError> {
    for (id, name) in SERVER_ROLES {
        txn.put(record(Scope::Server, *id, name, PrincipalKind::Role, *id > 2))?;
    }
    let mut sa = record(Scope::Server, 1, "sa", PrincipalKind::Sql, false);
    sa.default_database = Some("master".into());
    sa.disabled = true;
    txn.put(sa)?;
    txn.put(Membership { scope: Scope::Server, role: SYSADMIN, member: PrincipalId(1) })
}

/// A database with its schema `dbo` and principals.
pub(crate) fn new_database(txn: &Transaction, id: DatabaseId, name: &str) -> Result<(), StoreError> {
    let collation = Collation::DEFAULT.name();
    txn.put(Database { id, name: name.to_owned(), collation, create_date: now_micros() })?;
    txn.put(Schema { database: id, id: DBO_SCHEMA, name: "dbo".into(), owner: DBO })?;
    database_principals(txn, id)
}

/// Salt and SHA2_256 of salt and password.
pub(crate) fn hash_password(password: &str, salt: &[u8]) -> Vec<u8> {
    let text = Value::text(password);
    let Value::String(units) = &text else { return Vec::new() };
    let mut input = salt.to_vec();
    input.extend_from_slice(units.as_utf16le());
    let arguments = [
        Argument::Typed { ty: SqlType::varchar(20), nullable: false },
        Argument::Typed { ty: SqlType::VARBINARY_MAX, nullable: false },
    ];
    let hashed = resolve_function("HASHBYTES", &arguments)
        .and_then(|f| f.call(&[Value::text("SHA2_256"), Value::binary(&input)], &function_context()));
    match hashed {
        Ok(Value::Binary(bytes)) => {
            let mut out = salt.to_vec();
            out.extend_from_slice(&bytes);
            out
        }
        _ => Vec::new(),
    }
}

/// Whether a password fits a stored hash.
pub(crate) fn password_fits(password: &str, stored: &[u8]) -> bool {
    stored.len() > 16 && hash_password(password, &stored[..16]) == stored
}

/// A fresh salt.
pub(crate) fn salt() -> Vec<u8> {
    new_sid()
}

/// A login by name.
pub(crate) fn find_login(cx: &mut Cx<'_>, name: &str) -> Option<Arc<Principal>> {
    let txn = cx.st.txn();
    find(&txn, Scope::Server, name)
}

/// A user or role of a database by name.
pub(crate) fn find_user(cx: &mut Cx<'_>, database: DatabaseId, name: &str) -> Option<Arc<Principal>> {
    let txn = cx.st.txn();
    find(&txn, Scope::Database(database), name)
}

pub(crate) fn find(txn: &Transaction, scope: Scope, name: &str) -> Option<Arc<Principal>> {
    txn.principals(scope).into_iter().find(|p| p.name.eq_ignore_ascii_case(name))
}

/// Whether the login is a member of a server role, directly or through others.
pub(crate) fn in_server_role(cx: &mut Cx<'_>, role: PrincipalId) -> bool {
    if cx.st.identity.user.is_some() {
        return false;
    }
    let login = cx.st.identity.login_id;
    let txn = cx.st.txn();
    roles_of(&txn, Scope::Server, login).contains(&role)
}

/// A principal with all roles that it is in.
pub(crate) fn roles_of(txn: &Transaction, scope: Scope, principal: PrincipalId) -> Vec<PrincipalId> {
    let memberships = txn.memberships(scope);
    let mut found = vec![principal];
    let mut at = 0;
    while at < found.len() {
        let member = found[at];
        for m in memberships.iter().filter(|m| m.member == member) {
            if !found.contains(&m.role) {
                found.push(m.role);
            }
        }
        at += 1;
    }
    found
}

/// The user that acts in a database; none has no access.
pub(crate) fn user_in(cx: &mut Cx<'_>, database: DatabaseId) -> Option<(PrincipalId, String)> {
    if let Some((own, id, name)) = cx.st.identity.user.clone() {
        return (own == database).then_some((id, name));
    }
    if in_server_role(cx, SYSADMIN) {
        return Some((DBO, "dbo".into()));
    }
    let login = cx.st.identity.login_id;
    let txn = cx.st.txn();
    let sid = txn.principals(Scope::Server).into_iter().find(|p| p.id == login)?.sid.clone();
    let users = txn.principals(Scope::Database(database));
    if let Some(user) = users.iter().find(|u| u.kind == PrincipalKind::Sql && u.sid == sid) {
        return Some((user.id, user.name.clone()));
    }
    users.iter().find(|u| u.id == GUEST && !u.disabled).map(|u| (u.id, u.name.clone()))
}

/// Name of the default schema of the acting user.
pub(crate) fn default_schema(cx: &mut Cx<'_>, database: DatabaseId) -> Option<String> {
    if database == MASTER || database == TEMPDB {
        return Some("dbo".into());
    }
    let (id, _) = user_in(cx, database)?;
    let txn = cx.st.txn();
    let users = txn.principals(Scope::Database(database));
    users.into_iter().find(|u| u.id == id)?.default_schema.clone()
}
