//! ClickHouse's HTTP interface: queries by GET and POST, rows in the body, formats as the engine writes them.
//!
//! A request runs on a thread of its own, in a session of its own unless it names one (`session_id`). Its result streams
//! through a short queue into a chunked body. An error before the first byte has its own status; one after it is written into
//! the body, which is then broken off, so that no client can take it for complete.

mod body;
mod reply;
mod request;
mod sessions;
mod work;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::Shared;
use super::control::Control;
use super::engine::EngineError;
use body::{ReplyBody, RequestBody};
use request::Asked;
pub(super) use sessions::Sessions;

/// Serves one HTTP connection until its client leaves or the server stops.
pub(super) async fn serve<S>(
    stream: S,
    shared: Arc<Shared>,
    number: u64,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(shared, number, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = connection => served.map_err(io::Error::other),
        _ = stopped.wait_for(|stop| *stop) => Ok(()),
    }
}

async fn answer(shared: Arc<Shared>, number: u64, request: Request<Incoming>) -> Response<ReplyBody> {
    let (head, incoming) = request.into_parts();
    let asked = match Asked::read(&head) {
        Ok(Asked::Ping) => return reply::text("Ok.\n"),
        Ok(Asked::Query(asked)) => asked,
        Err(error) => return reply::error(&shared, "", &error),
    };
    if let Err(error) = shared.accounts.check(&asked.user, &asked.password) {
        return reply::error(&shared, &asked.query_id, &error);
    }
    let control = Control::new(Arc::clone(&shared.engine));
    // Stops the query when hyper drops this future or the body: the client has gone.
    let guard = body::Departure::new(Arc::clone(&control));
    let rows = RequestBody::pump(incoming.into_data_stream(), asked.encoding);
    let (sender, mut parts) = tokio::sync::mpsc::channel(2);
    let query_id = asked.query_id.clone();
    let worker = {
        let shared = Arc::clone(&shared);
        std::thread::Builder::new()
            .name(format!("clickhouse-http-{number}"))
            .spawn(move || work::run(&shared, number, &asked, rows, &control, &sender))
    };
    if let Err(error) = worker {
        return reply::error(&shared, &query_id, &EngineError::new(1001, "STD_EXCEPTION", error.to_string()));
    }
    match parts.recv().await {
        Some(work::Part::Begin(begin)) => reply::stream(&shared, &query_id, &begin, parts, guard),
        Some(work::Part::Failed(error)) => reply::error(&shared, &query_id, &error),
        Some(work::Part::Bytes(_)) | None => {
            reply::error(&shared, &query_id, &EngineError::new(1001, "STD_EXCEPTION", "the request's thread ended"))
        }
    }
}
