//! How to reach one SQL Server database.

use std::fmt;
use std::time::Duration;

/// One server, one database, one principal. Integrated authentication is not offered: the worker has no domain identity.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Host name or address; the server's certificate must carry it.
    pub host: String,
    /// TCP port, usually 1433.
    pub port: u16,
    /// SQL login.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Database with the target table, the state schema and the staging schema.
    pub database: String,
    /// PEM bytes of the only certificate authorities to trust; `None` trusts the system's roots.
    pub ca_pem: Option<Vec<u8>>,
    /// Limits of time.
    pub timeouts: Timeouts,
}

/// Limits of time of target sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP connect, TLS handshake and login together.
    pub connect: Duration,
    /// Statements that only observe or change a few rows.
    pub statement: Duration,
    /// Bulk load of one chunk, digest of one table, fill of the prepared table, publication.
    pub bulk: Duration,
    /// COMMIT. After it the receipt is read on a fresh session.
    pub commit: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(30),
            statement: Duration::from_secs(300),
            bulk: Duration::from_secs(3600),
            commit: Duration::from_secs(300),
        }
    }
}

impl fmt::Debug for ConnectOptions {
    /// Never shows a host, a principal or a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("ca_pem", &self.ca_pem.as_ref().map(|_| "[given]"))
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
