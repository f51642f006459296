//! The target port: observations, claim, preparation, cleanup. Publication has a file of its own.

use std::time::Duration;

use contract::digest::Digest;
use contract::error::{Fate, PortError};
use contract::port::target::{
    CapacityObservation, Claim, ClaimOutcome, CustodyRelease, DigestObservation, OperationIdentity, PrepareRequest,
    PreparedObservation, PreparedRef, PublishRequest, Receipt, ReceiptProbe, RunFence, StageDefinition, StageRef,
    StageRetirement, Target, TargetObservation, TargetRequest, WriterGrant,
};

use crate::error::{SessionError, refuse};
use crate::options::ConnectOptions;
use crate::session::{Cell, Row, Session};
use crate::sql::{self, claim, digest, prepare, stage};
use crate::writer::SqlServerWriter;
use crate::{observation, probe, publication};

/// How long a batch of ours waits for a lock, milliseconds.
pub(crate) const LOCK_TIMEOUT_MS: u32 = 30_000;

/// One SQL Server database as the target of transfers. Each call uses a session of its own.
#[derive(Debug, Clone)]
pub struct SqlServerTarget {
    options: ConnectOptions,
    state_schema: String,
}

impl SqlServerTarget {
    /// A target that is reached with `options` and keeps its state in `state_schema`.
    pub fn new(options: ConnectOptions, state_schema: &str) -> Self {
        SqlServerTarget { options, state_schema: state_schema.to_string() }
    }

    pub(crate) fn options(&self) -> &ConnectOptions {
        &self.options
    }

    pub(crate) async fn session(&self, purpose: &str) -> Result<Session, PortError> {
        Session::open(&self.options, &format!("native-transfer {purpose}")).await
    }

    fn statement(&self) -> Duration {
        self.options.timeouts.statement
    }

    async fn one_row(&self, purpose: &str, sql: &str) -> Result<Row, PortError> {
        let mut session = self.session(purpose).await?;
        let row = session.row(sql, self.statement()).await.map_err(SessionError::changing)?;
        session.close().await;
        Ok(row)
    }
}

impl Target for SqlServerTarget {
    type Writer = SqlServerWriter;

    async fn observe(&self, request: &TargetRequest) -> Result<TargetObservation, PortError> {
        let mut session = self.session("observe").await?;
        let observation = observation::observe_all(&mut session, request, self.statement()).await;
        session.close().await;
        observation
    }

    async fn capacity(&self, _request: &TargetRequest) -> Result<CapacityObservation, PortError> {
        let mut session = self.session("capacity").await?;
        let observed = observation::observe_capacity(&mut session, self.statement()).await;
        session.close().await;
        observed.map_err(observation::capacity_unavailable)
    }

    async fn claim(&self, request: &Claim) -> Result<ClaimOutcome, PortError> {
        let row = self.one_row("claim", &claim::claim(request, LOCK_TIMEOUT_MS)).await?;
        claim_outcome(&row).map_err(SessionError::changing)
    }

    async fn raise_fence(&self, request: &TargetRequest, fence: &RunFence) -> Result<bool, PortError> {
        let row = self.one_row("fence", &claim::raise_fence(request, fence, LOCK_TIMEOUT_MS)).await?;
        Ok(field(&row, 0).and_then(Cell::count).map_err(SessionError::changing)? == 1)
    }

    async fn open_writer(&self, grant: &WriterGrant) -> Result<SqlServerWriter, PortError> {
        SqlServerWriter::open(&self.options, &self.state_schema, grant).await
    }

    async fn prepare(&self, request: &PrepareRequest) -> Result<PreparedObservation, PortError> {
        let mut session = self.session("prepare").await?;
        let outcome = self.prepare_on(&mut session, request).await;
        session.close().await;
        outcome
    }

    async fn verify_prepared(&self, prepared: &PreparedRef) -> Result<PreparedObservation, PortError> {
        let mut session = self.session("verify").await?;
        let bulk = self.options.timeouts.bulk;
        session_lock(&mut session, &prepared.lock_resource, LOCK_TIMEOUT_MS, self.statement()).await?;
        let (text, fields) = prepare::digest(&prepared.stage, &prepared.business_columns, prepared.expected_rows)?;
        let batch = stage::barrier(&prepared.stage, &text, LOCK_TIMEOUT_MS);
        let row = session.row(&batch, bulk).await.map_err(SessionError::observing)?;
        session.close().await;
        let (business, full) = digests(&row, fields).map_err(SessionError::observing)?;
        Ok(PreparedObservation { object_id: prepared.stage.object_id, business, full })
    }

    async fn publish(&self, request: &PublishRequest) -> Result<Receipt, PortError> {
        publication::publish(self, request).await
    }

    async fn probe_receipt(
        &self,
        request: &TargetRequest,
        operation: &OperationIdentity,
        lock_timeout_ms: u32,
    ) -> Result<ReceiptProbe, PortError> {
        probe::receipt(&self.options, request, operation, lock_timeout_ms).await
    }

    async fn retire_stage(
        &self,
        grant: &WriterGrant,
        definition: &StageDefinition,
        object_id: Option<i32>,
    ) -> Result<StageRetirement, PortError> {
        let writer = SqlServerWriter::open(&self.options, &self.state_schema, grant).await?;
        let mut session = writer.into_session();
        let batch = stage::retire(&self.state_schema, &grant.fence, definition, object_id, LOCK_TIMEOUT_MS);
        let row = session.row(&batch, self.statement()).await.map_err(SessionError::changing)?;
        session.close().await;
        retirement(&row)
    }

    async fn save_evidence(
        &self,
        request: &TargetRequest,
        operation: &OperationIdentity,
        document: &str,
        document_sha256: &Digest,
        fence: &RunFence,
    ) -> Result<(), PortError> {
        let batch = claim::save_evidence(request, operation, document, document_sha256, fence, LOCK_TIMEOUT_MS);
        let row = self.one_row("evidence", &batch).await?;
        match field(&row, 0).and_then(Cell::count).map_err(SessionError::changing)? {
            1 => Ok(()),
            _ => Err(refuse(
                "mssql_native.operational_evidence_changed",
                "other evidence of this operation is stored already: keep both and compare them",
            )),
        }
    }

    async fn release_custody(&self, release: &CustodyRelease) -> Result<(), PortError> {
        let row = self.one_row("release", &claim::release(release, LOCK_TIMEOUT_MS)).await?;
        match field(&row, 0).and_then(Cell::count).map_err(SessionError::changing)? {
            1 => Ok(()),
            _ => Err(refuse(
                "mssql_native.custody_release_unproved",
                "custody at the target is not ours at this epoch: another opener settled it; look at the run with inspect",
            )),
        }
    }
}

impl SqlServerTarget {
    async fn prepare_on(
        &self,
        session: &mut Session,
        request: &PrepareRequest,
    ) -> Result<PreparedObservation, PortError> {
        let (statement, bulk) = (self.statement(), self.options.timeouts.bulk);
        session_lock(session, &request.lock_resource, LOCK_TIMEOUT_MS, statement).await?;
        let create = stage::create(&self.state_schema, &request.fence, &request.prepared, LOCK_TIMEOUT_MS);
        let created = session.row(&create, statement).await.map_err(SessionError::changing)?;
        let object_id = object_id(&created).map_err(SessionError::changing)?;
        let fills = prepare::fill(request);
        if !fills.is_empty() {
            let open = format!("{}BEGIN TRANSACTION;\n", sql::ident::prologue(LOCK_TIMEOUT_MS));
            session.query(&open, statement).await.map_err(SessionError::changing)?;
            for fill in &fills {
                session.query(fill, bulk).await.map_err(SessionError::changing)?;
            }
            session
                .query("COMMIT TRANSACTION;\n", self.options.timeouts.commit)
                .await
                .map_err(SessionError::changing)?;
        }
        let prepared = StageRef { definition: request.prepared.clone(), object_id };
        let (text, fields) = prepare::digest(&prepared, &request.business_columns, request.expected_rows)?;
        let batch = stage::barrier(&prepared, &text, LOCK_TIMEOUT_MS);
        let row = session.row(&batch, bulk).await.map_err(SessionError::changing)?;
        let (business, full) = digests(&row, fields).map_err(SessionError::changing)?;
        Ok(PreparedObservation { object_id, business, full })
    }
}

/// A session-owned exclusive applock; not granted in time means that its former holder may still live.
pub(crate) async fn session_lock(
    session: &mut Session,
    resource: &str,
    timeout_ms: u32,
    deadline: Duration,
) -> Result<(), PortError> {
    let batch = format!(
        "SET NOCOUNT ON; DECLARE @rc int;\nEXEC @rc = sys.sp_getapplock @Resource = {}, @LockMode = N'Exclusive', \
         @LockOwner = N'Session', @LockTimeout = {timeout_ms};\nSELECT @rc;\n",
        sql::ident::literal(resource),
    );
    let row = session
        .row(&batch, deadline + Duration::from_millis(timeout_ms.into()))
        .await
        .map_err(SessionError::observing)?;
    match field(&row, 0).and_then(Cell::int).map_err(SessionError::observing)? {
        0 | 1 => Ok(()),
        _ => Err(refuse(
            "mssql_native.sqlclient_writer_not_settled",
            "the former writer's session still holds its lock: wait until SQL Server has ended it, then run again",
        )),
    }
}

/// A field of a row, with its absence as an error.
pub(crate) fn field(row: &Row, index: usize) -> Result<&Cell, SessionError> {
    row.get(index).ok_or(SessionError::Shape("an answer has fewer columns than it must"))
}

/// The object id of a freshly created table.
pub(crate) fn object_id(row: &Row) -> Result<i32, SessionError> {
    let id = field(row, 0)?.int()?;
    i32::try_from(id).map_err(|_| SessionError::Shape("an object id is out of range"))
}

/// The digest observations of an aggregate row: business and full (the same with one hash).
pub(crate) fn digests(row: &Row, fields: usize) -> Result<(DigestObservation, DigestObservation), SessionError> {
    if row.len() != fields {
        return Err(SessionError::Shape("the digest statement returned another number of columns"));
    }
    let business = digest_observation(row, 2)?;
    let full = if fields == digest::DOUBLE_FIELDS { digest_observation(row, 10)? } else { business.clone() };
    Ok((business, full))
}

fn digest_observation(row: &Row, first_limb: usize) -> Result<DigestObservation, SessionError> {
    let mut limbs: [String; 8] = Default::default();
    for (word, limb) in limbs.iter_mut().enumerate() {
        let cell = field(row, first_limb + word)?;
        *limb = match cell {
            Cell::Int(v) => v.to_string(),
            Cell::Text(v) => v.clone(),
            Cell::Null => return Err(SessionError::Shape("a digest word is NULL")),
        };
    }
    Ok(DigestObservation { row_count: field(row, 0)?.int()?, overflow: field(row, 1)?.int()? != 0, limbs })
}

fn claim_outcome(row: &Row) -> Result<ClaimOutcome, SessionError> {
    match field(row, 0)?.text()? {
        "claimed" => Ok(ClaimOutcome::Claimed {
            generation: field(row, 1)?.int()?,
            operation_epoch: field(row, 2)?.int()?,
            custody_epoch: field(row, 3)?.int()?,
            claimed_at: format!("{}Z", field(row, 5)?.text()?),
        }),
        "held" => Ok(ClaimOutcome::Held { holder: field(row, 4)?.digest()? }),
        "fenced" => Ok(ClaimOutcome::Fenced),
        _ => Err(SessionError::Shape("the claim returned an unknown verdict")),
    }
}

fn retirement(row: &Row) -> Result<StageRetirement, PortError> {
    let parse = || -> Result<(String, bool, bool), SessionError> {
        Ok((field(row, 0)?.text()?.to_string(), field(row, 1)?.int()? == 1, field(row, 2)?.int()? == 1))
    };
    match parse().map_err(SessionError::changing)? {
        (verdict, true, _) if verdict == "dropped" => Ok(StageRetirement::Dropped),
        (verdict, true, true) if verdict == "absent" => Ok(StageRetirement::AlreadyAbsent),
        (verdict, true, false) if verdict == "absent" => Err(refuse(
            "mssql_native.stage_absence_visibility_unproved",
            "the loader cannot see every object of the staging schema, so a missing stage proves nothing: grant CONTROL on the schema",
        )),
        _ => Err(PortError {
            fate: Fate::NotDone,
            ..refuse(
                "mssql_native.prepared_owner_mismatch",
                "a table with the stage's name carries another owner's mark: it is left alone; look at it before anything else",
            )
        }),
    }
}
