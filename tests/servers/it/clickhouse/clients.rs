//! Clients written by others.

use std::process::Command;

use super::{PASSWORD, USER, fixture, root, tool};

/// Runs a check and shows all it said when it fails.
fn passes(command: &mut Command) {
    let output = command.output().expect("the client starts");
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn clickhouse_driver() {
    let fixture = fixture();
    let port = fixture.tls.port().to_string();
    create_database("driver");
    passes(
        Command::new(tool("python-env.sh"))
            .arg(root().join("tests/servers/it/clickhouse/driver.py"))
            .args(["localhost", &port])
            .arg(&fixture.ca)
            .args([USER, PASSWORD, "driver"]),
    );
}

/// Makes a database through the HTTP interface, by curl.
fn create_database(name: &str) {
    let url = format!("https://localhost:{}/", fixture().https.port());
    passes(
        Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "--user", &format!("{USER}:{PASSWORD}")])
            .arg("--cacert")
            .arg(&fixture().ca)
            .args(["--data", &format!("CREATE DATABASE {name}"), &url]),
    );
}

#[test]
fn ch_go() {
    let fixture = fixture();
    create_database("chgo");
    passes(
        Command::new("go")
            .current_dir(root().join("tests/clients/go"))
            .args(["run", "."])
            .arg(fixture.tls.to_string())
            .arg("localhost")
            .arg(&fixture.ca)
            .args([USER, PASSWORD, "chgo"]),
    );
}

#[test]
fn curl() {
    let fixture = fixture();
    let ask = |extra: &[&str], url: &str| {
        let output = Command::new("curl")
            .args(["--silent", "--cacert"])
            .arg(&fixture.ca)
            .args(extra)
            .arg(url)
            .output()
            .expect("curl starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (secure, plain) = (format!("https://localhost:{}/", fixture.https.port()), format!("http://{}/", fixture.http));
    let user = format!("{USER}:{PASSWORD}");
    let by_user = ["--user", user.as_str()];
    assert_eq!(ask(&[], &format!("{plain}ping")), (Some(0), "Ok.\n".into()));
    for url in [&secure, &plain] {
        let posted = [by_user[0], by_user[1], "--data", "SELECT 1, 'a' FORMAT CSV"];
        assert_eq!(ask(&posted, url), (Some(0), "1,\"a\"\n".into()));
    }
    let status = ["--write-out", "%{http_code}", "--output", "/dev/null", by_user[0], by_user[1]];
    for (query, code) in [
        ("?query=SELECT+1", "200"),
        ("?query=SELECT+1&user=nobody", "403"),
        ("?query=CREATE+TABLE+got(a+UInt8)+ENGINE=Memory", "403"),
        ("?query=SELECT+*+FROM+nowhere", "404"),
        ("?query=SELECT+1&no_such_setting=1", "404"),
        ("?query=SELEC", "400"),
    ] {
        assert_eq!(ask(&status, &format!("{plain}{query}")), (Some(0), code.into()), "{query}");
    }
    // 18: the body broke off, after it had told why.
    let failing = [by_user[0], by_user[1], "--data", "SELECT throwIf(number = 1000000) FROM numbers(2000000)"];
    let (code, body) = ask(&failing, &plain);
    assert_eq!(code, Some(18));
    assert!(body.trim_end().contains("Code: 395. DB::Exception"), "the body tells the error");
}

#[test]
fn clickhouse_connect() {
    let fixture = fixture();
    create_database("connect");
    passes(
        Command::new(tool("python-env.sh"))
            .arg(root().join("tests/servers/it/clickhouse/connect.py"))
            .args(["localhost", &fixture.https.port().to_string()])
            .arg(&fixture.ca)
            .args([USER, PASSWORD, "connect"]),
    );
}
