//! One client's session in the engine: runs statements with the settings that came with them, and leaves none of those behind.
//!
//! **Settings of one query.** The engine's interface has no call for them, and a query's text is not ours to change. So they
//! are set on the session before the query and put back after it: a setting that was at its default goes back with
//! `SET name = DEFAULT`, any other to the text that `system.settings` showed. That is exact for all settings but those which
//! change others or forbid further changes ([`ISOLATED`]); a query with one of these runs in a session of its own that is
//! given the client's settings and database and is closed after it. Temporary tables are not seen there.

use std::io;
use std::sync::Arc;

use super::connection::{Connection, Counts, Parameters, Stream};
use super::control::Control;
use super::engine::{Engine, EngineError, lines};
use super::meter::Meter;
use super::native::{Block, Column, read_block};
use super::statement::{Statement, judge};
use super::totals::{self, ExtrasSink};

/// Settings that cannot be put back one by one.
const ISOLATED: [&str; 4] = ["readonly", "compatibility", "profile", "allow_ddl"];

/// What the engine answers to a statement that it does not stream; it has then not run it.
const NOT_STREAMED: &str = "Code: 36. DB::Exception: Streaming query is not supported for query";

/// Settings as names and values in text form.
pub(crate) type Settings = [(String, String)];

/// Gives rows to the function that it is called with, until that says `false`; says itself whether the rows are to be kept.
pub(crate) type Feed<'a> = &'a mut dyn FnMut(&mut dyn FnMut(&[u8]) -> bool) -> io::Result<bool>;

/// Where a result goes.
pub(crate) trait Sink {
    /// The columns, before any row. Not called for statements without a result.
    fn header(&mut self, columns: &[Column]) -> io::Result<()>;
    /// The next piece of the result, with the work done since the piece before. `false` ends the query early.
    fn piece(&mut self, data: &[u8], counts: Counts) -> io::Result<bool>;
}

/// Why a statement did not reach its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Sink(#[from] io::Error),
    /// The settings of a query could not be put back: the session must not be used again.
    #[error("the settings of a query could not be put back: {0}")]
    Restore(EngineError),
}

/// A query's text with what belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) sql: &'a str,
    /// The format of the result.
    pub(crate) format: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) parameters: &'a Parameters,
    /// Whether the sink wants the columns of a result without rows too.
    pub(crate) wants_header: bool,
}

/// A session.
pub(crate) struct Session {
    engine: Arc<Engine>,
    connection: Connection,
    control: Arc<Control>,
}

impl Session {
    /// Opens a session whose queries `control` can stop.
    pub(crate) fn new(engine: Arc<Engine>, control: Arc<Control>) -> Result<Session, EngineError> {
        let connection = engine.connect()?;
        Ok(Session { engine, connection, control })
    }

    /// Puts the session under another switch.
    pub(crate) fn adopt(&mut self, control: Arc<Control>) {
        self.control = control;
    }

    /// Makes `database` current.
    pub(crate) fn use_database(&mut self, database: &str) -> Result<(), EngineError> {
        lines(&mut self.connection, &format!("USE {}", quote_name(database))).map(|_| ())
    }

    /// Runs a statement to its end or until the sink has enough.
    pub(crate) fn execute(&mut self, request: Request<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
        let engine = Arc::clone(&self.engine);
        self.with_settings(request.settings, |connection| stream(&engine, connection, request, sink))
    }

    /// Runs a SELECT that asks for what the engine's Native format does not have: totals or extremes (`extras`), or a result
    /// without low-cardinality columns.
    pub(crate) fn execute_as_text(
        &mut self,
        request: Request<'_>,
        extras: bool,
        sink: &mut dyn ExtrasSink,
    ) -> Result<(), Failure> {
        let engine = Arc::clone(&self.engine);
        self.with_settings(request.settings, |connection| {
            // What can be described is a SELECT; nothing else has any of it.
            let columns = match describe(connection, &described(request.sql), request.parameters) {
                Ok(block) => select_columns(block, &[])?,
                Err(_) => return stream(&engine, connection, request, &mut *sink),
            };
            let plain = totals::without_low_cardinality(&columns, request.settings);
            if extras || plain != columns {
                return totals::run(&engine, connection, request, &plain, sink);
            }
            stream(&engine, connection, request, &mut *sink)
        })
    }

    /// The columns that an INSERT into `target` awaits.
    pub(crate) fn insert_columns(
        &mut self,
        target: &str,
        listed: &[String],
        settings: &Settings,
    ) -> Result<Vec<Column>, Failure> {
        self.with_settings(settings, |connection| {
            let block = describe(connection, &format!("DESCRIBE TABLE {target}"), &[])?;
            select_columns(block, listed).map_err(Failure::from)
        })
    }

    /// Runs an INSERT whose rows `feed` appends; `sql` ends before VALUES or FORMAT. `Ok(None)` when `feed` gave up.
    pub(crate) fn insert(
        &mut self,
        sql: &str,
        format: &str,
        settings: &Settings,
        feed: Feed<'_>,
    ) -> Result<Option<Counts>, Failure> {
        self.with_settings(settings, |connection| {
            let mut stream = connection.insert(sql, format).map_err(|text| EngineError::parse(&text))?;
            if !feed(&mut |bytes| stream.append(bytes))? {
                return Ok(None);
            }
            Ok(Some(stream.finish().map_err(|text| EngineError::parse(&text))?))
        })
    }

    fn with_settings<T>(
        &mut self,
        settings: &Settings,
        run: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let control = Arc::clone(&self.control);
        let run = move |connection: &mut Connection| {
            let _inside = control.enter_engine(connection.thread_id());
            run(connection)
        };
        if settings.is_empty() {
            return run(&mut self.connection);
        }
        if settings.iter().any(|(name, _)| ISOLATED.contains(&name.as_str())) {
            let mut connection = self.isolated()?;
            set(&mut connection, settings)?;
            return run(&mut connection);
        }
        let before = current_values(&mut self.connection, settings)?;
        // A refused SET changes nothing, so there is nothing to put back.
        set(&mut self.connection, settings)?;
        let outcome = run(&mut self.connection);
        restore(&mut self.connection, &before).map_err(Failure::Restore)?;
        outcome
    }

    /// A new connection with this session's settings and database.
    fn isolated(&mut self) -> Result<Connection, Failure> {
        // Under the session's own limits: a limit that cuts this answer is one that the client asked for.
        let sql = "SELECT name, value FROM system.settings WHERE changed";
        let changed = strings(&query_block(&mut self.connection, sql, &[])?, 2)?;
        let database = lines(&mut self.connection, "SELECT currentDatabase() FORMAT TSVRaw")?.concat();
        let mut connection = self.engine.connect()?;
        lines(&mut connection, &format!("USE {}", quote_name(&database)))?;
        let (last, first): (Vec<_>, Vec<_>) = changed
            .chunks_exact(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .partition(|(name, _)| ISOLATED.contains(&name.as_str()));
        for group in [first, last] {
            if !group.is_empty() {
                set(&mut connection, &group)?;
            }
        }
        Ok(connection)
    }
}

fn stream(
    engine: &Engine,
    connection: &mut Connection,
    request: Request<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let Request { sql, format, parameters, .. } = request;
    let mut header_due = request.wants_header;
    if header_due {
        // Asked first, as a server sends the columns before it reads any row. A statement that cannot be described is
        // either wrong, which running it tells, or no SELECT.
        if let Ok(block) = describe(connection, &described(sql), parameters) {
            sink.header(&select_columns(block, &[])?)?;
            header_due = false;
        }
    }
    let meter = Meter::new(engine, connection.thread_id());
    let refusal = match connection.stream(sql, format, parameters) {
        Ok(pieces) => return pump(meter, pieces, header_due, sink),
        Err(text) => text,
    };
    if refusal.starts_with(NOT_STREAMED) {
        return materialize(connection, request, sink);
    }
    Err(EngineError::parse(&refusal).into())
}

/// The statement that describes the columns of the SELECT `sql`.
fn described(sql: &str) -> String {
    let end = match judge(sql) {
        Statement::Other(clauses) => clauses.end,
        Statement::Insert(_) => sql.len(),
    };
    format!(
        "DESCRIBE TABLE (\n{}\n) SETTINGS describe_include_subcolumns = 0, describe_compact_output = 0",
        &sql[..end]
    )
}

/// Moves the pieces of a result to the sink.
fn pump(
    mut meter: Meter<'_>,
    mut pieces: Stream<'_>,
    mut header_due: bool,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    loop {
        let piece = pieces.fetch();
        if let Some(text) = piece.error() {
            return Err(EngineError::parse(&text).into());
        }
        if piece.data().is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut header_due) {
            sink.header(&delimited(&mut piece.data())?.columns)?;
        }
        if !sink.piece(piece.data(), meter.step(piece.counts()))? {
            return Ok(());
        }
    }
}

/// Runs a statement that is no SELECT. Its result, if any, is small: names, plans, states.
fn materialize(connection: &mut Connection, request: Request<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
    let result = connection.query(request.sql, request.format, request.parameters);
    if let Some(text) = result.error() {
        return Err(EngineError::parse(&text).into());
    }
    let (mut rest, mut counts) = (result.data(), result.counts());
    if !request.wants_header {
        sink.piece(rest, counts)?;
        return Ok(());
    }
    let mut first = true;
    while !rest.is_empty() {
        let block = delimited(&mut rest)?;
        if std::mem::take(&mut first) {
            sink.header(&block.columns)?;
        }
        counts.rows = block.rows;
        if !sink.piece(&block.bytes, counts)? {
            return Ok(());
        }
        counts = Counts::default();
    }
    if first {
        drop(result);
        if let Some(columns) = shown_columns(connection, request)? {
            sink.header(&columns)?;
        }
        // Nothing to show; the work done still counts.
        sink.piece(&[], Counts { rows: 0, ..counts })?;
    }
    Ok(())
}

/// The columns of a SHOW that shows nothing. It is asked again, in a format that names them; it reads names only.
fn shown_columns(connection: &mut Connection, request: Request<'_>) -> Result<Option<Vec<Column>>, Failure> {
    let shows = request.sql.trim_start().get(..5).is_some_and(|word| word.eq_ignore_ascii_case("SHOW "));
    if !shows {
        return Ok(None);
    }
    let result = connection.query(request.sql, "TSVWithNamesAndTypes", request.parameters);
    let text = String::from_utf8_lossy(result.data()).into_owned();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let (Some(names), Some(types)) = (lines.next(), lines.next()) else { return Ok(None) };
    Ok(Some(names.zip(types).map(|(name, type_name)| Column { name, type_name }).collect()))
}

fn query_block(connection: &mut Connection, sql: &str, parameters: &Parameters) -> Result<Block, Failure> {
    let result = connection.query(sql, "Native", parameters);
    if let Some(text) = result.error() {
        return Err(EngineError::parse(&text).into());
    }
    if result.data().is_empty() {
        return Ok(Block::default());
    }
    let mut whole = Block::default();
    let mut rest = result.data();
    while !rest.is_empty() {
        let block = delimited(&mut rest)?;
        if whole.rows > 0 {
            return Err(
                EngineError::new(48, "NOT_IMPLEMENTED", "an answer of the engine has more than one block").into()
            );
        }
        whole = block;
    }
    Ok(whole)
}

/// A block out of the engine's own bytes.
fn delimited(bytes: &mut &[u8]) -> Result<Block, EngineError> {
    read_block(bytes).map_err(|error| EngineError::new(48, "NOT_IMPLEMENTED", error.to_string()))
}

fn describe(connection: &mut Connection, sql: &str, parameters: &Parameters) -> Result<Block, Failure> {
    query_block(connection, sql, parameters)
}

/// The values of a block of strings, row by row.
fn strings(block: &Block, columns: usize) -> io::Result<Vec<String>> {
    use super::wire::ReadWire as _;
    if block.rows == 0 {
        return Ok(Vec::new());
    }
    let mut rest = block.bytes.as_slice();
    let (width, rows) = (rest.varint()?, rest.varint()?);
    let rows = rows as usize;
    let mut by_column = Vec::new();
    for _ in 0..width {
        let (_name, _type) = (rest.string()?, rest.string()?);
        for _ in 0..rows {
            by_column.push(String::from_utf8_lossy(&rest.byte_string()?).into_owned());
        }
    }
    Ok((0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| by_column[column * rows + row].clone())
        .collect())
}

/// Of a description of a table: the listed columns, or all that an INSERT without a list fills.
fn select_columns(description: Block, listed: &[String]) -> Result<Vec<Column>, EngineError> {
    let fields =
        strings(&description, 3).map_err(|error| EngineError::new(1002, "UNKNOWN_EXCEPTION", error.to_string()))?;
    let all: Vec<(&str, &str, &str)> = fields.chunks_exact(3).map(|row| (&*row[0], &*row[1], &*row[2])).collect();
    let column = |(name, type_name, _): &(&str, &str, &str)| Column {
        name: (*name).to_owned(),
        type_name: (*type_name).to_owned(),
    };
    if listed.is_empty() {
        let filled = |kind: &str| !matches!(kind, "MATERIALIZED" | "ALIAS" | "EPHEMERAL");
        return Ok(all.iter().filter(|(_, _, kind)| filled(kind)).map(column).collect());
    }
    let find = |name: &String| {
        all.iter()
            .find(|(known, _, _)| known == name)
            .map(column)
            .ok_or_else(|| EngineError::new(16, "NO_SUCH_COLUMN_IN_TABLE", format!("No such column {name} in table")))
    };
    listed.iter().map(find).collect()
}

/// The value of each of `settings` in the session, `None` where it is the default.
fn current_values(connection: &mut Connection, settings: &Settings) -> Result<Vec<(String, Option<String>)>, Failure> {
    let quoted = |names: &[&String]| names.iter().map(|name| quote_text(name)).collect::<Vec<_>>().join(", ");
    let (lifted, plain): (Vec<_>, Vec<_>) =
        settings.iter().map(|(name, _)| name).partition(|name| LIFTED.iter().any(|(lifted, _)| lifted == name));
    let lift: Vec<_> = LIFTED.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let table = |what: &str, names: &[&String]| {
        let names = quoted(names);
        format!("SELECT name, {what} FROM system.settings WHERE name IN ({names}) SETTINGS {}", lift.join(", "))
    };
    let mut values = Vec::new();
    if !plain.is_empty() {
        let rows = strings(&query_block(connection, &table("value, toString(changed)", &plain), &[])?, 3)?;
        values.extend(rows.chunks_exact(3).map(|row| (row[0].clone(), (row[2] == "1").then(|| row[1].clone()))));
    }
    if !lifted.is_empty() {
        // The table would show what this question lifts; the function shows it only where it is not lifted.
        let defaults = strings(&query_block(connection, &table("default", &lifted), &[])?, 2)?;
        let asked: Vec<_> = lifted.iter().map(|name| format!("toString(getSetting({}))", quote_text(name))).collect();
        let own = format!("SELECT {}", asked.join(", "));
        let own = strings(&query_block(connection, &own, &[])?, lifted.len())?;
        for (name, value) in lifted.iter().zip(own) {
            let default = defaults.chunks_exact(2).find(|row| row[0] == **name);
            values.extend(default.map(|row| ((*name).clone(), (value != row[1]).then_some(value))));
        }
    }
    match settings.iter().find(|(name, _)| values.iter().all(|(known, _)| known != name)) {
        None => Ok(values),
        Some((name, _)) => {
            let message = format!("The session hides its value of {name}, which could not be put back after the query");
            Err(EngineError::new(48, "NOT_IMPLEMENTED", message).into())
        }
    }
}

/// Limits of a session that could cut what the server asks for itself, and how they are lifted for that.
const LIFTED: [(&str, &str); 9] = [
    ("limit", "0"),
    ("offset", "0"),
    ("max_rows_to_read", "0"),
    ("max_bytes_to_read", "0"),
    ("max_result_rows", "0"),
    ("max_result_bytes", "0"),
    ("max_execution_time", "0"),
    ("additional_result_filter", "''"),
    ("additional_table_filters", "{}"),
];

fn set(connection: &mut Connection, settings: &Settings) -> Result<(), EngineError> {
    let all: Vec<_> =
        settings.iter().map(|(name, value)| format!("{} = {}", quote_name(name), quote_text(value))).collect();
    lines(connection, &format!("SET {}", all.join(", "))).map(|_| ())
}

fn restore(connection: &mut Connection, before: &[(String, Option<String>)]) -> Result<(), EngineError> {
    let all: Vec<_> = before
        .iter()
        .map(|(name, value)| {
            format!("{} = {}", quote_name(name), value.as_deref().map_or("DEFAULT".to_owned(), quote_text))
        })
        .collect();
    lines(connection, &format!("SET {}", all.join(", "))).map(|_| ())
}

/// A string literal.
pub(crate) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// A quoted identifier.
pub(crate) fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}
