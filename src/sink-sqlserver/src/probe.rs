//! The independent reader: `tiberius` reads the receipt, so that one library cannot both lose and misjudge a COMMIT
//! (design.md 3.6).

use contract::error::PortError;
use contract::port::target::{OperationIdentity, ReceiptProbe, TargetRequest};
use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

use crate::error::{SessionError, refuse};
use crate::options::ConnectOptions;
use crate::publication;
use crate::session::{Cell, Row};
use crate::sql::publish;
use crate::tls;

/// Reads the receipt under the publication locks.
pub(crate) async fn receipt(
    options: &ConnectOptions,
    request: &TargetRequest,
    operation: &OperationIdentity,
    lock_timeout_ms: u32,
) -> Result<ReceiptProbe, PortError> {
    let batch = publish::probe(request, operation, lock_timeout_ms);
    let deadline = options.timeouts.statement + std::time::Duration::from_millis(lock_timeout_ms.into());
    let rows = tokio::time::timeout(deadline, async {
        let mut client = connect(options).await?;
        let rows = query(&mut client, &batch).await.map_err(SessionError::observing)?;
        // Why ignored: the answer is complete; the server ends the session when the socket closes.
        let _ = client.close().await;
        Ok::<_, PortError>(rows)
    })
    .await
    .map_err(|_| SessionError::Transport.observing())??;
    match rows.first() {
        None => Ok(ReceiptProbe::AbsentUnderLock),
        Some(row) => publication::receipt(row).map(ReceiptProbe::Present).map_err(SessionError::observing),
    }
}

async fn connect(options: &ConnectOptions) -> Result<Client<Compat<TcpStream>>, PortError> {
    // Why again: whatever this library trusts besides the given CA, the server has passed our own check first.
    tls::verified_leaf(options).await?;
    let mut config = Config::new();
    config.host(&options.host);
    config.port(options.port);
    config.database(&options.database);
    config.application_name("native-transfer probe");
    config.authentication(AuthMethod::sql_server(&options.user, &options.password));
    config.encryption(EncryptionLevel::Required);
    if let Some(pem) = &options.ca_pem {
        config.trust_cert_ca_bundle(pem.clone());
    }
    config.command_timeout(None);
    config.handshake_timeout(Some(options.timeouts.connect));
    let unreachable = || {
        refuse(
            "native_transfer.target_unreachable",
            "the independent reader could not open a session: check server and network",
        )
    };
    let socket =
        TcpStream::connect((options.host.as_str(), options.port)).await.map_err(|e| unreachable().caused_by(e))?;
    socket.set_nodelay(true).map_err(|e| unreachable().caused_by(e))?;
    Client::connect(config, socket.compat_write()).await.map_err(|e| match e {
        tiberius::error::Error::Server(token) => server(token.code(), token.message()).observing(),
        _ => unreachable(),
    })
}

fn server(number: u32, message: &str) -> SessionError {
    let token = (number == 51_000).then(|| message.to_string());
    SessionError::Server { number, class: 16, token }
}

async fn query(client: &mut Client<Compat<TcpStream>>, sql: &str) -> Result<Vec<Row>, SessionError> {
    let failed = |e: tiberius::error::Error| match e {
        tiberius::error::Error::Server(token) => server(token.code(), token.message()),
        _ => SessionError::Transport,
    };
    let mut results = client.simple_query(sql).await.map_err(failed)?.into_results().await.map_err(failed)?;
    let rows = match (results.pop(), results.is_empty()) {
        (Some(rows), true) => rows,
        (None, _) => Vec::new(),
        _ => return Err(SessionError::Shape("the receipt statement returned more than one result")),
    };
    rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect()
}

fn cell(value: ColumnData<'static>) -> Result<Cell, SessionError> {
    Ok(match value {
        ColumnData::I64(v) => v.map_or(Cell::Null, Cell::Int),
        ColumnData::I32(v) => v.map_or(Cell::Null, |v| Cell::Int(v.into())),
        ColumnData::String(v) => v.map_or(Cell::Null, |v| Cell::Text(v.into_owned())),
        _ => return Err(SessionError::Shape("the receipt row holds a type that it cannot hold")),
    })
}
