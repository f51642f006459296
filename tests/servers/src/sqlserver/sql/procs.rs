//! System procedures.

use super::api::cmd;
use super::bind::{Binder, column_meta};
use super::error::{self, CLOSED, Result};
use super::exec::{self, Argument, Flow, ProcedureCall, Returned};
use super::plan::{OutCol, Row};
use super::state::Cx;
use super::{lookup, parse, permission};
use crate::sqlserver::value::{self, CastOptions, Coercibility, SqlType, Value};

mod applock;
mod prepared;
mod property;
mod rename;

use self::applock::{getapplock, releaseapplock};
use self::prepared::{execute, executesql, prepare, prepexec, unprepare};
use self::property::{PropertyAction, property};
use self::rename::rename;

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

fn positional_text(args: &[Argument], at: usize) -> Result<Option<String>> {
    let Some((value, ty)) = args.get(at).and_then(|a| a.value.clone()) else { return Ok(None) };
    let value = value::cast(&value, &ty, &SqlType::NVARCHAR_MAX, &CastOptions::IMPLICIT)?;
    Ok(match value {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    })
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
