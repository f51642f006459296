//! One SELECT.

use super::super::ast::{BinOp, Expr, Item, OrderItem, Select, Top};
use super::super::error::{self, Result};
use super::super::plan::{Node, OrderX, OutCol, Plan, Rel, SelectPlan, TopX, Typed, X};
use super::HIDDEN;
use super::aggregate::{has_aggregate, walk};
use super::pushdown::{remap_windows, set_needed};
use super::query::ordinal;
use super::{Binder, place_conditions, same_name, split_and};
use crate::sqlserver::store::ReadMode;
use crate::sqlserver::value::{Coercibility, SqlType, Strictness, check_conversion};

/// An item of the select list after `*` is spelled out.
enum Expanded {
    Slot { slot: usize, col: OutCol },
    Expr { expr: Expr, alias: Option<String> },
    Assign { var: String, op: Option<BinOp>, expr: Expr },
}

impl Binder<'_, '_> {
    pub(super) fn bind_select(
        &mut self,
        select: &Select,
        order: &[OrderItem],
        offset: Option<&Expr>,
        fetch: Option<&Expr>,
        parent: Option<usize>,
    ) -> Result<Plan> {
        let scope = self.new_scope(parent);
        let exposes_row = self.exposes_row.take();
        let mut from = self.bind_from(&select.from, scope)?;
        let exposed = match exposes_row {
            Some(mode) => Some(self.expose_row(select, &mut from, scope, mode)?),
            None => None,
        };
        let conditions = match &select.filter {
            Some(filter) => split_and(self.bind_condition(filter, scope)?),
            None => Vec::new(),
        };
        let items = self.expand(&select.items, scope)?;
        let grouped = select.group.is_some() || select.having.is_some() || aggregates(&items, order);
        let sets = if grouped { self.bind_group(select.group.as_ref(), scope)? } else { Vec::new() };
        let having = match &select.having {
            Some(h) => Some(self.bind_condition(h, scope)?),
            None => None,
        };
        self.scopes[scope].windows_allowed = true;
        let (mut cols, mut project, assigns) = self.bind_items(items, scope)?;
        let mut order = self.bind_order(order, &cols, &project, select.distinct, scope)?;
        self.scopes[scope].windows_allowed = false;
        if let Some(hidden) = exposed {
            for (col, slot) in hidden {
                cols.push(col);
                project.push(X::Slot(slot));
            }
        }
        let top = match &select.top {
            Some(top) => Some(self.bind_top(top, !order.is_empty())?),
            None => None,
        };
        let limits = self.new_scope(None);
        let offset = self.row_limit(offset, limits)?;
        let fetch = self.row_limit(fetch, limits)?;
        if top.is_some() && offset.is_some() {
            return Err(error::new(10741, 15, 2, "A TOP can not be used in the same query or sub-query as a OFFSET."));
        }
        let width = self.scopes[scope].width;
        let base = self.group_width(scope).unwrap_or(width);
        let windows = std::mem::take(&mut self.scopes[scope].windows);
        self.scopes[scope].grouped = false;
        let group = self.take_group(scope, sets);
        project.iter_mut().chain(order.iter_mut().map(|o| &mut o.x)).for_each(|x| remap_windows(x, base));
        let (mut from, startup) = place_conditions(from, conditions, parent.is_some());
        set_needed(&mut from, &self.scopes[scope].used);
        for col in &mut cols {
            // A condition over NULL only: an untyped NULL column is int.
            if col.ty == SqlType::Null {
                col.nullable = true;
            }
        }
        let types = cols.iter().map(|c| c.ty).collect();
        let plan = SelectPlan {
            from,
            width,
            startup,
            group,
            having,
            windows,
            project,
            types,
            distinct: select.distinct,
            assigns,
            order,
            top,
            offset,
            fetch,
        };
        Ok(Plan { cols, rel: Rel::Select(Box::new(plan)) })
    }

    /// Row id and columns of the one table of an updatable query, as hidden columns.
    fn expose_row(
        &mut self,
        select: &Select,
        from: &mut Node,
        scope: usize,
        mode: ReadMode,
    ) -> Result<Vec<(OutCol, usize)>> {
        let plain = select.group.is_none() && select.having.is_none() && !select.distinct;
        let (Node::Scan(scan), true) = (from, plain) else {
            return Err(error::unsupported("data change through a query with joins, groups or DISTINCT"));
        };
        let slot = self.scopes[scope].width;
        self.scopes[scope].width += 1;
        scan.row_id_slot = Some(slot);
        scan.mode = mode;
        scan.release = false;
        let hidden = |ty: SqlType| OutCol {
            name: HIDDEN.to_owned(),
            ty,
            nullable: true,
            identity: false,
            computed: true,
            coercibility: Coercibility::Implicit,
        };
        let mut cols = vec![(hidden(SqlType::BigInt), slot)];
        cols.extend(scan.types.iter().enumerate().map(|(at, ty)| (hidden(*ty), scan.base + at)));
        Ok(cols)
    }

    pub(crate) fn bind_top(&mut self, top: &Top, ordered: bool) -> Result<TopX> {
        if top.with_ties && !ordered {
            return Err(error::new(
                1062,
                15,
                1,
                "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.",
            ));
        }
        let scope = self.new_scope(None);
        let count = self.bind_scalar(&top.count, scope)?;
        if !top.percent && !count.ty.is_integer() && !matches!(count.ty, SqlType::Decimal { scale: 0, .. }) {
            return Err(error::new(
                1060,
                15,
                1,
                "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.",
            ));
        }
        Ok(TopX { count: count.x, percent: top.percent, with_ties: top.with_ties })
    }

    fn expand(&mut self, items: &[Item], scope: usize) -> Result<Vec<Expanded>> {
        let mut out = Vec::new();
        for item in items {
            match item {
                Item::Star(qualifier) => self.expand_star(qualifier.as_ref(), scope, &mut out)?,
                Item::Expr { expr, alias } => out.push(Expanded::Expr { expr: expr.clone(), alias: alias.clone() }),
                Item::Assign { var, op, expr } => {
                    out.push(Expanded::Assign { var: var.clone(), op: *op, expr: expr.clone() });
                }
            }
        }
        Ok(out)
    }

    fn expand_star(
        &mut self,
        qualifier: Option<&super::super::ast::Name>,
        scope: usize,
        out: &mut Vec<Expanded>,
    ) -> Result<()> {
        let mut found = false;
        let mut slots = Vec::new();
        for source in &self.scopes[scope].sources {
            if let Some(name) = qualifier
                && !super::source_matches(source, &name.parts)
            {
                continue;
            }
            found = true;
            for (at, col) in source.cols.iter().enumerate() {
                slots.push(source.base + at);
                out.push(Expanded::Slot { slot: source.base + at, col: col.clone() });
            }
        }
        self.scopes[scope].used.extend(slots);
        if found {
            return Ok(());
        }
        match qualifier {
            Some(name) => Err(error::plain(
                107,
                &format!(
                    "The column prefix '{}' does not match with a table name or alias name used in the query.",
                    name.display()
                ),
            )),
            None => Err(error::plain(263, "Must specify table to select from.")),
        }
    }

    fn bind_items(&mut self, items: Vec<Expanded>, scope: usize) -> Result<(Vec<OutCol>, Vec<X>, bool)> {
        let assigns = items.iter().any(|i| matches!(i, Expanded::Assign { .. }));
        if assigns && !items.iter().all(|i| matches!(i, Expanded::Assign { .. })) {
            return Err(error::new(
                141,
                15,
                1,
                "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.",
            ));
        }
        let (mut cols, mut project) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            let (col, x) = match item {
                Expanded::Slot { slot, col } => {
                    let name = super::super::ast::Name::single(&col.name);
                    let slot = self.grouped_slot(scope, slot, &name)?;
                    (col, X::Slot(slot))
                }
                Expanded::Expr { expr, alias } => self.bind_item(&expr, alias, scope)?,
                Expanded::Assign { var, op, expr } => self.bind_assign(&var, op, &expr, scope)?,
            };
            cols.push(col);
            project.push(x);
        }
        Ok((cols, project, assigns))
    }

    fn bind_item(&mut self, expr: &Expr, alias: Option<String>, scope: usize) -> Result<(OutCol, X)> {
        let typed = self.bind_scalar(expr, scope)?;
        let base = match expr {
            Expr::Column(name) => self
                .find_column(name, scope)
                .ok()
                .map(|(level, source, at)| self.scopes[level].sources[source].cols[at].clone()),
            _ => None,
        };
        let name = alias.unwrap_or_else(|| base.as_ref().map_or_else(String::new, |c| c.name.clone()));
        let col = OutCol {
            name,
            ty: typed.ty,
            nullable: typed.nullable,
            identity: base.as_ref().is_some_and(|c| c.identity),
            computed: base.as_ref().is_none_or(|c| c.computed),
            coercibility: typed.coercibility,
        };
        Ok((col, typed.x))
    }

    fn bind_assign(&mut self, var: &str, op: Option<BinOp>, expr: &Expr, scope: usize) -> Result<(OutCol, X)> {
        let target = self.bind_var(var)?;
        let X::Var(at) = target.x else { return Err(error::undeclared(var)) };
        let mut typed = self.bind_scalar(expr, scope)?;
        if let Some(op) = op {
            typed = self.combine(op, target.clone(), typed)?;
        }
        check_conversion(&typed.ty, &target.ty, Strictness::Implicit)?;
        let x = super::expr::convert(typed, target.ty)?;
        let col = OutCol {
            name: String::new(),
            ty: target.ty,
            nullable: true,
            identity: false,
            computed: true,
            coercibility: Coercibility::CoercibleDefault,
        };
        Ok((col, X::Assign(at, Box::new(x))))
    }

    fn bind_order(
        &mut self,
        items: &[OrderItem],
        cols: &[OutCol],
        project: &[X],
        distinct: bool,
        scope: usize,
    ) -> Result<Vec<OrderX>> {
        let mut order = Vec::with_capacity(items.len());
        for item in items {
            let typed = self.order_term(&item.expr, cols, project, scope)?;
            if distinct && !project.iter().any(|p| format!("{p:?}") == format!("{:?}", typed.x)) {
                return Err(error::new(
                    145,
                    15,
                    1,
                    "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.",
                ));
            }
            order.push(OrderX { x: typed.x, ty: typed.ty, descending: item.descending });
        }
        Ok(order)
    }

    /// An ordinal, an alias of the select list, or an expression over the sources.
    fn order_term(&mut self, expr: &Expr, cols: &[OutCol], project: &[X], scope: usize) -> Result<Typed> {
        let chosen = |at: usize| Typed::new(project[at].clone(), cols[at].ty, cols[at].nullable);
        if let Some(n) = ordinal(expr) {
            let typed = super::query::column_by_ordinal(n, cols)?;
            let X::Slot(at) = typed.x else { return Ok(typed) };
            return Ok(chosen(at));
        }
        if matches!(expr, Expr::Literal(_)) {
            return Err(error::new(
                408,
                16,
                1,
                "A constant expression was encountered in the ORDER BY list, position 1.",
            ));
        }
        if let Expr::Column(name) = expr
            && name.parts.len() == 1
        {
            let mut hits = (0..cols.len()).filter(|at| same_name(&cols[*at].name, name.base()));
            if let Some(at) = hits.next() {
                let same = |other: usize| format!("{:?}", project[other]) == format!("{:?}", project[at]);
                if hits.any(|other| !same(other)) {
                    return Err(error::plain(209, &format!("Ambiguous column name '{}'.", name.base())));
                }
                return Ok(chosen(at));
            }
        }
        self.bind_scalar(expr, scope)
    }
}

/// Whether the select list or ORDER BY makes this a grouped query.
fn aggregates(items: &[Expanded], order: &[OrderItem]) -> bool {
    let in_items = items.iter().any(|item| match item {
        Expanded::Expr { expr, .. } | Expanded::Assign { expr, .. } => contains_aggregate(expr),
        Expanded::Slot { .. } => false,
    });
    in_items || order.iter().any(|o| contains_aggregate(&o.expr))
}

/// Aggregates, also those inside the arguments of window functions.
fn contains_aggregate(expr: &Expr) -> bool {
    let mut found = has_aggregate(expr);
    walk(expr, &mut |e| found |= has_aggregate(e));
    found
}
