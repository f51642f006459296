//! A run that an earlier process began: what its journal says, and what follows from it.
//!
//! | the journal says | what is done | end |
//! |---|---|---|
//! | frozen, no claim recorded, custody ours | the claim is repeated, then settled | 4, or 1 if another holds the target |
//! | claimed, no end of source | settled; the query is never opened again | 4 |
//! | end of source sealed | published and finished, receipt first where a publication was begun | 0 |
//! | publication in doubt, its absence proved | settled | 4 |
//! | nothing left to do | the same answer again | 0 or 4 |
//!
//! Whatever cannot be proved on the way leaves everything as it is: 3.

use contract::custody::ReleaseReason;
use contract::error::{PortError, Refusal};
use contract::port::source::SourceFactory;
use contract::port::target::Target;
use contract::port::world::World;
use contract::transfer::{TransferEvent, TransferState};

use super::{Driver, Scope, nothing_sealed};
use crate::admit;
use crate::claim::{self, Unclaimed};
use crate::frozen::{Claimed, Frozen};
use crate::publish;
use crate::records::{self, FROZEN};
use crate::report::End;
use crate::sealed::Sealed;
use crate::settle;

/// Why an earlier process's run could not be taken up.
pub(super) enum Unloaded {
    /// The journal cannot be read, so nobody knows what the run holds.
    Unreadable(PortError),
    /// The run id belongs to another plan.
    OtherPlan(Box<Frozen>, PortError),
}

impl<F: SourceFactory, T: Target, W: World> Driver<F, T, W> {
    /// What earlier processes left: the frozen run, and its state through the same fold as in the live run.
    pub(super) async fn load(&self) -> Result<Option<Frozen>, Unloaded> {
        let records = self.context.records().await.map_err(Unloaded::Unreadable)?;
        let document = records.last(FROZEN).map_err(Unloaded::Unreadable)?;
        let Some(document) = document else { return Ok(None) };
        let frozen = Frozen::from_document(&document).map_err(Unloaded::Unreadable)?;
        if frozen.plan_sha256 != admit::plan_digest(&self.context.plan) {
            let refusal = Refusal::new(
                "mssql_native.configuration_changed",
                "this run id belongs to another manifest or interval: use the original file, or a new run id",
            );
            return Err(Unloaded::OtherPlan(Box::new(frozen), PortError::from(refusal)));
        }
        self.context.refresh().await.map_err(Unloaded::Unreadable)?;
        Ok(Some(frozen))
    }

    /// A run that an earlier process began.
    pub(super) async fn resume(self, frozen: Frozen) -> End {
        let Some(transfer) = self.context.transfer() else { return self.resume_unclaimed(&frozen).await };
        let claimed = match self.claimed() {
            Ok(claimed) => claimed,
            Err(error) => return End::Held(error),
        };
        let sealed = match self.context.look(|state| Sealed::restore(state, &frozen)) {
            Ok(sealed) => sealed,
            Err(error) => return End::Held(error),
        };
        if transfer.is_finished() {
            return self.finished(&frozen, transfer.state, sealed).await;
        }
        if let Err(error) = self.context.raise_fence(&frozen).await {
            return if sealed.is_some() { self.after_eof(error) } else { End::CustodyUnknown { error, cleanup: None } };
        }
        match sealed {
            Some(sealed) if transfer.state != TransferState::ReextractRequired => match self.scope {
                Scope::Extract | Scope::Admit => End::Extracted { rows: sealed.rows },
                Scope::Run | Scope::Publish if transfer.state == TransferState::Failed => {
                    self.settle(&frozen, &claimed, publish::absence_proved()).await
                }
                Scope::Run | Scope::Publish => self.publish(&frozen, &claimed, &sealed).await,
            },
            _ if self.scope == Scope::Publish => End::Held(nothing_sealed()),
            _ => self.settle(&frozen, &claimed, interrupted()).await,
        }
    }

    /// A frozen run without a recorded claim: whether the claim was made is decided by repeating it, then it is settled.
    async fn resume_unclaimed(&self, frozen: &Frozen) -> End {
        match self.context.holds(frozen).await {
            Ok(true) => {}
            Ok(false) => return End::ReextractRequired(interrupted()),
            Err(error) => return End::CustodyUnknown { error, cleanup: None },
        }
        if self.scope == Scope::Publish {
            return End::Held(nothing_sealed());
        }
        // Why first: a claim of the earlier process that still arrives is then refused.
        if let Err(error) = self.context.raise_fence(frozen).await {
            return End::CustodyUnknown { error, cleanup: None };
        }
        match claim::claim(&self.context, frozen).await {
            Ok(claimed) => self.settle(frozen, &claimed, interrupted()).await,
            Err(Unclaimed::Held(error)) => self.forget_claim(frozen, error).await,
            Err(Unclaimed::NotMade(error) | Unclaimed::Open(error)) => {
                self.note_failure(&error).await;
                End::CustodyUnknown { error, cleanup: None }
            }
        }
    }

    /// A run that has nothing left to do.
    async fn finished(&self, frozen: &Frozen, state: TransferState, sealed: Option<Sealed>) -> End {
        // A crash near the end leaves our own custody record behind, which follows the target's, or chunk files.
        let reason = match (state, &sealed) {
            (TransferState::Succeeded, Some(sealed)) if sealed.receipts.is_empty() => {
                ReleaseReason::EmptyCompletionCleanup
            }
            (TransferState::Succeeded, _) => ReleaseReason::PublishedCleanup,
            _ => ReleaseReason::NonpublicationAllStagesRetired,
        };
        let released = match self.context.holds(frozen).await {
            Ok(true) => settle::release_local(&self.context, frozen, reason).await,
            Ok(false) => self.context.spool.clear(),
            Err(error) => Err(error),
        };
        let confirmed = self.context.look(|state| state.facts(TransferEvent::PublicationConfirmed.text()).cloned());
        let receipt = match confirmed.map(|document| publish::receipt_from(&document)).transpose() {
            Ok(receipt) => receipt,
            Err(error) => return End::Held(error),
        };
        match (receipt, sealed, released) {
            (Some(receipt), Some(sealed), Ok(())) => {
                End::Succeeded { rows: sealed.rows, chunks: sealed.receipts.len() as u64, receipt }
            }
            (Some(receipt), _, Err(error)) => End::Unfinished { receipt, error },
            (_, _, Ok(())) => End::ReextractRequired(interrupted()),
            (None, _, Err(error)) => End::CustodyUnknown { error, cleanup: None },
        }
    }

    /// What the claim returned, from the journal.
    pub(super) fn claimed(&self) -> Result<Claimed, PortError> {
        let facts = self.context.look(|state| state.facts(TransferEvent::CustodyClaimed.text()).cloned());
        Claimed::from_document(&facts.ok_or_else(records::invalid)?)
    }
}

fn interrupted() -> PortError {
    PortError::from(Refusal::new(
        "mssql_native.pre_eof_reextract_required",
        "this run ended before its source did and is settled without publication: start a new run with a new id",
    ))
}
