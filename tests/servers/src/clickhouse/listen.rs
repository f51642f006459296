//! Sockets: accepts connections, shakes hands, and gives each its threads.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::hooks::Hooks;
use super::query_log::QueryLog;
use super::{Engine, Options, Shared, StartError, http, tcp};
use crate::tls::TestTls;

/// How long a client may take for its TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A running server. It stops when it is dropped; [`Server::stop`] also waits for its connections.
pub struct Server {
    shared: Arc<Shared>,
    tls: TestTls,
    address: SocketAddr,
    https_address: Option<SocketAddr>,
    http_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
}

/// What is spoken at a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Native,
    Http,
}

/// A socket that clients may connect to.
struct Listener {
    socket: TcpListener,
    protocol: Protocol,
    tls: Option<TlsAcceptor>,
}

impl Server {
    /// Starts the engine and binds the listeners; connections are served from then on.
    pub async fn start(options: Options) -> Result<Server, StartError> {
        std::fs::create_dir_all(&options.data)?;
        let tls = TestTls::create_or_load(&options.data.join("tls"), &options.sans)?;
        let query_log = options.query_log.as_deref().map(QueryLog::open).transpose()?.unwrap_or_default();
        let acceptor = || Some(TlsAcceptor::from(Arc::clone(&tls.server_config)));
        let mut listeners = Vec::new();
        let mut bind = async |address: SocketAddr, protocol, tls| -> io::Result<SocketAddr> {
            let socket = TcpListener::bind(address).await?;
            let address = socket.local_addr()?;
            listeners.push(Listener { socket, protocol, tls });
            Ok(address)
        };
        let native_tls = if options.plaintext { None } else { acceptor() };
        let address = bind(options.listen, Protocol::Native, native_tls).await?;
        let https_address = match options.https_listen {
            Some(address) => Some(bind(address, Protocol::Http, acceptor()).await?),
            None => None,
        };
        let http_address = match options.http_listen {
            Some(address) => Some(bind(address, Protocol::Http, None).await?),
            None => None,
        };
        let engine = tokio::task::spawn_blocking(move || {
            Engine::start(options.engine, &options.data, options.users_config.as_deref(), options.keeper.as_ref())
        })
        .await
        .map_err(io::Error::other)??;
        let shared = Arc::new(Shared {
            engine,
            accounts: options.accounts,
            query_log,
            hooks: Hooks::default(),
            sessions: http::Sessions::default(),
            connections: AtomicU64::new(0),
        });
        let (stop, stopped) = watch::channel(false);
        for listener in listeners {
            tokio::spawn(accept(listener, Arc::clone(&shared), stopped.clone()));
        }
        Ok(Server { shared, tls, address, https_address, http_address, stop })
    }

    /// Does `action` once, after the next query whose text fits `pattern` has arrived and before the engine sees it.
    ///
    /// The query waits for the action, so that a test can change the source at this very moment.
    pub fn once_before(&self, pattern: impl Fn(&str) -> bool + Send + 'static, action: impl FnOnce() + Send + 'static) {
        self.shared.hooks.add(Box::new(pattern), Box::new(action));
    }

    /// Address of the native protocol.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address of HTTP over TLS.
    pub fn https_address(&self) -> Option<SocketAddr> {
        self.https_address
    }

    /// Address of HTTP.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// PEM file of the CA that a client is to trust.
    pub fn ca_pem_path(&self) -> &Path {
        &self.tls.ca_pem_path
    }

    /// The engine behind the server.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// Accepts no more, ends all connections and waits until they are gone.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
        self.shared.sessions.clear();
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let Listener { socket, protocol, tls } = listener;
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((socket, _peer)) => {
                tokio::spawn(connect(socket, protocol, tls.clone(), Arc::clone(&shared), stopped.clone()));
            }
            Err(error) => {
                // Out of file descriptors, most likely: wait for some to come back.
                eprintln!("testkit clickhouse: accept: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connect(
    socket: TcpStream,
    protocol: Protocol,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    stopped: watch::Receiver<bool>,
) {
    let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let outcome = async {
        socket.set_nodelay(true)?;
        match tls {
            None => serve(socket, protocol, shared, number, stopped).await,
            Some(tls) => {
                let shaken = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(socket)).await;
                let stream = shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                serve(stream, protocol, shared, number, stopped).await
            }
        }
    }
    .await;
    match outcome {
        Ok(()) => {}
        Err(error) if is_departure(error.kind()) => {}
        Err(error) => eprintln!("testkit clickhouse: connection {number}: {error}"),
    }
}

/// The client has gone, or the server stops: no fault of anyone's.
fn is_departure(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
}

async fn serve<S>(
    stream: S,
    protocol: Protocol,
    shared: Arc<Shared>,
    number: u64,
    stopped: watch::Receiver<bool>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match protocol {
        Protocol::Native => serve_native(stream, shared, number, stopped).await,
        Protocol::Http => http::serve(stream, shared, number, stopped).await,
    }
}

/// Gives a connection its session thread and waits for its end.
async fn serve_native<S>(stream: S, shared: Arc<Shared>, number: u64, stopped: watch::Receiver<bool>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (hang_up, hung_up) = watch::channel(false);
    let handle = Handle::current();
    let (read, write) = tokio::io::split(stream);
    let (finished, finish) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name(format!("clickhouse-{number}")).spawn(move || {
        let reader = Blocking { io: read, handle: handle.clone(), stops: [stopped.clone(), hung_up.clone()] };
        let mut writer = Blocking { io: write, handle, stops: [stopped, hung_up] };
        let outcome = tcp::serve(&shared, number, reader, &mut writer, || {
            hang_up.send_replace(true);
        });
        let closed = writer.close();
        // The receiver waits for this; it is gone only with the whole runtime.
        let _ = finished.send(outcome.and(closed));
    })?;
    finish.await.unwrap_or_else(|_| Err(io::Error::other("the thread of a connection panicked")))
}

/// Blocking reads and writes on an asynchronous stream, ended by either of two stops.
struct Blocking<T> {
    io: T,
    handle: Handle,
    stops: [watch::Receiver<bool>; 2],
}

/// Waits until one of the stops is set (or can no longer be).
async fn any_stop(stops: &mut [watch::Receiver<bool>; 2]) {
    let [first, second] = stops;
    tokio::select! {
        _ = first.wait_for(|stop| *stop) => {}
        _ = second.wait_for(|stop| *stop) => {}
    }
}

impl<T: AsyncRead + Unpin> Read for Blocking<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Blocking { io, handle, stops } = self;
        handle.block_on(async {
            tokio::select! {
                read = io.read(buffer) => read,
                // To the reader a stop looks like the client's departure.
                () = any_stop(stops) => Ok(0),
            }
        })
    }
}

impl<T: AsyncWrite + Unpin> Write for Blocking<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Blocking { io, handle, stops } = self;
        handle.block_on(async {
            tokio::select! {
                biased;
                () = any_stop(stops) => Err(io::ErrorKind::ConnectionAborted.into()),
                written = async {
                    io.write_all(bytes).await?;
                    io.flush().await?;
                    Ok(bytes.len())
                } => written,
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: AsyncWrite + Unpin> Blocking<T> {
    /// Ends the stream in an orderly way, so that the last bytes arrive.
    fn close(&mut self) -> io::Result<()> {
        let Blocking { io, handle, .. } = self;
        match handle.block_on(io.shutdown()) {
            // The client was faster.
            Err(error) if is_departure(error.kind()) => Ok(()),
            outcome => outcome,
        }
    }
}
