//! Where source and target are: files as a pod mounts them, or environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use contract::error::Refusal;
use sink_sqlserver::ConnectOptions as TargetOptions;
use source_clickhouse::{ClientIdentity, ConnectOptions as SourceOptions, Timeouts};

/// Longest value of a key: a CA bundle of many certificates fits.
const VALUE_BYTES_MAX: u64 = 1 << 20;
const KEYS: [&str; 5] = ["host", "port", "user", "password", "database"];
const ROLE_KEY: &str = "transfer.dpone.io.role";

/// Which end a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Source,
    Target,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Target => "target",
        }
    }
}

/// Values of one connection by key.
struct Values {
    role: Role,
    values: BTreeMap<String, Vec<u8>>,
}

/// The source's connection.
pub(crate) fn source(directory: Option<&Path>) -> Result<SourceOptions, Refusal> {
    let values = Values::load(directory, Role::Source)?;
    let client_identity = match (values.optional("tls.crt"), values.optional("tls.key")) {
        (Some(certificate_pem), Some(key_pem)) => Some(ClientIdentity { certificate_pem, key_pem }),
        (None, None) => None,
        _ => {
            return Err(Refusal::new(
                "native_transfer.connection_invalid:tls.crt",
                "tls.crt and tls.key belong together: give both or none",
            ));
        }
    };
    Ok(SourceOptions {
        host: values.text("host")?,
        port: values.port()?,
        user: values.text("user")?,
        password: values.text("password")?,
        database: values.text("database")?,
        ca_pem: values.optional("ca.crt"),
        client_identity,
        timeouts: Timeouts::default(),
    })
}

/// The target's connection.
pub(crate) fn target(directory: Option<&Path>) -> Result<TargetOptions, Refusal> {
    let values = Values::load(directory, Role::Target)?;
    Ok(TargetOptions {
        host: values.text("host")?,
        port: values.port()?,
        user: values.text("user")?,
        password: values.text("password")?,
        database: values.text("database")?,
        ca_pem: values.optional("ca.crt"),
        timeouts: sink_sqlserver::Timeouts::default(),
    })
}

impl Values {
    fn load(directory: Option<&Path>, role: Role) -> Result<Self, Refusal> {
        let values = match directory {
            Some(directory) => from_files(&directory.join(role.name()))?,
            None => from_environment(role)?,
        };
        let values = Values { role, values };
        if directory.is_some() && values.text(ROLE_KEY)? != role.name() {
            return Err(invalid(
                ROLE_KEY,
                "the folder's transfer.dpone.io.role names the other end: check which Secret is mounted where",
            ));
        }
        Ok(values)
    }

    fn text(&self, key: &str) -> Result<String, Refusal> {
        let missing = || {
            invalid(
                &format!("{}.{key}", self.role.name()),
                "a connection key is missing: host, port, user, password and database are needed, with --connections also \
                 transfer.dpone.io.role",
            )
        };
        let bytes = self.values.get(key).ok_or_else(missing)?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| invalid(&format!("{}.{key}", self.role.name()), "a connection key is not UTF-8 text"))?;
        // Why trimmed: files written by editors and `echo` end with a line feed; none of these values may.
        Ok(text.trim_end_matches(['\n', '\r']).to_string())
    }

    fn port(&self) -> Result<u16, Refusal> {
        let key = format!("{}.port", self.role.name());
        let port = self.text("port")?.parse::<u16>().ok().filter(|port| *port > 0);
        port.ok_or_else(|| invalid(&key, "a port is a number from 1 to 65535"))
    }

    fn optional(&self, key: &str) -> Option<Vec<u8>> {
        self.values.get(key).filter(|value| !value.is_empty()).cloned()
    }
}

fn invalid(key: &str, message: &'static str) -> Refusal {
    Refusal::with_detail("native_transfer.connection_invalid", key, message)
}

fn read(path: &Path, key: &str) -> Result<Vec<u8>, Refusal> {
    let unreadable = || invalid(key, "a connection file cannot be read, or is larger than 1 MiB");
    let file = fs::File::open(path).map_err(|_| unreadable())?;
    let mut bytes = Vec::new();
    file.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|_| unreadable())?;
    if bytes.len() as u64 > VALUE_BYTES_MAX { Err(unreadable()) } else { Ok(bytes) }
}

fn from_files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    let mut values = BTreeMap::new();
    for key in KEYS.into_iter().chain([ROLE_KEY, "ca.crt", "tls.crt", "tls.key"]) {
        let path = directory.join(key);
        if path.exists() {
            values.insert(key.to_string(), read(&path, key)?);
        }
    }
    Ok(values)
}

/// `NT_SOURCE_HOST` and so on; `NT_SOURCE_CA`, `NT_SOURCE_TLS_CRT` and `NT_SOURCE_TLS_KEY` name PEM files.
fn from_environment(role: Role) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    let variable = |suffix: &str| std::env::var(format!("NT_{}_{suffix}", role.name().to_uppercase())).ok();
    let mut values = BTreeMap::new();
    for key in KEYS {
        if let Some(value) = variable(&key.to_uppercase()) {
            values.insert(key.to_string(), value.into_bytes());
        }
    }
    for (suffix, key) in [("CA", "ca.crt"), ("TLS_CRT", "tls.crt"), ("TLS_KEY", "tls.key")] {
        if let Some(path) = variable(suffix) {
            values.insert(key.to_string(), read(Path::new(&path), key)?);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(role: &str, keys: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let end = root.path().join(role);
        fs::create_dir(&end).unwrap();
        for (key, value) in keys {
            fs::write(end.join(key), value).unwrap();
        }
        root
    }

    const TARGET: [(&str, &str); 6] = [
        ("host", "db\n"),
        ("port", "1433\n"),
        ("user", "loader"),
        ("password", "secret\n"),
        ("database", "sales"),
        (ROLE_KEY, "target\n"),
    ];

    #[test]
    fn files_are_read_and_their_line_feeds_dropped() {
        let root = folder("target", &TARGET);
        let options = target(Some(root.path())).unwrap();
        assert_eq!((options.host.as_str(), options.port, options.password.as_str()), ("db", 1433, "secret"));
        assert!(options.ca_pem.is_none());
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let cases: [(&str, Option<&str>, &str); 4] = [
            ("port", Some("0"), "native_transfer.connection_invalid:target.port"),
            ("port", Some("x"), "native_transfer.connection_invalid:target.port"),
            ("user", None, "native_transfer.connection_invalid:target.user"),
            (ROLE_KEY, Some("source"), "native_transfer.connection_invalid:transfer.dpone.io.role"),
        ];
        for (key, value, code) in cases {
            let keys: Vec<(&str, &str)> = TARGET
                .into_iter()
                .filter_map(|(k, v)| if k == key { value.map(|new| (k, new)) } else { Some((k, v)) })
                .collect();
            let root = folder("target", &keys);
            let refusal = target(Some(root.path())).unwrap_err();
            assert_eq!(refusal.code.as_str(), code);
            assert!(!refusal.to_string().contains("secret"));
        }
    }
}
