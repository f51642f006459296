//! Bridges to the store: errors, lock modes, row ids.

use super::api::SqlError;
use super::ast::Hints;
use super::error::{self, Result};
use super::state::{Cx, Isolation};
use crate::sqlserver::store::catalog::{Object, ObjectId, TEMPDB};
use crate::sqlserver::store::lock::{LockFailure, LockMode};
use crate::sqlserver::store::{Hold, ReadMode, RowId, StoreError};
use crate::sqlserver::value::{self, CastOptions, SqlType, Value};

/// A row id as a hidden value of a row.
pub(crate) fn row_id_value(id: RowId) -> Value {
    Value::BigInt(i64::from_ne_bytes(id.0.to_ne_bytes()))
}

/// The row id of a hidden value.
pub(crate) fn row_id_of(value: &Value) -> Option<RowId> {
    match value {
        Value::BigInt(id) => Some(RowId(u64::from_ne_bytes(id.to_ne_bytes()))),
        _ => None,
    }
}

/// A value as messages show it.
pub(crate) fn display(value: &Value, ty: &SqlType) -> String {
    if value.is_null() {
        return "<NULL>".into();
    }
    match value::cast(value, ty, &SqlType::nvarchar(4000), &CastOptions::EXPLICIT) {
        Ok(Value::String(text)) if !ty.is_binary() => text.to_string(),
        _ => match value {
            Value::Binary(bytes) => {
                let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                format!("0x{digits}")
            }
            other => format!("{other:?}"),
        },
    }
}

/// The message of a store error.
pub(crate) fn error(cx: &Cx<'_>, failure: StoreError) -> SqlError {
    match failure {
        StoreError::Lock(LockFailure::Timeout) => error::new(1222, 16, 51, "Lock request time out period exceeded."),
        StoreError::Lock(LockFailure::Deadlock) => error::new(
            1205,
            13,
            51,
            &format!(
                "Transaction (Process ID {}) was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction.",
                cx.st.id
            ),
        ),
        StoreError::Lock(LockFailure::Cancelled) => error::cancelled(),
        StoreError::DuplicateKey { table, index_id, constraint, building, key } => {
            duplicate(cx, table, index_id, constraint, building, &key)
        }
        StoreError::CounterOverflow => {
            error::new(8115, 16, 1, "Arithmetic overflow error converting IDENTITY to data type int.")
        }
        StoreError::RowTooLarge { limit } => error::plain(
            511,
            &format!(
                "Cannot create a row of size greater than {limit} which is greater than the allowable maximum row size of {limit}."
            ),
        ),
        StoreError::LogFailed { .. } => error::new(
            9001,
            21,
            1,
            "The log for database is not available. Check the operating system error log for related error messages. Resolve any errors and restart the database.",
        ),
        StoreError::NoSavepoint => {
            error::plain(6401, "Cannot roll back. No transaction or savepoint of that name was found.")
        }
        StoreError::NameExists => error::new(2714, 16, 6, "There is already an object of that name in the database."),
        other => error::new(3624, 20, 1, &format!("A system assertion check has failed. {other}")),
    }
}

fn duplicate(cx: &Cx<'_>, table: ObjectId, index_id: i32, constraint: bool, building: bool, key: &[Value]) -> SqlError {
    let txn = cx.st.txn.as_ref().or(cx.st.variable_txn.as_ref());
    let object =
        txn.and_then(|t| t.object(table)).or_else(|| cx.st.variable_txn.as_ref().and_then(|t| t.object(table)));
    let Some(object) = object else { return error::new(2627, 14, 1, "Violation of a unique key constraint.") };
    let Some(def) = object.table() else { return error::new(2627, 14, 1, "Violation of a unique key constraint.") };
    let Some(index) = def.indexes.iter().find(|i| i.id == index_id) else {
        return error::new(2627, 14, 1, "Violation of a unique key constraint.");
    };
    let shown: Vec<String> = index
        .keys
        .iter()
        .zip(key)
        .map(|(k, value)| {
            let ty = def.position_of_id(k.column_id).map_or(SqlType::Null, |at| def.columns[at].ty);
            display(value, &ty)
        })
        .collect();
    let shown = shown.join(", ");
    let schema = txn
        .and_then(|t| t.schemas(object.database).into_iter().find(|s| s.id == object.schema))
        .map_or_else(|| "dbo".to_owned(), |s| s.name.clone());
    let owner = format!("{schema}.{}", object.name);
    if building {
        let message = format!(
            "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '{owner}' and the index name '{}'. The duplicate key value is ({shown}).",
            index.name
        );
        return error::plain(1505, &message);
    }
    if constraint {
        let primary = index.constraint.as_ref().is_some_and(|c| c.primary);
        let kind = if primary { "PRIMARY KEY" } else { "UNIQUE KEY" };
        let message = format!(
            "Violation of {kind} constraint '{}'. Cannot insert duplicate key in object '{owner}'. The duplicate key value is ({shown}).",
            index.name
        );
        return error::new(2627, 14, 1, &message);
    }
    let message = format!(
        "Cannot insert duplicate key row in object '{owner}' with unique index '{}'. The duplicate key value is ({shown}).",
        index.name
    );
    error::new(2601, 14, 1, &message)
}

/// Takes the table lock that hints and isolation ask for; how rows are read then.
pub(crate) fn read_lock(cx: &mut Cx<'_>, object: &Object, hints: Hints) -> Result<ReadMode> {
    let own_temp = object.database == TEMPDB && object.session.is_some();
    if own_temp || cx.st.settings.fmtonly {
        return Ok(ReadMode::Committed);
    }
    let isolation = cx.st.settings.isolation;
    if isolation == Isolation::Snapshot {
        let message = format!(
            "Snapshot isolation transaction failed accessing database '{}' because snapshot isolation is not allowed in this database. Use ALTER DATABASE to allow snapshot isolation.",
            cx.st.database_name
        );
        return Err(error::plain(3952, &message));
    }
    let txn = cx.st.txn();
    let hold_all = hints.holdlock || (isolation == Isolation::Serializable && !hints.readcommitted && !hints.nolock);
    let keep = if hold_all || hints.updlock || hints.xlock || hints.tablockx || isolation == Isolation::RepeatableRead {
        Hold::Transaction
    } else {
        Hold::Statement
    };
    let lock = |mode: LockMode, hold: Hold| txn.lock_table(object.id, mode, hold);
    let result = if hints.tablockx || (hints.xlock && hints.tablock) {
        lock(LockMode::Exclusive, Hold::Transaction).map(|()| ReadMode::Committed)
    } else if hints.nolock && !hints.updlock && !hints.xlock {
        Ok(ReadMode::Dirty)
    } else if hints.xlock {
        lock(LockMode::IntentExclusive, Hold::Transaction).map(|()| ReadMode::Exclusive)
    } else if hints.updlock {
        if hold_all || hints.tablock {
            lock(LockMode::Update, Hold::Transaction).map(|()| ReadMode::Committed)
        } else {
            let mode = if hints.readpast { ReadMode::UpdateSkipLocked } else { ReadMode::Update };
            lock(LockMode::IntentExclusive, Hold::Transaction).map(|()| mode)
        }
    } else if hints.tablock {
        lock(LockMode::Shared, keep).map(|()| ReadMode::Committed)
    } else if hints.readpast {
        lock(LockMode::IntentShared, Hold::Statement).map(|()| ReadMode::SkipLocked)
    } else if hold_all {
        lock(LockMode::Shared, Hold::Transaction).map(|()| ReadMode::Committed)
    } else if isolation == Isolation::RepeatableRead || hints.repeatable {
        lock(LockMode::IntentShared, Hold::Transaction).map(|()| ReadMode::Shared)
    } else if isolation == Isolation::ReadUncommitted && !hints.readcommitted {
        Ok(ReadMode::Dirty)
    } else {
        lock(LockMode::IntentShared, Hold::Statement).map(|()| ReadMode::Committed)
    };
    result.map_err(|e| self::error(cx, e))
}

/// Takes the table lock of a data change.
pub(crate) fn write_lock(cx: &mut Cx<'_>, object: &Object, hints: Hints) -> Result<ReadMode> {
    if object.session.is_some() {
        return Ok(ReadMode::Committed);
    }
    let txn = cx.st.txn();
    let whole =
        hints.tablockx || hints.tablock || hints.holdlock || cx.st.settings.isolation == Isolation::Serializable;
    let mode = if whole { LockMode::Exclusive } else { LockMode::IntentExclusive };
    txn.lock_table(object.id, mode, Hold::Transaction).map_err(|e| self::error(cx, e))?;
    Ok(if whole {
        ReadMode::Committed
    } else if hints.readpast {
        ReadMode::UpdateSkipLocked
    } else {
        ReadMode::Update
    })
}
