//! TLS: one direct connection whose certificate is proven by the given authority and carries the host's name.
//!
//! A CA file restricts: the system's roots count only where none is given (design.md 3.7). There is no plaintext form and no
//! downgrade; the leaf certificate's digest goes into the endpoint authority of the raw profile.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use contract::code;
use contract::error::PortError;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::options::{ClientIdentity, ConnectOptions};

/// Idle time before the first probe: below the idle limits of common firewalls.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Time between probes that nobody answers.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// A connected and proven socket.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) stream: TlsStream<TcpStream>,
    /// Address of the other end.
    pub(crate) peer: SocketAddr,
    /// DER of the leaf certificate.
    pub(crate) leaf_der: Vec<u8>,
}

/// Connects and completes the handshake. Nothing is sent before the server has proven itself.
pub(crate) async fn connect(options: &ConnectOptions) -> Result<Endpoint, PortError> {
    let name = server_name(&options.host)?;
    let connector = TlsConnector::from(Arc::new(client_config(options)?));
    let socket = TcpStream::connect((options.host.as_str(), options.port)).await.map_err(unreachable)?;
    let peer = socket.peer_addr().map_err(unreachable)?;
    socket.set_nodelay(true).map_err(unreachable)?;
    keep_alive(&socket).map_err(unreachable)?;
    let stream = connector.connect(name, socket).await.map_err(handshake_failed)?;
    let (_, session) = stream.get_ref();
    let leaf = session.peer_certificates().and_then(|chain| chain.first());
    let leaf_der = leaf.map(|leaf| leaf.to_vec()).ok_or_else(|| refused("the server showed no certificate"))?;
    Ok(Endpoint { stream, peer, leaf_der })
}

/// Lets the kernel ask whether an idle peer is still there. A server that computes for long sends nothing, and so does one
/// that was switched off: firewalls forget the first, and only the limit of silence would find the second.
fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// Exactly one host: a list or an empty text is not an endpoint that could be pinned.
fn server_name(host: &str) -> Result<ServerName<'static>, PortError> {
    ServerName::try_from(host.to_owned()).map_err(|_| {
        PortError::not_done(
            code::REPLICA_SCOPE_UNPROVEN,
            "the source host must be exactly one host name or address; give one server, not a list",
        )
    })
}

fn client_config(options: &ConnectOptions) -> Result<ClientConfig, PortError> {
    let roots = match &options.ca_pem {
        Some(pem) => given_roots(pem)?,
        None => system_roots()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused("TLS 1.2 and 1.3 are not available").caused_by(error))?
        .with_root_certificates(roots);
    match &options.client_identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = identity_parts(identity)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| refused("the client certificate and its key do not belong together").caused_by(error))
        }
    }
}

fn given_roots(pem: &[u8]) -> Result<RootCertStore, PortError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem).map_err(|error| unreadable_ca().caused_by(error))? {
        roots.add(certificate).map_err(|error| unreadable_ca().caused_by(error))?;
    }
    if roots.is_empty() { Err(unreadable_ca()) } else { Ok(roots) }
}

fn unreadable_ca() -> PortError {
    refused("the given CA file holds no usable PEM certificate; it is the only trust of this connection")
}

fn system_roots() -> Result<RootCertStore, PortError> {
    let mut roots = RootCertStore::empty();
    // Single unreadable files of the system's store are not ours to judge; an empty store is.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(refused("no CA file is given and the system has no trusted roots"));
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    rustls_pemfile::certs(&mut io::Cursor::new(pem)).collect()
}

fn identity_parts(
    identity: &ClientIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), PortError> {
    let unreadable = || refused("the client certificate or its key is not readable PEM");
    let chain = certificates(&identity.certificate_pem).map_err(|error| unreadable().caused_by(error))?;
    let key = rustls_pemfile::private_key(&mut io::Cursor::new(&identity.key_pem))
        .map_err(|error| unreadable().caused_by(error))?
        .ok_or_else(unreadable)?;
    Ok((chain, key))
}

fn refused(message: &'static str) -> PortError {
    PortError::not_done(code::SOURCE_READ_PROFILE_UNSUPPORTED, message)
}

fn unreachable(error: io::Error) -> PortError {
    PortError::not_done(
        code::SOURCE_UNREACHABLE,
        "the source server does not accept a connection; check host, port and network policy",
    )
    .caused_by(error)
}

/// Tells a person which part of the proof failed. The texts of rustls can name hosts, so they stay in the cause.
fn handshake_failed(error: io::Error) -> PortError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let message = match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => certificate_problem(reason),
        Some(rustls::Error::AlertReceived(_)) => {
            "the source server ended the TLS handshake; it may demand a client certificate"
        }
        _ => "the source server does not speak TLS on this port; use its secure native port",
    };
    refused(message).caused_by(error)
}

fn certificate_problem(reason: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as Problem;
    match reason {
        Problem::NotValidForName | Problem::NotValidForNameContext { .. } => {
            "the source server's certificate does not carry the configured host name"
        }
        Problem::Expired | Problem::ExpiredContext { .. } => "the source server's certificate has expired",
        Problem::NotValidYet | Problem::NotValidYetContext { .. } => {
            "the source server's certificate is not valid yet; compare the clocks of both machines"
        }
        // Another authority of the same name shows as a bad signature.
        Problem::UnknownIssuer | Problem::BadSignature => {
            "the source server's certificate is not signed by the trusted authority"
        }
        _ => "the source server's certificate is not acceptable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_asks_for_an_idle_peer() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        assert!(!SockRef::from(&socket).keepalive().expect("an option"), "nobody asks by default");
        keep_alive(&socket).expect("options");
        let shown = SockRef::from(&socket);
        assert!(shown.keepalive().expect("an option"));
        assert_eq!(shown.tcp_keepalive_time().expect("an option"), KEEPALIVE_IDLE);
        assert_eq!(shown.tcp_keepalive_interval().expect("an option"), KEEPALIVE_INTERVAL);
    }
}
