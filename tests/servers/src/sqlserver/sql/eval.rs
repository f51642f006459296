//! Evaluation of bound expressions over one row.

use std::cmp::Ordering;
use std::rc::Rc;

use super::ast::BinOp;
use super::error::{self, Result};
use super::plan::{CastX, InListX, InQueryX, LikeX, QuantifiedX, Row, Step, Sub, X};
use super::state::Cx;
use super::{function, sysfn, typed};
use crate::sqlserver::value::{self, CastOptions, SqlType, Value, hash_key};

impl X {
    /// The value of a scalar expression; conditions have no value.
    pub(crate) fn eval(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<Value> {
        match self {
            Self::Const(value) => Ok(value.clone()),
            Self::Slot(slot) => Ok(row[*slot].clone()),
            Self::Outer { scope, slot } => Ok(cx.outer[*scope][*slot].clone()),
            Self::Var(at) => Ok(cx.st.frame().vars[*at].value.clone()),
            Self::Binary(b) => {
                let (operation, left, right) = &**b;
                let left = left.eval(cx, row)?;
                let right = right.eval(cx, row)?;
                Ok(operation.apply(&left, &right)?)
            }
            Self::Unary(operator, ty, operand) => {
                let value = operand.eval(cx, row)?;
                Ok(value::unary(*operator, &value, ty)?)
            }
            Self::Case(case) => {
                for (when, then) in &case.whens {
                    if when.test(cx, row)? == Some(true) {
                        return then.eval(cx, row);
                    }
                }
                case.otherwise.eval(cx, row)
            }
            Self::Cast(cast) => eval_cast(cast, cx, row),
            Self::Func(function, args) => {
                let mut buffer: [Value; 4] = [Value::Null, Value::Null, Value::Null, Value::Null];
                if args.len() <= buffer.len() {
                    for (place, arg) in buffer.iter_mut().zip(args) {
                        *place = arg.eval(cx, row)?;
                    }
                    return Ok(function.function.call(&buffer[..args.len()], &cx.st.context)?);
                }
                let values = eval_all(args, cx, row)?;
                Ok(function.function.call(&values, &cx.st.context)?)
            }
            Self::Sys(function, args) => {
                let values = eval_all(args, cx, row)?;
                sysfn::call(function, cx, &values)
            }
            Self::UserFunc(call) => function::call_scalar(call, cx, row),
            Self::Scalar(sub) => scalar_subquery(sub, cx, row),
            Self::NextValue(sequence) => super::sequence::next_value(cx, *sequence),
            Self::Assign(at, x) => {
                let value = x.eval(cx, row)?;
                cx.st.frame_mut().vars[*at].value = value.clone();
                Ok(value)
            }
            Self::Int(int, ty) => Ok(int.eval(cx, row)?.map_or(Value::Null, |number| typed::cell(number, ty))),
            Self::Bytes(bytes) => bytes.eval(cx, row),
            // A condition in a place of a value is refused when it is bound.
            _ => Ok(self.test(cx, row)?.map_or(Value::Null, Value::Bit)),
        }
    }

    /// The truth of a condition; none is unknown.
    pub(crate) fn test(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<bool>> {
        match self {
            Self::Compare(op, c) => {
                let left = c.left.eval(cx, row)?;
                if left.is_null() {
                    return Ok(None);
                }
                let right = c.right.eval(cx, row)?;
                Ok(c.comparison.apply(&left, &right)?.map(|order| holds(*op, order)))
            }
            Self::And(pair) => match pair.0.test(cx, row)? {
                Some(false) => Ok(Some(false)),
                left => match pair.1.test(cx, row)? {
                    Some(false) => Ok(Some(false)),
                    Some(true) => Ok(left),
                    None => Ok(None),
                },
            },
            Self::Or(pair) => match pair.0.test(cx, row)? {
                Some(true) => Ok(Some(true)),
                left => match pair.1.test(cx, row)? {
                    Some(true) => Ok(Some(true)),
                    Some(false) => Ok(left),
                    None => Ok(None),
                },
            },
            Self::Not(inner) => Ok(inner.test(cx, row)?.map(|b| !b)),
            Self::IsNull(inner, negated) => Ok(Some(inner.eval(cx, row)?.is_null() != *negated)),
            Self::Like(like) => test_like(like, cx, row),
            Self::InList(list) => test_in_list(list, cx, row),
            Self::Exists(sub) => exists(sub, cx, row).map(Some),
            Self::InQuery(query) => test_in_query(query, cx, row),
            Self::Quantified(q) => test_quantified(q, cx, row),
            _ => match self.eval(cx, row)? {
                Value::Null => Ok(None),
                value => Ok(Some(value.as_i64().unwrap_or(0) != 0)),
            },
        }
    }
}

pub(crate) fn eval_all(args: &[X], cx: &mut Cx<'_>, row: &[Value]) -> Result<Vec<Value>> {
    args.iter().map(|arg| arg.eval(cx, row)).collect()
}

/// Whether all conditions are true.
pub(crate) fn all_true(conditions: &[X], cx: &mut Cx<'_>, row: &[Value]) -> Result<bool> {
    for condition in conditions {
        if condition.test(cx, row)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn holds(op: BinOp, order: Ordering) -> bool {
    match op {
        BinOp::Eq => order == Ordering::Equal,
        BinOp::Ne => order != Ordering::Equal,
        BinOp::Lt => order == Ordering::Less,
        BinOp::Le => order != Ordering::Greater,
        BinOp::Gt => order == Ordering::Greater,
        BinOp::Ge => order != Ordering::Less,
        _ => false,
    }
}

fn eval_cast(cast: &CastX, cx: &mut Cx<'_>, row: &[Value]) -> Result<Value> {
    let value = cast.expr.eval(cx, row)?;
    let mut options = CastOptions { date_format: cx.st.settings.date_format, ..cast.options };
    if let Some(style) = &cast.style {
        match style.eval(cx, row)? {
            Value::Null => return Ok(Value::Null),
            style => options.style = style.as_i64().and_then(|s| i32::try_from(s).ok()),
        }
    }
    if cast.attempt {
        return Ok(value::try_cast(&value, &cast.from, &cast.to, &options)?);
    }
    Ok(value::cast(&value, &cast.from, &cast.to, &options)?)
}

/// Converts as an operator does.
pub(crate) fn implicit_cast(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value> {
    if from == to || value.is_null() {
        return Ok(value.clone());
    }
    Ok(value::cast(value, from, to, &CastOptions::IMPLICIT)?)
}

fn test_like(like: &LikeX, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<bool>> {
    let expr = like.expr.eval(cx, row)?;
    let pattern = like.pattern.eval(cx, row)?;
    let (Value::String(text), Value::String(pattern)) = (&expr, &pattern) else { return Ok(None) };
    let escape = match &like.escape {
        None => None,
        Some(escape) => match escape.eval(cx, row)? {
            Value::String(text) => Some(text),
            _ => return Ok(None),
        },
    };
    let matches = value::like(text, pattern, escape.as_ref(), &like.ty)?;
    Ok(Some(matches != like.negated))
}

fn test_in_list(list: &InListX, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<bool>> {
    let value = list.expr.eval(cx, row)?;
    let mut unknown = value.is_null();
    for (comparison, item) in &list.list {
        let item = item.eval(cx, row)?;
        match comparison.apply(&value, &item)? {
            Some(Ordering::Equal) => return Ok(Some(!list.negated)),
            None => unknown = true,
            Some(_) => {}
        }
    }
    Ok(if unknown { None } else { Some(list.negated) })
}

/// Runs a subquery with the row around it in sight.
pub(crate) fn run_sub(
    sub: &Sub,
    cx: &mut Cx<'_>,
    row: &[Value],
    sink: &mut dyn FnMut(&mut Cx<'_>, &mut Row) -> Result<Step>,
) -> Result<Step> {
    if !sub.uses.is_empty() {
        if cx.outer.len() <= sub.scope {
            cx.outer.resize_with(sub.scope + 1, Vec::new);
        }
        let frame = &mut cx.outer[sub.scope];
        if frame.len() < row.len() {
            frame.resize(row.len(), Value::Null);
        }
        for slot in &sub.uses {
            frame[*slot] = row[*slot].clone();
        }
    }
    sub.plan.run(cx, sink)
}

fn scalar_subquery(sub: &Sub, cx: &mut Cx<'_>, row: &[Value]) -> Result<Value> {
    if let Some(value) = &*sub.cached.borrow() {
        return Ok(value.clone());
    }
    let mut found: Option<Value> = None;
    run_sub(sub, cx, row, &mut |_, out| {
        if found.is_some() {
            return Err(error::plain(
                512,
                "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.",
            ));
        }
        found = Some(out[0].clone());
        Ok(Step::More)
    })?;
    let value = found.unwrap_or(Value::Null);
    if !sub.correlated {
        *sub.cached.borrow_mut() = Some(value.clone());
    }
    Ok(value)
}

fn exists(sub: &Sub, cx: &mut Cx<'_>, row: &[Value]) -> Result<bool> {
    if let Some(Value::Bit(found)) = &*sub.cached.borrow() {
        return Ok(*found);
    }
    let mut found = false;
    run_sub(sub, cx, row, &mut |_, _| {
        found = true;
        Ok(Step::Stop)
    })?;
    if !sub.correlated {
        *sub.cached.borrow_mut() = Some(Value::Bit(found));
    }
    Ok(found)
}

fn test_in_query(query: &InQueryX, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<bool>> {
    let value = query.expr.eval(cx, row)?;
    let value = implicit_cast(&value, &query.from, &query.common)?;
    let inner = query.sub.plan.cols[0].ty;
    if query.sub.correlated {
        let (mut found, mut unknown, mut any) = (false, false, false);
        let common = query.common;
        run_sub(&query.sub, cx, row, &mut |_, out| {
            any = true;
            let item = implicit_cast(&out[0], &inner, &common)?;
            if value.is_null() || item.is_null() {
                unknown = true;
            } else if value::compare(&value, &item, &common) == Ordering::Equal {
                found = true;
                return Ok(Step::Stop);
            }
            Ok(Step::More)
        })?;
        return Ok(membership(found, unknown && any, query.negated));
    }
    if query.set.borrow().is_none() {
        let mut keys = std::collections::HashSet::new();
        let mut has_null = false;
        let common = query.common;
        run_sub(&query.sub, cx, row, &mut |_, out| {
            let item = implicit_cast(&out[0], &inner, &common)?;
            if item.is_null() {
                has_null = true;
            } else {
                keys.insert(hash_key(&item, &common));
            }
            Ok(Step::More)
        })?;
        *query.set.borrow_mut() = Some((keys, has_null));
    }
    let set = query.set.borrow();
    let Some((keys, has_null)) = &*set else { return Ok(None) };
    if value.is_null() {
        let empty = keys.is_empty() && !has_null;
        return Ok(membership(false, !empty, query.negated));
    }
    let found = keys.contains(&hash_key(&value, &query.common));
    Ok(membership(found, *has_null, query.negated))
}

fn membership(found: bool, unknown: bool, negated: bool) -> Option<bool> {
    if found {
        return Some(!negated);
    }
    if unknown { None } else { Some(negated) }
}

fn test_quantified(q: &QuantifiedX, cx: &mut Cx<'_>, row: &[Value]) -> Result<Option<bool>> {
    let value = q.expr.eval(cx, row)?;
    let (mut decided, mut unknown) = (false, false);
    run_sub(&Rc::clone(&q.sub), cx, row, &mut |_, out| {
        match q.comparison.apply(&value, &out[0])? {
            None => unknown = true,
            // ALL is decided by one false, ANY by one true.
            Some(order) if holds(q.op, order) != q.all => {
                decided = true;
                return Ok(Step::Stop);
            }
            Some(_) => {}
        }
        Ok(Step::More)
    })?;
    if decided {
        return Ok(Some(!q.all));
    }
    Ok(if unknown { None } else { Some(q.all) })
}
