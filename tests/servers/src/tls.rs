//! Certificates of the test servers: one CA and a leaf with the requested names.
//!
//! Everything is PEM in one folder (`ca.pem`, `ca.key`, `leaf.pem`, `leaf.key`, `leaf.names`), so that a server which is
//! restarted on its data folder shows the same certificate, and a client keeps trusting the same CA file. When the requested
//! names change, only the leaf is issued again.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why the certificates of a test server could not be made or loaded.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of the certificate folder could not be read or written.
    #[error("test_tls.io: {0}")]
    Io(#[from] std::io::Error),
    /// A certificate could not be issued, usually because a requested name is neither a DNS name nor an address.
    #[error("test_tls.issue: {0}")]
    Issue(#[from] rcgen::Error),
    /// A stored PEM file does not hold what its name says.
    #[error("test_tls.pem: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// rustls refuses the key or the protocol versions.
    #[error("test_tls.config: {0}")]
    Config(#[from] rustls::Error),
}

/// The certificates of one test server.
#[derive(Debug)]
pub struct TestTls {
    /// PEM file of the CA: what a client is given to trust.
    pub ca_pem_path: PathBuf,
    /// DER of the CA certificate.
    pub ca_der: CertificateDer<'static>,
    /// PEM file of the leaf: what a client that pins the exact certificate is given.
    pub leaf_pem_path: PathBuf,
    /// DER of the leaf certificate, for clients that pin it.
    pub leaf_der: CertificateDer<'static>,
    /// TLS 1.2 and 1.3 with the leaf, no client certificates.
    pub server_config: Arc<ServerConfig>,
    /// The same with TLS 1.2 only: TDS 7.x wraps the handshake in its own packets, which the post-handshake messages of
    /// TLS 1.3 do not survive; SQL Server offers 1.3 only for TDS 8.
    pub server_config_tls12: Arc<ServerConfig>,
}

impl TestTls {
    /// Loads the certificates of `dir`, making what is missing; `sans` are the DNS names and addresses of the leaf.
    ///
    /// The folder is created. A leaf issued for other names (compared as an ordered list) is replaced; the CA never is.
    pub fn create_or_load(dir: &Path, sans: &[String]) -> Result<TestTls, TlsError> {
        std::fs::create_dir_all(dir)?;
        let ca_pem_path = dir.join("ca.pem");
        let leaf_pem_path = dir.join("leaf.pem");
        let leaf_key_path = dir.join("leaf.key");
        let names_path = dir.join("leaf.names");
        let issuer = load_or_create_ca(&ca_pem_path, &dir.join("ca.key"))?;

        let names = sans.join("\n");
        let current = names_path.exists()
            && leaf_key_path.exists()
            && leaf_pem_path.exists()
            && std::fs::read_to_string(&names_path)? == names;
        if !current {
            let key = KeyPair::generate()?;
            let leaf = leaf_params(sans)?.signed_by(&key, &issuer)?;
            write_private(&leaf_key_path, &key.serialize_pem())?;
            std::fs::write(&leaf_pem_path, leaf.pem())?;
            // Last, so that an interrupted issue is done again.
            std::fs::write(&names_path, &names)?;
        }

        let ca_der = CertificateDer::from_pem_file(&ca_pem_path)?;
        let leaf_der = CertificateDer::from_pem_file(&leaf_pem_path)?;
        let config = |versions: &[&'static rustls::SupportedProtocolVersion]| -> Result<Arc<ServerConfig>, TlsError> {
            let key = PrivateKeyDer::from_pem_file(&leaf_key_path)?;
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(versions)?
                .with_no_client_auth()
                .with_single_cert(vec![leaf_der.clone()], key)?;
            Ok(Arc::new(config))
        };
        let server_config = config(rustls::ALL_VERSIONS)?;
        let server_config_tls12 = config(&[&rustls::version::TLS12])?;
        Ok(TestTls { ca_pem_path, ca_der, leaf_pem_path, leaf_der, server_config, server_config_tls12 })
    }
}

/// The CA's certificate is a function of these parameters and its key, so only the key and the PEM need to be stored.
fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name("native-transfer test CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf_params(sans: &[String]) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(sans.to_vec())?;
    params.distinguished_name = common_name(sans.first().map_or("localhost", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn load_or_create_ca(pem_path: &Path, key_path: &Path) -> Result<Issuer<'static, KeyPair>, TlsError> {
    if pem_path.exists() && key_path.exists() {
        let key = KeyPair::from_pem(&std::fs::read_to_string(key_path)?)?;
        return Ok(Issuer::new(ca_params(), key));
    }
    let key = KeyPair::generate()?;
    let certificate = ca_params().self_signed(&key)?;
    write_private(key_path, &key.serialize_pem())?;
    std::fs::write(pem_path, certificate.pem())?;
    Ok(Issuer::new(ca_params(), key))
}

fn write_private(path: &Path, pem: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(pem.as_bytes())
}
