//! System table functions.

use super::super::error::{self, Result};
use super::super::permission::{self, Target};
use super::super::plan::Row;
use super::super::state::Cx;
use super::super::sysfn;
use super::super::{lookup, parse};
use super::{BIG, BIT, NAME, Source, big, bit, int, row, text};
use crate::sqlserver::store::catalog::DatabaseId;
use crate::sqlserver::value::{SqlType, Value};

/// A function by its lower-case name.
pub(super) fn find(name: &str, database: DatabaseId) -> Option<Source> {
    let (columns, rows, least, most): (Vec<(&'static str, SqlType)>, super::VirtualRows, usize, usize) = match name {
        "fn_my_permissions" => (
            vec![("entity_name", NAME), ("subentity_name", NAME), ("permission_name", SqlType::nvarchar(60))],
            my_permissions,
            2,
            2,
        ),
        "dm_os_volume_stats" => (
            vec![
                ("database_id", super::INT),
                ("file_id", super::INT),
                ("volume_mount_point", SqlType::nvarchar(512)),
                ("volume_id", SqlType::nvarchar(512)),
                ("logical_volume_name", SqlType::nvarchar(512)),
                ("file_system_type", SqlType::nvarchar(512)),
                ("total_bytes", BIG),
                ("available_bytes", BIG),
                ("supports_compression", BIT),
                ("supports_alternate_streams", BIT),
                ("supports_sparse_files", BIT),
                ("is_read_only", BIT),
                ("is_compressed", BIT),
            ],
            volume_stats,
            2,
            2,
        ),
        "string_split" => (vec![("value", SqlType::nvarchar(4000))], string_split, 2, 2),
        _ => return None,
    };
    Some(Source { columns, rows, database, least, most })
}

fn volume_stats(cx: &mut Cx<'_>, _source: &Source, args: &[Value]) -> Result<Vec<Row>> {
    permission::check_server(cx, "VIEW SERVER STATE")?;
    let (Some(database), Some(file)) = (sysfn::int(args, 0), sysfn::int(args, 1)) else { return Ok(Vec::new()) };
    let known = lookup::database_record(cx, DatabaseId(i32::try_from(database).unwrap_or(-1))).is_some();
    if !known || !(1..=2).contains(&file) {
        return Ok(Vec::new());
    }
    let (total, free) = super::space::free_bytes(cx);
    Ok(vec![row![
        int(i32::try_from(database).unwrap_or(0)),
        int(i32::try_from(file).unwrap_or(0)),
        text("/"),
        text(""),
        text(""),
        text("ext4"),
        big(total),
        big(free),
        bit(false),
        bit(false),
        bit(true),
        bit(false),
        bit(false),
    ]])
}

fn string_split(_cx: &mut Cx<'_>, _source: &Source, args: &[Value]) -> Result<Vec<Row>> {
    let (Some(input), Some(separator)) = (sysfn::text(args, 0), sysfn::text(args, 1)) else { return Ok(Vec::new()) };
    if separator.chars().count() != 1 {
        return Err(error::new(214, 16, 11, "Procedure expects parameter 'separator' of type 'nchar(1)/nvarchar(1)'."));
    }
    Ok(input.split(separator.as_str()).map(|piece| row![text(piece)]).collect())
}

const OBJECT: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "REFERENCES",
    "EXECUTE",
    "ALTER",
    "VIEW DEFINITION",
    "CONTROL",
    "TAKE OWNERSHIP",
    "VIEW CHANGE TRACKING",
];
const DATABASE: &[&str] = &[
    "CREATE TABLE",
    "CREATE VIEW",
    "CREATE PROCEDURE",
    "CREATE FUNCTION",
    "CREATE SCHEMA",
    "CREATE ROLE",
    "CREATE TYPE",
    "CREATE SYNONYM",
    "CONNECT",
    "VIEW DATABASE STATE",
    "ALTER ANY SCHEMA",
    "ALTER ANY USER",
    "ALTER ANY ROLE",
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "EXECUTE",
    "REFERENCES",
    "ALTER",
    "VIEW DEFINITION",
    "CONTROL",
];
const SERVER: &[&str] = &[
    "CONNECT SQL",
    "VIEW ANY DATABASE",
    "VIEW SERVER STATE",
    "VIEW ANY DEFINITION",
    "ALTER ANY LOGIN",
    "ALTER ANY CONNECTION",
    "CREATE ANY DATABASE",
    "ALTER ANY DATABASE",
    "ADMINISTER BULK OPERATIONS",
    "ALTER SERVER STATE",
    "CONTROL SERVER",
];

fn my_permissions(cx: &mut Cx<'_>, source: &Source, args: &[Value]) -> Result<Vec<Row>> {
    let securable = sysfn::text(args, 0);
    let class = sysfn::text(args, 1).unwrap_or_else(|| "SERVER".into()).to_uppercase();
    let mut rows = Vec::new();
    let mut add = |entity: &str, name: &str| rows.push(row![text(entity), text(""), text(name)]);
    match class.as_str() {
        "SERVER" => {
            for name in SERVER {
                if permission::has_server(cx, name) {
                    add("server", name);
                }
            }
        }
        "DATABASE" => {
            for name in DATABASE {
                if permission::has(cx, Target::Database(source.database), name) {
                    add("database", name);
                }
            }
        }
        "SCHEMA" => {
            let Some(shown) = securable else { return Ok(Vec::new()) };
            let name = parse::parse_name(&shown)?;
            let txn = cx.st.txn();
            let Some(schema) = txn.find_schema(source.database, name.base()) else { return Ok(Vec::new()) };
            for permission_name in OBJECT {
                if permission::has(cx, Target::Schema(source.database, schema.id), permission_name) {
                    add(&shown, permission_name);
                }
            }
        }
        _ => {
            let Some(shown) = securable else { return Ok(Vec::new()) };
            let name = parse::parse_name(&shown)?;
            let Some(object) = lookup::find(cx, &name) else { return Ok(Vec::new()) };
            for permission_name in OBJECT {
                if permission::has_object(cx, &object, permission_name) {
                    add(&shown, permission_name);
                }
            }
        }
    }
    Ok(rows)
}
