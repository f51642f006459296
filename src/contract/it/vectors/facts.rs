//! Reading `server_metadata` of the profile cases as catalog facts.

use std::collections::BTreeMap;

use contract::canon::Json;
use contract::error::Refusal;
use contract::raw::facts::{ColumnFacts, Flag, Peer, PolicyRow, ReplicaRow, SessionFacts, SourceFacts, TableFacts};
use contract::raw::parts::PartRow;
use serde_json::Value;

use super::case::{json, unhex};
use super::fail;

pub fn string(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("no text: {value}"))
}

pub fn strings(value: &Value) -> Result<Vec<String>, String> {
    value.as_array().ok_or("no array")?.iter().map(string).collect()
}

pub fn items<T>(value: &Value, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    value.as_array().ok_or("no array")?.iter().map(read).collect()
}

/// The catalog facts of a case's `server_metadata`.
pub fn facts(metadata: &Value) -> Result<Result<SourceFacts, Refusal>, String> {
    let parts: Vec<Json> = items(&metadata["parts"], json)?;
    let parts = parts.iter().map(PartRow::from_document).collect::<Result<Vec<_>, _>>();
    let settings = metadata["effective_settings"].as_object().ok_or("no settings")?;
    let facts = SourceFacts {
        tables: vec![table(&metadata["table"])?],
        columns: items(&metadata["columns"], column)?,
        settings: settings
            .iter()
            .map(|(k, v)| Ok((k.clone(), string(v)?)))
            .collect::<Result<BTreeMap<_, _>, String>>()?,
        session: session(metadata)?,
        policies: items(&metadata["row_policies"], policy)?,
        replicas: items(&metadata["replicas"], replica)?,
        pending_mutations: items(&metadata["pending_mutations"], mutation)?,
        parts: Vec::new(),
    };
    // A part that is no part row at all is refused where a complete catalog would have been admitted.
    Ok(parts.map(|parts| SourceFacts { parts, ..facts }))
}

/// The id of a pending mutation.
pub fn mutation(value: &Value) -> Result<String, String> {
    value.as_str().map_or_else(|| string(&value["mutation_id"]), |id| Ok(id.to_owned()))
}

fn table(value: &Value) -> Result<TableFacts, String> {
    Ok(TableFacts {
        engine: string(&value["engine"])?,
        engine_full: string(&value["engine_full"])?,
        uuid: string(&value["uuid"])?,
        database_engine: string(&value["database_engine"])?,
        partition_key: string(&value["partition_key"])?,
        sorting_key: string(&value["sorting_key"])?,
        primary_key: string(&value["primary_key"])?,
    })
}

fn column(value: &Value) -> Result<ColumnFacts, String> {
    let default_kind = value["default_kind"].as_str().unwrap_or_default().to_owned();
    Ok(ColumnFacts { name: string(&value["name"])?, type_text: string(&value["type"])?, default_kind })
}

fn flag(value: &Value) -> Result<Flag, String> {
    match (value.as_bool(), value.as_u64()) {
        (Some(value), _) => Ok(Flag::Bool(value)),
        (_, Some(value)) => u8::try_from(value).map(Flag::Number).map_err(|error| error.to_string()),
        _ => fail(format!("no flag: {value}")),
    }
}

fn policy(value: &Value) -> Result<PolicyRow, String> {
    Ok(PolicyRow {
        id: string(&value["id"])?,
        select_filter: value["select_filter"].as_str().map(str::to_owned),
        is_restrictive: flag(&value["is_restrictive"])?,
        apply_to_all: flag(&value["apply_to_all"])?,
        apply_to_list: strings(&value["apply_to_list"])?,
        apply_to_except: strings(&value["apply_to_except"])?,
    })
}

fn replica(value: &Value) -> Result<ReplicaRow, String> {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(ReplicaRow { replica_name: text("replica_name"), zookeeper_path: text("zookeeper_path") })
}

fn session(metadata: &Value) -> Result<SessionFacts, String> {
    let peer = metadata["peer"].as_array().ok_or("no peer")?;
    let number = |index: usize| peer.get(index).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let port = number(1).and_then(|port| u16::try_from(port).ok()).ok_or("no port")?;
    let certificate = unhex(&string(&metadata["peer_certificate_der_hex"])?).ok_or("certificate")?;
    Ok(SessionFacts {
        principal: string(&metadata["principal"])?,
        roles: strings(&metadata["roles"])?,
        server_revision: string(&metadata["server_revision"])?,
        server_name: string(&metadata["server_name"])?,
        server_timezone: string(&metadata["server_timezone"])?,
        session_timezone: string(&metadata["session_timezone"])?,
        peer: Peer { address: string(&peer[0])?, port, ipv6: number(2).zip(number(3)) },
        peer_certificate_der: certificate,
    })
}
