//! One connection: opened with its defaults fixed, every call under a deadline, its identity checked (design.md 3.6).

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use contract::error::PortError;
use mssql_tds::connection::client_context::{ClientContext, TdsAuthenticationMethod};
use mssql_tds::connection::tds_client::{ExecuteOptions, ResultSet, StatementResult, TdsClient};
use mssql_tds::connection_provider::tds_connection_provider::TdsConnectionProvider;
use mssql_tds::core::{EncryptionOptions, EncryptionSetting};
use mssql_tds::datatypes::column_values::ColumnValues;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{SessionError, refuse};
use crate::options::ConnectOptions;
use crate::tls;

/// Rows that one observation may return; all of ours are far smaller.
const ROWS_MAX: usize = 65_536;
/// Largest TDS packet: fewer headers per chunk.
const PACKET_BYTES: u16 = 32_767;

/// A value of a result row, reduced to what our statements return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
}

/// A row of a result.
pub(crate) type Row = Vec<Cell>;

/// One open session. Dropping it closes the socket; the server then rolls back and releases its applocks.
pub(crate) struct Session {
    pub(crate) client: TdsClient,
    recoveries: u32,
    _pin: Pin,
}

impl Session {
    /// Connects: own TLS verification, then the crate's connection pinned to the verified certificate, then login.
    pub(crate) async fn open(options: &ConnectOptions, application_name: &str) -> Result<Self, PortError> {
        let pin = Pin::of(&tls::verified_leaf(options).await?)?;
        let mut context = ClientContext::with_data_source(&format!("tcp:{},{}", options.host, options.port));
        context.application_name = application_name.to_string();
        context.user_name = options.user.clone();
        context.password = options.password.clone();
        context.database = options.database.clone();
        context.tds_authentication_method = TdsAuthenticationMethod::Password;
        context.connect_retry_count = 0;
        context.multi_subnet_failover = Some(false);
        context.pooling = false;
        context.mars_enabled = false;
        context.enlist = false;
        context.packet_size = PACKET_BYTES;
        context.connect_timeout = tls::connect_seconds(options.timeouts.connect);
        context.login_timeout = Some(context.connect_timeout);
        context.encryption_options = EncryptionOptions {
            mode: EncryptionSetting::Required,
            trust_server_certificate: false,
            host_name_in_cert: None,
            server_certificate: Some(pin.path()),
        };
        let data_source = context.data_source.clone();
        let provider = TdsConnectionProvider::new();
        let connected =
            tokio::time::timeout(options.timeouts.connect, provider.create_client(context, &data_source, None));
        let client = match connected.await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(login_error(&error)),
            Err(_) => {
                return Err(refuse(
                    "native_transfer.target_unreachable",
                    "SQL Server did not answer the login in time",
                ));
            }
        };
        if !client.is_encrypted() {
            return Err(refuse(
                "native_transfer.target_encryption_refused",
                "the session is not encrypted: enable TLS at the server; there is no plaintext mode",
            ));
        }
        let recoveries = client.connection_recovery_count();
        Ok(Session { client, recoveries, _pin: pin })
    }

    /// Runs a batch and returns every result set's rows. Any error ends the batch.
    pub(crate) async fn query(&mut self, sql: &str, deadline: Duration) -> Result<Vec<Vec<Row>>, SessionError> {
        let outcome = match tokio::time::timeout(deadline, self.run(sql)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SessionError::Transport),
        };
        if let Err(error) = &outcome
            && !error.answered()
        {
            // Why: an unanswered session must never be used again; what it does next is unknown.
            self.client.mark_connection_dead();
        }
        if self.client.connection_recovery_count() != self.recoveries {
            return Err(SessionError::Transport);
        }
        outcome
    }

    async fn run(&mut self, sql: &str) -> Result<Vec<Vec<Row>>, SessionError> {
        let failed = |e: mssql_tds::error::Error| SessionError::from_driver(&e);
        let mut sets = Vec::new();
        let mut result = self.client.execute(sql.to_string(), ExecuteOptions::new()).await.map_err(failed)?;
        loop {
            match result {
                StatementResult::End => return Ok(sets),
                StatementResult::NoRows { .. } => {}
                StatementResult::Rows => {
                    let mut rows = Vec::new();
                    while let Some(row) = self.client.next_row().await.map_err(failed)? {
                        if rows.len() == ROWS_MAX {
                            return Err(SessionError::Shape("an observation returned more rows than its bound"));
                        }
                        rows.push(row.into_iter().map(cell).collect::<Result<Row, _>>()?);
                    }
                    sets.push(rows);
                }
            }
            result = self.client.advance().await.map_err(failed)?;
        }
    }

    /// Runs a batch that returns exactly one result set.
    pub(crate) async fn rows(&mut self, sql: &str, deadline: Duration) -> Result<Vec<Row>, SessionError> {
        let mut sets = self.query(sql, deadline).await?;
        match (sets.pop(), sets.is_empty()) {
            (Some(rows), true) => Ok(rows),
            _ => Err(SessionError::Shape("a statement returned another number of results than it must")),
        }
    }

    /// Runs a batch that returns exactly one row.
    pub(crate) async fn row(&mut self, sql: &str, deadline: Duration) -> Result<Row, SessionError> {
        let mut rows = self.rows(sql, deadline).await?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            _ => Err(SessionError::Shape("a statement returned another number of rows than it must")),
        }
    }

    /// Ends the session in order.
    pub(crate) async fn close(mut self) {
        // Why ignored: the socket closes either way, and the server ends the session when it does.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.client.close_connection()).await;
    }
}

/// The pinned certificate as a file, which is the only form in which mssql-tds takes it. The file is in memory and has no
/// name in a file system: it is gone with the process however that ends, and needs no writable folder.
struct Pin(File);

impl Pin {
    fn of(leaf: &[u8]) -> Result<Pin, PortError> {
        let written = || -> std::io::Result<File> {
            let mut file = File::from(memfd_create("native-transfer-pin", MemfdFlags::CLOEXEC)?);
            file.write_all(leaf)?;
            Ok(file)
        };
        written().map(Pin).map_err(|e| {
            refuse(
                "native_transfer.worker_files_unavailable",
                "a file in memory cannot be made: check the limits of open files and memory",
            )
            .caused_by(e)
        })
    }

    /// Where this process, and no other, can open the file, as long as the pin lives.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

fn login_error(error: &mssql_tds::error::Error) -> PortError {
    match SessionError::from_driver(error) {
        refused @ SessionError::Server { .. } => refused.observing(),
        _ => refuse(
            "native_transfer.target_unreachable",
            "the session could not be opened: the certificate changed between check and login, or the network failed",
        ),
    }
}

fn cell(value: ColumnValues) -> Result<Cell, SessionError> {
    Ok(match value {
        ColumnValues::Null => Cell::Null,
        ColumnValues::TinyInt(v) => Cell::Int(v.into()),
        ColumnValues::SmallInt(v) => Cell::Int(v.into()),
        ColumnValues::Int(v) => Cell::Int(v.into()),
        ColumnValues::BigInt(v) => Cell::Int(v),
        ColumnValues::Bit(v) => Cell::Int(v.into()),
        ColumnValues::Decimal(v) | ColumnValues::Numeric(v) => Cell::Text(v.to_string()),
        ColumnValues::String(v) => Cell::Text(v.to_utf8_string()),
        _ => return Err(SessionError::Shape("a statement returned a type that it cannot return")),
    })
}

impl Cell {
    /// The integer of the cell.
    pub(crate) fn int(&self) -> Result<i64, SessionError> {
        match self {
            Cell::Int(v) => Ok(*v),
            _ => Err(SessionError::Shape("a number was expected in an answer")),
        }
    }

    /// The non-negative integer of the cell.
    pub(crate) fn count(&self) -> Result<u64, SessionError> {
        u64::try_from(self.int()?).map_err(|_| SessionError::Shape("a count in an answer is negative"))
    }

    /// The text of the cell.
    pub(crate) fn text(&self) -> Result<&str, SessionError> {
        match self {
            Cell::Text(v) => Ok(v),
            _ => Err(SessionError::Shape("a text was expected in an answer")),
        }
    }

    /// The digest of a cell that holds hex of either case.
    pub(crate) fn digest(&self) -> Result<contract::digest::Digest, SessionError> {
        self.text()?.to_ascii_lowercase().parse().map_err(|_| SessionError::Shape("a digest was expected in an answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::Pin;

    #[test]
    fn a_pin_can_be_read_and_stands_in_no_folder() {
        let leaf = [0x30, 0x03, 0x02, 0x01, 0x05];
        let pin = Pin::of(&leaf).expect("a pin");
        // Twice: each opening starts at the beginning.
        for _ in 0..2 {
            assert_eq!(std::fs::read(pin.path()).expect("a file"), leaf);
        }
        let name = std::fs::read_link(pin.path()).expect("a link");
        assert_eq!(name.to_str(), Some("/memfd:native-transfer-pin (deleted)"));
        assert!(!name.exists());
        let path = pin.path();
        drop(pin);
        assert_ne!(std::fs::read_link(path).ok(), Some(name));
    }
}
