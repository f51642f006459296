//! Bodies: of requests as a blocking reader, of replies as a stream with an end or a break.

use std::convert::Infallible;
use std::future::Future as _;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Sleep, sleep};

use super::request::Encoding;
use super::work::Part;
use crate::clickhouse::control::Control;

/// A reply's body: whole, or streamed.
pub(super) type ReplyBody = Either<Full<Bytes>, StreamedReply>;

/// Stops a query whose client has gone.
pub(super) struct Departure(Arc<Control>);

impl Departure {
    pub(super) fn new(control: Arc<Control>) -> Departure {
        Departure(control)
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let control = Arc::clone(&self.0);
        if control.mark_gone() {
            // Waits for the query's end, which must not hold up the runtime.
            std::thread::spawn(move || control.stop());
        }
    }
}

/// How long a body that ends in an error waits before it breaks off: hyper throws away what it has not yet written then, and
/// does not tell when it has, so this is the time that the error's text has to leave.
const FAREWELL: Duration = Duration::from_millis(250);

/// The parts of a running query's result.
pub(super) struct StreamedReply {
    parts: Receiver<Part>,
    farewell: Option<Pin<Box<Sleep>>>,
    _departure: Departure,
}

impl StreamedReply {
    pub(super) fn new(parts: Receiver<Part>, departure: Departure) -> StreamedReply {
        StreamedReply { parts, farewell: None, _departure: departure }
    }
}

/// The result ended in an error, which its last bytes tell.
#[derive(Debug, thiserror::Error)]
#[error("test_clickhouse.http: the query failed after its result had begun")]
pub(super) struct Broken;

impl Body for StreamedReply {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(farewell) = &mut self.farewell {
                return farewell.as_mut().poll(context).map(|()| Some(Err(Broken)));
            }
            match std::task::ready!(self.parts.poll_recv(context)) {
                Some(Part::Bytes(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Part::Failed(_)) => self.farewell = Some(Box::pin(sleep(FAREWELL))),
                Some(Part::Begin(_)) | None => return Poll::Ready(None),
            }
        }
    }
}

/// A request's body, read by the thread that works on it.
pub(super) enum RequestBody {
    Plain(Chunks),
    Lz4(Box<lz4_flex::frame::FrameDecoder<Chunks>>),
}

/// Chunks as they arrive.
pub(super) struct Chunks {
    arriving: Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl RequestBody {
    /// Reads `stream` ahead of the worker by no more than a few chunks.
    pub(super) fn pump<S, E>(mut stream: S, encoding: Encoding) -> RequestBody
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let (sender, arriving) = channel(2);
        tokio::spawn(async move {
            while let Some(chunk) = stream.next().await {
                // Nobody reads on when the statement takes no rows or has failed.
                if sender.send(chunk.map_err(io::Error::other)).await.is_err() {
                    return;
                }
            }
        });
        let chunks = Chunks { arriving, current: Bytes::new() };
        match encoding {
            Encoding::Plain => RequestBody::Plain(chunks),
            Encoding::Lz4 => RequestBody::Lz4(Box::new(lz4_flex::frame::FrameDecoder::new(chunks))),
        }
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.arriving.blocking_recv() {
                Some(chunk) => self.current = chunk?,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.current.len());
        buffer[..count].copy_from_slice(&self.current.split_to(count));
        Ok(count)
    }
}

impl Read for RequestBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            RequestBody::Plain(chunks) => chunks.read(buffer),
            RequestBody::Lz4(decoder) => decoder.read(buffer),
        }
    }
}

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Broken {
        match never {}
    }
}
