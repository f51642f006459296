//! Settings that come with a query, and the accounts that may connect.

use super::engine::{Engine, EngineError};
use super::protocol::SentSetting;

/// A setting of 26.9 that SET refuses. Off it means nothing to an embedded engine, which never answers before the end.
const IN_BACKGROUND: &str = "run_query_in_background";

/// The settings that the engine is to apply, as a server reads them: an unknown one that is important is an error, any other
/// unknown one is left out.
pub(crate) fn admit(engine: &Engine, sent: &[SentSetting]) -> Result<Vec<(String, String)>, EngineError> {
    let mut admitted: Vec<(String, String)> = Vec::new();
    for setting in sent {
        if setting.name == IN_BACKGROUND && engine.knows_setting(IN_BACKGROUND) {
            if !matches!(setting.value.as_str(), "0" | "false") {
                let message =
                    format!("{IN_BACKGROUND} is not served: the embedded engine has no background of its own");
                return Err(EngineError::new(48, "NOT_IMPLEMENTED", message));
            }
        } else if engine.knows_setting(&setting.name) {
            // Sent twice, the last value counts.
            admitted.retain(|(name, _)| *name != setting.name);
            admitted.push((setting.name.clone(), setting.value.clone()));
        } else if setting.important {
            return Err(unknown(&setting.name));
        }
    }
    Ok(admitted)
}

/// The error about a setting that the engine does not know.
pub(crate) fn unknown(name: &str) -> EngineError {
    EngineError::new(115, "UNKNOWN_SETTING", format!("Unknown setting '{name}'"))
}

/// Who may connect.
#[derive(Clone, Default)]
pub struct Accounts(Vec<(String, String)>);

impl std::fmt::Debug for Accounts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Accounts({})", self.0.len())
    }
}

impl Accounts {
    /// Accounts as pairs of user and password.
    pub fn new(accounts: Vec<(String, String)>) -> Accounts {
        Accounts(accounts)
    }

    pub(crate) fn check(&self, user: &str, password: &str) -> Result<(), EngineError> {
        if self.0.iter().any(|account| account.0 == user && account.1 == password) {
            return Ok(());
        }
        let message =
            format!("{user}: Authentication failed: password is incorrect, or there is no user with such name.");
        Err(EngineError::new(516, "AUTHENTICATION_FAILED", message))
    }
}
