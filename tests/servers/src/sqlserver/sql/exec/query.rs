//! SELECT as a statement: results to the client, variables, SELECT INTO.

use super::super::api::cmd;
use super::super::ast::{Body, Item, Query, Select, SetOp};
use super::super::bind::{Binder, column_meta};
use super::super::error::{self, CLOSED, Result};
use super::super::plan::{Plan, Row, Step};
use super::super::state::Cx;
use super::super::typed;
use super::{Flow, ddl, done, transaction};

/// The leftmost SELECT, which carries INTO.
fn first_select(body: &Body) -> Option<&Select> {
    match body {
        Body::Select(select) => Some(select),
        Body::Set(SetOp::UnionAll | SetOp::Union | SetOp::Except | SetOp::Intersect, left, _) => first_select(left),
        Body::Nested(query) => first_select(&query.body),
        Body::Values(_) => None,
    }
}

pub(super) fn select(cx: &mut Cx<'_>, query: &Query) -> Result<Flow> {
    let first = first_select(&query.body);
    if first.is_some_and(|s| !s.from.is_empty()) {
        transaction::implicit(cx);
    }
    if let Some(name) = first.and_then(|s| s.into.clone()) {
        return select_into(cx, query, &name);
    }
    let assigns = first.is_some_and(|s| s.items.iter().any(|i| matches!(i, Item::Assign { .. })));
    let mut plan = Binder::new(cx).bind_query(query, None)?;
    typed::settle(&mut plan);
    if assigns {
        let count = limited(cx, &plan, &mut |_, _| Ok(Step::More))?;
        cx.st.rowcount = count;
        return Ok(Flow::Next);
    }
    run_query(cx, &plan)
}

/// Sends a result set.
pub(crate) fn run_query(cx: &mut Cx<'_>, plan: &Plan) -> Result<Flow> {
    let meta = column_meta(&plan.cols);
    cx.out.columns(&meta).map_err(|_| error::marker(CLOSED))?;
    if cx.st.settings.fmtonly {
        done(cx, cmd::SELECT, None)?;
        return Ok(Flow::Next);
    }
    let count = limited(cx, plan, &mut |cx, row| {
        cx.out.row(row).map_err(|_| error::marker(CLOSED))?;
        Ok(Step::More)
    })?;
    cx.st.rowcount = count;
    done(cx, cmd::SELECT, Some(count))?;
    Ok(Flow::Next)
}

/// Runs a plan under SET ROWCOUNT and counts its rows.
pub(super) fn limited(
    cx: &mut Cx<'_>,
    plan: &Plan,
    sink: &mut dyn FnMut(&mut Cx<'_>, &mut Row) -> Result<Step>,
) -> Result<u64> {
    let limit = if cx.st.settings.rowcount == 0 { u64::MAX } else { cx.st.settings.rowcount };
    let mut count = 0_u64;
    // A function called by the query runs statements of its own; they must not end this one's transaction.
    cx.st.hold += 1;
    let mut until_check = 64;
    let result = plan.run(cx, &mut |cx, row| {
        if count == limit {
            return Ok(Step::Stop);
        }
        until_check -= 1;
        if until_check == 0 {
            until_check = 64;
            cx.check_cancel()?;
        }
        count += 1;
        sink(cx, row)
    });
    cx.st.hold -= 1;
    result?;
    Ok(count)
}

fn select_into(cx: &mut Cx<'_>, query: &Query, name: &super::super::ast::Name) -> Result<Flow> {
    transaction::check_writable(cx)?;
    let mut plan = Binder::new(cx).bind_query(query, None)?;
    typed::settle(&mut plan);
    if cx.st.settings.fmtonly {
        return Ok(Flow::Next);
    }
    let object = ddl::create_from_columns(cx, name, &plan.cols)?;
    let columns = plan.cols.len();
    let txn = cx.st.txn();
    let mut load = txn.bulk_load(object).map_err(|e| super::super::storage::error(cx, e))?;
    let has_rowversion = plan.cols.iter().position(|c| c.ty == crate::sqlserver::value::SqlType::RowVersion);
    let count = limited(cx, &plan, &mut |cx, row| {
        debug_assert_eq!(row.len(), columns);
        if let Some(at) = has_rowversion {
            let database = cx.st.database;
            let next = cx.st.txn().next_rowversion(database);
            row[at] = crate::sqlserver::value::Value::binary(&next.to_be_bytes());
        }
        load.push(row).map_err(|e| super::super::storage::error(cx, e))?;
        Ok(Step::More)
    })?;
    load.finish().map_err(|e| super::super::storage::error(cx, e))?;
    cx.st.rowcount = count;
    done(cx, cmd::SELECT, Some(count))?;
    Ok(Flow::Next)
}
