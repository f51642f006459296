//! One acquisition: the catalog's facts, judged and frozen, with everything the read needs.

use contract::code;
use contract::digest::Digest;
use contract::error::{PortError, Refusal};
use contract::port::source::{
    GuardSettings, RawProfileDocument, ReplicaScope, SourceAdmission, SourceColumn, SourceMode, SourceRequest,
};
use contract::raw::facts::{ColumnFacts, Peer, SessionFacts, SourceFacts, TableFacts};
use contract::raw::freeze::{RawRequest, access_authority_sha256, freeze};
use contract::raw::partition::partition_ids;
use contract::raw::parts::{PartInventory, physical_profile};
use contract::raw::query::{Bounds, identifier, project, select_text, window_bounds};
use contract::source_type::SourceType;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::catalog::{Catalog, Relation, SessionRow};
use crate::guards;
use crate::wire::Connection;

/// Longest `query_seconds`.
const QUERY_SECONDS_MAX: u32 = 86_400;

/// What the socket itself proves about the other end.
#[derive(Debug, Clone)]
pub(crate) struct Proven {
    pub(crate) peer: Peer,
    pub(crate) leaf_der: Vec<u8>,
}

/// When an acquisition takes place; only unfinished mutations are judged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeRead,
    AfterEof,
}

/// An admission and what stays in memory beside it.
pub(crate) struct Acquired {
    pub(crate) admission: SourceAdmission,
    /// The SELECT with literal bounds.
    pub(crate) select: String,
    /// Parts and their digest; only in raw mode.
    pub(crate) provenance: Option<Provenance>,
}

/// The physical state of a raw read.
pub(crate) struct Provenance {
    pub(crate) parts: PartInventory,
    pub(crate) physical_sha256: Digest,
}

/// Reads the catalog on this session and judges it.
pub(crate) async fn acquire<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut Connection<S>,
    proven: &Proven,
    request: &SourceRequest,
    moment: Moment,
) -> Result<Acquired, PortError> {
    check_request(request)?;
    let relation = Relation { database: &request.database, table: &request.table };
    let wanted = guards::wanted(request);
    let inspected = guards::inspected(&wanted);

    let discovery = guards::of_discovery(request.query_seconds, &wanted);
    let known = Catalog::new(connection, discovery).settings(&inspected).await?;
    let guards = guards::known(wanted.clone(), &known);
    let settings = guards::of_catalog_read(request.query_seconds, &guards.sent);
    let mut catalog = Catalog::new(connection, settings);

    let tables = catalog.tables(relation).await?;
    let columns = catalog.columns(relation).await?;
    let settings = catalog.settings(&inspected).await?;
    guards::check_effective(&guards, &settings)?;
    let session = session_facts(catalog.session().await?, proven);
    let policies = catalog.policies(relation).await?;
    let acquired = match request.mode {
        SourceMode::QueryVisible => {
            let filters = contract::raw::settings::check_effective(&settings, request.query_seconds.into())?;
            let access = access_authority_sha256(&session, &policies, &filters);
            plain(request, &tables, &columns, guards, &session, access)?
        }
        SourceMode::ExactRawRows(scope) => {
            let (replicas, status): (Vec<_>, Vec<_>) = match scope {
                ReplicaScope::SingleServer => (Vec::new(), Vec::new()),
                ReplicaScope::ConnectedReplica => catalog.replicas(relation).await?.into_iter().unzip(),
            };
            let pending_mutations = catalog.pending_mutations(relation).await?;
            let parts = parts_of(&mut catalog, request, &tables).await?;
            let facts =
                SourceFacts { tables, columns, settings, session, policies, replicas, pending_mutations, parts };
            let mut acquired = raw(request, scope, moment, &facts, guards)?;
            acquired.admission.replica = status.first().copied();
            // Only now: what the contract's own order refuses comes first.
            refuse_another_calendar(&mut catalog, request, &facts).await?;
            acquired
        }
    };
    for column in &acquired.admission.columns {
        contract::mapping::refuse_reserved_name(&column.name)?;
    }
    catalog.explain(&acquired.select).await?;
    Ok(acquired)
}

/// What the server says of the session, and what the socket proves of the server.
fn session_facts(row: SessionRow, proven: &Proven) -> SessionFacts {
    SessionFacts {
        principal: row.principal,
        roles: row.roles,
        server_revision: row.server_revision,
        server_name: row.server_name,
        server_timezone: row.server_timezone,
        session_timezone: row.session_timezone,
        peer: proven.peer.clone(),
        peer_certificate_der: proven.leaf_der.clone(),
    }
}

/// Parts of the read. Without an admitted relation or partition expression nothing is read: the judgement that follows
/// refuses for the first reason in contract order.
async fn parts_of<S: AsyncRead + AsyncWrite + Unpin>(
    catalog: &mut Catalog<'_, S>,
    request: &SourceRequest,
    tables: &[TableFacts],
) -> Result<Vec<contract::raw::parts::PartRow>, PortError> {
    let relation = Relation { database: &request.database, table: &request.table };
    let (Some(window), [table]) = (&request.window, tables) else {
        return catalog.parts(relation, None).await;
    };
    match partition_ids(&table.partition_key, window) {
        Ok(ids) => catalog.parts(relation, Some(&ids)).await,
        Err(_) => Ok(Vec::new()),
    }
}

/// Without a zone of its own the window column's partitions follow the calendar of the server or session that wrote them.
/// When that was another than today's, the server prunes partitions that hold rows of the window, and no row tells of it:
/// so the parts' own bounds have to say that there are none.
async fn refuse_another_calendar<S: AsyncRead + AsyncWrite + Unpin>(
    catalog: &mut Catalog<'_, S>,
    request: &SourceRequest,
    facts: &SourceFacts,
) -> Result<(), PortError> {
    let relation = Relation { database: &request.database, table: &request.table };
    let (Some(window), [table]) = (&request.window, facts.tables.as_slice()) else { return Ok(()) };
    let implicit = |column: &ColumnFacts| column.name == window.column && !column.type_text.contains("'UTC'");
    let Some(ids) = partition_ids(&table.partition_key, window).ok().filter(|_| facts.columns.iter().any(implicit))
    else {
        return Ok(());
    };
    if catalog.parts_of_another_calendar(relation, &ids, window).await? == 0 {
        return Ok(());
    }
    Err(PortError::not_done(
        code::SOURCE_READ_PROFILE_UNSUPPORTED,
        "rows of the window lie in partitions of another calendar than UTC: they were written while server or session ran \
         in another time zone; declare the column DateTime64(6, 'UTC') in a new table and copy the rows",
    ))
}

/// What can be refused before anything is read.
fn check_request(request: &SourceRequest) -> Result<(), Refusal> {
    identifier(&request.database)?;
    identifier(&request.table)?;
    if let Some(window) = &request.window {
        identifier(&window.column)?;
        window_bounds(window)?;
    }
    if !(1..=QUERY_SECONDS_MAX).contains(&request.query_seconds) {
        return Err(Refusal::new(
            code::SOURCE_READ_PROFILE_UNSUPPORTED,
            "query_seconds must lie between 1 and 86400: a read without a deadline is not admitted",
        ));
    }
    Ok(())
}

fn raw(
    request: &SourceRequest,
    scope: ReplicaScope,
    moment: Moment,
    facts: &SourceFacts,
    guards: GuardSettings,
) -> Result<Acquired, PortError> {
    let frozen = freeze(
        &RawRequest {
            database: request.database.clone(),
            table: request.table.clone(),
            scope,
            window: request.window.clone(),
            max_execution_time_seconds: request.query_seconds.into(),
            refuse_mutations: moment == Moment::BeforeRead,
        },
        facts,
    )?;
    let profile = &frozen.profile;
    let physical = physical_profile(
        &profile.relation_uuid,
        profile.replica_identity_sha256,
        &frozen.parts,
        &facts.pending_mutations,
    );
    let physical_sha256 = contract::canon::strict_digest(&physical);
    let select = text_of_select(request, &frozen.columns, Bounds::Literals)?;
    let admission = SourceAdmission {
        request: request.clone(),
        relation_uuid: profile.relation_uuid.clone(),
        engine: profile.engine_signature.clone(),
        server_revision: profile.server_revision.clone(),
        columns: frozen.columns,
        query_shape: frozen.query_shape,
        profile: Some(RawProfileDocument { canonical: profile.canonical(), sha256: profile.sha256().to_string() }),
        guards,
        physical_profile_sha256: Some(physical_sha256.to_string()),
        access_sha256: None,
        replica: None,
    };
    Ok(Acquired { admission, select, provenance: Some(Provenance { parts: frozen.parts, physical_sha256 }) })
}

fn text_of_select(request: &SourceRequest, columns: &[SourceColumn], bounds: Bounds) -> Result<String, Refusal> {
    let provenance = matches!(request.mode, SourceMode::ExactRawRows(_));
    select_text(&request.database, &request.table, columns, request.window.as_ref(), provenance, bounds)
}

/// The default mode: a plain `MergeTree` of an Atomic database, ordinary columns of admitted types.
fn plain(
    request: &SourceRequest,
    tables: &[TableFacts],
    columns: &[ColumnFacts],
    guards: GuardSettings,
    session: &SessionFacts,
    access: Digest,
) -> Result<Acquired, PortError> {
    let [table] = tables else {
        return Err(Refusal::new(
            code::PLAIN_MERGETREE_ATOMIC_REQUIRED,
            "the source table does not exist or is not visible to this user; correct the name or grant SELECT",
        )
        .into());
    };
    if table.engine != "MergeTree" || table.database_engine != "Atomic" {
        return Err(Refusal::new(
            code::PLAIN_MERGETREE_ATOMIC_REQUIRED,
            "the default mode reads a plain MergeTree of an Atomic database; name such a table, or select \
             exact_raw_rows for a replacing engine",
        )
        .into());
    }
    if table.uuid.bytes().all(|byte| matches!(byte, b'0' | b'-')) {
        return Err(Refusal::new(
            code::SOURCE_UUID_REQUIRED,
            "the source table has no UUID, so its identity cannot be bound; use a table of an Atomic database",
        )
        .into());
    }
    let projected = plain_columns(columns)?;
    if let Some(window) = &request.window {
        let is_timestamp = |column: &&SourceColumn| {
            column.name == window.column && SourceType::parse(&column.type_text).is_ok_and(|text| text.is_timestamp())
        };
        if projected.iter().find(is_timestamp).is_none() {
            return Err(Refusal::new(
                code::WINDOW_COLUMN_MISSING,
                "the window column is not a DateTime or DateTime64 column of the source table; correct window.column",
            )
            .into());
        }
    }
    let admission = SourceAdmission {
        request: request.clone(),
        relation_uuid: table.uuid.clone(),
        engine: table.engine.clone(),
        server_revision: session.server_revision.clone(),
        query_shape: text_of_select(request, &projected, Bounds::Placeholders)?,
        profile: None,
        guards,
        physical_profile_sha256: None,
        access_sha256: Some(access.to_string()),
        replica: None,
        columns: projected,
    };
    let select = text_of_select(request, &admission.columns, Bounds::Literals)?;
    Ok(Acquired { admission, select, provenance: None })
}

fn plain_columns(columns: &[ColumnFacts]) -> Result<Vec<SourceColumn>, Refusal> {
    if columns.is_empty() || columns.iter().any(|column| !column.default_kind.is_empty()) {
        return Err(Refusal::new(
            code::ORDINARY_COLUMNS_REQUIRED,
            "the source table has no visible columns or has DEFAULT, MATERIALIZED, ALIAS or EPHEMERAL ones; use a table \
             with ordinary columns only",
        ));
    }
    let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::new(
            code::DUPLICATE_COLUMNS,
            "the catalog lists a source column twice; read the table's definition and start again",
        ));
    }
    columns.iter().map(|column| project(&column.name, &SourceType::parse(&column.type_text)?)).collect()
}

/// Compares a fresh acquisition with the admitted one. Physical parts may differ: they are observed, not frozen.
pub(crate) fn compare(admitted: &SourceAdmission, now: &SourceAdmission) -> Result<(), Refusal> {
    let raw = admitted.profile.is_some() || now.profile.is_some();
    let same_authority = admitted.relation_uuid == now.relation_uuid
        && admitted.query_shape == now.query_shape
        && admitted.guards == now.guards
        && admitted.access_sha256 == now.access_sha256
        && admitted.profile.as_ref().map(|profile| &profile.sha256)
            == now.profile.as_ref().map(|profile| &profile.sha256);
    if raw && !(same_authority && admitted.columns == now.columns) {
        return Err(Refusal::new(
            code::SOURCE_SNAPSHOT_PROFILE_CHANGED,
            "the source's authority changed between two acquisitions (schema, user, roles, policies, settings, certificate \
             or address); settle this attempt and start a new run",
        ));
    }
    if admitted.columns != now.columns {
        return Err(Refusal::new(
            code::SOURCE_SCHEMA_CHANGED,
            "the source's columns are not the admitted ones; do not alter the table while a transfer runs",
        ));
    }
    if !same_authority {
        return Err(Refusal::new(
            code::SOURCE_IDENTITY_CHANGED,
            "the source table or the way it is read is not the admitted one; do not drop or exchange the table, and do not \
             change the user's roles or row policies while a transfer runs",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted() -> SourceAdmission {
        SourceAdmission {
            request: SourceRequest {
                database: "d".into(),
                table: "t".into(),
                mode: SourceMode::QueryVisible,
                window: None,
                query_seconds: 600,
                max_row_bytes: 1 << 20,
            },
            relation_uuid: "u".into(),
            engine: "MergeTree".into(),
            server_revision: "54513".into(),
            columns: vec![project("k", &SourceType::parse("Int64").expect("a type")).expect("a column")],
            query_shape: "SELECT".into(),
            profile: None,
            guards: GuardSettings { version: "v", sent: Vec::new(), unknown_to_server: Vec::new() },
            physical_profile_sha256: None,
            access_sha256: Some("a".into()),
            replica: None,
        }
    }

    /// Roles and row policies cannot be changed by statement in the embedded engine, so their drift is judged here.
    #[test]
    fn every_part_of_the_authority_is_compared() {
        type Change = fn(&mut SourceAdmission);
        let changes: [(Change, &str); 6] = [
            (|now| now.relation_uuid = "v".into(), code::SOURCE_IDENTITY_CHANGED),
            (|now| now.query_shape.push(' '), code::SOURCE_IDENTITY_CHANGED),
            (|now| now.access_sha256 = Some("b".into()), code::SOURCE_IDENTITY_CHANGED),
            (|now| now.guards.sent.push(("s".into(), "1".into())), code::SOURCE_IDENTITY_CHANGED),
            (|now| now.columns.clear(), code::SOURCE_SCHEMA_CHANGED),
            (
                |now| now.profile = Some(RawProfileDocument { canonical: Vec::new(), sha256: "p".into() }),
                code::SOURCE_SNAPSHOT_PROFILE_CHANGED,
            ),
        ];
        assert!(compare(&admitted(), &admitted()).is_ok());
        for (change, code) in changes {
            let mut now = admitted();
            change(&mut now);
            assert_eq!(compare(&admitted(), &now).expect_err("drift").code.as_str(), code);
        }
    }

    #[test]
    fn parts_and_the_replicas_state_may_drift() {
        let mut now = admitted();
        now.physical_profile_sha256 = Some("other".into());
        now.replica = Some(contract::port::source::ReplicaStatus {
            is_readonly: true,
            is_session_expired: true,
            queue_size: 1,
            absolute_delay_seconds: 9,
        });
        assert!(compare(&admitted(), &now).is_ok());
    }
}
