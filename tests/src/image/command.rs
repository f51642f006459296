//! `testkit image`.

use std::error::Error;
use std::path::PathBuf;

use super::{ImageError, ImageName, Input, Rootfs, build, stage};

/// Builds the product's image, or its files, from a folder of binaries; prints one JSON line. Every entry carries the time
/// of SOURCE_DATE_EPOCH, 0 where it is not set.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// An archive for `ctr -n k8s.io images import`, `docker load` or `podman load`:
    /// {"name":...,"digest":...,"bytes":...}
    Build {
        /// File to write.
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// Name and tag.
        #[arg(long, default_value = "native-transfer:dev", value_name = "NAME:TAG")]
        name: String,
        #[command(flatten)]
        source: Source,
    },
    /// The files of the image as a folder: {"rootfs":...,"sums":...,"files":...,"bytes":...}
    Stage {
        /// Folder to write `rootfs` and `rootfs.sha256` into.
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
        #[command(flatten)]
        source: Source,
    },
}

#[derive(Debug, clap::Args)]
struct Source {
    /// Folder of the binaries; without it the one that testkit itself is in.
    #[arg(long, value_name = "DIR")]
    bin_dir: Option<PathBuf>,
    /// A binary of the image; may be repeated, and the first is the entry point.
    #[arg(long = "binary", value_name = "NAME", default_values = ["native-transfer", "native-transfer-operator"])]
    binaries: Vec<String>,
    /// CA certificates, PEM.
    #[arg(long, default_value = "/etc/ssl/certs/ca-certificates.crt", value_name = "FILE")]
    ca_bundle: PathBuf,
}

impl Source {
    fn input(self) -> Result<Input, ImageError> {
        let bin_dir = match self.bin_dir {
            Some(folder) => folder,
            None => std::env::current_exe()
                .map_err(|source| ImageError::File { path: PathBuf::from("testkit"), source })?
                .parent()
                .map(PathBuf::from)
                .unwrap_or_default(),
        };
        Ok(Input { bin_dir, binaries: self.binaries, ca_bundle: self.ca_bundle, epoch: epoch()? })
    }
}

/// SOURCE_DATE_EPOCH (reproducible-builds.org), 0 where it is not set.
fn epoch() -> Result<u64, ImageError> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| ImageError::Epoch),
        Err(std::env::VarError::NotPresent) => Ok(0),
        Err(std::env::VarError::NotUnicode(_)) => Err(ImageError::Epoch),
    }
}

/// Runs the command.
///
/// # Errors
/// See [`ImageError`].
pub fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let line = match arguments.action {
        Action::Build { output, name, source } => {
            let name: ImageName = name.parse()?;
            serde_json::to_string(&build(&source.input()?, &name, &output)?)?
        }
        Action::Stage { output, source } => {
            serde_json::to_string(&stage(&Rootfs::assemble(&source.input()?)?, &output)?)?
        }
    };
    println!("{line}");
    Ok(())
}
