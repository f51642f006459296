//! Tokens of a server's answer that do not depend on column types (MS-TDS 2.2.7).

use super::super::sql::SqlError;

/// Longest message text of an ERROR or INFO token, in characters (sys.messages: nvarchar(2048)).
const MAX_MESSAGE_UNITS: usize = 2047;

const RETURN_STATUS: u8 = 0x79;
const ERROR: u8 = 0xAA;
const INFO: u8 = 0xAB;
const LOGIN_ACK: u8 = 0xAD;
const FEATURE_EXT_ACK: u8 = 0xAE;
const ENV_CHANGE: u8 = 0xE3;

/// Status bits of the DONE tokens.
pub(crate) mod done_status {
    pub(crate) const MORE: u16 = 0x01;
    pub(crate) const ERROR: u16 = 0x02;
    pub(crate) const COUNT: u16 = 0x10;
    pub(crate) const ATTENTION: u16 = 0x20;
}

/// Types of ENVCHANGE.
pub(crate) mod env {
    pub(crate) const DATABASE: u8 = 1;
    pub(crate) const LANGUAGE: u8 = 2;
    pub(crate) const PACKET_SIZE: u8 = 4;
    pub(crate) const COLLATION: u8 = 7;
    pub(crate) const BEGIN_TRANSACTION: u8 = 8;
    pub(crate) const COMMIT_TRANSACTION: u8 = 9;
    pub(crate) const ROLLBACK_TRANSACTION: u8 = 10;
    pub(crate) const RESET_CONNECTION: u8 = 18;
}

/// The three DONE tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoneKind {
    /// End of a statement of a batch.
    Done,
    /// End of a procedure.
    Proc,
    /// End of a statement inside a procedure.
    InProc,
}

/// Appends a DONE token.
pub(crate) fn done(out: &mut Vec<u8>, kind: DoneKind, status: u16, command: u16, count: u64) {
    out.push(match kind {
        DoneKind::Done => 0xFD,
        DoneKind::Proc => 0xFE,
        DoneKind::InProc => 0xFF,
    });
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&command.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
}

/// Appends RETURNSTATUS.
pub(crate) fn return_status(out: &mut Vec<u8>, status: i32) {
    out.push(RETURN_STATUS);
    out.extend_from_slice(&status.to_le_bytes());
}

/// Appends ERROR.
pub(crate) fn error(out: &mut Vec<u8>, error: &SqlError, server_name: &str) {
    message(out, ERROR, error, server_name);
}

/// Appends INFO.
pub(crate) fn info(out: &mut Vec<u8>, info: &SqlError, server_name: &str) {
    message(out, INFO, info, server_name);
}

fn message(out: &mut Vec<u8>, token: u8, message: &SqlError, server_name: &str) {
    with_u16_length(out, token, |body| {
        body.extend_from_slice(&message.number.to_le_bytes());
        body.push(message.state);
        body.push(message.class);
        us_varchar(body, &message.message, MAX_MESSAGE_UNITS);
        b_varchar(body, server_name);
        b_varchar(body, &message.procedure);
        body.extend_from_slice(&message.line.to_le_bytes());
    });
}

/// Appends LOGINACK for the TDS version that the client asked for.
pub(crate) fn login_ack(out: &mut Vec<u8>, tds_version: u32) {
    with_u16_length(out, LOGIN_ACK, |body| {
        body.push(1); // SQL_TSQL
        body.extend_from_slice(&tds_version.to_be_bytes());
        b_varchar(body, "Microsoft SQL Server");
        body.extend_from_slice(&super::SERVER_VERSION);
    });
}

/// Appends FEATUREEXTACK with the given acknowledged features.
pub(crate) fn feature_ext_ack(out: &mut Vec<u8>, features: &[(u8, &[u8])]) {
    out.push(FEATURE_EXT_ACK);
    for (id, data) in features {
        out.push(*id);
        out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(data);
    }
    out.push(super::login7::feature::TERMINATOR);
}

/// Appends an ENVCHANGE whose values are text.
pub(crate) fn env_text(out: &mut Vec<u8>, kind: u8, new: &str, old: &str) {
    with_u16_length(out, ENV_CHANGE, |body| {
        body.push(kind);
        b_varchar(body, new);
        b_varchar(body, old);
    });
}

/// Appends an ENVCHANGE whose values are bytes, at most 255 each.
pub(crate) fn env_bytes(out: &mut Vec<u8>, kind: u8, new: &[u8], old: &[u8]) {
    with_u16_length(out, ENV_CHANGE, |body| {
        body.push(kind);
        for value in [new, old] {
            body.push(u8::try_from(value.len()).unwrap_or(u8::MAX));
            body.extend_from_slice(value);
        }
    });
}

/// Appends a token whose body is preceded by its length in two bytes.
fn with_u16_length(out: &mut Vec<u8>, token: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(token);
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    write(out);
    let length = u16::try_from(out.len() - at - 2).unwrap_or(u16::MAX);
    out[at..at + 2].copy_from_slice(&length.to_le_bytes());
}

/// Appends text with its length in characters in one byte; names longer than 255 characters are cut.
pub(crate) fn b_varchar(out: &mut Vec<u8>, text: &str) {
    let at = out.len();
    out.push(0);
    let units = put_units(out, text, 255);
    out[at] = u8::try_from(units).unwrap_or(u8::MAX);
}

fn us_varchar(out: &mut Vec<u8>, text: &str, max_units: usize) {
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    let units = put_units(out, text, max_units);
    out[at..at + 2].copy_from_slice(&u16::try_from(units).unwrap_or(u16::MAX).to_le_bytes());
}

fn put_units(out: &mut Vec<u8>, text: &str, max_units: usize) -> usize {
    let before = out.len();
    text.encode_utf16().take(max_units).for_each(|unit| out.extend_from_slice(&unit.to_le_bytes()));
    (out.len() - before) / 2
}
