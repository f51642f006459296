//! Identities of the transaction-state catalog: invocation, attempt, scope, owner, operation, receipt (contract.md 7).

use crate::canon::{Json, strict_digest};
use crate::code;
use crate::digest::Digest;
use crate::error::Refusal;

/// Version that every identity of this module carries.
pub const CONTRACT_VERSION: &str = "mssql_generic_transaction_v1";

/// Version of the physical target identity.
const TARGET_VERSION: &str = "mssql_physical_target_registry_v1";

fn identity<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Digest {
    strict_digest(&Json::object([("version", Json::from(CONTRACT_VERSION))].into_iter().chain(members)))
}

/// Who runs: the same for every retry of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    run_id: String,
    process: String,
    task_partition: String,
}

impl Invocation {
    /// An invocation of three texts, none of them blank.
    ///
    /// # Errors
    /// `mssql_transaction.invocation_identity_incomplete`.
    pub fn new(run_id: &str, process: &str, task_partition: &str) -> Result<Self, Refusal> {
        if [run_id, process, task_partition].iter().any(|text| text.trim().is_empty()) {
            return Err(Refusal::new(
                code::INVOCATION_IDENTITY_INCOMPLETE,
                "A run needs a run id, a process and a task name; give the one that is missing.",
            ));
        }
        Ok(Invocation {
            run_id: run_id.to_owned(),
            process: process.to_owned(),
            task_partition: task_partition.to_owned(),
        })
    }

    /// The three texts as a document.
    pub fn document(&self) -> Json {
        Json::object(self.members())
    }

    fn members(&self) -> [(&'static str, Json); 3] {
        [
            ("run_id", Json::from(&self.run_id)),
            ("process", Json::from(&self.process)),
            ("task_partition", Json::from(&self.task_partition)),
        ]
    }

    /// Digest of the invocation.
    pub fn digest(&self) -> Digest {
        identity(self.members())
    }

    /// Owner token of the invocation's operations.
    pub fn owner_token(&self) -> String {
        format!("invocation:{}", self.digest())
    }

    /// Digest of the owner token.
    pub fn owner_digest(&self) -> Digest {
        owner_digest(&self.owner_token())
    }

    /// Key of the invocation's attempt on a target.
    pub fn attempt_key(&self, target_identity: Digest) -> Digest {
        identity([("invocation", Json::from(self.digest())), ("target_identity", Json::from(target_identity))])
    }
}

/// Digest of an owner token.
pub fn owner_digest(owner_token: &str) -> Digest {
    identity([("owner_token", Json::from(owner_token))])
}

/// The scope that covers the whole target.
pub fn target_wide_scope() -> Json {
    Json::object([("kind", Json::from("target_wide")), ("version", Json::from(1))])
}

/// Digest of a scope.
pub fn scope_hash(scope: &Json) -> Digest {
    identity([("scope", scope.clone())])
}

/// Digest of a route: source, target, strategy, wire and options. Any change gives another operation.
pub fn route_fingerprint(route: &Json) -> Digest {
    identity([("route", route.clone())])
}

/// Key of an operation: an attempt in a scope.
pub fn operation_key(attempt_key: Digest, scope_hash: Digest) -> Digest {
    identity([("attempt_key", Json::from(attempt_key)), ("scope_hash", Json::from(scope_hash))])
}

/// Id of the receipt that an operation's publication leaves.
pub fn receipt_id(operation_key: Digest) -> String {
    format!("mssql-generic-v1:{operation_key}")
}

/// Applock that serialises publications to a target.
pub fn target_lock(target_identity: Digest) -> String {
    format!("dpone:target:{target_identity}")
}

/// Applock that serialises publications of an operation.
pub fn operation_lock(operation_key: Digest) -> String {
    format!("dpone:operation:{operation_key}")
}

/// Where a target physically is, as the server itself says. Schema and table stand in the registry row, not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhysicalTarget {
    /// Server name.
    pub server_name: String,
    /// Machine name.
    pub machine_name: String,
    /// Instance name.
    pub instance_name: String,
    /// Replica name.
    pub replica_name: String,
    /// Database name.
    pub database: String,
    /// Token of the database's creation.
    pub database_create_token: String,
    /// Binding of the registry row.
    pub binding_id: String,
}

impl PhysicalTarget {
    /// The target's identity; the four server names are compared without case.
    pub fn identity(&self) -> Digest {
        let folded = |name: &String| Json::from(name.to_lowercase());
        let server = Json::object([
            ("server_name", folded(&self.server_name)),
            ("machine_name", folded(&self.machine_name)),
            ("instance_name", folded(&self.instance_name)),
            ("replica_name", folded(&self.replica_name)),
        ]);
        let database = Json::object([
            ("name", Json::from(&self.database)),
            ("create_token", Json::from(&self.database_create_token)),
        ]);
        strict_digest(&Json::object([
            ("version", Json::from(TARGET_VERSION)),
            ("server", server),
            ("database", database),
            ("binding_id", Json::from(&self.binding_id)),
        ]))
    }
}

/// The binding of a table that has no registry row yet, from the catalog's spelling of its name (design.md 3.23).
pub fn binding_id(schema: &str, table: &str) -> Digest {
    strict_digest(&Json::array(["native-transfer.target-binding.v1", schema, table]))
}
