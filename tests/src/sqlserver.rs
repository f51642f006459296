//! `testkit sqlserver`.

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use servers::sqlserver::control::Control;
use servers::sqlserver::sql::EngineOptions;
use servers::sqlserver::{Encryption, ServerOptions, SqlServer};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Runs until SIGTERM or Ctrl-C. When it is ready it prints one JSON line on standard output:
/// {"ready":true,"kind":"sqlserver","host":...,"port":...,"control_port":...,"ca":...,"pid":...}
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Address and port to listen on; port 0 takes a free port.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Data folder. Created when missing; an existing one is opened with what it holds.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// DNS name or address for the certificate; may be repeated. The CA is tls/ca.pem in the data folder.
    #[arg(long = "san", value_name = "NAME", default_values = ["localhost", "127.0.0.1"])]
    sans: Vec<String>,
    /// Login, a member of sysadmin.
    #[arg(long, default_value = "sa", value_name = "NAME")]
    user: String,
    /// Password of the login. Others on this machine can see it; prefer --password-file.
    #[arg(long, value_name = "PASSWORD", required_unless_present = "password_file")]
    password: Option<String>,
    /// File whose first line is the password of the login.
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,
    /// User database, created when the data folder is new.
    #[arg(long, default_value = "testdb", value_name = "NAME")]
    database: String,
    /// What the server offers: `required` encrypts everything, `off` does as the client asks, `not-supported` has no TLS.
    #[arg(long, default_value = "required")]
    encryption: Encryption,
    /// Append what clients ask to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    query_log: Option<PathBuf>,
    /// Stop when standard input ends, so that no server outlives the process that started it.
    #[arg(long)]
    until_stdin_ends: bool,
    /// Let tests hold sessions at chosen moments: address and port for their commands, one JSON object a line.
    #[arg(long, value_name = "ADDRESS:PORT")]
    control: Option<SocketAddr>,
}

impl Arguments {
    fn password(&self) -> Result<String, Box<dyn Error>> {
        match (&self.password, &self.password_file) {
            (Some(password), _) => Ok(password.clone()),
            (None, Some(file)) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| format!("the password file cannot be read: {error}"))?;
                Ok(text.lines().next().unwrap_or_default().to_owned())
            }
            (None, None) => Err("a password is needed: --password-file FILE or --password PASSWORD".into()),
        }
    }
}

/// Runs the server until a signal ends it.
pub(crate) fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let engine = EngineOptions {
        users: vec![(arguments.user.clone(), arguments.password()?)],
        database: arguments.database,
        ..EngineOptions::default()
    };
    // Signals are listened for before the ready line, so that one sent at once is not lost.
    let signals = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt) = {
        let _inside = signals.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let listener = arguments.control.map(|address| signals.block_on(TcpListener::bind(address))).transpose()?;
    let control_port = listener.as_ref().map(TcpListener::local_addr).transpose()?.map(|address| address.port());
    let control = listener.map(|listener| {
        let control = Control::new();
        signals.spawn(testkit::control::serve(listener, std::sync::Arc::clone(&control)));
        control
    });
    let server = SqlServer::start(ServerOptions {
        listen: arguments.listen,
        data_dir: arguments.data,
        sans: arguments.sans,
        encryption: arguments.encryption,
        query_log: arguments.query_log,
        control,
        engine,
    })?;
    let ready = serde_json::json!({
        "ready": true, "kind": "sqlserver", "host": server.addr().ip().to_string(), "port": server.addr().port(),
        "control_port": control_port,
        "ca": server.tls().ca_pem_path, "pid": std::process::id(),
    });
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{ready}")?;
    stdout.flush()?;
    drop(stdout);
    signals.block_on(async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = crate::stdin::ended(arguments.until_stdin_ends) => {}
        }
    });
    server.shutdown();
    Ok(())
}
