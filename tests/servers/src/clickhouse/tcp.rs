//! One connection of the native protocol.
//!
//! Two threads serve it. The *reader* parses packets and hands them on through a short queue, so that a client which sends
//! rows faster than the engine takes them is slowed down by TCP. The *session* thread owns the engine's session and writes.
//! The reader acts on Cancel, and on the client's departure, while the session is inside the engine.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::Shared;
use super::connection::Counts;
use super::control::{Control, Stopped};
use super::engine::EngineError;
use super::native::{Column, dimensions, header_bytes};
use super::protocol::{
    CLIENT_REVISION_MIN, ClientPacket, DataKind, Hello, Profile, Query, SERVER_REVISION, ServerPackets as _,
};
use super::query_log::Entry;
use super::session::{Failure, Request, Session, Sink};
use super::settings::admit;
use super::statement::{Insert, Statement, judge};
use super::totals::ExtrasSink;
use super::wire::{WriteWire as _, malformed};

/// Packets that wait between the reader and the session.
const PACKETS_WAITING: usize = 2;

/// Serves one client until it leaves or breaks the protocol.
///
/// `hang_up` ends the reader's wait for its client.
pub(crate) fn serve<R: Read + Send, W: Write>(
    shared: &Shared,
    number: u64,
    reader: R,
    mut writer: W,
    hang_up: impl FnOnce(),
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 << 10, reader);
    let hello = Hello::read(&mut reader)?;
    let control = Control::new(Arc::clone(&shared.engine));
    let mut session = match greet(shared, &hello, &control) {
        Ok(session) => session,
        Err(error) => {
            let mut answer = Vec::new();
            answer.put_exception(&error);
            return writer.write_all(&answer);
        }
    };
    let mut answer = Vec::new();
    answer.put_hello(shared.engine.version(), "testkit clickhouse");
    writer.write_all(&answer)?;
    let (sender, packets) = sync_channel(PACKETS_WAITING);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| read_packets(&mut reader, hello.revision, &control, sender));
        let mut connection =
            Connection { shared, number, user: &hello.user, control: &control, packets, writer: &mut writer };
        let served = connection.serve(&mut session);
        drop(connection);
        hang_up();
        let read = read.join().unwrap_or_else(|_| Err(io::Error::other("the reader of a connection panicked")));
        served.and(read)
    })
}

/// Checks the client's hello and opens its session.
fn greet(shared: &Shared, hello: &Hello, control: &Arc<Control>) -> Result<Session, EngineError> {
    if hello.client_revision < CLIENT_REVISION_MIN {
        let message = format!(
            "Protocol revision {} of the client is too old: this server speaks {CLIENT_REVISION_MIN} to {SERVER_REVISION}",
            hello.client_revision
        );
        return Err(EngineError::new(48, "NOT_IMPLEMENTED", message));
    }
    shared.accounts.check(&hello.user, &hello.password)?;
    let mut session = Session::new(Arc::clone(&shared.engine), Arc::clone(control))?;
    if !hello.database.is_empty() {
        session.use_database(&hello.database)?;
    }
    Ok(session)
}

fn read_packets<R: Read>(
    reader: &mut R,
    revision: u64,
    control: &Control,
    packets: SyncSender<ClientPacket>,
) -> io::Result<()> {
    let mut compressed = false;
    let outcome = loop {
        match ClientPacket::read(reader, revision, compressed) {
            Ok(ClientPacket::Cancel) => {
                if control.mark_cancelled() {
                    // Wakes an INSERT that waits for rows; one that has rows waiting looks at the mark.
                    let _ = packets.try_send(ClientPacket::Cancel);
                    control.stop();
                }
            }
            Ok(packet) => {
                if let ClientPacket::Query(query) = &packet {
                    compressed = query.compressed;
                }
                if packets.send(packet).is_err() {
                    break Ok(());
                }
            }
            // Leaving between two packets is how a connection ends.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    drop(packets);
    if control.mark_gone() {
        control.stop();
    }
    outcome
}

struct Connection<'a, W> {
    shared: &'a Shared,
    number: u64,
    user: &'a str,
    control: &'a Control,
    packets: Receiver<ClientPacket>,
    writer: &'a mut W,
}

impl<W: Write> Connection<'_, W> {
    /// Answers packets until the client leaves.
    fn serve(&mut self, session: &mut Session) -> io::Result<()> {
        while let Ok(packet) = self.packets.recv() {
            let mut answer = Vec::new();
            match packet {
                ClientPacket::Ping => answer.put_pong(),
                ClientPacket::TablesStatus(tables) => answer.put_tables_status(&tables),
                ClientPacket::Query(query) => {
                    if !self.query(session, &query)? {
                        return Ok(());
                    }
                }
                // Blocks of an INSERT that has failed or was cancelled meanwhile.
                ClientPacket::Data { .. } | ClientPacket::Cancel => {}
            }
            self.writer.write_all(&answer)?;
        }
        Ok(())
    }

    /// Answers one query; `false` when the connection cannot go on.
    fn query(&mut self, session: &mut Session, query: &Query) -> io::Result<bool> {
        self.control.begin();
        let outcome = self.run(session, query);
        let stopped = self.control.end();
        if stopped == Stopped::Gone {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let mut answer = Vec::new();
        match outcome {
            Ok(()) => answer.put_end_of_stream(),
            // What the client stopped itself is no error to it.
            Err(Failure::Engine(_)) if stopped == Stopped::Cancelled => answer.put_end_of_stream(),
            Err(Failure::Engine(error)) => answer.put_exception(&error),
            Err(Failure::Restore(error)) => {
                // The session is not what it was: better no session than a wrong one.
                answer.put_exception(&error);
                self.writer.write_all(&answer)?;
                return Ok(false);
            }
            Err(Failure::Sink(error)) => return Err(error),
        }
        self.writer.write_all(&answer)?;
        Ok(true)
    }

    fn run(&mut self, session: &mut Session, query: &Query) -> Result<(), Failure> {
        self.external_tables()?;
        let sent: Vec<_> = query.settings.iter().map(|s| (s.name.clone(), s.value.clone(), s.important)).collect();
        self.shared.announce(&Entry {
            interface: "native",
            connection: self.number,
            user: self.user,
            query_id: &query.id,
            text: &query.text,
            settings: &sent,
        })?;
        if query.interserver_secret {
            let message = "Interserver authentication is not configured";
            return Err(EngineError::new(516, "AUTHENTICATION_FAILED", message).into());
        }
        if query.stage != 2 {
            let message = "This server processes queries to the end only (stage Complete)";
            return Err(EngineError::new(48, "NOT_IMPLEMENTED", message).into());
        }
        let settings = admit(&self.shared.engine, &query.settings)?;
        match judge(&query.text) {
            Statement::Insert(insert) if !insert.has_inline_rows(&query.text) => {
                self.insert(session, query, &insert, &settings)
            }
            Statement::Insert(_) => self.select(session, query, &settings, false),
            Statement::Other(clauses) if clauses.format.is_some() || clauses.into_outfile => {
                // A server would leave these to its client; the engine's embedded client would act on them here.
                let message = "FORMAT and INTO OUTFILE are the client's over the native protocol; leave them out";
                Err(EngineError::new(48, "NOT_IMPLEMENTED", message).into())
            }
            Statement::Other(clauses) => self.select(session, query, &settings, clauses.totals),
        }
    }

    /// Reads the tables that come with a query, which end with an empty block.
    fn external_tables(&mut self) -> Result<(), Failure> {
        let mut refused = false;
        loop {
            match self.next_block()? {
                None => break,
                Some(_) => refused = true,
            }
        }
        if refused {
            return Err(EngineError::new(48, "NOT_IMPLEMENTED", "This server takes no external tables").into());
        }
        Ok(())
    }

    /// The next block of a sequence, `None` at its end or when the client stops it.
    fn next_block(&mut self) -> io::Result<Option<super::native::Block>> {
        match self.packets.recv() {
            Ok(ClientPacket::Data { block, .. }) if block.columns.is_empty() => Ok(None),
            Ok(ClientPacket::Data { block, .. }) => Ok(Some(block)),
            Ok(ClientPacket::Cancel) => Ok(None),
            Ok(_) => Err(malformed("a packet came where a block was due")),
            Err(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn select(
        &mut self,
        session: &mut Session,
        query: &Query,
        settings: &[(String, String)],
        totals: bool,
    ) -> Result<(), Failure> {
        let request = Request { sql: &query.text, format: "Native", settings, parameters: &[], wants_header: true };
        let mut sink = BlockSink {
            writer: self.writer,
            control: self.control,
            compressed: query.compressed,
            profile: Profile::default(),
            first_column: None,
        };
        let extras = totals || settings.iter().any(|(name, value)| name == "extremes" && value != "0");
        let by_text = |(name, _): &(String, String)| name == "low_cardinality_allow_in_native_format";
        if extras || settings.iter().any(by_text) {
            session.execute_as_text(request, extras, &mut sink)?;
        } else {
            session.execute(request, &mut sink)?;
        }
        sink.finish()?;
        Ok(())
    }

    fn insert(
        &mut self,
        session: &mut Session,
        query: &Query,
        insert: &Insert,
        settings: &[(String, String)],
    ) -> Result<(), Failure> {
        let columns = session.insert_columns(&insert.target, &insert.columns, settings)?;
        let head = &query.text[..insert.head_end];
        let (mut ended, mut started, mut misfit) = (false, false, None);
        let mut feed = |append: &mut dyn FnMut(&[u8]) -> bool| -> io::Result<bool> {
            let mut sample = Vec::new();
            sample.put_data(DataKind::Rows, &header_bytes(&columns), query.compressed);
            self.writer.write_all(&sample)?;
            started = true;
            while let Some(block) = self.next_block()? {
                misfit = block.columns.iter().find(|sent| columns.iter().all(|known| known.name != sent.name)).cloned();
                if misfit.is_some() {
                    return Ok(false);
                }
                if block.rows > 0 && !append(&block.bytes) {
                    return Ok(true);
                }
            }
            ended = true;
            Ok(!self.control.is_cancelled())
        };
        let outcome = session.insert(head, "Native", settings, &mut feed);
        let mut outcome = match (misfit, outcome) {
            (Some(Column { name, .. }), Ok(None)) => {
                let message = format!("Not found column {name} in block of the table");
                Err(EngineError::new(10, "NOT_FOUND_COLUMN_IN_BLOCK", message).into())
            }
            (_, outcome) => outcome,
        };
        if started && !ended && !self.control.is_cancelled() {
            // The client hears of the failure when it has sent everything.
            while self.next_block()?.is_some() {}
        }
        if let Ok(Some(counts)) = &mut outcome {
            let mut answer = Vec::new();
            answer.put_progress(*counts);
            self.writer.write_all(&answer)?;
        }
        outcome.map(|_| ())
    }
}

/// Sends a result as blocks.
pub(crate) struct BlockSink<'a, W> {
    writer: &'a mut W,
    control: &'a Control,
    compressed: bool,
    profile: Profile,
    /// Name and type of the first column as announced.
    first_column: Option<Vec<u8>>,
}

impl<W: Write> BlockSink<'_, W> {
    /// Sends what follows the last block.
    fn finish(self) -> io::Result<()> {
        if self.first_column.is_none() || self.control.is_cancelled() {
            return Ok(());
        }
        let mut packets = Vec::new();
        packets.put_profile_info(self.profile);
        // An empty block closes the rows.
        packets.put_data(DataKind::Rows, &header_bytes(&[]), self.compressed);
        self.writer.write_all(&packets)
    }
}

impl<W: Write> ExtrasSink for BlockSink<'_, W> {
    fn extra(&mut self, kind: DataKind, block: &[u8]) -> io::Result<()> {
        let mut packet = Vec::new();
        packet.put_data(kind, block, self.compressed);
        self.writer.write_all(&packet)
    }
}

impl<W: Write> Sink for BlockSink<'_, W> {
    fn header(&mut self, columns: &[Column]) -> io::Result<()> {
        let mut first = Vec::new();
        if let Some(column) = columns.first() {
            first.put_string(&column.name);
            first.put_string(&column.type_name);
        }
        self.first_column = Some(first);
        let mut packet = Vec::new();
        packet.put_data(DataKind::Rows, &header_bytes(columns), self.compressed);
        self.writer.write_all(&packet)
    }

    fn piece(&mut self, data: &[u8], counts: Counts) -> io::Result<bool> {
        if self.control.is_cancelled() {
            return Ok(false);
        }
        let mut packets = Vec::new();
        if !data.is_empty() {
            let (rows, values) = dimensions(data)?;
            // The columns were announced by another question than the one that gives the rows.
            if !self.first_column.as_ref().is_some_and(|first| values.starts_with(first)) {
                return Err(malformed("the engine's rows have other columns than it announced"));
            }
            self.profile.rows += rows;
            self.profile.blocks += 1;
            self.profile.bytes += counts.bytes;
            packets.put_data(DataKind::Rows, data, self.compressed);
        }
        packets.put_progress(counts);
        self.writer.write_all(&packets)?;
        Ok(!self.control.is_cancelled())
    }
}
