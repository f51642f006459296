//! A client of the native protocol, written for these tests from the protocol's description and not from the server's code.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{PASSWORD, USER, fixture};

pub(crate) struct Client {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    revision: u64,
    pub(crate) server_revision: u64,
}

/// A packet of the server.
#[derive(Debug, PartialEq)]
pub(crate) enum Packet {
    /// Names, types and rows of a block, and its values as they came.
    Data {
        columns: Vec<(String, String)>,
        rows: u64,
        values: Vec<u8>,
    },
    Exception {
        code: i32,
        name: String,
        message: String,
        stack: String,
        nested: u8,
    },
    Progress {
        read_rows: u64,
        written_rows: u64,
    },
    Pong,
    EndOfStream,
    ProfileInfo {
        rows: u64,
        blocks: u64,
    },
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push((value % 128) as u8 + 128);
        value /= 128;
    }
    bytes.push(value as u8);
    bytes
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    [varint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

pub(crate) fn hello(revision: u64, database: &str, user: &str, password: &str) -> Vec<u8> {
    [varint(0), text("raw client"), varint(1), varint(2), varint(revision), text(database), text(user), text(password)]
        .concat()
}

/// An uncompressed query at `revision`: settings are name, flags and value.
pub(crate) fn query(revision: u64, id: &str, settings: &[(&str, u64, &str)], secret: &str, sql: &str) -> Vec<u8> {
    let mut bytes = [varint(1), text(id), vec![1], text(""), text(""), text("127.0.0.1:0")].concat();
    if revision >= 54_449 {
        bytes.extend([7; 8]);
    }
    bytes.push(1);
    for part in ["os user", "host", "raw client"] {
        bytes.extend(text(part));
    }
    bytes.extend([varint(1), varint(2), varint(revision), text("quota"), varint(0), varint(3)].concat());
    // A trace: id of trace and span, state, flags.
    bytes.push(1);
    bytes.extend([9; 24]);
    bytes.extend([text("state"), vec![1]].concat());
    if revision >= 54_453 {
        bytes.extend([0, 0, 0]);
    }
    for (name, flags, value) in settings {
        bytes.extend([text(name), varint(*flags), text(value)].concat());
    }
    bytes.extend([text(""), text(secret), varint(2), varint(0), text(sql)].concat());
    bytes.extend(empty_block());
    bytes
}

/// The block that ends a sequence of blocks.
pub(crate) fn empty_block() -> Vec<u8> {
    [varint(2), text(""), vec![1, 0, 2, 255, 255, 255, 255, 0], varint(0), varint(0)].concat()
}

impl Client {
    /// Connects without TLS; the server's hello is checked.
    pub(crate) fn connect(revision: u64) -> Client {
        let mut client = Client::open(revision);
        client.send(&hello(revision, "default", USER, PASSWORD));
        assert_eq!(client.number(), 0, "a hello");
        assert_eq!(client.text(), "ClickHouse");
        let (major, _minor) = (client.number(), client.number());
        assert_eq!(major, 26);
        client.server_revision = client.number();
        assert_eq!(client.text(), "Etc/UTC");
        let (_display_name, _patch) = (client.text(), client.number());
        client
    }

    /// Connects and says nothing.
    pub(crate) fn open(revision: u64) -> Client {
        let writer = TcpStream::connect(fixture().plain).expect("the server listens");
        // Far beyond what any answer takes: a hanging server fails the test.
        writer.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        Client { reader: BufReader::new(writer.try_clone().expect("a clone")), writer, revision, server_revision: 0 }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A server that has hung up is seen when its answer is read.
        let _ = self.writer.write_all(bytes);
    }

    /// Sends no more.
    pub(crate) fn hang_up(&mut self) {
        // The server may have been first.
        let _ = self.writer.shutdown(std::net::Shutdown::Write);
    }

    /// Bytes until the server hangs up.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset is a way of hanging up.
        let _ = self.reader.read_to_end(&mut rest);
        rest
    }

    pub(crate) fn ask(&mut self, settings: &[(&str, u64, &str)], sql: &str) -> Vec<Packet> {
        self.send(&query(self.revision.min(self.server_revision), "id", settings, "", sql));
        self.answer()
    }

    /// All packets of one answer.
    pub(crate) fn answer(&mut self) -> Vec<Packet> {
        let mut packets = Vec::new();
        loop {
            packets.push(self.packet());
            if matches!(packets.last(), Some(Packet::EndOfStream | Packet::Exception { .. })) {
                return packets;
            }
        }
    }

    pub(crate) fn packet(&mut self) -> Packet {
        match self.number() {
            1 => self.block(),
            2 => {
                let code = i32::from_le_bytes(self.bytes(4).try_into().expect("four bytes"));
                let (name, message, stack) = (self.text(), self.text(), self.text());
                Packet::Exception { code, name, message, stack, nested: self.bytes(1)[0] }
            }
            3 => {
                let (read_rows, _bytes, _total) = (self.number(), self.number(), self.number());
                let (written_rows, _written_bytes) = (self.number(), self.number());
                Packet::Progress { read_rows, written_rows }
            }
            4 => Packet::Pong,
            5 => Packet::EndOfStream,
            6 => {
                let (rows, blocks, _bytes) = (self.number(), self.number(), self.number());
                assert_eq!(self.bytes(3), [0, 0, 0], "no limit was applied");
                Packet::ProfileInfo { rows, blocks }
            }
            other => panic!("packet {other}"),
        }
    }

    /// A block of UInt8, UInt64 and String columns, perhaps nullable.
    fn block(&mut self) -> Packet {
        assert_eq!(self.text(), "", "no table name");
        assert_eq!(self.bytes(8), [1, 0, 2, 255, 255, 255, 255, 0], "block info");
        let (count, rows) = (self.number(), self.number());
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let column = (self.text(), self.text());
            if rows > 0 {
                let inner = match column.1.strip_prefix("Nullable(") {
                    Some(inner) => {
                        values.extend(self.bytes(rows));
                        inner.trim_end_matches(')').to_owned()
                    }
                    None => column.1.clone(),
                };
                match inner.as_str() {
                    "UInt8" => values.extend(self.bytes(rows)),
                    "UInt64" | "Int64" => values.extend(self.bytes(8 * rows)),
                    "String" => {
                        for _ in 0..rows {
                            let length = self.number();
                            values.extend(self.bytes(length));
                            values.push(b'|');
                        }
                    }
                    other => panic!("a column of type {other}"),
                }
            }
            columns.push(column);
        }
        Packet::Data { columns, rows, values }
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(count).expect("a size")];
        self.reader.read_exact(&mut bytes).expect("the server answers");
        bytes
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.bytes(1)[0];
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return value;
            }
        }
    }

    fn text(&mut self) -> String {
        let length = self.number();
        String::from_utf8(self.bytes(length)).expect("UTF-8")
    }
}
