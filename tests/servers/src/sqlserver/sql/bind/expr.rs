//! Expressions and conditions.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::ast::{BinOp, Expr, Literal, Name, Query, TypeName, UnOp};
use super::super::error::{self, Result};
use super::super::plan::{CaseX, CastX, CompareX, InListX, InQueryX, LikeX, QuantifiedX, Typed, X};
use super::{Binder, unify_collation};
use crate::sqlserver::value::{
    self, BinaryOperation, BinaryOperator, CastOptions, Coercibility, Collation, Comparison, SqlType, Strictness,
    UnaryOperator, Value, common_type,
};

/// Names of comparisons in messages.
fn comparison_name(op: BinOp) -> &'static str {
    match op {
        BinOp::Eq => "equal to",
        BinOp::Ne => "not equal to",
        BinOp::Lt => "less than",
        BinOp::Le => "less than or equal to",
        BinOp::Gt => "greater than",
        _ => "greater than or equal to",
    }
}

fn binary_operator(op: BinOp) -> Option<BinaryOperator> {
    Some(match op {
        BinOp::Add => BinaryOperator::Add,
        BinOp::Sub => BinaryOperator::Subtract,
        BinOp::Mul => BinaryOperator::Multiply,
        BinOp::Div => BinaryOperator::Divide,
        BinOp::Mod => BinaryOperator::Modulo,
        BinOp::BitAnd => BinaryOperator::BitAnd,
        BinOp::BitOr => BinaryOperator::BitOr,
        BinOp::BitXor => BinaryOperator::BitXor,
        _ => return None,
    })
}

/// The value and type of a literal.
pub(crate) fn literal(literal: &Literal) -> Result<(Value, SqlType)> {
    Ok(match literal {
        Literal::Null => (Value::Null, SqlType::Null),
        Literal::Number(text) | Literal::Float(text) => match text.strip_prefix('-') {
            // The parser folds a minus into the literal, so that the smallest int is an int.
            Some("2147483648") => (Value::Int(i32::MIN), SqlType::Int),
            Some(digits) => {
                let (value, ty) = value::number_literal(digits)?;
                (value::unary(UnaryOperator::Minus, &value, &ty)?, ty)
            }
            None => value::number_literal(text)?,
        },
        Literal::Money(text) => match text.strip_prefix('-') {
            Some(digits) => {
                let (value, ty) = value::money_literal(digits)?;
                (value::unary(UnaryOperator::Minus, &value, &ty)?, ty)
            }
            None => value::money_literal(text)?,
        },
        Literal::Str { text, national } => value::string_literal(text, *national),
        Literal::Binary(bytes) => {
            let ty = SqlType::VarBinary(value::Length::sized_or_max(bytes.len().max(1), 8000));
            (Value::binary(bytes), ty)
        }
    })
}

/// Wraps an expression in a conversion if its type differs.
pub(crate) fn convert(typed: Typed, to: SqlType) -> Result<X> {
    if typed.ty == to {
        return Ok(typed.x);
    }
    value::check_conversion(&typed.ty, &to, Strictness::Implicit)?;
    if let X::Const(v) = &typed.x
        && v.is_null()
    {
        return Ok(typed.x);
    }
    // A constant is converted once; one that cannot be is an error of the row, if a row comes.
    // Texts of dates depend on SET DATEFORMAT, which is known only when the statement runs.
    if let X::Const(v) = &typed.x
        && !(typed.ty.is_character() && to.is_temporal())
        && let Ok(value) = value::cast(v, &typed.ty, &to, &CastOptions::IMPLICIT)
    {
        return Ok(X::Const(value));
    }
    Ok(X::Cast(Box::new(CastX {
        expr: typed.x,
        from: typed.ty,
        to,
        options: CastOptions::IMPLICIT,
        style: None,
        attempt: false,
    })))
}

impl Binder<'_, '_> {
    /// Binds an expression that must be a value.
    pub(crate) fn bind_scalar(&mut self, expr: &Expr, scope: usize) -> Result<Typed> {
        let typed = self.bind_expr(expr, scope)?;
        if typed.boolean {
            // SQL Server stops at the comparison, which no value can contain.
            return Err(error::syntax(boolean_sign(expr), 0));
        }
        Ok(typed)
    }

    /// Binds an expression that must be a condition.
    pub(crate) fn bind_condition(&mut self, expr: &Expr, scope: usize) -> Result<X> {
        let typed = self.bind_expr(expr, scope)?;
        if !typed.boolean {
            let message =
                "An expression of non-boolean type specified in a context where a condition is expected, near ';'.";
            return Err(error::new(4145, 15, 1, message));
        }
        Ok(typed.x)
    }

    pub(crate) fn bind_expr(&mut self, expr: &Expr, scope: usize) -> Result<Typed> {
        self.deeper(|b| {
            if let Some(key) = b.group_key(expr, scope) {
                return Ok(key);
            }
            b.bind_plain(expr, scope)
        })
    }

    fn bind_plain(&mut self, expr: &Expr, scope: usize) -> Result<Typed> {
        match expr {
            Expr::Literal(l) => {
                let (value, ty) = literal(l)?;
                let nullable = value.is_null();
                Ok(Typed::new(X::Const(value), ty, nullable))
            }
            Expr::Column(name) => self.bind_column(name, scope),
            Expr::Var(name) => self.bind_var(name),
            Expr::Unary(op, operand) => self.bind_unary(*op, operand, scope),
            Expr::Binary(op, left, right) => self.bind_binary(*op, left, right, scope),
            Expr::IsNull { expr, negated } => {
                let inner = self.bind_scalar(expr, scope)?;
                Ok(Typed::condition(X::IsNull(Box::new(inner.x), *negated)))
            }
            Expr::Like { expr, pattern, escape, negated } => {
                self.bind_like(expr, pattern, escape.as_deref(), *negated, scope)
            }
            Expr::Between { expr, low, high, negated } => {
                let low = self.bind_comparison(BinOp::Ge, expr, low, scope)?;
                let high = self.bind_comparison(BinOp::Le, expr, high, scope)?;
                let both = X::And(Box::new((low, high)));
                Ok(Typed::condition(if *negated { X::Not(Box::new(both)) } else { both }))
            }
            Expr::InList { expr, list, negated } => self.bind_in_list(expr, list, *negated, scope),
            Expr::InQuery { expr, query, negated } => self.bind_in_query(expr, query, *negated, scope),
            Expr::Exists(query) => {
                let sub = self.bind_sub(query, Some(scope))?;
                Ok(Typed::condition(X::Exists(Rc::new(sub))))
            }
            Expr::Quantified { expr, op, all, query } => self.bind_quantified(expr, *op, *all, query, scope),
            Expr::Subquery(query) => self.bind_scalar_subquery(query, scope),
            Expr::Case { operand, whens, otherwise } => {
                self.bind_case(operand.as_deref(), whens, otherwise.as_deref(), scope)
            }
            Expr::Cast { expr, ty, attempt } => self.bind_cast(expr, ty, None, *attempt, scope),
            Expr::Convert { expr, ty, style, attempt } => self.bind_cast(expr, ty, style.as_deref(), *attempt, scope),
            Expr::Func(call) => self.bind_call(call, scope),
            Expr::Collate(inner, name) => self.bind_collate(inner, name, scope),
            Expr::AtTimeZone(value, zone) => {
                let args = vec![self.bind_scalar(value, scope)?, self.bind_scalar(zone, scope)?];
                self.builtin("AT TIME ZONE", &[], args)
            }
            Expr::NextValue(name) => super::super::sequence::bind(self, name),
            Expr::Default => Err(error::syntax_keyword("DEFAULT", 0)),
        }
    }

    fn bind_column(&mut self, name: &Name, scope: usize) -> Result<Typed> {
        let (level, source, position) = self.find_column(name, scope)?;
        let (col, slot) = {
            let source = &self.scopes[level].sources[source];
            (source.cols[position].clone(), source.base + position)
        };
        self.scopes[level].used.insert(slot);
        let slot = self.grouped_slot(level, slot, name)?;
        let x = if level == scope {
            X::Slot(slot)
        } else {
            self.outer_refs.push((level, slot));
            X::Outer { scope: level, slot }
        };
        Ok(Typed { x, ty: col.ty, nullable: col.nullable, coercibility: col.coercibility, boolean: false })
    }

    pub(crate) fn bind_var(&mut self, name: &str) -> Result<Typed> {
        if name.starts_with("@@") {
            return super::super::sysfn::bind_global(name);
        }
        let Some(at) = self.cx.st.frame().find(name) else { return Err(error::undeclared(name)) };
        let ty = self.cx.st.frame().vars[at].ty;
        Ok(Typed::new(X::Var(at), ty, true))
    }

    fn bind_unary(&mut self, op: UnOp, operand: &Expr, scope: usize) -> Result<Typed> {
        let operator = match op {
            UnOp::Not => {
                let inner = self.bind_condition(operand, scope)?;
                return Ok(Typed::condition(X::Not(Box::new(inner))));
            }
            UnOp::Plus => UnaryOperator::Plus,
            UnOp::Minus => UnaryOperator::Minus,
            UnOp::BitNot => UnaryOperator::BitNot,
        };
        let inner = self.bind_scalar(operand, scope)?;
        let ty = value::unary_type(operator, &inner.ty)?;
        Ok(Typed {
            x: X::Unary(operator, inner.ty, Box::new(inner.x)),
            ty,
            ..Typed::new(X::Const(Value::Null), ty, inner.nullable)
        })
    }

    fn bind_binary(&mut self, op: BinOp, left: &Expr, right: &Expr, scope: usize) -> Result<Typed> {
        match op {
            BinOp::And | BinOp::Or => {
                let left = self.bind_condition(left, scope)?;
                let right = self.bind_condition(right, scope)?;
                let pair = Box::new((left, right));
                Ok(Typed::condition(if op == BinOp::And { X::And(pair) } else { X::Or(pair) }))
            }
            _ if op.is_comparison() => self.bind_comparison(op, left, right, scope).map(Typed::condition),
            _ => {
                let left = self.bind_scalar(left, scope)?;
                let right = self.bind_scalar(right, scope)?;
                self.combine(op, left, right)
            }
        }
    }

    /// An arithmetic operator over bound operands.
    pub(crate) fn combine(&mut self, op: BinOp, mut left: Typed, mut right: Typed) -> Result<Typed> {
        let Some(operator) = binary_operator(op) else { return Err(error::syntax("=", 0)) };
        let coercibility = unify_collation(&mut left, &mut right, "add")?;
        let operation =
            BinaryOperation::resolve_literals(operator, (&left.ty, left.constant()), (&right.ty, right.constant()))?;
        let ty = operation.result();
        let nullable = left.nullable || right.nullable;
        let x = X::Binary(Box::new((operation, left.x, right.x)));
        Ok(Typed { x, ty, nullable, coercibility, boolean: false })
    }

    fn bind_comparison(&mut self, op: BinOp, left: &Expr, right: &Expr, scope: usize) -> Result<X> {
        let left = self.bind_scalar(left, scope)?;
        let right = self.bind_scalar(right, scope)?;
        compare(op, left, right)
    }

    fn bind_like(
        &mut self,
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        negated: bool,
        scope: usize,
    ) -> Result<Typed> {
        let mut expr = self.bind_text(expr, scope)?;
        let mut pattern = self.bind_text(pattern, scope)?;
        unify_collation(&mut expr, &mut pattern, "like")?;
        let escape = match escape {
            Some(e) => Some(self.bind_text(e, scope)?.x),
            None => None,
        };
        Ok(Typed::condition(X::Like(Box::new(LikeX {
            expr: expr.x,
            pattern: pattern.x,
            escape,
            ty: expr.ty,
            negated,
        }))))
    }

    /// Binds a value and converts it to text, as LIKE and string functions do.
    fn bind_text(&mut self, expr: &Expr, scope: usize) -> Result<Typed> {
        let typed = self.bind_scalar(expr, scope)?;
        if typed.ty.is_character() {
            return Ok(typed);
        }
        let to = SqlType::NVarChar(value::Length::Sized(4000), Collation::DEFAULT);
        let nullable = typed.nullable;
        Ok(Typed::new(convert(typed, to)?, to, nullable))
    }

    fn bind_in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool, scope: usize) -> Result<Typed> {
        let left = self.bind_scalar(expr, scope)?;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            let mut right = self.bind_scalar(item, scope)?;
            let mut left = left.clone();
            unify_collation(&mut left, &mut right, "equal to")?;
            items.push((Comparison::resolve("equal to", &left.ty, &right.ty)?, right.x));
        }
        Ok(Typed::condition(X::InList(Box::new(InListX { expr: left.x, list: items, negated }))))
    }

    fn one_column(&self, count: usize) -> Result<()> {
        if count == 1 {
            return Ok(());
        }
        Err(error::plain(
            116,
            "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
        ))
    }

    fn bind_in_query(&mut self, expr: &Expr, query: &Query, negated: bool, scope: usize) -> Result<Typed> {
        let left = self.bind_scalar(expr, scope)?;
        let sub = self.bind_sub(query, Some(scope))?;
        self.one_column(sub.plan.cols.len())?;
        let col = &sub.plan.cols[0];
        let mut right = Typed { coercibility: col.coercibility, ..Typed::new(X::Slot(0), col.ty, col.nullable) };
        let mut unified = left.clone();
        unify_collation(&mut unified, &mut right, "equal to")?;
        let common = Comparison::resolve("equal to", &unified.ty, &right.ty)?.operand_type();
        Ok(Typed::condition(X::InQuery(Box::new(InQueryX {
            expr: left.x,
            from: left.ty,
            common,
            sub: Rc::new(sub),
            negated,
            set: Rc::new(RefCell::new(None)),
        }))))
    }

    fn bind_quantified(&mut self, expr: &Expr, op: BinOp, all: bool, query: &Query, scope: usize) -> Result<Typed> {
        let mut left = self.bind_scalar(expr, scope)?;
        let sub = self.bind_sub(query, Some(scope))?;
        self.one_column(sub.plan.cols.len())?;
        let col = &sub.plan.cols[0];
        let mut right = Typed { coercibility: col.coercibility, ..Typed::new(X::Slot(0), col.ty, col.nullable) };
        unify_collation(&mut left, &mut right, comparison_name(op))?;
        let comparison = Comparison::resolve(comparison_name(op), &left.ty, &right.ty)?;
        Ok(Typed::condition(X::Quantified(Box::new(QuantifiedX {
            expr: left.x,
            op,
            all,
            comparison,
            sub: Rc::new(sub),
        }))))
    }

    fn bind_scalar_subquery(&mut self, query: &Query, scope: usize) -> Result<Typed> {
        let sub = self.bind_sub(query, Some(scope))?;
        self.one_column(sub.plan.cols.len())?;
        let col = sub.plan.cols[0].clone();
        let typed = Typed::new(X::Scalar(Rc::new(sub)), col.ty, true);
        Ok(Typed { coercibility: col.coercibility, ..typed })
    }

    fn bind_case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        scope: usize,
    ) -> Result<Typed> {
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        for (when, then) in whens {
            conditions.push(match operand {
                Some(operand) => self.bind_comparison(BinOp::Eq, operand, when, scope)?,
                None => self.bind_condition(when, scope)?,
            });
            results.push(self.bind_scalar(then, scope)?);
        }
        results.push(match otherwise {
            Some(e) => self.bind_scalar(e, scope)?,
            None => Typed::new(X::Const(Value::Null), SqlType::Null, true),
        });
        if results.iter().all(|r| matches!(&r.x, X::Const(Value::Null))) && otherwise.is_none() {
            let message = "At least one of the result expressions in a CASE specification must be an expression other than the NULL constant.";
            return Err(error::plain(8133, message));
        }
        case_of(conditions, results)
    }

    fn bind_cast(
        &mut self,
        expr: &Expr,
        ty: &TypeName,
        style: Option<&Expr>,
        attempt: bool,
        scope: usize,
    ) -> Result<Typed> {
        let inner = self.bind_scalar(expr, scope)?;
        let mut to = self.bind_type(ty, 30)?;
        // The result of a conversion between texts keeps their collation.
        if let Some(collation) = inner.ty.collation() {
            to = to.with_collation(collation);
        }
        value::check_conversion(&inner.ty, &to, Strictness::Explicit)?;
        let style = match style {
            Some(e) => {
                let style = self.bind_scalar(e, scope)?;
                Some(convert(style, SqlType::Int)?)
            }
            None => None,
        };
        let cast = CastX { expr: inner.x, from: inner.ty, to, options: CastOptions::EXPLICIT, style, attempt };
        let coercibility = inner.coercibility;
        Ok(Typed { coercibility, ..Typed::new(X::Cast(Box::new(cast)), to, inner.nullable || attempt) })
    }

    fn bind_collate(&mut self, inner: &Expr, name: &str, scope: usize) -> Result<Typed> {
        let inner = self.bind_scalar(inner, scope)?;
        let collation = super::super::types::collation(self.cx, name)?;
        if !inner.ty.is_character() {
            let message = format!("Expression type {} is invalid for COLLATE clause.", inner.ty.name());
            return Err(error::plain(447, &message));
        }
        let to = inner.ty.with_collation(collation);
        // Another code page changes the text, another order does not.
        let recode = matches!(inner.ty, SqlType::Char(..) | SqlType::VarChar(..) | SqlType::Text(_));
        let nullable = inner.nullable;
        let x = if recode { convert(inner, to)? } else { inner.x };
        Ok(Typed { coercibility: Coercibility::Explicit, ..Typed::new(x, to, nullable) })
    }
}

/// Converts a constant operand to the type of the comparison once, not for each row.
fn settle_constant(operand: &mut Typed, common: SqlType) -> bool {
    let X::Const(v) = &operand.x else { return false };
    if v.is_null() || operand.ty == common || operand.ty.is_character() && common.is_character() {
        return false;
    }
    match value::cast(v, &operand.ty, &common, &CastOptions::IMPLICIT) {
        Ok(value) => {
            operand.x = X::Const(value);
            operand.ty = common;
            true
        }
        Err(_) => false,
    }
}

/// A comparison of bound operands.
pub(crate) fn compare(op: BinOp, mut left: Typed, mut right: Typed) -> Result<X> {
    unify_collation(&mut left, &mut right, comparison_name(op))?;
    let mut comparison = Comparison::resolve(comparison_name(op), &left.ty, &right.ty)?;
    let common = comparison.operand_type();
    if settle_constant(&mut left, common) | settle_constant(&mut right, common) {
        comparison = Comparison::resolve(comparison_name(op), &left.ty, &right.ty)?;
    }
    let (left_type, right_type) = (left.ty, right.ty);
    Ok(X::Compare(op, Box::new(CompareX { comparison, left: left.x, left_type, right: right.x, right_type })))
}

/// CASE over bound parts: the last result is ELSE.
pub(crate) fn case_of(conditions: Vec<X>, mut results: Vec<Typed>) -> Result<Typed> {
    let mut ty = SqlType::Null;
    let mut coercibility = Coercibility::CoercibleDefault;
    let mut nullable = false;
    for result in &mut results {
        nullable |= result.nullable;
        if ty == SqlType::Null {
            ty = result.ty;
            coercibility = result.coercibility;
        } else if result.ty != SqlType::Null {
            let mut so_far = Typed { coercibility, ..Typed::new(X::Const(Value::Null), ty, true) };
            coercibility = unify_collation(&mut so_far, result, "CASE")?;
            ty = common_type(&so_far.ty, &result.ty)?;
        }
    }
    let mut bound = Vec::with_capacity(results.len());
    for result in results {
        bound.push(convert(result, ty)?);
    }
    let otherwise = bound.pop().unwrap_or(X::Const(Value::Null));
    let whens = conditions.into_iter().zip(bound).collect();
    let x = X::Case(Box::new(CaseX { whens, otherwise }));
    Ok(Typed { x, ty, nullable, coercibility, boolean: false })
}

/// The sign at which a condition in a place of a value is refused.
fn boolean_sign(expr: &Expr) -> &'static str {
    match expr {
        Expr::Binary(op, ..) => match op {
            BinOp::Eq => "=",
            BinOp::Ne => "<>",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::And => "AND",
            _ => "OR",
        },
        _ => ")",
    }
}
