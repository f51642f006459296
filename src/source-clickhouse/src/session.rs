//! One dedicated session: admission, one SELECT, the proven end.

use std::time::Duration;

use contract::block::{Block, Column, Values};
use contract::code;
use contract::digest::Digest;
use contract::error::{PortError, Refusal};
use contract::port::source::{Source, SourceAdmission, SourceEof, SourceFactory, SourceMode, SourceRequest};
use contract::raw::coverage::Coverage;
use contract::raw::eof::EofDescriptor;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;

use crate::admission::{Acquired, Moment, Proven, acquire, compare};
use crate::options::ConnectOptions;
use crate::wire::{Connection, Credentials, Limits, Query, Shape, WireError, block_cap_bytes, decoded_bytes};
use crate::{fault, guards, tls};

/// One dedicated native session. It never reconnects, opens one query, and is never used again after an error.
#[derive(Debug)]
pub struct ClickHouseSource {
    connection: Connection<TlsStream<TcpStream>>,
    proven: Proven,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Catalog reads only.
    Catalog,
    /// The one SELECT runs.
    Streaming(Box<Streaming>),
    /// The server's end of stream was seen.
    Ended(Box<Streaming>),
    /// An error happened, or a call was dropped half way.
    Broken,
}

#[derive(Debug)]
struct Streaming {
    admission: SourceAdmission,
    query_id: String,
    rows: u64,
    decoded_bytes: u64,
    raw: Option<RawStream>,
}

/// What raw mode follows beside the rows.
#[derive(Debug)]
struct RawStream {
    coverage: Coverage,
    before_physical: Digest,
}

impl ClickHouseSource {
    /// Connects over TLS, checks certificate and host name, and exchanges hellos.
    ///
    /// # Errors
    /// `native_transfer.source_unreachable`, `native_transfer.source_login_refused`,
    /// `mssql_native.source_read_profile_unsupported` (TLS, server version), `mssql_native.replica_scope_unproven` (host).
    pub async fn connect(options: &ConnectOptions) -> Result<Self, PortError> {
        timeout(options.timeouts.connect, Self::connect_within(options)).await.unwrap_or_else(|_| {
            Err(PortError::not_done(
                code::SOURCE_UNREACHABLE,
                "the source server did not accept the connection and login in time; check host, port and network policy",
            ))
        })
    }

    async fn connect_within(options: &ConnectOptions) -> Result<Self, PortError> {
        let endpoint = tls::connect(options).await?;
        let credentials = Credentials { database: &options.database, user: &options.user, password: &options.password };
        let limits = Limits { silence: options.timeouts.silence, cancel: options.timeouts.cancel };
        let (connection, hello) = Connection::open(endpoint.stream, credentials, limits).await.map_err(fault::login)?;
        tracing::debug!(server = %hello.name, version = ?hello.version, revision = hello.revision, "source session open");
        let proven = Proven { peer: endpoint.peer.into(), leaf_der: endpoint.leaf_der };
        Ok(ClickHouseSource { connection, proven, stage: Stage::Catalog })
    }

    /// SHA-256 of the DER of the server's certificate.
    pub fn certificate_sha256(&self) -> Digest {
        Digest::of(&self.proven.leaf_der)
    }

    /// Asks whether the server still answers. Only between queries.
    ///
    /// # Errors
    /// `mssql_native.source_read_profile_unsupported`; the session is then broken.
    pub async fn ping(&mut self) -> Result<(), PortError> {
        self.connection.ping(Instant::now() + Duration::from_secs(30)).await.map_err(fault::catalog)
    }

    /// Digest of the physical profile as it is now (contract.md 2.4); `None` in query_visible mode.
    ///
    /// # Errors
    /// As for [`Source::admit`]; a session that already opened its query refuses.
    pub async fn physical_profile(&mut self, request: &SourceRequest) -> Result<Option<Digest>, PortError> {
        let acquired = self.acquire(request).await?;
        Ok(acquired.provenance.map(|provenance| provenance.physical_sha256))
    }

    /// An acquisition before the read. Leaves the session broken unless it succeeds or refuses by judgement.
    async fn acquire(&mut self, request: &SourceRequest) -> Result<Acquired, PortError> {
        match self.stage {
            Stage::Catalog => {}
            Stage::Streaming(_) | Stage::Ended(_) | Stage::Broken => return Err(misused()),
        }
        acquire(&mut self.connection, &self.proven, request, Moment::BeforeRead).await
    }

    async fn open_query(&mut self, admission: &SourceAdmission, query_id: &str) -> Result<(), PortError> {
        check_query_id(query_id)?;
        let acquired = self.acquire(&admission.request).await?;
        compare(admission, &acquired.admission)?;
        let request = &admission.request;
        let raw = acquired.provenance.map(|provenance| RawStream {
            coverage: Coverage::new(&provenance.parts),
            before_physical: provenance.physical_sha256,
        });
        let settings = guards::of_select(request.query_seconds, &acquired.admission.guards.sent);
        let query = Query {
            id: query_id,
            text: &acquired.select,
            settings: &settings,
            shape: shape_of(&acquired.admission).map_err(|error| fault::stream(error, raw.is_some()))?,
            block_cap_bytes: block_cap_bytes(request.max_row_bytes),
            result_bound: None,
        };
        let deadline = Instant::now() + Duration::from_secs(request.query_seconds.into());
        self.stage = Stage::Broken;
        self.connection.start(query, deadline).await.map_err(|error| fault::stream(error, raw.is_some()))?;
        self.stage = Stage::Streaming(Box::new(Streaming {
            admission: acquired.admission,
            query_id: query_id.to_owned(),
            rows: 0,
            decoded_bytes: 0,
            raw,
        }));
        Ok(())
    }

    /// The next block. The stage is broken while the call runs, so a dropped call cannot be followed by another.
    async fn read_block(&mut self) -> Result<Option<Block>, PortError> {
        let mut streaming = match std::mem::replace(&mut self.stage, Stage::Broken) {
            Stage::Streaming(streaming) => streaming,
            Stage::Ended(streaming) => {
                self.stage = Stage::Ended(streaming);
                return Ok(None);
            }
            Stage::Catalog | Stage::Broken => return Err(misused()),
        };
        let raw = streaming.raw.is_some();
        let block = self.connection.next_block().await.map_err(|error| fault::stream(error, raw))?;
        let Some(mut block) = block else {
            self.stage = Stage::Ended(streaming);
            return Ok(None);
        };
        streaming.rows += block.rows as u64;
        streaming.decoded_bytes += decoded_bytes(&block) as u64;
        if let Some(raw) = &mut streaming.raw {
            observe(&mut raw.coverage, &mut block)?;
        }
        self.stage = Stage::Streaming(streaming);
        Ok(Some(block))
    }

    async fn seal(&mut self) -> Result<SourceEof, PortError> {
        let Stage::Ended(streaming) = std::mem::replace(&mut self.stage, Stage::Broken) else {
            return Err(PortError::not_done(
                code::SOURCE_REEXTRACT_REQUIRED,
                "the source stream was not read to its end; settle this attempt and start a new run",
            ));
        };
        let admitted = &streaming.admission;
        let after = acquire(&mut self.connection, &self.proven, &admitted.request, Moment::AfterEof).await?;
        compare(admitted, &after.admission)?;
        let (descriptor, coverage) = match (&streaming.raw, after.provenance) {
            (None, None) => (None, None),
            (Some(raw), Some(after)) if raw.coverage.rows() == streaming.rows => {
                raw.coverage.refuse_repetition()?;
                let coverage = raw.coverage.evidence();
                let sealed = EofDescriptor::seal(
                    &streaming.query_id,
                    streaming.rows,
                    coverage.sha256,
                    raw.before_physical,
                    after.physical_sha256,
                );
                (Some(contract::canon::strict(&sealed.document())), Some(coverage))
            }
            _ => return Err(unproven_rows()),
        };
        Ok(SourceEof { rows: streaming.rows, decoded_bytes: streaming.decoded_bytes, descriptor, coverage })
    }
}

impl Source for ClickHouseSource {
    async fn admit(&mut self, request: &SourceRequest) -> Result<SourceAdmission, PortError> {
        Ok(self.acquire(request).await?.admission)
    }

    async fn open(&mut self, admission: &SourceAdmission, query_id: &str) -> Result<(), PortError> {
        self.open_query(admission, query_id).await
    }

    async fn next_block(&mut self) -> Result<Option<Block>, PortError> {
        self.read_block().await
    }

    async fn finish(mut self) -> Result<SourceEof, PortError> {
        let sealed = self.seal().await;
        self.connection.close().await;
        sealed
    }

    async fn cancel(self) {
        self.connection.cancel().await;
    }
}

/// Opens sessions of one endpoint.
#[derive(Debug, Clone)]
pub struct ClickHouseSourceFactory {
    options: ConnectOptions,
}

impl ClickHouseSourceFactory {
    /// A factory for this endpoint; nothing is connected yet.
    pub fn new(options: ConnectOptions) -> Self {
        ClickHouseSourceFactory { options }
    }
}

impl SourceFactory for ClickHouseSourceFactory {
    type Session = ClickHouseSource;

    async fn connect(&self) -> Result<ClickHouseSource, PortError> {
        ClickHouseSource::connect(&self.options).await
    }
}

/// Names and header types of the result: business columns, then provenance in raw mode.
fn shape_of(admission: &SourceAdmission) -> Result<Shape, WireError> {
    let business = admission.columns.iter().map(|column| (column.name.as_str(), column.header_type.as_str()));
    match admission.request.mode {
        SourceMode::QueryVisible => Shape::new(business),
        SourceMode::ExactRawRows(_) => Shape::new(business.chain([("_part", "String"), ("_part_offset", "UInt64")])),
    }
}

/// Takes `_part` and `_part_offset` off the block and feeds them to the coverage.
fn observe(coverage: &mut Coverage, block: &mut Block) -> Result<(), PortError> {
    let offsets = block.columns.pop();
    let parts = block.columns.pop();
    let (
        Some(Column { values: Values::UInt64(offsets), nulls: None }),
        Some(Column { values: Values::String(parts), nulls: None }),
    ) = (offsets, parts)
    else {
        return Err(unproven_rows());
    };
    for (row, offset) in offsets.iter().enumerate() {
        coverage.observe(parts.get(row), *offset)?;
    }
    Ok(())
}

/// `dpone-native-` and 32 lower-case hex digits: the id must be the one whose digest the descriptor binds.
fn check_query_id(query_id: &str) -> Result<(), Refusal> {
    let valid = query_id
        .strip_prefix("dpone-native-")
        .is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    if valid {
        return Ok(());
    }
    Err(Refusal::new(code::SOURCE_READ_PROFILE_UNSUPPORTED, "a query id is dpone-native- and 32 lower-case hex digits"))
}

fn unproven_rows() -> PortError {
    PortError::not_done(
        code::SOURCE_PROVENANCE_INCOMPLETE,
        "not every row of the source stream has its provenance; settle this attempt and start a new run",
    )
}

fn misused() -> PortError {
    PortError::not_done(
        code::SOURCE_REEXTRACT_REQUIRED,
        "this source session has opened its query or failed before; settle this attempt and start a new session",
    )
}
