//! The engines that the server can stand in front of.

use std::fmt;
use std::path::PathBuf;

use super::engine::StartError;

/// A release of the engine, pinned by its hash in the tool that fetches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineRelease {
    /// 26.7, a library with C functions.
    #[value(name = "26.7")]
    V26_7,
    /// 26.9, a Python module without C functions.
    #[value(name = "26.9")]
    V26_9,
}

impl EngineRelease {
    /// The variable that chooses one.
    pub const VARIABLE: &str = "NT_CLICKHOUSE_ENGINE";

    /// The one that `NT_CLICKHOUSE_ENGINE` names; 26.7 when it is not set.
    pub fn from_environment() -> Result<EngineRelease, StartError> {
        match std::env::var(EngineRelease::VARIABLE) {
            Err(std::env::VarError::NotPresent) => Ok(EngineRelease::V26_7),
            Ok(name) => {
                <EngineRelease as clap::ValueEnum>::from_str(&name, false).map_err(|_| StartError::UnknownEngine(name))
            }
            Err(std::env::VarError::NotUnicode(name)) => {
                Err(StartError::UnknownEngine(name.to_string_lossy().into_owned()))
            }
        }
    }

    /// The tool in `tests/tools` that fetches it.
    pub fn tool(self) -> &'static str {
        match self {
            EngineRelease::V26_7 => "libchdb.sh",
            EngineRelease::V26_9 => "chdb-core.sh",
        }
    }

    /// Where the tool has put it.
    pub(super) fn path(self) -> Result<PathBuf, StartError> {
        let missing = StartError::NoEngine { release: self };
        let cache = match (std::env::var_os("NT_CACHE"), std::env::var_os("HOME")) {
            (Some(cache), _) => PathBuf::from(cache),
            (None, Some(home)) => PathBuf::from(home).join(".cache/native-transfer"),
            (None, None) => return Err(missing),
        };
        let path = cache.join(match self {
            EngineRelease::V26_7 => "chdb-26.7.3/libchdb.so",
            EngineRelease::V26_9 => "chdb-core-26.9.0/chdb/_chdb.abi3.so",
        });
        if path.exists() { Ok(path) } else { Err(missing) }
    }
}

impl fmt::Display for EngineRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineRelease::V26_7 => "26.7",
            EngineRelease::V26_9 => "26.9",
        })
    }
}
