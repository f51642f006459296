//! A log of what clients asked, one JSON object a line, for tests and people to read.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Login,
    Batch,
    Rpc,
    Transaction,
    Bulk,
    Attention,
    /// A request has run; its answer is not complete yet, so what it did is done before the client can know.
    End,
    /// A message that is not TDS.
    Refused,
    Disconnect,
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Batch => "batch",
            Self::Rpc => "rpc",
            Self::Transaction => "transaction",
            Self::Bulk => "bulk",
            Self::Attention => "attention",
            Self::End => "end",
            Self::Refused => "refused",
            Self::Disconnect => "disconnect",
        }
    }
}

/// The log; without a file nothing is written.
#[derive(Debug, Default)]
pub(crate) struct QueryLog {
    file: Option<Mutex<File>>,
}

impl QueryLog {
    /// Appends to `path`, which is created.
    pub(crate) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let file = path.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        Ok(Self { file: file.map(Mutex::new) })
    }

    /// Writes one line at once, so that a reader sees each request before its effect.
    pub(crate) fn write(&self, session: u16, event: Event, text: &str) {
        let Some(file) = &self.file else { return };
        let time = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
        let line = serde_json::json!({
            "time": time, "session": session, "event": event.name(), "text": without_passwords(text),
        });
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{line}") {
            eprintln!("testkit sqlserver: the query log cannot be written: {error}");
        }
    }
}

/// Replaces the literal of each `PASSWORD = '...'` (CREATE LOGIN, ALTER LOGIN, CREATE USER) and `@passwd = '...'`.
fn without_passwords(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = lower[at..].find("passw") {
        let rest = &lower[at + found..];
        let word = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let after_word = at + found + word;
        clean.push_str(&text[at..after_word]);
        at = after_word;
        let Some(literal) = literal_after_equals(&text[after_word..]) else { continue };
        clean.push_str(&text[after_word..after_word + literal.start]);
        clean.push_str("'***'");
        at = after_word + literal.end;
    }
    clean.push_str(&text[at..]);
    clean
}

/// The string literal of ` = 'text'` or ` = N'text'` at the start of `text`; an open literal reaches to the end.
fn literal_after_equals(text: &str) -> Option<std::ops::Range<usize>> {
    let value = text.trim_start().strip_prefix('=')?.trim_start();
    let quoted = value.strip_prefix(['N', 'n']).unwrap_or(value).strip_prefix('\'')?;
    let start = text.len() - quoted.len() - 1;
    let mut rest = quoted;
    loop {
        let Some(quote) = rest.find('\'') else { return Some(start..text.len()) };
        rest = &rest[quote + 1..];
        match rest.strip_prefix('\'') {
            Some(next) => rest = next,
            None => return Some(start..text.len() - rest.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_passwords;

    #[test]
    fn password_literals_are_replaced_and_the_rest_kept() {
        for (text, clean) in [
            (
                "CREATE LOGIN a WITH PASSWORD = 'x''y', CHECK_POLICY = OFF",
                "CREATE LOGIN a WITH PASSWORD = '***', CHECK_POLICY = OFF",
            ),
            (
                "alter login a with password=N'x' old_password='y'",
                "alter login a with password=N'***' old_password='***'",
            ),
            ("EXEC sp_password @old = NULL, @passwd='y'", "EXEC sp_password @old = NULL, @passwd='***'"),
            ("CREATE LOGIN a WITH PASSWORD = 'open", "CREATE LOGIN a WITH PASSWORD = '***'"),
            ("SELECT password FROM t WHERE é = 1", "SELECT password FROM t WHERE é = 1"),
        ] {
            assert_eq!(without_passwords(text), clean);
        }
    }
}
