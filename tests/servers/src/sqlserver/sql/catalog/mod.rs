//! Catalog views, dynamic management views and system table functions.

mod constraints;
mod dynamic;
mod functions;
mod information;
mod objects;
mod security;
mod space;
mod tables;

use super::ast::Name;
use super::bind::Binder;
use super::error::Result;
use super::lookup;
use super::plan::VirtualRows;
use super::state::{Cx, datetime_from_micros};
use crate::sqlserver::store::catalog::{DatabaseId, Object};
use crate::sqlserver::value::{Collation, SqlType, Value};

pub(crate) use constraints::constraints_of;
pub(crate) use space::used_pages;

/// A view or table function whose rows are computed.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) columns: Vec<(&'static str, SqlType)>,
    pub(crate) rows: VirtualRows,
    /// Database that the view shows.
    pub(crate) database: DatabaseId,
    /// Least and most arguments of a function.
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// A view as it is defined.
pub(super) struct View {
    /// Lower-case name without schema.
    name: &'static str,
    /// `sys` or `information_schema`.
    schema: &'static str,
    columns: &'static [(&'static str, SqlType)],
    rows: VirtualRows,
}

pub(super) const NAME: SqlType = SqlType::SYSNAME;
pub(super) const INT: SqlType = SqlType::Int;
pub(super) const BIT: SqlType = SqlType::Bit;
pub(super) const TINY: SqlType = SqlType::TinyInt;
pub(super) const SMALL: SqlType = SqlType::SmallInt;
pub(super) const BIG: SqlType = SqlType::BigInt;
pub(super) const TIME: SqlType = SqlType::DateTime;
pub(super) const DESC: SqlType = SqlType::nvarchar(60);
pub(super) const TEXT: SqlType = SqlType::NVARCHAR_MAX;
pub(super) const CODE1: SqlType = SqlType::Char(1, Collation::DEFAULT);
pub(super) const CODE2: SqlType = SqlType::Char(2, Collation::DEFAULT);
pub(super) const SID: SqlType = SqlType::varbinary(85);

pub(super) fn text(s: &str) -> Value {
    Value::text(s)
}

pub(super) fn int(n: i32) -> Value {
    Value::Int(n)
}

pub(super) fn bit(b: bool) -> Value {
    Value::Bit(b)
}

pub(super) fn tiny(n: u8) -> Value {
    Value::TinyInt(n)
}

pub(super) fn small(n: i16) -> Value {
    Value::SmallInt(n)
}

pub(super) fn big(n: u64) -> Value {
    Value::BigInt(i64::try_from(n).unwrap_or(i64::MAX))
}

pub(super) fn time(micros: i64) -> Value {
    datetime_from_micros(micros)
}

pub(super) fn or_null<T>(value: Option<T>, make: impl FnOnce(T) -> Value) -> Value {
    value.map_or(Value::Null, make)
}

fn views() -> impl Iterator<Item = &'static View> {
    [objects::VIEWS, tables::VIEWS, security::VIEWS, space::VIEWS, dynamic::VIEWS, information::VIEWS]
        .into_iter()
        .flatten()
}

fn find_view(schema: &str, name: &str) -> Option<&'static View> {
    let (schema, name) = (schema.to_ascii_lowercase(), name.to_ascii_lowercase());
    views().find(|v| v.schema == schema && v.name == name)
}

/// A catalog view by name; unqualified names of compatibility views are not known.
pub(crate) fn find(binder: &mut Binder<'_, '_>, name: &Name) -> Result<Option<Source>> {
    let Some(schema) = name.schema() else { return Ok(None) };
    let Some(view) = find_view(schema, name.base()) else { return Ok(None) };
    let default = binder.database;
    let Some(database) = lookup::database(binder.cx, name.database(), default)? else { return Ok(None) };
    Ok(Some(Source { columns: view.columns.to_vec(), rows: view.rows, database, least: 0, most: 0 }))
}

/// A system table function by name.
pub(crate) fn find_function(binder: &Binder<'_, '_>, name: &Name) -> Option<Source> {
    let schema = name.schema().unwrap_or("sys").to_ascii_lowercase();
    if schema != "sys" {
        return None;
    }
    functions::find(&name.base().to_ascii_lowercase(), binder.database)
}

/// Object ids of system views are negative and stable.
fn id_of(at: usize) -> i32 {
    -(100 + i32::try_from(at).unwrap_or(0))
}

/// OBJECT_ID of a system view.
pub(crate) fn system_object_id(name: &Name) -> Option<i32> {
    let schema = name.schema()?.to_ascii_lowercase();
    let base = name.base().to_ascii_lowercase();
    views().position(|v| v.schema == schema && v.name == base).map(id_of)
}

/// Permission on a system view or function; none if the name is not one.
pub(crate) fn system_permission(cx: &mut Cx<'_>, name: &Name, wanted: &str) -> Option<bool> {
    let schema = name.schema().unwrap_or("sys").to_ascii_lowercase();
    if schema != "sys" && schema != "information_schema" {
        return None;
    }
    let base = name.base().to_ascii_lowercase();
    let view = find_view(&schema, &base).is_some();
    let function = functions::find(&base, cx.st.database).is_some();
    let procedure = super::procs::is_known(&base) && name.schema().is_some();
    if !(view || function || procedure) {
        return None;
    }
    if base.starts_with("dm_") {
        let allowed = super::permission::has_server(cx, "VIEW SERVER STATE");
        return Some(allowed && wanted == "SELECT");
    }
    Some(wanted == if procedure { "EXECUTE" } else { "SELECT" })
}

/// Columns of the system views, for sys.all_columns: object id, position, name, type.
pub(super) fn system_columns() -> Vec<(i32, usize, &'static str, SqlType)> {
    let mut found = Vec::new();
    for (at, view) in views().enumerate() {
        for (position, (name, ty)) in view.columns.iter().enumerate() {
            found.push((id_of(at), position + 1, *name, *ty));
        }
    }
    found
}

/// Objects of a database that the session may see; other sessions' temporary tables and table variables are left out.
pub(super) fn visible(cx: &mut Cx<'_>, database: DatabaseId) -> Vec<std::sync::Arc<Object>> {
    let txn = cx.st.txn();
    let all = super::permission::is_sysadmin(cx);
    let mut found = Vec::new();
    for object in txn.objects(database) {
        if object.name.starts_with("#@") {
            continue;
        }
        let own = object.session.is_none_or(|s| s == i32::from(cx.st.id));
        if own && (all || super::permission::sees(cx, &object)) {
            found.push(object);
        }
    }
    found
}

/// A row from values.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($value),*] };
}
pub(super) use row;
