//! Packets of the native protocol, as the server reads and writes them.
//!
//! Source: ClickHouse `src/Core/Protocol.h`, `ProtocolDefines.h`, `src/Server/TCPHandler.cpp`, `src/Interpreters/ClientInfo.cpp`.
//! The server offers revision [`SERVER_REVISION`]: the last one before blocks say how each column is serialised (54454), since
//! the engine writes blocks in the plain form. What later revisions added (parameters, the addendum, chunked packets) is
//! therefore never negotiated.

use std::io::{self, Read};

use super::connection::Counts;
use super::engine::{EngineError, EngineVersion};
use super::frame::{FrameReader, compress};
use super::native::{Block, read_block};
use super::wire::{ReadWire, WriteWire as _, malformed};

/// The protocol revision that the server offers.
pub(crate) const SERVER_REVISION: u64 = 54_453;
/// The oldest client revision that it serves.
pub(crate) const CLIENT_REVISION_MIN: u64 = 54_448;

const WITH_INITIAL_QUERY_START_TIME: u64 = 54_449;
const WITH_PARALLEL_REPLICAS: u64 = 54_453;

/// Settings that one query may bring.
const SETTINGS_MAX: usize = 10_000;

/// The first packet of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) client_name: String,
    /// The revision both sides use from here on.
    pub(crate) revision: u64,
    pub(crate) client_revision: u64,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) password: String,
}

/// A setting as sent with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentSetting {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The server must not run the query if it does not know the setting.
    pub(crate) important: bool,
}

/// A query as sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) id: String,
    pub(crate) settings: Vec<SentSetting>,
    pub(crate) interserver_secret: bool,
    /// How far the query is to be processed; 2 is to the end.
    pub(crate) stage: u64,
    pub(crate) compressed: bool,
    pub(crate) text: String,
}

/// What a client sends after its hello.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientPacket {
    Query(Query),
    /// A block; an unnamed one without columns ends a sequence of blocks.
    Data {
        table: String,
        block: Block,
    },
    Cancel,
    Ping,
    /// The tables whose state is asked for, as database and name.
    TablesStatus(Vec<(String, String)>),
}

impl Hello {
    pub(crate) fn read<R: Read>(source: &mut R) -> io::Result<Hello> {
        if source.varint()? != 0 {
            return Err(malformed("the first packet is not a hello"));
        }
        let client_name = source.string()?;
        let (_major, _minor) = (source.varint()?, source.varint()?);
        let client_revision = source.varint()?;
        Ok(Hello {
            client_name,
            revision: client_revision.min(SERVER_REVISION),
            client_revision,
            database: source.string()?,
            user: source.string()?,
            password: source.string()?,
        })
    }
}

impl ClientPacket {
    /// Reads one packet; `compressed` is what the last query of the connection said of its blocks.
    pub(crate) fn read<R: Read>(source: &mut R, revision: u64, compressed: bool) -> io::Result<ClientPacket> {
        Ok(match source.varint()? {
            1 => ClientPacket::Query(Query::read(source, revision)?),
            2 => {
                let table = source.string()?;
                let block = if compressed {
                    let mut frames = FrameReader::new(source);
                    let block = read_data_block(&mut frames)?;
                    if !frames.is_drained() {
                        return Err(malformed("a frame holds more than its block"));
                    }
                    block
                } else {
                    read_data_block(source)?
                };
                ClientPacket::Data { table, block }
            }
            3 => ClientPacket::Cancel,
            4 => ClientPacket::Ping,
            5 => ClientPacket::TablesStatus(read_tables(source)?),
            _ => return Err(malformed("a packet of unknown kind")),
        })
    }
}

fn read_tables<R: Read>(source: &mut R) -> io::Result<Vec<(String, String)>> {
    let count = source.varint()?;
    if count > 10_000 {
        return Err(malformed("too many tables are asked for"));
    }
    (0..count).map(|_| Ok((source.string()?, source.string()?))).collect()
}

/// Block info (numbered fields up to a zero), then the block.
fn read_data_block<R: Read + ?Sized>(source: &mut R) -> io::Result<Block> {
    loop {
        match source.varint()? {
            0 => break,
            1 => drop(source.byte()?),
            2 => drop(source.array::<4>()?),
            _ => return Err(malformed("a block's info has an unknown field")),
        }
    }
    read_block(source)
}

impl Query {
    fn read<R: Read>(source: &mut R, revision: u64) -> io::Result<Query> {
        let id = source.string()?;
        skip_client_info(source, revision)?;
        let mut settings = Vec::new();
        loop {
            let name = source.string()?;
            if name.is_empty() {
                break;
            }
            if settings.len() == SETTINGS_MAX {
                return Err(malformed("a query brings too many settings"));
            }
            let flags = source.varint()?;
            let value = source.string()?;
            // A setting of the user's own making (flag 2) comes as a literal; what it says is between the quotes.
            let value = if flags & 2 == 0 { value } else { unquoted(&value) };
            settings.push(SentSetting { name, value, important: flags & 1 != 0 });
        }
        let interserver_secret = !source.byte_string()?.is_empty();
        let stage = source.varint()?;
        let compressed = source.varint()? != 0;
        let text = String::from_utf8(source.byte_string()?).map_err(|_| malformed("a query's text is not UTF-8"))?;
        Ok(Query { id, settings, interserver_secret, stage, compressed, text })
    }
}

fn unquoted(literal: &str) -> String {
    let Some(inner) = literal.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) else {
        return literal.to_owned();
    };
    let mut characters = inner.chars();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    text
}

fn skip_client_info<R: Read>(source: &mut R, revision: u64) -> io::Result<()> {
    const TCP: u8 = 1;
    const HTTP: u8 = 2;
    if source.byte()? == 0 {
        return Ok(());
    }
    for _initial_user_id_address in 0..3 {
        source.string()?;
    }
    if revision >= WITH_INITIAL_QUERY_START_TIME {
        source.array::<8>()?;
    }
    let interface = source.byte()?;
    match interface {
        TCP => {
            for _os_user_host_client in 0..3 {
                source.string()?;
            }
            for _major_minor_revision in 0..3 {
                source.varint()?;
            }
        }
        HTTP => {
            source.byte()?;
            for _agent_forwarded_referer in 0..3 {
                source.string()?;
            }
        }
        _ => return Err(malformed("a query comes by an unknown interface")),
    }
    let _quota_key = source.string()?;
    let _distributed_depth = source.varint()?;
    if interface == TCP {
        let _version_patch = source.varint()?;
    }
    if source.byte()? != 0 {
        let _trace_and_span = source.array::<24>()?;
        source.string()?;
        source.byte()?;
    }
    if revision >= WITH_PARALLEL_REPLICAS {
        for _collaborate_count_number in 0..3 {
            source.varint()?;
        }
    }
    Ok(())
}

/// Packets that the server sends, appended to a buffer.
pub(crate) trait ServerPackets {
    fn put_hello(&mut self, version: &EngineVersion, display_name: &str);
    fn put_exception(&mut self, error: &EngineError);
    fn put_data(&mut self, kind: DataKind, block: &[u8], compressed: bool);
    fn put_progress(&mut self, counts: Counts);
    fn put_profile_info(&mut self, profile: Profile);
    fn put_pong(&mut self);
    fn put_end_of_stream(&mut self);
    fn put_tables_status(&mut self, tables: &[(String, String)]);
}

/// What a block of the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataKind {
    Rows = 1,
    Totals = 7,
    Extremes = 8,
}

/// What a result held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) rows: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

/// Block info of a plain block: not overflow rows (field 1), no bucket (field 2 = -1), end.
const BLOCK_INFO: [u8; 8] = [1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0];

impl ServerPackets for Vec<u8> {
    fn put_hello(&mut self, version: &EngineVersion, display_name: &str) {
        self.put_varint(0);
        self.put_string("ClickHouse");
        let [major, minor, patch] = version.numbers;
        self.put_varint(major);
        self.put_varint(minor);
        self.put_varint(SERVER_REVISION);
        self.put_string(&version.timezone);
        self.put_string(display_name);
        self.put_varint(patch);
    }

    fn put_exception(&mut self, error: &EngineError) {
        self.put_varint(2);
        self.extend_from_slice(&error.code.to_le_bytes());
        self.put_string("DB::Exception");
        self.put_string(&format!("DB::Exception: {}", error.message));
        // No stack trace, no nested exception.
        self.put_string("");
        self.push(0);
    }

    fn put_data(&mut self, kind: DataKind, block: &[u8], compressed: bool) {
        self.put_varint(kind as u64);
        self.put_string("");
        if compressed {
            let mut plain = Vec::with_capacity(BLOCK_INFO.len() + block.len());
            plain.extend_from_slice(&BLOCK_INFO);
            plain.extend_from_slice(block);
            compress(&plain, self);
        } else {
            self.extend_from_slice(&BLOCK_INFO);
            self.extend_from_slice(block);
        }
    }

    fn put_progress(&mut self, counts: Counts) {
        self.put_varint(3);
        self.put_varint(counts.read_rows);
        self.put_varint(counts.read_bytes);
        self.put_varint(counts.rows_to_read);
        self.put_varint(counts.written_rows);
        self.put_varint(counts.written_bytes);
    }

    fn put_profile_info(&mut self, profile: Profile) {
        self.put_varint(6);
        self.put_varint(profile.rows);
        self.put_varint(profile.blocks);
        self.put_varint(profile.bytes);
        // No LIMIT was seen, so no number of rows before it either.
        self.extend_from_slice(&[0, 0, 0]);
    }

    fn put_pong(&mut self) {
        self.put_varint(4);
    }

    fn put_end_of_stream(&mut self) {
        self.put_varint(5);
    }

    fn put_tables_status(&mut self, tables: &[(String, String)]) {
        self.put_varint(9);
        self.put_varint(tables.len() as u64);
        for (database, table) in tables {
            self.put_string(database);
            self.put_string(table);
            // Not replicated.
            self.push(0);
        }
    }
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
