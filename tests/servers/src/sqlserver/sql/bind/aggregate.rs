//! GROUP BY and aggregate functions.

use super::super::ast::{Expr, FuncCall, Group, Name};
use super::super::error::{self, Result};
use super::super::plan::{Aggregate, AggregateX, GroupPlan, OrderX, Typed, X};
use super::{Binder, Grouping};
use crate::sqlserver::value::{SqlType, Strictness, check_conversion};

/// The aggregate of a name.
pub(super) fn aggregate_of(name: &str) -> Option<Aggregate> {
    Some(match name.to_ascii_lowercase().as_str() {
        "count" => Aggregate::Count,
        "count_big" => Aggregate::CountBig,
        "sum" => Aggregate::Sum,
        "avg" => Aggregate::Avg,
        "min" => Aggregate::Min,
        "max" => Aggregate::Max,
        "stdev" => Aggregate::Stdev,
        "stdevp" => Aggregate::StdevP,
        "var" => Aggregate::Var,
        "varp" => Aggregate::VarP,
        "string_agg" => Aggregate::StringAgg,
        "checksum_agg" => Aggregate::ChecksumAgg,
        "grouping" => Aggregate::Grouping,
        "approx_count_distinct" => Aggregate::ApproxCount,
        _ => return None,
    })
}

/// Calls `visit` on each sub-expression, not entering subqueries.
pub(crate) fn walk(expr: &Expr, visit: &mut dyn FnMut(&Expr)) {
    visit(expr);
    match expr {
        Expr::Unary(_, e) | Expr::Collate(e, _) | Expr::IsNull { expr: e, .. } | Expr::Cast { expr: e, .. } => {
            walk(e, visit)
        }
        Expr::Binary(_, a, b) | Expr::AtTimeZone(a, b) => {
            walk(a, visit);
            walk(b, visit);
        }
        Expr::Like { expr, pattern, escape, .. } => {
            walk(expr, visit);
            walk(pattern, visit);
            if let Some(e) = escape {
                walk(e, visit);
            }
        }
        Expr::Between { expr, low, high, .. } => [expr, low, high].iter().for_each(|e| walk(e, visit)),
        Expr::InList { expr, list, .. } => {
            walk(expr, visit);
            list.iter().for_each(|e| walk(e, visit));
        }
        Expr::InQuery { expr, .. } | Expr::Quantified { expr, .. } => walk(expr, visit),
        Expr::Case { operand, whens, otherwise } => {
            operand.iter().chain(otherwise).for_each(|e| walk(e, visit));
            for (when, then) in whens {
                walk(when, visit);
                walk(then, visit);
            }
        }
        Expr::Convert { expr, style, .. } => {
            walk(expr, visit);
            if let Some(e) = style {
                walk(e, visit);
            }
        }
        Expr::Func(call) => {
            call.args.iter().for_each(|e| walk(e, visit));
            if let Some(over) = &call.over {
                over.partition.iter().for_each(|e| walk(e, visit));
                over.order.iter().for_each(|o| walk(&o.expr, visit));
            }
        }
        _ => {}
    }
}

/// Whether an aggregate (not a window function) stands in the expression.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    walk(expr, &mut |e| {
        if let Expr::Func(call) = e {
            found |= call.over.is_none() && call.name.parts.len() == 1 && aggregate_of(call.name.base()).is_some();
        }
    });
    found
}

impl Binder<'_, '_> {
    /// Binds GROUP BY and switches the scope to group rows.
    pub(super) fn bind_group(&mut self, group: Option<&Group>, scope: usize) -> Result<Vec<Vec<bool>>> {
        let mut grouping = Grouping::default();
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for set in group.map_or(&[][..], |g| &g.sets) {
            let mut members = Vec::new();
            for expr in set {
                if has_aggregate(expr) || matches!(expr, Expr::Subquery(_)) {
                    return Err(error::new(
                        144,
                        15,
                        1,
                        "Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.",
                    ));
                }
                if matches!(expr, Expr::Literal(_)) {
                    return Err(error::new(
                        164,
                        15,
                        1,
                        "Each GROUP BY expression must contain at least one column that is not an outer reference.",
                    ));
                }
                let typed = self.bind_scalar(expr, scope)?;
                let shown = format!("{:?}", typed.x);
                let at = grouping.keys.iter().position(|(s, _)| *s == shown).unwrap_or_else(|| {
                    grouping.keys.push((shown, typed));
                    grouping.keys.len() - 1
                });
                members.push(at);
            }
            sets.push(members);
        }
        let several = sets.len() > 1;
        let count = grouping.keys.len();
        if several {
            // A key that some set leaves out is NULL there.
            for (_, key) in &mut grouping.keys {
                key.nullable = true;
            }
        }
        let scope = &mut self.scopes[scope];
        scope.grouping = Some(grouping);
        scope.grouped = true;
        Ok(sets.into_iter().map(|members| (0..count).map(|i| members.contains(&i)).collect()).collect())
    }

    /// The group key that equals `expr`, if the scope's select list is being bound.
    pub(super) fn group_key(&mut self, expr: &Expr, scope: usize) -> Option<Typed> {
        if !self.scopes[scope].grouped || matches!(expr, Expr::Literal(_) | Expr::Var(_)) || has_aggregate(expr) {
            return None;
        }
        if self.scopes[scope].grouping.as_ref().is_none_or(|g| g.keys.is_empty()) {
            return None;
        }
        // Bind as before grouping and compare; an expression that does not bind is no key.
        self.scopes[scope].grouped = false;
        let mark = self.outer_refs.len();
        let typed = self.bind_plain_for_key(expr, scope);
        self.outer_refs.truncate(mark);
        self.scopes[scope].grouped = true;
        let shown = format!("{:?}", typed.ok()?.x);
        let grouping = self.scopes[scope].grouping.as_ref()?;
        let at = grouping.keys.iter().position(|(s, _)| *s == shown)?;
        Some(Typed { x: X::Slot(at), ..grouping.keys[at].1.clone() })
    }

    fn bind_plain_for_key(&mut self, expr: &Expr, scope: usize) -> Result<Typed> {
        let windows = self.scopes[scope].windows.len();
        let typed = self.bind_expr(expr, scope);
        self.scopes[scope].windows.truncate(windows);
        typed
    }

    /// The slot of a column in the group row, when its scope is grouped.
    pub(super) fn grouped_slot(&self, level: usize, slot: usize, name: &Name) -> Result<usize> {
        let scope = &self.scopes[level];
        let Some(grouping) = scope.grouping.as_ref().filter(|_| scope.grouped) else { return Ok(slot) };
        let shown = format!("{:?}", X::Slot(slot));
        if let Some(at) = grouping.keys.iter().position(|(s, _)| *s == shown) {
            return Ok(at);
        }
        let source = scope.sources.iter().find(|s| slot >= s.base && slot < s.base + s.cols.len());
        let shown = source.map_or_else(
            || name.display(),
            |source| {
                let schema = source.schema.as_ref().map(|schema| format!("{schema}.")).unwrap_or_default();
                format!("{schema}{}.{}", source.alias, source.cols[slot - source.base].name)
            },
        );
        let message = format!(
            "Column '{shown}' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause."
        );
        Err(error::plain(8120, &message))
    }

    /// An aggregate outside OVER.
    pub(super) fn bind_aggregate(&mut self, call: &FuncCall, kind: Aggregate, scope: usize) -> Result<Typed> {
        let Some(level) = self.grouped_scope(scope) else {
            let message = "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.";
            return Err(error::new(147, 15, 1, message));
        };
        if call.args.iter().any(has_aggregate) {
            return Err(error::plain(
                130,
                "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.",
            ));
        }
        self.scopes[level].grouped = false;
        let bound = self.aggregate_parts(call, kind, level);
        self.scopes[level].grouped = true;
        let aggregate = bound?;
        let result = aggregate.result;
        let nullable =
            !matches!(kind, Aggregate::Count | Aggregate::CountBig | Aggregate::Grouping | Aggregate::ApproxCount);
        let shown = format!("{aggregate:?}");
        let Some(grouping) = self.scopes[level].grouping.as_mut() else { return Err(error::unsupported("aggregate")) };
        let at = grouping.shown.iter().position(|s| *s == shown).unwrap_or_else(|| {
            grouping.shown.push(shown);
            grouping.aggregates.push(aggregate);
            grouping.aggregates.len() - 1
        });
        let slot = grouping.keys.len() + at;
        let x = if level == scope {
            X::Slot(slot)
        } else {
            self.outer_refs.push((level, slot));
            X::Outer { scope: level, slot }
        };
        Ok(Typed::new(x, result, nullable))
    }

    fn grouped_scope(&self, scope: usize) -> Option<usize> {
        let mut at = Some(scope);
        while let Some(level) = at {
            if self.scopes[level].grouped {
                return Some(level);
            }
            at = self.scopes[level].parent;
        }
        None
    }

    /// Argument, result type and order of an aggregate, for groups and for windows.
    pub(super) fn aggregate_parts(&mut self, call: &FuncCall, kind: Aggregate, scope: usize) -> Result<AggregateX> {
        let name = call.name.base().to_ascii_lowercase();
        let mut aggregate = AggregateX {
            kind,
            arg: None,
            arg_type: SqlType::Int,
            result: SqlType::Int,
            distinct: call.distinct || kind == Aggregate::ApproxCount,
            separator: None,
            order: Vec::new(),
            key: 0,
        };
        if call.star {
            if !matches!(kind, Aggregate::Count | Aggregate::CountBig) {
                return Err(error::syntax("*", 0));
            }
            aggregate.result = if kind == Aggregate::Count { SqlType::Int } else { SqlType::BigInt };
            return Ok(aggregate);
        }
        let wanted = if kind == Aggregate::StringAgg { 2 } else { 1 };
        if call.args.len() != wanted {
            let message = format!("The {name} function requires {wanted} argument(s).");
            return Err(error::new(174, 15, 1, &message));
        }
        if kind == Aggregate::Grouping {
            return self.grouping_function(call, scope, aggregate);
        }
        let arg = self.bind_scalar(&call.args[0], scope)?;
        if contains_subquery(&arg.x) {
            return Err(error::plain(
                130,
                "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.",
            ));
        }
        aggregate.result = result_type(kind, &arg.ty, &name)?;
        aggregate.arg_type = arg.ty;
        if kind == Aggregate::StringAgg {
            return self.string_agg(call, scope, arg, aggregate);
        }
        aggregate.arg = Some(arg.x);
        Ok(aggregate)
    }

    fn grouping_function(&mut self, call: &FuncCall, scope: usize, mut aggregate: AggregateX) -> Result<AggregateX> {
        let typed = self.bind_scalar(&call.args[0], scope)?;
        let shown = format!("{:?}", typed.x);
        let keys = self.scopes[scope].grouping.as_ref().map(|g| &g.keys);
        let at = keys.and_then(|k| k.iter().position(|(s, _)| *s == shown));
        let Some(at) = at else {
            return Err(error::new(
                8161,
                15,
                1,
                "Argument 1 of the GROUPING function does not match any of the expressions in the GROUP BY clause.",
            ));
        };
        aggregate.key = at;
        aggregate.result = SqlType::TinyInt;
        Ok(aggregate)
    }

    fn string_agg(
        &mut self,
        call: &FuncCall,
        scope: usize,
        arg: Typed,
        mut aggregate: AggregateX,
    ) -> Result<AggregateX> {
        use crate::sqlserver::value::{Collation, Length};
        let arg = if arg.ty.is_character() {
            arg
        } else {
            let to = SqlType::NVarChar(Length::Sized(4000), Collation::DEFAULT);
            let nullable = arg.nullable;
            Typed::new(super::expr::convert(arg, to)?, to, nullable)
        };
        aggregate.result = match arg.ty {
            SqlType::VarChar(Length::Max, c) => SqlType::VarChar(Length::Max, c),
            SqlType::Char(_, c) | SqlType::VarChar(_, c) => SqlType::VarChar(Length::Sized(8000), c),
            SqlType::NVarChar(Length::Max, c) => SqlType::NVarChar(Length::Max, c),
            other => SqlType::NVarChar(Length::Sized(4000), other.collation().unwrap_or(Collation::DEFAULT)),
        };
        aggregate.arg_type = arg.ty;
        aggregate.arg = Some(arg.x);
        let separator = self.bind_scalar(&call.args[1], scope)?;
        aggregate.separator = Some(separator.x);
        for item in &call.within_group {
            let typed = self.bind_scalar(&item.expr, scope)?;
            aggregate.order.push(OrderX { x: typed.x, ty: typed.ty, descending: item.descending });
        }
        Ok(aggregate)
    }

    /// The grouping of a scope as a plan.
    pub(super) fn take_group(&mut self, scope: usize, sets: Vec<Vec<bool>>) -> Option<GroupPlan> {
        let grouping = self.scopes[scope].grouping.take()?;
        let scalar = sets.is_empty();
        let keys = grouping.keys.into_iter().map(|(_, t)| (t.x, t.ty)).collect();
        Some(GroupPlan { keys, sets, aggregates: grouping.aggregates, scalar })
    }

    /// Slots of a scope's group row.
    pub(super) fn group_width(&self, scope: usize) -> Option<usize> {
        self.scopes[scope].grouping.as_ref().map(|g| g.keys.len() + g.aggregates.len())
    }
}

fn contains_subquery(x: &X) -> bool {
    matches!(x, X::Scalar(_) | X::Exists(_) | X::InQuery(_) | X::Quantified(_))
}

/// The type of an aggregate ("Aggregate functions (Transact-SQL)").
fn result_type(kind: Aggregate, ty: &SqlType, name: &str) -> Result<SqlType> {
    let invalid = || {
        let shown = ty.message_name();
        error::plain(8117, &format!("Operand data type {shown} is invalid for {name} operator."))
    };
    match kind {
        Aggregate::Count => Ok(SqlType::Int),
        Aggregate::CountBig | Aggregate::ApproxCount => Ok(SqlType::BigInt),
        Aggregate::Sum | Aggregate::Avg => match ty {
            SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => Ok(SqlType::Int),
            SqlType::BigInt => Ok(SqlType::BigInt),
            SqlType::Decimal { scale, .. } => {
                let scale = if kind == Aggregate::Sum { *scale } else { (*scale).max(6) };
                Ok(SqlType::Decimal { precision: 38, scale })
            }
            SqlType::Money | SqlType::SmallMoney => Ok(SqlType::Money),
            SqlType::Real | SqlType::Float => Ok(SqlType::Float),
            _ => Err(invalid()),
        },
        Aggregate::Stdev | Aggregate::StdevP | Aggregate::Var | Aggregate::VarP => {
            if !ty.is_number() || *ty == SqlType::Bit {
                return Err(invalid());
            }
            Ok(SqlType::Float)
        }
        Aggregate::Min | Aggregate::Max => {
            if *ty == SqlType::Bit || ty.is_legacy_large() {
                return Err(invalid());
            }
            Ok(if *ty == SqlType::Null { SqlType::Int } else { *ty })
        }
        Aggregate::ChecksumAgg => {
            check_conversion(ty, &SqlType::Int, Strictness::Implicit)?;
            if *ty == SqlType::Int { Ok(SqlType::Int) } else { Err(invalid()) }
        }
        Aggregate::StringAgg | Aggregate::Grouping => Ok(*ty),
    }
}
