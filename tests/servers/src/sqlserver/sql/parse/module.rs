//! Views, procedures, functions and triggers.

use super::super::ast::Name;
use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::super::stmt::{CreateModule, Kind, ModuleBody, ModuleKind, Stmt, TriggerEvent};
use super::Parser;

impl Parser<'_> {
    /// Parses from the object keyword on; `start` is where CREATE or ALTER began.
    pub(super) fn module(&mut self, start: usize, alter: bool, or_alter: bool) -> Result<Kind> {
        let word = self.word().unwrap_or_default();
        // These statements must be the only ones of their batch.
        let first = self.tokens.first().is_some_and(|t| t.start == start);
        if !first {
            let shown = match word.as_str() {
                "view" => "CREATE VIEW",
                "trigger" => "CREATE TRIGGER",
                "function" => "CREATE FUNCTION",
                _ => "CREATE/ALTER PROCEDURE",
            };
            let message = format!("'{shown}' must be the first statement in a query batch.");
            return Err(error::new(111, 15, 1, &message).at_line(self.line()));
        }
        self.advance();
        let mut module = CreateModule {
            kind: ModuleKind::View,
            alter,
            or_alter,
            name: self.name()?,
            params: Vec::new(),
            columns: Vec::new(),
            body: ModuleBody::Procedure(Vec::new()),
            text: String::new(),
            schema_binding: false,
            execute_as: None,
        };
        match word.as_str() {
            "view" => self.view(&mut module)?,
            "proc" | "procedure" => self.procedure(&mut module)?,
            "function" => self.function(&mut module)?,
            "trigger" => self.trigger(&mut module)?,
            _ => return Err(self.unexpected()),
        }
        module.text = self.text[start..].trim_end().to_owned();
        Ok(Kind::CreateModule(Box::new(module)))
    }

    /// `WITH SCHEMABINDING, EXECUTE AS OWNER, ...`
    fn module_options(&mut self, module: &mut CreateModule) -> Result<()> {
        if !self.take_kw("with") {
            return Ok(());
        }
        loop {
            let word = self.word().ok_or_else(|| self.unexpected())?;
            match word.as_str() {
                "schemabinding" => {
                    module.schema_binding = true;
                    self.advance();
                }
                "encryption" | "recompile" | "view_metadata" => self.advance(),
                "execute" | "exec" => {
                    self.advance();
                    self.expect_kw("as")?;
                    let who = match self.peek().clone() {
                        Tok::Str { text, .. } | Tok::Word { text, .. } => text,
                        _ => return Err(self.unexpected()),
                    };
                    self.advance();
                    module.execute_as = Some(who).filter(|w| !w.eq_ignore_ascii_case("caller"));
                }
                "returns" | "called" => {
                    while self.is_any_kw(&["returns", "called", "null", "on", "input"]) {
                        self.advance();
                    }
                }
                _ => return Err(self.unexpected()),
            }
            if !self.take_op(",") {
                return Ok(());
            }
        }
    }

    fn view(&mut self, module: &mut CreateModule) -> Result<()> {
        module.kind = ModuleKind::View;
        if self.is_op("(") {
            module.columns = self.paren_list(Self::ident)?;
        }
        self.module_options(module)?;
        self.expect_kw("as")?;
        let query = Box::new(self.query()?);
        let check_option = self.take_kws(&["with", "check", "option"]);
        self.take_op(";");
        self.expect_end()?;
        module.body = ModuleBody::View { query, check_option };
        Ok(())
    }

    fn rest_of_batch(&mut self) -> Result<Vec<Stmt>> {
        self.batch_rest()
    }

    fn batch_rest(&mut self) -> Result<Vec<Stmt>> {
        let mut statements = Vec::new();
        loop {
            while self.take_op(";") {}
            if self.peek() == &Tok::End {
                return Ok(statements);
            }
            statements.push(self.statement()?);
        }
    }

    fn procedure(&mut self, module: &mut CreateModule) -> Result<()> {
        module.kind = ModuleKind::Procedure;
        if self.take_op("(") {
            module.params = self.parameters()?;
            self.expect_op(")")?;
        } else if let Tok::Var(_) = self.peek() {
            module.params = self.parameters()?;
        }
        self.module_options(module)?;
        if self.take_kw("for") {
            self.expect_kw("replication")?;
        }
        self.expect_kw("as")?;
        let body = self.rest_of_batch()?;
        module.body = ModuleBody::Procedure(body);
        Ok(())
    }

    fn function(&mut self, module: &mut CreateModule) -> Result<()> {
        module.kind = ModuleKind::Function;
        self.expect_op("(")?;
        if !self.is_op(")") {
            module.params = self.parameters()?;
        }
        self.expect_op(")")?;
        self.expect_kw("returns")?;
        if self.take_kw("table") {
            self.module_options(module)?;
            self.take_kw("as");
            self.expect_kw("return")?;
            let wrapped = self.is_op("(");
            let query = if wrapped && self.starts_query() {
                self.expect_op("(")?;
                let query = self.query()?;
                self.expect_op(")")?;
                query
            } else {
                self.query()?
            };
            self.take_op(";");
            self.expect_end()?;
            module.body = ModuleBody::InlineFunction(Box::new(query));
            return Ok(());
        }
        if let Tok::Var(_) = self.peek() {
            let var = self.var()?;
            self.expect_kw("table")?;
            let elements = self.table_elements()?;
            self.module_options(module)?;
            self.take_kw("as");
            let body = self.function_block()?;
            module.body = ModuleBody::TableFunction { var, elements, body };
            return Ok(());
        }
        let returns = self.type_name()?;
        self.module_options(module)?;
        self.take_kw("as");
        let body = self.function_block()?;
        module.body = ModuleBody::ScalarFunction { returns, body };
        Ok(())
    }

    fn function_block(&mut self) -> Result<Vec<Stmt>> {
        if !self.is_kw("begin") {
            return Err(self.unexpected());
        }
        let block = self.statement()?;
        self.take_op(";");
        self.expect_end()?;
        Ok(vec![block])
    }

    fn trigger(&mut self, module: &mut CreateModule) -> Result<()> {
        module.kind = ModuleKind::Trigger;
        self.expect_kw("on")?;
        if self.is_kw("database") || (self.is_kw("all") && self.is_kw_at(1, "server")) {
            return Err(error::unsupported("DDL trigger").at_line(self.line()));
        }
        let table: Name = self.name()?;
        self.module_options(module)?;
        let instead = if self.take_kws(&["instead", "of"]) {
            true
        } else {
            if !self.take_kw("after") {
                self.expect_kw("for")?;
            }
            false
        };
        let events = self.list(|p| {
            let event = match p.word().as_deref() {
                Some("insert") => TriggerEvent::Insert,
                Some("update") => TriggerEvent::Update,
                Some("delete") => TriggerEvent::Delete,
                _ => return Err(p.unexpected()),
            };
            p.advance();
            Ok(event)
        })?;
        self.take_kws(&["not", "for", "replication"]);
        self.expect_kw("as")?;
        let body = self.rest_of_batch()?;
        module.body = ModuleBody::Trigger { table, instead, events, body };
        Ok(())
    }

    pub(super) fn enable_trigger(&mut self) -> Result<Kind> {
        let enable = self.is_kw("enable");
        self.advance();
        self.expect_kw("trigger")?;
        let names = if self.take_kw("all") { Vec::new() } else { self.list(Self::name)? };
        let table = if self.take_kw("on") {
            if self.is_kw("database") || self.is_kw("all") {
                return Err(error::unsupported("DDL trigger").at_line(self.line()));
            }
            Some(self.name()?)
        } else {
            None
        };
        Ok(Kind::Trigger { enable, names, table })
    }
}
