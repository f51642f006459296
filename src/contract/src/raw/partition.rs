//! Partitions of a bounded window: the closed expression list, UTC enumeration and calendar proof (contract.md 2.4).

use std::collections::BTreeSet;

use super::query::window_bounds;
use super::{CATALOG_ROWS_MAX, facts::ColumnFacts};
use crate::canon::Json;
use crate::civil::{Date, MICROS_PER_DAY};
use crate::code;
use crate::error::Refusal;
use crate::port::source::FrozenWindow;
use crate::source_type::SourceType;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Granularity {
    Month,
    Day,
}

/// The partition ids that the window can touch, sorted; `YYYYMM` or `YYYYMMDD`.
///
/// # Errors
/// `mssql_native.source_provenance_incomplete` for another partition expression or more than 8192 partitions.
pub fn partition_ids(expression: &str, window: &FrozenWindow) -> Result<Vec<String>, Refusal> {
    let granularity = granularity(expression, &window.column).ok_or_else(|| {
        Refusal::new(
            code::SOURCE_PROVENANCE_INCOMPLETE,
            "A bounded raw read needs PARTITION BY toYYYYMM, toYYYYMMDD or toDate of the window column; use such a \
             table or a full refresh.",
        )
    })?;
    let (start, end) = window_bounds(window)?;
    let first_day = start.micros().div_euclid(MICROS_PER_DAY);
    let last_day = (end.micros() - 1).div_euclid(MICROS_PER_DAY);
    let mut ids = BTreeSet::new();
    let mut day = first_day;
    while let Some(date) = Date::from_days(day).filter(|_| day <= last_day) {
        let (id, next) = match granularity {
            Granularity::Month => {
                let days_left = i64::from(crate::civil::days_in_month(date.year, date.month) - date.day);
                (format!("{:04}{:02}", date.year, date.month), day + days_left + 1)
            }
            Granularity::Day => (format!("{:04}{:02}{:02}", date.year, date.month, date.day), day + 1),
        };
        ids.insert(id);
        if ids.len() > CATALOG_ROWS_MAX {
            return Err(Refusal::new(
                code::SOURCE_PROVENANCE_INCOMPLETE,
                "The window spans more than 8192 partitions; shorten the lookback.",
            ));
        }
        day = next;
    }
    Ok(ids.into_iter().collect())
}

fn granularity(expression: &str, column: &str) -> Option<Granularity> {
    let normalized: String = expression.chars().filter(|c| !matches!(c, '`' | ' ')).collect();
    let argument = |function: &str| normalized == format!("{function}({column})");
    if argument("toYYYYMM") {
        Some(Granularity::Month)
    } else if argument("toYYYYMMDD") || argument("toDate") {
        Some(Granularity::Day)
    } else {
        None
    }
}

fn is_timestamp(type_text: &str) -> bool {
    SourceType::parse(type_text).is_ok_and(|source_type| source_type.is_timestamp())
}

/// The preimage of `partition_key_sha256`: the expression, and with a window the calendar that gives its ids meaning.
///
/// # Errors
/// `mssql_native.window_column_missing` when the window column is absent or no timestamp,
/// `mssql_native.source_read_profile_unsupported` when its calendar is implicit and server or session are not UTC.
pub fn semantics(
    expression: &str,
    window: Option<&FrozenWindow>,
    columns: &[ColumnFacts],
    timezones: [&str; 2],
) -> Result<Json, Refusal> {
    let Some(window) = window else {
        return Ok(Json::from(expression));
    };
    let column = columns.iter().find(|column| column.name == window.column && is_timestamp(&column.type_text));
    let column = column.ok_or_else(|| {
        Refusal::new(
            code::WINDOW_COLUMN_MISSING,
            "The window column is not a DateTime or DateTime64 column of the source table; correct window.column.",
        )
    })?;
    let explicit = column.type_text.contains("'UTC'");
    if !explicit && timezones.iter().any(|zone| !matches!(*zone, "UTC" | "Etc/UTC")) {
        return Err(Refusal::new(
            code::SOURCE_READ_PROFILE_UNSUPPORTED,
            "The window column has no explicit 'UTC' and server or session run in another time zone; declare the \
             column DateTime64(6, 'UTC') or run the server in UTC.",
        ));
    }
    let authority = if explicit { "explicit_column" } else { "server_and_session" };
    let calendar = Json::object([
        ("kind", Json::from("dpone.utc-partition-semantics.v1")),
        ("column_type", Json::from(&column.type_text)),
        ("calendar_timezone", Json::from("UTC")),
        ("authority", Json::from(authority)),
    ]);
    Ok(Json::Array(vec![Json::from(expression), calendar]))
}
