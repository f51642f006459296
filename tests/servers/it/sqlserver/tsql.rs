//! FreeTDS, through its command `tsql`.

use std::process::Command;

use servers::sqlserver::Encryption;

use super::{DATABASE, PASSWORD, TestServer, USER, run};

/// Runs batches (separated by `go`) and returns the rows, tab-separated, and the messages.
fn tsql(server: &TestServer, encryption: &str, batches: &str) -> String {
    let configuration = server.dir.path().join("freetds.conf");
    let text = format!(
        "[server]\nhost = localhost\nport = {}\ntds version = 7.4\nclient charset = UTF-8\nencryption = {encryption}\nca file = {}\ncheck certificate hostname = yes\n",
        server.port(),
        server.ca().display()
    );
    std::fs::write(&configuration, text).unwrap();
    let mut command = Command::new("tsql");
    command
        .args(["-S", "server", "-U", USER, "-P", PASSWORD, "-D", DATABASE, "-o", "qfh", "-v"])
        .env("FREETDSCONF", &configuration)
        .env("LC_ALL", "C.UTF-8");
    let (success, output) = run(&mut command, &format!("{batches}\nexit\n"));
    assert!(success, "{output}");
    output
}

#[test]
fn freetds_runs_batches_and_reads_values_and_errors() {
    let server = TestServer::start();
    let output = tsql(
        &server,
        "require",
        "CREATE TABLE f (id int NOT NULL, s nvarchar(50) NULL, d decimal(10,2) NULL)
go
INSERT INTO f VALUES (1, N'é漢', 12.5), (2, NULL, NULL)
go
SELECT id, s, d FROM f ORDER BY id
go
SELECT * FROM missing
go
BEGIN TRAN; DELETE FROM f; ROLLBACK; SELECT COUNT(*) FROM f
go",
    );
    assert!(output.contains("1\té漢\t12.50"), "{output}");
    assert!(output.contains("2\tNULL\tNULL"), "{output}");
    assert!(output.contains("Msg 208 (severity 16, state 1)"), "{output}");
    assert!(output.lines().any(|line| line.trim_end().ends_with('2') && !line.contains('\t')), "{output}");
}

#[test]
fn freetds_logs_in_in_every_mode_of_encryption() {
    for (offer, asks) in
        [(Encryption::Required, "require"), (Encryption::Off, "request"), (Encryption::NotSupported, "off")]
    {
        let server = TestServer::with_encryption(offer);
        let output = tsql(&server, asks, "SELECT N'answer' + N'ed'\ngo");
        assert!(output.contains("answered"), "{offer:?}: {output}");
    }
}
