//! The target in memory: what SQL Server would hold, and what its transactions check.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use contract::digest::{Digest, hash_limbs};
use contract::error::PortError;
use contract::port::target::{
    CapacityObservation, Claim, ClaimOutcome, CustodyRelease, DigestObservation, Mutation, PrepareRequest,
    PreparedObservation, PublishRequest, Receipt, ReceiptProbe, RunFence, StageDefinition, StageRef, StageRetirement,
    WriterGrant,
};

use super::faults::Late;

/// A row of the target table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) bytes: Vec<u8>,
    /// Whether it lies in the window of the transfer.
    pub(super) in_window: bool,
}

/// A stage or prepared table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) object_id: i32,
    pub(super) owner: Digest,
    pub(super) rows: Vec<Vec<u8>>,
    /// The application lock under which it is written.
    lock: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Custody {
    pub(super) holder: Digest,
    pub(super) epoch: i64,
    pub(super) held: bool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) target: Vec<Row>,
    pub(super) tables: BTreeMap<String, Table>,
    pub(super) custody: Option<Custody>,
    pub(super) receipts: BTreeMap<Digest, Receipt>,
    pub(super) evidence: BTreeMap<Digest, String>,
    pub(super) publications: u32,
    /// Reserved bytes of all stages.
    pub(super) allocated: u64,
    pub(super) capacity_hidden: bool,
    fences: BTreeMap<Digest, (u64, Digest)>,
    locks: HashMap<String, u64>,
    /// Sessions whose client is gone and which the server still has, with what they are still going to do.
    lingering: HashMap<u64, Vec<Late>>,
    /// Requests that are still on their way, outside any session.
    in_flight: Vec<Late>,
    last_id: i32,
    last_session: u64,
}

/// What must never be seen and was.
#[derive(Debug, Clone, Default)]
pub(super) struct Violations(Arc<Mutex<Vec<String>>>);

impl Violations {
    pub(super) fn add(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Clone, Default)]
pub(super) struct Database {
    state: Arc<Mutex<State>>,
    pub(super) violations: Violations,
}

fn refuse(code: &'static str) -> PortError {
    PortError::not_done(code, "refused by the simulated target")
}

/// What the digest query would return.
fn digest<'a>(rows: impl Iterator<Item = &'a Vec<u8>>, expected: u64) -> DigestObservation {
    let mut sums = [0i128; 8];
    let mut count = 0u64;
    for row in rows.take(usize::try_from(expected).unwrap() + 1) {
        count += 1;
        for (sum, limb) in sums.iter_mut().zip(hash_limbs(Digest::of(row).as_bytes())) {
            *sum += limb;
        }
    }
    DigestObservation {
        row_count: i64::try_from(count).unwrap(),
        overflow: count > expected,
        limbs: sums.map(|sum| sum.to_string()),
    }
}

impl Database {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn session(&self) -> u64 {
        let mut state = self.lock();
        state.last_session += 1;
        state.last_session
    }

    /// Takes a lock for a session. A lock of a session whose client is gone is not granted this time; what that session
    /// was still going to do happens now, and it ends.
    pub(super) fn acquire(&self, resource: &str, session: u64) -> Result<(), PortError> {
        let late = {
            let mut state = self.lock();
            match state.locks.get(resource).copied() {
                Some(holder) if holder != session => state.lingering.remove(&holder).map(|late| (holder, late)),
                _ => {
                    state.locks.insert(resource.to_owned(), session);
                    return Ok(());
                }
            }
        };
        if let Some((holder, late)) = late {
            late.into_iter().for_each(|effect| effect());
            self.end_session(holder);
        }
        Err(refuse("mssql_native.sqlclient_writer_not_settled"))
    }

    /// The server has noticed that a session's client is gone, unless it lingers.
    pub(super) fn end_session(&self, session: u64) {
        let mut state = self.lock();
        if !state.lingering.contains_key(&session) {
            state.locks.retain(|_, holder| *holder != session);
        }
    }

    pub(super) fn linger(&self, session: u64, late: Option<Late>) {
        self.lock().lingering.entry(session).or_default().extend(late);
    }

    pub(super) fn send_late(&self, late: Late) {
        self.lock().in_flight.push(late);
    }

    /// Requests that were on their way arrive.
    pub(super) fn deliver(&self) {
        let arrived = std::mem::take(&mut self.lock().in_flight);
        arrived.into_iter().for_each(|effect| effect());
    }

    fn compare_fence(&self, fence: &RunFence) -> Result<(), PortError> {
        let present = self.lock().fences.get(&fence.operation_key).copied();
        if present == Some((fence.epoch, fence.opener_nonce)) {
            return Ok(());
        }
        Err(refuse("native_transfer.run_fenced"))
    }

    pub(super) fn raise_fence(&self, fence: &RunFence) -> bool {
        let ours = (fence.epoch, fence.opener_nonce);
        let mut state = self.lock();
        let present = state.fences.entry(fence.operation_key).or_insert(ours);
        if present.0 < ours.0 {
            *present = ours;
        }
        *present == ours
    }

    pub(super) fn capacity(&self) -> Result<CapacityObservation, PortError> {
        let state = self.lock();
        if state.capacity_hidden {
            return Err(refuse("mssql_native.target_capacity_unavailable"));
        }
        Ok(CapacityObservation {
            stage_allocated_bytes: state.allocated,
            stage_tables: state.tables.len() as u64,
            data_volume_headroom_bytes: vec![1 << 40],
            log_headroom_bytes: 1 << 40,
        })
    }

    pub(super) fn claim(&self, claim: &Claim) -> ClaimOutcome {
        let held = self.lock().custody.filter(|custody| custody.held && custody.holder != claim.holder);
        if let Some(custody) = held {
            return ClaimOutcome::Held { holder: custody.holder };
        }
        if !self.raise_fence(&claim.fence) {
            return ClaimOutcome::Fenced;
        }
        let mut state = self.lock();
        let epoch = match state.custody {
            Some(custody) if custody.held => custody.epoch,
            Some(custody) => custody.epoch + 1,
            None => 1,
        };
        state.custody = Some(Custody { holder: claim.holder, epoch, held: true });
        ClaimOutcome::Claimed {
            generation: 1,
            operation_epoch: 1,
            custody_epoch: epoch,
            claimed_at: "2013-07-05T00:00:00Z".to_owned(),
        }
    }

    pub(super) fn release(&self, release: &CustodyRelease) -> Result<(), PortError> {
        self.compare_fence(&release.fence)?;
        let mut state = self.lock();
        match state.custody.as_mut() {
            Some(custody) if custody.holder == release.holder && custody.epoch == release.custody_epoch => {
                custody.held = false;
                Ok(())
            }
            // A later claim was made over a cleared row: ours was released before.
            Some(custody) if custody.epoch > release.custody_epoch => Ok(()),
            _ => Err(refuse("mssql_native.custody_release_unproved")),
        }
    }

    pub(super) fn create_stage(&self, definition: &StageDefinition, grant: &WriterGrant) -> Result<i32, PortError> {
        self.compare_fence(&grant.fence)?;
        self.create(definition, &grant.lock_resource, Vec::new())
    }

    fn create(&self, definition: &StageDefinition, lock: &str, rows: Vec<Vec<u8>>) -> Result<i32, PortError> {
        let mut state = self.lock();
        if state.tables.contains_key(&definition.name.table) {
            return Err(refuse("sim.table_exists"));
        }
        state.last_id += 1;
        let table = Table { object_id: state.last_id, owner: definition.owner_binding, rows, lock: lock.to_owned() };
        let object_id = table.object_id;
        state.tables.insert(definition.name.table.clone(), table);
        Ok(object_id)
    }

    /// A table that is exactly the one that was created.
    fn exact<R>(&self, stage: &StageRef, view: impl FnOnce(&mut Table) -> R) -> Result<R, PortError> {
        let mut state = self.lock();
        let ours =
            |table: &&mut Table| table.object_id == stage.object_id && table.owner == stage.definition.owner_binding;
        let table = state.tables.get_mut(&stage.definition.name.table).filter(ours);
        table.map(view).ok_or_else(|| refuse("mssql_native.stage_identity_mismatch"))
    }

    pub(super) fn write(&self, stage: &StageRef, rows: Vec<Vec<u8>>) -> Result<(), PortError> {
        self.exact(stage, |table| table.rows.extend(rows))
    }

    pub(super) fn verify(&self, stage: &StageRef, expected: u64) -> Result<DigestObservation, PortError> {
        self.exact(stage, |table| digest(table.rows.iter(), expected))
    }

    pub(super) fn prepare(&self, request: &PrepareRequest) -> Result<PreparedObservation, PortError> {
        self.compare_fence(&request.fence)?;
        let session = self.session();
        self.acquire(&request.lock_resource, session)?;
        let prepared = self.fill(request);
        self.end_session(session);
        prepared
    }

    fn fill(&self, request: &PrepareRequest) -> Result<PreparedObservation, PortError> {
        let mut rows = Vec::new();
        for stage in &request.stages {
            rows.extend(self.exact(stage, |table| table.rows.clone())?);
        }
        let full = digest(rows.iter(), request.expected_rows);
        let object_id = self.create(&request.prepared, &request.lock_resource, rows)?;
        Ok(PreparedObservation { object_id, business: full.clone(), full })
    }

    pub(super) fn publish(&self, request: &PublishRequest) -> Result<Receipt, PortError> {
        self.compare_fence(&request.fence)?;
        let key = request.operation.operation_key;
        if let Some(receipt) = self.lock().receipts.get(&key) {
            return Ok(receipt.clone());
        }
        let ours = |custody: &Custody| {
            custody.held && custody.holder == request.holder && custody.epoch == request.custody_epoch
        };
        if !self.lock().custody.as_ref().is_some_and(ours) {
            return Err(refuse("mssql_native.custody_held"));
        }
        let rows = self.exact(&request.prepared.stage, |table| table.rows.clone())?;
        if digest(rows.iter(), request.prepared.expected_rows) != request.prepared_full {
            return Err(refuse("mssql_native.prepared_content_changed"));
        }
        let mut state = self.lock();
        let before = state.target.len();
        let inserted_rows = rows.len() as u64;
        state.target.retain(|row| matches!(request.mutation, Mutation::PartitionReplace { .. }) && !row.in_window);
        let replaced_rows = Some((before - state.target.len()) as u64);
        state.target.extend(rows.into_iter().map(|bytes| Row { bytes, in_window: true }));
        state.publications += 1;
        let receipt = Receipt {
            receipt_id: request.receipt.receipt_id.clone(),
            owner_digest: request.operation.owner_digest,
            operation_epoch: request.operation_epoch,
            payload_manifest_sha256: request.receipt.payload_manifest_sha256,
            mutation_plan_sha256: request.receipt.mutation_plan_sha256,
            inserted_rows,
            replaced_rows,
            committed_at: "2013-07-05T00:00:00Z".to_owned(),
        };
        state.receipts.insert(key, receipt.clone());
        Ok(receipt)
    }

    pub(super) fn probe(&self, operation_key: Digest) -> ReceiptProbe {
        let receipt = self.lock().receipts.get(&operation_key).cloned();
        receipt.map_or(ReceiptProbe::AbsentUnderLock, ReceiptProbe::Present)
    }

    pub(super) fn retire(
        &self,
        grant: &WriterGrant,
        definition: &StageDefinition,
        object_id: Option<i32>,
    ) -> Result<StageRetirement, PortError> {
        self.compare_fence(&grant.fence)?;
        let session = self.session();
        self.acquire(&grant.lock_resource, session)?;
        let retired = self.drop_ours(grant, definition, object_id);
        self.end_session(session);
        retired
    }

    fn drop_ours(
        &self,
        grant: &WriterGrant,
        definition: &StageDefinition,
        object_id: Option<i32>,
    ) -> Result<StageRetirement, PortError> {
        let mut state = self.lock();
        let Some(table) = state.tables.get(&definition.name.table) else { return Ok(StageRetirement::AlreadyAbsent) };
        let ours = table.owner == definition.owner_binding && object_id.is_none_or(|id| id == table.object_id);
        if !ours {
            return Err(refuse(FOREIGN_OWNER));
        }
        if table.lock != grant.lock_resource {
            self.violations.add(format!("{} was dropped under another lock than its writer's", definition.name.table));
        }
        state.tables.remove(&definition.name.table);
        Ok(StageRetirement::Dropped)
    }

    pub(super) fn save_evidence(&self, key: Digest, document: String, fence: &RunFence) -> Result<(), PortError> {
        self.compare_fence(fence)?;
        let mut state = self.lock();
        let present = state.evidence.entry(key).or_insert_with(|| document.clone());
        if *present == document { Ok(()) } else { Err(refuse("sim.other_evidence")) }
    }
}

/// Code of a table that is not ours.
pub(super) const FOREIGN_OWNER: &str = "sim.foreign_owner";
