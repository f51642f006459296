//! The `klickhouse` crate, at revision 54448 with LZ4, over TLS.

use std::sync::Arc;

use futures_util::StreamExt as _;
use klickhouse::{Client, ClientOptions, KlickhouseError, Row};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;

use super::{PASSWORD, USER, fixture};

#[derive(Clone, Debug, PartialEq, Row)]
struct Reading {
    id: i64,
    text: Option<String>,
    value: f64,
}

async fn connect(password: &str) -> Result<Client, KlickhouseError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&fixture().ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = tokio::net::TcpStream::connect(fixture().tls).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let (read, write) = tokio::io::split(TlsConnector::from(Arc::new(config)).connect(name, socket).await?);
    let options = ClientOptions { username: USER.into(), password: password.into(), ..ClientOptions::default() };
    Client::connect_stream(read, write, options).await
}

fn code(error: &KlickhouseError) -> i32 {
    match error {
        KlickhouseError::ServerException { code, .. } => *code,
        other => panic!("a server's exception, not {other}"),
    }
}

#[tokio::test]
async fn klickhouse() {
    let client = connect(PASSWORD).await.unwrap();
    for sql in [
        "DROP TABLE IF EXISTS klick",
        "CREATE TABLE klick (id Int64, text Nullable(String), value Float64) ENGINE = MergeTree ORDER BY id",
    ] {
        client.execute(sql).await.unwrap();
    }
    let rows: Vec<Reading> = (0..1000)
        .map(|id| Reading { id, text: (id % 3 != 0).then(|| format!("text {id}\0")), value: id as f64 / 7.0 })
        .collect();
    client.insert_native_block("INSERT INTO klick FORMAT Native", rows.clone()).await.unwrap();
    let back: Vec<Reading> = client.query_collect("SELECT id, text, value FROM klick ORDER BY id").await.unwrap();
    assert!(back == rows, "rows come back as they went in");
    let mut stream = client.query::<klickhouse::UnitValue<u64>, _>("SELECT number FROM numbers(500000)").await.unwrap();
    let (mut count, mut sum) = (0_u64, 0);
    while let Some(row) = stream.next().await {
        count += 1;
        sum += row.unwrap().0;
    }
    assert_eq!((count, sum), (500_000, 500_000 * 499_999 / 2));
    assert_eq!(code(&client.execute("SELECT * FROM nowhere").await.unwrap_err()), 60);
    let own: klickhouse::UnitValue<String> = client.query_one("SELECT currentUser()").await.unwrap();
    assert_eq!(own.0, "default");
}
