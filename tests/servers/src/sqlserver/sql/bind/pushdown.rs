//! Conditions move to where their columns come from; joins and scans take the ones that they can use.

use std::cell::RefCell;
use std::collections::HashSet;

use super::super::ast::{BinOp, JoinKind};
use super::super::plan::{CastX, CompareX, JoinKey, JoinNode, LookupX, Node, RangeX, ScanNode, X};
use super::WINDOW_BASE;
use crate::sqlserver::value::{CastOptions, SqlType};

/// The terms of a conjunction.
pub(crate) fn split_and(x: X) -> Vec<X> {
    match x {
        X::And(pair) => {
            let (left, right) = *pair;
            let mut terms = split_and(left);
            terms.extend(split_and(right));
            terms
        }
        other => vec![other],
    }
}

/// Calls `visit` on the expression and all parts that read the same row.
fn visit(x: &X, f: &mut dyn FnMut(&X)) {
    f(x);
    match x {
        X::Binary(b) => {
            visit(&b.1, f);
            visit(&b.2, f);
        }
        X::Unary(_, _, e) | X::Not(e) | X::IsNull(e, _) | X::Assign(_, e) => visit(e, f),
        X::Compare(_, c) => {
            visit(&c.left, f);
            visit(&c.right, f);
        }
        X::And(p) | X::Or(p) => {
            visit(&p.0, f);
            visit(&p.1, f);
        }
        X::Like(l) => {
            visit(&l.expr, f);
            visit(&l.pattern, f);
            l.escape.iter().for_each(|e| visit(e, f));
        }
        X::InList(l) => {
            visit(&l.expr, f);
            l.list.iter().for_each(|(_, e)| visit(e, f));
        }
        X::InQuery(q) => visit(&q.expr, f),
        X::Quantified(q) => visit(&q.expr, f),
        X::Case(c) => {
            for (when, then) in &c.whens {
                visit(when, f);
                visit(then, f);
            }
            visit(&c.otherwise, f);
        }
        X::Cast(c) => {
            visit(&c.expr, f);
            c.style.iter().for_each(|e| visit(e, f));
        }
        X::Func(_, args) | X::Sys(_, args) => args.iter().for_each(|e| visit(e, f)),
        X::UserFunc(u) => u.args.iter().flatten().for_each(|e| visit(e, f)),
        X::Int(int, _) => int.leaves(&mut |e| visit(e, f)),
        X::Bytes(bytes) => bytes.leaves(&mut |e| visit(e, f)),
        X::Const(_) | X::Slot(_) | X::Outer { .. } | X::Var(_) | X::Exists(_) | X::Scalar(_) | X::NextValue(_) => {}
    }
}

/// Slots of the row that the expression reads.
pub(crate) fn slots(x: &X) -> Vec<usize> {
    let mut found = Vec::new();
    visit(x, &mut |e| match e {
        X::Slot(slot) => found.push(*slot),
        X::Exists(sub) | X::Scalar(sub) => found.extend(&sub.uses),
        X::InQuery(q) => found.extend(&q.sub.uses),
        X::Quantified(q) => found.extend(&q.sub.uses),
        _ => {}
    });
    found
}

/// Whether the expression reads a row of a query around it.
pub(crate) fn reads_outer(x: &X) -> bool {
    let mut found = false;
    visit(x, &mut |e| found |= matches!(e, X::Outer { .. }));
    found
}

fn within(slots: &[usize], (start, end): (usize, usize)) -> bool {
    slots.iter().all(|s| (start..end).contains(s))
}

/// Gives window slots their place behind the base row.
pub(super) fn remap_windows(x: &mut X, base: usize) {
    let place = |slot: &mut usize| {
        if *slot >= WINDOW_BASE {
            *slot = *slot - WINDOW_BASE + base;
        }
    };
    match x {
        X::Slot(slot) => place(slot),
        X::Binary(b) => {
            remap_windows(&mut b.1, base);
            remap_windows(&mut b.2, base);
        }
        X::Unary(_, _, e) | X::Not(e) | X::IsNull(e, _) | X::Assign(_, e) => remap_windows(e, base),
        X::Compare(_, c) => {
            remap_windows(&mut c.left, base);
            remap_windows(&mut c.right, base);
        }
        X::And(p) | X::Or(p) => {
            remap_windows(&mut p.0, base);
            remap_windows(&mut p.1, base);
        }
        X::Like(l) => {
            remap_windows(&mut l.expr, base);
            remap_windows(&mut l.pattern, base);
        }
        X::InList(l) => {
            remap_windows(&mut l.expr, base);
            l.list.iter_mut().for_each(|(_, e)| remap_windows(e, base));
        }
        X::Case(c) => {
            for (when, then) in &mut c.whens {
                remap_windows(when, base);
                remap_windows(then, base);
            }
            remap_windows(&mut c.otherwise, base);
        }
        X::Cast(c) => remap_windows(&mut c.expr, base),
        X::Func(_, args) | X::Sys(_, args) => args.iter_mut().for_each(|e| remap_windows(e, base)),
        X::UserFunc(u) => u.args.iter_mut().flatten().for_each(|e| remap_windows(e, base)),
        X::InQuery(q) => remap_windows(&mut q.expr, base),
        X::Quantified(q) => remap_windows(&mut q.expr, base),
        X::Const(_) | X::Outer { .. } | X::Var(_) | X::Exists(_) | X::Scalar(_) | X::NextValue(_) => {}
        // Made from bound plans, whose window slots have their places.
        X::Int(..) | X::Bytes(_) => {}
    }
}

/// Places the terms of WHERE; returns the source and the terms that read no column.
pub(crate) fn place_conditions(mut node: Node, conditions: Vec<X>, correlated: bool) -> (Node, Vec<X>) {
    let mut startup = Vec::new();
    for condition in conditions {
        let used = slots(&condition);
        if used.is_empty() {
            startup.push(condition);
        } else {
            node = attach(node, condition, &used);
        }
    }
    (finish(node, correlated), startup)
}

fn attach(node: Node, condition: X, used: &[usize]) -> Node {
    match node {
        Node::Scan(mut scan) if within(used, (scan.base, scan.base + scan.columns)) => {
            scan.conditions.push(condition);
            Node::Scan(scan)
        }
        Node::Filter { input, mut conditions } => {
            conditions.push(condition);
            Node::Filter { input, conditions }
        }
        Node::Join(mut join) => {
            let (to_left, to_right) = (within(used, join.left_range), within(used, join.right_range));
            match join.kind {
                JoinKind::Inner | JoinKind::Cross | JoinKind::Left if to_left => {
                    join.left = attach(join.left, condition, used);
                }
                JoinKind::Inner | JoinKind::Cross | JoinKind::Right if to_right => {
                    join.right = attach(join.right, condition, used);
                }
                JoinKind::Inner | JoinKind::Cross => join.on.push(condition),
                _ => return Node::Filter { input: Box::new(Node::Join(join)), conditions: vec![condition] },
            }
            Node::Join(join)
        }
        Node::Apply { left, right, outer, base, width } if used.iter().all(|s| *s < base) => {
            let left = Box::new(attach(*left, condition, used));
            Node::Apply { left, right, outer, base, width }
        }
        other => Node::Filter { input: Box::new(other), conditions: vec![condition] },
    }
}

/// Chooses hash keys of joins and seeks of scans.
fn finish(node: Node, correlated: bool) -> Node {
    match node {
        Node::Join(join) => Node::Join(Box::new(finish_join(*join, correlated))),
        Node::Filter { input, conditions } => Node::Filter { input: Box::new(finish(*input, correlated)), conditions },
        Node::Mark { input, slot } => Node::Mark { input: Box::new(finish(*input, correlated)), slot },
        Node::Apply { left, right, outer, base, width } => {
            let left = Box::new(finish(*left, correlated));
            let right = Box::new(finish(*right, correlated));
            Node::Apply { left, right, outer, base, width }
        }
        Node::Scan(mut scan) => {
            choose_access(&mut scan, correlated);
            Node::Scan(scan)
        }
        other => other,
    }
}

fn finish_join(mut join: JoinNode, correlated: bool) -> JoinNode {
    let terms: Vec<X> = std::mem::take(&mut join.on).into_iter().flat_map(split_and).collect();
    for term in terms {
        let used = slots(&term);
        // A term of ON over the side that may be missing can filter that side beforehand.
        if join.kind == JoinKind::Left && !used.is_empty() && within(&used, join.right_range) {
            join.right = attach(join.right, term, &used);
        } else if join.kind == JoinKind::Inner && !used.is_empty() && within(&used, join.left_range) {
            join.left = attach(join.left, term, &used);
        } else if join.kind == JoinKind::Inner && !used.is_empty() && within(&used, join.right_range) {
            join.right = attach(join.right, term, &used);
        } else {
            match equi_key(term, join.left_range, join.right_range) {
                Ok(key) => join.keys.push(key),
                Err(term) => join.on.push(term),
            }
        }
    }
    join.left = finish(join.left, correlated);
    join.right = finish(join.right, correlated);
    join
}

fn equi_key(term: X, left: (usize, usize), right: (usize, usize)) -> Result<JoinKey, X> {
    let X::Compare(BinOp::Eq, c) = term else { return Err(term) };
    let (a, b) = (slots(&c.left), slots(&c.right));
    if a.is_empty() || b.is_empty() {
        return Err(X::Compare(BinOp::Eq, c));
    }
    let common = c.comparison.operand_type();
    let CompareX { left: l, left_type, right: r, right_type, comparison } = *c;
    if within(&a, left) && within(&b, right) {
        return Ok(JoinKey { left: l, left_type, right: r, right_type, common });
    }
    if within(&a, right) && within(&b, left) {
        return Ok(JoinKey { left: r, left_type: right_type, right: l, right_type: left_type, common });
    }
    Err(X::Compare(BinOp::Eq, Box::new(CompareX { comparison, left: l, left_type, right: r, right_type })))
}

/// A term `column op expression` of a scan: position, operator, expression in the column's type.
struct Bounded {
    position: usize,
    op: BinOp,
    x: X,
    exact: bool,
}

fn bounded(scan: &ScanNode, condition: &X) -> Option<Bounded> {
    let X::Compare(op, c) = condition else { return None };
    let mirrored = match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Gt => BinOp::Lt,
        BinOp::Ge => BinOp::Le,
        other => *other,
    };
    let sides = [(&c.left, &c.right, c.right_type, *op), (&c.right, &c.left, c.left_type, mirrored)];
    for (column, other, other_type, op) in sides {
        let X::Slot(slot) = column else { continue };
        if !slots(other).is_empty() {
            continue;
        }
        let position = slot - scan.base;
        let ty = scan.types[position];
        let common = c.comparison.operand_type();
        let exact = common == ty || comparable(&common, &ty) && same_length_kind(&common, &ty);
        // Beyond the common type only families in which the conversion to the column's type loses no equal value.
        let numbers = ty.is_integer() && other_type.is_integer();
        if !exact && !numbers {
            return None;
        }
        let x = cast_to(other.clone(), other_type, ty, !exact);
        return Some(Bounded { position, op, x, exact });
    }
    None
}

/// Texts of one collation compare alike whatever their lengths.
fn comparable(a: &SqlType, b: &SqlType) -> bool {
    a.is_character() && b.is_character() && a.collation() == b.collation() && a.is_unicode() == b.is_unicode()
}

fn same_length_kind(a: &SqlType, b: &SqlType) -> bool {
    a.is_large() == b.is_large()
}

fn cast_to(x: X, from: SqlType, to: SqlType, attempt: bool) -> X {
    // Texts need no conversion: a longer one simply matches nothing.
    if from == to || comparable(&from, &to) || (from.is_character() && to.is_character() && to.is_unicode()) {
        return x;
    }
    X::Cast(Box::new(CastX { expr: x, from, to, options: CastOptions::IMPLICIT, style: None, attempt }))
}

fn choose_access(scan: &mut ScanNode, correlated: bool) {
    let terms: Vec<Bounded> = scan.conditions.iter().filter_map(|c| bounded(scan, c)).collect();
    let equal = |position: usize| terms.iter().find(|t| t.op == BinOp::Eq && t.position == position);
    let mut best: Option<(i32, Vec<X>)> = None;
    for (index, keys) in &scan.indexes {
        let found: Vec<X> = keys.iter().map_while(|(at, _)| equal(*at).map(|t| t.x.clone())).collect();
        if !found.is_empty() && best.as_ref().is_none_or(|(_, b)| found.len() > b.len()) {
            best = Some((*index, found));
        }
    }
    if best.is_some() {
        scan.seek = best;
        return;
    }
    if correlated {
        let keys: Vec<_> = terms
            .iter()
            .filter(|t| t.op == BinOp::Eq && t.exact)
            .map(|t| (t.position, t.x.clone(), scan.types[t.position]))
            .collect();
        if !keys.is_empty() && scan.row_id_slot.is_none() {
            scan.lookup = Some(LookupX { keys, rows: RefCell::new(None) });
            return;
        }
    }
    for (index, keys) in &scan.indexes {
        let Some((first, false)) = keys.first().copied() else { continue };
        let mut range = RangeX { index: *index, low: None, high: None };
        for term in terms.iter().filter(|t| t.position == first && t.exact) {
            match term.op {
                BinOp::Gt | BinOp::Ge => range.low = Some((term.x.clone(), term.op == BinOp::Ge)),
                BinOp::Lt | BinOp::Le => range.high = Some((term.x.clone(), term.op == BinOp::Le)),
                _ => {}
            }
        }
        if range.low.is_some() || range.high.is_some() {
            scan.range = Some(range);
            return;
        }
    }
}

/// Tells scans which columns are read.
pub(crate) fn set_needed(node: &mut Node, used: &HashSet<usize>) {
    match node {
        Node::Scan(scan) => {
            for (at, needed) in scan.needed.iter_mut().enumerate() {
                *needed |= used.contains(&(scan.base + at));
            }
            if scan.row_id_slot.is_some() {
                scan.needed.fill(true);
            }
        }
        Node::Filter { input, .. } | Node::Mark { input, .. } => set_needed(input, used),
        Node::Join(join) => {
            set_needed(&mut join.left, used);
            set_needed(&mut join.right, used);
        }
        Node::Apply { left, right, .. } => {
            set_needed(left, used);
            set_needed(right, used);
        }
        Node::One | Node::Rows { .. } | Node::Virtual(_) | Node::Values { .. } | Node::Derived { .. } => {}
    }
}
