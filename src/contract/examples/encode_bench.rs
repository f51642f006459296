//! Rows per second of the row encoders on one core: `cargo run --release -p contract --example encode_bench`.
//!
//! The row is the common one of the design: bigint, float, a text of 20 characters, datetime2(6), all nullable; 75 bytes in
//! the native file, 84 on the TDS wire. Decoding the source is not part of it.

use std::io::Write as _;
use std::time::{Duration, Instant};

use contract::block::{Block, Column, StringColumn, Values};
use contract::encode::{EncodedRows, RowEncoder, TdsRowEncoder};
use contract::layout::WireLayout;
use contract::source_type::SourceType;

const ROWS: usize = 65_536;
const MAX_ROW_BYTES: u64 = 1 << 20;
const ROUNDS: usize = 15;
const SECONDS_PER_ROUND: f64 = 0.1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let declared = ["bigint nullable", "float(53) nullable", "nvarchar(max) nullable", "datetime2(6) nullable"];
    let layout = WireLayout::new(["id", "amount", "text", "at"].into_iter().zip(declared))?;
    let sources = ["Nullable(Int64)", "Nullable(Float64)", "Nullable(String)", "Nullable(DateTime64(6, 'UTC'))"];
    let sources = sources.into_iter().map(SourceType::parse).collect::<Result<Vec<_>, _>>()?;
    let encoder = RowEncoder::new(layout.clone(), sources, MAX_ROW_BYTES)?;
    let tds = TdsRowEncoder::new(&layout, MAX_ROW_BYTES, false)?;
    let mut out = std::io::stdout();
    for (name, text) in [("ascii", "twenty characters ok"), ("cyrillic", "двадцать знаков да!!")] {
        let block = block(text);
        let mut rows = EncodedRows::with_capacity(ROWS * 80, ROWS);
        let mut sizes = Vec::new();
        let mut wire = Vec::new();
        let measure = best(|| encoder.measure(&block, &mut sizes).is_ok());
        let encode = best(|| {
            rows.clear();
            encoder.encode(&block, 0..ROWS, &mut rows).is_ok()
        });
        let send = best(|| {
            wire.clear();
            tds.encode(&rows.bytes, &mut wire).is_ok()
        });
        writeln!(out, "{name}: {} native bytes per row, {} on the wire", rows.bytes.len() / ROWS, wire.len() / ROWS)?;
        for (what, bytes, took) in [
            ("measure", rows.bytes.len(), measure),
            ("encode + SHA-256 + sum", rows.bytes.len(), encode),
            ("native -> TDS", wire.len(), send),
        ] {
            let seconds = took.as_secs_f64();
            let (rows, bytes) = (ROWS as f64 / seconds / 1e6, bytes as f64 / seconds / 1e6);
            writeln!(out, "  {what:24} {rows:7.2} M rows/s {bytes:8.0} MB/s")?;
        }
    }
    Ok(())
}

/// The shortest time of a call over rounds: what the code costs when nothing else disturbs it.
fn best(mut work: impl FnMut() -> bool) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let round = Instant::now();
        while round.elapsed().as_secs_f64() < SECONDS_PER_ROUND {
            let start = Instant::now();
            let done = work();
            best = best.min(start.elapsed());
            assert!(done, "the rows of the bench encode");
        }
    }
    best
}

fn block(text: &str) -> Block {
    let nulls = Some(vec![0u8; ROWS]);
    let mut texts = StringColumn::default();
    (0..ROWS).for_each(|_| texts.push(text.as_bytes()));
    let ids = (0..ROWS as i64).map(|row| row * 7_919).collect();
    let amounts = (0..ROWS).map(|row| row as f64 * 0.25).collect();
    let times = (0..ROWS as i64).map(|row| 1_700_000_000_000_000 + row * 1_000_003).collect();
    let columns = [Values::Int64(ids), Values::Float64(amounts), Values::String(texts), Values::Int64(times)];
    Block { rows: ROWS, columns: columns.into_iter().map(|values| Column { values, nulls: nulls.clone() }).collect() }
}
