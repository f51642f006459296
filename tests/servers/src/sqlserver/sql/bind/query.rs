//! Queries: CTEs, set operators, ORDER BY over them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::super::ast::{Body, Cte, Expr, Literal, OrderItem, Query, Select, SetOp, TableRef};
use super::super::error::{self, Result};
use super::super::plan::{OrderX, OutCol, Plan, RecursivePlan, Rel, TailPlan, Typed, X};
use super::{Binder, CteBody, CteDef, Source, same_name, unify_collation};
use crate::sqlserver::value::{SqlType, common_type};

impl Binder<'_, '_> {
    /// Binds a query whose free names are looked up in `parent`.
    pub(crate) fn bind_query(&mut self, query: &Query, parent: Option<usize>) -> Result<Plan> {
        self.deeper(|b| {
            let mark = b.ctes.len();
            b.define_ctes(&query.ctes, query.max_recursion)?;
            if let Some(limit) = query.max_recursion {
                b.ctes.iter_mut().for_each(|c| c.recursion_limit = limit);
            }
            let plan = b.bind_body_with_tail(query, parent);
            b.ctes.truncate(mark);
            plan
        })
    }

    pub(crate) fn define_ctes(&mut self, ctes: &[Cte], max_recursion: Option<u32>) -> Result<()> {
        let start = self.ctes.len();
        for cte in ctes {
            if self.ctes[start..].iter().any(|c| same_name(&c.name, &cte.name)) {
                let message = format!("Duplicate common table expression name '{}' was specified.", cte.name);
                return Err(error::new(239, 16, 1, &message));
            }
            let visible = self.ctes.len();
            self.ctes.push(CteDef {
                name: cte.name.clone(),
                columns: cte.columns.clone(),
                body: CteBody::Query(Rc::new(cte.query.clone())),
                visible,
                recursion_limit: max_recursion.unwrap_or(100),
            });
        }
        Ok(())
    }

    fn bind_body_with_tail(&mut self, query: &Query, parent: Option<usize>) -> Result<Plan> {
        if let Body::Select(select) = &query.body {
            return self.bind_select(select, &query.order, query.offset.as_ref(), query.fetch.as_ref(), parent);
        }
        let plan = self.bind_body(&query.body, parent)?;
        if query.order.is_empty() {
            return Ok(plan);
        }
        let cols = plan.cols.clone();
        let order = self.order_of_columns(&query.order, &cols)?;
        let scope = self.new_scope(None);
        let offset = self.row_limit(query.offset.as_ref(), scope)?;
        let fetch = self.row_limit(query.fetch.as_ref(), scope)?;
        Ok(Plan { cols, rel: Rel::Tail(Box::new(TailPlan { input: plan, order, offset, fetch })) })
    }

    pub(super) fn row_limit(&mut self, expr: Option<&Expr>, scope: usize) -> Result<Option<X>> {
        let Some(expr) = expr else { return Ok(None) };
        Ok(Some(self.bind_scalar(expr, scope)?.x))
    }

    /// ORDER BY of a set operation names its output columns.
    fn order_of_columns(&mut self, items: &[OrderItem], cols: &[OutCol]) -> Result<Vec<OrderX>> {
        let scope = self.new_scope(None);
        self.scopes[scope].sources.push(Source { alias: String::new(), schema: None, cols: cols.to_vec(), base: 0 });
        let mut order = Vec::new();
        for item in items {
            let typed = match ordinal(&item.expr) {
                Some(n) => column_by_ordinal(n, cols)?,
                None => match self.bind_scalar(&item.expr, scope) {
                    Err(e) if e.number == 207 => {
                        return Err(error::plain(
                            104,
                            "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.",
                        ));
                    }
                    other => other?,
                },
            };
            order.push(OrderX { x: typed.x, ty: typed.ty, descending: item.descending });
        }
        Ok(order)
    }

    pub(super) fn bind_body(&mut self, body: &Body, parent: Option<usize>) -> Result<Plan> {
        match body {
            Body::Select(select) => self.bind_select(select, &[], None, None, parent),
            Body::Nested(query) => self.bind_query(query, parent),
            Body::Values(rows) => self.bind_values(rows, parent),
            Body::Set(op, left, right) => {
                let left = self.bind_body(left, parent)?;
                let right = self.bind_body(right, parent)?;
                set_plan(*op, left, right)
            }
        }
    }

    /// VALUES as a table: the types of each column's values are unified.
    pub(super) fn bind_values(&mut self, rows: &[Vec<Expr>], parent: Option<usize>) -> Result<Plan> {
        let scope = self.new_scope(parent);
        let (cols, rows) = self.bind_value_rows(rows, scope)?;
        Ok(Plan { cols, rel: Rel::Values(rows) })
    }

    pub(crate) fn bind_value_rows(&mut self, rows: &[Vec<Expr>], scope: usize) -> Result<(Vec<OutCol>, Vec<Vec<X>>)> {
        let width = rows.first().map_or(0, Vec::len);
        let mut typed_rows = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != width {
                return Err(error::new(
                    10709,
                    16,
                    1,
                    "The number of columns for each row in a table value constructor must be the same.",
                ));
            }
            let mut typed = Vec::with_capacity(width);
            for expr in row {
                typed.push(self.bind_scalar(expr, scope)?);
            }
            typed_rows.push(typed);
        }
        let mut cols: Vec<OutCol> = Vec::with_capacity(width);
        for at in 0..width {
            let mut merged = typed_rows[0][at].clone();
            for row in &mut typed_rows[1..] {
                merged = merge(&merged, &mut row[at])?;
            }
            cols.push(OutCol {
                name: String::new(),
                ty: merged.ty,
                nullable: merged.nullable,
                identity: false,
                computed: true,
                coercibility: merged.coercibility,
            });
        }
        let mut bound = Vec::with_capacity(typed_rows.len());
        for row in typed_rows {
            let mut items = Vec::with_capacity(width);
            for (typed, col) in row.into_iter().zip(&cols) {
                items.push(super::expr::convert(typed, col.ty)?);
            }
            bound.push(items);
        }
        Ok((cols, bound))
    }

    /// A CTE by name, bound anew at each use.
    pub(crate) fn bind_cte(&mut self, name: &str) -> Option<Result<Plan>> {
        let at = self.ctes.iter().rposition(|c| same_name(&c.name, name))?;
        let def = self.ctes[at].clone();
        let query = match &def.body {
            CteBody::Work { cols, rows, used } => {
                used.set(true);
                return Some(Ok(Plan { cols: cols.clone(), rel: Rel::Work(Rc::clone(rows)) }));
            }
            CteBody::Query(query) => Rc::clone(query),
        };
        // Only earlier CTEs are in sight of its query.
        let hidden = self.ctes.split_off(def.visible);
        let result = self.bind_cte_query(&def, &query);
        self.ctes.truncate(def.visible);
        self.ctes.extend(hidden);
        Some(result)
    }

    fn bind_cte_query(&mut self, def: &CteDef, query: &Query) -> Result<Plan> {
        let recursive = match &query.body {
            Body::Set(SetOp::UnionAll, _, right) if body_mentions(right, &def.name) => true,
            body => {
                if body_mentions(body, &def.name) {
                    let message = format!(
                        "Recursive common table expression '{}' does not contain a top-level UNION ALL operator.",
                        def.name
                    );
                    return Err(error::new(252, 16, 1, &message));
                }
                false
            }
        };
        let mut plan = if recursive { self.bind_recursive(def, query)? } else { self.bind_query(query, None)? };
        let visible = plan.cols.iter().take_while(|c| c.name != super::HIDDEN).count();
        rename(&mut plan.cols[..visible], &def.columns, &def.name)?;
        if let Some(at) = plan.cols.iter().position(|c| c.name.is_empty()) {
            let message = format!("No column name was specified for column {} of '{}'.", at + 1, def.name);
            return Err(error::new(8155, 16, 2, &message));
        }
        Ok(plan)
    }

    fn bind_recursive(&mut self, def: &CteDef, query: &Query) -> Result<Plan> {
        let Body::Set(_, anchor, step) = &query.body else { return Err(error::unsupported("recursive query")) };
        let mark = self.ctes.len();
        self.define_ctes(&query.ctes, None)?;
        let mut anchor = self.bind_body(anchor, None)?;
        rename(&mut anchor.cols, &def.columns, &def.name)?;
        for col in &mut anchor.cols {
            col.nullable = true;
        }
        let rows = Rc::new(RefCell::new(Rc::new(Vec::new())));
        self.ctes.push(CteDef {
            name: def.name.clone(),
            columns: Vec::new(),
            body: CteBody::Work { cols: anchor.cols.clone(), rows: Rc::clone(&rows), used: Rc::new(Cell::new(false)) },
            visible: self.ctes.len(),
            recursion_limit: 0,
        });

        let step = self.bind_body(step, None);
        self.ctes.truncate(mark);
        let step = step?;
        check_recursive_types(&anchor, &step, &def.name)?;
        let cols = anchor.cols.clone();
        let limit = query.max_recursion.unwrap_or(def.recursion_limit);
        Ok(Plan { cols, rel: Rel::Recursive(Box::new(RecursivePlan { anchor, step, work: rows, limit })) })
    }
}

fn check_recursive_types(anchor: &Plan, step: &Plan, name: &str) -> Result<()> {
    if anchor.cols.len() != step.cols.len() {
        return Err(error::plain(
            205,
            "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.",
        ));
    }
    for (a, s) in anchor.cols.iter().zip(&step.cols) {
        let same =
            s.ty == SqlType::Null || a.ty == s.ty || a.ty.with_collation(s.ty.collation().unwrap_or_default()) == s.ty;
        if !same {
            let message = format!(
                "Types don't match between the anchor and the recursive part in column \"{}\" of recursive query \"{name}\".",
                a.name
            );
            return Err(error::new(240, 16, 1, &message));
        }
    }
    Ok(())
}

/// A constant integer in ORDER BY.
pub(super) fn ordinal(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(Literal::Number(n)) => n.parse().ok(),
        _ => None,
    }
}

pub(super) fn column_by_ordinal(n: i64, cols: &[OutCol]) -> Result<Typed> {
    let at = usize::try_from(n).ok().and_then(|n| n.checked_sub(1)).filter(|at| *at < cols.len());
    let Some(at) = at else {
        let message =
            format!("The ORDER BY position number {n} is out of range of the number of items in the select list.");
        return Err(error::new(108, 16, 1, &message));
    };
    Ok(Typed::new(X::Slot(at), cols[at].ty, cols[at].nullable))
}

/// Unites the type of a column so far with one more value.
fn merge(so_far: &Typed, next: &mut Typed) -> Result<Typed> {
    let mut merged = so_far.clone();
    merged.nullable |= next.nullable;
    if next.ty == SqlType::Null {
        return Ok(merged);
    }
    if merged.ty == SqlType::Null {
        merged.ty = next.ty;
        merged.coercibility = next.coercibility;
        return Ok(merged);
    }
    merged.coercibility = unify_collation(&mut merged, next, "UNION")?;
    merged.ty = common_type(&merged.ty, &next.ty)?;
    Ok(merged)
}

/// A set operation over two plans of equal width.
pub(super) fn set_plan(op: SetOp, left: Plan, right: Plan) -> Result<Plan> {
    if left.cols.len() != right.cols.len() {
        return Err(error::plain(
            205,
            "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.",
        ));
    }
    let mut cols = Vec::with_capacity(left.cols.len());
    for (l, r) in left.cols.iter().zip(&right.cols) {
        let a = Typed { coercibility: l.coercibility, ..Typed::new(X::Slot(0), l.ty, l.nullable) };
        let mut b = Typed { coercibility: r.coercibility, ..Typed::new(X::Slot(0), r.ty, r.nullable) };
        let merged = merge(&a, &mut b)?;
        cols.push(OutCol {
            name: l.name.clone(),
            ty: merged.ty,
            nullable: merged.nullable,
            identity: false,
            computed: true,
            coercibility: merged.coercibility,
        });
    }
    let types: Vec<SqlType> = cols.iter().map(|c| c.ty).collect();
    let left = converted(left, &types)?;
    let right = converted(right, &types)?;
    Ok(Plan { cols, rel: Rel::Set { op, left: Box::new(left), right: Box::new(right), types } })
}

fn converted(plan: Plan, types: &[SqlType]) -> Result<Plan> {
    let mut casts = Vec::with_capacity(types.len());
    for (col, to) in plan.cols.iter().zip(types) {
        let needed = col.ty != *to && col.ty != SqlType::Null;
        if needed {
            crate::sqlserver::value::check_conversion(&col.ty, to, crate::sqlserver::value::Strictness::Implicit)?;
        }
        casts.push(needed.then_some((col.ty, *to)));
    }
    if casts.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let cols = plan.cols.clone();
    Ok(Plan { cols, rel: Rel::Convert { input: Box::new(plan), casts } })
}

/// Gives columns the names of a column list.
pub(crate) fn rename(cols: &mut [OutCol], names: &[String], owner: &str) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() != cols.len() {
        let (number, word) = if names.len() > cols.len() { (8159, "fewer") } else { (8158, "more") };
        let message = format!("'{owner}' has {word} columns than were specified in the column list.");
        return Err(error::new(number, 16, 1, &message));
    }
    for (col, name) in cols.iter_mut().zip(names) {
        col.name.clone_from(name);
    }
    Ok(())
}

fn body_mentions(body: &Body, name: &str) -> bool {
    match body {
        Body::Select(select) => select_mentions(select, name),
        Body::Set(_, a, b) => body_mentions(a, name) || body_mentions(b, name),
        Body::Nested(q) => body_mentions(&q.body, name),
        Body::Values(_) => false,
    }
}

fn select_mentions(select: &Select, name: &str) -> bool {
    select.from.iter().any(|t| table_mentions(t, name))
}

fn table_mentions(table: &TableRef, name: &str) -> bool {
    match table {
        TableRef::Table { name: n, .. } => n.parts.len() == 1 && same_name(n.base(), name),
        TableRef::Derived { query, .. } => body_mentions(&query.body, name),
        TableRef::Join { left, right, .. } | TableRef::Apply { left, right, .. } => {
            table_mentions(left, name) || table_mentions(right, name)
        }
        TableRef::Var { .. } | TableRef::Func { .. } => false,
    }
}
