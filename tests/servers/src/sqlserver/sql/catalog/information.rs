//! INFORMATION_SCHEMA.

use super::super::error::Result;
use super::super::lookup;
use super::super::plan::Row;
use super::super::state::Cx;
use super::constraints::constraints_of;
use super::tables::all_columns_of;
use super::{INT, NAME, SMALL, Source, TINY, View, int, or_null, row, small, text, tiny, visible};
use crate::sqlserver::value::{SqlType, Value};

const VC10: SqlType = SqlType::varchar(10);
const LONG: SqlType = SqlType::nvarchar(4000);

fn tables(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let catalog = lookup::database_name(cx, source.database);
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let kind = match object.body.type_code() {
            "U" => "BASE TABLE",
            "V" => "VIEW",
            _ => continue,
        };
        let schema = lookup::schema_name(cx, &object);
        rows.push(row![text(&catalog), text(&schema), text(&object.name), text(kind)]);
    }
    Ok(rows)
}

fn columns(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let catalog = lookup::database_name(cx, source.database);
    let mut rows = Vec::new();
    for (object, columns) in all_columns_of(cx, source) {
        let schema = lookup::schema_name(cx, &object);
        for (at, c) in columns.iter().enumerate() {
            let ty = &c.ty;
            let name = if c.declared_type.as_deref() == Some("numeric") { "numeric" } else { ty.name() };
            let bytes = i32::from(ty.max_length_bytes());
            let variable = ty.is_character() || ty.is_binary() && *ty != SqlType::RowVersion;
            let characters = if ty.is_legacy_large() {
                int(i32::MAX)
            } else if variable && ty.is_unicode() && bytes > 0 {
                int(bytes / 2)
            } else if variable {
                int(bytes)
            } else {
                Value::Null
            };
            let number = ty.is_number() && *ty != SqlType::Bit;
            let exact = number && !ty.is_approximate();
            rows.push(row![
                text(&catalog),
                text(&schema),
                text(&object.name),
                text(&c.name),
                int(i32::try_from(at + 1).unwrap_or(0)),
                or_null(c.default.as_ref(), |d| text(&d.definition)),
                text(if c.nullable { "YES" } else { "NO" }),
                text(name),
                characters,
                if variable { int(if ty.is_legacy_large() { i32::MAX } else { bytes }) } else { Value::Null },
                if number { tiny(ty.precision()) } else { Value::Null },
                if exact {
                    small(10)
                } else if number {
                    small(2)
                } else {
                    Value::Null
                },
                if exact { int(i32::from(ty.scale())) } else { Value::Null },
                if ty.is_temporal() {
                    small(if *ty == SqlType::Date { 0 } else { i16::from(ty.scale()) })
                } else {
                    Value::Null
                },
                if ty.is_character() { text(if ty.is_unicode() { "UNICODE" } else { "iso_1" }) } else { Value::Null },
                or_null(ty.collation(), |c| text(&c.name())),
            ]);
        }
    }
    Ok(rows)
}

fn schemata(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let catalog = lookup::database_name(cx, source.database);
    let txn = cx.st.txn();
    let mut rows: Vec<Row> = txn
        .schemas(source.database)
        .iter()
        .map(|s| row![text(&catalog), text(&s.name), text("dbo"), text("iso_1")])
        .collect();
    for name in ["guest", "INFORMATION_SCHEMA", "sys"] {
        rows.push(row![text(&catalog), text(name), text(name), text("iso_1")]);
    }
    Ok(rows)
}

fn table_constraints(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let catalog = lookup::database_name(cx, source.database);
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let schema = lookup::schema_name(cx, &object);
        for c in constraints_of(&object) {
            let kind = match c.kind {
                "PK" => "PRIMARY KEY",
                "UQ" => "UNIQUE",
                "C " => "CHECK",
                "F " => "FOREIGN KEY",
                _ => continue,
            };
            rows.push(row![
                text(&catalog),
                text(&schema),
                text(&c.name),
                text(&catalog),
                text(&schema),
                text(&object.name),
                text(kind),
                text("NO"),
                text("NO")
            ]);
        }
    }
    Ok(rows)
}

fn key_column_usage(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let catalog = lookup::database_name(cx, source.database);
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let schema = lookup::schema_name(cx, &object);
        let Some(table) = object.table() else { continue };
        let name_of = |id: i32| table.columns.iter().find(|c| c.id == id).map_or(Value::Null, |c| text(&c.name));
        let keys = table.indexes.iter().filter(|i| i.constraint.is_some());
        let keys = keys.map(|i| (&i.name, i.keys.iter().map(|k| k.column_id).collect::<Vec<_>>()));
        let foreign = table.foreign_keys.iter().map(|k| (&k.name, k.columns.clone()));
        for (name, columns) in keys.chain(foreign) {
            for (at, column) in columns.iter().enumerate() {
                rows.push(row![
                    text(&catalog),
                    text(&schema),
                    text(name),
                    text(&catalog),
                    text(&schema),
                    text(&object.name),
                    name_of(*column),
                    int(i32::try_from(at + 1).unwrap_or(0))
                ]);
            }
        }
    }
    Ok(rows)
}

pub(super) const VIEWS: &[View] = &[
    View {
        name: "tables",
        schema: "information_schema",
        columns: &[("TABLE_CATALOG", NAME), ("TABLE_SCHEMA", NAME), ("TABLE_NAME", NAME), ("TABLE_TYPE", VC10)],
        rows: tables,
    },
    View {
        name: "columns",
        schema: "information_schema",
        columns: &[
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("ORDINAL_POSITION", INT),
            ("COLUMN_DEFAULT", LONG),
            ("IS_NULLABLE", SqlType::varchar(3)),
            ("DATA_TYPE", NAME),
            ("CHARACTER_MAXIMUM_LENGTH", INT),
            ("CHARACTER_OCTET_LENGTH", INT),
            ("NUMERIC_PRECISION", TINY),
            ("NUMERIC_PRECISION_RADIX", SMALL),
            ("NUMERIC_SCALE", INT),
            ("DATETIME_PRECISION", SMALL),
            ("CHARACTER_SET_NAME", NAME),
            ("COLLATION_NAME", NAME),
        ],
        rows: columns,
    },
    View {
        name: "schemata",
        schema: "information_schema",
        columns: &[
            ("CATALOG_NAME", NAME),
            ("SCHEMA_NAME", NAME),
            ("SCHEMA_OWNER", NAME),
            ("DEFAULT_CHARACTER_SET_NAME", NAME),
        ],
        rows: schemata,
    },
    View {
        name: "table_constraints",
        schema: "information_schema",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("CONSTRAINT_TYPE", SqlType::varchar(11)),
            ("IS_DEFERRABLE", SqlType::varchar(2)),
            ("INITIALLY_DEFERRED", SqlType::varchar(2)),
        ],
        rows: table_constraints,
    },
    View {
        name: "key_column_usage",
        schema: "information_schema",
        columns: &[
            ("CONSTRAINT_CATALOG", NAME),
            ("CONSTRAINT_SCHEMA", NAME),
            ("CONSTRAINT_NAME", NAME),
            ("TABLE_CATALOG", NAME),
            ("TABLE_SCHEMA", NAME),
            ("TABLE_NAME", NAME),
            ("COLUMN_NAME", NAME),
            ("ORDINAL_POSITION", INT),
        ],
        rows: key_column_usage,
    },
];
