//! `run`, its phases, and `inspect`: adapters composed with the runtime.

use contract::error::{PortError, Refusal};
use contract::manifest::Plan;
use journal_sqlite::SqliteJournal;
use runtime::{CancellationToken, Outcome, Progress, Request, Scope};
use sink_sqlserver::SqlServerTarget;
use source_clickhouse::ClickHouseSourceFactory;

use crate::arguments::{InspectArguments, RunArguments};
use crate::progress::Bar;
use crate::world::{SystemWorld, random_bytes};
use crate::{connections, manifest, output};

/// Runs a transfer or one phase of it; returns the exit code.
pub(crate) fn run(arguments: RunArguments, scope: Scope) -> u8 {
    let prepared = manifest::load(&arguments.manifest)
        .and_then(|plan| plan.require_runnable().map(|()| plan))
        .map_err(PortError::from)
        .and_then(|plan| compose(&arguments, plan, scope));
    let composed = match prepared {
        Ok(composed) => composed,
        Err(error) => return output::refused(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failed =
                PortError::not_done("native_transfer.worker_files_unavailable", "the process cannot start threads");
            return output::refused(&failed.caused_by(error));
        }
    };
    let outcome = runtime.block_on(composed.run());
    output::outcome(&outcome, arguments.output)
}

struct Composed {
    request: Request,
    source: ClickHouseSourceFactory,
    target: SqlServerTarget,
    journal: SqliteJournal,
}

fn compose(arguments: &RunArguments, plan: Plan, scope: Scope) -> Result<Composed, PortError> {
    let directory = arguments.connections.as_deref();
    let source = ClickHouseSourceFactory::new(connections::source(directory)?);
    let target = SqlServerTarget::new(connections::target(directory)?, &plan.state_schema);
    let run_id = match &arguments.run_id {
        Some(run_id) => checked(run_id)?,
        None => fresh_run_id()?,
    };
    let journal = SqliteJournal::open(&arguments.journal_root)?;
    let request = Request {
        plan,
        run_id,
        root: arguments.journal_root.clone(),
        scope,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    };
    Ok(Composed { request, source, target, journal })
}

fn checked(run_id: &str) -> Result<String, Refusal> {
    let printable = run_id.chars().all(|c| !c.is_control()) && !run_id.trim().is_empty();
    if printable && run_id.len() <= 256 {
        return Ok(run_id.to_string());
    }
    Err(Refusal::new("native_transfer.run_id_invalid", "a run id is 1 to 256 bytes of printable text"))
}

fn fresh_run_id() -> Result<String, PortError> {
    let bytes = random_bytes()?;
    let hex: String = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
    Ok(format!("cli-{hex}"))
}

impl Composed {
    async fn run(self) -> Outcome {
        let stop = self.request.stop.clone();
        // Printed first, so that a killed run can be named afterwards.
        eprintln!("run id {}", self.request.run_id);
        let signals = tokio::spawn(async move {
            stop_signal().await;
            stop.cancel();
        });
        let bar = Bar::follow(self.request.progress.clone());
        let outcome = runtime::run(self.request, self.source, self.target, SystemWorld, self.journal).await;
        drop(bar);
        signals.abort();
        outcome
    }
}

/// SIGTERM or Ctrl-C.
async fn stop_signal() {
    let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    match terminate {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        // Without a handler the signal ends the process, which the journal survives.
        Err(_) => std::future::pending().await,
    }
}

/// Shows a run from its journal.
pub(crate) fn inspect(arguments: &InspectArguments) -> u8 {
    let inspection = SqliteJournal::inspect(&arguments.journal_root)
        .and_then(|journal| runtime::inspect(&journal, &arguments.run_id));
    match inspection {
        Ok(inspection) => output::inspection(&inspection, arguments.output),
        Err(error) => output::refused(&error),
    }
}
