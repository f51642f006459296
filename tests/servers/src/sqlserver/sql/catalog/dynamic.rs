//! Sessions, requests, locks, transactions, system information.

use super::super::error::Result;
use super::super::permission;
use super::super::plan::Row;
use super::super::state::Cx;
use super::{BIG, BIT, DESC, INT, NAME, SID, SMALL, Source, TIME, View, big, bit, int, row, small, text, time};
use crate::sqlserver::store::lock::{LockStatus, Owner, Resource};
use crate::sqlserver::value::{SqlType, Value};

fn id16(id: u16) -> Value {
    small(i16::try_from(id).unwrap_or(i16::MAX))
}

/// Other sessions are shown to those who may view server state.
fn sees_all(cx: &mut Cx<'_>) -> bool {
    permission::has_server(cx, "VIEW SERVER STATE")
}

fn sessions(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let (all, own) = (sees_all(cx), cx.st.id);
    let engine = std::sync::Arc::clone(&cx.st.engine);
    engine.note(cx.st);
    let mut rows = Vec::new();
    for s in engine.sessions() {
        if !(all || s.id == own) {
            continue;
        }
        rows.push(row![
            id16(s.id),
            time(s.login_time),
            text(&s.host_name),
            text(&s.program_name),
            int(i32::try_from(s.client_pid).unwrap_or(0)),
            int(7),
            text(&s.client_interface),
            Value::binary(&[1]),
            text(&s.login_name),
            text(if s.running { "running" } else { "sleeping" }),
            int(0),
            int(0),
            int(0),
            time(s.login_time),
            time(s.login_time),
            big(0),
            big(0),
            big(0),
            bit(true),
            int(i32::MAX),
            text("us_english"),
            text("mdy"),
            small(7),
            bit(true),
            small(s.isolation),
            int(s.lock_timeout),
            int(0),
            big(0),
            int(0),
            text(&s.original_login),
            small(i16::try_from(s.database.0).unwrap_or(0)),
            int(i32::try_from(s.transactions).unwrap_or(0)),
        ]);
    }
    Ok(rows)
}

fn connections(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let (all, own) = (sees_all(cx), cx.st.id);
    let mut rows = Vec::new();
    for s in cx.st.engine.sessions() {
        if !(all || s.id == own) {
            continue;
        }
        rows.push(row![
            int(i32::from(s.id)),
            time(s.login_time),
            text("TCP"),
            text("TSQL"),
            int(0x7400_0004),
            int(4),
            text(if s.encrypted { "TRUE" } else { "FALSE" }),
            text("SQL"),
            small(0),
            int(i32::try_from(s.packet_size).unwrap_or(0)),
            text(&s.client_address),
            Value::Null,
        ]);
    }
    Ok(rows)
}

fn requests(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    use crate::sqlserver::store::SessionId;
    let (all, own) = (sees_all(cx), cx.st.id);
    let engine = std::sync::Arc::clone(&cx.st.engine);
    engine.note(cx.st);
    let mut rows = Vec::new();
    for s in engine.sessions() {
        if !s.running || !(all || s.id == own) {
            continue;
        }
        let blocker = engine.store.locks().blocker_of(SessionId(i32::from(s.id))).map_or(0, |b| b.0);
        rows.push(row![
            id16(s.id),
            int(0),
            time(s.login_time),
            text(if blocker == 0 { "running" } else { "suspended" }),
            text("SELECT"),
            small(i16::try_from(s.database.0).unwrap_or(0)),
            small(i16::try_from(blocker).unwrap_or(0)),
            if blocker == 0 { Value::Null } else { text("LCK_M_X") },
            int(0),
            text(""),
            int(i32::try_from(s.transactions).unwrap_or(0)),
            Value::Real(0.0),
            int(0),
            int(0),
            big(0),
            big(0),
            big(0),
            int(s.lock_timeout),
            small(s.isolation),
        ]);
    }
    Ok(rows)
}

fn locks(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    permission::check_server(cx, "VIEW SERVER STATE")?;
    let txn = cx.st.txn();
    let mut rows = Vec::new();
    for lock in cx.st.engine.store.locks().snapshot() {
        let (kind, description, entity, database) = match &lock.resource {
            Resource::Object(id) => {
                ("OBJECT", String::new(), i64::from(id.0), txn.object(*id).map_or(0, |o| o.database.0))
            }
            Resource::Row { table, row } => {
                ("RID", format!("1:{}", row.0), i64::from(table.0), txn.object(*table).map_or(0, |o| o.database.0))
            }
            Resource::Application(name) => {
                ("APPLICATION", format!("{}:[{}]:()", name.principal.0, name.name), 0, name.database.0)
            }
            Resource::Transaction(id) => ("XACT", id.0.to_string(), 0, 0),
            Resource::Name { .. } | Resource::Catalog(_) => ("METADATA", String::new(), 0, 0),
        };
        let status = match lock.status {
            LockStatus::Granted => "GRANT",
            LockStatus::Waiting => "WAIT",
            LockStatus::Converting => "CONVERT",
        };
        let (owner, owner_id) = match lock.owner {
            Owner::Session(_) => ("SESSION", 0),
            Owner::Transaction(id) => ("TRANSACTION", id.0),
        };
        rows.push(row![
            text(kind),
            text(""),
            int(database),
            text(&description),
            Value::BigInt(entity),
            int(0),
            text(lock.mode.name()),
            text("LOCK"),
            text(status),
            small(i16::try_from(lock.count).unwrap_or(1)),
            int(lock.session.0),
            int(0),
            text(owner),
            big(owner_id),
        ]);
    }
    Ok(rows)
}

fn session_transactions(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    permission::check_server(cx, "VIEW SERVER STATE")?;
    let engine = std::sync::Arc::clone(&cx.st.engine);
    engine.note(cx.st);
    Ok(engine
        .sessions()
        .iter()
        .filter(|s| s.transactions > 0)
        .map(|s| {
            row![
                int(i32::from(s.id)),
                big(s.transaction_id),
                Value::binary(&s.transaction_id.to_be_bytes()),
                int(1),
                bit(true),
                bit(true),
                bit(false),
                bit(false),
                int(i32::try_from(s.transactions).unwrap_or(0)),
            ]
        })
        .collect())
}

fn active_transactions(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    permission::check_server(cx, "VIEW SERVER STATE")?;
    let engine = std::sync::Arc::clone(&cx.st.engine);
    engine.note(cx.st);
    Ok(engine
        .sessions()
        .iter()
        .filter(|s| s.transactions > 0)
        .map(|s| row![big(s.transaction_id), text("user_transaction"), time(s.login_time), int(1), int(2), int(0)])
        .collect())
}

fn system_info(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    permission::check_server(cx, "VIEW SERVER STATE")?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let count = i32::try_from(processors).unwrap_or(1);
    Ok(vec![row![
        big(0),
        int(count),
        int(1),
        big(1 << 20),
        big(1 << 20),
        big(0),
        int(0),
        time(cx.st.engine.started),
        text("NONE")
    ]])
}

pub(super) const VIEWS: &[View] = &[
    View {
        name: "dm_exec_sessions",
        schema: "sys",
        columns: &[
            ("session_id", SMALL),
            ("login_time", TIME),
            ("host_name", NAME),
            ("program_name", NAME),
            ("host_process_id", INT),
            ("client_version", INT),
            ("client_interface_name", SqlType::nvarchar(32)),
            ("security_id", SID),
            ("login_name", NAME),
            ("status", SqlType::nvarchar(30)),
            ("cpu_time", INT),
            ("memory_usage", INT),
            ("total_elapsed_time", INT),
            ("last_request_start_time", TIME),
            ("last_request_end_time", TIME),
            ("reads", BIG),
            ("writes", BIG),
            ("logical_reads", BIG),
            ("is_user_process", BIT),
            ("text_size", INT),
            ("language", NAME),
            ("date_format", SqlType::nvarchar(3)),
            ("date_first", SMALL),
            ("quoted_identifier", BIT),
            ("transaction_isolation_level", SMALL),
            ("lock_timeout", INT),
            ("deadlock_priority", INT),
            ("row_count", BIG),
            ("prev_error", INT),
            ("original_login_name", NAME),
            ("database_id", SMALL),
            ("open_transaction_count", INT),
        ],
        rows: sessions,
    },
    View {
        name: "dm_exec_connections",
        schema: "sys",
        columns: &[
            ("session_id", INT),
            ("connect_time", TIME),
            ("net_transport", SqlType::nvarchar(40)),
            ("protocol_type", SqlType::nvarchar(40)),
            ("protocol_version", INT),
            ("endpoint_id", INT),
            ("encrypt_option", SqlType::nvarchar(40)),
            ("auth_scheme", SqlType::nvarchar(40)),
            ("node_affinity", SMALL),
            ("net_packet_size", INT),
            ("client_net_address", SqlType::varchar(48)),
            ("client_tcp_port", INT),
        ],
        rows: connections,
    },
    View {
        name: "dm_exec_requests",
        schema: "sys",
        columns: &[
            ("session_id", SMALL),
            ("request_id", INT),
            ("start_time", TIME),
            ("status", SqlType::nvarchar(30)),
            ("command", SqlType::nvarchar(32)),
            ("database_id", SMALL),
            ("blocking_session_id", SMALL),
            ("wait_type", SqlType::nvarchar(60)),
            ("wait_time", INT),
            ("wait_resource", SqlType::nvarchar(256)),
            ("open_transaction_count", INT),
            ("percent_complete", SqlType::Real),
            ("cpu_time", INT),
            ("total_elapsed_time", INT),
            ("reads", BIG),
            ("writes", BIG),
            ("logical_reads", BIG),
            ("lock_timeout", INT),
            ("transaction_isolation_level", SMALL),
        ],
        rows: requests,
    },
    View {
        name: "dm_tran_locks",
        schema: "sys",
        columns: &[
            ("resource_type", DESC),
            ("resource_subtype", DESC),
            ("resource_database_id", INT),
            ("resource_description", SqlType::nvarchar(256)),
            ("resource_associated_entity_id", BIG),
            ("resource_lock_partition", INT),
            ("request_mode", DESC),
            ("request_type", DESC),
            ("request_status", DESC),
            ("request_reference_count", SMALL),
            ("request_session_id", INT),
            ("request_exec_context_id", INT),
            ("request_owner_type", DESC),
            ("request_owner_id", BIG),
        ],
        rows: locks,
    },
    View {
        name: "dm_tran_session_transactions",
        schema: "sys",
        columns: &[
            ("session_id", INT),
            ("transaction_id", BIG),
            ("transaction_descriptor", SqlType::Binary(8)),
            ("enlist_count", INT),
            ("is_user_transaction", BIT),
            ("is_local", BIT),
            ("is_enlisted", BIT),
            ("is_bound", BIT),
            ("open_transaction_count", INT),
        ],
        rows: session_transactions,
    },
    View {
        name: "dm_tran_active_transactions",
        schema: "sys",
        columns: &[
            ("transaction_id", BIG),
            ("name", SqlType::nvarchar(32)),
            ("transaction_begin_time", TIME),
            ("transaction_type", INT),
            ("transaction_state", INT),
            ("transaction_status", INT),
        ],
        rows: active_transactions,
    },
    View {
        name: "dm_os_sys_info",
        schema: "sys",
        columns: &[
            ("ms_ticks", BIG),
            ("cpu_count", INT),
            ("hyperthread_ratio", INT),
            ("physical_memory_kb", BIG),
            ("virtual_memory_kb", BIG),
            ("committed_kb", BIG),
            ("stack_size_in_bytes", INT),
            ("sqlserver_start_time", TIME),
            ("virtual_machine_type_desc", DESC),
        ],
        rows: system_info,
    },
];
