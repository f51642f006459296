//! `/healthz` and `/readyz`: whether the operator hears the cluster, not merely whether it runs.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A watch that only fails for so long is deaf.
const DEAF_AFTER: Duration = Duration::from_secs(300);

/// An API server that was not heard for so long makes the process unready.
const UNHEARD_AFTER: Duration = Duration::from_secs(90);

/// Longest request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 2048;

/// Longest time of one connection.
const CONNECTION: Duration = Duration::from_secs(5);

/// What the process knows about its own hearing.
#[derive(Debug)]
pub struct Health {
    begun: Instant,
    served: AtomicBool,
    leads: AtomicBool,
    heard: Mutex<Option<Instant>>,
    watched: Mutex<Option<Instant>>,
    failing: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Health {
            begun: Instant::now(),
            served: AtomicBool::new(false),
            leads: AtomicBool::new(false),
            heard: Mutex::default(),
            watched: Mutex::default(),
            failing: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// The API server answered and serves our resource, or does not.
    pub fn resource_served(&self, served: bool) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.served.store(served, Ordering::Relaxed);
    }

    /// This process is the leader.
    pub fn leading(&self) {
        self.leads.store(true, Ordering::Relaxed);
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// A watch, or what follows from one, brought something.
    pub fn watch_heard(&self) {
        self.failing.store(false, Ordering::Relaxed);
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// A watch failed.
    pub fn watch_failed(&self) {
        self.failing.store(true, Ordering::Relaxed);
    }

    /// Why the process should be started again; `None` while it is well.
    pub fn deaf(&self, now: Instant) -> Option<&'static str> {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(self.begun);
        let deaf = self.failing.load(Ordering::Relaxed) && now.saturating_duration_since(watched) > DEAF_AFTER;
        deaf.then_some("no watch has brought anything but errors for five minutes")
    }

    /// Why the process cannot serve; `None` while it can. A candidate that waits for the Lease can.
    pub fn unready(&self, now: Instant) -> Option<&'static str> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match heard {
            None => Some("the API server has not answered yet"),
            Some(at) if now.saturating_duration_since(at) > UNHEARD_AFTER => Some("the API server does not answer"),
            Some(_) if !self.served.load(Ordering::Relaxed) => Some(
                "the CustomResourceDefinition nativetransfers.transfer.dpone.io is not installed; install the chart native-transfer-crds",
            ),
            Some(_) => None,
        }
    }

    /// Whether this process is the leader.
    pub fn is_leader(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    fn answer(&self, path: &str) -> (&'static str, String) {
        let now = Instant::now();
        let verdict = match path {
            "/healthz" => self.deaf(now),
            "/readyz" => self.deaf(now).or_else(|| self.unready(now)),
            _ => return ("404 Not Found", "not found\n".to_owned()),
        };
        match verdict {
            None => ("200 OK", "ok\n".to_owned()),
            Some(why) => ("503 Service Unavailable", format!("{why}\n")),
        }
    }
}

/// Answers probes until the process ends.
///
/// # Errors
/// When connections cannot be accepted any more.
pub async fn serve(listener: TcpListener, health: std::sync::Arc<Health>) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let health = std::sync::Arc::clone(&health);
        tokio::spawn(async move {
            // A probe that hangs up is the kubelet's matter.
            let _ = tokio::time::timeout(CONNECTION, probe(stream, &health)).await;
        });
    }
}

async fn probe(mut stream: TcpStream, health: &Health) -> std::io::Result<()> {
    let mut request = vec![0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while length < request.len() && !request[..length].windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut request[length..]).await? {
            0 => break,
            read => length += read,
        }
    }
    let line = String::from_utf8_lossy(&request[..length]);
    let path = line.strip_prefix("GET ").and_then(|rest| rest.split([' ', '?']).next()).unwrap_or_default();
    let (status, body) = health.answer(path);
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_the_resource_is_served() {
        let health = Health::default();
        let now = Instant::now();
        assert!(health.unready(now).is_some());
        health.resource_served(false);
        assert!(health.unready(now).is_some_and(|why| why.contains("CustomResourceDefinition")));
        health.resource_served(true);
        assert_eq!(health.unready(Instant::now()), None);
        assert!(health.unready(Instant::now() + UNHEARD_AFTER * 2).is_some());
    }

    #[test]
    fn alive_means_that_watches_bring_more_than_errors() {
        let health = Health::default();
        let later = Instant::now() + DEAF_AFTER * 2;
        assert_eq!(health.deaf(later), None, "silence is no failure");
        health.watch_failed();
        assert!(health.deaf(later).is_some());
        assert_eq!(health.deaf(Instant::now()), None, "not yet");
        health.watch_heard();
        assert_eq!(health.deaf(later), None);
    }

    #[tokio::test]
    async fn probes_are_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let server = tokio::spawn(serve(listener, std::sync::Arc::default()));
        for (path, expected) in [("/healthz", "200"), ("/readyz", "503"), ("/other", "404")] {
            let mut stream = TcpStream::connect(address).await.expect("connect");
            stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("write");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("read");
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{path}: {answer}");
        }
        server.abort();
    }
}
