//! One chunk: grant applock, stage, bulk load in one explicit transaction, exact-stage barrier (design.md 3.6 to 3.9).

use std::io::Read;

use contract::encode::TdsRowEncoder;
use contract::error::{Code, Fate, PortError};
use contract::layout::WireLayout;
use contract::port::target::{
    ChunkFacts, DigestObservation, RunFence, StageColumn, StageDefinition, StageRef, StageWriter, WriterGrant,
    WriterTerminal,
};

use crate::bulk::{self, BulkError};
use crate::error::{SessionError, refuse};
use crate::observation::spell;
use crate::options::ConnectOptions;
use crate::session::{Cell, Session};
use crate::sql::{digest, ident, observe, stage};
use crate::target::{LOCK_TIMEOUT_MS, digests, field, object_id, session_lock};

/// Largest native row that any plan admits; the file itself was bounded when it was sealed.
const ROW_BYTES_MAX: u64 = 1 << 30;

/// The session that owns the grant applock of one chunk from open to close.
pub struct SqlServerWriter {
    session: Session,
    options: ConnectOptions,
    state_schema: String,
    fence: RunFence,
}

impl std::fmt::Debug for SqlServerWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlServerWriter").field("fence_epoch", &self.fence.epoch).finish_non_exhaustive()
    }
}

impl SqlServerWriter {
    /// Opens the session and takes the lock.
    pub(crate) async fn open(
        options: &ConnectOptions,
        state_schema: &str,
        grant: &WriterGrant,
    ) -> Result<Self, PortError> {
        let mut session = Session::open(options, &grant.application_name).await?;
        session_lock(&mut session, &grant.lock_resource, grant.lock_timeout_ms, options.timeouts.statement).await?;
        Ok(SqlServerWriter {
            session,
            options: options.clone(),
            state_schema: state_schema.to_string(),
            fence: grant.fence.clone(),
        })
    }

    pub(crate) fn into_session(self) -> Session {
        self.session
    }

    /// The stage has the columns that we are about to declare on the wire.
    async fn compare_columns(&mut self, stage: &StageRef) -> Result<(), PortError> {
        let rows = self
            .session
            .rows(&stage::columns_query(&stage.definition.name), self.options.timeouts.statement)
            .await
            .map_err(SessionError::changing)?;
        let mut seen = Vec::with_capacity(rows.len());
        for row in &rows {
            seen.push(stage_column(row).map_err(SessionError::changing)?);
        }
        if seen == stage.definition.columns {
            return Ok(());
        }
        Err(refuse(
            "mssql_native.stage_schema_changed",
            "the stage has other columns than it was created with: find out who alters the staging schema",
        ))
    }

    async fn write_in_transaction(
        &mut self,
        stage: &StageRef,
        chunk: &ChunkFacts,
        rows: Box<dyn Read + Send>,
    ) -> Result<WriterTerminal, PortError> {
        let timeouts = self.options.timeouts;
        self.compare_columns(stage).await?;
        let encoder = encoder(&stage.definition.columns)?;
        let open = format!(
            "{}BEGIN TRANSACTION;\n{}{}",
            ident::prologue(LOCK_TIMEOUT_MS),
            ident::fence_check(&self.state_schema, &self.fence),
            stage::identity_check(stage),
        );
        self.session.query(&open, timeouts.statement).await.map_err(SessionError::changing)?;
        let sent = match bulk::load(&mut self.session.client, stage, encoder, rows, timeouts.bulk).await {
            Ok(sent) => sent,
            Err(error) => return Err(self.abandon(error).await),
        };
        let count = format!("SELECT COUNT_BIG(*) FROM {};\n", ident::qualified(&stage.definition.name));
        let row = self.session.row(&count, timeouts.bulk).await.map_err(SessionError::changing)?;
        let counted = field(&row, 0).and_then(Cell::count).map_err(SessionError::changing)?;
        if sent != chunk.rows || counted != chunk.rows {
            return Err(self.abandon_counts().await);
        }
        // Why changing: an answered error rolled back (XACT_ABORT); no answer leaves the fate unknown.
        self.session.query("COMMIT TRANSACTION;\n", timeouts.commit).await.map_err(SessionError::changing)?;
        Ok(WriterTerminal { rows_sent: sent, rows_counted: counted })
    }

    async fn roll_back(&mut self) -> bool {
        let rolled = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;\nSELECT @@TRANCOUNT;\n";
        match self.session.row(rolled, self.options.timeouts.statement).await {
            Ok(row) => matches!(field(&row, 0).and_then(Cell::int), Ok(0)),
            Err(_) => false,
        }
    }

    async fn abandon(&mut self, error: BulkError) -> PortError {
        let fate = if self.roll_back().await { Fate::NotDone } else { Fate::Unknown };
        match error {
            BulkError::File => PortError {
                fate,
                ..refuse(
                    "mssql_native.retained_file_changed",
                    "a sealed chunk file is not what was sealed: check the volume; the chunk was rolled back",
                )
            },
            BulkError::Session(error) => PortError { fate, ..error.changing() },
        }
    }

    async fn abandon_counts(&mut self) -> PortError {
        let fate = if self.roll_back().await { Fate::NotDone } else { Fate::Unknown };
        PortError {
            code: Code::new("mssql_native.server_count_mismatch"),
            message: "SQL Server counted another number of rows than were sent: the chunk was rolled back".into(),
            fate,
            source: None,
        }
    }
}

impl StageWriter for SqlServerWriter {
    async fn create_stage(&mut self, definition: &StageDefinition) -> Result<i32, PortError> {
        let batch = stage::create(&self.state_schema, &self.fence, definition, LOCK_TIMEOUT_MS);
        let row = self.session.row(&batch, self.options.timeouts.statement).await.map_err(SessionError::changing)?;
        object_id(&row).map_err(SessionError::changing)
    }

    async fn write(
        &mut self,
        stage: &StageRef,
        chunk: &ChunkFacts,
        rows: Box<dyn Read + Send>,
    ) -> Result<WriterTerminal, PortError> {
        self.write_in_transaction(stage, chunk, rows).await
    }

    async fn verify(&mut self, stage: &StageRef, expected_rows: u64) -> Result<DigestObservation, PortError> {
        let table = ident::qualified(&stage.definition.name);
        let text = digest::single(&table, &stage.definition.columns, expected_rows)?;
        let batch = stage::barrier(stage, &text, LOCK_TIMEOUT_MS);
        let row = self.session.row(&batch, self.options.timeouts.bulk).await.map_err(SessionError::observing)?;
        let (observation, _) = digests(&row, digest::SINGLE_FIELDS).map_err(SessionError::observing)?;
        Ok(observation)
    }

    async fn allocated_bytes(&mut self) -> Result<u64, PortError> {
        let row = self
            .session
            .row(observe::STAGES, self.options.timeouts.statement)
            .await
            .map_err(crate::observation::capacity_unavailable)?;
        field(&row, 1).and_then(Cell::count).map_err(SessionError::observing)
    }

    async fn close(self) -> Result<(), PortError> {
        self.session.close().await;
        Ok(())
    }
}

/// Turns sealed rows of these columns into ROW tokens.
pub(crate) fn encoder(columns: &[StageColumn]) -> Result<TdsRowEncoder, PortError> {
    let declared: Vec<(String, String)> = columns
        .iter()
        .map(|c| (c.name.clone(), if c.nullable { format!("{} nullable", c.type_text) } else { c.type_text.clone() }))
        .collect();
    let layout = WireLayout::new(declared.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    Ok(TdsRowEncoder::new(&layout, ROW_BYTES_MAX, true)?)
}

fn stage_column(row: &crate::session::Row) -> Result<StageColumn, SessionError> {
    Ok(StageColumn {
        name: field(row, 0)?.text()?.to_string(),
        type_text: spell(field(row, 1)?.text()?, field(row, 2)?.int()?, field(row, 3)?.int()?, field(row, 4)?.int()?),
        nullable: field(row, 5)?.int()? != 0,
    })
}
