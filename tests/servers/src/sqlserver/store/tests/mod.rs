//! Tests of the store as a whole.

mod concurrency;
mod durability;
mod model;
mod objects;
mod process_death;

use std::sync::Arc;

use super::catalog::{
    Column, DBO_SCHEMA, DatabaseId, Index, IndexKey, KeyConstraint, Object, ObjectBody, ObjectId, TableDef,
};
use super::*;
use crate::sqlserver::value::{SqlType, Value};

/// The user database of the tests.
const DATABASE: DatabaseId = DatabaseId(5);

fn session(id: i32) -> Arc<Session> {
    Session::new(SessionId(id))
}

fn column(id: i32, name: &str, ty: SqlType) -> Column {
    Column {
        id,
        name: name.to_owned(),
        ty,
        declared_type: None,
        nullable: true,
        default: None,
        identity: None,
        computed: None,
        rowguidcol: false,
    }
}

fn index(id: i32, name: &str, unique: bool, columns: &[i32]) -> Index {
    Index {
        id,
        name: name.to_owned(),
        unique,
        ignore_dup_key: false,
        disabled: false,
        keys: columns.iter().map(|id| IndexKey { column_id: *id, descending: false }).collect(),
        included: Vec::new(),
        filter: None,
        columnstore: false,
        fill_factor: 0,
        data_compression: 0,
        constraint: None,
    }
}

fn primary_key(store: &Store, columns: &[i32]) -> Index {
    let constraint = KeyConstraint { object_id: store.allocate_object_id(), primary: true, system_named: false };
    Index { constraint: Some(constraint), ..index(1, "pk", true, columns) }
}

fn table(store: &Store, name: &str, columns: Vec<Column>, indexes: Vec<Index>) -> Object {
    let max_column_id = i32::try_from(columns.len()).unwrap();
    Object {
        database: DATABASE,
        id: store.allocate_object_id(),
        schema: DBO_SCHEMA,
        name: name.to_owned(),
        session: None,
        owner: None,
        create_date: 0,
        modify_date: 0,
        body: ObjectBody::Table(TableDef { columns, max_column_id, indexes, ..TableDef::default() }),
    }
}

/// Creates and commits a table `(id int, v int)` with a primary key on `id`.
fn keyed_table(store: &Arc<Store>, name: &str) -> ObjectId {
    let columns = vec![column(1, "id", SqlType::Int), column(2, "v", SqlType::Int)];
    let pk = Index { name: format!("pk_{name}"), ..primary_key(store, &[1]) };
    create(store, table(store, name, columns, vec![pk]))
}

/// Creates and commits a heap `(id int, v int)`.
fn heap_table(store: &Arc<Store>, name: &str) -> ObjectId {
    let columns = vec![column(1, "id", SqlType::Int), column(2, "v", SqlType::Int)];
    create(store, table(store, name, columns, vec![]))
}

fn create(store: &Arc<Store>, object: Object) -> ObjectId {
    let id = object.id;
    let transaction = store.begin(&session(50));
    transaction.put(object).unwrap();
    transaction.commit().unwrap();
    id
}

fn row(id: i32, v: i32) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(v)]
}

fn pair(values: &[Value]) -> (i32, i32) {
    match values {
        [Value::Int(id), Value::Int(v)] => (*id, *v),
        other => panic!("unexpected row {other:?}"),
    }
}

/// Rows in scan order.
fn rows(transaction: &Arc<Transaction>, table: ObjectId) -> Vec<(i32, i32)> {
    let scan = transaction.scan(table, ReadMode::Committed).unwrap();
    let rows = scan.map(|row| pair(&row.unwrap().values(2).unwrap())).collect();
    transaction.end_statement();
    rows
}

/// Rows that a new transaction sees.
fn committed_rows(store: &Arc<Store>, table: ObjectId) -> Vec<(i32, i32)> {
    let transaction = store.begin(&session(99));
    let rows = rows(&transaction, table);
    transaction.commit().unwrap();
    rows
}

/// The row of a primary key.
fn find(
    transaction: &Arc<Transaction>,
    table: ObjectId,
    id: i32,
    mode: ReadMode,
) -> Result<Option<RowRef>, StoreError> {
    transaction.seek(table, 1, &[Value::Int(id)], mode)?.unwrap().next().transpose()
}
