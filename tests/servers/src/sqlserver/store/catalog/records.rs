//! The records of the catalog: plain documents, each changed as a whole inside a transaction.
//!
//! The store keeps what `sys.*` views show and enforces what it must (names, keys, locks); the meaning of
//! expression texts, module texts and permissions belongs to the T-SQL layer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::serde_value;
use crate::sqlserver::value::{SqlType, Value};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i32);
    };
}

id!(
    /// `database_id`.
    DatabaseId
);
id!(
    /// `schema_id`, unique within its database.
    SchemaId
);
id!(
    /// `object_id` of tables, modules, sequences and constraints; never used twice in a store.
    ObjectId
);
id!(
    /// `principal_id`, unique within its server or database.
    PrincipalId
);

/// `master`.
pub const MASTER: DatabaseId = DatabaseId(1);
/// `tempdb`; nothing in it is logged.
pub const TEMPDB: DatabaseId = DatabaseId(2);
/// Schema `dbo` of each database.
pub const DBO_SCHEMA: SchemaId = SchemaId(1);
/// First id of a schema made by CREATE SCHEMA.
pub const FIRST_USER_SCHEMA: i32 = 5;

/// Microseconds since 1970-01-01 UTC.
pub type UtcMicros = i64;

/// A database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// Its id.
    pub id: DatabaseId,
    /// Its name.
    pub name: String,
    /// Default collation.
    pub collation: String,
    /// When it was created.
    pub create_date: UtcMicros,
}

/// A schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Its database.
    pub database: DatabaseId,
    /// Its id.
    pub id: SchemaId,
    /// Its name.
    pub name: String,
    /// Owner.
    pub owner: PrincipalId,
}

/// A schema-scoped object with an id of its own (constraints live inside their table).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Its database.
    pub database: DatabaseId,
    /// Its id; from [`Store::allocate_object_id`](crate::sqlserver::store::Store::allocate_object_id).
    pub id: ObjectId,
    /// Its schema.
    pub schema: SchemaId,
    /// Its name; `#name` as the user wrote it for temporary tables.
    pub name: String,
    /// Session that owns a local temporary table; none for everything else.
    pub session: Option<i32>,
    /// Owner if it differs from the schema's.
    pub owner: Option<PrincipalId>,
    /// When it was created.
    pub create_date: UtcMicros,
    /// When its definition last changed.
    pub modify_date: UtcMicros,
    /// What it is.
    pub body: ObjectBody,
}

/// Kind of an object with its definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ObjectBody {
    /// A table (`U`).
    Table(TableDef),
    /// A table type (`TT`): the definition only, without rows.
    TableType(TableDef),
    /// A view (`V`).
    View(Module),
    /// A procedure (`P`).
    Procedure(Module),
    /// A scalar function (`FN`).
    ScalarFunction(Module),
    /// An inline table function (`IF`).
    InlineFunction(Module),
    /// A table function with statements (`TF`).
    TableFunction(Module),
    /// A DML trigger (`TR`).
    Trigger(TriggerDef),
    /// A sequence (`SO`).
    Sequence(SequenceDef),
    /// A synonym (`SN`) with the name that it stands for.
    Synonym(String),
}

impl ObjectBody {
    /// `sys.objects.type`, without padding.
    #[must_use]
    pub fn type_code(&self) -> &'static str {
        match self {
            Self::Table(_) => "U",
            Self::TableType(_) => "TT",
            Self::View(_) => "V",
            Self::Procedure(_) => "P",
            Self::ScalarFunction(_) => "FN",
            Self::InlineFunction(_) => "IF",
            Self::TableFunction(_) => "TF",
            Self::Trigger(_) => "TR",
            Self::Sequence(_) => "SO",
            Self::Synonym(_) => "SN",
        }
    }
}

impl Object {
    /// The table definition of a table.
    #[must_use]
    pub fn table(&self) -> Option<&TableDef> {
        match &self.body {
            ObjectBody::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The object to which this one belongs (a trigger's table).
    #[must_use]
    pub fn parent(&self) -> Option<ObjectId> {
        match &self.body {
            ObjectBody::Trigger(trigger) => Some(trigger.parent),
            _ => None,
        }
    }
}

/// A module: its text and the settings under which it was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// Text of the whole CREATE statement.
    pub definition: String,
    /// QUOTED_IDENTIFIER at creation.
    pub uses_quoted_identifier: bool,
    /// ANSI_NULLS at creation.
    pub uses_ansi_nulls: bool,
    /// WITH SCHEMABINDING.
    pub schema_bound: bool,
    /// EXECUTE AS principal; none is CALLER.
    pub execute_as: Option<PrincipalId>,
}

/// A DML trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerDef {
    /// Table or view.
    pub parent: ObjectId,
    /// Fires on INSERT.
    pub on_insert: bool,
    /// Fires on UPDATE.
    pub on_update: bool,
    /// Fires on DELETE.
    pub on_delete: bool,
    /// INSTEAD OF, else AFTER.
    pub instead_of: bool,
    /// DISABLE TRIGGER was applied.
    pub disabled: bool,
    /// Its text.
    pub module: Module,
}

/// A sequence; its current value is a counter of the store, see
/// [`Store::counter`](crate::sqlserver::store::Store::counter).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SequenceDef {
    /// Integer or decimal type.
    #[serde(with = "serde_value::sql_type")]
    pub ty: SqlType,
    /// START WITH.
    pub start: i128,
    /// INCREMENT BY.
    pub increment: i128,
    /// MINVALUE.
    pub minimum: i128,
    /// MAXVALUE.
    pub maximum: i128,
    /// CYCLE.
    pub cycle: bool,
    /// CACHE size; none is the default.
    pub cache: Option<i32>,
}

/// Definition of a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableDef {
    /// Columns; a row has one value per column in this order.
    pub columns: Vec<Column>,
    /// Greatest column id ever given out in this table.
    pub max_column_id: i32,
    /// PRIMARY KEY and UNIQUE constraints and indexes. A table without an index of id 1 is a heap.
    pub indexes: Vec<Index>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// FOREIGN KEY constraints.
    pub foreign_keys: Vec<ForeignKey>,
}

impl TableDef {
    /// Position of a column by its name, without regard to case.
    #[must_use]
    pub fn column_position(&self, name: &str) -> Option<usize> {
        let folded = super::fold_name(name);
        self.columns.iter().position(|column| super::fold_name(&column.name) == folded)
    }

    /// Position of a column by its id.
    #[must_use]
    pub fn position_of_id(&self, column_id: i32) -> Option<usize> {
        self.columns.iter().position(|column| column.id == column_id)
    }

    /// The clustered index; none makes the table a heap.
    #[must_use]
    pub fn clustered_index(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| index.id == 1)
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// `column_id`, from 1, never reused within its table.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Its type; character types carry their collation.
    #[serde(with = "serde_value::sql_type")]
    pub ty: SqlType,
    /// Spelling of the declared type where it differs from the system name (`sysname`, `numeric`).
    pub declared_type: Option<String>,
    /// NULL allowed.
    pub nullable: bool,
    /// DEFAULT constraint.
    pub default: Option<DefaultConstraint>,
    /// IDENTITY.
    pub identity: Option<Identity>,
    /// Computed column.
    pub computed: Option<Computed>,
    /// ROWGUIDCOL.
    pub rowguidcol: bool,
}

/// A DEFAULT constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultConstraint {
    /// Object id of the constraint.
    pub object_id: ObjectId,
    /// Its name.
    pub name: String,
    /// The server made the name.
    pub system_named: bool,
    /// Expression text, in parentheses as the catalog shows it.
    pub definition: String,
}

/// IDENTITY of a column; the last value is a counter of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// First value.
    pub seed: i128,
    /// Step.
    pub increment: i128,
    /// NOT FOR REPLICATION.
    pub not_for_replication: bool,
}

/// Expression of a computed column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Computed {
    /// Expression text in parentheses.
    pub definition: String,
    /// PERSISTED.
    pub persisted: bool,
}

/// An index, or the index behind a PRIMARY KEY or UNIQUE constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// `index_id` within the table: 1 is the clustered index, others count from 2.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Unique.
    pub unique: bool,
    /// IGNORE_DUP_KEY; the T-SQL layer acts on it.
    pub ignore_dup_key: bool,
    /// ALTER INDEX ... DISABLE.
    pub disabled: bool,
    /// Key columns in order.
    pub keys: Vec<IndexKey>,
    /// Included columns, by column id.
    pub included: Vec<i32>,
    /// Predicate text of a filtered index. The store does not evaluate it: a filtered unique index is not enforced here.
    pub filter: Option<String>,
    /// Columnstore index: metadata only, never enforced.
    pub columnstore: bool,
    /// Fill factor; 0 is the default.
    pub fill_factor: u8,
    /// PAGE or ROW compression: `data_compression` code 0, 1 or 2.
    pub data_compression: u8,
    /// The constraint to which it belongs.
    pub constraint: Option<KeyConstraint>,
}

/// One key column of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexKey {
    /// Column id.
    pub column_id: i32,
    /// DESC.
    pub descending: bool,
}

/// A PRIMARY KEY or UNIQUE constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyConstraint {
    /// Object id of the constraint.
    pub object_id: ObjectId,
    /// PRIMARY KEY, else UNIQUE. Its name is the index name.
    pub primary: bool,
    /// The server made the name.
    pub system_named: bool,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Object id of the constraint.
    pub object_id: ObjectId,
    /// Its name.
    pub name: String,
    /// The server made the name.
    pub system_named: bool,
    /// Expression text in parentheses.
    pub definition: String,
    /// Column id of a column-level constraint; 0 for a table constraint.
    pub parent_column_id: i32,
    /// NOCHECK.
    pub disabled: bool,
    /// `is_not_trusted`.
    pub not_trusted: bool,
}

/// What a FOREIGN KEY does when the referenced row changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ReferentialAction {
    /// NO ACTION.
    #[default]
    NoAction,
    /// CASCADE.
    Cascade,
    /// SET NULL.
    SetNull,
    /// SET DEFAULT.
    SetDefault,
}

/// A FOREIGN KEY constraint. The T-SQL layer enforces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Object id of the constraint.
    pub object_id: ObjectId,
    /// Its name.
    pub name: String,
    /// The server made the name.
    pub system_named: bool,
    /// Column ids here.
    pub columns: Vec<i32>,
    /// Referenced table.
    pub referenced_table: ObjectId,
    /// Column ids there, in the same order.
    pub referenced_columns: Vec<i32>,
    /// `index_id` of the referenced key.
    pub key_index_id: i32,
    /// ON DELETE.
    pub on_delete: ReferentialAction,
    /// ON UPDATE.
    pub on_update: ReferentialAction,
    /// NOCHECK.
    pub disabled: bool,
    /// `is_not_trusted`.
    pub not_trusted: bool,
}

/// Where a principal, membership or permission lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// The server.
    Server,
    /// A database.
    Database(DatabaseId),
}

/// Kind of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrincipalKind {
    /// SQL login (`S` in `sys.server_principals`) or SQL user (`S` in `sys.database_principals`).
    Sql,
    /// Server or database role (`R`).
    Role,
}

/// A login, user or role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Principal {
    /// Where it lives.
    pub scope: Scope,
    /// Its id.
    pub id: PrincipalId,
    /// Its name.
    pub name: String,
    /// Kind.
    pub kind: PrincipalKind,
    /// Security identifier; a user has the one of its login.
    pub sid: Vec<u8>,
    /// Owner of a role.
    pub owner: Option<PrincipalId>,
    /// Default schema of a user.
    pub default_schema: Option<String>,
    /// Default database of a login.
    pub default_database: Option<String>,
    /// Salted hash of a login's password, in the form of the T-SQL layer; never the password.
    pub password_hash: Option<Vec<u8>>,
    /// Disabled login.
    pub disabled: bool,
    /// Fixed role.
    pub fixed_role: bool,
    /// When it was created.
    pub create_date: UtcMicros,
    /// When it was last changed.
    pub modify_date: UtcMicros,
}

/// Membership in a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Membership {
    /// Where both live.
    pub scope: Scope,
    /// The role.
    pub role: PrincipalId,
    /// The member.
    pub member: PrincipalId,
}

/// State of a permission row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PermissionState {
    /// GRANT (`G`).
    Grant,
    /// GRANT WITH GRANT OPTION (`W`).
    GrantWithOption,
    /// DENY (`D`).
    Deny,
}

/// Securable, grantee and name of a permission.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PermissionKey {
    /// Where it lives.
    pub scope: Scope,
    /// `class`: 0 database, 1 object or column, 3 schema, 4 database principal, 100 server, 101 server principal.
    pub class: u8,
    /// `major_id`.
    pub major_id: i32,
    /// `minor_id`: column id, or 0.
    pub minor_id: i32,
    /// Grantee.
    pub grantee: PrincipalId,
    /// Permission name in capitals, such as `SELECT`.
    pub permission: String,
}

/// A permission row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// What is granted to whom.
    pub key: PermissionKey,
    /// Grantor.
    pub grantor: PrincipalId,
    /// Grant or deny.
    pub state: PermissionState,
}

/// What an extended property describes, and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PropertyKey {
    /// Its database.
    pub database: DatabaseId,
    /// `class`: 0 database, 1 object or column, 3 schema, 4 principal, 7 index.
    pub class: u8,
    /// `major_id`.
    pub major_id: i32,
    /// `minor_id`.
    pub minor_id: i32,
    /// Name, folded for comparison; the spelling is in the record.
    pub folded_name: String,
}

/// An extended property.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtendedProperty {
    /// What it describes.
    pub key: PropertyKey,
    /// Its name as given.
    pub name: String,
    /// Its value; NULL or any type that `sql_variant` takes.
    #[serde(with = "serde_value::value")]
    pub value: Value,
}

/// A free setting of the T-SQL layer (database options, `sp_configure`), as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Where it lives.
    pub scope: Scope,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Identity of a catalog record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CatalogKey {
    /// A database.
    Database(DatabaseId),
    /// A schema.
    Schema(DatabaseId, SchemaId),
    /// An object.
    Object(ObjectId),
    /// A principal.
    Principal(Scope, PrincipalId),
    /// A membership.
    Membership(Membership),
    /// A permission.
    Permission(PermissionKey),
    /// An extended property.
    Property(PropertyKey),
    /// A setting.
    Setting(Scope, String),
}

/// A catalog record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CatalogRecord {
    /// A database.
    Database(Arc<Database>),
    /// A schema.
    Schema(Arc<Schema>),
    /// An object.
    Object(Arc<Object>),
    /// A principal.
    Principal(Arc<Principal>),
    /// A membership.
    Membership(Membership),
    /// A permission.
    Permission(Arc<Permission>),
    /// An extended property.
    Property(Arc<ExtendedProperty>),
    /// A setting.
    Setting(Arc<Setting>),
}

impl CatalogRecord {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> CatalogKey {
        match self {
            Self::Database(it) => CatalogKey::Database(it.id),
            Self::Schema(it) => CatalogKey::Schema(it.database, it.id),
            Self::Object(it) => CatalogKey::Object(it.id),
            Self::Principal(it) => CatalogKey::Principal(it.scope, it.id),
            Self::Membership(it) => CatalogKey::Membership(*it),
            Self::Permission(it) => CatalogKey::Permission(it.key.clone()),
            Self::Property(it) => CatalogKey::Property(it.key.clone()),
            Self::Setting(it) => CatalogKey::Setting(it.scope, it.name.clone()),
        }
    }
}

macro_rules! record_from {
    ($($variant:ident),*) => {
        $(impl From<$variant> for CatalogRecord {
            fn from(record: $variant) -> Self {
                Self::$variant(Arc::new(record))
            }
        })*
    };
}
record_from!(Database, Schema, Object, Principal, Permission, Setting);

impl From<ExtendedProperty> for CatalogRecord {
    fn from(record: ExtendedProperty) -> Self {
        Self::Property(Arc::new(record))
    }
}

impl From<Membership> for CatalogRecord {
    fn from(record: Membership) -> Self {
        Self::Membership(record)
    }
}
