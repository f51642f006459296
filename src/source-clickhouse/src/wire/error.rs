//! What can go wrong between two ends of the protocol.

use std::io;

/// A failure of the wire. After any of them the connection is poisoned: its position in the stream is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// The socket failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The peer closed the connection where a packet had to follow.
    #[error("the connection ended before the end of the stream")]
    Closed,
    /// The server sent nothing for the whole limit of silence while we waited.
    #[error("the server sent nothing for too long")]
    Silence,
    /// The query's own time is over.
    #[error("the query's time is over")]
    Deadline,
    /// Bytes that no server of this protocol sends.
    #[error("the server's bytes do not follow the native protocol: {0}")]
    Malformed(&'static str),
    /// A packet number that this client does not know.
    #[error("the server sent an unknown packet")]
    UnknownPacket(u64),
    /// A known packet that has no place here.
    #[error("the server sent a packet that has no place here: {0}")]
    UnexpectedPacket(&'static str),
    /// The checksum of a compressed frame does not match its bytes.
    #[error("the checksum of a compressed frame does not match")]
    Checksum,
    /// A block's header does not carry the expected names and types.
    #[error("the result's columns are not the expected ones")]
    ShapeChanged,
    /// A block exceeds the hard cap of decoded bytes.
    #[error("a block exceeds the cap of decoded bytes")]
    BlockTooLarge,
    /// More rows than the caller allows for a bounded read.
    #[error("a bounded read returned too much")]
    ResultTooLarge,
    /// The server's own count differs from what arrived.
    #[error("the server counted other rows than arrived")]
    RowCount,
    /// The server raised an exception. Its text is not kept: it can hold values and secrets.
    #[error("the server raised exception {0}")]
    Server(i32),
    /// The connection saw an earlier error, or a call on it was dropped half way.
    #[error("the connection is not usable after an earlier failure")]
    Poisoned,
    /// An own request that cannot be sent.
    #[error("a request does not fit the protocol: {0}")]
    Request(&'static str),
}

/// Result of the wire.
pub(crate) type Result<T> = std::result::Result<T, WireError>;
