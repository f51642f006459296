//! Columns, types, indexes, parameters.

use super::super::bind::Binder;
use super::super::error::Result;
use super::super::plan::Row;
use super::super::property::TYPES;
use super::super::state::Cx;
use super::super::stmt::Kind;
use super::{
    BIT, DESC, INT, NAME, SMALL, Source, TEXT, TINY, View, bit, int, or_null, row, small, text, tiny, visible,
};
use crate::sqlserver::store::CounterKey;
use crate::sqlserver::store::catalog::{Column, Object, ObjectBody};
use crate::sqlserver::value::{SqlType, Value};

/// system_type_id and user_type_id of a type.
pub(super) fn type_ids(ty: &SqlType, declared: Option<&str>) -> (u8, i32) {
    let name = match declared {
        Some("numeric") => "numeric",
        Some("sysname") => "sysname",
        _ => ty.name(),
    };
    TYPES.iter().find(|t| t.0 == name).map_or((0, 0), |t| (t.1, t.2))
}

/// The columns that sys.columns shows of one column.
fn column_row(object: i32, c: &Column, id: i32) -> Row {
    let (system, user) = type_ids(&c.ty, c.declared_type.as_deref());
    let default = c.default.as_ref().map_or(0, |d| d.object_id.0);
    row![
        int(object),
        text(&c.name),
        int(id),
        tiny(system),
        int(user),
        small(c.ty.max_length_bytes()),
        tiny(c.ty.precision()),
        tiny(c.ty.scale()),
        or_null(c.ty.collation(), |c| text(&c.name())),
        bit(c.nullable),
        bit(true),
        bit(c.rowguidcol),
        bit(c.identity.is_some()),
        bit(c.computed.is_some()),
        bit(false),
        bit(false),
        bit(false),
        bit(false),
        bit(false),
        bit(false),
        int(default),
        int(0),
        bit(false),
        bit(false),
        tiny(0),
        text("NOT_APPLICABLE"),
        bit(false),
        bit(false),
    ]
}

/// A column of a view or system view.
fn plain_column(name: &str, ty: SqlType, nullable: bool, id: i32) -> Column {
    Column {
        id,
        name: name.to_owned(),
        ty,
        declared_type: None,
        nullable,
        default: None,
        identity: None,
        computed: None,
        rowguidcol: false,
    }
}

/// Columns of a view by binding its query; a view that no longer binds shows none.
fn view_columns(cx: &mut Cx<'_>, object: &std::sync::Arc<Object>) -> Vec<Column> {
    let plan = Binder::new(cx).bind_view(object);
    let Ok(plan) = plan else { return Vec::new() };
    plan.cols
        .iter()
        .enumerate()
        .map(|(at, c)| plain_column(&c.name, c.ty, c.nullable, i32::try_from(at + 1).unwrap_or(0)))
        .collect()
}

/// All columns of tables and views: object and column.
pub(super) fn all_columns_of(cx: &mut Cx<'_>, source: &Source) -> Vec<(std::sync::Arc<Object>, Vec<Column>)> {
    let mut found = Vec::new();
    for object in visible(cx, source.database) {
        let columns = match &object.body {
            ObjectBody::Table(t) => t.columns.clone(),
            ObjectBody::View(_) => view_columns(cx, &object),
            _ => continue,
        };
        found.push((object, columns));
    }
    found
}

fn columns(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (object, columns) in all_columns_of(cx, source) {
        rows.extend(columns.iter().map(|c| column_row(object.id.0, c, c.id)));
    }
    Ok(rows)
}

fn all_columns(cx: &mut Cx<'_>, source: &Source, args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = columns(cx, source, args)?;
    for (object, position, name, ty) in super::system_columns() {
        let id = i32::try_from(position).unwrap_or(0);
        rows.push(column_row(object, &plain_column(name, ty, true, id), id));
    }
    Ok(rows)
}

fn types(_cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let collation = crate::sqlserver::value::Collation::DEFAULT;
    for (name, system, user) in TYPES {
        let facets: &[i64] = match *name {
            "char" | "varchar" | "binary" | "varbinary" => &[8000],
            "nchar" | "nvarchar" => &[4000],
            "decimal" | "numeric" => &[38, 38],
            _ => &[],
        };
        let found = SqlType::from_name(name, facets, 1, collation).ok();
        let character = found.is_some_and(|t| t.is_character());
        rows.push(row![
            text(name),
            tiny(*system),
            int(*user),
            int(4),
            Value::Null,
            small(found.map_or(-1, |t| t.max_length_bytes())),
            tiny(found.map_or(0, |t| t.precision())),
            tiny(found.map_or(0, |t| t.scale())),
            if character { text(&collation.name()) } else { Value::Null },
            bit(*name != "sysname" && *name != "timestamp"),
            bit(false),
            bit(false),
            int(0),
            int(0),
            bit(false),
        ]);
    }
    Ok(rows)
}

fn indexes(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let Some(table) = object.table() else { continue };
        let tail =
            |unique: bool, primary: bool, constraint: bool, ignore: bool, disabled: bool, filter: Option<&str>| {
                row![
                    bit(unique),
                    int(1),
                    bit(ignore),
                    bit(primary),
                    bit(constraint),
                    tiny(0),
                    bit(false),
                    bit(disabled),
                    bit(false),
                    bit(true),
                    bit(true),
                    bit(filter.is_some()),
                    or_null(filter, text),
                    bit(false),
                ]
            };
        if table.clustered_index().is_none() {
            let mut heap = row![int(object.id.0), Value::Null, int(0), tiny(0), text("HEAP")];
            heap.extend(tail(false, false, false, false, false, None));
            rows.push(heap);
        }
        let mut sorted: Vec<_> = table.indexes.iter().collect();
        sorted.sort_by_key(|i| i.id);
        for index in sorted {
            let (code, desc) = if index.id == 1 { (1, "CLUSTERED") } else { (2, "NONCLUSTERED") };
            let primary = index.constraint.as_ref().is_some_and(|c| c.primary);
            let unique_constraint = index.constraint.as_ref().is_some_and(|c| !c.primary);
            let mut row = row![int(object.id.0), text(&index.name), int(index.id), tiny(code), text(desc)];
            row.extend(tail(
                index.unique,
                primary,
                unique_constraint,
                index.ignore_dup_key,
                index.disabled,
                index.filter.as_deref(),
            ));
            rows.push(row);
        }
    }
    Ok(rows)
}

fn index_columns(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        for index in object.table().map_or(&[][..], |t| &t.indexes) {
            let mut position = 0;
            for (at, key) in index.keys.iter().enumerate() {
                position += 1;
                let ordinal = u8::try_from(at + 1).unwrap_or(u8::MAX);
                rows.push(row![
                    int(object.id.0),
                    int(index.id),
                    int(position),
                    int(key.column_id),
                    tiny(ordinal),
                    tiny(0),
                    bit(key.descending),
                    bit(false),
                    tiny(0)
                ]);
            }
            for column in &index.included {
                position += 1;
                rows.push(row![
                    int(object.id.0),
                    int(index.id),
                    int(position),
                    int(*column),
                    tiny(0),
                    tiny(0),
                    bit(false),
                    bit(true),
                    tiny(0)
                ]);
            }
        }
    }
    Ok(rows)
}

fn identity_columns(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        for c in object.table().map_or(&[][..], |t| &t.columns) {
            let Some(identity) = c.identity else { continue };
            let last = cx.st.engine.store.counter(CounterKey::Identity(object.id));
            let big = |n: i128| Value::BigInt(i64::try_from(n).unwrap_or(i64::MAX));
            let mut row = column_row(object.id.0, c, c.id);
            row.extend(row![big(identity.seed), big(identity.increment), or_null(last, big), bit(false)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn computed_columns(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        for c in object.table().map_or(&[][..], |t| &t.columns) {
            let Some(computed) = &c.computed else { continue };
            let mut row = column_row(object.id.0, c, c.id);
            row.extend(row![text(&computed.definition), bit(true), bit(computed.persisted)]);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn parameters(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        if !matches!(object.body.type_code(), "P" | "FN" | "IF" | "TF") {
            continue;
        }
        let Ok(statement) = super::super::module::parsed(cx, &object) else { continue };
        let Kind::CreateModule(module) = &statement.kind else { continue };
        for (at, param) in module.params.iter().enumerate() {
            let Ok((ty, _)) = super::super::types::resolve(cx, object.database, &param.ty, 1) else { continue };
            let (system, user) = type_ids(&ty, None);
            rows.push(row![
                int(object.id.0),
                text(&param.name),
                int(i32::try_from(at + 1).unwrap_or(0)),
                tiny(system),
                int(user),
                small(ty.max_length_bytes()),
                tiny(ty.precision()),
                tiny(ty.scale()),
                bit(param.output),
                bit(false),
                bit(false),
                bit(param.default.is_some()),
                Value::Null,
                bit(false),
                bit(true),
            ]);
        }
    }
    Ok(rows)
}

const COLUMNS: &[(&str, SqlType)] = &[
    ("object_id", INT),
    ("name", NAME),
    ("column_id", INT),
    ("system_type_id", TINY),
    ("user_type_id", INT),
    ("max_length", SMALL),
    ("precision", TINY),
    ("scale", TINY),
    ("collation_name", NAME),
    ("is_nullable", BIT),
    ("is_ansi_padded", BIT),
    ("is_rowguidcol", BIT),
    ("is_identity", BIT),
    ("is_computed", BIT),
    ("is_filestream", BIT),
    ("is_replicated", BIT),
    ("is_non_sql_subscribed", BIT),
    ("is_merge_published", BIT),
    ("is_dts_replicated", BIT),
    ("is_xml_document", BIT),
    ("default_object_id", INT),
    ("rule_object_id", INT),
    ("is_sparse", BIT),
    ("is_column_set", BIT),
    ("generated_always_type", TINY),
    ("generated_always_type_desc", DESC),
    ("is_hidden", BIT),
    ("is_masked", BIT),
];

macro_rules! column_columns {
    ($($extra:expr),*) => {
        &[
            ("object_id", INT), ("name", NAME), ("column_id", INT), ("system_type_id", TINY), ("user_type_id", INT),
            ("max_length", SMALL), ("precision", TINY), ("scale", TINY), ("collation_name", NAME), ("is_nullable", BIT),
            ("is_ansi_padded", BIT), ("is_rowguidcol", BIT), ("is_identity", BIT), ("is_computed", BIT), ("is_filestream", BIT),
            ("is_replicated", BIT), ("is_non_sql_subscribed", BIT), ("is_merge_published", BIT), ("is_dts_replicated", BIT),
            ("is_xml_document", BIT), ("default_object_id", INT), ("rule_object_id", INT), ("is_sparse", BIT),
            ("is_column_set", BIT), ("generated_always_type", TINY), ("generated_always_type_desc", DESC), ("is_hidden", BIT),
            ("is_masked", BIT), $($extra),*
        ]
    };
}

pub(super) const VIEWS: &[View] = &[
    View { name: "columns", schema: "sys", columns: COLUMNS, rows: columns },
    View { name: "all_columns", schema: "sys", columns: COLUMNS, rows: all_columns },
    View {
        name: "types",
        schema: "sys",
        columns: &[
            ("name", NAME),
            ("system_type_id", TINY),
            ("user_type_id", INT),
            ("schema_id", INT),
            ("principal_id", INT),
            ("max_length", SMALL),
            ("precision", TINY),
            ("scale", TINY),
            ("collation_name", NAME),
            ("is_nullable", BIT),
            ("is_user_defined", BIT),
            ("is_assembly_type", BIT),
            ("default_object_id", INT),
            ("rule_object_id", INT),
            ("is_table_type", BIT),
        ],
        rows: types,
    },
    View {
        name: "indexes",
        schema: "sys",
        columns: &[
            ("object_id", INT),
            ("name", NAME),
            ("index_id", INT),
            ("type", TINY),
            ("type_desc", DESC),
            ("is_unique", BIT),
            ("data_space_id", INT),
            ("ignore_dup_key", BIT),
            ("is_primary_key", BIT),
            ("is_unique_constraint", BIT),
            ("fill_factor", TINY),
            ("is_padded", BIT),
            ("is_disabled", BIT),
            ("is_hypothetical", BIT),
            ("allow_row_locks", BIT),
            ("allow_page_locks", BIT),
            ("has_filter", BIT),
            ("filter_definition", TEXT),
            ("auto_created", BIT),
        ],
        rows: indexes,
    },
    View {
        name: "index_columns",
        schema: "sys",
        columns: &[
            ("object_id", INT),
            ("index_id", INT),
            ("index_column_id", INT),
            ("column_id", INT),
            ("key_ordinal", TINY),
            ("partition_ordinal", TINY),
            ("is_descending_key", BIT),
            ("is_included_column", BIT),
            ("column_store_order_ordinal", TINY),
        ],
        rows: index_columns,
    },
    View {
        name: "identity_columns",
        schema: "sys",
        columns: column_columns![
            ("seed_value", SqlType::BigInt),
            ("increment_value", SqlType::BigInt),
            ("last_value", SqlType::BigInt),
            ("is_not_for_replication", BIT)
        ],
        rows: identity_columns,
    },
    View {
        name: "computed_columns",
        schema: "sys",
        columns: column_columns![("definition", TEXT), ("uses_database_collation", BIT), ("is_persisted", BIT)],
        rows: computed_columns,
    },
    View {
        name: "parameters",
        schema: "sys",
        columns: &[
            ("object_id", INT),
            ("name", NAME),
            ("parameter_id", INT),
            ("system_type_id", TINY),
            ("user_type_id", INT),
            ("max_length", SMALL),
            ("precision", TINY),
            ("scale", TINY),
            ("is_output", BIT),
            ("is_cursor_ref", BIT),
            ("is_xml_document", BIT),
            ("has_default_value", BIT),
            ("default_value", SqlType::SqlVariant),
            ("is_readonly", BIT),
            ("is_nullable", BIT),
        ],
        rows: parameters,
    },
];
