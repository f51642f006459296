//! Microsoft's ODBC driver, through mssql-python. The expectations are in the Python files beside this one.

use std::process::Command;

use servers::sqlserver::Encryption;

use super::{DATABASE, PASSWORD, TestServer, USER, python, run};

/// Runs one of the scripts against a server; it prints what differs and fails.
fn script(server: &TestServer, name: &str) {
    let file = format!("{}/it/sqlserver/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python());
    command
        .arg(file)
        .env("SSL_CERT_FILE", server.ca())
        .env("MSSQL_PORT", server.port().to_string())
        .env("MSSQL_USER", USER)
        .env("MSSQL_PASSWORD", PASSWORD)
        .env("MSSQL_DATABASE", DATABASE)
        .env("MSSQL_ENCRYPT", if server.options.encryption == Encryption::Required { "yes" } else { "no" });
    let (success, output) = run(&mut command, "");
    assert!(success, "{name}:\n{output}");
}

#[test]
fn every_type_comes_back_exactly() {
    script(&TestServer::start(), "odbc_types.py");
}

#[test]
fn parameters_of_every_type_arrive_exactly() {
    script(&TestServer::start(), "odbc_parameters.py");
}

#[test]
fn transactions_errors_and_row_counts_are_those_of_sql_server() {
    script(&TestServer::start(), "odbc_transactions.py");
}

#[test]
fn sessions_block_time_out_and_die_as_those_of_sql_server() {
    script(&TestServer::start(), "odbc_sessions.py");
}

#[test]
fn a_login_is_possible_in_every_mode_of_encryption() {
    for encryption in [Encryption::Required, Encryption::Off, Encryption::NotSupported] {
        script(&TestServer::with_encryption(encryption), "odbc_login.py");
    }
}
