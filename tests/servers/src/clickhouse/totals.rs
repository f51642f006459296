//! Results with a row of totals, with the smallest and largest values, or without low-cardinality columns.
//!
//! The engine's Native format leaves totals and extremes out and keeps dictionaries, while its tab-separated format has them: after the rows, each behind an empty
//! line, as the last piece of the stream, which counts no rows. So such a result is fetched tab-separated, and the engine
//! itself, in a session without any settings, turns each piece back into a Native block of the types that the query has.
//! Slow, and rare.

use std::io;

use super::connection::Connection;
use super::engine::{Engine, EngineError};
use super::native::Column;
use super::protocol::DataKind;
use super::session::{Failure, Request, Sink, quote_name};
use super::types;

/// A sink that takes totals and extremes too.
pub(crate) trait ExtrasSink: Sink {
    fn extra(&mut self, kind: DataKind, block: &[u8]) -> io::Result<()>;
}

/// Runs a SELECT whose columns are known.
pub(super) fn run(
    engine: &Engine,
    connection: &mut Connection,
    request: Request<'_>,
    columns: &[Column],
    sink: &mut dyn ExtrasSink,
) -> Result<(), Failure> {
    let mut converter = Converter { connection: engine.connect()?, structure: structure(columns) };
    sink.header(columns)?;
    let mut pieces =
        connection.stream(request.sql, "TSV", request.parameters).map_err(|text| EngineError::parse(&text))?;
    loop {
        let piece = pieces.fetch();
        if let Some(text) = piece.error() {
            return Err(EngineError::parse(&text).into());
        }
        let (data, mut counts) = (piece.data(), piece.counts());
        if data.is_empty() {
            return Ok(());
        }
        if counts.rows == 0 {
            extras(&mut converter, data, sink)?;
            continue;
        }
        let mut wanted = true;
        converter.convert(data, &mut |block| {
            wanted = sink.piece(block, std::mem::take(&mut counts))?;
            Ok(wanted)
        })?;
        if !wanted {
            return Ok(());
        }
    }
}

/// The columns as the client wants them: `low_cardinality_allow_in_native_format = 0` takes the dictionaries off.
pub(super) fn without_low_cardinality(columns: &[Column], settings: &[(String, String)]) -> Vec<Column> {
    let refuses = |(name, value): &(String, String)| {
        name == "low_cardinality_allow_in_native_format" && matches!(value.as_str(), "0" | "false")
    };
    if !settings.iter().any(refuses) {
        return columns.to_vec();
    }
    let plain = |column: &Column| Column {
        name: column.name.clone(),
        type_name: types::without_low_cardinality(&column.type_name),
    };
    columns.iter().map(plain).collect()
}

/// The last piece: an empty line and the totals, an empty line and the two extremes, or both.
fn extras(converter: &mut Converter, data: &[u8], sink: &mut dyn ExtrasSink) -> Result<(), Failure> {
    let lines: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    let parts: &[(DataKind, std::ops::Range<usize>)] = match lines.len() {
        2 => &[(DataKind::Totals, 1..2)],
        3 => &[(DataKind::Extremes, 1..3)],
        5 => &[(DataKind::Totals, 1..2), (DataKind::Extremes, 3..5)],
        _ => return Err(EngineError::new(48, "NOT_IMPLEMENTED", "The engine's totals have an unknown form").into()),
    };
    for (kind, range) in parts {
        converter.convert(&lines[range.clone()].concat(), &mut |block| {
            sink.extra(*kind, block)?;
            Ok(true)
        })?;
    }
    Ok(())
}

/// The columns as the table function `format` wants them.
fn structure(columns: &[Column]) -> String {
    let all: Vec<_> =
        columns.iter().map(|column| format!("{} {}", quote_name(&column.name), column.type_name)).collect();
    all.join(", ")
}

/// Turns rows of text into blocks.
struct Converter {
    connection: Connection,
    structure: String,
}

impl Converter {
    fn convert(&mut self, rows: &[u8], take: &mut dyn FnMut(&[u8]) -> io::Result<bool>) -> Result<(), Failure> {
        let rows = std::str::from_utf8(rows)
            .map_err(|_| EngineError::new(48, "NOT_IMPLEMENTED", "Totals beside values that are not UTF-8"))?;
        let parameters = [("structure".to_owned(), self.structure.clone()), ("rows".to_owned(), escaped(rows))];
        let sql = "SELECT * FROM format(TSV, {structure:String}, {rows:String})";
        let mut blocks =
            self.connection.stream(sql, "Native", &parameters).map_err(|text| EngineError::parse(&text))?;
        loop {
            let block = blocks.fetch();
            if let Some(text) = block.error() {
                return Err(EngineError::parse(&text).into());
            }
            if block.data().is_empty() || !take(block.data())? {
                return Ok(());
            }
        }
    }
}

/// A parameter's value is itself read as tab-separated text.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")
}
