//! The thread of one session: takes requests in order, runs them, answers them.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::super::sql::{BatchEnd, BatchSink as _, Done, EnvChange, LoginRequest, SqlError, cmd};
use super::super::sql::{RpcCall, SinkResult, TransactionRequest};
use super::super::value::{Collation, Value};
use super::backend::{Backend, SqlSession};
use super::bulk::{self, BulkChunk, Outcome};
use super::login7::{Login7, feature};
use super::packet::DEFAULT_PACKET_BYTES;
use super::query_log::Event;
use super::reader::Reader;
use super::response::{PacketQueue, Response};
use super::rpc::{self, RpcError};
use super::tokens::{self, env};
use super::turn::Turn;
use super::{QueryLog, WireError, errors, headers, reader, transaction};

/// A request as the socket's reader hands it over: whole messages, except a bulk load, which streams.
#[derive(Debug)]
pub(crate) enum Request {
    Batch(Vec<u8>),
    Rpc(Vec<u8>),
    Transaction(Vec<u8>),
    Bulk(mpsc::Receiver<BulkChunk>),
    /// A message that its last packet withdrew (ignore bit).
    Withdrawn,
    /// An attention while nothing ran.
    Attention,
}

/// The reset bits of a request's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reset {
    No,
    Full,
    KeepTransaction,
}

/// A request with its reset bits.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) request: Request,
    pub(crate) reset: Reset,
}

/// What a session's thread needs to start.
pub(crate) struct Start {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) log: Arc<QueryLog>,
    pub(crate) server_name: Arc<str>,
    pub(crate) login: Login7,
    /// The whole connection is encrypted.
    pub(crate) encrypted: bool,
    pub(crate) client_address: String,
    pub(crate) packets: mpsc::Sender<Vec<u8>>,
    pub(crate) requests: mpsc::Receiver<Envelope>,
    /// Tells the reader that the login succeeded.
    pub(crate) ready: oneshot::Sender<Arc<Turn>>,
}

/// Whether the session takes another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    End,
}

/// Logs in and serves requests until the client is gone.
pub(crate) fn run(start: Start) {
    let Start { backend, log, server_name, login, encrypted, client_address, packets, mut requests, ready } = start;
    let mut queue = PacketQueue { packets, packet_bytes: DEFAULT_PACKET_BYTES, session: 0, server_name };
    let packet_bytes = login.negotiated_packet_bytes(encrypted);
    let session = match log_in(&*backend, &login, encrypted, packet_bytes, client_address) {
        Ok(session) => session,
        Err(error) => {
            log.write(0, Event::Login, &format!("refused: {}", error.number));
            // If even this does not reach the client, it is gone.
            let _ = answer_error(&queue, &error);
            return;
        }
    };
    queue.session = session.id();
    let turn = Arc::new(Turn::new(session.cancel_handle()));
    log.write(session.id(), Event::Login, &login.user);
    if welcome(&queue, &login, session.database(), packet_bytes).is_err() || ready.send(Arc::clone(&turn)).is_err() {
        return;
    }
    queue.packet_bytes = packet_bytes;
    let id = session.id();
    let mut worker = Worker { session, queue, turn, log };
    while let Some(envelope) = requests.blocking_recv() {
        if worker.handle(envelope) == Next::End {
            break;
        }
    }
    worker.log.write(id, Event::Disconnect, "");
}

fn log_in(
    backend: &dyn Backend,
    login: &Login7,
    encrypted: bool,
    packet_bytes: usize,
    client_address: String,
) -> Result<Box<dyn SqlSession>, SqlError> {
    if login.integrated_security {
        return Err(errors::integrated_security());
    }
    if login.features.contains(&feature::FED_AUTH) {
        return Err(errors::login_failed(&login.user));
    }
    backend.login(&LoginRequest {
        user: login.user.clone(),
        password: login.password.clone(),
        database: Some(login.database.clone()).filter(|database| !database.is_empty()),
        app_name: login.app_name.clone(),
        host_name: login.host_name.clone(),
        client_pid: login.client_pid,
        language: login.language.clone(),
        encrypted,
        packet_size: u32::try_from(packet_bytes).unwrap_or(u32::MAX),
        client_interface: login.client_interface.clone(),
        client_address,
    })
}

/// The answer to a successful login. The packet size is always announced, also when it is the default: clients rely on it.
fn welcome(queue: &PacketQueue, login: &Login7, database: &str, packet_bytes: usize) -> SinkResult {
    const LANGUAGE: &str = "us_english";
    const UTF8_SUPPORTED: (u8, &[u8]) = (feature::UTF8_SUPPORT, &[1]);
    let mut response = Response::new(queue);
    response.env_change(EnvChange::Database(database.to_owned(), "master".to_owned()));
    response.info(&notice(5701, 2, format!("Changed database context to '{database}'.")));
    response.token(|out| tokens::env_bytes(out, env::COLLATION, &Collation::DEFAULT.to_tds(), &[]));
    response.env_change(EnvChange::Language(LANGUAGE.to_owned(), String::new()));
    response.info(&notice(5703, 1, format!("Changed language setting to {LANGUAGE}.")));
    response.token(|out| tokens::login_ack(out, login.tds_version));
    let default = DEFAULT_PACKET_BYTES.to_string();
    response.token(|out| tokens::env_text(out, env::PACKET_SIZE, &packet_bytes.to_string(), &default));
    if login.has_features {
        let utf8 = login.features.contains(&feature::UTF8_SUPPORT).then_some(UTF8_SUPPORTED);
        response.token(|out| tokens::feature_ext_ack(out, utf8.as_slice()));
    }
    response.finish(false)
}

fn notice(number: i32, state: u8, message: String) -> SqlError {
    SqlError { number, class: 0, state, message, procedure: String::new(), line: 1 }
}

fn answer_error(queue: &PacketQueue, error: &SqlError) -> SinkResult {
    let mut response = Response::new(queue);
    response.error(error);
    response.finish(false)
}

struct Worker {
    session: Box<dyn SqlSession>,
    queue: PacketQueue,
    turn: Arc<Turn>,
    log: Arc<QueryLog>,
}

impl Worker {
    fn handle(&mut self, envelope: Envelope) -> Next {
        let queue = self.queue.clone();
        let mut response = Response::new(&queue);
        if envelope.reset != Reset::No {
            self.session.reset_connection();
            response.env_change(EnvChange::ResetConnection);
        }
        match envelope.request {
            Request::Batch(message) => match batch_text(&message) {
                Ok(text) => {
                    self.log.write(self.session.id(), Event::Batch, &text);
                    let end = self.session.run_batch(&text, &mut response);
                    self.answer(response, end)
                }
                Err(error) => self.refuse(response, &error),
            },
            Request::Rpc(message) => self.rpc(&message, response),
            Request::Transaction(message) => match transaction::parse(&message) {
                Ok(request) => self.transaction(request, response),
                Err(error) => self.refuse(response, &error),
            },
            Request::Bulk(chunks) => self.bulk(chunks, response),
            Request::Withdrawn => self.answer(response, BatchEnd::Finished),
            Request::Attention => {
                self.log.write(self.session.id(), Event::Attention, "");
                match response.finish(true) {
                    Ok(()) => Next::Continue,
                    Err(_) => Next::End,
                }
            }
        }
    }

    /// Ends an answer. The final DONE acknowledges an attention that came while the request ran.
    fn answer(&mut self, response: Response<'_>, end: BatchEnd) -> Next {
        let faulty = response.is_faulty();
        self.log.write(self.session.id(), Event::End, &end_text(end, response.last_error()));
        let attention = self.turn.end();
        if attention {
            self.log.write(self.session.id(), Event::Attention, "");
        }
        if self.session.is_cut() {
            return Next::End;
        }
        let sent = response.finish(attention);
        let broken = end == BatchEnd::ConnectionBroken && !attention;
        if sent.is_err() || faulty || broken { Next::End } else { Next::Continue }
    }

    /// Answers bytes that are not TDS: the stream cannot be trusted any more, so the connection ends.
    fn refuse(&mut self, mut response: Response<'_>, error: &WireError) -> Next {
        self.log.write(self.session.id(), Event::Refused, &error.to_string());
        response.error(&errors::protocol_stream());
        self.answer(response, BatchEnd::Finished);
        Next::End
    }

    fn rpc(&mut self, message: &[u8], mut response: Response<'_>) -> Next {
        let calls = match rpc::parse(message) {
            Ok(calls) => calls,
            Err(RpcError::Wire(error)) => return self.refuse(response, &error),
            Err(RpcError::Call(fault)) => {
                response.error(&errors::rpc(&fault));
                return self.answer(response, BatchEnd::Finished);
            }
        };
        for call in calls {
            self.log.write(self.session.id(), Event::Rpc, &call_text(&call));
            let outputs = (0u16..).zip(&call.params).filter(|(_, param)| param.output).map(|(position, _)| position);
            response.begin_call(outputs);
            let end = self.session.run_rpc(call, &mut response);
            if end != BatchEnd::Finished {
                return self.answer(response, end);
            }
            response.end_call();
        }
        self.answer(response, BatchEnd::Finished)
    }

    fn transaction(&mut self, request: Option<TransactionRequest>, mut response: Response<'_>) -> Next {
        let Some(request) = request else {
            response.error(&errors::distributed_transaction(&self.queue.server_name));
            return self.answer(response, BatchEnd::Finished);
        };
        self.log.write(self.session.id(), Event::Transaction, transaction_text(&request));
        let end = self.session.transaction(request, &mut response);
        self.answer(response, end)
    }

    fn bulk(&mut self, chunks: mpsc::Receiver<BulkChunk>, mut response: Response<'_>) -> Next {
        self.log.write(self.session.id(), Event::Bulk, "begin");
        match bulk::load(&mut *self.session, chunks) {
            Outcome::Loaded(rows) => {
                self.log.write(self.session.id(), Event::Bulk, &format!("loaded {rows}"));
                // A closed sink shows again when the answer is finished.
                let _ = response.done(Done { count: Some(rows), cmd: cmd::INSERT, in_proc: false, error: false });
            }
            Outcome::Failed(error) => {
                self.log.write(self.session.id(), Event::Bulk, &format!("failed {}", error.number));
                response.error(&error);
            }
            Outcome::Withdrawn => self.log.write(self.session.id(), Event::Bulk, "withdrawn"),
        }
        self.answer(response, BatchEnd::Finished)
    }
}

fn batch_text(message: &[u8]) -> Result<String, WireError> {
    let mut reader = Reader::new(message);
    headers::parse(&mut reader)?;
    let text = reader.bytes(reader.remaining())?;
    reader::decode_utf16(text)
}

/// The procedure and its statement texts, never other parameters: they may hold what must not be logged.
pub(super) fn call_text(call: &RpcCall) -> String {
    let statement = match call.procedure.to_ascii_lowercase().rsplit('.').next() {
        Some("sp_executesql") => call.params.first(),
        Some("sp_prepare" | "sp_prepexec") => call.params.get(2),
        _ => None,
    };
    match statement.map(|param| &param.value) {
        Some(Value::String(text)) => format!("{}: {text}", call.procedure),
        _ => call.procedure.clone(),
    }
}

fn end_text(end: BatchEnd, last_error: Option<i32>) -> String {
    match (end, last_error) {
        (BatchEnd::Finished, None) => "finished".to_owned(),
        (BatchEnd::Finished, Some(number)) => format!("error {number}"),
        (BatchEnd::Cancelled, _) => "cancelled".to_owned(),
        (BatchEnd::ConnectionBroken, _) => "broken".to_owned(),
    }
}

pub(super) fn transaction_text(request: &TransactionRequest) -> &'static str {
    match request {
        TransactionRequest::Begin { .. } => "begin",
        TransactionRequest::Commit { .. } => "commit",
        TransactionRequest::Rollback { .. } => "rollback",
        TransactionRequest::Save { .. } => "save",
    }
}
