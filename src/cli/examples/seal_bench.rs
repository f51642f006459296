//! Measures the road up to the sealed file: the product's source, encoder and pipeline; each file is removed at once.
//!
//! ```text
//! testkit clickhouse --data DIR --password-file FILE &
//! cargo run --release -p cli --example seal_bench -- --port PORT --ca DIR/tls/ca.pem --password-file FILE \
//!     --database bench --table p1 --spool DIR
//! ```
//!
//! The table holds the common row of the design: Nullable(Int64), Nullable(Float64), Nullable(String) and
//! Nullable(DateTime64(6, 'UTC')). The last line is the result as JSON. `cpu_seconds` is that of this process alone, from the
//! first block on: unlike the wall time it does not depend on how fast the server sends.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use contract::encode::RowEncoder;
use contract::layout::WireLayout;
use contract::limits::Limits;
use contract::port::source::{Source as _, SourceMode, SourceRequest};
use contract::source_type::SourceType;
use runtime::measure::{self, Files, Sealing};
use runtime::{CancellationToken, PhaseSummary};
use serde_json::{Value, json};
use source_clickhouse::{ClickHouseSource, ConnectOptions, Timeouts};

/// Reads a table of four P1 columns and seals it.
#[derive(Parser)]
struct Arguments {
    /// Host of the server, as its certificate names it.
    #[arg(long, default_value = "localhost")]
    host: String,
    /// Port of the TLS native protocol.
    #[arg(long)]
    port: u16,
    /// User.
    #[arg(long, default_value = "default")]
    user: String,
    /// File whose first line is the password.
    #[arg(long)]
    password_file: PathBuf,
    /// PEM file of the only trusted authority.
    #[arg(long)]
    ca: PathBuf,
    /// Database of the table.
    #[arg(long)]
    database: String,
    /// Table to read whole.
    #[arg(long)]
    table: String,
    /// Folder for the sealed files.
    #[arg(long)]
    spool: PathBuf,
    /// Rows of a chunk.
    #[arg(long, default_value_t = 65_536)]
    max_rows: u64,
    /// Native bytes of a chunk.
    #[arg(long, default_value_t = 16 << 20)]
    max_bytes: u64,
    /// Chunks that may wait between encoder and importer.
    #[arg(long, default_value_t = 2)]
    max_pending: u64,
    /// Encoders, and importers.
    #[arg(long, default_value_t = 2)]
    parallelism: u64,
}

/// RSS that a run may take beside its chunks (design.md 6).
const RSS_BASE_BYTES: u64 = 96 << 20;
const MAX_ROW_BYTES: u64 = 1 << 20;
const WIRE_TYPES: [&str; 4] =
    ["bigint nullable", "float(53) nullable", "nvarchar(max) nullable", "datetime2(6) nullable"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    // The same runtime as that of the product.
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(bench(&arguments))
}

async fn bench(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let limits = Limits {
        max_total_encoded_bytes: u64::MAX,
        stage_allocated_bytes_stop_threshold: u64::MAX,
        max_rows: arguments.max_rows,
        max_bytes: arguments.max_bytes,
        max_row_bytes: MAX_ROW_BYTES.min(arguments.max_bytes),
        max_pending: arguments.max_pending,
        max_staging_tables: u64::MAX,
        parallelism: arguments.parallelism,
        encoding_parallelism: None,
        import_parallelism: None,
    };
    let request = SourceRequest {
        database: arguments.database.clone(),
        table: arguments.table.clone(),
        mode: SourceMode::QueryVisible,
        window: None,
        query_seconds: 21_600,
        max_row_bytes: limits.max_row_bytes,
    };
    let password = std::fs::read_to_string(&arguments.password_file)?;
    let options = ConnectOptions {
        host: arguments.host.clone(),
        port: arguments.port,
        user: arguments.user.clone(),
        password: password.lines().next().unwrap_or_default().to_owned(),
        database: arguments.database.clone(),
        ca_pem: Some(std::fs::read(&arguments.ca)?),
        client_identity: None,
        timeouts: Timeouts::default(),
    };
    let mut source = ClickHouseSource::connect(&options).await?;
    let admission = source.admit(&request).await?;
    let names = admission.columns.iter().map(|column| column.name.as_str());
    let layout = WireLayout::new(names.zip(WIRE_TYPES))?;
    let types: Vec<SourceType> =
        admission.columns.iter().map(|column| SourceType::parse(&column.type_text)).collect::<Result<_, _>>()?;
    let encoder = RowEncoder::new(layout, types, limits.max_row_bytes)?;
    source.open(&admission, "dpone-native-00000000000000000000000000000001").await?;
    let (started, cpu) = (Instant::now(), cpu_time()?);
    let stop = CancellationToken::new();
    let sealing = measure::read_and_seal(source, encoder, limits, &arguments.spool, Files::Removed, &stop).await?;
    report(&sealing, &limits, started.elapsed(), cpu_time()?.saturating_sub(cpu))
}

fn report(sealing: &Sealing, limits: &Limits, wall: Duration, cpu: Duration) -> Result<(), Box<dyn Error>> {
    let peak = peak_rss_bytes()?;
    let bound = limits.spool_payload_bound() + RSS_BASE_BYTES;
    let (wall, cpu, millions) = (wall.as_secs_f64(), cpu.as_secs_f64(), sealing.rows as f64 / 1e6);
    println!(
        "{} rows in {} chunks, {:.2} s: {:.2} M rows/s, {:.0} MB/s native, {:.3} CPU s per M rows ({:.2} M rows per CPU s), \
         encode overlap {:.2}, peak RSS {} MiB of {} MiB",
        sealing.rows,
        sealing.chunks,
        wall,
        millions / wall,
        sealing.encoded_bytes as f64 / wall / 1e6,
        cpu / millions,
        millions / cpu,
        sealing.encode.effective_parallelism().unwrap_or_default(),
        peak >> 20,
        bound >> 20,
    );
    let document = json!({
        "rows": sealing.rows,
        "chunks": sealing.chunks,
        "decoded_bytes": sealing.decoded_bytes,
        "encoded_bytes": sealing.encoded_bytes,
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "read": phase(&sealing.read),
        "encode": phase(&sealing.encode),
        "peak_rss_bytes": peak,
        "rss_bound_bytes": bound,
    });
    println!("{document}");
    Ok(())
}

fn phase(summary: &PhaseSummary) -> Value {
    json!({
        "operations": summary.operations,
        "wall_seconds": summary.wall_seconds,
        "active_seconds": summary.active_seconds,
        "peak_workers": summary.peak_workers,
        "effective_parallelism": summary.effective_parallelism(),
    })
}

/// CPU time of all threads of this process so far.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Fields count from 1; the name in field 2 may hold spaces, so count from its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok()).ok_or("unreadable stat");
    // Linux reports in hundredths of a second (USER_HZ) whatever the kernel's own tick is.
    Ok(Duration::from_millis((ticks(14)? + ticks(15)?) * 10))
}

fn peak_rss_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024)
}
