//! What a server must know of a statement before the engine sees it: whether rows of the client belong to it, and where its
//! text ends and data begins.
//!
//! The engine embeds a client, which acts on clauses that a server leaves to its clients (FORMAT, INTO OUTFILE). This module
//! finds them by tokens only; the text itself is handed over as it came. An INSERT is handed over up to its VALUES or FORMAT,
//! which is the form that the engine's interface for streamed rows asks for.

/// A statement, judged by its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// An INSERT whose rows come apart from its text.
    Insert(Insert),
    /// Everything else, INSERT ... SELECT and INSERT with rows in its text included.
    Other(Clauses),
}

/// An INSERT that awaits rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Insert {
    /// Where the text up to VALUES or FORMAT ends.
    pub(crate) head_end: usize,
    /// The table or table function as written, without the column list.
    pub(crate) target: String,
    /// The columns as listed; empty for all.
    pub(crate) columns: Vec<String>,
    /// The format as written; `Values` when the statement says VALUES.
    pub(crate) format: String,
    /// Where data in the text would begin.
    pub(crate) data_start: usize,
}

/// Clauses that concern the one who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clauses {
    /// Where the name of the output format stands.
    pub(crate) format: Option<(usize, usize)>,
    /// The statement writes its result to a file of the client.
    pub(crate) into_outfile: bool,
    /// The statement asks for a row of totals.
    pub(crate) totals: bool,
    /// Where the last token ends that is not a semicolon.
    pub(crate) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    Quoted,
    Text,
    Sign,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    start: usize,
    /// Nesting of parentheses and brackets around the token.
    depth: usize,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Splits a text into tokens, leaving out blanks and comments.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Tokens { text, at: 0, depth: 0 }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = &self.text[self.at..];
            let comment = if rest.starts_with("--") || rest.starts_with("#!") || rest.starts_with("# ") {
                rest.find('\n').map_or(rest.len(), |at| at + 1)
            } else if rest.starts_with("/*") {
                block_comment(rest)
            } else {
                0
            };
            self.at += comment;
            if blank == 0 && comment == 0 {
                return;
            }
        }
    }
}

/// The length of a block comment, which may hold others.
fn block_comment(text: &str) -> usize {
    let (bytes, mut at, mut open) = (text.as_bytes(), 2, 1_usize);
    while at < bytes.len() && open > 0 {
        let step = match &bytes[at..] {
            [b'/', b'*', ..] => {
                open += 1;
                2
            }
            [b'*', b'/', ..] => {
                open -= 1;
                2
            }
            _ => 1,
        };
        at += step;
    }
    at.min(bytes.len())
}

/// The length of a quoted piece: a backslash or the doubled quote keeps it open.
fn quoted(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// The length of a heredoc `$tag$...$tag$`, if the text begins with one.
fn heredoc(text: &str) -> Option<usize> {
    let tag_end = 1 + text[1..].find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let tag = text[tag_end..].starts_with('$').then(|| &text[..=tag_end])?;
    Some(tag.len() + text[tag.len()..].find(tag)? + tag.len())
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let (kind, length) = match first {
            '\'' => (Kind::Text, quoted(rest, '\'')),
            '"' | '`' => (Kind::Quoted, quoted(rest, first)),
            '$' => match heredoc(rest) {
                Some(length) => (Kind::Text, length),
                None => (Kind::Sign, 1),
            },
            _ if word(first) => (Kind::Word, rest.find(|c: char| !word(c)).unwrap_or(rest.len())),
            _ => (Kind::Sign, first.len_utf8()),
        };
        if matches!(first, ')' | ']') {
            self.depth = self.depth.saturating_sub(1);
        }
        let token = Token { kind, text: &rest[..length], start: self.at, depth: self.depth };
        if matches!(first, '(' | '[') {
            self.depth += 1;
        }
        self.at += length;
        Some(token)
    }
}

/// Judges a statement.
pub(crate) fn judge(text: &str) -> Statement {
    let mut tokens = Tokens::new(text);
    match tokens.next() {
        Some(first) if first.is("INSERT") => insert(text, tokens).map_or_else(|| other(text), Statement::Insert),
        _ => other(text),
    }
}

fn other(text: &str) -> Statement {
    let mut clauses = Clauses::default();
    let mut before: Option<Token<'_>> = None;
    let mut is_insert = false;
    for token in Tokens::new(text) {
        is_insert |= before.is_none() && token.is("INSERT");
        if let Some(before) = before.filter(|before| before.depth == 0 && token.depth == 0) {
            if before.is("FORMAT") && matches!(token.kind, Kind::Word | Kind::Quoted) {
                clauses.format = Some((token.start, token.end()));
            }
            clauses.into_outfile |= before.is("INTO") && token.is("OUTFILE");
            clauses.totals |= before.is("WITH") && token.is("TOTALS");
        }
        if token.text != ";" {
            clauses.end = token.end();
        }
        before = Some(token);
        if is_insert && token.depth == 0 && token.is("VALUES") {
            // Rows follow: their text is the engine's to read.
            clauses.end = text.len();
            break;
        }
    }
    clauses.format = clauses.format.filter(|_| !is_insert);
    Statement::Other(clauses)
}

/// An INSERT that awaits rows: `None` when it brings them itself.
fn insert<'a>(text: &'a str, mut tokens: Tokens<'a>) -> Option<Insert> {
    let mut token = tokens.next()?;
    for optional in ["INTO", "TABLE"] {
        if token.is(optional) {
            token = tokens.next()?;
        }
    }
    let target_start = token.start;
    let is_function = token.is("FUNCTION");
    if is_function {
        token = tokens.next()?;
    }
    // A name, perhaps with its database; a function has its arguments besides.
    let mut target_end = token.end();
    let mut next = tokens.next();
    while let Some(sign) = next.filter(|sign| sign.text == "." || (is_function && sign.text == "(")) {
        if sign.text == "." {
            target_end = tokens.next()?.end();
        } else {
            target_end = tokens.by_ref().find(|token| token.text == ")" && token.depth == 0)?.end();
        }
        next = tokens.next();
    }
    let (mut columns, mut head_end) = (Vec::new(), target_end);
    if next.is_some_and(|token| token.text == "(" && token.depth == 0) {
        (columns, head_end) = column_list(&mut tokens)?;
        next = tokens.next();
    }
    let target = text[target_start..target_end].to_owned();
    while let Some(token) = next {
        let data = match () {
            () if token.depth > 0 => None,
            () if token.is("VALUES") => Some((token.end(), "Values".to_owned())),
            () if token.is("FORMAT") => tokens.next().map(|format| (format.end(), format.text.to_owned())),
            () if token.is("SELECT") || token.is("WITH") || token.is("FROM") || token.is("WATCH") => return None,
            () if token.text == "(" && token.depth == 0 => return None,
            () if token.text == ";" => break,
            () => None,
        };
        if let Some((data_start, format)) = data {
            return Some(Insert { head_end: token.start, target, columns, format, data_start });
        }
        head_end = token.end();
        next = tokens.next();
    }
    Some(Insert { head_end, target, columns, format: "Values".to_owned(), data_start: text.len() })
}

/// The names up to the closing parenthesis, which are none for `*`, and where that is; `None` when it is no list of names.
fn column_list<'a>(tokens: &mut Tokens<'a>) -> Option<(Vec<String>, usize)> {
    let (mut columns, mut name, mut after_dot) = (Vec::new(), String::new(), true);
    loop {
        let token = tokens.next()?;
        let closes = token.text == ")" && token.depth == 0;
        if closes || token.text == "," {
            if name.is_empty() {
                return None;
            }
            columns.push(std::mem::take(&mut name));
            after_dot = true;
            if closes {
                let all = columns == ["*"];
                return Some((if all { Vec::new() } else { columns }, token.end()));
            }
            continue;
        }
        let is_dot = token.text == ".";
        if is_dot == after_dot || token.depth != 1 {
            return None;
        }
        after_dot = is_dot;
        name.push_str(&unquote(token.text));
    }
}

/// A name without its quotes.
fn unquote(name: &str) -> String {
    for quote in ['`', '"'] {
        if let Some(inner) = name.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            let doubled: String = [quote, quote].iter().collect();
            return inner.replace(&doubled, &quote.to_string()).replace("\\\\", "\\");
        }
    }
    name.to_owned()
}

impl Insert {
    /// Whether rows follow in the text itself.
    pub(crate) fn has_inline_rows(&self, text: &str) -> bool {
        !text[self.data_start..].trim_matches(|c: char| c.is_whitespace() || c == ';').is_empty()
    }
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
