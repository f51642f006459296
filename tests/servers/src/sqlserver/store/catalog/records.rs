//! The records of the catalog: plain documents, each changed as a whole inside a transaction.
//!
//! The store keeps what `sys.*` views show and enforces what it must (names, keys, locks); the meaning of
//! expression texts, module texts and permissions belongs to the T-SQL layer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Membership, Permission, PermissionKey, Principal, Scope, TableDef, serde_value};
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
