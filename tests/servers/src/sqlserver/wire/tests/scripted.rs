//! A scripted engine and a raw client: the moment of each step is known, nothing depends on timing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::super::control::Control;
use super::super::super::server::accept;
use super::super::super::sql::{
    BatchEnd, BatchSink, CancelHandle, ColumnMeta, Done, EnvChange, LoginRequest, RpcCall, SqlError,
    TransactionRequest, cmd,
};
use super::super::super::value::{SqlType, Value};
use super::super::backend::{Backend, BulkRows, SqlSession};
use super::super::connection::Shared;
use super::super::controlled::ControlledBackend;
use super::super::{Encryption, QueryLog};
use super::{column, hex, utf16};

/// Nothing here takes long; a test that waits so long has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What the scripted engine tells the test.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    LoggedIn(String),
    /// A statement waits and can only be cancelled.
    Waiting,
    /// A bulk row arrived.
    Row(Vec<Value>),
    BulkFinished,
    BulkUndone,
    Reset,
    Dropped,
}

pub(super) struct Script {
    events: Sender<Event>,
    /// Rows that statements have handed to their sink.
    pub(super) rows_produced: AtomicU64,
}

impl Script {
    fn tell(&self, event: Event) {
        // A test that has ended does not listen any more.
        let _ = self.events.send(event);
    }

    fn wait_for(&self, cancel: &CancelHandle) {
        self.tell(Event::Waiting);
        let patience = Instant::now() + PATIENCE;
        while !cancel.is_cancelled() {
            assert!(Instant::now() < patience, "a cancel");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Its batches: `rows N` gives N rows of 1000 characters, `types` one row of every type, `wait` waits for a cancel, `fail` raises error 50000,
/// `die` ends the connection, anything else does nothing.
struct ScriptedSession {
    script: Arc<Script>,
    cancel: CancelHandle,
}

struct ScriptedEngine(Arc<Script>);

impl Backend for ScriptedEngine {
    fn login(&self, request: &LoginRequest) -> Result<Box<dyn SqlSession>, SqlError> {
        if request.password != "right" {
            return Err(failure(18456, 14));
        }
        self.0.tell(Event::LoggedIn(request.app_name.clone()));
        Ok(Box::new(ScriptedSession { script: Arc::clone(&self.0), cancel: CancelHandle::default() }))
    }
}

fn failure(number: i32, class: u8) -> SqlError {
    SqlError { number, class, state: 1, message: "scripted".into(), procedure: String::new(), line: 1 }
}

impl ScriptedSession {
    fn rows(&mut self, count: u64, out: &mut dyn BatchSink) -> BatchEnd {
        let value = [Value::text(&"x".repeat(1000))];
        if out.columns(&[column("a", SqlType::NVARCHAR_MAX, true)]).is_err() {
            return BatchEnd::ConnectionBroken;
        }
        for _ in 0..count {
            if self.cancel.is_cancelled() {
                return BatchEnd::Cancelled;
            }
            if out.row(&value).is_err() {
                return BatchEnd::ConnectionBroken;
            }
            self.script.rows_produced.fetch_add(1, Ordering::SeqCst);
        }
        let done = Done { count: Some(count), cmd: cmd::SELECT, in_proc: false, error: false };
        if out.done(done).is_err() { BatchEnd::ConnectionBroken } else { BatchEnd::Finished }
    }

    fn wait(&mut self) -> BatchEnd {
        self.script.wait_for(&self.cancel);
        self.cancel.clear();
        BatchEnd::Cancelled
    }
}

impl SqlSession for ScriptedSession {
    fn id(&self) -> u16 {
        51
    }

    fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    fn database(&self) -> &str {
        "db"
    }

    fn run_batch(&mut self, sql: &str, out: &mut dyn BatchSink) -> BatchEnd {
        match sql.split_once(' ') {
            Some(("rows", count)) => return self.rows(count.parse().unwrap(), out),
            _ if sql == "wait" => return self.wait(),
            _ if sql == "types" => return super::foreign::answer_types(out),
            _ if sql == "fail" => out.error(&failure(50000, 16)),
            _ if sql == "die" => {
                out.error(&failure(50000, 20));
                return BatchEnd::ConnectionBroken;
            }
            _ => {}
        }
        BatchEnd::Finished
    }

    fn run_rpc(&mut self, call: RpcCall, out: &mut dyn BatchSink) -> BatchEnd {
        out.return_status(i32::try_from(call.params.len()).unwrap());
        BatchEnd::Finished
    }

    fn transaction(&mut self, _request: TransactionRequest, out: &mut dyn BatchSink) -> BatchEnd {
        out.env_change(EnvChange::BeginTransaction(7));
        BatchEnd::Finished
    }

    fn bulk_columns(&mut self, _columns: &[ColumnMeta]) -> Result<Box<dyn BulkRows + '_>, SqlError> {
        Ok(Box::new(ScriptedLoad {
            script: Arc::clone(&self.script),
            cancel: self.cancel.clone(),
            rows: 0,
            finished: false,
        }))
    }

    fn reset_connection(&mut self) {
        self.script.tell(Event::Reset);
    }
}

impl Drop for ScriptedSession {
    fn drop(&mut self) {
        self.script.tell(Event::Dropped);
    }
}

/// A load that refuses a row whose first cell is -1, and waits for a cancel at -2.
struct ScriptedLoad {
    script: Arc<Script>,
    cancel: CancelHandle,
    rows: u64,
    finished: bool,
}

impl BulkRows for ScriptedLoad {
    fn row(&mut self, values: Vec<Value>) -> Result<(), SqlError> {
        if values[0] == Value::BigInt(-1) {
            return Err(failure(515, 16));
        }
        if values[0] == Value::BigInt(-2) {
            self.script.wait_for(&self.cancel);
            return Err(failure(1222, 16));
        }
        self.rows += 1;
        self.script.tell(Event::Row(values));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<u64, SqlError> {
        self.finished = true;
        self.script.tell(Event::BulkFinished);
        Ok(self.rows)
    }

    fn abort(self: Box<Self>) {}
}

impl Drop for ScriptedLoad {
    fn drop(&mut self) {
        if !self.finished {
            self.script.tell(Event::BulkUndone);
        }
    }
}

/// A server over the scripted engine, without TLS.
pub(super) struct ScriptedServer {
    pub(super) addr: SocketAddr,
    pub(super) script: Arc<Script>,
    events: Receiver<Event>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    runtime: Runtime,
    _dir: tempfile::TempDir,
}

impl ScriptedServer {
    pub(super) fn start() -> Self {
        Self::start_with(|engine| engine)
    }

    /// A server whose sessions stop at the breakpoints of `control`.
    pub(super) fn start_controlled(control: &Arc<Control>) -> Self {
        let control = Arc::clone(control);
        Self::start_with(|backend| Arc::new(ControlledBackend { backend, control }))
    }

    fn start_with(backend: impl FnOnce(Arc<dyn Backend>) -> Arc<dyn Backend>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tls = crate::tls::TestTls::create_or_load(dir.path(), &["localhost".to_owned()]).unwrap();
        let (events, received) = channel();
        let script = Arc::new(Script { events, rows_produced: AtomicU64::new(0) });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            backend: backend(Arc::new(ScriptedEngine(Arc::clone(&script)))),
            log: Arc::new(QueryLog::default()),
            tls: tls.server_config_tls12,
            encryption: Encryption::NotSupported,
            server_name: "S".into(),
        });
        let (stop, stopped) = watch::channel(false);
        let accepting = runtime.spawn(accept(listener, shared, stopped));
        Self { addr, script, events: received, stop, accepting, runtime, _dir: dir }
    }

    /// The next thing that the engine tells.
    pub(super) fn event(&self) -> Event {
        self.events.recv_timeout(PATIENCE).expect("an event")
    }

    pub(super) fn client(&self) -> Client {
        let mut client = Client::connect(self.addr);
        client.log_in("right");
        assert_eq!(self.event(), Event::LoggedIn("app".into()));
        client
    }

    pub(super) fn stop(self) -> Receiver<Event> {
        self.stop.send(true).unwrap();
        self.runtime.block_on(self.accepting).unwrap();
        self.events
    }
}

/// A client that knows packets and nothing else.
pub(super) struct Client(pub(super) TcpStream);

/// ALL_HEADERS with transaction descriptor 0.
const HEADERS: &str = "16000000 12000000 0200 0000000000000000 01000000";

impl Client {
    pub(super) fn connect(addr: SocketAddr) -> Self {
        let socket = TcpStream::connect(addr).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    pub(super) fn packet(&mut self, kind: u8, status: u8, payload: &[u8]) {
        let length = u16::try_from(payload.len() + 8).unwrap().to_be_bytes();
        let packet = [&[kind, status, length[0], length[1], 0, 0, 1, 0], payload].concat();
        self.0.write_all(&packet).unwrap();
    }

    pub(super) fn batch(&mut self, text: &str) {
        self.packet(0x01, 1, &[hex(HEADERS), utf16(text)].concat());
    }

    pub(super) fn attention(&mut self) {
        self.packet(0x06, 1, &[]);
    }

    /// The payload of one message.
    pub(super) fn answer(&mut self) -> Vec<u8> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 8];
            self.0.read_exact(&mut header).expect("an answer");
            assert_eq!(header[0], 0x04);
            let length = usize::from(u16::from_be_bytes([header[2], header[3]])) - 8;
            let at = payload.len();
            payload.resize(at + length, 0);
            self.0.read_exact(&mut payload[at..]).unwrap();
            if header[1] & 1 == 1 {
                return payload;
            }
        }
    }

    /// Asserts that the next message ends with a DONE of this status.
    pub(super) fn expect_done(&mut self, status: u16) -> Vec<u8> {
        let answer = self.answer();
        let done = &answer[answer.len() - 13..];
        assert!((0xFD..=0xFF).contains(&done[0]), "{answer:02X?}");
        assert_eq!(u16::from_le_bytes([done[1], done[2]]), status, "{answer:02X?}");
        answer
    }

    /// Whether the server has closed the connection (what it sent before is dropped).
    pub(super) fn expect_end(&mut self) {
        let mut buffer = [0; 4096];
        while !matches!(self.0.read(&mut buffer), Ok(0)) {}
    }

    /// Reads to the end of the connection; returns how many bytes came before it.
    pub(super) fn expect_nothing_but_the_end(&mut self) -> usize {
        let mut bytes = Vec::new();
        // A reset is an end as well.
        let _ = self.0.read_to_end(&mut bytes);
        bytes.len()
    }

    pub(super) fn log_in(&mut self, password: &str) -> Vec<u8> {
        self.packet(0x12, 1, &hex("00 0006 0006 FF 0000000000000000 0000"));
        let prelogin = self.answer();
        assert_eq!(prelogin[0], 0, "the version comes first");
        let texts = ["h", "sa", password, "app", "s", "i", "", "db", ""];
        self.packet(0x10, 1, &super::login::login(0x7400_0004, 0, texts, &[]));
        self.answer()
    }
}
