//! From server facts to the frozen profile: every admission check of raw mode, in its contract order.

use super::facts::{ColumnFacts, PolicyRow, ReplicaRow, SessionFacts, SourceFacts, TableFacts};
use super::parts::{PartInventory, refuse_pending_mutations};
use super::profile::RawProfile;
use super::query::{Bounds, PARAMETER_TYPE, identifier, project, select_text, window_bounds, window_parameters};
use super::settings::{FilterState, check_effective, profile_settings};
use super::{engine, partition};
use crate::canon::{Json, strict_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::port::source::{FrozenWindow, ReplicaScope, SourceColumn};
use crate::source_type::SourceType;

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// Database.
    pub database: String,
    /// Table.
    pub table: String,
    /// Declared scope.
    pub scope: ReplicaScope,
    /// Window of a bounded read.
    pub window: Option<FrozenWindow>,
    /// `max_execution_time`, seconds.
    pub max_execution_time_seconds: u64,
    /// Whether unfinished mutations refuse; true before the read, false after its end.
    pub refuse_mutations: bool,
}

/// The preimages of the profile's digests. They hold names and addresses: never log or store them.
#[derive(Clone, PartialEq)]
pub struct Preimages {
    /// Of `partition_key_sha256`.
    pub partition_key: Json,
    /// Of `sorting_key_sha256`.
    pub sorting_key: Json,
    /// Of `primary_key_sha256`.
    pub primary_key: Json,
    /// Of `query_shape_sha256`.
    pub query_shape: Json,
    /// Of `projection_sha256`.
    pub projection: Json,
    /// Of `typed_parameters_sha256`.
    pub typed_parameters: Json,
    /// Of `principal_authority_sha256`.
    pub principal_authority: Json,
    /// Of `row_policy_sha256`.
    pub row_policy: Json,
    /// Of `endpoint_authority_sha256`.
    pub endpoint_authority: Json,
    /// Of `replica_identity_sha256`.
    pub replica_identity: Option<Json>,
    /// Of the digest inside `engine_signature`.
    pub engine_full: Json,
}

/// A frozen profile with what the read needs.
#[derive(Clone, PartialEq)]
pub struct Frozen {
    /// The profile.
    pub profile: RawProfile,
    /// Business columns with their projection.
    pub columns: Vec<SourceColumn>,
    /// The SELECT with placeholders.
    pub query_shape: String,
    /// Partition ids of a bounded read.
    pub partition_ids: Option<Vec<String>>,
    /// Parts that the stream may touch.
    pub parts: PartInventory,
    /// Private preimages.
    pub preimages: Preimages,
}

/// Judges the facts of one admission and freezes the profile.
///
/// # Errors
/// The first failing check in the order relation, engine, names and types, settings, session, policies, replica,
/// certificate, partitions, calendar, mutations, parts; see contract.md 2.6 for the codes.
pub fn freeze(request: &RawRequest, facts: &SourceFacts) -> Result<Frozen, Refusal> {
    let table = admit_relation(&facts.tables)?;
    admit_columns(&facts.columns)?;
    let engine_signature = engine::signature(&table.engine, &table.engine_full, request.scope)?;
    let columns = project_columns(&facts.columns)?;
    let filters = check_effective(&facts.settings, request.max_execution_time_seconds)?;
    let session = &facts.session;
    let replica_identity = replica_identity(request.scope, &facts.replicas)?;
    let endpoint_authority = endpoint_authority(session)?;
    let window = request.window.as_ref();
    let partition_ids = window.map(|window| partition::partition_ids(&table.partition_key, window)).transpose()?;
    let timezones = [session.server_timezone.as_str(), session.session_timezone.as_str()];
    let partition_key = partition::semantics(&table.partition_key, window, &facts.columns, timezones)?;
    if request.refuse_mutations {
        refuse_pending_mutations(&facts.pending_mutations)?;
    }
    let parts = PartInventory::new(facts.parts.clone())?;
    let query_shape = select_text(&request.database, &request.table, &columns, window, true, Bounds::Placeholders)?;
    let preimages = Preimages {
        partition_key,
        sorting_key: Json::from(&table.sorting_key),
        primary_key: Json::from(&table.primary_key),
        query_shape: Json::array(["dpone.clickhouse-raw-select.v1", query_shape.as_str()]),
        projection: projection(&columns),
        typed_parameters: typed_parameters(window)?,
        principal_authority: principal_authority(session),
        row_policy: row_policy(&facts.policies, &filters),
        endpoint_authority,
        replica_identity,
        engine_full: Json::from(&table.engine_full),
    };
    let profile = assemble(request, table, facts, engine_signature, &preimages)?;
    Ok(Frozen { profile, columns, query_shape, partition_ids, parts, preimages })
}

fn assemble(
    request: &RawRequest,
    table: &TableFacts,
    facts: &SourceFacts,
    engine_signature: String,
    preimages: &Preimages,
) -> Result<RawProfile, Refusal> {
    let window = match &request.window {
        None => None,
        Some(window) => {
            let (start, end) = window_bounds(window)?;
            Some([window.column.clone(), start.isoformat(), end.isoformat()])
        }
    };
    let schema = facts.columns.iter().map(|c| [c.name.clone(), c.type_text.clone(), c.default_kind.clone()]);
    let profile = RawProfile {
        engine_signature,
        relation_uuid: table.uuid.clone(),
        database_engine: table.database_engine.clone(),
        ordered_schema: schema.collect(),
        partition_key_sha256: strict_digest(&preimages.partition_key),
        sorting_key_sha256: strict_digest(&preimages.sorting_key),
        primary_key_sha256: strict_digest(&preimages.primary_key),
        window,
        read_settings: profile_settings(request.max_execution_time_seconds),
        server_revision: facts.session.server_revision.clone(),
        endpoint_authority_sha256: strict_digest(&preimages.endpoint_authority),
        replica_scope: request.scope,
        replica_identity_sha256: preimages.replica_identity.as_ref().map(strict_digest),
        principal_authority_sha256: strict_digest(&preimages.principal_authority),
        row_policy_sha256: strict_digest(&preimages.row_policy),
        policy_filtered: policy_filtered(&facts.session, &facts.policies),
        query_shape_sha256: strict_digest(&preimages.query_shape),
        projection_sha256: strict_digest(&preimages.projection),
        typed_parameters_sha256: strict_digest(&preimages.typed_parameters),
    };
    profile.check()?;
    Ok(profile)
}

/// One relation in an Atomic database with a nonzero UUID.
fn admit_relation(tables: &[TableFacts]) -> Result<&TableFacts, Refusal> {
    let [table] = tables else {
        return Err(Refusal::new(
            code::REPLACING_RAW_SNAPSHOT_REQUIRED,
            "The source table does not exist or is not visible to this user; correct the name or grant SELECT.",
        ));
    };
    if table.database_engine != "Atomic" {
        return Err(Refusal::new(
            code::REPLACING_RAW_SNAPSHOT_REQUIRED,
            "exact_raw_rows reads a table of an Atomic database; move the table into one.",
        ));
    }
    if !is_nonzero_uuid(&table.uuid) {
        return Err(Refusal::new(
            code::SOURCE_UUID_REQUIRED,
            "The source table has no UUID, so its identity cannot be bound; use a table of an Atomic database.",
        ));
    }
    Ok(table)
}

/// Whether the text is a UUID other than the zero one: 32 hex digits, hyphens, braces and a `urn:uuid:` ignored.
fn is_nonzero_uuid(text: &str) -> bool {
    let bare = text.replace("urn:", "").replace("uuid:", "");
    let digits: String = bare.trim_matches(['{', '}']).chars().filter(|c| *c != '-').collect();
    digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()) && digits.bytes().any(|b| b != b'0')
}

/// At least one column, all ordinary, no name twice, none that hides the provenance columns.
fn admit_columns(columns: &[ColumnFacts]) -> Result<(), Refusal> {
    if columns.is_empty() || columns.iter().any(|column| !column.default_kind.is_empty()) {
        return Err(Refusal::new(
            code::ORDINARY_COLUMNS_REQUIRED,
            "The source table has no visible columns or has DEFAULT, MATERIALIZED, ALIAS or EPHEMERAL ones; use a \
             table with ordinary columns only.",
        ));
    }
    let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::new(
            code::DUPLICATE_COLUMNS,
            "The catalog lists a source column twice; read the table's definition and start again.",
        ));
    }
    if names.iter().any(|name| matches!(*name, "_part" | "_part_offset")) {
        return Err(Refusal::new(
            code::SOURCE_PROVENANCE_INCOMPLETE,
            "A column named _part or _part_offset hides the virtual column that proves where rows come from; rename it.",
        ));
    }
    Ok(())
}

fn project_columns(columns: &[ColumnFacts]) -> Result<Vec<SourceColumn>, Refusal> {
    columns
        .iter()
        .map(|column| {
            identifier(&column.name)?;
            project(&column.name, &SourceType::parse(&column.type_text)?)
        })
        .collect()
}

fn replica_identity(scope: ReplicaScope, replicas: &[ReplicaRow]) -> Result<Option<Json>, Refusal> {
    if scope == ReplicaScope::SingleServer {
        return Ok(None);
    }
    match replicas {
        [replica] if !replica.replica_name.is_empty() && !replica.zookeeper_path.is_empty() => {
            Ok(Some(Json::object([
                ("replica_name", Json::from(&replica.replica_name)),
                ("zookeeper_path", Json::from(&replica.zookeeper_path)),
            ])))
        }
        _ => Err(Refusal::new(
            code::REPLICA_SCOPE_UNPROVEN,
            "The connected replica does not identify itself in system.replicas; connect to one replica directly with \
             the right to read that table.",
        )),
    }
}

fn endpoint_authority(session: &SessionFacts) -> Result<Json, Refusal> {
    if session.peer_certificate_der.is_empty() {
        return Err(Refusal::new(
            code::SOURCE_READ_PROFILE_UNSUPPORTED,
            "The source presented no certificate; connect over TLS with certificate and host name verification.",
        ));
    }
    let certificate = Digest::of(&session.peer_certificate_der);
    Ok(Json::Array(vec![Json::from(&session.server_name), Json::from(&session.peer), Json::from(certificate)]))
}

fn principal_authority(session: &SessionFacts) -> Json {
    let mut roles = session.roles.clone();
    roles.sort_unstable();
    Json::Array(vec![Json::from(&session.principal), Json::array(&roles)])
}

/// Row policies of the relation and the filter settings.
fn row_policy(policies: &[PolicyRow], filters: &FilterState) -> Json {
    Json::Array(vec![Json::Array(policies.iter().map(Json::from).collect()), Json::from(filters)])
}

/// SHA-256 of who reads and what hides rows from them: principal and roles, row policies, filter settings. A query_visible
/// read compares it before, during and after; a raw profile has the same preimages among its digests.
pub fn access_authority_sha256(session: &SessionFacts, policies: &[PolicyRow], filters: &FilterState) -> Digest {
    strict_digest(&Json::Array(vec![principal_authority(session), row_policy(policies, filters)]))
}

fn policy_filtered(session: &SessionFacts, policies: &[PolicyRow]) -> bool {
    let named = |list: &[String]| list.iter().any(|name| *name == session.principal || session.roles.contains(name));
    policies
        .iter()
        .any(|policy| (policy.apply_to_all.is_set() || named(&policy.apply_to_list)) && !named(&policy.apply_to_except))
}

fn projection(columns: &[SourceColumn]) -> Json {
    Json::Array(columns.iter().map(|c| Json::array([c.expression.as_str(), c.header_type.as_str()])).collect())
}

fn typed_parameters(window: Option<&FrozenWindow>) -> Result<Json, Refusal> {
    let Some(window) = window else {
        return Ok(Json::Array(Vec::new()));
    };
    let parameters = window_parameters(window)?;
    let triple = |(name, text): &(&str, String)| Json::array([*name, PARAMETER_TYPE, text.as_str()]);
    Ok(Json::Array(parameters.iter().map(triple).collect()))
}
