//! From failures of the wire to stable codes.
//!
//! Reading has no effect at the source, so every failure here is `Fate::NotDone`. Texts of the server are never repeated:
//! they can hold names, values and secrets; its number is, and its own log has the rest under the query id.

use std::borrow::Cow;

use contract::code;
use contract::error::PortError;

use crate::wire::WireError;

/// What went wrong while logging in.
pub(crate) fn login(error: WireError) -> PortError {
    match error {
        // Authentication failed, unknown user, wrong or missing password, IP not allowed, unknown database, no access.
        WireError::Server(192 | 193 | 194 | 195 | 516 | 81 | 497) => PortError::not_done(
            code::SOURCE_LOGIN_REFUSED,
            "the source server refused the login; check user, password and database of the connection",
        ),
        // With TLS 1.3 a server judges the client's certificate only after the handshake.
        WireError::Io(ref cause) if cause.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) => {
            PortError::not_done(
                code::SOURCE_READ_PROFILE_UNSUPPORTED,
                "the source server ended the TLS session before the login; it may demand another client certificate",
            )
        }
        WireError::Io(_) | WireError::Closed | WireError::Silence | WireError::Deadline => PortError::not_done(
            code::SOURCE_UNREACHABLE,
            "the source server did not complete the login in time or closed the connection",
        ),
        _ => PortError::not_done(
            code::SOURCE_READ_PROFILE_UNSUPPORTED,
            "the other end does not answer as a supported ClickHouse server; check host, port and server version",
        ),
    }
    .caused_by(error)
}

/// What went wrong in a read of the catalog.
pub(crate) fn catalog(error: WireError) -> PortError {
    let message: Cow<'static, str> = match &error {
        WireError::Server(115) => "the source server does not know a setting that this route freezes; upgrade it".into(),
        WireError::Server(164 | 452) => {
            "the source user's profile forbids the frozen read settings; allow them (readonly = 2, no constraints on them)"
                .into()
        }
        WireError::Server(497) => {
            "the source user lacks a right; grant SELECT on the table and on the system tables that admission reads".into()
        }
        WireError::Server(number) => format!(
            "the source server refused a catalog read with ClickHouse error {number}; its query log has the text"
        )
        .into(),
        WireError::ResultTooLarge => {
            "a catalog read returned more than 8192 rows or 8 MiB; let the table merge or read a window".into()
        }
        _ => "a catalog read did not come to its proven end; check the connection and start again".into(),
    };
    PortError::not_done(code::SOURCE_READ_PROFILE_UNSUPPORTED, message).caused_by(error)
}

/// What went wrong in the one SELECT.
pub(crate) fn stream(error: WireError, raw: bool) -> PortError {
    let unproven = if raw { code::SOURCE_PROVENANCE_INCOMPLETE } else { code::SOURCE_REEXTRACT_REQUIRED };
    let (code, message): (_, Cow<'static, str>) = match &error {
        WireError::BlockTooLarge => (
            code::SOURCE_BLOCK_TOO_LARGE,
            "a block of the source exceeds max(32 MiB, 2 x max_row_bytes); raise max_row_bytes if single rows are that large"
                .into(),
        ),
        WireError::ShapeChanged => (
            code::SOURCE_SCHEMA_CHANGED,
            "the result's columns are not the admitted ones; do not alter the table while a transfer runs".into(),
        ),
        WireError::Server(number) => (
            unproven,
            format!(
                "the source server ended the query with ClickHouse error {number}; its query log has the text, settle \
                 this attempt and start a new run"
            )
            .into(),
        ),
        WireError::RowCount => {
            (unproven, "the source server counted other rows than arrived; settle this attempt and start a new run".into())
        }
        WireError::Silence => {
            (unproven, "the source server sent nothing for too long; settle this attempt and start a new run".into())
        }
        WireError::Deadline => {
            (unproven, "the query took longer than query_seconds; raise it or shorten the window, then start a new run".into())
        }
        WireError::Checksum => {
            (unproven, "a frame of the source arrived damaged; check the network, settle this attempt, start a new run".into())
        }
        _ => (
            unproven,
            "the source stream did not come to its proven end; settle this attempt and start a new run".into(),
        ),
    };
    PortError::not_done(code, message).caused_by(error)
}
