//! The outcome of a run: what happened, what is known, and the exit code that says so (design.md 4).

use contract::digest::Digest;
use contract::error::PortError;
use contract::port::target::Receipt;
use contract::worker::{Exit, StateWord};

use crate::facts::RunFacts;
use crate::observations::{Observations, Phase, PhaseSummary};
use crate::progress::ProgressReading;

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// Both ends admit the transfer; nothing was changed.
    Admitted {
        /// Identity of the target.
        target_identity: Digest,
        /// Business columns.
        columns: usize,
    },
    /// The end of source is sealed in verified stages; custody is held for `publish`.
    Extracted {
        /// Rows in the stages.
        rows: u64,
    },
    /// Published, recorded, cleaned up, custody released.
    Succeeded {
        /// Rows published.
        rows: u64,
        /// Chunks they came in.
        chunks: u64,
        /// The receipt.
        receipt: Receipt,
    },
    /// Refused before anything was changed.
    Refused(PortError),
    /// Failed and settled: nothing was published, nothing is left, a new run may start.
    ReextractRequired(PortError),
    /// Published, but evidence, clean-up or release is not complete: repeat `publish`.
    Unfinished {
        /// The receipt.
        receipt: Receipt,
        /// What failed.
        error: PortError,
    },
    /// Sealed and not published; custody is held.
    Held(PortError),
    /// Whether the publication took place is unknown; everything is kept.
    OutcomeUnknown(PortError),
    /// Failed before the end of source, and what is left could not be proved settled; custody is held.
    CustodyUnknown {
        /// The first failure.
        error: PortError,
        /// Why settlement stopped.
        cleanup: Option<PortError>,
    },
}

impl End {
    /// How the process ends: 0 done, 1 coded failure, 3 outcome unknown or custody held, 4 re-extract required.
    pub fn exit(&self) -> Exit {
        match self {
            End::Admitted { .. } | End::Extracted { .. } | End::Succeeded { .. } => Exit::Done,
            End::Refused(_) => Exit::Refused,
            End::Unfinished { .. } | End::Held(_) | End::OutcomeUnknown(_) | End::CustodyUnknown { .. } => Exit::Kept,
            End::ReextractRequired(_) => Exit::Reextract,
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        self.exit().code()
    }

    /// The state in the spec's words.
    pub fn state(&self) -> StateWord {
        match self {
            End::Admitted { .. } => StateWord::Planned,
            End::Extracted { .. } | End::Held(_) => StateWord::StageComplete,
            End::Succeeded { .. } => StateWord::Succeeded,
            End::Refused(_) => StateWord::Failed,
            End::ReextractRequired(_) => StateWord::ReextractRequired,
            End::Unfinished { .. } => StateWord::Published,
            End::OutcomeUnknown(_) => StateWord::OutcomeUnknown,
            End::CustodyUnknown { .. } => StateWord::CustodyUnknown,
        }
    }

    /// The failure that a person is told, if there is one.
    pub fn error(&self) -> Option<&PortError> {
        match self {
            End::Admitted { .. } | End::Extracted { .. } | End::Succeeded { .. } => None,
            End::Refused(error) | End::ReextractRequired(error) | End::Held(error) | End::OutcomeUnknown(error) => {
                Some(error)
            }
            End::Unfinished { error, .. } | End::CustodyUnknown { error, .. } => Some(error),
        }
    }
}

/// A run's end with what was measured on the way.
#[derive(Debug)]
pub struct Outcome {
    /// The run.
    pub run_id: String,
    /// How it ended.
    pub end: End,
    /// Epoch of the journal's opening.
    pub epoch: u64,
    /// What the journal says at the end.
    pub facts: RunFacts,
    /// The counters at the end.
    pub progress: ProgressReading,
    /// Measured work: read, encode, import.
    pub read: PhaseSummary,
    /// Encoding.
    pub encode: PhaseSummary,
    /// Import and verification.
    pub import: PhaseSummary,
}

impl Outcome {
    pub(crate) fn new(
        run_id: String,
        end: End,
        (epoch, facts): (u64, RunFacts),
        progress: ProgressReading,
        observations: &Observations,
    ) -> Self {
        Outcome {
            run_id,
            end,
            epoch,
            facts,
            progress,
            read: observations.summary(Phase::Read),
            encode: observations.summary(Phase::Encode),
            import: observations.summary(Phase::Import),
        }
    }
}
