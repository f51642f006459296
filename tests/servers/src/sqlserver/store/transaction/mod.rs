//! Transactions: the only way to read and change the store.

use std::ops::Bound;
use std::sync::Arc;

use super::catalog::{
    CatalogKey, CatalogRecord, Database, DatabaseId, ExtendedProperty, Membership, Object, ObjectId, Permission,
    Principal, Schema, SchemaId, Scope, TableDef,
};
use super::error::StoreError;
use super::heap::RowId;
use super::lock::LockMode;
use super::session::Session;
use super::store::{Allocation, CounterKey};
use crate::sqlserver::value::Value;

/// Transaction id, rising within one run of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransactionId(pub u64);

/// How long a lock is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Until [`Transaction::end_statement`].
    Statement,
    /// Until the transaction ends.
    Transaction,
}

/// How reads treat rows that other transactions have changed or locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Reads uncommitted rows (NOLOCK).
    Dirty,
    /// Waits for the transaction that changed the row (READ COMMITTED).
    Committed,
    /// Passes over rows that another transaction changed (READPAST).
    SkipLocked,
    /// As `Committed`, and keeps a shared lock on each row (REPEATABLE READ).
    Shared,
    /// As `Committed`, and keeps an update lock on each row (UPDATE, DELETE, UPDLOCK).
    Update,
    /// As `Update`, passing over rows that another transaction locked (UPDLOCK, READPAST).
    UpdateSkipLocked,
    /// As `Committed`, and keeps an exclusive lock on each row (XLOCK).
    Exclusive,
}

/// A point inside a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(usize);

/// A transaction. Its methods may be called while scans of it are open; it belongs to one session's thread.
#[derive(Debug)]
pub struct Transaction {
    id: TransactionId,
}

/// Identity, ends, marks.
impl Transaction {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        unimplemented!()
    }

    /// Makes the changes durable and visible and releases the locks.
    ///
    /// # Errors
    /// [`StoreError::LogFailed`]: the fate is unknown until the store is opened again; [`StoreError::TransactionEnded`].
    pub fn commit(&self) -> Result<(), StoreError> {
        unimplemented!()
    }

    /// Undoes everything and releases the locks. A second call has no effect.
    pub fn rollback(&self) {
        unimplemented!()
    }

    /// Whether it has neither been committed nor rolled back.
    #[must_use]
    pub fn is_active(&self) -> bool {
        unimplemented!()
    }

    /// Whether it has changed anything that is logged (`XACT_STATE`, `database_transaction_log_record_count`).
    #[must_use]
    pub fn has_changes(&self) -> bool {
        unimplemented!()
    }

    /// SAVE TRANSACTION; a repeated name hides the earlier one.
    pub fn savepoint(&self, name: &str) {
        let _ = name;
        unimplemented!()
    }

    /// ROLLBACK TRANSACTION to a savepoint, which stays; locks are kept.
    ///
    /// # Errors
    /// [`StoreError::NoSavepoint`].
    pub fn rollback_to(&self, name: &str) -> Result<(), StoreError> {
        let _ = name;
        unimplemented!()
    }

    /// The present point, for undoing one statement.
    #[must_use]
    pub fn mark(&self) -> Mark {
        unimplemented!()
    }

    /// Undoes what happened since `mark`; locks are kept.
    pub fn rollback_to_mark(&self, mark: Mark) {
        let _ = mark;
        unimplemented!()
    }

    /// Releases the locks that were taken for the statement.
    pub fn end_statement(&self) {
        unimplemented!()
    }
}

/// Locks.
impl Transaction {
    /// Locks an object; the session's lock timeout, cancel token and deadlock priority apply.
    ///
    /// # Errors
    /// [`StoreError::Lock`].
    pub fn lock_table(&self, table: ObjectId, mode: LockMode, hold: Hold) -> Result<(), StoreError> {
        let _ = (table, mode, hold);
        unimplemented!()
    }

    /// Gives the update lock of a row back that [`ReadMode::Update`] took and the statement does not need.
    pub fn release_row(&self, table: ObjectId, row: RowId) {
        let _ = (table, row);
        unimplemented!()
    }
}

/// Catalog.
impl Transaction {
    /// Finds an object by name and locks it: [`LockMode::SchemaStability`] for a use, [`LockMode::SchemaModification`]
    /// for DDL. Waits for another transaction that is creating, changing or dropping it. Local temporary tables are
    /// found by their `#name` in [`TEMPDB`](super::catalog::TEMPDB), schema `dbo`, by their own session.
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
        let _ = (database, schema, name, mode, hold);
        unimplemented!()
    }

    /// An object by id, without a lock: as this transaction sees it, else as last committed.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Option<Arc<Object>> {
        let _ = id;
        unimplemented!()
    }

    /// The table that has the constraint (key, check, default, foreign key) of this object id.
    #[must_use]
    pub fn constraint_table(&self, constraint: ObjectId) -> Option<Arc<Object>> {
        let _ = constraint;
        unimplemented!()
    }

    /// An object by name without a lock, for OBJECT_ID and catalog views.
    #[must_use]
    pub fn find_object(&self, database: DatabaseId, schema: SchemaId, name: &str) -> Option<Arc<Object>> {
        let _ = (database, schema, name);
        unimplemented!()
    }

    /// The object whose name, or whose constraint's name, is `name`.
    #[must_use]
    pub fn user_of_name(&self, database: DatabaseId, schema: SchemaId, name: &str) -> Option<Arc<Object>> {
        let _ = (database, schema, name);
        unimplemented!()
    }

    /// All objects of a database by id; of temporary tables all sessions' ones.
    #[must_use]
    pub fn objects(&self, database: DatabaseId) -> Vec<Arc<Object>> {
        let _ = database;
        unimplemented!()
    }

    /// All databases by id.
    #[must_use]
    pub fn databases(&self) -> Vec<Arc<Database>> {
        unimplemented!()
    }

    /// A database by name.
    #[must_use]
    pub fn find_database(&self, name: &str) -> Option<Arc<Database>> {
        let _ = name;
        unimplemented!()
    }

    /// All schemas of a database by id.
    #[must_use]
    pub fn schemas(&self, database: DatabaseId) -> Vec<Arc<Schema>> {
        let _ = database;
        unimplemented!()
    }

    /// A schema by name.
    #[must_use]
    pub fn find_schema(&self, database: DatabaseId, name: &str) -> Option<Arc<Schema>> {
        let _ = (database, name);
        unimplemented!()
    }

    /// All principals of a scope by id.
    #[must_use]
    pub fn principals(&self, scope: Scope) -> Vec<Arc<Principal>> {
        let _ = scope;
        unimplemented!()
    }

    /// All memberships of a scope.
    #[must_use]
    pub fn memberships(&self, scope: Scope) -> Vec<Membership> {
        let _ = scope;
        unimplemented!()
    }

    /// All permission rows of a scope.
    #[must_use]
    pub fn permissions(&self, scope: Scope) -> Vec<Arc<Permission>> {
        let _ = scope;
        unimplemented!()
    }

    /// All extended properties of a database.
    #[must_use]
    pub fn extended_properties(&self, database: DatabaseId) -> Vec<Arc<ExtendedProperty>> {
        let _ = database;
        unimplemented!()
    }

    /// A setting.
    #[must_use]
    pub fn setting(&self, scope: Scope, name: &str) -> Option<String> {
        let _ = (scope, name);
        unimplemented!()
    }

    /// Any record by key.
    #[must_use]
    pub fn record(&self, key: &CatalogKey) -> Option<CatalogRecord> {
        let _ = key;
        unimplemented!()
    }

    /// Creates or replaces a record as a whole, under an exclusive lock on it (Sch-M for objects).
    ///
    /// A new table gets empty storage. A changed table keeps its rows: indexes that appear are built (and may find
    /// duplicates), columns that appear at the end read as NULL; for any other change of columns use
    /// [`Transaction::rewrite_table`].
    ///
    /// # Errors
    /// [`StoreError::NameExists`], [`StoreError::DuplicateKey`] with `building`, [`StoreError::Lock`].
    pub fn put(&self, record: impl Into<CatalogRecord>) -> Result<(), StoreError> {
        let _ = record.into();
        unimplemented!()
    }

    /// Removes a record; a table goes with its rows. Dependent records (triggers, permissions, extended properties) are
    /// the caller's.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Lock`].
    pub fn remove(&self, key: &CatalogKey) -> Result<(), StoreError> {
        let _ = key;
        unimplemented!()
    }

    /// Replaces a table's definition and passes each of its rows through `convert`.
    ///
    /// # Errors
    /// Those of [`Transaction::put`] and of `convert`.
    pub fn rewrite_table<E: From<StoreError>>(
        &self,
        object: Object,
        convert: impl FnMut(Vec<Value>) -> Result<Vec<Value>, E>,
    ) -> Result<(), E> {
        let _ = (object, convert);
        unimplemented!()
    }

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
        let _ = (key, first, increment, minimum, maximum);
        unimplemented!()
    }

    /// Sets a counter's last value, none for "no value yet"; a rollback restores it (DBCC CHECKIDENT, TRUNCATE,
    /// ALTER SEQUENCE RESTART, explicit identity values beyond the last).
    pub fn set_counter(&self, key: CounterKey, last: Option<i128>) {
        let _ = (key, last);
        unimplemented!()
    }

    /// The next rowversion of a database.
    #[must_use]
    pub fn next_rowversion(&self, database: DatabaseId) -> u64 {
        let _ = database;
        unimplemented!()
    }
}

/// Rows. Values have been converted to their columns' types by the caller.
impl Transaction {
    /// Inserts a row (IX on the table).
    ///
    /// # Errors
    /// [`StoreError::DuplicateKey`], [`StoreError::Lock`], [`StoreError::NotFound`], [`StoreError::RowTooLarge`].
    pub fn insert(&self, table: ObjectId, row: &[Value]) -> Result<RowId, StoreError> {
        let _ = (table, row);
        unimplemented!()
    }

    /// Replaces a row (IX on the table, X on the row); false if the row is gone.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn update(&self, table: ObjectId, row: RowId, values: &[Value]) -> Result<bool, StoreError> {
        let _ = (table, row, values);
        unimplemented!()
    }

    /// Replaces many rows as one statement: keys may be exchanged among them. Returns how many were there.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; the caller then rolls back to its statement mark.
    pub fn update_many(&self, table: ObjectId, rows: &[(RowId, Vec<Value>)]) -> Result<u64, StoreError> {
        let _ = (table, rows);
        unimplemented!()
    }

    /// Deletes a row (IX on the table, X on the row); false if the row is gone.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn delete(&self, table: ObjectId, row: RowId) -> Result<bool, StoreError> {
        let _ = (table, row);
        unimplemented!()
    }

    /// Deletes all rows at once (Sch-M) and resets the identity counter.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn truncate(&self, table: ObjectId) -> Result<(), StoreError> {
        let _ = table;
        unimplemented!()
    }

    /// Starts a bulk load: rows are encoded apart and join the table page by page.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn bulk_load(self: &Arc<Self>, table: ObjectId) -> Result<BulkLoad, StoreError> {
        let _ = table;
        unimplemented!()
    }

    /// All rows, in the order of the clustered index or of insertion. Rows inserted after this call are not seen.
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn scan(self: &Arc<Self>, table: ObjectId, mode: ReadMode) -> Result<Scan, StoreError> {
        let _ = (table, mode);
        unimplemented!()
    }

    /// The rows whose leading key columns equal `key`, in index order; none if the index is not kept in memory
    /// (filtered, disabled, columnstore).
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn seek(
        self: &Arc<Self>,
        table: ObjectId,
        index_id: i32,
        key: &[Value],
        mode: ReadMode,
    ) -> Result<Option<Scan>, StoreError> {
        let _ = (table, index_id, key, mode);
        unimplemented!()
    }

    /// The rows between two bounds on leading key columns, in index order; none as for [`Transaction::seek`].
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn range(
        self: &Arc<Self>,
        table: ObjectId,
        index_id: i32,
        bounds: (Bound<&[Value]>, Bound<&[Value]>),
        mode: ReadMode,
    ) -> Result<Option<Scan>, StoreError> {
        let _ = (table, index_id, bounds, mode);
        unimplemented!()
    }

    /// The present version of one row; none if it is gone (or passed over).
    ///
    /// # Errors
    /// [`StoreError::Lock`], [`StoreError::NotFound`].
    pub fn fetch(&self, table: ObjectId, row: RowId, mode: ReadMode) -> Result<Option<RowRef>, StoreError> {
        let _ = (table, row, mode);
        unimplemented!()
    }

    /// Rows and pages of a table without looking at its rows.
    #[must_use]
    pub fn allocation(&self, table: ObjectId) -> Option<Allocation> {
        let _ = table;
        unimplemented!()
    }
}

/// A row as it is kept; decoding is by column.
#[derive(Debug, Clone)]
pub struct RowRef {
    id: RowId,
}

impl RowRef {
    /// Its address.
    #[must_use]
    pub fn id(&self) -> RowId {
        self.id
    }

    /// Length of the encoded row in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        unimplemented!()
    }

    /// The value at a column position.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn value(&self, position: usize) -> Result<Value, StoreError> {
        let _ = position;
        unimplemented!()
    }

    /// All values of a table with `columns` columns.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn values(&self, columns: usize) -> Result<Vec<Value>, StoreError> {
        let _ = columns;
        unimplemented!()
    }

    /// Appends the values to `out`, which a loop over rows can reuse.
    ///
    /// # Errors
    /// [`StoreError::BadBytes`].
    pub fn decode_into(&self, columns: usize, out: &mut Vec<Value>) -> Result<(), StoreError> {
        let _ = (columns, out);
        unimplemented!()
    }
}

/// Rows of a table, read while the transaction goes on.
#[derive(Debug)]
pub struct Scan {}

impl Iterator for Scan {
    type Item = Result<RowRef, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}

/// A bulk load into one table.
#[derive(Debug)]
pub struct BulkLoad {}

impl BulkLoad {
    /// Adds a row.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn push(&mut self, row: &[Value]) -> Result<(), StoreError> {
        let _ = row;
        unimplemented!()
    }

    /// Adds the rest and returns how many rows were added.
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn finish(self) -> Result<u64, StoreError> {
        unimplemented!()
    }
}

/// Definition of the table behind an id.
#[allow(dead_code, reason = "used by the operations on rows")]
fn definition(object: &Object) -> Result<&TableDef, StoreError> {
    object.table().ok_or(StoreError::NotFound)
}
