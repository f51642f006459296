//! Sources of FROM: scans, joins, APPLY.

use std::collections::HashMap;
use std::ops::Bound;
use std::rc::Rc;

use super::super::ast::JoinKind;
use super::super::error::Result;
use super::super::eval::{all_true, eval_all, implicit_cast, run_sub};
use super::super::plan::{JoinKey, JoinNode, LookupRows, LookupX, Node, RangeX, Row, ScanNode, Sink, Step};
use super::super::state::Cx;
use crate::sqlserver::store::{RowRef, Scan};
use crate::sqlserver::value::{Value, hash_key, sort_key};

/// Rows between two looks at the cancel flag.
const CANCEL_EVERY: u32 = 256;

impl Node {
    /// Writes each row into `row` and calls on.
    pub(crate) fn run(&self, cx: &mut Cx<'_>, row: &mut Row, sink: &mut Sink<'_>) -> Result<Step> {
        match self {
            Self::One => sink(cx, row),
            Self::Scan(scan) => scan.run(cx, row, sink),
            Self::Rows { rows, base, width } => {
                for source in rows.iter() {
                    row[*base..*base + *width].clone_from_slice(&source[..*width]);
                    if sink(cx, row)? == Step::Stop {
                        return Ok(Step::Stop);
                    }
                }
                Ok(Step::More)
            }
            Self::Virtual(node) => {
                let args = eval_all(&node.args, cx, row)?;
                let rows = (node.rows)(cx, &node.source, &args)?;
                for mut source in rows {
                    for (place, value) in row[node.base..node.base + node.width].iter_mut().zip(source.drain(..)) {
                        *place = value;
                    }
                    if sink(cx, row)? == Step::Stop {
                        return Ok(Step::Stop);
                    }
                }
                Ok(Step::More)
            }
            Self::Filter { input, conditions } => input.run(cx, row, &mut |cx, row| {
                if all_true(conditions, cx, row)? { sink(cx, row) } else { Ok(Step::More) }
            }),
            Self::Mark { input, slot } => input.run(cx, row, &mut |cx, row| {
                row[*slot] = Value::Bit(true);
                sink(cx, row)
            }),
            Self::Join(join) => join.run(cx, row, sink),
            Self::Values { rows, base } => {
                for items in rows {
                    for (at, item) in items.iter().enumerate() {
                        row[*base + at] = item.eval(cx, row)?;
                    }
                    if sink(cx, row)? == Step::Stop {
                        return Ok(Step::Stop);
                    }
                }
                Ok(Step::More)
            }
            Self::Derived { sub, base } => {
                // The rows around must stay readable while the inner query runs.
                let outside = if sub.uses.is_empty() { Vec::new() } else { row.clone() };
                run_sub(sub, cx, &outside, &mut |cx, out| {
                    for (at, value) in out.iter_mut().enumerate() {
                        row[*base + at] = std::mem::replace(value, Value::Null);
                    }
                    sink(cx, row)
                })
            }
            Self::Apply { left, right, outer, base, width } => left.run(cx, row, &mut |cx, row| {
                let mut any = false;
                let step = right.run(cx, row, &mut |cx, row| {
                    any = true;
                    sink(cx, row)
                })?;
                if step == Step::Stop {
                    return Ok(Step::Stop);
                }
                if *outer && !any {
                    row[*base..*base + *width].fill(Value::Null);
                    return sink(cx, row);
                }
                Ok(Step::More)
            }),
        }
    }
}

impl ScanNode {
    fn run(&self, cx: &mut Cx<'_>, row: &mut Row, sink: &mut Sink<'_>) -> Result<Step> {
        if let Some(lookup) = &self.lookup {
            return self.run_lookup(lookup, cx, row, sink);
        }
        let Some(scan) = self.open(cx, row)? else { return Ok(Step::More) };
        let txn = if self.variable { cx.st.variable_txn() } else { cx.st.txn() };
        let mut until_check = CANCEL_EVERY;
        for item in scan {
            let item = item.map_err(|e| super::super::storage::error(cx, e))?;
            until_check -= 1;
            if until_check == 0 {
                until_check = CANCEL_EVERY;
                cx.check_cancel()?;
            }
            self.load(cx, &item, row)?;
            if !all_true(&self.conditions, cx, row)? {
                if self.release {
                    txn.release_row(self.table, item.id());
                }
                continue;
            }
            if sink(cx, row)? == Step::Stop {
                return Ok(Step::Stop);
            }
        }
        Ok(Step::More)
    }

    /// Copies what is needed of a stored row into the row of the query.
    fn load(&self, cx: &Cx<'_>, item: &RowRef, row: &mut Row) -> Result<()> {
        let places = &mut row[self.base..self.base + self.columns];
        item.decode_needed(&self.needed, places).map_err(|e| super::super::storage::error(cx, e))?;
        if let Some(slot) = self.row_id_slot {
            row[slot] = super::super::storage::row_id_value(item.id());
        }
        Ok(())
    }

    /// Opens the scan; none when a seek key is NULL, which equals nothing.
    fn open(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<Scan>> {
        let txn = if self.variable { cx.st.variable_txn() } else { cx.st.txn() };
        if let Some((index, keys)) = &self.seek {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                let value = key.eval(cx, row)?;
                if value.is_null() {
                    return Ok(None);
                }
                values.push(value);
            }
            let found = txn.seek(self.table, *index, &values, self.mode);
            if let Some(scan) = found.map_err(|e| super::super::storage::error(cx, e))? {
                return Ok(Some(scan));
            }
        }
        if let Some(range) = &self.range {
            let (low, high) = range.bounds(cx, row)?;
            let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
            let bounds = (as_slice(&low), as_slice(&high));
            let found = txn.range(self.table, range.index, bounds, self.mode);
            if let Some(scan) = found.map_err(|e| super::super::storage::error(cx, e))? {
                return Ok(Some(scan));
            }
        }
        txn.scan(self.table, self.mode).map(Some).map_err(|e| super::super::storage::error(cx, e))
    }

    fn run_lookup(&self, lookup: &LookupX, cx: &mut Cx<'_>, row: &mut Row, sink: &mut Sink<'_>) -> Result<Step> {
        let rows = self.lookup_rows(lookup, cx)?;
        let mut key = Vec::new();
        for (_, x, ty) in &lookup.keys {
            let value = x.eval(cx, row)?;
            if value.is_null() {
                return Ok(Step::More);
            }
            sort_key(&value, ty, &mut key);
        }
        let Some(found) = rows.get(&key) else { return Ok(Step::More) };
        for (id, source) in found {
            row[self.base..self.base + self.columns].clone_from_slice(source);
            if let Some(slot) = self.row_id_slot {
                row[slot] = super::super::storage::row_id_value(*id);
            }
            if all_true(&self.conditions, cx, row)? && sink(cx, row)? == Step::Stop {
                return Ok(Step::Stop);
            }
        }
        Ok(Step::More)
    }

    fn lookup_rows(&self, lookup: &LookupX, cx: &mut Cx<'_>) -> Result<LookupRows> {
        if let Some(rows) = &*lookup.rows.borrow() {
            return Ok(Rc::clone(rows));
        }
        let txn = if self.variable { cx.st.variable_txn() } else { cx.st.txn() };
        let scan = txn.scan(self.table, self.mode).map_err(|e| super::super::storage::error(cx, e))?;
        let mut map: HashMap<Vec<u8>, Vec<_>> = HashMap::new();
        let mut until_check = CANCEL_EVERY;
        for item in scan {
            let item = item.map_err(|e| super::super::storage::error(cx, e))?;
            until_check -= 1;
            if until_check == 0 {
                until_check = CANCEL_EVERY;
                cx.check_cancel()?;
            }
            let values = item.values(self.columns).map_err(|e| super::super::storage::error(cx, e))?;
            let mut key = Vec::new();
            if lookup.keys.iter().any(|(at, ..)| values[*at].is_null()) {
                continue;
            }
            for (at, _, ty) in &lookup.keys {
                sort_key(&values[*at], ty, &mut key);
            }
            map.entry(key).or_default().push((item.id(), values));
        }
        let rows = Rc::new(map);
        *lookup.rows.borrow_mut() = Some(Rc::clone(&rows));
        Ok(rows)
    }
}

type KeyBound = Option<Bound<Vec<Value>>>;

fn as_slice(bound: &Bound<Vec<Value>>) -> Bound<&[Value]> {
    match bound {
        Bound::Included(v) => Bound::Included(v.as_slice()),
        Bound::Excluded(v) => Bound::Excluded(v.as_slice()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl RangeX {
    /// Bounds by value; none where one is NULL.
    fn bounds(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<(KeyBound, KeyBound)> {
        let mut bound = |x: &Option<(super::super::plan::X, bool)>| -> Result<KeyBound> {
            let Some((x, inclusive)) = x else { return Ok(Some(Bound::Unbounded)) };
            let value = x.eval(cx, row)?;
            if value.is_null() {
                return Ok(None);
            }
            Ok(Some(if *inclusive { Bound::Included(vec![value]) } else { Bound::Excluded(vec![value]) }))
        };
        Ok((bound(&self.low)?, bound(&self.high)?))
    }
}

/// Rows of the right side by key; each remembers whether it met a left row.
struct Built {
    rows: Vec<Row>,
    matched: Vec<bool>,
    by_key: HashMap<Vec<u8>, Vec<usize>>,
}

fn join_key(keys: &[JoinKey], left: bool, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    for key in keys {
        let (x, ty) = if left { (&key.left, &key.left_type) } else { (&key.right, &key.right_type) };
        let value = x.eval(cx, row)?;
        if value.is_null() {
            return Ok(None);
        }
        let value = implicit_cast(&value, ty, &key.common)?;
        bytes.extend(hash_key(&value, &key.common));
    }
    Ok(Some(bytes))
}

impl JoinNode {
    /// Puts a kept right row back.
    fn restore(&self, row: &mut Row, kept: &[Value]) {
        let (start, end) = self.right_range;
        row[start..end].clone_from_slice(&kept[..end - start]);
        if let (Some(slot), Some(value)) = (self.extra, kept.get(end - start)) {
            row[slot] = value.clone();
        }
    }

    fn build(&self, cx: &mut Cx<'_>, row: &mut Row) -> Result<Built> {
        let mut built = Built { rows: Vec::new(), matched: Vec::new(), by_key: HashMap::new() };
        let (start, end) = self.right_range;
        let keep_unmatched = matches!(self.kind, JoinKind::Right | JoinKind::Full);
        self.right.run(cx, row, &mut |cx, row| {
            if !self.keys.is_empty() {
                match join_key(&self.keys, false, cx, row)? {
                    Some(key) => built.by_key.entry(key).or_default().push(built.rows.len()),
                    None if keep_unmatched => {}
                    None => return Ok(Step::More),
                }
            }
            let mut kept = row[start..end].to_vec();
            kept.extend(self.extra.map(|slot| row[slot].clone()));
            built.rows.push(kept);
            Ok(Step::More)
        })?;
        built.matched = vec![false; if keep_unmatched { built.rows.len() } else { 0 }];
        Ok(built)
    }

    fn run(&self, cx: &mut Cx<'_>, row: &mut Row, sink: &mut Sink<'_>) -> Result<Step> {
        let mut built = self.build(cx, row)?;
        let (start, end) = self.right_range;
        let keep_left = matches!(self.kind, JoinKind::Left | JoinKind::Full);
        let all: Vec<usize> = if self.keys.is_empty() { (0..built.rows.len()).collect() } else { Vec::new() };
        let none: Vec<usize> = Vec::new();
        let mut until_check = CANCEL_EVERY;
        let step = self.left.run(cx, row, &mut |cx, row| {
            let candidates = if self.keys.is_empty() {
                &all
            } else {
                match join_key(&self.keys, true, cx, row)? {
                    Some(key) => built.by_key.get(&key).unwrap_or(&none),
                    None => &none,
                }
            };
            let mut met = false;
            for at in candidates {
                until_check -= 1;
                if until_check == 0 {
                    until_check = CANCEL_EVERY;
                    cx.check_cancel()?;
                }
                self.restore(row, &built.rows[*at]);
                if !all_true(&self.on, cx, row)? {
                    continue;
                }
                met = true;
                if let Some(flag) = built.matched.get_mut(*at) {
                    *flag = true;
                }
                if sink(cx, row)? == Step::Stop {
                    return Ok(Step::Stop);
                }
            }
            if keep_left && !met {
                row[start..end].fill(Value::Null);
                return sink(cx, row);
            }
            Ok(Step::More)
        })?;
        if step == Step::Stop {
            return Ok(Step::Stop);
        }
        let (left_start, left_end) = self.left_range;
        for (at, matched) in built.matched.iter().enumerate() {
            if !matched {
                row[left_start..left_end].fill(Value::Null);
                self.restore(row, &built.rows[at]);
                if sink(cx, row)? == Step::Stop {
                    return Ok(Step::Stop);
                }
            }
        }
        Ok(Step::More)
    }
}
