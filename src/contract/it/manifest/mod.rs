//! Manifests as people write them: the examples of the documentation, and what is refused and how.

mod examples;
mod refusals;

/// A plan that passes, as a resource; `{}` marks where a test cuts into it.
pub(crate) const RESOURCE: &str = r#"
apiVersion: transfer.dpone.io/v1alpha1
kind: NativeTransfer
metadata: {name: flights}
spec:
  interval: {end: "2013-07-05T00:00:00Z"}
  manifest:
    source:
      type: clickhouse
      table: {schema: air, name: flights}
      options:
        native_transfer:
          wire: {mode: typed_binary, binary_format: mssql_native}
          execution:
            import_backend: mssql_sqlclient
            verification_backend: target_local
            chunking: {mode: bounded_stream}
            native_chunks: {max_total_encoded_bytes: 1073741824, stage_allocated_bytes_stop_threshold: 10737418240}
    sink:
      type: mssql
      table: {schema: dbo, name: flights}
      options: {lineage: {preset: "off"}}
      strategy:
        mode: partition_replace
        atomicity: target_atomic
        window: {column: time_hour, anchor: data_interval_end, lookback: P1D}
"#;
