//! `native-transfer-operator run | crd`.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::{EnvFilter, FilterFn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Operator of NativeTransfer resources.
#[derive(Debug, Parser)]
#[command(name = "native-transfer-operator", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile resources until the process is asked to end.
    Run(Box<operator::run::Options>),
    /// Print the CustomResourceDefinitions as YAML, the same bytes as the files of `crds/`.
    Crd,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Crd => operator::crd::yaml().map(|text| print!("{text}")).map_err(|error| error.to_string()),
        Command::Run(options) => run(*options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("native-transfer-operator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: operator::run::Options) -> Result<(), String> {
    start_logging();
    // Which features rustls has depends on what is built beside the operator, so the provider is named and not guessed.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| "another provider of cryptography is installed in this process".to_owned())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(operator::run::run(options));
    // What is still under way is not waited for: fail-stop, or the grace is over.
    runtime.shutdown_background();
    outcome.map_err(|error| error.to_string())
}

/// Crates whose own events may hold bodies of requests (design.md 3.6).
const SILENCED: [&str; 2] = ["kube_client", "rustls"];

/// Log lines go to standard error. `RUST_LOG` chooses levels, default `info`.
fn start_logging() {
    let levels = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let silenced = FilterFn::new(|metadata| {
        let root = metadata.target().split("::").next().unwrap_or_default();
        !SILENCED.contains(&root)
    });
    let lines = fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .with_target(true)
        .with_filter(silenced);
    // Why ignored: a second start changes nothing.
    let _ = tracing_subscriber::registry().with(levels).with(lines).try_init();
}
