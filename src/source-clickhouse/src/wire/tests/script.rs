//! A scripted server: bytes that a server would send, and a socket that plays them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::wire::client::{Connection, Credentials, Limits};
use crate::wire::error::Result;
use crate::wire::frame::compress;
use crate::wire::protocol::server;
use crate::wire::query::{Query, put_text, put_varint};
use crate::wire::shape::Shape;

/// Plays one reply per message of the client, in pieces of at most `piece` bytes; after the last one it either ends or
/// stays silent.
#[derive(Debug)]
pub(crate) struct Scripted {
    replies: Vec<Vec<u8>>,
    reply: usize,
    position: usize,
    messages: usize,
    piece: usize,
    silent_at_end: bool,
    pub(crate) written: Vec<u8>,
}

impl Scripted {
    pub(crate) fn new(replies: Vec<Vec<u8>>) -> Self {
        let written = Vec::new();
        Scripted { replies, reply: 0, position: 0, messages: 0, piece: usize::MAX, silent_at_end: false, written }
    }

    /// A server that greets and then answers the query with these packets.
    pub(crate) fn answering(packets: &[Vec<u8>]) -> Self {
        Scripted::new(vec![hello(), packets.concat()])
    }

    pub(crate) fn in_pieces_of(mut self, piece: usize) -> Self {
        self.piece = piece;
        self
    }

    pub(crate) fn silent_at_end(mut self) -> Self {
        self.silent_at_end = true;
        self
    }
}

impl AsyncRead for Scripted {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.reply < this.messages
            && this.replies.get(this.reply).is_some_and(|reply| this.position == reply.len())
        {
            this.reply += 1;
            this.position = 0;
        }
        let Some(reply) = this.replies.get(this.reply).filter(|_| this.reply < this.messages) else {
            // A silent end: nothing will ever wake this read, so the reader's own limits have to end it.
            return if this.silent_at_end { Poll::Pending } else { Poll::Ready(Ok(())) };
        };
        let take = (reply.len() - this.position).min(this.piece).min(out.remaining());
        out.put_slice(&reply[this.position..this.position + take]);
        this.position += take;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.messages += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The hello of a current server to a client of revision 54448.
pub(crate) fn hello() -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, server::HELLO);
    put_text(&mut out, "ClickHouse");
    for number in [26, 7, 54_513] {
        put_varint(&mut out, number);
    }
    put_text(&mut out, "Etc/UTC");
    put_text(&mut out, "scripted");
    put_varint(&mut out, 2);
    out
}

/// The plain bytes of a block: `(name, type, values)`.
pub(crate) fn block_bytes(rows: u64, columns: &[(&str, &str, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![1, 0, 2];
    out.extend_from_slice(&(-1_i32).to_le_bytes());
    out.push(0);
    put_varint(&mut out, columns.len() as u64);
    put_varint(&mut out, rows);
    for (name, type_text, values) in columns {
        put_text(&mut out, name);
        put_text(&mut out, type_text);
        out.extend_from_slice(values);
    }
    out
}

/// A packet that carries a block in frames of at most `frame` bytes.
pub(crate) fn block_packet(kind: u64, plain: &[u8], frame: usize) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, kind);
    put_text(&mut out, "");
    for piece in plain.chunks(frame) {
        out.extend_from_slice(&compress(piece));
    }
    out
}

/// A data packet in one frame.
pub(crate) fn data(rows: u64, columns: &[(&str, &str, Vec<u8>)]) -> Vec<u8> {
    block_packet(server::DATA, &block_bytes(rows, columns), usize::MAX)
}

/// `rows` values of the test column `n Int64`, counting from `first`.
pub(crate) fn numbers(first: i64, rows: i64) -> Vec<u8> {
    let values = (first..first + rows).flat_map(i64::to_le_bytes).collect();
    data(rows as u64, &[("n", "Int64", values)])
}

pub(crate) fn profile_info(rows: u64) -> Vec<u8> {
    let mut out = vec![server::PROFILE_INFO as u8];
    for number in [rows, 1, 8 * rows] {
        put_varint(&mut out, number);
    }
    out.extend_from_slice(&[0, 0, 0]);
    out
}

pub(crate) fn progress() -> Vec<u8> {
    vec![server::PROGRESS as u8, 5, 40, 0, 0, 0]
}

pub(crate) fn end_of_stream() -> Vec<u8> {
    vec![server::END_OF_STREAM as u8]
}

/// An exception of `depth` nested causes.
pub(crate) fn exception(code: i32, depth: usize) -> Vec<u8> {
    let mut out = vec![server::EXCEPTION as u8];
    for level in (0..depth).rev() {
        out.extend_from_slice(&code.to_le_bytes());
        for text in ["DB::Exception", "a message that holds a value", "a stack"] {
            put_text(&mut out, text);
        }
        out.push(u8::from(level > 0));
    }
    out
}

pub(crate) const LIMITS: Limits = Limits { silence: Duration::from_secs(300), cancel: Duration::from_secs(10) };

pub(crate) const NOBODY: Credentials<'static> = Credentials { database: "d", user: "u", password: "p" };

/// The shape of [`numbers`].
pub(crate) fn number_shape() -> Shape {
    Shape::new([("n", "Int64")]).expect("a type of the reader")
}

/// A connection on which a query of `shape` runs against a scripted socket.
pub(crate) async fn running(socket: Scripted, shape: Shape) -> Result<Connection<Scripted>> {
    let (mut connection, _) = Connection::open(socket, NOBODY, LIMITS).await?;
    let query = Query {
        id: "dpone-native-00000000000000000000000000000000",
        text: "SELECT n FROM d.t",
        settings: &[],
        shape,
        block_cap_bytes: 32 << 20,
        result_bound: None,
    };
    connection.start(query, Instant::now() + Duration::from_secs(21_600)).await?;
    Ok(connection)
}

/// Runs a query against `packets` and returns the rows read and how it ended.
pub(crate) async fn read_all(socket: Scripted, shape: Shape) -> (u64, Result<()>) {
    let mut rows = 0;
    let mut connection = match running(socket, shape).await {
        Ok(connection) => connection,
        Err(error) => return (0, Err(error)),
    };
    loop {
        match connection.next_block().await {
            Ok(Some(block)) => rows += block.rows as u64,
            Ok(None) => return (rows, Ok(())),
            Err(error) => {
                // Whatever went wrong, the connection must never answer again.
                assert!(matches!(connection.next_block().await, Err(crate::wire::WireError::Poisoned)));
                return (rows, Err(error));
            }
        }
    }
}
