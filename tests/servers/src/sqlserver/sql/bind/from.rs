//! FROM: tables, derived tables, joins, APPLY.

use super::super::ast::{Body, Expr, FuncCall, Item, JoinKind, Query, Select, TableRef};
use super::super::error::{self, Result};
use super::super::plan::{JoinNode, Node, OutCol, Plan, Sub};
use super::pushdown::split_and;
use super::query::rename;
use super::{Binder, Source, same_name};
use crate::sqlserver::value::{Coercibility, SqlType};

/// How names inside a derived table see the sources before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Only queries around this one.
    Outside,
    /// Also the sources to the left (APPLY).
    Lateral,
}

impl Binder<'_, '_> {
    pub(crate) fn bind_from(&mut self, from: &[TableRef], scope: usize) -> Result<Node> {
        let mut node: Option<(Node, (usize, usize))> = None;
        for table in from {
            let (right, range) = self.bind_table_ref(table, scope, Sight::Outside)?;
            node = Some(match node {
                None => (right, range),
                Some((left, left_range)) => {
                    let joined = (left_range.0, range.1);
                    (join(JoinKind::Cross, (left, left_range), (right, range), Vec::new()), joined)
                }
            });
        }
        Ok(node.map_or(Node::One, |(node, _)| node))
    }

    fn bind_table_ref(&mut self, table: &TableRef, scope: usize, sight: Sight) -> Result<(Node, (usize, usize))> {
        self.deeper(|b| match table {
            TableRef::Table { name, alias, hints } => b.bind_named_table(name, alias.as_deref(), *hints, scope),
            TableRef::Var { name, alias } => b.bind_table_variable(name, alias.as_deref(), scope),
            TableRef::Derived { query, alias, columns } => b.bind_derived(query, alias, columns, scope, sight),
            TableRef::Func { call, alias, columns } => {
                b.bind_table_function(call, alias.as_deref(), columns, scope, sight == Sight::Lateral)
            }
            TableRef::Join { kind, left, right, on } => {
                let left = b.bind_table_ref(left, scope, sight)?;
                let right = b.bind_table_ref(right, scope, sight)?;
                let range = (left.1.0, right.1.1);
                let on = match on {
                    Some(on) => split_and(b.bind_condition(on, scope)?),
                    None => Vec::new(),
                };
                Ok((join(*kind, left, right, on), range))
            }
            TableRef::Apply { outer, left, right } => {
                let (left, left_range) = b.bind_table_ref(left, scope, sight)?;
                let (right, range) = b.bind_table_ref(right, scope, Sight::Lateral)?;
                let (base, width) = (range.0, range.1 - range.0);
                let node = Node::Apply { left: Box::new(left), right: Box::new(right), outer: *outer, base, width };
                Ok((node, (left_range.0, range.1)))
            }
        })
    }

    /// Adds a source to the scope; its slots.
    pub(crate) fn add_source(
        &mut self,
        scope: usize,
        alias: &str,
        schema: Option<String>,
        cols: Vec<OutCol>,
    ) -> Result<(usize, usize)> {
        if self.scopes[scope].sources.iter().any(|s| same_name(&s.alias, alias) && s.schema == schema) {
            let message = format!(
                "The objects \"{alias}\" and \"{alias}\" in the FROM clause have the same exposed names. Use correlation names to distinguish them."
            );
            return Err(error::plain(1013, &message));
        }
        let scope = &mut self.scopes[scope];
        let base = scope.width;
        scope.width += cols.len();
        let end = scope.width;
        scope.sources.push(Source { alias: alias.to_owned(), schema, cols, base });
        Ok((base, end))
    }

    fn bind_derived(
        &mut self,
        query: &Query,
        alias: &str,
        columns: &[String],
        scope: usize,
        sight: Sight,
    ) -> Result<(Node, (usize, usize))> {
        if sight == Sight::Lateral
            && let Some(bound) = self.bind_inline(query, alias, columns, scope)?
        {
            return Ok(bound);
        }
        let parent = if sight == Sight::Lateral { Some(scope) } else { self.parent_of(scope) };
        let mark = self.outer_refs.len();
        let plan = self.bind_query(query, parent)?;
        let sub = self.finish_sub(plan, parent, mark);
        self.add_derived(sub, alias, columns, scope, sight)
    }

    pub(super) fn parent_of(&self, scope: usize) -> Option<usize> {
        self.scopes[scope].parent
    }

    fn add_derived(
        &mut self,
        mut sub: Sub,
        alias: &str,
        columns: &[String],
        scope: usize,
        sight: Sight,
    ) -> Result<(Node, (usize, usize))> {
        if sight == Sight::Outside {
            // Its references belong to the queries around this one, which set them before this one runs.
            let (outer, uses) = (sub.scope, std::mem::take(&mut sub.uses));
            self.outer_refs.extend(uses.into_iter().map(|slot| (outer, slot)));
        }
        rename(&mut sub.plan.cols, columns, alias)?;
        if let Some(at) = sub.plan.cols.iter().position(|c| c.name.is_empty()) {
            let message = format!("No column name was specified for column {} of '{alias}'.", at + 1);
            return Err(error::new(8155, 16, 2, &message));
        }
        for (at, col) in sub.plan.cols.iter().enumerate() {
            if sub.plan.cols[..at].iter().any(|c| same_name(&c.name, &col.name)) {
                let message = format!("The column '{}' was specified multiple times for '{alias}'.", col.name);
                return Err(error::plain(8156, &message));
            }
        }
        let cols = derived_cols(&sub.plan);
        let range = self.add_source(scope, alias, None, cols)?;
        Ok((Node::Derived { sub: Box::new(sub), base: range.0 }, range))
    }

    /// A view or CTE as a source.
    pub(crate) fn add_plan(
        &mut self,
        plan: Plan,
        alias: &str,
        schema: Option<String>,
        scope: usize,
    ) -> Result<(Node, (usize, usize))> {
        let sub = Sub { plan, scope: 0, uses: Vec::new(), correlated: false, cached: std::cell::RefCell::new(None) };
        let cols = derived_cols(&sub.plan);
        let range = self.add_source(scope, alias, schema, cols)?;
        Ok((Node::Derived { sub: Box::new(sub), base: range.0 }, range))
    }

    /// APPLY over VALUES or over a SELECT without FROM computes its columns from the current row directly.
    fn bind_inline(
        &mut self,
        query: &Query,
        alias: &str,
        columns: &[String],
        scope: usize,
    ) -> Result<Option<(Node, (usize, usize))>> {
        if !query.ctes.is_empty() || !query.order.is_empty() {
            return Ok(None);
        }
        let rows: Vec<Vec<Expr>>;
        let mut names: Vec<String> = columns.to_vec();
        match &query.body {
            Body::Values(values) => rows = values.clone(),
            Body::Select(select) if is_plain_row(select) => {
                let mut exprs = Vec::new();
                let mut own = Vec::new();
                for item in &select.items {
                    let Item::Expr { expr, alias } = item else { return Ok(None) };
                    if super::aggregate::has_aggregate(expr) {
                        return Ok(None);
                    }
                    let name = match (alias, expr) {
                        (Some(alias), _) => alias.clone(),
                        (None, Expr::Column(name)) => name.base().to_owned(),
                        _ => String::new(),
                    };
                    own.push(name);
                    exprs.push(expr.clone());
                }
                if names.is_empty() {
                    names = own;
                }
                rows = vec![exprs];
            }
            _ => return Ok(None),
        }
        let (mut cols, rows) = self.bind_value_rows(&rows, scope)?;
        rename(&mut cols, &names, alias)?;
        if let Some(at) = cols.iter().position(|c| c.name.is_empty()) {
            let message = format!("No column name was specified for column {} of '{alias}'.", at + 1);
            return Err(error::new(8155, 16, 2, &message));
        }
        for col in &mut cols {
            col.coercibility = col.coercibility.max(Coercibility::Implicit);
        }
        let range = self.add_source(scope, alias, None, cols)?;
        Ok(Some((Node::Values { rows, base: range.0 }, range)))
    }

    fn bind_table_function(
        &mut self,
        call: &FuncCall,
        alias: Option<&str>,
        columns: &[String],
        scope: usize,
        lateral: bool,
    ) -> Result<(Node, (usize, usize))> {
        let args_scope = if lateral { scope } else { self.new_scope(self.parent_of(scope)) };
        super::table::bind_function_source(self, call, alias, columns, scope, args_scope)
    }
}

fn is_plain_row(select: &Select) -> bool {
    select.from.is_empty()
        && select.filter.is_none()
        && select.group.is_none()
        && select.having.is_none()
        && select.top.is_none()
        && !select.distinct
        && select.into.is_none()
}

/// Columns of a derived table: their collations are those of columns.
pub(crate) fn derived_cols(plan: &Plan) -> Vec<OutCol> {
    plan.cols
        .iter()
        .map(|c| {
            let ty = if c.ty == SqlType::Null { SqlType::Int } else { c.ty };
            OutCol { ty, coercibility: c.coercibility.max(Coercibility::Implicit), ..c.clone() }
        })
        .collect()
}

fn join(
    kind: JoinKind,
    (left, left_range): (Node, (usize, usize)),
    (right, right_range): (Node, (usize, usize)),
    on: Vec<super::X>,
) -> Node {
    Node::Join(Box::new(JoinNode { kind, left, right, left_range, right_range, keys: Vec::new(), on, extra: None }))
}

/// Every pair of two sources.
pub(crate) fn cross_join(left: Node, left_range: (usize, usize), right: Node, right_range: (usize, usize)) -> Node {
    join(JoinKind::Cross, (left, left_range), (right, right_range), Vec::new())
}

/// Marks the rows of a source in a slot.
pub(crate) fn mark_present(input: Node, slot: usize) -> Node {
    Node::Mark { input: Box::new(input), slot }
}
