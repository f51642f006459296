//! DELETE.

use super::super::super::api::cmd;
use super::super::super::bind::{self, Binder};
use super::super::super::error::{self, Result};
use super::super::super::plan::Row;
use super::super::super::state::Cx;
use super::super::super::stmt::Delete;
use super::super::{Flow, trigger};
use super::output::{OutputScope, check_triggers};
use super::references::{self, Change};
use super::update::{bind_cte_rows, bind_target_rows, collect, cte_target, mark_output_use, target_name};
use super::{Table, bind_top, finish, held, open_target, row_limit};

pub(crate) fn delete(cx: &mut Cx<'_>, delete: &Delete) -> Result<Flow> {
    super::super::transaction::implicit(cx);
    if delete.current_of.is_some() {
        return Err(error::unsupported("WHERE CURRENT OF"));
    }
    let mut binder = Binder::new(cx);
    binder.define_ctes(&delete.ctes, None)?;
    let through = cte_target(&delete.ctes, &delete.target).filter(|_| delete.from.is_empty());
    let opened = open_target(&mut binder, through.as_ref().unwrap_or(&delete.target), &delete.from, "DELETE")?;
    if opened.object.table().is_none() {
        return Err(error::unsupported("DELETE from a view"));
    }
    let name = target_name(&delete.target);
    let mut rows = match through {
        Some(_) => bind_cte_rows(&mut binder, &opened, &name)?,
        None => bind_target_rows(&mut binder, &opened, &name, &delete.from)?,
    };
    rows.finish(&mut binder, delete.filter.as_ref())?;
    let top = bind_top(&mut binder, delete.top.as_ref())?;
    let cols = bind::table_columns(&opened.object);
    let mut output_scope = OutputScope::new(&mut binder, &cols, false, true)?;
    if !delete.from.is_empty() {
        output_scope.add_from(&mut binder, rows.scope);
    }
    let mut outputs = output_scope.bind(&mut binder, &delete.output)?;
    mark_output_use(&mut binder, rows.scope, !outputs.is_empty());
    rows.settle(&binder);
    let width = binder.scopes[rows.scope].width;
    let table = Table::open(cx, std::sync::Arc::clone(&opened.object), opened.variable)?;
    let triggers = trigger::of_table(cx, &opened.object, trigger::Event::Delete);
    check_triggers(&outputs, !triggers.is_empty(), &opened.object.name)?;
    let instead = triggers.iter().any(|t| t.instead);
    let with_from = !delete.from.is_empty();
    let changes = held(cx, |cx| {
        let limit = row_limit(cx, top.as_ref(), usize::MAX)?;
        let mut changed: Vec<Change> = Vec::new();
        rows.run(cx, width, limit, &mut |cx, id, row| {
            let old = row[rows.base..rows.base + rows.width].to_vec();
            let rest = if with_from { row.clone() } else { Row::new() };
            for output in &mut outputs {
                output.add(cx, None, Some(&old), rows.width, &rest)?;
            }
            changed.push(Change { id, old, new: None });
            Ok(())
        })?;
        if !instead {
            references::apply(cx, &table, &changed, &[], "DELETE")?;
        }
        Ok(collect(changed, Vec::new(), !triggers.is_empty()))
    })?;
    let count = changes.count;
    trigger::fire(cx, &opened.object, trigger::Event::Delete, changes, &triggers)?;
    for output in outputs {
        output.finish(cx)?;
    }
    finish(cx, cmd::DELETE, count)
}
