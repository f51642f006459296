//! ALL_HEADERS (MS-TDS 2.2.5.3), at the start of each batch, RPC and transaction manager request.

use super::WireError;
use super::reader::Reader;

const TRANSACTION_DESCRIPTOR: u16 = 0x0002;

/// Skips the header block and returns the transaction descriptor that the client believes to be in (0 = none).
pub(crate) fn parse(message: &mut Reader<'_>) -> Result<u64, WireError> {
    let total = message.length_u32()?;
    let mut block =
        Reader::new(message.bytes(total.checked_sub(4).ok_or(WireError::Malformed("ALL_HEADERS length"))?)?);
    let mut descriptor = 0;
    while !block.is_empty() {
        let length = block.length_u32()?;
        let kind = block.u16()?;
        let data = block.bytes(length.checked_sub(6).ok_or(WireError::Malformed("header length"))?)?;
        if kind == TRANSACTION_DESCRIPTOR {
            descriptor = Reader::new(data).u64()?;
        }
    }
    Ok(descriptor)
}
