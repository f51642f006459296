//! Catalog records, definitions and temporary tables.

use super::super::catalog::{CatalogKey, ExtendedProperty, PropertyKey, Schema, SchemaId, TEMPDB};
use super::super::lock::LockMode;
use super::*;

fn two_columns() -> Vec<Column> {
    vec![column(1, "id", SqlType::Int), column(2, "v", SqlType::Int)]
}

#[test]
fn definitions_roll_back_with_their_rows() {
    let store = Store::in_memory();
    let kept = keyed_table(&store, "kept");
    let transaction = store.begin(&session(51));
    transaction.insert(kept, &row(1, 1)).unwrap();
    let new = table(&store, "new", two_columns(), vec![]);
    transaction.put(new.clone()).unwrap();
    transaction.insert(new.id, &row(1, 1)).unwrap();
    transaction.remove(&CatalogKey::Object(kept)).unwrap();
    assert!(transaction.object(kept).is_none());
    // The name is free for the transaction that dropped it.
    let again = table(&store, "KEPT", two_columns(), vec![]);
    transaction.put(again.clone()).unwrap();
    assert_eq!(transaction.find_object(DATABASE, DBO_SCHEMA, "kept").unwrap().id, again.id);
    transaction.rollback();
    let after = store.begin(&session(51));
    assert!(after.object(new.id).is_none());
    assert_eq!(after.find_object(DATABASE, DBO_SCHEMA, "Kept").unwrap().id, kept);
    assert_eq!(rows(&after, kept), []);
    assert!(matches!(after.insert(new.id, &row(1, 1)), Err(StoreError::NotFound)));
}

#[test]
fn names_are_unique_in_their_schema_constraints_included() {
    let store = Store::in_memory();
    keyed_table(&store, "t");
    let transaction = store.begin(&session(51));
    for name in ["T", "t ", "pk_t"] {
        let outcome = transaction.put(table(&store, name, two_columns(), vec![]));
        assert!(matches!(outcome, Err(StoreError::NameExists)), "{name}");
    }
    let mut elsewhere = table(&store, "t", two_columns(), vec![]);
    elsewhere.schema = SchemaId(5);
    transaction
        .put(Schema {
            database: DATABASE,
            id: SchemaId(5),
            name: "s".into(),
            owner: super::super::catalog::PrincipalId(1),
        })
        .unwrap();
    transaction.put(elsewhere.clone()).unwrap();
    // A rename frees the old name at once for this transaction.
    elsewhere.name = "u".into();
    transaction.put(elsewhere).unwrap();
    assert!(transaction.find_object(DATABASE, SchemaId(5), "t").is_none());
    assert!(transaction.find_object(DATABASE, SchemaId(5), "U").is_some());
}

#[test]
fn an_index_is_built_over_existing_rows_and_refuses_duplicates() {
    let store = Store::in_memory();
    let heap = heap_table(&store, "h");
    let transaction = store.begin(&session(51));
    for (id, v) in [(1, 1), (2, 2), (3, 2)] {
        transaction.insert(heap, &row(id, v)).unwrap();
    }
    let with = |indexes: Vec<Index>| {
        let mut object = (*transaction.object(heap).unwrap()).clone();
        let ObjectBody::Table(definition) = &mut object.body else { panic!("not a table") };
        definition.indexes = indexes;
        transaction.put(object)
    };
    let outcome = with(vec![index(2, "u_v", true, &[2])]);
    assert_eq!(outcome.as_ref().unwrap_err().number(), Some(1505));
    assert!(matches!(outcome, Err(StoreError::DuplicateKey { key, .. }) if key == [Value::Int(2)]));
    with(vec![index(2, "i_v", false, &[2])]).unwrap();
    let found = transaction.seek(heap, 2, &[Value::Int(2)], ReadMode::Committed).unwrap().unwrap();
    assert_eq!(found.count(), 2);
    with(vec![index(2, "i_v", false, &[2]), index(3, "u_id", true, &[1])]).unwrap();
    assert_eq!(transaction.insert(heap, &row(1, 5)).unwrap_err().number(), Some(2601));
    let mark = transaction.mark();
    with(vec![]).unwrap();
    transaction.insert(heap, &row(1, 5)).unwrap();
    transaction.rollback_to_mark(mark);
    assert_eq!(transaction.insert(heap, &row(1, 5)).unwrap_err().number(), Some(2601), "the index is back");
}

#[test]
fn nulls_are_equal_in_a_unique_index() {
    let store = Store::in_memory();
    let object = table(&store, "t", two_columns(), vec![index(2, "u", true, &[1, 2])]);
    let id = create(&store, object);
    let transaction = store.begin(&session(51));
    transaction.insert(id, &[Value::Null, Value::Int(1)]).unwrap();
    transaction.insert(id, &[Value::Null, Value::Int(2)]).unwrap();
    assert_eq!(transaction.insert(id, &[Value::Null, Value::Int(1)]).unwrap_err().number(), Some(2601));
}

#[test]
fn a_descending_clustered_index_orders_the_scan() {
    let store = Store::in_memory();
    let mut pk = primary_key(&store, &[1]);
    pk.keys[0].descending = true;
    let id = create(&store, table(&store, "t", two_columns(), vec![pk]));
    let transaction = store.begin(&session(51));
    for n in [2, 1, 3] {
        transaction.insert(id, &row(n, n)).unwrap();
    }
    assert_eq!(rows(&transaction, id), [(3, 3), (2, 2), (1, 1)]);
}

#[test]
fn added_columns_read_as_null() {
    let store = Store::in_memory();
    let id = heap_table(&store, "h");
    let transaction = store.begin(&session(51));
    let row_id = transaction.insert(id, &row(1, 1)).unwrap();
    let mut object = (*transaction.object(id).unwrap()).clone();
    let ObjectBody::Table(definition) = &mut object.body else { panic!("not a table") };
    definition.columns.push(column(3, "w", SqlType::Int));
    transaction.put(object).unwrap();
    let found = transaction.fetch(id, row_id, ReadMode::Committed).unwrap().unwrap();
    assert_eq!(found.values(3).unwrap(), [Value::Int(1), Value::Int(1), Value::Null]);
    assert_eq!(found.value(2).unwrap(), Value::Null);
}

#[test]
fn temporary_tables_belong_to_their_session_and_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    let sessions = [session(51), session(52)];
    let make = |owner: &Arc<Session>| {
        let transaction = store.begin(owner);
        let mut object = table(&store, "#t", two_columns(), vec![primary_key(&store, &[1])]);
        (object.database, object.session) = (TEMPDB, Some(owner.id().0));
        transaction.put(object.clone()).unwrap();
        transaction.insert(object.id, &row(owner.id().0, 0)).unwrap();
        transaction.commit().unwrap();
        object.id
    };
    let before = store.log_bytes();
    let tables = [make(&sessions[0]), make(&sessions[1])];
    assert_eq!(store.log_bytes(), before, "nothing of tempdb is logged");
    for (owner, id) in sessions.iter().zip(tables) {
        let transaction = store.begin(owner);
        let mode = LockMode::SchemaStability;
        let found = transaction.resolve(TEMPDB, DBO_SCHEMA, "#T", mode, Hold::Statement).unwrap().unwrap();
        assert_eq!(found.id, id);
        assert_eq!(rows(&transaction, id), [(owner.id().0, 0)]);
        let again = Object { id: store.allocate_object_id(), ..(*found).clone() };
        assert!(matches!(transaction.put(again), Err(StoreError::NameExists)));
    }
    store.close_session(&sessions[0]).unwrap();
    let transaction = store.begin(&sessions[1]);
    assert!(transaction.object(tables[0]).is_none());
    assert!(transaction.object(tables[1]).is_some());
}

#[test]
fn records_come_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    let id = keyed_table(&store, "t");
    let transaction = store.begin(&session(51));
    let property = ExtendedProperty {
        key: PropertyKey { database: DATABASE, class: 1, major_id: id.0, minor_id: 0, folded_name: "owner".into() },
        name: "Owner".into(),
        value: Value::text("0123abc"),
    };
    transaction.put(property.clone()).unwrap();
    let object = transaction.object(id).unwrap();
    transaction.commit().unwrap();
    drop((transaction, store));
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    let transaction = store.begin(&session(51));
    assert_eq!(*transaction.extended_properties(DATABASE)[0], property);
    assert_eq!(transaction.object(id).unwrap(), object);
    let constraint = object.table().unwrap().indexes[0].constraint.as_ref().unwrap().object_id;
    assert_eq!(transaction.constraint_table(constraint).unwrap().id, id);
    assert_eq!(transaction.allocation(id).unwrap(), Allocation::default());
}

#[test]
fn text_keys_follow_the_collation_of_their_column() {
    let store = Store::in_memory();
    let columns = vec![column(1, "id", SqlType::nvarchar(20)), column(2, "v", SqlType::Int)];
    let mut both = index(1, "c", true, &[1, 2]);
    both.keys[1].descending = true;
    let id = create(&store, table(&store, "t", columns, vec![both]));
    let transaction = store.begin(&session(51));
    let row = |text: &str, v| [Value::text(text), Value::Int(v)];
    for (text, v) in [("b", 1), ("a", 1), ("B", 3), ("a", 2)] {
        transaction.insert(id, &row(text, v)).unwrap();
    }
    for text in ["A", "a  ", "A "] {
        let outcome = transaction.insert(id, &row(text, 1));
        assert_eq!(outcome.unwrap_err().number(), Some(2601), "{text:?} equals a");
    }
    let found = transaction.seek(id, 1, &[Value::text("A")], ReadMode::Committed).unwrap().unwrap();
    let found: Vec<_> = found.map(|it| it.unwrap().value(1).unwrap()).collect();
    assert_eq!(found, [Value::Int(2), Value::Int(1)], "the second key column descends");
    let all = transaction.scan(id, ReadMode::Committed).unwrap();
    let all: Vec<_> = all.map(|it| it.unwrap().values(2).unwrap()).collect();
    assert_eq!(all, [row("a", 2), row("a", 1), row("B", 3), row("b", 1)]);
}
