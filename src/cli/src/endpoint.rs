//! `GET /progress` of a worker: one small answer per connection, for a person's eyes.
//!
//! Why not a web server: the answer to the only request that there is needs no more than the head of that request. A
//! connection has one second from its first byte to its last, and only a few are served at once, so a peer that stalls
//! costs the run nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use contract::worker::{self, RunTag};
use runtime::Progress;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

const CONNECTIONS_MAX: usize = 8;
const DEADLINE: Duration = Duration::from_secs(1);
/// Pause after a refused accept, as when the process has no file handle left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
const HEAD_BYTES_MAX: usize = 2048;
const IDENTITY_BYTES_MAX: usize = 64;

/// Whose progress it is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pod_uid: String,
    run: RunTag,
    attempt: Option<u64>,
    epoch: u64,
}

impl Identity {
    /// The identity of a process. A pod UID that cannot be read is left empty, which no reader takes for its pod's.
    pub(crate) fn new(file: Option<&Path>, run_id: &str, epoch: u64) -> Self {
        let text = file.map(std::fs::read_to_string).and_then(Result::ok).unwrap_or_default();
        let uid = text.trim();
        let plain =
            uid.len() <= IDENTITY_BYTES_MAX && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        Identity {
            pod_uid: if plain { uid.to_owned() } else { String::new() },
            run: RunTag::of(run_id),
            attempt: run_id.rsplit_once('/').and_then(|(_, attempt)| attempt.parse().ok()),
            epoch,
        }
    }

    fn document(&self, progress: &Progress) -> String {
        let now = progress.read();
        let document = worker::Progress {
            pod_uid: self.pod_uid.clone(),
            run: self.run.clone(),
            attempt: self.attempt,
            epoch: self.epoch,
            stage: now.stage,
            rows_read: now.rows_read,
            bytes_encoded: now.bytes_encoded,
            chunks_sealed: now.chunks_sealed,
            chunks_verified: now.chunks_verified,
        };
        document.encode()
    }
}

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Endpoint(JoinHandle<()>);

impl Endpoint {
    /// Listens on `address` and prints it, so that a port of 0 can be found. Without a listener the run goes on: nothing
    /// depends on its progress being seen.
    pub(crate) async fn serve(address: SocketAddr, identity: Identity, progress: Progress) -> Option<Self> {
        let bound = TcpListener::bind(address).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        match bound {
            Ok((address, listener)) => {
                eprintln!("progress at http://{address}/progress");
                Some(Endpoint(tokio::spawn(accept(listener, Arc::new(identity), progress))))
            }
            Err(error) => {
                tracing::warn!(kind = %error.kind(), "progress is not served: the address cannot be listened on");
                None
            }
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept(listener: TcpListener, identity: Arc<Identity>, progress: Progress) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (identity, progress) = (Arc::clone(&identity), progress.clone());
        tokio::spawn(async move {
            // Why ignored: a peer that is gone or too slow gets no answer.
            let _ = tokio::time::timeout(DEADLINE, answer(stream, &identity, &progress)).await;
            drop(place);
        });
    }
}

async fn answer(mut stream: TcpStream, identity: &Identity, progress: &Progress) -> std::io::Result<()> {
    let mut head = [0u8; HEAD_BYTES_MAX];
    let mut filled = 0;
    while !head[..filled].windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut head[filled..]).await?;
        if read == 0 {
            // Closed early, or a head longer than any of ours.
            return Ok(());
        }
        filled += read;
    }
    let mut request = head[..filled].split(|byte| *byte == b' ');
    let (status, body) = match (request.next(), request.next()) {
        (Some(b"GET"), Some(b"/progress")) => ("200 OK", identity.document(progress)),
        (_, Some(b"/progress")) => ("405 Method Not Allowed", String::new()),
        _ => ("404 Not Found", String::new()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn endpoint() -> (Endpoint, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("uid");
        std::fs::write(&file, "0b1e-uid\n").unwrap();
        let identity = Identity::new(Some(&file), "UID/1/2", 7);
        (Endpoint(tokio::spawn(accept(listener, Arc::new(identity), Progress::default()))), address)
    }

    async fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn progress_is_answered_and_nothing_else() {
        let (_endpoint, address) = endpoint().await;
        let answer = ask(address, b"GET /progress HTTP/1.1\r\nHost: x\r\n\r\n").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let read = worker::Progress::parse(body.as_bytes(), "0b1e-uid", &RunTag::of("UID/1/2")).unwrap();
        assert_eq!((read.attempt, read.epoch), (Some(2), 7));
        for (request, status) in [
            ("POST /progress HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
            ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
            ("GET /progress/x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
            ("\r\n\r\n", "HTTP/1.1 404 "),
        ] {
            assert!(ask(address, request.as_bytes()).await.starts_with(status), "{request}");
        }
        let long = format!("GET /progress HTTP/1.1\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        assert_eq!(ask(address, &long.as_bytes()[..HEAD_BYTES_MAX]).await, "");
    }

    /// Peers that say nothing hold every place until their second is over; then others are served.
    #[tokio::test]
    async fn silent_peers_do_not_hold_it_for_long() {
        let (_endpoint, address) = endpoint().await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX * 2 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let asked = tokio::time::timeout(DEADLINE * 20, ask(address, b"GET /progress HTTP/1.0\r\n\r\n")).await;
        assert!(asked.unwrap().starts_with("HTTP/1.1 200 OK"));
        for mut stream in silent {
            assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0, "closed without an answer");
        }
    }

    #[test]
    fn a_strange_identity_is_empty() {
        for (run_id, attempt) in [("cli-00ff", None), ("a/b/3", Some(3)), ("a/b/x", None)] {
            assert_eq!(Identity::new(None, run_id, 1).attempt, attempt, "{run_id}");
        }
        assert_eq!(Identity::new(Some(Path::new("/nowhere/at/all")), "r", 1).pod_uid, "");
    }
}
