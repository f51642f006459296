//! Frames of the log file.

use std::io::{self, Read};

/// First bytes of a frame.
const MAGIC: [u8; 4] = *b"NTR1";
/// Bytes before the payload.
pub(super) const HEADER_BYTES: usize = 20;

/// Appends a frame.
pub(super) fn put_frame(sequence: u64, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&sequence.to_le_bytes());
    for part in parts {
        checksum.update(part);
    }
    out.reserve(HEADER_BYTES + length);
    out.extend_from_slice(&MAGIC);
    // A payload is bounded by the largest row (1 GiB) and the size at which parts are written.
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&checksum.finalize().to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// What stands at a place of the file.
pub(super) enum Next {
    /// A whole frame.
    Frame(Vec<u8>),
    /// The end, exactly after a frame.
    End,
    /// Bytes that are no whole frame.
    Broken,
}

/// Reads the frame of `sequence`; `remaining` bytes are left in the file.
pub(super) fn read_frame(input: &mut impl Read, remaining: u64, sequence: u64) -> io::Result<Next> {
    if remaining == 0 {
        return Ok(Next::End);
    }
    if remaining < HEADER_BYTES as u64 {
        return Ok(Next::Broken);
    }
    let mut header = [0; HEADER_BYTES];
    input.read_exact(&mut header)?;
    let Some((length, checksum)) = parse_header(&header, sequence) else { return Ok(Next::Broken) };
    // The length is believed only as far as the file reaches, so a damaged one cannot allocate more than that.
    if u64::from(length) > remaining - HEADER_BYTES as u64 {
        return Ok(Next::Broken);
    }
    let mut payload = vec![0; length as usize];
    input.read_exact(&mut payload)?;
    Ok(if checksum_of(sequence, &payload) == checksum { Next::Frame(payload) } else { Next::Broken })
}

fn parse_header(header: &[u8; HEADER_BYTES], sequence: u64) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let found = u64::from_le_bytes(header.get(12..20)?.try_into().ok()?);
    (header[..4] == MAGIC && found == sequence).then_some((word(4)?, word(8)?))
}

fn checksum_of(sequence: u64, payload: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&sequence.to_le_bytes());
    checksum.update(payload);
    checksum.finalize()
}

/// Whether a whole frame of a later sequence stands anywhere in `bytes`: then what precedes it is damage, not a torn end.
pub(super) fn holds_later_frame(bytes: &[u8], sequence: u64) -> bool {
    bytes.windows(HEADER_BYTES).enumerate().filter(|(_, header)| header[..4] == MAGIC).any(|(at, header)| {
        let Ok(header) = <&[u8; HEADER_BYTES]>::try_from(header) else { return false };
        let Some(found) = header.get(12..20).and_then(|it| it.try_into().ok()).map(u64::from_le_bytes) else {
            return false;
        };
        let Some((length, checksum)) = parse_header(header, found).filter(|_| found > sequence) else { return false };
        let start = at + HEADER_BYTES;
        bytes
            .get(start..start.saturating_add(length as usize))
            .is_some_and(|payload| checksum_of(found, payload) == checksum)
    })
}
