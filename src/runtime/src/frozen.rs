//! The frozen run: everything decided before the first effect at the target, so that a later process can go on from the
//! journal and the manifest alone.

use contract::canon::{Json, strict_digest};
use contract::digest::Digest;
use contract::encode::RowEncoder;
use contract::error::{PortError, Refusal};
use contract::identity::VerificationIdentity;
use contract::layout::WireLayout;
use contract::port::source::RawProfileDocument;
use contract::port::target::{OperationIdentity, StageColumn, TableName, TargetRequest};
use contract::source_type::SourceType;

use crate::records::invalid;

/// Form of the document; another version is refused, not guessed at.
const VERSION: u64 = 1;

/// The frozen run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frozen {
    /// Digest of the plan that was frozen.
    pub(crate) plan_sha256: Digest,
    /// Target table in catalog spelling, state and staging schema.
    pub(crate) request: TargetRequest,
    /// Target database.
    pub(crate) database: String,
    /// Catalog fingerprint of the target table.
    pub(crate) target_fingerprint: Digest,
    /// Identities at the target.
    pub(crate) operation: OperationIdentity,
    /// Identity v2.
    pub(crate) identity: VerificationIdentity,
    /// Business columns of stages: catalog types, source nullability.
    pub(crate) columns: Vec<StageColumn>,
    /// Source types of the columns, in the same order.
    pub(crate) source_types: Vec<String>,
    /// UUID of the source relation.
    pub(crate) relation_uuid: String,
    /// Raw profile, in raw mode.
    pub(crate) profile: Option<RawProfileDocument>,
    /// When extraction began, RFC 3339.
    pub(crate) started_at: String,
    /// Guard settings sent with the query, as evidence.
    pub(crate) guards: Json,
}

impl Frozen {
    /// Wire schema texts of the business columns.
    pub(crate) fn wire_columns(&self) -> Vec<(String, String)> {
        self.columns.iter().map(|c| (c.name.clone(), wire_text(c))).collect()
    }

    /// The encoder of the run's rows.
    pub(crate) fn encoder(&self, max_row_bytes: u64) -> Result<RowEncoder, PortError> {
        let wire = self.wire_columns();
        let layout = WireLayout::new(wire.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
        let sources =
            self.source_types.iter().map(|text| SourceType::parse(text)).collect::<Result<Vec<_>, Refusal>>()?;
        Ok(RowEncoder::new(layout, sources, max_row_bytes)?)
    }

    /// Digest that names the frozen run in evidence.
    pub(crate) fn sha256(&self) -> Digest {
        strict_digest(&self.document())
    }

    pub(crate) fn document(&self) -> Json {
        let o = &self.operation;
        let columns = self.columns.iter().zip(&self.source_types).map(|(c, source)| {
            Json::object([
                ("name", Json::from(&c.name)),
                ("type", Json::from(&c.type_text)),
                ("nullable", Json::from(c.nullable)),
                ("source_type", Json::from(source)),
            ])
        });
        Json::object([
            ("version", Json::from(VERSION)),
            ("plan_sha256", Json::from(self.plan_sha256)),
            ("schema", Json::from(&self.request.table.schema)),
            ("table", Json::from(&self.request.table.table)),
            ("state_schema", Json::from(&self.request.state_schema)),
            ("staging_schema", Json::from(&self.request.staging_schema)),
            ("truncates", Json::from(self.request.truncates)),
            ("database", Json::from(&self.database)),
            ("target_fingerprint", Json::from(self.target_fingerprint)),
            ("target_identity", Json::from(o.target_identity)),
            ("binding_id", Json::from(o.binding_id)),
            ("invocation_digest", Json::from(o.invocation_digest)),
            ("attempt_key", Json::from(o.attempt_key)),
            ("scope_hash", Json::from(o.scope_hash)),
            ("operation_key", Json::from(o.operation_key)),
            ("owner_digest", Json::from(o.owner_digest)),
            ("route_fingerprint", Json::from(o.route_fingerprint)),
            ("load_id", Json::from(&o.load_id)),
            ("strategy", Json::from(&o.strategy)),
            ("identity", self.identity.document()),
            ("columns", Json::Array(columns.collect())),
            ("relation_uuid", Json::from(&self.relation_uuid)),
            ("profile", self.profile.as_ref().map_or(Json::Null, |p| Json::from(lossless(&p.canonical)))),
            ("started_at", Json::from(&self.started_at)),
            ("guards", self.guards.clone()),
        ])
    }

    pub(crate) fn from_document(document: &Json) -> Result<Self, PortError> {
        read(document).ok_or_else(invalid)
    }
}

/// Canonical JSON is UTF-8 by construction.
fn lossless(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `type` or `type nullable`.
pub(crate) fn wire_text(column: &StageColumn) -> String {
    if column.nullable { format!("{} nullable", column.type_text) } else { column.type_text.clone() }
}

fn read(document: &Json) -> Option<Frozen> {
    let text = |key: &str| document.get(key)?.as_str().map(str::to_string);
    let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
    (document.get("version")?.as_u64()? == VERSION).then_some(())?;
    let mut columns = Vec::new();
    let mut source_types = Vec::new();
    for column in document.get("columns")?.as_array()? {
        columns.push(StageColumn {
            name: column.get("name")?.as_str()?.to_string(),
            type_text: column.get("type")?.as_str()?.to_string(),
            nullable: column.get("nullable")?.as_bool()?,
        });
        source_types.push(column.get("source_type")?.as_str()?.to_string());
    }
    let profile = match document.get("profile")? {
        Json::Null => None,
        profile => {
            let canonical = profile.as_str()?.as_bytes().to_vec();
            let sha256 = Digest::of(&canonical).to_string();
            Some(RawProfileDocument { canonical, sha256 })
        }
    };
    Some(Frozen {
        plan_sha256: digest("plan_sha256")?,
        request: TargetRequest {
            table: TableName { schema: text("schema")?, table: text("table")? },
            state_schema: text("state_schema")?,
            staging_schema: text("staging_schema")?,
            truncates: document.get("truncates")?.as_bool()?,
        },
        database: text("database")?,
        target_fingerprint: digest("target_fingerprint")?,
        operation: OperationIdentity {
            target_identity: digest("target_identity")?,
            binding_id: digest("binding_id")?,
            invocation_digest: digest("invocation_digest")?,
            attempt_key: digest("attempt_key")?,
            scope_hash: digest("scope_hash")?,
            operation_key: digest("operation_key")?,
            owner_digest: digest("owner_digest")?,
            route_fingerprint: digest("route_fingerprint")?,
            load_id: text("load_id")?,
            strategy: text("strategy")?,
        },
        identity: VerificationIdentity::from_document(document.get("identity")?).ok()?,
        columns,
        source_types,
        relation_uuid: text("relation_uuid")?,
        profile,
        started_at: text("started_at")?,
        guards: document.get("guards")?.clone(),
    })
}

/// What the claim returned, as later processes need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) generation: i64,
    pub(crate) operation_epoch: i64,
    pub(crate) custody_epoch: i64,
    pub(crate) claimed_at: String,
}

impl Claimed {
    pub(crate) fn document(&self) -> Json {
        Json::object([
            ("generation", Json::from(self.generation)),
            ("operation_epoch", Json::from(self.operation_epoch)),
            ("custody_epoch", Json::from(self.custody_epoch)),
            ("claimed_at", Json::from(&self.claimed_at)),
        ])
    }

    pub(crate) fn from_document(document: &Json) -> Result<Self, PortError> {
        let number = |key: &str| document.get(key)?.as_i64();
        let read = || {
            Some(Claimed {
                generation: number("generation")?,
                operation_epoch: number("operation_epoch")?,
                custody_epoch: number("custody_epoch")?,
                claimed_at: document.get("claimed_at")?.as_str()?.to_string(),
            })
        };
        read().ok_or_else(invalid)
    }
}
