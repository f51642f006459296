//! Bulk load messages (MS-TDS 2.2.6.1): COLMETADATA, ROW and NBCROW, DONE; decoded while the packets come in.

use tokio::sync::mpsc;

use super::super::sql::{CancelHandle, ColumnMeta, SqlError};
use super::super::value::Value;
use super::backend::SqlSession;
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

/// Why a message gives no more rows.
#[derive(Debug)]
pub(crate) enum Ended {
    Failed(SqlError),
    Withdrawn,
}

impl From<SqlError> for Ended {
    fn from(error: SqlError) -> Self {
        Self::Failed(error)
    }
}

/// The columns of a message: for the engine and for the decoder.
pub(crate) struct Columns {
    metas: Vec<ColumnMeta>,
    wires: Vec<WireType>,
}

impl Columns {
    pub(crate) fn metas(&self) -> &[ColumnMeta] {
        &self.metas
    }

    /// The end that a decoding error in column `index` means.
    fn ended(&self, error: DecodeError, index: usize) -> Ended {
        let name = self.metas.get(index).map_or("", |meta| &meta.name);
        match error {
            DecodeError::Withdrawn => Ended::Withdrawn,
            error => Ended::Failed(errors::bulk_value(error, index + 1, name)),
        }
    }
}

/// What follows in a message behind its columns.
#[derive(Debug)]
pub(crate) enum Item {
    Row(Vec<Value>),
    Done,
}

/// Runs a whole load; the message is read to its end whatever happens.
pub(crate) fn load(session: &mut dyn SqlSession, chunks: mpsc::Receiver<BulkChunk>) -> Outcome {
    let mut stream = BulkStream::new(chunks);
    let cancel = session.cancel_handle();
    let result = load_rows(session, &mut stream, &cancel);
    let ending = stream.drain();
    match (result, ending) {
        (_, Ending::Withdrawn) | (Err(Ended::Withdrawn), _) => Outcome::Withdrawn,
        (Ok(rows), Ending::Complete) => Outcome::Loaded(rows),
        (Err(Ended::Failed(error)), Ending::Complete) => Outcome::Failed(error),
    }
}

fn load_rows(session: &mut dyn SqlSession, stream: &mut BulkStream, cancel: &CancelHandle) -> Result<u64, Ended> {
    let columns = stream.columns()?;
    let mut load = session.bulk_columns(columns.metas())?;
    let mut scratch = Vec::new();
    loop {
        let item = stream.next(&columns, &mut scratch);
        // An attention that came with the last packet counts: the load takes effect in `finish` and not before.
        if cancel.is_cancelled() {
            load.abort();
            return Err(Ended::Withdrawn);
        }
        match item? {
            Item::Row(row) => load.row(row)?,
            Item::Done => return Ok(load.finish()?),
        }
    }
}

impl BulkStream {
    /// Reads COLMETADATA.
    pub(crate) fn columns(&mut self) -> Result<Columns, Ended> {
        let ended = |error: DecodeError, column: usize| match error {
            DecodeError::Withdrawn => Ended::Withdrawn,
            error => Ended::Failed(errors::bulk_column(error, column)),
        };
        if self.u8().map_err(|error| ended(error, 0))? != COL_METADATA {
            return Err(errors::bulk_without_metadata().into());
        }
        let count = self.u16().map_err(|error| ended(error, 0))?;
        if count == 0 || count == NO_METADATA || count > MAX_COLUMNS {
            return Err(errors::bulk_without_metadata().into());
        }
        let mut columns = Columns { metas: Vec::new(), wires: Vec::new() };
        for index in 0..usize::from(count) {
            let (meta, wire) = read_column(self).map_err(|error| ended(error, index + 1))?;
            columns.metas.push(meta);
            columns.wires.push(wire);
        }
        Ok(columns)
    }

    /// Reads the next row, or the DONE that ends the message.
    pub(crate) fn next(&mut self, columns: &Columns, scratch: &mut Vec<u8>) -> Result<Item, Ended> {
        let token = self.u8().map_err(|error| columns.ended(error, 0))?;
        let row = match token {
            ROW => read_row(self, &columns.wires, scratch),
            NBC_ROW => read_nbc_row(self, &columns.wires, scratch),
            DONE => return read_done(self).map(|()| Item::Done).map_err(|error| columns.ended(error, 0)),
            other => return Err(columns.ended(DecodeError::Token(other), 0)),
        };
        row.map(Item::Row).map_err(|(error, index)| columns.ended(error, index))
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

fn read_row(
    stream: &mut BulkStream,
    wires: &[WireType],
    scratch: &mut Vec<u8>,
) -> Result<Vec<Value>, (DecodeError, usize)> {
    let mut row = Vec::with_capacity(wires.len());
    for (column, wire) in wires.iter().enumerate() {
        row.push(values::read(stream, *wire, scratch).map_err(|error| (error, column))?);
    }
    Ok(row)
}

fn read_nbc_row(
    stream: &mut BulkStream,
    wires: &[WireType],
    scratch: &mut Vec<u8>,
) -> Result<Vec<Value>, (DecodeError, usize)> {
    let bitmap = stream.take(wires.len().div_ceil(8)).map_err(|error| (error, 0))?.to_vec();
    let mut row = Vec::with_capacity(wires.len());
    for (column, wire) in wires.iter().enumerate() {
        let is_null = bitmap[column / 8] & (1 << (column % 8)) != 0;
        row.push(if is_null {
            Value::Null
        } else {
            values::read(stream, *wire, scratch).map_err(|error| (error, column))?
        });
    }
    Ok(row)
}
