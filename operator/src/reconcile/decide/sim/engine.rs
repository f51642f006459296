//! The engine's part: what a journal and a target know of a run, and what one process makes of it, step by step.

use super::super::observation::Receipt;
use super::super::state::{Custody, WorkerId};
use crate::crd::status::WorkerPhase;

/// What the journal of an attempt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Journal {
    #[default]
    Absent,
    /// Custody claimed, the source opened.
    Claimed,
    Sealed,
    /// The publication's intent is durable.
    Publishing,
    Published,
    Succeeded,
    /// Settled without publication.
    Settled,
    /// Refused after the run was frozen, before a claim.
    Refused,
}

impl Journal {
    pub(super) fn holds(self) -> bool {
        matches!(self, Journal::Claimed | Journal::Sealed | Journal::Publishing | Journal::Published)
    }
}

/// One attempt: its journal, and what became true at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Attempt {
    pub(super) journal: Journal,
    pub(super) opened: u32,
    pub(super) commits: u32,
}

/// A choice of the world: `0` is always the good one.
pub(super) type Choose<'a> = &'a mut dyn FnMut(u32) -> u32;

pub(super) const TARGET: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

pub(super) fn receipt(
    phase: WorkerPhase,
    exit_code: u8,
    state: &str,
    code: Option<&str>,
    custody: Custody,
    epoch: u64,
) -> Receipt {
    Receipt {
        phase,
        exit_code,
        state: state.to_owned(),
        code: code.map(str::to_owned),
        attempt_closed: matches!(state, "Succeeded" | "ReextractRequired")
            || state == "Failed" && custody == Custody::None,
        epoch,
        rows: matches!(state, "StageComplete" | "Publishing" | "OutcomeUnknown" | "Published" | "Succeeded")
            .then_some(7),
        custody,
        target: Some(TARGET.to_owned()),
        workload: None,
        receipt_id: matches!(state, "Published" | "Succeeded").then(|| "r-1".to_owned()),
        committed_at: None,
        evidence: None,
        eof: None,
        descriptor: None,
    }
}

/// One step of a process; its receipt when it ends. `claimed` says whether this very process opened the source.
pub(super) fn step(
    id: WorkerId,
    attempt: &mut Attempt,
    claimed: &mut bool,
    terminated: bool,
    epoch: u64,
    choose: Choose<'_>,
) -> Option<Receipt> {
    let end = |exit, state, code: Option<&str>, custody| Some(receipt(id.phase, exit, state, code, custody, epoch));
    match id.phase {
        WorkerPhase::Admit => match choose(8) {
            1 => end(1, "Failed", Some("native_transfer.source_unreachable"), Custody::None).map(open),
            2 => end(1, "Failed", Some("native_transfer.target_grant_missing"), Custody::None).map(open),
            _ => end(0, "Planned", None, Custody::None).map(open),
        },
        WorkerPhase::Inspect => match (choose(8), attempt.journal) {
            (1, _) => end(1, "", Some("native_transfer.journal_unavailable"), Custody::Unknown),
            (_, Journal::Absent) => end(1, "", Some("mssql_native.recovery_identity_invalid"), Custody::None),
            (_, Journal::Claimed) => end(0, "Extracting", None, Custody::Held),
            (_, Journal::Sealed) => end(0, "StageComplete", None, Custody::Held),
            (_, Journal::Publishing) => end(0, "Publishing", None, Custody::Held),
            (_, Journal::Published) => end(0, "Published", None, Custody::Held),
            (_, Journal::Succeeded) => end(0, "Succeeded", None, Custody::Released),
            (_, Journal::Settled) => end(0, "ReextractRequired", None, Custody::Released),
            (_, Journal::Refused) => end(0, "Failed", Some("mssql_native.custody_held"), Custody::None),
        },
        WorkerPhase::Extract => extract(id, attempt, claimed, terminated, epoch, choose),
        WorkerPhase::Publish => publish(id, attempt, epoch, choose),
    }
}

fn open(mut receipt: Receipt) -> Receipt {
    receipt.attempt_closed = false;
    receipt
}

fn extract(
    id: WorkerId,
    attempt: &mut Attempt,
    claimed: &mut bool,
    terminated: bool,
    epoch: u64,
    choose: Choose<'_>,
) -> Option<Receipt> {
    let end = |exit, state, code: Option<&str>, custody| Some(receipt(id.phase, exit, state, code, custody, epoch));
    let settle = |attempt: &mut Attempt, code| {
        attempt.journal = Journal::Settled;
        end(4, "ReextractRequired", Some(code), Custody::Released)
    };
    match attempt.journal {
        Journal::Absent if terminated => end(1, "Failed", Some("native_transfer.cancelled"), Custody::None).map(open),
        Journal::Absent => match choose(10) {
            1 => end(1, "Failed", Some("native_transfer.source_unreachable"), Custody::None).map(open),
            2 => {
                attempt.journal = Journal::Refused;
                end(1, "Failed", Some("mssql_native.custody_held"), Custody::None)
            }
            _ => {
                attempt.journal = Journal::Claimed;
                attempt.opened += 1;
                *claimed = true;
                None
            }
        },
        Journal::Claimed if terminated => settle(attempt, "native_transfer.cancelled"),
        Journal::Claimed if *claimed => match choose(8) {
            1 => settle(attempt, "native_transfer.source_unreachable"),
            2 => settle(attempt, "mssql_native_invalid_value"),
            3 => end(3, "CustodyUnknown", Some("native_transfer.target_connection_lost"), Custody::Held),
            _ => {
                attempt.journal = Journal::Sealed;
                None
            }
        },
        Journal::Claimed => match choose(3) {
            1 => end(3, "CustodyUnknown", Some("native_transfer.target_unreachable"), Custody::Held),
            _ => settle(attempt, "mssql_native.pre_eof_reextract_required"),
        },
        Journal::Sealed | Journal::Publishing | Journal::Published => end(0, "StageComplete", None, Custody::Held),
        Journal::Succeeded => end(0, "Succeeded", None, Custody::Released),
        Journal::Settled => {
            end(4, "ReextractRequired", Some("mssql_native.pre_eof_reextract_required"), Custody::Released)
        }
        Journal::Refused => end(4, "ReextractRequired", Some("mssql_native.pre_eof_reextract_required"), Custody::None),
    }
}

fn publish(id: WorkerId, attempt: &mut Attempt, epoch: u64, choose: Choose<'_>) -> Option<Receipt> {
    let end = |exit, state, code: Option<&str>, custody| Some(receipt(id.phase, exit, state, code, custody, epoch));
    match attempt.journal {
        Journal::Sealed => match choose(6) {
            1 => end(3, "StageComplete", Some("native_transfer.target_unreachable"), Custody::Held),
            2 => end(1, "Failed", Some("native_transfer.connection_invalid"), Custody::None).map(open),
            _ => {
                attempt.journal = Journal::Publishing;
                None
            }
        },
        Journal::Publishing => match choose(8) {
            1 => end(3, "OutcomeUnknown", Some("mssql_transaction.commit_outcome_unknown"), Custody::Held),
            2 if attempt.commits == 0 => {
                attempt.commits += 1;
                end(3, "OutcomeUnknown", Some("mssql_transaction.commit_outcome_unknown"), Custody::Held)
            }
            3 if attempt.commits == 0 => {
                attempt.journal = Journal::Settled;
                end(4, "ReextractRequired", Some("mssql_native.publication_absence_proved"), Custody::Released)
            }
            4 if attempt.commits == 0 => {
                attempt.journal = Journal::Sealed;
                None
            }
            _ => {
                if attempt.commits == 0 {
                    attempt.commits += 1;
                }
                attempt.journal = Journal::Published;
                None
            }
        },
        Journal::Published => match choose(4) {
            1 => end(3, "Published", Some("native_transfer.target_unreachable"), Custody::Held),
            _ => {
                attempt.journal = Journal::Succeeded;
                None
            }
        },
        Journal::Succeeded => end(0, "Succeeded", None, Custody::Released),
        Journal::Settled => {
            end(4, "ReextractRequired", Some("mssql_native.pre_eof_reextract_required"), Custody::Released)
        }
        Journal::Absent | Journal::Claimed | Journal::Refused => panic!("a publish process before the sealed end"),
    }
}
