//! Waiting with a deadline, a name and a log.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Result;

/// Time between two looks at a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What is waited for, how long, and which log says why it does not come.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    what: String,
    limit: Duration,
    log: Option<PathBuf>,
}

impl Patience {
    /// Waits for `what` at most `limit`.
    pub(crate) fn new(what: impl Into<String>, limit: Duration) -> Patience {
        Patience { what: what.into(), limit, log: None }
    }

    /// Names the log that says more.
    pub(crate) fn log(mut self, log: PathBuf) -> Patience {
        self.log = Some(log);
        self
    }
}

/// Looks again and again until `condition` is true.
///
/// # Errors
/// The condition's own error, at once; the limit, with what was waited for and the log.
pub(crate) fn wait_until(patience: &Patience, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + patience.limit;
    loop {
        if condition()? {
            return Ok(());
        }
        if Instant::now() >= end {
            let log = patience.log.as_ref().map(|log| format!("; its log: {}", log.display())).unwrap_or_default();
            return Err(format!("waited {} s for {}{log}", patience.limit.as_secs(), patience.what).into());
        }
        sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_names_what_and_where() {
        let patience = Patience::new("the moon", Duration::ZERO).log("/var/log/moon".into());
        let error = wait_until(&patience, || Ok(false)).expect_err("never");
        assert_eq!(error.to_string(), "waited 0 s for the moon; its log: /var/log/moon");
    }

    #[test]
    fn an_error_ends_the_wait() {
        let patience = Patience::new("the moon", Duration::from_secs(600));
        assert_eq!(wait_until(&patience, || Err("no moon".into())).expect_err("at once").to_string(), "no moon");
    }
}
