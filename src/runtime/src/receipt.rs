//! From an end to its receipt: the one function through which exit code, state and facts reach an operator.

use contract::digest::Digest;
use contract::error::PortError;
use contract::worker::{CustodyWord, Exit, Phase, Receipt, RunTag};

use crate::facts::RunFacts;
use crate::inspect::Inspection;
use crate::report::{End, Outcome};

impl Outcome {
    /// The receipt of a phase that ended so. `plan` is the digest of the frozen plan that was given and checked.
    pub fn receipt(&self, phase: Phase, plan: Option<Digest>) -> Receipt {
        of_end(phase, &self.run_id, &self.end, (self.epoch, &self.facts), plan)
    }
}

/// The receipt of an end, with the epoch and the facts of its journal.
pub(crate) fn of_end(
    phase: Phase,
    run_id: &str,
    end: &End,
    (epoch, facts): (u64, &RunFacts),
    plan: Option<Digest>,
) -> Receipt {
    let admitted = match end {
        End::Admitted { target_identity, .. } => Some(*target_identity),
        _ => None,
    };
    let state = match end {
        // What another plan's run came to is not told by the refusal of this one.
        End::Refused(_) if facts.custody != CustodyWord::None => None,
        end => Some(end.state()),
    };
    Receipt {
        exit: end.exit(),
        state,
        code: end.error().map(|error| error.code.as_str().to_owned()),
        epoch: Some(epoch),
        target: admitted.or(facts.target),
        plan: plan.or(facts.plan),
        ..of_facts(phase, run_id, facts)
    }
}

impl Inspection {
    /// The receipt of an inspection: the journal's state with the facts that any other phase would report.
    pub fn receipt(&self, run_id: &str) -> Receipt {
        Receipt {
            exit: Exit::Done,
            state: self.facts.state,
            code: self.facts.failure.clone(),
            epoch: Some(self.epoch),
            ..of_facts(Phase::Inspect, run_id, &self.facts)
        }
    }
}

/// The receipt of a process that ended before it knew the run's state: a refusal before its start, or a panic.
pub fn ended_early(phase: Phase, run_id: &str, exit: Exit, error: &PortError, plan: Option<Digest>) -> Receipt {
    Receipt {
        exit,
        state: None,
        code: Some(error.code.as_str().to_owned()),
        plan,
        ..of_facts(phase, run_id, &RunFacts::UNKNOWN)
    }
}

fn of_facts(phase: Phase, run_id: &str, facts: &RunFacts) -> Receipt {
    Receipt {
        phase,
        exit: Exit::Kept,
        state: None,
        code: None,
        run: RunTag::of(run_id),
        attempt_closed: facts.closed,
        epoch: None,
        rows: facts.rows,
        custody: facts.custody,
        target: facts.target,
        workload: facts.workload,
        receipt_id: facts.receipt_id.clone(),
        committed_at: facts.committed_at.clone(),
        evidence: facts.evidence,
        plan: facts.plan,
        eof: facts.eof.clone(),
    }
}

#[cfg(test)]
mod tests {
    use contract::port::target::Receipt as Published;
    use contract::worker::StateWord;

    use super::*;
    use crate::observations::Observations;
    use crate::progress::Progress;

    fn error() -> PortError {
        PortError::not_done("native_transfer.target_busy", "x")
    }

    fn published() -> Published {
        Published {
            receipt_id: "mssql-generic-v1:x".into(),
            owner_digest: Digest::of(b"o"),
            operation_epoch: 1,
            payload_manifest_sha256: Digest::of(b"p"),
            mutation_plan_sha256: Digest::of(b"m"),
            inserted_rows: 1,
            replaced_rows: None,
            committed_at: "2026-11-30T00:00:00.0000000Z".into(),
        }
    }

    fn outcome(end: End, facts: RunFacts) -> Outcome {
        Outcome::new("run".into(), end, (7, facts), Progress::default().read(), &Observations::default())
    }

    /// Exit, state and code of every end; the parser accepts what the encoder wrote.
    #[test]
    fn every_end_has_its_receipt() {
        use {Exit as E, StateWord as S};
        let admitted = End::Admitted { target_identity: Digest::of(b"t"), columns: 1 };
        let unknown = End::CustodyUnknown { error: error(), cleanup: Some(error()) };
        let cases = [
            (Phase::Admit, admitted, E::Done, Some(S::Planned)),
            (Phase::Extract, End::Extracted { rows: 1 }, E::Done, Some(S::StageComplete)),
            (Phase::Publish, End::Succeeded { rows: 1, chunks: 1, receipt: published() }, E::Done, Some(S::Succeeded)),
            (Phase::Extract, End::Succeeded { rows: 1, chunks: 1, receipt: published() }, E::Done, Some(S::Succeeded)),
            (Phase::Admit, End::Refused(error()), E::Refused, Some(S::Failed)),
            (Phase::Extract, End::ReextractRequired(error()), E::Reextract, Some(S::ReextractRequired)),
            (Phase::Publish, End::Unfinished { receipt: published(), error: error() }, E::Kept, Some(S::Published)),
            (Phase::Publish, End::Held(error()), E::Kept, Some(S::StageComplete)),
            (Phase::Publish, End::OutcomeUnknown(error()), E::Kept, Some(S::OutcomeUnknown)),
            (Phase::Extract, unknown, E::Kept, Some(S::CustodyUnknown)),
        ];
        let facts = RunFacts { custody: CustodyWord::None, plan: Some(Digest::of(b"old")), ..RunFacts::UNKNOWN };
        for (phase, end, exit, state) in cases {
            let code = u8::from(exit != E::Done);
            let outcome = outcome(end, facts.clone());
            assert_eq!(outcome.end.exit_code(), exit.code());
            let receipt = outcome.receipt(phase, Some(Digest::of(b"plan")));
            assert_eq!((receipt.exit, receipt.state, receipt.epoch), (exit, state, Some(7)), "{receipt:?}");
            assert_eq!(u8::from(receipt.code.is_some()), code, "{receipt:?}");
            assert_eq!(receipt.plan, Some(Digest::of(b"plan")));
            assert_eq!(Receipt::parse(&receipt.encode(), &RunTag::of("run")), Ok(receipt));
        }
    }

    #[test]
    fn admission_names_the_target_and_a_refusal_of_another_plan_no_state() {
        let identity = Digest::of(b"t");
        let admitted = outcome(End::Admitted { target_identity: identity, columns: 1 }, RunFacts::UNKNOWN);
        assert_eq!(admitted.receipt(Phase::Admit, None).target, Some(identity));
        let released = RunFacts { custody: CustodyWord::Released, ..RunFacts::UNKNOWN };
        let receipt = outcome(End::Refused(error()), released).receipt(Phase::Publish, None);
        assert_eq!((receipt.state, receipt.agrees_with_itself()), (None, true));
    }

    #[test]
    fn a_process_that_ended_early_says_nothing_about_the_run() {
        for (phase, exit) in
            [(Phase::Extract, Exit::Refused), (Phase::Inspect, Exit::Refused), (Phase::Publish, Exit::Kept)]
        {
            let receipt = ended_early(phase, "run", exit, &error(), None);
            assert_eq!((receipt.state, receipt.custody, receipt.epoch), (None, CustodyWord::Unknown, None));
            assert_eq!(Receipt::parse(&receipt.encode(), &RunTag::of("run")), Ok(receipt));
        }
    }
}
