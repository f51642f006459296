//! The certificates of the test servers, checked by a TLS client that trusts only the CA file.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection, StreamOwned};
use servers::tls::TestTls;

fn sans(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Shakes hands over a real socket and returns what the client thinks of the server.
fn handshake(tls: &TestTls, name: &str) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let config = tls.server_config.clone();
    let server = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
        let mut byte = [0u8; 1];
        stream.read_exact(&mut byte).is_ok()
    });
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&tls.ca_pem_path).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(client), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(addr).unwrap());
    let outcome = stream.write_all(b"x").and_then(|()| stream.flush()).map_err(|error| error.to_string());
    drop(stream);
    assert_eq!(server.join().unwrap(), outcome.is_ok());
    outcome
}

#[test]
fn names_and_addresses_are_accepted_and_others_refused() {
    let dir = tempfile::tempdir().unwrap();
    let tls = TestTls::create_or_load(dir.path(), &sans(&["db.example", "127.0.0.1"])).unwrap();
    handshake(&tls, "db.example").unwrap();
    handshake(&tls, "127.0.0.1").unwrap();
    let refused = handshake(&tls, "other.example").unwrap_err();
    assert!(refused.contains("not valid for name"), "{refused}");
}

#[test]
fn a_restart_keeps_the_leaf_and_new_names_keep_the_ca() {
    let dir = tempfile::tempdir().unwrap();
    let first = TestTls::create_or_load(dir.path(), &sans(&["a.example"])).unwrap();
    let again = TestTls::create_or_load(dir.path(), &sans(&["a.example"])).unwrap();
    assert_eq!(first.leaf_der, again.leaf_der);
    let renamed = TestTls::create_or_load(dir.path(), &sans(&["b.example"])).unwrap();
    assert_eq!(first.ca_der, renamed.ca_der);
    assert_ne!(first.leaf_der, renamed.leaf_der);
    handshake(&renamed, "b.example").unwrap();
}

#[test]
fn private_keys_are_readable_by_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    TestTls::create_or_load(dir.path(), &sans(&["a.example"])).unwrap();
    for key in ["ca.key", "leaf.key"] {
        let mode = std::fs::metadata(dir.path().join(key)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
}
