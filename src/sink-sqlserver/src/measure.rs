//! Measures the road from a sealed file to the bytes of a bulk load, without session, packets and TLS.

use std::io::Read;

use contract::error::PortError;
use contract::port::target::StageColumn;

use crate::bulk::ChunkState;
use crate::error::refuse;
use crate::writer;

/// What went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wire {
    /// Rows.
    pub rows: u64,
    /// Bytes of their ROW tokens.
    pub bytes: u64,
}

/// Encodes a sealed file slab by slab, as a bulk load does, and throws the slabs away.
///
/// # Errors
/// `mssql_native.retained_file_changed`: the file is not one of these columns.
pub fn encode(columns: &[StageColumn], rows: Box<dyn Read + Send>) -> Result<Wire, PortError> {
    let mut state = ChunkState::new(rows, writer::encoder(columns)?);
    let (mut native, mut slab, mut bytes) = (Vec::new(), Vec::new(), 0);
    while state.next_slab(&mut native, &mut slab).map_err(|()| {
        refuse("mssql_native.retained_file_changed", "the file does not hold rows of these columns: seal it again")
    })? {
        bytes += slab.len() as u64;
    }
    Ok(Wire { rows: state.sent(), bytes })
}
