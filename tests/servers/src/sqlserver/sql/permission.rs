//! Permission checks.

use super::error::{self, Result};
use super::lookup;
use super::principal::{self, DB_OWNER, PUBLIC, SYSADMIN};
use super::state::Cx;
use crate::sqlserver::store::catalog::{
    DatabaseId, Object, ObjectBody, PermissionState, PrincipalId, SchemaId, Scope, TEMPDB,
};

const DB_DDLADMIN: PrincipalId = PrincipalId(16_387);
const DB_SECURITYADMIN: PrincipalId = PrincipalId(16_386);
const DB_ACCESSADMIN: PrincipalId = PrincipalId(16_385);
const DB_DATAREADER: PrincipalId = PrincipalId(16_390);
const DB_DATAWRITER: PrincipalId = PrincipalId(16_391);
const DB_DENYDATAREADER: PrincipalId = PrincipalId(16_392);
const DB_DENYDATAWRITER: PrincipalId = PrincipalId(16_393);

/// What a permission is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Database(DatabaseId),
    Schema(DatabaseId, SchemaId),
    Object(DatabaseId, SchemaId, i32),
}

impl Target {
    fn database(self) -> DatabaseId {
        match self {
            Self::Database(d) | Self::Schema(d, _) | Self::Object(d, ..) => d,
        }
    }
}

/// Roles of the acting user in a database; none has no access.
fn acting(cx: &mut Cx<'_>, database: DatabaseId) -> Option<Vec<PrincipalId>> {
    let (user, _) = principal::user_in(cx, database)?;
    let txn = cx.st.txn();
    let mut roles = principal::roles_of(&txn, Scope::Database(database), user);
    roles.push(PUBLIC);
    Some(roles)
}

/// Whether the session is a member of `sysadmin`.
pub(crate) fn is_sysadmin(cx: &mut Cx<'_>) -> bool {
    principal::in_server_role(cx, SYSADMIN)
}

/// Permissions that include the wanted one on the same securable.
fn covers(granted: &str, wanted: &str) -> bool {
    granted == wanted
        || granted == "CONTROL"
        || granted == "ALTER" && wanted.starts_with("CREATE ")
        || granted == "ALTER ANY SCHEMA" && (wanted == "ALTER" || wanted == "CREATE SCHEMA")
        || granted == "ALTER" && wanted == "ALTER ANY SCHEMA"
}

/// Whether the acting user has a permission.
pub(crate) fn has(cx: &mut Cx<'_>, target: Target, wanted: &str) -> bool {
    if is_sysadmin(cx) {
        return true;
    }
    let database = target.database();
    if database == TEMPDB {
        return true;
    }
    let Some(roles) = acting(cx, database) else { return false };
    if roles.contains(&DB_OWNER) {
        return true;
    }
    let txn = cx.st.txn();
    let (schema, object) = match target {
        Target::Database(_) => (None, None),
        Target::Schema(_, schema) => (Some(schema), None),
        Target::Object(_, schema, object) => (Some(schema), Some(object)),
    };
    let mut granted = false;
    for permission in txn.permissions(Scope::Database(database)) {
        let key = &permission.key;
        if !roles.contains(&key.grantee) || key.minor_id != 0 {
            continue;
        }
        let applies = match key.class {
            0 => true,
            3 => schema.is_some_and(|s| s.0 == key.major_id),
            1 => object.is_some_and(|o| o == key.major_id),
            _ => false,
        };
        if !applies || !covers(&key.permission, wanted) {
            continue;
        }
        if permission.state == PermissionState::Deny {
            return false;
        }
        granted = true;
    }
    if denied_by_role(&roles, wanted) {
        return false;
    }
    if granted || given_by_role(&roles, wanted, target) {
        return true;
    }
    let owned = schema.and_then(|s| lookup::schema(cx, database, s)).is_some_and(|s| roles.contains(&s.owner));
    let object_owned = object.is_some_and(|o| {
        txn.object(crate::sqlserver::store::catalog::ObjectId(o))
            .is_some_and(|o| o.owner.is_some_and(|p| roles.contains(&p)))
    });
    owned || object_owned
}

fn denied_by_role(roles: &[PrincipalId], wanted: &str) -> bool {
    roles.contains(&DB_DENYDATAREADER) && wanted == "SELECT"
        || roles.contains(&DB_DENYDATAWRITER) && matches!(wanted, "INSERT" | "UPDATE" | "DELETE")
}

fn given_by_role(roles: &[PrincipalId], wanted: &str, target: Target) -> bool {
    let in_role = |role: PrincipalId| roles.contains(&role);
    match wanted {
        "SELECT" => in_role(DB_DATAREADER),
        "INSERT" | "UPDATE" | "DELETE" => in_role(DB_DATAWRITER),
        "CONNECT" => true,
        "REFERENCES" | "ALTER" | "VIEW DEFINITION" => in_role(DB_DDLADMIN) && !matches!(target, Target::Database(_)),
        "ALTER ANY USER" => in_role(DB_ACCESSADMIN),
        "ALTER ANY ROLE" => in_role(DB_SECURITYADMIN),
        "ALTER ANY SCHEMA" | "CREATE SCHEMA" => {
            in_role(DB_DDLADMIN) || in_role(DB_ACCESSADMIN) && wanted == "CREATE SCHEMA"
        }
        _ => wanted.starts_with("CREATE ") && in_role(DB_DDLADMIN),
    }
}

fn target_of(object: &Object) -> Target {
    Target::Object(object.database, object.schema, object.id.0)
}

/// Whether the acting user has a permission on an object.
pub(crate) fn has_object(cx: &mut Cx<'_>, object: &Object, wanted: &str) -> bool {
    object.session.is_some() || has(cx, target_of(object), wanted)
}

/// Whether the acting user sees an object in catalog views.
pub(crate) fn sees(cx: &mut Cx<'_>, object: &Object) -> bool {
    if object.session.is_some_and(|s| s != i32::from(cx.st.id)) {
        return is_sysadmin(cx);
    }
    ["SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "REFERENCES", "ALTER", "VIEW DEFINITION", "CONTROL"]
        .iter()
        .any(|p| has_object(cx, object, p))
}

/// 229 without the permission.
pub(crate) fn check_object(cx: &mut Cx<'_>, object: &Object, action: &str) -> Result<()> {
    if has_object(cx, object, action) {
        return Ok(());
    }
    let database = lookup::database_name(cx, object.database);
    let schema = lookup::schema_name(cx, object);
    Err(error::permission_on_object(action, &object.name, &database, &schema))
}

/// Refuses a change of an object's definition.
pub(crate) fn check_alter(cx: &mut Cx<'_>, object: &Object) -> Result<()> {
    let target = match &object.body {
        ObjectBody::Trigger(trigger) => {
            let txn = cx.st.txn();
            txn.object(trigger.parent).map_or_else(|| target_of(object), |p| target_of(&p))
        }
        _ => target_of(object),
    };
    if object.session.is_some() || has(cx, target, "ALTER") {
        return Ok(());
    }
    Err(error::plain(
        1088,
        &format!(
            "Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
            object.name
        ),
    ))
}

/// 262 without a database permission.
pub(crate) fn check_database(cx: &mut Cx<'_>, database: DatabaseId, action: &str) -> Result<()> {
    if has(cx, Target::Database(database), action) {
        return Ok(());
    }
    let name = lookup::database_name(cx, database);
    Err(error::new(262, 14, 1, &format!("{action} permission denied in database '{name}'.")))
}

/// CREATE of an object needs the database permission and ALTER on the schema.
pub(crate) fn check_create(cx: &mut Cx<'_>, database: DatabaseId, schema: SchemaId, action: &str) -> Result<()> {
    if action != "CREATE SCHEMA" {
        check_database(cx, database, action)?;
    }
    if has(cx, Target::Schema(database, schema), "ALTER") {
        return Ok(());
    }
    let name = lookup::schema(cx, database, schema).map_or_else(String::new, |s| s.name.clone());
    Err(error::plain(
        2760,
        &format!("The specified schema name \"{name}\" either does not exist or you do not have permission to use it."),
    ))
}

/// Whether the login has a server permission.
pub(crate) fn has_server(cx: &mut Cx<'_>, wanted: &str) -> bool {
    if is_sysadmin(cx) {
        return true;
    }
    if cx.st.identity.user.is_some() {
        return false;
    }
    if wanted == "CONNECT SQL" || wanted == "VIEW ANY DATABASE" {
        return true;
    }
    let login = cx.st.identity.login_id;
    let txn = cx.st.txn();
    let mut roles = principal::roles_of(&txn, Scope::Server, login);
    roles.push(PrincipalId(2));
    let role = |id: i32| roles.contains(&PrincipalId(id));
    let by_role = match wanted {
        "ALTER ANY LOGIN" => role(4),
        "VIEW SERVER STATE" | "ALTER SETTINGS" => role(5),
        "ALTER ANY CONNECTION" => role(7),
        "CREATE ANY DATABASE" | "ALTER ANY DATABASE" => role(9),
        "ADMINISTER BULK OPERATIONS" => role(10),
        _ => false,
    };
    let mut granted = by_role;
    for permission in txn.permissions(Scope::Server) {
        let key = &permission.key;
        let fits = key.permission == wanted
            || key.permission == "CONTROL SERVER"
            || key.permission == "ALTER SERVER STATE" && wanted == "VIEW SERVER STATE";
        if roles.contains(&key.grantee) && key.class == 100 && fits {
            if permission.state == PermissionState::Deny {
                return false;
            }
            granted = true;
        }
    }
    granted
}

/// 300 for VIEW SERVER STATE and its like.
pub(crate) fn check_server(cx: &mut Cx<'_>, wanted: &str) -> Result<()> {
    if has_server(cx, wanted) {
        return Ok(());
    }
    if wanted.starts_with("VIEW") {
        return Err(error::new(
            300,
            14,
            1,
            &format!("{wanted} permission was denied on object 'server', database 'master'."),
        ));
    }
    if wanted == "ALTER ANY CONNECTION" {
        return Err(error::new(6102, 14, 1, "User does not have permission to use the KILL statement."));
    }
    Err(error::new(15247, 16, 1, "User does not have permission to perform this action."))
}
