//! The target port over the database in memory, every call through the faults, every effect with its durable intent.

use std::io::Read;

use contract::digest::Digest;
use contract::error::{Fate, PortError};
use contract::port::target::{
    CapacityObservation, ChunkFacts, Claim, ClaimOutcome, CustodyRelease, DigestObservation, OperationIdentity,
    PrepareRequest, PreparedObservation, PreparedRef, PublishRequest, Receipt, ReceiptProbe, RunFence, StageDefinition,
    StageRef, StageRetirement, StageWriter, TableName, Target, TargetObservation, TargetRequest, TargetTable,
    WriterGrant, WriterTerminal,
};
use contract::transfer::TransferEvent;
use contract::transfer::run::kind;
use tokio::sync::Semaphore;

use super::database::Database;
use super::faults::Faults;
use super::store::Store;
use super::transfer::{split, target_columns};
use crate::records::{FROZEN, GRANT};

#[derive(Clone)]
pub(super) struct SimTarget {
    pub(super) db: Database,
    pub(super) store: Store,
    pub(super) faults: Faults,
    pub(super) run: String,
    /// Bulk loads wait here for a permit, where a test wants them to.
    pub(super) gate: Option<std::sync::Arc<Semaphore>>,
    /// Where set, a bulk load panics.
    pub(super) panics: bool,
}

impl SimTarget {
    async fn call<R: Send + 'static>(
        &self,
        call: &str,
        effect: impl FnOnce(&Database) -> Result<R, PortError> + Send + 'static,
    ) -> Result<R, PortError> {
        let (db, later) = (self.db.clone(), self.db.clone());
        self.faults.call(call, move || effect(&db), move |late| later.send_late(late)).await
    }

    /// An effect needs a durable intent first.
    fn intended(&self, effect: &str, intents: &[bool]) {
        if !intents.contains(&true) {
            self.db.violations.add(format!("{effect} without a durable intent"));
        }
    }

    fn event(&self, event: TransferEvent) -> bool {
        self.store.has_event(&self.run, event.text())
    }

    fn record(&self, kind: &str) -> bool {
        self.store.has(&self.run, |record| record.kind == kind)
    }
}

impl Target for SimTarget {
    type Writer = SimWriter;

    async fn observe(&self, request: &TargetRequest) -> Result<TargetObservation, PortError> {
        let name = request.table.clone();
        let observation = TargetObservation {
            server_names: ["sim", "sim", "", "sim"].map(str::to_owned),
            database: "warehouse".to_owned(),
            database_create_token: "2013-01-01".to_owned(),
            product_version: "16.0".to_owned(),
            catalog_faults: Vec::new(),
            missing_grants: Vec::new(),
            registry_binding: None,
            table: Some(TargetTable {
                name,
                object_id: 99,
                columns: target_columns(),
                fingerprint: Digest::of(b"catalog"),
            }),
        };
        self.call("observe", |_| Ok(observation)).await
    }

    async fn capacity(&self, _request: &TargetRequest) -> Result<CapacityObservation, PortError> {
        self.call("capacity", Database::capacity).await
    }

    async fn claim(&self, claim: &Claim) -> Result<ClaimOutcome, PortError> {
        self.intended("a claim", &[self.record(FROZEN)]);
        let claim = claim.clone();
        let outcome = self.call("claim", move |db| Ok(db.claim(&claim))).await?;
        if matches!(outcome, ClaimOutcome::Claimed { .. }) {
            self.db.deliver();
        }
        Ok(outcome)
    }

    async fn raise_fence(&self, _request: &TargetRequest, fence: &RunFence) -> Result<bool, PortError> {
        let fence = fence.clone();
        let raised = self.call("raise_fence", move |db| Ok(db.raise_fence(&fence))).await?;
        self.db.deliver();
        Ok(raised)
    }

    async fn open_writer(&self, grant: &WriterGrant) -> Result<SimWriter, PortError> {
        self.intended("a writer's session", &[self.record(GRANT)]);
        let (target, grant) = (self.clone(), grant.clone());
        let open = move |db: &Database| {
            let session = db.session();
            db.acquire(&grant.lock_resource, session)?;
            Ok(SimWriter { target, session, grant, broken: false })
        };
        self.call("open_writer", open).await
    }

    async fn prepare(&self, request: &PrepareRequest) -> Result<PreparedObservation, PortError> {
        self.intended("a preparation", &[self.event(TransferEvent::PreparationBegan)]);
        let request = request.clone();
        self.call("prepare", move |db| db.prepare(&request)).await
    }

    async fn verify_prepared(&self, prepared: &PreparedRef) -> Result<PreparedObservation, PortError> {
        let prepared = prepared.clone();
        let verify = move |db: &Database| {
            let full = db.verify(&prepared.stage, prepared.expected_rows)?;
            Ok(PreparedObservation { object_id: prepared.stage.object_id, business: full.clone(), full })
        };
        self.call("verify_prepared", verify).await
    }

    async fn publish(&self, request: &PublishRequest) -> Result<Receipt, PortError> {
        self.intended("a publication", &[self.event(TransferEvent::PublicationBegan)]);
        let request = request.clone();
        self.call("publish", move |db| db.publish(&request)).await
    }

    async fn probe_receipt(
        &self,
        _request: &TargetRequest,
        operation: &OperationIdentity,
        _lock_timeout_ms: u32,
    ) -> Result<ReceiptProbe, PortError> {
        let key = operation.operation_key;
        self.call("probe_receipt", move |db| Ok(db.probe(key))).await
    }

    async fn retire_stage(
        &self,
        grant: &WriterGrant,
        definition: &StageDefinition,
        object_id: Option<i32>,
    ) -> Result<StageRetirement, PortError> {
        let proved = [TransferEvent::PublicationConfirmed, TransferEvent::PreparationBegan].map(|e| self.event(e));
        self.intended("a retirement", &[self.record(kind::NONPUBLICATION), proved[0], proved[1]]);
        let (grant, definition) = (grant.clone(), definition.clone());
        self.call("retire_stage", move |db| db.retire(&grant, &definition, object_id)).await
    }

    async fn save_evidence(
        &self,
        _request: &TargetRequest,
        operation: &OperationIdentity,
        document: &str,
        _document_sha256: &Digest,
        fence: &RunFence,
    ) -> Result<(), PortError> {
        let (key, document, fence) = (operation.operation_key, document.to_owned(), fence.clone());
        self.call("save_evidence", move |db| db.save_evidence(key, document, &fence)).await
    }

    async fn release_custody(&self, release: &CustodyRelease) -> Result<(), PortError> {
        let release = release.clone();
        self.call("release_custody", move |db| db.release(&release)).await
    }
}

/// A session that owns its application lock until its client closes it or is gone.
pub(super) struct SimWriter {
    target: SimTarget,
    session: u64,
    grant: WriterGrant,
    broken: bool,
}

impl SimWriter {
    async fn call<R: Send + 'static>(
        &mut self,
        call: &str,
        effect: impl FnOnce(&Database) -> Result<R, PortError> + Send + 'static,
    ) -> Result<R, PortError> {
        if self.broken {
            return Err(PortError::unknown("sim.session_gone", "the session was cut before"));
        }
        let (db, later, session) = (self.target.db.clone(), self.target.db.clone(), self.session);
        let postpone = move |late| later.linger(session, Some(late));
        let result = self.target.faults.call(call, move || effect(&db), postpone).await;
        // A cut session is one that the server may still have.
        self.broken = result.as_ref().is_err_and(|error| error.fate == Fate::Unknown);
        if self.broken {
            self.target.db.linger(self.session, None);
        }
        result
    }

    fn wrote(&self, event: &str) -> bool {
        let event = format!("\"event\":\"{event}\"");
        self.target.store.has(&self.target.run, |r| r.kind == kind::WRITER_EVENT && r.payload.contains(&event))
    }
}

impl Drop for SimWriter {
    fn drop(&mut self) {
        self.target.db.end_session(self.session);
    }
}

fn name_of(stage: &TableName) -> String {
    format!("\"table\":\"{}\"", stage.table)
}

impl StageWriter for SimWriter {
    async fn create_stage(&mut self, definition: &StageDefinition) -> Result<i32, PortError> {
        let name = name_of(&definition.name);
        let granted = self.target.store.has(&self.target.run, |r| r.kind == GRANT && r.payload.contains(&name));
        self.target.intended("a stage", &[granted && self.wrote("INTENT")]);
        let (definition, grant) = (definition.clone(), self.grant.clone());
        self.call("create_stage", move |db| db.create_stage(&definition, &grant)).await
    }

    async fn write(
        &mut self,
        stage: &StageRef,
        chunk: &ChunkFacts,
        mut rows: Box<dyn Read + Send>,
    ) -> Result<WriterTerminal, PortError> {
        self.target.intended("a bulk load", &[self.wrote("WRITING")]);
        assert!(!self.target.panics, "a bulk load of the simulation panics");
        if let Some(gate) = self.target.gate.clone() {
            gate.acquire().await.unwrap().forget();
        }
        let mut bytes = Vec::new();
        rows.read_to_end(&mut bytes).unwrap();
        let (stage, count) = (stage.clone(), chunk.rows);
        let write = move |db: &Database| {
            db.write(&stage, split(&bytes, usize::try_from(count).unwrap()))?;
            Ok(WriterTerminal { rows_sent: count, rows_counted: count })
        };
        self.call("write", write).await
    }

    async fn verify(&mut self, stage: &StageRef, expected_rows: u64) -> Result<DigestObservation, PortError> {
        let stage = stage.clone();
        self.call("verify", move |db| db.verify(&stage, expected_rows)).await
    }

    async fn allocated_bytes(&mut self) -> Result<u64, PortError> {
        self.call("allocated_bytes", |db| Ok(db.lock().allocated)).await
    }

    async fn close(mut self) -> Result<(), PortError> {
        let session = self.session;
        self.call("close", move |db| {
            db.end_session(session);
            Ok(())
        })
        .await
    }
}
