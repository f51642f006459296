//! Control flow, variables, SET, EXEC, transactions.

use super::super::ast::{Expr, Literal};
use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::super::stmt::{Declare, Kind, NameOrVar, SetOption, Stmt};
use super::Parser;

impl Parser<'_> {
    /// All statements up to the end of the text.
    pub(super) fn batch(&mut self) -> Result<Vec<Stmt>> {
        let mut statements = Vec::new();
        // A leading procedure name without EXEC is a call.
        loop {
            while self.take_op(";") {}
            if self.peek() == &Tok::End {
                return Ok(statements);
            }
            let first = statements.is_empty();
            statements.push(self.statement_in_batch(first)?);
        }
    }

    fn statement_in_batch(&mut self, first: bool) -> Result<Stmt> {
        let implicit_call = first && self.is_ident() && !self.begins_known_statement() && !self.is_op_at(1, ":");
        if implicit_call {
            return self.placed(|p| p.exec_call(None));
        }
        self.statement()
    }

    pub(super) fn begins_known_statement(&self) -> bool {
        self.is_any_kw(&["throw", "enable", "disable", "go", "receive", "send", "get", "move"])
    }

    fn placed(&mut self, parse: impl FnOnce(&mut Self) -> Result<Kind>) -> Result<Stmt> {
        let (line, start) = (self.line(), self.start());
        let kind = parse(self)?;
        Ok(Stmt { kind, line, span: (start, self.end()) })
    }

    /// One statement, with the semicolon that may end it.
    pub(super) fn statement(&mut self) -> Result<Stmt> {
        let statement = self.deeper(|p| p.placed(Self::statement_kind))?;
        self.take_op(";");
        Ok(statement)
    }

    #[allow(clippy::too_many_lines, reason = "one flat table from first word to parser")]
    fn statement_kind(&mut self) -> Result<Kind> {
        if self.is_op("(") && self.starts_query() {
            return Ok(Kind::Query(Box::new(self.query()?)));
        }
        let Some(word) = self.word() else { return Err(self.unexpected()) };
        match word.as_str() {
            "select" => Ok(Kind::Query(Box::new(self.query()?))),
            "with" => self.with_statement(),
            "insert" => self.insert(Vec::new()),
            "update" => self.update(Vec::new()),
            "delete" => self.delete(Vec::new()),
            "merge" => self.merge(Vec::new()),
            "truncate" => self.truncate(),
            "declare" => self.declare(),
            "set" => self.set(),
            "if" => self.if_statement(),
            "while" => self.while_statement(),
            "begin" => self.begin(),
            "break" => self.simple(Kind::Break),
            "continue" => self.simple(Kind::Continue),
            "return" => self.return_statement(),
            "goto" => {
                self.advance();
                Ok(Kind::Goto(self.ident()?))
            }
            "print" => {
                self.advance();
                Ok(Kind::Print(self.expr()?))
            }
            "raiserror" => self.raiserror(),
            "throw" => self.throw(),
            "waitfor" => self.waitfor(),
            "exec" | "execute" => self.exec(),
            "commit" => self.commit(),
            "rollback" => self.rollback(),
            "save" => {
                self.advance();
                self.transaction_word()?;
                Ok(Kind::Save { name: self.name_or_var()? })
            }
            "use" => {
                self.advance();
                Ok(Kind::Use(self.ident()?))
            }
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop(),
            "enable" | "disable" => self.enable_trigger(),
            "grant" | "deny" | "revoke" => self.permission(),
            "revert" => self.simple(Kind::Revert),
            "open" | "close" | "deallocate" => self.cursor_action(&word),
            "fetch" => self.fetch(),
            "kill" => {
                self.advance();
                Ok(Kind::Kill(self.additive()?))
            }
            "checkpoint" => self.simple(Kind::Checkpoint),
            "dbcc" => self.dbcc(),
            _ if self.is_ident() && self.is_op_at(1, ":") && !self.is_op_at(1, "::") => {
                let label = self.ident()?;
                self.advance();
                Ok(Kind::Label(label))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn simple(&mut self, kind: Kind) -> Result<Kind> {
        self.advance();
        Ok(kind)
    }

    fn with_statement(&mut self) -> Result<Kind> {
        let ctes = self.ctes()?;
        if self.is_kw("insert") {
            return self.insert(ctes);
        }
        if self.is_kw("update") {
            return self.update(ctes);
        }
        if self.is_kw("delete") {
            return self.delete(ctes);
        }
        if self.is_kw("merge") {
            return self.merge(ctes);
        }
        if !self.starts_query() {
            return Err(self.unexpected());
        }
        Ok(Kind::Query(Box::new(self.query_after_ctes(ctes)?)))
    }

    fn declare(&mut self) -> Result<Kind> {
        self.expect_kw("declare")?;
        if self.is_ident() && self.cursor_ahead() {
            return self.declare_cursor();
        }
        let items = self.list(|p| {
            let name = p.var()?;
            p.take_kw("as");
            if p.is_kw("cursor") {
                return Err(error::unsupported("cursor variable").at_line(p.line()));
            }
            if p.take_kw("table") {
                let elements = p.table_elements()?;
                return Ok(Declare::Table { name, elements });
            }
            let ty = p.type_name()?;
            let value = if p.take_op("=") { Some(p.expr()?) } else { None };
            Ok(Declare::Scalar { name, ty, value })
        })?;
        Ok(Kind::Declare(items))
    }

    fn set(&mut self) -> Result<Kind> {
        self.expect_kw("set")?;
        if let Tok::Var(_) = self.peek() {
            let name = self.var()?;
            let Some((op, width)) = self.assignment_operator(0) else { return Err(self.unexpected()) };
            self.at += width;
            return Ok(Kind::SetVar { name, op, value: self.expr()? });
        }
        if self.take_kws(&["transaction", "isolation", "level"]) {
            return self.set_isolation();
        }
        if self.take_kw("identity_insert") {
            let table = self.name()?;
            return Ok(Kind::SetOption(SetOption::IdentityInsert { table, on: self.on_off()? }));
        }
        if self.is_kw("statistics") {
            self.advance();
            self.list(|p| {
                p.word().ok_or_else(|| p.unexpected())?;
                p.advance();
                Ok(())
            })?;
            self.on_off()?;
            return Ok(Kind::SetOption(SetOption::Switch { names: vec!["statistics".into()], on: false }));
        }
        let names = self.list(|p| {
            let word = p.word().ok_or_else(|| p.unexpected())?;
            if word == "offsets" || !is_set_option(&word) {
                return Err(p.unrecognised_option(&word));
            }
            p.advance();
            Ok(word)
        })?;
        if self.is_kw("on") || self.is_kw("off") {
            let on = self.on_off()?;
            return Ok(Kind::SetOption(SetOption::Switch { names, on }));
        }
        let name = names.into_iter().next().unwrap_or_default();
        self.set_value(name)
    }

    fn unrecognised_option(&self, word: &str) -> super::super::api::SqlError {
        if super::keywords::is_reserved(word) {
            return self.unexpected();
        }
        error::new(195, 15, 5, &format!("'{word}' is not a recognized SET option.")).at_line(self.line())
    }

    fn set_value(&mut self, name: String) -> Result<Kind> {
        let option = match self.peek().clone() {
            Tok::Word { text, .. } => {
                self.advance();
                SetOption::Word { name, word: text }
            }
            Tok::Str { text, .. } if name == "language" || name == "dateformat" => {
                self.advance();
                SetOption::Word { name, word: text }
            }
            _ => SetOption::Value { name, value: self.additive()? },
        };
        Ok(Kind::SetOption(option))
    }

    fn on_off(&mut self) -> Result<bool> {
        if self.take_kw("on") {
            return Ok(true);
        }
        self.expect_kw("off")?;
        Ok(false)
    }

    fn set_isolation(&mut self) -> Result<Kind> {
        let levels: [(&[&str], &str); 5] = [
            (&["read", "uncommitted"], "read uncommitted"),
            (&["read", "committed"], "read committed"),
            (&["repeatable", "read"], "repeatable read"),
            (&["serializable"], "serializable"),
            (&["snapshot"], "snapshot"),
        ];
        for (words, level) in levels {
            if self.take_kws(words) {
                return Ok(Kind::SetOption(SetOption::Isolation(level.into())));
            }
        }
        Err(self.unexpected())
    }

    fn if_statement(&mut self) -> Result<Kind> {
        self.expect_kw("if")?;
        let condition = self.expr()?;
        let then = Box::new(self.statement()?);
        let otherwise = if self.take_kw("else") { Some(Box::new(self.statement()?)) } else { None };
        Ok(Kind::If { condition, then, otherwise })
    }

    fn while_statement(&mut self) -> Result<Kind> {
        self.expect_kw("while")?;
        let condition = self.expr()?;
        let body = Box::new(self.statement()?);
        Ok(Kind::While { condition, body })
    }

    fn begin(&mut self) -> Result<Kind> {
        self.expect_kw("begin")?;
        if self.is_any_kw(&["tran", "transaction"]) {
            self.advance();
            let name = self.optional_name_or_var()?;
            if self.take_kws(&["with", "mark"])
                && let Tok::Str { .. } = self.peek()
            {
                self.advance();
            }
            return Ok(Kind::Begin { name });
        }
        if self.is_kw("distributed") {
            return Err(error::unsupported("BEGIN DISTRIBUTED TRANSACTION").at_line(self.line()));
        }
        if self.take_kw("try") {
            let body = self.statements_until_end()?;
            self.expect_kws(&["end", "try"])?;
            self.take_op(";");
            self.expect_kws(&["begin", "catch"])?;
            let handler = self.statements_until_end()?;
            self.expect_kws(&["end", "catch"])?;
            return Ok(Kind::TryCatch { body, handler });
        }
        let body = self.statements_until_end()?;
        if body.is_empty() {
            return Err(self.unexpected());
        }
        self.expect_kw("end")?;
        Ok(Kind::Block(body))
    }

    fn statements_until_end(&mut self) -> Result<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            while self.take_op(";") {}
            if self.is_kw("end") {
                return Ok(body);
            }
            body.push(self.statement()?);
        }
    }

    fn return_statement(&mut self) -> Result<Kind> {
        self.expect_kw("return")?;
        let value = match self.peek() {
            Tok::Number(_) | Tok::Var(_) | Tok::Str { .. } | Tok::Float(_) | Tok::Binary(_) => true,
            Tok::Op(op) => matches!(*op, "(" | "-" | "+" | "~"),
            Tok::Word { text, .. } => {
                self.is_ident() && !self.begins_known_statement() && !self.is_op_at(1, ":")
                    || ["case", "null", "convert", "coalesce", "nullif", "left", "right"]
                        .iter()
                        .any(|k| text.eq_ignore_ascii_case(k))
            }
            _ => false,
        };
        let value = if value { Some(self.expr()?) } else { None };
        Ok(Kind::Return(value))
    }

    fn raiserror(&mut self) -> Result<Kind> {
        self.expect_kw("raiserror")?;
        self.expect_op("(")?;
        let message = self.expr()?;
        self.expect_op(",")?;
        let severity = self.expr()?;
        self.expect_op(",")?;
        let state = self.expr()?;
        let mut args = Vec::new();
        while self.take_op(",") {
            args.push(self.expr()?);
        }
        self.expect_op(")")?;
        let mut options = Vec::new();
        if self.take_kw("with") {
            options = self.list(|p| {
                let word = p.word().ok_or_else(|| p.unexpected())?;
                if !["nowait", "log", "seterror"].contains(&word.as_str()) {
                    return Err(p.unexpected());
                }
                p.advance();
                Ok(word)
            })?;
        }
        Ok(Kind::RaiseError { message, severity, state, args, options })
    }

    fn throw(&mut self) -> Result<Kind> {
        self.expect_kw("throw")?;
        if !matches!(self.peek(), Tok::Number(_) | Tok::Var(_) | Tok::Op("-")) {
            return Ok(Kind::Throw(None));
        }
        let number = self.additive()?;
        self.expect_op(",")?;
        let message = self.additive()?;
        self.expect_op(",")?;
        let state = self.additive()?;
        Ok(Kind::Throw(Some((number, message, state))))
    }

    fn waitfor(&mut self) -> Result<Kind> {
        self.expect_kw("waitfor")?;
        if self.take_kw("delay") {
            return Ok(Kind::WaitDelay(self.additive()?));
        }
        self.expect_kw("time")?;
        Ok(Kind::WaitTime(self.additive()?))
    }

    pub(super) fn transaction_word(&mut self) -> Result<()> {
        if self.take_kw("transaction") || self.take_kw("tran") { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn name_or_var(&mut self) -> Result<NameOrVar> {
        if let Tok::Var(_) = self.peek() {
            return self.var().map(NameOrVar::Var);
        }
        self.ident().map(NameOrVar::Name)
    }

    fn optional_name_or_var(&mut self) -> Result<Option<NameOrVar>> {
        let named = matches!(self.peek(), Tok::Var(_))
            || self.is_ident() && !self.begins_known_statement() && !self.is_op_at(1, ":");
        if named { self.name_or_var().map(Some) } else { Ok(None) }
    }

    fn commit(&mut self) -> Result<Kind> {
        self.expect_kw("commit")?;
        if self.is_any_kw(&["tran", "transaction"]) {
            self.advance();
            self.optional_name_or_var()?;
            if self.is_kw("with") && self.is_op_at(1, "(") {
                self.advance();
                self.skip_parens()?;
            }
        } else {
            self.take_kw("work");
        }
        Ok(Kind::Commit)
    }

    fn rollback(&mut self) -> Result<Kind> {
        self.expect_kw("rollback")?;
        if self.is_any_kw(&["tran", "transaction"]) {
            self.advance();
            let name = self.optional_name_or_var()?;
            return Ok(Kind::Rollback { name });
        }
        self.take_kw("work");
        Ok(Kind::Rollback { name: None })
    }

    fn dbcc(&mut self) -> Result<Kind> {
        self.expect_kw("dbcc")?;
        let name = self.word().ok_or_else(|| self.unexpected())?;
        self.advance();
        let mut args = Vec::new();
        if self.take_op("(") {
            args = self.list(|p| {
                if p.is_ident() && (p.is_op_at(1, ",") || p.is_op_at(1, ")") || p.is_op_at(1, ".")) {
                    let name = p.name()?;
                    return Ok(Expr::Literal(Literal::Str { text: name.display(), national: true }));
                }
                p.expr()
            })?;
            self.expect_op(")")?;
        }
        if self.take_kw("with") {
            self.list(Self::ident)?;
        }
        Ok(Kind::Dbcc { name, args })
    }
}

fn is_set_option(word: &str) -> bool {
    matches!(
        word,
        "nocount"
            | "xact_abort"
            | "lock_timeout"
            | "ansi_nulls"
            | "ansi_padding"
            | "ansi_warnings"
            | "ansi_defaults"
            | "ansi_null_dflt_on"
            | "ansi_null_dflt_off"
            | "concat_null_yields_null"
            | "quoted_identifier"
            | "arithabort"
            | "arithignore"
            | "numeric_roundabort"
            | "implicit_transactions"
            | "rowcount"
            | "textsize"
            | "dateformat"
            | "datefirst"
            | "language"
            | "fmtonly"
            | "noexec"
            | "parseonly"
            | "deadlock_priority"
            | "cursor_close_on_commit"
            | "context_info"
            | "forceplan"
            | "showplan_all"
            | "showplan_text"
            | "showplan_xml"
            | "query_governor_cost_limit"
            | "remote_proc_transactions"
            | "no_browsetable"
            | "disable_def_cnst_chk"
            | "fips_flagger"
    )
}
