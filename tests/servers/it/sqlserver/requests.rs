//! Batches, procedure calls, transaction manager requests and cancelling, by the crate mssql-tds.

use std::time::{Duration, Instant};

use mssql_tds::connection::tds_client::{ExecuteOptions, ResultSet as _, StatementResult, TdsClient};
use mssql_tds::core::CancelHandle;
use mssql_tds::datatypes::sql_string::SqlString;
use mssql_tds::datatypes::sqltypes::SqlType;
use mssql_tds::error::Error;
use mssql_tds::message::parameters::rpc_parameters::{RpcParameter, StatusFlags};
use mssql_tds::message::transaction_management::TransactionIsolationLevel;

use super::{TestServer, number, query, shown};

/// Everything a batch answers, in order: `rows N` and `count N`.
async fn results(client: &mut TdsClient, mut result: StatementResult) -> Result<Vec<String>, Error> {
    let mut seen = Vec::new();
    loop {
        match result {
            StatementResult::End => return Ok(seen),
            StatementResult::NoRows { rows_affected } => seen.push(format!("count {rows_affected:?}")),
            StatementResult::Rows => {
                let mut rows = Vec::new();
                while let Some(row) = client.next_row().await? {
                    rows.push(row);
                }
                seen.push(format!("{:?}", shown(&rows)));
            }
        }
        result = client.advance().await?;
    }
}

async fn run(client: &mut TdsClient, sql: &str) -> Result<Vec<String>, Error> {
    let first = client.execute(sql.to_owned(), ExecuteOptions::new()).await?;
    results(client, first).await
}

#[tokio::test]
async fn every_statement_of_a_batch_is_answered_in_order_with_its_count() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    query(&mut client, "CREATE TABLE t (id int NOT NULL)").await.unwrap();
    let batch = "INSERT INTO t VALUES (1), (2), (3); SELECT id FROM t WHERE id > 1 ORDER BY id; UPDATE t SET id = id + 1 WHERE id < 3;
        DELETE FROM t WHERE id = 99; SELECT COUNT(*) FROM t";
    let seen = run(&mut client, batch).await.unwrap();
    let expected =
        ["count Some(3)", "[[\"Int(2)\"], [\"Int(3)\"]]", "count Some(2)", "count Some(0)", "[[\"Int(3)\"]]"];
    assert_eq!(seen, expected);
    let silent = run(&mut client, "SET NOCOUNT ON; UPDATE t SET id = 0; SELECT 1").await.unwrap();
    assert_eq!(silent, ["[[\"Int(1)\"]]"]);
}

fn int(name: &str, flags: StatusFlags, value: Option<i32>) -> RpcParameter {
    RpcParameter::new(Some(name.to_owned()), flags, SqlType::Int(value))
}

#[tokio::test]
async fn parameters_go_in_and_come_back() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    let text = SqlType::NVarcharMax(Some(SqlString::from_utf8_string("é漢😀".repeat(3000))));
    let params =
        vec![int("@a", StatusFlags::NONE, Some(41)), RpcParameter::new(Some("@t".into()), StatusFlags::NONE, text)];
    let statement = "SELECT @a + 1, DATALENGTH(@t)".to_owned();
    let first = client.execute_sp_executesql(statement, params, ()).await.unwrap();
    assert_eq!(results(&mut client, first).await.unwrap(), ["[[\"Int(42)\", \"BigInt(24000)\"]]"]);

    let procedure = "CREATE PROCEDURE dbo.p @a int, @b int OUTPUT, @c nvarchar(20) = N'default' OUTPUT AS
        BEGIN SELECT @a, @c; SET @b = @a * 2; SET @c = N'é'; RETURN 7 END";
    query(&mut client, procedure).await.unwrap();
    let by_reference = StatusFlags::BY_REF_VALUE;
    let out = SqlType::NVarchar(Some(SqlString::from_utf8_string("in".to_owned())), 20);
    let params = vec![
        int("@a", StatusFlags::NONE, Some(21)),
        int("@b", by_reference, None),
        RpcParameter::new(Some("@c".into()), by_reference, out),
    ];
    let first = client.execute_stored_procedure("dbo.p".into(), None, Some(params), ()).await.unwrap();
    assert_eq!(results(&mut client, first).await.unwrap(), ["[[\"Int(21)\", \"\\\"in\\\"\"]]"]);
    assert_eq!(client.get_return_status(), Some(7));
    let returned: Vec<String> =
        client.get_return_values().iter().map(|value| shown(&[vec![value.value.clone()]])[0][0].clone()).collect();
    assert_eq!(returned, ["Int(42)", "\"é\""]);

    let missing = client.execute_stored_procedure("dbo.missing".into(), None, None, ()).await;
    assert_eq!(number(&missing.err().unwrap()), 2812);
    let missing = vec![int("@a", StatusFlags::NONE, Some(1))];
    let missing = client.execute_stored_procedure("dbo.p".into(), None, Some(missing), ()).await;
    assert_eq!(number(&missing.err().unwrap()), 201);
}

async fn count(client: &mut TdsClient) -> String {
    shown(&query(client, "SELECT COUNT(*) FROM t").await.unwrap())[0][0].clone()
}

#[tokio::test]
async fn transactions_of_requests_and_of_t_sql_are_followed_by_the_client() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    query(&mut client, "CREATE TABLE t (id int NOT NULL)").await.unwrap();

    client.begin_transaction(TransactionIsolationLevel::Serializable, None).await.unwrap();
    assert!(client.has_active_transaction());
    query(&mut client, "INSERT INTO t VALUES (1)").await.unwrap();
    client.save_transaction("s".into()).await.unwrap();
    query(&mut client, "INSERT INTO t VALUES (2)").await.unwrap();
    client.rollback_transaction(Some("s".into()), None).await.unwrap();
    assert!(client.has_active_transaction(), "a savepoint does not end it");
    client.commit_transaction(None, None).await.unwrap();
    assert!(!client.has_active_transaction());
    assert_eq!(count(&mut client).await, "Int(1)");

    client.begin_transaction(TransactionIsolationLevel::NoChange, None).await.unwrap();
    query(&mut client, "DELETE FROM t").await.unwrap();
    client.rollback_transaction(None, None).await.unwrap();
    assert_eq!(count(&mut client).await, "Int(1)");

    for (sql, active) in [
        ("BEGIN TRANSACTION", true),
        ("COMMIT", false),
        ("BEGIN TRAN; INSERT INTO t VALUES (9)", true),
        ("ROLLBACK", false),
    ] {
        query(&mut client, sql).await.unwrap();
        assert_eq!(client.has_active_transaction(), active, "{sql}");
    }
    query(&mut client, "SET XACT_ABORT ON; BEGIN TRAN").await.unwrap();
    assert_eq!(number(&query(&mut client, "SELECT 1/0").await.unwrap_err()), 8134);
    assert!(!client.has_active_transaction(), "XACT_ABORT has ended it");
    assert_eq!(number(&client.commit_transaction(None, None).await.unwrap_err()), 3902);
    assert_eq!(count(&mut client).await, "Int(1)");
}

#[tokio::test]
async fn a_running_statement_is_cancelled_and_leaves_nothing() {
    let server = TestServer::start();
    let mut client = server.connect().await;
    query(&mut client, "CREATE TABLE t (id int NOT NULL)").await.unwrap();
    let cancel = CancelHandle::new();
    let started = Instant::now();
    let child = cancel.child_handle();
    let log = server.query_log.clone();
    let watcher = std::thread::spawn(move || {
        // The moment is seen in the log: the batch has arrived.
        while !std::fs::read_to_string(&log).unwrap().contains("WAITFOR") {
            std::thread::yield_now();
        }
        cancel.cancel();
    });
    let batch = "INSERT INTO t VALUES (1); WAITFOR DELAY '00:01:00'; INSERT INTO t VALUES (2)".to_owned();
    let outcome = match client.execute(batch, ExecuteOptions::new().cancel(&child)).await {
        Ok(first) => results(&mut client, first).await,
        Err(error) => Err(error),
    };
    watcher.join().unwrap();
    assert!(outcome.is_err(), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_secs(30));
    let left = shown(&query(&mut client, "SELECT COUNT(*) FROM t").await.unwrap());
    assert!([["Int(0)"], ["Int(1)"]].iter().any(|count| left == [count.map(str::to_owned)]), "{left:?}");
}

#[tokio::test]
async fn a_server_that_stops_and_starts_keeps_what_was_committed_and_its_certificate() {
    let mut server = TestServer::start();
    let leaf = server.running().tls().leaf_der.clone();
    let mut client = server.connect().await;
    query(&mut client, "CREATE TABLE t (id int NOT NULL); INSERT INTO t VALUES (1)").await.unwrap();
    query(&mut client, "BEGIN TRANSACTION; INSERT INTO t VALUES (2)").await.unwrap();
    server.restart();
    assert!(query(&mut client, "SELECT 1").await.is_err(), "its session has ended");
    assert_eq!(server.running().tls().leaf_der, leaf);
    let mut client = server.connect().await;
    assert_eq!(count(&mut client).await, "Int(1)");
}
