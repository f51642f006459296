//! A server of one test with the printed catalog, identities of one run, and a DBA who looks.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use contract::digest::{Digest, TypedSum};
use contract::encode::{Value, encode_values};
use contract::error::{Fate, PortError};
use contract::layout::WireLayout;
use contract::port::target::{
    ChunkFacts, Claim, ClaimOutcome, DigestObservation, OperationIdentity, RunFence, StageColumn, StageDefinition,
    StageRef, StageWriter as _, TableName, Target as _, TargetRequest, WriterGrant,
};
use contract::target_digest;
use servers::sqlserver::control::{Breakpoint, Control, Hit, Then};
use servers::sqlserver::sql::EngineOptions;
use servers::sqlserver::{Encryption, RunningServer, ServerOptions, SqlServer};
use sink_sqlserver::{ConnectOptions, SqlServerTarget, Timeouts};
use tiberius::{AuthMethod, Client, ColumnData, Config};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

pub(crate) const LOADER: &str = "loader";
pub(crate) const PASSWORD: &str = "Loader-Secret-1";
const DBA_PASSWORD: &str = "Dba-Secret-1";
pub(crate) const DATABASE: &str = "sales";

pub(crate) struct Kit {
    pub(crate) server: RunningServer,
    pub(crate) control: Arc<Control>,
    pub(crate) target: SqlServerTarget,
    hits: UnboundedReceiver<Hit>,
    dba: Client<Compat<TcpStream>>,
    folder: tempfile::TempDir,
}

/// A server without catalog or loader.
pub(crate) fn server(data: &Path, encryption: Encryption, control: Option<Arc<Control>>) -> RunningServer {
    let engine = EngineOptions {
        users: vec![("sa".into(), DBA_PASSWORD.into())],
        database: DATABASE.into(),
        ..EngineOptions::default()
    };
    let mut options = ServerOptions::new(data.to_owned(), engine);
    options.encryption = encryption;
    options.control = control;
    options.query_log = Some(data.with_extension("log"));
    SqlServer::start(options).expect("a server")
}

pub(crate) fn options(server: &RunningServer) -> ConnectOptions {
    ConnectOptions {
        host: "localhost".into(),
        port: server.addr().port(),
        user: LOADER.into(),
        password: PASSWORD.into(),
        database: DATABASE.into(),
        ca_pem: Some(std::fs::read(&server.tls().ca_pem_path).expect("a CA file")),
        timeouts: Timeouts::default(),
    }
}

impl Kit {
    /// A server with the catalog, a loader with the documented rights, and an empty table `dbo.t` of [`columns`].
    pub(crate) async fn start() -> Kit {
        let folder = tempfile::tempdir().expect("a folder");
        let control = Control::new();
        let hits = control.listen();
        let server = server(&folder.path().join("data"), Encryption::Required, Some(Arc::clone(&control)));
        let dba = dba(&server).await;
        let target = SqlServerTarget::new(options(&server), "dpone");
        let mut kit = Kit { server, control, target, hits, dba, folder };
        kit.run(&format!("CREATE LOGIN {LOADER} WITH PASSWORD = N'{PASSWORD}'")).await;
        kit.run(&format!("CREATE USER {LOADER} FOR LOGIN {LOADER}")).await;
        for batch in sink_sqlserver::catalog_batches("dpone", "stage", LOADER) {
            kit.run(&batch).await;
        }
        kit.run(&format!("USE master; GRANT VIEW SERVER STATE TO {LOADER}; USE {DATABASE}")).await;
        let list: Vec<String> = columns().iter().map(definition).collect();
        kit.run(&format!("CREATE TABLE dbo.t ({})", list.join(", "))).await;
        kit.run(&format!("GRANT SELECT, INSERT, DELETE, ALTER ON dbo.t TO {LOADER}")).await;
        kit
    }

    /// Runs a batch as the DBA; returns the first result with its cells as text.
    pub(crate) async fn run(&mut self, sql: &str) -> Vec<Vec<String>> {
        query(&mut self.dba, sql).await
    }

    /// The only number of a query.
    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        self.run(sql).await[0][0].parse().expect("a number")
    }

    /// What clients asked.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("data.log")).expect("a log")
    }

    /// Waits until the breakpoint is reached.
    pub(crate) async fn reached(&mut self, id: u64) {
        while self.hits.recv().await.expect("the server lives").hit != id {}
    }

    pub(crate) fn cut(&self, breakpoint: Breakpoint) -> u64 {
        self.control.set(breakpoint)
    }

    pub(crate) fn release(&self, id: u64, then: Then) {
        assert!(self.control.release(id, then), "a session is held");
    }

    /// Claims the target for the run.
    pub(crate) async fn claim(&self) -> (i64, i64, i64) {
        match self.target.claim(&claim("run", 1)).await.expect("a claim") {
            ClaimOutcome::Claimed { generation, operation_epoch, custody_epoch, .. } => {
                (generation, operation_epoch, custody_epoch)
            }
            other => panic!("{other:?}"),
        }
    }

    /// A written stage.
    pub(crate) async fn stage(&self, name: &str, rows: &[Vec<Value<'static>>]) -> StageRef {
        let mut writer = self.target.open_writer(&grant(name)).await.expect("a writer");
        let definition = stage(name);
        let object_id = writer.create_stage(&definition).await.expect("a stage");
        let stage = StageRef { definition, object_id };
        if !rows.is_empty() {
            let (bytes, facts) = sealed(rows);
            writer.write(&stage, &facts, bytes).await.expect("written");
        }
        writer.close().await.expect("closed");
        stage
    }
}

pub(crate) async fn dba(server: &RunningServer) -> Client<Compat<TcpStream>> {
    let mut config = Config::new();
    config.host("localhost");
    config.port(server.addr().port());
    config.database(DATABASE);
    config.authentication(AuthMethod::sql_server("sa", DBA_PASSWORD));
    config.trust_cert_ca(server.tls().ca_pem_path.to_string_lossy());
    let socket = TcpStream::connect(server.addr()).await.expect("a connection");
    Client::connect(config, socket.compat_write()).await.expect("a session")
}

async fn query(client: &mut Client<Compat<TcpStream>>, sql: &str) -> Vec<Vec<String>> {
    let results = match client.simple_query(sql).await {
        Ok(stream) => stream.into_results().await,
        Err(error) => Err(error),
    };
    let results = results.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let first = results.into_iter().next().unwrap_or_default();
    first.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

fn text(value: ColumnData<'static>) -> String {
    let null = || "NULL".to_owned();
    match value {
        ColumnData::I32(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::I64(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::F64(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::Bit(v) => v.map_or_else(null, |v| u8::from(v).to_string()),
        ColumnData::String(v) => v.map_or_else(null, |v| v.into_owned()),
        other => panic!("a test reads no such type: {other:?}"),
    }
}

/// The four types of the target-local digest, with and without NULL.
pub(crate) fn columns() -> Vec<StageColumn> {
    [
        ("id", "bigint", false),
        ("n", "bigint", true),
        ("f", "float(53)", false),
        ("g", "float(53)", true),
        ("s", "nvarchar(max)", false),
        ("t", "nvarchar(max)", true),
        ("d", "datetime2(6)", false),
        ("e", "datetime2(6)", true),
    ]
    .into_iter()
    .map(|(name, type_text, nullable)| StageColumn { name: name.into(), type_text: type_text.into(), nullable })
    .collect()
}

fn definition(column: &StageColumn) -> String {
    format!("[{}] {} {}", column.name, column.type_text, if column.nullable { "NULL" } else { "NOT NULL" })
}

/// Days of 2013-07-04 since 0001-01-01.
pub(crate) const DAY: i32 = 735_052;

pub(crate) fn at(days: i32, ticks: i64) -> Value<'static> {
    Value::DateTime { days, ticks, offset_seconds: None }
}

/// A plain row.
pub(crate) fn row(id: i64, text: &'static str) -> Vec<Value<'static>> {
    vec![
        Value::Int(id.into()),
        Value::Null,
        Value::Float(0.5),
        Value::Null,
        Value::Text(text),
        Value::Null,
        at(DAY, 0),
        Value::Null,
    ]
}

/// Rows as a sealed file: native bytes and what its record says.
pub(crate) fn sealed(rows: &[Vec<Value<'static>>]) -> (Box<dyn std::io::Read + Send>, ChunkFacts) {
    let layout = layout();
    let mut bytes = Vec::new();
    for row in rows {
        encode_values(&layout, row, 1 << 30, &mut bytes).expect("rows that can be written");
    }
    let facts = ChunkFacts {
        ordinal: 0,
        rows: rows.len() as u64,
        encoded_bytes: bytes.len() as u64,
        file_sha256: Digest::of(&bytes),
    };
    (Box::new(Cursor::new(bytes)), facts)
}

fn layout() -> WireLayout {
    let declared: Vec<(String, String)> = columns()
        .into_iter()
        .map(|c| (c.name, if c.nullable { format!("{} nullable", c.type_text) } else { c.type_text }))
        .collect();
    WireLayout::new(declared.iter().map(|(name, text)| (name.as_str(), text.as_str()))).expect("a layout")
}

/// The digest of rows as this side knows it.
pub(crate) fn sum(rows: &[Vec<Value<'static>>]) -> TypedSum {
    let layout = layout();
    let mut sum = TypedSum::ZERO;
    for row in rows {
        let mut bytes = Vec::new();
        encode_values(&layout, row, 1 << 30, &mut bytes).expect("rows that can be written");
        sum.add_hash(Digest::of(&bytes).as_bytes());
    }
    sum
}

pub(crate) fn assert_digest(observation: &DigestObservation, rows: &[Vec<Value<'static>>]) {
    let seen = target_digest::decode(observation, rows.len() as u64).expect("a digest");
    assert_eq!(seen.rows, rows.len() as u64);
    assert!(seen.sum == sum(rows), "the server digests other bytes");
}

pub(crate) fn digest(label: &str) -> Digest {
    Digest::of(label.as_bytes())
}

pub(crate) fn request() -> TargetRequest {
    TargetRequest {
        table: TableName { schema: "dbo".into(), table: "t".into() },
        state_schema: "dpone".into(),
        staging_schema: "stage".into(),
        truncates: true,
    }
}

pub(crate) fn fence(run: &str, epoch: u64) -> RunFence {
    RunFence {
        operation_key: digest(&format!("{run} operation")),
        epoch,
        opener_nonce: digest(&format!("{run} nonce {epoch}")),
    }
}

pub(crate) fn operation(run: &str) -> OperationIdentity {
    let of = |what: &str| digest(&format!("{run} {what}"));
    OperationIdentity {
        target_identity: digest("target"),
        binding_id: digest("binding"),
        invocation_digest: of("invocation"),
        attempt_key: of("attempt"),
        scope_hash: of("scope"),
        operation_key: of("operation"),
        owner_digest: of("owner"),
        route_fingerprint: of("route"),
        load_id: "0123456789ABCDEFGHJKMNPQRS".into(),
        strategy: "full_refresh".into(),
    }
}

pub(crate) fn claim(run: &str, epoch: u64) -> Claim {
    Claim {
        request: request(),
        operation: operation(run),
        holder: digest(&format!("{run} holder")),
        fence: fence(run, epoch),
        lease_seconds: 3600,
    }
}

pub(crate) fn grant(name: &str) -> WriterGrant {
    WriterGrant {
        lock_resource: format!("grant:{name}"),
        application_name: format!("writer {name}"),
        lock_timeout_ms: 10_000,
        fence: fence("run", 1),
    }
}

pub(crate) fn stage(name: &str) -> StageDefinition {
    StageDefinition {
        name: TableName { schema: "stage".into(), table: format!("dpone_native_{name}") },
        owner_binding: digest(&format!("owner of {name}")),
        columns: columns(),
    }
}

/// An error with this code that is proved not done.
pub(crate) fn assert_refused<T: std::fmt::Debug>(result: Result<T, PortError>, code: &str) {
    let error = result.expect_err("a refusal");
    assert_eq!((error.code.as_str(), error.fate), (code, Fate::NotDone), "{error}");
}
