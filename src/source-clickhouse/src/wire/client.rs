//! One connection: hello, one query at a time, and the proof of its end.

use std::time::Duration;

use contract::block::Block;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use super::block::read_block;
use super::error::{Result, WireError};
use super::frame::FrameBuffers;
use super::protocol::{CLIENT_REVISION, client, server};
use super::query::{self, Query, ResultBound};
use super::shape::Shape;
use super::stream::{Pieces, Wire};

/// Bound of names, zones and versions in a hello.
const NAME_LIMIT_BYTES: usize = 1024;
/// Bounds of an exception's texts, which are passed over.
const MESSAGE_LIMIT_BYTES: usize = 1 << 20;
const NESTED_EXCEPTIONS_LIMIT: usize = 16;

/// Who logs in.
#[derive(Clone, Copy)]
pub(crate) struct Credentials<'a> {
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
}

/// Limits of time of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) silence: Duration,
    pub(crate) cancel: Duration,
}

/// What the server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerHello {
    pub(crate) name: String,
    pub(crate) version: (u64, u64, u64),
    pub(crate) revision: u64,
    pub(crate) time_zone: String,
}

/// A logged-in connection.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    wire: Wire<S>,
    buffers: FrameBuffers,
    state: State,
    limits: Limits,
}

#[derive(Debug)]
enum State {
    Idle,
    Running(Box<Running>),
    /// An error happened, or a call was dropped half way: the position in the stream is unknown.
    Poisoned,
}

#[derive(Debug)]
struct Running {
    shape: Shape,
    block_cap_bytes: usize,
    bound: Option<ResultBound>,
    rows: u64,
    bytes: u64,
    counted_by_server: Option<u64>,
}

/// What one packet means to a running query.
enum Packet {
    Rows(Block),
    Nothing,
    End,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Exchanges hellos over a fresh socket.
    pub(crate) async fn open(socket: S, credentials: Credentials<'_>, limits: Limits) -> Result<(Self, ServerHello)> {
        let mut wire = Wire::new(socket, limits.silence);
        wire.send(&query::hello(credentials.database, credentials.user, credentials.password)).await?;
        let hello = match wire.varint().await? {
            server::HELLO => read_hello(&mut wire).await?,
            server::EXCEPTION => return Err(read_exception(&mut wire).await),
            other => return Err(WireError::UnknownPacket(other)),
        };
        if wire.pending() != 0 {
            return Err(WireError::Malformed("bytes follow the hello"));
        }
        Ok((Connection { wire, buffers: FrameBuffers::default(), state: State::Idle, limits }, hello))
    }

    /// Sends a query. The connection must be idle; `deadline` bounds every wait until its end.
    pub(crate) async fn start(&mut self, query: Query<'_>, deadline: Instant) -> Result<()> {
        let message = query::query(&query)?;
        let State::Idle = std::mem::replace(&mut self.state, State::Poisoned) else {
            return Err(WireError::Poisoned);
        };
        self.wire.set_deadline(Some(deadline));
        self.wire.send(&message).await?;
        self.state = State::Running(Box::new(Running {
            shape: query.shape,
            block_cap_bytes: query.block_cap_bytes,
            bound: query.result_bound,
            rows: 0,
            bytes: 0,
            counted_by_server: None,
        }));
        Ok(())
    }

    /// The next block with rows; `None` only after EndOfStream with the server's row count equal to ours.
    pub(crate) async fn next_block(&mut self) -> Result<Option<Block>> {
        let State::Running(mut running) = std::mem::replace(&mut self.state, State::Poisoned) else {
            return Err(WireError::Poisoned);
        };
        loop {
            match self.packet(&mut running).await? {
                Packet::Nothing => {}
                Packet::Rows(block) => {
                    self.state = State::Running(running);
                    return Ok(Some(block));
                }
                Packet::End => {
                    self.wire.set_deadline(None);
                    self.state = State::Idle;
                    return Ok(None);
                }
            }
        }
    }

    async fn packet(&mut self, running: &mut Running) -> Result<Packet> {
        match self.wire.varint().await? {
            server::DATA => self.data(running).await,
            server::PROGRESS => {
                for _ in 0..5 {
                    self.wire.varint().await?;
                }
                Ok(Packet::Nothing)
            }
            server::PROFILE_INFO => {
                if running.counted_by_server.is_some() {
                    return Err(WireError::UnexpectedPacket("a second profile info"));
                }
                running.counted_by_server = Some(read_profile_rows(&mut self.wire).await?);
                Ok(Packet::Nothing)
            }
            server::END_OF_STREAM => {
                if self.wire.pending() != 0 {
                    return Err(WireError::Malformed("bytes follow the end of the stream"));
                }
                if running.counted_by_server != Some(running.rows) {
                    return Err(WireError::RowCount);
                }
                Ok(Packet::End)
            }
            server::EXCEPTION => Err(read_exception(&mut self.wire).await),
            server::TOTALS => Err(WireError::UnexpectedPacket("totals")),
            server::EXTREMES => Err(WireError::UnexpectedPacket("extremes")),
            server::LOG => Err(WireError::UnexpectedPacket("a server log")),
            server::TABLE_COLUMNS => Err(WireError::UnexpectedPacket("column defaults")),
            server::HELLO | server::PONG => Err(WireError::UnexpectedPacket("a greeting")),
            other => Err(WireError::UnknownPacket(other)),
        }
    }

    async fn data(&mut self, running: &mut Running) -> Result<Packet> {
        if self.wire.skip_text(NAME_LIMIT_BYTES).await? != 0 {
            return Err(WireError::UnexpectedPacket("data of an external table"));
        }
        let block = read_block(&mut self.wire, &mut self.buffers, &running.shape, running.block_cap_bytes).await?;
        let Some(block) = block.filter(|block| block.rows > 0) else {
            return Ok(Packet::Nothing);
        };
        if running.counted_by_server.is_some() {
            return Err(WireError::UnexpectedPacket("rows after the profile info"));
        }
        running.rows += block.rows as u64;
        running.bytes += decoded_bytes(&block) as u64;
        if running.bound.is_some_and(|bound| running.rows > bound.rows || running.bytes > bound.bytes) {
            return Err(WireError::ResultTooLarge);
        }
        Ok(Packet::Rows(block))
    }

    /// Asks whether the server is still there. The connection must be idle.
    pub(crate) async fn ping(&mut self, deadline: Instant) -> Result<()> {
        let State::Idle = std::mem::replace(&mut self.state, State::Poisoned) else {
            return Err(WireError::Poisoned);
        };
        self.wire.set_deadline(Some(deadline));
        self.wire.send(&[client::PING as u8]).await?;
        match self.wire.varint().await? {
            server::PONG if self.wire.pending() == 0 => {
                self.wire.set_deadline(None);
                self.state = State::Idle;
                Ok(())
            }
            server::EXCEPTION => Err(read_exception(&mut self.wire).await),
            other => Err(WireError::UnknownPacket(other)),
        }
    }

    /// Cancels a running query, waits for its end within the limit, and closes the socket whatever happens.
    pub(crate) async fn cancel(mut self) {
        let state = std::mem::replace(&mut self.state, State::Poisoned);
        if !matches!(state, State::Idle) {
            let limit = self.limits.cancel;
            self.wire.set_deadline(Some(Instant::now() + limit));
            let settled = timeout(limit, self.cancel_and_drain(state)).await;
            tracing::debug!(ended = matches!(settled, Ok(Ok(()))), "cancelled the source query");
        }
        self.close().await;
    }

    /// Only a stream whose position is known can be drained; otherwise the server learns from the closed socket.
    async fn cancel_and_drain(&mut self, state: State) -> Result<()> {
        self.wire.send(&[client::CANCEL as u8]).await?;
        let State::Running(mut running) = state else { return Ok(()) };
        loop {
            match self.packet(&mut running).await {
                Ok(Packet::End) | Err(WireError::RowCount | WireError::Server(_)) => return Ok(()),
                Ok(Packet::Rows(_) | Packet::Nothing) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes the socket.
    pub(crate) async fn close(mut self) {
        self.wire.close(self.limits.cancel).await;
    }
}

/// Memory that the values of a block take, as counted against caps.
pub(crate) fn decoded_bytes(block: &Block) -> usize {
    use contract::block::Values;
    block
        .columns
        .iter()
        .map(|column| {
            let values = match &column.values {
                Values::Int8(v) => v.len(),
                Values::UInt8(v) | Values::Bool(v) => v.len(),
                Values::Int16(v) => v.len() * 2,
                Values::UInt16(v) | Values::Date(v) => v.len() * 2,
                Values::Int32(v) | Values::Date32(v) => v.len() * 4,
                Values::UInt32(v) => v.len() * 4,
                Values::Float32(v) => v.len() * 4,
                Values::Int64(v) => v.len() * 8,
                Values::UInt64(v) => v.len() * 8,
                Values::Float64(v) => v.len() * 8,
                Values::String(v) => v.bytes.len() + v.ends.len() * 4,
                Values::Uuid(v) => v.len() * 16,
                Values::Decimal(v) => v.len() * 16,
            };
            values + column.nulls.as_ref().map_or(0, Vec::len)
        })
        .sum()
}

async fn read_hello<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>) -> Result<ServerHello> {
    let name = wire.text(NAME_LIMIT_BYTES).await?;
    let (major, minor) = (wire.varint().await?, wire.varint().await?);
    let revision = wire.varint().await?;
    if revision < CLIENT_REVISION {
        // An older server would send another hello and read another query.
        return Err(WireError::Malformed("the server is older than the protocol revision of this client"));
    }
    let time_zone = wire.text(NAME_LIMIT_BYTES).await?;
    wire.skip_text(NAME_LIMIT_BYTES).await?; // display name
    let patch = wire.varint().await?;
    Ok(ServerHello { name, version: (major, minor, patch), revision, time_zone })
}

/// Rows of a profile info; the other fields have no meaning to an exact read.
async fn read_profile_rows<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>) -> Result<u64> {
    let rows = wire.varint().await?;
    wire.varint().await?; // blocks
    wire.varint().await?; // bytes
    let applied_limit = wire.u8().await?;
    wire.varint().await?; // rows before limit
    wire.u8().await?; // whether that was calculated
    if applied_limit != 0 {
        return Err(WireError::UnexpectedPacket("a limit was applied"));
    }
    Ok(rows)
}

/// Reads an exception with all its causes and keeps the outermost number. Its texts can hold values and secrets, so they
/// are passed over; the server's own log has them under the query id.
async fn read_exception<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>) -> WireError {
    match exception_code(wire).await {
        Ok(code) => WireError::Server(code),
        Err(error) => error,
    }
}

async fn exception_code<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>) -> Result<i32> {
    let mut outermost = None;
    for _ in 0..NESTED_EXCEPTIONS_LIMIT {
        let code = wire.i32_le().await?;
        outermost.get_or_insert(code);
        for _ in ["name", "message", "stack trace"] {
            wire.skip_text(MESSAGE_LIMIT_BYTES).await?;
        }
        if wire.u8().await? == 0 {
            return Ok(outermost.unwrap_or(code));
        }
    }
    Err(WireError::Malformed("an exception is nested too deeply"))
}
