//! How to reach one ClickHouse server.

use std::fmt;
use std::time::Duration;

/// The limit of silence: how long the server may send nothing while we wait for it (design.md 3.5).
pub const SILENCE_LIMIT: Duration = Duration::from_secs(300);

/// One direct native endpoint over TLS and the principal to read as.
///
/// There is no plaintext form, no second host and no reconnect: a session that breaks stays broken (contract.md 2.6).
#[derive(Clone)]
pub struct ConnectOptions {
    /// Host name or address; the server's certificate must carry it.
    pub host: String,
    /// Port of the TLS native protocol, usually 9440.
    pub port: u16,
    /// User name.
    pub user: String,
    /// Password; empty when the user has none.
    pub password: String,
    /// Default database of the session; relations are always named with their database.
    pub database: String,
    /// PEM bytes of the only certificate authorities to trust; `None` trusts the system's roots.
    pub ca_pem: Option<Vec<u8>>,
    /// Certificate chain and key of the client, where the server demands one.
    pub client_identity: Option<ClientIdentity>,
    /// Limits of time.
    pub timeouts: Timeouts,
}

/// A client certificate.
#[derive(Clone)]
pub struct ClientIdentity {
    /// PEM bytes of the chain, leaf first.
    pub certificate_pem: Vec<u8>,
    /// PEM bytes of the private key.
    pub key_pem: Vec<u8>,
}

/// Limits of time of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP connect, TLS handshake and hello together.
    pub connect: Duration,
    /// Silence of the server while we wait for it. Time that we spend elsewhere never counts.
    pub silence: Duration,
    /// How long a cancelled query may take to come to its end before the socket is simply closed.
    pub cancel: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { connect: Duration::from_secs(30), silence: SILENCE_LIMIT, cancel: Duration::from_secs(10) }
    }
}

impl fmt::Debug for ConnectOptions {
    /// Never shows a host, a principal or a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("host", &"[redacted]")
            .field("port", &self.port)
            .field("user", &"[redacted]")
            .field("password", &"[redacted]")
            .field("database", &"[redacted]")
            .field("ca_pem", &self.ca_pem.as_ref().map(|_| "[given]"))
            .field("client_identity", &self.client_identity.as_ref().map(|_| "[given]"))
            .field("timeouts", &self.timeouts)
            .finish()
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity([redacted])")
    }
}
