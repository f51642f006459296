//! What the source's catalog says about one relation and the session that reads it, before any judgement.

use std::collections::BTreeMap;

use super::parts::PartRow;
use crate::canon::Json;

/// A row of `system.tables` joined with its database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFacts {
    /// `engine`.
    pub engine: String,
    /// `engine_full`.
    pub engine_full: String,
    /// `toString(uuid)`.
    pub uuid: String,
    /// Engine of the database.
    pub database_engine: String,
    /// `partition_key`.
    pub partition_key: String,
    /// `sorting_key`.
    pub sorting_key: String,
    /// `primary_key`.
    pub primary_key: String,
}

/// A row of `system.columns`, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Name.
    pub name: String,
    /// Type text.
    pub type_text: String,
    /// `DEFAULT`, `MATERIALIZED`, ..., empty for an ordinary column.
    pub default_kind: String,
}

/// A yes or no of the catalog in the type that the server gives it: the type is part of the policy digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// `UInt8`.
    Number(u8),
    /// `Bool`.
    Bool(bool),
}

impl Flag {
    /// Whether it says yes.
    pub fn is_set(self) -> bool {
        match self {
            Flag::Number(value) => value != 0,
            Flag::Bool(value) => value,
        }
    }
}

impl From<Flag> for Json {
    fn from(flag: Flag) -> Self {
        match flag {
            Flag::Number(value) => Json::from(value),
            Flag::Bool(value) => Json::from(value),
        }
    }
}

/// A row of `system.row_policies` for the relation or its whole database, ordered by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRow {
    /// `toString(id)`.
    pub id: String,
    /// Condition, if any.
    pub select_filter: Option<String>,
    /// Restrictive or permissive.
    pub is_restrictive: Flag,
    /// Whether it applies to everyone.
    pub apply_to_all: Flag,
    /// Users and roles it applies to.
    pub apply_to_list: Vec<String>,
    /// Users and roles it does not apply to.
    pub apply_to_except: Vec<String>,
}

impl From<&PolicyRow> for Json {
    fn from(policy: &PolicyRow) -> Self {
        Json::object([
            ("id", Json::from(&policy.id)),
            ("select_filter", Json::from(policy.select_filter.clone())),
            ("is_restrictive", Json::from(policy.is_restrictive)),
            ("apply_to_all", Json::from(policy.apply_to_all)),
            ("apply_to_list", Json::array(&policy.apply_to_list)),
            ("apply_to_except", Json::array(&policy.apply_to_except)),
        ])
    }
}

/// A row of `system.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRow {
    /// `replica_name`.
    pub replica_name: String,
    /// `zookeeper_path`.
    pub zookeeper_path: String,
}

/// Remote address of the one socket, as the operating system reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Numeric address text.
    pub address: String,
    /// Port.
    pub port: u16,
    /// Flow info and scope id of an IPv6 address.
    pub ipv6: Option<(u32, u32)>,
}

impl From<std::net::SocketAddr> for Peer {
    fn from(address: std::net::SocketAddr) -> Self {
        let ipv6 = match address {
            std::net::SocketAddr::V4(_) => None,
            std::net::SocketAddr::V6(v6) => Some((v6.flowinfo(), v6.scope_id())),
        };
        Peer { address: address.ip().to_string(), port: address.port(), ipv6 }
    }
}

impl From<&Peer> for Json {
    fn from(peer: &Peer) -> Self {
        let mut items = vec![Json::from(&peer.address), Json::from(peer.port)];
        if let Some((flow_info, scope_id)) = peer.ipv6 {
            items.extend([Json::from(flow_info), Json::from(scope_id)]);
        }
        Json::Array(items)
    }
}

/// Who reads, on which server, over which connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// `currentUser()`.
    pub principal: String,
    /// `enabledRoles()`.
    pub roles: Vec<String>,
    /// `toString(revision())`.
    pub server_revision: String,
    /// `hostName()`.
    pub server_name: String,
    /// `serverTimeZone()`.
    pub server_timezone: String,
    /// `timezone()`.
    pub session_timezone: String,
    /// Remote address.
    pub peer: Peer,
    /// The peer's certificate, DER.
    pub peer_certificate_der: Vec<u8>,
}

/// Everything that one admission reads from the catalog, in reading order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFacts {
    /// Rows of `system.tables` for the name: exactly one when the relation exists.
    pub tables: Vec<TableFacts>,
    /// Columns by position.
    pub columns: Vec<ColumnFacts>,
    /// `system.settings`, name to value, for the frozen names and the filters.
    pub settings: BTreeMap<String, String>,
    /// Session and server.
    pub session: SessionFacts,
    /// Row policies.
    pub policies: Vec<PolicyRow>,
    /// Replica rows; only read for `connected_replica`.
    pub replicas: Vec<ReplicaRow>,
    /// Ids of unfinished mutations.
    pub pending_mutations: Vec<String>,
    /// Active parts of the read.
    pub parts: Vec<PartRow>,
}
