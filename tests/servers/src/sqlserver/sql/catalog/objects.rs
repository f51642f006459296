//! sys.objects, modules, constraints, schemas, extended properties.

use super::super::error::Result;
use super::super::module::module_of;
use super::super::plan::Row;
use super::super::state::Cx;
use super::{
    BIG, BIT, CODE2, DESC, INT, NAME, Source, TEXT, TIME, TINY, View, bit, int, or_null, row, text, time, tiny, visible,
};
use crate::sqlserver::store::CounterKey;
use crate::sqlserver::store::catalog::{Object, ObjectBody};
use crate::sqlserver::value::{SqlType, Value};

use super::constraints::{
    check_constraints, constraints_of, default_constraints, foreign_key_columns, foreign_keys, key_constraints,
};

fn type_desc(code: &str) -> &'static str {
    match code.trim() {
        "U" => "USER_TABLE",
        "V" => "VIEW",
        "P" => "SQL_STORED_PROCEDURE",
        "FN" => "SQL_SCALAR_FUNCTION",
        "IF" => "SQL_INLINE_TABLE_VALUED_FUNCTION",
        "TF" => "SQL_TABLE_VALUED_FUNCTION",
        "TR" => "SQL_TRIGGER",
        "SO" => "SEQUENCE_OBJECT",
        "SN" => "SYNONYM",
        "TT" => "TYPE_TABLE",
        "PK" => "PRIMARY_KEY_CONSTRAINT",
        "UQ" => "UNIQUE_CONSTRAINT",
        "C" => "CHECK_CONSTRAINT",
        "D" => "DEFAULT_CONSTRAINT",
        _ => "FOREIGN_KEY_CONSTRAINT",
    }
}

/// The first twelve columns of every object view.
pub(super) fn object_row(object: &Object, id: i32, name: &str, code: &str, parent: i32) -> Row {
    row![
        text(name),
        int(id),
        Value::Null,
        int(object.schema.0),
        int(parent),
        text(&format!("{code:2}")),
        text(type_desc(code)),
        time(object.create_date),
        time(object.modify_date),
        bit(false),
        bit(false),
        bit(false),
    ]
}

pub(super) const OBJECT_COLUMNS: &[(&str, SqlType)] = &[
    ("name", NAME),
    ("object_id", INT),
    ("principal_id", INT),
    ("schema_id", INT),
    ("parent_object_id", INT),
    ("type", CODE2),
    ("type_desc", DESC),
    ("create_date", TIME),
    ("modify_date", TIME),
    ("is_ms_shipped", BIT),
    ("is_published", BIT),
    ("is_schema_published", BIT),
];

fn objects(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let parent = object.parent().map_or(0, |p| p.0);
        rows.push(object_row(&object, object.id.0, &object.name, object.body.type_code(), parent));
        for c in constraints_of(&object) {
            rows.push(object_row(&object, c.id, &c.name, c.kind, object.id.0));
        }
    }
    Ok(rows)
}

fn of_kind(cx: &mut Cx<'_>, source: &Source, codes: &[&str], more: impl Fn(&mut Cx<'_>, &Object) -> Row) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        if codes.contains(&object.body.type_code()) {
            let parent = object.parent().map_or(0, |p| p.0);
            let mut row = object_row(&object, object.id.0, &object.name, object.body.type_code(), parent);
            row.extend(more(cx, &object));
            rows.push(row);
        }
    }
    rows
}

fn tables(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(of_kind(cx, source, &["U"], |_, object| {
        let max = object.table().map_or(0, |t| t.max_column_id);
        row![
            int(max),
            bit(false),
            tiny(0),
            text("TABLE"),
            bit(false),
            bit(false),
            tiny(0),
            text("NON_TEMPORAL_TABLE"),
            tiny(0),
            text("SCHEMA_AND_DATA"),
            bit(false),
            bit(false),
            bit(false)
        ]
    }))
}

fn views(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(of_kind(cx, source, &["V"], |_, _| row![bit(false), bit(false), bit(false)]))
}

fn procedures(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(of_kind(cx, source, &["P"], |_, _| row![bit(false), bit(false), bit(false)]))
}

fn synonyms(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(of_kind(cx, source, &["SN"], |_, object| match &object.body {
        ObjectBody::Synonym(target) => row![text(target)],
        _ => row![Value::Null],
    }))
}

fn sequences(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(of_kind(cx, source, &["SO"], |cx, object| {
        let ObjectBody::Sequence(s) = &object.body else { return Row::new() };
        let current = cx.st.engine.store.counter(CounterKey::Sequence(object.id)).unwrap_or(s.start);
        let big = |n: i128| Value::BigInt(i64::try_from(n).unwrap_or(i64::MAX));
        row![big(s.start), big(s.increment), big(s.minimum), big(s.maximum), bit(s.cycle), big(current), bit(false)]
    }))
}

fn triggers(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let ObjectBody::Trigger(t) = &object.body else { continue };
        rows.push(row![
            text(&object.name),
            int(object.id.0),
            tiny(1),
            text("OBJECT_OR_COLUMN"),
            int(t.parent.0),
            text("TR"),
            text("SQL_TRIGGER"),
            time(object.create_date),
            time(object.modify_date),
            bit(false),
            bit(t.disabled),
            bit(false),
            bit(t.instead_of),
        ]);
    }
    Ok(rows)
}

fn trigger_events(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let ObjectBody::Trigger(t) = &object.body else { continue };
        for (on, code, name) in [(t.on_insert, 1, "INSERT"), (t.on_update, 2, "UPDATE"), (t.on_delete, 3, "DELETE")] {
            if on {
                rows.push(row![
                    int(object.id.0),
                    int(code),
                    text(name),
                    bit(false),
                    bit(false),
                    Value::Null,
                    Value::Null,
                    bit(true)
                ]);
            }
        }
    }
    Ok(rows)
}

fn modules(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let Some(m) = module_of(&object) else { continue };
        let seen = super::super::permission::has_object(cx, &object, "VIEW DEFINITION");
        let definition = if seen { text(&m.definition) } else { Value::Null };
        rows.push(row![
            int(object.id.0),
            definition,
            bit(m.uses_ansi_nulls),
            bit(m.uses_quoted_identifier),
            bit(m.schema_bound),
            bit(false),
            bit(false),
            bit(false),
            or_null(m.execute_as, |p| int(p.0)),
            bit(false),
        ]);
    }
    Ok(rows)
}

fn schemas(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    let mut rows: Vec<Row> =
        txn.schemas(source.database).iter().map(|s| row![text(&s.name), int(s.id.0), int(s.owner.0)]).collect();
    rows.push(row![text("guest"), int(2), int(2)]);
    rows.push(row![text("INFORMATION_SCHEMA"), int(3), int(3)]);
    rows.push(row![text("sys"), int(4), int(4)]);
    Ok(rows)
}

fn extended_properties(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    let mut rows = Vec::new();
    for p in txn.extended_properties(source.database) {
        if p.key.class == 1 {
            let object = txn.object(crate::sqlserver::store::catalog::ObjectId(p.key.major_id));
            if object.is_some_and(|o| !super::super::permission::sees(cx, &o)) {
                continue;
            }
        }
        let desc = match p.key.class {
            0 => "DATABASE",
            1 => "OBJECT_OR_COLUMN",
            3 => "SCHEMA",
            4 => "DATABASE_PRINCIPAL",
            _ => "INDEX",
        };
        rows.push(row![
            tiny(p.key.class),
            text(desc),
            int(p.key.major_id),
            int(p.key.minor_id),
            text(&p.name),
            variant(&p.value)
        ]);
    }
    Ok(rows)
}

/// A stored property value as sql_variant.
fn variant(value: &Value) -> Value {
    match value {
        Value::Null | Value::Variant(_) => value.clone(),
        Value::String(t) => {
            let n = u16::try_from(t.len().clamp(1, 4000)).unwrap_or(4000);
            Value::Variant(std::sync::Arc::new((SqlType::nvarchar(n), value.clone())))
        }
        Value::Int(_) => Value::Variant(std::sync::Arc::new((SqlType::Int, value.clone()))),
        Value::BigInt(_) => Value::Variant(std::sync::Arc::new((SqlType::BigInt, value.clone()))),
        Value::Binary(b) => {
            let n = u16::try_from(b.len().clamp(1, 8000)).unwrap_or(8000);
            Value::Variant(std::sync::Arc::new((SqlType::varbinary(n), value.clone())))
        }
        other => other.clone(),
    }
}

macro_rules! columns {
    ($($extra:expr),* $(,)?) => {
        &[
            ("name", NAME), ("object_id", INT), ("principal_id", INT), ("schema_id", INT), ("parent_object_id", INT),
            ("type", CODE2), ("type_desc", DESC), ("create_date", TIME), ("modify_date", TIME), ("is_ms_shipped", BIT),
            ("is_published", BIT), ("is_schema_published", BIT), $($extra),*
        ]
    };
}

pub(super) const VIEWS: &[View] = &[
    View { name: "objects", schema: "sys", columns: OBJECT_COLUMNS, rows: objects },
    View { name: "all_objects", schema: "sys", columns: OBJECT_COLUMNS, rows: objects },
    View {
        name: "tables",
        schema: "sys",
        columns: columns![
            ("max_column_id_used", INT),
            ("lock_on_bulk_load", BIT),
            ("lock_escalation", TINY),
            ("lock_escalation_desc", DESC),
            ("is_filetable", BIT),
            ("is_memory_optimized", BIT),
            ("temporal_type", TINY),
            ("temporal_type_desc", DESC),
            ("durability", TINY),
            ("durability_desc", DESC),
            ("is_external", BIT),
            ("is_node", BIT),
            ("is_edge", BIT)
        ],
        rows: tables,
    },
    View {
        name: "views",
        schema: "sys",
        columns: columns![("is_replicated", BIT), ("has_opaque_metadata", BIT), ("with_check_option", BIT)],
        rows: views,
    },
    View {
        name: "procedures",
        schema: "sys",
        columns: columns![
            ("is_auto_executed", BIT),
            ("is_execution_replicated", BIT),
            ("is_repl_serializable_only", BIT)
        ],
        rows: procedures,
    },
    View {
        name: "synonyms",
        schema: "sys",
        columns: columns![("base_object_name", SqlType::nvarchar(1035))],
        rows: synonyms,
    },
    View {
        name: "sequences",
        schema: "sys",
        columns: columns![
            ("start_value", BIG),
            ("increment", BIG),
            ("minimum_value", BIG),
            ("maximum_value", BIG),
            ("is_cycling", BIT),
            ("current_value", BIG),
            ("is_exhausted", BIT)
        ],
        rows: sequences,
    },
    View {
        name: "triggers",
        schema: "sys",
        columns: &[
            ("name", NAME),
            ("object_id", INT),
            ("parent_class", TINY),
            ("parent_class_desc", DESC),
            ("parent_id", INT),
            ("type", CODE2),
            ("type_desc", DESC),
            ("create_date", TIME),
            ("modify_date", TIME),
            ("is_ms_shipped", BIT),
            ("is_disabled", BIT),
            ("is_not_for_replication", BIT),
            ("is_instead_of_trigger", BIT),
        ],
        rows: triggers,
    },
    View {
        name: "trigger_events",
        schema: "sys",
        columns: &[
            ("object_id", INT),
            ("type", INT),
            ("type_desc", DESC),
            ("is_first", BIT),
            ("is_last", BIT),
            ("event_group_type", INT),
            ("event_group_type_desc", DESC),
            ("is_trigger_event", BIT),
        ],
        rows: trigger_events,
    },
    View {
        name: "sql_modules",
        schema: "sys",
        columns: &[
            ("object_id", INT),
            ("definition", TEXT),
            ("uses_ansi_nulls", BIT),
            ("uses_quoted_identifier", BIT),
            ("is_schema_bound", BIT),
            ("uses_database_collation", BIT),
            ("is_recompiled", BIT),
            ("null_on_null_input", BIT),
            ("execute_as_principal_id", INT),
            ("uses_native_compilation", BIT),
        ],
        rows: modules,
    },
    View {
        name: "key_constraints",
        schema: "sys",
        columns: columns![("unique_index_id", INT), ("is_system_named", BIT), ("is_enforced", BIT)],
        rows: key_constraints,
    },
    View {
        name: "check_constraints",
        schema: "sys",
        columns: columns![
            ("is_disabled", BIT),
            ("is_not_for_replication", BIT),
            ("is_not_trusted", BIT),
            ("parent_column_id", INT),
            ("definition", TEXT),
            ("uses_database_collation", BIT),
            ("is_system_named", BIT)
        ],
        rows: check_constraints,
    },
    View {
        name: "default_constraints",
        schema: "sys",
        columns: columns![("parent_column_id", INT), ("definition", TEXT), ("is_system_named", BIT)],
        rows: default_constraints,
    },
    View {
        name: "foreign_keys",
        schema: "sys",
        columns: columns![
            ("referenced_object_id", INT),
            ("key_index_id", INT),
            ("is_disabled", BIT),
            ("is_not_for_replication", BIT),
            ("is_not_trusted", BIT),
            ("delete_referential_action", TINY),
            ("delete_referential_action_desc", DESC),
            ("update_referential_action", TINY),
            ("update_referential_action_desc", DESC),
            ("is_system_named", BIT)
        ],
        rows: foreign_keys,
    },
    View {
        name: "foreign_key_columns",
        schema: "sys",
        columns: &[
            ("constraint_object_id", INT),
            ("constraint_column_id", INT),
            ("parent_object_id", INT),
            ("parent_column_id", INT),
            ("referenced_object_id", INT),
            ("referenced_column_id", INT),
        ],
        rows: foreign_key_columns,
    },
    View {
        name: "schemas",
        schema: "sys",
        columns: &[("name", NAME), ("schema_id", INT), ("principal_id", INT)],
        rows: schemas,
    },
    View {
        name: "extended_properties",
        schema: "sys",
        columns: &[
            ("class", TINY),
            ("class_desc", DESC),
            ("major_id", INT),
            ("minor_id", INT),
            ("name", NAME),
            ("value", SqlType::SqlVariant),
        ],
        rows: extended_properties,
    },
];
