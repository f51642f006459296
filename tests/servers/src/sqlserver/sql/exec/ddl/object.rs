//! Schemas, sequences, alias types, synonyms, databases.

use super::super::super::ast::{Name, TypeName};
use super::super::super::error::{self, Result};
use super::super::super::state::{Cx, now_micros};
use super::super::super::stmt::SequenceOptions;
use super::super::super::{permission, principal, storage, types};
use super::super::dml::identity_range;
use super::{check_free, find_locked, new_object, place, put};
use crate::sqlserver::store::catalog::{
    CatalogKey, DatabaseId, FIRST_USER_SCHEMA, ObjectBody, Schema, SchemaId, Scope, SequenceDef, Setting,
};
use crate::sqlserver::value::SqlType;

pub(super) fn create_schema(cx: &mut Cx<'_>, name: &str, owner: Option<&str>) -> Result<()> {
    let database = cx.st.database;
    permission::check_database(cx, database, "CREATE SCHEMA")?;
    let txn = cx.st.txn();
    if txn.find_schema(database, name).is_some()
        || name.eq_ignore_ascii_case("sys")
        || name.eq_ignore_ascii_case("information_schema")
    {
        return Err(error::new(2714, 16, 6, &format!("There is already an object named '{name}' in the database.")));
    }
    let owner = match owner {
        Some(owner) => principal::find_user(cx, database, owner).map(|p| p.id).ok_or_else(|| {
            error::plain(
                15151,
                &format!("Cannot find the user '{owner}', because it does not exist or you do not have permission."),
            )
        })?,
        None => principal::user_in(cx, database).map_or(principal::DBO, |u| u.0),
    };
    let id = txn.schemas(database).iter().map(|s| s.id.0 + 1).max().unwrap_or(0).max(FIRST_USER_SCHEMA);
    let id = if id >= 16_384 {
        txn.schemas(database)
            .iter()
            .map(|s| s.id.0)
            .filter(|i| *i < 16_384)
            .max()
            .unwrap_or(0)
            .max(FIRST_USER_SCHEMA - 1)
            + 1
    } else {
        id
    };
    let schema = Schema { database, id: SchemaId(id), name: name.to_owned(), owner };
    txn.put(schema).map_err(|e| storage::error(cx, e))
}

/// ALTER SCHEMA ... TRANSFER.
pub(super) fn transfer(cx: &mut Cx<'_>, schema: &str, name: &Name) -> Result<()> {
    let database = cx.st.database;
    let txn = cx.st.txn();
    let Some(target) = txn.find_schema(database, schema) else {
        return Err(error::plain(
            15151,
            &format!("Cannot find the schema '{schema}', because it does not exist or you do not have permission."),
        ));
    };
    let Some(object) = find_locked(cx, name)? else {
        return Err(error::plain(
            15151,
            &format!(
                "Cannot find the object '{}', because it does not exist or you do not have permission.",
                name.base()
            ),
        ));
    };
    permission::check_alter(cx, &object)?;
    let mut object = (*object).clone();
    object.schema = target.id;
    object.modify_date = now_micros();
    put(cx, object)
}

pub(super) fn create_sequence(
    cx: &mut Cx<'_>,
    name: &Name,
    ty: Option<&TypeName>,
    options: &SequenceOptions,
) -> Result<()> {
    let place = place(cx, name)?;
    permission::check_create(cx, place.database, place.schema, "CREATE SEQUENCE")?;
    check_free(cx, &place, name.base())?;
    let ty = match ty {
        Some(ty) => types::resolve(cx, place.database, ty, 1)?.0,
        None => SqlType::BigInt,
    };
    if !(ty.is_integer() && ty != SqlType::Bit || matches!(ty, SqlType::Decimal { scale: 0, .. })) {
        return Err(error::plain(
            11702,
            &format!(
                "The sequence object '{}' must be of data type int, bigint, smallint, tinyint, or decimal or numeric with a scale of 0, or any user-defined data type that is based on one of the above integer data types.",
                name.display()
            ),
        ));
    }
    let (low, high) = identity_range(&ty);
    let increment = i128::from(options.increment.unwrap_or(1));
    if increment == 0 {
        return Err(error::plain(
            11700,
            &format!("The increment for sequence object '{}' cannot be zero.", name.display()),
        ));
    }
    let minimum = options.min.map_or(low, i128::from);
    let maximum = options.max.map_or(high, i128::from);
    let start = options.start.map_or(if increment > 0 { minimum } else { maximum }, i128::from);
    if minimum >= maximum {
        return Err(error::plain(
            11705,
            &format!("The minimum value for sequence object '{}' must be less than its maximum value.", name.display()),
        ));
    }
    if start < minimum || start > maximum {
        return Err(error::plain(
            11703,
            &format!(
                "The start value for sequence object '{}' must be between the minimum and maximum value of the sequence object.",
                name.display()
            ),
        ));
    }
    let body =
        ObjectBody::Sequence(SequenceDef { ty, start, increment, minimum, maximum, cycle: options.cycle, cache: None });
    let object = new_object(cx, &place, name.base(), body);
    put(cx, object)
}

pub(super) fn create_type(cx: &mut Cx<'_>, name: &Name, base: &TypeName) -> Result<()> {
    let database = cx.st.database;
    permission::check_database(cx, database, "CREATE TYPE")?;
    types::resolve(cx, database, base, 1)?;
    let key = types::alias_key(name.schema().unwrap_or("dbo"), name.base());
    let txn = cx.st.txn();
    let scope = Scope::Database(database);
    if txn.setting(scope, &key).is_some() {
        return Err(error::plain(
            219,
            &format!("The type '{}' already exists, or you do not have permission to create it.", name.display()),
        ));
    }
    let setting = Setting { scope, name: key, value: super::table::written(base) };
    txn.put(setting).map_err(|e| storage::error(cx, e))
}

pub(super) fn create_synonym(cx: &mut Cx<'_>, name: &Name, target: &Name) -> Result<()> {
    let place = place(cx, name)?;
    permission::check_create(cx, place.database, place.schema, "CREATE SYNONYM")?;
    check_free(cx, &place, name.base())?;
    let text: Vec<String> = target.parts.iter().map(|p| format!("[{}]", p.replace(']', "]]"))).collect();
    let object = new_object(cx, &place, name.base(), ObjectBody::Synonym(text.join(".")));
    put(cx, object)
}

pub(super) fn create_database(cx: &mut Cx<'_>, name: &str) -> Result<()> {
    if cx.st.trancount > 0 {
        return Err(error::new(
            226,
            16,
            6,
            "CREATE DATABASE statement not allowed within multi-statement transaction.",
        ));
    }
    permission::check_server(cx, "CREATE ANY DATABASE")
        .map_err(|_| error::new(262, 14, 1, "CREATE DATABASE permission denied in database 'master'."))?;
    let txn = cx.st.txn();
    if txn.find_database(name).is_some() {
        return Err(error::new(
            1801,
            16,
            3,
            &format!("Database '{name}' already exists. Choose a different database name."),
        ));
    }
    let id = txn.databases().iter().map(|d| d.id.0).max().unwrap_or(4).max(4) + 1;
    principal::new_database(&txn, DatabaseId(id), name).map_err(|e| storage::error(cx, e))
}

pub(super) fn drop_databases(cx: &mut Cx<'_>, if_exists: bool, names: &[String]) -> Result<()> {
    if cx.st.trancount > 0 {
        return Err(error::new(226, 16, 6, "DROP DATABASE statement not allowed within multi-statement transaction."));
    }
    for name in names {
        let txn = cx.st.txn();
        let Some(database) = txn.find_database(name) else {
            if if_exists {
                continue;
            }
            return Err(error::new(
                3701,
                11,
                1,
                &format!("Cannot drop the database '{name}', because it does not exist or you do not have permission."),
            ));
        };
        permission::check_server(cx, "ALTER ANY DATABASE")?;
        if database.id.0 <= 4 {
            return Err(error::plain(
                3708,
                &format!("Cannot drop the database '{name}' because it is a system database."),
            ));
        }
        if cx.st.engine.sessions().iter().any(|s| s.database == database.id) {
            return Err(error::new(
                3702,
                16,
                4,
                &format!("Cannot drop database \"{name}\" because it is currently in use."),
            ));
        }
        for object in txn.objects(database.id) {
            txn.remove(&CatalogKey::Object(object.id)).map_err(|e| storage::error(cx, e))?;
        }
        txn.remove(&CatalogKey::Database(database.id)).map_err(|e| storage::error(cx, e))?;
    }
    Ok(())
}

/// Options that change nothing that this server does are kept; others are refused.
pub(super) fn alter_database(cx: &mut Cx<'_>, name: &str, text: &str) -> Result<()> {
    let database = cx.st.database;
    permission::check_database(cx, database, "ALTER")?;
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let harmless = matches!(
        words.as_slice(),
        ["set", "recovery", "simple" | "full" | "bulk_logged", ..]
            | ["set", "auto_close" | "auto_shrink" | "auto_create_statistics" | "auto_update_statistics", ..]
            | ["set", "multi_user", ..]
    );
    if !harmless {
        return Err(error::unsupported("ALTER DATABASE option"));
    }
    let scope = if name.is_empty() {
        database
    } else {
        let txn = cx.st.txn();
        txn.find_database(name).map(|d| d.id).ok_or_else(|| {
            error::plain(5011, &format!("User does not have permission to alter database '{name}', the database does not exist, or the database is not in a state that allows access checks."))
        })?
    };
    if words.get(1) == Some(&"recovery") {
        let txn = cx.st.txn();
        let value = words[2].trim_end_matches(';').to_uppercase();
        let setting = Setting { scope: Scope::Database(scope), name: "recovery_model".into(), value };
        txn.put(setting).map_err(|e| storage::error(cx, e))?;
    }
    Ok(())
}
