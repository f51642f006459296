//! A socket's life: PRELOGIN, TLS, LOGIN7, then reader and writer beside the session's thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_rustls::TlsAcceptor;

use super::backend::Backend;
use super::bulk::BulkChunk;
use super::login7::{self, Login7, MAX_LOGIN7_BYTES};
use super::packet::{Packet, PacketType, put_header, read_message, read_packet, status};
use super::prelogin::{self, MAX_PRELOGIN_BYTES, Scope};
use super::prelogin_tls::PreloginStream;
use super::session::{self, Envelope, Request, Reset, Start};
use super::turn::{AttentionFor, Turn};
use super::{Encryption, QueryLog, WireError};

/// Largest batch or RPC message. SQL Server: 65,536 packets.
const MAX_REQUEST_BYTES: usize = 256 << 20;
/// A client that does not log in within this time is dropped, as SQL Server does it.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request that was received whole may still run after its client is gone. SQL Server, too, notices a dead
/// client only while it reads or writes, so a short statement (COMMIT) that arrived usually takes effect.
const GRACE_AFTER_DISCONNECT: Duration = Duration::from_millis(200);
/// How often a client whose bulk load is stalled is looked at.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
/// Requests that may wait for the session. Clients without MARS send one, then wait for its answer.
const QUEUED_REQUESTS: usize = 8;
/// Packets of an answer that may wait for the client.
const QUEUED_PACKETS: usize = 8;
/// Packets of a bulk load that may wait for the session.
const QUEUED_BULK_PACKETS: usize = 16;
/// Stack of a session's thread; deep expressions recurse in the parser.
const SESSION_STACK_BYTES: usize = 16 << 20;

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) log: Arc<QueryLog>,
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) encryption: Encryption,
    pub(crate) server_name: Arc<str>,
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}
type Socket = Box<dyn Duplex>;

/// Serves one connection until it or the server ends. Errors are the client's and end nothing but its connection.
pub(crate) async fn serve(socket: TcpStream, peer: SocketAddr, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let Ok((socket, probe)) = with_probe(socket) else { return };
    let login = tokio::select! {
        login = tokio::time::timeout(LOGIN_TIMEOUT, log_in(socket, &shared)) => login,
        () = stopped(&mut stop) => return,
    };
    let Ok(Ok(Some((socket, login, encrypted)))) = login else { return };
    let (read, write) = tokio::io::split(socket);
    let (packets, queued_packets) = mpsc::channel(QUEUED_PACKETS);
    let (requests, queued_requests) = mpsc::channel(QUEUED_REQUESTS);
    let (ready, logged_in) = oneshot::channel();
    let start = Start {
        backend: Arc::clone(&shared.backend),
        log: Arc::clone(&shared.log),
        server_name: Arc::clone(&shared.server_name),
        login,
        encrypted,
        client_address: peer.ip().to_string(),
        packets,
        requests: queued_requests,
        ready,
    };
    // Nothing is ever sent: the thread's end of the channel is dropped when the thread is done.
    let (ended_sender, mut ended) = watch::channel(());
    let thread =
        std::thread::Builder::new().name("tds-session".into()).stack_size(SESSION_STACK_BYTES).spawn(move || {
            session::run(start);
            drop(ended_sender);
        });
    if let Err(error) = thread {
        eprintln!("testkit sqlserver: a session cannot start: {error}");
        return;
    }
    let writer = tokio::spawn(write_packets(write, queued_packets));
    if let Ok(turn) = logged_in.await {
        let mut reader = SocketReader { read, requests, turn: Arc::clone(&turn), message: None, bulk: None, probe };
        tokio::select! {
            _ = reader.run() => {}
            _ = ended.changed() => {}
            () = stopped(&mut stop) => turn.disconnect(),
        }
        // No more requests and no more bulk chunks: the session ends with what it has.
        drop(reader);
        if tokio::time::timeout(GRACE_AFTER_DISCONNECT, ended.changed()).await.is_err() {
            turn.disconnect();
        }
    }
    // The writer ends when the session has dropped its end of the queue, so the last answer goes out before the socket
    // closes; a client that does not read it ends the wait by closing, a server that stops by aborting.
    let abort = writer.abort_handle();
    tokio::select! {
        _ = writer => {}
        () = stopped(&mut stop) => abort.abort(),
    }
    // The session's thread still rolls back; a server that stops waits for it.
    let _ = ended.changed().await;
}

/// A socket and a second handle of it.
fn with_probe(socket: TcpStream) -> std::io::Result<(TcpStream, TcpStream)> {
    let socket = socket.into_std()?;
    let probe = TcpStream::from_std(socket.try_clone()?)?;
    Ok((TcpStream::from_std(socket)?, probe))
}

/// Waits until the client has closed its side, however much of what it sent is unread. Returns only with an error.
async fn client_gone(probe: &TcpStream) -> Result<(), WireError> {
    while !probe.ready(Interest::READABLE).await?.is_read_closed() {
        // Unread data keeps the socket readable, so there is no event to wait for.
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
    Err(WireError::Truncated)
}

/// Waits until the server stops; a server that is gone has stopped.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

/// PRELOGIN, TLS and LOGIN7; none if the two cannot agree on encryption.
async fn log_in(mut socket: TcpStream, shared: &Shared) -> Result<Option<(Socket, Login7, bool)>, WireError> {
    socket.set_nodelay(true)?;
    let client = prelogin::parse(&read_message(&mut socket, PacketType::Prelogin, MAX_PRELOGIN_BYTES).await?)?;
    let (answer, scope) = prelogin::negotiate(shared.encryption, client.encryption);
    let payload = prelogin::response(answer, client.asks_fed_auth);
    let mut packet = Vec::new();
    // A PRELOGIN answer is a tabular result by its header (MS-TDS 2.2.3.1.1).
    put_header(&mut packet, PacketType::TabularResult, payload.len(), true, 1, 0);
    packet.extend_from_slice(&payload);
    socket.write_all(&packet).await?;
    socket.flush().await?;
    let parse = |message: Vec<u8>| login7::parse(&message);
    match scope {
        Scope::Refused => Ok(None),
        Scope::Plain => {
            let login = parse(read_message(&mut socket, PacketType::Login7, MAX_LOGIN7_BYTES).await?)?;
            Ok(Some((Box::new(socket), login, false)))
        }
        Scope::LoginOnly | Scope::Whole => {
            let acceptor = TlsAcceptor::from(Arc::clone(&shared.tls));
            let mut tls = acceptor.accept(PreloginStream::new(socket)).await?;
            tls.get_mut().0.unwrap_packets();
            let login = parse(read_message(&mut tls, PacketType::Login7, MAX_LOGIN7_BYTES).await?)?;
            if scope == Scope::Whole {
                return Ok(Some((Box::new(tls), login, true)));
            }
            // The client waits for the answer, so no byte of it is in the TLS layer.
            let socket = tls.into_inner().0.into_inner();
            Ok(Some((Box::new(socket), login, false)))
        }
    }
}

/// Writes packets until the session has no more; flushes when none waits.
async fn write_packets(mut write: WriteHalf<Socket>, mut packets: mpsc::Receiver<Vec<u8>>) {
    while let Some(packet) = packets.recv().await {
        if write.write_all(&packet).await.is_err() {
            return;
        }
        if packets.is_empty() && write.flush().await.is_err() {
            return;
        }
    }
    // The client may be gone already; nothing depends on an orderly end.
    let _ = write.shutdown().await;
}

/// A message whose last packet has not come yet.
struct Partial {
    kind: PacketType,
    reset: Reset,
    bytes: Vec<u8>,
}

struct SocketReader {
    read: ReadHalf<Socket>,
    requests: mpsc::Sender<Envelope>,
    turn: Arc<Turn>,
    message: Option<Partial>,
    bulk: Option<mpsc::Sender<BulkChunk>>,
    /// A second handle of the socket, never read: it shows the end of the client behind unread data.
    probe: TcpStream,
}

impl SocketReader {
    /// Reads until the client is gone or breaks the protocol.
    async fn run(&mut self) -> Result<(), WireError> {
        while let Some(packet) = read_packet(&mut self.read).await? {
            self.packet(packet).await?;
        }
        Ok(())
    }

    async fn packet(&mut self, packet: Packet) -> Result<(), WireError> {
        match packet.header.kind {
            PacketType::Attention => self.attention().await,
            PacketType::BulkLoad => self.bulk_packet(packet).await,
            PacketType::SqlBatch | PacketType::Rpc | PacketType::TransactionManager => self.message_packet(packet),
            PacketType::TabularResult | PacketType::Login7 | PacketType::Prelogin => Err(WireError::UnexpectedMessage),
        }
    }

    fn hand_over(&mut self, request: Request, reset: Reset) -> Result<(), WireError> {
        self.turn.begin();
        self.requests.try_send(Envelope { request, reset }).map_err(|_| WireError::UnexpectedMessage)
    }

    async fn attention(&mut self) -> Result<(), WireError> {
        // A message that is still under way will not be completed.
        self.message = None;
        let attention = self.turn.attention();
        if let Some(chunks) = self.bulk.take() {
            // A closed channel means that the session ended meanwhile.
            let _ = chunks.send(BulkChunk::Withdrawn).await;
        }
        match attention {
            AttentionFor::RunningRequest => Ok(()),
            AttentionFor::Nothing => {
                let envelope = Envelope { request: Request::Attention, reset: Reset::No };
                self.requests.try_send(envelope).map_err(|_| WireError::UnexpectedMessage)
            }
        }
    }

    fn message_packet(&mut self, packet: Packet) -> Result<(), WireError> {
        let Packet { header, payload } = packet;
        if self.bulk.is_some() {
            return Err(WireError::UnexpectedMessage);
        }
        let message = match &mut self.message {
            Some(message) if message.kind != header.kind => return Err(WireError::UnexpectedMessage),
            Some(message) => {
                if message.bytes.len() + payload.len() > MAX_REQUEST_BYTES {
                    return Err(WireError::MessageTooLong);
                }
                message.bytes.extend_from_slice(&payload);
                message
            }
            None => {
                let reset = match header.status & (status::RESET_CONNECTION | status::RESET_CONNECTION_SKIP_TRANSACTION)
                {
                    0 => Reset::No,
                    status::RESET_CONNECTION => Reset::Full,
                    _ => Reset::KeepTransaction,
                };
                self.message.insert(Partial { kind: header.kind, reset, bytes: payload })
            }
        };
        if !header.ends_message() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut message.bytes);
        let reset = message.reset;
        self.message = None;
        if header.is_ignored() {
            return self.hand_over(Request::Withdrawn, Reset::No);
        }
        let request = match header.kind {
            PacketType::SqlBatch => Request::Batch(bytes),
            PacketType::Rpc => Request::Rpc(bytes),
            _ => Request::Transaction(bytes),
        };
        self.hand_over(request, reset)
    }

    async fn bulk_packet(&mut self, packet: Packet) -> Result<(), WireError> {
        if self.message.is_some() {
            return Err(WireError::UnexpectedMessage);
        }
        if self.bulk.is_none() {
            let (chunks, queued) = mpsc::channel(QUEUED_BULK_PACKETS);
            self.hand_over(Request::Bulk(queued), Reset::No)?;
            self.bulk = Some(chunks);
        }
        let Some(chunks) = &self.bulk else { return Ok(()) };
        // The session reads a load to its end, so a closed channel means that the session ended.
        let closed = |_| WireError::UnexpectedMessage;
        tokio::select! {
            biased;
            sent = chunks.send(BulkChunk::Data(packet.payload)) => sent.map_err(closed)?,
            // The statement blocks (a lock), the client is gone, and its last packets will never be read otherwise.
            gone = client_gone(&self.probe) => return gone,
        }
        if packet.header.ends_message() {
            let end = if packet.header.is_ignored() { BulkChunk::Withdrawn } else { BulkChunk::End };
            chunks.send(end).await.map_err(closed)?;
            self.bulk = None;
        }
        Ok(())
    }
}
