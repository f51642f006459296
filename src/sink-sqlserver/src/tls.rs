//! Who the server must prove to be, before any byte of a login leaves (design.md 3.7).
//!
//! The TDS crate's OpenSSL always adds the system's roots and takes no CA path. So we run our own rustls handshake inside
//! PRELOGIN packets (MS-TDS 2.2.6.5) against the given CA and the host name, keep the leaf certificate that passed, and
//! let the crate pin exactly that certificate on the session's own connection.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use contract::error::PortError;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::refuse;
use crate::options::ConnectOptions;

const PACKET_PRELOGIN: u8 = 0x12;
const PACKET_REPLY: u8 = 0x04;
const STATUS_EOM: u8 = 0x01;
const HEADER_BYTES: usize = 8;
const PACKET_BYTES: usize = 4096;
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

const TOKEN_VERSION: u8 = 0;
const TOKEN_ENCRYPTION: u8 = 1;
const TOKEN_END: u8 = 0xFF;
const ENCRYPT_ON: u8 = 1;
const ENCRYPT_REQUIRED: u8 = 3;

/// The leaf certificate of a server whose chain and host name were verified.
pub(crate) async fn verified_leaf(options: &ConnectOptions) -> Result<CertificateDer<'static>, PortError> {
    let config = client_config(options.ca_pem.as_deref())?;
    let name = ServerName::try_from(options.host.clone())
        .map_err(|e| unreachable_target("the target's host is neither a DNS name nor an address").caused_by(e))?;
    tokio::time::timeout(options.timeouts.connect, handshake(options, config, name)).await.map_err(|_| {
        unreachable_target("SQL Server did not answer the TLS handshake in time: check host, port and network")
    })?
}

fn unreachable_target(message: &'static str) -> PortError {
    refuse("native_transfer.target_unreachable", message)
}

fn untrusted() -> PortError {
    refuse(
        "native_transfer.target_certificate_untrusted",
        "the server's certificate is not signed by the given CA, has expired or does not carry the host name: check ca.crt and host",
    )
}

fn client_config(ca_pem: Option<&[u8]>) -> Result<ClientConfig, PortError> {
    let mut roots = RootCertStore::empty();
    let invalid = || refuse("native_transfer.target_ca_invalid", "the target's ca.crt holds no usable PEM certificate");
    match ca_pem {
        Some(pem) => {
            for certificate in rustls_pemfile::certs(&mut &pem[..]) {
                roots.add(certificate.map_err(|e| invalid().caused_by(e))?).map_err(|e| invalid().caused_by(e))?;
            }
            if roots.is_empty() {
                return Err(invalid());
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| untrusted().caused_by(e))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

async fn handshake(
    options: &ConnectOptions,
    config: ClientConfig,
    name: ServerName<'static>,
) -> Result<CertificateDer<'static>, PortError> {
    let lost = |e: io::Error| {
        unreachable_target("the connection to SQL Server failed before the login: check host, port and network")
            .caused_by(e)
    };
    let mut socket = TcpStream::connect((options.host.as_str(), options.port)).await.map_err(lost)?;
    socket.write_all(&packet(STATUS_EOM, &prelogin_request())).await.map_err(lost)?;
    let reply = read_message(&mut socket).await.map_err(lost)?;
    match prelogin_encryption(&reply) {
        Some(ENCRYPT_ON | ENCRYPT_REQUIRED) => {}
        Some(_) => {
            return Err(refuse(
                "native_transfer.target_encryption_refused",
                "the server does not encrypt this connection: enable TLS at the server; there is no plaintext mode",
            ));
        }
        None => return Err(unreachable_target("the peer does not speak TDS: check host and port")),
    }
    let mut tls = ClientConnection::new(Arc::new(config), name).map_err(|e| untrusted().caused_by(e))?;
    while tls.is_handshaking() {
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out).map_err(lost)?;
        }
        if !out.is_empty() {
            send_wrapped(&mut socket, &out).await.map_err(lost)?;
        }
        if tls.is_handshaking() && tls.wants_read() {
            let message = read_message(&mut socket).await.map_err(lost)?;
            let mut rest: &[u8] = &message;
            while !rest.is_empty() {
                tls.read_tls(&mut rest as &mut dyn Read).map_err(lost)?;
                tls.process_new_packets().map_err(|e| untrusted().caused_by(e))?;
            }
        }
    }
    let leaf = tls.peer_certificates().and_then(|chain| chain.first()).ok_or_else(untrusted)?;
    Ok(leaf.clone().into_owned())
}

/// One packet of a PRELOGIN message; `payload` fits a packet.
fn packet(status: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + HEADER_BYTES) as u16;
    let mut bytes = vec![PACKET_PRELOGIN, status];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 1, 0]);
    bytes.extend_from_slice(payload);
    bytes
}

async fn send_wrapped(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let mut chunks = bytes.chunks(PACKET_BYTES - HEADER_BYTES).peekable();
    while let Some(chunk) = chunks.next() {
        let status = if chunks.peek().is_none() { STATUS_EOM } else { 0 };
        socket.write_all(&packet(status, chunk)).await?;
    }
    Ok(())
}

/// Reads one message (packets up to EOM), bounded.
async fn read_message(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    loop {
        let mut header = [0u8; HEADER_BYTES];
        socket.read_exact(&mut header).await?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if !matches!(header[0], PACKET_PRELOGIN | PACKET_REPLY)
            || length < HEADER_BYTES
            || message.len() + length > MESSAGE_BYTES_MAX
        {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let start = message.len();
        message.resize(start + length - HEADER_BYTES, 0);
        socket.read_exact(&mut message[start..]).await?;
        if header[1] & STATUS_EOM != 0 {
            return Ok(message);
        }
    }
}

/// PRELOGIN with VERSION and ENCRYPTION = ON.
fn prelogin_request() -> Vec<u8> {
    let table = 2 * 5 + 1u16;
    let mut bytes = vec![TOKEN_VERSION];
    bytes.extend_from_slice(&table.to_be_bytes());
    bytes.extend_from_slice(&6u16.to_be_bytes());
    bytes.push(TOKEN_ENCRYPTION);
    bytes.extend_from_slice(&(table + 6).to_be_bytes());
    bytes.extend_from_slice(&1u16.to_be_bytes());
    bytes.push(TOKEN_END);
    bytes.extend_from_slice(&[0; 6]);
    bytes.push(ENCRYPT_ON);
    bytes
}

/// The ENCRYPTION option of a PRELOGIN reply; `None` if the reply is not a PRELOGIN message.
fn prelogin_encryption(reply: &[u8]) -> Option<u8> {
    for option in reply.chunks(5) {
        if option[0] == TOKEN_END {
            return None;
        }
        let [token, o1, o0, l1, l0] = *option else { return None };
        let (offset, length) = (u16::from_be_bytes([o1, o0]), u16::from_be_bytes([l1, l0]));
        if token == TOKEN_ENCRYPTION {
            return if length == 1 { reply.get(usize::from(offset)).copied() } else { None };
        }
    }
    None
}

/// How long a person waits for a connection at most; used in the session as well.
pub(crate) fn connect_seconds(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_secs().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encryption_option_is_read_from_a_reply_and_nothing_panics() {
        let request = prelogin_request();
        assert_eq!(prelogin_encryption(&request), Some(ENCRYPT_ON));
        for cut in 0..request.len() {
            let answer = prelogin_encryption(&request[..cut]);
            assert!(answer.is_none() || cut == request.len());
        }
        assert_eq!(prelogin_encryption(&[TOKEN_ENCRYPTION, 0xFF, 0xFF, 0, 1, TOKEN_END]), None);
        assert_eq!(prelogin_encryption(&[]), None);
    }
}
