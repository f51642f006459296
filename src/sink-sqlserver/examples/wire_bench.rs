//! Rows per second from a sealed file to the bytes of a bulk load: `cargo run --release -p sink-sqlserver --example
//! wire_bench [-- ROWS]`.
//!
//! The row is the common one of the design: bigint, float(53), a text of 20 characters, datetime2(6), all nullable. Reading
//! the file is part of it; session, packets and TLS are not. The best of five rounds counts: what the code costs when nothing
//! else disturbs it.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use contract::block::{Block, Column, StringColumn, Values};
use contract::encode::{EncodedRows, RowEncoder};
use contract::layout::WireLayout;
use contract::port::target::StageColumn;
use contract::source_type::SourceType;
use sink_sqlserver::measure;

/// Rows of the default chunk.
const ROWS: usize = 65_536;
const MAX_ROW_BYTES: u64 = 1 << 20;
const ROUNDS: usize = 5;
const COLUMNS: [(&str, &str, &str); 4] = [
    ("id", "bigint", "Nullable(Int64)"),
    ("amount", "float(53)", "Nullable(Float64)"),
    ("text", "nvarchar(max)", "Nullable(String)"),
    ("at", "datetime2(6)", "Nullable(DateTime64(6, 'UTC'))"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(5_000_000), |text| text.parse::<usize>())?;
    let chunks = rows.div_ceil(ROWS);
    let mut file = tempfile::NamedTempFile::new()?;
    let native = seal()?;
    file.write_all(&native)?;
    let columns = COLUMNS.map(|(name, type_text, _)| StageColumn {
        name: name.to_owned(),
        type_text: type_text.to_owned(),
        nullable: true,
    });
    let (mut best, mut bytes, mut sent) = (Duration::MAX, 0, 0);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        (bytes, sent) = (0, 0);
        for _ in 0..chunks {
            let wire = measure::encode(&columns, Box::new(File::open(file.path())?))?;
            bytes += wire.bytes;
            sent += wire.rows;
        }
        best = best.min(started.elapsed());
    }
    let seconds = best.as_secs_f64();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "sealed file -> TDS: {sent} rows in {chunks} chunks, {} native bytes and {} wire bytes a row: {:.2} M rows/s, {:.0} MB/s, \
         {:.3} s per M rows",
        native.len() / ROWS,
        bytes / sent,
        sent as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e6,
        seconds / (sent as f64 / 1e6),
    )?;
    Ok(())
}

/// The native bytes of one chunk.
fn seal() -> Result<Vec<u8>, Box<dyn Error>> {
    let declared: Vec<String> = COLUMNS.iter().map(|(_, type_text, _)| format!("{type_text} nullable")).collect();
    let layout = WireLayout::new(COLUMNS.iter().zip(&declared).map(|((name, ..), text)| (*name, text.as_str())))?;
    let sources = COLUMNS.iter().map(|(.., source)| SourceType::parse(source)).collect::<Result<Vec<_>, _>>()?;
    let encoder = RowEncoder::new(layout, sources, MAX_ROW_BYTES)?;
    let mut rows = EncodedRows::with_capacity(ROWS * 80, ROWS);
    encoder.encode(&block(), 0..ROWS, &mut rows)?;
    Ok(rows.bytes)
}

fn block() -> Block {
    let nulls = Some(vec![0u8; ROWS]);
    let mut texts = StringColumn::default();
    (0..ROWS).for_each(|row| texts.push(format!("row {row:016}").as_bytes()));
    let ids = (0..ROWS as i64).map(|row| row * 7_919).collect();
    let amounts = (0..ROWS).map(|row| row as f64 * 0.25).collect();
    let times = (0..ROWS as i64).map(|row| 1_700_000_000_000_000 + row * 1_000_003).collect();
    let columns = [Values::Int64(ids), Values::Float64(amounts), Values::String(texts), Values::Int64(times)];
    Block { rows: ROWS, columns: columns.into_iter().map(|values| Column { values, nulls: nulls.clone() }).collect() }
}
