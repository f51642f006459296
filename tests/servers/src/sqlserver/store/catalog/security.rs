//! Principals, memberships and permissions.

use serde::{Deserialize, Serialize};

use super::{DatabaseId, PrincipalId, UtcMicros};

/// Where a principal, membership or permission lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// The server.
    Server,
    /// A database.
    Database(DatabaseId),
}

/// Kind of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrincipalKind {
    /// SQL login (`S` in `sys.server_principals`) or SQL user (`S` in `sys.database_principals`).
    Sql,
    /// Server or database role (`R`).
    Role,
}

/// A login, user or role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Principal {
    /// Where it lives.
    pub scope: Scope,
    /// Its id.
    pub id: PrincipalId,
    /// Its name.
    pub name: String,
    /// Kind.
    pub kind: PrincipalKind,
    /// Security identifier; a user has the one of its login.
    pub sid: Vec<u8>,
    /// Owner of a role.
    pub owner: Option<PrincipalId>,
    /// Default schema of a user.
    pub default_schema: Option<String>,
    /// Default database of a login.
    pub default_database: Option<String>,
    /// Salted hash of a login's password, in the form of the T-SQL layer; never the password.
    pub password_hash: Option<Vec<u8>>,
    /// Disabled login.
    pub disabled: bool,
    /// Fixed role.
    pub fixed_role: bool,
    /// When it was created.
    pub create_date: UtcMicros,
    /// When it was last changed.
    pub modify_date: UtcMicros,
}

/// Membership in a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Membership {
    /// Where both live.
    pub scope: Scope,
    /// The role.
    pub role: PrincipalId,
    /// The member.
    pub member: PrincipalId,
}

/// State of a permission row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PermissionState {
    /// GRANT (`G`).
    Grant,
    /// GRANT WITH GRANT OPTION (`W`).
    GrantWithOption,
    /// DENY (`D`).
    Deny,
}

/// Securable, grantee and name of a permission.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PermissionKey {
    /// Where it lives.
    pub scope: Scope,
    /// `class`: 0 database, 1 object or column, 3 schema, 4 database principal, 100 server, 101 server principal.
    pub class: u8,
    /// `major_id`.
    pub major_id: i32,
    /// `minor_id`: column id, or 0.
    pub minor_id: i32,
    /// Grantee.
    pub grantee: PrincipalId,
    /// Permission name in capitals, such as `SELECT`.
    pub permission: String,
}

/// A permission row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// What is granted to whom.
    pub key: PermissionKey,
    /// Grantor.
    pub grantor: PrincipalId,
    /// Grant or deny.
    pub state: PermissionState,
}
