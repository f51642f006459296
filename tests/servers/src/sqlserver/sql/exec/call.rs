//! EXEC: procedures, dynamic text, and what they return.

use std::sync::Arc;

use super::super::api::{BatchSink, ColumnMeta, Done, EnvChange, SinkResult, SqlError};
use super::super::ast::{Expr, Name};
use super::super::error::{self, Result};
use super::super::plan::Row;
use super::super::state::{Cx, Frame};
use super::super::stmt::{Exec, Kind, ModuleBody, Param, Stmt};
use super::super::{lookup, permission, procs, types};
use super::control::evaluate;
use super::{Flow, run_scope};
use crate::sqlserver::store::catalog::{Object, ObjectBody};
use crate::sqlserver::store::{Hold, lock::LockMode};
use crate::sqlserver::value::{self, CastOptions, SqlType, Value};

/// An argument with its value.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// Empty means by position.
    pub(crate) name: String,
    /// None is DEFAULT.
    pub(crate) value: Option<(Value, SqlType)>,
    pub(crate) output: bool,
    /// Variable of the caller that receives an output value.
    pub(crate) target: Option<usize>,
}

/// A call of a procedure with evaluated arguments.
pub(crate) struct ProcedureCall {
    pub(crate) name: Name,
    pub(crate) args: Vec<Argument>,
}

/// What a procedure gave back.
pub(crate) struct Returned {
    pub(crate) status: i32,
    /// Values of output arguments: index of the argument, name, type, value.
    pub(crate) outputs: Vec<(usize, String, SqlType, Value)>,
}

const MAX_NEST: u32 = 32;

fn check_nesting(cx: &Cx<'_>) -> Result<()> {
    if cx.st.nest_level >= MAX_NEST {
        return Err(error::plain(
            217,
            "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
        ));
    }
    Ok(())
}

pub(super) fn exec(cx: &mut Cx<'_>, exec: &Exec) -> Result<Flow> {
    let mut args = Vec::new();
    for arg in &exec.args {
        let target = match &arg.value {
            Some(Expr::Var(name)) if arg.output => {
                Some(cx.st.frame().find(name).ok_or_else(|| error::undeclared(name))?)
            }
            Some(_) if arg.output => {
                return Err(error::new(
                    179,
                    15,
                    1,
                    "Cannot use the OUTPUT option when passing a constant to a stored procedure.",
                ));
            }
            _ => None,
        };
        let value = match &arg.value {
            Some(expr) => Some(evaluate(cx, expr)?),
            None => None,
        };
        args.push(Argument { name: arg.name.clone().unwrap_or_default(), value, output: arg.output, target });
    }
    let name = match &exec.name_var {
        Some(var) => {
            let (value, _) = evaluate(cx, &Expr::Var(var.clone()))?;
            let Value::String(text) = value else { return Err(error::unknown_procedure("")) };
            super::super::parse::parse_name(&text.to_string())?
        }
        None => exec.name.clone(),
    };
    let status_var = match &exec.status {
        Some(name) => Some(cx.st.frame().find(name).ok_or_else(|| error::undeclared(name))?),
        None => None,
    };
    let targets: Vec<Option<usize>> = args.iter().map(|a| a.target).collect();
    let returned = call_procedure(cx, ProcedureCall { name, args })?;
    for (at, _, ty, value) in returned.outputs {
        if let Some(target) = targets.get(at).copied().flatten() {
            let to = cx.st.frame().vars[target].ty;
            let value = value::cast(&value, &ty, &to, &CastOptions::IMPLICIT)?;
            cx.st.frame_mut().vars[target].value = value;
        }
    }
    if let Some(at) = status_var {
        let to = cx.st.frame().vars[at].ty;
        let value = value::cast(&Value::Int(returned.status), &SqlType::Int, &to, &CastOptions::IMPLICIT)?;
        cx.st.frame_mut().vars[at].value = value;
    }
    Ok(Flow::Next)
}

/// Calls a stored or system procedure.
pub(crate) fn call_procedure(cx: &mut Cx<'_>, call: ProcedureCall) -> Result<Returned> {
    check_nesting(cx)?;
    let database = cx.st.database;
    let found = lookup::resolve(cx, &call.name, database, None, LockMode::SchemaStability, Hold::Statement)?;
    match found {
        Some(object) if matches!(object.body, ObjectBody::Procedure(_)) => call_stored(cx, &object, call),
        _ => {
            super::discard_idle(cx);
            procs::call(cx, &call)
        }
    }
}

fn call_stored(cx: &mut Cx<'_>, object: &Arc<Object>, call: ProcedureCall) -> Result<Returned> {
    if cx.st.frame().module_id == 0 {
        permission::check_object(cx, object, "EXECUTE")?;
    }
    let statement = super::module_text(cx, object)?;
    super::discard_idle(cx);
    let Kind::CreateModule(module) = &statement.kind else { return Err(error::unknown_procedure(&object.name)) };
    let ModuleBody::Procedure(body) = &module.body else { return Err(error::unknown_procedure(&object.name)) };
    let mut frame = Frame { module: object.name.clone(), module_id: object.id.0, ..Frame::default() };
    bind_parameters(cx, &mut frame, &module.params, &call.args, &object.name)?;
    let before_count = cx.st.trancount;
    let flow = run_module(cx, frame, |cx| run_scope(cx, body), |cx| output_values(cx, &module.params, &call.args))?;
    let (flow, outputs) = flow;
    if cx.st.trancount != before_count {
        let message = format!(
            "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = {before_count}, current count = {}.",
            cx.st.trancount
        );
        let e = super::placed(cx, error::new(266, 16, 2, &message));
        cx.st.error = 266;
        cx.out.error(&e);
    }
    let status = match flow {
        Flow::Return(Some(value)) => value.as_i64().and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
        _ => 0,
    };
    Ok(Returned { status, outputs })
}

type Outputs = Vec<(usize, String, SqlType, Value)>;

/// Runs a procedure's body in a frame of its own; settings that it changes end with it.
fn run_module(
    cx: &mut Cx<'_>,
    frame: Frame,
    body: impl FnOnce(&mut Cx<'_>) -> Result<Flow>,
    outputs: impl FnOnce(&mut Cx<'_>) -> Outputs,
) -> Result<(Flow, Outputs)> {
    let settings = cx.st.settings.clone();
    let (line, in_proc, impersonation) = (cx.st.line, cx.in_proc, cx.st.impersonation.len());
    cx.st.frames.push(frame);
    cx.st.scope_identity.push(None);
    cx.st.nest_level += 1;
    cx.in_proc = true;
    let result = body(cx);
    let values = outputs(cx);
    leave_frame(cx);
    cx.st.scope_identity.pop();
    cx.st.nest_level -= 1;
    cx.in_proc = in_proc;
    cx.st.line = line;
    let (isolation_kept, identity_insert) = (cx.st.settings.lock_timeout_ms, cx.st.settings.identity_insert);
    cx.st.settings = settings;
    cx.st.settings.identity_insert = identity_insert;
    if isolation_kept != cx.st.settings.lock_timeout_ms {
        cx.st.store_session.set_lock_timeout_ms(cx.st.settings.lock_timeout_ms);
    }
    while cx.st.impersonation.len() > impersonation {
        if let Some(identity) = cx.st.impersonation.pop() {
            cx.st.identity = identity;
        }
    }
    result.map(|flow| (flow, values))
}

/// Removes the top frame with its temporary tables.
pub(crate) fn leave_frame(cx: &mut Cx<'_>) {
    let Some(frame) = cx.st.frames.pop() else { return };
    let temporary: Vec<_> = frame.tables.into_values().chain(frame.temp_tables).collect();
    super::ddl::drop_temporary(cx, &temporary);
}

fn bind_parameters(cx: &mut Cx<'_>, frame: &mut Frame, params: &[Param], args: &[Argument], name: &str) -> Result<()> {
    if args.len() > params.len() {
        let message = if params.is_empty() {
            error::new(8146, 16, 2, &format!("Procedure {name} has no parameters and arguments were supplied."))
        } else {
            error::new(8144, 16, 2, &format!("Procedure or function {name} has too many arguments specified."))
        };
        return Err(message);
    }
    let mut given: Vec<Option<&Argument>> = vec![None; params.len()];
    let mut named = false;
    for (at, arg) in args.iter().enumerate() {
        let position = if arg.name.is_empty() {
            if named {
                return Err(error::new(
                    119,
                    15,
                    1,
                    &format!(
                        "Must pass parameter number {} and subsequent parameters as '@name = value'. After the form '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'.",
                        at + 1
                    ),
                ));
            }
            at
        } else {
            named = true;
            params.iter().position(|p| p.name.eq_ignore_ascii_case(&arg.name)).ok_or_else(|| {
                error::new(8145, 16, 2, &format!("{} is not a parameter for procedure {name}.", arg.name))
            })?
        };
        given[position] = Some(arg);
    }
    let database = cx.st.database;
    for (param, arg) in params.iter().zip(given) {
        let (ty, _) = types::resolve(cx, database, &param.ty, 1)?;
        let value = match arg.and_then(|a| a.value.as_ref()) {
            Some((value, from)) => convert_argument(value, from, &ty)?,
            None => match &param.default {
                Some(expr) => {
                    let (value, from) = evaluate(cx, expr)?;
                    convert_argument(&value, &from, &ty)?
                }
                None => {
                    return Err(error::new(
                        201,
                        16,
                        4,
                        &format!(
                            "Procedure or function '{name}' expects parameter '{}', which was not supplied.",
                            param.name
                        ),
                    ));
                }
            },
        };
        if arg.is_some_and(|a| a.output) && !param.output {
            return Err(error::new(
                8162,
                16,
                2,
                &format!(
                    "The formal parameter \"{}\" was not declared as an OUTPUT parameter, but the actual parameter passed in requested output.",
                    param.name
                ),
            ));
        }
        frame.declare(&param.name, ty, value);
    }
    Ok(())
}

fn convert_argument(value: &Value, from: &SqlType, to: &SqlType) -> Result<Value> {
    value::cast(value, from, to, &CastOptions::IMPLICIT).map_err(|e| {
        let e: SqlError = e.into();
        if e.number == 245 {
            return error::new(
                8114,
                16,
                5,
                &format!("Error converting data type {} to {}.", from.message_name(), to.message_name()),
            );
        }
        e
    })
}

fn output_values(cx: &mut Cx<'_>, params: &[Param], args: &[Argument]) -> Outputs {
    let mut outputs = Vec::new();
    for (at, arg) in args.iter().enumerate().filter(|(_, a)| a.output) {
        let param = if arg.name.is_empty() {
            params.get(at)
        } else {
            params.iter().find(|p| p.name.eq_ignore_ascii_case(&arg.name))
        };
        let Some(param) = param.filter(|p| p.output) else { continue };
        if let Some(found) = cx.st.frame().find(&param.name) {
            let var = &cx.st.frame().vars[found];
            outputs.push((at, param.name.clone(), var.ty, var.value.clone()));
        }
    }
    outputs
}

/// EXEC ('text').
pub(super) fn exec_text(cx: &mut Cx<'_>, parts: &[Expr], login: Option<&str>) -> Result<Flow> {
    if login.is_some() {
        return Err(error::unsupported("EXECUTE ('...') AS"));
    }
    let mut text = String::new();
    for part in parts {
        let (value, ty) = evaluate(cx, part)?;
        let value = value::cast(&value, &ty, &SqlType::NVARCHAR_MAX, &CastOptions::IMPLICIT)?;
        if let Value::String(piece) = value {
            text.push_str(&piece.to_string());
        }
    }
    super::discard_idle(cx);
    execute_text(cx, &text, &[], &[])?;
    Ok(Flow::Next)
}

/// Runs dynamic text with parameters in a scope of its own.
pub(crate) fn execute_text(cx: &mut Cx<'_>, text: &str, params: &[Param], args: &[Argument]) -> Result<Returned> {
    check_nesting(cx)?;
    let mut frame = Frame::default();
    bind_parameters(cx, &mut frame, params, args, "sp_executesql")?;
    let (_, outputs) = run_module(cx, frame, |cx| super::run_text(cx, text), |cx| output_values(cx, params, args))?;
    Ok(Returned { status: 0, outputs })
}

/// Keeps the rows of result sets instead of sending them.
struct Collector<'a> {
    inner: &'a mut dyn BatchSink,
    rows: Vec<Row>,
    types: Vec<SqlType>,
    mismatch: bool,
}

impl BatchSink for Collector<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SinkResult {
        let types: Vec<SqlType> = columns.iter().map(|c| c.ty).collect();
        if self.types.is_empty() {
            self.types = types;
        } else if self.types.len() != types.len() {
            self.mismatch = true;
        }
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SinkResult {
        self.rows.push(values.to_vec());
        Ok(())
    }

    fn done(&mut self, _done: Done) -> SinkResult {
        Ok(())
    }

    fn error(&mut self, error: &SqlError) {
        self.inner.error(error);
    }

    fn info(&mut self, info: &SqlError) {
        self.inner.info(info);
    }

    fn env_change(&mut self, change: EnvChange) {
        self.inner.env_change(change);
    }

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _name: &str, _column: &ColumnMeta, _value: &Value) {}
}

/// Rows of the result sets of an EXEC, for INSERT ... EXEC.
pub(super) fn rows_of(cx: &mut Cx<'_>, statement: &Stmt) -> Result<(Vec<Row>, Vec<SqlType>)> {
    let (in_proc, outer) = (cx.in_proc, std::mem::take(&mut cx.outer));
    let mut collector = Collector { inner: &mut *cx.out, rows: Vec::new(), types: Vec::new(), mismatch: false };
    let mut inner = Cx { st: &mut *cx.st, out: &mut collector, outer, in_proc };
    let result = match &statement.kind {
        Kind::Exec(call) => exec(&mut inner, call),
        Kind::ExecText { parts, login } => exec_text(&mut inner, parts, login.as_deref()),
        _ => Err(error::unsupported("INSERT EXEC")),
    };
    result?;
    if collector.mismatch {
        return Err(error::plain(213, "Column name or number of supplied values does not match table definition."));
    }
    Ok((collector.rows, collector.types))
}
