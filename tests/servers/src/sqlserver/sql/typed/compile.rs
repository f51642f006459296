//! Which parts of an expression are evaluated by type.

use std::rc::Rc;

use super::super::plan::{CastX, X};
use super::bytes::{BytesX, Fit};
use super::integer::{ArithmeticX, IntX};
use crate::sqlserver::value::{BinaryOperation, BinaryOperator, Length, SqlType, Value, check_conversion};

/// The expression with its integer and binary parts evaluated by type.
pub(super) fn compiled(x: X) -> X {
    match x {
        X::Cast(c) if is_integer_cast(&c) || is_wide_decimal(&c) => {
            let to = c.to;
            match int_of(X::Cast(c)) {
                IntX::Const(value) => X::Const(super::integer::cell(value, &to)),
                // Of a conversion to decimal, the integer inside is what is left.
                IntX::Leaf(leaf) if to.is_integer() => leaf,
                typed => X::Int(Rc::new(typed), to),
            }
        }
        X::Binary(b) if integer_operator(&b.0).is_some() => {
            let result = b.0.result();
            match int_of(X::Binary(b)) {
                IntX::Leaf(leaf) => leaf,
                typed => X::Int(Rc::new(typed), result),
            }
        }
        x if is_bytes(&x) => match bytes_of(x) {
            BytesX::Leaf(leaf) => leaf,
            typed => X::Bytes(Rc::new(typed)),
        },
        other => inside(other),
    }
}

/// The expression itself stays; its parts are compiled.
fn inside(x: X) -> X {
    match x {
        X::Cast(mut c) => {
            c.expr = compiled(c.expr);
            X::Cast(c)
        }
        X::Binary(b) => {
            let (operation, left, right) = *b;
            X::Binary(Box::new((operation, compiled(left), compiled(right))))
        }
        X::Case(mut c) => {
            c.whens = c.whens.into_iter().map(|(when, then)| (inside(when), compiled(then))).collect();
            c.otherwise = compiled(c.otherwise);
            X::Case(c)
        }
        X::Func(function, args) => X::Func(function, args.into_iter().map(compiled).collect()),
        other => other,
    }
}

fn plain(c: &CastX) -> bool {
    c.style.is_none()
        && c.options.style.is_none()
        && !c.attempt
        && check_conversion(&c.from, &c.to, c.options.strictness).is_ok()
}

fn is_binary(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Binary(_) | SqlType::VarBinary(_))
}

fn is_integer_cast(c: &CastX) -> bool {
    let from_bytes = is_binary(&c.from) && c.to != SqlType::Bit;
    plain(c) && c.to.is_integer() && (c.from.is_integer() || from_bytes)
}

/// To a `decimal(p, 0)` that holds every `bigint`.
fn is_wide_decimal(c: &CastX) -> bool {
    plain(c) && c.from.is_integer() && matches!(c.to, SqlType::Decimal { precision: 19.., scale: 0 })
}

/// Operator and given operand types, if it is `+`, `-` or `*` over integers or over an integer and bytes.
fn integer_operator(operation: &BinaryOperation) -> Option<(BinaryOperator, SqlType, SqlType)> {
    let (operator, left, right) = operation.operands();
    let known = matches!(operator, BinaryOperator::Add | BinaryOperator::Subtract | BinaryOperator::Multiply);
    (known && operation.result().is_integer() && left.is_integer() && right.is_integer())
        .then_some((operator, left, right))
}

/// Whether `+` joins binaries, and whether the result may have to be cut.
fn joins_binaries(operation: &BinaryOperation) -> Option<bool> {
    let (operator, left, right) = operation.operands();
    if operator != BinaryOperator::Add || !is_binary(&left) || !is_binary(&right) {
        return None;
    }
    let may_cut = match operation.result() {
        SqlType::VarBinary(Length::Max) => false,
        SqlType::VarBinary(Length::Sized(limit)) | SqlType::Binary(limit) => {
            longest(&left).saturating_add(longest(&right)) > usize::from(limit)
        }
        _ => return None,
    };
    Some(may_cut)
}

/// Bytes that a value of a binary type has at most.
fn longest(ty: &SqlType) -> usize {
    match ty {
        SqlType::Binary(length) => usize::from(*length),
        SqlType::VarBinary(length) => length.limit(),
        _ => usize::MAX,
    }
}

fn is_binary_cast(c: &CastX) -> bool {
    let known = c.from.is_integer() || is_binary(&c.from) || c.from == SqlType::Float || is_sized_unicode(&c.from);
    plain(c) && is_binary(&c.to) && known
}

fn is_sized_unicode(ty: &SqlType) -> bool {
    matches!(ty, SqlType::NChar(..) | SqlType::NVarChar(..))
}

/// Literal positions of a SUBSTRING of bytes.
fn piece(x: &X) -> Option<(usize, usize)> {
    let X::Func(function, args) = x else { return None };
    if function.function.name != "SUBSTRING" || !is_binary(&function.function.result) {
        return None;
    }
    let [_, X::Const(Value::Int(start)), X::Const(Value::Int(length))] = args.as_slice() else { return None };
    let start = usize::try_from(*start).ok()?.checked_sub(1)?;
    Some((start, start + usize::try_from(*length).ok()?))
}

/// Whether the expression is one of bytes that [`bytes_of`] takes apart.
fn is_bytes(x: &X) -> bool {
    match x {
        X::Cast(c) => is_binary_cast(c),
        X::Binary(b) => joins_binaries(&b.0).is_some(),
        X::Func(..) => piece(x).is_some(),
        _ => false,
    }
}

/// An expression of an integer type.
fn int_of(x: X) -> IntX {
    match x {
        X::Const(value) => match value.as_i64() {
            Some(number) => IntX::Const(number),
            None => IntX::Leaf(X::Const(value)),
        },
        X::Cast(c) if is_wide_decimal(&c) => int_of(c.expr),
        X::Cast(c) if is_integer_cast(&c) => {
            let CastX { expr, from, to, .. } = *c;
            if is_binary(&from) {
                return IntX::OfBytes(bytes_of(expr), to);
            }
            match int_of(expr) {
                inner if from == to => inner,
                inner => IntX::Cast(Box::new(inner), from, to),
            }
        }
        X::Binary(b) if integer_operator(&b.0).is_some() => {
            let (bound, left, right) = *b;
            let (operator, given_left, given_right) = bound.operands();
            IntX::Arithmetic(Box::new(ArithmeticX {
                operator,
                left: int_of(left),
                right: int_of(right),
                result: bound.result(),
                given: (given_left, given_right),
                bound,
            }))
        }
        other => IntX::Leaf(inside(other)),
    }
}

/// An expression of a binary type.
fn bytes_of(x: X) -> BytesX {
    match x {
        X::Const(Value::Binary(bytes)) => BytesX::Const(bytes),
        X::Cast(c) if is_binary_cast(&c) => of_cast(*c),
        X::Binary(b) => match joins_binaries(&b.0) {
            Some(may_cut) => {
                let (operation, left, right) = *b;
                let chain = joined(bytes_of(left), bytes_of(right));
                if may_cut { fitted(chain, &operation.result()) } else { chain }
            }
            None => BytesX::Leaf(inside(X::Binary(b))),
        },
        X::Case(c) => BytesX::Case {
            whens: c.whens.into_iter().map(|(when, then)| (inside(when), bytes_of(then))).collect(),
            otherwise: Box::new(bytes_of(c.otherwise)),
        },
        other => match (piece(&other), other) {
            (Some(range), X::Func(_, args)) => {
                let of = args.into_iter().next().map_or(BytesX::Const(crate::sqlserver::value::Bytes::EMPTY), bytes_of);
                BytesX::Ranges { of: Box::new(of), ranges: vec![range] }
            }
            (_, other) => BytesX::Leaf(inside(other)),
        },
    }
}

fn of_cast(c: CastX) -> BytesX {
    let CastX { expr, from, to, .. } = c;
    let fit = match to {
        SqlType::Binary(length) => Fit { limit: usize::from(length), fixed: true },
        _ => Fit { limit: longest(&to), fixed: false },
    };
    if is_binary(&from) {
        let fixed = matches!(to, SqlType::Binary(_));
        let keeps = from == to || !fixed && longest(&from) <= longest(&to);
        let inner = bytes_of(expr);
        return if keeps { inner } else { fitted(inner, &to) };
    }
    match from {
        SqlType::Float => BytesX::Float { value: inside(expr), fit },
        _ if is_sized_unicode(&from) => match to {
            SqlType::VarBinary(Length::Max) => BytesX::Text(inside(expr)),
            _ => fitted(BytesX::Text(inside(expr)), &to),
        },
        _ => {
            let width = match from {
                SqlType::Bit | SqlType::TinyInt => 1,
                SqlType::SmallInt => 2,
                SqlType::Int => 4,
                _ => 8,
            };
            BytesX::Integer { value: Box::new(int_of(expr)), width, fit }
        }
    }
}

fn fitted(of: BytesX, to: &SqlType) -> BytesX {
    BytesX::Fitted { of: Box::new(of), limit: longest(to), fixed: matches!(to, SqlType::Binary(_)) }
}

/// One chain of two; constants and neighbouring ranges of the same expression are put together.
fn joined(left: BytesX, right: BytesX) -> BytesX {
    let mut pieces = match left {
        BytesX::Chain(pieces) => pieces,
        other => vec![other],
    };
    let right = match right {
        BytesX::Chain(pieces) => pieces,
        other => vec![other],
    };
    for piece in right {
        let piece = match (pieces.last_mut(), piece) {
            (Some(BytesX::Const(before)), BytesX::Const(bytes)) => {
                *before = before.concat(&bytes);
                continue;
            }
            (Some(BytesX::Ranges { of: before, ranges }), BytesX::Ranges { of, ranges: more })
                if repeatable(&of) && format!("{before:?}") == format!("{of:?}") =>
            {
                ranges.extend(more);
                continue;
            }
            (_, piece) => piece,
        };
        pieces.push(piece);
    }
    BytesX::Chain(pieces)
}

/// Whether a second evaluation over the same row gives the same, so that one is enough.
fn repeatable(bytes: &BytesX) -> bool {
    let mut known = true;
    bytes.leaves(&mut |x| known &= is_repeatable(x));
    known
}

fn is_repeatable(x: &X) -> bool {
    match x {
        X::Const(_) | X::Slot(_) | X::Outer { .. } => true,
        X::Cast(c) => c.style.is_none() && is_repeatable(&c.expr),
        X::Binary(b) => is_repeatable(&b.1) && is_repeatable(&b.2),
        X::Func(function, args) => function.function.deterministic && args.iter().all(is_repeatable),
        X::Bytes(bytes) => repeatable(bytes),
        X::Int(int, _) => {
            let mut known = true;
            int.leaves(&mut |x| known &= is_repeatable(x));
            known
        }
        _ => false,
    }
}
