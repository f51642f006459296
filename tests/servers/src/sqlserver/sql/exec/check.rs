//! What SQL Server finds when it compiles a batch, before the first statement runs: undeclared variables, and wrong
//! columns of tables that exist (names of missing tables are resolved later).

use super::super::ast::{Body, Expr, Item, Query};
use super::super::bind::Binder;
use super::super::error::{self, Result};
use super::super::state::Cx;
use super::super::stmt::{Declare, Kind, Stmt};

/// Checks the statements of a batch.
pub(super) fn check_batch(cx: &mut Cx<'_>, statements: &[Stmt]) -> Result<()> {
    let mut names: Vec<String> = cx.st.frame().names.keys().cloned().collect();
    let mut tables: Vec<String> = cx.st.frame().tables.keys().cloned().collect();
    let mut changes_schema = false;
    for statement in statements {
        check_statement(cx, statement, &mut names, &mut tables, &mut changes_schema)
            .map_err(|e| e.at_line(statement.line))?;
    }
    Ok(())
}

fn check_statement(
    cx: &mut Cx<'_>,
    statement: &Stmt,
    names: &mut Vec<String>,
    tables: &mut Vec<String>,
    changes: &mut bool,
) -> Result<()> {
    match &statement.kind {
        Kind::Block(body) => check_all(cx, body, names, tables, changes),
        Kind::TryCatch { body, handler } => {
            check_all(cx, body, names, tables, changes)?;
            check_all(cx, handler, names, tables, changes)
        }
        Kind::If { condition, then, otherwise } => {
            check_variables(condition, names)?;
            check_statement(cx, then, names, tables, changes).map_err(|e| e.at_line(then.line))?;
            if let Some(other) = otherwise {
                check_statement(cx, other, names, tables, changes).map_err(|e| e.at_line(other.line))?;
            }
            Ok(())
        }
        Kind::While { condition, body } => {
            check_variables(condition, names)?;
            check_statement(cx, body, names, tables, changes).map_err(|e| e.at_line(body.line))
        }
        Kind::Declare(items) => declare(items, names, tables),
        Kind::SetVar { name, value, .. } => {
            check_name(name, names)?;
            check_variables(value, names)
        }
        Kind::Print(e) | Kind::WaitDelay(e) | Kind::Return(Some(e)) => check_variables(e, names),
        Kind::Query(query) => check_query(cx, query, names, tables, *changes),
        Kind::CreateTable(_)
        | Kind::AlterTable(_)
        | Kind::Drop { .. }
        | Kind::Use(_)
        | Kind::Exec(_)
        | Kind::ExecText { .. } => {
            *changes = true;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_all(
    cx: &mut Cx<'_>,
    body: &[Stmt],
    names: &mut Vec<String>,
    tables: &mut Vec<String>,
    changes: &mut bool,
) -> Result<()> {
    for statement in body {
        check_statement(cx, statement, names, tables, changes).map_err(|e| e.at_line(statement.line))?;
    }
    Ok(())
}

fn declare(items: &[Declare], names: &mut Vec<String>, tables: &mut Vec<String>) -> Result<()> {
    for item in items {
        let name = match item {
            Declare::Scalar { name, value, .. } => {
                if let Some(value) = value {
                    check_variables(value, names)?;
                }
                name
            }
            Declare::Table { name, .. } => name,
        };
        let lower = name.to_lowercase();
        if names.contains(&lower) || tables.contains(&lower) {
            let message = format!(
                "The variable name '{name}' has already been declared. Variable names must be unique within a query batch or stored procedure."
            );
            return Err(error::new(134, 15, 1, &message));
        }
        match item {
            Declare::Scalar { .. } => names.push(lower),
            Declare::Table { .. } => tables.push(lower),
        }
    }
    Ok(())
}

fn check_name(name: &str, names: &[String]) -> Result<()> {
    if name.starts_with("@@") || names.contains(&name.to_lowercase()) {
        return Ok(());
    }
    Err(error::undeclared(name))
}

/// Variables of an expression, not entering subqueries (their statement is bound when it runs).
fn check_variables(expr: &Expr, names: &[String]) -> Result<()> {
    let mut missing = None;
    super::super::bind::walk(expr, &mut |e| {
        if let Expr::Var(name) = e
            && missing.is_none()
            && check_name(name, names).is_err()
        {
            missing = Some(name.clone());
        }
    });
    missing.map_or(Ok(()), |name| Err(error::undeclared(&name)))
}

/// A query over tables that exist is bound now, so that a wrong column stops the batch before it starts.
fn check_query(cx: &mut Cx<'_>, query: &Query, names: &[String], tables: &[String], changes: bool) -> Result<()> {
    if let Body::Select(select) = &query.body {
        for item in &select.items {
            match item {
                Item::Assign { var, expr, .. } => {
                    check_name(var, names)?;
                    check_variables(expr, names)?;
                }
                Item::Expr { expr, .. } => check_variables(expr, names)?,
                Item::Star(_) => {}
            }
        }
        if let Some(filter) = &select.filter {
            check_variables(filter, names)?;
        }
    }
    let known = cx.st.frame().names.len() == names.len() && cx.st.frame().tables.len() == tables.len();
    if changes || !known || cx.st.frames.len() > 1 {
        return Ok(());
    }
    let result = Binder::new(cx).bind_query(query, None);
    super::discard_idle(cx);
    if let Some(txn) = &cx.st.txn {
        txn.end_statement();
    }
    match result {
        Err(e) if matches!(e.number, 207 | 209 | 4104 | 8120 | 8155 | 107) => Err(e),
        _ => Ok(()),
    }
}
