//! INSERT, UPDATE, DELETE, MERGE.

mod delete;
mod insert;
mod merge;
mod output;
mod references;
mod table;
mod update;

use std::sync::Arc;

use super::super::api::cmd;
use super::super::ast::{Hints, TableRef, Top};
use super::super::bind::{Binder, same_name};
use super::super::error::{self, Result};
use super::super::plan::{Row, TopX};
use super::super::state::Cx;
use super::super::stmt::Target;
use super::super::{lookup, permission, storage};
use super::{Flow, done};
use crate::sqlserver::store::ReadMode;
use crate::sqlserver::store::catalog::{Object, ObjectBody};
use crate::sqlserver::value::Value;

pub(crate) use delete::delete;
pub(crate) use insert::insert;
pub(crate) use merge::merge;
pub(crate) use table::{Table, bind_condition_text, bind_text, identity_range, integer_of, integer_value, qualified};
pub(crate) use update::update;

/// Rows that a statement took away and put in place, for triggers.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) inserted: Vec<Row>,
    pub(crate) deleted: Vec<Row>,
    /// Positions of updated columns.
    pub(crate) updated: Vec<usize>,
    pub(crate) count: u64,
}

/// The table that a statement changes, with its write lock.
pub(super) struct Opened {
    pub(super) object: Arc<Object>,
    pub(super) variable: bool,
    pub(super) mode: ReadMode,
    pub(super) hints: Hints,
}

/// Finds and locks the target of a data change. With FROM, its name may be an alias.
pub(super) fn open_target(
    binder: &mut Binder<'_, '_>,
    target: &Target,
    from: &[TableRef],
    action: &str,
) -> Result<Opened> {
    super::transaction::check_writable(binder.cx)?;
    match target {
        Target::Var(name) => {
            let object = binder.table_variable(name)?;
            Ok(Opened { object, variable: true, mode: ReadMode::Committed, hints: Hints::default() })
        }
        Target::Table(name, hints) => {
            let mut hints = *hints;
            let mut real = name.clone();
            if name.parts.len() == 1
                && let Some((found, more)) = alias_target(from, name.base())
            {
                match found {
                    Target::Table(found, _) => real = found,
                    Target::Var(var) => return open_target(binder, &Target::Var(var), &[], action),
                }
                hints.tablock |= more.tablock;
                hints.tablockx |= more.tablockx;
                hints.holdlock |= more.holdlock;
                hints.readpast |= more.readpast;
            }
            if super::super::catalog::find(binder, &real)?.is_some() {
                return Err(error::plain(259, "Ad hoc updates to system catalogs are not allowed."));
            }
            let object = lookup::table_or_view(binder, &real)?;
            let object = match &object.body {
                ObjectBody::Synonym(target) => {
                    let target = super::super::parse::parse_name(target)?;
                    lookup::table_or_view(binder, &target)?
                }
                _ => object,
            };
            if !binder.chained {
                permission::check_object(binder.cx, &object, action)?;
            }
            let mode = storage::write_lock(binder.cx, &object, hints)?;
            Ok(Opened { object, variable: false, mode, hints })
        }
    }
}

/// The table behind an alias of FROM.
fn alias_target(from: &[TableRef], alias: &str) -> Option<(Target, Hints)> {
    from.iter().find_map(|t| alias_in(t, alias))
}

fn alias_in(table: &TableRef, wanted: &str) -> Option<(Target, Hints)> {
    match table {
        TableRef::Table { name, alias, hints } => {
            let shown = alias.as_deref().unwrap_or(name.base());
            same_name(shown, wanted).then(|| (Target::Table(name.clone(), *hints), *hints))
        }
        TableRef::Var { name, alias } => {
            let shown = alias.as_deref().unwrap_or(name);
            same_name(shown, wanted).then(|| (Target::Var(name.clone()), Hints::default()))
        }
        TableRef::Join { left, right, .. } | TableRef::Apply { left, right, .. } => {
            alias_in(left, wanted).or_else(|| alias_in(right, wanted))
        }
        TableRef::Derived { .. } | TableRef::Func { .. } => None,
    }
}

/// The row limit of TOP and SET ROWCOUNT.
pub(super) fn row_limit(cx: &mut Cx<'_>, top: Option<&TopX>, total: usize) -> Result<usize> {
    let mut limit = usize::MAX;
    if let Some(top) = top {
        let count = top.count.eval(cx, &[])?;
        if top.percent {
            let percent = count.as_i64().unwrap_or(0);
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "rounded up to whole rows"
            )]
            {
                limit = (total as f64 * percent as f64 / 100.0).ceil() as usize;
            }
        } else {
            limit = usize::try_from(super::super::run::count_of(&count)?).unwrap_or(usize::MAX);
        }
    }
    if cx.st.settings.rowcount > 0 {
        limit = limit.min(usize::try_from(cx.st.settings.rowcount).unwrap_or(usize::MAX));
    }
    Ok(limit)
}

pub(super) fn bind_top(binder: &mut Binder<'_, '_>, top: Option<&Top>) -> Result<Option<TopX>> {
    top.map(|t| binder.bind_top(t, false)).transpose()
}

/// Runs `body` while functions that it calls keep off the statement's transaction.
pub(super) fn held<T>(cx: &mut Cx<'_>, body: impl FnOnce(&mut Cx<'_>) -> Result<T>) -> Result<T> {
    cx.st.hold += 1;
    let result = body(cx);
    cx.st.hold -= 1;
    result
}

/// Row count and end of a data change.
pub(super) fn finish(cx: &mut Cx<'_>, command: u16, count: u64) -> Result<Flow> {
    cx.st.rowcount = count;
    debug_assert!(command != cmd::SELECT);
    done(cx, command, Some(count))?;
    Ok(Flow::Next)
}

/// A row of NULLs.
pub(super) fn nulls(width: usize) -> Row {
    vec![Value::Null; width]
}

/// All rows of a plan, as the work of one statement.
pub(crate) fn collect_held(cx: &mut Cx<'_>, plan: &super::super::plan::Plan) -> Result<Vec<Row>> {
    held(cx, |cx| plan.collect(cx))
}
