//! `testkit zookeeper`: Debian's ZooKeeper as one process with its own folder, port and memory.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

/// Where the package `libzookeeper-java` of Debian and Ubuntu puts it. The jar names what else it needs.
const JAR: &str = "/usr/share/java/zookeeper.jar";
/// Writes warnings; without them ZooKeeper says nothing.
const LOGGING_JARS: &str = "/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar";
const LOGGING: &str = "log4j.rootLogger=WARN, CONSOLE\n\
    log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender\n\
    log4j.appender.CONSOLE.Target=System.err\n\
    log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout\n\
    log4j.appender.CONSOLE.layout.ConversionPattern=%p %m%n\n";
/// Few threads and little memory: it keeps some hundred nodes of a test.
const JAVA_OPTIONS: [&str; 5] = [
    "-Xmx64m",
    "-XX:MaxMetaspaceSize=64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    // What it keeps is worth nothing after the test, and a busy disk must not hold up every request.
    "-Dzookeeper.forceSync=no",
];
/// How long it may take until it answers, and how often another port is tried when somebody else was faster.
const READY_MAX: Duration = Duration::from_secs(50);
const PORTS_MAX: u32 = 5;

/// Runs until SIGTERM or Ctrl-C, on 127.0.0.1. When it is ready it prints one JSON line on standard output:
/// {"ready":true,"kind":"zookeeper","host":...,"port":...,"pid":...}
///
/// It needs the package `libzookeeper-java` (tools/setup.sh installs it) and ends with this process,
/// however that ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Data folder. Created when missing; its log is zookeeper.log.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Stop when standard input ends, so that no server outlives the process that started it.
    #[arg(long)]
    until_stdin_ends: bool,
}

/// Runs the server until a signal ends it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    if !Path::new(JAR).exists() {
        return Err(format!("{JAR} is missing: tools/setup.sh installs the package libzookeeper-java").into());
    }
    // The server dies with the thread that started it, so that is this one and no worker of a runtime.
    let (mut server, address) = start(&arguments.data)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let waited: Result<(), Box<dyn Error>> = runtime.block_on(async {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let ready = serde_json::json!({
            "ready": true, "kind": "zookeeper", "host": address.ip().to_string(), "port": address.port(),
            "pid": std::process::id(),
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
        Ok(())
    });
    server.kill()?;
    server.wait()?;
    waited
}

/// Starts ZooKeeper on a free port. It cannot choose one itself, so one that was free a moment ago is tried.
fn start(data: &Path) -> Result<(Child, SocketAddr), Box<dyn Error>> {
    std::fs::create_dir_all(data)?;
    let data = data.canonicalize()?;
    std::fs::write(data.join("log4j.properties"), LOGGING)?;
    let log = data.join("zookeeper.log");
    for _ in 0..PORTS_MAX {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut server = spawn(&data, address, std::fs::File::create(&log)?)?;
        match wait_ready(&mut server, address) {
            Ok(true) => return Ok((server, address)),
            Ok(false) => {}
            Err(error) => {
                server.kill()?;
                server.wait()?;
                return Err(error);
            }
        }
    }
    Err(format!("ZooKeeper does not start: {}", std::fs::read_to_string(&log)?.trim()).into())
}

fn spawn(data: &Path, address: SocketAddr, log: std::fs::File) -> Result<Child, Box<dyn Error>> {
    let configuration = data.join("zoo.cfg");
    let text = format!(
        "dataDir={}\nclientPortAddress={}\nclientPort={}\ntickTime=2000\nmaxSessionTimeout=60000\n\
         admin.enableServer=false\n4lw.commands.whitelist=srvr\n",
        data.join("data").display(),
        address.ip(),
        address.port()
    );
    std::fs::write(&configuration, text)?;
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "java"])
        .args(JAVA_OPTIONS)
        .arg("-cp")
        .arg(format!("{}:{JAR}:{LOGGING_JARS}", data.display()))
        .arg("org.apache.zookeeper.server.ZooKeeperServerMain")
        .arg(&configuration)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .map_err(|error| format!("setpriv and java are needed for ZooKeeper: {error}").into())
}

/// Whether it answers; `false` when it has ended instead.
fn wait_ready(server: &mut Child, address: SocketAddr) -> Result<bool, Box<dyn Error>> {
    let deadline = Instant::now() + READY_MAX;
    while !answers(address) {
        if server.try_wait()?.is_some() {
            return Ok(false);
        }
        if Instant::now() > deadline {
            return Err("ZooKeeper does not answer".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}

/// Asks for its state, which only a ZooKeeper that serves gives.
fn answers(address: SocketAddr) -> bool {
    let ask = || {
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        socket.write_all(b"srvr")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains("Mode: standalone"))
}
