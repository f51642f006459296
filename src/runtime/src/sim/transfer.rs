//! What the simulation moves: a plan, the rows of the source in blocks, and the target before and after.

use contract::block::{Block, Column, Values};
use contract::digest::Digest;
use contract::encode::{EncodedRows, RowEncoder};
use contract::layout::WireLayout;
use contract::manifest::{self, Plan};
use contract::port::source::ReplicaScope;
use contract::port::target::TargetColumn;
use contract::raw::profile::RawProfile;
use contract::raw::settings::profile_settings;
use contract::source_type::SourceType;

use super::database::Row;

/// 2013-07-04T12:00:00Z, inside the window of the partition.
const INSIDE_MICROS: i64 = 1_372_939_200_000_000;

/// A transfer and its surroundings.
#[derive(Debug, Clone)]
pub(super) struct Transfer {
    pub(super) plan: Plan,
    pub(super) blocks: Vec<Block>,
    /// Rows that the source counts at its end, if it lies.
    pub(super) counted: Option<u64>,
    /// The target's content before.
    pub(super) old: Vec<Row>,
    /// The target's content after a publication.
    pub(super) new: Vec<Row>,
}

/// How the target is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaces {
    All,
    Window,
}

/// How the source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Visible,
    Raw,
}

fn manifest_text(replaces: Replaces, reads: Reads, bounds: &str) -> String {
    let strategy = match replaces {
        Replaces::All => "{mode: full_refresh}",
        Replaces::Window => {
            "{mode: partition_replace, atomicity: target_atomic, window: {column: at, anchor: data_interval_end, \
             lookback: P1D, timezone: UTC}}"
        }
    };
    let interval = match replaces {
        Replaces::All => "",
        Replaces::Window => "\n  interval: {end: \"2013-07-05T00:00:00Z\"}",
    };
    let snapshot = match reads {
        Reads::Visible => "{mode: query_visible}",
        Reads::Raw => "{mode: exact_raw_rows, replica_scope: single_server}",
    };
    format!(
        "apiVersion: transfer.dpone.io/v1alpha1
kind: NativeTransfer
metadata: {{name: sim}}
spec:{interval}
  manifest:
    source:
      type: clickhouse
      table: {{schema: air, name: flights}}
      options:
        native_transfer:
          source_snapshot: {snapshot}
          wire: {{mode: typed_binary, binary_format: mssql_native}}
          execution:
            import_backend: mssql_sqlclient
            verification_backend: target_local
            chunking: {{mode: bounded_stream, parallelism: 2}}
            native_chunks: {{max_total_encoded_bytes: 1048576, stage_allocated_bytes_stop_threshold: 1048576, {bounds}}}
    sink:
      type: mssql
      table: {{schema: dbo, name: flights}}
      strategy: {strategy}
"
    )
}

impl Transfer {
    /// A transfer whose source has blocks of these many rows; a chunk takes two.
    pub(super) fn new(replaces: Replaces, reads: Reads, blocks: &[usize]) -> Self {
        Self::bounded(replaces, reads, blocks, "max_rows: 2, max_bytes: 4096, max_row_bytes: 4096, max_pending: 1")
    }

    /// A transfer with limits of its own.
    pub(super) fn bounded(replaces: Replaces, reads: Reads, blocks: &[usize], bounds: &str) -> Self {
        let plan = manifest::parse(&manifest_text(replaces, reads, bounds), None, None).unwrap();
        let mut next = 0;
        let blocks: Vec<Block> = blocks
            .iter()
            .map(|rows| {
                let first = next;
                next += i64::try_from(*rows).unwrap();
                block(first..next)
            })
            .collect();
        let foreign = |id: i64, in_window: bool| Row { bytes: encode(&block(id..id + 1))[0].clone(), in_window };
        let old = vec![foreign(1001, true), foreign(1002, true), foreign(1003, false)];
        let mut new: Vec<Row> = if replaces == Replaces::Window {
            old.iter().filter(|row| !row.in_window).cloned().collect()
        } else {
            Vec::new()
        };
        new.extend(blocks.iter().flat_map(encode).map(|bytes| Row { bytes, in_window: true }));
        Transfer { plan, blocks, counted: None, old, new: sorted(new) }
    }

    /// Rows that the source sends.
    pub(super) fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.rows as u64).sum()
    }
}

/// Rows in an order of their own: a multiset as a list.
pub(super) fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// Names and types at both ends: catalog type, header type, SQL type.
pub(super) const COLUMNS: [(&str, &str, &str, &str); 2] =
    [("id", "Int64", "Int64", "bigint"), ("at", "DateTime64(6, 'UTC')", "Int64", "datetime2(6)")];

fn block(ids: std::ops::Range<i64>) -> Block {
    let rows = ids.clone().count();
    let column = |values: Vec<i64>| Column { values: Values::Int64(values), nulls: None };
    // Every second row twice: a multiset, not a set.
    let columns =
        vec![column(ids.clone().map(|id| id / 2).collect()), column(ids.map(|id| INSIDE_MICROS + id / 2).collect())];
    Block { rows, columns }
}

/// The native bytes of each row.
fn encode(block: &Block) -> Vec<Vec<u8>> {
    let layout = WireLayout::new(COLUMNS.map(|(name, _, _, sql)| (name, sql))).unwrap();
    let sources = COLUMNS.iter().map(|(_, source, ..)| SourceType::parse(source).unwrap()).collect();
    let encoder = RowEncoder::new(layout, sources, 4096).unwrap();
    let mut rows = EncodedRows::default();
    encoder.encode(block, 0..block.rows, &mut rows).unwrap();
    split(&rows.bytes, block.rows)
}

/// Rows of one length, one after the other.
pub(super) fn split(bytes: &[u8], rows: usize) -> Vec<Vec<u8>> {
    if rows == 0 {
        return Vec::new();
    }
    assert_eq!(bytes.len() % rows, 0, "rows of fixed length");
    bytes.chunks_exact(bytes.len() / rows).map(<[u8]>::to_vec).collect()
}

/// The target's columns as its catalog shows them.
pub(super) fn target_columns() -> Vec<TargetColumn> {
    let column = |(name, _, _, sql): &(&str, &str, &str, &str)| TargetColumn {
        name: (*name).to_owned(),
        type_text: (*sql).to_owned(),
        nullable: false,
        collation: None,
        not_writable: None,
    };
    COLUMNS.iter().map(column).collect()
}

/// A raw profile of the source.
pub(super) fn profile(window: Option<[String; 3]>) -> RawProfile {
    let digest = |text: &str| Digest::of(text.as_bytes());
    RawProfile {
        engine_signature: format!("ReplacingMergeTree:sha256:{}", digest("engine")),
        relation_uuid: RELATION_UUID.to_owned(),
        database_engine: "Atomic".to_owned(),
        ordered_schema: COLUMNS.iter().map(|(name, text, ..)| [name, text, ""].map(|t| (*t).to_owned())).collect(),
        partition_key_sha256: digest("partition"),
        sorting_key_sha256: digest("sorting"),
        primary_key_sha256: digest("primary"),
        window,
        read_settings: profile_settings(21_600),
        server_revision: "54500".to_owned(),
        endpoint_authority_sha256: digest("endpoint"),
        replica_scope: ReplicaScope::SingleServer,
        replica_identity_sha256: None,
        principal_authority_sha256: digest("principal"),
        row_policy_sha256: digest("policy"),
        policy_filtered: false,
        query_shape_sha256: digest("shape"),
        projection_sha256: digest("projection"),
        typed_parameters_sha256: digest("parameters"),
    }
}

pub(super) const RELATION_UUID: &str = "3f4e2c1a-0000-4000-8000-000000000001";
