//! Random operations against a plain model: transactions, savepoints, statement rollback, restart, compaction.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Insert(i32, i32),
    /// Gives the row of a key another key and value.
    Update(i32, i32, i32),
    /// Moves all keys by one, as one statement.
    ShiftKeys,
    Delete(i32),
    BulkHeap(u16),
    InsertHeap(i32),
    DeleteHeap(i32),
    UpdateHeap(i32, i32),
    Truncate,
    TruncateHeap,
    Rewrite,
    Savepoint(u8),
    RollbackTo(u8),
    /// Inserts some rows and takes them back as a failed statement.
    FailedStatement(u8),
    Commit,
    Rollback,
    Checkpoint,
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..12i32;
    prop_oneof![
        6 => (key.clone(), any::<i32>()).prop_map(|(k, v)| Op::Insert(k, v)),
        4 => (key.clone(), key.clone(), any::<i32>()).prop_map(|(a, b, v)| Op::Update(a, b, v)),
        1 => Just(Op::ShiftKeys),
        4 => key.clone().prop_map(Op::Delete),
        1 => (0..400u16).prop_map(Op::BulkHeap),
        3 => key.clone().prop_map(Op::InsertHeap),
        2 => key.clone().prop_map(Op::DeleteHeap),
        2 => (key.clone(), any::<i32>()).prop_map(|(k, v)| Op::UpdateHeap(k, v)),
        1 => Just(Op::Truncate),
        1 => Just(Op::TruncateHeap),
        1 => Just(Op::Rewrite),
        2 => (0..3u8).prop_map(Op::Savepoint),
        2 => (0..3u8).prop_map(Op::RollbackTo),
        1 => (1..5u8).prop_map(Op::FailedStatement),
        3 => Just(Op::Commit),
        2 => Just(Op::Rollback),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Restart),
    ]
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    keyed: BTreeMap<i32, i32>,
    heap: Vec<(i32, i32)>,
}

struct World {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    session: Arc<Session>,
    transaction: Option<Arc<Transaction>>,
    keyed: ObjectId,
    heap: ObjectId,
    now: Model,
    committed: Model,
    savepoints: Vec<(u8, Model)>,
}

fn options() -> StoreOptions {
    StoreOptions { durability: Durability::NoSync, compact_above_bytes: 20_000 }
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), options()).unwrap();
        let (keyed, heap) = (keyed_table(&store, "keyed"), heap_table(&store, "heap"));
        Self {
            folder,
            store,
            session: session(51),
            transaction: None,
            keyed,
            heap,
            now: Model::default(),
            committed: Model::default(),
            savepoints: Vec::new(),
        }
    }

    fn transaction(&mut self) -> Arc<Transaction> {
        let (store, session) = (&self.store, &self.session);
        Arc::clone(self.transaction.get_or_insert_with(|| store.begin(session)))
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Commit => {
                if let Some(transaction) = self.transaction.take() {
                    transaction.commit().unwrap();
                }
                self.committed = self.now.clone();
                self.savepoints.clear();
            }
            Op::Rollback => self.roll_back(),
            Op::Checkpoint => {
                self.store.checkpoint().unwrap();
            }
            Op::Restart => {
                self.roll_back();
                self.store = Store::in_memory();
                self.store = Store::open(self.folder.path(), options()).unwrap();
            }
            other => self.change(other),
        }
    }

    fn roll_back(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            transaction.rollback();
        }
        self.now = self.committed.clone();
        self.savepoints.clear();
    }

    fn change(&mut self, op: &Op) {
        let transaction = self.transaction();
        match op {
            Op::Insert(k, v) => match transaction.insert(self.keyed, &row(*k, *v)) {
                Ok(_) => assert!(self.now.keyed.insert(*k, *v).is_none()),
                Err(error) => self.expect_duplicate(&error, *k),
            },
            Op::Update(from, to, v) => {
                let Some(found) = find(&transaction, self.keyed, *from, ReadMode::Update).unwrap() else {
                    assert!(!self.now.keyed.contains_key(from));
                    return;
                };
                match transaction.update(self.keyed, found.id(), &row(*to, *v)) {
                    Ok(there) => {
                        assert!(there && self.now.keyed.remove(from).is_some());
                        assert!(self.now.keyed.insert(*to, *v).is_none());
                    }
                    Err(error) => self.expect_duplicate(&error, *to),
                }
            }
            Op::ShiftKeys => {
                let scan = transaction.scan(self.keyed, ReadMode::Update).unwrap();
                let changes: Vec<_> = scan
                    .map(|found| {
                        let found = found.unwrap();
                        let (k, v) = pair(&found.values(2).unwrap());
                        (found.id(), row(k + 1, v))
                    })
                    .collect();
                let count = transaction.update_many(self.keyed, &changes).unwrap();
                assert_eq!(count, self.now.keyed.len() as u64);
                self.now.keyed = self.now.keyed.iter().map(|(k, v)| (k + 1, *v)).collect();
            }
            Op::Delete(k) => match find(&transaction, self.keyed, *k, ReadMode::Update).unwrap() {
                Some(found) => {
                    assert!(transaction.delete(self.keyed, found.id()).unwrap());
                    assert!(self.now.keyed.remove(k).is_some());
                }
                None => assert!(!self.now.keyed.contains_key(k)),
            },
            other => self.change_more(&transaction, other),
        }
    }

    fn change_more(&mut self, transaction: &Arc<Transaction>, op: &Op) {
        match op {
            Op::Truncate => {
                transaction.truncate(self.keyed).unwrap();
                self.now.keyed.clear();
            }
            Op::TruncateHeap => {
                transaction.truncate(self.heap).unwrap();
                self.now.heap.clear();
            }
            Op::Rewrite => {
                let object = transaction.object(self.heap).unwrap();
                let convert = |values: Vec<Value>| {
                    let (k, v) = pair(&values);
                    Ok::<_, StoreError>(row(k, v.wrapping_add(1)))
                };
                transaction.rewrite_table((*object).clone(), convert).unwrap();
                self.now.heap.iter_mut().for_each(|(_, v)| *v = v.wrapping_add(1));
            }
            Op::Savepoint(name) => {
                transaction.savepoint(&format!("s{name}"));
                self.savepoints.push((*name, self.now.clone()));
            }
            Op::RollbackTo(name) => {
                let known = self.savepoints.iter().rposition(|(it, _)| it == name);
                assert_eq!(transaction.rollback_to(&format!("S{name}")).is_ok(), known.is_some());
                if let Some(position) = known {
                    self.now = self.savepoints[position].1.clone();
                    self.savepoints.truncate(position + 1);
                }
            }
            Op::FailedStatement(count) => {
                let mark = transaction.mark();
                for v in 0..i32::from(*count) {
                    transaction.insert(self.heap, &row(77, v)).unwrap();
                }
                transaction.rollback_to_mark(mark);
            }
            other => self.change_heap(transaction, other),
        }
    }

    fn change_heap(&mut self, transaction: &Arc<Transaction>, op: &Op) {
        let matching = |k: i32| {
            let scan = transaction.scan(self.heap, ReadMode::Update).unwrap();
            let found = scan.map(|found| found.unwrap()).filter(|it| it.value(0).unwrap() == Value::Int(k));
            found.map(|it| it.id()).collect::<Vec<_>>()
        };
        match op {
            Op::BulkHeap(count) => {
                let mut load = transaction.bulk_load(self.heap).unwrap();
                for v in 0..i32::from(*count) {
                    load.push(&row(v % 12, v)).unwrap();
                    self.now.heap.push((v % 12, v));
                }
                assert_eq!(load.finish().unwrap(), u64::from(*count));
            }
            Op::InsertHeap(k) => {
                transaction.insert(self.heap, &row(*k, 0)).unwrap();
                self.now.heap.push((*k, 0));
            }
            Op::DeleteHeap(k) => {
                for id in matching(*k) {
                    assert!(transaction.delete(self.heap, id).unwrap());
                    assert!(!transaction.delete(self.heap, id).unwrap(), "deleted twice");
                }
                self.now.heap.retain(|(key, _)| key != k);
            }
            Op::UpdateHeap(k, v) => {
                for id in matching(*k) {
                    assert!(transaction.update(self.heap, id, &row(*k, *v)).unwrap());
                }
                self.now.heap.iter_mut().filter(|(key, _)| key == k).for_each(|(_, value)| *value = *v);
            }
            other => panic!("{other:?} is applied elsewhere"),
        }
    }

    fn expect_duplicate(&self, error: &StoreError, key: i32) {
        assert!(self.now.keyed.contains_key(&key), "{error}");
        match error {
            StoreError::DuplicateKey { table, index_id: 1, constraint: true, building: false, key: values } => {
                assert_eq!(*table, self.keyed);
                assert_eq!(values, &[Value::Int(key)]);
            }
            other => panic!("{other}"),
        }
    }

    fn check(&mut self) {
        let transaction = self.transaction();
        let keyed: Vec<_> = self.now.keyed.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(rows(&transaction, self.keyed), keyed);
        let mut heap = rows(&transaction, self.heap);
        let mut expected = self.now.heap.clone();
        heap.sort_unstable();
        expected.sort_unstable();
        assert_eq!(heap, expected);
        for k in 0..12 {
            let found = find(&transaction, self.keyed, k, ReadMode::Committed).unwrap();
            let found = found.map(|it| pair(&it.values(2).unwrap()).1);
            assert_eq!(found.as_ref(), self.now.keyed.get(&k));
        }
        let allocation = transaction.allocation(self.keyed).unwrap();
        assert_eq!(allocation.rows, self.now.keyed.len() as u64);
        assert_eq!(transaction.allocation(self.heap).unwrap().rows, self.now.heap.len() as u64);
        let bounds = (std::ops::Bound::Excluded(&[Value::Int(3)][..]), std::ops::Bound::Included(&[Value::Int(7)][..]));
        let scan = transaction.range(self.keyed, 1, bounds, ReadMode::Committed).unwrap().unwrap();
        let between: Vec<_> = scan.map(|it| pair(&it.unwrap().values(2).unwrap()).0).collect();
        assert_eq!(between, self.now.keyed.range(4..=7).map(|(k, _)| *k).collect::<Vec<_>>());
        transaction.end_statement();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_store_agrees_with_a_model(ops in prop::collection::vec(op(), 1..60)) {
        let mut world = World::new();
        for op in &ops {
            world.apply(op);
            world.check();
        }
        world.apply(&Op::Restart);
        world.check();
    }
}
