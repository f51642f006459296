//! The journal in memory: a log that outlives its opener, with the epoch that fences a former one.

use std::sync::{Arc, Mutex, MutexGuard};

use contract::canon::{Json, decode_object};
use contract::custody::{CustodyRecord, CustodyState};
use contract::digest::Digest;
use contract::error::PortError;
use contract::port::journal::{Appended, Journal, JournalHeader, NewRecord, RECORD_BYTES_MAX, Record, SHARED};
use contract::transfer::run::kind;

use super::faults::{Fault, Faults, lost, refused};
use crate::records::CUSTODY;

#[derive(Debug, Clone, Default)]
struct Log {
    records: Vec<Record>,
    epoch: u64,
}

/// The durable log.
#[derive(Debug, Clone, Default)]
pub(super) struct Store(Arc<Mutex<Log>>);

impl Store {
    /// Opens the log for writing; the former opener is fenced.
    pub(super) fn open(&self, nonce: Digest, faults: &Faults) -> SimJournal {
        let mut log = self.lock();
        log.epoch += 1;
        let header = JournalHeader {
            journal_id: Digest::of(b"journal").to_string()[..32].to_owned(),
            epoch: log.epoch,
            opener_nonce: nonce.to_string(),
        };
        SimJournal { store: self.clone(), header, faults: faults.clone() }
    }

    /// A copy of the volume: the same records under the same journal id.
    pub(super) fn copy(&self) -> Store {
        Store(Arc::new(Mutex::new(self.lock().clone())))
    }

    pub(super) fn records(&self, run: &str) -> Vec<Record> {
        self.lock().records.iter().filter(|record| record.run == run).cloned().collect()
    }

    /// Whether a record of a run is there.
    pub(super) fn has(&self, run: &str, matches: impl Fn(&Record) -> bool) -> bool {
        self.lock().records.iter().any(|record| record.run == run && matches(record))
    }

    pub(super) fn has_event(&self, run: &str, event: &str) -> bool {
        self.has(run, |record| record.kind == kind::TRANSFER_EVENT && record.key == event)
    }

    /// Holders by the latest custody record of each target.
    pub(super) fn holders(&self) -> Vec<Digest> {
        let log = self.lock();
        let mut last = std::collections::BTreeMap::new();
        for record in log.records.iter().filter(|record| record.run == SHARED && record.kind == CUSTODY) {
            last.insert(&record.key, &record.payload);
        }
        let state = |payload: &String| CustodyRecord::decode(payload.as_bytes()).unwrap().state;
        let holder = |payload: &String| match state(payload) {
            CustodyState::Held { holder, .. } => Some(holder),
            CustodyState::Clear(_) => None,
        };
        last.into_values().filter_map(holder).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap()
    }
}

/// One opening of the log.
#[derive(Debug)]
pub(super) struct SimJournal {
    store: Store,
    header: JournalHeader,
    faults: Faults,
}

/// What a record is called as a place for a fault: its kind, and the event for a record of a series.
fn call(record: &NewRecord) -> String {
    let document = decode_object(record.payload.as_bytes()).unwrap();
    let event = match record.kind {
        kind::TRANSFER_EVENT | kind::WRITER_EVENT => document.get("event").and_then(Json::as_str).unwrap(),
        CUSTODY => document.get("state").and_then(Json::as_str).unwrap(),
        _ => "",
    };
    format!("append {} {event}", record.kind).trim_end().to_owned()
}

impl SimJournal {
    fn write(&self, records: &[NewRecord]) -> Result<Appended, PortError> {
        let mut log = self.store.lock();
        if log.epoch != self.header.epoch {
            return Err(PortError::not_done("native_transfer.journal_fenced", "a later opener"));
        }
        let before = log.records.len();
        for new in records {
            assert!(new.payload.len() <= RECORD_BYTES_MAX, "a record is bounded when it is written");
            let same = |record: &&Record| record.run == new.run && record.kind == new.kind && record.key == new.key;
            if new.unique
                && let Some(present) = log.records.iter().find(same)
            {
                if present.payload == new.payload {
                    continue;
                }
                log.records.truncate(before);
                return Err(PortError::not_done("mssql_native.invalid_journal", "another payload under a unique key"));
            }
            let sequence = log.records.len() as u64 + 1;
            log.records.push(Record {
                sequence,
                run: new.run.clone(),
                kind: new.kind.to_owned(),
                key: new.key.clone(),
                payload: new.payload.clone(),
                digest: Digest::of(new.payload.as_bytes()),
            });
        }
        Ok(if log.records.len() == before { Appended::Adopted } else { Appended::Written })
    }

    fn read<R>(&self, what: &str, view: impl FnOnce(&Log) -> R) -> Result<R, PortError> {
        if self.faults.is_dead() {
            return Err(lost());
        }
        match self.faults.enter(what) {
            None => Ok(view(&self.store.lock())),
            Some(Fault::DiesBefore) => {
                self.faults.kill_and_wait();
                Err(lost())
            }
            Some(_) => Err(refused()),
        }
    }
}

impl Journal for SimJournal {
    fn header(&self) -> &JournalHeader {
        &self.header
    }

    fn append(&mut self, records: &[NewRecord]) -> Result<Appended, PortError> {
        // A dead process writes nothing; what its journal thread still answers reaches nobody.
        if self.faults.is_dead() {
            return Err(lost());
        }
        let fault = records.iter().fold(None, |fault, record| fault.or(self.faults.enter(&call(record))));
        match fault {
            None if self.faults.disk_is_full() => Err(refused()),
            None => self.write(records),
            Some(Fault::RefusedTold) => Err(refused()),
            Some(Fault::LostRequest | Fault::Late) => Err(lost()),
            Some(Fault::LostAnswer) => self.write(records).and_then(|_| Err(lost())),
            Some(fault) => {
                if fault == Fault::DiesAfter {
                    self.write(records)?;
                }
                self.faults.kill_and_wait();
                Err(lost())
            }
        }
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, PortError> {
        self.read("journal records", |log| log.records.iter().filter(|record| record.run == run).cloned().collect())
    }

    fn latest_shared(&self, kind: &str, key: &str) -> Result<Option<Record>, PortError> {
        let ours = |record: &&Record| record.run == SHARED && record.kind == kind && record.key == key;
        self.read("journal latest_shared", |log| log.records.iter().rev().find(ours).cloned())
    }

    fn runs(&self) -> Result<Vec<String>, PortError> {
        self.read("journal runs", |log| {
            let mut runs: Vec<String> = Vec::new();
            for record in &log.records {
                if !runs.contains(&record.run) {
                    runs.push(record.run.clone());
                }
            }
            runs
        })
    }
}
