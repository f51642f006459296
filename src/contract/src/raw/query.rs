//! The one SELECT of a transfer: projection, text with placeholders, parameters (contract.md 2.6).

use crate::canon::Json;
use crate::civil::Instant;
use crate::code;
use crate::error::Refusal;
use crate::port::source::{FrozenWindow, SourceColumn};
use crate::source_type::{SourceType, select_expression};

/// Type of both window parameters.
pub const PARAMETER_TYPE: &str = "DateTime64(6,'UTC')";

/// A quoted identifier of the closed grammar `[A-Za-z_][A-Za-z0-9_]*`.
///
/// # Errors
/// `mssql_native.source_identifier_invalid`.
pub fn identifier(name: &str) -> Result<String, Refusal> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || !plain || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Refusal::new(
            code::SOURCE_IDENTIFIER_INVALID,
            "Source database, table and column names consist of ASCII letters, digits and underscores and do not start \
             with a digit; rename or use a view-free table that does.",
        ));
    }
    Ok(format!("`{name}`"))
}

/// The projected column of an admitted type.
///
/// # Errors
/// `mssql_native.source_identifier_invalid`.
pub fn project(name: &str, source_type: &SourceType) -> Result<SourceColumn, Refusal> {
    identifier(name)?;
    Ok(SourceColumn {
        name: name.to_owned(),
        type_text: source_type.as_str().to_owned(),
        expression: select_expression(name, source_type.as_str()),
        header_type: source_type.header_type().to_owned(),
    })
}

/// How window bounds appear in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// `%(start)s` and `%(end)s`: the text that is hashed.
    Placeholders,
    /// Quoted `YYYY-MM-DD HH:MM:SS.ffffff` literals: the text that is sent, since the wire revision has no parameters.
    Literals,
}

/// The text of the SELECT. With `provenance` it ends in `_part` and `_part_offset`.
///
/// # Errors
/// `mssql_native.source_identifier_invalid`; `rolling_window_bounds_out_of_range` for a bound outside years 1 to 9999.
pub fn select_text(
    database: &str,
    table: &str,
    columns: &[SourceColumn],
    window: Option<&FrozenWindow>,
    provenance: bool,
    bounds: Bounds,
) -> Result<String, Refusal> {
    let mut projection: Vec<&str> = columns.iter().map(|column| column.expression.as_str()).collect();
    if provenance {
        projection.extend(["CAST(`_part` AS String) AS `_part`", "`_part_offset`"]);
    }
    let mut text = format!("SELECT {} FROM {}.{}", projection.join(", "), identifier(database)?, identifier(table)?);
    if let Some(window) = window {
        let column = format!("`__dpone_native_source`.{}", identifier(&window.column)?);
        let (start, end) = match bounds {
            Bounds::Placeholders => ("%(start)s".to_owned(), "%(end)s".to_owned()),
            Bounds::Literals => {
                let [(_, end), (_, start)] = window_parameters(window)?;
                (format!("'{start}'"), format!("'{end}'"))
            }
        };
        text += &format!(
            " AS `__dpone_native_source` WHERE {column} >= toDateTime64({start}, 6, 'UTC') AND {column} < \
             toDateTime64({end}, 6, 'UTC')"
        );
    }
    Ok(text)
}

/// The two bounds as instants, start before end.
///
/// # Errors
/// `rolling_window_bounds_out_of_range` outside years 1 to 9999 or when the window is empty or reversed.
pub fn window_bounds(window: &FrozenWindow) -> Result<(Instant, Instant), Refusal> {
    let start = Instant::from_micros(window.start_micros);
    let end = Instant::from_micros(window.end_micros);
    match (start, end) {
        (Some(start), Some(end)) if start < end => Ok((start, end)),
        _ => Err(Refusal::new(
            code::ROLLING_WINDOW_BOUNDS_OUT_OF_RANGE,
            "The window's bounds lie outside years 1 to 9999 or its end is not after its start; correct the interval \
             end or the lookback.",
        )),
    }
}

/// The query parameters sorted by name: `end`, `start`, as `YYYY-MM-DD HH:MM:SS.ffffff`.
///
/// # Errors
/// As [`window_bounds`].
pub fn window_parameters(window: &FrozenWindow) -> Result<[(&'static str, String); 2], Refusal> {
    let (start, end) = window_bounds(window)?;
    Ok([("end", end.query_text()), ("start", start.query_text())])
}

/// `[column, start, end]` with both bounds as `isoformat` texts, or null: the window in every identity.
///
/// # Errors
/// As [`window_bounds`].
pub fn window_identity(window: Option<&FrozenWindow>) -> Result<Json, Refusal> {
    let Some(window) = window else {
        return Ok(Json::Null);
    };
    let (start, end) = window_bounds(window)?;
    Ok(Json::array([window.column.clone(), start.isoformat(), end.isoformat()]))
}
