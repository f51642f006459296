//! One response message: tokens in, packets out, with back-pressure.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::super::sql::{BatchSink, ColumnMeta, Done, EnvChange, SinkClosed, SinkResult, SqlError};
use super::super::value::Value;
use super::packet::{HEADER_BYTES, response_packet};
use super::tokens::{self, DoneKind, done_status, env};
use super::type_info::{Form, WireType};
use super::values;

const COL_METADATA: u8 = 0x81;
const ROW: u8 = 0xD1;
const NBC_ROW: u8 = 0xD2;
const RETURN_VALUE: u8 = 0xAC;
const IS_OUTPUT_PARAMETER: u8 = 0x01;
/// Command code of a DONE that stands for no statement.
const COMMAND_OTHER: u16 = 0xFD;
/// Command code of EXECUTE.
const COMMAND_EXECUTE: u16 = 0xE0;

/// Flags of a column (MS-TDS 2.2.7.4).
mod column_flag {
    pub(super) const NULLABLE: u16 = 0x01;
    pub(super) const CASE_SENSITIVE: u16 = 0x02;
    pub(super) const UPDATABLE_UNKNOWN: u16 = 0x08;
    pub(super) const IDENTITY: u16 = 0x10;
    pub(super) const COMPUTED: u16 = 0x20;
}

/// A DONE that waits until it is known whether more follows.
#[derive(Debug, Clone, Copy)]
struct PendingDone {
    kind: DoneKind,
    status: u16,
    command: u16,
    count: u64,
}

/// Where packets go: the writer task of the connection. The bound of the channel is what makes a slow client block the
/// statement that feeds it.
#[derive(Debug, Clone)]
pub(crate) struct PacketQueue {
    pub(crate) packets: mpsc::Sender<Vec<u8>>,
    /// Negotiated packet size in bytes, header included.
    pub(crate) packet_bytes: usize,
    /// `@@SPID`, shown in each packet header.
    pub(crate) session: u16,
    /// Server name of ERROR and INFO.
    pub(crate) server_name: Arc<str>,
}

/// The response to one request.
pub(crate) struct Response<'a> {
    queue: &'a PacketQueue,
    /// Positions of the output parameters of the running call that were not returned yet.
    outputs: VecDeque<u16>,
    buffer: Vec<u8>,
    packet_id: u8,
    columns: Vec<WireType>,
    pending: Option<PendingDone>,
    /// RETURNSTATUS was written and its DONEPROC not yet.
    procedure_returned: bool,
    /// An ERROR was written after the last DONE.
    error_open: bool,
    last_error: Option<i32>,
    closed: bool,
    /// The engine gave a value that its column cannot carry.
    faulty: bool,
}

impl<'a> Response<'a> {
    pub(crate) fn new(queue: &'a PacketQueue) -> Self {
        Self {
            queue,
            outputs: VecDeque::new(),
            buffer: Vec::with_capacity(queue.packet_bytes),
            packet_id: 1,
            columns: Vec::new(),
            pending: None,
            procedure_returned: false,
            error_open: false,
            last_error: None,
            closed: false,
            faulty: false,
        }
    }

    /// Whether the engine broke the contract of its columns; the connection must end.
    pub(crate) fn is_faulty(&self) -> bool {
        self.faulty
    }

    /// Number of the last error that was written.
    pub(crate) fn last_error(&self) -> Option<i32> {
        self.last_error
    }

    /// Starts a call of an RPC request with the positions of its output parameters, in order.
    pub(crate) fn begin_call(&mut self, outputs: impl Iterator<Item = u16>) {
        self.outputs = outputs.collect();
    }

    /// Ends one call of an RPC request, which may have several.
    pub(crate) fn end_call(&mut self) {
        self.write_pending(true);
        self.pend(DoneKind::Proc, COMMAND_EXECUTE);
    }

    /// Ends the message: the last DONE says so. With `attention` it acknowledges the client's attention instead.
    pub(crate) fn finish(mut self, attention: bool) -> SinkResult {
        if attention {
            self.write_pending(true);
            tokens::done(&mut self.buffer, DoneKind::Done, done_status::ATTENTION, 0, 0);
        } else {
            if self.pending.is_none() {
                self.pend(DoneKind::Done, COMMAND_OTHER);
            }
            self.write_pending(false);
        }
        self.send_full_packets();
        let last = std::mem::take(&mut self.buffer);
        self.send(&last, true);
        if self.closed { Err(SinkClosed) } else { Ok(()) }
    }

    /// Writes tokens of the login sequence and others that come with no engine call.
    pub(crate) fn token(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.write_pending(true);
        write(&mut self.buffer);
        self.send_full_packets();
    }

    /// A DONE that stands for no statement; it carries the error that no statement's DONE has carried.
    fn pend(&mut self, kind: DoneKind, command: u16) {
        let status = if std::mem::take(&mut self.error_open) { done_status::ERROR } else { 0 };
        self.pending = Some(PendingDone { kind, status, command, count: 0 });
    }

    fn write_pending(&mut self, more: bool) {
        let Some(done) = self.pending.take() else { return };
        let status = done.status | if more { done_status::MORE } else { 0 };
        tokens::done(&mut self.buffer, done.kind, status, done.command, done.count);
    }

    /// Sends all payload that fills packets and keeps the rest, at least one byte, for the last packet of the message.
    fn send_full_packets(&mut self) {
        let payload = self.queue.packet_bytes - HEADER_BYTES;
        let mut sent = 0;
        while self.buffer.len() - sent > payload {
            let chunk: &[u8] = &self.buffer[sent..sent + payload];
            let packet = response_packet(chunk, false, self.packet_id, self.queue.session);
            self.packet_id = self.packet_id.wrapping_add(1);
            self.closed |= self.queue.packets.blocking_send(packet).is_err();
            sent += payload;
        }
        self.buffer.drain(..sent);
    }

    fn send(&mut self, payload: &[u8], last: bool) {
        let packet = response_packet(payload, last, self.packet_id, self.queue.session);
        self.packet_id = self.packet_id.wrapping_add(1);
        self.closed |= self.queue.packets.blocking_send(packet).is_err();
    }

    fn state(&self) -> SinkResult {
        if self.closed || self.faulty { Err(SinkClosed) } else { Ok(()) }
    }

    /// Gives up on a message whose values the engine got wrong: the client is told, the connection ends.
    fn engine_fault(&mut self, what: &str) {
        self.faulty = true;
        let error = SqlError {
            number: 8624,
            class: 20,
            state: 1,
            message: format!("Internal Query Processor Error: {what}."),
            procedure: String::new(),
            line: 0,
        };
        self.error(&error);
    }

    fn put_column(&mut self, column: &ColumnMeta) {
        let wire = WireType::of(column.ty, column.nullable);
        self.buffer.extend_from_slice(&wire.user_type().to_le_bytes());
        self.buffer.extend_from_slice(&column_flags(column).to_le_bytes());
        wire.put(&mut self.buffer);
    }
}

fn column_flags(column: &ColumnMeta) -> u16 {
    /// The ignore-case bit of the third byte of a collation.
    const IGNORE_CASE: u8 = 0x10;
    let mut flags = if column.nullable { column_flag::NULLABLE } else { 0 };
    if column.ty.collation().is_some_and(|collation| collation.to_tds()[2] & IGNORE_CASE == 0) {
        flags |= column_flag::CASE_SENSITIVE;
    }
    flags
        | match (column.identity, column.computed) {
            (true, _) => column_flag::IDENTITY,
            (false, true) => column_flag::COMPUTED,
            (false, false) => column_flag::UPDATABLE_UNKNOWN,
        }
}

impl BatchSink for Response<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SinkResult {
        self.write_pending(true);
        self.buffer.push(COL_METADATA);
        let Ok(count) = u16::try_from(columns.len()) else {
            self.engine_fault("a result set has too many columns");
            return Err(SinkClosed);
        };
        self.buffer.extend_from_slice(&count.to_le_bytes());
        self.columns.clear();
        for column in columns {
            self.put_column(column);
            let wire = WireType::of(column.ty, column.nullable);
            if wire.form == Form::TextPointer {
                self.buffer.push(0); // no parts of a table name
            }
            self.columns.push(wire);
            tokens::b_varchar(&mut self.buffer, &column.name);
        }
        self.send_full_packets();
        self.state()
    }

    fn row(&mut self, values: &[Value]) -> SinkResult {
        self.state()?;
        let before = self.buffer.len();
        if let Err(values::Mismatch) = put_row(&mut self.buffer, &self.columns, values) {
            self.buffer.truncate(before);
            self.engine_fault("a value does not belong to the type of its column");
            return Err(SinkClosed);
        }
        self.send_full_packets();
        self.state()
    }

    fn done(&mut self, done: Done) -> SinkResult {
        self.write_pending(true);
        let kind = match (done.in_proc, std::mem::take(&mut self.procedure_returned)) {
            (true, _) => DoneKind::InProc,
            (false, true) => DoneKind::Proc,
            (false, false) => DoneKind::Done,
        };
        let mut status = if done.count.is_some() { done_status::COUNT } else { 0 };
        if done.error {
            status |= done_status::ERROR;
        }
        self.error_open = false;
        self.pending = Some(PendingDone { kind, status, command: done.cmd, count: done.count.unwrap_or(0) });
        self.state()
    }

    fn error(&mut self, error: &SqlError) {
        let server_name = Arc::clone(&self.queue.server_name);
        self.token(|out| tokens::error(out, error, &server_name));
        self.error_open = true;
        self.last_error = Some(error.number);
    }

    fn info(&mut self, info: &SqlError) {
        let server_name = Arc::clone(&self.queue.server_name);
        self.token(|out| tokens::info(out, info, &server_name));
    }

    fn env_change(&mut self, change: EnvChange) {
        self.token(|out| match change {
            EnvChange::Database(new, old) => tokens::env_text(out, env::DATABASE, &new, &old),
            EnvChange::Language(new, old) => tokens::env_text(out, env::LANGUAGE, &new, &old),
            EnvChange::BeginTransaction(descriptor) => {
                tokens::env_bytes(out, env::BEGIN_TRANSACTION, &descriptor.to_le_bytes(), &[]);
            }
            EnvChange::CommitTransaction(descriptor) => {
                tokens::env_bytes(out, env::COMMIT_TRANSACTION, &[], &descriptor.to_le_bytes());
            }
            EnvChange::RollbackTransaction(descriptor) => {
                tokens::env_bytes(out, env::ROLLBACK_TRANSACTION, &[], &descriptor.to_le_bytes());
            }
            EnvChange::ResetConnection => tokens::env_bytes(out, env::RESET_CONNECTION, &[], &[]),
        });
    }

    fn return_status(&mut self, status: i32) {
        self.token(|out| tokens::return_status(out, status));
        self.procedure_returned = true;
    }

    fn return_value(&mut self, name: &str, column: &ColumnMeta, value: &Value) {
        let ordinal = self.outputs.pop_front().unwrap_or(0);
        self.write_pending(true);
        let before = self.buffer.len();
        self.buffer.push(RETURN_VALUE);
        self.buffer.extend_from_slice(&ordinal.to_le_bytes());
        tokens::b_varchar(&mut self.buffer, name);
        self.buffer.push(IS_OUTPUT_PARAMETER);
        // Output parameters are always announced as nullable.
        self.put_column(&ColumnMeta { nullable: true, ..column.clone() });
        if values::put(&mut self.buffer, WireType::of(column.ty, true), value).is_err() {
            self.buffer.truncate(before);
            self.engine_fault("an output parameter does not belong to its type");
            return;
        }
        self.send_full_packets();
    }
}

/// Appends ROW, or NBCROW when it is shorter, as SQL Server does for rows with many NULLs.
fn put_row(out: &mut Vec<u8>, columns: &[WireType], values: &[Value]) -> Result<(), values::Mismatch> {
    if columns.len() != values.len() {
        return Err(values::Mismatch);
    }
    let null_prefix_bytes: usize =
        columns.iter().zip(values).filter(|(_, value)| value.is_null()).map(|(wire, _)| null_bytes(wire.form)).sum();
    let bitmap_bytes = columns.len().div_ceil(8);
    if null_prefix_bytes <= bitmap_bytes {
        out.push(ROW);
        return columns.iter().zip(values).try_for_each(|(wire, value)| values::put(out, *wire, value));
    }
    out.push(NBC_ROW);
    let bitmap_at = out.len();
    out.resize(bitmap_at + bitmap_bytes, 0);
    for (index, (wire, value)) in columns.iter().zip(values).enumerate() {
        if !value.is_null() {
            values::put(out, *wire, value)?;
        } else if wire.form == Form::Fixed {
            return Err(values::Mismatch);
        } else {
            out[bitmap_at + index / 8] |= 1 << (index % 8);
        }
    }
    Ok(())
}

/// Bytes that a NULL of this form takes in ROW.
fn null_bytes(form: Form) -> usize {
    match form {
        Form::Fixed | Form::Nothing | Form::LongLength => 0,
        Form::ByteLength | Form::TextPointer => 1,
        Form::ShortLength => 2,
        Form::Variant => 4,
        Form::PartialLength => 8,
    }
}
