//! Sealed native rows into one bulk load, as pre-encoded slabs through the crate's raw writer.
//!
//! The crate writes one ROW token and asks the row for the rest. Our one "row" is the whole chunk: it continues the
//! stream with the ROW tokens of all further rows. The column metadata is our own, made from the stage's definition, so
//! no probe of the server can misstate it (tds-observed.md 5).

use std::io::Read;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use contract::encode::TdsRowEncoder;
use contract::port::target::{StageColumn, StageRef};
use mssql_tds::connection::bulk_copy::{BulkCopy, BulkLoadRow};
use mssql_tds::connection::tds_client::TdsClient;
use mssql_tds::core::TdsResult;
use mssql_tds::datatypes::bulk_copy_metadata::{BulkCopyColumnMetadata, SqlDbType, TypeLength};
use mssql_tds::error::Error as DriverError;
use mssql_tds::message::bulk_load::StreamingBulkLoadWriter;
use mssql_tds::test_client_support::MetadataRetriever;

use crate::error::SessionError;
use crate::sql::ident::qualified;

/// Native bytes read and encoded at a time.
const SLAB_BYTES: usize = 256 * 1024;

/// Why rows could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BulkError {
    /// The session failed or the server refused.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The sealed file does not hold what its record says; the load was cancelled and nothing stays.
    #[error("the sealed file is not what was sealed")]
    File,
}

/// Streams `rows` into the stage and returns how many rows went in. The caller owns the transaction around it.
pub(crate) async fn load(
    client: &mut TdsClient,
    stage: &StageRef,
    encoder: TdsRowEncoder,
    rows: Box<dyn Read + Send>,
    deadline: Duration,
) -> Result<u64, BulkError> {
    let columns = metadata(&stage.definition.columns)?;
    let count = columns.len();
    let chunk = ChunkRow { state: Mutex::new(ChunkState::new(rows, encoder)), columns: count };
    let mut bulk = BulkCopy::with_retriever(client, qualified(&stage.definition.name), Box::new(OwnMetadata(columns)))
        .timeout(Duration::ZERO)
        .table_lock(true)
        .keep_nulls(true)
        .batch_size(0);
    let written = tokio::time::timeout(deadline, bulk.write_to_server_zerocopy(std::iter::once(&chunk))).await;
    let state = chunk.state.lock().map_err(|_| BulkError::File)?;
    match written {
        Ok(Ok(_)) => Ok(state.sent()),
        Ok(Err(_)) if state.fault => Err(BulkError::File),
        Ok(Err(error)) => Err(BulkError::Session(SessionError::from_driver(&error))),
        Err(_) => Err(BulkError::Session(SessionError::Transport)),
    }
}

/// The wire types of the target-local layout matrix, all in their nullable forms.
fn metadata(columns: &[StageColumn]) -> Result<Vec<BulkCopyColumnMetadata>, SessionError> {
    columns
        .iter()
        .map(|column| {
            let new = |sql: SqlDbType| {
                BulkCopyColumnMetadata::new(&column.name, sql, sql.to_bulk_copy_tds_type())
                    .with_nullable(column.nullable)
            };
            Ok(match column.type_text.as_str() {
                "bigint" => new(SqlDbType::BigInt).with_length(8, TypeLength::Variable(8)),
                "float(53)" => new(SqlDbType::Float).with_length(8, TypeLength::Variable(8)),
                "datetime2(6)" => new(SqlDbType::DateTime2).with_length(8, TypeLength::Variable(8)).with_scale(6),
                "nvarchar(max)" => new(SqlDbType::NVarChar).with_length(0xFFFF, TypeLength::Plp),
                _ => return Err(SessionError::Shape("a stage column is outside the target-local layout matrix")),
            })
        })
        .collect()
}

/// Hands the crate our own column metadata instead of probing the server.
struct OwnMetadata(Vec<BulkCopyColumnMetadata>);

#[async_trait]
impl MetadataRetriever for OwnMetadata {
    async fn retrieve_metadata(
        &mut self,
        _client: &mut TdsClient,
        _table_name: &str,
        _timeout_sec: u32,
    ) -> TdsResult<Vec<BulkCopyColumnMetadata>> {
        Ok(self.0.clone())
    }
}

/// The whole chunk as the one row that the crate sees.
struct ChunkRow {
    state: Mutex<ChunkState>,
    columns: usize,
}

/// A sealed file on its way to the wire.
pub(crate) struct ChunkState {
    rows: Box<dyn Read + Send>,
    encoder: TdsRowEncoder,
    sent: u64,
    fault: bool,
}

impl ChunkState {
    pub(crate) fn new(rows: Box<dyn Read + Send>, encoder: TdsRowEncoder) -> Self {
        ChunkState { rows, encoder, sent: 0, fault: false }
    }

    /// Rows encoded so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Fills `native` and encodes its complete rows into `wire`; `false` at the end of the file.
    pub(crate) fn next_slab(&mut self, native: &mut Vec<u8>, wire: &mut Vec<u8>) -> Result<bool, ()> {
        wire.clear();
        loop {
            let start = native.len();
            native.resize(start + SLAB_BYTES, 0);
            let read = self.rows.read(&mut native[start..]).map_err(|_| ())?;
            native.truncate(start + read);
            let (rows, consumed) = self.encoder.encode(native, wire).map_err(|_| ())?;
            native.drain(..consumed);
            self.sent += rows;
            if !wire.is_empty() {
                return Ok(true);
            }
            if read == 0 {
                return if native.is_empty() { Ok(false) } else { Err(()) };
            }
        }
    }
}

#[async_trait]
impl BulkLoadRow for &ChunkRow {
    async fn write_to_packet(
        &self,
        writer: &mut StreamingBulkLoadWriter<'_>,
        column_index: &mut usize,
    ) -> TdsResult<()> {
        let mut native = Vec::with_capacity(2 * SLAB_BYTES);
        let mut wire = Vec::with_capacity(2 * SLAB_BYTES);
        // The crate has written the first ROW token already.
        let mut skip = 1;
        loop {
            let more = {
                let mut state = self.state.lock().map_err(|_| file_fault())?;
                let more = state.next_slab(&mut native, &mut wire);
                state.fault |= more.is_err();
                more.map_err(|()| file_fault())?
            };
            if !more {
                break;
            }
            writer.write_raw_bytes(&wire[skip..]).await?;
            skip = 0;
        }
        if skip == 1 {
            // A chunk without rows must not reach a bulk load; the ROW token above would have no row.
            self.state.lock().map_err(|_| file_fault())?.fault = true;
            return Err(file_fault());
        }
        *column_index = self.columns;
        Ok(())
    }
}

fn file_fault() -> DriverError {
    DriverError::UsageError("the sealed file is not what was sealed".to_string())
}
