//! `testkit clickhouse` as a process: what it prints, keeps, and holds in memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use servers::clickhouse::EngineRelease;
use testkit::spawn::{Clickhouse, ServerProcess, clickhouse};

fn start(data: &Path) -> ServerProcess {
    clickhouse(&Clickhouse { http: true, plaintext: true, ..Clickhouse::new(data, "u", "p") })
        .expect("the server starts")
}

/// Asks by HTTP over TLS, which also proves the certificate.
fn ask(server: &ServerProcess, sql: &str) -> String {
    let ready = server.ready();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--user", "u:p", "--data", sql, "--cacert"])
        .arg(&ready.ca)
        .arg(format!("https://localhost:{}/", ready.https_port.expect("it listens")))
        .output()
        .expect("curl starts");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_killed_server_leaves_only_its_data() {
    let data = tempfile::tempdir().expect("a folder");
    let server = start(data.path());
    assert_eq!(server.ready().kind, "clickhouse");
    for sql in [
        "CREATE DATABASE kept",
        "CREATE TABLE kept.t (a UInt8) ENGINE = MergeTree ORDER BY a",
        "INSERT INTO kept.t VALUES (1), (2)",
    ] {
        assert_eq!(ask(&server, sql), "");
    }
    server.kill().expect("it ends");
    let server = start(data.path());
    assert_eq!(ask(&server, "SELECT groupArray(a) FROM kept.t"), "[1,2]\n");
    let processes = processes(&server);
    let in_child = EngineRelease::from_environment().expect("an engine") == EngineRelease::V26_9;
    assert_eq!(processes.len(), if in_child { 2 } else { 1 });
    let status = server.stop().expect("it ends");
    assert!(status.success(), "SIGTERM ends it in good order: {status}");
    for process in processes {
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "the server has not waited for {process}");
    }
    let server = start(data.path());
    assert_eq!(ask(&server, "SELECT count() FROM kept.t"), "2\n");
}

/// A query of the native protocol at revision 54448, whose answer nobody parses.
fn native_query(sql: &str) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = vec![u8::try_from(text.len()).expect("a short text")];
        bytes.extend(text.as_bytes());
        bytes
    };
    let revision = [0xb0, 0xa9, 0x03];
    let hello = [&[0][..], &text("test"), &[1, 1], &revision, &text(""), &text("u"), &text("p")].concat();
    let client = [&[1][..], &text(""), &[0], &text(""), &text(""), &[2, 0], &text(sql)].concat();
    let end = [&[2][..], &text(""), &[0, 0, 0]].concat();
    [hello, client, end].concat()
}

/// The server's process and, where the engine is driven in a child, that one.
fn processes(server: &ServerProcess) -> Vec<u32> {
    let own = server.ready().pid;
    let threads = std::fs::read_dir(format!("/proc/{own}/task")).expect("the process runs");
    let children = threads.flat_map(|thread| {
        // A thread may end while we look; its children go to another one.
        let list = std::fs::read_to_string(thread.expect("an entry").path().join("children")).unwrap_or_default();
        list.split_whitespace().map(|child| child.parse().expect("a number")).collect::<Vec<u32>>()
    });
    std::iter::once(own).chain(children).collect()
}

/// The peak of resident memory over all processes of the server.
fn memory_peak_kib(server: &ServerProcess) -> u64 {
    let peak = |process: u32| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a field of the kernel");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    };
    processes(server).into_iter().map(peak).sum()
}

#[test]
fn a_large_result_is_never_held_whole() {
    const ROWS: u64 = 100_000_000;
    let data = tempfile::tempdir().expect("a folder");
    let server = start(data.path());
    let mut socket = TcpStream::connect((server.ready().host.as_str(), server.ready().port)).expect("it listens");
    socket.write_all(&native_query("SELECT number FROM numbers(1000000)")).expect("it reads");
    let mut buffer = vec![0; 1 << 20];
    let mut read_bytes = |socket: &mut TcpStream, mut count: u64| {
        while count > 0 {
            let step = socket.read(&mut buffer).expect("it answers");
            assert!(step > 0, "the server hung up");
            count = count.saturating_sub(step as u64);
        }
    };
    read_bytes(&mut socket, 8_000_000);
    let before = memory_peak_kib(&server);
    drop(socket);
    let mut socket = TcpStream::connect((server.ready().host.as_str(), server.ready().port)).expect("it listens");
    socket.write_all(&native_query(&format!("SELECT number FROM numbers({ROWS})"))).expect("it reads");
    read_bytes(&mut socket, 8 * ROWS);
    let growth = memory_peak_kib(&server).saturating_sub(before);
    assert!(growth < 100 << 10, "800 MB of rows took {growth} KiB more at the peak");
}

#[test]
fn a_stopping_server_ends_no_result_as_if_it_were_whole() {
    let data = tempfile::tempdir().expect("a folder");
    let server = start(data.path());
    let mut socket = TcpStream::connect((server.ready().host.as_str(), server.ready().port)).expect("it listens");
    socket.write_all(&native_query("SELECT materialize(toUInt64(0)) FROM system.numbers")).expect("it reads");
    let mut seen = vec![0; 4 << 20];
    socket.read_exact(&mut seen).expect("rows come");
    assert!(server.stop().expect("it ends").success());
    // Whatever was on the way still arrives. All rows are zeros, so a last byte of 5 would be the packet EndOfStream.
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    assert_ne!(rest.last(), Some(&5), "a clean end of an endless query");
}
