//! INSERT, UPDATE, DELETE, MERGE and INSERT BULK.

use super::super::ast::{Cte, Expr, Name};
use super::super::error::Result;
use super::super::lexer::Tok;
use super::super::stmt::{
    Assign, Delete, Insert, InsertBulk, InsertSource, Kind, Merge, MergeAction, MergeClause, MergeMatch, Output,
    Target, Update,
};
use super::Parser;

impl Parser<'_> {
    fn target(&mut self) -> Result<Target> {
        if let Tok::Var(_) = self.peek() {
            return Ok(Target::Var(self.var()?));
        }
        let name = self.name()?;
        let hints = self.table_hints()?;
        Ok(Target::Table(name, hints))
    }

    /// Up to two OUTPUT clauses: one with INTO, one to the client.
    fn outputs(&mut self) -> Result<Vec<Output>> {
        let mut outputs = Vec::new();
        while self.take_kw("output") {
            let items = self.list(Self::output_item)?;
            let into = if self.take_kw("into") {
                let target = self.target()?;
                let columns = if self.is_op("(") { self.paren_list(Self::ident)? } else { Vec::new() };
                Some((target, columns))
            } else {
                None
            };
            outputs.push(Output { items, into });
        }
        Ok(outputs)
    }

    fn output_item(&mut self) -> Result<super::super::ast::Item> {
        self.select_item()
    }

    pub(super) fn insert(&mut self, ctes: Vec<Cte>) -> Result<Kind> {
        self.expect_kw("insert")?;
        if self.is_kw("bulk") {
            return self.insert_bulk();
        }
        let top = self.top()?;
        self.take_kw("into");
        let target = self.target()?;
        let mut insert =
            Insert { ctes, top, target, columns: Vec::new(), output: Vec::new(), source: InsertSource::Default };
        if self.is_op("(") && !self.starts_query() {
            insert.columns = self.paren_list(|p| p.name().map(|n| n.base().to_owned()))?;
        }
        insert.output = self.outputs()?;
        insert.source = if self.take_kw("default") {
            self.expect_kw("values")?;
            InsertSource::Default
        } else if self.is_kw("values") {
            InsertSource::Values(self.values()?)
        } else if self.is_any_kw(&["exec", "execute"]) {
            InsertSource::Exec(Box::new(self.statement()?))
        } else if self.starts_query() {
            InsertSource::Query(Box::new(self.query()?))
        } else {
            return Err(self.unexpected());
        };
        if self.is_kw("option") {
            self.options()?;
        }
        Ok(Kind::Insert(Box::new(insert)))
    }

    fn insert_bulk(&mut self) -> Result<Kind> {
        self.expect_kw("bulk")?;
        let table = self.name()?;
        let columns = if self.is_op("(") {
            self.paren_list(|p| {
                let name = p.ident()?;
                let ty = p.type_name()?;
                if p.take_kw("collate") {
                    p.ident()?;
                }
                if p.take_kw("not") {
                    p.expect_kw("null")?;
                } else {
                    p.take_kw("null");
                }
                Ok((name, ty))
            })?
        } else {
            Vec::new()
        };
        let mut options = Vec::new();
        if self.take_kw("with") {
            self.expect_op("(")?;
            loop {
                let Some(word) = self.word() else { return Err(self.unexpected()) };
                self.advance();
                if word == "order" && self.is_op("(") {
                    self.skip_parens()?;
                }
                if self.take_op("=") {
                    self.advance();
                }
                options.push(word);
                if !self.take_op(",") {
                    break;
                }
            }
            self.expect_op(")")?;
        }
        Ok(Kind::InsertBulk(Box::new(InsertBulk { table, columns, options })))
    }

    fn assignments(&mut self) -> Result<Vec<Assign>> {
        self.list(|p| {
            let mut assign = Assign { var: None, column: None, op: None, value: Expr::Default };
            if let Tok::Var(_) = p.peek() {
                assign.var = Some(p.var()?);
                // `@v = column = expr`
                let is_column = p.is_op("=") && p.is_ident_at(1) && p.assignment_ahead(2);
                if is_column {
                    p.expect_op("=")?;
                    assign.column = Some(p.name()?);
                }
            } else {
                assign.column = Some(p.name()?);
            }
            let Some((op, width)) = p.assignment_operator(0) else { return Err(p.unexpected()) };
            p.at += width;
            assign.op = op;
            assign.value = p.expr()?;
            Ok(assign)
        })
    }

    /// Whether an assignment operator follows the rest of a name that began before `ahead`.
    fn assignment_ahead(&self, mut ahead: usize) -> bool {
        while self.is_op_at(ahead, ".") {
            ahead += 2;
        }
        self.assignment_operator(ahead).is_some()
    }

    pub(super) fn update(&mut self, ctes: Vec<Cte>) -> Result<Kind> {
        self.expect_kw("update")?;
        if self.is_kw("statistics") {
            self.skip_statement();
            return Ok(Kind::UpdateStatistics);
        }
        let top = self.top()?;
        let target = self.target()?;
        self.expect_kw("set")?;
        let set = self.assignments()?;
        let output = self.outputs()?;
        let from = if self.take_kw("from") { self.list(Self::table_ref)? } else { Vec::new() };
        let (filter, current_of) = self.where_clause()?;
        if self.is_kw("option") {
            self.options()?;
        }
        Ok(Kind::Update(Box::new(Update { ctes, top, target, set, output, from, filter, current_of })))
    }

    fn where_clause(&mut self) -> Result<(Option<Expr>, Option<String>)> {
        if !self.take_kw("where") {
            return Ok((None, None));
        }
        if self.take_kws(&["current", "of"]) {
            self.take_kw("global");
            return Ok((None, Some(self.cursor_name()?)));
        }
        Ok((Some(self.expr()?), None))
    }

    pub(super) fn cursor_name(&mut self) -> Result<String> {
        if let Tok::Var(_) = self.peek() { self.var() } else { self.ident() }
    }

    pub(super) fn delete(&mut self, ctes: Vec<Cte>) -> Result<Kind> {
        self.expect_kw("delete")?;
        let top = self.top()?;
        self.take_kw("from");
        let target = self.target()?;
        let output = self.outputs()?;
        let from = if self.take_kw("from") { self.list(Self::table_ref)? } else { Vec::new() };
        let (filter, current_of) = self.where_clause()?;
        if self.is_kw("option") {
            self.options()?;
        }
        Ok(Kind::Delete(Box::new(Delete { ctes, top, target, output, from, filter, current_of })))
    }

    pub(super) fn merge(&mut self, ctes: Vec<Cte>) -> Result<Kind> {
        self.expect_kw("merge")?;
        let top = self.top()?;
        self.take_kw("into");
        let target = self.target()?;
        let alias =
            if self.take_kw("as") || (self.is_ident() && !self.is_kw("using")) { Some(self.ident()?) } else { None };
        self.expect_kw("using")?;
        let source = self.table_ref()?;
        self.expect_kw("on")?;
        let on = self.expr()?;
        let mut clauses = Vec::new();
        while self.take_kw("when") {
            clauses.push(self.merge_clause()?);
        }
        if clauses.is_empty() {
            return Err(self.unexpected());
        }
        let output = self.outputs()?;
        if self.is_kw("option") {
            self.options()?;
        }
        // MERGE is the one statement whose semicolon is required.
        if !self.is_op(";") {
            return Err(super::super::error::new(
                10713,
                15,
                1,
                "A MERGE statement must be terminated by a semi-colon (;).",
            )
            .at_line(self.line()));
        }
        Ok(Kind::Merge(Box::new(Merge { ctes, top, target, alias, source, on, clauses, output })))
    }

    fn merge_clause(&mut self) -> Result<MergeClause> {
        let matched = if self.take_kw("matched") {
            MergeMatch::Matched
        } else {
            self.expect_kws(&["not", "matched"])?;
            if self.take_kws(&["by", "source"]) {
                MergeMatch::NotMatchedBySource
            } else {
                self.take_kws(&["by", "target"]);
                MergeMatch::NotMatchedByTarget
            }
        };
        let condition = if self.take_kw("and") { Some(self.expr()?) } else { None };
        self.expect_kw("then")?;
        let action = if self.take_kw("update") {
            self.expect_kw("set")?;
            MergeAction::Update(self.assignments()?)
        } else if self.take_kw("delete") {
            MergeAction::Delete
        } else {
            self.expect_kw("insert")?;
            let columns =
                if self.is_op("(") { self.paren_list(|p| p.name().map(|n| n.base().to_owned()))? } else { Vec::new() };
            if self.take_kw("default") {
                self.expect_kw("values")?;
                MergeAction::Insert { columns, values: None }
            } else {
                self.expect_kw("values")?;
                MergeAction::Insert { columns, values: Some(self.paren_list(Self::expr)?) }
            }
        };
        Ok(MergeClause { matched, condition, action })
    }

    pub(super) fn truncate(&mut self) -> Result<Kind> {
        self.expect_kws(&["truncate", "table"])?;
        let name: Name = self.name()?;
        if self.is_kw("with") && self.is_op_at(1, "(") {
            return Err(super::super::error::unsupported("TRUNCATE TABLE ... WITH (PARTITIONS)").at_line(self.line()));
        }
        Ok(Kind::Truncate(name))
    }

    /// Skips to the next semicolon or the end: only for statements that have no effect here.
    pub(super) fn skip_statement(&mut self) {
        while !self.is_op(";") && self.peek() != &Tok::End {
            self.advance();
        }
    }
}
