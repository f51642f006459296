//! The transport under TLS: during the handshake each flight travels inside PRELOGIN packets, afterwards TLS records are
//! on the socket as they are (MS-TDS 3.3.5.2).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::packet::{DEFAULT_PACKET_BYTES, HEADER_BYTES, Header, PacketType, put_header};

/// Largest flight of a handshake that is buffered, in bytes; a certificate chain is far below.
const MAX_FLIGHT_BYTES: usize = 1 << 20;

/// A socket that wraps what is written and unwraps what is read until [`PreloginStream::unwrap_packets`].
#[derive(Debug)]
pub(crate) struct PreloginStream<S> {
    inner: S,
    wrapped: bool,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    payload_left: usize,
    /// Plain bytes of the flight that is not flushed yet.
    flight: Vec<u8>,
    /// Packets that are on their way to the socket.
    outgoing: Vec<u8>,
    sent: usize,
}

impl<S> PreloginStream<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            wrapped: true,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            payload_left: 0,
            flight: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
        }
    }

    /// Ends the wrapping: the handshake is complete and flushed.
    pub(crate) fn unwrap_packets(&mut self) {
        self.wrapped = false;
    }

    /// The socket itself, for login-only encryption.
    pub(crate) fn into_inner(self) -> S {
        self.inner
    }

    fn wrap_flight(&mut self) {
        let payload_bytes = DEFAULT_PACKET_BYTES - HEADER_BYTES;
        let chunks = self.flight.len().div_ceil(payload_bytes);
        for (index, chunk) in self.flight.chunks(payload_bytes).enumerate() {
            // The packet id counts modulo 256; clients do not look at it.
            put_header(
                &mut self.outgoing,
                PacketType::Prelogin,
                chunk.len(),
                index + 1 == chunks,
                (index % 256) as u8,
                0,
            );
            self.outgoing.extend_from_slice(chunk);
        }
        self.flight.clear();
    }
}

impl<S: AsyncWrite + Unpin> PreloginStream<S> {
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.outgoing.len() {
            let count = ready!(Pin::new(&mut self.inner).poll_write(context, &self.outgoing[self.sent..]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += count;
        }
        self.outgoing.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> PreloginStream<S> {
    /// Reads the next packet header; false at an orderly end of the stream.
    fn poll_header(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.header_bytes < HEADER_BYTES {
            let mut buffer = ReadBuf::new(&mut self.header[self.header_bytes..]);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer))?;
            let count = buffer.filled().len();
            if count == 0 {
                return Poll::Ready(Ok(false));
            }
            self.header_bytes += count;
        }
        self.header_bytes = 0;
        let header = Header::parse(self.header).map_err(io::Error::other)?;
        if header.kind != PacketType::Prelogin {
            return Poll::Ready(Err(io::Error::other("a TLS handshake travels in PRELOGIN packets")));
        }
        self.payload_left = header.payload_bytes;
        Poll::Ready(Ok(true))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PreloginStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.wrapped {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        while self.payload_left == 0 {
            if !ready!(self.poll_header(context))? {
                return Poll::Ready(Ok(()));
            }
        }
        let limit = self.payload_left.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(limit));
        ready!(Pin::new(&mut self.inner).poll_read(context, &mut part))?;
        let count = part.filled().len();
        buffer.advance(count);
        self.payload_left -= count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PreloginStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if !self.wrapped {
            return Pin::new(&mut self.inner).poll_write(context, bytes);
        }
        if self.flight.len() + bytes.len() > MAX_FLIGHT_BYTES {
            return Poll::Ready(Err(io::Error::other("a TLS handshake flight exceeds its bound")));
        }
        self.flight.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wrap_flight();
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wrap_flight();
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
