//! Primitives of the native protocol: variable-length integers, strings and fixed numbers, read with bounds.

use std::io::{self, Read};

/// What a peer may make us hold as one string: query texts and setting values are the longest.
pub(crate) const STRING_BYTES_MAX: usize = 64 << 20;

/// Bytes read at a time, so that a length alone never makes us allocate.
const STEP_BYTES: usize = 64 << 10;

/// The peer broke the protocol.
pub(crate) fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("test_clickhouse.protocol: {what}"))
}

/// Appends exactly `count` bytes of `source` to `bytes`.
pub(crate) fn append_exact<R: Read + ?Sized>(source: &mut R, bytes: &mut Vec<u8>, mut count: usize) -> io::Result<()> {
    while count > 0 {
        let step = count.min(STEP_BYTES);
        let start = bytes.len();
        bytes.resize(start + step, 0);
        source.read_exact(&mut bytes[start..])?;
        count -= step;
    }
    Ok(())
}

/// Reads of the protocol's primitives.
pub(crate) trait ReadWire: Read {
    fn byte(&mut self) -> io::Result<u8> {
        let mut one = [0];
        self.read_exact(&mut one)?;
        Ok(one[0])
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        self.read_exact(&mut array)?;
        Ok(array)
    }

    /// LEB128, at most 64 bits.
    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(malformed("a number has more than 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed("a number has more than ten bytes"))
    }

    fn byte_string(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        if length > STRING_BYTES_MAX {
            return Err(malformed("a string is longer than the server takes"));
        }
        let mut bytes = Vec::new();
        append_exact(self, &mut bytes, length)?;
        Ok(bytes)
    }

    fn string(&mut self) -> io::Result<String> {
        String::from_utf8(self.byte_string()?).map_err(|_| malformed("a string of the protocol is not UTF-8"))
    }
}

impl<R: Read + ?Sized> ReadWire for R {}

/// Writes of the protocol's primitives.
pub(crate) trait WriteWire {
    fn put_varint(&mut self, value: u64);
    fn put_string(&mut self, text: &str);
}

impl WriteWire for Vec<u8> {
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_string(&mut self, text: &str) {
        self.put_varint(text.len() as u64);
        self.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::{ReadWire as _, WriteWire as _};

    #[test]
    fn numbers_survive_the_wire() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            bytes.put_varint(value);
            assert_eq!(bytes.as_slice().varint().unwrap(), value);
        }
        assert!([0xff; 10].as_slice().varint().is_err());
        assert!([0x80; 11].as_slice().varint().is_err());
    }

    #[test]
    fn a_length_alone_allocates_nothing() {
        let mut bytes = Vec::new();
        bytes.put_varint(u64::MAX);
        assert_eq!(bytes.as_slice().byte_string().unwrap_err().kind(), std::io::ErrorKind::InvalidData);
        let mut bytes = Vec::new();
        bytes.put_varint(60 << 20);
        assert_eq!(bytes.as_slice().byte_string().unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    }
}
