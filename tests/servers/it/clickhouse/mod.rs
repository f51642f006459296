//! The ClickHouse server against clients written by others, and against bytes written here.
//!
//! All tests share one engine (a process has only one) behind a server with TLS and one without; each has its own database.

mod clients;
mod klick;
mod raw;
mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use servers::clickhouse::{Accounts, EngineRelease, Options, Server};

pub(crate) const USER: &str = "reader";
pub(crate) const PASSWORD: &str = "pass word 'ü'";

pub(crate) struct Fixture {
    /// The native protocol over TLS.
    pub(crate) tls: SocketAddr,
    /// The native protocol without TLS.
    pub(crate) plain: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) ca: PathBuf,
    pub(crate) query_log: PathBuf,
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the package lies in the repository")
}

/// The last line that a tool of `tests/tools` prints.
pub(crate) fn tool(name: &str) -> PathBuf {
    let output = Command::new(root().join("tests/tools").join(name)).output().expect("the tool starts");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path").trim().into()
}

pub(crate) fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clickhouse-it");
        if data.exists() {
            std::fs::remove_dir_all(&data).expect("the folder of an earlier run can be removed");
        }
        let engine = EngineRelease::from_environment().expect("an engine");
        tool(engine.tool());
        let query_log = data.join("queries.jsonl");
        let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let options = |plaintext| Options {
            engine,
            data: data.clone(),
            listen: free,
            plaintext,
            https_listen: (!plaintext).then_some(free),
            http_listen: (!plaintext).then_some(free),
            sans: vec!["localhost".into(), "127.0.0.1".into()],
            accounts: Accounts::new(vec![("other".into(), "other's".into()), (USER.into(), PASSWORD.into())]),
            query_log: Some(query_log.clone()),
            users_config: None,
            keeper: None,
        };
        // Both live as long as the process: tests end in any order.
        let runtime = Box::leak(Box::new(tokio::runtime::Runtime::new().expect("a runtime")));
        let tls = Box::leak(Box::new(runtime.block_on(Server::start(options(false))).expect("the server starts")));
        let plain = Box::leak(Box::new(runtime.block_on(Server::start(options(true))).expect("the server starts")));
        Fixture {
            tls: tls.address(),
            plain: plain.address(),
            https: tls.https_address().expect("it listens"),
            http: tls.http_address().expect("it listens"),
            ca: tls.ca_pem_path().to_owned(),
            query_log,
        }
    })
}
