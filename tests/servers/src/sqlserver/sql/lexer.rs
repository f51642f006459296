//! Splits T-SQL text into tokens.

use super::api::SqlError;
use super::error;

/// One lexical element.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tok {
    /// Identifier or keyword.
    Word { text: String, quoted: bool },
    /// `@name` or `@@name`, with the at signs.
    Var(String),
    /// Integer or decimal literal, digits and at most one point.
    Number(String),
    /// Literal with an exponent.
    Float(String),
    /// Literal with a currency sign.
    Money(String),
    /// Character literal; `national` for `N'...'`.
    Str { text: String, national: bool },
    /// Binary literal.
    Binary(Vec<u8>),
    /// Operator or punctuation.
    Op(&'static str),
    /// End of text.
    End,
}

/// A token with its place.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    /// Line from 1.
    pub(crate) line: u32,
    /// Byte offset of the first character.
    pub(crate) start: usize,
    /// Byte offset after the last character.
    pub(crate) end: usize,
}

const OPERATORS: &[&str] = &[
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<=", ">=", "<>", "!=", "!<", "!>", "::", "(", ")", ",", ";", ".",
    "+", "-", "*", "/", "%", "&", "|", "^", "~", "=", "<", ">", ":",
];

/// Splits `text`; `quoted_identifier` decides what double quotes mean.
///
/// # Errors
/// 105 for an unclosed string, 113 for an unclosed comment, 102 for a character that starts nothing.
pub(crate) fn tokenize(text: &str, quoted_identifier: bool) -> Result<Vec<Token>, SqlError> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, line: 1, quoted_identifier };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank()?;
        let (start, line) = (lexer.at, lexer.line);
        let tok = lexer.next()?;
        let last = tok == Tok::End;
        tokens.push(Token { tok, line, start, end: lexer.at });
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    quoted_identifier: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blank(&mut self) -> Result<(), SqlError> {
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b'-' if self.peek(1) == b'-' => {
                    while self.at < self.bytes.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                0 if self.at >= self.bytes.len() => return Ok(()),
                c if c <= b' ' => self.at += 1,
                0xC2 if self.peek(1) == 0xA0 => self.at += 2,
                0xEF if self.peek(1) == 0xBB && self.peek(2) == 0xBF => self.at += 3,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), SqlError> {
        let line = self.line;
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(error::new(113, 15, 1, "Missing end comment mark '*/'.").at_line(line));
                }
                (c, _) => {
                    self.line += u32::from(c == b'\n');
                    self.at += 1;
                }
            }
        }
    }

    fn next(&mut self) -> Result<Tok, SqlError> {
        if self.at >= self.bytes.len() {
            return Ok(Tok::End);
        }
        let first = self.peek(0);
        match first {
            b'\'' => Ok(Tok::Str { text: self.quoted(b'\'')?, national: false }),
            b'N' | b'n' if self.peek(1) == b'\'' => {
                self.at += 1;
                Ok(Tok::Str { text: self.quoted(b'\'')?, national: true })
            }
            b'"' if self.quoted_identifier => Ok(Tok::Word { text: self.quoted(b'"')?, quoted: true }),
            b'"' => Ok(Tok::Str { text: self.quoted(b'"')?, national: false }),
            b'[' => Ok(Tok::Word { text: self.quoted(b']')?, quoted: true }),
            b'@' => Ok(Tok::Var(self.word())),
            b'0' if matches!(self.peek(1), b'x' | b'X') => self.binary(),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.peek(1).is_ascii_digit() => Ok(self.number()),
            b'$' if self.peek(1).is_ascii_digit() || matches!(self.peek(1), b'.' | b'-') => Ok(self.money()),
            b'$' if self.peek(1).is_ascii_alphabetic() => {
                self.at += 1;
                Ok(Tok::Word { text: format!("${}", self.word()), quoted: false })
            }
            _ if is_word_start(self.char()) => Ok(Tok::Word { text: self.word(), quoted: false }),
            _ => self.operator(),
        }
    }

    fn char(&self) -> char {
        self.text[self.at..].chars().next().unwrap_or('\0')
    }

    fn word(&mut self) -> String {
        let start = self.at;
        for c in self.text[start..].chars() {
            if !(is_word_start(c) || c.is_numeric() || c == '$') {
                break;
            }
            self.at += c.len_utf8();
        }
        self.text[start..self.at].to_owned()
    }

    fn quoted(&mut self, close: u8) -> Result<String, SqlError> {
        let (start_line, open_at) = (self.line, self.at);
        self.at += 1;
        let mut out = Vec::new();
        loop {
            if self.at >= self.bytes.len() {
                let rest: String = self.text[open_at + 1..].chars().take(128).collect();
                let message = format!("Unclosed quotation mark after the character string '{rest}'.");
                return Err(error::new(105, 15, 1, &message).at_line(start_line));
            }
            let c = self.peek(0);
            self.at += 1;
            if c == close {
                if self.peek(0) != close || self.at >= self.bytes.len() {
                    break;
                }
                self.at += 1;
            }
            self.line += u32::from(c == b'\n');
            out.push(c);
        }
        // Delimiters are ASCII, so the bytes between them are whole characters.
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    fn binary(&mut self) -> Result<Tok, SqlError> {
        self.at += 2;
        let start = self.at;
        while self.peek(0).is_ascii_hexdigit() {
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
        let bytes = (0..padded.len()).step_by(2).map(|i| u8::from_str_radix(&padded[i..i + 2], 16));
        bytes.collect::<Result<_, _>>().map(Tok::Binary).map_err(|_| error::syntax(digits, self.line))
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Tok {
        let start = self.at;
        self.digits();
        if self.peek(0) == b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            self.digits();
            return Tok::Float(self.text[start..self.at].to_owned());
        }
        Tok::Number(self.text[start..self.at].to_owned())
    }

    fn money(&mut self) -> Tok {
        self.at += 1;
        let start = self.at;
        if self.peek(0) == b'-' {
            self.at += 1;
        }
        self.digits();
        if self.peek(0) == b'.' {
            self.at += 1;
            self.digits();
        }
        Tok::Money(self.text[start..self.at].to_owned())
    }

    fn operator(&mut self) -> Result<Tok, SqlError> {
        let rest = &self.text[self.at..];
        for op in OPERATORS {
            if rest.starts_with(op) {
                self.at += op.len();
                return Ok(Tok::Op(op));
            }
        }
        Err(error::syntax(&self.char().to_string(), self.line))
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '#' | '@')
}
