//! What the end of a pod means for its run: which pod is next, or rest.
//!
//! | the end | what follows |
//! |---|---|
//! | receipt | its state decides (one function per exit code below) |
//! | none of its containers ever started | the same phase, next try |
//! | dead, no readable receipt | `inspect`; an `admit` or `inspect` pod is simply repeated |
//! | the object or its container is gone | the same: journal lock, run fence and applocks decide, not we |

use super::codes::{self, Class};
use super::observation::{Receipt, Wish};
use super::state::{Cancel, Custody, Failure, Outcome, Publication, Rest, Run, Sealed, Tries, Worker, WorkerId};
use crate::crd::status::WorkerPhase;

/// Longest wait between two tries, seconds.
const BACKOFF_MAX_SECONDS: i64 = 300;

/// How a pod ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum End<'a> {
    /// With a receipt of its own run and phase.
    Receipt(&'a Receipt),
    /// Proved dead before any container started.
    NeverStarted,
    /// Without a readable receipt: dead, with the reason and exit code of its container, or gone without proof.
    Silent(Option<(&'a str, i32)>),
}

/// The circumstances of a conclusion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) wish: &'a Wish,
    pub(super) deleting: bool,
    pub(super) now: i64,
}

impl Circumstances<'_> {
    /// Not before when, after `failures` ends in a row that brought nothing.
    fn retry_at(&self, failures: u32) -> i64 {
        let doublings = failures.saturating_sub(1).min(16);
        let wait = self.wish.backoff_seconds.max(1).saturating_mul(1 << doublings);
        self.now.saturating_add(wait.min(BACKOFF_MAX_SECONDS.max(self.wish.backoff_seconds)))
    }
}

/// Plans the first pod of a run.
pub(super) fn begin(run: &mut Run, epoch: u64, now: i64) {
    plan(run, WorkerPhase::Admit, epoch, now);
}

/// Takes the end of the current worker into the run.
pub(super) fn conclude(run: &mut Run, epoch: &mut u64, end: End<'_>, around: Circumstances<'_>) {
    let Some(worker) = run.worker.take() else { return };
    if let End::Receipt(receipt) = end {
        *epoch = receipt.epoch.max(*epoch);
    }
    let mut turn = Turn { run, epoch: *epoch, worker, around };
    match end {
        End::NeverStarted => turn.never_started(),
        End::Silent(container) => turn.silent(container),
        End::Receipt(receipt) => turn.receipt(receipt),
    }
}

/// Ends a run before its next pod, which has not begun anything.
pub(super) fn abandon(run: &mut Run, code: &str, now: i64) {
    run.worker = None;
    let code = code.to_owned();
    run.rest = Some(if run.attempt == 1 { Rest::Failed { code } } else { Rest::ReextractRequired { code } });
    run.ended_at = Some(now);
}

fn plan(run: &mut Run, phase: WorkerPhase, epoch: u64, not_before: i64) -> &mut Worker {
    let r#try = run.tries.next(phase);
    run.worker.insert(Worker {
        id: WorkerId { attempt: run.attempt, phase, r#try },
        uid: None,
        started: false,
        settling: false,
        granted: false,
        epoch_floor: epoch,
        not_before,
        inspects: None,
        cancel: None,
    })
}

struct Turn<'a> {
    run: &'a mut Run,
    epoch: u64,
    worker: Worker,
    around: Circumstances<'a>,
}

impl Turn<'_> {
    fn never_started(&mut self) {
        // Why no wait after our own doing: a replaced template or a suspension is no failure.
        let at = match self.worker.cancel {
            Some(_) => self.around.now,
            None => {
                let failures = self.fail(codes::RECEIPT_MISSING);
                self.around.retry_at(failures)
            }
        };
        let fresh = matches!(self.worker.id.phase, WorkerPhase::Admit | WorkerPhase::Extract) && !self.worker.settling;
        if !(fresh && self.ends_here()) {
            self.again(at);
        }
    }

    /// Whether a pod that was stopped before any effect ends the run.
    fn ends_here(&mut self) -> bool {
        let code = match self.worker.cancel {
            Some(Cancel::Deadline) => codes::DEADLINE_EXCEEDED,
            Some(Cancel::Deletion) => codes::CANCELLED,
            Some(Cancel::Suspend | Cancel::Replaced) | None => return false,
        };
        abandon(self.run, code, self.around.now);
        true
    }

    fn silent(&mut self, container: Option<(&str, i32)>) {
        let failures = self.fail(codes::RECEIPT_MISSING);
        if let (Some(failure), Some((reason, exit_code))) = (&mut self.run.failure, container) {
            failure.cause = Some(format!("{reason}, exit code {exit_code}"));
        }
        match self.worker.id.phase {
            WorkerPhase::Admit | WorkerPhase::Inspect => {
                if !self.ends_here() {
                    self.again(self.around.retry_at(failures));
                }
            }
            phase @ (WorkerPhase::Extract | WorkerPhase::Publish) => {
                if self.run.custody.is_clear() {
                    self.run.custody = Custody::Unknown;
                }
                if phase == WorkerPhase::Publish && self.run.publication.outcome != Outcome::Committed {
                    self.run.publication.outcome = Outcome::Unknown;
                }
                self.inspect(phase, self.around.now);
            }
        }
    }

    fn receipt(&mut self, receipt: &Receipt) {
        if receipt.target.is_some() {
            self.run.target.clone_from(&receipt.target);
        }
        if receipt.workload.is_some() {
            self.run.workload.clone_from(&receipt.workload);
        }
        if receipt.rows.is_some() && receipt.eof.is_some() || receipt.state == "StageComplete" && receipt.rows.is_some()
        {
            self.seal(receipt);
        }
        if receipt.phase == WorkerPhase::Inspect {
            return self.inspected(receipt);
        }
        match receipt.exit_code {
            0 => self.done(receipt),
            1 => self.refused(receipt),
            4 => self.settled(receipt),
            _ => self.unfinished(receipt),
        }
    }

    /// Exit 0.
    fn done(&mut self, receipt: &Receipt) {
        match receipt.state.as_str() {
            "Planned" if self.worker.id.phase == WorkerPhase::Admit && receipt.target.is_some() => {
                self.run.failure = None;
                plan(self.run, WorkerPhase::Extract, self.epoch, self.around.now);
            }
            "StageComplete" => {
                self.run.failure = None;
                self.run.custody = Custody::Held;
                self.publish(self.around.now);
            }
            // An extraction of a run that has published nothing cannot have succeeded: the journal answers for an earlier run.
            "Succeeded"
                if self.worker.id.phase == WorkerPhase::Extract
                    && self.run.publication.outcome == Outcome::NotBegun =>
            {
                self.run.sealed = None;
                self.fail(codes::RUN_TOKEN_USED);
                self.run.rest = Some(Rest::Failed { code: codes::RUN_TOKEN_USED.to_owned() });
                self.run.ended_at = Some(self.around.now);
            }
            "Succeeded" => {
                self.commit(receipt);
                self.run.failure = None;
                self.run.custody = Custody::Released;
                self.run.rest = Some(Rest::Succeeded);
                self.run.ended_at = Some(self.around.now);
            }
            // Said by no engine of ours: the journal is asked.
            _ => self.silent(None),
        }
    }

    /// Exit 1: refused before any effect of this process. What earlier processes hold stays held.
    fn refused(&mut self, receipt: &Receipt) {
        let code = receipt.code.clone().unwrap_or_else(|| codes::RECEIPT_MISSING.to_owned());
        let closed = receipt.attempt_closed && receipt.custody.is_clear();
        if !(receipt.custody.is_clear() && (self.run.custody.is_clear() || closed)) {
            let failures = self.fail(&code);
            return self.again(self.around.retry_at(failures));
        }
        if !self.run.custody.is_clear() {
            self.run.custody = receipt.custody;
        }
        if self.ends_here() {
            return;
        }
        match codes::class(&code) {
            Class::Lasting => {
                self.fail(&code);
                self.roll_back();
                self.run.rest = Some(Rest::Failed { code });
                self.run.ended_at = Some(self.around.now);
            }
            Class::Passing | Class::TargetBusy => {
                let at = if self.worker.cancel.is_some() {
                    self.around.now
                } else {
                    let failures = self.fail(&code);
                    self.around.retry_at(failures)
                };
                // An attempt that the journal has closed is never taken up again; nothing was read, so it costs none.
                if receipt.attempt_closed && self.worker.id.phase != WorkerPhase::Admit {
                    self.roll_back();
                } else {
                    self.worker.settling = false;
                    self.again(at);
                }
            }
        }
    }

    /// Exit 3: custody is held, or the outcome is unknown, or the run is published and not finished.
    fn unfinished(&mut self, receipt: &Receipt) {
        let code = receipt.code.clone().unwrap_or_else(|| codes::RECEIPT_MISSING.to_owned());
        let failures = self.fail(&code);
        let at = self.around.retry_at(failures);
        if codes::nothing_sealed(receipt.code.as_deref()) {
            return self.inspect(self.worker.id.phase, at);
        }
        self.hold(receipt.custody);
        match receipt.state.as_str() {
            "CustodyUnknown" => self.settle(at),
            "StageComplete" => {
                self.resolve();
                self.publish(at);
            }
            "Published" | "EvidenceComplete" => {
                self.commit(receipt);
                self.publish(at);
            }
            "OutcomeUnknown" | "Publishing" => {
                self.doubt();
                self.publish(at);
            }
            _ => self.inspect(self.worker.id.phase, at),
        }
    }

    /// Exit 4: settled, nothing published.
    fn settled(&mut self, receipt: &Receipt) {
        if !receipt.custody.is_clear() {
            let failures = self.fail(receipt.code.as_deref().unwrap_or(codes::RECEIPT_MISSING));
            self.hold(receipt.custody);
            return self.settle(self.around.retry_at(failures));
        }
        self.close(receipt);
    }

    /// What the journal says of a run whose last worker said nothing.
    fn inspected(&mut self, receipt: &Receipt) {
        let phase = self.worker.inspects.unwrap_or(WorkerPhase::Extract);
        if codes::no_such_run(receipt.code.as_deref()) {
            // Whoever gave an epoch had a journal: where there is none now, it is lost and not unused.
            let lost = codes::no_journal(receipt.code.as_deref()) && self.epoch > 0;
            return self.no_such_run(phase, lost);
        }
        let failures = self.run.failure.as_ref().map_or(0, |failure| failure.count);
        // Why one less: the first repetition after a death is made at once.
        let at = if failures <= 1 { self.around.now } else { self.around.retry_at(failures - 1) };
        match (receipt.state.as_str(), receipt.custody.is_clear()) {
            ("Planned", true) => {
                self.run.custody = receipt.custody;
                self.fresh(phase, at);
            }
            ("Planned" | "Extracting" | "CustodyUnknown", _) => {
                self.hold(receipt.custody);
                self.settle(at);
            }
            ("StageComplete", _) => {
                self.hold(receipt.custody);
                self.resolve();
                self.publish(at);
            }
            ("Publishing" | "OutcomeUnknown", _) => {
                self.hold(receipt.custody);
                self.doubt();
                self.publish(at);
            }
            ("Published" | "EvidenceComplete" | "Succeeded", _) => {
                self.commit(receipt);
                self.publish(at);
            }
            ("ReextractRequired", true) => self.close(receipt),
            ("ReextractRequired", false) => self.settle(at),
            ("Failed", true) => {
                // Said by the journal for the pod that was silent.
                self.worker.id.phase = phase;
                self.refused(&Receipt { phase, attempt_closed: true, exit_code: 1, ..receipt.clone() });
            }
            ("Failed", false) if self.run.sealed.is_some() => self.publish(at),
            ("Failed", false) => self.settle(at),
            _ => {
                let failures = self.fail(receipt.code.as_deref().unwrap_or(codes::RECEIPT_MISSING));
                self.again(self.around.retry_at(failures));
            }
        }
    }

    /// The journal has never had the run: nothing was begun, unless somebody said that something was.
    fn no_such_run(&mut self, phase: WorkerPhase, lost: bool) {
        if lost || self.run.custody == Custody::Held || self.run.sealed.is_some() {
            let failures = self.fail(codes::JOURNAL_LOST);
            return self.again(self.around.retry_at(failures));
        }
        self.run.custody = Custody::None;
        self.fresh(phase, self.around.now);
    }

    /// The phase again, as if it had not been tried.
    fn fresh(&mut self, phase: WorkerPhase, at: i64) {
        if self.around.deleting {
            return abandon(self.run, codes::CANCELLED, self.around.now);
        }
        plan(self.run, phase, self.epoch, at);
    }

    /// Another pod for the same thing.
    fn again(&mut self, at: i64) {
        let (settling, inspects) = (self.worker.settling, self.worker.inspects);
        let held = !self.run.custody.is_clear();
        let next = plan(self.run, self.worker.id.phase, self.epoch, at);
        next.settling = settling || held && next.id.phase == WorkerPhase::Extract;
        next.inspects = inspects;
    }

    fn settle(&mut self, at: i64) {
        plan(self.run, WorkerPhase::Extract, self.epoch, at).settling = true;
    }

    fn inspect(&mut self, phase: WorkerPhase, at: i64) {
        let inspects = match phase {
            WorkerPhase::Inspect => self.worker.inspects,
            phase => Some(phase),
        };
        plan(self.run, WorkerPhase::Inspect, self.epoch, at).inspects = inspects;
    }

    fn publish(&mut self, at: i64) {
        let publication = &mut self.run.publication;
        if publication.outcome == Outcome::NotBegun {
            publication.outcome = Outcome::Intent;
        }
        publication.intent_at.get_or_insert(self.around.now);
        plan(self.run, WorkerPhase::Publish, self.epoch, at);
    }

    /// Custody of a receipt that does not close the attempt: what was held is not believed to be free.
    fn hold(&mut self, said: Custody) {
        if said == Custody::Unknown || said == Custody::Held || self.run.custody == Custody::Unknown {
            self.run.custody = Custody::Held;
        }
    }

    fn doubt(&mut self) {
        if self.run.publication.outcome != Outcome::Committed {
            self.run.publication.outcome = Outcome::Unknown;
        }
    }

    /// The journal knows that a publication in doubt did not happen.
    fn resolve(&mut self) {
        if self.run.publication.outcome == Outcome::Unknown {
            self.run.publication.outcome = Outcome::RolledBack;
        }
    }

    fn commit(&mut self, receipt: &Receipt) {
        let publication = &mut self.run.publication;
        publication.outcome = Outcome::Committed;
        publication.intent_at.get_or_insert(self.around.now);
        for (slot, said) in [
            (&mut publication.receipt_id, &receipt.receipt_id),
            (&mut publication.committed_at, &receipt.committed_at),
            (&mut publication.evidence, &receipt.evidence),
        ] {
            if said.is_some() {
                slot.clone_from(said);
            }
        }
    }

    /// What was sealed first stays; later receipts only add what it lacked.
    fn seal(&mut self, receipt: &Receipt) {
        let sealed = self.run.sealed.get_or_insert_with(|| Sealed {
            rows: receipt.rows.unwrap_or_default(),
            descriptor: None,
            sha256: None,
        });
        if sealed.sha256.is_none() {
            sealed.sha256.clone_from(&receipt.eof);
            sealed.descriptor.clone_from(&receipt.descriptor);
        }
    }

    fn fail(&mut self, code: &str) -> u32 {
        let (count, cause) = match self.run.failure.take() {
            Some(failure) => (failure.count, failure.cause),
            None => (0, None),
        };
        let count = count.saturating_add(1);
        self.run.failure = Some(Failure { code: code.to_owned(), count, cause, at: self.around.now });
        count
    }

    /// An attempt that is settled without publication: another one, or rest.
    fn close(&mut self, receipt: &Receipt) {
        let said = receipt.code.as_deref().unwrap_or("mssql_native.pre_eof_reextract_required");
        let code = match self.worker.cancel {
            Some(Cancel::Deadline) => codes::DEADLINE_EXCEEDED,
            _ => said,
        };
        self.run.custody = receipt.custody;
        self.roll_back();
        self.fail(code);
        // A stop of ours is no attempt of the run's; a suspension may be settled by a later pod than the one that it stopped.
        let suspended = self.around.wish.suspend && self.worker.cancel != Some(Cancel::Deadline);
        if !suspended && !matches!(self.worker.cancel, Some(Cancel::Suspend | Cancel::Replaced)) {
            self.run.spent = self.run.spent.saturating_add(1);
        }
        let allowed = self.run.spent < self.around.wish.attempts.max(1);
        if !allowed || self.around.deleting || !codes::worth_another_attempt(code) {
            self.run.rest = Some(Rest::ReextractRequired { code: code.to_owned() });
            self.run.ended_at = Some(self.around.now);
        }
        // Else the run has neither pod nor rest: `next_attempt` follows, once this outcome stands in status.
    }

    /// Nothing was published, proved.
    fn roll_back(&mut self) {
        if !matches!(self.run.publication.outcome, Outcome::NotBegun | Outcome::Committed) {
            self.run.publication.outcome = Outcome::RolledBack;
        }
    }
}

/// Begins the next attempt of a run whose last one is settled. An attempt is left only after the outcome of its
/// publication was stored, so that no reader of status ever misses it.
pub(super) fn next_attempt(run: &mut Run, stored: &Run, epoch: u64, around: Circumstances<'_>) {
    let told =
        stored.attempt != run.attempt || matches!(stored.publication.outcome, Outcome::NotBegun | Outcome::RolledBack);
    if run.worker.is_some() || run.rest.is_some() || !told {
        return;
    }
    let at = match &run.failure {
        Some(failure) if failure.code != codes::CANCELLED => around.retry_at(failure.count),
        _ => around.now,
    };
    run.attempt = run.attempt.saturating_add(1);
    run.tries = Tries::default();
    run.sealed = None;
    run.publication = Publication::default();
    plan(run, WorkerPhase::Extract, epoch, at);
}
