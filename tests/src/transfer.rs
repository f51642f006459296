//! The transfer that most tests make: its tables at both ends, their content, its document.

use crate::ends::{Source, Target};

/// Columns at the source.
pub const SOURCE_COLUMNS: &str = "id Int64, name Nullable(String), x Nullable(Float64), at DateTime64(6, 'UTC')";
/// Columns at the target.
pub const TARGET_COLUMNS: &str =
    "id bigint NOT NULL, name nvarchar(max) NULL, x float(53) NULL, at datetime2(6) NOT NULL";
const SOURCE_CONTENT: &str = "SELECT id, name, x, toString(at)";
const TARGET_CONTENT: &str = "SELECT id, name, x, CONVERT(varchar(26), at, 121)";

/// Creates `DATABASE.TABLE` of [`SOURCE_COLUMNS`] with `rows` rows, two of them each second from midnight of 2013-07-04,
/// and the empty target table `dbo.TABLE`.
pub fn create(source: &Source, target: &mut Target, database: &str, table: &str, engine: &str, rows: u64) {
    source.run(&format!("CREATE TABLE {database}.{table} ({SOURCE_COLUMNS}) ENGINE = {engine} ORDER BY id"));
    source.run(&format!(
        "INSERT INTO {database}.{table} SELECT number, if(number % 7 = 0, NULL, concat('n\u{e4}me ', toString(number))), \
         if(number % 5 = 0, NULL, number / 2), toDateTime64('2013-07-04 00:00:00.25', 6, 'UTC') + intDiv(number, 2) \
         FROM numbers({rows})"
    ));
    target.create(table, TARGET_COLUMNS);
}

/// What stands in the source table.
pub fn source_content(source: &Source, database: &str, table: &str) -> Vec<String> {
    source.rows(&format!("{SOURCE_CONTENT} FROM {database}.{table}"))
}

/// What stands in the target table.
pub fn target_content(target: &mut Target, table: &str) -> Vec<String> {
    target.rows(&format!("{TARGET_CONTENT} FROM dbo.[{table}]"))
}

/// A `NativeTransfer` document of [`SOURCE_COLUMNS`]; chunks have 40 rows.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Name of the resource.
    pub name: &'a str,
    /// Database and table of the source.
    pub source: (&'a str, &'a str),
    /// Table of the target, in `dbo`.
    pub target: &'a str,
    /// [`RAW`] or [`VISIBLE`].
    pub mode: &'a str,
    /// [`FULL_REFRESH`] or [`ONE_DAY`].
    pub strategy: &'a str,
}

impl Document<'_> {
    /// The document as YAML, with the Secrets `clickhouse-ro` and `mssql-loader`.
    pub fn text(&self) -> String {
        let Document { name, source: (database, table), target, mode, strategy } = self;
        let end = if strategy.contains("window") { "  interval: {end: \"2013-07-05T00:00:00Z\"}\n" } else { "" };
        format!(
            r#"apiVersion: transfer.dpone.io/v1alpha1
kind: NativeTransfer
metadata: {{name: {name}}}
spec:
  connections:
    source: {{secretRef: {{name: clickhouse-ro}}}}
    target: {{secretRef: {{name: mssql-loader}}}}
{end}  manifest:
    source:
      type: clickhouse
      table: {{schema: {database}, name: {table}}}
      options:
        native_transfer:
          {mode}
          wire: {{mode: typed_binary, binary_format: mssql_native}}
          execution:
            import_backend: mssql_sqlclient
            verification_backend: target_local
            chunking: {{mode: bounded_stream}}
            native_chunks: {{max_rows: 40, max_total_encoded_bytes: 67108864, stage_allocated_bytes_stop_threshold: 1073741824}}
    sink:
      type: mssql
      table: {{schema: dbo, name: {target}}}
      options:
        staging_schema: stage
        physical_design: {{columns: {{x: {{target_type: {{mssql: float(53)}}}}}}}}
      strategy: {strategy}
  journal: {{storageClassName: standard, size: 5Gi}}
  run: {{token: "1"}}
"#
        )
    }
}

/// Exactly the rows that are stored.
pub const RAW: &str = "source_snapshot: {mode: exact_raw_rows, replica_scope: single_server}";
/// Exactly the rows that are stored on the connected replica.
pub const RAW_REPLICA: &str = "source_snapshot: {mode: exact_raw_rows, replica_scope: connected_replica}";
/// The rows that a query sees.
pub const VISIBLE: &str = "source_snapshot: {mode: query_visible}";
/// Replaces the whole table.
pub const FULL_REFRESH: &str = "{mode: full_refresh}";
/// Replaces one day.
pub const ONE_DAY: &str = "{mode: partition_replace, atomicity: target_atomic, \
     window: {column: at, anchor: data_interval_end, lookback: P1D, timezone: UTC}}";
