//! Starts the test servers as processes of their own, and ends them.
//!
//! One engine of ClickHouse serves one data folder of one process, and a test that kills a server must not kill itself; so
//! tests that need a server of their own start the `testkit` binary.

use std::io::{self, BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use servers::clickhouse::EngineRelease;

use crate::control::Client;

/// How long a server may take until it is ready.
const READY_MAX: Duration = Duration::from_secs(60);

/// The line that a server prints when it is ready.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    /// `clickhouse`, `sqlserver` or `zookeeper`.
    pub kind: String,
    /// Address that it listens on.
    pub host: String,
    /// Port of the native protocol, of TDS, or of ZooKeeper's clients.
    pub port: u16,
    /// Port of HTTP over TLS.
    pub https_port: Option<u16>,
    /// Port of HTTP.
    pub http_port: Option<u16>,
    /// Port for breakpoint commands.
    pub control_port: Option<u16>,
    /// PEM file of the CA that clients are to trust; empty for ZooKeeper, which speaks no TLS.
    #[serde(default)]
    pub ca: PathBuf,
    /// Process id of the server.
    pub pid: u32,
}

/// A server process. Dropping it kills it and waits for its end; it also ends with the process that started it.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    ready: Ready,
}

/// How `testkit clickhouse` is started; see its `--help`.
#[derive(Clone, Debug)]
pub struct Clickhouse {
    /// Data folder.
    pub data: PathBuf,
    /// Users and their passwords.
    pub accounts: Vec<(String, String)>,
    /// File of the query log.
    pub query_log: Option<PathBuf>,
    /// A ClickHouse users.xml.
    pub users_config: Option<PathBuf>,
    /// Address to listen on with a free port; `127.0.0.1` when none.
    pub listen: Option<IpAddr>,
    /// Names of the certificate; `localhost` and `127.0.0.1` when empty.
    pub sans: Vec<String>,
    /// The native protocol without TLS.
    pub plaintext: bool,
    /// HTTP with and without TLS, besides the native protocol.
    pub http: bool,
    /// ZooKeeper, and the name of this server among the replicas.
    pub replica: Option<(SocketAddr, String)>,
}

impl Clickhouse {
    /// The native protocol over TLS on the data folder `data`, for one user.
    pub fn new(data: &Path, user: &str, password: &str) -> Clickhouse {
        Clickhouse {
            data: data.to_owned(),
            accounts: vec![(user.to_owned(), password.to_owned())],
            query_log: None,
            users_config: None,
            listen: None,
            sans: Vec::new(),
            plaintext: false,
            http: false,
            replica: None,
        }
    }

    fn arguments(&self) -> Vec<std::ffi::OsString> {
        let mut arguments: Vec<std::ffi::OsString> = vec!["--data".into(), self.data.clone().into()];
        for (user, password) in &self.accounts {
            arguments.extend(["--account".into(), format!("{user}:{password}").into()]);
        }
        for (option, file) in [("--query-log", &self.query_log), ("--users-config", &self.users_config)] {
            if let Some(file) = file {
                arguments.extend([option.into(), file.into()]);
            }
        }
        if let Some(address) = self.listen {
            arguments.extend(["--listen".into(), SocketAddr::new(address, 0).to_string().into()]);
        }
        for san in &self.sans {
            arguments.extend(["--san".into(), san.into()]);
        }
        if self.plaintext {
            arguments.push("--plaintext".into());
        }
        if self.http {
            arguments.extend(["--http-listen", "127.0.0.1:0", "--https-listen", "127.0.0.1:0"].map(Into::into));
        }
        if let Some((zookeeper, name)) = &self.replica {
            arguments.extend(["--zookeeper".into(), zookeeper.to_string().into(), "--replica".into(), name.into()]);
        }
        arguments
    }
}

/// How `testkit sqlserver` is started; see its `--help`.
#[derive(Clone, Debug)]
pub struct SqlServer {
    /// Data folder.
    pub data: PathBuf,
    /// Login, a member of sysadmin.
    pub user: String,
    /// Its password.
    pub password: String,
    /// User database.
    pub database: String,
    /// File of the query log.
    pub query_log: Option<PathBuf>,
    /// Address to listen on with a free port; `127.0.0.1` when none.
    pub listen: Option<IpAddr>,
    /// Names of the certificate; `localhost` and `127.0.0.1` when empty.
    pub sans: Vec<String>,
    /// `required`, `off` or `not-supported`.
    pub encryption: String,
    /// Takes breakpoint commands.
    pub control: bool,
}

impl SqlServer {
    /// TLS required on the data folder `data`, for one sysadmin, with breakpoints.
    pub fn new(data: &Path, user: &str, password: &str, database: &str) -> SqlServer {
        SqlServer {
            data: data.to_owned(),
            user: user.to_owned(),
            password: password.to_owned(),
            database: database.to_owned(),
            query_log: None,
            listen: None,
            sans: Vec::new(),
            encryption: "required".to_owned(),
            control: true,
        }
    }

    fn arguments(&self) -> Vec<std::ffi::OsString> {
        let mut arguments: Vec<std::ffi::OsString> = vec!["--data".into(), self.data.clone().into()];
        for (option, value) in [
            ("--user", &self.user),
            ("--password", &self.password),
            ("--database", &self.database),
            ("--encryption", &self.encryption),
        ] {
            arguments.extend([option.into(), value.into()]);
        }
        if let Some(file) = &self.query_log {
            arguments.extend(["--query-log".into(), file.into()]);
        }
        if let Some(address) = self.listen {
            arguments.extend(["--listen".into(), SocketAddr::new(address, 0).to_string().into()]);
        }
        for san in &self.sans {
            arguments.extend(["--san".into(), san.into()]);
        }
        if self.control {
            arguments.extend(["--control", "127.0.0.1:0"].map(Into::into));
        }
        arguments
    }
}

/// Starts `testkit sqlserver` and waits until it is ready.
pub fn sqlserver(options: &SqlServer) -> io::Result<ServerProcess> {
    ServerProcess::start("sqlserver", options.arguments())
}

/// Starts `testkit clickhouse` and waits until it is ready. The engine is the one of `NT_CLICKHOUSE_ENGINE`; it is fetched
/// when it is not in the cache.
pub fn clickhouse(options: &Clickhouse) -> io::Result<ServerProcess> {
    let tool = EngineRelease::from_environment().map_err(io::Error::other)?.tool();
    let fetched = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool)).output()?;
    if !fetched.status.success() {
        return Err(io::Error::other(format!("{tool}: {}", String::from_utf8_lossy(&fetched.stderr))));
    }
    ServerProcess::start("clickhouse", options.arguments())
}

/// Starts `testkit zookeeper` with its data below `data` and waits until it is ready.
pub fn zookeeper(data: &Path) -> io::Result<ServerProcess> {
    ServerProcess::start("zookeeper", ["--data".as_ref(), data.as_os_str()])
}

/// The `testkit` binary: `TESTKIT_BIN` if set, else the one built beside the running test.
pub fn binary() -> io::Result<PathBuf> {
    if let Some(path) = std::env::var_os("TESTKIT_BIN") {
        return Ok(path.into());
    }
    let own = std::env::current_exe()?;
    own.ancestors()
        .skip(1)
        .take(3)
        .map(|folder| folder.join("testkit"))
        .find(|path| path.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "testkit is not built: cargo build -p testkit"))
}

impl ServerProcess {
    /// Starts `testkit KIND ARGUMENTS` and waits for its ready line. Its standard error is the caller's.
    pub fn start<I>(kind: &str, arguments: I) -> io::Result<ServerProcess>
    where
        I: IntoIterator<Item: AsRef<std::ffi::OsStr>>,
    {
        let mut child = Command::new(binary()?)
            .arg(kind)
            .args(arguments)
            .arg("--until-stdin-ends")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        match wait_ready(&mut child) {
            Ok(ready) => Ok(ServerProcess { child, ready }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// What the server said when it was ready.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Connects to the server's breakpoints.
    ///
    /// # Errors
    /// The server was started without them.
    pub fn control(&self) -> io::Result<Client> {
        let port = self.ready.control_port.ok_or_else(|| io::Error::other("the server takes no breakpoints"))?;
        Client::connect(([127, 0, 0, 1], port).into())
    }

    /// Asks the server to stop (SIGTERM) and waits for its end.
    pub fn stop(mut self) -> io::Result<ExitStatus> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        kill_process(pid, Signal::TERM)?;
        self.child.wait()
    }

    /// Kills the server at once (SIGKILL) and waits for its end.
    pub fn kill(mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_ready(child: &mut Child) -> io::Result<Ready> {
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the server has no standard output"))?;
    let (sender, line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line).map(|_| line);
        // Nobody waits any more when the server was too slow.
        let _ = sender.send(read);
    });
    let line = line.recv_timeout(READY_MAX).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if line.is_empty() {
        return Err(io::Error::other("the server ended before it was ready; its standard error says why"));
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}
