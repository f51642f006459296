//! INSERT.

use super::super::super::api::cmd;
use super::super::super::ast::Expr;
use super::super::super::bind::{self, Binder, same_name};
use super::super::super::error::{self, Result};
use super::super::super::plan::{Plan, Row, Step, Typed, X};
use super::super::super::state::Cx;
use super::super::super::stmt::{Insert, InsertSource};
use super::super::super::{storage, typed};
use super::super::{Flow, trigger};
use super::output::{OutputPlan, OutputScope, check_triggers};
use super::{Changes, Table, bind_top, finish, held, open_target, row_limit};
use crate::sqlserver::store::BulkLoad;
use crate::sqlserver::value::{self, SqlType, Value};

/// Puts rows into one table: maps columns, fills defaults, checks, stores.
pub(crate) struct Inserter {
    pub(crate) table: Table,
    /// Table position of each source column.
    mapping: Vec<usize>,
    /// Positions that are not given.
    missing: Vec<usize>,
    pub(super) keep: bool,
    pub(super) instead: bool,
    pub(super) changes: Changes,
    referenced: Vec<Row>,
    load: Option<BulkLoad>,
    last_identity: Option<Value>,
}

impl Inserter {
    /// `columns` is the column list; empty means all that can be given. `width` is the number of values.
    pub(crate) fn new(cx: &mut Cx<'_>, table: Table, columns: &[String], width: usize) -> Result<Self> {
        let mapping = map_columns(cx, &table, columns, width)?;
        let count = table.def().columns.len();
        let missing = (0..count).filter(|at| !mapping.contains(at)).collect();
        Ok(Self {
            table,
            mapping,
            missing,
            keep: false,
            instead: false,
            changes: Changes::default(),
            referenced: Vec::new(),
            load: None,
            last_identity: None,
        })
    }

    /// Loads page by page; for tables that nobody else can read meanwhile.
    pub(crate) fn use_bulk(&mut self, cx: &mut Cx<'_>) -> Result<()> {
        let txn = self.table.txn(cx);
        self.load = Some(txn.bulk_load(self.table.object.id).map_err(|e| storage::error(cx, e))?);
        Ok(())
    }

    /// Adds one row of source values.
    pub(crate) fn add(&mut self, cx: &mut Cx<'_>, source: &[Value], types: &[SqlType]) -> Result<Row> {
        let mut row = super::nulls(self.table.def().columns.len());
        for ((at, value), ty) in self.mapping.iter().zip(source).zip(types) {
            row[*at] = self.table.convert(*at, value, ty, cx)?;
        }
        self.add_row(cx, row)
    }

    /// Adds a row whose given values have their columns' types; fills in the rest.
    pub(super) fn add_row(&mut self, cx: &mut Cx<'_>, mut row: Row) -> Result<Row> {
        for at in self.missing.clone() {
            row[at] = if self.table.identity == Some(at) {
                if self.instead { Value::Int(0) } else { self.generate_identity(cx, at)? }
            } else {
                self.table.default_value(at, cx)?
            };
        }
        if let Some(at) = self.table.identity.filter(|at| self.mapping.contains(at)) {
            self.note_identity(cx, at, &row[at])?;
        }
        self.changes.count += 1;
        if self.instead {
            self.changes.inserted.push(row.clone());
            return Ok(row);
        }
        self.table.complete(&mut row, cx, "INSERT")?;
        self.store(cx, &row)?;
        if self.table.has_references() {
            self.referenced.push(row.clone());
        }
        if self.keep {
            self.changes.inserted.push(row.clone());
        }
        Ok(row)
    }

    fn store(&mut self, cx: &mut Cx<'_>, row: &[Value]) -> Result<()> {
        if let Some(load) = &mut self.load {
            return load.push(row).map_err(|e| storage::error(cx, e));
        }
        let txn = self.table.txn(cx);
        match txn.insert(self.table.object.id, row) {
            Ok(_) => Ok(()),
            Err(e) => Err(storage::error(cx, e)),
        }
    }

    fn generate_identity(&mut self, cx: &mut Cx<'_>, at: usize) -> Result<Value> {
        let value = self.table.next_identity(at, cx)?;
        self.last_identity = Some(value.clone());
        Ok(value)
    }

    /// An explicit identity value beyond the last one moves the counter.
    fn note_identity(&mut self, cx: &mut Cx<'_>, at: usize, value: &Value) -> Result<()> {
        use crate::sqlserver::store::CounterKey;
        let Some(n) = super::integer_of(value) else { return Ok(()) };
        let key = CounterKey::Identity(self.table.object.id);
        let rising = self.table.def().columns[at].identity.is_none_or(|i| i.increment > 0);
        let last = cx.st.engine.store.counter(key);
        if last.is_none_or(|last| if rising { n > last } else { n < last }) {
            self.table.txn(cx).set_counter(key, Some(n));
        }
        self.last_identity = Some(value.clone());
        Ok(())
    }

    /// Checks references and ends the load.
    pub(crate) fn finish(mut self, cx: &mut Cx<'_>) -> Result<Changes> {
        if let Some(load) = self.load.take() {
            load.finish().map_err(|e| storage::error(cx, e))?;
        }
        for row in &self.referenced {
            self.table.check_references(row, cx, "INSERT")?;
        }
        if self.table.identity.is_some()
            && self.changes.count > 0
            && let Some(value) = &self.last_identity
        {
            cx.st.identity_value = Some(value.clone());
            if let Some(scope) = cx.st.scope_identity.last_mut() {
                *scope = Some(value.clone());
            }
        }
        Ok(self.changes)
    }
}

fn map_columns(cx: &Cx<'_>, table: &Table, columns: &[String], width: usize) -> Result<Vec<usize>> {
    let def = table.def();
    let explicit = cx.st.settings.identity_insert == Some(table.object.id);
    let mut mapping = Vec::new();
    if columns.is_empty() {
        for (at, column) in def.columns.iter().enumerate() {
            let generated = column.computed.is_some() || (column.identity.is_some() && !explicit);
            if !generated {
                mapping.push(at);
            }
        }
        if width == usize::MAX {
            // DEFAULT VALUES.
            return Ok(Vec::new());
        }
        if mapping.len() != width {
            if explicit && mapping.len() == width + 1 {
                return Err(explicit_identity_missing(&table.object.name));
            }
            if table.identity.is_some() && mapping.len() + 1 == width {
                return Err(error::plain(
                    8101,
                    &format!(
                        "An explicit value for the identity column in table '{}' can only be specified when a column list is used and IDENTITY_INSERT is ON.",
                        table.object.name
                    ),
                ));
            }
            return Err(error::plain(213, "Column name or number of supplied values does not match table definition."));
        }
        if explicit && table.identity.is_some() {
            return Err(error::plain(
                8101,
                &format!(
                    "An explicit value for the identity column in table '{}' can only be specified when a column list is used and IDENTITY_INSERT is ON.",
                    table.object.name
                ),
            ));
        }
        return Ok(mapping);
    }
    for name in columns {
        let Some(at) = def.columns.iter().position(|c| same_name(&c.name, name)) else {
            return Err(error::unknown_column(name));
        };
        if mapping.contains(&at) {
            return Err(error::plain(
                264,
                &format!(
                    "The column name '{name}' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once. If this statement updates or inserts columns into a view, column aliasing can conceal the duplication in your code."
                ),
            ));
        }
        let column = &def.columns[at];
        if column.identity.is_some() && !explicit {
            return Err(error::plain(
                544,
                &format!(
                    "Cannot insert explicit value for identity column in table '{}' when IDENTITY_INSERT is set to OFF.",
                    table.object.name
                ),
            ));
        }
        if column.computed.is_some() {
            return Err(error::plain(
                271,
                &format!(
                    "The column \"{name}\" cannot be modified because it is either a computed column or is the result of a UNION operator."
                ),
            ));
        }
        mapping.push(at);
    }
    if explicit && table.identity.is_some_and(|at| !mapping.contains(&at)) {
        return Err(explicit_identity_missing(&table.object.name));
    }
    Ok(mapping)
}

fn explicit_identity_missing(table: &str) -> super::super::super::api::SqlError {
    error::plain(
        545,
        &format!(
            "Explicit value must be specified for identity column in table '{table}' either when IDENTITY_INSERT is set to ON or when a replication user is inserting into a NOT FOR REPLICATION identity column."
        ),
    )
}

/// Rows of VALUES: none is DEFAULT.
struct ValueRows {
    rows: Vec<Vec<Option<X>>>,
    types: Vec<Vec<SqlType>>,
}

enum Source {
    Values(ValueRows),
    Plan(Plan),
    Rows(Vec<Row>, Vec<SqlType>),
}

fn bind_values(binder: &mut Binder<'_, '_>, rows: &[Vec<Expr>]) -> Result<ValueRows> {
    let scope = binder.new_scope(None);
    let has_default = rows.iter().flatten().any(|e| matches!(e, Expr::Default));
    if rows.iter().any(|r| r.len() != rows[0].len()) {
        return Err(error::new(
            10709,
            16,
            1,
            "The number of columns for each row in a table value constructor must be the same.",
        ));
    }
    if rows.len() > 1 && !has_default {
        let (cols, bound) = binder.bind_value_rows(rows, scope)?;
        let types: Vec<SqlType> = cols.iter().map(|c| c.ty).collect();
        let count = bound.len();
        let rows = bound.into_iter().map(|r| r.into_iter().map(Some).collect()).collect();
        return Ok(ValueRows { rows, types: vec![types; count] });
    }
    let mut out = ValueRows { rows: Vec::new(), types: Vec::new() };
    for row in rows {
        let (mut items, mut types) = (Vec::new(), Vec::new());
        for expr in row {
            if matches!(expr, Expr::Default) {
                items.push(None);
                types.push(SqlType::Null);
                continue;
            }
            let typed: Typed = binder.bind_scalar(expr, scope)?;
            items.push(Some(typed.x));
            types.push(typed.ty);
        }
        out.rows.push(items);
        out.types.push(types);
    }
    Ok(out)
}

fn check_width(columns: usize, width: usize, values: bool) -> Result<()> {
    if columns == 0 || columns == width {
        return Ok(());
    }
    Err(match (values, width < columns) {
        (true, true) => error::new(
            109,
            15,
            1,
            "There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.",
        ),
        (true, false) => error::new(
            110,
            15,
            1,
            "There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.",
        ),
        (false, true) => error::new(
            120,
            15,
            1,
            "The select list for the INSERT statement contains fewer items than the insert list. The number of SELECT values must match the number of INSERT columns.",
        ),
        (false, false) => error::new(
            121,
            15,
            1,
            "The select list for the INSERT statement contains more items than the insert list. The number of SELECT values must match the number of INSERT columns.",
        ),
    })
}

pub(crate) fn insert(cx: &mut Cx<'_>, insert: &Insert) -> Result<Flow> {
    super::super::transaction::implicit(cx);
    // Rows of a procedure come before the insert's own work.
    let exec_rows = match &insert.source {
        InsertSource::Exec(statement) => Some(super::super::call::rows_of(cx, statement)?),
        _ => None,
    };
    let mut binder = Binder::new(cx);
    binder.define_ctes(&insert.ctes, None)?;
    let opened = open_target(&mut binder, &insert.target, &[], "INSERT")?;
    let top = bind_top(&mut binder, insert.top.as_ref())?;
    let (source, width) = match &insert.source {
        InsertSource::Values(rows) => {
            check_width(insert.columns.len(), rows[0].len(), true)?;
            let rows_bound = bind_values(&mut binder, rows)?;
            (Source::Values(rows_bound), rows[0].len())
        }
        InsertSource::Query(query) => {
            let mut plan = binder.bind_query(query, None)?;
            typed::settle(&mut plan);
            check_width(insert.columns.len(), plan.cols.len(), false)?;
            let width = plan.cols.len();
            (Source::Plan(plan), width)
        }
        InsertSource::Default => {
            (Source::Values(ValueRows { rows: vec![Vec::new()], types: vec![Vec::new()] }), usize::MAX)
        }
        InsertSource::Exec(_) => {
            let (rows, types) = exec_rows.unwrap_or_default();
            let width = types.len();
            (Source::Rows(rows, types), width)
        }
    };
    let cols = bind::table_columns(&opened.object);
    let scope = OutputScope::new(&mut binder, &cols, true, false)?;
    let outputs = scope.bind(&mut binder, &insert.output)?;
    let bulk = opened.hints.tablock || opened.hints.tablockx;
    let triggers = trigger::of_table(cx, &opened.object, trigger::Event::Insert);
    check_triggers(&outputs, !triggers.is_empty(), &opened.object.name)?;
    if opened.object.table().is_none() {
        return trigger::insert_into_view(cx, &opened.object, insert, &triggers);
    }
    let table = Table::open(cx, opened.object, opened.variable)?;
    let mut inserter = Inserter::new(cx, table, &insert.columns, width)?;
    check_rowversion(&inserter, &source)?;
    check_types(&inserter, &source)?;
    inserter.instead = triggers.iter().any(|t| t.instead);
    inserter.keep = !triggers.is_empty();
    if bulk && !inserter.instead && matches!(source, Source::Plan(_)) {
        inserter.use_bulk(cx)?;
    }
    run(cx, inserter, &source, top, outputs, &triggers)
}

fn check_rowversion(inserter: &Inserter, source: &Source) -> Result<()> {
    let Some(at) = inserter.table.rowversion.and_then(|rv| inserter.mapping.iter().position(|m| *m == rv)) else {
        return Ok(());
    };
    let explicit = match source {
        Source::Values(values) => values.rows.iter().any(|r| r.get(at).is_some_and(Option::is_some)),
        _ => true,
    };
    if explicit {
        return Err(error::plain(
            273,
            "Cannot insert an explicit value into a timestamp column. Use INSERT with a column list to exclude the timestamp column, or insert a DEFAULT into the timestamp column.",
        ));
    }
    Ok(())
}

/// Whether each source column converts to its column of the table at all; that is known before there is a row.
///
/// A bare variable is left to its value: the ODBC driver declares a NULL whose type it cannot ask for (this server has no
/// `sp_describe_undeclared_parameters`) as `varchar`, and means the type of the column.
fn check_types(inserter: &Inserter, source: &Source) -> Result<()> {
    let columns = || inserter.mapping.iter().map(|at| &inserter.table.def().columns[*at].ty);
    let check = |from: &SqlType, to: &SqlType| value::check_conversion(from, to, value::Strictness::Implicit);
    match source {
        Source::Values(values) => {
            for (row, types) in values.rows.iter().zip(&values.types) {
                for ((x, from), to) in row.iter().zip(types).zip(columns()) {
                    if !matches!(x, Some(X::Var(_))) {
                        check(from, to)?;
                    }
                }
            }
        }
        Source::Plan(plan) => plan.cols.iter().zip(columns()).try_for_each(|(col, to)| check(&col.ty, to))?,
        Source::Rows(_, types) => types.iter().zip(columns()).try_for_each(|(from, to)| check(from, to))?,
    }
    Ok(())
}

fn run(
    cx: &mut Cx<'_>,
    mut inserter: Inserter,
    source: &Source,
    top: Option<super::super::super::plan::TopX>,
    mut outputs: Vec<OutputPlan>,
    triggers: &[trigger::Found],
) -> Result<Flow> {
    let width = inserter.table.def().columns.len();
    let object = std::sync::Arc::clone(&inserter.table.object);
    let changes = held(cx, |cx| {
        let limit = row_limit(cx, top.as_ref(), usize::MAX)?;
        let mut left = limit;
        let mut each = |cx: &mut Cx<'_>, row: &[Value], types: &[SqlType], inserter: &mut Inserter| -> Result<()> {
            let row = inserter.add(cx, row, types)?;
            for output in &mut outputs {
                output.add(cx, Some(&row), None, width, &[])?;
            }
            Ok(())
        };
        match source {
            Source::Values(values) => {
                for (row, types) in values.rows.iter().zip(&values.types).take(limit) {
                    add_value_row(cx, &mut inserter, row, types, &mut each)?;
                }
            }
            Source::Rows(rows, types) => {
                for row in rows.iter().take(limit) {
                    each(cx, row, types, &mut inserter)?;
                }
            }
            Source::Plan(plan) => {
                let types: Vec<SqlType> = plan.cols.iter().map(|c| c.ty).collect();
                let mut until_check = 256_u32;
                if left > 0 {
                    plan.run(cx, &mut |cx, row| {
                        until_check -= 1;
                        if until_check == 0 {
                            until_check = 256;
                            cx.check_cancel()?;
                        }
                        each(cx, row, &types, &mut inserter)?;
                        left -= 1;
                        Ok(if left == 0 { Step::Stop } else { Step::More })
                    })?;
                }
            }
        }
        inserter.finish(cx)
    })?;
    let count = changes.count;
    trigger::fire(cx, &object, trigger::Event::Insert, changes, triggers)?;
    for output in outputs {
        output.finish(cx)?;
    }
    finish(cx, cmd::INSERT, count)
}

type Each<'f> = dyn FnMut(&mut Cx<'_>, &[Value], &[SqlType], &mut Inserter) -> Result<()> + 'f;

/// A row of VALUES; DEFAULT takes the column's default.
fn add_value_row(
    cx: &mut Cx<'_>,
    inserter: &mut Inserter,
    row: &[Option<X>],
    types: &[SqlType],
    each: &mut Each<'_>,
) -> Result<()> {
    let mut values = Row::with_capacity(row.len());
    let mut value_types = types.to_vec();
    for (at, item) in row.iter().enumerate() {
        match item {
            Some(x) => values.push(x.eval(cx, &[])?),
            None => {
                let column = inserter.mapping[at];
                values.push(inserter.table.default_value(column, cx)?);
                value_types[at] = inserter.table.def().columns[column].ty;
            }
        }
    }
    each(cx, &values, &value_types, inserter)
}
