//! A process from its start to its end or its death, rounds of processes, and what must always hold.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use contract::canon::Json;
use contract::digest::Digest;
use contract::worker::{CustodyWord, Exit, Phase, Receipt, RunTag, StateWord};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::database::Database;
use super::faults::{Fault, Faults, Site};
use super::source::SimFactory;
use super::store::Store;
use super::target::SimTarget;
use super::transfer::{Transfer, sorted};
use super::world::SimWorld;
use crate::context::run_key;
use crate::driver::{Driver, Request, Scope};
use crate::facts::{self, RunFacts};
use crate::frozen::Frozen;
use crate::inspect::inspect;
use crate::observations::Observations;
use crate::progress::Progress;
use crate::receipt;
use crate::records::{FROZEN, Records};
use crate::report::End;

/// Most processes until a run is quiet once no faults are left.
const ROUNDS_MAX: u32 = 6;

/// How a process ended.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a handful per test")]
pub(super) enum Ended {
    With(End),
    Died,
}

impl Ended {
    pub(super) fn exit_code(&self) -> Option<u8> {
        match self {
            Ended::With(end) => Some(end.exit_code()),
            Ended::Died => None,
        }
    }

    pub(super) fn code(&self) -> Option<String> {
        match self {
            Ended::With(end) => end.error().map(|error| error.code.to_string()),
            Ended::Died => None,
        }
    }
}

/// What outlives a process, and the ports that reach it.
pub(super) struct Simulation {
    pub(super) transfer: Arc<Transfer>,
    pub(super) db: Database,
    pub(super) store: Store,
    pub(super) faults: Faults,
    pub(super) world: SimWorld,
    pub(super) root: TempDir,
    pub(super) run_id: String,
    pub(super) stop: CancellationToken,
    pub(super) opened: Arc<AtomicU32>,
    pub(super) pulled: Arc<AtomicU32>,
    pub(super) gate: Option<Arc<tokio::sync::Semaphore>>,
    pub(super) panics: bool,
    /// Worker threads of a process; 0 runs everything on the test's own thread.
    pub(super) threads: usize,
    /// Whether nobody else uses the target.
    pub(super) alone: bool,
}

/// A folder in memory where there is one: the simulation syncs thousands of files.
fn folder() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory).unwrap() } else { TempDir::new().unwrap() }
}

impl Simulation {
    pub(super) fn new(transfer: &Transfer) -> Self {
        let faults = Faults::default();
        let db = Database::default();
        db.lock().target.clone_from(&transfer.old);
        Simulation {
            transfer: Arc::new(transfer.clone()),
            db,
            store: Store::default(),
            world: SimWorld::new(faults.clone()),
            faults,
            root: folder(),
            run_id: "run-1".to_owned(),
            stop: CancellationToken::new(),
            opened: Arc::default(),
            pulled: Arc::default(),
            gate: None,
            panics: false,
            threads: 0,
            alone: true,
        }
    }

    pub(super) fn run_key(&self) -> String {
        run_key(&self.run_id)
    }

    /// Another run of the same target from another journal.
    pub(super) fn stranger(&self) -> Simulation {
        let other = Simulation::new(&self.transfer);
        Simulation { db: self.db.clone(), run_id: "stranger".to_owned(), alone: false, ..other }
    }

    /// The same run from a copy of its volume.
    pub(super) fn copy(&self) -> Simulation {
        let other = Simulation::new(&self.transfer);
        Simulation { db: self.db.clone(), store: self.store.copy(), world: self.world.clone(), ..other }
    }

    fn request(&self, scope: Scope) -> Request {
        Request {
            plan: self.transfer.plan.clone(),
            run_id: self.run_id.clone(),
            root: self.root.path().to_owned(),
            scope,
            stop: self.stop.clone(),
            progress: Progress::default(),
            plan_document: Some(Digest::of(b"frozen plan")),
        }
    }

    pub(super) fn factory(&self) -> SimFactory {
        SimFactory {
            transfer: Arc::clone(&self.transfer),
            faults: self.faults.clone(),
            store: self.store.clone(),
            run: self.run_key(),
            violations: self.db.violations.clone(),
            opened: Arc::clone(&self.opened),
            pulled: Arc::clone(&self.pulled),
        }
    }

    pub(super) fn target(&self) -> SimTarget {
        SimTarget {
            db: self.db.clone(),
            store: self.store.clone(),
            faults: self.faults.clone(),
            run: self.run_key(),
            gate: self.gate.clone(),
            panics: self.panics,
        }
    }

    /// One process, from opening the journal to its end or death.
    pub(super) fn process(&self, scope: Scope) -> Ended {
        let death = self.faults.revive();
        let runtime = match self.threads {
            0 => tokio::runtime::Builder::new_current_thread().build(),
            threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build(),
        };
        let runtime = runtime.unwrap();
        let ended = runtime.block_on(async {
            let journal = self.store.open(self.world.nonce(), &self.faults);
            let (request, world) = (self.request(scope), self.world.clone());
            let driver = Driver::new(request, self.factory(), self.target(), world, journal, Observations::default());
            let context = driver.context();
            tokio::select! {
                biased;
                () = death.cancelled() => Ended::Died,
                end = Box::pin(driver.drive()) => {
                    // A run that is refused at once has not looked further than its reason.
                    let looked = context.transfer().is_some();
                    if self.faults.hits().is_empty() && looked {
                        let durable = Records::new(self.store.records(&self.run_key())).fold().unwrap();
                        assert!(context.look(|live| *live == durable), "the live state is the fold of the journal");
                    }
                    self.check_receipt(scope, &end);
                    Ended::With(end)
                }
            }
        });
        self.faults.bury();
        // Everything that the process had in flight goes with it: tasks, sessions, the journal's thread.
        drop(runtime);
        self.check(&ended);
        ended
    }

    /// Processes of one run until it is finished.
    pub(super) fn settle(&self) -> Vec<Ended> {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let ended = self.process(Scope::Run);
            let finished = matches!(ended, Ended::With(End::Succeeded { .. } | End::ReextractRequired(_)));
            rounds.push(ended);
            if finished {
                return rounds;
            }
        }
        panic!("{:?}: not quiet after {ROUNDS_MAX} processes: {rounds:#?}", self.faults.hits());
    }

    /// Every end has a receipt that the parser accepts, and its facts are those of both places.
    fn check_receipt(&self, scope: Scope, end: &End) {
        let phase = match scope {
            Scope::Admit => Phase::Admit,
            Scope::Extract => Phase::Extract,
            // A whole run may end as any phase does; publication is the last of them.
            Scope::Run | Scope::Publish => Phase::Publish,
        };
        let (exit, state) = (end.exit(), end.state());
        let records = Records::new(self.store.records(&self.run_key()));
        let holds = self.invocation_key().is_some_and(|mine| self.store.holders().contains(&mine));
        let facts = RunFacts::read(&records, facts::frozen(&records).unwrap().as_ref(), holds).unwrap();
        let receipt = receipt::of_end(phase, &self.run_id, end, (1, &facts), None);
        let known = Receipt::parse(&receipt.encode(), &RunTag::of(&self.run_id));
        assert_eq!(known.as_ref(), Ok(&receipt), "{end:?}");
        assert_eq!(receipt.exit, exit);
        assert!(receipt.state.is_none_or(|said| said == state), "{receipt:?}");
        let closed = matches!(receipt.custody, CustodyWord::None | CustodyWord::Released);
        assert!(!receipt.attempt_closed || closed, "{receipt:?}");
        match exit {
            Exit::Reextract => assert!(receipt.attempt_closed && receipt.receipt_id.is_none(), "{receipt:?}"),
            Exit::Done if receipt.state == Some(StateWord::Succeeded) => {
                let published = receipt.receipt_id.is_some() && receipt.committed_at.is_some();
                assert!(receipt.attempt_closed && published && receipt.evidence.is_some(), "{receipt:?}");
                assert_eq!(receipt.rows, Some(self.transfer.rows()));
            }
            Exit::Done if receipt.state == Some(StateWord::StageComplete) => {
                assert_eq!((receipt.rows, receipt.custody), (Some(self.transfer.rows()), CustodyWord::Held));
                assert!(receipt.workload.is_some() && receipt.target.is_some(), "{receipt:?}");
            }
            _ => {}
        }
    }

    /// What holds after every process, however it ended.
    fn check(&self, ended: &Ended) {
        let context = format!("{ended:?} after {:?}", self.faults.hits());
        assert_eq!(self.db.violations.all(), Vec::<String>::new(), "{context}");
        let state = self.db.lock();
        let target = sorted(state.target.clone());
        let (old, new) = (target == sorted(self.transfer.old.clone()), target == self.transfer.new);
        let ours = state.receipts.len();
        assert!(if ours == 1 { new } else { old }, "the target is old or new as its receipt says: {context}");
        assert_eq!(state.publications as usize, ours, "{context}");
        let mine = self.invocation_key();
        let holder = state.custody.filter(|custody| custody.held).map(|custody| custody.holder);
        let held_there = holder.is_some() && holder == mine;
        let held_here = mine.is_some_and(|mine| self.store.holders().contains(&mine));
        let staged = state.tables.len();
        drop(state);
        match ended {
            Ended::Died => self.inspectable(&context),
            Ended::With(End::Succeeded { rows, .. }) => {
                assert_eq!((ours, *rows), (1, self.transfer.rows()), "{context}");
                assert_eq!(self.db.lock().evidence.len(), 1, "{context}");
                assert_eq!((held_there, held_here, staged), (false, false, 0), "{context}");
                self.no_files(&context);
            }
            Ended::With(End::ReextractRequired(_)) => {
                assert_eq!(ours, 0, "{context}");
                assert_eq!((held_there, held_here, staged), (false, false, 0), "{context}");
                self.no_files(&context);
            }
            Ended::With(End::Refused(_)) => {
                assert_eq!((held_there, held_here), (false, false), "{context}");
                assert!(staged == 0 || !self.alone, "{context}");
            }
            Ended::With(_) => self.inspectable(&context),
        }
    }

    /// The holder that the run is, once it is frozen.
    fn invocation_key(&self) -> Option<Digest> {
        let frozen = Records::new(self.store.records(&self.run_key())).last(FROZEN).unwrap()?;
        Some(Frozen::from_document(&frozen).unwrap().identity.invocation_key())
    }

    fn no_files(&self, context: &str) {
        let chunks = self.root.path().join("chunks");
        let left = std::fs::read_dir(chunks).map(Iterator::count).unwrap_or(0);
        assert_eq!(left, 0, "chunk files: {context}");
        self.inspectable(context);
    }

    /// A person can always look at a run that left something.
    fn inspectable(&self, context: &str) {
        if self.store.records(&self.run_key()).is_empty() {
            return;
        }
        let quiet = Faults::default();
        let journal = self.store.copy().open(Digest::of(b"inspector"), &quiet);
        let inspection = inspect(&journal, &self.run_id).unwrap_or_else(|error| panic!("{error}: {context}"));
        assert!(inspection.document.get("state").and_then(Json::as_str).is_some(), "{context}");
        let mine = self.invocation_key();
        let held = mine.is_some_and(|mine| self.store.holders().contains(&mine));
        assert_eq!(inspection.custody_held, held, "{context}");
        let receipt = inspection.receipt(&self.run_id);
        assert_eq!(Receipt::parse(&receipt.encode(), &RunTag::of(&self.run_id)).as_ref(), Ok(&receipt), "{context}");
        assert_eq!(receipt.plan, Some(Digest::of(b"frozen plan")), "{context}");
    }

    /// The calls of a run without faults.
    pub(super) fn calls(transfer: &Transfer) -> Vec<Site> {
        let simulation = Simulation::new(transfer);
        let rounds = simulation.settle();
        assert!(matches!(rounds[..], [Ended::With(End::Succeeded { .. })]), "{rounds:#?}");
        simulation.faults.trace()
    }

    pub(super) fn inject(&self, site: &Site, fault: Fault) {
        self.faults.plan(site.clone(), fault);
    }
}
