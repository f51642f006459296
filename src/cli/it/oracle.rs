//! What the source delivers, compared by a program that shares no code with us (tests/clients/oracle).
//!
//! It makes tables of random admitted schemas with duplicates, deletes and patches, reads them by a foreign client over
//! HTTP, encodes and sums them with its own code, and compares multisets and digests with the sealed files. One large
//! table is summed by ClickHouse in SQL. `ORACLE_SEED`, `ORACLE_TABLES` and `ORACLE_SCAN_BYTES` change what is compared.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use contract::digest::native_multiset_digest;
use contract::encode::RowEncoder;
use contract::limits::Limits;
use contract::mapping::{AdmittedColumn, MappedColumn, resolve, wire_layout};
use contract::port::source::{FrozenWindow, ReplicaScope, Source as _, SourceMode, SourceRequest};
use runtime::CancellationToken;
use runtime::measure::{Files, read_and_seal};
use serde_json::{Value, json};
use source_clickhouse::{ClickHouseSource, ConnectOptions, Timeouts};
use testkit::spawn::{Clickhouse, ServerProcess, clickhouse};

const USER: &str = "oracle";
const PASSWORD: &str = "oracle-password";
/// Small chunks, so that rows cross their borders.
const CHUNK_ROWS: u64 = 500;
const SCAN_CHUNK_ROWS: u64 = 65_536;

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn tool(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools").join(path);
    let output = Command::new(&path).output().expect("the tool starts");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path").trim().to_owned()
}

/// Ends with the test, whatever becomes of it.
struct Oracle(Child);

impl Drop for Oracle {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(server: &ServerProcess, seed: &str, tables: usize, scan_bytes: u64) -> Oracle {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/oracle/oracle.py");
    let ready = server.ready();
    let mut child = Command::new(tool("python-env.sh"))
        .arg(script)
        .args(["--port", &ready.https_port.expect("it listens").to_string(), "--user", USER, "--seed", seed])
        .args(["--tables", &tables.to_string(), "--scan-bytes", &scan_bytes.to_string()])
        .arg("--ca")
        .arg(&ready.ca)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    writeln!(child.stdin.as_mut().expect("piped"), "{PASSWORD}").expect("it reads");
    Oracle(child)
}

/// What one side is made to get wrong, so that the other has something to find.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    /// The digest of other rows.
    Digest,
    /// One bit of one sealed row.
    Bit,
    /// A sealed file that is not named.
    File,
}

/// Lets the oracle compare; returns its last line, and whether it agreed.
async fn compare(seed: &str, tables: usize, scan_bytes: u64, defect: Defect) -> (String, bool) {
    println!("ORACLE_SEED={seed}");
    let folder = tempfile::tempdir().expect("a folder");
    let server = clickhouse(&Clickhouse { http: true, ..Clickhouse::new(&folder.path().join("data"), USER, PASSWORD) })
        .expect("the server starts");
    let mut oracle = start(&server, seed, tables, scan_bytes);
    let lines = BufReader::new(oracle.0.stdout.take().expect("piped")).lines();
    let mut last = String::new();
    // The files of one table stay until the next is asked for.
    let mut _kept = None;
    for line in lines {
        last = line.expect("text");
        let question: Value = serde_json::from_str(&last).expect("JSON");
        if question["compared"].is_u64() {
            break;
        }
        let spool = tempfile::tempdir_in(folder.path()).expect("a folder");
        let mut answer = deliver(&server, &question, spool.path()).await;
        plant(&mut answer, defect);
        writeln!(oracle.0.stdin.as_mut().expect("piped"), "{answer}").expect("the oracle reads");
        _kept = Some(spool);
    }
    (last, oracle.0.wait().expect("it ends").success())
}

fn plant(answer: &mut Value, defect: Defect) {
    if answer["rows"] == 0 {
        return;
    }
    match defect {
        Defect::None => {}
        Defect::Digest => answer["digest"] = "0".repeat(64).into(),
        Defect::File => drop(answer["files"].as_array_mut().expect("files").pop()),
        Defect::Bit => {
            let file = answer["files"][0].as_str().expect("a path");
            let mut bytes = std::fs::read(file).expect("a sealed file");
            // The first field is the key, an eight-byte integer.
            bytes[3] ^= 1;
            std::fs::remove_file(file).and_then(|()| std::fs::write(file, bytes)).expect("it can be replaced");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_and_digests_are_those_of_an_independent_reader() {
    let seed = setting("ORACLE_SEED", &std::process::id().to_string());
    let number = |name, default| setting(name, default).parse().expect("a number");
    let (tables, scan_bytes) = (number("ORACLE_TABLES", "50"), number("ORACLE_SCAN_BYTES", "1000000000"));
    let tables_only = usize::try_from(tables).expect("a count of tables");
    let (last, agreed) = compare(&seed, tables_only, scan_bytes, Defect::None).await;
    println!("{last}");
    let end: Value = serde_json::from_str(&last).expect("JSON");
    assert!(
        agreed && end["compared"] == tables + u64::from(scan_bytes > 0),
        "ORACLE_SEED={seed}: the message is above"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_independent_reader_finds_each_planted_difference() {
    for defect in [Defect::Digest, Defect::Bit, Defect::File] {
        let (last, agreed) = compare("planted", 4, 0, defect).await;
        assert!(!agreed && !last.contains("compared"), "{defect:?} was not found");
    }
}

/// Reads the table by the product's source and pipeline, and says what was sealed.
async fn deliver(server: &ServerProcess, question: &Value, spool: &Path) -> Value {
    let scan = question["table"] == "scan";
    let request = SourceRequest {
        database: "oracle".into(),
        table: question["table"].as_str().expect("a name").into(),
        mode: match question["mode"].as_str() {
            Some("exact_raw_rows") => SourceMode::ExactRawRows(ReplicaScope::SingleServer),
            Some("query_visible") => SourceMode::QueryVisible,
            other => panic!("no mode {other:?}"),
        },
        window: question["window"].as_array().map(|bounds| FrozenWindow {
            column: "ts".into(),
            start_micros: bounds[0].as_i64().expect("microseconds"),
            end_micros: bounds[1].as_i64().expect("microseconds"),
        }),
        query_seconds: 600,
        max_row_bytes: 1 << 20,
    };
    let mut source = ClickHouseSource::connect(&options(server)).await.expect("a session");
    let admission = source.admit(&request).await.unwrap_or_else(|error| panic!("{question}: {error}"));
    let columns: Vec<MappedColumn> = admission.columns.iter().map(mapped).collect();
    let layout = wire_layout(&columns).expect("a layout");
    let types = columns.iter().map(|column| column.source.source_type.clone()).collect();
    let encoder = RowEncoder::new(layout, types, request.max_row_bytes).expect("an encoder");
    source.open(&admission, "dpone-native-00000000000000000000000000000001").await.expect("the query opens");
    let files = if scan { Files::Removed } else { Files::Kept };
    let limits = limits(if scan { SCAN_CHUNK_ROWS } else { CHUNK_ROWS });
    let sealed = read_and_seal(source, encoder, limits, spool, files, &CancellationToken::new()).await;
    let sealed = sealed.unwrap_or_else(|error| panic!("{question}: {error}"));
    json!({
        "rows": sealed.rows,
        "digest": native_multiset_digest(sealed.rows, &sealed.sum).to_string(),
        "columns": columns.iter().map(|column| [column.source.name.clone(), column.wire_type()]).collect::<Vec<_>>(),
        "files": sealed.files.iter().map(PathBuf::as_path).collect::<Vec<&Path>>(),
    })
}

fn mapped(column: &contract::port::source::SourceColumn) -> MappedColumn {
    let source = AdmittedColumn::try_from(column).expect("an admitted type");
    let sql = resolve(&source.name, source.source_type.as_str(), None).expect("a default type");
    MappedColumn { type_text: sql.to_string(), source, sql }
}

fn options(server: &ServerProcess) -> ConnectOptions {
    ConnectOptions {
        host: "localhost".into(),
        port: server.ready().port,
        user: USER.into(),
        password: PASSWORD.into(),
        database: "oracle".into(),
        ca_pem: Some(std::fs::read(&server.ready().ca).expect("a CA file")),
        client_identity: None,
        timeouts: Timeouts::default(),
    }
}

fn limits(max_rows: u64) -> Limits {
    Limits {
        max_total_encoded_bytes: u64::MAX,
        stage_allocated_bytes_stop_threshold: u64::MAX,
        max_rows,
        max_bytes: 16 << 20,
        max_row_bytes: 1 << 20,
        max_pending: 2,
        max_staging_tables: u64::MAX,
        parallelism: 2,
        encoding_parallelism: None,
        import_parallelism: None,
    }
}
