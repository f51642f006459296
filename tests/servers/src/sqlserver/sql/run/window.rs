//! Window functions over materialised rows.

use std::collections::HashMap;

use super::super::ast::Bound;
use super::super::error::{self, Result};
use super::super::plan::{Aggregate, Row, Window, WindowX};
use super::super::state::Cx;
use super::aggregate::Accumulator;
use super::{group, order_key};
use crate::sqlserver::value::{Value, sort_key};

/// Appends the result of each window function to each row.
pub(super) fn compute(windows: &[WindowX], rows: &mut [Row], cx: &mut Cx<'_>) -> Result<()> {
    for window in windows {
        cx.check_cancel()?;
        let mut results = vec![Value::Null; rows.len()];
        for partition in partitions(window, rows, cx)? {
            compute_partition(window, &partition, rows, &mut results, cx)?;
        }
        for (row, result) in rows.iter_mut().zip(results) {
            row.push(result);
        }
    }
    Ok(())
}

/// Rows of one partition in window order, with their sort keys.
struct Partition {
    /// Index of the row and its order key.
    members: Vec<(usize, Vec<u8>)>,
}

impl Partition {
    fn peers(&self, a: usize, b: usize) -> bool {
        self.members[a].1 == self.members[b].1
    }
}

fn partitions(window: &WindowX, rows: &[Row], cx: &mut Cx<'_>) -> Result<Vec<Partition>> {
    let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut found: Vec<Partition> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut key = Vec::new();
        for (x, ty) in &window.partition {
            sort_key(&x.eval(cx, row)?, ty, &mut key);
        }
        let mut order = Vec::new();
        for term in &window.order {
            let value = term.x.eval(cx, row)?;
            order_key(&value, term, &mut order);
        }
        let partition = *index.entry(key).or_insert_with(|| {
            found.push(Partition { members: Vec::new() });
            found.len() - 1
        });
        found[partition].members.push((at, order));
    }
    for partition in &mut found {
        partition.members.sort_by(|a, b| a.1.cmp(&b.1));
    }
    Ok(found)
}

#[allow(clippy::cast_possible_wrap, clippy::cast_precision_loss, reason = "counts of rows")]
fn compute_partition(
    window: &WindowX,
    partition: &Partition,
    rows: &[Row],
    results: &mut [Value],
    cx: &mut Cx<'_>,
) -> Result<()> {
    let count = partition.members.len();
    let (mut rank, mut dense) = (0_i64, 0_i64);
    let tiles = if window.kind == Window::Ntile { ntile_count(window, partition, rows, cx)? } else { 1 };
    if window.kind == Window::Aggregate && running(window) {
        return compute_running(window, partition, rows, results, cx);
    }
    for at in 0..count {
        if at == 0 || !partition.peers(at - 1, at) {
            rank = at as i64 + 1;
            dense += 1;
        }
        let here = partition.members[at].0;
        results[here] = match window.kind {
            Window::RowNumber => Value::BigInt(at as i64 + 1),
            Window::Rank => Value::BigInt(rank),
            Window::DenseRank => Value::BigInt(dense),
            Window::Ntile => Value::BigInt(tile_of(at, count, tiles) as i64),
            Window::PercentRank => Value::Float(if count > 1 { (rank - 1) as f64 / (count - 1) as f64 } else { 0.0 }),
            Window::CumeDist => {
                let mut last = at;
                while last + 1 < count && partition.peers(last + 1, at) {
                    last += 1;
                }
                Value::Float((last + 1) as f64 / count as f64)
            }
            Window::Lag | Window::Lead => offset_value(window, partition, rows, at, cx)?,
            Window::FirstValue | Window::LastValue | Window::Aggregate => {
                let frame = frame_of(window, partition, at);
                framed(window, partition, rows, frame, cx)?
            }
        };
    }
    Ok(())
}

fn ntile_count(window: &WindowX, partition: &Partition, rows: &[Row], cx: &mut Cx<'_>) -> Result<usize> {
    let first = &rows[partition.members[0].0];
    let value = window.args[0].eval(cx, first)?.as_i64().unwrap_or(0);
    usize::try_from(value).ok().filter(|n| *n > 0).ok_or_else(|| {
        error::plain(4116, "The function 'ntile' takes only a positive int or bigint expression as its input.")
    })
}

/// Larger groups come first.
fn tile_of(at: usize, count: usize, tiles: usize) -> usize {
    let (size, larger) = (count / tiles, count % tiles);
    let in_larger = larger * (size + 1);
    if at < in_larger { at / (size + 1) + 1 } else { larger + (at - in_larger) / size.max(1) + 1 }
}

fn offset_value(window: &WindowX, partition: &Partition, rows: &[Row], at: usize, cx: &mut Cx<'_>) -> Result<Value> {
    let row = &rows[partition.members[at].0];
    let offset = match window.args.get(1) {
        Some(x) => x.eval(cx, row)?.as_i64().unwrap_or(-1),
        None => 1,
    };
    let offset = usize::try_from(offset)
        .map_err(|_| error::plain(8730, "Offset parameter for Lag and Lead functions cannot be a negative value."))?;
    let target = if window.kind == Window::Lag { at.checked_sub(offset) } else { at.checked_add(offset) };
    match target.and_then(|t| partition.members.get(t)) {
        Some((there, _)) => window.args[0].eval(cx, &rows[*there]),
        None => match window.args.get(2) {
            Some(default) => default.eval(cx, row),
            None => Ok(Value::Null),
        },
    }
}

/// `start..end` of the frame of a row.
fn frame_of(window: &WindowX, partition: &Partition, at: usize) -> (usize, usize) {
    let count = partition.members.len();
    let frame = &window.frame;
    let shift = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let first_peer = |mut i: usize| {
        while i > 0 && partition.peers(i - 1, at) {
            i -= 1;
        }
        i
    };
    let last_peer = |mut i: usize| {
        while i + 1 < count && partition.peers(i + 1, at) {
            i += 1;
        }
        i
    };
    let start = match frame.start {
        Bound::UnboundedPreceding => 0,
        Bound::Preceding(n) => at.saturating_sub(shift(n)),
        Bound::Current => {
            if frame.rows {
                at
            } else {
                first_peer(at)
            }
        }
        Bound::Following(n) => at.saturating_add(shift(n)),
        Bound::UnboundedFollowing => count,
    };
    let end = match frame.end {
        Bound::UnboundedPreceding => 0,
        Bound::Preceding(n) => (at + 1).saturating_sub(shift(n)),
        Bound::Current => {
            if frame.rows {
                at + 1
            } else {
                last_peer(at) + 1
            }
        }
        Bound::Following(n) => at.saturating_add(shift(n)).saturating_add(1),
        Bound::UnboundedFollowing => count,
    };
    (start.min(count), end.min(count).max(start.min(count)))
}

fn framed(
    window: &WindowX,
    partition: &Partition,
    rows: &[Row],
    (start, end): (usize, usize),
    cx: &mut Cx<'_>,
) -> Result<Value> {
    if window.kind == Window::Aggregate {
        let Some(aggregate) = &window.aggregate else { return Ok(Value::Null) };
        let members: Vec<&Row> = partition.members[start..end].iter().map(|(i, _)| &rows[*i]).collect();
        return group::over_rows(aggregate, &members, cx);
    }
    if start >= end {
        return Ok(Value::Null);
    }
    let at = if window.kind == Window::FirstValue { start } else { end - 1 };
    window.args[0].eval(cx, &rows[partition.members[at].0])
}

/// Frames that only grow are computed in one pass.
fn running(window: &WindowX) -> bool {
    window.frame.start == Bound::UnboundedPreceding
        && matches!(window.frame.end, Bound::Current | Bound::UnboundedFollowing)
}

fn compute_running(
    window: &WindowX,
    partition: &Partition,
    rows: &[Row],
    results: &mut [Value],
    cx: &mut Cx<'_>,
) -> Result<()> {
    let Some(aggregate) = &window.aggregate else { return Ok(()) };
    let count = partition.members.len();
    let whole = window.frame.end == Bound::UnboundedFollowing;
    let cheap = matches!(
        aggregate.kind,
        Aggregate::Count | Aggregate::CountBig | Aggregate::Sum | Aggregate::Avg | Aggregate::Min | Aggregate::Max
    );
    let mut state = Accumulator::new(aggregate);
    let mut at = 0;
    while at < count {
        let mut end = at + 1;
        while end < count && (whole || (!window.frame.rows && partition.peers(end, at))) {
            end += 1;
        }
        for (member, _) in &partition.members[at..end] {
            state.add(aggregate, cx, &rows[*member])?;
        }
        let value = if cheap || whole {
            state.snapshot().finish(aggregate, cx)?
        } else {
            let members: Vec<&Row> = partition.members[..end].iter().map(|(i, _)| &rows[*i]).collect();
            group::over_rows(aggregate, &members, cx)?
        };
        for (member, _) in &partition.members[at..end] {
            results[*member] = value.clone();
        }
        at = end;
    }
    Ok(())
}
