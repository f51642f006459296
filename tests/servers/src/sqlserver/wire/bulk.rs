//! Bulk load messages (MS-TDS 2.2.6.1): COLMETADATA, ROW and NBCROW, DONE; decoded while the packets come in.

use tokio::sync::mpsc;

use super::super::sql::{CancelHandle, ColumnMeta, Session, SqlError};
use super::super::value::Value;
use super::errors;
use super::reader::decode_utf16;
use super::source::{DecodeError, Source};
use super::type_info::{Form, WireType};
use super::values;

const COL_METADATA: u8 = 0x81;
const ROW: u8 = 0xD1;
const NBC_ROW: u8 = 0xD2;
const DONE: u8 = 0xFD;
/// A column count that says "no metadata".
const NO_METADATA: u16 = 0xFFFF;
/// Columns of a table ("Maximum capacity specifications for SQL Server": 1,024 nonwide, 30,000 wide).
const MAX_COLUMNS: u16 = 30_000;
const FLAG_NULLABLE: u16 = 0x01;
const FLAG_IDENTITY: u16 = 0x10;
/// Consumed bytes that are kept at most before the buffer is shifted.
const SHIFT_AT_BYTES: usize = 64 * 1024;

/// Part of a bulk load message on its way from the socket to the session.
#[derive(Debug)]
pub(crate) enum BulkChunk {
    /// Payload of one packet.
    Data(Vec<u8>),
    /// End of message.
    End,
    /// The client withdrew the message (attention or ignore bit).
    Withdrawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    Withdrawn,
}

/// The message as a stream of bytes; holds no more than one value and one packet.
pub(crate) struct BulkStream {
    chunks: mpsc::Receiver<BulkChunk>,
    buffer: Vec<u8>,
    at: usize,
    ending: Option<Ending>,
}

impl BulkStream {
    pub(crate) fn new(chunks: mpsc::Receiver<BulkChunk>) -> Self {
        Self { chunks, buffer: Vec::new(), at: 0, ending: None }
    }

    /// Waits for the next chunk; the ending if there is none.
    fn pull(&mut self) -> Result<(), Ending> {
        if let Some(ending) = self.ending {
            return Err(ending);
        }
        let ending = match self.chunks.blocking_recv() {
            Some(BulkChunk::Data(bytes)) => {
                if self.at == self.buffer.len() {
                    self.buffer = bytes;
                    self.at = 0;
                } else {
                    if self.at >= SHIFT_AT_BYTES {
                        self.buffer.drain(..self.at);
                        self.at = 0;
                    }
                    self.buffer.extend_from_slice(&bytes);
                }
                return Ok(());
            }
            Some(BulkChunk::End) => Ending::Complete,
            // A closed channel: the client is gone.
            Some(BulkChunk::Withdrawn) | None => Ending::Withdrawn,
        };
        self.ending = Some(ending);
        Err(ending)
    }

    /// Reads the rest of the message and drops it.
    fn drain(&mut self) -> Ending {
        loop {
            self.at = self.buffer.len();
            if let Err(ending) = self.pull() {
                return ending;
            }
        }
    }

    fn remaining(&self) -> usize {
        self.buffer.len() - self.at
    }
}

impl Source for BulkStream {
    fn take(&mut self, count: usize) -> Result<&[u8], DecodeError> {
        while self.remaining() < count {
            self.pull().map_err(|ending| match ending {
                Ending::Complete => DecodeError::Truncated,
                Ending::Withdrawn => DecodeError::Withdrawn,
            })?;
        }
        let taken = self.at..self.at + count;
        self.at = taken.end;
        Ok(&self.buffer[taken])
    }
}

/// How a load ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All rows are in.
    Loaded(u64),
    /// Nothing is in; the client gets this error.
    Failed(SqlError),
    /// Nothing is in; the client withdrew the message or is gone.
    Withdrawn,
}

enum Stop {
    Sql(SqlError),
    Withdrawn,
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// Runs a whole load; the message is read to its end whatever happens.
pub(crate) fn load(session: &mut Session, chunks: mpsc::Receiver<BulkChunk>) -> Outcome {
    let mut stream = BulkStream::new(chunks);
    let cancel = session.cancel_handle();
    let result = load_rows(session, &mut stream, &cancel);
    let ending = stream.drain();
    match (result, ending) {
        (_, Ending::Withdrawn) | (Err(Stop::Withdrawn), _) => Outcome::Withdrawn,
        (Ok(rows), Ending::Complete) => Outcome::Loaded(rows),
        (Err(Stop::Sql(error)), Ending::Complete) => Outcome::Failed(error),
    }
}

fn load_rows(session: &mut Session, stream: &mut BulkStream, cancel: &CancelHandle) -> Result<u64, Stop> {
    let (columns, wires) = read_columns(stream)?;
    let stop = |error: DecodeError, column: usize| match error {
        DecodeError::Withdrawn => Stop::Withdrawn,
        error => Stop::Sql(errors::bulk_value(error, column + 1, columns.get(column).map_or("", |c| &c.name))),
    };
    let mut load = session.bulk_columns(&columns)?;
    loop {
        if cancel.is_cancelled() {
            load.abort();
            return Err(Stop::Withdrawn);
        }
        match stream.u8().map_err(|error| stop(error, 0))? {
            ROW => load.row(read_row(stream, &wires).map_err(|(error, column)| stop(error, column))?)?,
            NBC_ROW => load.row(read_nbc_row(stream, &wires).map_err(|(error, column)| stop(error, column))?)?,
            DONE => {
                read_done(stream).map_err(|error| stop(error, 0))?;
                // The load takes effect here and not before: an attention that came with the last packet counts.
                if cancel.is_cancelled() {
                    load.abort();
                    return Err(Stop::Withdrawn);
                }
                return Ok(load.finish()?);
            }
            other => return Err(stop(DecodeError::Token(other), 0)),
        }
    }
}

/// Status, command and a row count of four or eight bytes (SqlClient sends four), then the end of the message.
fn read_done(stream: &mut BulkStream) -> Result<(), DecodeError> {
    const STATUS_COMMAND_AND_SHORT_COUNT: usize = 8;
    const REST_OF_LONG_COUNT: usize = 4;
    stream.take(STATUS_COMMAND_AND_SHORT_COUNT)?;
    let mut rest = 0;
    loop {
        rest += stream.remaining();
        stream.at = stream.buffer.len();
        if rest > REST_OF_LONG_COUNT {
            return Err(DecodeError::Token(DONE));
        }
        match stream.pull() {
            Ok(()) => {}
            Err(Ending::Complete) if rest == 0 || rest == REST_OF_LONG_COUNT => return Ok(()),
            Err(Ending::Complete) => return Err(DecodeError::Truncated),
            Err(Ending::Withdrawn) => return Err(DecodeError::Withdrawn),
        }
    }
}

fn read_columns(stream: &mut BulkStream) -> Result<(Vec<ColumnMeta>, Vec<WireType>), Stop> {
    let stop = |error: DecodeError, column: usize| match error {
        DecodeError::Withdrawn => Stop::Withdrawn,
        error => Stop::Sql(errors::bulk_column(error, column)),
    };
    if stream.u8().map_err(|error| stop(error, 0))? != COL_METADATA {
        return Err(errors::bulk_without_metadata().into());
    }
    let count = stream.u16().map_err(|error| stop(error, 0))?;
    if count == 0 || count == NO_METADATA || count > MAX_COLUMNS {
        return Err(errors::bulk_without_metadata().into());
    }
    let mut columns = Vec::new();
    let mut wires = Vec::new();
    for index in 0..usize::from(count) {
        let (column, wire) = read_column(stream).map_err(|error| stop(error, index + 1))?;
        columns.push(column);
        wires.push(wire);
    }
    Ok((columns, wires))
}

fn read_column(stream: &mut BulkStream) -> Result<(ColumnMeta, WireType), DecodeError> {
    let _user_type = stream.u32()?;
    let flags = stream.u16()?;
    let wire = WireType::parse(stream)?;
    if wire.form == Form::Nothing || wire.form == Form::Variant {
        return Err(DecodeError::UnknownType(wire.token));
    }
    if wire.form == Form::TextPointer {
        let characters = usize::from(stream.u16()?);
        stream.take(2 * characters)?;
    }
    let characters = usize::from(stream.u8()?);
    let name = decode_utf16(stream.take(2 * characters)?).map_err(|_| DecodeError::OddUnicode)?;
    let column = ColumnMeta {
        name,
        ty: wire.ty,
        nullable: flags & FLAG_NULLABLE != 0,
        identity: flags & FLAG_IDENTITY != 0,
        computed: false,
        collation: wire.ty.collation(),
    };
    Ok((column, wire))
}

fn read_row(stream: &mut BulkStream, wires: &[WireType]) -> Result<Vec<Value>, (DecodeError, usize)> {
    let mut row = Vec::with_capacity(wires.len());
    for (column, wire) in wires.iter().enumerate() {
        row.push(values::read(stream, *wire).map_err(|error| (error, column))?);
    }
    Ok(row)
}

fn read_nbc_row(stream: &mut BulkStream, wires: &[WireType]) -> Result<Vec<Value>, (DecodeError, usize)> {
    let bitmap = stream.take(wires.len().div_ceil(8)).map_err(|error| (error, 0))?.to_vec();
    let mut row = Vec::with_capacity(wires.len());
    for (column, wire) in wires.iter().enumerate() {
        let is_null = bitmap[column / 8] & (1 << (column % 8)) != 0;
        row.push(if is_null { Value::Null } else { values::read(stream, *wire).map_err(|error| (error, column))? });
    }
    Ok(row)
}
