//! Queries and table sources.

use super::super::ast::{BinOp, Body, Cte, Expr, Group, Item, Name, Query, Select, SetOp, Top};
use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::Parser;

impl Parser<'_> {
    /// A query with its WITH, ORDER BY and OPTION clauses.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.deeper(|p| {
            let ctes = if p.is_kw("with") { p.ctes()? } else { Vec::new() };
            p.query_after_ctes(ctes)
        })
    }

    pub(super) fn query_after_ctes(&mut self, ctes: Vec<Cte>) -> Result<Query> {
        let body = self.union()?;
        let mut query = Query { ctes, body, ..Query::default() };
        if self.take_kws(&["order", "by"]) {
            query.order = self.list(Self::order_item)?;
            if self.take_kw("offset") {
                query.offset = Some(self.additive()?);
                if !self.take_kw("rows") {
                    self.expect_kw("row")?;
                }
                if self.take_kw("fetch") {
                    if !self.take_kw("next") {
                        self.expect_kw("first")?;
                    }
                    query.fetch = Some(self.additive()?);
                    if !self.take_kw("rows") {
                        self.expect_kw("row")?;
                    }
                    self.expect_kw("only")?;
                }
            }
        }
        if self.is_kw("for") && (self.is_kw_at(1, "json") || self.is_kw_at(1, "xml") || self.is_kw_at(1, "browse")) {
            return Err(error::unsupported("FOR JSON/XML/BROWSE").at_line(self.line()));
        }
        if self.is_kw("option") {
            query.max_recursion = self.options()?;
        }
        Ok(query)
    }

    /// `WITH a (x) AS (...), b AS (...)`.
    pub(super) fn ctes(&mut self) -> Result<Vec<Cte>> {
        self.expect_kw("with")?;
        self.list(|p| {
            let name = p.ident()?;
            let columns = if p.is_op("(") { p.paren_list(Self::ident)? } else { Vec::new() };
            p.expect_kw("as")?;
            p.expect_op("(")?;
            let query = p.query()?;
            p.expect_op(")")?;
            Ok(Cte { name, columns, query })
        })
    }

    /// `OPTION (...)`; only MAXRECURSION has an effect.
    pub(super) fn options(&mut self) -> Result<Option<u32>> {
        self.expect_kw("option")?;
        let mut recursion = None;
        let mut ahead = 0;
        while self.token(ahead).tok != Tok::End && !self.is_op_at(ahead, ")") {
            if self.is_kw_at(ahead, "maxrecursion")
                && let Tok::Number(n) = &self.token(ahead + 1).tok
            {
                recursion = n.parse().ok();
            }
            ahead += 1;
        }
        self.skip_parens()?;
        Ok(recursion)
    }

    fn union(&mut self) -> Result<Body> {
        let mut left = self.intersect()?;
        let mut links = 0;
        loop {
            let op = if self.take_kw("union") {
                if self.take_kw("all") { SetOp::UnionAll } else { SetOp::Union }
            } else if self.take_kw("except") {
                SetOp::Except
            } else {
                return Ok(left);
            };
            self.chained(&mut links)?;
            let right = self.intersect()?;
            left = Body::Set(op, Box::new(left), Box::new(right));
        }
    }

    fn intersect(&mut self) -> Result<Body> {
        let mut left = self.query_term()?;
        let mut links = 0;
        while self.take_kw("intersect") {
            self.chained(&mut links)?;
            let right = self.query_term()?;
            left = Body::Set(SetOp::Intersect, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn query_term(&mut self) -> Result<Body> {
        if self.is_op("(") {
            return self.deeper(|p| {
                p.expect_op("(")?;
                let query = p.query()?;
                p.expect_op(")")?;
                Ok(Body::Nested(Box::new(query)))
            });
        }
        if self.is_kw("values") {
            return self.values().map(Body::Values);
        }
        self.select().map(|s| Body::Select(Box::new(s)))
    }

    /// `VALUES (..), (..)`.
    pub(super) fn values(&mut self) -> Result<Vec<Vec<Expr>>> {
        self.expect_kw("values")?;
        self.list(|p| p.paren_list(Self::expr))
    }

    fn select(&mut self) -> Result<Select> {
        self.expect_kw("select")?;
        let mut select = Select { distinct: self.take_kw("distinct"), ..Select::default() };
        if !select.distinct {
            self.take_kw("all");
        }
        select.top = self.top()?;
        select.items = self.list(Self::select_item)?;
        if self.take_kw("into") {
            select.into = Some(self.name()?);
        }
        if self.take_kw("from") {
            select.from = self.list(Self::table_ref)?;
        }
        if self.take_kw("where") {
            select.filter = Some(self.expr()?);
        }
        if self.take_kws(&["group", "by"]) {
            select.group = Some(self.group_by()?);
        }
        if self.take_kw("having") {
            select.having = Some(self.expr()?);
        }
        Ok(select)
    }

    /// `TOP (n) [PERCENT] [WITH TIES]`.
    pub(super) fn top(&mut self) -> Result<Option<Top>> {
        if !self.take_kw("top") {
            return Ok(None);
        }
        let count = if self.take_op("(") {
            let expr = self.expr()?;
            self.expect_op(")")?;
            expr
        } else {
            match self.peek().clone() {
                Tok::Number(n) => {
                    self.advance();
                    Expr::Literal(super::super::ast::Literal::Number(n))
                }
                Tok::Var(name) => {
                    self.advance();
                    Expr::Var(name)
                }
                _ => return Err(self.unexpected()),
            }
        };
        let percent = self.take_kw("percent");
        let with_ties = self.take_kws(&["with", "ties"]);
        Ok(Some(Top { count, percent, with_ties }))
    }

    pub(super) fn select_item(&mut self) -> Result<Item> {
        if self.take_op("*") {
            return Ok(Item::Star(None));
        }
        if let Some(item) = self.qualified_star() {
            return Ok(item);
        }
        if let Tok::Var(var) = self.peek().clone()
            && let Some((op, width)) = self.assignment_operator(1)
        {
            self.at += 1 + width;
            let expr = self.expr()?;
            return Ok(Item::Assign { var, op, expr });
        }
        // `alias = expr`
        if (self.is_ident() || matches!(self.peek(), Tok::Str { .. })) && self.is_op_at(1, "=") {
            let alias = self.alias_word()?;
            self.expect_op("=")?;
            let expr = self.expr()?;
            return Ok(Item::Expr { expr, alias: Some(alias) });
        }
        let expr = self.expr()?;
        let alias = self.select_alias()?;
        Ok(Item::Expr { expr, alias })
    }

    fn alias_word(&mut self) -> Result<String> {
        if let Tok::Str { text, .. } = self.peek().clone() {
            self.advance();
            return Ok(text);
        }
        self.ident()
    }

    fn select_alias(&mut self) -> Result<Option<String>> {
        if self.take_kw("as") {
            return self.alias_word().map(Some);
        }
        if self.is_ident() && !self.starts_statement_word() || matches!(self.peek(), Tok::Str { .. }) {
            return self.alias_word().map(Some);
        }
        Ok(None)
    }

    /// Non-reserved words that begin a statement and so cannot be an alias without AS.
    pub(super) fn starts_statement_word(&self) -> bool {
        (self.is_kw("throw") && (self.is_op_at(1, ";") || self.token(1).tok == Tok::End))
            || self.is_kw("go")
            || (self.is_kw("offset") && !self.is_op_at(1, ","))
    }

    fn qualified_star(&mut self) -> Option<Item> {
        let mut ahead = 0;
        let mut parts = Vec::new();
        while let Tok::Word { text, .. } = &self.token(ahead).tok {
            parts.push(text.clone());
            if !self.is_op_at(ahead + 1, ".") {
                return None;
            }
            ahead += 2;
            if self.is_op_at(ahead, "*") {
                self.at += ahead + 1;
                return Some(Item::Star(Some(Name { parts })));
            }
        }
        None
    }

    /// `=` or a compound assignment at `ahead`: the operator and its width in tokens.
    pub(super) fn assignment_operator(&self, ahead: usize) -> Option<(Option<BinOp>, usize)> {
        let op = match &self.token(ahead).tok {
            Tok::Op("=") => None,
            Tok::Op("+=") => Some(BinOp::Add),
            Tok::Op("-=") => Some(BinOp::Sub),
            Tok::Op("*=") => Some(BinOp::Mul),
            Tok::Op("/=") => Some(BinOp::Div),
            Tok::Op("%=") => Some(BinOp::Mod),
            Tok::Op("&=") => Some(BinOp::BitAnd),
            Tok::Op("|=") => Some(BinOp::BitOr),
            Tok::Op("^=") => Some(BinOp::BitXor),
            _ => return None,
        };
        Some((op, 1))
    }

    fn group_by(&mut self) -> Result<Group> {
        self.take_kw("all");
        let mut sets: Vec<Vec<Expr>> = vec![Vec::new()];
        loop {
            let element = self.group_element()?;
            // Elements of GROUP BY multiply: each grouping set of one is combined with each of the others.
            sets = sets
                .iter()
                .flat_map(|left| element.iter().map(move |right| left.iter().chain(right).cloned().collect()))
                .collect();
            if !self.take_op(",") {
                break;
            }
        }
        if self.is_kw("with") && (self.is_kw_at(1, "rollup") || self.is_kw_at(1, "cube")) {
            let rollup = self.is_kw_at(1, "rollup");
            self.at += 2;
            let all = sets.pop().unwrap_or_default();
            let items = all.into_iter().map(|e| vec![e]).collect();
            sets = if rollup { rollup_sets(items) } else { cube_sets(items) };
        }
        Ok(Group { sets })
    }

    fn group_element(&mut self) -> Result<Vec<Vec<Expr>>> {
        if self.is_kw("rollup") && self.is_op_at(1, "(") {
            self.advance();
            return Ok(rollup_sets(self.paren_list(Self::group_item)?));
        }
        if self.is_kw("cube") && self.is_op_at(1, "(") {
            self.advance();
            return Ok(cube_sets(self.paren_list(Self::group_item)?));
        }
        if self.is_kw("grouping") && self.is_kw_at(1, "sets") {
            self.at += 2;
            let nested = self.paren_list(|p| {
                if p.is_kw("rollup") || p.is_kw("cube") {
                    p.group_element()
                } else {
                    p.group_item().map(|item| vec![item])
                }
            })?;
            return Ok(nested.into_iter().flatten().collect());
        }
        if self.is_op("(") && self.is_op_at(1, ")") {
            self.at += 2;
            return Ok(vec![Vec::new()]);
        }
        Ok(vec![vec![self.expr()?]])
    }

    fn group_item(&mut self) -> Result<Vec<Expr>> {
        if self.is_op("(") {
            self.advance();
            if self.take_op(")") {
                return Ok(Vec::new());
            }
            let items = self.list(Self::expr)?;
            self.expect_op(")")?;
            return Ok(items);
        }
        Ok(vec![self.expr()?])
    }
}

fn rollup_sets(items: Vec<Vec<Expr>>) -> Vec<Vec<Expr>> {
    (0..=items.len()).rev().map(|n| items[..n].concat()).collect()
}

fn cube_sets(items: Vec<Vec<Expr>>) -> Vec<Vec<Expr>> {
    let count = items.len().min(12);
    (0..1_u32 << count)
        .rev()
        .map(|mask| (0..count).filter(|i| mask & (1 << (count - 1 - i)) != 0).flat_map(|i| items[i].clone()).collect())
        .collect()
}
