//! DECLARE CURSOR, OPEN, FETCH, CLOSE, DEALLOCATE.

use super::super::api::cmd;
use super::super::ast::Query;
use super::super::bind::{Binder, column_meta};
use super::super::cursor::Cursor;
use super::super::error::{self, CLOSED, Result};
use super::super::state::Cx;
use super::super::stmt::{CursorAction, FetchFrom};
use super::control::evaluate_as;
use super::{Flow, done, done_plain};
use crate::sqlserver::value::{self, CastOptions, SqlType};

fn missing(name: &str) -> super::super::api::SqlError {
    error::plain(16916, &format!("A cursor with the name '{name}' does not exist."))
}

pub(super) fn declare(cx: &mut Cx<'_>, name: &str, query: &Query) -> Result<Flow> {
    let key = name.to_lowercase();
    if cx.st.cursors.contains_key(&key) {
        return Err(error::plain(16915, &format!("A cursor with the name '{name}' already exists.")));
    }
    let plan = Binder::new(cx).bind_query(query, None)?;
    let cursor = Cursor { query: Box::new(query.clone()), rows: None, meta: plan.cols, at: 0 };
    cx.st.cursors.insert(key, cursor);
    done_plain(cx)
}

pub(super) fn act(cx: &mut Cx<'_>, action: CursorAction, name: &str) -> Result<Flow> {
    let key = name.to_lowercase();
    let Some(cursor) = cx.st.cursors.get_mut(&key) else { return Err(missing(name)) };
    match action {
        CursorAction::Open => {
            if cursor.rows.is_some() {
                return Err(error::plain(16905, "The cursor is already open."));
            }
            let query = cursor.query.clone();
            let plan = Binder::new(cx).bind_query(&query, None)?;
            let rows = super::dml::collect_held(cx, &plan)?;
            if let Some(cursor) = cx.st.cursors.get_mut(&key) {
                cursor.at = 0;
                cursor.meta = plan.cols;
                cursor.rows = Some(rows);
            }
        }
        CursorAction::Close => {
            if cursor.rows.take().is_none() {
                return Err(error::plain(16917, "Cursor is not open."));
            }
        }
        CursorAction::Deallocate => {
            cx.st.cursors.remove(&key);
        }
    }
    done_plain(cx)
}

pub(super) fn fetch(cx: &mut Cx<'_>, name: &str, direction: &FetchFrom, into: &[String]) -> Result<Flow> {
    let key = name.to_lowercase();
    let number = match direction {
        FetchFrom::Absolute(e) | FetchFrom::Relative(e) => evaluate_as(cx, e, &SqlType::BigInt)?.as_i64().unwrap_or(0),
        _ => 0,
    };
    let Some(cursor) = cx.st.cursors.get_mut(&key) else { return Err(missing(name)) };
    let Some(rows) = &cursor.rows else { return Err(error::plain(16917, "Cursor is not open.")) };
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let at = i64::try_from(cursor.at).unwrap_or(0);
    let wanted = match direction {
        FetchFrom::Next => at + 1,
        FetchFrom::Prior => at - 1,
        FetchFrom::First => 1,
        FetchFrom::Last => count,
        FetchFrom::Absolute(_) if number < 0 => count + 1 + number,
        FetchFrom::Absolute(_) => number,
        FetchFrom::Relative(_) => at + number,
    };
    let wanted = wanted.clamp(0, count + 1);
    cursor.at = usize::try_from(wanted).unwrap_or(0);
    let row = if (1..=count).contains(&wanted) { rows.get(cursor.at - 1).cloned() } else { None };
    let (types, meta) = (cursor.types(), column_meta(&cursor.meta));
    cx.st.fetch_status = if row.is_some() { 0 } else { -1 };
    if into.is_empty() {
        cx.out.columns(&meta).map_err(|_| error::marker(CLOSED))?;
        if let Some(row) = &row {
            cx.out.row(row).map_err(|_| error::marker(CLOSED))?;
        }
        cx.st.rowcount = u64::from(row.is_some());
        let count = cx.st.rowcount;
        done(cx, cmd::SELECT, Some(count))?;
        return Ok(Flow::Next);
    }
    if into.len() != types.len() {
        return Err(error::plain(
            16924,
            "Cursorfetch: The number of variables declared in the INTO list must match that of selected columns.",
        ));
    }
    if let Some(row) = row {
        for ((name, value), from) in into.iter().zip(&row).zip(&types) {
            let at = cx.st.frame().find(name).ok_or_else(|| error::undeclared(name))?;
            let to = cx.st.frame().vars[at].ty;
            let value = value::cast(value, from, &to, &CastOptions::IMPLICIT)?;
            cx.st.frame_mut().vars[at].value = value;
        }
        cx.st.rowcount = 1;
    } else {
        cx.st.rowcount = 0;
    }
    Ok(Flow::Next)
}
