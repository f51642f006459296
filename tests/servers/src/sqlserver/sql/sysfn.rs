//! Functions and @@ variables that look at the session, the catalog or permissions.

use super::ast::{Expr, FuncCall, Name};
use super::bind::{Binder, same_name};
use super::error::{self, Result};
use super::plan::{Typed, X};
use super::state::Cx;
use super::{lookup, permission, principal};
use crate::sqlserver::store::CounterKey;
use crate::sqlserver::store::catalog::{DatabaseId, Object, ObjectBody, ObjectId, PrincipalKind, SchemaId, Scope};
use crate::sqlserver::store::lock::{AppLockMode, AppLockName, AppLockOwner};
use crate::sqlserver::value::{SqlType, Value};

/// A function of this kind.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) least: usize,
    pub(crate) most: usize,
    pub(crate) ty: SqlType,
    call: fn(&mut Cx<'_>, &[Value]) -> Result<Value>,
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A reference to a function of this kind.
pub(crate) type SysFn = &'static Definition;

const NAME: SqlType = SqlType::SYSNAME;
const INT: SqlType = SqlType::Int;

macro_rules! functions {
    ($($name:literal, $least:literal..=$most:literal, $ty:expr, $call:expr;)*) => {
        static FUNCTIONS: &[Definition] = &[$(Definition { name: $name, least: $least, most: $most, ty: $ty, call: $call }),*];
    };
}

functions! {
    "error_number", 0..=0, INT, |cx, _| Ok(caught(cx, |e| Value::Int(e.number)));
    "error_message", 0..=0, SqlType::nvarchar(4000), |cx, _| Ok(caught(cx, |e| Value::text(&e.message)));
    "error_severity", 0..=0, INT, |cx, _| Ok(caught(cx, |e| Value::Int(i32::from(e.class))));
    "error_state", 0..=0, INT, |cx, _| Ok(caught(cx, |e| Value::Int(i32::from(e.state))));
    "error_line", 0..=0, INT, |cx, _| Ok(caught(cx, |e| Value::Int(i32::try_from(e.line).unwrap_or(0))));
    "error_procedure", 0..=0, NAME, |cx, _| Ok(caught(cx, |e| if e.procedure.is_empty() { Value::Null } else { Value::text(&e.procedure) }));
    "xact_state", 0..=0, SqlType::SmallInt, |cx, _| Ok(Value::SmallInt(match (cx.st.trancount, cx.st.doomed) { (0, _) => 0, (_, true) => -1, _ => 1 }));
    "scope_identity", 0..=0, SqlType::decimal(38, 0), |cx, _| { let v = cx.st.scope_identity.last().cloned().flatten(); as_decimal(v) };
    "ident_current", 1..=1, SqlType::decimal(38, 0), |cx, a| ident(cx, a, |cx, o| {
        let last = cx.st.engine.store.counter(CounterKey::Identity(o.id));
        let seed = o.table().and_then(|t| t.columns.iter().find_map(|c| c.identity)).map(|i| i.seed);
        seed.map(|seed| last.unwrap_or(seed))
    });
    "ident_seed", 1..=1, SqlType::decimal(38, 0), |cx, a| ident(cx, a, |_, o| o.table().and_then(|t| t.columns.iter().find_map(|c| c.identity)).map(|i| i.seed));
    "ident_incr", 1..=1, SqlType::decimal(38, 0), |cx, a| ident(cx, a, |_, o| o.table().and_then(|t| t.columns.iter().find_map(|c| c.identity)).map(|i| i.increment));
    "rowcount_big", 0..=0, SqlType::BigInt, |cx, _| Ok(Value::BigInt(i64::try_from(cx.st.rowcount).unwrap_or(i64::MAX)));
    "object_id", 1..=2, INT, object_id;
    "object_name", 1..=2, NAME, |cx, a| Ok(by_id(cx, a).map_or(Value::Null, |(name, _)| Value::text(&name)));
    "object_schema_name", 1..=2, NAME, |cx, a| Ok(match by_id(cx, a) { Some((_, object)) => { let s = lookup::schema_name(cx, &object); Value::text(&s) } None => Value::Null });
    "object_definition", 1..=1, SqlType::NVARCHAR_MAX, object_definition;
    "schema_id", 0..=1, INT, |cx, a| { let db = cx.st.database; Ok(match text(a, 0) {
        None if a.is_empty() => Value::Int(lookup::default_schema(cx, db).0),
        None => Value::Null,
        Some(n) if n.eq_ignore_ascii_case("sys") => Value::Int(4),
        Some(n) if n.eq_ignore_ascii_case("information_schema") => Value::Int(3),
        Some(n) => { let txn = cx.st.txn(); txn.find_schema(db, &n).map_or(Value::Null, |s| Value::Int(s.id.0)) }
    }) };
    "schema_name", 0..=1, NAME, |cx, a| { let db = cx.st.database; let id = if a.is_empty() { Some(i64::from(lookup::default_schema(cx, db).0)) } else { int(a, 0) };
        Ok(match id { Some(4) => Value::text("sys"), Some(3) => Value::text("INFORMATION_SCHEMA"), Some(id) => lookup::schema(cx, db, SchemaId(i32::try_from(id).unwrap_or(-1))).map_or(Value::Null, |s| Value::text(&s.name)), None => Value::Null }) };
    "db_id", 0..=1, SqlType::SmallInt, |cx, a| Ok(match (a.is_empty(), text(a, 0)) {
        (true, _) => small(cx.st.database.0),
        (_, Some(n)) => { let txn = cx.st.txn(); txn.find_database(&n).map_or(Value::Null, |d| small(d.id.0)) }
        _ => Value::Null,
    });
    "db_name", 0..=1, NAME, |cx, a| Ok(match (a.is_empty(), int(a, 0)) {
        (true, _) => Value::text(&cx.st.database_name),
        (_, Some(id)) => lookup::database_record(cx, DatabaseId(i32::try_from(id).unwrap_or(-1))).map_or(Value::Null, |d| Value::text(&d.name)),
        _ => Value::Null,
    });
    "original_db_name", 0..=0, NAME, |cx, _| Ok(Value::text(&cx.st.login.database.clone().unwrap_or_default()));
    "col_length", 2..=2, SqlType::SmallInt, |cx, a| Ok(column_of(cx, a).map_or(Value::Null, |c| Value::SmallInt(c.ty.max_length_bytes())));
    "col_name", 2..=2, NAME, |cx, a| Ok(match (by_id(cx, a), int(a, 1)) { (Some((_, o)), Some(id)) => o.table().and_then(|t| t.columns.iter().find(|c| i64::from(c.id) == id)).map_or(Value::Null, |c| Value::text(&c.name)), _ => Value::Null });
    "columnproperty", 3..=3, INT, super::property::column;
    "objectproperty", 2..=2, INT, super::property::object;
    "objectpropertyex", 2..=2, SqlType::SqlVariant, super::property::object_ex;
    "indexproperty", 3..=3, INT, super::property::index;
    "typeproperty", 2..=2, INT, super::property::data_type;
    "serverproperty", 1..=1, SqlType::SqlVariant, super::property::server;
    "databasepropertyex", 2..=2, SqlType::SqlVariant, super::property::database;
    "fileproperty", 2..=2, INT, super::property::file;
    "filegroup_name", 1..=1, NAME, |_, a| Ok(if int(a, 0) == Some(1) { Value::text("PRIMARY") } else { Value::Null });
    "file_name", 1..=1, NAME, |cx, a| Ok(match int(a, 0) { Some(1) => Value::text(&cx.st.database_name), Some(2) => { let n = format!("{}_log", cx.st.database_name); Value::text(&n) } _ => Value::Null });
    "file_id", 1..=1, SqlType::SmallInt, |cx, a| Ok(match text(a, 0) { Some(n) if same_name(&n, &cx.st.database_name) => Value::SmallInt(1), Some(n) if same_name(&n, &format!("{}_log", cx.st.database_name)) => Value::SmallInt(2), _ => Value::Null });
    "type_id", 1..=1, INT, |_, a| Ok(text(a, 0).and_then(|n| super::property::type_id_of(&n)).map_or(Value::Null, Value::Int));
    "type_name", 1..=1, NAME, |_, a| Ok(int(a, 0).and_then(super::property::type_name_of).map_or(Value::Null, Value::text));
    "suser_sname", 0..=1, NAME, |cx, a| Ok(login_name(cx, a));
    "suser_name", 0..=1, NAME, |cx, a| Ok(login_name(cx, a));
    "system_user", 0..=0, NAME, |cx, a| Ok(login_name(cx, a));
    "original_login", 0..=0, NAME, |cx, _| Ok(Value::text(&cx.st.login.user));
    "suser_id", 0..=1, INT, |cx, a| Ok(match text(a, 0) { Some(n) => principal::find_login(cx, &n).map_or(Value::Null, |l| Value::Int(l.id.0)), None => Value::Int(cx.st.identity.login_id.0) });
    "suser_sid", 0..=2, SqlType::varbinary(85), |cx, a| { let n = text(a, 0).unwrap_or_else(|| cx.st.identity.login.clone()); Ok(principal::find_login(cx, &n).map_or(Value::Null, |l| Value::binary(&l.sid))) };
    "user_name", 0..=1, NAME, user_name;
    "user", 0..=0, NAME, user_name;
    "current_user", 0..=0, NAME, user_name;
    "session_user", 0..=0, NAME, user_name;
    "user_id", 0..=1, INT, user_id;
    "database_principal_id", 0..=1, INT, user_id;
    "app_name", 0..=0, SqlType::nvarchar(128), |cx, _| Ok(Value::text(&cx.st.login.app_name));
    "host_name", 0..=0, SqlType::nvarchar(128), |cx, _| Ok(Value::text(&cx.st.login.host_name));
    "host_id", 0..=0, SqlType::varchar(10), |cx, _| Ok(Value::text(&cx.st.login.client_pid.to_string()));
    "current_transaction_id", 0..=0, SqlType::BigInt, |cx, _| { let id = cx.st.txn().id().0; Ok(Value::BigInt(i64::try_from(id).unwrap_or(0))) };
    "min_active_rowversion", 0..=0, SqlType::Binary(8), |cx, _| { let db = cx.st.database; let last = cx.st.engine.store.counter(CounterKey::RowVersion(db)).unwrap_or(0); Ok(Value::binary(&u64::try_from(last + 1).unwrap_or(0).to_be_bytes())) };
    "context_info", 0..=0, SqlType::varbinary(128), |cx, _| Ok(cx.st.context_info.clone());
    "session_context", 1..=1, SqlType::SqlVariant, |cx, a| Ok(text(a, 0).and_then(|k| cx.st.session_context.get(&k.to_lowercase()).cloned()).unwrap_or(Value::Null));
    "connectionproperty", 1..=1, SqlType::SqlVariant, super::property::connection;
    "is_srvrolemember", 1..=2, INT, |cx, a| is_server_member(cx, a);
    "is_rolemember", 1..=2, INT, |cx, a| is_member(cx, a);
    "is_member", 1..=1, INT, |cx, a| is_member(cx, a);
    "has_dbaccess", 1..=1, INT, |cx, a| Ok(match text(a, 0) { Some(n) => { let txn = cx.st.txn(); match txn.find_database(&n) { Some(d) => Value::Int(i32::from(principal::user_in(cx, d.id).is_some())), None => Value::Null } } None => Value::Null });
    "has_perms_by_name", 3..=5, INT, super::property::has_perms;
    "applock_mode", 3..=3, SqlType::nvarchar(32), applock_mode;
    "applock_test", 4..=4, SqlType::SmallInt, applock_test;
    "trigger_nestlevel", 0..=3, INT, |cx, _| Ok(Value::Int(i32::try_from(cx.st.trigger_depth).unwrap_or(0)));
    "cursor_status", 2..=2, SqlType::SmallInt, |cx, a| Ok(Value::SmallInt(match text(a, 1).and_then(|n| cx.st.cursors.get(&n.to_lowercase())) { None => -3, Some(c) => match &c.rows { None => -1, Some(r) => i16::from(!r.is_empty()) } }));
    "formatmessage", 1..=21, SqlType::nvarchar(2048), |_, a| {
        let Some(format) = text(a, 0) else { return Ok(Value::Null) };
        let args: Vec<(Value, SqlType)> = a[1..].iter().map(|v| (v.clone(), if matches!(v, Value::String(_)) { SqlType::nvarchar(4000) } else { SqlType::Int })).collect();
        Ok(Value::text(&super::format::message(&format, &args)?))
    };
    "stats_date", 2..=2, SqlType::DateTime, |_, _| Ok(Value::Null);
    "collationproperty", 2..=2, SqlType::SqlVariant, super::property::collation;
    "getansinull", 0..=1, INT, |_, _| Ok(Value::Int(1));
    "parsename", 2..=2, NAME, |_, a| Ok(match (text(a, 0).and_then(|n| super::parse::parse_name(&n).ok()), int(a, 1)) {
        (Some(name), Some(n @ 1..=4)) => name.parts.len().checked_sub(usize::try_from(n).unwrap_or(9)).and_then(|at| name.parts.get(at)).filter(|p| !p.is_empty()).map_or(Value::Null, |p| Value::text(p)),
        _ => Value::Null,
    });
}

/// A function by its lower-case name.
pub(crate) fn find(name: &str) -> Option<SysFn> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// Calls a function.
pub(crate) fn call(function: SysFn, cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    (function.call)(cx, args)
}

/// Text of an argument.
pub(crate) fn text(args: &[Value], at: usize) -> Option<String> {
    match args.get(at) {
        Some(Value::String(text)) => Some(text.to_string()),
        _ => None,
    }
}

/// Number of an argument.
pub(crate) fn int(args: &[Value], at: usize) -> Option<i64> {
    match args.get(at) {
        Some(Value::String(text)) => text.to_string().trim().parse().ok(),
        Some(Value::Decimal(d)) => i64::try_from(d.unscaled() / 10_i128.pow(u32::from(d.scale()))).ok(),
        Some(value) => value.as_i64(),
        None => None,
    }
}

fn small(n: i32) -> Value {
    Value::SmallInt(i16::try_from(n).unwrap_or(i16::MAX))
}

fn caught(cx: &Cx<'_>, field: impl Fn(&super::api::SqlError) -> Value) -> Value {
    cx.st.caught.last().map_or(Value::Null, |c| field(&c.error))
}

/// A value of any integer type as decimal(38,0).
fn as_decimal(value: Option<Value>) -> Result<Value> {
    let Some(n) = value.as_ref().and_then(super::exec::dml::integer_of) else { return Ok(Value::Null) };
    super::exec::dml::integer_value(n, &SqlType::decimal(38, 0))
}

fn ident(cx: &mut Cx<'_>, args: &[Value], get: impl Fn(&mut Cx<'_>, &Object) -> Option<i128>) -> Result<Value> {
    let Some(name) = text(args, 0).and_then(|n| super::parse::parse_name(&n).ok()) else { return Ok(Value::Null) };
    let Some(object) = lookup::find(cx, &name) else { return Ok(Value::Null) };
    match get(cx, &object) {
        Some(n) => super::exec::dml::integer_value(n, &SqlType::decimal(38, 0)),
        None => Ok(Value::Null),
    }
}

/// A column by table name and column name (COL_LENGTH).
fn column_of(cx: &mut Cx<'_>, args: &[Value]) -> Option<crate::sqlserver::store::catalog::Column> {
    let name = super::parse::parse_name(&text(args, 0)?).ok()?;
    let object = lookup::find(cx, &name)?;
    let column = text(args, 1)?;
    let table = object.table()?;
    table.columns.iter().find(|c| same_name(&c.name, &column)).cloned()
}

fn object_id(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let Some(shown) = text(args, 0) else { return Ok(Value::Null) };
    let Ok(name) = super::parse::parse_name(&shown) else { return Ok(Value::Null) };
    let wanted = text(args, 1).map(|t| t.trim().to_uppercase());
    let name = strip_tempdb(name);
    if let Some(id) = super::catalog::system_object_id(&name) {
        let fits = wanted.as_deref().is_none_or(|w| w == "V" || w == "S");
        return Ok(if fits { Value::Int(id) } else { Value::Null });
    }
    if let Some(object) = lookup::find(cx, &name) {
        if !permission::sees(cx, &object) {
            return Ok(Value::Null);
        }
        let fits = wanted.as_deref().is_none_or(|w| w == object.body.type_code());
        return Ok(if fits { Value::Int(object.id.0) } else { Value::Null });
    }
    Ok(constraint_id(cx, &name, wanted.as_deref()).map_or(Value::Null, Value::Int))
}

/// `tempdb..#t` is `#t`.
fn strip_tempdb(name: Name) -> Name {
    if name.base().starts_with('#') { Name::single(name.base()) } else { name }
}

fn constraint_id(cx: &mut Cx<'_>, name: &Name, wanted: Option<&str>) -> Option<i32> {
    let database = cx.st.database;
    let txn = cx.st.txn();
    for schema in lookup::schemas_of(cx, name, database, None) {
        let Some(owner) = txn.user_of_name(database, schema, name.base()) else { continue };
        for row in super::catalog::constraints_of(&owner) {
            if same_name(&row.name, name.base()) && wanted.is_none_or(|w| w == row.kind.trim()) {
                return Some(row.id);
            }
        }
    }
    None
}

/// Name and object of an id, also of constraints.
fn by_id(cx: &mut Cx<'_>, args: &[Value]) -> Option<(String, std::sync::Arc<Object>)> {
    let id = i32::try_from(int(args, 0)?).ok()?;
    let txn = cx.st.txn();
    if let Some(object) = txn.object(ObjectId(id)) {
        if !permission::sees(cx, &object) {
            return None;
        }
        return Some((object.name.clone(), object));
    }
    let owner = txn.constraint_table(ObjectId(id))?;
    let name = super::catalog::constraints_of(&owner).into_iter().find(|c| c.id == id)?.name;
    Some((name, owner))
}

fn object_definition(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let Some(id) = int(args, 0).and_then(|id| i32::try_from(id).ok()) else { return Ok(Value::Null) };
    let txn = cx.st.txn();
    if let Some(object) = txn.object(ObjectId(id)) {
        let seen = permission::has_object(cx, &object, "VIEW DEFINITION");
        return Ok(super::module::module_of(&object)
            .filter(|_| seen)
            .map_or(Value::Null, |m| Value::text(&m.definition)));
    }
    let owner = txn.constraint_table(ObjectId(id));
    let found = owner.and_then(|o| super::catalog::constraints_of(&o).into_iter().find(|c| c.id == id));
    Ok(found.and_then(|c| c.definition).map_or(Value::Null, |d| Value::text(&d)))
}

fn login_name(cx: &mut Cx<'_>, args: &[Value]) -> Value {
    match args.first() {
        None => Value::text(&cx.st.identity.login),
        Some(Value::Binary(sid)) => {
            let txn = cx.st.txn();
            let found = txn.principals(Scope::Server).into_iter().find(|p| p.sid == sid.as_slice());
            found.map_or(Value::Null, |p| Value::text(&p.name))
        }
        _ => {
            let id = int(args, 0);
            let txn = cx.st.txn();
            let found = txn.principals(Scope::Server).into_iter().find(|p| Some(i64::from(p.id.0)) == id);
            found.map_or(Value::Null, |p| Value::text(&p.name))
        }
    }
}

fn user_name(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let database = cx.st.database;
    if let Some(id) = int(args, 0) {
        let txn = cx.st.txn();
        let found = txn.principals(Scope::Database(database)).into_iter().find(|p| i64::from(p.id.0) == id);
        return Ok(found.map_or(Value::Null, |p| Value::text(&p.name)));
    }
    Ok(principal::user_in(cx, database).map_or(Value::Null, |(_, name)| Value::text(&name)))
}

fn user_id(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let database = cx.st.database;
    if let Some(name) = text(args, 0) {
        return Ok(principal::find_user(cx, database, &name).map_or(Value::Null, |p| Value::Int(p.id.0)));
    }
    Ok(principal::user_in(cx, database).map_or(Value::Null, |(id, _)| Value::Int(id.0)))
}

fn is_server_member(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let Some(role) = text(args, 0) else { return Ok(Value::Null) };
    let txn = cx.st.txn();
    let Some(found) = principal::find(&txn, Scope::Server, &role).filter(|p| p.kind == PrincipalKind::Role) else {
        return Ok(Value::Null);
    };
    if found.name == "public" {
        return Ok(Value::Int(1));
    }
    let login = match text(args, 1) {
        Some(name) => match principal::find_login(cx, &name) {
            Some(login) => login.id,
            None => return Ok(Value::Null),
        },
        None if cx.st.identity.user.is_some() => return Ok(Value::Int(0)),
        None => cx.st.identity.login_id,
    };
    Ok(Value::Int(i32::from(principal::roles_of(&txn, Scope::Server, login).contains(&found.id))))
}

fn is_member(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let database = cx.st.database;
    let Some(role) = text(args, 0) else { return Ok(Value::Null) };
    let Some(found) = principal::find_user(cx, database, &role).filter(|p| p.kind == PrincipalKind::Role) else {
        return Ok(Value::Null);
    };
    if found.id == principal::PUBLIC {
        return Ok(Value::Int(1));
    }
    let member = match text(args, 1) {
        Some(name) => match principal::find_user(cx, database, &name) {
            Some(p) => p.id,
            None => return Ok(Value::Null),
        },
        None => match principal::user_in(cx, database) {
            Some((id, _)) => id,
            None => return Ok(Value::Null),
        },
    };
    let txn = cx.st.txn();
    Ok(Value::Int(i32::from(principal::roles_of(&txn, Scope::Database(database), member).contains(&found.id))))
}

/// Name of an application lock in the current database.
pub(crate) fn applock_name(cx: &mut Cx<'_>, principal_name: &str, resource: &str) -> Option<AppLockName> {
    let database = cx.st.database;
    let found = principal::find_user(cx, database, principal_name)?;
    let name: String = resource.chars().take(255).collect();
    Some(AppLockName { database, principal: found.id, name: name.into() })
}

/// Owner of an application lock; none for a transaction owner without a transaction.
pub(crate) fn applock_owner(cx: &mut Cx<'_>, owner: &str) -> Option<AppLockOwner> {
    if owner.eq_ignore_ascii_case("session") {
        return Some(AppLockOwner::Session);
    }
    if owner.eq_ignore_ascii_case("transaction") && cx.st.trancount > 0 {
        return Some(AppLockOwner::Transaction(cx.st.txn().id()));
    }
    None
}

fn applock_mode(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(who), Some(resource), Some(owner)) = (text(args, 0), text(args, 1), text(args, 2)) else {
        return Ok(Value::Null);
    };
    let (Some(name), Some(owner)) = (applock_name(cx, &who, &resource), applock_owner(cx, &owner)) else {
        return Ok(Value::text("NoLock"));
    };
    let mode = cx.st.engine.store.locks().applock_mode(&cx.st.store_session, owner, &name);
    Ok(Value::text(mode))
}

fn applock_test(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(who), Some(resource), Some(mode), Some(owner)) =
        (text(args, 0), text(args, 1), text(args, 2), text(args, 3))
    else {
        return Ok(Value::Null);
    };
    let (Some(name), Some(owner), Some(mode)) =
        (applock_name(cx, &who, &resource), applock_owner(cx, &owner), AppLockMode::from_name(&mode))
    else {
        return Ok(Value::Null);
    };
    let free = cx.st.engine.store.locks().applock_test(&cx.st.store_session, owner, &name, mode);
    Ok(Value::SmallInt(i16::from(free)))
}

macro_rules! globals {
    ($($name:literal, $ty:expr, $call:expr;)*) => {
        static GLOBALS: &[Definition] = &[$(Definition { name: $name, least: 0, most: 0, ty: $ty, call: $call }),*];
    };
}

globals! {
    "@@rowcount", INT, |cx, _| Ok(Value::Int(i32::try_from(cx.st.rowcount).unwrap_or(i32::MAX)));
    "@@error", INT, |cx, _| Ok(Value::Int(cx.st.error));
    "@@trancount", INT, |cx, _| Ok(Value::Int(i32::try_from(cx.st.trancount).unwrap_or(i32::MAX)));
    "@@spid", SqlType::SmallInt, |cx, _| Ok(Value::SmallInt(i16::try_from(cx.st.id).unwrap_or(i16::MAX)));
    "@@version", SqlType::nvarchar(300), |_, _| Ok(Value::text(super::property::VERSION_TEXT));
    "@@identity", SqlType::decimal(38, 0), |cx, _| { let v = cx.st.identity_value.clone(); as_decimal(v) };
    "@@fetch_status", INT, |cx, _| Ok(Value::Int(cx.st.fetch_status));
    "@@cursor_rows", INT, |_, _| Ok(Value::Int(0));
    "@@servername", NAME, |cx, _| Ok(Value::text(&cx.st.engine.options.server_name.clone()));
    "@@servicename", NAME, |_, _| Ok(Value::text("MSSQLSERVER"));
    "@@lock_timeout", INT, |cx, _| Ok(Value::Int(i32::try_from(cx.st.settings.lock_timeout_ms).unwrap_or(i32::MAX)));
    "@@nestlevel", INT, |cx, _| Ok(Value::Int(i32::try_from(cx.st.nest_level).unwrap_or(0)));
    "@@options", INT, |cx, _| Ok(Value::Int(super::property::options(cx)));
    "@@language", NAME, |cx, _| Ok(Value::text(&cx.st.settings.language.clone()));
    "@@langid", SqlType::SmallInt, |_, _| Ok(Value::SmallInt(0));
    "@@datefirst", SqlType::TinyInt, |cx, _| Ok(Value::TinyInt(cx.st.settings.date_first));
    "@@textsize", INT, |cx, _| Ok(Value::Int(cx.st.settings.textsize));
    "@@max_precision", SqlType::TinyInt, |_, _| Ok(Value::TinyInt(38));
    "@@max_connections", INT, |_, _| Ok(Value::Int(32_767));
    "@@microsoftversion", INT, |_, _| Ok(Value::Int(0x1000_03E8));
    "@@procid", INT, |cx, _| Ok(Value::Int(cx.st.frame().module_id));
    "@@dbts", SqlType::Binary(8), |cx, _| { let db = cx.st.database; let last = cx.st.engine.store.counter(CounterKey::RowVersion(db)).unwrap_or(0); Ok(Value::binary(&u64::try_from(last).unwrap_or(0).to_be_bytes())) };
    "@@remserver", NAME, |_, _| Ok(Value::Null);
    "@@connections", INT, |cx, _| Ok(Value::Int(i32::from(cx.st.id)));
    "@@cpu_busy", INT, |_, _| Ok(Value::Int(0));
}

/// An @@ variable.
pub(crate) fn bind_global(name: &str) -> Result<Typed> {
    let lower = name.to_ascii_lowercase();
    let found = GLOBALS.iter().find(|g| g.name == lower).ok_or_else(|| error::undeclared(name))?;
    Ok(Typed::new(X::Sys(found, Vec::new()), found.ty, true))
}

/// UPDATE(column) inside a trigger.
pub(crate) fn bind_update(binder: &mut Binder<'_, '_>, call: &FuncCall) -> Result<Typed> {
    let column = match call.args.as_slice() {
        [Expr::Column(name)] => name.base().to_owned(),
        _ => return Err(error::new(174, 15, 1, "The update function requires 1 argument(s).")),
    };
    let Some(trigger) = binder.cx.st.frame().trigger.clone() else {
        return Err(error::new(157, 15, 1, "UPDATE() can only be used inside a trigger."));
    };
    let txn = binder.cx.st.txn();
    let at = txn.object(trigger.table).and_then(|o| o.table().and_then(|t| t.column_position(&column)));
    let Some(at) = at else { return Err(error::unknown_column(&column)) };
    let updated = trigger.updated.contains(&at);
    // A condition, as IF UPDATE(c) needs one.
    Ok(Typed::condition(X::IsNull(Box::new(X::Const(if updated { Value::Bit(true) } else { Value::Null })), true)))
}

/// Whether an object is a view (for property functions).
pub(crate) fn is_view(object: &Object) -> bool {
    matches!(object.body, ObjectBody::View(_))
}
