//! Observations: identity, catalog, grants, the target table, space. None of them has an effect.

use contract::port::target::{TableName, TargetRequest};

use super::catalog::TABLES;
use super::ident::{bracket, literal, qualified};

/// One row: server, machine, instance and physical name, database, database create token, product version.
pub(crate) const IDENTITY: &str = "\
SELECT COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('ServerName')), N''),
  COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('MachineName')), N''),
  COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('InstanceName')), N''),
  COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('ComputerNamePhysicalNetBIOS')), N''),
  DB_NAME(),
  (SELECT CONVERT(nvarchar(30), d.create_date, 126) FROM sys.databases AS d WHERE d.database_id = DB_ID()),
  COALESCE(CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')), N'');
";

/// Rows `(table, column)` of every table of the state schema, in order.
pub(crate) fn catalog_columns(state_schema: &str) -> String {
    format!(
        "SELECT t.name, c.name FROM sys.tables AS t JOIN sys.columns AS c ON c.object_id = t.object_id\n\
         WHERE t.schema_id = SCHEMA_ID({}) ORDER BY t.name, c.column_id;\n",
        literal(state_schema),
    )
}

/// Rows `(trigger, disabled)` of the state schema.
pub(crate) fn catalog_triggers(state_schema: &str) -> String {
    format!(
        "SELECT g.name, CONVERT(int, g.is_disabled) FROM sys.triggers AS g JOIN sys.tables AS t ON t.object_id = g.parent_id\n\
         WHERE t.schema_id = SCHEMA_ID({}) ORDER BY g.name;\n",
        literal(state_schema),
    )
}

/// The right a person must grant, and the expression that is 1 when it is there.
pub(crate) fn grants(request: &TargetRequest) -> Vec<(String, String)> {
    let state = bracket(&request.state_schema);
    let mut grants = Vec::new();
    let mut object = |name: &str, right: &str| {
        grants.push((
            format!("{right} ON {name}"),
            format!("HAS_PERMS_BY_NAME({}, N'OBJECT', {})", literal(name), literal(right)),
        ));
    };
    for (table, _) in TABLES {
        let name = format!("{state}.[{table}]");
        object(&name, "SELECT");
        object(&name, "INSERT");
        if matches!(
            *table,
            "dpone_target_fence" | "dpone_load_operation" | "native_transfer_custody" | "native_transfer_run_fence"
        ) {
            object(&name, "UPDATE");
        }
    }
    let target = qualified(&request.table);
    object(&target, "SELECT");
    object(&target, "INSERT");
    object(&target, "DELETE");
    if request.truncates {
        object(&target, "ALTER");
    }
    grants.push((
        format!("CONTROL ON SCHEMA::{}", bracket(&request.staging_schema)),
        format!("HAS_PERMS_BY_NAME({}, N'SCHEMA', N'CONTROL')", literal(&bracket(&request.staging_schema))),
    ));
    for right in ["CREATE TABLE", "VIEW DATABASE STATE"] {
        grants.push((right.to_string(), format!("HAS_PERMS_BY_NAME(DB_NAME(), N'DATABASE', {})", literal(right))));
    }
    grants.push(("VIEW SERVER STATE".to_string(), "HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW SERVER STATE')".to_string()));
    grants
}

/// One row with one column per grant of [`grants`]: 1 = there; 0 or NULL = not.
pub(crate) fn grants_query(request: &TargetRequest) -> String {
    let columns: Vec<String> =
        grants(request).into_iter().map(|(_, expression)| format!("CONVERT(int, COALESCE({expression}, 0))")).collect();
    format!("SELECT {};\n", columns.join(",\n  "))
}

/// The registry row's binding of a table: zero or one row of hex.
pub(crate) fn registry(request: &TargetRequest) -> String {
    format!(
        "SELECT CONVERT(varchar(64), binding_id, 2) FROM {}.[dpone_target_identity] WHERE schema_name = {} AND table_name = {};\n",
        bracket(&request.state_schema),
        literal(&request.table.schema),
        literal(&request.table.table),
    )
}

/// Zero or one row: schema and table in catalog spelling, object id.
pub(crate) fn table(name: &TableName) -> String {
    format!(
        "SELECT s.name, t.name, t.object_id FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id\n\
         WHERE t.object_id = OBJECT_ID({}, N'U');\n",
        literal(&qualified(name)),
    )
}

/// Rows of the table's columns: name, base type, max_length, precision, scale, nullable, collation, and why it cannot be
/// written (empty text = it can).
pub(crate) fn table_columns(object_id: i32) -> String {
    format!(
        "SELECT c.name, b.name, CONVERT(int, c.max_length), CONVERT(int, c.precision), CONVERT(int, c.scale),\n  \
         CONVERT(int, c.is_nullable), COALESCE(c.collation_name, N''),\n  \
         CASE WHEN c.is_identity = 1 THEN N'identity' WHEN c.is_computed = 1 THEN N'computed'\n    \
         WHEN b.name IN (N'timestamp', N'rowversion') THEN N'rowversion' WHEN c.generated_always_type <> 0 THEN N'generated'\n    \
         ELSE N'' END\n\
         FROM sys.columns AS c JOIN sys.types AS b ON b.user_type_id = c.system_type_id\n\
         WHERE c.object_id = {object_id} ORDER BY c.column_id;\n"
    )
}

/// Rows of text that together describe the table for a reader of its data: columns, indexes, constraints, triggers. The
/// digest over them is the catalog fingerprint compared around publication.
pub(crate) fn fingerprint(object_id: i32) -> String {
    format!(
        "SELECT d.line FROM (\n\
         SELECT 1 AS part, c.column_id AS item, CONCAT(N'column|', c.name, N'|', b.name, N'|', c.max_length, N'|', c.precision, N'|', c.scale,\n  \
         N'|', c.is_nullable, N'|', c.collation_name, N'|', c.is_identity, N'|', c.is_computed, N'|', c.default_object_id) AS line\n\
         FROM sys.columns AS c JOIN sys.types AS b ON b.user_type_id = c.user_type_id WHERE c.object_id = {object_id}\n\
         UNION ALL SELECT 2, i.index_id, CONCAT(N'index|', i.name, N'|', i.type, N'|', i.is_unique, N'|', i.is_primary_key, N'|', i.is_disabled)\n\
         FROM sys.indexes AS i WHERE i.object_id = {object_id}\n\
         UNION ALL SELECT 3, x.index_id * 1000 + x.index_column_id, CONCAT(N'index_column|', x.index_id, N'|', x.column_id, N'|', x.key_ordinal, N'|', x.is_included_column)\n\
         FROM sys.index_columns AS x WHERE x.object_id = {object_id}\n\
         UNION ALL SELECT 4, k.object_id, CONCAT(N'check|', k.name, N'|', k.is_disabled, N'|', k.definition)\n\
         FROM sys.check_constraints AS k WHERE k.parent_object_id = {object_id}\n\
         UNION ALL SELECT 5, f.object_id, CONCAT(N'foreign_key|', f.name, N'|', f.referenced_object_id, N'|', f.is_disabled)\n\
         FROM sys.foreign_keys AS f WHERE f.parent_object_id = {object_id} OR f.referenced_object_id = {object_id}\n\
         UNION ALL SELECT 6, g.object_id, CONCAT(N'trigger|', g.name, N'|', g.is_disabled, N'|', g.is_instead_of_trigger)\n\
         FROM sys.triggers AS g WHERE g.parent_id = {object_id}\n\
         UNION ALL SELECT 7, o.object_id, CONCAT(N'object|', o.object_id, N'|', SCHEMA_NAME(o.schema_id), N'|', o.name)\n\
         FROM sys.objects AS o WHERE o.object_id = {object_id}\n\
         ) AS d ORDER BY d.part, d.item, d.line;\n"
    )
}

/// One row: number and reserved bytes of all tables named like stages.
pub(crate) const STAGES: &str = "\
SELECT (SELECT COUNT_BIG(*) FROM sys.tables AS t WHERE t.name LIKE N'dpone[_]native[_]%'),
  COALESCE((SELECT SUM(CONVERT(bigint, p.reserved_page_count)) FROM sys.dm_db_partition_stats AS p
    JOIN sys.tables AS t ON t.object_id = p.object_id WHERE t.name LIKE N'dpone[_]native[_]%'), 0) * 8192;
";

/// Rows of the database's files: type (0 data, 1 log), size, used (NULL for a log file), max size in pages (-1 =
/// unlimited, 0 = no growth), growth, volume, bytes available on the volume.
pub(crate) const FILES: &str = "\
SELECT CONVERT(int, f.type), CONVERT(bigint, f.size) * 8192, CONVERT(bigint, FILEPROPERTY(f.name, 'SpaceUsed')) * 8192,
  CONVERT(bigint, f.max_size), CONVERT(bigint, f.growth), v.volume_mount_point, CONVERT(bigint, v.available_bytes)
FROM sys.database_files AS f CROSS APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v
WHERE f.type IN (0, 1) ORDER BY f.type, f.file_id;
";

/// One row: size of the log and bytes of it in use.
pub(crate) const LOG: &str = "SELECT CONVERT(bigint, total_log_size_in_bytes), CONVERT(bigint, used_log_space_in_bytes) FROM sys.dm_db_log_space_usage;\n";
