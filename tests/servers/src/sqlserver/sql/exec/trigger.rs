//! DML triggers.

use std::sync::Arc;

use super::super::error::{self, Result};
use super::super::state::{Cx, Frame, TriggerRows};
use super::super::stmt::{Insert, Kind, ModuleBody};
use super::dml::Changes;
use super::{Flow, module_text};
use crate::sqlserver::store::catalog::{Object, ObjectBody};

/// What a statement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Insert,
    Update,
    Delete,
}

/// An enabled trigger of a table.
pub(crate) struct Found {
    object: Arc<Object>,
    pub(crate) instead: bool,
}

/// Deepest nesting of triggers and procedures.
const MAX_NEST: u32 = 32;

/// Enabled triggers of a table for an event, INSTEAD OF first.
pub(crate) fn of_table(cx: &mut Cx<'_>, table: &Object, event: Event) -> Vec<Found> {
    if table.session.is_some() {
        return Vec::new();
    }
    let txn = cx.st.txn();
    let mut found = Vec::new();
    for object in txn.objects(table.database) {
        let ObjectBody::Trigger(trigger) = &object.body else { continue };
        let on_event = match event {
            Event::Insert => trigger.on_insert,
            Event::Update => trigger.on_update,
            Event::Delete => trigger.on_delete,
        };
        // A trigger is not fired again by its own statements (RECURSIVE_TRIGGERS is OFF); INSTEAD OF never is.
        let running = cx.st.frames.iter().any(|f| f.trigger.is_some() && f.module_id == object.id.0);
        if trigger.parent == table.id && on_event && !trigger.disabled && !running {
            let instead = trigger.instead_of;
            found.push(Found { object: Arc::clone(&object), instead });
        }
    }
    found.sort_by_key(|f| !f.instead);
    if found.iter().any(|f| f.instead) {
        found.retain(|f| f.instead);
    }
    found
}

/// Runs triggers over the rows of a statement, inside its transaction.
pub(crate) fn fire(cx: &mut Cx<'_>, table: &Object, event: Event, changes: Changes, triggers: &[Found]) -> Result<()> {
    if triggers.is_empty() {
        return Ok(());
    }
    let count = changes.count;
    let columns = table.table().map_or(0, |t| t.columns.len());
    let updated = match event {
        Event::Insert => (0..columns).collect(),
        Event::Update => changes.updated,
        Event::Delete => Vec::new(),
    };
    let rows = TriggerRows {
        table: table.id,
        inserted: Arc::new(changes.inserted),
        deleted: Arc::new(changes.deleted),
        updated,
    };
    for trigger in triggers {
        run(cx, &trigger.object, &rows, count)?;
    }
    Ok(())
}

fn run(cx: &mut Cx<'_>, object: &Arc<Object>, rows: &TriggerRows, count: u64) -> Result<()> {
    if cx.st.nest_level >= MAX_NEST {
        return Err(error::plain(
            217,
            "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
        ));
    }
    let statement = module_text(cx, object)?;
    let Kind::CreateModule(module) = &statement.kind else { return Err(error::unsupported("trigger")) };
    let ModuleBody::Trigger { body, .. } = &module.body else { return Err(error::unsupported("trigger")) };
    let autocommit = cx.st.trancount == 0;
    // The statement's transaction is visible to the trigger as an open one.
    let txn = cx.st.txn();
    if autocommit {
        cx.st.trancount = 1;
    }
    let before = (cx.st.settings.clone(), cx.st.line, cx.in_proc, cx.st.hold);
    cx.st.hold = 0;
    cx.st.frames.push(Frame {
        module: object.name.clone(),
        module_id: object.id.0,
        trigger: Some(rows.clone()),
        ..Frame::default()
    });
    cx.st.scope_identity.push(None);
    cx.st.nest_level += 1;
    cx.st.trigger_depth += 1;
    cx.st.rowcount = count;
    cx.in_proc = true;
    let result = super::run_scope(cx, body);
    super::call::leave_frame(cx);
    cx.st.scope_identity.pop();
    cx.st.nest_level -= 1;
    cx.st.trigger_depth -= 1;
    let (settings, line, in_proc, hold) = before;
    cx.st.settings = settings;
    cx.st.line = line;
    cx.in_proc = in_proc;
    cx.st.hold = hold;
    let ended = cx.st.trancount == 0 || !txn.is_active();
    if autocommit && !ended {
        cx.st.trancount = 0;
        // Only the statement's own transaction was opened for it; an error rolls it back with the statement.
        cx.st.doomed = false;
    }
    match result {
        Ok(_) if ended => Err(error::plain(3609, "The transaction ended in the trigger. The batch has been aborted.")),
        Ok(_) => Ok(()),
        Err(e) => Err(e),
    }
}

/// INSERT into a view through its INSTEAD OF trigger.
pub(crate) fn insert_into_view(
    cx: &mut Cx<'_>,
    view: &Arc<Object>,
    _insert: &Insert,
    triggers: &[Found],
) -> Result<Flow> {
    let name = super::dml::qualified(cx, view);
    if triggers.iter().any(|t| t.instead) {
        return Err(error::unsupported("INSTEAD OF trigger on a view"));
    }
    Err(error::unsupported(&format!("INSERT into view {name}")))
}
