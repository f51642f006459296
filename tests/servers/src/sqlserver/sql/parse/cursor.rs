//! Cursors: `DECLARE ... CURSOR`, `OPEN`, `FETCH`, `CLOSE`, `DEALLOCATE`.

use super::super::error::Result;
use super::super::stmt::{CursorAction, FetchFrom, Kind};
use super::Parser;

impl Parser<'_> {
    pub(super) fn cursor_ahead(&self) -> bool {
        (1..5).any(|ahead| self.is_kw_at(ahead, "cursor"))
    }

    pub(super) fn declare_cursor(&mut self) -> Result<Kind> {
        let name = self.ident()?;
        self.take_kw("insensitive");
        self.take_kw("scroll");
        self.expect_kw("cursor")?;
        while !self.is_kw("for") {
            let options = [
                "local",
                "global",
                "forward_only",
                "scroll",
                "static",
                "keyset",
                "dynamic",
                "fast_forward",
                "read_only",
                "scroll_locks",
                "optimistic",
                "type_warning",
            ];
            if !self.is_any_kw(&options) {
                return Err(self.unexpected());
            }
            self.advance();
        }
        self.expect_kw("for")?;
        let query = Box::new(self.query()?);
        if self.take_kw("for") {
            if self.take_kw("read") {
                self.expect_kw("only")?;
            } else {
                self.expect_kw("update")?;
                if self.take_kw("of") {
                    self.list(Self::name)?;
                }
            }
        }
        Ok(Kind::DeclareCursor { name, query })
    }

    pub(super) fn cursor_action(&mut self, word: &str) -> Result<Kind> {
        self.advance();
        self.take_kw("global");
        let action = match word {
            "open" => CursorAction::Open,
            "close" => CursorAction::Close,
            _ => CursorAction::Deallocate,
        };
        Ok(Kind::Cursor { action, name: self.cursor_name()? })
    }

    pub(super) fn fetch(&mut self) -> Result<Kind> {
        self.expect_kw("fetch")?;
        let direction = match self.word().as_deref() {
            Some("next") => FetchFrom::Next,
            Some("prior") => FetchFrom::Prior,
            Some("first") => FetchFrom::First,
            Some("last") => FetchFrom::Last,
            Some("absolute") => {
                self.advance();
                FetchFrom::Absolute(self.additive()?)
            }
            Some("relative") => {
                self.advance();
                FetchFrom::Relative(self.additive()?)
            }
            _ => FetchFrom::Next,
        };
        if self.is_any_kw(&["next", "prior", "first", "last"]) {
            self.advance();
        }
        self.take_kw("from");
        self.take_kw("global");
        let name = self.cursor_name()?;
        let into = if self.take_kw("into") { self.list(Self::var)? } else { Vec::new() };
        Ok(Kind::Fetch { name, direction, into })
    }
}
