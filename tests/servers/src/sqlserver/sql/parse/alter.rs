//! `ALTER` and `DROP`.

use super::super::ast::Name;
use super::super::error::{self, Result};
use super::super::stmt::{AlterAction, AlterTable, Kind, ObjectKind};
use super::Parser;

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> Result<Kind> {
        let start = self.start();
        self.expect_kw("alter")?;
        let Some(word) = self.word() else { return Err(self.unexpected()) };
        match word.as_str() {
            "table" => self.alter_table(),
            "view" | "proc" | "procedure" | "function" | "trigger" => self.module(start, true, false),
            "index" => self.alter_index(),
            "schema" => {
                self.advance();
                let schema = self.ident()?;
                self.expect_kw("transfer")?;
                if self.take_kw("object") || self.take_kw("type") {
                    self.expect_op("::")?;
                }
                Ok(Kind::AlterSchema { schema, object: self.name()? })
            }
            "database" => {
                self.advance();
                if self.is_kw("scoped") {
                    return Err(error::unsupported("ALTER DATABASE SCOPED CONFIGURATION").at_line(self.line()));
                }
                let name = if self.take_kw("current") { String::new() } else { self.ident()? };
                let from = self.start();
                self.skip_statement();
                Ok(Kind::AlterDatabase { name, text: self.text_from(from) })
            }
            "login" | "user" | "role" | "server" => self.alter_principal(),
            "authorization" => Err(error::unsupported("ALTER AUTHORIZATION").at_line(self.line())),
            _ => Err(self.unexpected()),
        }
    }

    fn alter_index(&mut self) -> Result<Kind> {
        self.advance();
        let index = if self.take_kw("all") { None } else { Some(self.ident()?) };
        self.expect_kw("on")?;
        let table = self.name()?;
        let Some(action) = self.word() else { return Err(self.unexpected()) };
        if !["rebuild", "reorganize", "disable"].contains(&action.as_str()) {
            return Err(self.unexpected());
        }
        self.advance();
        if self.is_kw("with") && self.is_op_at(1, "(") {
            self.advance();
            self.skip_parens()?;
        }
        Ok(Kind::AlterIndex { index, table, action })
    }

    fn alter_table(&mut self) -> Result<Kind> {
        self.expect_kw("table")?;
        let name = self.name()?;
        let action = self.alter_action()?;
        Ok(Kind::AlterTable(Box::new(AlterTable { name, action })))
    }

    fn alter_action(&mut self) -> Result<AlterAction> {
        let mut check = None;
        if self.is_kw("with") && (self.is_kw_at(1, "check") || self.is_kw_at(1, "nocheck")) {
            check = Some(self.is_kw_at(1, "check"));
            self.at += 2;
        }
        if self.take_kw("add") {
            let elements = self.list(Self::table_element)?;
            return Ok(AlterAction::Add { elements, check });
        }
        if self.is_any_kw(&["check", "nocheck"]) && self.is_kw_at(1, "constraint") {
            let enable = self.is_kw("check");
            self.at += 2;
            let names = if self.take_kw("all") { Vec::new() } else { self.list(Self::ident)? };
            return Ok(AlterAction::Check { enable, trust: check == Some(true), names });
        }
        if self.take_kw("drop") {
            return self.alter_drop();
        }
        if self.take_kws(&["alter", "column"]) {
            return self.alter_column();
        }
        if self.is_any_kw(&["enable", "disable"]) && self.is_kw_at(1, "trigger") {
            let enable = self.is_kw("enable");
            self.at += 2;
            let names = if self.take_kw("all") { Vec::new() } else { self.list(Self::ident)? };
            return Ok(AlterAction::Trigger { enable, names });
        }
        if self.take_kw("rebuild") {
            if self.is_kw("with") {
                self.advance();
                self.skip_parens()?;
            }
            return Ok(AlterAction::Rebuild);
        }
        if self.take_kw("set") {
            if !self.is_kw_at(1, "lock_escalation") {
                return Err(error::unsupported("ALTER TABLE SET").at_line(self.line()));
            }
            self.skip_parens()?;
            return Ok(AlterAction::SetLockEscalation);
        }
        if self.take_kw("switch") {
            if self.is_kw("partition") {
                return Err(error::unsupported("SWITCH PARTITION").at_line(self.line()));
            }
            self.expect_kw("to")?;
            let target = self.name()?;
            return Ok(AlterAction::Switch { target });
        }
        Err(self.unexpected())
    }

    fn alter_column(&mut self) -> Result<AlterAction> {
        let name = self.ident()?;
        if self.is_any_kw(&["add", "drop"]) {
            return Err(error::unsupported("ALTER COLUMN ADD/DROP").at_line(self.line()));
        }
        let ty = self.type_name()?;
        let collation = if self.take_kw("collate") { Some(self.ident()?) } else { None };
        let nullable = if self.take_kws(&["not", "null"]) {
            Some(false)
        } else if self.take_kw("null") {
            Some(true)
        } else {
            None
        };
        Ok(AlterAction::AlterColumn { name, ty, nullable, collation })
    }

    fn alter_drop(&mut self) -> Result<AlterAction> {
        let (mut columns, mut constraints) = (Vec::new(), Vec::new());
        let mut column_mode = false;
        loop {
            if self.take_kw("column") {
                column_mode = true;
            } else if self.take_kw("constraint") {
                column_mode = false;
            }
            let if_exists = self.take_kws(&["if", "exists"]);
            let name = self.ident()?;
            if column_mode {
                columns.push((name, if_exists));
            } else {
                constraints.push((name, if_exists));
            }
            if self.is_kw("with") && self.is_op_at(1, "(") {
                self.advance();
                self.skip_parens()?;
            }
            if !self.take_op(",") {
                return Ok(AlterAction::DropItems { columns, constraints });
            }
        }
    }

    pub(super) fn drop(&mut self) -> Result<Kind> {
        self.expect_kw("drop")?;
        let Some(word) = self.word() else { return Err(self.unexpected()) };
        let kind = match word.as_str() {
            "table" => ObjectKind::Table,
            "view" => ObjectKind::View,
            "proc" | "procedure" => ObjectKind::Procedure,
            "function" => ObjectKind::Function,
            "trigger" => ObjectKind::Trigger,
            "schema" => ObjectKind::Schema,
            "sequence" => ObjectKind::Sequence,
            "synonym" => ObjectKind::Synonym,
            "type" => ObjectKind::Type,
            "login" => ObjectKind::Login,
            "user" => ObjectKind::User,
            "role" => ObjectKind::Role,
            "server" if self.is_kw_at(1, "role") => {
                self.advance();
                ObjectKind::ServerRole
            }
            "index" => return self.drop_index(),
            "database" => {
                self.advance();
                let if_exists = self.take_kws(&["if", "exists"]);
                return Ok(Kind::DropDatabase { if_exists, names: self.list(Self::ident)? });
            }
            "statistics" => {
                self.skip_statement();
                return Ok(Kind::UpdateStatistics);
            }
            _ => return Err(self.unexpected()),
        };
        self.advance();
        let if_exists = self.take_kws(&["if", "exists"]);
        let names = self.list(Self::name)?;
        Ok(Kind::Drop { kind, if_exists, names })
    }

    fn drop_index(&mut self) -> Result<Kind> {
        self.advance();
        let if_exists = self.take_kws(&["if", "exists"]);
        let items = self.list(|p| {
            let name = p.name()?;
            if p.take_kw("on") {
                let table = p.name()?;
                if p.is_kw("with") {
                    p.advance();
                    p.skip_parens()?;
                }
                return Ok((name.base().to_owned(), table));
            }
            // The old form names the table first.
            let mut parts = name.parts.clone();
            let index = parts.pop().unwrap_or_default();
            if parts.is_empty() {
                return Err(p.unexpected());
            }
            Ok((index, Name { parts }))
        })?;
        Ok(Kind::DropIndex { if_exists, items })
    }
}
