//! go-mssqldb. The expectations are in tests/clients/go/mssql.

use std::process::Command;

use super::{DATABASE, PASSWORD, TestServer, USER, run};

#[test]
fn go_mssqldb() {
    let server = TestServer::start();
    let mut command = Command::new("go");
    command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/go"))
        .args(["run", "./mssql", &server.port().to_string()])
        .arg(server.ca())
        .args([USER, PASSWORD, DATABASE]);
    let (success, output) = run(&mut command, "");
    assert!(success, "{output}");
}
