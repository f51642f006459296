//! Named tables, views, table variables and table functions.

use std::sync::Arc;

use super::super::ast::{FuncCall, Hints, Name};
use super::super::error::{self, Result};
use super::super::plan::{Node, OutCol, ScanNode, VirtualNode};
use super::super::stmt::{Kind, ModuleBody};
use super::super::{catalog, lookup, permission, storage};
use super::query::rename;
use super::{Binder, same_name};
use crate::sqlserver::store::ReadMode;
use crate::sqlserver::store::catalog::{Object, ObjectBody};
use crate::sqlserver::value::Coercibility;

type Bound = (Node, (usize, usize));

/// Columns of a stored table as a source.
pub(crate) fn table_columns(object: &Object) -> Vec<OutCol> {
    let Some(table) = object.table() else { return Vec::new() };
    table
        .columns
        .iter()
        .map(|c| OutCol {
            name: c.name.clone(),
            ty: c.ty,
            nullable: c.nullable,
            identity: c.identity.is_some(),
            computed: c.computed.is_some() || c.ty == crate::sqlserver::value::SqlType::RowVersion,
            coercibility: Coercibility::Implicit,
        })
        .collect()
}

/// A scan of all rows of a table at `base`.
pub(crate) fn scan_node(object: &Object, base: usize, mode: ReadMode, variable: bool) -> ScanNode {
    let mut indexes = Vec::new();
    let mut types = Vec::new();
    if let Some(table) = object.table() {
        types = table.columns.iter().map(|c| c.ty).collect();
        for index in table.indexes.iter().filter(|i| !i.disabled && !i.columnstore && i.filter.is_none()) {
            let keys = index.keys.iter().filter_map(|k| Some((table.position_of_id(k.column_id)?, k.descending)));
            indexes.push((index.id, keys.collect()));
        }
    }
    let columns = types.len();
    ScanNode {
        table: object.id,
        types,
        indexes,
        variable,
        columns,
        base,
        needed: vec![false; columns],
        mode,
        conditions: Vec::new(),
        seek: None,
        range: None,
        row_id_slot: None,
        lookup: None,
        release: mode == ReadMode::Update,
    }
}

impl Binder<'_, '_> {
    pub(super) fn bind_named_table(
        &mut self,
        name: &Name,
        alias: Option<&str>,
        hints: Hints,
        scope: usize,
    ) -> Result<Bound> {
        let shown = alias.unwrap_or(name.base());
        if name.parts.len() == 1 {
            if let Some(plan) = self.bind_cte(name.base()) {
                return self.add_plan(plan?, shown, None, scope);
            }
            if let Some(bound) = self.bind_trigger_table(name.base(), shown, scope)? {
                return Ok(bound);
            }
        }
        let schema = alias.is_none().then(|| name.schema().map(str::to_owned)).flatten();
        if let Some(source) = catalog::find(self, name)? {
            return self.add_virtual(source, Vec::new(), shown, schema, scope);
        }
        let object = lookup::table_or_view(self, name)?;
        self.bind_object(&object, name, shown, schema, hints, scope)
    }

    fn bind_object(
        &mut self,
        object: &Arc<Object>,
        name: &Name,
        alias: &str,
        schema: Option<String>,
        hints: Hints,
        scope: usize,
    ) -> Result<Bound> {
        match &object.body {
            ObjectBody::Table(_) => {
                if !self.chained {
                    permission::check_object(self.cx, object, "SELECT")?;
                }
                let mode = storage::read_lock(self.cx, object, hints)?;
                let range = self.add_source(scope, alias, schema, table_columns(object))?;
                Ok((Node::Scan(Box::new(scan_node(object, range.0, mode, false))), range))
            }
            ObjectBody::View(_) => {
                if !self.chained {
                    permission::check_object(self.cx, object, "SELECT")?;
                }
                let plan = self.bind_view(object)?;
                self.add_plan(plan, alias, schema, scope)
            }
            ObjectBody::Synonym(target) => {
                let target = super::super::parse::parse_name(target)?;
                let object = lookup::table_or_view(self, &target)?;
                self.bind_object(&object, &target, alias, schema, hints, scope)
            }
            _ => Err(error::unknown_object(&name.display())),
        }
    }

    /// The query of a view, with names resolved where the view lives.
    pub(crate) fn bind_view(&mut self, object: &Arc<Object>) -> Result<super::super::plan::Plan> {
        let module = super::super::module::parsed(self.cx, object)?;
        let Kind::CreateModule(module) = &module.kind else { return Err(error::unsupported("view")) };
        let ModuleBody::View { query, .. } = &module.body else { return Err(error::unsupported("view")) };
        let saved = (self.database, self.schema, self.chained);
        (self.database, self.schema, self.chained) = (object.database, Some(object.schema), true);
        let hidden = std::mem::take(&mut self.ctes);
        let plan = self.bind_query(query, None);
        self.ctes = hidden;
        (self.database, self.schema, self.chained) = saved;
        let mut plan = plan?;
        rename(&mut plan.cols, &module.columns, &object.name)?;
        Ok(plan)
    }

    pub(super) fn bind_table_variable(&mut self, name: &str, alias: Option<&str>, scope: usize) -> Result<Bound> {
        let object = self.table_variable(name)?;
        let range = self.add_source(scope, alias.unwrap_or(name), None, table_columns(&object))?;
        Ok((Node::Scan(Box::new(scan_node(&object, range.0, ReadMode::Committed, true))), range))
    }

    /// The stored table behind a table variable.
    pub(crate) fn table_variable(&mut self, name: &str) -> Result<Arc<Object>> {
        let id = self.cx.st.frame().tables.get(&name.to_lowercase()).copied();
        let txn = self.cx.st.variable_txn();
        id.and_then(|id| txn.object(id)).ok_or_else(|| error::undeclared_table(name))
    }

    /// `inserted` and `deleted` inside a trigger.
    fn bind_trigger_table(&mut self, name: &str, alias: &str, scope: usize) -> Result<Option<Bound>> {
        let Some(trigger) = self.cx.st.frame().trigger.clone() else { return Ok(None) };
        let rows = if same_name(name, "inserted") {
            Arc::clone(&trigger.inserted)
        } else if same_name(name, "deleted") {
            Arc::clone(&trigger.deleted)
        } else {
            return Ok(None);
        };
        let txn = self.cx.st.txn();
        let Some(object) = txn.object(trigger.table) else { return Ok(None) };
        let cols = match &object.body {
            ObjectBody::View(_) => super::from::derived_cols(&self.bind_view(&object)?),
            _ => table_columns(&object),
        };
        let width = cols.len();
        let range = self.add_source(scope, alias, None, cols)?;
        Ok(Some((Node::Rows { rows, base: range.0, width }, range)))
    }

    fn add_virtual(
        &mut self,
        source: catalog::Source,
        args: Vec<super::X>,
        alias: &str,
        schema: Option<String>,
        scope: usize,
    ) -> Result<Bound> {
        let cols: Vec<OutCol> = source
            .columns
            .iter()
            .map(|(name, ty)| OutCol {
                name: (*name).to_owned(),
                ty: *ty,
                nullable: true,
                identity: false,
                computed: false,
                coercibility: Coercibility::Implicit,
            })
            .collect();
        let width = cols.len();
        let range = self.add_source(scope, alias, schema, cols)?;
        let rows = source.rows;
        Ok((Node::Virtual(Box::new(VirtualNode { source, rows, args, base: range.0, width })), range))
    }
}

/// A table function: a system one, an inline one or one with statements.
pub(super) fn bind_function_source(
    binder: &mut Binder<'_, '_>,
    call: &FuncCall,
    alias: Option<&str>,
    columns: &[String],
    scope: usize,
    args_scope: usize,
) -> Result<Bound> {
    let shown = alias.unwrap_or(call.name.base()).to_owned();
    if let Some(source) = catalog::find_function(binder, &call.name) {
        let mut args = Vec::new();
        for arg in &call.args {
            if matches!(arg, super::Expr::Default) {
                args.push(super::X::Const(crate::sqlserver::value::Value::Null));
            } else {
                args.push(binder.bind_scalar(arg, args_scope)?.x);
            }
        }
        if args.len() < source.least || args.len() > source.most {
            let message = format!(
                "An insufficient number of arguments were supplied for the procedure or function {}.",
                call.name.display()
            );
            return Err(error::new(313, 16, 3, &message));
        }
        let bound = binder.add_virtual(source, args, &shown, None, scope)?;
        if let Some(source) = binder.scopes[scope].sources.last_mut() {
            rename(&mut source.cols, columns, &shown)?;
        }
        return Ok(bound);
    }
    super::super::function::bind_table_function(binder, call, &shown, columns, scope, args_scope)
}
