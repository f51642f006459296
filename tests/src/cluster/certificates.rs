//! One CA, a certificate for each part, and the kubeconfigs that hold them.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

use super::Result;
use super::layout::{API_SERVICE, Cluster, NODE};

/// Group that RBAC lets do everything.
const MASTERS: Option<&str> = Some("system:masters");

/// Client certificates: file, common name, organisation. RBAC and the node authorizer know the names.
const CLIENTS: [(&str, &str, Option<&str>); 6] = [
    ("admin", "testkit", MASTERS),
    ("apiserver-kubelet", "kube-apiserver", MASTERS),
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("kubelet", "system:node:node1", Some("system:nodes")),
    ("kube-proxy", "system:kube-proxy", None),
];

/// Clients with a kubeconfig of their own, `etc/NAME.kubeconfig`.
const KUBECONFIGS: [&str; 5] = ["admin", "controller-manager", "scheduler", "kubelet", "kube-proxy"];

/// Makes `pki/` and the kubeconfigs.
pub(crate) fn create(cluster: &Cluster) -> Result<()> {
    let pki = cluster.path("pki");
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "testkit cluster CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let certificate = ca.self_signed(&ca_key)?;
    let ca_pem = certificate.pem();
    fs::write(pki.join("ca.crt"), &ca_pem)?;
    let issuer = Issuer::new(ca, ca_key);

    let server_purpose = [ExtendedKeyUsagePurpose::ServerAuth];
    let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"];
    let mut sans = names.iter().map(|name| dns(name)).collect::<Result<Vec<_>>>()?;
    sans.push(dns("kubernetes.default.svc.cluster.local")?);
    sans.extend([cluster.node_address(), Ipv4Addr::LOCALHOST, API_SERVICE.parse()?].map(address));
    issue(&issuer, &pki, "apiserver", ("kube-apiserver", None), sans, &server_purpose)?;
    let sans = vec![dns(NODE)?, address(cluster.node_address())];
    issue(&issuer, &pki, "kubelet-server", ("system:node:node1", Some("system:nodes")), sans, &server_purpose)?;
    for (file, name, group) in CLIENTS {
        let purpose = [ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = issue(&issuer, &pki, file, (name, group), Vec::new(), &purpose)?;
        if KUBECONFIGS.contains(&file) {
            let text = kubeconfig(&cluster.server(), file, &[&ca_pem, &certificate, &key]);
            write_private(&cluster.path(&format!("etc/{file}.kubeconfig")), &text)?;
            if file == "admin" {
                write_private(&cluster.kubeconfig(), &text)?;
            }
        }
    }
    let accounts = KeyPair::generate()?;
    write_private(&pki.join("service-accounts.key"), &accounts.serialize_pem())?;
    fs::write(pki.join("service-accounts.pub"), accounts.public_key_pem())?;
    Ok(())
}

/// A certificate and its key as PEM, also written as `NAME.crt` and `NAME.key`.
fn issue(
    issuer: &Issuer<'_, KeyPair>,
    pki: &Path,
    file: &str,
    (name, group): (&str, Option<&str>),
    sans: Vec<SanType>,
    purposes: &[ExtendedKeyUsagePurpose],
) -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(group) = group {
        parameters.distinguished_name.push(DnType::OrganizationName, group);
    }
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.subject_alt_names = sans;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = purposes.to_vec();
    let certificate = parameters.signed_by(&key, issuer)?.pem();
    let key = key.serialize_pem();
    fs::write(pki.join(format!("{file}.crt")), &certificate)?;
    write_private(&pki.join(format!("{file}.key")), &key)?;
    Ok((certificate, key))
}

/// A kubeconfig with everything inside; JSON is YAML. `pems`: CA, certificate, key.
fn kubeconfig(server: &str, user: &str, pems: &[&str; 3]) -> String {
    let [ca, certificate, key] = pems.map(base64);
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "testkit",
        "clusters": [{"name": "testkit", "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": user, "user": {"client-certificate-data": certificate, "client-key-data": key}}],
        "contexts": [{"name": "testkit", "context": {"cluster": "testkit", "user": user}}],
    });
    format!("{config:#}\n")
}

fn dns(name: &str) -> Result<SanType> {
    Ok(SanType::DnsName(name.try_into()?))
}

fn address(address: Ipv4Addr) -> SanType {
    SanType::IpAddress(IpAddr::V4(address))
}

/// A file that only its owner reads, from its first byte on.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// Base64 with padding (RFC 4648, section 4), as kubeconfigs hold PEM.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(text.len().div_ceil(3) * 4);
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let index = (bits >> (18 - 6 * position)) as usize & 63;
            encoded.push(if position <= chunk.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (text, encoded) in cases {
            assert_eq!(base64(text), encoded);
        }
    }

    #[test]
    fn the_kubelet_is_the_node() {
        let kubelet = CLIENTS.iter().find(|client| client.0 == "kubelet").expect("kubelet");
        assert_eq!(kubelet.1, format!("system:node:{NODE}"));
    }
}
