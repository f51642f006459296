//! Compressed frames: checksum, method, sizes, payload (ClickHouse `CompressedReadBufferBase.cpp`).
//!
//! ```text
//! 16 bytes  CityHash128 (1.0.2) of everything that follows in this frame, low half first, little-endian
//!  1 byte   method: 0x82 LZ4, 0x90 ZSTD, 0x02 none
//!  4 bytes  size of this frame without the checksum
//!  4 bytes  size of the payload when decompressed
//! ```
//! A block can span frames and a frame belongs to one block only.

use cityhash_rs::cityhash_102_128;
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::{Result, WireError};
use super::stream::{Pieces, Wire};

const CHECKSUM_BYTES: usize = 16;
const HEADER_BYTES: usize = 9;
pub(crate) const METHOD_NONE: u8 = 0x02;
pub(crate) const METHOD_LZ4: u8 = 0x82;
pub(crate) const METHOD_ZSTD: u8 = 0x90;

/// The decompressed bytes of one block, frame by frame.
#[derive(Debug)]
pub(crate) struct Frames<'a, S> {
    wire: &'a mut Wire<S>,
    buffers: &'a mut FrameBuffers,
    position: usize,
    /// Decompressed bytes that this block may still bring.
    allowance: usize,
}

/// Memory that is used again from block to block.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffers {
    packed: Vec<u8>,
    plain: Vec<u8>,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Frames<'a, S> {
    /// Starts a block whose frames may decompress to `allowance` bytes together.
    pub(crate) fn start(wire: &'a mut Wire<S>, buffers: &'a mut FrameBuffers, allowance: usize) -> Self {
        buffers.plain.clear();
        Frames { wire, buffers, position: 0, allowance }
    }

    /// Whether the block's frames hold nothing beyond what was read.
    pub(crate) fn finished(&self) -> bool {
        self.rest().is_empty()
    }

    async fn next_frame(&mut self) -> Result<()> {
        let mut head = [0; CHECKSUM_BYTES + HEADER_BYTES];
        self.wire.exact(&mut head).await?;
        let (checksum, header) = head.split_at(CHECKSUM_BYTES);
        let (packed_size, plain_size) = sizes(header, self.allowance)?;
        self.allowance -= plain_size;

        // The checksum covers the header too, so the frame is kept in one piece.
        let packed = &mut self.buffers.packed;
        packed.clear();
        packed.resize(packed_size, 0);
        packed[..HEADER_BYTES].copy_from_slice(header);
        self.wire.exact(&mut packed[HEADER_BYTES..]).await?;
        if checksum_of(packed) != checksum {
            return Err(WireError::Checksum);
        }

        let payload = &packed[HEADER_BYTES..];
        let plain = &mut self.buffers.plain;
        plain.clear();
        plain.resize(plain_size, 0);
        decompress(packed[0], payload, plain)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pieces for Frames<'_, S> {
    fn rest(&self) -> &[u8] {
        &self.buffers.plain[self.position..]
    }

    fn advance(&mut self, count: usize) {
        self.position += count;
    }

    /// Reads the next frame if the current one is used up.
    async fn refill(&mut self) -> Result<()> {
        while self.position == self.buffers.plain.len() {
            self.next_frame().await?;
            self.position = 0;
        }
        Ok(())
    }
}

/// Judges the sizes of a frame header: `(size with header, decompressed size)`.
fn sizes(header: &[u8], allowance: usize) -> Result<(usize, usize)> {
    let number = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| WireError::BlockTooLarge)
    };
    let (packed, plain) = (number(1)?, number(5)?);
    if plain > allowance {
        return Err(WireError::BlockTooLarge);
    }
    if packed < HEADER_BYTES || plain == 0 {
        return Err(WireError::Malformed("a compressed frame is empty"));
    }
    let fits = match header[0] {
        METHOD_NONE => packed - HEADER_BYTES == plain,
        METHOD_LZ4 => packed - HEADER_BYTES <= lz4_flex::block::get_maximum_output_size(plain),
        METHOD_ZSTD => packed - HEADER_BYTES <= zstd::zstd_safe::compress_bound(plain),
        _ => return Err(WireError::Malformed("a frame uses an unknown compression method")),
    };
    if fits { Ok((packed, plain)) } else { Err(WireError::Malformed("the sizes of a compressed frame disagree")) }
}

/// Fills `plain` from a payload of a known method; every byte of both is used, or the frame is refused.
fn decompress(method: u8, payload: &[u8], plain: &mut [u8]) -> Result<()> {
    const CORRUPT: WireError = WireError::Malformed("a compressed frame does not decompress");
    let written = match method {
        METHOD_NONE => {
            plain.copy_from_slice(payload);
            payload.len()
        }
        METHOD_LZ4 => lz4_flex::block::decompress_into(payload, plain).map_err(|_| CORRUPT)?,
        // The library would go on with further frames and pass over frames that hold nothing; a server sends one.
        _ if zstd::zstd_safe::find_frame_compressed_size(payload) != Ok(payload.len()) => return Err(CORRUPT),
        _ => zstd::bulk::decompress_to_buffer(payload, plain).map_err(|_| CORRUPT)?,
    };
    if written == plain.len() {
        Ok(())
    } else {
        Err(WireError::Malformed("a compressed frame is shorter than announced"))
    }
}

/// The checksum of a frame (header and payload) in wire order.
pub(crate) fn checksum_of(frame: &[u8]) -> [u8; CHECKSUM_BYTES] {
    // The crate returns the pair (low, high) of CityHash128 as the two big-endian halves of one number.
    let hash = cityhash_102_128(frame);
    let mut bytes = [0; CHECKSUM_BYTES];
    bytes[..8].copy_from_slice(&((hash >> 64) as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&(hash as u64).to_le_bytes());
    bytes
}

/// One LZ4 frame around `plain`, which must be shorter than 2 GiB.
pub(crate) fn compress(plain: &[u8]) -> Vec<u8> {
    framed(METHOD_LZ4, plain.len() as u32, &lz4_flex::block::compress(plain))
}

/// One frame that says that `payload` decompresses to `plain_size` bytes by `method`.
pub(crate) fn framed(method: u8, plain_size: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(CHECKSUM_BYTES + HEADER_BYTES + payload.len());
    frame.extend_from_slice(&[0; CHECKSUM_BYTES]);
    frame.push(method);
    frame.extend_from_slice(&((HEADER_BYTES + payload.len()) as u32).to_le_bytes());
    frame.extend_from_slice(&plain_size.to_le_bytes());
    frame.extend_from_slice(payload);
    let checksum = checksum_of(&frame[CHECKSUM_BYTES..]);
    frame[..CHECKSUM_BYTES].copy_from_slice(&checksum);
    frame
}

#[cfg(test)]
mod tests {
    use super::{METHOD_ZSTD, checksum_of, compress, decompress, sizes};

    #[test]
    fn checksum_matches_clickhouse_cityhash() {
        // Known answers of the PyPI package clickhouse-cityhash 1.0.2 (CityHash128), which clickhouse-driver uses.
        for (length, low, high) in KNOWN {
            let mut expected = low.to_le_bytes().to_vec();
            expected.extend_from_slice(&high.to_le_bytes());
            assert_eq!(checksum_of(&pattern(*length)).as_slice(), expected, "length {length}");
        }
    }

    /// Bytes 7i + 3 mod 256.
    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 7 + 3) as u8).collect()
    }

    const KNOWN: &[(usize, u64, u64)] = &[
        (0, 0x3df0_9dfc_64c0_9a2b, 0x3cb5_40c3_92e5_1e29),
        (1, 0x3937_9490_ccb5_5d55, 0x2af2_b130_64cd_571f),
        (3, 0x3108_fa6b_1da1_6986, 0x3230_1bf0_c250_612d),
        (4, 0x2321_e75a_ee8d_6c41, 0xcea6_b327_f605_358d),
        (7, 0x9ef9_0f69_597e_95c7, 0x4987_956c_9782_ee8f),
        (8, 0xb6ad_7c9a_5953_432f, 0x9f0e_0210_9921_888c),
        (9, 0x5601_ccf1_e058_519a, 0xf851_2fca_2833_3fef),
        (15, 0x5a82_99d8_ab8f_2f47, 0x8ea0_a478_a90d_3277),
        (16, 0x21e7_9cab_7f9c_2b79, 0xa356_15c2_3531_3f7a),
        (17, 0x0cd5_bb13_faea_6e4c, 0x32bf_7191_78f6_bbfe),
        (31, 0x6e4f_7032_5ec2_7ffc, 0x9a23_a7e9_f0b5_15e0),
        (32, 0x67cf_ab84_04ee_c7e9, 0x80cd_3c27_f5bd_61ee),
        (63, 0x2c8e_aec1_978f_5c3c, 0xe8bd_464d_f668_c1e0),
        (64, 0xd412_d58e_c143_2aef, 0x5754_630c_bbd8_3214),
        (100, 0xe8ed_256d_f7c3_6d77, 0x5da4_e596_06ec_0c52),
        (127, 0x1f1c_2a3c_6282_9942, 0x5d58_2060_4b01_deea),
        (128, 0x11d0_0b10_d669_4d31, 0x108f_b9e5_b83f_dff4),
        (129, 0x2d35_c464_59e9_ead8, 0x59a6_f805_bd0f_ca54),
        (143, 0x2016_8914_5f2e_bee2, 0xdf56_bd91_c3fb_4dd0),
        (144, 0xd639_167b_9b85_767d, 0x07a1_0bf4_5731_07c6),
        (145, 0xde65_4d66_9366_fc2a, 0xd2f6_8f54_7b37_d6f5),
        (255, 0x217a_d8cf_08bb_e4ca, 0x1a5b_b403_8d2f_32ff),
        (256, 0x8669_6dd5_96cc_f44b, 0x9fd9_b2b0_b79a_bdae),
        (257, 0x4c0f_04d6_5e42_e7f6, 0xc30b_a57b_cbd6_66f6),
        (1000, 0x984b_538c_7b37_2373, 0xf6e6_cbc5_6b68_8720),
        (65545, 0xff23_cddf_3e85_88dd, 0x3a9c_6c1c_732a_974b),
    ];

    #[test]
    fn sizes_are_judged_before_memory_is_set_aside() {
        let mut header = vec![0x82];
        header.extend_from_slice(&100_u32.to_le_bytes());
        header.extend_from_slice(&(1_u32 << 31).to_le_bytes());
        assert!(sizes(&header, 32 << 20).is_err());
        let mut header = vec![0x82];
        header.extend_from_slice(&(1_u32 << 31).to_le_bytes());
        header.extend_from_slice(&100_u32.to_le_bytes());
        assert!(sizes(&header, 32 << 20).is_err());
    }

    #[test]
    fn a_frame_carries_its_sizes() {
        let frame = compress(&[0; 1000]);
        assert!(sizes(&frame[16..], 1000).is_ok_and(|(packed, plain)| plain == 1000 && packed == frame.len() - 16));
    }

    #[test]
    fn a_zstd_payload_fills_exactly_what_its_frame_announces() {
        for plain in [vec![0; 100_000], pattern(65_545), vec![1]] {
            let payload = zstd::bulk::compress(&plain, 1).expect("a payload");
            let into = |payload: &[u8], size| {
                let mut out = vec![0; size];
                decompress(METHOD_ZSTD, payload, &mut out).map(|()| out)
            };
            assert_eq!(into(&payload, plain.len()).expect("it decompresses"), plain);
            for size in [plain.len() - 1, plain.len() + 1, 2 * plain.len()] {
                assert!(into(&payload, size).is_err(), "{size} of {} bytes", plain.len());
            }
            for kept in [0, 1, payload.len() / 2, payload.len() - 1] {
                assert!(into(&payload[..kept], plain.len()).is_err(), "{kept} of {} bytes", payload.len());
            }
            let nothing = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
            let empty = zstd::bulk::compress(&[], 1).expect("a payload");
            for more in [&[0][..], &nothing, &empty, &payload] {
                assert!(into(&[&payload[..], more].concat(), plain.len()).is_err(), "followed by {more:?}");
            }
            assert!(into(&[&nothing[..], &payload].concat(), plain.len()).is_err());
        }
    }

    #[test]
    fn a_zstd_frame_may_not_be_longer_than_its_data_can_get() {
        for (packed, fits) in [(9 + zstd::zstd_safe::compress_bound(1000), true), (1 << 31, false)] {
            let mut header = vec![METHOD_ZSTD];
            header.extend_from_slice(&(packed as u32).to_le_bytes());
            header.extend_from_slice(&1000_u32.to_le_bytes());
            assert_eq!(sizes(&header, 32 << 20).is_ok(), fits);
        }
    }
}
