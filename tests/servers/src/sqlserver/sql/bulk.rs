//! INSERT BULK: the statement announces the load, the wire delivers the rows.

use super::api::ColumnMeta;
use super::bind::{Binder, same_name};
use super::error::{self, Result};
use super::exec::dml::{Table, integer_of};
use super::exec::{self, Flow, transaction, trigger};
use super::plan::Row;
use super::state::Cx;
use super::stmt::InsertBulk;
use super::{lookup, permission, storage};
use crate::sqlserver::store::BulkLoad as StoreLoad;
use crate::sqlserver::value::{SqlType, Value};

/// Keeps what INSERT BULK announced until the rows come.
pub(crate) fn announce(cx: &mut Cx<'_>, bulk: &InsertBulk) -> Result<Flow> {
    transaction::check_writable(cx)?;
    let object = {
        let mut binder = Binder::new(cx);
        lookup::table_or_view(&mut binder, &bulk.table)?
    };
    if object.table().is_none() {
        return Err(error::unsupported("INSERT BULK into a view"));
    }
    permission::check_object(cx, &object, "INSERT")?;
    let def = object.table().cloned().unwrap_or_default();
    for (name, _) in &bulk.columns {
        let Some(column) = def.columns.iter().find(|c| same_name(&c.name, name)) else {
            return Err(error::unknown_column(name));
        };
        if column.computed.is_some() || column.ty == SqlType::RowVersion {
            return Err(error::plain(
                271,
                &format!(
                    "The column \"{name}\" cannot be modified because it is either a computed column or is the result of a UNION operator."
                ),
            ));
        }
    }
    cx.st.bulk = Some(bulk.clone());
    exec::done_plain(cx)
}

/// A load under way, apart from the session that it belongs to.
pub(crate) struct Load {
    table: Table,
    load: Option<StoreLoad>,
    /// Table position and wire type of each incoming column.
    mapping: Vec<(usize, SqlType)>,
    missing: Vec<usize>,
    keep_nulls: bool,
    check: bool,
    fire: bool,
    kept: Vec<Row>,
    rows: u64,
}

impl Load {
    /// Opens the announced load for columns as COLMETADATA gives them.
    pub(crate) fn open(cx: &mut Cx<'_>, columns: &[ColumnMeta]) -> Result<Self> {
        let Some(bulk) = cx.st.bulk.take() else {
            return Err(error::new(
                4022,
                16,
                1,
                "Bulk load data was expected but not sent. The batch will be terminated.",
            ));
        };
        transaction::implicit(cx);
        let object = {
            let mut binder = Binder::new(cx);
            lookup::table_or_view(&mut binder, &bulk.table)?
        };
        let option = |name: &str| bulk.options.iter().any(|o| o == name);
        let hints = super::ast::Hints { tablock: option("tablock"), ..super::ast::Hints::default() };
        if !hints.tablock {
            storage::write_lock(cx, &object, hints)?;
        }
        let table = Table::open(cx, object, false)?;
        let def = table.def().clone();
        let mut mapping = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            // Some clients leave names out of COLMETADATA; then the order of INSERT BULK counts.
            let name =
                if column.name.is_empty() { bulk.columns.get(at).map_or("", |c| c.0.as_str()) } else { &column.name };
            let Some(position) = def.columns.iter().position(|c| same_name(&c.name, name)) else {
                return Err(error::unknown_column(name));
            };
            mapping.push((position, column.ty));
        }
        if !bulk.columns.is_empty() && bulk.columns.len() != mapping.len() {
            return Err(error::plain(4816, "Invalid column type from bcp client for colid 1."));
        }
        let missing = (0..def.columns.len()).filter(|at| !mapping.iter().any(|m| m.0 == *at)).collect();
        let txn = cx.st.txn();
        let load = txn.bulk_load(table.object.id).map_err(|e| storage::error(cx, e))?;
        Ok(Self {
            table,
            load: Some(load),
            mapping,
            missing,
            keep_nulls: option("keep_nulls"),
            check: option("check_constraints"),
            fire: option("fire_triggers"),
            kept: Vec::new(),
            rows: 0,
        })
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cx: &mut Cx<'_>, values: &[Value]) -> Result<()> {
        if values.len() != self.mapping.len() {
            return Err(error::plain(
                4804,
                "While reading current row from host, a premature end-of-message was encountered--an incoming data stream was interrupted when the server expected to see more data. The host program may have terminated.",
            ));
        }
        let width = self.table.def().columns.len();
        let mut row = vec![Value::Null; width];
        for ((at, ty), value) in self.mapping.iter().zip(values) {
            row[*at] = self.table.convert(*at, value, ty, cx).map_err(|e| bulk_error(e, *at))?;
            // Without KEEP_NULLS a NULL takes the column's default.
            if row[*at].is_null() && !self.keep_nulls && self.table.identity != Some(*at) {
                row[*at] = self.table.default_value(*at, cx)?;
            }
        }
        for at in &self.missing {
            row[*at] = if self.table.identity == Some(*at) {
                self.table.next_identity(*at, cx)?
            } else {
                self.table.default_value(*at, cx)?
            };
        }
        if let Some(at) = self.table.identity.filter(|at| !self.missing.contains(at)) {
            if row[at].is_null() {
                row[at] = self.table.next_identity(at, cx)?;
            } else if let Some(n) = integer_of(&row[at]) {
                let key = crate::sqlserver::store::CounterKey::Identity(self.table.object.id);
                if cx.st.engine.store.counter(key).is_none_or(|last| n > last) {
                    cx.st.txn().set_counter(key, Some(n));
                }
            }
        }
        self.table.complete_bulk(&mut row, cx, self.check)?;
        if let Some(load) = &mut self.load {
            load.push(&row).map_err(|e| storage::error(cx, e))?;
        }
        if self.fire || self.check && self.table.has_references() {
            self.kept.push(row);
        }
        self.rows += 1;
        Ok(())
    }

    /// Ends the load.
    pub(crate) fn finish(mut self, cx: &mut Cx<'_>) -> Result<u64> {
        if let Some(load) = self.load.take() {
            load.finish().map_err(|e| storage::error(cx, e))?;
        }
        if self.check {
            for row in &self.kept {
                self.table.check_references(row, cx, "INSERT")?;
            }
        }
        if self.fire {
            let object = std::sync::Arc::clone(&self.table.object);
            let triggers = trigger::of_table(cx, &object, trigger::Event::Insert);
            let changes = exec::dml::Changes { count: self.rows, inserted: self.kept, ..exec::dml::Changes::default() };
            trigger::fire(cx, &object, trigger::Event::Insert, changes, &triggers)?;
        }
        cx.st.rowcount = self.rows;
        Ok(self.rows)
    }
}

/// Bulk load reports values that do not fit by its own numbers.
fn bulk_error(e: super::api::SqlError, at: usize) -> super::api::SqlError {
    if e.number == 2628 {
        return error::plain(4863, &format!("Bulk load data conversion error (truncation) for column {}.", at + 1));
    }
    e
}
