//! The raw snapshot profile: twenty keys frozen before the one SELECT (contract.md 2.1).

use num_bigint::BigInt;

use super::bounds;
use super::selector::{scope_from_text, scope_text};
use super::settings::{self, SettingValue};
use crate::canon::{Json, Object, strict, strict_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;
use crate::port::source::ReplicaScope;

/// Kind of the profile document.
pub const PROFILE_KIND: &str = "dpone.clickhouse-raw-snapshot-profile.v1";

/// `dpone.clickhouse-raw-snapshot-profile.v1`. Made by [`super::freeze`] or read by [`RawProfile::from_document`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawProfile {
    /// `ENGINE:sha256:HEX`, see [`super::engine`].
    pub engine_signature: String,
    /// `toString(uuid)` of the relation.
    pub relation_uuid: String,
    /// Engine of the database; `Atomic` at admission.
    pub database_engine: String,
    /// `[name, type, default_kind]` in catalog order.
    pub ordered_schema: Vec<[String; 3]>,
    /// Digest of the partition expression and its calendar.
    pub partition_key_sha256: Digest,
    /// Digest of the sorting key.
    pub sorting_key_sha256: Digest,
    /// Digest of the primary key.
    pub primary_key_sha256: Digest,
    /// `[column, start, end]`, bounds in `isoformat`.
    pub window: Option<[String; 3]>,
    /// Name and value; the order is part of the digest.
    pub read_settings: Vec<(String, SettingValue)>,
    /// `toString(revision())`.
    pub server_revision: String,
    /// Digest of server name, peer address and certificate.
    pub endpoint_authority_sha256: Digest,
    /// Declared scope.
    pub replica_scope: ReplicaScope,
    /// Digest of the replica's identity; demanded for `connected_replica`.
    pub replica_identity_sha256: Option<Digest>,
    /// Digest of user and enabled roles.
    pub principal_authority_sha256: Digest,
    /// Digest of row policies and filter settings.
    pub row_policy_sha256: Digest,
    /// Whether a row policy applies to the user.
    pub policy_filtered: bool,
    /// Digest of the SELECT with placeholders.
    pub query_shape_sha256: Digest,
    /// Digest of select expressions and header types.
    pub projection_sha256: Digest,
    /// Digest of the typed parameters.
    pub typed_parameters_sha256: Digest,
}

impl RawProfile {
    /// The document.
    pub fn document(&self) -> Json {
        let schema = self.ordered_schema.iter().map(Json::array).collect();
        let settings = self
            .read_settings
            .iter()
            .map(|(name, value)| Json::Array(vec![Json::from(name), Json::from(value)]))
            .collect();
        Json::object([
            ("kind", Json::from(PROFILE_KIND)),
            ("engine_signature", Json::from(&self.engine_signature)),
            ("relation_uuid", Json::from(&self.relation_uuid)),
            ("database_engine", Json::from(&self.database_engine)),
            ("ordered_schema", Json::Array(schema)),
            ("partition_key_sha256", Json::from(self.partition_key_sha256)),
            ("sorting_key_sha256", Json::from(self.sorting_key_sha256)),
            ("primary_key_sha256", Json::from(self.primary_key_sha256)),
            ("window", self.window.as_ref().map_or(Json::Null, Json::array)),
            ("read_settings", Json::Array(settings)),
            ("server_revision", Json::from(&self.server_revision)),
            ("endpoint_authority_sha256", Json::from(self.endpoint_authority_sha256)),
            ("replica_scope", Json::from(scope_text(self.replica_scope))),
            ("replica_identity_sha256", Json::from(self.replica_identity_sha256)),
            ("principal_authority_sha256", Json::from(self.principal_authority_sha256)),
            ("row_policy_sha256", Json::from(self.row_policy_sha256)),
            ("policy_filtered", Json::from(self.policy_filtered)),
            ("query_shape_sha256", Json::from(self.query_shape_sha256)),
            ("projection_sha256", Json::from(self.projection_sha256)),
            ("typed_parameters_sha256", Json::from(self.typed_parameters_sha256)),
        ])
    }

    /// The strict canonical bytes.
    pub fn canonical(&self) -> Vec<u8> {
        strict(&self.document())
    }

    /// SHA-256 of the canonical document.
    pub fn sha256(&self) -> Digest {
        strict_digest(&self.document())
    }

    /// Checks a profile made from server facts.
    ///
    /// # Errors
    /// `mssql_native.source_snapshot_profile_invalid`; `source_snapshot_invalid` above the size cap.
    pub fn check(&self) -> Result<(), Refusal> {
        let texts = [&self.engine_signature, &self.relation_uuid, &self.database_engine, &self.server_revision];
        let window = self.window.as_ref().is_none_or(|parts| parts.iter().all(|part| !part.is_empty()));
        let replica = self.replica_scope == ReplicaScope::SingleServer || self.replica_identity_sha256.is_some();
        let settings_named = self.read_settings.iter().all(|(name, _)| !name.is_empty());
        let valid = texts.iter().all(|text| !text.is_empty())
            && window
            && replica
            && settings_named
            && settings::valid(&self.read_settings);
        if !valid {
            return Err(invalid());
        }
        bounds::check(&self.document())
    }

    /// Reads a stored document: exactly the twenty keys, no coercion, settings in stored order.
    ///
    /// # Errors
    /// `mssql_native.source_snapshot_profile_invalid`; `source_snapshot_invalid` when the keys are right and the whole
    /// is larger, deeper or other than a document may be.
    pub fn from_document(document: &Json) -> Result<Self, Refusal> {
        let fields = document.as_object().filter(|fields| has_profile_keys(fields)).ok_or_else(invalid)?;
        bounds::check(document)?;
        let profile = read(fields).ok_or_else(invalid)?;
        profile.check()?;
        Ok(profile)
    }
}

const KEYS: [&str; 20] = [
    "kind",
    "engine_signature",
    "relation_uuid",
    "database_engine",
    "ordered_schema",
    "partition_key_sha256",
    "sorting_key_sha256",
    "primary_key_sha256",
    "window",
    "read_settings",
    "server_revision",
    "endpoint_authority_sha256",
    "replica_scope",
    "replica_identity_sha256",
    "principal_authority_sha256",
    "row_policy_sha256",
    "policy_filtered",
    "query_shape_sha256",
    "projection_sha256",
    "typed_parameters_sha256",
];

fn has_profile_keys(fields: &Object) -> bool {
    fields.len() == KEYS.len()
        && KEYS.iter().all(|key| fields.contains_key(*key))
        && fields.get("kind").and_then(Json::as_str) == Some(PROFILE_KIND)
}

fn read(fields: &Object) -> Option<RawProfile> {
    let text = |key: &str| fields.get(key)?.as_str().map(str::to_owned);
    let digest = |key: &str| fields.get(key)?.as_str()?.parse::<Digest>().ok();
    let window = match fields.get("window")? {
        Json::Null => None,
        window => Some(three_texts(window)?),
    };
    let replica_identity = match fields.get("replica_identity_sha256")? {
        Json::Null => None,
        identity => Some(identity.as_str()?.parse().ok()?),
    };
    Some(RawProfile {
        engine_signature: text("engine_signature")?,
        relation_uuid: text("relation_uuid")?,
        database_engine: text("database_engine")?,
        ordered_schema: fields.get("ordered_schema")?.as_array()?.iter().map(three_texts).collect::<Option<_>>()?,
        partition_key_sha256: digest("partition_key_sha256")?,
        sorting_key_sha256: digest("sorting_key_sha256")?,
        primary_key_sha256: digest("primary_key_sha256")?,
        window,
        read_settings: fields.get("read_settings")?.as_array()?.iter().map(setting).collect::<Option<_>>()?,
        server_revision: text("server_revision")?,
        endpoint_authority_sha256: digest("endpoint_authority_sha256")?,
        replica_scope: scope_from_text(fields.get("replica_scope")?.as_str()?)?,
        replica_identity_sha256: replica_identity,
        principal_authority_sha256: digest("principal_authority_sha256")?,
        row_policy_sha256: digest("row_policy_sha256")?,
        policy_filtered: fields.get("policy_filtered")?.as_bool()?,
        query_shape_sha256: digest("query_shape_sha256")?,
        projection_sha256: digest("projection_sha256")?,
        typed_parameters_sha256: digest("typed_parameters_sha256")?,
    })
}

fn three_texts(value: &Json) -> Option<[String; 3]> {
    match value.as_array()? {
        [a, b, c] => Some([a.as_str()?.to_owned(), b.as_str()?.to_owned(), c.as_str()?.to_owned()]),
        _ => None,
    }
}

fn setting(value: &Json) -> Option<(String, SettingValue)> {
    let [name, value] = value.as_array()? else {
        return None;
    };
    let value = match value {
        Json::Int(number) => SettingValue::Int(BigInt::clone(number)),
        Json::Str(text) => SettingValue::Text(text.clone()),
        Json::Null | Json::Bool(_) | Json::Float(_) | Json::Array(_) | Json::Object(_) => return None,
    };
    Some((name.as_str()?.to_owned(), value))
}

fn invalid() -> Refusal {
    Refusal::new(
        code::SOURCE_SNAPSHOT_PROFILE_INVALID,
        "A raw snapshot profile is not of its closed form; it was changed or written by another version.",
    )
}
