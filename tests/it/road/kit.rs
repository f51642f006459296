//! Both test servers as processes, the shipped binary, and a reader of what it left: everything a road test needs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
pub(crate) use testkit::ends::{SOURCE_PASSWORD, TARGET_PASSWORD, binary};
use testkit::ends::{Source, Target, write_connection};
use testkit::transfer::{self, Document};
pub(crate) use testkit::transfer::{FULL_REFRESH, ONE_DAY, RAW, VISIBLE};

/// The ClickHouse server, one for all tests.
pub(crate) fn source() -> &'static Source {
    static SOURCE: OnceLock<Source> = OnceLock::new();
    SOURCE.get_or_init(|| Source::start(None))
}

/// One test's world: a source database, a target server, folders for connections and journal.
pub(crate) struct Road {
    source: &'static Source,
    pub(crate) database: String,
    pub(crate) target: Target,
    folder: tempfile::TempDir,
}

impl Road {
    /// `name` is the test's own database at the source.
    pub(crate) fn new(name: &str) -> Road {
        Road::of(source(), name)
    }

    /// A road that begins at another server than [`source`].
    pub(crate) fn of(source: &'static Source, name: &str) -> Road {
        let folder = tempfile::tempdir().expect("a folder");
        let target = Target::start(folder.path(), None);
        source.run(&format!("CREATE DATABASE {name} ENGINE = Atomic"));
        let road = Road { source, database: name.to_owned(), target, folder };
        let connections = road.connections();
        write_connection(&connections.join("source"), &source.connection("localhost", name));
        write_connection(&connections.join("target"), &road.target.connection("localhost"));
        road
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn connections(&self) -> PathBuf {
        self.folder.path().join("connections")
    }

    /// Overwrites one key of a connection.
    pub(crate) fn set(&self, role: &str, key: &str, value: &[u8]) {
        std::fs::write(self.connections().join(role).join(key), value).expect("a file");
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    /// A source table `t` of [`testkit::transfer::SOURCE_COLUMNS`] with `rows` rows, and the empty target table.
    pub(crate) fn flights(&mut self, engine: &str, rows: u64) {
        transfer::create(self.source, &mut self.target, &self.database, "t", engine, rows);
    }

    /// What stands in the source table.
    pub(crate) fn source_content(&self) -> Vec<String> {
        transfer::source_content(self.source, &self.database, "t")
    }

    /// What stands in the target table.
    pub(crate) fn target_content(&mut self) -> Vec<String> {
        transfer::target_content(&mut self.target, "t")
    }

    /// Plants one row in the target.
    pub(crate) fn plant(&mut self, id: i64, at: &str) {
        self.target.run(&format!("INSERT INTO dbo.t (id, name, x, at) VALUES ({id}, N'planted', 0.5, '{at}')"));
    }

    /// Writes a manifest; returns its path.
    pub(crate) fn manifest(&self, text: &str) -> PathBuf {
        let digest: u64 = text.bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let path = self.folder.path().join(format!("{digest:x}.yaml"));
        std::fs::write(&path, text).expect("a manifest");
        path
    }

    /// `native-transfer VERB -f MANIFEST ...` with this road's connections and journal, not started.
    pub(crate) fn command(&self, verb: &str, manifest: &Path, run_id: &str) -> Command {
        self.command_with(verb, manifest, run_id, &self.journal())
    }

    /// The same with another journal.
    pub(crate) fn command_with(&self, verb: &str, manifest: &Path, run_id: &str, journal: &Path) -> Command {
        let mut command = Command::new(binary());
        command.arg(verb).arg("-f").arg(manifest).args(["--output", "json", "--run-id", run_id]);
        command.arg("--connections").arg(self.connections()).arg("--journal-root").arg(journal);
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, manifest: &Path, run_id: &str) -> Ended {
        Ended::of(self.command("run", manifest, run_id).spawn().expect("the product starts"))
    }

    pub(crate) fn inspect(&self, run_id: &str) -> Ended {
        let mut command = Command::new(binary());
        command.args(["inspect", "--run-id", run_id, "--journal-root"]).arg(self.journal());
        Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the product starts"))
    }
}

/// How a process of the product ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(child: Child) -> Ended {
        let output = child.wait_with_output().expect("the product ends");
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The JSON outcome.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of the refusal: of the outcome, or the text before `: ` on standard error.
    pub(crate) fn refusal(&self) -> String {
        if let Ok(document) = serde_json::from_str::<Value>(&self.stdout) {
            return document["error"]["code"].as_str().unwrap_or("no error").to_owned();
        }
        let line = self.stderr.lines().rfind(|line| line.contains(": ")).unwrap_or_default();
        line.split(": ").next().unwrap_or_default().to_owned()
    }
}

/// A document that moves `DATABASE.t` to `dbo.t`; tests replace parts of it.
pub(crate) fn manifest(database: &str, mode: &str, strategy: &str) -> String {
    Document { name: "road", source: (database, "t"), target: "t", mode, strategy }.text()
}
