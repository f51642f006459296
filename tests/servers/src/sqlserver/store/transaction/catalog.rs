//! The catalog through a transaction.

use std::sync::Arc;

use super::super::catalog::state::{Lookup, Pending, object_names};
use super::super::catalog::{
    CatalogKey, CatalogRecord, Database, DatabaseId, ExtendedProperty, Membership, Object, ObjectId, Permission,
    Principal, Schema, SchemaId, Scope, fold_name,
};
use super::super::error::StoreError;
use super::super::heap::{RowState, Storage};
use super::super::lock::{LockMode, Resource};
use super::super::log::Operation;
use super::super::row::{decode_row, encode_row};
use super::super::store::{CounterKey, is_logged};
use super::state::{Undo, log_storage};
use super::{Hold, Transaction};
use crate::sqlserver::value::Value;

/// Lookups. They see this transaction's changes, and of others what is committed.
impl Transaction {
    /// Finds an object by name and locks it: [`LockMode::SchemaStability`] for a use, [`LockMode::SchemaModification`]
    /// for DDL. Waits for another transaction that is creating, changing or dropping it. Local temporary tables are
    /// found by their `#name` in [`TEMPDB`](crate::sqlserver::store::catalog::TEMPDB), schema `dbo`, by their own session.
    ///
    /// # Errors
    /// [`StoreError::Lock`].
    pub fn resolve(
        &self,
        database: DatabaseId,
        schema: SchemaId,
        name: &str,
        mode: LockMode,
        hold: Hold,
    ) -> Result<Option<Arc<Object>>, StoreError> {
        loop {
            let id = match self.look_up(database, schema, name) {
                Lookup::Missing => return Ok(None),
                Lookup::Uncommitted(id) => {
                    self.lock_table(id, LockMode::SchemaStability, Hold::Statement)?;
                    continue;
                }
                Lookup::Found(object) => object.id,
            };
            self.lock_table(id, mode, hold)?;
            // While it waited for the lock, the object may have been changed, dropped or made anew.
            match self.look_up(database, schema, name) {
                Lookup::Found(object) if object.id == id => return Ok(Some(object)),
                _ => {}
            }
        }
    }

    fn look_up(&self, database: DatabaseId, schema: SchemaId, name: &str) -> Lookup {
        self.store.catalog.read().find(self.id, database, schema, name, self.session.id().0)
    }

    /// An object by name without a lock, for OBJECT_ID and catalog views.
    #[must_use]
    pub fn find_object(&self, database: DatabaseId, schema: SchemaId, name: &str) -> Option<Arc<Object>> {
        match self.look_up(database, schema, name) {
            Lookup::Found(object) => Some(object),
            Lookup::Uncommitted(_) | Lookup::Missing => None,
        }
    }

    /// The object whose name, or whose constraint's name, is `name`.
    #[must_use]
    pub fn user_of_name(&self, database: DatabaseId, schema: SchemaId, name: &str) -> Option<Arc<Object>> {
        self.store.catalog.read().user_of_name(self.id, database, schema, name).map(Arc::clone)
    }

    /// An object by id, without a lock: as this transaction sees it, else as last committed.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Option<Arc<Object>> {
        match self.record(&CatalogKey::Object(id)) {
            Some(CatalogRecord::Object(object)) => Some(object),
            _ => None,
        }
    }

    /// The table that has the constraint (key, check, default, foreign key) of this object id.
    #[must_use]
    pub fn constraint_table(&self, constraint: ObjectId) -> Option<Arc<Object>> {
        let has = |object: &Object| {
            let Some(table) = object.table() else { return false };
            let keys = table.indexes.iter().filter_map(|index| index.constraint.as_ref()).map(|key| key.object_id);
            let defaults = table.columns.iter().filter_map(|column| column.default.as_ref()).map(|it| it.object_id);
            let checks = table.checks.iter().map(|check| check.object_id);
            let foreign = table.foreign_keys.iter().map(|key| key.object_id);
            keys.chain(defaults).chain(checks).chain(foreign).any(|id| id == constraint)
        };
        self.collect(|record| match record {
            CatalogRecord::Object(object) if has(object) => Some(Arc::clone(object)),
            _ => None,
        })
        .pop()
    }

    fn collect<T>(&self, pick: impl Fn(&CatalogRecord) -> Option<T>) -> Vec<T> {
        self.store.catalog.read().iter(self.id).filter_map(pick).collect()
    }

    /// All objects of a database by id; of temporary tables all sessions' ones.
    #[must_use]
    pub fn objects(&self, database: DatabaseId) -> Vec<Arc<Object>> {
        self.collect(|record| match record {
            CatalogRecord::Object(it) if it.database == database => Some(Arc::clone(it)),
            _ => None,
        })
    }

    /// All databases by id.
    #[must_use]
    pub fn databases(&self) -> Vec<Arc<Database>> {
        self.collect(|record| match record {
            CatalogRecord::Database(it) => Some(Arc::clone(it)),
            _ => None,
        })
    }

    /// A database by name.
    #[must_use]
    pub fn find_database(&self, name: &str) -> Option<Arc<Database>> {
        let folded = fold_name(name);
        self.databases().into_iter().find(|database| fold_name(&database.name) == folded)
    }

    /// All schemas of a database by id.
    #[must_use]
    pub fn schemas(&self, database: DatabaseId) -> Vec<Arc<Schema>> {
        self.collect(|record| match record {
            CatalogRecord::Schema(it) if it.database == database => Some(Arc::clone(it)),
            _ => None,
        })
    }

    /// A schema by name.
    #[must_use]
    pub fn find_schema(&self, database: DatabaseId, name: &str) -> Option<Arc<Schema>> {
        let folded = fold_name(name);
        self.schemas(database).into_iter().find(|schema| fold_name(&schema.name) == folded)
    }

    /// All principals of a scope by id.
    #[must_use]
    pub fn principals(&self, scope: Scope) -> Vec<Arc<Principal>> {
        self.collect(|record| match record {
            CatalogRecord::Principal(it) if it.scope == scope => Some(Arc::clone(it)),
            _ => None,
        })
    }

    /// All memberships of a scope.
    #[must_use]
    pub fn memberships(&self, scope: Scope) -> Vec<Membership> {
        self.collect(|record| match record {
            CatalogRecord::Membership(it) if it.scope == scope => Some(*it),
            _ => None,
        })
    }

    /// All permission rows of a scope.
    #[must_use]
    pub fn permissions(&self, scope: Scope) -> Vec<Arc<Permission>> {
        self.collect(|record| match record {
            CatalogRecord::Permission(it) if it.key.scope == scope => Some(Arc::clone(it)),
            _ => None,
        })
    }

    /// All extended properties of a database.
    #[must_use]
    pub fn extended_properties(&self, database: DatabaseId) -> Vec<Arc<ExtendedProperty>> {
        self.collect(|record| match record {
            CatalogRecord::Property(it) if it.key.database == database => Some(Arc::clone(it)),
            _ => None,
        })
    }

    /// A setting.
    #[must_use]
    pub fn setting(&self, scope: Scope, name: &str) -> Option<String> {
        match self.record(&CatalogKey::Setting(scope, name.to_owned())) {
            Some(CatalogRecord::Setting(setting)) => Some(setting.value.clone()),
            _ => None,
        }
    }

    /// Any record by key.
    #[must_use]
    pub fn record(&self, key: &CatalogKey) -> Option<CatalogRecord> {
        self.store.catalog.read().get(self.id, key).cloned()
    }
}

/// Changes.
impl Transaction {
    /// Creates or replaces a record as a whole, under an exclusive lock on it (Sch-M for objects).
    ///
    /// A new table gets empty storage. A changed table keeps its rows: indexes that appear are built (and may find
    /// duplicates), columns that appear at the end read as NULL; for any other change of columns use
    /// [`Transaction::rewrite_table`].
    ///
    /// # Errors
    /// [`StoreError::NameExists`], [`StoreError::DuplicateKey`] with `building`, [`StoreError::Lock`].
    pub fn put(&self, record: impl Into<CatalogRecord>) -> Result<(), StoreError> {
        let record = record.into();
        self.lock_record(&record.key())?;
        self.ensure_writer()?;
        if let CatalogRecord::Object(object) = &record {
            self.claim_names(object)?;
            self.prepare_storage(object)?;
        }
        self.put_record(record);
        Ok(())
    }

    fn lock_record(&self, key: &CatalogKey) -> Result<(), StoreError> {
        match key {
            CatalogKey::Object(id) => self.lock_table(*id, LockMode::SchemaModification, Hold::Transaction),
            other => self.lock_resource(Resource::Catalog(other.clone()), LockMode::Exclusive),
        }
    }

    /// Makes sure that nobody else has or is creating the object's names.
    fn claim_names(&self, object: &Object) -> Result<(), StoreError> {
        let before = self.object(object.id);
        let had = |name: &str| {
            before.as_ref().is_some_and(|before| {
                before.schema == object.schema && object_names(before).any(|it| fold_name(it) == fold_name(name))
            })
        };
        for name in object_names(object).filter(|name| !had(name)) {
            if object.session.is_some() {
                // Names in tempdb are free for each session; only the session's own table is in the way.
                let existing =
                    (name == object.name).then(|| self.find_object(object.database, object.schema, name)).flatten();
                if existing.is_some() {
                    return Err(StoreError::NameExists);
                }
                continue;
            }
            let resource = Resource::Name {
                database: object.database,
                schema: object.schema,
                folded_name: fold_name(name).into(),
            };
            self.lock_resource(resource, LockMode::Exclusive)?;
            let user = self.user_of_name(object.database, object.schema, name);
            if user.is_some_and(|user| user.id != object.id) {
                return Err(StoreError::NameExists);
            }
        }
        Ok(())
    }

    fn prepare_storage(&self, object: &Object) -> Result<(), StoreError> {
        let Some(definition) = object.table() else { return Ok(()) };
        match self.store.storage(object.id) {
            Ok(storage) => storage.state.write().sync_indexes(definition).map_err(|error| at_table(error, object.id)),
            Err(_) => {
                let logged = is_logged(&CatalogRecord::Object(Arc::new(object.clone())));
                self.exchange_storage(Arc::new(Storage::new(object.id, definition, logged)));
                Ok(())
            }
        }
    }

    fn put_record(&self, record: CatalogRecord) {
        let mut state = self.state.lock();
        if is_logged(&record) {
            if matches!(record, CatalogRecord::Object(_)) {
                Operation::LastObjectId(self.store.last_object_id()).encode(&mut state.redo);
            }
            Operation::Put(Box::new(record.clone())).encode(&mut state.redo);
        }
        let key = record.key();
        let pending = Pending { transaction: self.id, record: Some(record) };
        let before = self.store.catalog.write().set_pending(&key, Some(pending));
        state.changed(key, before);
    }

    /// Removes a record; a table goes with its rows. Dependent records (triggers, permissions, extended properties) are
    /// the caller's.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Lock`].
    pub fn remove(&self, key: &CatalogKey) -> Result<(), StoreError> {
        self.lock_record(key)?;
        self.ensure_writer()?;
        let record = self.record(key).ok_or(StoreError::NotFound)?;
        let mut state = self.state.lock();
        if let CatalogKey::Object(table) = key {
            let before = self.store.storages.write().remove(table);
            if before.is_some() {
                state.undo.push(Undo::Storage { table: *table, before });
            }
        }
        if is_logged(&record) {
            Operation::Remove(key.clone()).encode(&mut state.redo);
        }
        let pending = Pending { transaction: self.id, record: None };
        let before = self.store.catalog.write().set_pending(key, Some(pending));
        state.changed(key.clone(), before);
        Ok(())
    }

    /// Replaces a table's definition and passes each of its rows through `convert`.
    ///
    /// # Errors
    /// Those of [`Transaction::put`] and of `convert`.
    pub fn rewrite_table<E: From<StoreError>>(
        &self,
        object: Object,
        mut convert: impl FnMut(Vec<Value>) -> Result<Vec<Value>, E>,
    ) -> Result<(), E> {
        let table = object.id;
        self.lock_table(table, LockMode::SchemaModification, Hold::Transaction)?;
        self.ensure_writer()?;
        let columns = self.definition(table)?.columns.len();
        let definition = object.table().ok_or(StoreError::NotFound)?.clone();
        self.claim_names(&object)?;
        let old = self.store.storage(table)?;
        let new = Arc::new(Storage::new(table, &super::super::catalog::TableDef::default(), old.logged));
        let pages = old.state.read().pages().to_vec();
        let mut bytes = Vec::new();
        for page in pages {
            for slot in 0..page.slot_count() {
                if !matches!(page.state(slot), RowState::Committed | RowState::Written(_)) {
                    continue;
                }
                let Some(row) = page.row(slot) else { continue };
                let mut values = Vec::with_capacity(columns);
                decode_row(row, columns, &mut values)?;
                bytes.clear();
                encode_row(&convert(values)?, &mut bytes);
                new.state.write().replay_push(&bytes)?;
            }
        }
        new.state.write().finish_replay(&definition).map_err(|error| at_table(error, table))?;
        if new.logged {
            let mut state = self.state.lock();
            log_storage(&new, &mut state.redo);
            state.stream(&self.store, self.id)?;
        }
        self.exchange_storage(new);
        self.put_record(object.into());
        Ok(())
    }
}

/// Counters.
impl Transaction {
    /// Takes the next of a counter's values: `first` if it has none yet, else the last plus `increment`.
    ///
    /// # Errors
    /// [`StoreError::CounterOverflow`] outside `minimum..=maximum`.
    pub fn next_counter(
        &self,
        key: CounterKey,
        first: i128,
        increment: i128,
        minimum: i128,
        maximum: i128,
    ) -> Result<i128, StoreError> {
        let mut counters = self.store.counters.lock();
        let next = match counters.values.get(&key) {
            None => first,
            Some(last) => last.checked_add(increment).ok_or(StoreError::CounterOverflow)?,
        };
        if next < minimum || next > maximum {
            return Err(StoreError::CounterOverflow);
        }
        counters.values.insert(key, next);
        counters.dirty.insert(key);
        Ok(next)
    }

    /// Sets a counter's last value, none for "no value yet"; a rollback restores it (DBCC CHECKIDENT, TRUNCATE,
    /// ALTER SEQUENCE RESTART, explicit identity values beyond the last).
    pub fn set_counter(&self, key: CounterKey, last: Option<i128>) {
        let mut state = self.state.lock();
        let mut counters = self.store.counters.lock();
        let before = match last {
            Some(last) => counters.values.insert(key, last),
            None => counters.values.remove(&key),
        };
        counters.dirty.insert(key);
        state.undo.push(Undo::Counter { key, before });
    }

    /// The next rowversion of a database.
    #[must_use]
    pub fn next_rowversion(&self, database: DatabaseId) -> u64 {
        self.store.next_rowversion(database)
    }
}

fn at_table(error: StoreError, table: ObjectId) -> StoreError {
    match error {
        StoreError::DuplicateKey { index_id, constraint, building, key, .. } => {
            StoreError::DuplicateKey { table, index_id, constraint, building, key }
        }
        other => other,
    }
}
