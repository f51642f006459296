//! An engine that exists only as a Python module, driven by `host.py` in a child process.
//!
//! One child serves one data folder, to all servers of this process; it ends when the last of them lets go of it, or with this
//! process, whichever way that ends. The protocol between the two is told in `host.py`.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::connection::{Counts, Parameters};

/// The program; it is written into the data folder.
const PROGRAM: &str = include_str!("host.py");

/// Hosts that run for this process, by their data folders.
static RUNNING: Mutex<Vec<(PathBuf, Weak<Host>)>> = Mutex::new(Vec::new());

/// A running child process.
pub(super) struct Host {
    child: Mutex<Child>,
    socket: PathBuf,
}

impl Host {
    /// The host of the data folder `data`; starts it with the engine `module` if it does not run. `connection` is what the
    /// module's `connect` takes, with paths relative to the folder.
    pub(super) fn of(module: &Path, data: &Path, connection: &str) -> io::Result<Arc<Host>> {
        let data = std::fs::canonicalize(data)?;
        let mut running = RUNNING.lock();
        running.retain(|(_, host)| host.strong_count() > 0);
        if let Some(host) = running.iter().find(|(folder, _)| *folder == data).and_then(|(_, host)| host.upgrade()) {
            return Ok(host);
        }
        let host = Arc::new(Host::start(module, &data, connection)?);
        running.push((data, Arc::downgrade(&host)));
        Ok(host)
    }

    fn start(module: &Path, data: &Path, connection: &str) -> io::Result<Host> {
        std::fs::write(data.join("host.py"), PROGRAM)?;
        let mut child = Command::new("python3")
            .args(["-I", "-B", "host.py"])
            .arg(module)
            .arg(connection)
            .current_dir(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        BufReader::new(stdout).read_line(&mut line)?;
        if line.is_empty() {
            let status = child.wait()?;
            return Err(io::Error::other(format!("the engine's host ended ({status}); its standard error says why")));
        }
        Ok(Host { child: Mutex::new(child), socket: line.trim_end().into() })
    }

    /// A connection with its own session. The error is the engine's text.
    pub(super) fn connect(self: &Arc<Host>) -> Result<Connection, String> {
        let mut stream = UnixStream::connect(&self.socket).map_err(gone)?;
        let hello = receive(&mut stream)?;
        let thread_id = String::from_utf8_lossy(&hello.data).parse().map_err(|_| gone("its hello is no number"))?;
        Ok(Connection { stream, thread_id, _host: Arc::clone(self) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        drop(child.stdin.take());
        if let Err(error) = child.wait() {
            eprintln!("testkit clickhouse: the engine's host: {error}");
        }
    }
}

/// The host cannot be reached: an error in the engine's form.
fn gone(why: impl std::fmt::Display) -> String {
    format!("Code: 210. DB::Exception: The engine's host does not answer: {why}. (NETWORK_ERROR)")
}

/// What a request brought.
struct Received {
    counts: Counts,
    data: Vec<u8>,
}

fn receive(stream: &mut UnixStream) -> Result<Received, String> {
    let mut head = [0; 1 + 7 * 8];
    stream.read_exact(&mut head).map_err(gone)?;
    let [failed, numbers @ ..] = head;
    let mut numbers = numbers.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut number = || numbers.next().unwrap_or(0);
    let counts = Counts {
        rows: number(),
        bytes: number(),
        read_rows: number(),
        read_bytes: number(),
        written_rows: number(),
        written_bytes: number(),
        rows_to_read: 0,
    };
    let length = number();
    let mut data = Vec::new();
    let read = stream.take(length).read_to_end(&mut data).map_err(gone)?;
    if read as u64 != length {
        return Err(gone("an answer was cut"));
    }
    if failed != 0 { Err(String::from_utf8_lossy(&data).into_owned()) } else { Ok(Received { counts, data }) }
}

/// One connection with its own session.
pub(super) struct Connection {
    stream: UnixStream,
    thread_id: i32,
    /// The child runs as long as anything of it is used.
    _host: Arc<Host>,
}

impl Connection {
    /// The thread of the child that serves this connection.
    pub(super) fn thread_id(&self) -> i32 {
        self.thread_id
    }

    fn ask(&mut self, operation: u8, fields: &[&[u8]]) -> Result<Received, String> {
        let size = |count: usize| u32::try_from(count).map(u32::to_le_bytes).map_err(gone);
        let mut head = vec![operation];
        head.extend(size(fields.len())?);
        for field in fields {
            head.extend(size(field.len())?);
            self.stream.write_all(&head).and_then(|()| self.stream.write_all(field)).map_err(gone)?;
            head.clear();
        }
        self.stream.write_all(&head).map_err(gone)?;
        receive(&mut self.stream)
    }

    fn ask_with(
        &mut self,
        operation: u8,
        sql: &str,
        format: &str,
        parameters: &Parameters,
    ) -> Result<Received, String> {
        let mut fields = vec![sql.as_bytes(), format.as_bytes()];
        fields.extend(parameters.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        self.ask(operation, &fields)
    }

    pub(super) fn query(&mut self, sql: &str, format: &str, parameters: &Parameters) -> Answer {
        Answer(self.ask_with(b'Q', sql, format, parameters))
    }

    pub(super) fn stream(&mut self, sql: &str, format: &str, parameters: &Parameters) -> Result<Stream<'_>, String> {
        self.ask_with(b'S', sql, format, parameters)?;
        Ok(Stream { connection: self })
    }

    pub(super) fn insert(&mut self, sql: &str, format: &str) -> Result<InsertStream<'_>, String> {
        self.ask_with(b'I', sql, format, &[])?;
        Ok(InsertStream { connection: self })
    }

    /// Asks for an end of which nobody could do anything if it failed.
    fn end(&mut self, operation: u8) {
        if let Err(error) = self.ask(operation, &[]) {
            eprintln!("testkit clickhouse: the engine's host: {error}");
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Waits for the answer: then the session and its temporary tables are gone.
        self.end(b'E');
    }
}

/// A result, or one piece of a stream.
pub(super) struct Answer(Result<Received, String>);

impl Answer {
    pub(super) fn error(&self) -> Option<String> {
        self.0.as_ref().err().cloned()
    }

    pub(super) fn data(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |received| &received.data)
    }

    pub(super) fn counts(&self) -> Counts {
        self.0.as_ref().map_or_else(|_| Counts::default(), |received| received.counts)
    }
}

/// A running SELECT.
pub(super) struct Stream<'a> {
    connection: &'a mut Connection,
}

impl Stream<'_> {
    pub(super) fn fetch(&mut self) -> Answer {
        Answer(self.connection.ask(b'F', &[]))
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.connection.end(b'C');
    }
}

/// A running INSERT.
pub(super) struct InsertStream<'a> {
    connection: &'a mut Connection,
}

impl InsertStream<'_> {
    pub(super) fn append(&mut self, bytes: &[u8]) -> bool {
        self.connection.ask(b'A', &[bytes]).is_ok()
    }

    pub(super) fn finish(self) -> Result<Counts, String> {
        self.connection.ask(b'D', &[]).map(|received| received.counts)
    }
}

impl Drop for InsertStream<'_> {
    fn drop(&mut self) {
        self.connection.end(b'X');
    }
}
