//! Indexes in memory: ordered maps from key bytes to rows.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::super::catalog::{Index, TableDef};
use super::super::error::StoreError;
use super::super::row::{Reader, decode_column};
use super::RowId;
use crate::sqlserver::value::{SqlType, Value, sort_key};

/// Bytes that order as the index orders.
pub(in super::super) type KeyBytes = Box<[u8]>;

/// One key column.
#[derive(Debug, Clone)]
struct KeyColumn {
    position: usize,
    ty: SqlType,
    descending: bool,
}

/// An index over a table's storage.
#[derive(Debug)]
pub(in super::super) struct IndexKeys {
    pub(in super::super) definition: Index,
    columns: Vec<KeyColumn>,
    pub(in super::super) entries: BTreeMap<KeyBytes, RowId>,
}

impl IndexKeys {
    /// An empty index; none if the store does not keep it (filtered, disabled, columnstore).
    pub(in super::super) fn new(table: &TableDef, index: &Index) -> Option<Self> {
        if index.disabled || index.columnstore || index.filter.is_some() || index.keys.is_empty() {
            return None;
        }
        let columns = index
            .keys
            .iter()
            .map(|key| {
                let position = table.position_of_id(key.column_id)?;
                Some(KeyColumn { position, ty: table.columns[position].ty, descending: key.descending })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self { definition: index.clone(), columns, entries: BTreeMap::new() })
    }

    /// Whether an index kept for `old` definitions can go on under `new` ones.
    pub(in super::super) fn serves(&self, table: &TableDef, index: &Index) -> bool {
        Self::new(table, index).is_some_and(|fresh| {
            fresh.columns.len() == self.columns.len()
                && fresh.definition.unique == self.definition.unique
                && fresh
                    .columns
                    .iter()
                    .zip(&self.columns)
                    .all(|(a, b)| a.position == b.position && a.ty == b.ty && a.descending == b.descending)
        })
    }

    /// Key of a row, with the row's address behind it where keys may repeat.
    pub(in super::super) fn key_of(&self, row: &[u8], id: RowId) -> Result<KeyBytes, StoreError> {
        let mut key = Vec::with_capacity(16);
        let mut scratch = Vec::new();
        for column in &self.columns {
            append(&decode_column(row, column.position)?, column, &mut scratch, &mut key);
        }
        if !self.definition.unique {
            key.extend_from_slice(&id.0.to_be_bytes());
        }
        Ok(key.into_boxed_slice())
    }

    /// Bytes with which the keys of all rows with these leading values begin.
    pub(in super::super) fn prefix(&self, values: &[Value]) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        let mut scratch = Vec::new();
        for (value, column) in values.iter().zip(&self.columns) {
            append(value, column, &mut scratch, &mut key);
        }
        key
    }

    /// Byte bounds of the rows between two bounds on leading values, both in index order.
    pub(in super::super) fn byte_bounds(&self, bounds: (Bound<&[Value]>, Bound<&[Value]>)) -> KeyRange {
        let mut empty = false;
        let lower = match bounds.0 {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => Bound::Included(self.prefix(values).into_boxed_slice()),
            Bound::Excluded(values) => match after_prefix(self.prefix(values)) {
                Some(key) => Bound::Included(key),
                None => {
                    empty = true;
                    Bound::Unbounded
                }
            },
        };
        let upper = match bounds.1 {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => after_prefix(self.prefix(values)).map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Excluded(values) => Bound::Excluded(self.prefix(values).into_boxed_slice()),
        };
        KeyRange { lower, upper, empty }
    }

    /// The key values inside a row, for messages.
    pub(in super::super) fn values_of(&self, row: &[u8]) -> Vec<Value> {
        self.columns.iter().map(|column| decode_column(row, column.position).unwrap_or(Value::Null)).collect()
    }
}

/// A range of key bytes.
#[derive(Debug, Clone)]
pub(in super::super) struct KeyRange {
    lower: Bound<KeyBytes>,
    upper: Bound<KeyBytes>,
    /// The lower bound lies above every key.
    empty: bool,
}

impl KeyRange {
    /// Whether a key lies inside.
    pub(in super::super) fn contains(&self, key: &[u8]) -> bool {
        let above = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(bound) => key >= &**bound,
            Bound::Excluded(bound) => key > &**bound,
        };
        above && self.is_below_upper(key)
    }

    fn is_below_upper(&self, key: &[u8]) -> bool {
        if self.empty {
            return false;
        }
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => key <= &**bound,
            Bound::Excluded(bound) => key < &**bound,
        }
    }

    /// The entries inside. (`BTreeMap::range` panics on an inverted range, which callers may ask for.)
    pub(in super::super) fn entries<'a>(
        &'a self,
        entries: &'a BTreeMap<KeyBytes, RowId>,
    ) -> impl Iterator<Item = (&'a KeyBytes, RowId)> + 'a {
        entries
            .range::<[u8], _>((self.lower.as_ref().map(|it| &**it), Bound::Unbounded))
            .take_while(|(key, _)| self.is_below_upper(key))
            .map(|(key, row)| (key, *row))
    }
}

/// The smallest key above all keys that begin with `prefix`; none if there is no such key.
fn after_prefix(mut prefix: Vec<u8>) -> Option<KeyBytes> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return Some(prefix.into_boxed_slice());
        }
    }
    None
}

fn append(value: &Value, column: &KeyColumn, scratch: &mut Vec<u8>, key: &mut Vec<u8>) {
    if column.descending {
        scratch.clear();
        sort_key(value, &column.ty, scratch);
        key.extend(scratch.iter().map(|byte| !byte));
    } else {
        sort_key(value, &column.ty, key);
    }
}

/// Whether row bytes decode as a whole: what comes from the log is checked once, when it enters a page.
pub(in super::super) fn is_whole_row(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        if reader.skip().is_err() {
            return false;
        }
    }
    true
}
