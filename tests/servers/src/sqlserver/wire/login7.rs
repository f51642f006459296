//! LOGIN7 (MS-TDS 2.2.6.4): fixed part, offset table, data, feature extensions.

use super::WireError;
use super::packet::{DEFAULT_PACKET_BYTES, MAX_ENCRYPTED_PACKET_BYTES, MAX_PACKET_BYTES, MIN_PACKET_BYTES};
use super::reader::{Reader, decode_utf16};

/// Largest LOGIN7 message: 128 KiB - 1 by the specification.
pub(crate) const MAX_LOGIN7_BYTES: usize = 128 * 1024 - 1;

/// TDS 7.2, the oldest version with the row and DONE layout of this server.
const OLDEST_VERSION: u32 = 0x7209_0002;
const INTEGRATED_SECURITY: u8 = 0x80;
const FEATURE_EXTENSION: u8 = 0x10;
/// Where the offset table stands in the message.
const OFFSETS_AT: usize = 36;

/// Feature identifiers of FEATUREEXT and FEATUREEXTACK.
pub(crate) mod feature {
    pub(crate) const FED_AUTH: u8 = 0x02;
    pub(crate) const UTF8_SUPPORT: u8 = 0x0A;
    pub(crate) const TERMINATOR: u8 = 0xFF;
}

/// A parsed LOGIN7.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login7 {
    /// For example 0x74000004.
    pub(crate) tds_version: u32,
    /// As asked by the client; 0 means the default.
    pub(crate) packet_bytes: u32,
    pub(crate) client_pid: u32,
    pub(crate) host_name: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) app_name: String,
    pub(crate) client_interface: String,
    pub(crate) language: String,
    pub(crate) database: String,
    /// Windows authentication is asked for.
    pub(crate) integrated_security: bool,
    /// Identifiers of the feature extensions, in order.
    pub(crate) features: Vec<u8>,
    /// The message has a feature extension block.
    pub(crate) has_features: bool,
}

/// Never shows the password.
impl std::fmt::Debug for Login7 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login7").field("user", &self.user).field("app_name", &self.app_name).finish_non_exhaustive()
    }
}

impl Login7 {
    /// The packet size in bytes that both sides use from here on.
    pub(crate) fn negotiated_packet_bytes(&self, encrypted: bool) -> usize {
        let limit = if encrypted { MAX_ENCRYPTED_PACKET_BYTES } else { MAX_PACKET_BYTES };
        match usize::try_from(self.packet_bytes).unwrap_or(usize::MAX) {
            0 => DEFAULT_PACKET_BYTES,
            asked => asked.clamp(MIN_PACKET_BYTES, limit),
        }
    }
}

/// Parses a LOGIN7 message.
pub(crate) fn parse(message: &[u8]) -> Result<Login7, WireError> {
    let mut fixed = Reader::new(message);
    let declared = fixed.length_u32()?;
    if declared > message.len() {
        return Err(WireError::Truncated);
    }
    let message = &message[..declared];
    let tds_version = fixed.u32()?;
    if tds_version < OLDEST_VERSION {
        return Err(WireError::Version(tds_version));
    }
    let packet_bytes = fixed.u32()?;
    let _client_version = fixed.u32()?;
    let client_pid = fixed.u32()?;
    let _connection_id = fixed.u32()?;
    let [_flags1, flags2, _type_flags, flags3] = fixed.array::<4>()?;
    let _time_zone = fixed.u32()?;
    let _lcid = fixed.u32()?;
    debug_assert_eq!(fixed.position(), OFFSETS_AT);

    let host_name = text(message, &mut fixed)?;
    let user = text(message, &mut fixed)?;
    let password = password(message, &mut fixed)?;
    let app_name = text(message, &mut fixed)?;
    let _server_name = text(message, &mut fixed)?;
    let extension = slot(&mut fixed)?;
    let client_interface = text(message, &mut fixed)?;
    let language = text(message, &mut fixed)?;
    let database = text(message, &mut fixed)?;

    let has_features = flags3 & FEATURE_EXTENSION != 0;
    let features = if has_features { features(message, extension)? } else { Vec::new() };
    let integrated_security = flags2 & INTEGRATED_SECURITY != 0;
    Ok(Login7 {
        tds_version,
        packet_bytes,
        client_pid,
        host_name,
        user,
        password,
        app_name,
        client_interface,
        language,
        database,
        integrated_security,
        features,
        has_features,
    })
}

/// One entry of the offset table: offset in bytes, length in the unit of the field.
fn slot(table: &mut Reader<'_>) -> Result<(usize, usize), WireError> {
    Ok((usize::from(table.u16()?), usize::from(table.u16()?)))
}

fn slice(message: &[u8], offset: usize, bytes: usize) -> Result<&[u8], WireError> {
    if bytes == 0 {
        return Ok(&[]);
    }
    message.get(offset..offset + bytes).ok_or(WireError::Truncated)
}

fn text(message: &[u8], table: &mut Reader<'_>) -> Result<String, WireError> {
    let (offset, characters) = slot(table)?;
    decode_utf16(slice(message, offset, characters * 2)?)
}

/// Each byte of the password has its halves swapped and is then XORed with 0xA5.
fn password(message: &[u8], table: &mut Reader<'_>) -> Result<String, WireError> {
    let (offset, characters) = slot(table)?;
    let clear: Vec<u8> =
        slice(message, offset, characters * 2)?.iter().map(|byte| (byte ^ 0xA5).rotate_left(4)).collect();
    decode_utf16(&clear)
}

/// The extension slot points to a DWORD that holds the offset of the feature block.
fn features(message: &[u8], (offset, length): (usize, usize)) -> Result<Vec<u8>, WireError> {
    if length < 4 {
        return Err(WireError::Malformed("feature extension offset"));
    }
    let at = Reader::new(slice(message, offset, 4)?).length_u32()?;
    let mut block = Reader::new(message.get(at..).ok_or(WireError::Truncated)?);
    let mut features = Vec::new();
    loop {
        let id = block.u8()?;
        if id == feature::TERMINATOR {
            return Ok(features);
        }
        let length = block.length_u32()?;
        block.bytes(length)?;
        features.push(id);
    }
}
