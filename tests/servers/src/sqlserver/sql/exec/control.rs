//! Control flow, variables, messages.

use std::time::{Duration, Instant};

use super::super::ast::{BinOp, Expr};
use super::super::bind::Binder;
use super::super::error::{self, Result};
use super::super::plan::{Typed, X};
use super::super::state::{Caught, Cx};
use super::super::stmt::{Declare, Stmt};
use super::{Flow, placed, run_list, run_statement};
use crate::sqlserver::value::{self, CastOptions, SqlType, Value};

/// Evaluates an expression of a statement without rows.
pub(crate) fn evaluate(cx: &mut Cx<'_>, expr: &Expr) -> Result<(Value, SqlType)> {
    let typed = Binder::new(cx).bind_constant(expr)?;
    let value = typed.x.eval(cx, &[])?;
    Ok((value, typed.ty))
}

/// Evaluates an expression and converts it as an assignment does.
pub(crate) fn evaluate_as(cx: &mut Cx<'_>, expr: &Expr, to: &SqlType) -> Result<Value> {
    let (value, from) = evaluate(cx, expr)?;
    let options = CastOptions { date_format: cx.st.settings.date_format, ..CastOptions::IMPLICIT };
    Ok(value::cast(&value, &from, to, &options)?)
}

pub(super) fn test(cx: &mut Cx<'_>, condition: &Expr) -> Result<bool> {
    let x = Binder::new(cx).bind_constant_condition(condition)?;
    Ok(x.test(cx, &[])? == Some(true))
}

pub(super) fn run_block(cx: &mut Cx<'_>, body: &[Stmt]) -> Result<Flow> {
    run_list(cx, body)
}

pub(super) fn run_while(cx: &mut Cx<'_>, statement: &Stmt, condition: &Expr, body: &Stmt) -> Result<Flow> {
    loop {
        if super::guarded(cx, statement, |cx| test(cx, condition))? != Some(true) {
            return Ok(Flow::Next);
        }
        match run_statement(cx, body)? {
            Flow::Next | Flow::Continue => {}
            Flow::Break => return Ok(Flow::Next),
            other => return Ok(other),
        }
    }
}

/// BEGIN TRY ... END CATCH.
pub(super) fn try_catch(cx: &mut Cx<'_>, body: &[Stmt], handler: &[Stmt]) -> Result<Flow> {
    let depth = cx.st.frames.len();
    let nest = cx.st.nest_level;
    let (hold, in_proc) = (cx.st.hold, cx.in_proc);
    cx.st.tries.push(depth);
    let result = run_list(cx, body);
    cx.st.tries.pop();
    let caught = match result {
        Ok(flow) => return Ok(flow),
        Err(e) if error::is_marker(&e) => return Err(e),
        Err(e) => e,
    };
    if cx.st.uncatchable.is_some_and(|frame| frame <= depth) {
        if cx.st.tries.is_empty() {
            cx.st.uncatchable = None;
            cx.st.error = caught.number;
            cx.out.error(&caught);
            let marker = if depth > 1 { error::SCOPE_ABORTED } else { error::BATCH_ABORTED };
            return Err(error::marker(marker));
        }
        return Err(caught);
    }
    cx.st.uncatchable = None;
    cx.st.nest_level = nest;
    cx.st.hold = hold;
    cx.in_proc = in_proc;
    cx.st.error = caught.number;
    cx.st.caught.push(Caught { error: caught });
    let result = run_list(cx, handler);
    cx.st.caught.pop();
    result
}

pub(super) fn declare(cx: &mut Cx<'_>, items: &[Declare]) -> Result<Flow> {
    for item in items {
        match item {
            Declare::Scalar { name, ty, value } => {
                let database = cx.st.database;
                let (ty, _) = super::super::types::resolve(cx, database, ty, 1)?;
                check_variable_type(&ty)?;
                let value = match value {
                    Some(expr) => Some(evaluate_as(cx, expr, &ty)?),
                    None => None,
                };
                let known = cx.st.frame().find(name);
                match (known, value) {
                    (Some(at), Some(value)) => cx.st.frame_mut().vars[at].value = value,
                    (Some(_), None) => {}
                    (None, value) => cx.st.frame_mut().declare(name, ty, value.unwrap_or(Value::Null)),
                }
            }
            Declare::Table { name, elements } => super::ddl::declare_table_variable(cx, name, elements)?,
        }
    }
    Ok(Flow::Next)
}

fn check_variable_type(ty: &SqlType) -> Result<()> {
    if ty.is_legacy_large() {
        return Err(error::new(2739, 16, 1, "The text, ntext, and image data types are invalid for local variables."));
    }
    Ok(())
}

pub(super) fn set_variable(cx: &mut Cx<'_>, name: &str, op: Option<BinOp>, expr: &Expr) -> Result<Flow> {
    let Some(at) = cx.st.frame().find(name) else { return Err(error::undeclared(name)) };
    let target = cx.st.frame().vars[at].ty;
    let value = match op {
        None => evaluate_as(cx, expr, &target)?,
        Some(op) => {
            let mut binder = Binder::new(cx);
            let right = binder.bind_constant(expr)?;
            let left = Typed::new(X::Var(at), target, true);
            let typed = binder.combine(op, left, right)?;
            let value = typed.x.eval(cx, &[])?;
            value::cast(&value, &typed.ty, &target, &CastOptions::IMPLICIT)?
        }
    };
    cx.st.frame_mut().vars[at].value = value;
    cx.st.rowcount = 1;
    Ok(Flow::Next)
}

pub(super) fn return_value(cx: &mut Cx<'_>, expr: Option<&Expr>) -> Result<Flow> {
    let Some(expr) = expr else { return Ok(Flow::Return(None)) };
    if cx.st.frames.len() == 1 && cx.st.frame().module.is_empty() && !cx.in_proc {
        return Err(error::new(178, 15, 1, "A RETURN statement with a return value cannot be used in this context."));
    }
    let (value, ty) = evaluate(cx, expr)?;
    // A function's declared type is applied by its caller.
    let value = if cx.st.frame().returns.is_some() { convert_return(cx, &value, &ty)? } else { value };
    Ok(Flow::Return(Some(value)))
}

fn convert_return(cx: &Cx<'_>, value: &Value, from: &SqlType) -> Result<Value> {
    let Some(to) = cx.st.frame().returns else { return Ok(value.clone()) };
    Ok(value::cast(value, from, &to, &CastOptions::IMPLICIT)?)
}

/// A value as PRINT shows it.
fn message_text(value: &Value, ty: &SqlType) -> Result<String> {
    let text = value::cast(value, ty, &SqlType::NVARCHAR_MAX, &CastOptions::IMPLICIT)?;
    Ok(match text {
        Value::String(text) => text.to_string(),
        _ => String::new(),
    })
}

pub(super) fn print(cx: &mut Cx<'_>, expr: &Expr) -> Result<Flow> {
    let (value, ty) = evaluate(cx, expr)?;
    let text = message_text(&value, &ty)?;
    let text: String = text.chars().take(if ty.is_unicode() { 4000 } else { 8000 }).collect();
    let info = placed(cx, error::new(0, 0, 1, if text.is_empty() { " " } else { &text }));
    cx.out.info(&info);
    Ok(Flow::Next)
}

pub(super) fn throw(cx: &mut Cx<'_>, parts: Option<&(Expr, Expr, Expr)>) -> Result<Flow> {
    let Some((number, message, state)) = parts else {
        let Some(caught) = cx.st.caught.last() else {
            return Err(error::new(
                10704,
                15,
                1,
                "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement.",
            ));
        };
        return Err(caught.error.clone());
    };
    let number = evaluate_as(cx, number, &SqlType::Int)?.as_i64().unwrap_or(0);
    let number = i32::try_from(number).unwrap_or(0);
    let (message, ty) = evaluate(cx, message)?;
    let message = message_text(&message, &ty)?;
    let state = evaluate_as(cx, state, &SqlType::TinyInt)?.as_i64().unwrap_or(1);
    if number < 50000 {
        return Err(error::new(
            35100,
            16,
            10,
            &format!(
                "Error number {number} in the THROW statement is outside the valid range. Specify an error number in the valid range of 50000 to 2147483647."
            ),
        ));
    }
    Err(error::new(number, 16, u8::try_from(state).unwrap_or(1), &message))
}

pub(super) fn raise_error(
    cx: &mut Cx<'_>,
    message: &Expr,
    severity: &Expr,
    state: &Expr,
    args: &[Expr],
    options: &[String],
) -> Result<Flow> {
    let (message, ty) = evaluate(cx, message)?;
    let severity = evaluate_as(cx, severity, &SqlType::Int)?.as_i64().unwrap_or(0);
    let state = evaluate_as(cx, state, &SqlType::Int)?.as_i64().unwrap_or(0);
    let mut values = Vec::new();
    for arg in args {
        values.push(evaluate(cx, arg)?);
    }
    let (number, text) = if ty.is_integer() {
        let number = i32::try_from(message.as_i64().unwrap_or(0)).unwrap_or(0);
        if number < 13000 {
            return Err(error::new(
                2732,
                16,
                1,
                &format!(
                    "Error number {number} is invalid. The number must be from 13000 through 2147483647 and it cannot be 50000."
                ),
            ));
        }
        return Err(error::new(
            18054,
            16,
            1,
            &format!(
                "Error {number}, severity {severity}, state {state} was raised, but no message with that error number was found in sys.messages. If error is larger than 50000, make sure the user-defined message is added using sp_addmessage."
            ),
        ));
    } else {
        (50000, message_text(&message, &ty)?)
    };
    let text = super::super::format::message(&text, &values)?;
    let class = severity.clamp(0, 25);
    if class > 18 && !options.iter().any(|o| o == "log") {
        return Err(error::new(
            2754,
            16,
            1,
            "Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG option.",
        ));
    }
    let state = if (0..=255).contains(&state) { state } else { 1 };
    let raised = error::new(number, u8::try_from(class).unwrap_or(16), u8::try_from(state).unwrap_or(1), &text);
    if class > 10 {
        return Err(raised);
    }
    let info = placed(cx, SqlErrorInfo(raised).low(class));
    cx.out.info(&info);
    cx.st.error = if options.iter().any(|o| o == "seterror") { 50000 } else { 0 };
    Ok(Flow::Next)
}

/// Severities up to 10 are shown as they are; 10 itself becomes 0.
struct SqlErrorInfo(super::super::api::SqlError);

impl SqlErrorInfo {
    fn low(self, class: i64) -> super::super::api::SqlError {
        let mut info = self.0;
        if class == 10 {
            info.class = 0;
        }
        info
    }
}

/// WAITFOR DELAY and WAITFOR TIME.
pub(super) fn wait(cx: &mut Cx<'_>, expr: &Expr, delay: bool) -> Result<Flow> {
    let (value, ty) = evaluate(cx, expr)?;
    let bad = || error::new(148, 15, 1, "Incorrect time syntax in time string used with WAITFOR.");
    let time = value::cast(&value, &ty, &SqlType::DateTime, &CastOptions::IMPLICIT).map_err(|_| bad())?;
    let Value::DateTime(time) = time else { return Err(bad()) };
    if time.days != 0 {
        return Err(bad());
    }
    let mut wait = Duration::from_micros(u64::from(time.ticks) * 10_000 / 3);
    if !delay {
        let now = Duration::from_micros(super::super::state::now_utc().ticks / 10);
        let day = Duration::from_secs(86_400);
        wait = if wait >= now { wait - now } else { wait + day - now };
    }
    let end = Instant::now() + wait;
    while Instant::now() < end {
        cx.check_cancel()?;
        let left = end.saturating_duration_since(Instant::now());
        std::thread::sleep(left.min(Duration::from_millis(10)));
    }
    Ok(Flow::Next)
}

pub(super) fn kill(cx: &mut Cx<'_>, session: &Expr) -> Result<Flow> {
    super::super::permission::check_server(cx, "ALTER ANY CONNECTION")?;
    let id = evaluate_as(cx, session, &SqlType::Int)?.as_i64().unwrap_or(0);
    let id = u16::try_from(id).unwrap_or(0);
    if id == cx.st.id {
        return Err(error::plain(6104, "Cannot use KILL to kill your own process."));
    }
    if !cx.st.engine.kill(id) {
        return Err(error::plain(6106, &format!("Process ID {id} is not an active process ID.")));
    }
    Ok(Flow::Next)
}
