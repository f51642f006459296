//! Numbers of the native protocol (ClickHouse `src/Core/Protocol.h`, `ProtocolDefines.h`).

/// Revision this client speaks: the last one before parallel replicas, custom serialization and the addendum.
pub(crate) const CLIENT_REVISION: u64 = 54_448;

/// Name this client gives in hello and client info.
pub(crate) const CLIENT_NAME: &str = "native-transfer";

/// Packets that a client sends.
pub(crate) mod client {
    pub(crate) const HELLO: u64 = 0;
    pub(crate) const QUERY: u64 = 1;
    pub(crate) const DATA: u64 = 2;
    pub(crate) const CANCEL: u64 = 3;
    pub(crate) const PING: u64 = 4;
}

/// Packets that a server sends at this revision.
pub(crate) mod server {
    pub(crate) const HELLO: u64 = 0;
    pub(crate) const DATA: u64 = 1;
    pub(crate) const EXCEPTION: u64 = 2;
    pub(crate) const PROGRESS: u64 = 3;
    pub(crate) const PONG: u64 = 4;
    pub(crate) const END_OF_STREAM: u64 = 5;
    pub(crate) const PROFILE_INFO: u64 = 6;
    pub(crate) const TOTALS: u64 = 7;
    pub(crate) const EXTREMES: u64 = 8;
    pub(crate) const LOG: u64 = 10;
    pub(crate) const TABLE_COLUMNS: u64 = 11;
}

/// Flag of a setting that the server must know; an unknown name is then exception 115.
pub(crate) const SETTING_IMPORTANT: u64 = 0x01;

/// Query stage "complete": the server runs the whole query.
pub(crate) const STAGE_COMPLETE: u64 = 2;
