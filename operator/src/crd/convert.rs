//! The engine's words in status.

use contract::worker;

use super::status::{CustodyState, Phase, WorkerPhase};

impl From<worker::StateWord> for Phase {
    fn from(word: worker::StateWord) -> Self {
        match word {
            worker::StateWord::Planned => Phase::Planned,
            worker::StateWord::Extracting => Phase::Extracting,
            worker::StateWord::StageComplete => Phase::StageComplete,
            worker::StateWord::Publishing => Phase::Publishing,
            worker::StateWord::Published => Phase::Published,
            worker::StateWord::EvidenceComplete => Phase::EvidenceComplete,
            worker::StateWord::Succeeded => Phase::Succeeded,
            worker::StateWord::CustodyUnknown => Phase::CustodyUnknown,
            worker::StateWord::ReextractRequired => Phase::ReextractRequired,
            worker::StateWord::OutcomeUnknown => Phase::OutcomeUnknown,
            worker::StateWord::Failed => Phase::Failed,
        }
    }
}

impl From<worker::CustodyWord> for CustodyState {
    fn from(word: worker::CustodyWord) -> Self {
        match word {
            worker::CustodyWord::None => CustodyState::None,
            worker::CustodyWord::Held => CustodyState::Held,
            worker::CustodyWord::Released => CustodyState::Released,
            worker::CustodyWord::Unknown => CustodyState::Unknown,
        }
    }
}

impl From<worker::Phase> for WorkerPhase {
    fn from(phase: worker::Phase) -> Self {
        match phase {
            worker::Phase::Admit => WorkerPhase::Admit,
            worker::Phase::Extract => WorkerPhase::Extract,
            worker::Phase::Publish => WorkerPhase::Publish,
            worker::Phase::Inspect => WorkerPhase::Inspect,
        }
    }
}

impl From<WorkerPhase> for worker::Phase {
    fn from(phase: WorkerPhase) -> Self {
        match phase {
            WorkerPhase::Admit => worker::Phase::Admit,
            WorkerPhase::Extract => worker::Phase::Extract,
            WorkerPhase::Publish => worker::Phase::Publish,
            WorkerPhase::Inspect => worker::Phase::Inspect,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_keeps_the_words_of_the_engine() {
        for word in worker::StateWord::ALL {
            assert_eq!(Phase::from(*word).as_str(), word.text());
        }
        for phase in worker::Phase::ALL {
            assert_eq!(WorkerPhase::from(*phase).as_str(), phase.text());
            assert_eq!(worker::Phase::from(WorkerPhase::from(*phase)), *phase);
        }
    }
}
