//! What the server asks of an engine, whichever way it is driven: sessions, statements, streams of results, inserts.
//!
//! A library with C functions runs in this process ([`ffi`]); one without them runs in a child process ([`host`]).

use super::{ffi, host};

/// Typed parameters of a query: `{name:Type}` placeholders and their values as text.
pub type Parameters = [(String, String)];

/// Work counted by the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows of the result.
    pub rows: u64,
    /// Bytes of the result in the engine's memory.
    pub bytes: u64,
    /// Rows read from tables.
    pub read_rows: u64,
    /// Bytes read from tables.
    pub read_bytes: u64,
    /// Rows written to tables.
    pub written_rows: u64,
    /// Bytes written to tables.
    pub written_bytes: u64,
    /// Rows that are to be read in all, as far as the engine knows; the interface does not tell.
    pub rows_to_read: u64,
}

/// One of the two ways.
enum Either<L, H> {
    Library(L),
    Host(H),
}

/// One connection with its own session: settings, current database, temporary tables.
pub struct Connection(Either<ffi::Connection, host::Connection>);

impl From<ffi::Connection> for Connection {
    fn from(connection: ffi::Connection) -> Connection {
        Connection(Either::Library(connection))
    }
}

impl From<host::Connection> for Connection {
    fn from(connection: host::Connection) -> Connection {
        Connection(Either::Host(connection))
    }
}

impl Connection {
    /// The kernel's id of the thread on which the engine runs what the calling thread asks of this connection; it is among
    /// `system.processes.thread_ids`.
    pub(super) fn thread_id(&self) -> i32 {
        match &self.0 {
            Either::Library(_) => ffi::thread_id(),
            Either::Host(connection) => connection.thread_id(),
        }
    }

    /// Runs a statement to its end; the whole result is in memory.
    pub fn query(&mut self, sql: &str, format: &str, parameters: &Parameters) -> QueryResult<'_> {
        QueryResult(match &mut self.0 {
            Either::Library(connection) => Either::Library(connection.query(sql, format, parameters)),
            Either::Host(connection) => Either::Host(connection.query(sql, format, parameters)),
        })
    }

    /// Starts a SELECT whose result is fetched piece by piece. The engine refuses other statements without running them.
    pub fn stream(&mut self, sql: &str, format: &str, parameters: &Parameters) -> Result<Stream<'_>, String> {
        Ok(Stream(match &mut self.0 {
            Either::Library(connection) => Either::Library(connection.stream(sql, format, parameters)?),
            Either::Host(connection) => Either::Host(connection.stream(sql, format, parameters)?),
        }))
    }

    /// Starts an INSERT whose rows are appended in `format`. `sql` ends before its FORMAT or VALUES.
    pub fn insert(&mut self, sql: &str, format: &str) -> Result<InsertStream<'_>, String> {
        Ok(InsertStream(match &mut self.0 {
            Either::Library(connection) => Either::Library(connection.insert(sql, format)?),
            Either::Host(connection) => Either::Host(connection.insert(sql, format)?),
        }))
    }
}

/// One result, or one piece of a stream.
pub struct QueryResult<'a>(Either<ffi::QueryResult<'a>, host::Answer>);

impl QueryResult<'_> {
    /// The engine's error text, if the statement failed.
    pub fn error(&self) -> Option<String> {
        match &self.0 {
            Either::Library(result) => result.error(),
            Either::Host(answer) => answer.error(),
        }
    }

    /// The result's bytes in the format asked for.
    pub fn data(&self) -> &[u8] {
        match &self.0 {
            Either::Library(result) => result.data(),
            Either::Host(answer) => answer.data(),
        }
    }

    /// What the statement has done so far; of a stream's piece: since the piece before.
    pub fn counts(&self) -> Counts {
        match &self.0 {
            Either::Library(result) => result.counts(),
            Either::Host(answer) => answer.counts(),
        }
    }
}

/// A running SELECT. Dropping it cancels what is left.
pub struct Stream<'a>(Either<ffi::Stream<'a>, host::Stream<'a>>);

impl Stream<'_> {
    /// The next piece; one without data and error is the end.
    pub fn fetch(&mut self) -> QueryResult<'_> {
        QueryResult(match &mut self.0 {
            Either::Library(stream) => Either::Library(stream.fetch()),
            Either::Host(stream) => Either::Host(stream.fetch()),
        })
    }
}

/// A running INSERT. Dropping it without [`InsertStream::finish`] cancels it.
pub struct InsertStream<'a>(Either<ffi::InsertStream<'a>, host::InsertStream<'a>>);

impl InsertStream<'_> {
    /// Hands over bytes of the insert's format; waits while the engine is behind. `false` when the insert has failed:
    /// [`InsertStream::finish`] then says why.
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        match &mut self.0 {
            Either::Library(stream) => stream.append(bytes),
            Either::Host(stream) => stream.append(bytes),
        }
    }

    /// Ends the data and waits for the engine's verdict.
    pub fn finish(self) -> Result<Counts, String> {
        match self.0 {
            Either::Library(stream) => stream.finish(),
            Either::Host(stream) => stream.finish(),
        }
    }
}
