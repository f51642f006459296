//! The driver: one run from its first look to custody released, and what each end of it means.

use std::path::PathBuf;
use std::sync::Arc;

use contract::canon::Json;
use contract::capacity as space;
use contract::civil::Instant;
use contract::code;
use contract::custody::CustodyRecord;
use contract::encode::RowEncoder;
use contract::error::{Fate, PortError, Refusal};
use contract::layout::WireLayout;
use contract::manifest::Plan;
use contract::names;
use contract::port::journal::Journal;
use contract::port::source::{Source, SourceAdmission, SourceFactory};
use contract::port::target::{ClaimOutcome, Receipt, Target};
use contract::port::world::World;
use contract::recovery::plan::{
    Bindings, Operation, PlanWindow, RecoveryPlan, authority, state_store_binding, work_root_binding,
};
use contract::source_type::SourceType;
use tokio_util::sync::CancellationToken;

use crate::admit;
use crate::capacity;
use crate::chunk::ImportContext;
use crate::context::{RunContext, run_key, spool};
use crate::frozen::{Claimed, Frozen};
use crate::journal::JournalHandle;
use crate::observations::Observations;
use crate::pipeline;
use crate::progress::{Progress, Stage};
use crate::publish;
use crate::records::{
    self, ADMISSION, CLAIMED, COMPLETION, CUSTODY, FAILURE, FROZEN, NONPUBLICATION, RECOVERY_PLAN, Records,
};
use crate::report::{End, Outcome};
use crate::sealed::{self, Sealed};
use crate::settle;

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
    let end = match driver {
        // Why boxed: the future of a whole run is large, and callers hold it on their stack.
        Ok(driver) => Box::pin(driver.drive()).await,
        Err(error) => End::Refused(error),
    };
    progress.enter(Stage::Ended);
    Outcome::new(run_id, end, progress.read(), &observations)
}

struct Driver<F, T, W> {
    context: Arc<RunContext<T, W>>,
    factory: F,
    scope: Scope,
    stop: CancellationToken,
}

impl<F: SourceFactory, T: Target, W: World> Driver<F, T, W> {
    fn new<J: Journal + 'static>(
        request: Request,
        factory: F,
        target: T,
        world: W,
        journal: J,
        observations: Observations,
    ) -> Result<Self, PortError> {
        let run_key = run_key(&request.run_id);
        let context = RunContext {
            plan: Arc::new(request.plan),
            spool: spool(&request.root, &run_key)?,
            run_id: request.run_id,
            run_key,
            target: Arc::new(target),
            world: Arc::new(world),
            journal: JournalHandle::spawn(journal),
            progress: request.progress,
            observations,
            publication_lock_timeout_ms: PUBLICATION_LOCK_TIMEOUT_MS,
        };
        Ok(Driver { context: Arc::new(context), factory, scope: request.scope, stop: request.stop })
    }

    async fn drive(self) -> End {
        let records = match self.context.records().await {
            Ok(records) => records,
            Err(error) => return End::Refused(error),
        };
        match records.one(FROZEN) {
            Err(error) => End::Refused(error),
            Ok(None) => self.begin().await,
            Ok(Some(document)) => match self.continued(&document) {
                Ok(frozen) => self.resume(frozen, &records).await,
                Err(error) => End::Refused(error),
            },
        }
    }

    /// The frozen run of an earlier process, if it is the same plan.
    fn continued(&self, document: &Json) -> Result<Frozen, PortError> {
        let frozen = Frozen::from_document(document)?;
        if frozen.plan_sha256 == admit::plan_digest(&self.context.plan) {
            return Ok(frozen);
        }
        Err(PortError::from(Refusal::new(
            "mssql_native.configuration_changed",
            "this run id belongs to another manifest or interval: use the original file, or a new run id",
        )))
    }

    /// A run that nobody began.
    async fn begin(self) -> End {
        if self.scope == Scope::Publish {
            return End::Refused(nothing_sealed());
        }
        self.context.progress.enter(Stage::Admitting);
        let (session, admission, frozen) = match self.admit().await {
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
        let record = records::next(&self.context.run_key, ADMISSION, "admission", &findings);
        match self.context.append(vec![record]).await {
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
        admit::target(&context.plan, &seen)?;
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
        let claimed = match self.claim(&frozen).await {
            Ok(claimed) => claimed,
            Err(error) => {
                session.cancel().await;
                return self.after_claim_failure(&frozen, error).await;
            }
        };
        self.context.progress.enter(Stage::Extracting);
        match self.read(session, &admission, &frozen, &claimed).await {
            Ok(sealed) if self.scope == Scope::Extract => End::Extracted { rows: sealed.rows },
            Ok(sealed) => self.publish(&frozen, &claimed, &sealed).await,
            Err(error) => self.settle(&frozen, error).await,
        }
    }

    /// Custody at both places: ours first as an intent, then the target's in one batch.
    async fn claim(&self, frozen: &Frozen) -> Result<Claimed, PortError> {
        let context = &self.context;
        let target_id = &frozen.identity.plan.target_id;
        let present = context.custody(target_id).await?;
        let (held, _) = CustodyRecord::claim(
            present.as_ref(),
            contract::digest::Digest::of(target_id.as_bytes()),
            frozen.identity.invocation_key(),
            context.journal.header().epoch,
        )?;
        context
            .append(vec![
                records::once(&context.run_key, FROZEN, "run", &frozen.document()),
                records::shared(CUSTODY, &names::custody_key(target_id), &held.document()),
            ])
            .await?;
        match context.target.claim(&settle::claim(context, frozen)).await? {
            ClaimOutcome::Claimed { generation, operation_epoch, custody_epoch, claimed_at } => {
                let claimed = Claimed { generation, operation_epoch, custody_epoch, claimed_at };
                let plan = self.recovery_plan(frozen, &claimed)?;
                let key = names::recovery_plan_key(frozen.identity.invocation_key());
                context
                    .append(vec![
                        records::once(&context.run_key, CLAIMED, "claim", &claimed.document()),
                        records::once(&context.run_key, RECOVERY_PLAN, &key, &plan),
                    ])
                    .await?;
                Ok(claimed)
            }
            ClaimOutcome::Held { .. } => Err(PortError::from(Refusal::new(
                code::CUSTODY_HELD,
                "another run holds this target: inspect and settle it first",
            ))),
            ClaimOutcome::Fenced => Err(settle::fenced()),
        }
    }

    fn recovery_plan(&self, frozen: &Frozen, claimed: &Claimed) -> Result<Json, PortError> {
        let plan = RecoveryPlan {
            invocation_id: frozen.identity.invocation_key(),
            schema: frozen.wire_columns(),
            window: self.context.plan.window().map(|window| PlanWindow {
                column: window.column().to_string(),
                start: window.start(),
                end: window.end(),
            }),
            authority: self.authority(frozen, claimed)?,
        };
        let payload = plan.payload();
        contract::canon::decode_object(&payload).map(Json::Object).map_err(|_| records::invalid())
    }

    fn authority(&self, frozen: &Frozen, claimed: &Claimed) -> Result<Json, PortError> {
        let journal_id = &self.context.journal.header().journal_id;
        let o = &frozen.operation;
        let bindings = Bindings {
            authored_route_sha256: o.route_fingerprint,
            verification_identity_sha256: frozen.identity.invocation_key(),
            target_connection_sha256: o.target_identity,
            state_store_sha256: state_store_binding(journal_id),
            work_root_sha256: work_root_binding(journal_id),
        };
        let positive = |value: i64| u64::try_from(value).map_err(|_| records::invalid());
        let operation = Operation {
            invocation: admit::invocation(&self.context.plan, &self.context.run_id, frozen)?,
            target_identity: o.target_identity,
            route_fingerprint: o.route_fingerprint,
            load_id: o.load_id.clone(),
            target_database: frozen.database.clone(),
            target_schema: frozen.request.table.schema.clone(),
            target_table: frozen.request.table.table.clone(),
            strategy: o.strategy.clone(),
            generation: positive(claimed.generation)?,
            is_current_generation: true,
            operation_key: o.operation_key,
            scope_hash: o.scope_hash,
            owner_digest: o.owner_digest,
            epoch: positive(claimed.operation_epoch)?,
            lease_expires_at: Instant::parse(&claimed.claimed_at)
                .and_then(|at| at.checked_add_micros(i64::from(settle::LEASE_SECONDS) * 1_000_000)),
        };
        Ok(authority(&bindings, &operation))
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
        let encoder = match encoder(frozen, context.plan.limits.max_row_bytes) {
            Ok(encoder) => encoder,
            Err(error) => {
                session.cancel().await;
                return Err(error);
            }
        };
        let query_id = format!("dpone-native-{}", &context.world.random()?.to_string()[..32]);
        if let Err(error) = session.open(admission, &query_id).await {
            session.cancel().await;
            return Err(error);
        }
        let import = Arc::new(ImportContext {
            target: Arc::clone(&context.target),
            world: Arc::clone(&context.world),
            journal: context.journal.clone(),
            spool: context.spool.clone(),
            run_key: context.run_key.clone(),
            identity: frozen.identity.clone(),
            staging_schema: frozen.request.staging_schema.clone(),
            database: frozen.database.clone(),
            columns: frozen.columns.clone(),
            fence: context.fence(frozen),
            stage_allocated_bytes_max: context.plan.limits.stage_allocated_bytes_stop_threshold,
            progress: context.progress.clone(),
            observations: context.observations.clone(),
        });
        let extracted = pipeline::run(session, import, Arc::new(encoder), context.plan.limits, &self.stop).await?;
        let authority = self.authority(frozen, claimed)?;
        let metadata = sealed::metadata(frozen, claimed, &authority, extracted.eof.descriptor.as_deref())?;
        let sealed = Sealed::new(extracted.receipts, metadata, context.now())?;
        // Before anything is prepared: what the source counted is what stands in verified stages.
        if sealed.rows != extracted.rows {
            return Err(PortError::from(Refusal::new(
                "mssql_native.source_snapshot_row_count_mismatch",
                "the verified stages hold other rows than the source sent: nothing is published",
            )));
        }
        context.append(vec![records::once(&context.run_key, COMPLETION, "complete", &sealed.document())]).await?;
        Ok(sealed)
    }

    async fn publish(&self, frozen: &Frozen, claimed: &Claimed, sealed: &Sealed) -> End {
        match publish::publish(&self.context, frozen, claimed, sealed).await {
            Ok(receipt) => End::Succeeded { rows: sealed.rows, chunks: sealed.receipts.len() as u64, receipt },
            Err(error) => {
                self.note_failure(&error).await;
                self.after_eof(error).await
            }
        }
    }

    /// After the end of source nothing is retired by itself: what is not published stays for `publish` or a person.
    async fn after_eof(&self, error: PortError) -> End {
        let receipt = match self.context.records().await.and_then(|records| records.one(records::PUBLISHED)) {
            Ok(Some(document)) => publish::receipt_from(&document).ok(),
            _ => None,
        };
        match receipt {
            Some(receipt) => End::Unfinished { receipt, error },
            None if error.fate == Fate::Unknown => End::OutcomeUnknown(error),
            None => End::Held(error),
        }
    }

    /// A run that an earlier process began.
    async fn resume(self, frozen: Frozen, records: &Records) -> End {
        let sealed = match Sealed::restore(records, &frozen) {
            Ok(sealed) => sealed,
            Err(error) => return End::Held(error),
        };
        let Some(sealed) = sealed else {
            if self.settled(&frozen).await {
                return End::ReextractRequired(already_settled());
            }
            if self.scope == Scope::Publish {
                return End::Held(nothing_sealed());
            }
            let interrupted = PortError::from(Refusal::new(
                "mssql_native.pre_eof_reextract_required",
                "this run ended before its source did: it was settled; start a new run with a new id",
            ));
            return self.settle(&frozen, interrupted).await;
        };
        let claimed = match records.one(CLAIMED).and_then(|document| {
            document.map_or_else(|| Err(records::invalid()), |document| Claimed::from_document(&document))
        }) {
            Ok(claimed) => claimed,
            Err(error) => return End::Held(error),
        };
        if let Some(receipt) = self.finished(&frozen, records).await {
            return End::Succeeded { rows: sealed.rows, chunks: sealed.receipts.len() as u64, receipt };
        }
        match self.scope {
            Scope::Extract | Scope::Admit => End::Extracted { rows: sealed.rows },
            Scope::Run | Scope::Publish => {
                if let Err(error) = self.context.raise_fence(&frozen).await {
                    return self.after_eof(error).await;
                }
                self.publish(&frozen, &claimed, &sealed).await
            }
        }
    }

    /// The receipt of a run that has nothing left to do.
    async fn finished(&self, frozen: &Frozen, records: &Records) -> Option<Receipt> {
        let released = !self.holds(frozen).await;
        let document = records.one(records::PUBLISHED).ok().flatten()?;
        if released { publish::receipt_from(&document).ok() } else { None }
    }

    /// Whether the journal says that this run holds its target.
    async fn holds(&self, frozen: &Frozen) -> bool {
        let custody = self.context.custody(&frozen.identity.plan.target_id).await;
        match custody {
            Ok(Some(record)) => matches!(
                record.state,
                contract::custody::CustodyState::Held { holder, .. } if holder == frozen.identity.invocation_key()
            ),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    async fn settled(&self, frozen: &Frozen) -> bool {
        let proved = self.context.records().await.is_ok_and(|records| records.has(NONPUBLICATION));
        proved && !self.holds(frozen).await
    }

    /// A claim that was refused leaves nothing of ours at the target; one that was not answered may have been made.
    async fn after_claim_failure(&self, frozen: &Frozen, error: PortError) -> End {
        self.note_failure(&error).await;
        let frozen_here = self.context.records().await.is_ok_and(|records| records.has(FROZEN));
        if !frozen_here {
            return End::Refused(error);
        }
        if error.fate == Fate::NotDone {
            return match settle::settle(&self.context, frozen).await {
                Ok(()) => End::Refused(error),
                Err(cleanup) => End::CustodyUnknown { error, cleanup: Some(cleanup) },
            };
        }
        self.settle(frozen, error).await
    }

    /// Settles what can be proved; the first error stays the one that is reported.
    async fn settle(&self, frozen: &Frozen, error: PortError) -> End {
        self.note_failure(&error).await;
        match settle::settle(&self.context, frozen).await {
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
        if let Err(failed) = self.context.append(vec![record]).await {
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

fn already_settled() -> PortError {
    PortError::from(Refusal::new(
        "mssql_native.pre_eof_reextract_required",
        "this run was settled without publication: start a new run with a new id",
    ))
}

fn encoder(frozen: &Frozen, max_row_bytes: u64) -> Result<RowEncoder, PortError> {
    let wire = frozen.wire_columns();
    let layout = WireLayout::new(wire.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    let sources =
        frozen.source_types.iter().map(|text| SourceType::parse(text)).collect::<Result<Vec<_>, Refusal>>()?;
    Ok(RowEncoder::new(layout, sources, max_row_bytes)?)
}
