//! The socket: authority, host name, plaintext, login.

use contract::error::Fate;
use source_clickhouse::{ClickHouseSource, ClientIdentity, ConnectOptions};
use tokio::net::TcpListener;

use crate::kit::*;

async fn refused(options: &ConnectOptions) -> (String, String) {
    let error = ClickHouseSource::connect(options).await.expect_err("a refusal");
    assert_eq!(error.fate, Fate::NotDone);
    let shown = format!("{error} {error:?} {options:?}");
    assert!(!shown.contains(PASSWORD), "a secret in {shown}");
    (error.code.as_str().to_owned(), error.message.into_owned())
}

#[tokio::test]
async fn only_the_given_authority_counts() {
    let kit = kit();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let other = servers::tls::TestTls::create_or_load(elsewhere.path(), &["localhost".into()]).expect("another CA");
    let mut options = kit.options();
    options.ca_pem = Some(std::fs::read(&other.ca_pem_path).expect("a CA file"));
    let (code, message) = refused(&options).await;
    assert_eq!(code, "mssql_native.source_read_profile_unsupported");
    assert!(message.contains("not signed by the trusted authority"), "{message}");
    // The system's roots do not know the test CA either.
    options.ca_pem = None;
    assert_eq!(refused(&options).await.0, "mssql_native.source_read_profile_unsupported");
    for unusable in [&b""[..], b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        options.ca_pem = Some(unusable.to_vec());
        let (code, message) = refused(&options).await;
        assert_eq!(code, "mssql_native.source_read_profile_unsupported");
        assert!(message.contains("CA file"), "{message}");
    }
}

#[tokio::test]
async fn the_certificate_must_carry_the_host() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let other =
        servers::tls::TestTls::create_or_load(elsewhere.path(), &["elsewhere.test".into()]).expect("certificates");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let acceptor = tokio_rustls::TlsAcceptor::from(other.server_config);
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await?;
        acceptor.accept(socket).await.map(|_| ())
    });
    let kit = kit();
    let mut options = kit.options();
    options.ca_pem = Some(std::fs::read(&other.ca_pem_path).expect("a CA file"));
    options.port = port;
    let (code, message) = refused(&options).await;
    assert_eq!(code, "mssql_native.source_read_profile_unsupported");
    assert!(message.contains("host name"), "{message}");
    assert!(server.await.expect("the server").is_err(), "the handshake must not complete");

    let mut options = kit.options();
    options.host = "127.0.0.1".into();
    let source = ClickHouseSource::connect(&options).await.expect("a name of the certificate");
    let leaf = servers::tls::TestTls::create_or_load(
        kit.server.ca_pem_path().parent().expect("a folder"),
        &["localhost".into(), "127.0.0.1".into()],
    )
    .expect("the server's certificates");
    assert_eq!(source.certificate_sha256(), contract::digest::Digest::of(&leaf.leaf_der));
    for host in ["", "localhost,127.0.0.1", "a b"] {
        options.host = host.into();
        assert_eq!(refused(&options).await.0, "mssql_native.replica_scope_unproven", "{host}");
    }
}

#[tokio::test]
async fn a_plaintext_server_is_refused_and_sees_no_credentials() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut socket, _) = listener.accept().await?;
        let mut seen = vec![0; 4096];
        let read = socket.read(&mut seen).await?;
        seen.truncate(read);
        socket.write_all(b"\x02\x10\0\0\0\x0DDB::Exception\x04what\0\0").await?;
        socket.shutdown().await?;
        while socket.read(&mut [0; 256]).await? > 0 {}
        std::io::Result::Ok(seen)
    });
    let kit = kit();
    let mut options = kit.options();
    options.host = "127.0.0.1".into();
    options.port = port;
    let (code, message) = refused(&options).await;
    assert_eq!(code, "mssql_native.source_read_profile_unsupported");
    assert!(message.contains("does not speak TLS"), "{message}");
    let seen = server.await.expect("the server").expect("a socket");
    assert!(!seen.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
}

/// A CA, and a server whose clients must show a certificate of it: accepts once and returns what the client showed.
async fn demanding_server() -> (ConnectOptions, ClientIdentity, tokio::task::JoinHandle<std::io::Result<Vec<u8>>>) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    use rustls::pki_types::pem::PemObject as _;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().expect("a key");
    let ca = params.self_signed(&ca_key).expect("a CA");
    let issuer = Issuer::new(params, ca_key);
    let leaf = |purpose| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.extended_key_usages = vec![purpose];
        (params.signed_by(&key, &issuer).expect("a certificate"), key)
    };
    let (server, server_key) = leaf(ExtendedKeyUsagePurpose::ServerAuth);
    let (client, client_key) = leaf(ExtendedKeyUsagePurpose::ClientAuth);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca.der().clone()).expect("a root");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(
            vec![server.der().clone()],
            rustls::pki_types::PrivateKeyDer::from_pem_slice(server_key.serialize_pem().as_bytes()).expect("a key"),
        )
        .expect("a configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut options = kit().options();
    options.port = listener.local_addr().expect("an address").port();
    options.ca_pem = Some(ca.pem().into_bytes());
    let identity =
        ClientIdentity { certificate_pem: client.pem().into_bytes(), key_pem: client_key.serialize_pem().into_bytes() };
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let accepting = tokio::spawn(async move {
        let (socket, _) = listener.accept().await?;
        let stream = acceptor.accept(socket).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first().map(|leaf| leaf.to_vec()));
        shown.ok_or_else(|| std::io::Error::other("no certificate"))
    });
    (options, identity, accepting)
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_it_is_demanded() {
    let (mut options, identity, accepting) = demanding_server().await;
    options.client_identity = Some(identity.clone());
    // The demanding server is no ClickHouse: it hangs up after the handshake.
    assert_eq!(refused(&options).await.0, "native_transfer.source_unreachable");
    let shown = accepting.await.expect("the server").expect("a handshake");
    let pem = String::from_utf8(identity.certificate_pem).expect("PEM");
    let expected = rustls_pemfile::certs(&mut pem.as_bytes()).next().expect("one").expect("a certificate");
    assert_eq!(shown, expected.to_vec());

    let (options, _, accepting) = demanding_server().await;
    let (code, message) = refused(&options).await;
    assert_eq!(code, "mssql_native.source_read_profile_unsupported");
    assert!(message.contains("client certificate"), "{message}");
    assert!(accepting.await.expect("the server").is_err());

    let (mut options, identity, _accepting) = demanding_server().await;
    options.client_identity =
        Some(ClientIdentity { certificate_pem: identity.certificate_pem, key_pem: b"no key".to_vec() });
    assert_eq!(refused(&options).await.0, "mssql_native.source_read_profile_unsupported");
}

#[tokio::test]
async fn nobody_listening_and_nobody_answering_are_bounded() {
    let kit = kit();
    let mut options = kit.options();
    options.host = "127.0.0.1".into();
    options.timeouts.connect = std::time::Duration::from_millis(200);
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    options.port = silent.local_addr().expect("an address").port();
    assert_eq!(refused(&options).await.0, "native_transfer.source_unreachable");
    drop(silent);
    assert_eq!(refused(&options).await.0, "native_transfer.source_unreachable");
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let kit = kit();
    let mut options = kit.options();
    options.password.push('x');
    assert_eq!(refused(&options).await.0, "native_transfer.source_login_refused");
    options = kit.options();
    options.user = "nobody".into();
    assert_eq!(refused(&options).await.0, "native_transfer.source_login_refused");
}
