//! Rules of one table, bound once per statement: defaults, computed columns, NOT NULL, CHECK, foreign keys.

use std::sync::Arc;

use super::super::super::api::SqlError;
use super::super::super::bind::{self, Binder};
use super::super::super::error::{self, Result};
use super::super::super::plan::{OutCol, X};
use super::super::super::state::Cx;
use super::super::super::{lookup, parse, storage};
use crate::sqlserver::store::catalog::{Object, TableDef};
use crate::sqlserver::store::{CounterKey, ReadMode, Transaction};
use crate::sqlserver::value::{self, CastOptions, SqlType, Value};

/// A bound CHECK constraint.
struct CheckRule {
    name: String,
    column: Option<String>,
    x: X,
}

/// A foreign key of this table or of one that refers to it.
struct KeyRule {
    name: String,
    columns: Vec<usize>,
    other: Arc<Object>,
    other_columns: Vec<usize>,
    other_index: i32,
}

/// A table that a statement changes.
pub(crate) struct Table {
    pub(crate) object: Arc<Object>,
    pub(crate) variable: bool,
    pub(crate) database_name: String,
    pub(crate) qualified: String,
    defaults: Vec<Option<(X, SqlType)>>,
    pub(crate) computed: Vec<(usize, X, SqlType)>,
    checks: Vec<CheckRule>,
    foreign: Vec<KeyRule>,
    pub(crate) identity: Option<usize>,
    pub(crate) rowversion: Option<usize>,
}

impl Table {
    pub(crate) fn open(cx: &mut Cx<'_>, object: Arc<Object>, variable: bool) -> Result<Self> {
        let Some(def) = object.table().cloned() else { return Err(error::unknown_object(&object.name)) };
        let database_name = lookup::database_name(cx, object.database);
        let schema = lookup::schema_name(cx, &object);
        let qualified = if variable { object.name.clone() } else { format!("{schema}.{}", object.name) };
        let cols = bind::table_columns(&object);
        let mut defaults = Vec::with_capacity(def.columns.len());
        let mut computed = Vec::new();
        for (at, column) in def.columns.iter().enumerate() {
            defaults.push(match &column.default {
                Some(d) => Some(bind_text(cx, &object, &d.definition, &[])?),
                None => None,
            });
            if let Some(c) = &column.computed {
                let (x, from) = bind_text(cx, &object, &c.definition, &cols)?;
                computed.push((at, x, from));
            }
        }
        let mut checks = Vec::new();
        for check in def.checks.iter().filter(|c| !c.disabled) {
            let x = bind_condition_text(cx, &object, &check.definition, &cols)?;
            let column = def.position_of_id(check.parent_column_id).map(|at| def.columns[at].name.clone());
            checks.push(CheckRule { name: check.name.clone(), column, x });
        }
        let foreign = foreign_keys(cx, &def)?;
        let identity = def.columns.iter().position(|c| c.identity.is_some());
        let rowversion = def.columns.iter().position(|c| c.ty == SqlType::RowVersion);
        Ok(Self {
            object,
            variable,
            database_name,
            qualified,
            defaults,
            computed,
            checks,
            foreign,
            identity,
            rowversion,
        })
    }

    pub(crate) fn def(&self) -> &TableDef {
        // `open` refuses objects without a table definition.
        self.object.table().map_or(&EMPTY, |t| t)
    }

    pub(crate) fn txn(&self, cx: &mut Cx<'_>) -> Arc<Transaction> {
        if self.variable { cx.st.variable_txn() } else { cx.st.txn() }
    }

    /// Value of a column that an INSERT leaves out.
    pub(crate) fn default_value(&self, at: usize, cx: &mut Cx<'_>) -> Result<Value> {
        let Some((x, from)) = &self.defaults[at] else { return Ok(Value::Null) };
        let value = x.eval(cx, &[])?;
        self.convert(at, &value, from, cx)
    }

    /// Converts a value for a column; too long a text is error 2628.
    pub(crate) fn convert(&self, at: usize, value: &Value, from: &SqlType, cx: &Cx<'_>) -> Result<Value> {
        let column = &self.def().columns[at];
        if value.is_null() {
            return Ok(Value::Null);
        }
        value::assign(value, from, &column.ty, cx.st.settings.date_format).map_err(|e| {
            if e.number != 8152 && e.number != 2628 {
                return e.into();
            }
            let shown = storage::display(value, from);
            let limit = match column.ty {
                SqlType::Char(n, _) | SqlType::NChar(n, _) | SqlType::Binary(n) => usize::from(n),
                SqlType::VarChar(n, _) | SqlType::NVarChar(n, _) | SqlType::VarBinary(n) => n.limit(),
                _ => usize::MAX,
            };
            let cut: String = if from.is_binary() { String::new() } else { shown.chars().take(limit).collect() };
            error::plain(
                2628,
                &format!(
                    "String or binary data would be truncated in table '{}.{}', column '{}'. Truncated value: '{cut}'.",
                    self.database_name, self.qualified, column.name
                ),
            )
        })
    }

    /// Fills in computed columns and rowversion, and checks what concerns this row alone.
    pub(crate) fn complete(&self, row: &mut [Value], cx: &mut Cx<'_>, verb: &str) -> Result<()> {
        self.fill(row, cx)?;
        self.check_nulls(row, verb)?;
        self.check_row(row, cx, verb)
    }

    fn fill(&self, row: &mut [Value], cx: &mut Cx<'_>) -> Result<()> {
        if let Some(at) = self.rowversion {
            let database = self.object.database;
            let next = self.txn(cx).next_rowversion(database);
            row[at] = Value::binary(&next.to_be_bytes());
        }
        for (at, x, from) in &self.computed {
            let value = x.eval(cx, row)?;
            row[*at] = value::cast(&value, from, &self.def().columns[*at].ty, &CastOptions::IMPLICIT)?;
        }
        Ok(())
    }

    fn check_nulls(&self, row: &[Value], verb: &str) -> Result<()> {
        for (column, value) in self.def().columns.iter().zip(row) {
            if value.is_null() && !column.nullable {
                let message = format!(
                    "Cannot insert the value NULL into column '{}', table '{}.{}'; column does not allow nulls. {verb} fails.",
                    column.name, self.database_name, self.qualified
                );
                return Err(error::new(515, 16, 2, &message));
            }
        }
        Ok(())
    }

    fn check_row(&self, row: &[Value], cx: &mut Cx<'_>, verb: &str) -> Result<()> {
        for check in &self.checks {
            if check.x.test(cx, row)? == Some(false) {
                return Err(self.conflict(verb, "CHECK", &check.name, &self.qualified, check.column.as_deref()));
            }
        }
        Ok(())
    }

    /// As [`Table::complete`]; CHECK constraints only where the load asks for them.
    pub(crate) fn complete_bulk(&self, row: &mut [Value], cx: &mut Cx<'_>, check: bool) -> Result<()> {
        self.fill(row, cx)?;
        self.check_nulls(row, "INSERT")?;
        if check { self.check_row(row, cx, "INSERT") } else { Ok(()) }
    }

    /// Checks an existing row against CHECK constraints.
    pub(crate) fn check_only(&self, row: &[Value], cx: &mut Cx<'_>) -> Result<()> {
        self.check_row(row, cx, "ALTER TABLE")
    }

    fn conflict(&self, verb: &str, kind: &str, name: &str, table: &str, column: Option<&str>) -> SqlError {
        let column = column.map_or_else(String::new, |c| format!(", column '{c}'"));
        error::new(
            547,
            16,
            0,
            &format!(
                "The {verb} statement conflicted with the {kind} constraint \"{name}\". The conflict occurred in database \"{}\", table \"{table}\"{column}.",
                self.database_name
            ),
        )
    }

    /// Checks that referenced rows exist, after the statement's rows are in place.
    pub(crate) fn check_references(&self, row: &[Value], cx: &mut Cx<'_>, verb: &str) -> Result<()> {
        for rule in &self.foreign {
            let key: Vec<Value> = rule.columns.iter().map(|at| row[*at].clone()).collect();
            if key.iter().any(Value::is_null) || rule.finds(&key, cx)? {
                continue;
            }
            let kind = if rule.other.id == self.object.id { "FOREIGN KEY SAME TABLE" } else { "FOREIGN KEY" };
            let table = qualified(cx, &rule.other);
            let column = match (&rule.other_columns[..], rule.other.table()) {
                ([one], Some(def)) => Some(def.columns[*one].name.clone()),
                _ => None,
            };
            return Err(self.conflict(verb, kind, &rule.name, &table, column.as_deref()));
        }
        Ok(())
    }

    pub(crate) fn has_references(&self) -> bool {
        !self.foreign.is_empty()
    }

    /// The next identity value as a value of its column.
    pub(crate) fn next_identity(&self, at: usize, cx: &mut Cx<'_>) -> Result<Value> {
        let column = &self.def().columns[at];
        let Some(identity) = column.identity else { return Ok(Value::Null) };
        let (low, high) = identity_range(&column.ty);
        let key = CounterKey::Identity(self.object.id);
        let next = self.txn(cx).next_counter(key, identity.seed, identity.increment, low, high).map_err(|_| {
            error::plain(
                8115,
                &format!("Arithmetic overflow error converting IDENTITY to data type {}.", column.ty.name()),
            )
        })?;
        integer_value(next, &column.ty)
    }
}

static EMPTY: TableDef = TableDef {
    columns: Vec::new(),
    max_column_id: 0,
    indexes: Vec::new(),
    checks: Vec::new(),
    foreign_keys: Vec::new(),
};

impl KeyRule {
    fn finds(&self, key: &[Value], cx: &mut Cx<'_>) -> Result<bool> {
        let txn = cx.st.txn();
        let found = txn.seek(self.other.id, self.other_index, key, ReadMode::Committed);
        let scan = match found.map_err(|e| storage::error(cx, e))? {
            Some(scan) => scan,
            None => txn.scan(self.other.id, ReadMode::Committed).map_err(|e| storage::error(cx, e))?,
        };
        let Some(def) = self.other.table() else { return Ok(false) };
        for item in scan {
            let item = item.map_err(|e| storage::error(cx, e))?;
            let mut equal = true;
            for (at, wanted) in self.other_columns.iter().zip(key) {
                let value = item.value(*at).map_err(|e| storage::error(cx, e))?;
                equal &= value::compare(&value, wanted, &def.columns[*at].ty) == std::cmp::Ordering::Equal;
            }
            if equal {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn foreign_keys(cx: &mut Cx<'_>, def: &TableDef) -> Result<Vec<KeyRule>> {
    let txn = cx.st.txn();
    let mut rules = Vec::new();
    for key in def.foreign_keys.iter().filter(|k| !k.disabled) {
        let Some(other) = txn.object(key.referenced_table) else { continue };
        let Some(other_def) = other.table() else { continue };
        // The seek takes key values in index order.
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (mine, theirs) in key.columns.iter().zip(&key.referenced_columns) {
            let (Some(mine), Some(theirs)) = (def.position_of_id(*mine), other_def.position_of_id(*theirs)) else {
                return Err(error::unsupported("foreign key"));
            };
            pairs.push((mine, theirs));
        }
        if let Some(index) = other_def.indexes.iter().find(|i| i.id == key.key_index_id) {
            let rank = |theirs: usize| {
                index
                    .keys
                    .iter()
                    .position(|k| other_def.position_of_id(k.column_id) == Some(theirs))
                    .unwrap_or(usize::MAX)
            };
            pairs.sort_by_key(|(_, theirs)| rank(*theirs));
        }
        rules.push(KeyRule {
            name: key.name.clone(),
            columns: pairs.iter().map(|p| p.0).collect(),
            other_columns: pairs.iter().map(|p| p.1).collect(),
            other_index: key.key_index_id,
            other: Arc::clone(&other),
        });
    }
    Ok(rules)
}

/// `schema.table` of an object.
pub(crate) fn qualified(cx: &mut Cx<'_>, object: &Object) -> String {
    let schema = lookup::schema_name(cx, object);
    format!("{schema}.{}", object.name)
}

/// Values that an identity of this type can take.
pub(crate) fn identity_range(ty: &SqlType) -> (i128, i128) {
    match ty {
        SqlType::TinyInt => (0, 255),
        SqlType::SmallInt => (i128::from(i16::MIN), i128::from(i16::MAX)),
        SqlType::Int => (i128::from(i32::MIN), i128::from(i32::MAX)),
        SqlType::BigInt => (i128::from(i64::MIN), i128::from(i64::MAX)),
        SqlType::Decimal { precision, .. } => {
            let limit = 10_i128.pow(u32::from(*precision)) - 1;
            (-limit, limit)
        }
        _ => (0, 0),
    }
}

/// An integer as a value of an integer or decimal type.
pub(crate) fn integer_value(n: i128, ty: &SqlType) -> Result<Value> {
    let out_of_range =
        |_| error::plain(8115, &format!("Arithmetic overflow error converting IDENTITY to data type {}.", ty.name()));
    Ok(match ty {
        SqlType::TinyInt => Value::TinyInt(u8::try_from(n).map_err(out_of_range)?),
        SqlType::SmallInt => Value::SmallInt(i16::try_from(n).map_err(out_of_range)?),
        SqlType::Int => Value::Int(i32::try_from(n).map_err(out_of_range)?),
        SqlType::BigInt => Value::BigInt(i64::try_from(n).map_err(out_of_range)?),
        SqlType::Decimal { precision, scale } => {
            Value::Decimal(value::Decimal::new(n * 10_i128.pow(u32::from(*scale)), *precision, *scale))
        }
        _ => return Err(error::unsupported("identity type")),
    })
}

/// A number of an integer or decimal value.
pub(crate) fn integer_of(value: &Value) -> Option<i128> {
    match value {
        Value::Decimal(d) => Some(d.unscaled() / 10_i128.pow(u32::from(d.scale()))),
        other => other.as_i64().map(i128::from),
    }
}

fn with_table<T>(
    cx: &mut Cx<'_>,
    object: &Object,
    cols: &[OutCol],
    body: impl FnOnce(&mut Binder<'_, '_>, usize) -> Result<T>,
) -> Result<T> {
    let mut binder = Binder::new(cx);
    binder.database = object.database;
    binder.chained = true;
    let scope = binder.new_scope(None);
    if !cols.is_empty() {
        binder.add_source(scope, &object.name, None, cols.to_vec())?;
    }
    body(&mut binder, scope)
}

/// Binds a stored expression over the table's columns.
pub(crate) fn bind_text(cx: &mut Cx<'_>, object: &Object, text: &str, cols: &[OutCol]) -> Result<(X, SqlType)> {
    let expr = parse::parse_expression(text)?;
    with_table(cx, object, cols, |b, scope| b.bind_scalar(&expr, scope)).map(|t| (t.x, t.ty))
}

/// Binds a stored condition over the table's columns.
pub(crate) fn bind_condition_text(cx: &mut Cx<'_>, object: &Object, text: &str, cols: &[OutCol]) -> Result<X> {
    let expr = parse::parse_expression(text)?;
    with_table(cx, object, cols, |b, scope| b.bind_condition(&expr, scope))
}
