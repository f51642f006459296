//! The server as a whole: listener, options, start and stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::control::Control;
use super::sql::{Engine, EngineError, EngineOptions};
use super::wire::{self, Encryption, QueryLog};
use crate::tls::{TestTls, TlsError};

/// Keeps a server that has no file descriptor left from spinning.
const PAUSE_AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Data folder; created when missing. Certificates are in its folder `tls`.
    pub data_dir: PathBuf,
    /// DNS names and addresses of the certificate.
    pub sans: Vec<String>,
    /// What is offered in PRELOGIN.
    pub encryption: Encryption,
    /// File for the query log, appended to.
    pub query_log: Option<PathBuf>,
    /// Breakpoints for tests; none cannot be added later.
    pub control: Option<Arc<Control>>,
    /// Logins, database, server name.
    pub engine: EngineOptions,
}

impl ServerOptions {
    /// A server on a free loopback port with TLS required.
    #[must_use]
    pub fn new(data_dir: PathBuf, engine: EngineOptions) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir,
            sans: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            encryption: Encryption::Required,
            query_log: None,
            control: None,
            engine,
        }
    }
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on, or the query log cannot be opened.
    #[error("testkit.sqlserver.start: {0}")]
    Io(#[from] io::Error),
    /// The certificates cannot be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The data folder cannot be opened.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A server that accepts connections until it is shut down or dropped.
#[derive(Debug)]
pub struct RunningServer {
    addr: SocketAddr,
    tls: TestTls,
    stop: watch::Sender<bool>,
    /// Closes when the last connection has ended.
    ended: Mutex<Receiver<()>>,
    control: Option<Arc<Control>>,
    /// None after the shutdown.
    runtime: Option<Runtime>,
}

/// The TDS server.
#[derive(Debug)]
pub struct SqlServer;

impl SqlServer {
    /// Opens the data folder, listens and accepts. The server runs on threads of its own.
    ///
    /// # Errors
    /// Address, certificates, query log or data folder cannot be used.
    pub fn start(options: ServerOptions) -> Result<RunningServer, StartError> {
        let tls = TestTls::create_or_load(&options.data_dir.join("tls"), &options.sans)?;
        let server_name: Arc<str> = options.engine.server_name.as_str().into();
        let engine = Engine::open(&options.data_dir, options.engine)?;
        let log = Arc::new(QueryLog::open(options.query_log.as_deref())?);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("tds-io").enable_all().build()?;
        let listener = std::net::TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let backend: Arc<dyn wire::Backend> = match &options.control {
            Some(control) => {
                Arc::new(wire::ControlledBackend { backend: Arc::new(engine), control: Arc::clone(control) })
            }
            None => Arc::new(engine),
        };
        let shared = Arc::new(wire::Shared {
            backend,
            log,
            tls: Arc::clone(&tls.server_config_tls12),
            encryption: options.encryption,
            server_name,
        });
        let (stop, stopped) = watch::channel(false);
        let (ended_sender, ended) = channel();
        runtime.spawn(async move {
            accept(listener, shared, stopped).await;
            drop(ended_sender);
        });
        Ok(RunningServer {
            addr,
            tls,
            stop,
            ended: Mutex::new(ended),
            control: options.control,
            runtime: Some(runtime),
        })
    }
}

impl RunningServer {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its certificates.
    #[must_use]
    pub fn tls(&self) -> &TestTls {
        &self.tls
    }

    /// Stops accepting, ends every session (open transactions roll back) and closes the data folder.
    pub fn shutdown(mut self) {
        self.stop_and_wait();
    }

    fn stop_and_wait(&mut self) {
        // Without receivers there is nothing to stop.
        let _ = self.stop.send(true);
        if let Some(control) = &self.control {
            control.close();
        }
        if let Some(runtime) = self.runtime.take() {
            // Nothing is ever sent: the channel closes with the accept loop. No part of tokio blocks here, so that
            // tests may stop a server from asynchronous code.
            let _ = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner).recv();
            runtime.shutdown_background();
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop_and_wait();
    }
}

/// Accepts until the server stops, then waits for the connections to end.
pub(super) async fn accept(listener: TcpListener, shared: Arc<wire::Shared>, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let stop_connections = stop.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    connections.spawn(wire::serve(socket, peer, Arc::clone(&shared), stop_connections.clone()));
                }
                // A client that was gone before it was accepted, or no file descriptor left for it.
                Err(error) => {
                    eprintln!("testkit sqlserver: a connection was not accepted: {error}");
                    tokio::time::sleep(PAUSE_AFTER_FAILED_ACCEPT).await;
                }
            },
            Some(_) = connections.join_next() => {}
            () = wire::stopped(&mut stop) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
