//! What a failed call on a session says, and what that makes of its effect.

use contract::error::{Code, Fate, PortError};

/// Failure of one call on a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The server answered with an error: the batch ended, and under XACT_ABORT its transaction was rolled back.
    #[error("the server refused the statement with error {number}")]
    Server {
        /// Error number.
        number: u32,
        /// Severity class.
        class: i32,
        /// The token of a THROW of ours or of the catalog's triggers; never free text of the server.
        token: Option<String>,
    },
    /// The connection failed or fell silent: what was sent may or may not have been done.
    #[error("the connection was lost or did not answer in time")]
    Transport,
    /// The answer had another shape than the statement produces.
    #[error("the answer has an unexpected shape")]
    Shape(&'static str),
}

impl SessionError {
    /// From the crate's error. Its text may hold hosts, names and values, so only numbers and our own tokens are kept.
    pub(crate) fn from_driver(error: &mssql_tds::error::Error) -> Self {
        match error {
            mssql_tds::error::Error::SqlServerError { diagnostics } => {
                let Some(first) = diagnostics.errors.first() else { return SessionError::Transport };
                let token = diagnostics.errors.iter().find(|e| e.number == 51_000).map(|e| e.message.clone());
                SessionError::Server { number: first.number, class: first.class, token: token.filter(|t| is_token(t)) }
            }
            _ => SessionError::Transport,
        }
    }

    /// Whether the server itself reported the failure.
    pub(crate) fn answered(&self) -> bool {
        matches!(self, SessionError::Server { class, .. } if *class < 20)
    }

    /// As the failure of a call that has no effect whatever happened (an observation).
    pub(crate) fn observing(self) -> PortError {
        self.into_port(Fate::NotDone)
    }

    /// As the failure of a batch that is one transaction under XACT_ABORT: an answered error proves the rollback.
    pub(crate) fn changing(self) -> PortError {
        let fate = if self.answered() { Fate::NotDone } else { Fate::Unknown };
        self.into_port(fate)
    }

    fn into_port(self, fate: Fate) -> PortError {
        let (code, message) = match &self {
            SessionError::Server { token: Some(token), .. } => (Code::from_record(token.clone()), THROWN),
            SessionError::Server { number, .. } => describe(*number),
            SessionError::Transport => (
                Code::new("native_transfer.target_connection_lost"),
                "the connection to SQL Server was lost or did not answer in time: check server and network, then look at the run with inspect",
            ),
            SessionError::Shape(what) => (Code::new("native_transfer.target_answer_invalid"), *what),
        };
        PortError { code, message: message.into(), fate, source: Some(Box::new(self)) }
    }
}

const THROWN: &str = "a guard in the target database refused the batch and rolled it back: see the page of this code";

fn is_token(text: &str) -> bool {
    ["mssql_native.", "native_transfer.", "DPONE_", "NATIVE_TRANSFER_"].iter().any(|prefix| text.starts_with(prefix))
        && text.len() <= 96
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

/// Codes of the server's own errors that a person can act on (Microsoft's error reference).
fn describe(number: u32) -> (Code, &'static str) {
    match number {
        229 | 230 | 262 | 297 | 300 | 1088 | 15151 | 15247 => (
            Code::new("native_transfer.target_permission_denied"),
            "the loader lacks a right at the target: compare its grants with `native-transfer target-catalog print`",
        ),
        208 | 2812 => (
            Code::new("native_transfer.target_catalog_missing"),
            "an object of the state catalog or the target table does not exist: run the script of `native-transfer target-catalog print`",
        ),
        1204 | 1205 | 1222 => (
            Code::new("native_transfer.target_busy"),
            "another session holds a lock for too long or won a deadlock: find it in sys.dm_tran_locks, then run again",
        ),
        1101 | 1105 | 9002 => (
            Code::new("mssql_native.target_volume_headroom_insufficient"),
            "the database or its log is full: free or add space, then run again",
        ),
        4060 | 18456 | 18452 | 18470 | 18487 | 18488 => (
            Code::new("native_transfer.target_login_failed"),
            "SQL Server refused the login or the database: check user, password and database of the target connection",
        ),
        _ => (
            Code::new("native_transfer.target_statement_failed"),
            "SQL Server refused a statement: its error number is in the log; see the page of this code",
        ),
    }
}

/// A verdict of a check that compared an answer with what it had to be.
pub(crate) fn refuse(code: &'static str, message: &'static str) -> PortError {
    PortError::not_done(code, message)
}
