//! One SELECT: filter, group, window functions, projection, DISTINCT, ORDER BY, TOP.

use std::collections::HashSet;

use super::super::error::{self, Result};
use super::super::eval::all_true;
use super::super::plan::{Row, SelectPlan, Sink, Step, TopX};
use super::super::state::Cx;
use super::{emit_window, limit, order_key, row_key};
use crate::sqlserver::value::Value;

/// The row count of a TOP without PERCENT.
pub(crate) fn count_of(value: &Value) -> Result<u64> {
    let number = match value {
        Value::Null => {
            return Err(error::new(
                1060,
                15,
                1,
                "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.",
            ));
        }
        Value::Decimal(d) => {
            let mut n = d.unscaled();
            for _ in 0..d.scale() {
                n /= 10;
            }
            i64::try_from(n).unwrap_or(i64::MAX)
        }
        other => other.as_i64().ok_or_else(|| {
            error::new(
                1060,
                15,
                1,
                "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.",
            )
        })?,
    };
    u64::try_from(number).map_err(|_| error::new(127, 15, 1, "A TOP N or FETCH rowcount value may not be negative."))
}

fn percent_of(value: &Value) -> Result<f64> {
    let percent = match value {
        Value::Float(f) => *f,
        Value::Real(f) => f64::from(*f),
        #[allow(clippy::cast_precision_loss, reason = "a percentage")]
        Value::Decimal(d) => d.unscaled() as f64 / 10_f64.powi(i32::from(d.scale())),
        #[allow(clippy::cast_precision_loss, reason = "a percentage")]
        other => other.as_i64().unwrap_or(-1) as f64,
    };
    if (0.0..=100.0).contains(&percent) {
        return Ok(percent);
    }
    Err(error::new(1031, 15, 1, "Percent values must be between 0 and 100."))
}

impl SelectPlan {
    /// Rows after FROM, WHERE, GROUP BY and HAVING.
    fn base_rows(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let startup = all_true(&self.startup, cx, &[])?;
        if let Some(group) = &self.group {
            return group.run(self, startup, cx, &mut |cx, row| {
                if let Some(having) = &self.having
                    && having.test(cx, row)? != Some(true)
                {
                    return Ok(Step::More);
                }
                sink(cx, row)
            });
        }
        if !startup {
            return Ok(Step::More);
        }
        let mut row = vec![Value::Null; self.width];
        self.from.run(cx, &mut row, sink)
    }

    /// Rows with the results of window functions appended.
    fn window_rows(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        if self.windows.is_empty() {
            return self.base_rows(cx, sink);
        }
        let mut rows = Vec::new();
        self.base_rows(cx, &mut |_, row| {
            rows.push(row.clone());
            Ok(Step::More)
        })?;
        super::window::compute(&self.windows, &mut rows, cx)?;
        for mut row in rows {
            if sink(cx, &mut row)? == Step::Stop {
                return Ok(Step::Stop);
            }
        }
        Ok(Step::More)
    }

    pub(super) fn run(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let sorted = !self.order.is_empty();
        let percent = self.top.as_ref().is_some_and(|t| t.percent);
        if sorted || percent {
            return self.run_sorted(cx, sink);
        }
        let mut left = match &self.top {
            Some(top) => {
                let count = top.count.eval(cx, &[])?;
                count_of(&count)?
            }
            None => u64::MAX,
        };
        if left == 0 {
            return Ok(Step::More);
        }
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut closed = false;
        let mut out = Row::with_capacity(self.project.len());
        self.window_rows(cx, &mut |cx, row| {
            out.clear();
            for item in &self.project {
                out.push(item.eval(cx, row)?);
            }
            if self.distinct && !seen.insert(row_key(&out, &self.types)) {
                return Ok(Step::More);
            }
            if sink(cx, &mut out)? == Step::Stop {
                closed = true;
                return Ok(Step::Stop);
            }
            left -= 1;
            Ok(if left == 0 { Step::Stop } else { Step::More })
        })?;
        Ok(if closed { Step::Stop } else { Step::More })
    }

    fn run_sorted(&self, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let offset = limit(self.offset.as_ref(), cx, "OFFSET")?;
        let fetch = limit(self.fetch.as_ref(), cx, "FETCH")?;
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut rows: Vec<(Vec<u8>, Row)> = Vec::new();
        self.window_rows(cx, &mut |cx, row| {
            let out = if self.assigns { row.clone() } else { self.projected(cx, row)? };
            if self.distinct && !seen.insert(row_key(&out, &self.types)) {
                return Ok(Step::More);
            }
            let mut key = Vec::new();
            for order in &self.order {
                let value = order.x.eval(cx, row)?;
                order_key(&value, order, &mut key);
            }
            rows.push((key, out));
            Ok(Step::More)
        })?;
        cx.check_cancel()?;
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(top) = &self.top {
            cut(top, &mut rows, cx)?;
        }
        let rows = rows.into_iter().map(|(_, row)| row);
        if self.assigns {
            return emit_window(rows, offset, fetch, cx, &mut |cx, row| {
                let mut out = self.projected(cx, row)?;
                sink(cx, &mut out)
            });
        }
        emit_window(rows, offset, fetch, cx, sink)
    }

    fn projected(&self, cx: &mut Cx<'_>, row: &[Value]) -> Result<Row> {
        let mut out = Row::with_capacity(self.project.len());
        for item in &self.project {
            out.push(item.eval(cx, row)?);
        }
        Ok(out)
    }
}

/// Keeps the first rows that TOP asks for.
fn cut(top: &TopX, rows: &mut Vec<(Vec<u8>, Row)>, cx: &mut Cx<'_>) -> Result<()> {
    let count = top.count.eval(cx, &[])?;
    let count = if top.percent {
        let percent = percent_of(&count)?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "rounded up to whole rows"
        )]
        let count = (rows.len() as f64 * percent / 100.0).ceil() as usize;
        count
    } else {
        usize::try_from(count_of(&count)?).unwrap_or(usize::MAX)
    };
    let mut keep = count.min(rows.len());
    if top.with_ties && keep > 0 {
        while keep < rows.len() && rows[keep].0 == rows[keep - 1].0 {
            keep += 1;
        }
    }
    rows.truncate(keep);
    Ok(())
}
