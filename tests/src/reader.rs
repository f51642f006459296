//! Reads and writes the target as a DBA, with another library than the product writes with.
#![allow(clippy::expect_used, clippy::panic, reason = "a test ends where its kit fails")]

use std::fmt;
use std::path::Path;

use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

/// A session of a DBA.
pub struct Reader {
    runtime: Runtime,
    client: Client<Compat<TcpStream>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl Reader {
    /// Logs in at `host`, which the server's certificate must name.
    ///
    /// # Panics
    /// The server cannot be reached, or refuses the login.
    pub fn connect(host: &str, port: u16, ca: &Path, user: &str, password: &str, database: &str) -> Reader {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(async {
            let mut config = Config::new();
            config.host(host);
            config.port(port);
            config.database(database);
            config.application_name("dba");
            config.authentication(AuthMethod::sql_server(user, password));
            config.encryption(EncryptionLevel::Required);
            config.trust_cert_ca(ca.to_string_lossy());
            let socket = TcpStream::connect((host, port)).await.expect("a connection");
            socket.set_nodelay(true).expect("a socket");
            Client::connect(config, socket.compat_write()).await.expect("a session")
        });
        Reader { runtime, client }
    }

    /// Runs a batch; its results are not looked at.
    ///
    /// # Panics
    /// The server answers with an error.
    pub fn run(&mut self, sql: &str) {
        self.results(sql);
    }

    /// The rows of the first result; cells are joined by a tab, NULL is `\N`.
    ///
    /// # Panics
    /// The server answers with an error, or with a type that no test reads.
    pub fn rows(&mut self, sql: &str) -> Vec<String> {
        let first = self.results(sql).into_iter().next().unwrap_or_default();
        first.into_iter().map(|row| row.into_iter().map(text).collect::<Vec<_>>().join("\t")).collect()
    }

    fn results(&mut self, sql: &str) -> Vec<Vec<tiberius::Row>> {
        let client = &mut self.client;
        self.runtime.block_on(async {
            let results = match client.simple_query(sql).await {
                Ok(stream) => stream.into_results().await,
                Err(error) => Err(error),
            };
            results.unwrap_or_else(|error| panic!("{sql}: {error}"))
        })
    }
}

fn text(value: ColumnData<'static>) -> String {
    let null = || "\\N".to_owned();
    match value {
        ColumnData::U8(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::I16(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::I32(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::I64(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::F64(v) => v.map_or_else(null, |v| v.to_string()),
        ColumnData::Bit(v) => v.map_or_else(null, |v| u8::from(v).to_string()),
        ColumnData::String(v) => v.map_or_else(null, |v| v.into_owned()),
        other => panic!("a test reads no such type: {other:?}"),
    }
}
