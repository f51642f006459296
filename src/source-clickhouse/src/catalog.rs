//! Bounded reads of the server's catalog, as facts without judgement (contract.md 2.6).
//!
//! Every read runs on the session that will run the SELECT, under the same frozen settings, and is bounded to 8192 rows
//! and 8 MiB. Relation names are checked identifiers before they get here, so they need no escaping.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::block::{Block, Values};
use contract::code;
use contract::error::PortError;
use contract::port::source::{FrozenWindow, ReplicaStatus};
use contract::raw::facts::{ColumnFacts, Flag, PolicyRow, ReplicaRow, TableFacts};
use contract::raw::parts::PartRow;
use contract::raw::{CATALOG_BYTES_MAX, CATALOG_ROWS_MAX};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::fault;
use crate::wire::{Connection, Query, RESULT_CAP_FLOOR_BYTES, ResultBound, Setting, Shape};

/// Longest wait for one catalog read.
const CATALOG_READ_SECONDS: u64 = 300;

/// The catalog as one session sees it under given settings.
pub(crate) struct Catalog<'a, S> {
    connection: &'a mut Connection<S>,
    settings: Vec<Setting>,
}

/// One relation by checked names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relation<'a> {
    pub(crate) database: &'a str,
    pub(crate) table: &'a str,
}

impl Relation<'_> {
    /// The condition on the two name columns that most catalog tables share.
    fn condition(self) -> String {
        format!("database = '{}' AND table = '{}'", self.database, self.table)
    }
}

/// What a session and its server say about themselves; the socket's part is added by the session.
#[derive(Debug, Clone)]
pub(crate) struct SessionRow {
    pub(crate) principal: String,
    pub(crate) roles: Vec<String>,
    pub(crate) server_revision: String,
    pub(crate) server_name: String,
    pub(crate) server_timezone: String,
    pub(crate) session_timezone: String,
}

/// A value of a catalog row.
enum Cell {
    Null,
    Text(String),
    Number(u64),
}

const TEXT: &str = "String";
const OPTIONAL_TEXT: &str = "Nullable(String)";
const NUMBER: &str = "UInt64";

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Catalog<'a, S> {
    pub(crate) fn new(connection: &'a mut Connection<S>, settings: Vec<Setting>) -> Self {
        Catalog { connection, settings }
    }

    /// `system.tables` joined with the database's engine: no row when the relation is missing or not visible.
    pub(crate) async fn tables(&mut self, relation: Relation<'_>) -> Result<Vec<TableFacts>, PortError> {
        let sql = format!(
            "SELECT CAST(engine AS String) AS engine, CAST(engine_full AS String) AS engine_full, toString(uuid) AS id, \
             CAST(partition_key AS String) AS partition_key, CAST(sorting_key AS String) AS sorting_key, \
             CAST(primary_key AS String) AS primary_key FROM system.tables WHERE database = '{}' AND name = '{}'",
            relation.database, relation.table
        );
        let columns = ["engine", "engine_full", "id", "partition_key", "sorting_key", "primary_key"];
        let tables = self.texts(&sql, &columns).await?;
        let sql = format!(
            "SELECT CAST(engine AS String) AS engine FROM system.databases WHERE name = '{}'",
            relation.database
        );
        let database = self.texts(&sql, &["engine"]).await?.into_iter().flatten().next().unwrap_or_default();
        let facts = tables.into_iter().map(|row| {
            let [engine, engine_full, uuid, partition_key, sorting_key, primary_key] = row;
            let database_engine = database.clone();
            TableFacts { engine, engine_full, uuid, database_engine, partition_key, sorting_key, primary_key }
        });
        Ok(facts.collect())
    }

    /// `system.columns` by position.
    pub(crate) async fn columns(&mut self, relation: Relation<'_>) -> Result<Vec<ColumnFacts>, PortError> {
        let sql = format!(
            "SELECT CAST(name AS String) AS name, CAST(type AS String) AS type, CAST(default_kind AS String) AS kind \
             FROM system.columns WHERE {} ORDER BY position",
            relation.condition()
        );
        let rows = self.texts(&sql, &["name", "type", "kind"]).await?;
        Ok(rows
            .into_iter()
            .map(|[name, type_text, default_kind]| ColumnFacts { name, type_text, default_kind })
            .collect())
    }

    /// `system.settings` for some names: what is in effect for a query of this session.
    pub(crate) async fn settings(&mut self, names: &[&str]) -> Result<BTreeMap<String, String>, PortError> {
        let sql = format!(
            "SELECT CAST(name AS String) AS name, CAST(value AS String) AS value FROM system.settings WHERE name IN ('{}')",
            names.join("', '")
        );
        let rows = self.texts(&sql, &["name", "value"]).await?;
        Ok(rows.into_iter().map(|[name, value]| (name, value)).collect())
    }

    /// User, roles and server.
    pub(crate) async fn session(&mut self) -> Result<SessionRow, PortError> {
        let sql = "SELECT currentUser() AS principal, toJSONString(enabledRoles()) AS roles, toString(revision()) AS \
                   revision, hostName() AS host, serverTimezone() AS server_zone, timezone() AS session_zone";
        let columns = ["principal", "roles", "revision", "host", "server_zone", "session_zone"];
        let rows = self.texts(sql, &columns).await?;
        let [[principal, roles, server_revision, server_name, server_timezone, session_timezone]] =
            <[_; 1]>::try_from(rows).map_err(|_| unreadable())?;
        let roles = names(&roles)?;
        Ok(SessionRow { principal, roles, server_revision, server_name, server_timezone, session_timezone })
    }

    /// Row policies of the relation and of its whole database, by id.
    pub(crate) async fn policies(&mut self, relation: Relation<'_>) -> Result<Vec<PolicyRow>, PortError> {
        let sql = format!(
            "SELECT toString(id) AS id, CAST(select_filter AS Nullable(String)) AS filter, toUInt64(is_restrictive) AS \
             restrictive, toUInt64(apply_to_all) AS everyone, toJSONString(apply_to_list) AS included, \
             toJSONString(apply_to_except) AS excluded FROM system.row_policies \
             WHERE database = '{}' AND table IN ('{}', '') ORDER BY id",
            relation.database, relation.table
        );
        let columns = [
            ("id", TEXT),
            ("filter", OPTIONAL_TEXT),
            ("restrictive", NUMBER),
            ("everyone", NUMBER),
            ("included", TEXT),
            ("excluded", TEXT),
        ];
        let mut policies = Vec::new();
        for row in self.rows(&sql, &columns).await? {
            let [id, filter, restrictive, everyone, included, excluded] = row;
            policies.push(PolicyRow {
                id: text(id)?,
                select_filter: optional_text(filter)?,
                is_restrictive: flag(&restrictive)?,
                apply_to_all: flag(&everyone)?,
                apply_to_list: names(&text(included)?)?,
                apply_to_except: names(&text(excluded)?)?,
            });
        }
        Ok(policies)
    }

    /// The connected replica's own row, and how it stands. Columns for which the server would ask Keeper are left out: a
    /// replica that has lost it can be read all the same.
    pub(crate) async fn replicas(
        &mut self,
        relation: Relation<'_>,
    ) -> Result<Vec<(ReplicaRow, ReplicaStatus)>, PortError> {
        let sql = format!(
            "SELECT CAST(replica_name AS String) AS replica, CAST(zookeeper_path AS String) AS path, \
             toUInt64(is_readonly) AS readonly, toUInt64(is_session_expired) AS expired, toUInt64(queue_size) AS queue, \
             toUInt64(absolute_delay) AS delay FROM system.replicas WHERE {}",
            relation.condition()
        );
        let columns = [
            ("replica", TEXT),
            ("path", TEXT),
            ("readonly", NUMBER),
            ("expired", NUMBER),
            ("queue", NUMBER),
            ("delay", NUMBER),
        ];
        let mut replicas = Vec::new();
        for row in self.rows(&sql, &columns).await? {
            let [replica, path, readonly, expired, queue, delay] = row;
            let status = ReplicaStatus {
                is_readonly: flag(&readonly)?.is_set(),
                is_session_expired: flag(&expired)?.is_set(),
                queue_size: number(&queue)?,
                absolute_delay_seconds: number(&delay)?,
            };
            replicas.push((ReplicaRow { replica_name: text(replica)?, zookeeper_path: text(path)? }, status));
        }
        Ok(replicas)
    }

    /// Ids of mutations that are not done.
    pub(crate) async fn pending_mutations(&mut self, relation: Relation<'_>) -> Result<Vec<String>, PortError> {
        let sql = format!(
            "SELECT CAST(mutation_id AS String) AS mutation FROM system.mutations WHERE {} AND NOT is_done \
             ORDER BY mutation",
            relation.condition()
        );
        Ok(self.texts(&sql, &["mutation"]).await?.into_iter().flatten().collect())
    }

    /// Active parts by name; of the given partitions only, and then every patch part.
    pub(crate) async fn parts(
        &mut self,
        relation: Relation<'_>,
        partition_ids: Option<&[String]>,
    ) -> Result<Vec<PartRow>, PortError> {
        let partitions = match partition_ids {
            None => String::new(),
            Some(ids) => {
                format!(" AND (partition_id IN ('{}') OR startsWith(partition_id, 'patch-'))", ids.join("', '"))
            }
        };
        let sql = format!(
            "SELECT CAST(name AS String) AS name, CAST(partition_id AS String) AS partition_id, toUInt64(rows) AS rows, \
             toUInt64(data_version) AS data_version, toUInt64(level) AS level, \
             toUInt64(has_lightweight_delete) AS deleted, CAST(hash_of_all_files AS String) AS all_files, \
             CAST(hash_of_uncompressed_files AS String) AS uncompressed_files, \
             CAST(uncompressed_hash_of_compressed_files AS String) AS compressed_files \
             FROM system.parts WHERE {} AND active{partitions} ORDER BY name",
            relation.condition()
        );
        let columns = [
            ("name", TEXT),
            ("partition_id", TEXT),
            ("rows", NUMBER),
            ("data_version", NUMBER),
            ("level", NUMBER),
            ("deleted", NUMBER),
            ("all_files", TEXT),
            ("uncompressed_files", TEXT),
            ("compressed_files", TEXT),
        ];
        let mut parts = Vec::new();
        for row in self.rows(&sql, &columns).await? {
            let [name, partition_id, rows, data_version, level, deleted, all, uncompressed, compressed] = row;
            parts.push(PartRow {
                name: text(name)?,
                partition_id: text(partition_id)?,
                rows: number(&rows)?,
                data_version: number(&data_version)?,
                level: number(&level)?,
                has_lightweight_delete: number(&deleted)?,
                hash_of_all_files: text(all)?,
                hash_of_uncompressed_files: text(uncompressed)?,
                uncompressed_hash_of_compressed_files: text(compressed)?,
            });
        }
        Ok(parts)
    }

    /// How many active parts of other partitions than the given ones hold rows of the time of the window, by the server's
    /// own bounds of each part. A part whose bounds are in disorder (its times do not fit into them) counts as one.
    pub(crate) async fn parts_of_another_calendar(
        &mut self,
        relation: Relation<'_>,
        partition_ids: &[String],
        window: &FrozenWindow,
    ) -> Result<u64, PortError> {
        let (first, last) = (window.start_micros.div_euclid(1_000_000), (window.end_micros - 1).div_euclid(1_000_000));
        let sql = format!(
            "SELECT toUInt64(count()) AS parts FROM system.parts WHERE {} AND active AND NOT startsWith(partition_id, \
             'patch-') AND partition_id NOT IN ('{}') AND (toUnixTimestamp(min_time) > toUnixTimestamp(max_time) OR \
             (toUnixTimestamp(max_time) >= {first} AND toUnixTimestamp(min_time) <= {last}))",
            relation.condition(),
            partition_ids.join("', '")
        );
        let rows = self.rows(&sql, &[("parts", NUMBER)]).await?;
        let [[parts]] = <[_; 1]>::try_from(rows).map_err(|_| unreadable())?;
        number(&parts)
    }

    /// Lets the server check names, types and rights of a SELECT without reading a row of it.
    pub(crate) async fn explain(&mut self, select: &str) -> Result<(), PortError> {
        self.texts(&format!("EXPLAIN {select}"), &["explain"]).await.map(|_: Vec<[String; 1]>| ())
    }

    async fn texts<const N: usize>(&mut self, sql: &str, columns: &[&str; N]) -> Result<Vec<[String; N]>, PortError> {
        let columns = columns.map(|name| (name, TEXT));
        let mut texts = Vec::new();
        for row in self.rows(sql, &columns).await? {
            let row: Result<Vec<String>, PortError> = row.into_iter().map(text).collect();
            texts.push(<[String; N]>::try_from(row?).map_err(|_| unreadable())?);
        }
        Ok(texts)
    }

    /// Runs one bounded read to its proven end.
    async fn rows<const N: usize>(
        &mut self,
        sql: &str,
        columns: &[(&str, &str); N],
    ) -> Result<Vec<[Cell; N]>, PortError> {
        let query = Query {
            id: "",
            text: sql,
            settings: &self.settings,
            shape: Shape::new(columns.iter().copied()).map_err(fault::catalog)?,
            block_cap_bytes: RESULT_CAP_FLOOR_BYTES,
            result_bound: Some(ResultBound { rows: CATALOG_ROWS_MAX as u64, bytes: CATALOG_BYTES_MAX as u64 }),
        };
        let deadline = Instant::now() + Duration::from_secs(CATALOG_READ_SECONDS);
        self.connection.start(query, deadline).await.map_err(fault::catalog)?;
        let mut rows = Vec::new();
        while let Some(block) = self.connection.next_block().await.map_err(fault::catalog)? {
            for row in 0..block.rows {
                let cells: Result<Vec<Cell>, PortError> =
                    (0..N).map(|column| cell(&block, column, row).ok_or_else(unreadable)).collect();
                rows.push(<[Cell; N]>::try_from(cells?).map_err(|_| unreadable())?);
            }
        }
        Ok(rows)
    }
}

fn cell(block: &Block, column: usize, row: usize) -> Option<Cell> {
    let column = block.columns.get(column)?;
    if column.is_null(row) {
        return Some(Cell::Null);
    }
    match &column.values {
        Values::String(values) => Some(Cell::Text(String::from_utf8(values.get(row).to_vec()).ok()?)),
        Values::UInt64(values) => values.get(row).copied().map(Cell::Number),
        _ => None,
    }
}

fn text(cell: Cell) -> Result<String, PortError> {
    optional_text(cell)?.ok_or_else(unreadable)
}

fn optional_text(cell: Cell) -> Result<Option<String>, PortError> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Text(text) => Ok(Some(text)),
        Cell::Number(_) => Err(unreadable()),
    }
}

fn number(cell: &Cell) -> Result<u64, PortError> {
    match cell {
        Cell::Number(number) => Ok(*number),
        Cell::Null | Cell::Text(_) => Err(unreadable()),
    }
}

fn flag(cell: &Cell) -> Result<Flag, PortError> {
    u8::try_from(number(cell)?).map(Flag::Number).map_err(|_| unreadable())
}

/// A JSON array of texts, as `toJSONString` writes an `Array(String)`.
fn names(json: &str) -> Result<Vec<String>, PortError> {
    serde_json::from_str(json).map_err(|_| unreadable())
}

fn unreadable() -> PortError {
    PortError::not_done(
        code::SOURCE_READ_PROFILE_UNSUPPORTED,
        "the source's catalog answered in a form that this version does not know; report the server's version",
    )
}
