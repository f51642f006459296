//! `run`, its phases, and `inspect`: adapters composed with the runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use contract::digest::Digest;
use contract::error::{PortError, Refusal};
use contract::manifest::Plan;
use contract::port::journal::Journal;
use contract::worker::{Exit, Phase};
use journal_sqlite::SqliteJournal;
use runtime::{CancellationToken, Outcome, Progress, Request, Scope, ended_early};
use sink_sqlserver::SqlServerTarget;
use source_clickhouse::ClickHouseSourceFactory;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{InspectArguments, PhaseArguments, RunArguments, WorkerArguments};
use crate::endpoint::{Endpoint, Identity};
use crate::progress::Bar;
use crate::receipt_file::ReceiptFile;
use crate::world::{SystemWorld, random_bytes};
use crate::{connections, manifest, output};

/// How long what is still in flight at the end may take: a name that is being resolved, a file that is being closed.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// `run`: a whole transfer. Returns the exit code.
pub(crate) fn run(arguments: &RunArguments) -> u8 {
    process(arguments, &WorkerArguments::default(), None)
}

/// One phase of a transfer; its receipt is written before it ends, however it ends. Returns the exit code.
pub(crate) fn phase(arguments: &PhaseArguments, phase: Phase) -> u8 {
    process(&arguments.run, &arguments.worker, Some(phase))
}

/// An end before there was an outcome.
#[derive(Debug)]
struct Early {
    error: PortError,
    exit: Exit,
    /// Digest of the plan, once it is checked.
    plan: Option<Digest>,
}

impl Early {
    fn refused(error: impl Into<PortError>, plan: Option<Digest>) -> Self {
        Early { error: error.into(), exit: Exit::Refused, plan }
    }
}

fn process(arguments: &RunArguments, worker: &WorkerArguments, phase: Option<Phase>) -> u8 {
    let receipt = match ReceiptFile::open(worker.receipt.as_deref()) {
        Ok(receipt) => receipt,
        Err(refusal) => return output::refused(&refusal.into()),
    };
    let run_id = match arguments.run_id.clone().map_or_else(fresh_run_id, Ok) {
        Ok(run_id) => run_id,
        Err(error) => return output::refused(&error),
    };
    let (threads, ended) = match threads() {
        Ok(threads) => {
            let ended = guarded(|| attempt(&threads, arguments, worker, phase, &run_id)).flatten();
            (Some(threads), ended)
        }
        Err(error) => (None, Err(Early::refused(error, None))),
    };
    if let Some(phase) = phase {
        receipt.write(&match &ended {
            Ok(outcome) => outcome.receipt(phase, worker.plan_sha256),
            Err(early) => ended_early(phase, &run_id, early.exit, &early.error, early.plan),
        });
    }
    let code = match ended {
        Ok(outcome) => output::outcome(&outcome, arguments.output),
        Err(early) => output::ended_early(&early.error, early.exit, &run_id, arguments.output),
    };
    if let Some(threads) = threads {
        threads.shutdown_timeout(SHUTDOWN);
    }
    code
}

/// A panic is an end like any other: nobody knows what it left, and the journal does.
fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, Early> {
    // Why safe to assert: nothing of `work` is looked at again after a panic.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Early {
        error: PortError::unknown(
            "native_transfer.worker_panicked",
            "the process ended unexpectedly: look at the run with inspect, and please report it",
        ),
        exit: Exit::Kept,
        plan: None,
    })
}

/// The threads of the process.
pub(crate) fn threads() -> Result<Runtime, PortError> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
        PortError::not_done("native_transfer.worker_files_unavailable", "the process cannot start threads")
            .caused_by(error)
    })
}

/// From the arguments to an outcome.
fn attempt(
    threads: &Runtime,
    arguments: &RunArguments,
    worker: &WorkerArguments,
    phase: Option<Phase>,
    run_id: &str,
) -> Result<Outcome, Early> {
    // Why first: a signal that comes while the journal is read asks for an end, too, and not for a death without receipt.
    let stop = CancellationToken::new();
    stop_on_signal(threads, stop.clone());
    let plan =
        manifest::load(&arguments.manifest, worker.plan_sha256).map_err(|refusal| Early::refused(refusal, None))?;
    let composed =
        compose(arguments, worker, plan, run_id).map_err(|error| Early::refused(error, worker.plan_sha256))?;
    let request = Request {
        plan: composed.plan,
        run_id: run_id.to_owned(),
        root: arguments.journal_root.clone(),
        scope: scope(phase),
        stop,
        progress: Progress::default(),
        plan_document: worker.plan_sha256,
    };
    // Printed first, so that a killed run can be named afterwards.
    eprintln!("run id {run_id}");
    Ok(threads.block_on(async {
        let endpoint = match worker.progress_listen {
            Some(address) => {
                let epoch = composed.journal.header().epoch;
                let identity = Identity::new(worker.progress_identity_file.as_deref(), run_id, epoch);
                Endpoint::serve(address, identity, request.progress.clone()).await
            }
            None => None,
        };
        let bar = Bar::follow(request.progress.clone());
        let outcome = runtime::run(request, composed.source, composed.target, SystemWorld, composed.journal).await;
        drop((bar, endpoint));
        outcome
    }))
}

fn scope(phase: Option<Phase>) -> Scope {
    match phase {
        None => Scope::Run,
        Some(Phase::Admit) => Scope::Admit,
        Some(Phase::Extract) => Scope::Extract,
        Some(Phase::Publish | Phase::Inspect) => Scope::Publish,
    }
}

struct Composed {
    plan: Plan,
    source: ClickHouseSourceFactory,
    target: SqlServerTarget,
    journal: SqliteJournal,
}

fn compose(
    arguments: &RunArguments,
    worker: &WorkerArguments,
    plan: Plan,
    run_id: &str,
) -> Result<Composed, PortError> {
    plan.require_runnable()?;
    let directory = arguments.connections.as_deref();
    let source = ClickHouseSourceFactory::new(connections::source(directory)?);
    let target = SqlServerTarget::new(connections::target(directory)?, &plan.state_schema);
    check_run_id(run_id)?;
    let journal = SqliteJournal::open_above(&arguments.journal_root, worker.epoch_floor)?;
    Ok(Composed { plan, source, target, journal })
}

fn check_run_id(run_id: &str) -> Result<(), Refusal> {
    let printable = run_id.chars().all(|c| !c.is_control()) && !run_id.trim().is_empty();
    if printable && run_id.len() <= 256 {
        return Ok(());
    }
    Err(Refusal::new("native_transfer.run_id_invalid", "a run id is 1 to 256 bytes of printable text"))
}

fn fresh_run_id() -> Result<String, PortError> {
    let bytes = random_bytes()?;
    let hex: String = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
    Ok(format!("cli-{hex}"))
}

/// SIGTERM or Ctrl-C cancel the token. Without a handler the signal ends the process, which the journal survives.
pub(crate) fn stop_on_signal(threads: &Runtime, stop: CancellationToken) {
    let _inside = threads.enter();
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    threads.spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
}

/// Shows a run from its journal; needs neither network nor a writable volume.
pub(crate) fn inspect(arguments: &InspectArguments) -> u8 {
    let receipt = match ReceiptFile::open(arguments.receipt.as_deref()) {
        Ok(receipt) => receipt,
        Err(refusal) => return output::refused(&refusal.into()),
    };
    let run_id = &arguments.run_id;
    if arguments.evidence {
        return evidence(arguments);
    }
    let looked = || {
        let inspection =
            SqliteJournal::inspect(&arguments.journal_root).and_then(|journal| runtime::inspect(&journal, run_id));
        inspection.map_err(|error| Early::refused(error, None))
    };
    match guarded(looked).flatten() {
        Ok(inspection) => {
            receipt.write(&inspection.receipt(run_id));
            output::inspection(&inspection, arguments.output)
        }
        Err(early) => {
            receipt.write(&ended_early(Phase::Inspect, run_id, early.exit, &early.error, None));
            output::failed(&early.error, early.exit)
        }
    }
}

/// Prints what a run's journal proves.
fn evidence(arguments: &InspectArguments) -> u8 {
    let looked = || {
        let journal = SqliteJournal::inspect(&arguments.journal_root);
        let evidence = journal.and_then(|journal| runtime::evidence_of(&journal, &arguments.run_id));
        evidence.map_err(|error| Early::refused(error, None))
    };
    match guarded(looked).flatten() {
        Ok(evidence) => output::canonical(&evidence),
        Err(early) => output::failed(&early.error, early.exit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_end_with_a_code() {
        let early = guarded(|| -> u8 { panic!("a test's panic") }).unwrap_err();
        assert_eq!((early.exit, early.error.code.as_str()), (Exit::Kept, "native_transfer.worker_panicked"));
        let receipt = ended_early(Phase::Extract, "run", early.exit, &early.error, None);
        assert!(receipt.agrees_with_itself(), "{receipt:?}");
        assert_eq!(guarded(|| 7).unwrap(), 7);
    }
}
