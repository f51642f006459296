//! Identity v2 and the invocation key: everything whose change makes another invocation (contract.md 4).

use crate::canon::{Json, Object, strict, strict_digest};
use crate::code;
use crate::digest::{DIGEST_ALGORITHM_ID, Digest};
use crate::error::Refusal;

/// The barrier timeout of production identities, seconds.
pub const BARRIER_TIMEOUT_SECONDS: u64 = 3600;

/// The major version that the capability document of the session writer names.
pub const RUNTIME_MAJOR: u64 = 10;

const VERIFICATION_BACKEND: &str = "target_local";

/// The six bindings of a chunk plan; every text is nonempty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkPlan {
    /// Operation key, hex, in production.
    pub run_id: String,
    /// Target id, see [`target_id`].
    pub target_id: String,
    /// Legacy binding or version 1 marker of the source query.
    pub source_query_id: String,
    /// Fingerprint of the window.
    pub window_fingerprint: String,
    /// Fingerprint of the source schema.
    pub schema_fingerprint: String,
    /// Fingerprint of the native wire layout, `sha256:` + hex.
    pub wire_fingerprint: String,
}

impl ChunkPlan {
    fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("run_id", &self.run_id),
            ("target_id", &self.target_id),
            ("source_query_id", &self.source_query_id),
            ("window_fingerprint", &self.window_fingerprint),
            ("schema_fingerprint", &self.schema_fingerprint),
            ("wire_fingerprint", &self.wire_fingerprint),
        ]
    }

    /// The plan as a document of six texts.
    pub fn document(&self) -> Json {
        Json::object(self.fields().map(|(key, text)| (key, Json::from(text))))
    }
}

/// Legacy ascii digest of `[target identity hex, database, schema, table]`: the target's id in plans and journals.
pub fn target_id(target_identity: Digest, database: &str, schema: &str, table: &str) -> Digest {
    let identity = target_identity.to_string();
    crate::canon::legacy_digest(&Json::array([identity.as_str(), database, schema, table]))
}

/// Fingerprint of a source schema: strict canonical digest of `[{name, dtype, nullable, collation}]` in catalog order.
///
/// ClickHouse columns have no collation; a type is nullable when it is wrapped in `Nullable`.
pub fn schema_fingerprint<'a>(columns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Digest {
    let column = |(name, type_text): (&str, &str)| {
        Json::object([
            ("name", Json::from(name)),
            ("dtype", Json::from(type_text)),
            ("nullable", Json::from(type_text.starts_with("Nullable("))),
            ("collation", Json::Null),
        ])
    };
    strict_digest(&Json::Array(columns.into_iter().map(column).collect()))
}

/// Who writes chunks into stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportBackend {
    /// A supervised `bcp` process.
    Bcp,
    /// A bulk session of our own that holds the grant applock.
    SqlClient,
}

impl ImportBackend {
    /// The backend's text in manifests and documents.
    pub const fn text(self) -> &'static str {
        match self {
            ImportBackend::Bcp => "bcp",
            ImportBackend::SqlClient => "mssql_sqlclient",
        }
    }

    /// The only writer proof capability that goes with the backend.
    pub const fn proof_capability(self) -> &'static str {
        match self {
            ImportBackend::Bcp => "bcp-supervised-stage-barrier-v1",
            ImportBackend::SqlClient => "sqlclient-session-applock-v1",
        }
    }

    /// The backend of a text, or `None`.
    pub fn from_text(text: &str) -> Option<Self> {
        [ImportBackend::Bcp, ImportBackend::SqlClient].into_iter().find(|backend| backend.text() == text)
    }
}

/// Layout of stages: 1, or 2 with persisted row hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayoutVersion {
    /// Business columns only.
    V1,
    /// With the technical columns of ADR 0077.
    V2,
}

/// The identity of the session writer, as the capability document binds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Identity of the writer package; becomes `companion_package_sha256`.
    pub artifact_sha256: Digest,
    /// Identity of the writer.
    pub writer_identity_sha256: Digest,
    /// Identity of the runtime it runs in.
    pub runtime_identity_sha256: Digest,
}

impl Companion {
    /// Our in-process writer. The number rises only when wire semantics change, so that an upgrade does not end
    /// recovery (design.md 3.3).
    pub fn in_process() -> Self {
        let identity = |domain: &str| {
            strict_digest(&Json::object([
                ("domain", Json::from(domain)),
                ("writer", Json::from("mssql-tds")),
                ("contract", Json::from(1)),
            ]))
        };
        Companion {
            artifact_sha256: identity("native-transfer.writer-package.v1"),
            writer_identity_sha256: identity("native-transfer.writer-identity.v1"),
            runtime_identity_sha256: identity("native-transfer.runtime-identity.v1"),
        }
    }

    /// Reads a companion description as the prior system's companion gives it, for a layout.
    ///
    /// # Errors
    /// `mssql_native.invalid_sqlclient_companion`.
    pub fn from_document(document: &Json, layout: LayoutVersion) -> Result<Self, Refusal> {
        let digest = |key: &str| document.get(key)?.as_str()?.parse::<Digest>().ok();
        let read = || -> Option<Companion> {
            let protocols: Vec<&str> =
                document.get("protocols")?.as_array()?.iter().map(Json::as_str).collect::<Option<_>>()?;
            let speaks = document.get("protocol")?.as_str()? == protocol_text(LayoutVersion::V1)
                && protocols.contains(&protocol_text(layout))
                && document.get("runtime_major")?.as_u64()? == RUNTIME_MAJOR;
            speaks.then_some(())?;
            Some(Companion {
                artifact_sha256: digest("artifact_sha256")?,
                writer_identity_sha256: digest("writer_identity_sha256")?,
                runtime_identity_sha256: digest("runtime_identity_sha256")?,
            })
        };
        read().ok_or_else(|| {
            Refusal::new(
                code::INVALID_SQLCLIENT_COMPANION,
                "The session writer does not identify itself as its contract demands; install a matching version.",
            )
        })
    }
}

fn protocol_text(layout: LayoutVersion) -> &'static str {
    match layout {
        LayoutVersion::V1 => "dpone.mssql-sqlclient.ipc.v1",
        LayoutVersion::V2 => "dpone.mssql-sqlclient.ipc.v2",
    }
}

/// The documents whose digests are the components of an identity; each has a `domain`.
pub mod component {
    use super::{Companion, ImportBackend, LayoutVersion, RUNTIME_MAJOR, VERIFICATION_BACKEND, protocol_text};
    use crate::canon::Json;
    use crate::digest::DIGEST_ALGORITHM_ID;

    /// Protocol of a companion that the BCP backend does not have.
    pub fn absent_protocol() -> Json {
        absent("dpone.mssql-native.companion-protocol.v1")
    }

    /// Package of a companion that the BCP backend does not have.
    pub fn absent_package() -> Json {
        absent("dpone.mssql-native.companion-package.v1")
    }

    fn absent(domain: &str) -> Json {
        Json::object([("domain", Json::from(domain)), ("state", Json::from("absent-for-bcp-p1"))])
    }

    /// The timeout policy.
    pub fn timeout_policy(barrier_timeout_seconds: u64) -> Json {
        Json::object([
            ("domain", Json::from("dpone.mssql-native.timeout-policy.v1")),
            ("attempt_barrier_timeout_seconds", Json::from(barrier_timeout_seconds)),
            ("deadline", Json::from("process-local-monotonic")),
        ])
    }

    fn capability(domain: &str, backend: ImportBackend) -> Vec<(&'static str, Json)> {
        vec![
            ("domain", Json::from(domain)),
            ("digest_algorithm_id", Json::from(DIGEST_ALGORITHM_ID)),
            ("import_backend", Json::from(backend.text())),
            ("verification_backend", Json::from(VERIFICATION_BACKEND)),
            ("writer_proof_capability", Json::from(backend.proof_capability())),
        ]
    }

    /// What the BCP backend can prove.
    pub fn bcp_capability() -> Json {
        Json::object(capability("dpone.mssql-native.capability-layout.v1", ImportBackend::Bcp))
    }

    /// Protocol of the session writer.
    pub fn sqlclient_protocol(layout: LayoutVersion) -> Json {
        Json::object([
            ("domain", Json::from("dpone.mssql-sqlclient.protocol.v1")),
            ("protocol", Json::from(protocol_text(layout))),
        ])
    }

    /// What the session writer can prove.
    pub fn sqlclient_capability(companion: &Companion, layout: LayoutVersion) -> Json {
        let domain = match layout {
            LayoutVersion::V1 => "dpone.mssql-native.capability-layout.v2",
            LayoutVersion::V2 => "dpone.mssql-native.capability-layout.v3",
        };
        let mut members = capability(domain, ImportBackend::SqlClient);
        members.extend([
            ("writer_identity_sha256", Json::from(companion.writer_identity_sha256)),
            ("runtime_identity_sha256", Json::from(companion.runtime_identity_sha256)),
            ("runtime_major", Json::from(RUNTIME_MAJOR)),
            ("target_types", Json::array(["bigint", "float(53)", "nvarchar(max)", "datetime2(6)"])),
        ]);
        if layout == LayoutVersion::V2 {
            let columns = [["__dpone__native_row_hash", "binary(32)"], ["__dpone__mutation_version", "rowversion"]];
            members.extend([
                ("layout_version", Json::from(2)),
                ("technical_columns", Json::Array(columns.map(Json::array).to_vec())),
            ]);
        }
        Json::object(members)
    }
}

/// The barrier timeout as authored: a positive integer of seconds.
///
/// # Errors
/// `mssql_native.invalid_barrier_timeout`.
pub fn barrier_timeout(value: &Json) -> Result<u64, Refusal> {
    value.as_u64().filter(|seconds| *seconds > 0).ok_or_else(|| {
        Refusal::new(code::INVALID_BARRIER_TIMEOUT, "The barrier timeout is a positive whole number of seconds.")
    })
}

/// Identity v2: a flat document of fourteen texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationIdentity {
    /// The chunk plan.
    pub plan: ChunkPlan,
    /// The writer; fixes the proof capability.
    pub import_backend: ImportBackend,
    /// Digest of the companion's protocol document.
    pub companion_protocol_sha256: Digest,
    /// Digest of the companion's package.
    pub companion_package_sha256: Digest,
    /// Digest of the capability document.
    pub capability_layout_sha256: Digest,
    /// Digest algorithm.
    pub digest_algorithm_id: String,
    /// Digest of the timeout policy.
    pub timeout_policy_sha256: Digest,
}

const IDENTITY_KEYS: usize = 14;

impl VerificationIdentity {
    /// The identity of a BCP run.
    pub fn bcp(plan: ChunkPlan, barrier_timeout_seconds: u64) -> Self {
        VerificationIdentity {
            plan,
            import_backend: ImportBackend::Bcp,
            companion_protocol_sha256: strict_digest(&component::absent_protocol()),
            companion_package_sha256: strict_digest(&component::absent_package()),
            capability_layout_sha256: strict_digest(&component::bcp_capability()),
            digest_algorithm_id: DIGEST_ALGORITHM_ID.to_owned(),
            timeout_policy_sha256: strict_digest(&component::timeout_policy(barrier_timeout_seconds)),
        }
    }

    /// The identity of a run of the session writer.
    pub fn sqlclient(
        plan: ChunkPlan,
        barrier_timeout_seconds: u64,
        companion: &Companion,
        layout: LayoutVersion,
    ) -> Self {
        VerificationIdentity {
            plan,
            import_backend: ImportBackend::SqlClient,
            companion_protocol_sha256: strict_digest(&component::sqlclient_protocol(layout)),
            companion_package_sha256: companion.artifact_sha256,
            capability_layout_sha256: strict_digest(&component::sqlclient_capability(companion, layout)),
            digest_algorithm_id: DIGEST_ALGORITHM_ID.to_owned(),
            timeout_policy_sha256: strict_digest(&component::timeout_policy(barrier_timeout_seconds)),
        }
    }

    /// The document.
    pub fn document(&self) -> Json {
        let mut members: Vec<(&str, Json)> = self.plan.fields().map(|(key, text)| (key, Json::from(text))).to_vec();
        members.extend([
            ("import_backend", Json::from(self.import_backend.text())),
            ("verification_backend", Json::from(VERIFICATION_BACKEND)),
            ("writer_proof_capability", Json::from(self.import_backend.proof_capability())),
            ("companion_protocol_sha256", Json::from(self.companion_protocol_sha256)),
            ("companion_package_sha256", Json::from(self.companion_package_sha256)),
            ("capability_layout_sha256", Json::from(self.capability_layout_sha256)),
            ("digest_algorithm_id", Json::from(&self.digest_algorithm_id)),
            ("timeout_policy_sha256", Json::from(self.timeout_policy_sha256)),
        ]);
        Json::object(members)
    }

    /// The strict canonical bytes.
    pub fn canonical(&self) -> Vec<u8> {
        strict(&self.document())
    }

    /// SHA-256 of the canonical document.
    pub fn invocation_key(&self) -> Digest {
        strict_digest(&self.document())
    }

    /// Reads a stored document: exactly fourteen texts, backend and capability paired.
    ///
    /// # Errors
    /// `mssql_native.invalid_v2_identity`.
    pub fn from_document(document: &Json) -> Result<Self, Refusal> {
        document.as_object().filter(|members| members.len() == IDENTITY_KEYS).and_then(read).ok_or_else(|| {
            Refusal::new(
                code::INVALID_V2_IDENTITY,
                "A stored identity is not of its closed form; it was changed or written by another version.",
            )
        })
    }
}

fn read(members: &Object) -> Option<VerificationIdentity> {
    let text = |key: &str| members.get(key)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let digest = |key: &str| members.get(key)?.as_str()?.parse::<Digest>().ok();
    let import_backend = ImportBackend::from_text(&text("import_backend")?)?;
    let paired = text("writer_proof_capability")? == import_backend.proof_capability()
        && text("verification_backend")? == VERIFICATION_BACKEND;
    paired.then_some(())?;
    Some(VerificationIdentity {
        plan: ChunkPlan {
            run_id: text("run_id")?,
            target_id: text("target_id")?,
            source_query_id: text("source_query_id")?,
            window_fingerprint: text("window_fingerprint")?,
            schema_fingerprint: text("schema_fingerprint")?,
            wire_fingerprint: text("wire_fingerprint")?,
        },
        import_backend,
        companion_protocol_sha256: digest("companion_protocol_sha256")?,
        companion_package_sha256: digest("companion_package_sha256")?,
        capability_layout_sha256: digest("capability_layout_sha256")?,
        digest_algorithm_id: text("digest_algorithm_id")?,
        timeout_policy_sha256: digest("timeout_policy_sha256")?,
    })
}
