//! Recursive-descent parser of T-SQL (see docs/adr/0003-test-sql-server.md for why it is an own one).

mod alter;
mod cursor;
mod ddl;
mod dml;
mod exec;
mod expr;
mod keywords;
mod module;
mod principal;
mod query;
mod statement;
mod table;

use super::api::SqlError;
use super::ast::{Expr, Name, TypeName};
use super::error::{self, Result};
use super::lexer::{Tok, Token, tokenize};
use super::stmt::Stmt;

/// Deepest nesting of expressions, queries and blocks.
const MAX_DEPTH: u32 = 120;
/// Operators of one chain; its tree is bound and dropped by recursion.
const MAX_CHAIN: u32 = 2000;

/// Parses a whole batch.
///
/// # Errors
/// The first syntax error, with its line.
pub(crate) fn parse_batch(text: &str, quoted_identifier: bool) -> Result<Vec<Stmt>> {
    let mut parser = Parser::new(text, quoted_identifier)?;
    parser.batch()
}

/// Parses the text of one expression (stored defaults, checks and computed columns).
pub(crate) fn parse_expression(text: &str) -> Result<Expr> {
    let mut parser = Parser::new(text, true)?;
    let expr = parser.expr()?;
    parser.expect_end()?;
    Ok(expr)
}

/// Parses a parameter list such as `@a int, @b nvarchar(10) OUTPUT`.
pub(crate) fn parse_parameters(text: &str) -> Result<Vec<super::stmt::Param>> {
    let mut parser = Parser::new(text, true)?;
    if parser.peek() == &Tok::End {
        return Ok(Vec::new());
    }
    let params = parser.parameters()?;
    parser.expect_end()?;
    Ok(params)
}

/// Parses a possibly bracketed name of up to four parts.
pub(crate) fn parse_name(text: &str) -> Result<Name> {
    let mut parser = Parser::new(text, true)?;
    let name = parser.name_any()?;
    parser.expect_end()?;
    Ok(name)
}

/// Parses a type name.
pub(crate) fn parse_type(text: &str) -> Result<TypeName> {
    let mut parser = Parser::new(text, true)?;
    let ty = parser.type_name()?;
    parser.expect_end()?;
    Ok(ty)
}

pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, quoted_identifier: bool) -> Result<Self> {
        Ok(Self { text, tokens: tokenize(text, quoted_identifier)?, at: 0, depth: 0 })
    }

    /// Counts the operators of one chain (`1 + 1 + 1`), whose tree is as deep as the chain is long.
    fn chained(&self, links: &mut u32) -> Result<()> {
        *links += 1;
        if *links > MAX_CHAIN { Err(self.too_deep()) } else { Ok(()) }
    }

    fn too_deep(&self) -> SqlError {
        let message = "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.";
        error::new(191, 15, 1, message).at_line(self.line())
    }

    /// Runs `body` one level deeper; the limit keeps foreign text from exhausting the stack.
    fn deeper<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let result = body(self);
        self.depth -= 1;
        result
    }

    fn token(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)]
    }

    fn peek(&self) -> &Tok {
        &self.token(0).tok
    }

    fn line(&self) -> u32 {
        self.token(0).line
    }

    fn start(&self) -> usize {
        self.token(0).start
    }

    /// End of the token before the current one.
    fn end(&self) -> usize {
        if self.at == 0 { 0 } else { self.tokens[self.at - 1].end }
    }

    fn text_from(&self, start: usize) -> String {
        self.text[start..self.end().max(start)].to_owned()
    }

    fn advance(&mut self) {
        if self.at < self.tokens.len() - 1 {
            self.at += 1;
        }
    }

    fn unexpected(&self) -> SqlError {
        self.unexpected_at(self.token(0))
    }

    fn unexpected_at(&self, token: &Token) -> SqlError {
        let near = match &token.tok {
            Tok::Word { text, quoted: false } if keywords::is_reserved(text) => {
                return error::syntax_keyword(text, token.line);
            }
            Tok::Word { text, .. } | Tok::Str { text, .. } => text.as_str(),
            Tok::End => {
                // SQL Server names the last token of the text.
                let index = self.tokens.len().saturating_sub(2);
                let last = &self.tokens[index];
                if last.tok == Tok::End {
                    return error::syntax("", token.line);
                }
                return self.unexpected_at(last);
            }
            _ => &self.text[token.start..token.end],
        };
        error::syntax(near, token.line)
    }

    fn expect_end(&self) -> Result<()> {
        if self.peek() == &Tok::End { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Tok::Op(o) if *o == op)
    }

    fn is_op_at(&self, ahead: usize, op: &str) -> bool {
        matches!(&self.token(ahead).tok, Tok::Op(o) if *o == op)
    }

    /// How far ahead the token behind a group in parentheses stands whose first token stands `ahead`; none if the group
    /// does not end.
    fn behind_parens(&self, mut ahead: usize) -> Option<usize> {
        let mut depth = 0;
        loop {
            match &self.token(ahead).tok {
                Tok::Op("(") => depth += 1,
                Tok::Op(")") => depth -= 1,
                Tok::End => return None,
                _ => {}
            }
            ahead += 1;
            if depth == 0 {
                return Some(ahead);
            }
        }
    }

    fn take_op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        if found {
            self.advance();
        }
        found
    }

    fn expect_op(&mut self, op: &str) -> Result<()> {
        if self.take_op(op) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_kw(&self, keyword: &str) -> bool {
        self.is_kw_at(0, keyword)
    }

    fn is_kw_at(&self, ahead: usize, keyword: &str) -> bool {
        matches!(&self.token(ahead).tok, Tok::Word { text, quoted: false } if text.eq_ignore_ascii_case(keyword))
    }

    fn is_any_kw(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|k| self.is_kw(k))
    }

    fn take_kw(&mut self, keyword: &str) -> bool {
        let found = self.is_kw(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Takes the keywords when all of them follow in order.
    fn take_kws(&mut self, keywords: &[&str]) -> bool {
        let found = keywords.iter().enumerate().all(|(i, k)| self.is_kw_at(i, k));
        if found {
            self.at += keywords.len();
        }
        found
    }

    fn expect_kw(&mut self, keyword: &str) -> Result<()> {
        if self.take_kw(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_kws(&mut self, keywords: &[&str]) -> Result<()> {
        keywords.iter().try_for_each(|k| self.expect_kw(k))
    }

    /// An unquoted word in lower case, without moving on.
    fn word(&self) -> Option<String> {
        match self.peek() {
            Tok::Word { text, quoted: false } => Some(text.to_ascii_lowercase()),
            _ => None,
        }
    }

    fn is_ident(&self) -> bool {
        self.is_ident_at(0)
    }

    fn is_ident_at(&self, ahead: usize) -> bool {
        match &self.token(ahead).tok {
            Tok::Word { text, quoted } => *quoted || !keywords::is_reserved(text),
            _ => false,
        }
    }

    fn ident(&mut self) -> Result<String> {
        if !self.is_ident() {
            return Err(self.unexpected());
        }
        let Tok::Word { text, quoted } = self.peek() else { return Err(self.unexpected()) };
        let (text, quoted) = (text.clone(), *quoted);
        if quoted && text.is_empty() {
            let message = "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name.";
            return Err(error::new(1038, 15, 4, message).at_line(self.line()));
        }
        if text.chars().count() > 128 {
            let shown: String = text.chars().take(128).collect();
            let message = format!("The identifier that starts with '{shown}' is too long. Maximum length is 128.");
            return Err(error::new(103, 15, 4, &message).at_line(self.line()));
        }
        self.advance();
        Ok(text)
    }

    fn var(&mut self) -> Result<String> {
        match self.peek() {
            Tok::Var(name) if !name.starts_with("@@") => {
                let name = name.clone();
                self.advance();
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name of one to four parts; middle parts may be omitted (`db..t`).
    fn name(&mut self) -> Result<Name> {
        let mut parts = vec![self.ident()?];
        self.name_rest(&mut parts)?;
        Ok(Name { parts })
    }

    fn name_rest(&mut self, parts: &mut Vec<String>) -> Result<()> {
        while self.is_op(".") && (self.is_ident_at(1) || self.is_op_at(1, ".") || self.is_word_at(1)) {
            self.advance();
            if self.is_op(".") {
                parts.push(String::new());
                continue;
            }
            // After a point even a reserved word is a name part.
            match self.peek() {
                Tok::Word { text, .. } => parts.push(text.clone()),
                _ => return Err(self.unexpected()),
            }
            self.advance();
        }
        if parts.len() > 4 {
            let message = format!(
                "The object name '{}' contains more than the maximum number of prefixes. The maximum is 3.",
                parts.join(".")
            );
            return Err(error::new(117, 15, 1, &message).at_line(self.line()));
        }
        Ok(())
    }

    fn is_word_at(&self, ahead: usize) -> bool {
        matches!(self.token(ahead).tok, Tok::Word { .. })
    }

    /// A name whose first part may be a reserved word (arguments of OBJECT_ID and the like).
    fn name_any(&mut self) -> Result<Name> {
        let mut parts = Vec::new();
        if self.is_op(".") {
            parts.push(String::new());
        } else {
            match self.peek() {
                Tok::Word { text, .. } => parts.push(text.clone()),
                _ => return Err(self.unexpected()),
            }
            self.advance();
        }
        self.name_rest(&mut parts)?;
        Ok(Name { parts })
    }

    /// Comma-separated items.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take_op(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Comma-separated items in parentheses.
    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_op("(")?;
        let items = self.list(item)?;
        self.expect_op(")")?;
        Ok(items)
    }

    fn integer(&mut self) -> Result<i64> {
        let negative = self.take_op("-");
        if !negative {
            self.take_op("+");
        }
        let Tok::Number(digits) = self.peek() else { return Err(self.unexpected()) };
        let value: i64 = digits.parse().map_err(|_| self.unexpected())?;
        self.advance();
        Ok(if negative { -value } else { value })
    }

    fn string(&mut self) -> Result<String> {
        let Tok::Str { text, .. } = self.peek() else { return Err(self.unexpected()) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// Skips a parenthesised group of any tokens.
    fn skip_parens(&mut self) -> Result<()> {
        self.expect_op("(")?;
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                Tok::Op("(") => depth += 1,
                Tok::Op(")") => depth -= 1,
                Tok::End => return Err(self.unexpected()),
                _ => {}
            }
            self.advance();
        }
        Ok(())
    }
}
