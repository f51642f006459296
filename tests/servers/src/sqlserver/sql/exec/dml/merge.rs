//! MERGE.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::super::api::cmd;
use super::super::super::ast::{JoinKind, TableRef};
use super::super::super::bind::{self, Binder, place_conditions, split_and};
use super::super::super::error::{self, Result};
use super::super::super::plan::{JoinNode, Node, Row, Step, X};
use super::super::super::state::Cx;
use super::super::super::stmt::{Merge, MergeAction, MergeMatch, Target};
use super::super::super::storage;
use super::super::{Flow, trigger};
use super::insert::Inserter;
use super::output::{OutputPlan, OutputScope};
use super::references::{self, Change};
use super::update::{SetX, apply_set, bind_set};
use super::{Changes, Table, finish, held, open_target};
use crate::sqlserver::store::RowId;
use crate::sqlserver::value::{SqlType, Value};

enum Action {
    Update(Vec<SetX>),
    Delete,
    Insert { columns: Vec<String>, values: Vec<(X, SqlType)>, width: usize },
}

struct Clause {
    matched: MergeMatch,
    condition: Option<X>,
    action: Action,
}

/// What MERGE does to the target, in order of discovery.
struct Work {
    changes: Vec<Change>,
    inserts: Vec<(Row, usize)>,
    /// Joined rows of the changes.
    rows: HashMap<RowId, Row>,
}

pub(crate) fn merge(cx: &mut Cx<'_>, merge: &Merge) -> Result<Flow> {
    super::super::transaction::implicit(cx);
    if merge.top.is_some() {
        return Err(error::unsupported("MERGE TOP"));
    }
    let mut binder = Binder::new(cx);
    binder.define_ctes(&merge.ctes, None)?;
    let opened = open_target(&mut binder, &merge.target, &[], "UPDATE")?;
    if opened.object.table().is_none() {
        return Err(error::unsupported("MERGE into a view"));
    }
    let scope = binder.new_scope(None);
    let cols = bind::table_columns(&opened.object);
    let count = cols.len();
    let alias = merge.alias.clone().unwrap_or_else(|| match &merge.target {
        Target::Table(name, _) => name.base().to_owned(),
        Target::Var(name) => name.clone(),
    });
    let target = binder.add_source(scope, &alias, None, cols.clone())?;
    let row_id = binder.scopes[scope].width;
    binder.scopes[scope].width += 1;
    let mut scan = bind::scan_node(&opened.object, target.0, opened.mode, opened.variable);
    scan.row_id_slot = Some(row_id);
    scan.release = false;
    let source_start = binder.scopes[scope].width;
    let source = binder.bind_from(std::slice::from_ref::<TableRef>(&merge.source), scope)?;
    let source_end = binder.scopes[scope].width;
    // A slot that tells rows with a source from those without.
    let present = source_end;
    binder.scopes[scope].width += 1;
    let marked = bind::mark_present(source, present);
    let on = split_and(binder.bind_condition(&merge.on, scope)?);
    let table = Table::open(binder.cx, Arc::clone(&opened.object), opened.variable)?;
    let clauses = bind_clauses(&mut binder, merge, &table, scope)?;
    let join = JoinNode {
        kind: JoinKind::Full,
        left: marked,
        right: Node::Scan(Box::new(scan)),
        left_range: (source_start, present + 1),
        right_range: (target.0, row_id + 1),
        keys: Vec::new(),
        on,
        extra: None,
    };
    let (mut node, _) = place_conditions(Node::Join(Box::new(join)), Vec::new(), false);
    let width = binder.scopes[scope].width;
    binder.scopes[scope].used.extend(0..width);
    bind::set_needed(&mut node, &binder.scopes[scope].used);
    let mut output_scope = OutputScope::new(&mut binder, &cols, true, true)?;
    output_scope.add_from(&mut binder, scope);
    output_scope.add_action(&mut binder)?;
    let mut outputs = output_scope.bind(&mut binder, &merge.output)?;
    let (inserted, updated, deleted) = held(cx, |cx| {
        let work = discover(cx, &node, width, row_id, present, &clauses, &table, count)?;
        perform(cx, &table, work, &clauses, &mut outputs, count)
    })?;
    let total = inserted.count + updated.count + deleted.count;
    for (event, changes) in
        [(trigger::Event::Insert, inserted), (trigger::Event::Update, updated), (trigger::Event::Delete, deleted)]
    {
        let triggers = trigger::of_table(cx, &opened.object, event);
        if changes.count > 0 {
            trigger::fire(cx, &opened.object, event, changes, &triggers)?;
        }
    }
    for output in outputs {
        output.finish(cx)?;
    }
    finish(cx, cmd::MERGE, total)
}

fn bind_clauses(binder: &mut Binder<'_, '_>, merge: &Merge, table: &Table, scope: usize) -> Result<Vec<Clause>> {
    let mut clauses = Vec::new();
    for clause in &merge.clauses {
        let condition = match &clause.condition {
            Some(c) => Some(binder.bind_condition(c, scope)?),
            None => None,
        };
        let action = match &clause.action {
            MergeAction::Update(set) => Action::Update(bind_set(binder, table, set, scope, 0)?),
            MergeAction::Delete => Action::Delete,
            MergeAction::Insert { columns, values } => {
                let mut bound = Vec::new();
                for value in values.iter().flatten() {
                    let typed = binder.bind_scalar(value, scope)?;
                    bound.push((typed.x, typed.ty));
                }
                let width = if values.is_some() { bound.len() } else { usize::MAX };
                Action::Insert { columns: columns.clone(), values: bound, width }
            }
        };
        clauses.push(Clause { matched: clause.matched, condition, action });
    }
    Ok(clauses)
}

#[allow(clippy::too_many_arguments, reason = "the places of one joined row")]
fn discover(
    cx: &mut Cx<'_>,
    node: &Node,
    width: usize,
    row_id: usize,
    present: usize,
    clauses: &[Clause],
    table: &Table,
    count: usize,
) -> Result<Work> {
    let mut work = Work { changes: Vec::new(), inserts: Vec::new(), rows: HashMap::new() };
    let mut touched: HashSet<RowId> = HashSet::new();
    let mut row = super::nulls(width);
    node.run(cx, &mut row, &mut |cx, row| {
        let id = storage::row_id_of(&row[row_id]);
        let case = match (id.is_some(), row[present].is_null()) {
            (true, false) => MergeMatch::Matched,
            (false, _) => MergeMatch::NotMatchedByTarget,
            (true, true) => MergeMatch::NotMatchedBySource,
        };
        for (at, clause) in clauses.iter().enumerate().filter(|(_, c)| c.matched == case) {
            if let Some(condition) = &clause.condition
                && condition.test(cx, row)? != Some(true) {
                    continue;
                }
            if let Action::Insert { .. } = clause.action {
                work.inserts.push((row.clone(), at));
                break;
            }
            let Some(id) = id else { break };
            if !touched.insert(id) {
                return Err(error::plain(8672, "The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP BY clause to group the source rows."));
            }
            let old = row[..count].to_vec();
            let new = match &clause.action {
                Action::Update(set) => {
                    let mut new = apply_set(cx, table, set, row, &old)?;
                    table.complete(&mut new, cx, "UPDATE")?;
                    Some(new)
                }
                _ => None,
            };
            work.rows.insert(id, row.clone());
            work.changes.push(Change { id, old, new });
            break;
        }
        Ok(Step::More)
    })?;
    Ok(work)
}

fn perform(
    cx: &mut Cx<'_>,
    table: &Table,
    work: Work,
    clauses: &[Clause],
    outputs: &mut [OutputPlan],
    count: usize,
) -> Result<(Changes, Changes, Changes)> {
    let (mut updated, mut deleted) = (Changes::default(), Changes::default());
    let positions: Vec<usize> = (0..count).collect();
    let (ups, dels): (Vec<Change>, Vec<Change>) = work.changes.into_iter().partition(|c| c.new.is_some());
    references::apply(cx, table, &dels, &[], "MERGE")?;
    references::apply(cx, table, &ups, &positions, "MERGE")?;
    for change in ups.iter().chain(&dels) {
        let action = Value::text(if change.new.is_some() { "UPDATE" } else { "DELETE" });
        for output in outputs.iter_mut() {
            let from = work.rows.get(&change.id).map_or(&[][..], Vec::as_slice);
            output.add_action_row(cx, change.new.as_deref(), Some(&change.old), count, from, &action)?;
        }
    }
    for change in ups {
        updated.count += 1;
        updated.deleted.push(change.old);
        updated.inserted.extend(change.new);
    }
    updated.updated = positions;
    for change in dels {
        deleted.count += 1;
        deleted.deleted.push(change.old);
    }
    let mut inserters: HashMap<usize, Inserter> = HashMap::new();
    for (row, at) in work.inserts {
        let Action::Insert { columns, values, width } = &clauses[at].action else { continue };
        if let Entry::Vacant(place) = inserters.entry(at) {
            let own = Table::open(cx, Arc::clone(&table.object), table.variable)?;
            let mut inserter = Inserter::new(cx, own, columns, *width)?;
            inserter.keep = true;
            place.insert(inserter);
        }
        let mut source = Row::with_capacity(values.len());
        for (x, _) in values {
            source.push(x.eval(cx, &row)?);
        }
        let types: Vec<SqlType> = values.iter().map(|(_, ty)| *ty).collect();
        let Some(inserter) = inserters.get_mut(&at) else { continue };
        let stored = inserter.add(cx, &source, &types)?;
        for output in outputs.iter_mut() {
            output.add_action_row(cx, Some(&stored), None, count, &row, &Value::text("INSERT"))?;
        }
    }
    let mut inserted = Changes::default();
    for (_, inserter) in inserters {
        let changes = inserter.finish(cx)?;
        inserted.count += changes.count;
        inserted.inserted.extend(changes.inserted);
    }
    Ok((inserted, updated, deleted))
}
