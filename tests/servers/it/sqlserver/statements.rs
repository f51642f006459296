//! The statements of `scripts/statements.json`, which stand nowhere in the product, with the results that Microsoft's
//! documentation gives them: in this process, through Microsoft's ODBC driver, through FreeTDS.

use std::process::Command;

use serde_json::Value as Json;
use servers::sqlserver::sql::{
    BatchSink, ColumnMeta, Done, Engine, EngineOptions, EnvChange, LoginRequest, SinkResult, SqlError, cmd,
};
use servers::sqlserver::value::{CastOptions, SqlType, Value, cast};

use super::{DATABASE, PASSWORD, TestServer, USER, python, run};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/scripts/statements.json");

/// The statements of the script, in order.
fn statements() -> Vec<Json> {
    let script: Json = serde_json::from_str(&std::fs::read_to_string(SCRIPT).unwrap()).unwrap();
    let statements = script["statements"].as_array().unwrap().clone();
    assert!(statements.len() >= 60, "the script has shrunk to {}", statements.len());
    statements
}

/// A result set in the form of the script.
struct ResultSet {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

/// What a batch answered, in the form of the script.
#[derive(Default)]
struct Answer {
    types: Vec<SqlType>,
    results: Vec<ResultSet>,
    counts: Vec<u64>,
    errors: Vec<(i32, String)>,
    messages: Vec<String>,
}

/// A value as the script writes it.
fn text(value: &Value, ty: &SqlType) -> Option<String> {
    let options = CastOptions { style: if ty.is_binary() { Some(1) } else { None }, ..CastOptions::EXPLICIT };
    let ty = if let Value::Variant(inner) = value { inner.0 } else { *ty };
    let options = CastOptions { style: if ty.is_temporal() { Some(121) } else { options.style }, ..options };
    match cast(value, &ty, &SqlType::NVARCHAR_MAX, &options).unwrap() {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    }
}

impl BatchSink for Answer {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SinkResult {
        self.types = columns.iter().map(|column| column.ty).collect();
        let columns = columns.iter().map(|column| column.name.clone()).collect();
        self.results.push(ResultSet { columns, rows: Vec::new() });
        Ok(())
    }

    fn row(&mut self, values: &[Value]) -> SinkResult {
        let row = values.iter().zip(&self.types).map(|(value, ty)| text(value, ty)).collect();
        self.results.last_mut().unwrap().rows.push(row);
        Ok(())
    }

    fn done(&mut self, done: Done) -> SinkResult {
        self.counts.extend(done.count.filter(|_| done.cmd != cmd::SELECT));
        Ok(())
    }

    fn error(&mut self, error: &SqlError) {
        self.errors.push((error.number, error.message.clone()));
    }

    fn info(&mut self, info: &SqlError) {
        self.messages.push(info.message.clone());
    }

    fn env_change(&mut self, _change: EnvChange) {}

    fn return_status(&mut self, _status: i32) {}

    fn return_value(&mut self, _name: &str, _column: &ColumnMeta, _value: &Value) {}
}

/// Whether an error number is the expected one or its named alternative of another version.
fn is_expected_error(statement: &Json, number: i32) -> bool {
    let alternatives = statement["or_error"].as_array().into_iter().flatten();
    std::iter::once(&statement["error"]).chain(alternatives).any(|known| known.as_i64() == Some(i64::from(number)))
}

/// What differs between an answer and the script; empty if nothing does.
fn differences(statement: &Json, answer: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    match (statement["error"].is_null(), answer.errors.first()) {
        (true, None) => {}
        (true, Some(error)) => found.push(format!("unexpected error {error:?}")),
        (false, None) => found.push(format!("no error, expected {}", statement["error"])),
        (false, Some((number, message))) => {
            if !is_expected_error(statement, *number) || !message.contains(statement["text"].as_str().unwrap()) {
                found.push(format!(
                    "error {number} '{message}', expected {} '{}'",
                    statement["error"], statement["text"]
                ));
            }
        }
    }
    let expected = statement["results"].as_array().unwrap();
    if answer.results.len() != expected.len() {
        found.push(format!("{} result sets, expected {}", answer.results.len(), expected.len()));
    }
    for (ResultSet { columns, rows }, expected) in answer.results.iter().zip(expected) {
        let rows = serde_json::to_value(rows).unwrap();
        if rows != expected["rows"] {
            found.push(format!("rows {rows}, expected {}", expected["rows"]));
        }
        if !expected["columns"].is_null() && serde_json::to_value(columns).unwrap() != expected["columns"] {
            found.push(format!("columns {columns:?}, expected {}", expected["columns"]));
        }
    }
    for (name, actual) in [
        ("counts", serde_json::to_value(&answer.counts).unwrap()),
        ("messages", serde_json::to_value(&answer.messages).unwrap()),
    ] {
        if !statement[name].is_null() && statement[name] != actual {
            found.push(format!("{name} {actual}, expected {}", statement[name]));
        }
    }
    found
}

#[test]
fn in_this_process() {
    let dir = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        users: vec![(USER.to_owned(), PASSWORD.to_owned())],
        database: DATABASE.to_owned(),
        ..EngineOptions::default()
    };
    let engine = Engine::open(dir.path(), options).unwrap();
    let login = LoginRequest { user: USER.to_owned(), password: PASSWORD.to_owned(), ..LoginRequest::default() };
    let mut session = engine.login(&login).unwrap();
    let mut failures = Vec::new();
    for statement in statements() {
        let mut answer = Answer::default();
        let sql = statement["sql"].as_str().unwrap();
        session.run_batch(sql, &mut answer);
        let found = differences(&statement, &answer);
        if !found.is_empty() {
            failures.push(format!("{sql}\n    {}\n    {}", found.join("\n    "), statement["source"]));
        }
    }
    assert!(failures.is_empty(), "{} statements differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn through_microsofts_odbc_driver() {
    let server = TestServer::start();
    let mut command = Command::new(python());
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/it/sqlserver/odbc_statements.py"))
        .arg(SCRIPT)
        .env("SSL_CERT_FILE", server.ca())
        .env("MSSQL_PORT", server.port().to_string())
        .env("MSSQL_USER", USER)
        .env("MSSQL_PASSWORD", PASSWORD)
        .env("MSSQL_DATABASE", DATABASE)
        .env("MSSQL_ENCRYPT", "yes");
    let (success, output) = run(&mut command, "");
    assert!(success, "{output}");
}

#[test]
fn through_freetds() {
    let server = TestServer::start();
    let statements = statements();
    let mut batches = String::new();
    for statement in &statements {
        // A row that tells where the rows of each statement end.
        batches.push_str(&format!("{}\ngo\nSELECT N'end of {END}'\ngo\n", statement["sql"].as_str().unwrap()));
    }
    let output = tsql(&server, &batches);
    let answers: Vec<&str> = output.split(&format!("end of {END}")).collect();
    assert_eq!(answers.len(), statements.len() + 1, "{output}");
    let mut failures = Vec::new();
    for (statement, answer) in statements.iter().zip(&answers) {
        let expected =
            statement["results"].as_array().unwrap().iter().flat_map(|result| result["rows"].as_array().unwrap());
        for row in expected {
            let cells = row.as_array().unwrap().iter().map(freetds_text).collect::<Option<Vec<_>>>();
            if let Some(line) = cells.map(|cells| cells.join("\t")).filter(|line| !answer.contains(line)) {
                failures.push(format!("{}\n    no line '{line}' in:\n{answer}", statement["sql"]));
            }
        }
    }
    // Messages go to the other output, so only their order tells which statement they belong to.
    let reported: Vec<i32> = answers.last().unwrap().lines().filter_map(error_number).collect();
    let expected: Vec<&Json> = statements.iter().filter(|statement| !statement["error"].is_null()).collect();
    if reported.len() != expected.len()
        || !reported.iter().zip(&expected).all(|(number, statement)| is_expected_error(statement, *number))
    {
        let expected: Vec<&Json> = expected.iter().map(|statement| &statement["error"]).collect();
        failures.push(format!("errors {reported:?}\nexpected {}", serde_json::to_string(&expected).unwrap()));
    }
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
}

const END: &str = "this statement";

/// Runs batches through the command `tsql`; gives the rows, cells separated by tabs, and behind them the messages.
fn tsql(server: &TestServer, batches: &str) -> String {
    let configuration = server.dir.path().join("statements.conf");
    let text = format!(
        "[server]\nhost = localhost\nport = {}\ntds version = 7.4\nclient charset = UTF-8\nencryption = require\nca file = {}\ncheck certificate hostname = yes\n",
        server.port(),
        server.ca().display()
    );
    std::fs::write(&configuration, text).unwrap();
    let mut command = Command::new("tsql");
    command
        .args(["-S", "server", "-U", USER, "-P", PASSWORD, "-D", DATABASE, "-o", "qfh"])
        .env("FREETDSCONF", &configuration)
        .env("LC_ALL", "C.UTF-8");
    let (success, output) = run(&mut command, &format!("{batches}\nexit\n"));
    assert!(success, "{output}");
    output
}

/// The number in a line such as `Msg 208 (severity 16, state 1) from ...`, for severities of errors.
fn error_number(line: &str) -> Option<i32> {
    let (number, rest) = line.strip_prefix("Msg ")?.split_once(" (severity ")?;
    let severity: u8 = rest.split(',').next()?.parse().ok()?;
    (severity > 10).then(|| number.parse().ok())?
}

/// A cell as `tsql` prints it; dates and binaries have forms of its own and are left to the other clients.
fn freetds_text(cell: &Json) -> Option<String> {
    match cell.as_str() {
        None => Some(String::from("NULL")),
        Some(text) if text.starts_with("0x") || text.as_bytes().get(4) == Some(&b'-') => None,
        Some(text) => Some(text.to_owned()),
    }
}
