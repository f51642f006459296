//! `testkit clickhouse`.

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use servers::clickhouse::{Accounts, EngineRelease, Keeper, Options, Server};
use tokio::signal::unix::{SignalKind, signal};

/// Runs until SIGTERM or Ctrl-C. When it is ready it prints one JSON line on standard output:
/// {"ready":true,"kind":"clickhouse","host":...,"port":...,"https_port":...,"http_port":...,"ca":...,"pid":...}
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Address and port of the native protocol; port 0 takes a free port.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Address and port of HTTP over TLS.
    #[arg(long, value_name = "ADDRESS:PORT")]
    https_listen: Option<SocketAddr>,
    /// Address and port of HTTP without TLS.
    #[arg(long, value_name = "ADDRESS:PORT")]
    http_listen: Option<SocketAddr>,
    /// Speak the native protocol without TLS.
    #[arg(long)]
    plaintext: bool,
    /// Data folder. Created when missing; an existing one is opened with what it holds.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// DNS name or address for the certificate; may be repeated. The CA is tls/ca.pem in the data folder.
    #[arg(long = "san", value_name = "NAME", default_values = ["localhost", "127.0.0.1"])]
    sans: Vec<String>,
    /// User who may connect.
    #[arg(long, default_value = "default", value_name = "NAME")]
    user: String,
    /// Password of --user. Others on this machine can see it; prefer --password-file.
    #[arg(long, value_name = "PASSWORD", required_unless_present_any = ["password_file", "accounts"])]
    password: Option<String>,
    /// File whose first line is the password of --user.
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,
    /// Another user who may connect, with the password; may be repeated.
    #[arg(long = "account", value_name = "USER:PASSWORD", value_parser = account)]
    accounts: Vec<(String, String)>,
    /// ClickHouse users.xml with profiles and row policies of the user `default`, as which every query runs.
    #[arg(long, value_name = "FILE")]
    users_config: Option<PathBuf>,
    /// ZooKeeper for replicated tables. They stay read-only: the embedded engine takes no part in fetching parts.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "replica")]
    zookeeper: Option<SocketAddr>,
    /// Name of this server among the replicas, as the macro {replica}.
    #[arg(long, value_name = "NAME", requires = "zookeeper")]
    replica: Option<String>,
    /// Append every query to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    query_log: Option<PathBuf>,
    /// Stop when standard input ends, so that no server outlives the process that started it.
    #[arg(long)]
    until_stdin_ends: bool,
    /// The engine behind the server; without it that of NT_CLICKHOUSE_ENGINE, or 26.7.
    #[arg(long, value_name = "VERSION")]
    engine: Option<EngineRelease>,
}

fn account(text: &str) -> Result<(String, String), String> {
    let (user, password) = text.split_once(':').ok_or("an account is USER:PASSWORD")?;
    Ok((user.to_owned(), password.to_owned()))
}

impl Arguments {
    fn accounts(&self) -> Result<Accounts, Box<dyn Error>> {
        let mut accounts = self.accounts.clone();
        match (&self.password, &self.password_file) {
            (Some(password), _) => accounts.push((self.user.clone(), password.clone())),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| format!("the password file cannot be read: {error}"))?;
                accounts.push((self.user.clone(), text.lines().next().unwrap_or_default().to_owned()));
            }
            (None, None) => {}
        }
        Ok(Accounts::new(accounts))
    }
}

/// Runs the server until a signal ends it.
pub(crate) fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let accounts = arguments.accounts()?;
    let keeper = arguments.zookeeper.zip(arguments.replica.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Signals are listened for before the ready line, so that one sent at once is not lost.
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let server = Server::start(Options {
            engine: arguments.engine.map_or_else(EngineRelease::from_environment, Ok)?,
            data: arguments.data,
            listen: arguments.listen,
            plaintext: arguments.plaintext,
            https_listen: arguments.https_listen,
            http_listen: arguments.http_listen,
            sans: arguments.sans,
            accounts,
            query_log: arguments.query_log,
            users_config: arguments.users_config,
            keeper: keeper.map(|(address, replica)| Keeper { address, replica }),
        })
        .await?;
        let ready = serde_json::json!({
            "ready": true, "kind": "clickhouse", "host": server.address().ip().to_string(),
            "port": server.address().port(), "https_port": server.https_address().map(|address| address.port()),
            "http_port": server.http_address().map(|address| address.port()), "ca": server.ca_pem_path(), "pid": std::process::id(),
        });
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{ready}")?;
        stdout.flush()?;
        drop(stdout);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
                () = crate::stdin::ended(arguments.until_stdin_ends) => {}
        }
        server.stop().await;
        Ok(())
    })
}
