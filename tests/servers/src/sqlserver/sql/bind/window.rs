//! Functions with OVER.

use super::super::ast::{Bound, Frame, FuncCall, Over};
use super::super::error::{self, Result};
use super::super::plan::{OrderX, Typed, Window, WindowX, X};
use super::aggregate::aggregate_of;
use super::{Binder, WINDOW_BASE};
use crate::sqlserver::value::SqlType;

/// The window function of a name.
pub(super) fn window_of(name: &str) -> Option<Window> {
    Some(match name.to_ascii_lowercase().as_str() {
        "row_number" => Window::RowNumber,
        "rank" => Window::Rank,
        "dense_rank" => Window::DenseRank,
        "ntile" => Window::Ntile,
        "percent_rank" => Window::PercentRank,
        "cume_dist" => Window::CumeDist,
        "lag" => Window::Lag,
        "lead" => Window::Lead,
        "first_value" => Window::FirstValue,
        "last_value" => Window::LastValue,
        _ => return None,
    })
}

impl Binder<'_, '_> {
    pub(super) fn bind_window(&mut self, call: &FuncCall, over: &Over, scope: usize) -> Result<Typed> {
        if !self.scopes[scope].windows_allowed {
            return Err(error::new(
                4108,
                15,
                1,
                "Windowed functions can only appear in the SELECT or ORDER BY clauses.",
            ));
        }
        let name = call.name.base().to_owned();
        let kind = window_of(&name);
        let mut window = WindowX {
            kind: kind.unwrap_or(Window::Aggregate),
            args: Vec::new(),
            aggregate: None,
            partition: Vec::new(),
            order: Vec::new(),
            frame: default_frame(over),
        };
        for expr in &over.partition {
            let typed = self.bind_scalar(expr, scope)?;
            window.partition.push((typed.x, typed.ty));
        }
        for item in &over.order {
            if matches!(item.expr, super::super::ast::Expr::Literal(_)) {
                return Err(error::plain(
                    5309,
                    "Windowed functions, aggregates and NEXT VALUE FOR functions do not support constants as ORDER BY clause expressions.",
                ));
            }
            let typed = self.bind_scalar(&item.expr, scope)?;
            window.order.push(OrderX { x: typed.x, ty: typed.ty, descending: item.descending });
        }
        let (ty, nullable) = match kind {
            None => self.window_aggregate(call, &mut window, scope)?,
            Some(kind) => self.window_arguments(call, kind, over, &mut window, scope)?,
        };
        let windows = &mut self.scopes[scope].windows;
        windows.push(window);
        let slot = WINDOW_BASE + windows.len() - 1;
        Ok(Typed::new(X::Slot(slot), ty, nullable))
    }

    fn window_aggregate(&mut self, call: &FuncCall, window: &mut WindowX, scope: usize) -> Result<(SqlType, bool)> {
        let name = call.name.base();
        let Some(kind) = aggregate_of(name) else {
            return Err(error::new(195, 15, 10, &format!("'{name}' is not a recognized built-in function name.")));
        };
        if call.distinct {
            return Err(error::new(10759, 15, 1, "Use of DISTINCT is not allowed with the OVER clause."));
        }
        let aggregate = self.aggregate_parts(call, kind, scope)?;
        let result = aggregate.result;
        window.aggregate = Some(aggregate);
        Ok((result, true))
    }

    fn window_arguments(
        &mut self,
        call: &FuncCall,
        kind: Window,
        over: &Over,
        window: &mut WindowX,
        scope: usize,
    ) -> Result<(SqlType, bool)> {
        let name = call.name.base().to_ascii_uppercase();
        if over.order.is_empty() {
            let message = format!("The function '{name}' must have an OVER clause with ORDER BY.");
            return Err(error::new(4112, 15, 1, &message));
        }
        let framed = matches!(kind, Window::FirstValue | Window::LastValue);
        if over.frame.is_some() && !framed {
            let message = format!("The function '{name}' may not have a window frame.");
            return Err(error::new(10752, 15, 3, &message));
        }
        let (least, most) = match kind {
            Window::Ntile | Window::FirstValue | Window::LastValue => (1, 1),
            Window::Lag | Window::Lead => (1, 3),
            _ => (0, 0),
        };
        if call.args.len() < least || call.args.len() > most {
            let message = format!("The {} function requires {least} argument(s).", name.to_lowercase());
            return Err(error::new(if least == most { 174 } else { 189 }, 15, 1, &message));
        }
        let mut first = None;
        for (at, arg) in call.args.iter().enumerate() {
            let typed = self.bind_scalar(arg, scope)?;
            if at == 0 {
                first = Some(typed.clone());
            }
            // The default of LAG and LEAD takes the type of the value.
            let x = match (&first, at) {
                (Some(first), 2) => super::expr::convert(typed, first.ty)?,
                _ => typed.x,
            };
            window.args.push(x);
        }
        Ok(match (kind, first) {
            (Window::PercentRank | Window::CumeDist, _) => (SqlType::Float, false),
            (Window::Lag | Window::Lead | Window::FirstValue | Window::LastValue, Some(first)) => (first.ty, true),
            _ => (SqlType::BigInt, true),
        })
    }
}

/// The frame of a window: to the current row with ORDER BY, else the whole partition.
fn default_frame(over: &Over) -> Frame {
    match &over.frame {
        Some(frame) => frame.clone(),
        None if over.order.is_empty() => {
            Frame { rows: true, start: Bound::UnboundedPreceding, end: Bound::UnboundedFollowing }
        }
        None => Frame { rows: false, start: Bound::UnboundedPreceding, end: Bound::Current },
    }
}
