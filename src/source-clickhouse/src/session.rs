//! One dedicated session: admission, one SELECT, the proven end.

use contract::block::Block;
use contract::error::PortError;

use crate::options::ConnectOptions;
use crate::request::{SourceAdmission, SourceEof, SourceRequest};

/// One dedicated native session. It never reconnects and is never reused after an error.
#[derive(Debug)]
pub struct ClickHouseSource {
    _options: ConnectOptions,
}

/// The answer of every call until the reader lands.
fn not_built() -> PortError {
    PortError::not_done("native_transfer.source_reader_missing", "the source reader is not part of this build")
}

impl ClickHouseSource {
    /// Connects over TLS, checks certificate and host name, and exchanges hellos.
    pub async fn connect(options: &ConnectOptions) -> Result<Self, PortError> {
        let _ = options;
        Err(not_built())
    }

    /// Reads the catalog and decides whether the relation is admitted; freezes the raw profile.
    pub async fn admit(&mut self, request: &SourceRequest) -> Result<SourceAdmission, PortError> {
        let _ = request;
        Err(not_built())
    }

    /// Digest of the physical profile of the admitted relation as it is now (contract.md 2.4).
    pub async fn physical_profile(&mut self, admission: &SourceAdmission) -> Result<String, PortError> {
        let _ = admission;
        Err(not_built())
    }

    /// Admits again, compares, and sends the one SELECT under `query_id` (`dpone-native-` and 32 hex digits).
    pub async fn open(&mut self, admission: &SourceAdmission, query_id: &str) -> Result<(), PortError> {
        let _ = (admission, query_id);
        Err(not_built())
    }

    /// The next block with business columns only; `None` only after the server's own end of stream.
    pub async fn next_block(&mut self) -> Result<Option<Block>, PortError> {
        Err(not_built())
    }

    /// Observes the source again after the end of stream, seals the end and disconnects.
    pub async fn finish(self) -> Result<SourceEof, PortError> {
        Err(not_built())
    }

    /// Cancels what runs, waits a bounded time for its end, and closes the socket.
    pub async fn cancel(self) {}
}
