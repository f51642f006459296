//! The frozen read settings of a raw snapshot and their proof in `system.settings` (contract.md 2.1, 2.6).

use std::collections::{BTreeMap, BTreeSet};

use num_bigint::{BigInt, Sign};

use crate::canon::Json;
use crate::code;
use crate::error::Refusal;

/// A value of a read setting: numbers stay integers in the profile, modes stay texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// A number.
    Int(BigInt),
    /// A mode.
    Text(String),
}

impl From<&SettingValue> for Json {
    fn from(value: &SettingValue) -> Self {
        match value {
            SettingValue::Int(value) => Json::Int(value.clone()),
            SettingValue::Text(text) => Json::from(text),
        }
    }
}

/// Value of a fixed setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixedValue {
    /// A number.
    Int(u8),
    /// A mode.
    Text(&'static str),
}

impl FixedValue {
    /// The value as `system.settings` shows it and as a query sends it.
    pub fn text(self) -> String {
        match self {
            FixedValue::Int(value) => value.to_string(),
            FixedValue::Text(text) => text.to_owned(),
        }
    }

    fn matches(self, value: &SettingValue) -> bool {
        match (self, value) {
            (FixedValue::Int(fixed), SettingValue::Int(value)) => *value == BigInt::from(fixed),
            (FixedValue::Text(fixed), SettingValue::Text(value)) => value == fixed,
            (FixedValue::Int(_), SettingValue::Text(_)) | (FixedValue::Text(_), SettingValue::Int(_)) => false,
        }
    }
}

/// The fourteen settings of profile version 1. They never change with a workload.
pub const FIXED: [(&str, FixedValue); 14] = [
    ("final", FixedValue::Int(0)),
    ("use_query_cache", FixedValue::Int(0)),
    ("apply_mutations_on_fly", FixedValue::Int(0)),
    ("apply_patch_parts", FixedValue::Int(1)),
    ("apply_deleted_mask", FixedValue::Int(1)),
    ("max_parallel_replicas", FixedValue::Int(1)),
    ("skip_unavailable_shards", FixedValue::Int(0)),
    ("read_overflow_mode", FixedValue::Text("throw")),
    ("result_overflow_mode", FixedValue::Text("throw")),
    ("timeout_overflow_mode", FixedValue::Text("throw")),
    ("sort_overflow_mode", FixedValue::Text("throw")),
    ("limit", FixedValue::Int(0)),
    ("offset", FixedValue::Int(0)),
    ("extremes", FixedValue::Int(0)),
];

/// Settings that may stand beside the fixed ones with a positive number.
pub const LIMITS: [&str; 5] =
    ["max_rows_to_read", "max_bytes_to_read", "max_result_rows", "max_result_bytes", "max_execution_time"];

/// The three settings whose emptiness is inspected and bound, never overwritten.
pub const FILTERS: [&str; 3] = ["additional_table_filters", "additional_result_filter", "filter"];

/// The profile's settings for one read, sorted by name.
pub fn profile_settings(max_execution_time_seconds: u64) -> Vec<(String, SettingValue)> {
    let mut settings: BTreeMap<String, SettingValue> = FIXED
        .iter()
        .map(|(name, value)| {
            let value = match value {
                FixedValue::Int(value) => SettingValue::Int((*value).into()),
                FixedValue::Text(text) => SettingValue::Text((*text).to_owned()),
            };
            ((*name).to_owned(), value)
        })
        .collect();
    settings.insert("max_execution_time".into(), SettingValue::Int(max_execution_time_seconds.into()));
    settings.into_iter().collect()
}

/// Whether a document's settings are the fixed profile plus positive limits, each at most once.
pub fn valid(settings: &[(String, SettingValue)]) -> bool {
    let names: BTreeSet<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
    let fixed_present = FIXED
        .iter()
        .all(|(name, fixed)| settings.iter().any(|(setting, value)| setting == name && fixed.matches(value)));
    let others_are_limits = settings.iter().all(|(name, value)| {
        let fixed = FIXED.iter().any(|(fixed, _)| fixed == name);
        let positive = matches!(value, SettingValue::Int(value) if value.sign() == Sign::Plus);
        fixed || (LIMITS.contains(&name.as_str()) && positive)
    });
    names.len() == settings.len() && fixed_present && others_are_limits
}

/// The access filters in effect, as bound by the profile: null where the server does not know the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterState {
    /// `additional_table_filters`: `{}` or `[]`.
    pub table_filters: String,
    /// `filter`: absent or empty.
    pub filter: Option<String>,
}

impl From<&FilterState> for Json {
    fn from(state: &FilterState) -> Self {
        Json::object([
            ("additional_table_filters", Json::from(&state.table_filters)),
            ("additional_result_filter", Json::from("")),
            ("filter", Json::from(state.filter.as_deref())),
        ])
    }
}

/// Checks that `system.settings` (name to value) shows every frozen value and no access filter.
///
/// # Errors
/// `mssql_native.source_read_profile_unsupported` for a missing or other value, or for any filter in effect.
pub fn check_effective(
    effective: &BTreeMap<String, String>,
    max_execution_time_seconds: u64,
) -> Result<FilterState, Refusal> {
    let shows = |name: &str, value: &str| effective.get(name).is_some_and(|shown| shown == value);
    let frozen = FIXED.iter().all(|(name, value)| shows(name, &value.text()))
        && shows("max_execution_time", &max_execution_time_seconds.to_string());
    let table_filters = effective.get("additional_table_filters").filter(|text| matches!(text.as_str(), "{}" | "[]"));
    let filter = effective.get("filter").cloned();
    let unfiltered = shows("additional_result_filter", "") && filter.as_deref().unwrap_or_default().is_empty();
    match table_filters {
        Some(table_filters) if frozen && unfiltered => Ok(FilterState { table_filters: table_filters.clone(), filter }),
        _ => Err(Refusal::new(
            code::SOURCE_READ_PROFILE_UNSUPPORTED,
            "The source does not apply the frozen read settings, or a filter setting is in effect for this user; let \
             its settings profile allow them and remove the filter.",
        )),
    }
}
