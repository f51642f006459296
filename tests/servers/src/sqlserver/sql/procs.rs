//! System procedures.

use super::api::cmd;
use super::ast::Name;
use super::bind::{Binder, column_meta, same_name};
use super::error::{self, CLOSED, Result};
use super::exec::{self, Argument, Flow, ProcedureCall, Returned};
use super::plan::{OutCol, Row};
use super::state::{Cx, Prepared, now_micros};
use super::stmt::Param;
use super::{lookup, parse, permission, storage, sysfn};
use crate::sqlserver::store::catalog::{CatalogKey, ExtendedProperty, Object, ObjectBody, PropertyKey};
use crate::sqlserver::store::lock::AppLockMode;
use crate::sqlserver::value::{self, CastOptions, Coercibility, SqlType, Value};

const KNOWN: &[&str] = &[
    "sp_executesql",
    "sp_prepare",
    "sp_prepexec",
    "sp_execute",
    "sp_unprepare",
    "sp_getapplock",
    "sp_releaseapplock",
    "sp_addextendedproperty",
    "sp_updateextendedproperty",
    "sp_dropextendedproperty",
    "sp_rename",
    "sp_spaceused",
    "sp_who",
    "sp_tablecollations_100",
    "sp_reset_connection",
    "sp_set_session_context",
    "sp_addrolemember",
    "sp_droprolemember",
    "sp_describe_first_result_set",
    "sp_help",
    "sp_helptext",
    "sp_columns",
    "sp_tables",
];

/// Whether a name is a system procedure.
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// Arguments by name or position.
struct Args<'a> {
    args: &'a [Argument],
    names: &'a [&'a str],
}

impl Args<'_> {
    fn index(&self, at: usize) -> Option<usize> {
        let wanted = self.names.get(at)?;
        self.args
            .iter()
            .position(|a| a.name.trim_start_matches('@').eq_ignore_ascii_case(wanted))
            .or_else(|| self.args.get(at).filter(|a| a.name.is_empty()).map(|_| at))
    }

    fn value(&self, at: usize) -> Option<(Value, SqlType)> {
        self.args[self.index(at)?].value.clone()
    }

    fn text(&self, at: usize) -> Result<Option<String>> {
        let Some((value, ty)) = self.value(at) else { return Ok(None) };
        let value = value::cast(&value, &ty, &SqlType::NVARCHAR_MAX, &CastOptions::IMPLICIT)?;
        Ok(match value {
            Value::String(text) => Some(text.to_string()),
            _ => None,
        })
    }

    fn number(&self, at: usize) -> Result<Option<i64>> {
        let Some((value, ty)) = self.value(at) else { return Ok(None) };
        Ok(value::cast(&value, &ty, &SqlType::BigInt, &CastOptions::IMPLICIT)?.as_i64())
    }
}

fn plain(status: i32) -> Returned {
    Returned { status, outputs: Vec::new() }
}

/// Calls a system procedure by its last name part; schema may be absent, `dbo` or `sys`.
pub(crate) fn call(cx: &mut Cx<'_>, call: &ProcedureCall) -> Result<Returned> {
    let missing = || error::unknown_procedure(&call.name.display());
    if call.name.schema().is_some_and(|s| !s.eq_ignore_ascii_case("sys") && !s.eq_ignore_ascii_case("dbo")) {
        return Err(missing());
    }
    // A database before the name makes the procedure work there.
    let saved = (cx.st.database, cx.st.database_name.clone());
    if let Some(name) = call.name.database() {
        let txn = cx.st.txn();
        let Some(found) = txn.find_database(name) else { return Err(missing()) };
        cx.st.database = found.id;
        cx.st.database_name.clone_from(&found.name);
    }
    let inside = cx.st.database;
    let result = dispatch(cx, call).unwrap_or_else(|| Err(missing()));
    if call.name.database().is_some() && cx.st.database == inside {
        (cx.st.database, cx.st.database_name) = saved;
    }
    result
}

fn dispatch(cx: &mut Cx<'_>, call: &ProcedureCall) -> Option<Result<Returned>> {
    let args = &call.args;
    let name = call.name.base().to_ascii_lowercase();
    Some(match name.as_str() {
        "sp_executesql" => executesql(cx, args),
        "sp_prepare" => prepare(cx, args),
        "sp_prepexec" => prepexec(cx, args),
        "sp_execute" => execute(cx, args),
        "sp_unprepare" => unprepare(cx, args),
        "sp_getapplock" => getapplock(cx, args),
        "sp_releaseapplock" => releaseapplock(cx, args),
        "sp_addextendedproperty" => property(cx, args, PropertyAction::Add),
        "sp_updateextendedproperty" => property(cx, args, PropertyAction::Update),
        "sp_dropextendedproperty" => property(cx, args, PropertyAction::Drop),
        "sp_rename" => rename(cx, args),
        "sp_spaceused" => spaceused(cx, args),
        "sp_who" => who(cx),
        "sp_tablecollations_100" => table_collations(cx, args),
        "sp_reset_connection" => Ok(plain(0)),
        "sp_set_session_context" => set_session_context(cx, args),
        "sp_addrolemember" => role_member(cx, args, true),
        "sp_droprolemember" => role_member(cx, args, false),
        "sp_describe_first_result_set" => describe_first(cx, args),
        "sp_helptext" => helptext(cx, args),
        _ => return None,
    })
}

/// Sends rows of a procedure.
fn send(cx: &mut Cx<'_>, columns: &[(&str, SqlType)], rows: &[Row]) -> Result<()> {
    let cols: Vec<OutCol> = columns
        .iter()
        .map(|(name, ty)| OutCol {
            name: (*name).to_owned(),
            ty: *ty,
            nullable: true,
            identity: false,
            computed: true,
            coercibility: Coercibility::Implicit,
        })
        .collect();
    cx.out.columns(&column_meta(&cols)).map_err(|_| error::marker(CLOSED))?;
    for row in rows {
        cx.out.row(row).map_err(|_| error::marker(CLOSED))?;
    }
    let count = rows.len() as u64;
    cx.st.rowcount = count;
    exec::done(cx, cmd::SELECT, Some(count))
}

/// Statement, parameter declarations and the arguments after them.
fn executesql(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let named = Args { args, names: &["stmt", "params"] };
    let text = named.text(0)?;
    let Some(first) = args.first() else {
        return Err(error::new(
            201,
            16,
            10,
            "Procedure or function 'sp_executesql' expects parameter '@statement', which was not supplied.",
        ));
    };
    if first.value.as_ref().is_some_and(|(_, ty)| !ty.is_unicode() && *ty != SqlType::Null) {
        return Err(error::new(214, 16, 2, "Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'."));
    }
    let Some(text) = text.or(positional_text(args, 0)?) else { return Ok(plain(0)) };
    let declared = match args.get(1) {
        Some(_) => positional_text(args, 1)?.unwrap_or_default(),
        None => String::new(),
    };
    let params = parse::parse_parameters(&declared)?;
    let rest = args.get(2..).unwrap_or(&[]);
    run_prepared(cx, &text, &params, rest, 2)
}

fn positional_text(args: &[Argument], at: usize) -> Result<Option<String>> {
    let Some((value, ty)) = args.get(at).and_then(|a| a.value.clone()) else { return Ok(None) };
    let value = value::cast(&value, &ty, &SqlType::NVARCHAR_MAX, &CastOptions::IMPLICIT)?;
    Ok(match value {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    })
}

/// Runs text with arguments; `offset` is the place of the first argument in the call.
fn run_prepared(cx: &mut Cx<'_>, text: &str, params: &[Param], args: &[Argument], offset: usize) -> Result<Returned> {
    let mut returned = exec::execute_text(cx, text, params, args)?;
    for output in &mut returned.outputs {
        output.0 += offset;
    }
    Ok(returned)
}

fn keep(cx: &mut Cx<'_>, args: &[Argument]) -> Result<(i32, Prepared)> {
    let declared = positional_text(args, 1)?.unwrap_or_default();
    let text = positional_text(args, 2)?.unwrap_or_default();
    // A statement that cannot be compiled is refused now.
    parse::parse_batch(&text, cx.st.settings.quoted_identifier)?;
    let prepared = Prepared { text: text.into(), params: parse::parse_parameters(&declared)? };
    cx.st.next_handle += 1;
    let handle = cx.st.next_handle;
    cx.st.prepared.insert(handle, prepared.clone());
    Ok((handle, prepared))
}

fn prepare(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let (handle, _) = keep(cx, args)?;
    Ok(Returned { status: 0, outputs: vec![(0, handle_name(args), SqlType::Int, Value::Int(handle))] })
}

fn handle_name(args: &[Argument]) -> String {
    args.first().map_or_else(String::new, |a| a.name.clone())
}

fn prepexec(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    // A handle that comes in is given up for the new one.
    if let Some(old) = args.first().and_then(|a| a.value.as_ref()).and_then(|(v, _)| v.as_i64()) {
        cx.st.prepared.remove(&i32::try_from(old).unwrap_or(0));
    }
    let (handle, prepared) = keep(cx, args)?;
    let rest = args.get(3..).unwrap_or(&[]);
    let mut returned = run_prepared(cx, &prepared.text, &prepared.params, rest, 3)?;
    returned.outputs.insert(0, (0, handle_name(args), SqlType::Int, Value::Int(handle)));
    Ok(returned)
}

fn execute(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let handle = args.first().and_then(|a| a.value.as_ref()).and_then(|(v, _)| v.as_i64()).unwrap_or(0);
    let handle = i32::try_from(handle).unwrap_or(0);
    let Some(prepared) = cx.st.prepared.get(&handle).cloned() else {
        return Err(error::new(8179, 16, 2, &format!("Could not find prepared statement with handle {handle}.")));
    };
    run_prepared(cx, &prepared.text, &prepared.params, args.get(1..).unwrap_or(&[]), 1)
}

fn unprepare(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let handle = args.first().and_then(|a| a.value.as_ref()).and_then(|(v, _)| v.as_i64()).unwrap_or(0);
    let handle = i32::try_from(handle).unwrap_or(0);
    if cx.st.prepared.remove(&handle).is_none() {
        return Err(error::new(8179, 16, 2, &format!("Could not find prepared statement with handle {handle}.")));
    }
    Ok(plain(0))
}

fn getapplock(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["Resource", "LockMode", "LockOwner", "LockTimeout", "DbPrincipal"] };
    let Some(resource) = a.text(0)? else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_getapplock' expects parameter '@Resource', which was not supplied.",
        ));
    };
    let Some(mode) = a.text(1)? else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_getapplock' expects parameter '@LockMode', which was not supplied.",
        ));
    };
    let owner = a.text(2)?.unwrap_or_else(|| "Transaction".into());
    let timeout = a.number(3)?.unwrap_or(cx.st.settings.lock_timeout_ms);
    let who = a.text(4)?.unwrap_or_else(|| "public".into());
    let Some(mode) = AppLockMode::from_name(&mode) else { return applock_parameter("@LockMode") };
    if !owner.eq_ignore_ascii_case("session") && !owner.eq_ignore_ascii_case("transaction") {
        return applock_parameter("@LockOwner");
    }
    let Some(owner) = sysfn::applock_owner(cx, &owner) else {
        // The procedure reports a parameter error by its status and does not raise.
        return Ok(plain(-999));
    };
    let Some(name) = sysfn::applock_name(cx, &who, &resource) else { return applock_parameter("@DbPrincipal") };
    let timeout = u64::try_from(timeout).ok().map(std::time::Duration::from_millis);
    let engine = std::sync::Arc::clone(&cx.st.engine);
    let status = engine.store.locks().get_applock(&cx.st.store_session, owner, &name, mode, timeout);
    if status == -2 && cx.st.cancel.is_cancelled() {
        return Err(error::cancelled());
    }
    Ok(plain(status))
}

fn applock_parameter(name: &str) -> Result<Returned> {
    Err(error::new(8116, 16, 1, &format!("Argument data type or value of {name} is invalid for sp_getapplock.")))
}

fn releaseapplock(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["Resource", "LockOwner", "DbPrincipal"] };
    let Some(resource) = a.text(0)? else {
        return Err(error::new(
            201,
            16,
            4,
            "Procedure or function 'sp_releaseapplock' expects parameter '@Resource', which was not supplied.",
        ));
    };
    let owner = a.text(1)?.unwrap_or_else(|| "Transaction".into());
    let who = a.text(2)?.unwrap_or_else(|| "public".into());
    let not_held = || {
        error::plain(
            1223,
            &format!(
                "Cannot release the application lock (Database Principal: '{who}', Resource: '{resource}') because it is not currently held."
            ),
        )
    };
    let (Some(owner), Some(name)) = (sysfn::applock_owner(cx, &owner), sysfn::applock_name(cx, &who, &resource)) else {
        return Err(not_held());
    };
    match cx.st.engine.store.locks().release_applock(&cx.st.store_session, owner, &name) {
        0 => Ok(plain(0)),
        _ => Err(not_held()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PropertyAction {
    Add,
    Update,
    Drop,
}

/// sp_addextendedproperty and its kin.
fn property(cx: &mut Cx<'_>, args: &[Argument], action: PropertyAction) -> Result<Returned> {
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
        return super::principal::find_user(cx, database, schema_name)
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
            let found = super::catalog::constraints_of(&object).into_iter().find(|c| same_name(&c.name, part));
            found.map(|c| (1, c.id, 0, shown.clone())).ok_or_else(|| denied(&shown))
        }
        "trigger" => {
            let found = txn.find_object(database, schema.id, part).filter(|o| o.parent() == Some(object.id));
            found.map(|o| (1, o.id.0, 0, shown.clone())).ok_or_else(|| denied(&shown))
        }
        _ => Err(denied(&shown)),
    }
}

fn rename(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
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

fn rename_constraint(cx: &mut Cx<'_>, name: &Name, new: &str, missing: super::api::SqlError) -> Result<Returned> {
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

fn spaceused(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["objname", "updateusage"] };
    let kb = |pages: u64| Value::text(&format!("{} KB", pages * 8));
    let v18 = SqlType::varchar(18);
    if let Some(name) = a.text(0)? {
        let name = parse::parse_name(&name)?;
        let Some(object) = lookup::find(cx, &name).filter(|o| o.table().is_some()) else {
            let database = cx.st.database_name.clone();
            return Err(error::plain(
                15009,
                &format!(
                    "The object '{}' does not exist in database '{database}' or is invalid for this operation.",
                    name.display()
                ),
            ));
        };
        let txn = cx.st.txn();
        let found = txn.allocation(object.id).unwrap_or_default();
        let index = found.used_pages - found.data_pages.min(found.used_pages);
        let row = vec![
            Value::text(&object.name),
            Value::text(&format!("{:<20}", found.rows)),
            kb(found.reserved_pages),
            kb(found.data_pages),
            kb(index),
            kb(found.reserved_pages.saturating_sub(found.used_pages)),
        ];
        let columns = [
            ("name", SqlType::SYSNAME),
            ("rows", SqlType::Char(20, value::Collation::DEFAULT)),
            ("reserved", v18),
            ("data", v18),
            ("index_size", v18),
            ("unused", v18),
        ];
        send(cx, &columns, &[row])?;
        return Ok(plain(0));
    }
    let database = cx.st.database;
    let used = super::catalog::used_pages(cx, database);
    let size = used.max(1024) + cx.st.engine.store.log_bytes() / 8192;
    #[allow(clippy::cast_precision_loss, reason = "megabytes with two digits")]
    let mb = |pages: u64| Value::text(&format!("{:.2} MB", pages as f64 * 8.0 / 1024.0));
    let name = Value::text(&cx.st.database_name.clone());
    send(
        cx,
        &[("database_name", SqlType::SYSNAME), ("database_size", v18), ("unallocated space", v18)],
        &[vec![name, mb(size), mb(size.saturating_sub(used))]],
    )?;
    send(
        cx,
        &[("reserved", v18), ("data", v18), ("index_size", v18), ("unused", v18)],
        &[vec![kb(used), kb(used), kb(0), kb(0)]],
    )?;
    Ok(plain(0))
}

fn who(cx: &mut Cx<'_>) -> Result<Returned> {
    let all = permission::has_server(cx, "VIEW SERVER STATE");
    let own = cx.st.id;
    let mut rows = Vec::new();
    for s in cx.st.engine.sessions() {
        if !(all || s.id == own) {
            continue;
        }
        let database = lookup::database_name(cx, s.database);
        rows.push(vec![
            Value::SmallInt(i16::try_from(s.id).unwrap_or(0)),
            Value::SmallInt(0),
            Value::text(if s.running { "runnable" } else { "sleeping" }),
            Value::text(&s.login_name),
            Value::text(&s.host_name),
            Value::text("0    "),
            Value::text(&database),
            Value::text("AWAITING COMMAND"),
            Value::Int(0),
        ]);
    }
    let columns = [
        ("spid", SqlType::SmallInt),
        ("ecid", SqlType::SmallInt),
        ("status", SqlType::nvarchar(30)),
        ("loginame", SqlType::SYSNAME),
        ("hostname", SqlType::SYSNAME),
        ("blk", SqlType::Char(5, value::Collation::DEFAULT)),
        ("dbname", SqlType::SYSNAME),
        ("cmd", SqlType::nvarchar(26)),
        ("request_id", SqlType::Int),
    ];
    send(cx, &columns, &rows)?;
    Ok(plain(0))
}

/// Collations of a table's columns, as bulk-copy clients ask for them.
fn table_collations(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let Some(name) = positional_text(args, 0)? else { return Err(error::unknown_object("")) };
    let name = parse::parse_name(&name)?;
    let Some(object) = lookup::find(cx, &name) else { return Err(error::unknown_object(&name.display())) };
    let mut rows = Vec::new();
    for column in object.table().map_or(&[][..], |t| &t.columns) {
        let collation = column.ty.collation();
        rows.push(vec![
            Value::Int(column.id),
            Value::text(&column.name),
            collation.map_or(Value::Null, |c| Value::binary(&c.to_tds())),
            collation.map_or(Value::Null, |c| Value::text(&c.name())),
        ]);
    }
    let columns = [
        ("colid", SqlType::Int),
        ("name", SqlType::SYSNAME),
        ("tds_collation", SqlType::Binary(5)),
        ("collation", SqlType::SYSNAME),
    ];
    send(cx, &columns, &rows)?;
    Ok(plain(0))
}

fn set_session_context(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let a = Args { args, names: &["key", "value", "read_only"] };
    let Some(key) = a.text(0)? else {
        return Err(error::plain(15664, "Cannot set key in the session context. The key is NULL."));
    };
    let value = match a.value(1) {
        Some((value, ty)) if !value.is_null() && ty != SqlType::SqlVariant => {
            Value::Variant(std::sync::Arc::new((ty, value)))
        }
        Some((value, _)) => value,
        None => Value::Null,
    };
    cx.st.session_context.insert(key.to_lowercase(), value);
    Ok(plain(0))
}

fn role_member(cx: &mut Cx<'_>, args: &[Argument], add: bool) -> Result<Returned> {
    let a = Args { args, names: &["rolename", "membername"] };
    let (Some(role), Some(member)) = (a.text(0)?, a.text(1)?) else {
        return Err(error::plain(
            15600,
            "An invalid parameter or option was specified for procedure 'sp_addrolemember'.",
        ));
    };
    exec::alter_role(cx, &role, &member, add, false)?;
    exec::finish_statement(cx)?;
    Ok(plain(0))
}

fn helptext(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let Some(shown) = positional_text(args, 0)? else { return Err(error::unknown_object("")) };
    let name = parse::parse_name(&shown)?;
    let database = cx.st.database_name.clone();
    let found = lookup::find(cx, &name);
    let Some(module) = found.as_ref().and_then(|o| super::module::module_of(o)) else {
        return Err(error::plain(
            15009,
            &format!("The object '{shown}' does not exist in database '{database}' or is invalid for this operation."),
        ));
    };
    let rows: Vec<Row> = module.definition.split_inclusive('\n').map(|line| vec![Value::text(line)]).collect();
    send(cx, &[("Text", SqlType::nvarchar(255))], &rows)?;
    Ok(plain(0))
}

/// Columns of the first result set of a text.
fn describe_first(cx: &mut Cx<'_>, args: &[Argument]) -> Result<Returned> {
    let text = positional_text(args, 0)?.unwrap_or_default();
    let declared = positional_text(args, 1)?.unwrap_or_default();
    let params = parse::parse_parameters(&declared)?;
    let statements = parse::parse_batch(&text, cx.st.settings.quoted_identifier)?;
    let query = statements.iter().find_map(|s| match &s.kind {
        super::stmt::Kind::Query(q) => Some(q.clone()),
        _ => None,
    });
    let mut rows = Vec::new();
    if let Some(query) = query {
        let mut frame = super::state::Frame::default();
        let database = cx.st.database;
        for param in &params {
            let (ty, _) = super::types::resolve(cx, database, &param.ty, 1)?;
            frame.declare(&param.name, ty, Value::Null);
        }
        cx.st.frames.push(frame);
        let plan = Binder::new(cx).bind_query(&query, None);
        cx.st.frames.pop();
        for (at, col) in plan?.cols.iter().enumerate() {
            let ty = if col.ty == SqlType::Null { SqlType::Int } else { col.ty };
            let system = super::property::type_id_of(ty.name()).unwrap_or(0);
            rows.push(vec![
                Value::Bit(false),
                Value::Int(i32::try_from(at + 1).unwrap_or(0)),
                Value::text(&col.name),
                Value::Bit(col.nullable),
                Value::Int(system),
                Value::text(&ty.to_string()),
                Value::SmallInt(ty.max_length_bytes()),
                Value::TinyInt(ty.precision()),
                Value::TinyInt(ty.scale()),
                ty.collation().map_or(Value::Null, |c| Value::text(&c.name())),
                Value::Bit(col.identity),
                Value::Bit(!col.computed),
            ]);
        }
    }
    let columns = [
        ("is_hidden", SqlType::Bit),
        ("column_ordinal", SqlType::Int),
        ("name", SqlType::SYSNAME),
        ("is_nullable", SqlType::Bit),
        ("system_type_id", SqlType::Int),
        ("system_type_name", SqlType::nvarchar(256)),
        ("max_length", SqlType::SmallInt),
        ("precision", SqlType::TinyInt),
        ("scale", SqlType::TinyInt),
        ("collation_name", SqlType::SYSNAME),
        ("is_identity_column", SqlType::Bit),
        ("is_updateable", SqlType::Bit),
    ];
    send(cx, &columns, &rows)?;
    Ok(plain(0))
}

/// DBCC USEROPTIONS.
pub(crate) fn user_options(cx: &mut Cx<'_>) -> Result<Flow> {
    use super::state::Isolation;
    let s = cx.st.settings.clone();
    let level = match s.isolation {
        Isolation::ReadUncommitted => "read uncommitted",
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
        Isolation::Snapshot => "snapshot",
    };
    let mut rows = vec![
        ("textsize".to_owned(), s.textsize.to_string()),
        ("language".into(), s.language.clone()),
        ("dateformat".into(), "mdy".into()),
        ("datefirst".into(), s.date_first.to_string()),
        ("lock_timeout".into(), s.lock_timeout_ms.to_string()),
    ];
    for (name, on) in [
        ("quoted_identifier", s.quoted_identifier),
        ("ansi_nulls", s.ansi_nulls),
        ("ansi_warnings", s.ansi_warnings),
        ("xact_abort", s.xact_abort),
        ("nocount", s.nocount),
    ] {
        if on {
            rows.push((name.into(), "SET".into()));
        }
    }
    rows.push(("isolation level".into(), level.into()));
    let rows: Vec<Row> = rows.into_iter().map(|(a, b)| vec![Value::text(&a), Value::text(&b)]).collect();
    send(cx, &[("Set Option", SqlType::SYSNAME), ("Value", SqlType::SYSNAME)], &rows)?;
    Ok(Flow::Next)
}
