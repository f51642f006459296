//! Settings of the read: the fourteen frozen ones of the profile, and the guards beside them.
//!
//! Guards close paths on which ClickHouse is known to return other rows or other provenance than the table holds
//! (transfer.md 6; for example the query condition cache, projections that number their own `_part_offset`, lazy
//! materialization over patch parts), fix the wire's form, and keep the server patient while we work. A server that does
//! not know a guard does not have what it guards against. Guards are evidence; they never enter the profile's digest.

use std::collections::BTreeMap;

use contract::code;
use contract::error::PortError;
use contract::port::source::{GuardSettings, SourceRequest};
use contract::raw::settings::{FILTERS, FIXED};
use contract::raw::{CATALOG_BYTES_MAX, CATALOG_ROWS_MAX};

use crate::wire::{Setting, block_cap_bytes};

/// Version of the guard list below; raised with every change of it.
pub(crate) const GUARDS_VERSION: &str = "native-transfer.source-guards.v2";

/// Guards whose value never changes.
const CONSTANT: [(&str, &str); 19] = [
    ("use_query_condition_cache", "0"),
    ("optimize_use_projections", "0"),
    ("prefer_optimize_projection", "0"),
    ("force_optimize_projection", "0"),
    ("optimize_use_implicit_projections", "0"),
    ("query_plan_optimize_lazy_materialization", "0"),
    ("use_skip_indexes_on_data_read", "0"),
    ("set_overflow_mode", "throw"),
    ("enable_parallel_replicas", "0"),
    ("session_timezone", "UTC"),
    ("send_logs_level", "none"),
    ("low_cardinality_allow_in_native_format", "0"),
    ("output_format_native_encode_types_in_binary_format", "0"),
    ("network_compression_method", "LZ4"),
    // Since 26.9 a user's profile may rewrite every SELECT of the user, or have it answered at once with no rows while it
    // runs in the background. (`filter`, of the same kind, is inspected and never cleared.)
    ("select", ""),
    ("order", ""),
    ("sort", ""),
    ("page", "0"),
    ("run_query_in_background", "0"),
];

/// Rows per block asked for: the server's own default, fewer when single rows may be huge.
fn max_block_rows(max_row_bytes: u64) -> u64 {
    ((64 << 30) / max_row_bytes.max(1)).clamp(1024, 65_409)
}

/// Bytes per block asked for: far below the cap, since the server only estimates.
fn preferred_block_bytes(max_row_bytes: u64) -> u64 {
    (block_cap_bytes(max_row_bytes) as u64 / 4).min(8 << 20)
}

/// The guards of one request, in list order.
pub(crate) fn wanted(request: &SourceRequest) -> Vec<(String, String)> {
    let sized = [
        ("max_block_size", max_block_rows(request.max_row_bytes)),
        ("preferred_block_size_bytes", preferred_block_bytes(request.max_row_bytes)),
        // The server gives a client that does not read this long before it ends the query: our own back-pressure.
        ("send_timeout", u64::from(request.query_seconds)),
    ];
    let constant = CONSTANT.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    constant.chain(sized.map(|(name, value)| (name.to_owned(), value.to_string()))).collect()
}

/// Splits the wanted guards by what the server knows.
pub(crate) fn known(wanted: Vec<(String, String)>, server: &BTreeMap<String, String>) -> GuardSettings {
    let (sent, unknown): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(name, _)| server.contains_key(name));
    let unknown_to_server = unknown.into_iter().map(|(name, _)| name).collect();
    GuardSettings { version: GUARDS_VERSION, sent, unknown_to_server }
}

/// Demands that every sent guard is in effect.
pub(crate) fn check_effective(guards: &GuardSettings, effective: &BTreeMap<String, String>) -> Result<(), PortError> {
    match guards.sent.iter().find(|(name, value)| effective.get(name) != Some(value)) {
        None => Ok(()),
        Some((name, _)) => Err(PortError::not_done(
            code::SOURCE_READ_PROFILE_UNSUPPORTED,
            format!("the source server does not apply the guard setting {name}; let the user's profile allow it"),
        )),
    }
}

/// The frozen settings of the profile as a query sends them.
pub(crate) fn frozen(query_seconds: u32) -> Vec<Setting> {
    let mut settings: Vec<Setting> = FIXED.iter().map(|(name, value)| Setting::new(*name, value.text())).collect();
    settings.push(Setting::new("max_execution_time", query_seconds.to_string()));
    settings
}

/// Settings of the read that finds out which guards the server knows. The guards are sent already, since some fix the form
/// of every answer, but as settings that a server may leave out.
pub(crate) fn of_discovery(query_seconds: u32, wanted: &[(String, String)]) -> Vec<Setting> {
    let mut settings = of_catalog_read(query_seconds, &[]);
    settings.extend(wanted.iter().map(|(name, value)| Setting::if_known(name, value)));
    settings
}

/// Settings of a catalog read: frozen, guarded and bounded.
pub(crate) fn of_catalog_read(query_seconds: u32, guards: &[(String, String)]) -> Vec<Setting> {
    let mut settings = of_select(query_seconds, guards);
    settings.push(Setting::new("max_result_rows", CATALOG_ROWS_MAX.to_string()));
    settings.push(Setting::new("max_result_bytes", CATALOG_BYTES_MAX.to_string()));
    settings
}

/// Settings of the one SELECT: frozen and guarded.
pub(crate) fn of_select(query_seconds: u32, guards: &[(String, String)]) -> Vec<Setting> {
    let mut settings = frozen(query_seconds);
    settings.extend(guards.iter().map(|(name, value)| Setting::new(name, value)));
    settings
}

/// Names that admission looks up in `system.settings`.
pub(crate) fn inspected(wanted: &[(String, String)]) -> Vec<&str> {
    let fixed = FIXED.iter().map(|(name, _)| *name);
    fixed.chain(FILTERS).chain(["max_execution_time"]).chain(wanted.iter().map(|(name, _)| name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use contract::port::source::{SourceMode, SourceRequest};

    use super::{check_effective, known, of_discovery, of_select, wanted};

    fn request(max_row_bytes: u64) -> SourceRequest {
        SourceRequest {
            database: "d".into(),
            table: "t".into(),
            mode: SourceMode::QueryVisible,
            window: None,
            query_seconds: 600,
            max_row_bytes,
        }
    }

    #[test]
    fn blocks_are_asked_for_far_below_the_cap() {
        let sized = |max_row_bytes: u64| {
            let guards: BTreeMap<String, String> = wanted(&request(max_row_bytes)).into_iter().collect();
            (guards["max_block_size"].clone(), guards["preferred_block_size_bytes"].clone())
        };
        assert_eq!(sized(1), ("65409".into(), "8388608".into()));
        assert_eq!(sized(1 << 20), ("65409".into(), "8388608".into()));
        assert_eq!(sized(16 << 20), ("4096".into(), "8388608".into()));
        assert_eq!(sized(1 << 30), ("1024".into(), "8388608".into()));
    }

    #[test]
    fn only_known_guards_are_sent_and_each_must_be_in_effect() {
        let all = wanted(&request(1 << 20));
        let mut server: BTreeMap<String, String> = all.iter().cloned().collect();
        server.remove("use_query_condition_cache");
        let guards = known(all.clone(), &server);
        assert_eq!(guards.unknown_to_server, ["use_query_condition_cache"]);
        assert_eq!(guards.sent.len(), all.len() - 1);
        assert!(check_effective(&guards, &server).is_ok());
        server.insert("optimize_use_projections".into(), "1".into());
        let error = check_effective(&guards, &server).expect_err("a guard that is not in effect");
        assert!(error.to_string().contains("optimize_use_projections"), "{error}");
    }

    #[test]
    fn every_setting_is_important_except_guards_that_are_being_looked_for() {
        let all = wanted(&request(1 << 20));
        assert!(of_select(600, &all).iter().all(|setting| setting.important));
        let discovery = of_discovery(600, &all);
        let optional = discovery.iter().filter(|setting| !setting.important);
        assert!(
            optional.clone().count() == all.len() && optional.zip(&all).all(|(setting, guard)| setting.name == guard.0)
        );
    }
}
