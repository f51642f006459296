//! Tables, indexes, schemas, sequences and other objects without code.

use super::super::ast::{Name, TypeName};
use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::super::stmt::{
    ColumnDef, Constraint, ConstraintKind, CreateIndex, CreateTable, FkAction, Kind, SequenceOptions, TableElement,
};
use super::Parser;

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Kind> {
        let start = self.start();
        self.expect_kw("create")?;
        let Some(word) = self.word() else { return Err(self.unexpected()) };
        match word.as_str() {
            "table" => {
                self.advance();
                let name = self.name()?;
                let elements = self.table_elements()?;
                self.table_options()?;
                Ok(Kind::CreateTable(Box::new(CreateTable { name, elements })))
            }
            "unique" | "clustered" | "nonclustered" | "index" => self.create_index(),
            "columnstore" => Err(error::unsupported("CREATE COLUMNSTORE INDEX").at_line(self.line())),
            "schema" => self.create_schema(),
            "view" | "proc" | "procedure" | "function" | "trigger" => self.module(start, false, false),
            "or" => {
                self.advance();
                self.expect_kw("alter")?;
                self.module(start, false, true)
            }
            "sequence" => self.create_sequence(),
            "type" => self.create_type(),
            "synonym" => {
                self.advance();
                let name = self.name()?;
                self.expect_kw("for")?;
                let target = self.name()?;
                Ok(Kind::CreateSynonym { name, target })
            }
            "database" => self.create_database(),
            "login" | "user" | "role" | "server" | "application" => self.create_principal(),
            "statistics" => {
                self.skip_statement();
                Ok(Kind::UpdateStatistics)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn create_database(&mut self) -> Result<Kind> {
        self.advance();
        let name = self.ident()?;
        if !self.is_op(";") && self.peek() != &Tok::End {
            if !self.take_kw("collate") {
                return Err(error::unsupported("CREATE DATABASE options").at_line(self.line()));
            }
            self.ident()?;
        }
        Ok(Kind::CreateDatabase(name))
    }

    fn create_schema(&mut self) -> Result<Kind> {
        self.expect_kw("schema")?;
        let name = if self.is_kw("authorization") { String::new() } else { self.ident()? };
        let owner = if self.take_kw("authorization") { Some(self.ident()?) } else { None };
        let name = if name.is_empty() { owner.clone().unwrap_or_default() } else { name };
        Ok(Kind::CreateSchema { name, owner })
    }

    fn create_sequence(&mut self) -> Result<Kind> {
        self.advance();
        let name = self.name()?;
        let mut ty = None;
        let mut options = SequenceOptions::default();
        loop {
            if self.take_kw("as") {
                ty = Some(self.type_name()?);
            } else if self.take_kw("start") {
                self.expect_kw("with")?;
                options.start = Some(self.integer()?);
            } else if self.take_kw("increment") {
                self.expect_kw("by")?;
                options.increment = Some(self.integer()?);
            } else if self.take_kw("minvalue") {
                options.min = Some(self.integer()?);
            } else if self.take_kw("maxvalue") {
                options.max = Some(self.integer()?);
            } else if self.take_kw("cycle") {
                options.cycle = true;
            } else if self.take_kw("cache") {
                if let Tok::Number(_) = self.peek() {
                    self.advance();
                }
            } else if self.take_kw("no") {
                self.advance();
            } else {
                return Ok(Kind::CreateSequence { name, ty, options });
            }
        }
    }

    fn create_type(&mut self) -> Result<Kind> {
        self.advance();
        let name = self.name()?;
        if !self.take_kw("from") {
            return Err(error::unsupported("CREATE TYPE AS TABLE").at_line(self.line()));
        }
        let base = self.type_name()?;
        let nullable = !self.take_kws(&["not", "null"]);
        self.take_kw("null");
        Ok(Kind::CreateType { name, base, nullable })
    }

    /// `(column, constraint, INDEX ...)`.
    pub(super) fn table_elements(&mut self) -> Result<Vec<TableElement>> {
        self.expect_op("(")?;
        let mut elements = Vec::new();
        loop {
            elements.push(self.table_element()?);
            // A comma before the closing parenthesis is allowed.
            if !self.take_op(",") || self.is_op(")") {
                break;
            }
            if !self.is_ident() && !self.is_any_kw(&["constraint", "primary", "unique", "check", "foreign", "index"]) {
                return Err(self.unexpected());
            }
        }
        self.expect_op(")")?;
        Ok(elements)
    }

    fn table_options(&mut self) -> Result<()> {
        loop {
            if self.take_kw("on") || self.take_kw("textimage_on") || self.take_kw("filestream_on") {
                self.filegroup()?;
            } else if self.is_kw("with") && self.is_op_at(1, "(") {
                self.advance();
                self.table_with_options()?;
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn table_with_options(&mut self) -> Result<()> {
        let loud = ["memory_optimized", "system_versioning", "ledger", "filetable_directory", "remote_data_archive"];
        if loud.iter().any(|k| self.is_kw_at(1, k)) {
            return Err(error::unsupported("table option").at_line(self.line()));
        }
        self.skip_parens()
    }

    pub(super) fn filegroup(&mut self) -> Result<()> {
        if let Tok::Str { .. } = self.peek() {
            self.advance();
            return Ok(());
        }
        if self.take_kw("primary") || self.take_kw("default") {
            return Ok(());
        }
        self.ident()?;
        if self.is_op("(") {
            return Err(error::unsupported("partition scheme").at_line(self.line()));
        }
        Ok(())
    }

    pub(super) fn table_element(&mut self) -> Result<TableElement> {
        if self.is_any_kw(&["constraint", "primary", "unique", "check", "foreign", "default"]) {
            return self.constraint(None).map(TableElement::Constraint);
        }
        if self.is_kw("index") {
            return self.inline_index(None).map(TableElement::Index);
        }
        if self.is_kw("period") && self.is_kw_at(1, "for") {
            return Err(error::unsupported("PERIOD FOR SYSTEM_TIME").at_line(self.line()));
        }
        self.column_def().map(|c| TableElement::Column(Box::new(c)))
    }

    fn inline_index(&mut self, column: Option<&str>) -> Result<CreateIndex> {
        self.expect_kw("index")?;
        let name = self.ident()?;
        let unique = self.take_kw("unique");
        let clustered = self.clustering().unwrap_or(false);
        let mut index = blank_index(name);
        index.unique = unique;
        index.clustered = clustered;
        if self.is_op("(") {
            index.columns = self.paren_list(Self::index_column)?;
        } else if let Some(column) = column {
            index.columns = vec![(column.to_owned(), false)];
        }
        self.index_tail(&mut index)?;
        Ok(index)
    }

    fn clustering(&mut self) -> Option<bool> {
        if self.take_kw("clustered") {
            return Some(true);
        }
        if self.take_kw("nonclustered") {
            return Some(false);
        }
        None
    }

    pub(super) fn column_def(&mut self) -> Result<ColumnDef> {
        let mut column = ColumnDef { name: self.ident()?, ..ColumnDef::default() };
        if self.take_kw("as") {
            let start = self.start();
            let expr = self.expr()?;
            let text = self.text_from(start);
            let persisted = self.take_kw("persisted");
            column.computed = Some((expr, text, persisted));
        } else if self.is_kw("timestamp") && (self.is_op_at(1, ",") || self.is_op_at(1, ")")) {
            column.ty = Some(self.type_name()?);
        } else if column.name.eq_ignore_ascii_case("timestamp") && (self.is_op(",") || self.is_op(")")) {
            column.ty = Some(TypeName { name: "timestamp".into(), args: Vec::new() });
        } else {
            column.ty = Some(self.type_name()?);
        }
        while self.column_option(&mut column)? {}
        Ok(column)
    }

    pub(super) fn column_option(&mut self, column: &mut ColumnDef) -> Result<bool> {
        let Some(word) = self.word() else { return Ok(false) };
        match word.as_str() {
            "null" => {
                self.advance();
                column.nullable = Some(true);
            }
            "not" => {
                self.advance();
                if self.is_kw("for") {
                    self.expect_kws(&["for", "replication"])?;
                } else {
                    self.expect_kw("null")?;
                    column.nullable = Some(false);
                }
            }
            "collate" => {
                self.advance();
                column.collation = Some(self.ident()?);
            }
            "identity" => {
                self.advance();
                column.identity = Some(self.identity_arguments()?);
            }
            "rowguidcol" => {
                self.advance();
                column.rowguidcol = true;
            }
            "sparse" | "persisted" => self.advance(),
            "index" => {
                let name = column.name.clone();
                column.indexes.push(self.inline_index(Some(&name))?);
            }
            "default" => self.column_default(column, None)?,
            "with" if self.is_kw_at(1, "values") => self.at += 2,
            "constraint" | "primary" | "unique" | "check" | "foreign" | "references" => {
                if word == "constraint" && self.is_kw_at(2, "default") {
                    self.advance();
                    let name = self.ident()?;
                    self.column_default(column, Some(name))?;
                } else {
                    let name = column.name.clone();
                    let constraint = self.constraint(Some(&name))?;
                    column.constraints.push(constraint);
                }
            }
            "generated" | "masked" | "encrypted" | "filestream" | "hidden" => {
                return Err(error::unsupported(&word).at_line(self.line()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn identity_arguments(&mut self) -> Result<(i64, i64)> {
        if !self.take_op("(") {
            return Ok((1, 1));
        }
        let seed = self.integer()?;
        self.expect_op(",")?;
        let increment = self.integer()?;
        self.expect_op(")")?;
        Ok((seed, increment))
    }

    fn column_default(&mut self, column: &mut ColumnDef, name: Option<String>) -> Result<()> {
        self.expect_kw("default")?;
        let start = self.start();
        let value = self.additive()?;
        let text = self.text_from(start);
        if column.default.is_some() {
            let message = format!("More than one column default constraint specified for column '{}'.", column.name);
            return Err(error::new(1770, 16, 0, &message));
        }
        column.default = Some((name, value, text));
        Ok(())
    }

    fn index_column(&mut self) -> Result<(String, bool)> {
        let name = self.ident()?;
        let descending = self.take_kw("desc");
        if !descending {
            self.take_kw("asc");
        }
        Ok((name, descending))
    }

    /// A table constraint, or a constraint of `column`.
    pub(super) fn constraint(&mut self, column: Option<&str>) -> Result<Constraint> {
        let name = if self.take_kw("constraint") { Some(self.ident()?) } else { None };
        let Some(word) = self.word() else { return Err(self.unexpected()) };
        let kind = match word.as_str() {
            "primary" | "unique" => self.key_constraint(column)?,
            "foreign" | "references" => self.foreign_key(column)?,
            "check" => {
                self.advance();
                if self.is_kw("not") && self.is_kw_at(1, "for") {
                    self.expect_kws(&["not", "for", "replication"])?;
                }
                self.expect_op("(")?;
                let start = self.start();
                let condition = self.expr()?;
                let text = self.text_from(start);
                self.expect_op(")")?;
                ConstraintKind::Check { condition, text }
            }
            "default" => {
                self.advance();
                let start = self.start();
                let value = self.additive()?;
                let text = self.text_from(start);
                self.expect_kw("for")?;
                let column = self.ident()?;
                self.take_kws(&["with", "values"]);
                ConstraintKind::Default { value, text, column }
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Constraint { name, kind })
    }

    fn key_constraint(&mut self, column: Option<&str>) -> Result<ConstraintKind> {
        let primary = self.take_kw("primary");
        self.expect_kw(if primary { "key" } else { "unique" })?;
        let clustered = self.clustering();
        let columns = if self.is_op("(") {
            self.paren_list(Self::index_column)?
        } else {
            let Some(column) = column else { return Err(self.unexpected()) };
            vec![(column.to_owned(), false)]
        };
        let mut scratch = blank_index(String::new());
        self.index_tail(&mut scratch)?;
        Ok(ConstraintKind::Key { primary, clustered, columns })
    }

    fn foreign_key(&mut self, column: Option<&str>) -> Result<ConstraintKind> {
        let mut columns: Vec<String> = column.map(str::to_owned).into_iter().collect();
        if self.take_kws(&["foreign", "key"]) && self.is_op("(") {
            columns = self.paren_list(Self::ident)?;
        }
        self.expect_kw("references")?;
        let table = self.name()?;
        let referenced = if self.is_op("(") { self.paren_list(Self::ident)? } else { Vec::new() };
        let (mut on_delete, mut on_update) = (FkAction::NoAction, FkAction::NoAction);
        loop {
            if self.take_kws(&["on", "delete"]) {
                on_delete = self.fk_action()?;
            } else if self.take_kws(&["on", "update"]) {
                on_update = self.fk_action()?;
            } else if !self.take_kws(&["not", "for", "replication"]) {
                break;
            }
        }
        Ok(ConstraintKind::Foreign { columns, table, referenced, on_delete, on_update })
    }

    fn fk_action(&mut self) -> Result<FkAction> {
        if self.take_kw("cascade") {
            return Ok(FkAction::Cascade);
        }
        if self.take_kws(&["no", "action"]) {
            return Ok(FkAction::NoAction);
        }
        self.expect_kw("set")?;
        if self.take_kw("null") {
            return Ok(FkAction::SetNull);
        }
        self.expect_kw("default")?;
        Ok(FkAction::SetDefault)
    }

    fn create_index(&mut self) -> Result<Kind> {
        let unique = self.take_kw("unique");
        let clustered = self.clustering().unwrap_or(false);
        if self.is_kw("columnstore") {
            return Err(error::unsupported("COLUMNSTORE INDEX").at_line(self.line()));
        }
        self.expect_kw("index")?;
        let mut index = blank_index(self.ident()?);
        index.unique = unique;
        index.clustered = clustered;
        self.expect_kw("on")?;
        index.table = self.name()?;
        index.columns = self.paren_list(Self::index_column)?;
        self.index_tail(&mut index)?;
        Ok(Kind::CreateIndex(Box::new(index)))
    }

    /// INCLUDE, WHERE, WITH and ON of an index.
    pub(super) fn index_tail(&mut self, index: &mut CreateIndex) -> Result<()> {
        loop {
            if self.is_kw("include") && self.is_op_at(1, "(") {
                self.advance();
                index.include = self.paren_list(Self::ident)?;
            } else if self.take_kw("where") {
                let start = self.start();
                let filter = self.expr()?;
                index.filter = Some((filter, self.text_from(start)));
            } else if self.is_kw("with") && self.is_op_at(1, "(") {
                self.advance();
                self.index_options(index)?;
            } else if self.is_kw("with") && self.is_kw_at(1, "fillfactor") {
                self.at += 4;
            } else if self.is_kw("on") && !self.is_kw_at(1, "delete") && !self.is_kw_at(1, "update") {
                self.advance();
                self.filegroup()?;
            } else {
                return Ok(());
            }
        }
    }

    pub(super) fn index_options(&mut self, index: &mut CreateIndex) -> Result<()> {
        let mut ahead = 0;
        while !self.is_op_at(ahead, ")") && self.token(ahead).tok != Tok::End {
            let on = self.is_op_at(ahead + 1, "=") && self.is_kw_at(ahead + 2, "on");
            if self.is_kw_at(ahead, "ignore_dup_key") {
                index.ignore_dup_key = on;
            }
            if self.is_kw_at(ahead, "drop_existing") {
                index.drop_existing = on;
            }
            ahead += 1;
        }
        self.skip_parens()
    }
}

pub(super) fn blank_index(name: String) -> CreateIndex {
    CreateIndex {
        name,
        table: Name::default(),
        unique: false,
        clustered: false,
        columns: Vec::new(),
        include: Vec::new(),
        filter: None,
        ignore_dup_key: false,
        drop_existing: false,
    }
}
