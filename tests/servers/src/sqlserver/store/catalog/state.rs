//! The catalog's memory: for each key the committed record and the pending change of at most one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{CatalogKey, CatalogRecord, DatabaseId, Object, ObjectId, SchemaId, fold_name};
use crate::sqlserver::store::transaction::TransactionId;

/// What one transaction made of a record; `None` is removed.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::sqlserver::store) struct Pending {
    pub(in crate::sqlserver::store) transaction: TransactionId,
    pub(in crate::sqlserver::store) record: Option<CatalogRecord>,
}

#[derive(Debug, Clone, Default)]
struct Versions {
    committed: Option<CatalogRecord>,
    pending: Option<Pending>,
}

impl Versions {
    fn seen_by(&self, transaction: TransactionId) -> Option<&CatalogRecord> {
        match &self.pending {
            Some(pending) if pending.transaction == transaction => pending.record.as_ref(),
            _ => self.committed.as_ref(),
        }
    }
}

/// Database, schema and folded name.
type NameKey = (DatabaseId, SchemaId, String);

/// All records.
#[derive(Debug, Default)]
pub(in crate::sqlserver::store) struct CatalogState {
    records: BTreeMap<CatalogKey, Versions>,
    /// Objects that have, had or may get a name; readers check the record itself.
    names: HashMap<NameKey, BTreeSet<ObjectId>>,
}

/// Answer of a name lookup.
#[derive(Debug)]
pub(in crate::sqlserver::store) enum Lookup {
    /// The object is there for this transaction.
    Found(std::sync::Arc<Object>),
    /// Another transaction is creating or renaming an object of this name.
    Uncommitted(ObjectId),
    /// No such name.
    Missing,
}

impl CatalogState {
    pub(in crate::sqlserver::store) fn get(
        &self,
        transaction: TransactionId,
        key: &CatalogKey,
    ) -> Option<&CatalogRecord> {
        self.records.get(key)?.seen_by(transaction)
    }

    /// Records in key order as `transaction` sees them.
    pub(in crate::sqlserver::store) fn iter(
        &self,
        transaction: TransactionId,
    ) -> impl Iterator<Item = &CatalogRecord> + '_ {
        self.records.values().filter_map(move |versions| versions.seen_by(transaction))
    }

    /// Committed records in key order.
    pub(in crate::sqlserver::store) fn committed(&self) -> impl Iterator<Item = &CatalogRecord> + '_ {
        self.records.values().filter_map(|versions| versions.committed.as_ref())
    }

    /// Sets the pending change of a record and returns the previous one of the same transaction.
    pub(in crate::sqlserver::store) fn set_pending(
        &mut self,
        key: &CatalogKey,
        pending: Option<Pending>,
    ) -> Option<Pending> {
        if let Some(Pending { record: Some(CatalogRecord::Object(object)), .. }) = &pending {
            self.index_names(object);
        }
        let versions = self.records.entry(key.clone()).or_default();
        let before = std::mem::replace(&mut versions.pending, pending);
        self.clean(key, before.as_ref().and_then(|before| before.record.as_ref()));
        before
    }

    /// Makes a record the committed one (log replay, new store).
    pub(in crate::sqlserver::store) fn set_committed(&mut self, key: &CatalogKey, record: Option<CatalogRecord>) {
        if let Some(CatalogRecord::Object(object)) = &record {
            self.index_names(object);
        }
        let before = std::mem::replace(&mut self.records.entry(key.clone()).or_default().committed, record);
        self.clean(key, before.as_ref());
    }

    /// Makes `transaction`'s pending change the committed record.
    pub(in crate::sqlserver::store) fn commit(&mut self, transaction: TransactionId, key: &CatalogKey) {
        let Some(versions) = self.records.get_mut(key) else { return };
        let Some(pending) = versions.pending.take_if(|pending| pending.transaction == transaction) else { return };
        let before = std::mem::replace(&mut versions.committed, pending.record);
        self.clean(key, before.as_ref());
    }

    /// Forgets a record of which nothing is left; `last` is what it was until now.
    fn clean(&mut self, key: &CatalogKey, last: Option<&CatalogRecord>) {
        if !self.records.get(key).is_some_and(|it| it.committed.is_none() && it.pending.is_none()) {
            return;
        }
        self.records.remove(key);
        let Some(CatalogRecord::Object(object)) = last else { return };
        for name in object_names(object) {
            let name = (object.database, object.schema, fold_name(name));
            if let Some(ids) = self.names.get_mut(&name) {
                ids.remove(&object.id);
                if ids.is_empty() {
                    self.names.remove(&name);
                }
            }
        }
    }

    fn index_names(&mut self, object: &Object) {
        for name in object_names(object) {
            self.names.entry((object.database, object.schema, fold_name(name))).or_default().insert(object.id);
        }
    }

    /// Finds the object of a name; a local temporary table only for its own session.
    pub(in crate::sqlserver::store) fn find(
        &self,
        transaction: TransactionId,
        database: DatabaseId,
        schema: SchemaId,
        name: &str,
        session: i32,
    ) -> Lookup {
        let folded = fold_name(name);
        let Some(ids) = self.names.get(&(database, schema, folded.clone())) else { return Lookup::Missing };
        let matches = |record: &CatalogRecord| match record {
            CatalogRecord::Object(object) => {
                fold_name(&object.name) == folded && object.session.is_none_or(|owner| owner == session)
            }
            _ => false,
        };
        let mut answer = Lookup::Missing;
        for id in ids {
            let Some(versions) = self.records.get(&CatalogKey::Object(*id)) else { continue };
            if let Some(record) = versions.seen_by(transaction).filter(|record| matches(record))
                && let CatalogRecord::Object(object) = record
            {
                return Lookup::Found(object.clone());
            }
            let foreign = versions.pending.as_ref().filter(|pending| pending.transaction != transaction);
            if foreign.and_then(|pending| pending.record.as_ref()).is_some_and(matches) {
                answer = Lookup::Uncommitted(*id);
            }
        }
        answer
    }

    /// The object, or the table with the constraint, that uses a name.
    pub(in crate::sqlserver::store) fn user_of_name(
        &self,
        transaction: TransactionId,
        database: DatabaseId,
        schema: SchemaId,
        name: &str,
    ) -> Option<&std::sync::Arc<Object>> {
        let folded = fold_name(name);
        self.names.get(&(database, schema, folded.clone()))?.iter().find_map(|id| {
            match self.get(transaction, &CatalogKey::Object(*id))? {
                CatalogRecord::Object(object) => {
                    object_names(object).any(|name| fold_name(name) == folded).then_some(object)
                }
                _ => None,
            }
        })
    }
}

/// The names that an object takes in its schema: its own and those of its constraints.
pub(in crate::sqlserver::store) fn object_names(object: &Object) -> impl Iterator<Item = &str> {
    let table = object.table();
    let defaults = table.into_iter().flat_map(|table| &table.columns).filter_map(|column| column.default.as_ref());
    let keys = table.into_iter().flat_map(|table| &table.indexes).filter(|index| index.constraint.is_some());
    let checks = table.into_iter().flat_map(|table| &table.checks);
    let foreign = table.into_iter().flat_map(|table| &table.foreign_keys);
    std::iter::once(object.name.as_str())
        .chain(keys.map(|key| key.name.as_str()))
        .chain(defaults.map(|default| default.name.as_str()))
        .chain(checks.map(|check| check.name.as_str()))
        .chain(foreign.map(|key| key.name.as_str()))
}
