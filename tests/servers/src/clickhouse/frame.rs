//! Compressed frames of the native protocol: checksum, method, sizes, payload.
//!
//! Layout (ClickHouse `CompressedWriteBuffer`): 16 bytes CityHash128 (version 1.0.2) of everything that follows, 1 byte
//! method, 4 bytes compressed size including this 9-byte head, 4 bytes plain size, payload. Little-endian.

use std::io::{self, Read};

use super::wire::{ReadWire as _, append_exact, malformed};

const METHOD_NONE: u8 = 0x02;
const METHOD_LZ4: u8 = 0x82;
const HEAD_BYTES: usize = 9;
/// ClickHouse's own bound of one frame (`DBMS_MAX_COMPRESSED_SIZE`).
const FRAME_BYTES_MAX: usize = 1 << 30;
/// Plain bytes per frame that we write, as ClickHouse's default buffer.
const PLAIN_BYTES: usize = 1 << 20;

fn checksum(bytes: &[u8]) -> [u8; 16] {
    let hash = cityhash_rs::cityhash_102_128(bytes);
    // The crate gives (low half << 64 | high half); the wire has the low half first.
    let mut wire = [0; 16];
    wire[..8].copy_from_slice(&((hash >> 64) as u64).to_le_bytes());
    wire[8..].copy_from_slice(&(hash as u64).to_le_bytes());
    wire
}

/// Appends `plain` to `out` as LZ4 frames.
pub(crate) fn compress(plain: &[u8], out: &mut Vec<u8>) {
    for part in plain.chunks(PLAIN_BYTES) {
        let payload = lz4_flex::block::compress(part);
        let mut body = Vec::with_capacity(HEAD_BYTES + payload.len());
        body.push(METHOD_LZ4);
        body.extend_from_slice(&((HEAD_BYTES + payload.len()) as u32).to_le_bytes());
        body.extend_from_slice(&(part.len() as u32).to_le_bytes());
        body.extend_from_slice(&payload);
        out.extend_from_slice(&checksum(&body));
        out.extend_from_slice(&body);
    }
}

/// Reads frames and gives their plain bytes.
pub(crate) struct FrameReader<'a, R> {
    source: &'a mut R,
    plain: Vec<u8>,
    position: usize,
}

impl<'a, R: Read> FrameReader<'a, R> {
    pub(crate) fn new(source: &'a mut R) -> Self {
        FrameReader { source, plain: Vec::new(), position: 0 }
    }

    /// Whether every plain byte of the frames read so far was taken.
    pub(crate) fn is_drained(&self) -> bool {
        self.position == self.plain.len()
    }

    fn next_frame(&mut self) -> io::Result<()> {
        let expected = self.source.array::<16>()?;
        let mut body = self.source.array::<HEAD_BYTES>()?.to_vec();
        let size = |at: usize| u32::from_le_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]) as usize;
        let (packed, plain) = (size(1), size(5));
        if !(HEAD_BYTES..=FRAME_BYTES_MAX).contains(&packed) || plain > FRAME_BYTES_MAX {
            return Err(malformed("a compressed frame has an impossible size"));
        }
        append_exact(self.source, &mut body, packed - HEAD_BYTES)?;
        if checksum(&body) != expected {
            return Err(malformed("a compressed frame's checksum does not match"));
        }
        let payload = &body[HEAD_BYTES..];
        self.plain = match body[0] {
            METHOD_NONE if payload.len() == plain => payload.to_vec(),
            // LZ4 cannot expand more than 255 times, so a longer claim is false and must not be allocated for.
            METHOD_LZ4 if plain / 255 <= payload.len() => lz4_flex::block::decompress(payload, plain)
                .ok()
                .filter(|bytes| bytes.len() == plain)
                .ok_or_else(|| malformed("a compressed frame does not decompress to its size"))?,
            _ => return Err(malformed("a compressed frame's method or size is not one the server takes")),
        };
        self.position = 0;
        Ok(())
    }
}

impl<R: Read> Read for FrameReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.is_drained() {
            self.next_frame()?;
        }
        let count = buffer.len().min(self.plain.len() - self.position);
        buffer[..count].copy_from_slice(&self.plain[self.position..self.position + count]);
        self.position += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::{FrameReader, compress};

    proptest! {
        #[test]
        fn frames_give_back_what_went_in(plain in proptest::collection::vec(any::<u8>(), 1..5000), times in 1_usize..500) {
            let plain = plain.repeat(times);
            let mut packed = Vec::new();
            compress(&plain, &mut packed);
            let mut source = packed.as_slice();
            let mut reader = FrameReader::new(&mut source);
            let mut back = vec![0; plain.len()];
            reader.read_exact(&mut back).unwrap();
            prop_assert!(reader.is_drained());
            prop_assert_eq!(back, plain);
        }

        #[test]
        fn a_flipped_bit_is_refused(at in 0_usize..40, bit in 0_u8..8) {
            let mut packed = Vec::new();
            compress(b"some bytes that do not compress much: 0123456789", &mut packed);
            packed[at] ^= 1 << bit;
            let mut one = [0];
            prop_assert!(FrameReader::new(&mut packed.as_slice()).read_exact(&mut one).is_err());
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut one = [0];
            let _ = FrameReader::new(&mut bytes.as_slice()).read(&mut one);
        }
    }
}
