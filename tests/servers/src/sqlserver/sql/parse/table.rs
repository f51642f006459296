//! What stands in `FROM`: tables, joins, derived tables, hints.

use super::super::ast::{Expr, FuncCall, Hints, JoinKind, TableRef};
use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::Parser;

impl Parser<'_> {
    /// A table source with its joins.
    pub(super) fn table_ref(&mut self) -> Result<TableRef> {
        self.deeper(|p| {
            let mut left = p.table_primary()?;
            let mut links = 0;
            loop {
                p.chained(&mut links)?;
                if p.take_kws(&["cross", "join"]) {
                    let right = p.table_primary()?;
                    left = join(JoinKind::Cross, left, right, None);
                } else if p.is_any_kw(&["cross", "outer"]) && p.is_kw_at(1, "apply") {
                    let outer = p.is_kw("outer");
                    p.at += 2;
                    let right = p.table_primary()?;
                    left = TableRef::Apply { outer, left: Box::new(left), right: Box::new(right) };
                } else if let Some(kind) = p.join_kind() {
                    // Joins nest to the right until their ON: a JOIN b JOIN c ON .. ON ..
                    let right = p.joined_operand()?;
                    p.expect_kw("on")?;
                    let on = p.expr()?;
                    left = join(kind, left, right, Some(on));
                } else {
                    return Ok(left);
                }
            }
        })
    }

    fn joined_operand(&mut self) -> Result<TableRef> {
        let mut operand = self.table_primary()?;
        while !self.is_kw("on") {
            let Some(kind) = self.join_kind() else { return Ok(operand) };
            let right = self.deeper(Self::joined_operand)?;
            self.expect_kw("on")?;
            let on = self.expr()?;
            operand = join(kind, operand, right, Some(on));
        }
        Ok(operand)
    }

    fn join_kind(&mut self) -> Option<JoinKind> {
        let start = self.at;
        let kind = if self.take_kw("inner") {
            JoinKind::Inner
        } else if self.take_kw("left") {
            JoinKind::Left
        } else if self.take_kw("right") {
            JoinKind::Right
        } else if self.take_kw("full") {
            JoinKind::Full
        } else {
            JoinKind::Inner
        };
        self.take_kw("outer");
        // Join hints choose an algorithm only.
        if self.is_any_kw(&["hash", "loop", "merge", "remote"]) && self.is_kw_at(1, "join") {
            self.advance();
        }
        if self.take_kw("join") {
            return Some(kind);
        }
        self.at = start;
        None
    }

    fn table_primary(&mut self) -> Result<TableRef> {
        if self.is_op("(") {
            return self.parenthesised_table();
        }
        if let Tok::Var(_) = self.peek() {
            let name = self.var()?;
            let alias = self.table_alias()?;
            let _ = self.table_hints()?;
            return Ok(TableRef::Var { name, alias });
        }
        let name = self.name()?;
        if self.is_op("(") && !self.is_old_style_hint() {
            let Expr::Func(call) = self.call(name)? else { return Err(self.unexpected()) };
            return self.table_function(call);
        }
        let mut hints = Hints::default();
        if self.is_kw("with") && self.is_op_at(1, "(") || self.is_op("(") {
            hints = self.table_hints()?;
        }
        if self.is_kw("tablesample") || (self.is_kw("for") && self.is_kw_at(1, "system_time")) {
            return Err(error::unsupported("TABLESAMPLE or FOR SYSTEM_TIME").at_line(self.line()));
        }
        let alias = self.table_alias()?;
        let more = self.table_hints()?;
        let hints = merge_hints(hints, more);
        if self.is_any_kw(&["pivot", "unpivot"]) {
            return Err(error::unsupported("PIVOT").at_line(self.line()));
        }
        Ok(TableRef::Table { name, alias, hints })
    }

    fn table_function(&mut self, call: Box<FuncCall>) -> Result<TableRef> {
        if self.is_kw("with") && self.is_op_at(1, "(") {
            return Err(error::unsupported("WITH schema of a table function").at_line(self.line()));
        }
        let alias = self.table_alias()?;
        let columns = if alias.is_some() && self.is_op("(") { self.paren_list(Self::ident)? } else { Vec::new() };
        Ok(TableRef::Func { call, alias, columns })
    }

    fn parenthesised_table(&mut self) -> Result<TableRef> {
        self.deeper(|p| {
            if p.is_kw_at(1, "values") || p.starts_query() && !p.parens_hold_join() {
                p.expect_op("(")?;
                let query = Box::new(p.query()?);
                p.expect_op(")")?;
                let alias = p.table_alias()?;
                let Some(alias) = alias else { return Err(p.unexpected()) };
                let columns = if p.is_op("(") { p.paren_list(Self::ident)? } else { Vec::new() };
                if p.is_any_kw(&["pivot", "unpivot"]) {
                    return Err(error::unsupported("PIVOT").at_line(p.line()));
                }
                return Ok(TableRef::Derived { query, alias, columns });
            }
            p.expect_op("(")?;
            let inner = p.table_ref()?;
            p.expect_op(")")?;
            Ok(inner)
        })
    }

    /// `((SELECT ...) AS a JOIN ...)` rather than `((SELECT ...) UNION ...) AS a`.
    fn parens_hold_join(&self) -> bool {
        let inner = if self.is_op_at(1, "(") { self.behind_parens(1) } else { None };
        inner.is_some_and(|ahead| self.is_kw_at(ahead, "as") || self.is_ident_at(ahead))
    }

    fn table_alias(&mut self) -> Result<Option<String>> {
        if self.take_kw("as") {
            return self.ident().map(Some);
        }
        if self.is_ident() && !self.starts_statement_word() && !self.ends_table_source() {
            return self.ident().map(Some);
        }
        Ok(None)
    }

    /// Non-reserved words that continue a statement after a table source.
    fn ends_table_source(&self) -> bool {
        (self.is_kw("using") || self.is_kw("output") || self.is_kw("apply"))
            || (self.is_kw("enable") || self.is_kw("disable")) && self.is_kw_at(1, "trigger")
            || self.is_kw("throw")
            || self.is_any_kw(&["hash", "loop", "remote"]) && self.is_kw_at(1, "join")
    }

    /// `FROM t (NOLOCK)`.
    fn is_old_style_hint(&self) -> bool {
        let Tok::Word { text, quoted: false } = &self.token(1).tok else { return false };
        let hint = hint_names().contains(&text.to_ascii_lowercase().as_str());
        hint && (self.is_op_at(2, ")") || self.is_op_at(2, ","))
    }

    pub(super) fn table_hints(&mut self) -> Result<Hints> {
        let mut hints = Hints::default();
        if self.is_kw("with") && self.is_op_at(1, "(") {
            self.advance();
        } else if !(self.is_op("(") && self.is_old_style_hint()) {
            return Ok(hints);
        }
        self.expect_op("(")?;
        loop {
            self.table_hint(&mut hints)?;
            let _ = self.take_op(",");
            if self.take_op(")") {
                return Ok(hints);
            }
        }
    }

    fn table_hint(&mut self, hints: &mut Hints) -> Result<()> {
        let Some(word) = self.word() else { return Err(self.unexpected()) };
        match word.as_str() {
            "tablock" => hints.tablock = true,
            "tablockx" => hints.tablockx = true,
            "holdlock" | "serializable" => hints.holdlock = true,
            "updlock" => hints.updlock = true,
            "xlock" => hints.xlock = true,
            "nolock" | "readuncommitted" => hints.nolock = true,
            "readpast" => hints.readpast = true,
            "nowait" => hints.nowait = true,
            "readcommitted" | "readcommittedlock" => hints.readcommitted = true,
            "repeatableread" => hints.repeatable = true,
            "rowlock" | "paglock" => hints.rowlock = true,
            "noexpand" | "keepidentity" | "keepdefaults" | "ignore_constraints" | "ignore_triggers" | "snapshot" => {}
            "index" | "forceseek" | "forcescan" | "spatial_window_max_cells" => {
                self.advance();
                if self.is_op("(") {
                    return self.skip_parens();
                }
                if self.take_op("=") {
                    self.advance();
                }
                return Ok(());
            }
            _ => {
                let message = format!(
                    "\"{word}\" is not a recognized table hints option. If it is intended as a parameter to a table-valued function or to the CHANGETABLE function, ensure that your database compatibility mode is set to 90."
                );
                return Err(error::new(321, 15, 1, &message).at_line(self.line()));
            }
        }
        self.advance();
        Ok(())
    }
}

fn hint_names() -> &'static [&'static str] {
    &[
        "tablock",
        "tablockx",
        "holdlock",
        "serializable",
        "updlock",
        "xlock",
        "nolock",
        "readuncommitted",
        "readpast",
        "nowait",
        "readcommitted",
        "readcommittedlock",
        "repeatableread",
        "rowlock",
        "paglock",
    ]
}

fn merge_hints(a: Hints, b: Hints) -> Hints {
    Hints {
        tablock: a.tablock || b.tablock,
        tablockx: a.tablockx || b.tablockx,
        holdlock: a.holdlock || b.holdlock,
        updlock: a.updlock || b.updlock,
        xlock: a.xlock || b.xlock,
        nolock: a.nolock || b.nolock,
        readpast: a.readpast || b.readpast,
        nowait: a.nowait || b.nowait,
        readcommitted: a.readcommitted || b.readcommitted,
        repeatable: a.repeatable || b.repeatable,
        rowlock: a.rowlock || b.rowlock,
    }
}

fn join(kind: JoinKind, left: TableRef, right: TableRef, on: Option<Expr>) -> TableRef {
    TableRef::Join { kind, left: Box::new(left), right: Box::new(right), on }
}
