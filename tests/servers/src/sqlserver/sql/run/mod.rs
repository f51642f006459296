//! Execution of bound relations.

mod aggregate;
mod from;
mod group;
mod select;
mod window;

use std::collections::HashSet;
use std::rc::Rc;

use super::ast::SetOp;
use super::error::{self, Result};
use super::eval::implicit_cast;
use super::plan::{OrderX, Plan, RecursivePlan, Rel, Row, Sink, Step, TailPlan, X};
use super::state::Cx;
use crate::sqlserver::value::{SqlType, Value, sort_key};

pub(crate) use select::count_of;

impl Plan {
    /// Produces the rows of the query.
    pub(crate) fn run(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        match &self.rel {
            Rel::Select(select) => select.run(cx, sink),
            Rel::Values(rows) => {
                for items in rows {
                    let mut row = Row::with_capacity(items.len());
                    for item in items {
                        row.push(item.eval(cx, &[])?);
                    }
                    if sink(cx, &mut row)? == Step::Stop {
                        return Ok(Step::Stop);
                    }
                }
                Ok(Step::More)
            }
            Rel::Convert { input, casts } => input.run(cx, &mut |cx, row| {
                for (value, cast) in row.iter_mut().zip(casts) {
                    if let Some((from, to)) = cast {
                        *value = implicit_cast(value, from, to)?;
                    }
                }
                sink(cx, row)
            }),
            Rel::Set { op, left, right, types } => run_set(*op, left, right, types, cx, sink),
            Rel::Tail(tail) => tail.run(cx, sink),
            Rel::Recursive(recursive) => recursive.run(cx, sink),
            Rel::Work(work) => {
                let rows = Rc::clone(&work.borrow());
                for row in rows.iter() {
                    let mut row = row.clone();
                    if sink(cx, &mut row)? == Step::Stop {
                        return Ok(Step::Stop);
                    }
                }
                Ok(Step::More)
            }
        }
    }

    /// All rows at once.
    pub(crate) fn collect(&self, cx: &mut Cx<'_>) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.run(cx, &mut |_, row| {
            rows.push(std::mem::take(row));
            Ok(Step::More)
        })?;
        Ok(rows)
    }
}

/// Key of a whole row.
pub(crate) fn row_key(row: &[Value], types: &[SqlType]) -> Vec<u8> {
    let mut key = Vec::with_capacity(row.len() * 12);
    for (value, ty) in row.iter().zip(types) {
        sort_key(value, ty, &mut key);
    }
    key
}

/// Appends the sort key of one ORDER BY term.
pub(crate) fn order_key(value: &Value, order: &OrderX, key: &mut Vec<u8>) {
    let start = key.len();
    sort_key(value, &order.ty, key);
    if order.descending {
        for byte in &mut key[start..] {
            *byte = !*byte;
        }
    }
}

fn run_set(
    op: SetOp,
    left: &Plan,
    right: &Plan,
    types: &[SqlType],
    cx: &mut Cx<'_>,
    sink: &mut Sink<'_>,
) -> Result<Step> {
    if op == SetOp::UnionAll {
        if left.run(cx, sink)? == Step::Stop {
            return Ok(Step::Stop);
        }
        return right.run(cx, sink);
    }
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    if op == SetOp::Union {
        for side in [left, right] {
            let step = side.run(cx, &mut |cx, row| {
                if seen.insert(row_key(row, types)) { sink(cx, row) } else { Ok(Step::More) }
            })?;
            if step == Step::Stop {
                return Ok(Step::Stop);
            }
        }
        return Ok(Step::More);
    }
    let mut other: HashSet<Vec<u8>> = HashSet::new();
    right.run(cx, &mut |_, row| {
        other.insert(row_key(row, types));
        Ok(Step::More)
    })?;
    left.run(cx, &mut |cx, row| {
        let key = row_key(row, types);
        let wanted = other.contains(&key) == (op == SetOp::Intersect);
        if wanted && seen.insert(key) { sink(cx, row) } else { Ok(Step::More) }
    })
}

/// Evaluates OFFSET or FETCH.
fn limit(x: Option<&X>, cx: &mut Cx<'_>, what: &str) -> Result<Option<u64>> {
    let Some(x) = x else { return Ok(None) };
    let value = x.eval(cx, &[])?;
    let number = value.as_i64().unwrap_or(-1);
    match u64::try_from(number) {
        Ok(0) if what == "FETCH" => {
            Err(error::new(10744, 15, 1, "The number of rows provided for a FETCH clause must be greater then zero."))
        }
        Ok(n) => Ok(Some(n)),
        Err(_) => {
            let number = if what == "FETCH" { 10744 } else { 10742 };
            let message = if what == "FETCH" {
                "The number of rows provided for a FETCH clause must be greater then zero."
            } else {
                "The offset specified in a OFFSET clause may not be negative."
            };
            Err(error::new(number, 15, 1, message))
        }
    }
}

/// Passes rows of a window `offset..offset + fetch`.
fn emit_window(
    rows: impl Iterator<Item = Row>,
    offset: Option<u64>,
    fetch: Option<u64>,
    cx: &mut Cx<'_>,
    sink: &mut Sink<'_>,
) -> Result<Step> {
    let skip = usize::try_from(offset.unwrap_or(0)).unwrap_or(usize::MAX);
    let take = fetch.map_or(usize::MAX, |f| usize::try_from(f).unwrap_or(usize::MAX));
    for mut row in rows.skip(skip).take(take) {
        if sink(cx, &mut row)? == Step::Stop {
            return Ok(Step::Stop);
        }
    }
    Ok(Step::More)
}

impl TailPlan {
    fn run(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let offset = limit(self.offset.as_ref(), cx, "OFFSET")?;
        let fetch = limit(self.fetch.as_ref(), cx, "FETCH")?;
        let mut rows: Vec<(Vec<u8>, Row)> = Vec::new();
        self.input.run(cx, &mut |cx, row| {
            let mut key = Vec::new();
            for order in &self.order {
                let value = order.x.eval(cx, row)?;
                order_key(&value, order, &mut key);
            }
            rows.push((key, std::mem::take(row)));
            Ok(Step::More)
        })?;
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        emit_window(rows.into_iter().map(|(_, row)| row), offset, fetch, cx, sink)
    }
}

impl RecursivePlan {
    fn run(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let mut last = self.anchor.collect(cx)?;
        let mut depth = 0;
        loop {
            for row in &last {
                if sink(cx, &mut row.clone())? == Step::Stop {
                    return Ok(Step::Stop);
                }
            }
            if last.is_empty() {
                return Ok(Step::More);
            }
            cx.check_cancel()?;
            let saved = self.work.replace(Rc::new(last));
            let next = self.step.collect(cx);
            self.work.replace(saved);
            last = next?;
            if !last.is_empty() {
                depth += 1;
                if self.limit != 0 && depth > self.limit {
                    let message = format!(
                        "The statement terminated. The maximum recursion {} has been exhausted before statement completion.",
                        self.limit
                    );
                    return Err(error::plain(530, &message));
                }
            }
        }
    }
}
