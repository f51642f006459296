//! A bounded reader over the bytes of one message: every field is checked against what is there.

use super::WireError;

/// Reads little-endian fields (the byte order of TDS unless said otherwise) from a slice, never past its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    pub(crate) fn peek_u8(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        if length > self.remaining() {
            return Err(WireError::Truncated);
        }
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16_be(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length in the native size of this machine; a length that does not fit is past any end.
    pub(crate) fn length_u32(&mut self) -> Result<usize, WireError> {
        usize::try_from(self.u32()?).map_err(|_| WireError::Truncated)
    }

    /// B_VARCHAR: one byte of length in characters, then UTF-16LE.
    pub(crate) fn b_varchar(&mut self) -> Result<String, WireError> {
        let characters = usize::from(self.u8()?);
        self.utf16(characters)
    }

    /// UTF-16LE text of `characters` code units; text that is not UTF-16 is refused (names and statements, not data).
    pub(crate) fn utf16(&mut self, characters: usize) -> Result<String, WireError> {
        decode_utf16(self.bytes(characters.checked_mul(2).ok_or(WireError::Truncated)?)?)
    }
}

/// Decodes UTF-16LE bytes of a name or statement.
pub(crate) fn decode_utf16(bytes: &[u8]) -> Result<String, WireError> {
    if !bytes.len().is_multiple_of(2) {
        return Err(WireError::Malformed("UTF-16 text of an odd number of bytes"));
    }
    let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .map_err(|_| WireError::Malformed("text that is not UTF-16"))
}
