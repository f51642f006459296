//! Where values are decoded from: a whole message (RPC) or a stream of packets (bulk load).

use super::WireError;
use super::reader::Reader;

/// Why a value or its announcement could not be decoded. The caller turns it into the SQL error of its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The message ends inside a value.
    #[error("the message ends inside a value")]
    Truncated,
    /// The client withdrew the message (attention, ignore bit) or is gone.
    #[error("the message was withdrawn")]
    Withdrawn,
    /// A type token that is unknown or not accepted from clients.
    #[error("data type {0:#04x} is unknown")]
    UnknownType(u8),
    /// A length that the type with this token cannot have.
    #[error("data type {0:#04x} has an invalid length")]
    Length(u8),
    /// Unicode data with an odd number of bytes.
    #[error("unicode data of an odd number of bytes")]
    OddUnicode,
    /// A chunk that contradicts the announced length of a (max) value.
    #[error("a chunk contradicts the announced length")]
    Chunk,
    /// Bytes that are no value of the type: NaN, a time of 24 hours, a decimal with too many digits.
    #[error("the value is not an instance of its type")]
    Value,
    /// A token that is not allowed here.
    #[error("token {0:#04x} is not allowed here")]
    Token(u8),
}

impl From<WireError> for DecodeError {
    fn from(_: WireError) -> Self {
        Self::Truncated
    }
}

/// A source of bytes in order. Lengths announced by a client never cause an allocation before the bytes are there.
pub(crate) trait Source {
    /// The next `count` bytes.
    fn take(&mut self, count: usize) -> Result<&[u8], DecodeError>;

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

impl Source for Reader<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8], DecodeError> {
        Ok(self.bytes(count)?)
    }
}
