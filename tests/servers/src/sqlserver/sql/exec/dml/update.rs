//! UPDATE.

use std::collections::HashSet;

use super::super::super::api::cmd;
use super::super::super::ast::{BinOp, Body, Cte, Expr, TableRef};
use super::super::super::bind::{self, Binder, place_conditions, same_name, split_and};
use super::super::super::error::{self, Result};
use super::super::super::plan::{Node, Row, Step, Typed, X};
use super::super::super::state::Cx;
use super::super::super::stmt::{Assign, Target, Update};
use super::super::super::storage;
use super::super::{Flow, trigger};
use super::output::{OutputScope, check_triggers};
use super::references::Change;
use super::{Changes, Opened, Table, bind_top, finish, held, open_target, references, row_limit};
use crate::sqlserver::store::RowId;
use crate::sqlserver::value::{self, CastOptions, SqlType, Value};

/// A FROM row in which the target's columns and row id have known slots.
pub(super) struct TargetRows {
    pub(super) node: Node,
    pub(super) startup: Vec<X>,
    pub(super) scope: usize,
    pub(super) base: usize,
    pub(super) row_id: usize,
    pub(super) width: usize,
}

/// Binds target, FROM and WHERE of UPDATE and DELETE. `conditions` binds what follows in the same scope.
pub(super) fn bind_target_rows(
    binder: &mut Binder<'_, '_>,
    opened: &Opened,
    target_name: &str,
    from: &[super::super::super::ast::TableRef],
) -> Result<TargetRows> {
    let scope = binder.new_scope(None);
    let columns = bind::table_columns(&opened.object);
    let count = columns.len();
    let from_node = if from.is_empty() { None } else { Some(binder.bind_from(from, scope)?) };
    let known = binder.scopes[scope].sources.iter().find(|s| {
        (same_name(&s.alias, target_name) || same_name(&s.alias, &opened.object.name)) && s.cols.len() == count
    });
    let known = known.map(|s| s.base);
    let (mut node, base) = match (from_node, known) {
        (Some(node), Some(base)) => (node, base),
        (from_node, _) => {
            let range = binder.add_source(scope, target_name, None, columns)?;
            let scan = bind::scan_node(&opened.object, range.0, opened.mode, opened.variable);
            let target = Node::Scan(Box::new(scan));
            let node = match from_node {
                None => target,
                Some(other) => bind::cross_join(other, (0, range.0), target, range),
            };
            (node, range.0)
        }
    };
    let row_id = binder.scopes[scope].width;
    binder.scopes[scope].width += 1;
    if !mark_target(&mut node, base, row_id, opened) {
        return Err(error::unsupported("UPDATE or DELETE of a derived table"));
    }
    Ok(TargetRows { node, startup: Vec::new(), scope, base, row_id, width: count })
}

/// The table behind a common table expression that a statement changes.
pub(super) fn cte_target(ctes: &[Cte], target: &Target) -> Option<Target> {
    let Target::Table(name, _) = target else { return None };
    if name.parts.len() != 1 {
        return None;
    }
    let cte = ctes.iter().find(|c| same_name(&c.name, name.base()))?;
    let Body::Select(select) = &cte.query.body else { return None };
    match select.from.as_slice() {
        [TableRef::Table { name, hints, .. }] => Some(Target::Table(name.clone(), *hints)),
        _ => None,
    }
}

/// Rows of a common table expression whose table is changed.
pub(super) fn bind_cte_rows(binder: &mut Binder<'_, '_>, opened: &Opened, name: &str) -> Result<TargetRows> {
    let scope = binder.new_scope(None);
    let count = bind::table_columns(&opened.object).len();
    binder.exposes_row = Some(opened.mode);
    let plan = binder.bind_cte(name).ok_or_else(|| error::unknown_object(name))??;
    let shown = plan.cols.len().checked_sub(count + 1);
    let shown = shown.ok_or_else(|| error::unsupported("data change through this query"))?;
    let (node, range) = binder.add_plan(plan, name, None, scope)?;
    let row_id = range.0 + shown;
    Ok(TargetRows { node, startup: Vec::new(), scope, base: row_id + 1, row_id, width: count })
}

fn mark_target(node: &mut Node, base: usize, slot: usize, opened: &Opened) -> bool {
    match node {
        Node::Scan(scan) if scan.base == base => {
            scan.row_id_slot = Some(slot);
            scan.mode = opened.mode;
            scan.release = opened.mode == super::ReadMode::Update;
            true
        }
        Node::Filter { input, .. } => mark_target(input, base, slot, opened),
        Node::Join(join) => {
            mark_target(&mut join.left, base, slot, opened) || {
                // The row id of a right side must travel with its columns.
                let found = mark_target(&mut join.right, base, slot, opened);
                if found {
                    join.extra = Some(slot);
                }
                found
            }
        }
        Node::Apply { left, right, .. } => {
            mark_target(left, base, slot, opened) || mark_target(right, base, slot, opened)
        }
        _ => false,
    }
}

impl TargetRows {
    /// Places WHERE and settles which columns are read.
    pub(super) fn finish(&mut self, binder: &mut Binder<'_, '_>, filter: Option<&Expr>) -> Result<()> {
        let conditions = match filter {
            Some(filter) => split_and(binder.bind_condition(filter, self.scope)?),
            None => Vec::new(),
        };
        let node = std::mem::replace(&mut self.node, Node::One);
        let (node, startup) = place_conditions(node, conditions, false);
        self.node = node;
        self.startup = startup;
        Ok(())
    }

    pub(super) fn settle(&mut self, binder: &Binder<'_, '_>) {
        bind::set_needed(&mut self.node, &binder.scopes[self.scope].used);
    }

    /// Calls `each` once for each target row, with its id, until the limit.
    pub(super) fn run(
        &self,
        cx: &mut Cx<'_>,
        width: usize,
        limit: usize,
        each: &mut dyn FnMut(&mut Cx<'_>, RowId, &Row) -> Result<()>,
    ) -> Result<()> {
        if limit == 0 || !super::super::super::eval::all_true(&self.startup, cx, &[])? {
            return Ok(());
        }
        let mut seen: HashSet<RowId> = HashSet::new();
        let mut row = super::nulls(width);
        self.node.run(cx, &mut row, &mut |cx, row| {
            let Some(id) = storage::row_id_of(&row[self.row_id]) else { return Ok(Step::More) };
            if !seen.insert(id) {
                return Ok(Step::More);
            }
            each(cx, id, row)?;
            Ok(if seen.len() >= limit { Step::Stop } else { Step::More })
        })?;
        Ok(())
    }
}

/// A bound assignment of UPDATE.
pub(super) struct SetX {
    pub(super) var: Option<(usize, SqlType)>,
    pub(super) column: Option<usize>,
    /// None is DEFAULT.
    pub(super) x: Option<X>,
    pub(super) ty: SqlType,
}

/// Binds SET over a scope in which the target starts at `base`.
pub(super) fn bind_set(
    binder: &mut Binder<'_, '_>,
    table: &Table,
    set: &[Assign],
    scope: usize,
    base: usize,
) -> Result<Vec<SetX>> {
    let mut bound: Vec<SetX> = Vec::new();
    for assign in set {
        let column = match &assign.column {
            Some(name) => Some(update_column(table, name.base(), &bound)?),
            None => None,
        };
        let var = match &assign.var {
            Some(name) => {
                let typed = binder.bind_var(name)?;
                let X::Var(at) = typed.x else { return Err(error::undeclared(name)) };
                Some((at, typed.ty))
            }
            None => None,
        };
        if matches!(assign.value, Expr::Default) {
            bound.push(SetX { var, column, x: None, ty: SqlType::Null });
            continue;
        }
        let mut typed = binder.bind_scalar(&assign.value, scope)?;
        if let Some(op) = assign.op {
            let left = match (column, var) {
                (Some(at), _) => Typed::new(X::Slot(base + at), table.def().columns[at].ty, true),
                (None, Some((at, ty))) => Typed::new(X::Var(at), ty, true),
                (None, None) => return Err(error::syntax("=", 0)),
            };
            typed = combine(binder, op, left, typed)?;
        }
        if let Some(at) = column {
            value::check_conversion(&typed.ty, &table.def().columns[at].ty, value::Strictness::Implicit)?;
        }
        bound.push(SetX { var, column, ty: typed.ty, x: Some(typed.x) });
    }
    Ok(bound)
}

fn combine(binder: &mut Binder<'_, '_>, op: BinOp, left: Typed, right: Typed) -> Result<Typed> {
    binder.combine(op, left, right)
}

fn update_column(table: &Table, name: &str, bound: &[SetX]) -> Result<usize> {
    let def = table.def();
    let Some(at) = def.columns.iter().position(|c| same_name(&c.name, name)) else {
        return Err(error::unknown_column(name));
    };
    if bound.iter().any(|b| b.column == Some(at)) {
        return Err(error::plain(
            264,
            &format!(
                "The column name '{name}' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once. If this statement updates or inserts columns into a view, column aliasing can conceal the duplication in your code."
            ),
        ));
    }
    let column = &def.columns[at];
    if column.identity.is_some() {
        return Err(error::plain(8102, &format!("Cannot update identity column '{name}'.")));
    }
    if column.computed.is_some() {
        return Err(error::plain(
            271,
            &format!(
                "The column \"{name}\" cannot be modified because it is either a computed column or is the result of a UNION operator."
            ),
        ));
    }
    if column.ty == SqlType::RowVersion {
        return Err(error::plain(272, "Cannot update a timestamp column."));
    }
    Ok(at)
}

/// Computes the new row of one change.
pub(super) fn apply_set(cx: &mut Cx<'_>, table: &Table, set: &[SetX], row: &[Value], old: &[Value]) -> Result<Row> {
    let mut new = old.to_vec();
    for item in set {
        let value = match (&item.x, item.column) {
            (Some(x), _) => x.eval(cx, row)?,
            (None, Some(at)) => table.default_value(at, cx)?,
            (None, None) => Value::Null,
        };
        if let Some(at) = item.column {
            let from = if item.x.is_some() { item.ty } else { table.def().columns[at].ty };
            new[at] = table.convert(at, &value, &from, cx)?;
        }
        if let Some((var, ty)) = item.var {
            let from = if item.column.is_some() && item.x.is_none() { SqlType::Null } else { item.ty };
            let stored = value::cast(&value, &from, &ty, &CastOptions::IMPLICIT)?;
            cx.st.frame_mut().vars[var].value = stored;
        }
    }
    Ok(new)
}

pub(crate) fn update(cx: &mut Cx<'_>, update: &Update) -> Result<Flow> {
    super::super::transaction::implicit(cx);
    if update.current_of.is_some() {
        return Err(error::unsupported("WHERE CURRENT OF"));
    }
    let mut binder = Binder::new(cx);
    binder.define_ctes(&update.ctes, None)?;
    let through = cte_target(&update.ctes, &update.target).filter(|_| update.from.is_empty());
    let opened = open_target(&mut binder, through.as_ref().unwrap_or(&update.target), &update.from, "UPDATE")?;
    if opened.object.table().is_none() {
        return Err(error::unsupported("UPDATE of a view"));
    }
    let target_name = target_name(&update.target);
    let mut rows = match through {
        Some(_) => bind_cte_rows(&mut binder, &opened, &target_name)?,
        None => bind_target_rows(&mut binder, &opened, &target_name, &update.from)?,
    };
    let table = Table::open(binder.cx, std::sync::Arc::clone(&opened.object), opened.variable)?;
    let set = bind_set(&mut binder, &table, &update.set, rows.scope, rows.base)?;
    rows.finish(&mut binder, update.filter.as_ref())?;
    let top = bind_top(&mut binder, update.top.as_ref())?;
    let cols = bind::table_columns(&opened.object);
    let mut output_scope = OutputScope::new(&mut binder, &cols, true, true)?;
    if !update.from.is_empty() {
        output_scope.add_from(&mut binder, rows.scope);
    }
    let mut outputs = output_scope.bind(&mut binder, &update.output)?;
    mark_output_use(&mut binder, rows.scope, !outputs.is_empty());
    rows.settle(&binder);
    let width = binder.scopes[rows.scope].width;
    let triggers = trigger::of_table(cx, &opened.object, trigger::Event::Update);
    check_triggers(&outputs, !triggers.is_empty(), &opened.object.name)?;
    let instead = triggers.iter().any(|t| t.instead);
    let with_from = !update.from.is_empty();
    let updated: Vec<usize> = set.iter().filter_map(|s| s.column).collect();
    let changes = held(cx, |cx| {
        let limit = row_limit(cx, top.as_ref(), usize::MAX)?;
        let mut changed: Vec<Change> = Vec::new();
        let mut rest: Vec<Row> = Vec::new();
        rows.run(cx, width, limit, &mut |cx, id, row| {
            let old = row[rows.base..rows.base + rows.width].to_vec();
            let mut new = apply_set(cx, &table, &set, row, &old)?;
            if !instead {
                table.complete(&mut new, cx, "UPDATE")?;
            }
            if !outputs.is_empty() {
                rest.push(if with_from { row.clone() } else { Row::new() });
            }
            changed.push(Change { id, old, new: Some(new) });
            Ok(())
        })?;
        for (change, rest) in changed.iter().zip(&rest) {
            for output in &mut outputs {
                output.add(cx, change.new.as_deref(), Some(&change.old), rows.width, rest)?;
            }
        }
        if !instead {
            references::apply(cx, &table, &changed, &updated, "UPDATE")?;
        }
        Ok(collect(changed, updated.clone(), !triggers.is_empty()))
    })?;
    let count = changes.count;
    trigger::fire(cx, &opened.object, trigger::Event::Update, changes, &triggers)?;
    for output in outputs {
        output.finish(cx)?;
    }
    finish(cx, cmd::UPDATE, count)
}

/// OUTPUT may name any column of FROM.
pub(super) fn mark_output_use(binder: &mut Binder<'_, '_>, scope: usize, outputs: bool) {
    if outputs {
        let width = binder.scopes[scope].width;
        binder.scopes[scope].used.extend(0..width);
    }
}

pub(super) fn target_name(target: &super::super::super::stmt::Target) -> String {
    match target {
        super::super::super::stmt::Target::Table(name, _) => name.base().to_owned(),
        super::super::super::stmt::Target::Var(name) => name.clone(),
    }
}

/// Rows for triggers; without triggers only their number.
pub(super) fn collect(changed: Vec<Change>, updated: Vec<usize>, keep: bool) -> Changes {
    let mut changes = Changes { count: changed.len() as u64, updated, ..Changes::default() };
    if keep {
        for change in changed {
            changes.deleted.push(change.old);
            changes.inserted.extend(change.new);
        }
    }
    changes
}
