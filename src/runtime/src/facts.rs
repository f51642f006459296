//! What the journal says about a run, as far as receipts and inspections repeat it: one reading for the process that ends
//! and for the one that looks at a dead run, so that both tell the same.

use contract::canon::Json;
use contract::completion::ChunkReceipt;
use contract::custody::{CustodyRecord, CustodyState};
use contract::digest::Digest;
use contract::error::PortError;
use contract::names;
use contract::port::journal::Record;
use contract::raw::eof::EofDescriptor;
use contract::transfer::run::RunState;
use contract::transfer::{Transfer, TransferCustody, TransferEvent};
use contract::worker::{CustodyWord, StateWord, workload_digest};

use crate::frozen::Frozen;
use crate::publish::receipt_from;
use crate::records::{self, ADMISSION, CUSTODY, FAILURE, FROZEN, PLAN, Records};

/// What the journal says about a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// The run's state; `None` when the journal has no such run, or was not read.
    pub state: Option<StateWord>,
    /// The first coded failure.
    pub failure: Option<String>,
    /// Whether this run id is used up: frozen once, and nothing is held under it any more.
    pub closed: bool,
    /// Who may write to the target.
    pub custody: CustodyWord,
    /// Identity of the target, from the frozen run or from what admission found.
    pub target: Option<Digest>,
    /// Rows of the sealed end of source.
    pub rows: Option<u64>,
    /// Digest of these rows.
    pub workload: Option<Digest>,
    /// EOF descriptor of a raw snapshot.
    pub eof: Option<EofDescriptor>,
    /// Id of the receipt of a proved publication.
    pub receipt_id: Option<String>,
    /// When it was committed.
    pub committed_at: Option<String>,
    /// Digest of the evidence document that stands in the target.
    pub evidence: Option<Digest>,
    /// Digest of the frozen plan that the run was last started from.
    pub plan: Option<Digest>,
}

impl RunFacts {
    /// Nothing is known: the journal was not read.
    pub const UNKNOWN: RunFacts = RunFacts {
        state: None,
        failure: None,
        closed: false,
        custody: CustodyWord::Unknown,
        target: None,
        rows: None,
        workload: None,
        eof: None,
        receipt_id: None,
        committed_at: None,
        evidence: None,
        plan: None,
    };

    /// The facts of a run's records and of the local custody record of its target.
    pub(crate) fn read(records: &Records, frozen: Option<&Frozen>, holds: bool) -> Result<Self, PortError> {
        let mut facts = RunFacts { custody: CustodyWord::None, ..Self::UNKNOWN };
        if records.is_empty() {
            return Ok(facts);
        }
        facts.state = Some(StateWord::Planned);
        let member = |document: Option<Json>, key: &str| document.and_then(|document| document.get(key).cloned());
        let digest = |json: Option<Json>| json.as_ref().and_then(Json::as_str).and_then(|text| text.parse().ok());
        facts.plan = digest(member(records.last(PLAN)?, "sha256"));
        facts.target = digest(member(records.last(ADMISSION)?, "target_identity"));
        let first = records.of(FAILURE).next().map(records::document).transpose()?;
        facts.failure = first.and_then(|document| document.get("code")?.as_str().map(str::to_owned));
        let Some(frozen) = frozen else { return Ok(facts) };
        let state = records.fold()?;
        let transfer = state.transfer();
        facts.target = Some(frozen.operation.target_identity);
        facts.state = Some(transfer.map_or(StateWord::Planned, |transfer| transfer.state.into()));
        facts.custody = custody(transfer, holds);
        facts.closed = !holds && transfer.is_none_or(Transfer::is_finished);
        facts.sealed(&state)?;
        facts.published(&state)?;
        Ok(facts)
    }

    fn sealed(&mut self, state: &RunState) -> Result<(), PortError> {
        let Some((completion, metadata)) = state.completion() else { return Ok(()) };
        let receipts: Vec<ChunkReceipt> = state.receipts().cloned().collect();
        self.rows = Some(completion.rows);
        self.workload = Some(workload_digest(&receipts).ok_or_else(records::invalid)?);
        let eof = metadata.get("source_snapshot_v1").and_then(|snapshot| snapshot.get("source_eof"));
        self.eof = eof.map(EofDescriptor::from_document).transpose()?;
        Ok(())
    }

    fn published(&mut self, state: &RunState) -> Result<(), PortError> {
        if let Some(document) = state.facts(TransferEvent::PublicationConfirmed.text()) {
            let receipt = receipt_from(document)?;
            self.receipt_id = Some(receipt.receipt_id);
            self.committed_at = Some(receipt.committed_at);
        }
        let saved = state.facts(TransferEvent::EvidenceSaved.text());
        self.evidence = saved.and_then(|facts| facts.get("document_sha256")?.as_str()?.parse().ok());
        Ok(())
    }
}

/// The frozen run among its records.
pub(crate) fn frozen(records: &Records) -> Result<Option<Frozen>, PortError> {
    records.last(FROZEN)?.map(|document| Frozen::from_document(&document)).transpose()
}

/// Kind and key of the local custody record of a frozen run's target.
pub(crate) fn custody_key(frozen: &Frozen) -> (&'static str, String) {
    (CUSTODY, names::custody_key(&frozen.identity.plan.target_id))
}

/// Whether the local custody record says that this run holds its target.
pub(crate) fn holds(frozen: &Frozen, record: Option<&Record>) -> Result<bool, PortError> {
    let Some(record) = record else { return Ok(false) };
    let ours = frozen.identity.invocation_key();
    let state = CustodyRecord::decode(record.payload.as_bytes())?.state;
    Ok(matches!(state, CustodyState::Held { holder, .. } if holder == ours))
}

fn custody(transfer: Option<Transfer>, holds: bool) -> CustodyWord {
    match (transfer.map(|transfer| transfer.custody), holds) {
        // A claim may have been sent; its answer is not recorded.
        (None | Some(TransferCustody::Unclaimed), true) => CustodyWord::Unknown,
        (None | Some(TransferCustody::Unclaimed), false) => CustodyWord::None,
        // Until our own record is cleared it still bars other runs of this journal.
        (Some(TransferCustody::Held), _) | (Some(TransferCustody::Released(_)), true) => CustodyWord::Held,
        (Some(TransferCustody::Released(_)), false) => CustodyWord::Released,
    }
}
