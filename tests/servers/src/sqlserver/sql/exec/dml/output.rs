//! OUTPUT clauses.

use super::super::super::ast::{Expr, Item};
use super::super::super::bind::{Binder, column_meta};
use super::super::super::error::{self, CLOSED, Result};
use super::super::super::plan::{OutCol, Row, X};
use super::super::super::state::Cx;
use super::super::super::stmt::{Output, Target};
use super::Table;
use super::insert::Inserter;
use crate::sqlserver::value::{SqlType, Value};

/// A bound OUTPUT clause; its expressions read `inserted`, `deleted`, then the FROM row, then `$action`.
pub(super) struct OutputPlan {
    cols: Vec<OutCol>,
    items: Vec<X>,
    into: Option<(Target, Vec<String>)>,
    rows: Vec<Row>,
    /// Slots of the FROM row.
    from_width: usize,
}

/// What an OUTPUT clause can name.
pub(super) struct OutputScope {
    pub(super) width: usize,
    scope: usize,
    from_width: usize,
}

impl OutputScope {
    /// `inserted` and `deleted` of a table of these columns; which of them have values.
    pub(super) fn new(binder: &mut Binder<'_, '_>, cols: &[OutCol], inserted: bool, deleted: bool) -> Result<Self> {
        let scope = binder.new_scope(None);
        let nullable = |c: &OutCol| OutCol { nullable: true, identity: false, ..c.clone() };
        let shown: Vec<OutCol> = cols.iter().map(nullable).collect();
        let hidden: Vec<OutCol> = shown.iter().map(|c| OutCol { name: String::from("\u{0}"), ..c.clone() }).collect();
        let (a, b) =
            (if inserted { "inserted" } else { "\u{0}inserted" }, if deleted { "deleted" } else { "\u{0}deleted" });
        binder.add_source(scope, a, None, if inserted { shown.clone() } else { hidden.clone() })?;
        binder.add_source(scope, b, None, if deleted { shown } else { hidden })?;
        Ok(Self { width: 2 * cols.len(), scope, from_width: 0 })
    }

    /// Adds the sources of a FROM scope behind.
    pub(super) fn add_from(&mut self, binder: &mut Binder<'_, '_>, from: usize) {
        let sources = binder.scopes[from].sources.clone();
        let width = binder.scopes[from].width;
        for mut source in sources {
            source.base += self.width;
            binder.scopes[self.scope].sources.push(source);
        }
        binder.scopes[self.scope].width = self.width + width;
        self.from_width = width;
    }

    /// Adds `$action`.
    pub(super) fn add_action(&self, binder: &mut Binder<'_, '_>) -> Result<()> {
        let col = OutCol {
            name: "$action".into(),
            ty: SqlType::nvarchar(10),
            nullable: true,
            identity: false,
            computed: true,
            coercibility: crate::sqlserver::value::Coercibility::CoercibleDefault,
        };
        binder.add_source(self.scope, "\u{0}action", None, vec![col]).map(|_| ())
    }

    pub(super) fn bind(&self, binder: &mut Binder<'_, '_>, outputs: &[Output]) -> Result<Vec<OutputPlan>> {
        outputs.iter().map(|o| self.bind_one(binder, o)).collect()
    }

    fn bind_one(&self, binder: &mut Binder<'_, '_>, output: &Output) -> Result<OutputPlan> {
        let (mut cols, mut items) = (Vec::new(), Vec::new());
        for item in &output.items {
            match item {
                Item::Star(Some(name)) => {
                    let found =
                        binder.scopes[self.scope].sources.iter().find(|s| s.alias.eq_ignore_ascii_case(name.base()));
                    let Some(source) = found else {
                        return Err(error::plain(
                            107,
                            &format!(
                                "The column prefix '{}' does not match with a table name or alias name used in the query.",
                                name.display()
                            ),
                        ));
                    };
                    for (at, col) in source.cols.iter().enumerate() {
                        items.push(X::Slot(source.base + at));
                        cols.push(col.clone());
                    }
                }
                Item::Star(None) => return Err(error::syntax("*", 0)),
                Item::Assign { var, .. } => return Err(error::syntax(var, 0)),
                Item::Expr { expr, alias } => {
                    let typed = binder.bind_scalar(expr, self.scope)?;
                    let name = match (alias, expr) {
                        (Some(alias), _) => alias.clone(),
                        (None, Expr::Column(name)) => name.base().to_owned(),
                        _ => String::new(),
                    };
                    cols.push(OutCol {
                        name,
                        ty: typed.ty,
                        nullable: typed.nullable,
                        identity: false,
                        computed: true,
                        coercibility: typed.coercibility,
                    });
                    items.push(typed.x);
                }
            }
        }
        Ok(OutputPlan { cols, items, into: output.into.clone(), rows: Vec::new(), from_width: self.from_width })
    }
}

impl OutputPlan {
    /// Whether rows go to the client.
    pub(super) fn is_result(&self) -> bool {
        self.into.is_none()
    }

    /// Keeps the row of one change.
    pub(super) fn add(
        &mut self,
        cx: &mut Cx<'_>,
        inserted: Option<&[Value]>,
        deleted: Option<&[Value]>,
        width: usize,
        rest: &[Value],
    ) -> Result<()> {
        let mut row = Row::with_capacity(2 * width + rest.len());
        for side in [inserted, deleted] {
            match side {
                Some(values) => row.extend_from_slice(&values[..width]),
                None => row.extend(std::iter::repeat_n(Value::Null, width)),
            }
        }
        row.extend_from_slice(rest);
        let mut out = Row::with_capacity(self.items.len());
        for item in &self.items {
            out.push(item.eval(cx, &row)?);
        }
        self.rows.push(out);
        Ok(())
    }

    /// Keeps the row of one change of MERGE.
    pub(super) fn add_action_row(
        &mut self,
        cx: &mut Cx<'_>,
        inserted: Option<&[Value]>,
        deleted: Option<&[Value]>,
        width: usize,
        from: &[Value],
        action: &Value,
    ) -> Result<()> {
        let mut rest = from.to_vec();
        rest.resize(self.from_width, Value::Null);
        rest.push(action.clone());
        self.add(cx, inserted, deleted, width, &rest)
    }

    /// Sends or stores what was kept.
    pub(super) fn finish(self, cx: &mut Cx<'_>) -> Result<()> {
        let Some((target, columns)) = self.into else {
            cx.out.columns(&column_meta(&self.cols)).map_err(|_| error::marker(CLOSED))?;
            for row in &self.rows {
                cx.out.row(row).map_err(|_| error::marker(CLOSED))?;
            }
            return Ok(());
        };
        let mut binder = Binder::new(cx);
        let opened = super::open_target(&mut binder, &target, &[], "INSERT")?;
        let table = Table::open(cx, opened.object, opened.variable)?;
        let mut inserter = Inserter::new(cx, table, &columns, self.cols.len())?;
        let types: Vec<SqlType> = self.cols.iter().map(|c| c.ty).collect();
        for row in &self.rows {
            inserter.add(cx, row, &types)?;
        }
        inserter.finish(cx).map(|_| ())
    }
}

/// Refuses OUTPUT to the client where triggers could write in between.
pub(super) fn check_triggers(outputs: &[OutputPlan], has_triggers: bool, table: &str) -> Result<()> {
    if has_triggers && outputs.iter().any(OutputPlan::is_result) {
        return Err(error::plain(
            334,
            &format!(
                "The target table '{table}' of the DML statement cannot have any enabled triggers if the statement contains an OUTPUT clause without INTO clause."
            ),
        ));
    }
    Ok(())
}
