//! Principals, memberships, permissions, databases, configuration.

use super::super::error::Result;
use super::super::plan::Row;
use super::super::state::Cx;
use super::super::{permission, principal};
use super::{
    BIT, CODE1, DESC, INT, NAME, SID, SMALL, Source, TIME, TINY, View, bit, int, or_null, row, small, text, time, tiny,
};
use crate::sqlserver::store::catalog::{PermissionState, PrincipalKind, Scope};
use crate::sqlserver::value::{SqlType, Value};

fn database_principals(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    let own = principal::user_in(cx, source.database).map(|u| u.0);
    let all = permission::has(cx, permission::Target::Database(source.database), "VIEW DEFINITION");
    let mut rows = Vec::new();
    for p in txn.principals(Scope::Database(source.database)) {
        let role = p.kind == PrincipalKind::Role;
        if !(all || role || p.id.0 <= 4 || Some(p.id) == own) {
            continue;
        }
        rows.push(row![
            text(&p.name),
            int(p.id.0),
            text(if role { "R" } else { "S" }),
            text(if role { "DATABASE_ROLE" } else { "SQL_USER" }),
            or_null(p.default_schema.as_deref(), text),
            time(p.create_date),
            time(p.modify_date),
            or_null(p.owner, |o| int(o.0)),
            Value::binary(&p.sid),
            bit(p.fixed_role),
            int(i32::from(!role)),
            text(if role { "NONE" } else { "INSTANCE" }),
        ]);
    }
    Ok(rows)
}

fn server_principals(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    let all = permission::has_server(cx, "ALTER ANY LOGIN") || permission::has_server(cx, "VIEW ANY DEFINITION");
    let mut rows = Vec::new();
    for p in txn.principals(Scope::Server) {
        let role = p.kind == PrincipalKind::Role;
        if !(all || role || p.id.0 == 1 || p.id == cx.st.identity.login_id) {
            continue;
        }
        rows.push(row![
            text(&p.name),
            int(p.id.0),
            Value::binary(&p.sid),
            text(if role { "R" } else { "S" }),
            text(if role { "SERVER_ROLE" } else { "SQL_LOGIN" }),
            bit(p.disabled),
            time(p.create_date),
            time(p.modify_date),
            or_null(p.default_database.as_deref(), text),
            if role { Value::Null } else { text("us_english") },
            Value::Null,
            or_null(p.owner, |o| int(o.0)),
            bit(p.fixed_role),
        ]);
    }
    Ok(rows)
}

fn class_desc(class: u8) -> &'static str {
    match class {
        0 => "DATABASE",
        1 => "OBJECT_OR_COLUMN",
        3 => "SCHEMA",
        4 => "DATABASE_PRINCIPAL",
        100 => "SERVER",
        _ => "SERVER_PRINCIPAL",
    }
}

/// Four-letter codes of permissions.
fn code(name: &str) -> &'static str {
    match name {
        "SELECT" => "SL  ",
        "INSERT" => "IN  ",
        "UPDATE" => "UP  ",
        "DELETE" => "DL  ",
        "EXECUTE" => "EX  ",
        "REFERENCES" => "RF  ",
        "ALTER" => "AL  ",
        "CONTROL" => "CL  ",
        "VIEW DEFINITION" => "VW  ",
        "CONNECT" => "CO  ",
        "CREATE TABLE" => "CRTB",
        "CREATE VIEW" => "CRVW",
        "CREATE PROCEDURE" => "CRPR",
        "CREATE FUNCTION" => "CRFN",
        "CREATE SCHEMA" => "CRSM",
        "VIEW DATABASE STATE" => "VWDS",
        "VIEW SERVER STATE" => "VWSS",
        "CONNECT SQL" => "COSQ",
        _ => "    ",
    }
}

fn permission_rows(cx: &mut Cx<'_>, scope: Scope, visible: impl Fn(i32) -> bool) -> Vec<Row> {
    let txn = cx.st.txn();
    let mut rows = Vec::new();
    for p in txn.permissions(scope) {
        if !visible(p.key.grantee.0) {
            continue;
        }
        let (state, desc) = match p.state {
            PermissionState::Grant => ("G", "GRANT"),
            PermissionState::GrantWithOption => ("W", "GRANT_WITH_GRANT_OPTION"),
            PermissionState::Deny => ("D", "DENY"),
        };
        rows.push(row![
            tiny(p.key.class),
            text(class_desc(p.key.class)),
            int(p.key.major_id),
            int(p.key.minor_id),
            int(p.key.grantee.0),
            int(p.grantor.0),
            text(code(&p.key.permission)),
            text(&p.key.permission),
            text(state),
            text(desc),
        ]);
    }
    rows
}

fn database_permissions(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let all = permission::has(cx, permission::Target::Database(source.database), "VIEW DEFINITION");
    let own = principal::user_in(cx, source.database).map_or(-1, |u| u.0.0);
    let txn = cx.st.txn();
    let roles =
        principal::roles_of(&txn, Scope::Database(source.database), crate::sqlserver::store::catalog::PrincipalId(own));
    Ok(permission_rows(cx, Scope::Database(source.database), |id| all || id == 0 || roles.iter().any(|r| r.0 == id)))
}

fn server_permissions(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let all = permission::is_sysadmin(cx);
    let own = cx.st.identity.login_id.0;
    Ok(permission_rows(cx, Scope::Server, |id| all || id == own || id == 2))
}

fn database_role_members(cx: &mut Cx<'_>, source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    Ok(txn.memberships(Scope::Database(source.database)).iter().map(|m| row![int(m.role.0), int(m.member.0)]).collect())
}

fn server_role_members(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    Ok(txn.memberships(Scope::Server).iter().map(|m| row![int(m.role.0), int(m.member.0)]).collect())
}

fn databases(cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let txn = cx.st.txn();
    let mut rows = Vec::new();
    for d in txn.databases() {
        let model = txn.setting(Scope::Database(d.id), "recovery_model").unwrap_or_else(|| "SIMPLE".into());
        let code = match model.as_str() {
            "FULL" => 1,
            "BULK_LOGGED" => 2,
            _ => 3,
        };
        rows.push(row![
            text(&d.name),
            int(d.id.0),
            Value::Null,
            Value::binary(&[1]),
            time(d.create_date),
            tiny(160),
            text(&d.collation),
            tiny(0),
            text("MULTI_USER"),
            bit(false),
            bit(false),
            bit(false),
            tiny(0),
            text("ONLINE"),
            bit(false),
            bit(false),
            tiny(0),
            text("OFF"),
            bit(false),
            tiny(code),
            text(&model),
            tiny(2),
            text("CHECKSUM"),
            bit(true),
            bit(true),
            bit(false),
            bit(false),
            bit(false),
            bit(false),
            bit(false),
            bit(false),
            text("NOTHING"),
            bit(false),
            bit(false),
        ]);
    }
    Ok(rows)
}

fn configurations(_cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    let settings = [
        (101, "recovery interval (min)", 0, 0, 32_767),
        (103, "user connections", 0, 0, 32_767),
        (115, "nested triggers", 1, 0, 1),
        (1539, "max degree of parallelism", 0, 0, 32_767),
        (1541, "query wait (s)", -1, -1, i32::MAX),
        (1544, "max server memory (MB)", i32::MAX, 128, i32::MAX),
        (518, "show advanced options", 0, 0, 1),
        (544, "network packet size (B)", 4096, 512, 32_767),
        (16_390, "xp_cmdshell", 0, 0, 1),
        (1562, "clr enabled", 0, 0, 1),
    ];
    let variant = |n: i32| Value::Variant(std::sync::Arc::new((SqlType::Int, int(n))));
    Ok(settings
        .iter()
        .map(|(id, name, value, low, high)| {
            row![
                int(*id),
                text(name),
                variant(*value),
                variant(*low),
                variant(*high),
                variant(*value),
                text(name),
                bit(true),
                bit(*id > 500)
            ]
        })
        .collect())
}

fn filegroups(_cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(vec![row![
        text("PRIMARY"),
        int(1),
        text("FG"),
        text("ROWS_FILEGROUP"),
        bit(true),
        bit(false),
        Value::Null,
        Value::Null,
        bit(false),
        bit(false)
    ]])
}

fn languages(_cx: &mut Cx<'_>, _source: &Source, _args: &[Value]) -> Result<Vec<Row>> {
    Ok(vec![row![small(0), text("mdy"), tiny(7), int(0), text("us_english"), text("English"), int(1033), small(1033)]])
}

const PERMISSION_COLUMNS: &[(&str, SqlType)] = &[
    ("class", TINY),
    ("class_desc", DESC),
    ("major_id", INT),
    ("minor_id", INT),
    ("grantee_principal_id", INT),
    ("grantor_principal_id", INT),
    ("type", SqlType::Char(4, crate::sqlserver::value::Collation::DEFAULT)),
    ("permission_name", NAME),
    ("state", CODE1),
    ("state_desc", DESC),
];

pub(super) const VIEWS: &[View] = &[
    View {
        name: "database_principals",
        schema: "sys",
        columns: &[
            ("name", NAME),
            ("principal_id", INT),
            ("type", CODE1),
            ("type_desc", DESC),
            ("default_schema_name", NAME),
            ("create_date", TIME),
            ("modify_date", TIME),
            ("owning_principal_id", INT),
            ("sid", SID),
            ("is_fixed_role", BIT),
            ("authentication_type", INT),
            ("authentication_type_desc", DESC),
        ],
        rows: database_principals,
    },
    View {
        name: "server_principals",
        schema: "sys",
        columns: &[
            ("name", NAME),
            ("principal_id", INT),
            ("sid", SID),
            ("type", CODE1),
            ("type_desc", DESC),
            ("is_disabled", BIT),
            ("create_date", TIME),
            ("modify_date", TIME),
            ("default_database_name", NAME),
            ("default_language_name", NAME),
            ("credential_id", INT),
            ("owning_principal_id", INT),
            ("is_fixed_role", BIT),
        ],
        rows: server_principals,
    },
    View { name: "database_permissions", schema: "sys", columns: PERMISSION_COLUMNS, rows: database_permissions },
    View { name: "server_permissions", schema: "sys", columns: PERMISSION_COLUMNS, rows: server_permissions },
    View {
        name: "database_role_members",
        schema: "sys",
        columns: &[("role_principal_id", INT), ("member_principal_id", INT)],
        rows: database_role_members,
    },
    View {
        name: "server_role_members",
        schema: "sys",
        columns: &[("role_principal_id", INT), ("member_principal_id", INT)],
        rows: server_role_members,
    },
    View {
        name: "databases",
        schema: "sys",
        columns: &[
            ("name", NAME),
            ("database_id", INT),
            ("source_database_id", INT),
            ("owner_sid", SID),
            ("create_date", TIME),
            ("compatibility_level", TINY),
            ("collation_name", NAME),
            ("user_access", TINY),
            ("user_access_desc", DESC),
            ("is_read_only", BIT),
            ("is_auto_close_on", BIT),
            ("is_auto_shrink_on", BIT),
            ("state", TINY),
            ("state_desc", DESC),
            ("is_in_standby", BIT),
            ("is_cleanly_shutdown", BIT),
            ("snapshot_isolation_state", TINY),
            ("snapshot_isolation_state_desc", DESC),
            ("is_read_committed_snapshot_on", BIT),
            ("recovery_model", TINY),
            ("recovery_model_desc", DESC),
            ("page_verify_option", TINY),
            ("page_verify_option_desc", DESC),
            ("is_auto_create_stats_on", BIT),
            ("is_auto_update_stats_on", BIT),
            ("is_ansi_nulls_on", BIT),
            ("is_quoted_identifier_on", BIT),
            ("is_trustworthy_on", BIT),
            ("is_db_chaining_on", BIT),
            ("is_broker_enabled", BIT),
            ("is_encrypted", BIT),
            ("log_reuse_wait_desc", DESC),
            ("is_memory_optimized_enabled", BIT),
            ("is_recursive_triggers_on", BIT),
        ],
        rows: databases,
    },
    View {
        name: "configurations",
        schema: "sys",
        columns: &[
            ("configuration_id", INT),
            ("name", SqlType::nvarchar(35)),
            ("value", SqlType::SqlVariant),
            ("minimum", SqlType::SqlVariant),
            ("maximum", SqlType::SqlVariant),
            ("value_in_use", SqlType::SqlVariant),
            ("description", SqlType::nvarchar(255)),
            ("is_dynamic", BIT),
            ("is_advanced", BIT),
        ],
        rows: configurations,
    },
    View {
        name: "filegroups",
        schema: "sys",
        columns: &[
            ("name", NAME),
            ("data_space_id", INT),
            ("type", super::CODE2),
            ("type_desc", DESC),
            ("is_default", BIT),
            ("is_system", BIT),
            ("filegroup_guid", SqlType::UniqueIdentifier),
            ("log_filegroup_id", INT),
            ("is_read_only", BIT),
            ("is_autogrow_all_files", BIT),
        ],
        rows: filegroups,
    },
    View {
        name: "syslanguages",
        schema: "sys",
        columns: &[
            ("langid", SMALL),
            ("dateformat", SqlType::nvarchar(3)),
            ("datefirst", TINY),
            ("upgrade", INT),
            ("name", NAME),
            ("alias", NAME),
            ("lcid", INT),
            ("msglangid", SMALL),
        ],
        rows: languages,
    },
];
