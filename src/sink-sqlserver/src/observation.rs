//! Observations of the target, from rows to facts.

use std::time::Duration;

use contract::digest::Digest;
use contract::error::PortError;
use contract::port::target::{
    CapacityObservation, TableName, TargetColumn, TargetObservation, TargetRequest, TargetTable,
};

use crate::error::{SessionError, refuse};
use crate::session::{Cell, Row, Session};
use crate::sql::{catalog, observe};
use crate::target::field;

/// Everything that admission looks at.
pub(crate) async fn observe_all(
    session: &mut Session,
    request: &TargetRequest,
    deadline: Duration,
) -> Result<TargetObservation, PortError> {
    let observing = SessionError::observing;
    let identity = session.row(observe::IDENTITY, deadline).await.map_err(observing)?;
    let text = |index: usize| field(&identity, index).and_then(Cell::text).map(str::to_string).map_err(observing);
    let server_names = [text(0)?, text(1)?, text(2)?, text(3)?].map(|name| name.to_lowercase());
    let catalog_faults = catalog_faults(session, &request.state_schema, deadline).await.map_err(observing)?;
    let missing_grants = missing_grants(session, request, deadline).await.map_err(observing)?;
    // Why only then: the registry of an incomplete catalog cannot be read, and what is missing is to be named.
    let registry_binding = if catalog_faults.is_empty() && missing_grants.is_empty() {
        let rows = session.rows(&observe::registry(request), deadline).await.map_err(observing)?;
        rows.first().map(|row| field(row, 0).and_then(Cell::digest)).transpose().map_err(observing)?
    } else {
        None
    };
    let table = observe_table(session, &request.table, deadline).await.map_err(observing)?;
    Ok(TargetObservation {
        server_names,
        database: text(4)?,
        database_create_token: text(5)?,
        product_version: text(6)?,
        catalog_faults,
        missing_grants,
        registry_binding,
        table,
    })
}

async fn catalog_faults(
    session: &mut Session,
    state_schema: &str,
    deadline: Duration,
) -> Result<Vec<String>, SessionError> {
    let columns = session.rows(&observe::catalog_columns(state_schema), deadline).await?;
    let triggers = session.rows(&observe::catalog_triggers(state_schema), deadline).await?;
    let mut faults = Vec::new();
    for (table, expected) in catalog::TABLES {
        let mut found = Vec::new();
        for row in &columns {
            if field(row, 0)?.text()? == *table {
                found.push(field(row, 1)?.text()?);
            }
        }
        if found != *expected {
            faults.push(format!("table {table}"));
        }
    }
    for trigger in catalog::TRIGGERS {
        let mut enabled = false;
        for row in &triggers {
            enabled |= field(row, 0)?.text()? == *trigger && field(row, 1)?.int()? == 0;
        }
        if !enabled {
            faults.push(format!("trigger {trigger}"));
        }
    }
    Ok(faults)
}

async fn missing_grants(
    session: &mut Session,
    request: &TargetRequest,
    deadline: Duration,
) -> Result<Vec<String>, SessionError> {
    let row = session.row(&observe::grants_query(request), deadline).await?;
    let mut missing = Vec::new();
    for (index, (name, _)) in observe::grants(request).into_iter().enumerate() {
        if field(&row, index)?.int()? != 1 {
            missing.push(name);
        }
    }
    Ok(missing)
}

/// The target table with its fingerprint, or `None` if it is not there or not visible.
pub(crate) async fn observe_table(
    session: &mut Session,
    name: &TableName,
    deadline: Duration,
) -> Result<Option<TargetTable>, SessionError> {
    let rows = session.rows(&observe::table(name), deadline).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let spelled = TableName { schema: field(row, 0)?.text()?.to_string(), table: field(row, 1)?.text()?.to_string() };
    let object_id =
        i32::try_from(field(row, 2)?.int()?).map_err(|_| SessionError::Shape("an object id is out of range"))?;
    let mut columns = Vec::new();
    for row in session.rows(&observe::table_columns(object_id), deadline).await? {
        columns.push(column(&row)?);
    }
    let fingerprint = fingerprint(session, object_id, deadline).await?;
    Ok(Some(TargetTable { name: spelled, object_id, columns, fingerprint }))
}

/// Digest of the catalog lines of a table.
pub(crate) async fn fingerprint(
    session: &mut Session,
    object_id: i32,
    deadline: Duration,
) -> Result<Digest, SessionError> {
    let mut text = String::new();
    for row in session.rows(&observe::fingerprint(object_id), deadline).await? {
        text.push_str(field(&row, 0)?.text()?);
        text.push('\n');
    }
    Ok(Digest::of(text.as_bytes()))
}

fn column(row: &Row) -> Result<TargetColumn, SessionError> {
    let type_text = spell(field(row, 1)?.text()?, field(row, 2)?.int()?, field(row, 3)?.int()?, field(row, 4)?.int()?);
    let collation = field(row, 6)?.text()?;
    let not_writable = match field(row, 7)?.text()? {
        "" => None,
        "identity" => Some("identity"),
        "computed" => Some("computed"),
        "rowversion" => Some("rowversion"),
        _ => Some("generated"),
    };
    Ok(TargetColumn {
        name: field(row, 0)?.text()?.to_string(),
        type_text,
        nullable: field(row, 5)?.int()? != 0,
        collation: (!collation.is_empty()).then(|| collation.to_string()),
        not_writable,
    })
}

/// A catalog type in the spelling of contract.md 3.2.
pub(crate) fn spell(name: &str, max_length: i64, precision: i64, scale: i64) -> String {
    let sized = |divisor: i64| {
        if max_length < 0 { format!("{name}(max)") } else { format!("{name}({})", max_length / divisor) }
    };
    match name {
        "nvarchar" | "nchar" => sized(2),
        "varchar" | "char" | "varbinary" | "binary" => sized(1),
        "decimal" | "numeric" => format!("{name}({precision},{scale})"),
        "float" => format!("float({precision})"),
        "datetime2" | "time" | "datetimeoffset" => format!("{name}({scale})"),
        _ => name.to_string(),
    }
}

/// A refused or missing view of space is a refusal, never a guess.
pub(crate) fn capacity_unavailable(error: SessionError) -> PortError {
    match error {
        SessionError::Transport => error.observing(),
        refused => refuse(
            "mssql_native.target_capacity_unavailable",
            "space at the target cannot be observed: grant VIEW SERVER STATE and VIEW DATABASE STATE to the loader",
        )
        .caused_by(refused),
    }
}

/// Space, from the files of the database and their volumes.
pub(crate) async fn observe_capacity(
    session: &mut Session,
    deadline: Duration,
) -> Result<CapacityObservation, SessionError> {
    let stages = session.row(observe::STAGES, deadline).await?;
    let files = session.rows(observe::FILES, deadline).await?;
    let log = session.row(observe::LOG, deadline).await?;
    if !files.iter().any(|f| matches!(f.first(), Some(Cell::Int(0))))
        || !files.iter().any(|f| matches!(f.first(), Some(Cell::Int(1))))
    {
        return Err(SessionError::Shape("the database's files are not visible"));
    }
    let mut volumes: Vec<(String, u64)> = Vec::new();
    let mut log_growth = 0u64;
    for row in &files {
        let file = File::read(row)?;
        if file.is_log {
            log_growth = log_growth.saturating_add(file.growth());
        } else {
            let headroom = file.size.saturating_sub(file.used).saturating_add(file.growth());
            match volumes.iter_mut().find(|(name, _)| *name == file.volume) {
                // Why min: files of one volume share its free bytes, so growth is not counted twice.
                Some((_, total)) => *total = total.saturating_add(file.size.saturating_sub(file.used)),
                None => volumes.push((file.volume, headroom)),
            }
        }
    }
    let free_log = field(&log, 0)?.count()?.saturating_sub(field(&log, 1)?.count()?);
    Ok(CapacityObservation {
        stage_tables: field(&stages, 0)?.count()?,
        stage_allocated_bytes: field(&stages, 1)?.count()?,
        data_volume_headroom_bytes: volumes.into_iter().map(|(_, bytes)| bytes).collect(),
        log_headroom_bytes: free_log.saturating_add(log_growth),
    })
}

/// A row of `sys.database_files` with its volume.
struct File {
    is_log: bool,
    size: u64,
    used: u64,
    max_pages: i64,
    growth: u64,
    volume: String,
    available: u64,
}

impl File {
    fn read(row: &Row) -> Result<Self, SessionError> {
        let is_log = field(row, 0)?.int()? == 1;
        Ok(File {
            is_log,
            size: field(row, 1)?.count()?,
            used: if is_log { 0 } else { field(row, 2)?.count()? },
            max_pages: field(row, 3)?.int()?,
            growth: field(row, 4)?.count()?,
            volume: field(row, 5)?.text()?.to_string(),
            available: field(row, 6)?.count()?,
        })
    }

    /// Bytes by which the file may still grow: nothing with growth off, else what file limit and volume allow.
    fn growth(&self) -> u64 {
        match (self.growth, self.max_pages) {
            (0, _) | (_, 0) => 0,
            (_, -1) => self.available,
            (_, pages) => (pages.unsigned_abs() * 8192).saturating_sub(self.size).min(self.available),
        }
    }
}
