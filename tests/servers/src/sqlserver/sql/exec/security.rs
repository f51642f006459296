//! Logins, users, roles, GRANT, EXECUTE AS.

use super::super::ast::Expr;
use super::super::error::{self, Result};
use super::super::permission::{self, Target};
use super::super::principal::{self, hash_password, new_sid, record, salt};
use super::super::state::{Cx, Identity, now_micros};
use super::super::stmt::{ObjectKind, Principal};
use super::super::storage;
use super::{Flow, done_plain, transaction};
use crate::sqlserver::store::catalog::{
    CatalogKey, DatabaseId, Membership, Principal as Row, PrincipalId, PrincipalKind, Scope,
};
use crate::sqlserver::value::Value;

fn put_principal(cx: &mut Cx<'_>, row: Row) -> Result<()> {
    let txn = cx.st.txn();
    txn.put(row).map_err(|e| storage::error(cx, e))
}

fn next_id(cx: &mut Cx<'_>, scope: Scope, first: i32) -> i32 {
    let txn = cx.st.txn();
    txn.principals(scope).iter().map(|p| p.id.0).filter(|id| *id < 16_384).max().unwrap_or(0).max(first - 1) + 1
}

pub(super) fn principal(cx: &mut Cx<'_>, statement: &Principal) -> Result<Flow> {
    transaction::check_writable(cx)?;
    transaction::implicit(cx);
    match statement {
        Principal::CreateLogin { name, password, default_database } => {
            create_login(cx, name, password.as_deref(), default_database.clone())?;
        }
        Principal::AlterLogin { name, password, enable, default_database } => {
            alter_login(cx, name, password.as_deref(), *enable, default_database.clone())?;
        }
        Principal::CreateUser { name, login, without_login, default_schema } => {
            create_user(cx, name, login.as_deref(), *without_login, default_schema.clone())?;
        }
        Principal::AlterUser { name, default_schema, new_name, login } => {
            alter_user(cx, name, default_schema.clone(), new_name.clone(), login.as_deref())?;
        }
        Principal::CreateRole { name, owner, server } => create_role(cx, name, owner.as_deref(), *server)?,
        Principal::AlterRole { name, member, add, server } => alter_role(cx, name, member, *add, *server)?,
    }
    done_plain(cx)
}

fn create_login(cx: &mut Cx<'_>, name: &str, password: Option<&str>, database: Option<String>) -> Result<()> {
    permission::check_server(cx, "ALTER ANY LOGIN")?;
    if principal::find_login(cx, name).is_some() {
        return Err(error::plain(15025, &format!("The server principal '{name}' already exists.")));
    }
    let Some(password) = password else { return Err(error::syntax("LOGIN", 0)) };
    let id = next_id(cx, Scope::Server, 257);
    let mut row = record(Scope::Server, id, name, PrincipalKind::Sql, false);
    row.sid = new_sid();
    row.default_database = database.or_else(|| Some("master".into()));
    row.password_hash = Some(hash_password(password, &salt()));
    put_principal(cx, row)
}

fn alter_login(
    cx: &mut Cx<'_>,
    name: &str,
    password: Option<&str>,
    enable: Option<bool>,
    database: Option<String>,
) -> Result<()> {
    let own = cx.st.identity.login.eq_ignore_ascii_case(name) && password.is_some();
    if !own {
        permission::check_server(cx, "ALTER ANY LOGIN")?;
    }
    let Some(found) = principal::find_login(cx, name) else { return Err(no_principal("login", name)) };
    let mut row = (*found).clone();
    if let Some(password) = password {
        row.password_hash = Some(hash_password(password, &salt()));
    }
    if let Some(enable) = enable {
        row.disabled = !enable;
    }
    if database.is_some() {
        row.default_database = database;
    }
    row.modify_date = now_micros();
    put_principal(cx, row)
}

pub(super) fn no_principal(kind: &str, name: &str) -> super::super::api::SqlError {
    error::plain(
        15151,
        &format!("Cannot find the {kind} '{name}', because it does not exist or you do not have permission."),
    )
}

fn create_user(
    cx: &mut Cx<'_>,
    name: &str,
    login: Option<&str>,
    without_login: bool,
    default_schema: Option<String>,
) -> Result<()> {
    let database = cx.st.database;
    check_database_action(cx, "ALTER ANY USER")?;
    if principal::find_user(cx, database, name).is_some() {
        return Err(error::plain(
            15023,
            &format!("User, group, or role '{name}' already exists in the current database."),
        ));
    }
    let sid = if without_login {
        new_sid()
    } else {
        let login = login.unwrap_or(name);
        let Some(found) = principal::find_login(cx, login) else {
            return Err(error::plain(15007, &format!("'{login}' is not a valid login or you do not have permission.")));
        };
        let txn = cx.st.txn();
        if txn.principals(Scope::Database(database)).iter().any(|p| p.sid == found.sid) {
            return Err(error::plain(15063, "The login already has an account under a different user name."));
        }
        found.sid.clone()
    };
    let id = next_id(cx, Scope::Database(database), 5);
    let mut row = record(Scope::Database(database), id, name, PrincipalKind::Sql, false);
    row.sid = sid;
    row.default_schema = default_schema.or_else(|| Some("dbo".into()));
    put_principal(cx, row)
}

fn check_database_action(cx: &mut Cx<'_>, action: &str) -> Result<()> {
    let database = cx.st.database;
    if permission::has(cx, Target::Database(database), action) {
        return Ok(());
    }
    Err(error::new(15247, 16, 1, "User does not have permission to perform this action."))
}

fn alter_user(
    cx: &mut Cx<'_>,
    name: &str,
    default_schema: Option<String>,
    new_name: Option<String>,
    login: Option<&str>,
) -> Result<()> {
    let database = cx.st.database;
    check_database_action(cx, "ALTER ANY USER")?;
    let Some(found) = principal::find_user(cx, database, name) else { return Err(no_principal("user", name)) };
    let mut row = (*found).clone();
    if default_schema.is_some() {
        row.default_schema = default_schema;
    }
    if let Some(new_name) = new_name {
        row.name = new_name;
    }
    if let Some(login) = login {
        let Some(found) = principal::find_login(cx, login) else { return Err(no_principal("login", login)) };
        row.sid.clone_from(&found.sid);
    }
    row.modify_date = now_micros();
    put_principal(cx, row)
}

fn create_role(cx: &mut Cx<'_>, name: &str, owner: Option<&str>, server: bool) -> Result<()> {
    if server {
        permission::check_server(cx, "ALTER ANY LOGIN")?;
        let id = next_id(cx, Scope::Server, 257);
        return put_principal(cx, record(Scope::Server, id, name, PrincipalKind::Role, false));
    }
    let database = cx.st.database;
    check_database_action(cx, "ALTER ANY ROLE")?;
    if principal::find_user(cx, database, name).is_some() {
        return Err(error::plain(
            15023,
            &format!("User, group, or role '{name}' already exists in the current database."),
        ));
    }
    let id = next_id(cx, Scope::Database(database), 5);
    let mut row = record(Scope::Database(database), id, name, PrincipalKind::Role, false);
    row.sid = new_sid();
    if let Some(owner) = owner {
        let Some(found) = principal::find_user(cx, database, owner) else { return Err(no_principal("user", owner)) };
        row.owner = Some(found.id);
    }
    put_principal(cx, row)
}

/// ALTER ROLE ... ADD or DROP MEMBER.
pub(crate) fn alter_role(cx: &mut Cx<'_>, role: &str, member: &str, add: bool, server: bool) -> Result<()> {
    let scope = if server {
        permission::check_server(cx, "ALTER ANY LOGIN")?;
        Scope::Server
    } else {
        check_database_action(cx, "ALTER ANY ROLE")?;
        Scope::Database(cx.st.database)
    };
    let txn = cx.st.txn();
    let Some(found) = principal::find(&txn, scope, role).filter(|p| p.kind == PrincipalKind::Role) else {
        return Err(no_principal("role", role));
    };
    let Some(who) = principal::find(&txn, scope, member) else {
        return Err(no_principal(if server { "login" } else { "user" }, member));
    };
    let membership = Membership { scope, role: found.id, member: who.id };
    if add {
        if principal::roles_of(&txn, scope, found.id).contains(&who.id) {
            return Err(error::plain(15413, "Cannot make a role a member of itself."));
        }
        return txn.put(membership).map_err(|e| storage::error(cx, e));
    }
    if !txn.memberships(scope).contains(&membership) {
        return Ok(());
    }
    txn.remove(&CatalogKey::Membership(membership)).map_err(|e| storage::error(cx, e))
}

/// DROP LOGIN, USER, ROLE.
pub(super) fn drop_principal(cx: &mut Cx<'_>, kind: ObjectKind, if_exists: bool, name: &str) -> Result<()> {
    let (scope, word) = match kind {
        ObjectKind::Login => (Scope::Server, "login"),
        ObjectKind::ServerRole => (Scope::Server, "server role"),
        ObjectKind::User => (Scope::Database(cx.st.database), "user"),
        _ => (Scope::Database(cx.st.database), "role"),
    };
    match scope {
        Scope::Server => permission::check_server(cx, "ALTER ANY LOGIN")?,
        Scope::Database(_) => {
            check_database_action(cx, if kind == ObjectKind::User { "ALTER ANY USER" } else { "ALTER ANY ROLE" })?;
        }
    }
    let txn = cx.st.txn();
    let wanted =
        if matches!(kind, ObjectKind::Login | ObjectKind::User) { PrincipalKind::Sql } else { PrincipalKind::Role };
    let Some(found) = principal::find(&txn, scope, name).filter(|p| p.kind == wanted) else {
        return if if_exists {
            Ok(())
        } else {
            Err(error::plain(
                15151,
                &format!("Cannot drop the {word} '{name}', because it does not exist or you do not have permission."),
            ))
        };
    };
    if found.fixed_role || matches!(scope, Scope::Database(_)) && found.id.0 <= 4 {
        return Err(error::plain(15150, &format!("Cannot drop the {word} '{name}'.")));
    }
    if kind == ObjectKind::Login && cx.st.engine.sessions().iter().any(|s| s.login_name.eq_ignore_ascii_case(name)) {
        return Err(error::plain(15434, &format!("Could not drop login '{name}' as the user is currently logged in.")));
    }
    let memberships = txn.memberships(scope);
    if kind == ObjectKind::Role && memberships.iter().any(|m| m.role == found.id) {
        return Err(error::plain(15144, "The role has members. It must be empty before it can be dropped."));
    }
    if let Scope::Database(database) = scope
        && txn.schemas(database).iter().any(|s| s.owner == found.id)
    {
        return Err(error::plain(
            15138,
            "The database principal owns a schema in the database, and cannot be dropped.",
        ));
    }
    let mut keys: Vec<CatalogKey> = memberships
        .into_iter()
        .filter(|m| m.member == found.id || m.role == found.id)
        .map(CatalogKey::Membership)
        .collect();
    for row in txn.permissions(scope) {
        if row.key.grantee == found.id {
            keys.push(CatalogKey::Permission(row.key.clone()));
        }
    }
    keys.push(CatalogKey::Principal(scope, found.id));
    for key in keys {
        txn.remove(&key).map_err(|e| storage::error(cx, e))?;
    }
    Ok(())
}

/// EXECUTE AS USER and LOGIN.
pub(super) fn execute_as(cx: &mut Cx<'_>, who: &Expr, login: bool) -> Result<Flow> {
    let (value, _) = super::control::evaluate(cx, who)?;
    let Value::String(name) = value else { return Ok(Flow::Next) };
    let name = name.to_string();
    let denied = || {
        error::plain(
            15406,
            &format!(
                "Cannot execute as the {} principal because the principal \"{name}\" does not exist, this type of principal cannot be impersonated, or you do not have permission.",
                if login { "server" } else { "database" }
            ),
        )
    };
    let next = if login {
        let found = principal::find_login(cx, &name).ok_or_else(denied)?;
        if !permission::is_sysadmin(cx) {
            return Err(denied());
        }
        Identity { login: found.name.clone(), login_id: found.id, user: None }
    } else {
        let database: DatabaseId = cx.st.database;
        let found =
            principal::find_user(cx, database, &name).filter(|p| p.kind == PrincipalKind::Sql).ok_or_else(denied)?;
        if !permission::has(cx, Target::Database(database), "CONTROL") {
            return Err(denied());
        }
        let txn = cx.st.txn();
        let login = txn.principals(Scope::Server).into_iter().find(|p| p.sid == found.sid);
        let login_name = login.as_ref().map_or_else(|| found.name.clone(), |l| l.name.clone());
        let login_id = login.map_or(PrincipalId(-1), |l| l.id);
        Identity { login: login_name, login_id, user: Some((database, found.id, found.name.clone())) }
    };
    let before = std::mem::replace(&mut cx.st.identity, next);
    cx.st.impersonation.push(before);
    done_plain(cx)
}

pub(super) fn revert(cx: &mut Cx<'_>) -> Result<Flow> {
    if let Some(before) = cx.st.impersonation.pop() {
        cx.st.identity = before;
    }
    done_plain(cx)
}
