//! Partitions, allocation units, files.

use super::super::error::Result;
use super::super::lookup;
use super::super::plan::Row;
use super::super::state::Cx;
use super::{BIG, BIT, DESC, INT, NAME, SMALL, Source, TINY, View, big, bit, int, row, small, text, tiny, visible};
use crate::sqlserver::store::Allocation;
use crate::sqlserver::store::catalog::DatabaseId;
use crate::sqlserver::value::{SqlType, Value};

/// Bytes free where the data folder is.
pub(super) fn free_bytes(cx: &Cx<'_>) -> (u64, u64) {
    super::super::engine::volume_bytes(&cx.st.engine)
}

/// Used pages of all tables of a database.
pub(crate) fn used_pages(cx: &mut Cx<'_>, database: DatabaseId) -> u64 {
    let txn = cx.st.txn();
    let tables = txn.objects(database);
    tables.iter().filter(|o| o.table().is_some()).filter_map(|o| txn.allocation(o.id)).map(|a| a.reserved_pages).sum()
}

/// Heap and index partitions of the tables in sight.
fn each_partition(
    cx: &mut Cx<'_>,
    source: &Source,
    mut make: impl FnMut(i32, i32, u64, Allocation) -> Row,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for object in visible(cx, source.database) {
        let Some(table) = object.table() else { continue };
        let txn = cx.st.txn();
        let allocation = txn.allocation(object.id).unwrap_or_default();
        let mut ids: Vec<i32> = table.indexes.iter().map(|i| i.id).collect();
        if !ids.contains(&1) {
            ids.insert(0, 0);
        }
        ids.sort_unstable();
        for id in ids {
            // The rows live in the heap or the clustered index; other indexes are counted without pages of their own.
            let own = if id <= 1 { allocation } else { Allocation { rows: allocation.rows, ..Allocation::default() } };
            let partition = u64::from(object.id.0.cast_unsigned()) * 65_536 + u64::try_from(id).unwrap_or(0);
            rows.push(make(object.id.0, id, partition, own));
        }
    }
    rows
}

fn partitions(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(each_partition(cx, source, |object, index, partition, a| {
        row![
            big(partition),
            int(object),
            int(index),
            int(1),
            big(partition),
            big(a.rows),
            small(0),
            tiny(0),
            text("NONE")
        ]
    }))
}

fn allocation_units(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(each_partition(cx, source, |_, _, partition, a| {
        row![
            big(partition),
            tiny(1),
            text("IN_ROW_DATA"),
            big(partition),
            int(1),
            big(a.reserved_pages),
            big(a.used_pages),
            big(a.data_pages)
        ]
    }))
}

fn partition_stats(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    if !super::super::permission::has(
        cx,
        super::super::permission::Target::Database(source.database),
        "VIEW DATABASE STATE",
    ) {
        let name = lookup::database_name(cx, source.database);
        return Err(super::super::error::new(
            262,
            14,
            1,
            &format!("VIEW DATABASE STATE permission denied in database '{name}'."),
        ));
    }
    Ok(each_partition(cx, source, |object, index, partition, a| {
        row![
            big(partition),
            int(object),
            int(index),
            int(1),
            big(a.data_pages),
            big(a.used_pages),
            big(a.reserved_pages),
            big(0),
            big(0),
            big(0),
            big(0),
            big(a.used_pages),
            big(a.reserved_pages),
            big(a.rows),
        ]
    }))
}

/// Data and log file of a database: id, type, name, pages.
pub(super) fn files_of(cx: &mut Cx<'_>, database: DatabaseId) -> Vec<(i32, u8, String, String, u64)> {
    let name = lookup::database_name(cx, database);
    let folder = super::super::engine::folder(&cx.st.engine);
    let data = used_pages(cx, database).max(1024);
    let log = (cx.st.engine.store.log_bytes() / 8192).max(1024);
    vec![
        (1, 0, name.clone(), format!("{folder}/{name}.mdf"), data),
        (2, 1, format!("{name}_log"), format!("{folder}/{name}_log.ldf"), log),
    ]
}

fn file_row(file: &(i32, u8, String, String, u64), database: Option<i32>) -> Row {
    let (id, kind, name, path, pages) = file;
    let mut row = Row::new();
    if let Some(database) = database {
        row.push(int(database));
    }
    row.extend(row![
        int(*id),
        Value::Null,
        tiny(*kind),
        text(if *kind == 0 { "ROWS" } else { "LOG" }),
        int(i32::from(*kind == 0)),
        text(name),
        text(path),
        tiny(0),
        text("ONLINE"),
        int(i32::try_from(*pages).unwrap_or(i32::MAX)),
        int(-1),
        int(8192),
        bit(false),
        bit(false),
        bit(false),
        bit(false),
    ]);
    row
}

fn database_files(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(files_of(cx, source.database).iter().map(|f| file_row(f, None)).collect())
}

fn master_files(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    if !super::super::permission::has_server(cx, "VIEW ANY DEFINITION")
        && !super::super::permission::has_server(cx, "ALTER ANY DATABASE")
    {
        return Ok(Vec::new());
    }
    let txn = cx.st.txn();
    let mut rows = Vec::new();
    for database in txn.databases() {
        rows.extend(files_of(cx, database.id).iter().map(|f| file_row(f, Some(database.id.0))));
    }
    Ok(rows)
}

fn log_space(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    super::super::permission::check_database(cx, source.database, "VIEW DATABASE STATE")?;
    let files = files_of(cx, source.database);
    let total = files[1].4 * 8192;
    let used = cx.st.engine.store.log_bytes().min(total);
    #[allow(clippy::cast_precision_loss, reason = "a percentage")]
    let percent = used as f32 / total as f32 * 100.0;
    Ok(vec![row![
        small(i16::try_from(source.database.0).unwrap_or(0)),
        big(total),
        big(used),
        Value::Real(percent),
        big(used)
    ]])
}

fn file_space(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    super::super::permission::check_database(cx, source.database, "VIEW DATABASE STATE")?;
    let files = files_of(cx, source.database);
    let used = used_pages(cx, source.database);
    let total = files[0].4;
    Ok(vec![row![
        small(i16::try_from(source.database.0).unwrap_or(0)),
        small(1),
        small(1),
        big(total),
        big(used),
        big(total.saturating_sub(used)),
    ]])
}

const FILE_COLUMNS: &[(&str, SqlType)] = &[
    ("file_id", INT),
    ("file_guid", SqlType::UniqueIdentifier),
    ("type", TINY),
    ("type_desc", DESC),
    ("data_space_id", INT),
    ("name", NAME),
    ("physical_name", SqlType::nvarchar(260)),
    ("state", TINY),
    ("state_desc", DESC),
    ("size", INT),
    ("max_size", INT),
    ("growth", INT),
    ("is_media_read_only", BIT),
    ("is_read_only", BIT),
    ("is_sparse", BIT),
    ("is_percent_growth", BIT),
];

pub(super) const VIEWS: &[View] = &[
    View {
        name: "partitions",
        schema: "sys",
        columns: &[
            ("partition_id", BIG),
            ("object_id", INT),
            ("index_id", INT),
            ("partition_number", INT),
            ("hobt_id", BIG),
            ("rows", BIG),
            ("filestream_filegroup_id", SMALL),
            ("data_compression", TINY),
            ("data_compression_desc", DESC),
        ],
        rows: partitions,
    },
    View {
        name: "allocation_units",
        schema: "sys",
        columns: &[
            ("allocation_unit_id", BIG),
            ("type", TINY),
            ("type_desc", DESC),
            ("container_id", BIG),
            ("data_space_id", INT),
            ("total_pages", BIG),
            ("used_pages", BIG),
            ("data_pages", BIG),
        ],
        rows: allocation_units,
    },
    View {
        name: "dm_db_partition_stats",
        schema: "sys",
        columns: &[
            ("partition_id", BIG),
            ("object_id", INT),
            ("index_id", INT),
            ("partition_number", INT),
            ("in_row_data_page_count", BIG),
            ("in_row_used_page_count", BIG),
            ("in_row_reserved_page_count", BIG),
            ("lob_used_page_count", BIG),
            ("lob_reserved_page_count", BIG),
            ("row_overflow_used_page_count", BIG),
            ("row_overflow_reserved_page_count", BIG),
            ("used_page_count", BIG),
            ("reserved_page_count", BIG),
            ("row_count", BIG),
        ],
        rows: partition_stats,
    },
    View { name: "database_files", schema: "sys", columns: FILE_COLUMNS, rows: database_files },
    View {
        name: "master_files",
        schema: "sys",
        columns: &[
            ("database_id", INT),
            ("file_id", INT),
            ("file_guid", SqlType::UniqueIdentifier),
            ("type", TINY),
            ("type_desc", DESC),
            ("data_space_id", INT),
            ("name", NAME),
            ("physical_name", SqlType::nvarchar(260)),
            ("state", TINY),
            ("state_desc", DESC),
            ("size", INT),
            ("max_size", INT),
            ("growth", INT),
            ("is_media_read_only", BIT),
            ("is_read_only", BIT),
            ("is_sparse", BIT),
            ("is_percent_growth", BIT),
        ],
        rows: master_files,
    },
    View {
        name: "dm_db_log_space_usage",
        schema: "sys",
        columns: &[
            ("database_id", SMALL),
            ("total_log_size_in_bytes", BIG),
            ("used_log_space_in_bytes", BIG),
            ("used_log_space_in_percent", SqlType::Real),
            ("log_space_in_bytes_since_last_backup", BIG),
        ],
        rows: log_space,
    },
    View {
        name: "dm_db_file_space_usage",
        schema: "sys",
        columns: &[
            ("database_id", SMALL),
            ("file_id", SMALL),
            ("filegroup_id", SMALL),
            ("total_page_count", BIG),
            ("allocated_extent_page_count", BIG),
            ("unallocated_extent_page_count", BIG),
        ],
        rows: file_space,
    },
];
