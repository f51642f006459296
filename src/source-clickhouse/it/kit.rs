//! One test server for the whole binary (the engine allows one data folder per process) and what the tests ask of it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use contract::block::Block;
use contract::error::PortError;
use contract::port::source::{
    FrozenWindow, ReplicaScope, Source as _, SourceAdmission, SourceEof, SourceMode, SourceRequest,
};
use servers::clickhouse::{Accounts, Connection, EngineRelease, Options, Server};
use source_clickhouse::{ClickHouseSource, ConnectOptions, Timeouts};

pub(crate) const USER: &str = "reader";
pub(crate) const PASSWORD: &str = "planted-secret-6f1b";
pub(crate) const QUERY_ID: &str = "dpone-native-0123456789abcdef0123456789abcdef";
pub(crate) const RAW: SourceMode = SourceMode::ExactRawRows(ReplicaScope::SingleServer);

/// `max_rows_to_read` of the profile: more than any test reads that is to succeed.
pub(crate) const ROWS_TO_READ_MAX: i64 = 4_000_000;

/// Policies cannot be made by statement in the embedded engine; `users.xml` is the only way. The profile is set
/// against an exact read (as far as the embedded engine starts with it), so every test shows that what the query sends wins.
const USERS: &str = r"<clickhouse>
  <profiles><default>
    <final>1</final>
    <apply_deleted_mask>0</apply_deleted_mask><apply_patch_parts>0</apply_patch_parts>
    <read_overflow_mode>break</read_overflow_mode><result_overflow_mode>break</result_overflow_mode>
    <timeout_overflow_mode>break</timeout_overflow_mode><sort_overflow_mode>break</sort_overflow_mode>
    <session_timezone>Asia/Tokyo</session_timezone><send_logs_level>trace</send_logs_level>
    <network_compression_method>ZSTD</network_compression_method>
    <use_query_condition_cache>1</use_query_condition_cache>
    <set_overflow_mode>break</set_overflow_mode><max_rows_to_read>4000000</max_rows_to_read>
  </default></profiles>
  <quotas><default/></quotas>
  <users><default>
    <password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
    <access_management>1</access_management>
    <databases>
      <d><filtered><filter>id &lt; 5</filter></filtered>
         <explosive><filter>throwIf(id = 150000) = 0</filter></explosive></d>
    </databases>
  </default></users>
</clickhouse>";

pub(crate) struct Kit {
    pub(crate) server: Server,
    pub(crate) ca_pem: Vec<u8>,
    folder: PathBuf,
    control: Mutex<Connection>,
}

impl Kit {
    /// Runs statements on the engine itself, not through the wire.
    pub(crate) fn run(&self, statements: &[&str]) {
        let mut control = self.control.lock().expect("no test died in a statement");
        for statement in statements {
            let result = control.query(statement, "TSV", &[]);
            assert!(result.error().is_none(), "{statement}: {:?}", result.error());
        }
    }

    /// The first row, as tab-separated text.
    pub(crate) fn value(&self, sql: &str) -> String {
        self.rows(sql).into_iter().next().unwrap_or_default()
    }

    /// All rows, each as tab-separated text.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        let mut control = self.control.lock().expect("no test died in a statement");
        let result = control.query(sql, "TSV", &[]);
        assert!(result.error().is_none(), "{sql}: {:?}", result.error());
        String::from_utf8_lossy(result.data()).lines().map(str::to_owned).collect()
    }

    /// Entries of the query log that contain `text`.
    pub(crate) fn logged(&self, text: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.join("queries.jsonl")).expect("a query log");
        log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }

    /// The queries that read rows of table `d.table`, in the order in which they were sent.
    pub(crate) fn data_queries(&self, table: &str) -> Vec<Logged> {
        let relation = format!("FROM `d`.`{table}`");
        let entries = self.logged(&relation).into_iter().map(|line| Logged::parse(&line));
        entries.filter(|entry| entry.text.starts_with("SELECT ")).collect()
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        ConnectOptions {
            host: "localhost".into(),
            port: self.server.address().port(),
            user: USER.into(),
            password: PASSWORD.into(),
            database: "default".into(),
            ca_pem: Some(self.ca_pem.clone()),
            client_identity: None,
            timeouts: Timeouts::default(),
        }
    }

    pub(crate) async fn source(&self) -> ClickHouseSource {
        ClickHouseSource::connect(&self.options()).await.expect("a session")
    }
}

/// One statement as the server received it.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) connection: u64,
    pub(crate) query_id: String,
    pub(crate) text: String,
    /// Name, value, and whether a server that does not know the setting must refuse.
    pub(crate) settings: Vec<(String, String, bool)>,
}

impl Logged {
    pub(crate) fn parse(line: &str) -> Logged {
        let entry: serde_json::Value = serde_json::from_str(line).expect("an entry of the query log");
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let settings = entry["settings"].as_array().expect("settings").iter().map(|setting| {
            let important = setting["important"].as_bool().expect("a flag");
            (text(&setting["name"]), text(&setting["value"]), important)
        });
        Logged {
            connection: entry["connection"].as_u64().expect("a number"),
            query_id: text(&entry["query_id"]),
            text: text(&entry["query"]),
            settings: settings.collect(),
        }
    }
}

/// The `filter` of the user's profile (26.9); none where the variable is not set.
pub(crate) const PROFILE_FILTER: &str = "NT_TEST_PROFILE_FILTER";

/// Whether the test `name` runs in a process whose `variable` is `value`; runs it in one of its own if not.
pub(crate) fn in_process_with(variable: &str, value: &str, name: &str) -> bool {
    if std::env::var(variable).is_ok_and(|current| current == value) {
        return true;
    }
    let program = std::env::current_exe().expect("the path of this binary");
    let child = std::process::Command::new(program).args(["--exact", name]).env(variable, value).output();
    let output = child.expect("a process");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{name} with {variable}={value}:\n{shown}");
    false
}

/// The server; started by the first test on threads of its own.
pub(crate) fn kit() -> Arc<Kit> {
    static KIT: OnceLock<Arc<Kit>> = OnceLock::new();
    Arc::clone(KIT.get_or_init(|| std::thread::spawn(start).join().expect("the test server starts")))
}

/// Ends the process without the engine's own destructors: they race with its background threads and crash at exit.
#[allow(unsafe_code, reason = "glibc's on_exit is the one hook that keeps the exit status")]
fn leave_without_destructors() {
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(i32, *mut libc::c_void), argument: *mut libc::c_void) -> i32;
    }
    extern "C" fn leave(status: i32, _: *mut libc::c_void) {
        // SAFETY: ends the process; takes no pointer.
        unsafe { libc::_exit(status) }
    }
    // SAFETY: the function lives as long as the process and ignores its argument.
    assert_eq!(unsafe { on_exit(leave, std::ptr::null_mut()) }, 0);
}

fn start() -> Arc<Kit> {
    // The folder lives as long as the process: the engine keeps files in it open.
    let folder = tempfile::tempdir().expect("a folder").keep();
    let users = folder.join("users.xml");
    let filter = std::env::var(PROFILE_FILTER).map(|filter| format!("<filter>{filter}</filter>")).unwrap_or_default();
    std::fs::write(&users, USERS.replace("</default></profiles>", &format!("{filter}</default></profiles>")))
        .expect("users.xml");
    let options = Options {
        engine: EngineRelease::from_environment().expect("an engine"),
        data: folder.join("data"),
        listen: "127.0.0.1:0".parse().expect("an address"),
        plaintext: false,
        https_listen: None,
        http_listen: None,
        sans: vec!["localhost".into(), "127.0.0.1".into()],
        accounts: Accounts::new(vec![(USER.into(), PASSWORD.into())]),
        query_log: Some(folder.join("queries.jsonl")),
        users_config: Some(users),
        keeper: None,
    };
    let runtime = Box::leak(Box::new(tokio::runtime::Runtime::new().expect("a runtime")));
    let server = runtime.block_on(Server::start(options)).expect("a server");
    leave_without_destructors();
    let ca_pem = std::fs::read(server.ca_pem_path()).expect("a CA file");
    let mut control = server.engine().connect().expect("an engine session");
    // The tests' own statements are to mean what they say.
    let sane = "SET final = 0, apply_deleted_mask = 1, \
                apply_patch_parts = 1, session_timezone = 'UTC', read_overflow_mode = 'throw', send_logs_level = 'none'";
    for statement in [sane, "CREATE DATABASE d ENGINE = Atomic"] {
        let result = control.query(statement, "TSV", &[]);
        assert!(result.error().is_none(), "{statement}: {:?}", result.error());
    }
    Arc::new(Kit { server, ca_pem, folder, control: Mutex::new(control) })
}

pub(crate) fn request(table: &str, mode: SourceMode) -> SourceRequest {
    SourceRequest {
        database: "d".into(),
        table: table.into(),
        mode,
        window: None,
        query_seconds: 600,
        max_row_bytes: 1 << 20,
    }
}

pub(crate) fn windowed(table: &str, mode: SourceMode, column: &str, start: i64, end: i64) -> SourceRequest {
    let window = FrozenWindow { column: column.into(), start_micros: start, end_micros: end };
    SourceRequest { window: Some(window), ..request(table, mode) }
}

/// One whole read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) admission: SourceAdmission,
    pub(crate) blocks: Vec<Block>,
    pub(crate) eof: SourceEof,
}

impl Read {
    /// The values of an `Int64` column over all blocks.
    pub(crate) fn int64(&self, column: usize) -> Vec<i64> {
        self.blocks
            .iter()
            .flat_map(|block| match &block.columns[column].values {
                contract::block::Values::Int64(values) => values.clone(),
                other => panic!("Int64 expected, {other:?} found"),
            })
            .collect()
    }
}

pub(crate) async fn read(kit: &Kit, request: &SourceRequest) -> Result<Read, PortError> {
    let mut source = kit.source().await;
    let admission = source.admit(request).await?;
    source.open(&admission, QUERY_ID).await?;
    let mut blocks = Vec::new();
    while let Some(block) = source.next_block().await? {
        blocks.push(block);
    }
    let eof = source.finish().await?;
    Ok(Read { admission, blocks, eof })
}

/// The code with which admission refuses.
pub(crate) async fn refusal(kit: &Kit, request: &SourceRequest) -> String {
    let error = kit.source().await.admit(request).await.expect_err("a refusal");
    assert_eq!(error.fate, contract::error::Fate::NotDone);
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(PASSWORD), "a secret in {shown}");
    error.code.as_str().to_owned()
}
