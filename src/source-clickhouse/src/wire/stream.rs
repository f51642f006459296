//! The byte stream: buffered reads with a limit of silence, and primitive values.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{Result, WireError};

/// Bytes asked of the socket at once.
const READ_BUFFER_BYTES: usize = 256 * 1024;

/// A socket with a read buffer.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    socket: S,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    silence: Duration,
    deadline: Option<Instant>,
}

/// Bytes that come piece by piece: from the socket, or out of the frames of a block.
pub(crate) trait Pieces {
    /// What is at hand and was not read yet; never empty after [`Pieces::refill`].
    fn rest(&self) -> &[u8];

    /// Marks `count` bytes of [`Pieces::rest`] as read.
    fn advance(&mut self, count: usize);

    /// Gets the next piece if all that is at hand was read.
    async fn refill(&mut self) -> Result<()>;

    async fn u8(&mut self) -> Result<u8> {
        self.refill().await?;
        let byte = self.rest()[0];
        self.advance(1);
        Ok(byte)
    }

    /// A LEB128 number of at most 64 bits.
    async fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8().await?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(WireError::Malformed("a number exceeds 64 bits"));
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Malformed("a number exceeds 64 bits"))
    }

    /// Fills `out` completely, over as many pieces as it takes.
    async fn exact(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            self.refill().await?;
            let take = out.len().min(self.rest().len());
            let (now, later) = out.split_at_mut(take);
            now.copy_from_slice(&self.rest()[..take]);
            self.advance(take);
            out = later;
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pieces for Wire<S> {
    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn advance(&mut self, count: usize) {
        self.start += count;
    }

    /// Time is counted only here, so a caller that does not ask cannot run into silence.
    async fn refill(&mut self) -> Result<()> {
        if self.start < self.end {
            return Ok(());
        }
        let wait_until = self.wait_until();
        let read = timeout_at(wait_until, self.socket.read(&mut self.buffer)).await;
        match read {
            Err(_) if self.deadline == Some(wait_until) => Err(WireError::Deadline),
            Err(_) => Err(WireError::Silence),
            Ok(Err(error)) => Err(WireError::Io(error)),
            Ok(Ok(0)) => Err(WireError::Closed),
            Ok(Ok(read)) => {
                self.start = 0;
                self.end = read;
                Ok(())
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(socket: S, silence: Duration) -> Self {
        Wire {
            socket,
            buffer: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            silence,
            deadline: None,
        }
    }

    /// Sets or lifts the point in time after which every wait fails.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Buffered bytes that were not read yet.
    pub(crate) fn pending(&self) -> usize {
        self.end - self.start
    }

    /// The nearer of the deadline and the limit of silence from now.
    fn wait_until(&self) -> Instant {
        let silent = Instant::now() + self.silence;
        self.deadline.map_or(silent, |deadline| deadline.min(silent))
    }

    pub(crate) async fn i32_le(&mut self) -> Result<i32> {
        let mut bytes = [0; 4];
        self.exact(&mut bytes).await?;
        Ok(i32::from_le_bytes(bytes))
    }

    /// A length-prefixed text of at most `limit` bytes; the length is judged before memory is set aside.
    pub(crate) async fn text(&mut self, limit: usize) -> Result<String> {
        let length = self.bounded_length(limit).await?;
        let mut bytes = vec![0; length];
        self.exact(&mut bytes).await?;
        String::from_utf8(bytes).map_err(|_| WireError::Malformed("a text is not UTF-8"))
    }

    /// Passes over a length-prefixed text of at most `limit` bytes and returns its length.
    pub(crate) async fn skip_text(&mut self, limit: usize) -> Result<usize> {
        let length = self.bounded_length(limit).await?;
        let mut left = length;
        while left > 0 {
            self.refill().await?;
            let take = left.min(self.pending());
            self.start += take;
            left -= take;
        }
        Ok(length)
    }

    async fn bounded_length(&mut self, limit: usize) -> Result<usize> {
        let length = self.varint().await?;
        match usize::try_from(length) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(WireError::Malformed("a text is longer than allowed")),
        }
    }

    /// Sends a whole message. A server that does not take it for the limit of silence counts as silent.
    pub(crate) async fn send(&mut self, message: &[u8]) -> Result<()> {
        let wait_until = self.wait_until();
        let sent = timeout_at(wait_until, async {
            self.socket.write_all(message).await?;
            self.socket.flush().await
        })
        .await;
        match sent {
            Err(_) if self.deadline == Some(wait_until) => Err(WireError::Deadline),
            Err(_) => Err(WireError::Silence),
            Ok(Err(error)) => Err(WireError::Io(error)),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Closes the socket; a peer that does not take part in it is not waited for longer than `limit`.
    pub(crate) async fn close(&mut self, limit: Duration) {
        if !matches!(timeout(limit, self.socket.shutdown()).await, Ok(Ok(()))) {
            tracing::debug!("the source connection did not close cleanly");
        }
    }
}
