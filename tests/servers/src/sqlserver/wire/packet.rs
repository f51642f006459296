//! Packets (MS-TDS 2.2.3): an 8-byte header, then payload; a message is the payload of its packets up to EOM.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::WireError;

/// Length of a packet header in bytes.
pub(crate) const HEADER_BYTES: usize = 8;
/// Smallest packet size that can be negotiated.
pub(crate) const MIN_PACKET_BYTES: usize = 512;
/// Packet size before login and where the client does not ask (MS-TDS 2.2.6.4, PacketSize).
pub(crate) const DEFAULT_PACKET_BYTES: usize = 4096;
/// Largest packet size of a plain connection.
pub(crate) const MAX_PACKET_BYTES: usize = 32767;
/// Largest packet size of an encrypted connection ("Configure the network packet size" of Microsoft's documentation).
pub(crate) const MAX_ENCRYPTED_PACKET_BYTES: usize = 16383;
/// Largest packet that is read. Clients that ask for 32,768 send that before they see the answer.
const MAX_READ_BYTES: usize = 32768;

/// Message types (MS-TDS 2.2.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketType {
    SqlBatch,
    Rpc,
    TabularResult,
    Attention,
    BulkLoad,
    TransactionManager,
    Login7,
    Prelogin,
}

impl PacketType {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::SqlBatch => 0x01,
            Self::Rpc => 0x03,
            Self::TabularResult => 0x04,
            Self::Attention => 0x06,
            Self::BulkLoad => 0x07,
            Self::TransactionManager => 0x0E,
            Self::Login7 => 0x10,
            Self::Prelogin => 0x12,
        }
    }

    fn from_code(code: u8) -> Result<Self, WireError> {
        Ok(match code {
            0x01 => Self::SqlBatch,
            0x03 => Self::Rpc,
            0x04 => Self::TabularResult,
            0x06 => Self::Attention,
            0x07 => Self::BulkLoad,
            0x0E => Self::TransactionManager,
            0x10 => Self::Login7,
            0x12 => Self::Prelogin,
            other => return Err(WireError::PacketType(other)),
        })
    }
}

/// Status bits of a packet (MS-TDS 2.2.3.1.2).
pub(crate) mod status {
    pub(crate) const END_OF_MESSAGE: u8 = 0x01;
    pub(crate) const IGNORE: u8 = 0x02;
    pub(crate) const RESET_CONNECTION: u8 = 0x08;
    pub(crate) const RESET_CONNECTION_SKIP_TRANSACTION: u8 = 0x10;
}

/// A packet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: PacketType,
    pub(crate) status: u8,
    /// Length of the payload, header not counted.
    pub(crate) payload_bytes: usize,
}

impl Header {
    /// Parses and checks a header; SPID, packet id and window are not used by servers.
    pub(crate) fn parse(bytes: [u8; HEADER_BYTES]) -> Result<Self, WireError> {
        let kind = PacketType::from_code(bytes[0])?;
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        if !(HEADER_BYTES..=MAX_READ_BYTES).contains(&length) {
            return Err(WireError::PacketLength(length));
        }
        Ok(Self { kind, status: bytes[1], payload_bytes: length - HEADER_BYTES })
    }

    pub(crate) fn ends_message(self) -> bool {
        self.status & status::END_OF_MESSAGE != 0
    }

    pub(crate) fn is_ignored(self) -> bool {
        self.status & status::IGNORE != 0
    }
}

/// One packet as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

/// Reads one packet; none at an orderly end of the stream between packets.
pub(crate) async fn read_packet(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Packet>, WireError> {
    let mut bytes = [0; HEADER_BYTES];
    let mut have = 0;
    while have < HEADER_BYTES {
        let count = stream.read(&mut bytes[have..]).await?;
        if count == 0 {
            return if have == 0 { Ok(None) } else { Err(WireError::Truncated) };
        }
        have += count;
    }
    let header = Header::parse(bytes)?;
    let mut payload = vec![0; header.payload_bytes];
    stream.read_exact(&mut payload).await?;
    Ok(Some(Packet { header, payload }))
}

/// Reads the one message of the given type that the protocol expects now; at most `max_bytes` of payload.
pub(crate) async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    kind: PacketType,
    max_bytes: usize,
) -> Result<Vec<u8>, WireError> {
    let mut message = Vec::new();
    loop {
        let packet = read_packet(stream).await?.ok_or(WireError::Truncated)?;
        if packet.header.kind != kind {
            return Err(WireError::UnexpectedMessage);
        }
        if message.len() + packet.payload.len() > max_bytes {
            return Err(WireError::MessageTooLong);
        }
        message.extend_from_slice(&packet.payload);
        if packet.header.ends_message() {
            return Ok(message);
        }
    }
}

/// One packet of a server's answer, header included; the payload is at most the largest packet.
pub(crate) fn response_packet(payload: &[u8], last: bool, packet_id: u8, session: u16) -> Vec<u8> {
    let mut packet = Vec::with_capacity(HEADER_BYTES + payload.len());
    put_header(&mut packet, PacketType::TabularResult, payload.len(), last, packet_id, session);
    packet.extend_from_slice(payload);
    packet
}

/// Appends a packet header for `payload_bytes` of payload, which is at most [`MAX_PACKET_BYTES`] - [`HEADER_BYTES`].
pub(crate) fn put_header(
    out: &mut Vec<u8>,
    kind: PacketType,
    payload_bytes: usize,
    last: bool,
    packet_id: u8,
    session: u16,
) {
    debug_assert!(payload_bytes + HEADER_BYTES <= MAX_PACKET_BYTES);
    let length = u16::try_from(payload_bytes + HEADER_BYTES).unwrap_or(u16::MAX);
    out.push(kind.code());
    out.push(if last { status::END_OF_MESSAGE } else { 0 });
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&session.to_be_bytes());
    out.push(packet_id);
    out.push(0);
}
