//! The shipped binary and both ends of a transfer, made ready as their owners would: what tests of a whole road start from.
#![allow(clippy::expect_used, clippy::panic, clippy::missing_panics_doc, reason = "a test ends where its kit fails")]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::control::Client;
use crate::reader::Reader;
use crate::spawn::{self, Clickhouse, ServerProcess, SqlServer};

/// Password of the source's user.
pub const SOURCE_PASSWORD: &str = "planted-source-secret-5b2e";
/// Password of the loader at the target.
pub const TARGET_PASSWORD: &str = "Planted-Target-Secret-91c7";
/// User of the source.
pub const SOURCE_USER: &str = "reader";
/// Login and database user that loads.
pub const LOADER: &str = "loader";
/// Database of the target.
pub const DATABASE: &str = "sales";
const DBA_PASSWORD: &str = "Dba-Secret-0";

/// A binary of the workspace: `VARIABLE` if set, else built once beside the running test.
///
/// `VARIABLE` is the name in upper case with `_BIN`, for example `NATIVE_TRANSFER_BIN`.
pub fn built(package: &str, name: &str) -> PathBuf {
    let variable = format!("{}_BIN", name.to_uppercase().replace('-', "_"));
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let own = std::env::current_exe().expect("the test knows itself");
    // target/PROFILE/deps/it-HASH
    let profile = own.ancestors().nth(2).expect("a profile folder");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--package", package, "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"));
    build.arg("--target-dir").arg(profile.parent().expect("a target folder"));
    if profile.file_name().is_some_and(|name| name == "release") {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo starts").success(), "{name} builds");
    profile.join(name)
}

/// The `native-transfer` binary.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| built("cli", "native-transfer"))
}

/// The keys of one end's connection, as files of a folder or as a Secret (design.md 4).
pub type Connection = [(&'static str, String); 7];

fn connection(role: &str, host: &str, port: u16, login: (&str, &str), database: &str, ca: Vec<u8>) -> Connection {
    let (user, password) = login;
    [
        ("host", host.to_owned()),
        ("port", port.to_string()),
        ("user", user.to_owned()),
        ("password", password.to_owned()),
        ("database", database.to_owned()),
        ("transfer.dpone.io.role", role.to_owned()),
        ("ca.crt", String::from_utf8(ca).expect("PEM")),
    ]
}

/// Writes a connection as a folder of files, which is created.
pub fn write_connection(folder: &Path, connection: &Connection) {
    std::fs::create_dir_all(folder).expect("a folder");
    for (key, value) in connection {
        std::fs::write(folder.join(key), value).expect("a file");
    }
}

/// A ClickHouse server; each test has a database of its own there.
#[derive(Debug)]
pub struct Source {
    server: ServerProcess,
    folder: PathBuf,
}

fn sans(address: Option<IpAddr>) -> Vec<String> {
    let own = address.map(|address| address.to_string());
    ["localhost".to_owned(), "127.0.0.1".to_owned()].into_iter().chain(own).collect()
}

impl Source {
    /// Starts the server on an address (`127.0.0.1` when none); it ends with this process.
    pub fn start(address: Option<IpAddr>) -> Source {
        Source::with(address, None)
    }

    /// Starts a server on `127.0.0.1` whose replicated tables coordinate in a ZooKeeper, as the replica `name`.
    pub fn start_replica(zookeeper: SocketAddr, name: &str) -> Source {
        Source::with(None, Some((zookeeper, name.to_owned())))
    }

    fn with(address: Option<IpAddr>, replica: Option<(SocketAddr, String)>) -> Source {
        let folder = temporary_folder("source");
        let server = spawn::clickhouse(&Clickhouse {
            http: true,
            query_log: Some(folder.join("queries.jsonl")),
            listen: address,
            sans: sans(address),
            replica,
            ..Clickhouse::new(&folder.join("data"), SOURCE_USER, SOURCE_PASSWORD)
        })
        .expect("the source starts");
        Source { server, folder }
    }

    /// Runs one statement over HTTP; returns its answer.
    pub fn run(&self, sql: &str) -> String {
        let port = self.server.ready().http_port.expect("HTTP is served");
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
        let head = format!(
            "POST / HTTP/1.0\r\nX-ClickHouse-User: {SOURCE_USER}\r\nX-ClickHouse-Key: {SOURCE_PASSWORD}\r\nContent-Length: {}\r\n\r\n",
            sql.len()
        );
        socket.write_all(head.as_bytes()).expect("the request goes out");
        socket.write_all(sql.as_bytes()).expect("the request goes out");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.0 200"), "{sql}: {answer}");
        body.to_owned()
    }

    /// The rows of a query, sorted; cells are joined by a tab.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let mut rows: Vec<String> = self.run(&format!("{sql} FORMAT TSV")).lines().map(str::to_owned).collect();
        rows.sort();
        rows
    }

    /// Whether the query log has an entry with all of `parts`.
    pub fn was_asked(&self, parts: &[&str]) -> bool {
        self.times_asked(parts) > 0
    }

    /// How many entries of the query log have all of `parts`.
    pub fn times_asked(&self, parts: &[&str]) -> usize {
        let log = std::fs::read_to_string(self.folder.join("queries.jsonl")).expect("a query log");
        log.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }

    /// Makes a `ReplacingMergeTree` table a `ReplicatedReplacingMergeTree` of the path `/tables/DATABASE/TABLE` with the
    /// parts that it has. It stays read-only, and ZooKeeper knows nothing of it yet.
    pub fn replicate(&self, database: &str, table: &str) {
        self.run(&format!("DETACH TABLE {database}.{table}"));
        self.run(&format!("ATTACH TABLE {database}.{table} AS REPLICATED"));
    }

    /// Registers a replicated table in ZooKeeper. The first replica of a path brings its parts; a later one knows their
    /// log and holds none of them.
    pub fn register(&self, database: &str, table: &str) {
        self.run(&format!("SYSTEM RESTORE REPLICA {database}.{table}"));
    }

    /// The server behind a relay ([`crate::relay`]).
    pub fn behind(&self) -> crate::relay::Behind {
        crate::relay::Behind { address: (Ipv4Addr::LOCALHOST, self.port()).into(), ca: self.ca_file().to_owned() }
    }

    /// The server's certificate with its key, for a relay that holds it.
    pub fn certificate(&self) -> std::sync::Arc<rustls::ServerConfig> {
        let folder = self.ca_file().parent().expect("a folder");
        servers::tls::TestTls::create_or_load(folder, &sans(None)).expect("the server's certificates").server_config
    }

    /// How a transfer connects to a database here, by a name or address of this machine.
    pub fn connection(&self, host: &str, database: &str) -> Connection {
        connection("source", host, self.port(), (SOURCE_USER, SOURCE_PASSWORD), database, self.ca())
    }

    /// Address that the native protocol is served on.
    pub fn host(&self) -> &str {
        &self.server.ready().host
    }

    /// Port of the native protocol.
    pub fn port(&self) -> u16 {
        self.server.ready().port
    }

    /// PEM file of the server's CA.
    pub fn ca_file(&self) -> &Path {
        &self.server.ready().ca
    }

    /// The server's CA, PEM.
    pub fn ca(&self) -> Vec<u8> {
        std::fs::read(self.ca_file()).expect("a CA file")
    }
}

/// A folder below the temporary folder; it is removed by the next cleaning of that folder.
fn temporary_folder(name: &str) -> PathBuf {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("native-transfer-{name}-{}-{number}", std::process::id()));
    // What a process of the same id left is not ours to read.
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

/// A SQL Server of one test: a database, the printed catalog, a loader with exactly the documented rights.
#[derive(Debug)]
pub struct Target {
    /// The server.
    pub server: ServerProcess,
    /// Its breakpoints.
    pub control: Client,
    reader: Reader,
}

impl Target {
    /// Starts a server with its data below `folder`, on an address (`127.0.0.1` when none).
    pub fn start(folder: &Path, address: Option<IpAddr>) -> Target {
        let options = SqlServer {
            query_log: Some(folder.join("statements.jsonl")),
            listen: address,
            sans: sans(address),
            ..SqlServer::new(&folder.join("sqlserver"), "sa", DBA_PASSWORD, DATABASE)
        };
        let server = spawn::sqlserver(&options).expect("the target starts");
        let control = server.control().expect("breakpoints");
        let ready = server.ready();
        let mut reader = Reader::connect(&ready.host, ready.port, &ready.ca, "sa", DBA_PASSWORD, DATABASE);
        reader.run(&format!("CREATE LOGIN [{LOADER}] WITH PASSWORD = N'{TARGET_PASSWORD}'"));
        reader.run(&format!("CREATE USER [{LOADER}] FOR LOGIN [{LOADER}]"));
        let script = Command::new(binary())
            .args(["target-catalog", "print", "--staging-schema", "stage", "--loader", LOADER])
            .output()
            .expect("the product starts");
        assert!(script.status.success());
        for batch in String::from_utf8(script.stdout).expect("text").split("\nGO\n") {
            if batch.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("--")) {
                reader.run(batch);
            }
        }
        reader.run(&format!("USE master; GRANT VIEW SERVER STATE TO [{LOADER}]; USE [{DATABASE}]"));
        Target { server, control, reader }
    }

    /// Runs a batch as the DBA.
    pub fn run(&mut self, sql: &str) {
        self.reader.run(sql);
    }

    /// The rows of a query of the DBA, sorted; cells are joined by a tab.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        let mut rows = self.reader.rows(sql);
        rows.sort();
        rows
    }

    /// The only cell of a query.
    pub fn value(&mut self, sql: &str) -> String {
        let mut rows = self.reader.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows.remove(0)
    }

    /// Names of tables in the staging schema.
    pub fn stages(&mut self) -> Vec<String> {
        self.rows("SELECT name FROM sys.tables WHERE schema_id = SCHEMA_ID(N'stage')")
    }

    /// States of all custody rows.
    pub fn custody(&mut self) -> Vec<String> {
        self.rows("SELECT state FROM dpone.native_transfer_custody")
    }

    /// Creates a target table that the loader may load.
    pub fn create(&mut self, table: &str, columns: &str) {
        self.run(&format!("CREATE TABLE dbo.[{table}] ({columns})"));
        self.run(&format!("GRANT SELECT, INSERT, DELETE, ALTER ON dbo.[{table}] TO [{LOADER}]"));
    }

    /// How a transfer connects as the loader, by a name or address of this machine.
    pub fn connection(&self, host: &str) -> Connection {
        let port = self.server.ready().port;
        connection("target", host, port, (LOADER, TARGET_PASSWORD), DATABASE, self.ca())
    }

    /// The server's CA, PEM.
    pub fn ca(&self) -> Vec<u8> {
        std::fs::read(&self.server.ready().ca).expect("a CA file")
    }
}
