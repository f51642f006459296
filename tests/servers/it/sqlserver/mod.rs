//! The TDS server, spoken to by clients that others wrote: the crate mssql-tds, FreeTDS, Microsoft's ODBC driver.

mod bulk;
mod go;
mod login;
mod odbc;
mod requests;
mod statements;
mod tsql;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mssql_tds::connection::client_context::{ClientContext, TdsAuthenticationMethod};
use mssql_tds::connection::tds_client::{ExecuteOptions, ResultSet as _, StatementResult, TdsClient};
use mssql_tds::connection_provider::tds_connection_provider::TdsConnectionProvider;
use mssql_tds::core::{EncryptionOptions, EncryptionSetting};
use mssql_tds::datatypes::column_values::ColumnValues;
use mssql_tds::error::Error;
use servers::sqlserver::sql::EngineOptions;
use servers::sqlserver::{Encryption, RunningServer, ServerOptions, SqlServer};

const USER: &str = "loader";
const PASSWORD: &str = "P@ss w0rd;é'";
const DATABASE: &str = "testdb";

/// A server in this process with a data folder of its own.
struct TestServer {
    running: Option<RunningServer>,
    options: ServerOptions,
    query_log: PathBuf,
    dir: tempfile::TempDir,
}

impl TestServer {
    fn start() -> Self {
        Self::with_encryption(Encryption::Required)
    }

    fn with_encryption(encryption: Encryption) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let query_log = dir.path().join("queries.jsonl");
        let engine = EngineOptions {
            users: vec![(USER.to_owned(), PASSWORD.to_owned())],
            database: DATABASE.to_owned(),
            ..EngineOptions::default()
        };
        let mut options = ServerOptions::new(dir.path().join("data"), engine);
        options.encryption = encryption;
        options.query_log = Some(query_log.clone());
        let running = SqlServer::start(options.clone()).unwrap();
        Self { running: Some(running), options, query_log, dir }
    }

    fn running(&self) -> &RunningServer {
        self.running.as_ref().expect("the server runs")
    }

    fn port(&self) -> u16 {
        self.running().addr().port()
    }

    fn ca(&self) -> &Path {
        &self.running().tls().ca_pem_path
    }

    /// Stops the server and starts it again on the same data folder and port.
    fn restart(&mut self) {
        self.options.listen = self.running().addr();
        self.running.take().expect("the server runs").shutdown();
        self.running = Some(SqlServer::start(self.options.clone()).unwrap());
    }

    /// What clients asked so far.
    fn queries(&self) -> String {
        std::fs::read_to_string(&self.query_log).unwrap()
    }

    fn context(&self) -> ClientContext {
        let mut context = ClientContext::with_data_source(&format!("tcp:127.0.0.1,{}", self.port()));
        context.user_name = USER.to_owned();
        context.password = PASSWORD.to_owned();
        context.database = DATABASE.to_owned();
        context.tds_authentication_method = TdsAuthenticationMethod::Password;
        context.connect_retry_count = 0;
        context.encryption_options = EncryptionOptions {
            mode: EncryptionSetting::Required,
            trust_server_certificate: false,
            host_name_in_cert: None,
            server_certificate: Some(self.running().tls().leaf_pem_path.clone()),
        };
        context
    }

    async fn connect(&self) -> TdsClient {
        connect(self.context()).await.expect("a login")
    }
}

async fn connect(context: ClientContext) -> Result<TdsClient, Error> {
    let data_source = context.data_source.clone();
    TdsConnectionProvider::new().create_client(context, &data_source, None).await
}

/// Runs a batch and returns the rows of all its results.
async fn query(client: &mut TdsClient, sql: &str) -> Result<Vec<Vec<ColumnValues>>, Error> {
    let mut rows = Vec::new();
    let mut result = client.execute(sql.to_owned(), ExecuteOptions::new()).await?;
    loop {
        match result {
            StatementResult::End => return Ok(rows),
            StatementResult::NoRows { .. } => {}
            StatementResult::Rows => {
                while let Some(row) = client.next_row().await? {
                    rows.push(row);
                }
            }
        }
        result = client.advance().await?;
    }
}

/// Values with texts as UTF-8, whatever their encoding on the wire.
fn shown(rows: &[Vec<ColumnValues>]) -> Vec<Vec<String>> {
    let cell = |value: &ColumnValues| match value {
        ColumnValues::String(text) => format!("{:?}", text.to_utf8_string()),
        other => format!("{other:?}"),
    };
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

/// Number of the first error of SQL Server in a failure.
fn number(error: &Error) -> u32 {
    match error {
        Error::SqlServerError { diagnostics } => {
            diagnostics.errors.first().map(|first| first.number).expect("a number")
        }
        other => panic!("not an error of SQL Server: {other:?}"),
    }
}

/// The interpreter of the tests' Python environment, which has Microsoft's ODBC driver.
fn python() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/python-env.sh");
    let output = Command::new(&script).stderr(Stdio::inherit()).output().expect("tests/tools/python-env.sh");
    assert!(output.status.success(), "the Python environment cannot be made");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Runs a command with its standard input and returns status and both outputs.
fn run(command: &mut Command, input: &str) -> (bool, String) {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let mut errors = child.stderr.take().unwrap();
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    text.push_str(&errors.join().unwrap().unwrap());
    (child.wait().unwrap().success(), text)
}
