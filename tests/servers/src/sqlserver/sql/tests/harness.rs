//! Runs batches in process and writes down what a client would see.

use std::sync::Arc;

use crate::sqlserver::sql::{
    BatchSink, ColumnMeta, Done, Engine, EngineOptions, EnvChange, LoginRequest, Session, SinkResult, SqlError,
};
use crate::sqlserver::value::{CastOptions, SqlType, Value, cast};

/// A server in memory with one login.
pub(super) struct Server {
    pub(super) engine: Arc<Engine>,
}

/// What a client sees, one line each: `a|b` a row, `!208` an error, `#text` a message, `=1` a count.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) lines: Vec<String>,
    pub(super) errors: Vec<SqlError>,
    types: Vec<SqlType>,
}

impl Server {
    pub(super) fn new() -> Self {
        let options = EngineOptions { users: vec![("tester".into(), "secret".into())], ..EngineOptions::default() };
        Self { engine: Engine::in_memory(options).unwrap() }
    }

    pub(super) fn session(&self) -> Session {
        self.login("tester", "secret").unwrap()
    }

    pub(super) fn login(&self, user: &str, password: &str) -> Result<Session, SqlError> {
        let request = LoginRequest {
            user: user.into(),
            password: password.into(),
            database: Some("testdb".into()),
            app_name: "tests".into(),
            ..LoginRequest::default()
        };
        self.engine.login(&request)
    }
}

/// A value as the transcript shows it.
pub(super) fn shown(value: &Value, ty: &SqlType) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Binary(bytes) => format!("0x{}", bytes.iter().map(|b| format!("{b:02X}")).collect::<String>()),
        Value::Variant(inner) => shown(&inner.1, &inner.0),
        Value::Float(f) => format!("{f}"),
        other => {
            match cast(other, ty, &SqlType::NVARCHAR_MAX, &CastOptions { style: style(ty), ..CastOptions::EXPLICIT }) {
                Ok(Value::String(text)) => text.to_string(),
                unreadable => format!("{unreadable:?}"),
            }
        }
    }
}

fn style(ty: &SqlType) -> Option<i32> {
    ty.is_temporal().then_some(121)
}

impl BatchSink for Seen {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SinkResult {
        self.types = columns.iter().map(|c| c.ty).collect();
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SinkResult {
        assert_eq!(values.len(), self.types.len());
        let cells: Vec<String> = values.iter().zip(&self.types).map(|(v, t)| shown(v, t)).collect();
        self.lines.push(cells.join("|"));
        Ok(())
    }

    fn done(&mut self, done: Done) -> SinkResult {
        if let Some(count) = done.count.filter(|_| done.cmd != crate::sqlserver::sql::cmd::SELECT) {
            self.lines.push(format!("={count}"));
        }
        Ok(())
    }

    fn error(&mut self, error: &SqlError) {
        self.lines.push(format!("!{}", error.number));
        self.errors.push(error.clone());
    }

    fn info(&mut self, info: &SqlError) {
        if info.number == 0 || info.number >= 50000 {
            self.lines.push(format!("#{}", info.message));
        }
    }

    fn env_change(&mut self, _change: EnvChange) {}

    fn return_status(&mut self, status: i32) {
        self.lines.push(format!("status {status}"));
    }

    fn return_value(&mut self, name: &str, column: &ColumnMeta, value: &Value) {
        self.lines.push(format!("{name}={}", shown(value, &column.ty)));
    }
}

/// Runs a batch.
pub(super) fn run(session: &mut Session, sql: &str) -> Seen {
    let mut seen = Seen::default();
    session.run_batch(sql, &mut seen);
    seen
}

/// Runs batches in order and compares each with its lines, given with `;` between them.
pub(super) fn check(session: &mut Session, cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        let seen = run(session, sql);
        let messages: Vec<String> = seen.errors.iter().map(|e| e.message.clone()).collect();
        assert_eq!(seen.lines.join(";"), *expected, "{sql}\n{messages:#?}");
    }
}
