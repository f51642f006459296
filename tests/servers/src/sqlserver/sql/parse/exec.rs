//! `EXECUTE`, its arguments, and parameter lists.

use super::super::ast::{Expr, Literal, Name};
use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::super::stmt::{Exec, ExecArg, Kind, Param};
use super::Parser;

impl Parser<'_> {
    pub(super) fn exec(&mut self) -> Result<Kind> {
        self.advance();
        if self.is_op("(") {
            self.advance();
            let mut parts = vec![self.additive()?];
            while self.take_op(",") {
                parts.push(self.additive()?);
            }
            self.expect_op(")")?;
            let mut login = None;
            if self.take_kw("as") {
                self.advance();
                self.expect_op("=")?;
                login = Some(self.string()?);
            }
            if self.is_kw("at") {
                return Err(error::unsupported("EXECUTE AT linked server").at_line(self.line()));
            }
            return Ok(Kind::ExecText { parts, login });
        }
        if self.is_kw("as") && self.is_any_kw_at(1, &["user", "login", "caller"]) {
            self.advance();
            let login = self.is_kw("login");
            let caller = self.is_kw("caller");
            self.advance();
            if caller {
                return Ok(Kind::ExecuteAs { user: Expr::Literal(Literal::Null), login: false });
            }
            self.expect_op("=")?;
            let user = self.additive()?;
            if self.take_kw("with") {
                self.skip_statement();
            }
            return Ok(Kind::ExecuteAs { user, login });
        }
        let status = match self.peek() {
            Tok::Var(_) if self.is_op_at(1, "=") => {
                let status = self.var()?;
                self.advance();
                Some(status)
            }
            _ => None,
        };
        self.exec_call(status)
    }

    pub(super) fn is_any_kw_at(&self, ahead: usize, keywords: &[&str]) -> bool {
        keywords.iter().any(|k| self.is_kw_at(ahead, k))
    }

    pub(super) fn exec_call(&mut self, status: Option<String>) -> Result<Kind> {
        let mut exec = Exec { status, name: Name::default(), name_var: None, args: Vec::new() };
        if let Tok::Var(_) = self.peek() {
            exec.name_var = Some(self.var()?);
        } else {
            exec.name = self.name()?;
        }
        let starts_argument = match self.peek() {
            Tok::End | Tok::Op(";") => false,
            Tok::Word { .. } => self.is_argument_word(),
            Tok::Op(op) => *op == "-" || *op == "+",
            _ => true,
        };
        if starts_argument {
            exec.args = self.list(Self::exec_argument)?;
        }
        if self.take_kw("with") {
            // WITH RECOMPILE and RESULT SETS do not change what this server answers.
            if !self.take_kw("recompile") {
                return Err(error::unsupported("EXECUTE ... WITH RESULT SETS").at_line(self.line()));
            }
        }
        Ok(Kind::Exec(Box::new(exec)))
    }

    /// Whether the word after a procedure name is an argument and not the next statement.
    fn is_argument_word(&self) -> bool {
        if self.is_any_kw(&["null", "default"]) {
            return true;
        }
        self.is_ident() && !self.begins_known_statement() && !self.is_op_at(1, ":")
    }

    fn exec_argument(&mut self) -> Result<ExecArg> {
        let mut arg = ExecArg { name: None, value: None, output: false };
        if matches!(self.peek(), Tok::Var(_)) && self.is_op_at(1, "=") {
            arg.name = Some(self.var()?);
            self.advance();
        }
        if self.take_kw("default") {
            return Ok(arg);
        }
        arg.value = Some(self.exec_value()?);
        arg.output = self.take_kw("output") || self.take_kw("out");
        Ok(arg)
    }

    /// A constant, a variable, or a bare word that stands for a string.
    fn exec_value(&mut self) -> Result<Expr> {
        match self.peek().clone() {
            Tok::Word { text, quoted } if quoted || !text.eq_ignore_ascii_case("null") => {
                let name = self.name()?;
                Ok(Expr::Literal(Literal::Str { text: name.display(), national: true }))
            }
            Tok::Op("-" | "+") => {
                self.advance();
                let negative = matches!(self.tokens[self.at - 1].tok, Tok::Op("-"));
                match self.peek().clone() {
                    Tok::Number(n) => {
                        self.advance();
                        Ok(Expr::Literal(Literal::Number(if negative { format!("-{n}") } else { n })))
                    }
                    Tok::Float(n) => {
                        self.advance();
                        Ok(Expr::Literal(Literal::Float(if negative { format!("-{n}") } else { n })))
                    }
                    _ => Err(self.unexpected()),
                }
            }
            Tok::Number(_)
            | Tok::Float(_)
            | Tok::Money(_)
            | Tok::Str { .. }
            | Tok::Binary(_)
            | Tok::Var(_)
            | Tok::Word { .. } => self.exec_constant(),
            _ => Err(self.unexpected()),
        }
    }

    fn exec_constant(&mut self) -> Result<Expr> {
        let expr = match self.peek().clone() {
            Tok::Number(n) => Expr::Literal(Literal::Number(n)),
            Tok::Float(n) => Expr::Literal(Literal::Float(n)),
            Tok::Money(n) => Expr::Literal(Literal::Money(n)),
            Tok::Str { text, national } => Expr::Literal(Literal::Str { text, national }),
            Tok::Binary(bytes) => Expr::Literal(Literal::Binary(bytes)),
            Tok::Var(name) => Expr::Var(name),
            _ => Expr::Literal(Literal::Null),
        };
        self.advance();
        Ok(expr)
    }

    /// Parameters of a module or of sp_executesql.
    pub(super) fn parameters(&mut self) -> Result<Vec<Param>> {
        self.list(|p| {
            let name = p.var()?;
            p.take_kw("as");
            let ty = p.type_name()?;
            let mut param = Param { name, ty, default: None, output: false };
            if !p.take_kw("null") && p.is_kw("not") {
                p.expect_kws(&["not", "null"])?;
            }
            if p.take_op("=") {
                param.default = Some(p.exec_value()?);
            }
            param.output = p.take_kw("output") || p.take_kw("out");
            p.take_kw("readonly");
            Ok(param)
        })
    }
}
