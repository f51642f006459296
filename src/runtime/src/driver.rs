//! The driver: one run from its first look to custody released, and what each end of it means.

mod resume;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use contract::canon::Json;
use contract::capacity as space;
use contract::custody::ReleaseReason;
use contract::digest::Digest;
use contract::error::{Fate, PortError, Refusal};
use contract::manifest::Plan;
use contract::port::journal::Journal;
use contract::port::source::{Source, SourceAdmission, SourceFactory};
use contract::port::target::Target;
use contract::port::world::World;
use contract::transfer::run::{RunState, kind};
use contract::transfer::{TransferEvent, TransferState};
use contract::worker::Stage;
use tokio_util::sync::CancellationToken;

use crate::admit;
use crate::capacity;
use crate::chunk::ImportContext;
use crate::claim::{self, Unclaimed};
use crate::context::{RunContext, run_key, spool};
use crate::evidence;
use crate::frozen::{Claimed, Frozen};
use crate::journal::JournalHandle;
use crate::observations::Observations;
use crate::pipeline;
use crate::progress::Progress;
use crate::publish;
use crate::records::{self, ADMISSION, FAILURE};
use crate::report::{End, Outcome};
use crate::sealed::{self, Sealed};
use crate::settle;

use self::resume::Unloaded;

/// How long publication waits for its applocks, milliseconds (contract.md 6.5).
const PUBLICATION_LOCK_TIMEOUT_MS: u32 = 300_000;

/// Which part of a run to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Run,
    /// Observe and store findings.
    Admit,
    /// Up to the sealed end of source.
    Extract,
    /// From the sealed end on; the source is never opened.
    Publish,
}

/// What a run needs.
#[derive(Debug)]
pub struct Request {
    /// The plan.
    pub plan: Plan,
    /// The run's id.
    pub run_id: String,
    /// Folder of journal and chunk files.
    pub root: PathBuf,
    /// The part to do.
    pub scope: Scope,
    /// Cancelled when the process is asked to stop.
    pub stop: CancellationToken,
    /// Counters for a progress bar.
    pub progress: Progress,
    /// Digest of the frozen plan that `plan` was read from, where the caller has one; journaled for receipts.
    pub plan_document: Option<Digest>,
}

/// Runs one transfer. It never fails: every end is an [`Outcome`].
pub async fn run<F: SourceFactory, T: Target, W: World, J: Journal + 'static>(
    request: Request,
    factory: F,
    target: T,
    world: W,
    journal: J,
) -> Outcome {
    let progress = request.progress.clone();
    let observations = Observations::default();
    let run_id = request.run_id.clone();
    let driver = Driver::new(request, factory, target, world, journal, observations.clone());
    let context = driver.context();
    // Why boxed: the future of a whole run is large, and callers hold it on their stack.
    let end = Box::pin(driver.drive()).await;
    progress.enter(Stage::Ended);
    let said = (context.journal.header().epoch, context.facts().await);
    Outcome::new(run_id, end, said, progress.read(), &observations)
}

pub(crate) struct Driver<F, T, W> {
    context: Arc<RunContext<T, W>>,
    factory: F,
    scope: Scope,
}

impl<F: SourceFactory, T: Target, W: World> Driver<F, T, W> {
    pub(crate) fn new<J: Journal + 'static>(
        request: Request,
        factory: F,
        target: T,
        world: W,
        journal: J,
        observations: Observations,
    ) -> Self {
        let run_key = run_key(&request.run_id);
        let context = RunContext {
            plan: Arc::new(request.plan),
            spool: spool(&request.root, &run_key),
            run_id: request.run_id,
            state: Mutex::new(RunState::default()),
            run_key,
            plan_document: request.plan_document,
            stop: request.stop,
            target: Arc::new(target),
            world: Arc::new(world),
            journal: JournalHandle::spawn(journal),
            progress: request.progress,
            observations,
            publication_lock_timeout_ms: PUBLICATION_LOCK_TIMEOUT_MS,
        };
        Driver { context: Arc::new(context), factory, scope: request.scope }
    }

    pub(crate) fn context(&self) -> Arc<RunContext<T, W>> {
        Arc::clone(&self.context)
    }

    pub(crate) async fn drive(self) -> End {
        match self.load().await {
            Err(Unloaded::Unreadable(error)) => End::CustodyUnknown { error, cleanup: None },
            // Nothing is done for this plan; what the run holds under its own stays.
            Err(Unloaded::OtherPlan(frozen, error)) => match self.context.holds(&frozen).await {
                Ok(false) => End::Refused(error),
                Ok(true) | Err(_) => End::CustodyUnknown { error, cleanup: None },
            },
            Ok(None) => self.begin().await,
            Ok(Some(frozen)) => self.resume(frozen).await,
        }
    }

    /// A run that nobody began.
    async fn begin(self) -> End {
        if self.scope == Scope::Publish {
            return End::Refused(nothing_sealed());
        }
        self.context.progress.enter(Stage::Admitting);
        let (session, admission, frozen) = match self.context.until_stopped(self.admit()).await {
            Ok(admitted) => admitted,
            Err(error) => return End::Refused(error),
        };
        if self.scope == Scope::Admit {
            session.cancel().await;
            return self.admitted(&frozen).await;
        }
        self.extract(session, admission, frozen).await
    }

    /// Stores what admission found. It is advice: extraction looks again.
    async fn admitted(&self, frozen: &Frozen) -> End {
        let profile = frozen.profile.as_ref().map(|profile| profile.sha256.as_str());
        let findings = Json::object([
            ("target_identity", Json::from(frozen.operation.target_identity)),
            ("target_fingerprint", Json::from(frozen.target_fingerprint)),
            ("columns", Json::from(frozen.columns.len() as u64)),
            ("source_snapshot_profile_sha256", Json::from(profile)),
            ("at", Json::from(self.context.now())),
        ]);
        let run = &self.context.run_key;
        let mut batch = vec![records::next(run, ADMISSION, "admission", &findings)];
        batch.extend(records::plan(run, self.context.plan_document));
        match self.context.record(batch).await {
            Ok(()) => {
                End::Admitted { target_identity: frozen.operation.target_identity, columns: frozen.columns.len() }
            }
            Err(error) => End::Refused(error),
        }
    }

    /// Target, space and source, in this order; nothing is changed anywhere.
    async fn admit(&self) -> Result<(F::Session, SourceAdmission, Frozen), PortError> {
        let context = &self.context;
        let request = context.plan.target_request();
        let seen = context.target.observe(&request).await?;
        admit::target(&seen)?;
        space::admit_spool(&context.plan.limits, context.spool.free_bytes()?)?;
        let room = context.target.capacity(&request).await?;
        space::admit_target(&context.plan.limits, &room)?;
        let mut session = self.factory.connect().await?;
        let admission = match session.admit(&context.plan.source_request()).await {
            Ok(admission) => admission,
            Err(error) => {
                session.cancel().await;
                return Err(error);
            }
        };
        match admit::freeze(&context.plan, &context.run_id, &seen, &admission, context.now()) {
            Ok(frozen) => Ok((session, admission, frozen)),
            Err(refusal) => {
                session.cancel().await;
                Err(admit::refused(refusal))
            }
        }
    }

    async fn extract(self, session: F::Session, admission: SourceAdmission, frozen: Frozen) -> End {
        if let Err(error) = claim::intend(&self.context, &frozen).await {
            session.cancel().await;
            return match error.fate {
                Fate::NotDone => End::Refused(error),
                // Our own record of custody may stand; the next process reads whether it does.
                Fate::Unknown => End::CustodyUnknown { error, cleanup: None },
            };
        }
        let claimed = match claim::claim(&self.context, &frozen).await {
            Ok(claimed) => claimed,
            Err(unclaimed) => {
                session.cancel().await;
                return self.after_claim_failure(&frozen, unclaimed).await;
            }
        };
        self.context.progress.enter(Stage::Extracting);
        match self.read(session, &admission, &frozen, &claimed).await {
            Ok(sealed) if self.scope == Scope::Extract => End::Extracted { rows: sealed.rows },
            Ok(sealed) => self.publish(&frozen, &claimed, &sealed).await,
            Err(error) => self.settle(&frozen, &claimed, error).await,
        }
    }

    /// Reads the source to its proved end and seals it.
    async fn read(
        &self,
        mut session: F::Session,
        admission: &SourceAdmission,
        frozen: &Frozen,
        claimed: &Claimed,
    ) -> Result<Sealed, PortError> {
        let context = &self.context;
        if let Err(error) = capacity::require(context, frozen).await {
            session.cancel().await;
            return Err(error);
        }
        let encoder = match context.spool.create().and_then(|()| frozen.encoder(context.plan.limits.max_row_bytes)) {
            Ok(encoder) => encoder,
            Err(error) => {
                session.cancel().await;
                return Err(error);
            }
        };
        let query_id = match context.world.random() {
            Ok(random) => format!("dpone-native-{}", &random.to_string()[..32]),
            Err(error) => {
                session.cancel().await;
                return Err(error);
            }
        };
        if let Err(error) = context.advance(TransferEvent::ExtractionBegan, Json::Null).await {
            session.cancel().await;
            return Err(error);
        }
        if let Err(error) = session.open(admission, &query_id).await {
            session.cancel().await;
            return Err(error);
        }
        let import =
            Arc::new(ImportContext { run: Arc::clone(context), frozen: frozen.clone(), fence: context.fence(frozen) });
        let extracted = pipeline::run(session, import, Arc::new(encoder), context.plan.limits, &context.stop).await?;
        let authority = claim::authority(context, frozen, claimed)?;
        let metadata = sealed::metadata(frozen, claimed, &authority, extracted.eof.descriptor.as_deref())?;
        let sealed = Sealed::new(extracted.receipts, metadata, context.now())?;
        // Before anything is prepared: what the source counted is what stands in verified stages.
        if sealed.rows != extracted.rows {
            return Err(PortError::from(Refusal::new(
                "mssql_native.source_snapshot_row_count_mismatch",
                "the verified stages hold other rows than the source sent: nothing is published",
            )));
        }
        let run = &context.run_key;
        let mut batch = vec![records::once(run, kind::COMPLETION, "complete", &sealed.document())];
        batch.extend(evidence::source_records(run, admission, &query_id, &extracted.eof)?);
        batch.push(records::event(run, TransferEvent::EofSealed, sealed.facts()));
        context.record(batch).await?;
        Ok(sealed)
    }

    async fn publish(&self, frozen: &Frozen, claimed: &Claimed, sealed: &Sealed) -> End {
        match publish::publish(&self.context, frozen, claimed, sealed).await {
            Ok(receipt) => End::Succeeded { rows: sealed.rows, chunks: sealed.receipts.len() as u64, receipt },
            Err(error) => {
                self.note_failure(&error).await;
                if let Err(unreadable) = self.context.refresh().await {
                    tracing::warn!(code = %unreadable.code, "the journal could not be read again");
                    return End::OutcomeUnknown(error);
                }
                if self.state() == Some(TransferState::Failed) {
                    return self.settle(frozen, claimed, error).await;
                }
                self.after_eof(error)
            }
        }
    }

    fn state(&self) -> Option<TransferState> {
        self.context.transfer().map(|transfer| transfer.state)
    }

    /// After the end of source nothing is retired by itself: what is not published stays for `publish` or a person.
    fn after_eof(&self, error: PortError) -> End {
        let confirmed = self.context.look(|state| state.facts(TransferEvent::PublicationConfirmed.text()).cloned());
        let receipt = confirmed.and_then(|document| publish::receipt_from(&document).ok());
        match (receipt, self.state()) {
            (Some(receipt), _) => End::Unfinished { receipt, error },
            (None, Some(TransferState::OutcomeUnknown | TransferState::Publishing)) => End::OutcomeUnknown(error),
            (None, _) => End::Held(error),
        }
    }

    /// A refused claim left nothing of ours at the target; one that was not answered or not recorded may stand there, and
    /// repeating it settles the question if it is answered now.
    async fn after_claim_failure(&self, frozen: &Frozen, unclaimed: Unclaimed) -> End {
        let error = match unclaimed {
            Unclaimed::Held(error) | Unclaimed::NotMade(error) => return self.forget_claim(frozen, error).await,
            Unclaimed::Open(error) => error,
        };
        self.note_failure(&error).await;
        if let Err(cleanup) = self.context.refresh().await {
            return End::CustodyUnknown { error, cleanup: Some(cleanup) };
        }
        // After an answer that was lost behind its record the claim is known already.
        let claimed = match self.claimed() {
            Ok(claimed) => Ok(claimed),
            Err(_) => claim::claim(&self.context, frozen).await,
        };
        match claimed {
            Ok(claimed) => self.settle(frozen, &claimed, error).await,
            // Even where another holds the target: the first request may still arrive, and only a later opener is fenced
            // off from it.
            Err(again) => End::CustodyUnknown { error, cleanup: Some(again.into_error()) },
        }
    }

    /// Clears our own record of a claim that was proved not to be made.
    async fn forget_claim(&self, frozen: &Frozen, error: PortError) -> End {
        self.note_failure(&error).await;
        let reason = ReleaseReason::NonpublicationAllStagesRetired;
        match settle::release_local(&self.context, frozen, reason).await {
            Ok(()) => End::Refused(error),
            Err(cleanup) => End::CustodyUnknown { error, cleanup: Some(cleanup) },
        }
    }

    /// Settles what can be proved; the first error stays the one that is reported.
    async fn settle(&self, frozen: &Frozen, claimed: &Claimed, error: PortError) -> End {
        self.note_failure(&error).await;
        match settle::settle(&self.context, frozen, claimed).await {
            Ok(()) => End::ReextractRequired(error),
            Err(cleanup) => End::CustodyUnknown { error, cleanup: Some(cleanup) },
        }
    }

    async fn note_failure(&self, error: &PortError) {
        let fate = match error.fate {
            Fate::NotDone => "not_done",
            Fate::Unknown => "unknown",
        };
        let payload = Json::object([
            ("code", Json::from(error.code.as_str())),
            ("fate", Json::from(fate)),
            ("at", Json::from(self.context.now())),
        ]);
        let record = records::next(&self.context.run_key, FAILURE, "failure", &payload);
        if let Err(failed) = self.context.record(vec![record]).await {
            tracing::warn!(code = %failed.code, "the failure could not be journaled");
        }
    }
}

fn nothing_sealed() -> PortError {
    PortError::from(Refusal::new(
        "mssql_native.source_EOF_required",
        "this run has no sealed end of source: there is nothing to publish",
    ))
}
