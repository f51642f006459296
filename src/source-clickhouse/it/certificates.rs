//! Certificates: who is believed, and what a renewal means. A TLS front of the test's own stands before the real server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use contract::error::Fate;
use contract::port::source::Source as _;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use source_clickhouse::{ClickHouseSource, ConnectOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::kit::*;

/// A certificate authority of one test.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: Vec<u8>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a CA").pem().into_bytes();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A server configuration with a new leaf for `localhost`, `127.0.0.1` and `::1`.
    fn server(&self, change: impl FnOnce(&mut CertificateParams)) -> Arc<rustls::ServerConfig> {
        let (params, key) = leaf(change);
        configured(params.signed_by(&key, &self.issuer).expect("a certificate").der().clone(), &key)
    }
}

fn leaf(change: impl FnOnce(&mut CertificateParams)) -> (CertificateParams, KeyPair) {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let mut params = CertificateParams::new(names).expect("names");
    change(&mut params);
    (params, KeyPair::generate().expect("a key"))
}

fn configured(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<rustls::ServerConfig> {
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a configuration");
    Arc::new(config)
}

/// A front on its own port: it shows its own certificate and passes the bytes on to the real server.
struct Front {
    address: SocketAddr,
    shown: Arc<Mutex<Arc<rustls::ServerConfig>>>,
    serving: JoinHandle<()>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Front {
    async fn start(at: &str, config: Arc<rustls::ServerConfig>) -> Front {
        let listener = TcpListener::bind(at).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shown = Arc::new(Mutex::new(config));
        let current = Arc::clone(&shown);
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(Arc::clone(&current.lock().expect("nobody died with it")));
                tokio::spawn(async move {
                    // A client that refuses the certificate ends the handshake: that is what is tested.
                    if let Ok(mut client) = acceptor.accept(socket).await {
                        let mut server = behind().await;
                        // The end of either side is the end of both.
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Front { address, shown, serving }
    }

    /// Shows another certificate to whoever connects from now on.
    fn renew(&self, config: Arc<rustls::ServerConfig>) {
        *self.shown.lock().expect("nobody died with it") = config;
    }

    fn options(&self, authority: &Authority) -> ConnectOptions {
        ConnectOptions {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            ca_pem: Some(authority.pem.clone()),
            ..kit().options()
        }
    }
}

/// A connection to the real server.
async fn behind() -> tokio_rustls::client::TlsStream<TcpStream> {
    let kit = kit();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&kit.ca_pem).expect("a CA")).expect("a root");
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(kit.server.address()).await.expect("the server listens");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await.expect("the server's TLS")
}

/// Code and message of a refused connection.
async fn refused(options: &ConnectOptions) -> (String, String) {
    let error = ClickHouseSource::connect(options).await.expect_err("a refusal");
    assert_eq!(error.fate, Fate::NotDone);
    assert!(!format!("{error} {error:?}").contains(PASSWORD));
    (error.code.as_str().to_owned(), error.message.into_owned())
}

#[tokio::test]
async fn a_certificate_out_of_its_time_is_refused() {
    let authority = Authority::new();
    type Change = fn(&mut CertificateParams);
    let cases: [(Change, &str); 2] = [
        (|params| params.not_after = date_time_ymd(2020, 1, 1), "has expired"),
        (|params| params.not_before = date_time_ymd(3000, 1, 1), "is not valid yet"),
    ];
    for (change, word) in cases {
        let front = Front::start("127.0.0.1:0", authority.server(change)).await;
        let (code, message) = refused(&front.options(&authority)).await;
        assert_eq!(code, "mssql_native.source_read_profile_unsupported");
        assert!(message.contains(word), "{message}");
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_refused_unless_it_is_the_one_that_is_trusted() {
    let authority = Authority::new();
    let (params, key) = leaf(|_| {});
    let certificate = params.self_signed(&key).expect("a certificate");
    let front = Front::start("127.0.0.1:0", configured(certificate.der().clone(), &key)).await;
    let (code, message) = refused(&front.options(&authority)).await;
    assert_eq!(code, "mssql_native.source_read_profile_unsupported");
    assert!(message.contains("not signed by the trusted authority"), "{message}");
    // An owner who gives exactly this certificate as the authority has said whom to trust.
    let options = ConnectOptions { ca_pem: Some(certificate.pem().into_bytes()), ..front.options(&authority) };
    ClickHouseSource::connect(&options).await.expect("a session");
}

#[tokio::test]
async fn a_port_of_http_is_refused_with_and_without_tls() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    const ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(authority.server(|_| {}));
    for tls in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let acceptor = tls.then(|| acceptor.clone());
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut first = [0; 1];
            match acceptor {
                Some(acceptor) => {
                    let mut stream = acceptor.accept(socket).await.expect("a handshake");
                    stream.read_exact(&mut first).await.expect("a hello");
                    stream.write_all(ANSWER).await.expect("an answer");
                    stream.shutdown().await.expect("an end");
                }
                None => {
                    socket.read_exact(&mut first).await.expect("a hello");
                    socket.write_all(ANSWER).await.expect("an answer");
                }
            }
        });
        let options = ConnectOptions {
            host: "localhost".into(),
            port: address.port(),
            ca_pem: Some(authority.pem.clone()),
            ..kit().options()
        };
        let (code, message) = refused(&options).await;
        assert_eq!(code, "mssql_native.source_read_profile_unsupported");
        let word = if tls { "does not answer as a supported ClickHouse server" } else { "does not speak TLS" };
        assert!(message.contains(word), "{message}");
        server.await.expect("the server");
    }
}

#[tokio::test]
async fn an_address_of_ipv6_is_an_endpoint_like_any_other() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.over_ipv6 (k Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "INSERT INTO d.over_ipv6 SELECT number FROM numbers(7)",
    ]);
    let authority = Authority::new();
    let front = Front::start("[::1]:0", authority.server(|_| {})).await;
    let options = front.options(&authority);
    assert_eq!(options.host, "::1");
    let mut source = ClickHouseSource::connect(&options).await.expect("a session");
    let admission = source.admit(&request("over_ipv6", RAW)).await.expect("an admission");
    source.open(&admission, QUERY_ID).await.expect("a query");
    let mut rows = 0;
    while let Some(block) = source.next_block().await.expect("a block") {
        rows += block.rows;
    }
    assert_eq!((rows, source.finish().await.expect("an end").rows), (7, 7));
    // A certificate without the address does not do.
    let named =
        authority.server(|params| *params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name"));
    let front = Front::start("[::1]:0", named).await;
    let (code, message) = refused(&front.options(&authority)).await;
    assert_eq!(code, "mssql_native.source_read_profile_unsupported");
    assert!(message.contains("host name"), "{message}");
}

/// The certificate is part of the endpoint's authority. A session lives on one connection and keeps what it was shown; a run
/// that admitted under the old certificate and reads on a session with the new one is refused, whoever signed it.
#[tokio::test]
async fn a_certificate_renewed_between_acquisitions() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.renewed (k Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "INSERT INTO d.renewed SELECT number FROM numbers(5)",
    ]);
    let request = request("renewed", RAW);
    let authority = Authority::new();
    let front = Front::start("127.0.0.1:0", authority.server(|_| {})).await;
    let options = front.options(&authority);
    let mut before = ClickHouseSource::connect(&options).await.expect("a session");
    let admission = before.admit(&request).await.expect("an admission");

    // The same address and port, another leaf of the same authority.
    front.renew(authority.server(|_| {}));
    let mut after = ClickHouseSource::connect(&options).await.expect("the authority vouches for it");
    assert_ne!(after.certificate_sha256(), before.certificate_sha256());
    let error = after.open(&admission, QUERY_ID).await.expect_err("another certificate");
    assert_eq!(error.code.as_str(), "mssql_native.source_snapshot_profile_changed");
    after.cancel().await;

    // Of another authority it is not even a session.
    front.renew(Authority::new().server(|_| {}));
    assert_eq!(refused(&options).await.0, "mssql_native.source_read_profile_unsupported");

    // The first session is on its own connection: nothing of this reached it, and it reads to its proven end.
    before.open(&admission, QUERY_ID).await.expect("the query");
    while before.next_block().await.expect("a block").is_some() {}
    assert_eq!(before.finish().await.expect("an end").rows, 5);
    assert_eq!(kit.data_queries("renewed").len(), 1, "one read, by the session that admitted");
}
