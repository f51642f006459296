//! Why this reader exists: the `klickhouse` crate takes the same broken answers for complete results.
//!
//! The test is about a foreign crate and stays as the evidence of docs/adr/0001-clickhouse-reader.md. Should it fail after
//! an upgrade, the crate may have been repaired and the decision can be looked at again.

use std::time::Duration;

use futures_util::StreamExt as _;
use klickhouse::{Client, ClientOptions, RawRow};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::script::*;
use crate::wire::protocol::server;
use crate::wire::query::put_text;

/// Serves one connection: greets, acknowledges the crate's own first `SET`, answers the query with `packets`, ends.
async fn serve(listener: TcpListener, packets: Vec<Vec<u8>>) -> std::io::Result<()> {
    let (mut socket, _) = listener.accept().await?;
    // A message has come once its text is there; nothing here depends on how it is cut into segments.
    let turns = [("ClickHouse", hello()), ("SET ", end_of_stream()), ("SELECT ", packets.concat())];
    for (text, reply) in turns {
        let mut seen = Vec::new();
        while !seen.windows(text.len()).any(|window| window == text.as_bytes()) {
            let mut buffer = [0; 64 * 1024];
            let read = socket.read(&mut buffer).await?;
            assert!(read > 0, "a client that still talks");
            seen.extend_from_slice(&buffer[..read]);
        }
        socket.write_all(&reply).await?;
    }
    socket.shutdown().await?;
    // Unread bytes would turn the end into a reset that takes sent rows with it.
    while socket.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// Rows that klickhouse hands out, and whether it reported any error.
async fn klickhouse_reads(packets: Vec<Vec<u8>>) -> (usize, bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(serve(listener, packets));
    let client = Client::connect(address, ClientOptions::default()).await.expect("a connection");
    let mut stream = client.query::<RawRow, _>("SELECT n FROM d.t").await.expect("a query");
    let (mut rows, mut failed) = (0, false);
    while let Some(row) = stream.next().await {
        match row {
            Ok(_) => rows += 1,
            Err(_) => failed = true,
        }
    }
    drop(stream);
    drop(client);
    server.await.expect("the server").expect("a socket");
    (rows, failed)
}

fn misbehaviours() -> Vec<(&'static str, Vec<u8>)> {
    let mut log = vec![server::LOG as u8];
    put_text(&mut log, "");
    log.extend(block_bytes(0, &[]));
    vec![
        ("cut between blocks", Vec::new()),
        ("cut inside a block", numbers(10, 100)[..60].to_vec()),
        ("unknown packet", vec![99]),
        ("server log", log),
        ("unknown type", data(1, &[("n", "Time64(3)", vec![0; 8])])),
    ]
}

#[tokio::test]
async fn klickhouse_ends_cleanly_where_this_reader_fails() {
    for (what, bytes) in misbehaviours() {
        let packets = vec![data(0, &[("n", "Int64", vec![])]), numbers(0, 5), numbers(5, 5), bytes];
        let reading = timeout(Duration::from_secs(20), klickhouse_reads(packets.clone()));
        let (rows, failed) = reading.await.unwrap_or_else(|_| panic!("klickhouse hangs: {what}"));
        assert!(rows == 10 && !failed, "klickhouse, {what}: {rows} rows, failed {failed}");
        let (rows, end) = read_all(Scripted::answering(&packets), number_shape()).await;
        assert!(rows == 10 && end.is_err(), "own reader, {what}: {end:?}");
    }
}
