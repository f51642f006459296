//! Where a plan has expressions that are evaluated once a row.

use super::super::plan::{Node, Plan, Rel, SelectPlan, X};
use super::compile::compiled;
use crate::sqlserver::value::Value;

/// Compiles the expressions of a plan that is bound to its end.
pub(crate) fn settle(plan: &mut Plan) {
    match &mut plan.rel {
        Rel::Select(select) => in_select(select),
        Rel::Values(rows) => rows.iter_mut().flatten().for_each(in_place),
        Rel::Set { left, right, .. } => {
            settle(left);
            settle(right);
        }
        Rel::Convert { input, .. } => settle(input),
        Rel::Tail(tail) => settle(&mut tail.input),
        Rel::Recursive(recursive) => {
            settle(&mut recursive.anchor);
            settle(&mut recursive.step);
        }
        Rel::Work(_) => {}
    }
}

fn in_place(x: &mut X) {
    *x = compiled(std::mem::replace(x, X::Const(Value::Null)));
}

fn in_select(select: &mut SelectPlan) {
    in_node(&mut select.from);
    select.project.iter_mut().for_each(in_place);
    for aggregate in select.group.iter_mut().flat_map(|group| &mut group.aggregates) {
        aggregate.arg.iter_mut().for_each(in_place);
    }
}

fn in_node(node: &mut Node) {
    match node {
        Node::Values { rows, .. } => rows.iter_mut().flatten().for_each(in_place),
        Node::Filter { input, .. } | Node::Mark { input, .. } => in_node(input),
        Node::Join(join) => {
            in_node(&mut join.left);
            in_node(&mut join.right);
        }
        Node::Derived { sub, .. } => settle(&mut sub.plan),
        Node::Apply { left, right, .. } => {
            in_node(left);
            in_node(right);
        }
        Node::One | Node::Scan(_) | Node::Rows { .. } | Node::Virtual(_) => {}
    }
}
