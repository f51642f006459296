//! Binding: names become slots, types are settled, errors of names and types are found before the first row.

mod aggregate;
mod expr;
mod from;
mod function;
mod pushdown;
mod query;
mod select;
mod table;
mod window;

use std::cell::RefCell;
use std::rc::Rc;

use super::api::ColumnMeta;
use super::ast::{Expr, Name, Query, TypeArg, TypeName};
use super::error::{self, Result};
use super::plan::{AggregateX, OutCol, Plan, Row, Sub, Typed, WindowX, X};
use super::state::Cx;
use crate::sqlserver::store::catalog::{DatabaseId, SchemaId};
use crate::sqlserver::value::{Coercibility, Collation, SqlType};

pub(crate) use aggregate::walk;
pub(crate) use expr::convert;
pub(crate) use from::{cross_join, derived_cols as derived_columns, mark_present};
pub(crate) use pushdown::{place_conditions, set_needed, split_and};
pub(crate) use query::rename;
pub(crate) use table::{scan_node, table_columns};

/// Name of columns that no statement can name.
pub(crate) const HIDDEN: &str = "\u{0}";

/// Slots of window results before their real place is known.
const WINDOW_BASE: usize = 1 << 40;

/// One table source of a scope.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Alias, or the table's own name.
    pub(crate) alias: String,
    /// Schema of an unaliased table, for `schema.table.column`.
    pub(crate) schema: Option<String>,
    pub(crate) cols: Vec<OutCol>,
    pub(crate) base: usize,
}

/// Grouping of a scope while its select list is bound.
#[derive(Debug, Default)]
struct Grouping {
    keys: Vec<(String, Typed)>,
    aggregates: Vec<AggregateX>,
    shown: Vec<String>,
}

/// Names in sight of one query.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    parent: Option<usize>,
    pub(crate) sources: Vec<Source>,
    pub(crate) width: usize,
    grouping: Option<Grouping>,
    /// The select list is being bound: aggregates become slots of the group row.
    grouped: bool,
    /// Slots that any expression reads.
    pub(crate) used: std::collections::HashSet<usize>,
    windows: Vec<WindowX>,
    windows_allowed: bool,
}

/// A common table expression in sight.
#[derive(Clone)]
enum CteBody {
    Query(Rc<Query>),
    Work { cols: Vec<OutCol>, rows: Rc<RefCell<Rc<Vec<Row>>>>, used: Rc<std::cell::Cell<bool>> },
}

#[derive(Clone)]
struct CteDef {
    name: String,
    columns: Vec<String>,
    body: CteBody,
    /// CTEs in sight of its query.
    visible: usize,
    recursion_limit: u32,
}

/// Binds one statement.
pub(crate) struct Binder<'b, 'a> {
    pub(crate) cx: &'b mut Cx<'a>,
    pub(crate) scopes: Vec<Scope>,
    ctes: Vec<CteDef>,
    outer_refs: Vec<(usize, usize)>,
    /// Database of unqualified names.
    pub(crate) database: DatabaseId,
    /// Schema of unqualified names inside a module.
    pub(crate) schema: Option<SchemaId>,
    /// Inside a view: permissions of its tables are those of its owner.
    pub(crate) chained: bool,
    depth: u32,
    /// The next SELECT is the target of a data change: it also gives row id and columns of its table.
    pub(crate) exposes_row: Option<crate::sqlserver::store::ReadMode>,
}

impl<'b, 'a> Binder<'b, 'a> {
    pub(crate) fn new(cx: &'b mut Cx<'a>) -> Self {
        let database = cx.st.database;
        let chained = cx.st.frame().module_id != 0;
        Self {
            cx,
            scopes: Vec::new(),
            ctes: Vec::new(),
            outer_refs: Vec::new(),
            database,
            schema: None,
            chained,
            depth: 0,
            exposes_row: None,
        }
    }

    pub(crate) fn new_scope(&mut self, parent: Option<usize>) -> usize {
        self.scopes.push(Scope { parent, ..Scope::default() });
        self.scopes.len() - 1
    }

    pub(crate) fn deeper<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > 200 {
            return Err(error::new(
                8631,
                17,
                1,
                "Internal error: Server stack limit has been reached. Please look for potentially deep nesting in your query, and try to simplify it.",
            ));
        }
        let result = body(self);
        self.depth -= 1;
        result
    }

    /// A scalar expression without any table in sight.
    pub(crate) fn bind_constant(&mut self, expr: &Expr) -> Result<Typed> {
        let scope = self.new_scope(None);
        self.bind_scalar(expr, scope)
    }

    /// A condition without any table in sight.
    pub(crate) fn bind_constant_condition(&mut self, expr: &Expr) -> Result<X> {
        let scope = self.new_scope(None);
        self.bind_condition(expr, scope)
    }

    /// A subquery inside `scope`.
    pub(crate) fn bind_sub(&mut self, query: &Query, scope: Option<usize>) -> Result<Sub> {
        let mark = self.outer_refs.len();
        let plan = self.bind_query(query, scope)?;
        Ok(self.finish_sub(plan, scope, mark))
    }

    fn finish_sub(&mut self, plan: Plan, scope: Option<usize>, mark: usize) -> Sub {
        let refs = self.outer_refs.split_off(mark);
        let correlated = !refs.is_empty();
        let mut uses = Vec::new();
        for (level, slot) in refs {
            if Some(level) == scope {
                if !uses.contains(&slot) {
                    uses.push(slot);
                }
            } else {
                self.outer_refs.push((level, slot));
            }
        }
        Sub { plan, scope: scope.unwrap_or(0), uses, correlated, cached: RefCell::new(None) }
    }

    /// A declared type; `default_length` is 1 in declarations and 30 in CAST.
    pub(crate) fn bind_type(&mut self, ty: &TypeName, default_length: u16) -> Result<SqlType> {
        super::types::resolve(self.cx, self.database, ty, default_length).map(|(ty, _)| ty)
    }

    /// Finds a column: its scope, source and position.
    fn find_column(&self, name: &Name, scope: usize) -> Result<(usize, usize, usize)> {
        let mut at = Some(scope);
        while let Some(level) = at {
            if let Some((source, column)) = self.find_in_scope(name, level)? {
                return Ok((level, source, column));
            }
            at = self.scopes[level].parent;
        }
        if name.parts.len() > 1 {
            Err(error::unbound_identifier(&name.display()))
        } else {
            Err(error::unknown_column(name.base()))
        }
    }

    fn find_in_scope(&self, name: &Name, level: usize) -> Result<Option<(usize, usize)>> {
        let column = name.base();
        let qualifier = &name.parts[..name.parts.len() - 1];
        let mut found = None;
        let mut qualified = false;
        for (at, source) in self.scopes[level].sources.iter().enumerate() {
            if !source_matches(source, qualifier) {
                continue;
            }
            qualified = true;
            for (position, col) in source.cols.iter().enumerate() {
                if same_name(&col.name, column) {
                    if found.is_some() {
                        let shown = name.display();
                        return Err(error::plain(209, &format!("Ambiguous column name '{shown}'.")));
                    }
                    found = Some((at, position));
                }
            }
        }
        if found.is_none() && qualified && !qualifier.is_empty() {
            return Err(error::unknown_column(column));
        }
        Ok(found)
    }
}

fn source_matches(source: &Source, qualifier: &[String]) -> bool {
    let Some(last) = qualifier.last() else { return true };
    if !same_name(&source.alias, last) {
        return false;
    }
    match (qualifier.len(), &source.schema) {
        (1, _) => true,
        (_, Some(schema)) => {
            let wanted = &qualifier[qualifier.len() - 2];
            wanted.is_empty() || same_name(schema, wanted)
        }
        _ => false,
    }
}

/// Identifiers compare without regard to case.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() || !b.is_ascii()) && a.to_lowercase() == b.to_lowercase()
}

/// Result columns as the wire describes them.
pub(crate) fn column_meta(cols: &[OutCol]) -> Vec<ColumnMeta> {
    cols.iter()
        .map(|c| {
            let ty = if c.ty == SqlType::Null { SqlType::Int } else { c.ty };
            ColumnMeta {
                name: c.name.clone(),
                ty,
                nullable: c.nullable,
                identity: c.identity,
                computed: c.computed,
                collation: ty.collation(),
            }
        })
        .collect()
}

/// Settles the collation of two character operands and gives both the same one.
pub(crate) fn unify_collation(left: &mut Typed, right: &mut Typed, operation: &str) -> Result<Coercibility> {
    let (Some(a), Some(b)) = (left.ty.collation(), right.ty.collation()) else {
        return Ok(left.coercibility.max(right.coercibility));
    };
    let (collation, coercibility) = Collation::resolve((a, left.coercibility), (b, right.coercibility), operation)?;
    left.ty = left.ty.with_collation(collation);
    right.ty = right.ty.with_collation(collation);
    Ok(coercibility)
}

/// Facets of a written type, -1 for max.
pub(crate) fn facets(ty: &TypeName) -> Vec<i64> {
    ty.args
        .iter()
        .map(|a| match a {
            TypeArg::Number(n) => i64::from(*n),
            TypeArg::Max => -1,
        })
        .collect()
}

/// Whether an expression reads no row.
pub(crate) fn is_constant(x: &X) -> bool {
    pushdown::slots(x).is_empty() && !pushdown::reads_outer(x)
}
