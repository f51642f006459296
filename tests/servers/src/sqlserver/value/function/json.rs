//! ISJSON, JSON_VALUE, JSON_QUERY ("JSON data in SQL Server").

use super::super::{SqlType, Value, ValueError};
use super::call::Call;
use super::{Resolver, ScalarFunction};

pub(super) const FUNCTIONS: &[(&str, Resolver)] =
    &[("ISJSON", isjson), ("JSON_QUERY", json_query), ("JSON_VALUE", json_value)];

/// Containers inside each other that are read; deeper ones are malformed, as they are for SQL Server.
const DEPTH_MAX: usize = 128;

fn isjson(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    call.count(1..=1)?;
    let text = call.text(0)?;
    call.returns(SqlType::Int, move |arguments, _| {
        Ok(text.text(&arguments[0])?.map_or(Value::Null, |text| {
            let text = text.to_string();
            let valid = parse(&text).is_ok_and(|root| matches!(root, Json::Object(..) | Json::Array(..)));
            Value::Int(i32::from(valid))
        }))
    })
}

/// A scalar as text; NULL for an object, an array, null, or a text beyond 4000 characters (an error in strict mode).
fn json_value(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    located(call, SqlType::nvarchar(4000), |found| match found {
        Json::String(text) => Ok(Some(text.clone()).filter(|text| text.encode_utf16().count() <= 4000)),
        Json::Null => Ok(None),
        Json::Other(text) => Ok(Some((*text).to_owned())),
        Json::Object(..) | Json::Array(..) => Err((13623, "Scalar value cannot be found in the specified JSON path.")),
    })
}

/// An object or array as it was written; NULL for a scalar (an error in strict mode).
fn json_query(call: &Call<'_>) -> Result<ScalarFunction, ValueError> {
    located(call, SqlType::NVARCHAR_MAX, |found| match found {
        Json::Object(_, text) | Json::Array(_, text) => Ok(Some((*text).to_owned())),
        _ => Err((13624, "Object or array cannot be found in the specified JSON path.")),
    })
}

type Answer = Result<Option<String>, (i32, &'static str)>;

fn located(call: &Call<'_>, result: SqlType, answer: fn(&Json<'_>) -> Answer) -> Result<ScalarFunction, ValueError> {
    call.count(1..=2)?;
    let text = call.text(0)?;
    let path = if call.arguments.len() == 2 { Some(call.text(1)?) } else { None };
    call.may_return_null(result, move |arguments, _| {
        let path = match &path {
            None => Some(String::from("$")),
            Some(taken) => taken.text(&arguments[1])?.map(|path| path.to_string()),
        };
        let (Some(text), Some(path)) = (text.text(&arguments[0])?, path) else { return Ok(Value::Null) };
        let (strict, steps) = parse_path(&path)?;
        let text = text.to_string();
        let root = parse(&text).map_err(|at| malformed(13609, "JSON text", &text, at))?;
        let found = match locate(&root, &steps) {
            Some(found) => answer(found),
            None => Err((13608, "Property cannot be found on the specified JSON path.")),
        };
        match found {
            Ok(text) => Ok(text.map_or(Value::Null, |text| Value::text(&text))),
            Err((number, text)) if strict => Err(ValueError::new(number, 1, text)),
            Err(_) => Ok(Value::Null),
        }
    })
}

fn malformed(number: i32, what: &str, text: &str, at: usize) -> ValueError {
    let character = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('.');
    let position = text.get(..at).map_or(0, |before| before.encode_utf16().count());
    let message = format!(
        "{what} is not properly formatted. Unexpected character '{character}' is found at position {position}."
    );
    ValueError::new(number, 4, message)
}

/// A value with the text it was written as where that is asked for.
enum Json<'a> {
    Object(Vec<(String, Json<'a>)>, &'a str),
    Array(Vec<Json<'a>>, &'a str),
    String(String),
    /// A number, `true` or `false`.
    Other(&'a str),
    Null,
}

enum Step {
    Key(String),
    Index(usize),
}

fn locate<'a, 'b>(root: &'b Json<'a>, steps: &[Step]) -> Option<&'b Json<'a>> {
    steps.iter().try_fold(root, |value, step| match (value, step) {
        (Json::Object(members, _), Step::Key(key)) => {
            members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
        }
        (Json::Array(items, _), Step::Index(index)) => items.get(*index),
        _ => None,
    })
}

/// `[lax|strict] $.key."quoted key"[0]`.
fn parse_path(path: &str) -> Result<(bool, Vec<Step>), ValueError> {
    let trimmed = path.trim_start();
    let (strict, body) = match (trimmed.strip_prefix("strict "), trimmed.strip_prefix("lax ")) {
        (Some(body), _) => (true, body.trim_start()),
        (_, Some(body)) => (false, body.trim_start()),
        _ => (false, trimmed),
    };
    let error = |rest: &str| malformed(13607, "JSON path", path, path.len() - rest.len());
    let mut rest = body.strip_prefix('$').ok_or_else(|| error(body))?;
    let mut steps = Vec::new();
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            let (index, behind) = rest[1..].split_once(']').ok_or_else(|| error(rest))?;
            steps.push(Step::Index(index.trim().parse().map_err(|_| error(&rest[1..]))?));
            rest = behind;
            continue;
        }
        let key = rest.strip_prefix('.').ok_or_else(|| error(rest))?;
        if key.starts_with('"') {
            let mut reader = Reader { text: key, position: 0 };
            steps.push(Step::Key(reader.string().map_err(|_| error(key))?));
            rest = &key[reader.position..];
        } else {
            let end = key.find(['.', '[']).unwrap_or(key.len());
            if end == 0 || !key[..end].chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$') {
                return Err(error(key));
            }
            steps.push(Step::Key(key[..end].to_owned()));
            rest = &key[end..];
        }
    }
    Ok((strict, steps))
}

/// Reads a whole text; the error is the byte position of the first unexpected character.
fn parse(text: &str) -> Result<Json<'_>, usize> {
    let mut reader = Reader { text, position: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.position == text.len() { Ok(value) } else { Err(reader.position) }
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.position += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), usize> {
        self.space();
        if self.peek() != Some(byte) {
            return Err(self.position);
        }
        self.position += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, usize> {
        self.space();
        let start = self.position;
        match self.peek() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => Err(start),
            Some(b'{') => {
                let members = self.list(b'}', |reader| {
                    reader.space();
                    let key = reader.string()?;
                    reader.expect(b':')?;
                    Ok((key, reader.value(depth + 1)?))
                })?;
                Ok(Json::Object(members, &self.text[start..self.position]))
            }
            Some(b'[') => {
                let items = self.list(b']', |reader| reader.value(depth + 1))?;
                Ok(Json::Array(items, &self.text[start..self.position]))
            }
            Some(b'"') => self.string().map(Json::String),
            _ => self.word(),
        }
    }

    /// Elements between brackets; the cursor is at the opening one.
    fn list<T>(&mut self, closing: u8, element: impl Fn(&mut Self) -> Result<T, usize>) -> Result<Vec<T>, usize> {
        self.position += 1;
        let mut elements = Vec::new();
        self.space();
        if self.peek() == Some(closing) {
            self.position += 1;
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            self.space();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(byte) if byte == closing => {
                    self.position += 1;
                    return Ok(elements);
                }
                _ => return Err(self.position),
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Json<'a>, usize> {
        let start = self.position;
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        while self.peek().is_some_and(known) {
            self.position += 1;
        }
        match &self.text[start..self.position] {
            "null" => Ok(Json::Null),
            word @ ("true" | "false") => Ok(Json::Other(word)),
            word if serde_json::from_str::<serde_json::Number>(word).is_ok() => Ok(Json::Other(word)),
            _ => Err(start),
        }
    }

    /// A string with its escapes resolved.
    fn string(&mut self) -> Result<String, usize> {
        let start = self.position;
        if self.peek() != Some(b'"') {
            return Err(start);
        }
        self.position += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return serde_json::from_str(&self.text[start..self.position]).map_err(|_| start);
                }
                Some(b'\\') => self.position += 2,
                Some(_) => self.position += 1,
                None => return Err(self.text.len()),
            }
        }
    }
}
