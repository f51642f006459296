//! User functions.

use std::sync::Arc;

use super::ast::{Expr, FuncCall, Name};
use super::bind::{Binder, convert, table_columns};
use super::error::{self, Result};
use super::exec::{self, Flow};
use super::plan::{Node, UserFuncX};
use super::state::{Cx, Frame};
use super::stmt::{CreateModule, Kind, ModuleBody};
use super::{lookup, module, permission, types};
use crate::sqlserver::store::catalog::{Object, ObjectBody, ObjectId};
use crate::sqlserver::value::{SqlType, Value};

/// A scalar function with its types.
pub(crate) struct Found {
    pub(crate) object: ObjectId,
    pub(crate) params: Vec<SqlType>,
    pub(crate) returns: SqlType,
}

fn definition(cx: &mut Cx<'_>, object: &Object) -> Result<CreateModule> {
    let statement = module::parsed(cx, object)?;
    match &statement.kind {
        Kind::CreateModule(module) => Ok((**module).clone()),
        _ => Err(error::unknown_object(&object.name)),
    }
}

/// Finds a scalar function by its two-part name.
pub(crate) fn find_scalar(binder: &mut Binder<'_, '_>, name: &Name) -> Result<Found> {
    let missing = || {
        let shown = name.display();
        error::plain(
            4121,
            &format!(
                "Cannot find either column \"{}\" or the user-defined function or aggregate \"{shown}\", or the name is ambiguous.",
                name.parts[0]
            ),
        )
    };
    let object = lookup::find(binder.cx, name).filter(|o| matches!(o.body, ObjectBody::ScalarFunction(_)));
    let object = object.ok_or_else(missing)?;
    if !binder.chained {
        permission::check_object(binder.cx, &object, "EXECUTE")?;
    }
    let create = definition(binder.cx, &object)?;
    let ModuleBody::ScalarFunction { returns, .. } = &create.body else { return Err(missing()) };
    let (returns, _) = types::resolve(binder.cx, object.database, returns, 1)?;
    let mut params = Vec::new();
    for param in &create.params {
        params.push(types::resolve(binder.cx, object.database, &param.ty, 1)?.0);
    }
    Ok(Found { object: object.id, params, returns })
}

/// Calls a scalar function for one row.
pub(crate) fn call_scalar(call: &UserFuncX, cx: &mut Cx<'_>, row: &[Value]) -> Result<Value> {
    let txn = cx.st.txn();
    let Some(object) = txn.object(call.object) else { return Err(error::unknown_object("function")) };
    let create = definition(cx, &object)?;
    let ModuleBody::ScalarFunction { returns, body } = &create.body else {
        return Err(error::unknown_object(&object.name));
    };
    let (returns, _) = types::resolve(cx, object.database, returns, 1)?;
    let mut frame =
        Frame { module: object.name.clone(), module_id: object.id.0, returns: Some(returns), ..Frame::default() };
    for ((arg, ty), param) in call.args.iter().zip(&call.arg_types).zip(&create.params) {
        let value = match (arg, &param.default) {
            (Some(x), _) => x.eval(cx, row)?,
            (None, Some(expr)) => exec_default(cx, expr, ty)?,
            (None, None) => Value::Null,
        };
        frame.declare(&param.name, *ty, value);
    }
    let flow = run(cx, frame, |cx| exec::run_list(cx, body))?;
    match flow {
        Flow::Return(Some(value)) => Ok(value),
        _ => Ok(Value::Null),
    }
}

fn exec_default(cx: &mut Cx<'_>, expr: &Expr, ty: &SqlType) -> Result<Value> {
    let typed = Binder::new(cx).bind_constant(expr)?;
    convert(typed, *ty)?.eval(cx, &[])
}

/// Runs a function's body in its own frame inside the caller's statement.
fn run<T>(cx: &mut Cx<'_>, frame: Frame, body: impl FnOnce(&mut Cx<'_>) -> Result<T>) -> Result<T> {
    if cx.st.nest_level >= 32 {
        return Err(error::plain(
            217,
            "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
        ));
    }
    let outer = std::mem::take(&mut cx.outer);
    let (line, count, in_proc) = (cx.st.line, cx.st.rowcount, cx.in_proc);
    cx.st.hold += 1;
    cx.st.nest_level += 1;
    cx.in_proc = true;
    cx.st.frames.push(frame);
    let result = body(cx);
    exec::leave_frame(cx);
    cx.st.nest_level -= 1;
    cx.st.hold -= 1;
    cx.outer = outer;
    (cx.st.line, cx.st.rowcount, cx.in_proc) = (line, count, in_proc);
    result
}

/// A user table function in FROM.
pub(crate) fn bind_table_function(
    binder: &mut Binder<'_, '_>,
    call: &FuncCall,
    alias: &str,
    columns: &[String],
    scope: usize,
    args_scope: usize,
) -> Result<(Node, (usize, usize))> {
    let found = lookup::find(binder.cx, &call.name);
    let object = found.filter(|o| matches!(o.body, ObjectBody::InlineFunction(_) | ObjectBody::TableFunction(_)));
    let object = object.ok_or_else(|| error::unknown_object(&call.name.display()))?;
    if !binder.chained {
        permission::check_object(binder.cx, &object, "SELECT")?;
    }
    let create = definition(binder.cx, &object)?;
    if call.args.len() != create.params.len() {
        return Err(error::new(
            313,
            16,
            3,
            &format!(
                "An insufficient number of arguments were supplied for the procedure or function {}.",
                call.name.display()
            ),
        ));
    }
    // Arguments that read the row around are beyond what a frame of variables can carry.
    let mut frame = Frame { module_id: object.id.0, ..Frame::default() };
    for (arg, param) in call.args.iter().zip(&create.params) {
        let (ty, _) = types::resolve(binder.cx, object.database, &param.ty, 1)?;
        let typed = binder.bind_scalar(arg, args_scope)?;
        if !super::bind::is_constant(&typed.x) {
            return Err(error::unsupported("table function with arguments from the row around it"));
        }
        let value = convert(typed, ty)?.eval(binder.cx, &[])?;
        frame.declare(&param.name, ty, value);
    }
    let (cols, rows) = match &create.body {
        ModuleBody::InlineFunction(query) => run(binder.cx, frame, |cx| {
            let mut inner = Binder::new(cx);
            inner.database = object.database;
            inner.schema = Some(object.schema);
            inner.chained = true;
            let plan = inner.bind_query(query, None)?;
            let rows = plan.collect(cx)?;
            Ok((super::bind::derived_columns(&plan), rows))
        })?,
        ModuleBody::TableFunction { var, elements, body } => run(binder.cx, frame, |cx| {
            exec::ddl::declare_table_variable(cx, var, elements)?;
            exec::run_list(cx, body)?;
            let mut inner = Binder::new(cx);
            let table: Arc<Object> = inner.table_variable(var)?;
            let width = table.table().map_or(0, |t| t.columns.len());
            let txn = cx.st.variable_txn();
            let mut rows = Vec::new();
            let scan = txn.scan(table.id, crate::sqlserver::store::ReadMode::Committed);
            for item in scan.map_err(|e| super::storage::error(cx, e))? {
                let item = item.map_err(|e| super::storage::error(cx, e))?;
                rows.push(item.values(width).map_err(|e| super::storage::error(cx, e))?);
            }
            Ok((table_columns(&table), rows))
        })?,
        _ => return Err(error::unknown_object(&call.name.display())),
    };
    let mut cols = cols;
    super::bind::rename(&mut cols, columns, alias)?;
    let width = cols.len();
    let range = binder.add_source(scope, alias, None, cols)?;
    Ok((Node::Rows { rows: Arc::new(rows), base: range.0, width }, range))
}
