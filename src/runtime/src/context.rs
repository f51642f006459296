//! What every step of a run shares: ports, plan, and the one state that each durable record advances.

use std::path::Path;
use std::sync::{Arc, Mutex};

use contract::canon::Json;
use contract::custody::CustodyRecord;
use contract::digest::Digest;
use contract::error::PortError;
use contract::manifest::Plan;
use contract::names;
use contract::port::journal::NewRecord;
use contract::port::target::{RunFence, Target};
use contract::port::world::World;
use contract::transfer::run::RunState;
use contract::transfer::{Transfer, TransferEvent};
use tokio_util::sync::CancellationToken;

use crate::facts::{self, RunFacts};
use crate::frozen::Frozen;
use crate::journal::JournalHandle;
use crate::observations::Observations;
use crate::progress::Progress;
use crate::records::{self, CUSTODY, Records};
use crate::spool::Spool;

/// One run under one opening of the journal.
#[derive(Debug)]
pub(crate) struct RunContext<T, W> {
    pub(crate) plan: Arc<Plan>,
    pub(crate) run_id: String,
    /// SHA-256 hex of the run id: the run's key in the journal and its folder of chunk files.
    pub(crate) run_key: String,
    /// Digest of the frozen plan, where one was given.
    pub(crate) plan_document: Option<Digest>,
    /// Cancelled when the process is asked to stop.
    pub(crate) stop: CancellationToken,
    pub(crate) target: Arc<T>,
    pub(crate) world: Arc<W>,
    pub(crate) journal: JournalHandle,
    pub(crate) state: Mutex<RunState>,
    pub(crate) spool: Spool,
    pub(crate) progress: Progress,
    pub(crate) observations: Observations,
    pub(crate) publication_lock_timeout_ms: u32,
}

/// The run's key in the journal.
pub(crate) fn run_key(run_id: &str) -> String {
    Digest::of(run_id.as_bytes()).to_string()
}

/// The folder of a run's chunk files.
pub(crate) fn spool(root: &Path, run_key: &str) -> Spool {
    Spool::new(root, &run_key[..32])
}

impl<T: Target, W: World> RunContext<T, W> {
    /// The time now as records carry it.
    pub(crate) fn now(&self) -> String {
        self.world.now().isoformat_z()
    }

    /// All records of the run.
    pub(crate) async fn records(&self) -> Result<Records, PortError> {
        self.journal.records(&self.run_key).await.map(Records::new)
    }

    /// What the journal says at this moment; never an error, because it is asked for at every end.
    pub(crate) async fn facts(&self) -> RunFacts {
        self.read_facts().await.unwrap_or_else(|error| {
            tracing::warn!(code = %error.code, "the journal could not be read for the receipt");
            RunFacts::UNKNOWN
        })
    }

    async fn read_facts(&self) -> Result<RunFacts, PortError> {
        let records = self.records().await?;
        let frozen = facts::frozen(&records)?;
        let holds = match &frozen {
            Some(frozen) => self.holds(frozen).await?,
            None => false,
        };
        RunFacts::read(&records, frozen.as_ref(), holds)
    }

    /// Whether the journal says that this run holds its target.
    pub(crate) async fn holds(&self, frozen: &Frozen) -> Result<bool, PortError> {
        let (kind, key) = facts::custody_key(frozen);
        facts::holds(frozen, self.journal.latest_shared(kind, &key).await?.as_ref())
    }

    /// Waits for `work`, unless the process is asked to stop: then `work` is dropped where it stands and its sessions
    /// with it, as if the process had died, and the run goes on from its journal.
    pub(crate) async fn until_stopped<R>(
        &self,
        work: impl Future<Output = Result<R, PortError>>,
    ) -> Result<R, PortError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(stopped()),
            result = work => result,
        }
    }

    /// Looks at the state.
    pub(crate) fn look<R>(&self, view: impl FnOnce(&RunState) -> R) -> R {
        match self.state.lock() {
            Ok(state) => view(&state),
            // A panic while the lock was held leaves a state that was applied whole or not at all.
            Err(poisoned) => view(&poisoned.into_inner()),
        }
    }

    /// The transfer's state, once its recovery plan is durable.
    pub(crate) fn transfer(&self) -> Option<Transfer> {
        self.look(RunState::transfer)
    }

    /// Steps the state, then makes the records durable; an effect follows only after this has returned.
    ///
    /// A record that the machines refuse is not written. Records of different attempts commute, so workers need no
    /// order among each other. After a failure the state may be ahead of the journal: whoever goes on calls
    /// [`Self::refresh`] first.
    pub(crate) async fn record(&self, batch: Vec<NewRecord>) -> Result<(), PortError> {
        {
            let mut state = self.state.lock().map_err(|_| records::invalid())?;
            for record in batch.iter().filter(|record| records::folds(record.kind)) {
                state.apply(record.kind, &record.payload)?;
            }
        }
        self.journal.append(batch).await.map(drop)
    }

    /// Takes the state from the journal again, so that what follows rests on what is durable and on nothing else.
    pub(crate) async fn refresh(&self) -> Result<(), PortError> {
        let durable = self.records().await?.fold()?;
        self.state.clear_poison();
        *self.state.lock().map_err(|_| records::invalid())? = durable;
        Ok(())
    }

    /// Records one transfer event.
    pub(crate) async fn advance(&self, event: TransferEvent, facts: Json) -> Result<(), PortError> {
        self.record(vec![records::event(&self.run_key, event, facts)]).await
    }

    /// This opener's fence for a frozen run.
    pub(crate) fn fence(&self, frozen: &Frozen) -> RunFence {
        let header = self.journal.header();
        RunFence {
            operation_key: frozen.operation.operation_key,
            epoch: header.epoch,
            // The journal checks the form of its header when it is opened.
            opener_nonce: header.opener_nonce.parse().unwrap_or(Digest::from_bytes([0; 32])),
        }
    }

    /// Makes this opener the one that may act at the target.
    pub(crate) async fn raise_fence(&self, frozen: &Frozen) -> Result<(), PortError> {
        if self.target.raise_fence(&frozen.request, &self.fence(frozen)).await? { Ok(()) } else { Err(fenced()) }
    }

    /// The local custody record of a target.
    pub(crate) async fn custody(&self, target_id: &str) -> Result<Option<CustodyRecord>, PortError> {
        let record = self.journal.latest_shared(CUSTODY, &names::custody_key(target_id)).await?;
        record.map(|record| CustodyRecord::decode(record.payload.as_bytes())).transpose().map_err(PortError::from)
    }
}

/// The refusal of an opener that is not the last one.
pub(crate) fn fenced() -> PortError {
    PortError::not_done(
        "native_transfer.run_fenced",
        "a later opener of this journal, or of a copy of it, has taken over: this process must not act; look at the other one",
    )
}

/// The end of a process that was asked to stop where it had nothing in flight.
pub(crate) fn stopped() -> PortError {
    PortError::not_done(
        "native_transfer.cancelled",
        "the process was asked to stop: nothing was in flight; start the same phase again with the same run id",
    )
}
