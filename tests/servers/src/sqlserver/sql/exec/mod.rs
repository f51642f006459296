//! Execution of statements: order, errors, transactions around each statement.

mod call;
mod check;
mod control;
mod cursor;
mod dbcc;
pub(crate) mod ddl;
pub(crate) mod dml;
mod grant;
mod query;
mod security;
mod set;
pub(crate) mod transaction;
pub(crate) mod trigger;

use super::api::{Done, SqlError};
use super::error::{self, BATCH_ABORTED, CLOSED, Result, SCOPE_ABORTED};
use super::parse;
use super::state::Cx;
use super::stmt::{Kind, Stmt};

pub(crate) use call::{Argument, ProcedureCall, Returned, call_procedure, execute_text, leave_frame};
pub(crate) use security::alter_role;

/// Where control goes after a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<crate::sqlserver::value::Value>),
    Goto(String),
}

/// Parses and runs a batch; errors have been reported when this returns, except markers.
pub(crate) fn run_text(cx: &mut Cx<'_>, text: &str) -> Result<Flow> {
    let statements = match parse::parse_batch(text, cx.st.settings.quoted_identifier) {
        Ok(statements) => statements,
        Err(e) => return report_compile_error(cx, e),
    };
    if cx.st.settings.parseonly {
        let turns_off = |s: &Stmt| matches!(&s.kind, Kind::SetOption(super::stmt::SetOption::Switch { names, on: false }) if names.iter().any(|n| n == "parseonly"));
        if !statements.iter().any(turns_off) {
            return Ok(Flow::Next);
        }
    }
    run_scope(cx, &statements)
}

/// Runs the statements of a batch, procedure or trigger.
pub(crate) fn run_scope(cx: &mut Cx<'_>, statements: &[Stmt]) -> Result<Flow> {
    if let Err(e) = check::check_batch(cx, statements) {
        return report_compile_error(cx, e);
    }
    let mut at = 0;
    loop {
        match run_list(cx, &statements[at..])? {
            Flow::Goto(label) => match position_of(statements, &label) {
                Some(found) => at = found,
                None => {
                    let message =
                        format!("A GOTO statement references the label '{label}' but the label has not been declared.");
                    return report_compile_error(cx, error::new(133, 15, 1, &message));
                }
            },
            flow => return Ok(flow),
        }
    }
}

fn position_of(statements: &[Stmt], label: &str) -> Option<usize> {
    statements.iter().position(|s| matches!(&s.kind, Kind::Label(l) if l.eq_ignore_ascii_case(label)))
}

/// An error of the text itself: nothing of the scope runs, and no TRY inside it can catch it.
fn report_compile_error(cx: &mut Cx<'_>, e: SqlError) -> Result<Flow> {
    if error::is_marker(&e) {
        return Err(e);
    }
    let e = placed(cx, e);
    discard_idle(cx);
    let depth = cx.st.frames.len();
    if cx.st.tries.iter().any(|frame| *frame < depth) {
        cx.st.uncatchable = Some(depth);
        return Err(e);
    }
    cx.st.error = e.number;
    cx.out.error(&e);
    Err(error::marker(if depth > 1 { SCOPE_ABORTED } else { BATCH_ABORTED }))
}

/// Ends an autocommit transaction in which nothing was done.
pub(crate) fn discard_idle(cx: &mut Cx<'_>) {
    if cx.st.trancount == 0
        && cx.st.hold == 0
        && let Some(txn) = cx.st.txn.take()
    {
        txn.rollback();
    }
    if let Some(txn) = cx.st.variable_txn.take() {
        txn.rollback();
    }
}

/// Fills in line and module of an error.
pub(crate) fn placed(cx: &Cx<'_>, mut e: SqlError) -> SqlError {
    if e.line == 0 {
        e.line = cx.st.line;
    }
    if e.procedure.is_empty() {
        e.procedure.clone_from(&cx.st.frame().module);
    }
    e
}

pub(crate) fn run_list(cx: &mut Cx<'_>, statements: &[Stmt]) -> Result<Flow> {
    for statement in statements {
        let flow = run_statement(cx, statement)?;
        if flow != Flow::Next {
            return Ok(flow);
        }
    }
    Ok(Flow::Next)
}

/// Whether a statement only steers others.
fn is_compound(kind: &Kind) -> bool {
    matches!(kind, Kind::Block(_) | Kind::TryCatch { .. } | Kind::Label(_))
}

/// Runs one statement, with what SQL Server does around it: cancel, clock, undo, autocommit, error rules.
pub(crate) fn run_statement(cx: &mut Cx<'_>, statement: &Stmt) -> Result<Flow> {
    cx.check_cancel()?;
    match &statement.kind {
        Kind::Block(body) => return control::run_block(cx, body),
        Kind::TryCatch { body, handler } => return control::try_catch(cx, body, handler),
        Kind::If { condition, then, otherwise } => {
            return match guarded(cx, statement, |cx| control::test(cx, condition))? {
                Some(true) => run_statement(cx, then),
                Some(false) => otherwise.as_ref().map_or(Ok(Flow::Next), |s| run_statement(cx, s)),
                // The condition failed without ending the batch.
                None => Ok(Flow::Next),
            };
        }
        Kind::While { condition, body } => return control::run_while(cx, statement, condition, body),
        _ => {}
    }
    debug_assert!(!is_compound(&statement.kind) || matches!(statement.kind, Kind::Label(_)));
    let flow = guarded(cx, statement, |cx| execute(cx, statement))?;
    Ok(flow.unwrap_or(Flow::Next))
}

/// Runs `body` as the work of `statement`; none when its error was reported and the batch goes on.
pub(super) fn guarded<T>(
    cx: &mut Cx<'_>,
    statement: &Stmt,
    body: impl FnOnce(&mut Cx<'_>) -> Result<T>,
) -> Result<Option<T>> {
    cx.st.line = statement.line;
    cx.st.tick();
    let mark = cx.st.txn.as_ref().map(|t| t.mark());
    let variable_mark = cx.st.variable_txn.as_ref().map(|t| t.mark());
    let result = body(cx).and_then(|value| finish_statement(cx).map(|()| value));
    match result {
        Ok(value) => {
            if !keeps_error(&statement.kind) {
                cx.st.error = 0;
            }
            Ok(Some(value))
        }
        Err(e) => {
            undo_statement(cx, mark, variable_mark);
            failed(cx, statement, e)?;
            Ok(None)
        }
    }
}

/// Statements that set @@ERROR by themselves.
fn keeps_error(kind: &Kind) -> bool {
    matches!(kind, Kind::RaiseError { .. } | Kind::Exec(_) | Kind::ExecText { .. } | Kind::Return(_))
}

fn undo_statement(
    cx: &mut Cx<'_>,
    mark: Option<crate::sqlserver::store::Mark>,
    variable_mark: Option<crate::sqlserver::store::Mark>,
) {
    if let Some(txn) = cx.st.variable_txn.take() {
        match variable_mark {
            Some(mark) if cx.st.hold > 0 => {
                txn.rollback_to_mark(mark);
                cx.st.variable_txn = Some(txn);
            }
            _ => txn.rollback(),
        }
    }
    let Some(txn) = cx.st.txn.clone() else { return };
    if cx.st.trancount == 0 && cx.st.hold == 0 {
        txn.rollback();
        cx.st.txn = None;
    } else if let Some(mark) = mark
        && txn.is_active()
    {
        txn.rollback_to_mark(mark);
        txn.end_statement();
    }
}

/// Releases statement locks and commits what autocommits.
pub(crate) fn finish_statement(cx: &mut Cx<'_>) -> Result<()> {
    if cx.st.hold > 0 {
        return Ok(());
    }
    if let Some(txn) = cx.st.variable_txn.take() {
        txn.commit().map_err(|e| super::storage::error(cx, e))?;
    }
    let Some(txn) = cx.st.txn.clone() else { return Ok(()) };
    txn.end_statement();
    if cx.st.trancount == 0 {
        cx.st.txn = None;
        txn.commit().map_err(|e| super::storage::error(cx, e))?;
    }
    if std::mem::take(&mut cx.st.null_eliminated) {
        cx.out.info(&placed(
            cx,
            error::new(8153, 0, 1, "Warning: Null value is eliminated by an aggregate or other SET operation."),
        ));
    }
    Ok(())
}

/// Applies the error rules of SQL Server to a failed statement.
fn failed(cx: &mut Cx<'_>, statement: &Stmt, e: SqlError) -> Result<()> {
    if error::is_marker(&e) {
        return match e.number {
            SCOPE_ABORTED => {
                // The inner scope has reported; the caller's statement is over.
                Ok(())
            }
            _ => Err(e),
        };
    }
    let e = placed(cx, e);
    let is_throw = matches!(statement.kind, Kind::Throw(_));
    let is_raise = matches!(statement.kind, Kind::RaiseError { .. });
    let calls = matches!(statement.kind, Kind::Exec(_) | Kind::ExecText { .. });
    let compile = error::is_compile_error(e.number) && !is_throw && !is_raise && !calls;
    let strict = (cx.st.settings.xact_abort || cx.st.trigger_depth > 0) && !is_raise;
    let aborts = error::is_batch_abort(e.number) && !is_throw;
    let depth = cx.st.frames.len();
    let reachable = cx.st.tries.iter().any(|frame| !compile || e.number == 229 || *frame < depth);
    if reachable && e.class < 20 {
        if compile && e.number != 229 {
            cx.st.uncatchable = Some(cx.st.uncatchable.unwrap_or(depth).max(depth));
        }
        if cx.st.trancount > 0 && (strict || aborts) {
            cx.st.doomed = true;
        }
        return Err(e);
    }
    cx.st.error = e.number;
    cx.st.rowcount = 0;
    cx.out.error(&e);
    let fatal = e.class >= 20;
    if fatal || strict && !compile_keeps_transaction(compile, cx) || aborts {
        transaction::abort(cx);
        emit_failed_done(cx)?;
        return Err(error::marker(if fatal { CLOSED } else { BATCH_ABORTED }));
    }
    emit_failed_done(cx)?;
    if is_throw {
        return Err(error::marker(BATCH_ABORTED));
    }
    if compile && e.number != 229 {
        return Err(error::marker(if depth > 1 { SCOPE_ABORTED } else { BATCH_ABORTED }));
    }
    if terminates_visibly(&statement.kind) {
        cx.out.info(&placed(cx, error::new(3621, 0, 0, "The statement has been terminated.")));
    }
    Ok(())
}

/// XACT_ABORT does not apply to errors of the compiler at the outermost level: the batch ends, the transaction stays.
fn compile_keeps_transaction(compile: bool, cx: &Cx<'_>) -> bool {
    compile && !cx.st.settings.xact_abort && cx.st.trigger_depth == 0
}

fn emit_failed_done(cx: &mut Cx<'_>) -> Result<()> {
    let done = Done { count: None, cmd: super::api::cmd::OTHER, in_proc: cx.in_proc, error: true };
    cx.out.done(done).map_err(|_| error::marker(CLOSED))
}

/// Statements after whose error SQL Server adds message 3621.
fn terminates_visibly(kind: &Kind) -> bool {
    matches!(kind, Kind::Insert(_) | Kind::Update(_) | Kind::Delete(_) | Kind::Merge(_))
}

/// Reports the end of a statement.
pub(crate) fn done(cx: &mut Cx<'_>, command: u16, count: Option<u64>) -> Result<()> {
    let count = count.filter(|_| !cx.st.settings.nocount);
    let done = Done { count, cmd: command, in_proc: cx.in_proc, error: false };
    cx.out.done(done).map_err(|_| error::marker(CLOSED))
}

/// The end of a statement that counts no rows.
pub(crate) fn done_plain(cx: &mut Cx<'_>) -> Result<Flow> {
    done(cx, super::api::cmd::OTHER, None)?;
    Ok(Flow::Next)
}

#[allow(clippy::too_many_lines, reason = "one flat table from kind to executor")]
fn execute(cx: &mut Cx<'_>, statement: &Stmt) -> Result<Flow> {
    if cx.st.settings.noexec && !matches!(statement.kind, Kind::SetOption(_)) {
        return Ok(Flow::Next);
    }
    match &statement.kind {
        Kind::Query(query) => query::select(cx, query),
        Kind::Insert(insert) => dml::insert(cx, insert),
        Kind::Update(update) => dml::update(cx, update),
        Kind::Delete(delete) => dml::delete(cx, delete),
        Kind::Merge(merge) => dml::merge(cx, merge),
        Kind::Truncate(name) => ddl::truncate(cx, name),
        Kind::InsertBulk(bulk) => super::bulk::announce(cx, bulk),
        Kind::Declare(items) => control::declare(cx, items),
        Kind::SetVar { name, op, value } => control::set_variable(cx, name, *op, value),
        Kind::SetOption(option) => set::set_option(cx, option),
        Kind::Break => Ok(Flow::Break),
        Kind::Continue => Ok(Flow::Continue),
        Kind::Return(value) => control::return_value(cx, value.as_ref()),
        Kind::Goto(label) => Ok(Flow::Goto(label.clone())),
        Kind::Print(expr) => control::print(cx, expr),
        Kind::RaiseError { message, severity, state, args, options } => {
            control::raise_error(cx, message, severity, state, args, options)
        }
        Kind::Throw(parts) => control::throw(cx, parts.as_ref()),
        Kind::WaitDelay(expr) => control::wait(cx, expr, true),
        Kind::WaitTime(expr) => control::wait(cx, expr, false),
        Kind::Exec(exec) => call::exec(cx, exec),
        Kind::ExecText { parts, login } => call::exec_text(cx, parts, login.as_deref()),
        Kind::Begin { name } => transaction::begin(cx, name.as_ref()),
        Kind::Commit => transaction::commit(cx),
        Kind::Rollback { name } => transaction::rollback(cx, name.as_ref()),
        Kind::Save { name } => transaction::save(cx, name),
        Kind::Use(name) => set::use_database(cx, name),
        Kind::Trigger { enable, names, table } => ddl::enable_triggers(cx, *enable, names, table.as_ref()),
        Kind::Permission(permission) => grant::permission(cx, permission),
        Kind::Principal(principal) => security::principal(cx, principal),
        Kind::ExecuteAs { user, login } => security::execute_as(cx, user, *login),
        Kind::Revert => security::revert(cx),
        Kind::DeclareCursor { name, query } => cursor::declare(cx, name, query),
        Kind::Cursor { action, name } => cursor::act(cx, *action, name),
        Kind::Fetch { name, direction, into } => cursor::fetch(cx, name, direction, into),
        Kind::Kill(session) => control::kill(cx, session),
        Kind::Checkpoint | Kind::UpdateStatistics => done_plain(cx),
        Kind::Dbcc { name, args } => dbcc::run(cx, name, args),
        Kind::Block(_) | Kind::TryCatch { .. } | Kind::If { .. } | Kind::While { .. } | Kind::Label(_) => {
            Ok(Flow::Next)
        }
        other => ddl::execute(cx, other),
    }
}

/// A table for a statement about it, by name.
pub(crate) fn lookup_table(
    cx: &mut Cx<'_>,
    name: &super::ast::Name,
) -> Result<std::sync::Arc<crate::sqlserver::store::catalog::Object>> {
    use crate::sqlserver::store::{Hold, lock::LockMode};
    let database = cx.st.database;
    let found = super::lookup::resolve(cx, name, database, None, LockMode::SchemaStability, Hold::Statement)?;
    match found {
        Some(object) if object.table().is_some() => Ok(object),
        _ => Err(error::new(
            1088,
            16,
            11,
            &format!(
                "Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                name.display()
            ),
        )),
    }
}

/// The parsed text of a module.
pub(crate) fn module_text(
    cx: &mut Cx<'_>,
    object: &crate::sqlserver::store::catalog::Object,
) -> Result<std::sync::Arc<Stmt>> {
    super::module::parsed(cx, object)
}
