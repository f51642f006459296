//! What can be wrong with the bytes of a client. The connection ends with each of them; data errors inside an intact
//! message are SQL errors instead and leave the session usable.

/// A violation of the protocol or a broken socket.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The socket failed.
    #[error("tds.io: {0}")]
    Io(#[from] std::io::Error),
    /// The stream or message ends inside a field.
    #[error("tds.truncated: the message ends inside a field")]
    Truncated,
    /// A packet type that no client of TDS 7.2 to 7.4 sends.
    #[error("tds.packet_type: packet type {0:#04x} is not known")]
    PacketType(u8),
    /// A packet length outside of 8 to 32,768.
    #[error("tds.packet_length: a packet of {0} bytes is not allowed")]
    PacketLength(usize),
    /// A message type that does not fit here.
    #[error("tds.unexpected_message: a message of this type is not expected here")]
    UnexpectedMessage,
    /// A message above the bound of its type.
    #[error("tds.message_too_long: the message exceeds the bound of its type")]
    MessageTooLong,
    /// A field with a value that the protocol forbids.
    #[error("tds.malformed: {0}")]
    Malformed(&'static str),
    /// A data type token that is not known or not supported.
    #[error("tds.type: data type {0:#04x} is not supported")]
    Type(u8),
    /// A TDS version below 7.2.
    #[error("tds.version: TDS version {0:#010x} is not supported")]
    Version(u32),
}
