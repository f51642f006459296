//! A relay that holds a server's certificate: it ends the client's TLS, does what a test wants done before a given query
//! of a session, and can give single queries of that session to another server.
//!
//! A forwarder of bytes ([`crate::forward`]) cannot do that to one TLS connection. A balancer that was given the
//! certificate can, and its client sees one address, one certificate and one connection all the time.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Larger than any message of a client, which waits for the answer to each: a message arrives in one piece.
const BUFFER_BYTES: usize = 65_536;

/// A server behind the relay.
#[derive(Clone, Debug)]
pub struct Behind {
    /// Where it speaks the native protocol over TLS, as `localhost`.
    pub address: SocketAddr,
    /// PEM file of its CA.
    pub ca: PathBuf,
}

/// What is done before a query goes on.
pub enum Step {
    /// This query and all later ones of the session go to the server of this number.
    Switch(usize),
    /// The query waits for this.
    Do(Box<dyn FnOnce() + Send>),
}

type Pattern = Box<dyn Fn(&str) -> bool + Send>;

/// A running relay; it works until the process ends.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    acceptor: TlsAcceptor,
    behind: Vec<Behind>,
    steps: Mutex<VecDeque<(Pattern, Step)>>,
}

impl Relay {
    /// Listens on 127.0.0.1. Every session begins at the first server of `behind`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start(certificate: Arc<rustls::ServerConfig>, behind: Vec<Behind>) -> io::Result<Relay> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { acceptor: certificate.into(), behind, steps: Mutex::default() });
        let serving = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || runtime.block_on(accept(listener, serving)));
        Ok(Relay { address, shared })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Plans a step before the next query that fits `pattern`. Steps are taken once each and in the order in which they
    /// were planned: the second is looked for only after the first was taken.
    pub fn once_before(&self, pattern: impl Fn(&str) -> bool + Send + 'static, step: Step) {
        self.steps().push_back((Box::new(pattern), step));
    }

    /// How many planned steps were not taken.
    #[must_use]
    pub fn steps_left(&self) -> usize {
        self.steps().len()
    }

    fn steps(&self) -> std::sync::MutexGuard<'_, VecDeque<(Pattern, Step)>> {
        self.shared.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The step that is due before this message of a client.
    fn due(&self, message: &str) -> Option<Step> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let (pattern, _) = steps.front()?;
        if pattern(message) { steps.pop_front().map(|(_, step)| step) } else { None }
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // The client sees a failure of its session as the end of its connection.
            if let Err(error) = session(socket, &shared).await {
                eprintln!("relay: {error}");
            }
        });
    }
}

/// One client and the servers that it was given to.
async fn session(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut client = shared.acceptor.accept(socket).await?;
    let mut servers: Vec<Option<Server>> = shared.behind.iter().map(|_| None).collect();
    let mut at = 0;
    let mut hello = Vec::new();
    let (mut from_client, mut from_server) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    loop {
        let server = match &mut servers[at] {
            Some(server) => server,
            unknown => unknown.insert(connect(&shared.behind[at], &hello).await?),
        };
        tokio::select! {
            read = client.read(&mut from_client) => {
                let message = &from_client[..read?];
                if message.is_empty() {
                    return Ok(());
                }
                if hello.is_empty() {
                    hello = message.to_vec();
                }
                match shared.due(&String::from_utf8_lossy(message)) {
                    Some(Step::Switch(other)) => at = other,
                    Some(Step::Do(action)) => tokio::task::spawn_blocking(action).await.map_err(io::Error::other)?,
                    None => {}
                }
                forward(message, &mut servers[at], &shared.behind[at], &hello).await?;
            }
            read = server.read(&mut from_server) => {
                let answer = &from_server[..read?];
                if answer.is_empty() {
                    return close(client).await;
                }
                client.write_all(answer).await?;
                client.flush().await?;
            }
        }
    }
}

type Server = client::TlsStream<TcpStream>;

async fn close(mut client: server::TlsStream<TcpStream>) -> io::Result<()> {
    client.shutdown().await
}

/// Sends a message to a server, as a new session with the client's own hello if there is none yet.
async fn forward(message: &[u8], server: &mut Option<Server>, behind: &Behind, hello: &[u8]) -> io::Result<()> {
    let server = match server {
        Some(server) => server,
        unknown => unknown.insert(connect(behind, hello).await?),
    };
    server.write_all(message).await?;
    server.flush().await
}

/// Connects; where the client has said its hello already, says it again and takes the server's answer.
async fn connect(behind: &Behind, hello: &[u8]) -> io::Result<Server> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&behind.ca).map_err(io::Error::other)? {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().map_err(io::Error::other)?;
    let socket = TcpStream::connect(behind.address).await?;
    let mut server = TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    if !hello.is_empty() {
        server.write_all(hello).await?;
        server.flush().await?;
        let mut answer = Vec::new();
        while !is_whole_hello(&answer) {
            if server.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    Ok(server)
}

/// Whether the bytes are a server's hello at revision 54448: packet 0, name, three numbers, zone, display name, number.
fn is_whole_hello(mut bytes: &[u8]) -> bool {
    [false, true, false, false, false, true, true, false].into_iter().all(|is_text| {
        let Some(number) = take_number(&mut bytes) else { return false };
        match bytes.get(if is_text { number } else { 0 }..) {
            Some(rest) => bytes = rest,
            None => return false,
        }
        true
    })
}

/// Takes a number of seven bits a byte, or nothing when it is not whole yet.
fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (number, rest) = bytes.split_at(length);
    *bytes = rest;
    Some(number.iter().rev().fold(0, |value, byte| (value << 7) | usize::from(byte & 0x7f)))
}

#[cfg(test)]
mod tests {
    use super::is_whole_hello;

    #[test]
    fn a_hello_is_whole_with_its_last_byte() {
        let hello = b"\x00\x02CH\x1a\x07\xf1\xa9\x03\x03UTC\x01h\x02";
        assert!(is_whole_hello(hello));
        for cut in 0..hello.len() {
            assert!(!is_whole_hello(&hello[..cut]), "{cut} bytes");
        }
    }
}
