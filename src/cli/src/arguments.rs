//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use contract::digest::Digest;

/// Moves the rows of one ClickHouse SELECT into one SQL Server table: exactly, or not at all.
#[derive(Debug, Parser)]
#[command(name = "native-transfer", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Admit, extract and publish one transfer; settle what can be proved if it fails
    Run(RunArguments),
    /// Show what a transfer would do, without network or secrets
    Plan(PlanArguments),
    /// Observe source and target and store the findings; no effect on either
    Admit(PhaseArguments),
    /// Read the source once, load and verify the chunks, seal the end
    Extract(PhaseArguments),
    /// Prepare, publish and clean up a run whose end is sealed; safe to repeat
    Publish(PhaseArguments),
    /// Show the state of a run from its journal alone
    Inspect(InspectArguments),
    /// Read the source several times without publishing anything, and compare and time the reads
    Bench(BenchArguments),
    /// The tables that a DBA creates once in the target database
    #[command(subcommand)]
    TargetCatalog(CatalogCommand),
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) manifest: ManifestArguments,
    /// Folder with source/KEY and target/KEY files (host port user password database transfer.dpone.io.role [ca.crt
    /// tls.crt tls.key]); without it NT_SOURCE_HOST ... NT_TARGET_CA are read
    #[arg(long, value_name = "DIR")]
    pub(crate) connections: Option<PathBuf>,
    /// Folder of journal and chunk files; keep it until the run is settled
    #[arg(long, value_name = "DIR", default_value_os_t = default_journal_root())]
    pub(crate) journal_root: PathBuf,
    /// Names the run; the same id continues or settles it [default: a fresh one, printed]
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct PhaseArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) worker: WorkerArguments,
}

/// What an operator adds to a phase (docs/internals/operator.md).
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "For an operator")]
pub(crate) struct WorkerArguments {
    /// Refuse the manifest file unless this is its SHA-256
    #[arg(long, value_name = "HEX")]
    pub(crate) plan_sha256: Option<Digest>,
    /// Open the journal with an epoch above this one too: the highest that was ever seen of it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) epoch_floor: u64,
    /// Write the receipt of every end to this file, in place
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Answer GET /progress on this address
    #[arg(long, value_name = "ADDR")]
    pub(crate) progress_listen: Option<SocketAddr>,
    /// File with the pod UID that progress answers carry
    #[arg(long, value_name = "FILE", requires = "progress_listen")]
    pub(crate) progress_identity_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestArguments {
    /// A NativeTransfer document, or a dpone.batch.v1 file with #schema.table
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: String,
    /// End of the window, for example 2013-07-05T00:00:00Z; never the wall clock
    #[arg(long, value_name = "T")]
    pub(crate) interval_end: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) manifest: ManifestArguments,
    /// Form of the plan
    #[arg(long, value_enum, default_value_t = PlanFormat::Md)]
    pub(crate) format: PlanFormat,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The run
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: String,
    /// Folder of the journal
    #[arg(long, value_name = "DIR", default_value_os_t = default_journal_root())]
    pub(crate) journal_root: PathBuf,
    /// How to print the state
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Print the evidence of the run instead, as JSON: what was read from which parts, and what was published
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Write the receipt of every end to this file, in place
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    #[command(flatten)]
    pub(crate) manifest: ManifestArguments,
    /// Qualify the source: one warm-up, then trials whose rows must be equal; drift of the source excludes its trial
    #[arg(long, required = true)]
    pub(crate) qualify: bool,
    /// Trials beside the warm-up, at least 3
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) trials: u32,
    /// Folder with source/KEY and target/KEY files, as for run; the target is only looked at
    #[arg(long, value_name = "DIR")]
    pub(crate) connections: Option<PathBuf>,
    /// Folder for the chunk files of the reads; each is removed as soon as it is sealed
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    pub(crate) scratch: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Print the script for sqlcmd, tsql or Management Studio
    Print(CatalogArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CatalogArguments {
    /// Schema of the state tables
    #[arg(long, value_name = "NAME", default_value = "dpone")]
    pub(crate) state_schema: String,
    /// Schema of stages and prepared tables [default: the state schema]
    #[arg(long, value_name = "NAME")]
    pub(crate) staging_schema: Option<String>,
    /// Database user or role that loads
    #[arg(long, value_name = "NAME", default_value = "native_transfer_loader")]
    pub(crate) loader: String,
}

/// Form of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

/// Form of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    Json,
    Md,
}

/// `$XDG_STATE_HOME/native-transfer`, else `~/.local/state/native-transfer`, else a folder here.
fn default_journal_root() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state.or_else(home).map_or_else(|| PathBuf::from(".native-transfer"), |base| base.join("native-transfer"))
}
