//! Expressions and conditions.

use super::super::ast::{BinOp, Bound, Expr, Frame, FuncCall, Literal, Name, OrderItem, Over, TypeArg, TypeName, UnOp};
use super::super::error::Result;
use super::super::lexer::Tok;
use super::Parser;

/// Functions written without parentheses.
const NILADIC: &[&str] = &["current_timestamp", "current_user", "session_user", "system_user", "user", "current_date"];

/// Reserved words that are also function names.
const KEYWORD_FUNCTIONS: &[&str] =
    &["left", "right", "coalesce", "nullif", "try_convert", "convert", "contains", "update"];

impl Parser<'_> {
    /// An expression or a condition.
    pub(super) fn expr(&mut self) -> Result<Expr> {
        self.deeper(Self::or)
    }

    fn or(&mut self) -> Result<Expr> {
        let mut left = self.and()?;
        let mut links = 0;
        while self.take_kw("or") {
            self.chained(&mut links)?;
            let right = self.and()?;
            left = Expr::Binary(BinOp::Or, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr> {
        let mut left = self.not()?;
        let mut links = 0;
        while self.take_kw("and") {
            self.chained(&mut links)?;
            let right = self.not()?;
            left = Expr::Binary(BinOp::And, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr> {
        if self.take_kw("not") {
            let inner = self.deeper(Self::not)?;
            return Ok(Expr::Unary(UnOp::Not, Box::new(inner)));
        }
        self.predicate()
    }

    fn comparison_operator(&mut self) -> Option<BinOp> {
        let op = match self.peek() {
            Tok::Op("=") => BinOp::Eq,
            Tok::Op("<>" | "!=") => BinOp::Ne,
            Tok::Op("<") => BinOp::Lt,
            Tok::Op("<=" | "!>") => BinOp::Le,
            Tok::Op(">") => BinOp::Gt,
            Tok::Op(">=" | "!<") => BinOp::Ge,
            _ => return None,
        };
        self.advance();
        Some(op)
    }

    fn predicate(&mut self) -> Result<Expr> {
        if self.is_kw("exists") && self.is_op_at(1, "(") {
            self.advance();
            self.expect_op("(")?;
            let query = self.query()?;
            self.expect_op(")")?;
            return Ok(Expr::Exists(Box::new(query)));
        }
        let left = self.additive()?;
        if let Some(op) = self.comparison_operator() {
            return self.comparison_rest(left, op);
        }
        let negated = self.is_kw("not") && ["like", "in", "between"].iter().any(|k| self.is_kw_at(1, k));
        if negated {
            self.advance();
        }
        if self.take_kw("like") {
            let pattern = Box::new(self.additive()?);
            let escape = if self.take_kw("escape") { Some(Box::new(self.additive()?)) } else { None };
            return Ok(Expr::Like { expr: Box::new(left), pattern, escape, negated });
        }
        if self.take_kw("between") {
            let low = Box::new(self.additive()?);
            self.expect_kw("and")?;
            let high = Box::new(self.additive()?);
            return Ok(Expr::Between { expr: Box::new(left), low, high, negated });
        }
        if self.take_kw("in") {
            return self.in_rest(left, negated);
        }
        if self.take_kw("is") {
            let negated = self.take_kw("not");
            self.expect_kw("null")?;
            return Ok(Expr::IsNull { expr: Box::new(left), negated });
        }
        Ok(left)
    }

    fn comparison_rest(&mut self, left: Expr, op: BinOp) -> Result<Expr> {
        let quantifier = self.is_any_kw(&["all", "any", "some"]) && self.is_op_at(1, "(");
        if quantifier {
            let all = self.is_kw("all");
            self.advance();
            self.expect_op("(")?;
            let query = Box::new(self.query()?);
            self.expect_op(")")?;
            return Ok(Expr::Quantified { expr: Box::new(left), op, all, query });
        }
        let right = self.additive()?;
        Ok(Expr::Binary(op, Box::new(left), Box::new(right)))
    }

    fn in_rest(&mut self, left: Expr, negated: bool) -> Result<Expr> {
        self.expect_op("(")?;
        if self.starts_query() {
            let query = Box::new(self.query()?);
            self.expect_op(")")?;
            return Ok(Expr::InQuery { expr: Box::new(left), query, negated });
        }
        let list = self.list(Self::expr)?;
        self.expect_op(")")?;
        Ok(Expr::InList { expr: Box::new(left), list, negated })
    }

    /// Whether a query starts here, also behind opening parentheses.
    pub(super) fn starts_query(&self) -> bool {
        let mut ahead = 0;
        while self.is_op_at(ahead, "(") {
            ahead += 1;
        }
        self.is_kw_at(ahead, "select") || (ahead == 0 && self.is_kw("with"))
    }

    pub(super) fn additive(&mut self) -> Result<Expr> {
        let mut left = self.multiplicative()?;
        let mut links = 0;
        loop {
            let op = match self.peek() {
                Tok::Op("+") => BinOp::Add,
                Tok::Op("-") => BinOp::Sub,
                Tok::Op("&") => BinOp::BitAnd,
                Tok::Op("|") => BinOp::BitOr,
                Tok::Op("^") => BinOp::BitXor,
                _ => return Ok(left),
            };
            self.chained(&mut links)?;
            self.advance();
            let right = self.multiplicative()?;
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
    }

    fn multiplicative(&mut self) -> Result<Expr> {
        let mut left = self.unary()?;
        let mut links = 0;
        loop {
            let op = match self.peek() {
                Tok::Op("*") => BinOp::Mul,
                Tok::Op("/") => BinOp::Div,
                Tok::Op("%") => BinOp::Mod,
                _ => return Ok(left),
            };
            self.chained(&mut links)?;
            self.advance();
            let right = self.unary()?;
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
    }

    fn unary(&mut self) -> Result<Expr> {
        let op = match self.peek() {
            Tok::Op("-") => UnOp::Minus,
            Tok::Op("+") => UnOp::Plus,
            Tok::Op("~") => UnOp::BitNot,
            _ => return self.postfix(),
        };
        self.advance();
        let inner = self.deeper(Self::unary)?;
        // A minus before a literal belongs to it, so that -9223372036854775808 and -2147483648 keep their types.
        if op == UnOp::Minus {
            match &inner {
                Expr::Literal(Literal::Number(n)) if !n.starts_with('-') => {
                    return Ok(Expr::Literal(Literal::Number(format!("-{n}"))));
                }
                Expr::Literal(Literal::Float(n)) if !n.starts_with('-') => {
                    return Ok(Expr::Literal(Literal::Float(format!("-{n}"))));
                }
                _ => {}
            }
        }
        Ok(Expr::Unary(op, Box::new(inner)))
    }

    fn postfix(&mut self) -> Result<Expr> {
        let mut expr = self.primary()?;
        loop {
            if self.take_kw("collate") {
                let name = self.ident()?;
                expr = Expr::Collate(Box::new(expr), name);
            } else if self.is_kw("at") && self.is_kw_at(1, "time") && self.is_kw_at(2, "zone") {
                self.at += 3;
                let zone = self.primary()?;
                expr = Expr::AtTimeZone(Box::new(expr), Box::new(zone));
            } else {
                return Ok(expr);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let literal = match self.peek().clone() {
            Tok::Number(text) => Literal::Number(text),
            Tok::Float(text) => Literal::Float(text),
            Tok::Money(text) => Literal::Money(text),
            Tok::Str { text, national } => Literal::Str { text, national },
            Tok::Binary(bytes) => Literal::Binary(bytes),
            Tok::Var(name) => {
                self.advance();
                return Ok(Expr::Var(name));
            }
            Tok::Op("(") => return self.parenthesised(),
            Tok::Word { quoted, text } => return self.word_primary(&text, quoted),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Expr::Literal(literal))
    }

    fn parenthesised(&mut self) -> Result<Expr> {
        self.deeper(|p| {
            if p.starts_query_in_parens() {
                p.expect_op("(")?;
                let query = p.query()?;
                p.expect_op(")")?;
                return Ok(Expr::Subquery(Box::new(query)));
            }
            p.expect_op("(")?;
            let inner = p.expr()?;
            p.expect_op(")")?;
            Ok(inner)
        })
    }

    /// `(SELECT`, also `((SELECT ...) UNION ...)`; `((SELECT 1) + 1)` is an expression.
    fn starts_query_in_parens(&self) -> bool {
        if self.is_kw_at(1, "select") {
            return true;
        }
        if !self.is_op_at(1, "(") || !self.starts_query() {
            return false;
        }
        self.behind_parens(1)
            .is_some_and(|ahead| ["union", "except", "intersect"].iter().any(|k| self.is_kw_at(ahead, k)))
    }

    fn word_primary(&mut self, text: &str, quoted: bool) -> Result<Expr> {
        if !quoted {
            let lower = text.to_ascii_lowercase();
            if lower == "null" {
                self.advance();
                return Ok(Expr::Literal(Literal::Null));
            }
            if let Some(expr) = self.special_form(&lower)? {
                return Ok(expr);
            }
        }
        if !self.is_ident() {
            return Err(self.unexpected());
        }
        let name = self.name()?;
        if self.is_op("(") {
            return self.call(name);
        }
        // `$action` lexes as an operator sequence elsewhere; `t.*` is handled by the select list.
        Ok(Expr::Column(name))
    }

    fn special_form(&mut self, lower: &str) -> Result<Option<Expr>> {
        let called = self.is_op_at(1, "(");
        match lower {
            "case" => return self.case().map(Some),
            "default" => {
                self.advance();
                return Ok(Some(Expr::Default));
            }
            "cast" | "try_cast" if called => return self.cast(lower == "try_cast").map(Some),
            "convert" | "try_convert" if called => return self.convert(lower == "try_convert").map(Some),
            "parse" | "try_parse" if called => {
                return Err(super::super::error::unsupported("PARSE").at_line(self.line()));
            }
            "next" if self.is_kw_at(1, "value") && self.is_kw_at(2, "for") => {
                self.at += 3;
                return Ok(Some(Expr::NextValue(self.name()?)));
            }
            _ => {}
        }
        if NILADIC.contains(&lower) && !called {
            self.advance();
            return Ok(Some(Self::plain_call(lower, Vec::new())));
        }
        if KEYWORD_FUNCTIONS.contains(&lower) && called {
            self.advance();
            return self.call(Name::single(lower)).map(Some);
        }
        Ok(None)
    }

    fn plain_call(name: &str, args: Vec<Expr>) -> Expr {
        Expr::Func(Box::new(FuncCall {
            name: Name::single(name),
            args,
            star: false,
            distinct: false,
            within_group: Vec::new(),
            over: None,
        }))
    }

    fn case(&mut self) -> Result<Expr> {
        self.expect_kw("case")?;
        let operand = if self.is_kw("when") { None } else { Some(Box::new(self.expr()?)) };
        let mut whens = Vec::new();
        while self.take_kw("when") {
            let when = self.expr()?;
            self.expect_kw("then")?;
            whens.push((when, self.expr()?));
        }
        if whens.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = if self.take_kw("else") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_kw("end")?;
        Ok(Expr::Case { operand, whens, otherwise })
    }

    fn cast(&mut self, attempt: bool) -> Result<Expr> {
        self.advance();
        self.expect_op("(")?;
        let expr = Box::new(self.expr()?);
        self.expect_kw("as")?;
        let ty = self.type_name()?;
        self.expect_op(")")?;
        Ok(Expr::Cast { expr, ty, attempt })
    }

    fn convert(&mut self, attempt: bool) -> Result<Expr> {
        self.advance();
        self.expect_op("(")?;
        let ty = self.type_name()?;
        self.expect_op(",")?;
        let expr = Box::new(self.expr()?);
        let style = if self.take_op(",") { Some(Box::new(self.expr()?)) } else { None };
        self.expect_op(")")?;
        Ok(Expr::Convert { expr, ty, style, attempt })
    }

    pub(super) fn call(&mut self, name: Name) -> Result<Expr> {
        self.expect_op("(")?;
        let mut call =
            FuncCall { name, args: Vec::new(), star: false, distinct: false, within_group: Vec::new(), over: None };
        if self.is_op("*") && self.is_op_at(1, ")") {
            self.advance();
            call.star = true;
        } else if !self.is_op(")") {
            call.distinct = self.take_kw("distinct");
            if !call.distinct {
                self.take_kw("all");
            }
            call.args = self.list(Self::argument)?;
        }
        self.expect_op(")")?;
        if self.take_kws(&["within", "group"]) {
            self.expect_op("(")?;
            self.expect_kws(&["order", "by"])?;
            call.within_group = self.list(Self::order_item)?;
            self.expect_op(")")?;
        }
        if self.is_kw("over") {
            call.over = Some(self.over()?);
        }
        Ok(Expr::Func(Box::new(call)))
    }

    /// An argument; date parts are bare words and parse as columns.
    fn argument(&mut self) -> Result<Expr> {
        if self.starts_query() && self.is_kw("select") {
            return Err(self.unexpected());
        }
        self.expr()
    }

    fn over(&mut self) -> Result<Over> {
        self.expect_kw("over")?;
        self.expect_op("(")?;
        let mut over = Over { partition: Vec::new(), order: Vec::new(), frame: None };
        if self.take_kws(&["partition", "by"]) {
            over.partition = self.list(Self::expr)?;
        }
        if self.take_kws(&["order", "by"]) {
            over.order = self.list(Self::order_item)?;
        }
        if self.is_any_kw(&["rows", "range"]) {
            over.frame = Some(self.frame()?);
        }
        self.expect_op(")")?;
        Ok(over)
    }

    fn frame(&mut self) -> Result<Frame> {
        let rows = self.is_kw("rows");
        self.advance();
        if self.take_kw("between") {
            let start = self.bound()?;
            self.expect_kw("and")?;
            let end = self.bound()?;
            return Ok(Frame { rows, start, end });
        }
        let start = self.bound()?;
        Ok(Frame { rows, start, end: Bound::Current })
    }

    fn bound(&mut self) -> Result<Bound> {
        if self.take_kws(&["current", "row"]) {
            return Ok(Bound::Current);
        }
        if self.take_kws(&["unbounded", "preceding"]) {
            return Ok(Bound::UnboundedPreceding);
        }
        if self.take_kws(&["unbounded", "following"]) {
            return Ok(Bound::UnboundedFollowing);
        }
        let n = self.integer()?;
        let n = u64::try_from(n).map_err(|_| self.unexpected())?;
        if self.take_kw("preceding") {
            return Ok(Bound::Preceding(n));
        }
        self.expect_kw("following")?;
        Ok(Bound::Following(n))
    }

    pub(super) fn order_item(&mut self) -> Result<OrderItem> {
        let expr = self.expr()?;
        let descending = self.take_kw("desc");
        if !descending {
            self.take_kw("asc");
        }
        Ok(OrderItem { expr, descending })
    }

    /// A type with its length, precision or scale.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let national = self.take_kw("national");
        let mut name = if self.take_kws(&["double", "precision"]) {
            "float".to_owned()
        } else {
            // A schema before a type name (sys.int, dbo.mytype) is kept only when it is not sys.
            let name = self.name()?;
            match name.schema() {
                Some(schema) if !schema.eq_ignore_ascii_case("sys") => name.display(),
                _ => name.base().to_owned(),
            }
        };
        if self.take_kw("varying") {
            name = format!("var{}", name.to_ascii_lowercase().replace("character", "char"));
        }
        if national {
            name = format!("n{}", name.to_ascii_lowercase().replace("character", "char"));
        }
        let mut args = Vec::new();
        if self.take_op("(") {
            args = self.list(|p| {
                if p.take_kw("max") {
                    return Ok(TypeArg::Max);
                }
                let n = p.integer()?;
                u32::try_from(n).map(TypeArg::Number).map_err(|_| p.unexpected())
            })?;
            self.expect_op(")")?;
        }
        Ok(TypeName { name, args })
    }
}
