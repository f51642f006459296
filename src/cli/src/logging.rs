//! Log lines go to standard error; crates that print packets, logins or rows are silenced whatever RUST_LOG says.

use tracing_subscriber::filter::{EnvFilter, FilterFn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Crates whose own events may hold what no log may hold (design.md 3.6).
const SILENCED: [&str; 4] = ["mssql_tds", "tiberius", "kube_client", "rustls"];

/// Starts logging. `RUST_LOG` chooses levels, default `warn`.
pub(crate) fn start() {
    let levels = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let silenced = FilterFn::new(|metadata| {
        let root = metadata.target().split("::").next().unwrap_or_default();
        !SILENCED.contains(&root)
    });
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(true).with_filter(silenced);
    // Why ignored: a second start, as in tests, changes nothing.
    let _ = tracing_subscriber::registry().with(levels).with(lines).try_init();
}
