//! The thread of one request: reads the statement, runs it, sends its result.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use super::body::RequestBody;
use super::reply::error_text;
use super::request::Query;
use crate::clickhouse::Shared;
use crate::clickhouse::connection::Counts;
use crate::clickhouse::control::Control;
use crate::clickhouse::engine::EngineError;
use crate::clickhouse::native::Column;
use crate::clickhouse::query_log::Entry;
use crate::clickhouse::session::{Failure, Request, Session, Sink};
use crate::clickhouse::settings::admit;
use crate::clickhouse::statement::{Insert, Statement, judge};

/// The longest statement without rows.
const STATEMENT_BYTES_MAX: usize = 64 << 20;
/// The longest beginning of an INSERT in a body, up to its rows.
const INSERT_HEAD_BYTES_MAX: usize = 1 << 20;
/// Rows are handed to the engine in pieces of this size.
const ROWS_BYTES: usize = 256 << 10;

/// A part of a reply.
pub(super) enum Part {
    /// The reply has begun well.
    Begin(Begin),
    Bytes(Bytes),
    /// The statement has failed; after bytes, they have told so.
    Failed(EngineError),
}

/// What is known when a reply begins.
pub(super) struct Begin {
    pub(super) format: String,
    pub(super) counts: Counts,
}

/// Runs the request and sends all parts of its reply.
pub(super) fn run(
    shared: &Shared,
    number: u64,
    query: &Query,
    body: RequestBody,
    control: &Arc<Control>,
    parts: &Sender<Part>,
) {
    control.begin();
    let mut reply = Reply { parts, begun: false, format: query.default_format.clone() };
    let outcome = work(shared, number, query, body, control, &mut reply);
    control.end();
    let error = match outcome {
        Ok(()) => {
            // A client that has gone needs no reply.
            let _ = reply.begin(Counts::default());
            return;
        }
        Err(Failure::Engine(error) | Failure::Restore(error)) => error,
        Err(Failure::Sink(error)) => EngineError::new(1001, "STD_EXCEPTION", error.to_string()),
    };
    if reply.begun {
        let _ = reply.send(Part::Bytes(Bytes::from(error_text(shared, &error))));
    }
    let _ = reply.send(Part::Failed(error));
}

fn work(
    shared: &Shared,
    number: u64,
    query: &Query,
    mut body: RequestBody,
    control: &Arc<Control>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let (text, statement, rows) = read_statement(&query.text, &mut body)?;
    let logged: Vec<_> = query.settings.iter().map(|s| (s.name.clone(), s.value.clone(), s.important)).collect();
    shared.announce(&Entry {
        interface: "http",
        connection: number,
        user: &query.user,
        query_id: &query.query_id,
        text: &text,
        settings: &logged,
    })?;
    let settings = admit(&shared.engine, &query.settings)?;
    let open = || Session::new(Arc::clone(&shared.engine), Arc::clone(control));
    let mut session = match &query.session {
        Some(asked) => shared.sessions.take(&query.user, asked, open)?,
        None => open()?,
    };
    session.adopt(Arc::clone(control));
    let outcome = statement_in(&mut session, query, &settings, &text, &statement, rows, &mut body, reply);
    if let Some(asked) = &query.session {
        let usable = !matches!(outcome, Err(Failure::Restore(_)));
        shared.sessions.give_back(&query.user, asked, usable.then_some(session));
    }
    outcome
}

#[allow(clippy::too_many_arguments, reason = "one call, which splits `work` for reading")]
fn statement_in(
    session: &mut Session,
    query: &Query,
    settings: &[(String, String)],
    text: &str,
    statement: &Statement,
    rows: Vec<u8>,
    body: &mut RequestBody,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    if !query.database.is_empty() {
        session.use_database(&query.database)?;
    }
    match statement {
        Statement::Insert(insert) => {
            let counts = insert_rows(session, text, insert, settings, rows, body)?;
            reply.begin(counts)?;
            Ok(())
        }
        Statement::Other(clauses) if clauses.into_outfile => {
            Err(EngineError::new(48, "NOT_IMPLEMENTED", "INTO OUTFILE is the client's; leave it out").into())
        }
        Statement::Other(clauses) => {
            if let Some((start, end)) = clauses.format {
                text[start..end].clone_into(&mut reply.format);
            }
            let request = Request {
                sql: text,
                format: &query.default_format,
                settings,
                parameters: &query.parameters,
                wants_header: false,
            };
            session.execute(request, reply)
        }
    }
}

/// The statement, what it is, and the rows that were read with it.
fn read_statement(parameter: &str, body: &mut RequestBody) -> Result<(String, Statement, Vec<u8>), Failure> {
    let mut text = parameter.as_bytes().to_vec();
    if !text.is_empty() {
        text.push(b'\n');
    }
    loop {
        // The beginning of an INSERT ends in the midst of what was read; rows need not be UTF-8.
        let readable = match std::str::from_utf8(&text) {
            Ok(readable) => readable,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
        };
        if let Statement::Insert(insert) = judge(readable)
            && insert.data_start < readable.len()
        {
            let rows_start = rows_start(&text, &insert);
            let rows = text.split_off(rows_start);
            text.truncate(insert.data_start);
            let text = String::from_utf8(text).map_err(io::Error::other)?;
            return Ok((text, Statement::Insert(insert), rows));
        }
        let is_insert = readable.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("INSERT"));
        let step = if is_insert { INSERT_HEAD_BYTES_MAX } else { STATEMENT_BYTES_MAX };
        let before = text.len();
        body.by_ref().take((step / 16) as u64).read_to_end(&mut text)?;
        if text.len() > STATEMENT_BYTES_MAX {
            return Err(EngineError::new(62, "SYNTAX_ERROR", "The statement is longer than this server takes").into());
        }
        if text.len() == before {
            break;
        }
    }
    let text =
        String::from_utf8(text).map_err(|_| EngineError::new(62, "SYNTAX_ERROR", "The statement is not UTF-8"))?;
    let statement = judge(&text);
    Ok((text, statement, Vec::new()))
}

/// Rows begin after the format's name, blanks and one line end; after VALUES at once.
fn rows_start(text: &[u8], insert: &Insert) -> usize {
    if insert.format == "Values" {
        return insert.data_start;
    }
    let blanks = text[insert.data_start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    let at = insert.data_start + blanks;
    at + usize::from(text.get(at) == Some(&b'\n'))
}

fn insert_rows(
    session: &mut Session,
    text: &str,
    insert: &Insert,
    settings: &[(String, String)],
    rows: Vec<u8>,
    body: &mut RequestBody,
) -> Result<Counts, Failure> {
    let head = &text[..insert.head_end];
    let mut feed = |append: &mut dyn FnMut(&[u8]) -> bool| -> io::Result<bool> {
        if !rows.is_empty() && !append(&rows) {
            return Ok(true);
        }
        let mut piece = Vec::new();
        loop {
            piece.clear();
            body.by_ref().take(ROWS_BYTES as u64).read_to_end(&mut piece)?;
            if piece.is_empty() || !append(&piece) {
                return Ok(true);
            }
        }
    };
    Ok(session.insert(head, &insert.format, settings, &mut feed)?.unwrap_or_default())
}

/// Sends parts; begins before the first bytes.
struct Reply<'a> {
    parts: &'a Sender<Part>,
    begun: bool,
    format: String,
}

impl Reply<'_> {
    fn send(&self, part: Part) -> io::Result<()> {
        self.parts.blocking_send(part).map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }

    fn begin(&mut self, counts: Counts) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.send(Part::Begin(Begin { format: self.format.clone(), counts }))
    }
}

impl Sink for Reply<'_> {
    fn header(&mut self, _columns: &[Column]) -> io::Result<()> {
        Ok(())
    }

    fn piece(&mut self, data: &[u8], counts: Counts) -> io::Result<bool> {
        self.begin(counts)?;
        if !data.is_empty() {
            self.send(Part::Bytes(Bytes::copy_from_slice(data)))?;
        }
        Ok(true)
    }
}
