//! Reads a table through the product's source and says how fast: rows/s, decoded MB/s, CPU seconds per million rows, peak RSS.
//!
//! ```text
//! testkit clickhouse --data DIR --password-file FILE &
//! cargo run --release -p source-clickhouse --example read_bench -- --port PORT --ca DIR/tls/ca.pem \
//!     --password-file FILE --database d --table t --raw --repeat 3
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use contract::port::source::{ReplicaScope, Source as _, SourceMode, SourceRequest};
use source_clickhouse::{ClickHouseSource, ConnectOptions, Timeouts};

/// Measures one read of a table.
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
    /// PEM file of the only trusted authority; without it the system's roots count.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// Database of the table.
    #[arg(long)]
    database: String,
    /// Table to read whole.
    #[arg(long)]
    table: String,
    /// exact_raw_rows over a ReplacingMergeTree instead of query_visible over a MergeTree.
    #[arg(long)]
    raw: bool,
    /// Number of reads.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let password = std::fs::read_to_string(&arguments.password_file)?;
    let options = ConnectOptions {
        host: arguments.host.clone(),
        port: arguments.port,
        user: arguments.user.clone(),
        password: password.lines().next().unwrap_or_default().to_owned(),
        database: arguments.database.clone(),
        ca_pem: arguments.ca.as_ref().map(std::fs::read).transpose()?,
        client_identity: None,
        timeouts: Timeouts::default(),
    };
    for number in 1..=arguments.repeat {
        read(number, &arguments, &options).await?;
    }
    Ok(())
}

async fn read(number: u32, arguments: &Arguments, options: &ConnectOptions) -> Result<(), Box<dyn Error>> {
    let raw = SourceMode::ExactRawRows(ReplicaScope::SingleServer);
    let request = SourceRequest {
        database: arguments.database.clone(),
        table: arguments.table.clone(),
        mode: if arguments.raw { raw } else { SourceMode::QueryVisible },
        window: None,
        query_seconds: 21_600,
        max_row_bytes: 1 << 20,
    };
    let started = Instant::now();
    let mut source = ClickHouseSource::connect(options).await?;
    let admission = source.admit(&request).await?;
    let admitted = started.elapsed();
    source.open(&admission, &format!("dpone-native-{number:032x}")).await?;
    let (reading, cpu) = (Instant::now(), cpu_time()?);
    let mut blocks = 0_u64;
    while source.next_block().await?.is_some() {
        blocks += 1;
    }
    let (wall, cpu) = (reading.elapsed(), cpu_time()? - cpu);
    let eof = source.finish().await?;
    let rows = eof.rows as f64;
    println!(
        "read {number}: {} rows in {blocks} blocks, {:.2} s (admission {:.3} s): {:.2} M rows/s, {:.0} MB/s decoded, \
         {:.3} CPU s per M rows, peak RSS {} MiB",
        eof.rows,
        wall.as_secs_f64(),
        admitted.as_secs_f64(),
        rows / wall.as_secs_f64() / 1e6,
        eof.decoded_bytes as f64 / wall.as_secs_f64() / 1e6,
        cpu.as_secs_f64() / (rows / 1e6),
        peak_rss_mib()?,
    );
    Ok(())
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

fn peak_rss_mib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024)
}
