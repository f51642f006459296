//! What a request asks: its parameters, headers and credentials.

use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING};
use hyper::http::request::Parts;

use crate::clickhouse::engine::EngineError;
use crate::clickhouse::protocol::SentSetting;

/// A request, read.
pub(super) enum Asked {
    /// Whether the server is there.
    Ping,
    Query(Box<Query>),
}

/// How the rows in a request's body are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// LZ4 frames (`Content-Encoding: lz4`).
    Lz4,
}

/// A query over HTTP.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) user: String,
    pub(super) password: String,
    pub(super) query_id: String,
    /// The parameter `query`: the statement or its beginning, the body being the rest.
    pub(super) text: String,
    pub(super) database: String,
    pub(super) default_format: String,
    pub(super) session: Option<Session>,
    pub(super) settings: Vec<SentSetting>,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) encoding: Encoding,
}

/// A session that outlives its request.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) timeout_seconds: u64,
    /// The session must exist.
    pub(super) check: bool,
}

/// Parameters that are neither settings nor of use here.
const IGNORED: [&str; 9] = [
    "buffer_size",
    "wait_end_of_query",
    "enable_http_compression",
    "http_zlib_compression_level",
    "client_protocol_version",
    "quota_key",
    "stacktrace",
    "close_session",
    "send_progress_in_http_headers",
];

impl Asked {
    pub(super) fn read(head: &Parts) -> Result<Asked, EngineError> {
        let path = head.uri.path();
        let pairs = pairs(head.uri.query().unwrap_or(""))?;
        let asks_nothing = head.method == Method::GET && !pairs.iter().any(|(name, _)| name == "query");
        if asks_nothing && matches!(path, "/" | "/ping" | "/replicas_status") {
            return Ok(Asked::Ping);
        }
        let mut query = Query {
            user: header(head, "x-clickhouse-user").unwrap_or_else(|| "default".to_owned()),
            password: header(head, "x-clickhouse-key").unwrap_or_default(),
            query_id: header(head, "x-clickhouse-query-id").unwrap_or_default(),
            text: String::new(),
            database: header(head, "x-clickhouse-database").unwrap_or_default(),
            default_format: header(head, "x-clickhouse-format").unwrap_or_else(|| "TabSeparated".to_owned()),
            session: None,
            settings: Vec::new(),
            parameters: Vec::new(),
            encoding: encoding(head)?,
        };
        if let Some((user, password)) = basic_credentials(head) {
            (query.user, query.password) = (user, password);
        }
        if head.method == Method::GET {
            // A GET must change nothing.
            query.settings.push(SentSetting { name: "readonly".into(), value: "2".into(), important: true });
        }
        query.take(pairs)?;
        if query.query_id.is_empty() {
            query.query_id = random_id()?;
        }
        Ok(Asked::Query(Box::new(query)))
    }
}

impl Query {
    fn take(&mut self, pairs: Vec<(String, String)>) -> Result<(), EngineError> {
        let (mut session_id, mut timeout_seconds, mut check) = (String::new(), 60, false);
        for (name, value) in pairs {
            match name.as_str() {
                "query" => self.text = value,
                "user" => self.user = value,
                "password" => self.password = value,
                "query_id" => self.query_id = value,
                "database" => self.database = value,
                "default_format" => self.default_format = value,
                "session_id" => session_id = value,
                "session_timeout" => {
                    let message = "session_timeout is not a number of seconds";
                    timeout_seconds =
                        value.parse().map_err(|_| EngineError::new(374, "INVALID_SESSION_TIMEOUT", message))?;
                }
                "session_check" => check = value == "1",
                "compress" | "decompress" if value != "0" => {
                    let message = "This server does not pack HTTP bodies in frames of the native protocol";
                    return Err(EngineError::new(48, "NOT_IMPLEMENTED", message));
                }
                "role" => {
                    return Err(EngineError::new(48, "NOT_IMPLEMENTED", "This server knows no roles"));
                }
                ignored if IGNORED.contains(&ignored) || matches!(ignored, "compress" | "decompress") => {}
                _ => match name.strip_prefix("param_") {
                    Some(parameter) => self.parameters.push((parameter.to_owned(), value)),
                    None => self.settings.push(SentSetting { name, value, important: true }),
                },
            }
        }
        if !session_id.is_empty() {
            self.session = Some(Session { id: session_id, timeout_seconds, check });
        }
        Ok(())
    }
}

fn header(head: &Parts, name: &str) -> Option<String> {
    head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn encoding(head: &Parts) -> Result<Encoding, EngineError> {
    match head.headers.get(CONTENT_ENCODING).map(hyper::header::HeaderValue::as_bytes) {
        None | Some(b"" | b"identity") => Ok(Encoding::Plain),
        Some(b"lz4") => Ok(Encoding::Lz4),
        Some(_) => {
            let message = "This server takes request bodies as they are or as lz4";
            Err(EngineError::new(89, "UNKNOWN_COMPRESSION_METHOD", message))
        }
    }
}

fn basic_credentials(head: &Parts) -> Option<(String, String)> {
    let value = head.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let decoded = base64(value.strip_prefix("Basic ")?.trim())?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Standard base64 (RFC 4648) of UTF-8 text.
fn base64(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for character in text.trim_end_matches('=').bytes() {
        let digit = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(digit)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The pairs of a query string (`application/x-www-form-urlencoded`).
fn pairs(text: &str) -> Result<Vec<(String, String)>, EngineError> {
    let decode = |text: &str| {
        percent_decoded(text).ok_or_else(|| EngineError::new(36, "BAD_ARGUMENTS", "The query string is not UTF-8"))
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digit: u8| char::from(digit).to_digit(16);
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push((hex(*high)? << 4 | hex(*low)?) as u8);
                rest = after;
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// A query id as a server makes one for a client that gives none.
fn random_id() -> Result<String, EngineError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::new(1001, "STD_EXCEPTION", error.to_string()))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{base64, pairs, percent_decoded};

    #[test]
    fn query_strings_are_decoded() {
        let decoded = pairs("query=SELECT+1%2B1&empty&max_threads=2&x=%e4%bd%a0%").unwrap();
        let expected = [("query", "SELECT 1+1"), ("empty", ""), ("max_threads", "2"), ("x", "你%")];
        assert_eq!(decoded, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(pairs("x=%ff").is_err());
    }

    #[test]
    fn base64_is_decoded() {
        for (text, plain) in [("dTpwOnE=", "u:p:q"), ("", ""), ("YQ==", "a"), ("w6TDtsO8", "äöü")] {
            assert_eq!(base64(text).as_deref(), Some(plain));
        }
        assert_eq!(base64("a b"), None);
    }

    proptest! {
        #[test]
        fn random_text_never_panics(text in ".{0,60}") {
            let _ = (percent_decoded(&text), base64(&text), pairs(&text));
        }
    }
}
