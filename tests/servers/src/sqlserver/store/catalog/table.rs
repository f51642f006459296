//! Tables: columns, indexes, constraints.

use serde::{Deserialize, Serialize};

use super::{ObjectId, serde_value};
use crate::sqlserver::value::SqlType;

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
