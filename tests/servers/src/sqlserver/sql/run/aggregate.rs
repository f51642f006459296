//! Accumulators of aggregate functions.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::super::api::SqlError;
use super::super::error::{self, Result};
use super::super::plan::{Aggregate, AggregateX};
use super::super::state::Cx;
use super::order_key;
use crate::sqlserver::value::{Decimal, SqlType, Text, Value, compare, hash_key};

/// Sum of a type family.
#[derive(Debug, Clone, Copy)]
enum Sum {
    /// Integers, decimals by their unscaled value, money.
    Exact(i128),
    Approximate(f64),
}

/// State of one aggregate of one group.
pub(super) struct Accumulator {
    rows: u64,
    seen_null: bool,
    distinct: Option<HashSet<Vec<u8>>>,
    sum: Sum,
    squares: f64,
    mean: f64,
    best: Value,
    texts: Vec<(Vec<u8>, Text)>,
    separator: Text,
    checksum: i32,
}

fn overflow(ty: &SqlType) -> SqlError {
    let name = ty.name();
    let name = if name == "decimal" { "numeric" } else { name };
    error::new(8115, 16, 2, &format!("Arithmetic overflow error converting expression to data type {name}."))
}

/// A number as `f64`.
#[allow(clippy::cast_precision_loss, reason = "approximate aggregates compute in floating point")]
fn as_f64(value: &Value) -> f64 {
    match value {
        Value::Float(f) => *f,
        Value::Real(f) => f64::from(*f),
        Value::Decimal(d) => d.unscaled() as f64 / 10_f64.powi(i32::from(d.scale())),
        Value::Money(m) => *m as f64 / 10_000.0,
        other => other.as_i64().unwrap_or(0) as f64,
    }
}

impl Accumulator {
    pub(super) fn new(aggregate: &AggregateX) -> Self {
        Self {
            rows: 0,
            seen_null: false,
            distinct: aggregate.distinct.then(HashSet::new),
            sum: if aggregate.result.is_approximate() { Sum::Approximate(0.0) } else { Sum::Exact(0) },
            squares: 0.0,
            mean: 0.0,
            best: Value::Null,
            texts: Vec::new(),
            separator: Text::from(""),
            checksum: 0,
        }
    }

    /// The state so far, for running totals.
    pub(super) fn snapshot(&self) -> Self {
        Self {
            rows: self.rows,
            seen_null: self.seen_null,
            distinct: None,
            sum: self.sum,
            squares: self.squares,
            mean: self.mean,
            best: self.best.clone(),
            texts: self.texts.clone(),
            separator: self.separator.clone(),
            checksum: self.checksum,
        }
    }

    pub(super) fn add(&mut self, aggregate: &AggregateX, cx: &mut Cx<'_>, row: &[Value]) -> Result<()> {
        let Some(arg) = &aggregate.arg else {
            self.rows += 1;
            return Ok(());
        };
        let value = arg.eval(cx, row)?;
        if value.is_null() {
            self.seen_null = true;
            return Ok(());
        }
        if let Some(seen) = &mut self.distinct
            && !seen.insert(hash_key(&value, &aggregate.arg_type))
        {
            return Ok(());
        }
        self.rows += 1;
        match aggregate.kind {
            Aggregate::Sum | Aggregate::Avg => self.add_number(&value, aggregate)?,
            Aggregate::Min => self.keep(value, Ordering::Less, aggregate),
            Aggregate::Max => self.keep(value, Ordering::Greater, aggregate),
            Aggregate::Stdev | Aggregate::StdevP | Aggregate::Var | Aggregate::VarP => self.add_deviation(&value),
            Aggregate::StringAgg => self.add_text(value, aggregate, cx, row)?,
            Aggregate::ChecksumAgg => {
                self.checksum ^= i32::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0);
            }
            Aggregate::Count | Aggregate::CountBig | Aggregate::Grouping | Aggregate::ApproxCount => {}
        }
        Ok(())
    }

    fn keep(&mut self, value: Value, wanted: Ordering, aggregate: &AggregateX) {
        if self.best.is_null() || compare(&value, &self.best, &aggregate.arg_type) == wanted {
            self.best = value;
        }
    }

    fn add_number(&mut self, value: &Value, aggregate: &AggregateX) -> Result<()> {
        match &mut self.sum {
            Sum::Approximate(sum) => *sum += as_f64(value),
            Sum::Exact(sum) => {
                let number = match value {
                    Value::Decimal(d) => d.unscaled(),
                    Value::Money(m) => i128::from(*m),
                    other => i128::from(other.as_i64().unwrap_or(0)),
                };
                *sum = sum.checked_add(number).ok_or_else(|| overflow(&aggregate.result))?;
            }
        }
        Ok(())
    }

    /// Welford's method.
    #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
    fn add_deviation(&mut self, value: &Value) {
        let x = as_f64(value);
        let delta = x - self.mean;
        self.mean += delta / self.rows as f64;
        self.squares += delta * (x - self.mean);
    }

    fn add_text(&mut self, value: Value, aggregate: &AggregateX, cx: &mut Cx<'_>, row: &[Value]) -> Result<()> {
        let Value::String(text) = value else { return Ok(()) };
        if self.texts.is_empty()
            && let Some(separator) = &aggregate.separator
            && let Value::String(text) = separator.eval(cx, row)?
        {
            self.separator = text;
        }
        let mut key = Vec::new();
        for order in &aggregate.order {
            let value = order.x.eval(cx, row)?;
            order_key(&value, order, &mut key);
        }
        self.texts.push((key, text));
        Ok(())
    }

    pub(super) fn finish(mut self, aggregate: &AggregateX, cx: &mut Cx<'_>) -> Result<Value> {
        if self.seen_null
            && cx.st.settings.ansi_warnings
            && cx.st.frames.len() == 1
            && aggregate.kind != Aggregate::Grouping
        {
            cx.st.null_eliminated = true;
        }
        let rows = self.rows;
        Ok(match aggregate.kind {
            Aggregate::Count | Aggregate::ApproxCount if aggregate.result == SqlType::Int => {
                Value::Int(i32::try_from(rows).map_err(|_| overflow(&SqlType::Int))?)
            }
            Aggregate::Count | Aggregate::CountBig | Aggregate::ApproxCount => {
                Value::BigInt(i64::try_from(rows).map_err(|_| overflow(&SqlType::BigInt))?)
            }
            Aggregate::ChecksumAgg if rows > 0 => Value::Int(self.checksum),
            Aggregate::Min | Aggregate::Max => self.best,
            _ if rows == 0 => Value::Null,
            Aggregate::Sum => exact_or_float(self.sum, aggregate)?,
            Aggregate::Avg => average(self.sum, rows, aggregate)?,
            Aggregate::Stdev | Aggregate::Var if rows < 2 => Value::Null,
            #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
            Aggregate::Stdev => Value::Float((self.squares / (rows - 1) as f64).sqrt()),
            #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
            Aggregate::Var => Value::Float(self.squares / (rows - 1) as f64),
            #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
            Aggregate::StdevP => Value::Float((self.squares / rows as f64).sqrt()),
            #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
            Aggregate::VarP => Value::Float(self.squares / rows as f64),
            Aggregate::StringAgg => {
                self.texts.sort_by(|a, b| a.0.cmp(&b.0));
                let mut units: Vec<u16> = Vec::new();
                for (at, (_, text)) in self.texts.iter().enumerate() {
                    if at > 0 {
                        units.extend(self.separator.units());
                    }
                    units.extend(text.units());
                }
                Value::String(Text::from_units(&units))
            }
            Aggregate::ChecksumAgg | Aggregate::Grouping => Value::Null,
        })
    }
}

fn exact_or_float(sum: Sum, aggregate: &AggregateX) -> Result<Value> {
    match sum {
        Sum::Approximate(f) if f.is_finite() => Ok(Value::Float(f)),
        Sum::Approximate(_) => Err(overflow(&SqlType::Float)),
        Sum::Exact(n) => exact(n, &aggregate.result),
    }
}

/// An exact number as a value of `ty`.
fn exact(n: i128, ty: &SqlType) -> Result<Value> {
    match ty {
        SqlType::Int => i32::try_from(n).map(Value::Int).map_err(|_| overflow(ty)),
        SqlType::BigInt => i64::try_from(n).map(Value::BigInt).map_err(|_| overflow(ty)),
        SqlType::Money => i64::try_from(n).map(Value::Money).map_err(|_| overflow(ty)),
        SqlType::Decimal { precision, scale } => {
            if n.unsigned_abs() >= 10_u128.pow(38) {
                return Err(overflow(ty));
            }
            Ok(Value::Decimal(Decimal::new(n, *precision, *scale)))
        }
        _ => Err(overflow(ty)),
    }
}

fn average(sum: Sum, rows: u64, aggregate: &AggregateX) -> Result<Value> {
    match sum {
        #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
        Sum::Approximate(f) => Ok(Value::Float(f / rows as f64)),
        Sum::Exact(n) => {
            let rows = i128::from(rows);
            let shift = match (aggregate.result, aggregate.arg_type) {
                (SqlType::Decimal { scale, .. }, SqlType::Decimal { scale: from, .. }) => {
                    u32::from(scale.saturating_sub(from))
                }
                _ => 0,
            };
            let scaled = n.checked_mul(10_i128.pow(shift)).ok_or_else(|| overflow(&aggregate.result))?;
            exact(scaled / rows, &aggregate.result)
        }
    }
}
