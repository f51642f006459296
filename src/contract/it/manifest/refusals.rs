//! What a manifest is refused for, by its code.

use contract::manifest::{Clear, Strategy, parse, preview, processes};
use contract::plan_document;
use proptest::prelude::*;

use super::RESOURCE;

/// The code that a document is refused with, or `accepted`.
fn verdict(text: &str) -> String {
    parse(text, None, None).map_or_else(|refusal| refusal.code.to_string(), |_| "accepted".to_owned())
}

/// The verdict after replacing a part of the good resource.
fn with(from: &str, to: &str) -> String {
    assert!(RESOURCE.contains(from), "the resource no longer has {from:?}");
    verdict(&RESOURCE.replace(from, to))
}

#[test]
fn the_resource_itself_passes() {
    let plan = parse(RESOURCE, None, None).expect("accepted");
    assert_eq!((plan.source.database.as_str(), plan.source.table.as_str()), ("air", "flights"));
    let window = plan.window().expect("a window");
    assert_eq!(window.start().isoformat_z(), "2013-07-04T00:00:00Z");
    assert_eq!(
        (plan.query_seconds, plan.state_schema.as_str(), plan.staging_schema.as_str()),
        (21_600, "dpone", "dpone")
    );
    assert!(plan.require_runnable().is_ok() && plan.ignored_keys.is_empty());
}

#[test]
fn unknown_keys_are_named_with_their_place() {
    let execution = "native_transfer.unknown_key:source.options.native_transfer.execution";
    for (from, to, want) in [
        (
            "verification_backend: target_local",
            "verification_backnd: target_local",
            format!("{execution}.verification_backnd"),
        ),
        (
            "wire: {",
            "wire: {blok_rows: 1, ",
            "native_transfer.unknown_key:source.options.native_transfer.wire.blok_rows".into(),
        ),
        (
            "native_transfer:",
            "final: 1\n        native_transfer:",
            "native_transfer.unknown_key:source.options.final".into(),
        ),
        (
            "preset: \"off\"",
            "preset: \"off\", features: []",
            "native_transfer.unknown_key:sink.options.lineage.features".into(),
        ),
        ("type: mssql", "type: mssql\n      mode: x", "native_transfer.unknown_key:sink.mode".into()),
        ("interval: {end", "interval: {start: 1, end", "native_transfer.unknown_key:spec.interval.start".into()),
        ("metadata:", "extra: 1\nmetadata:", "native_transfer.unknown_key:extra".into()),
        // Objects with a code of their own for their keys keep it.
        ("mode: bounded_stream", "mode: bounded_stream, x: 1", "mssql_native.chunking_invalid".into()),
        ("native_chunks: {", "native_chunks: {max_row: 1, ", "mssql_native.native_chunks_invalid".into()),
        ("window: {", "window: {x: 1, ", "rolling_window_options_invalid".into()),
    ] {
        assert_eq!(with(from, to), want);
    }
}

#[test]
fn keys_of_other_routes_are_accepted_and_named() {
    let text = RESOURCE
        .replace("wire: {", "wire: {block_rows: 5, ")
        .replace("type: mssql", "type: mssql\n      connection_id: x");
    let plan = parse(&text, None, None).expect("accepted");
    assert_eq!(plan.ignored_keys, ["sink.connection_id", "source.options.native_transfer.wire.block_rows"]);
    let route = parse(RESOURCE, None, None).expect("accepted").route_fingerprint();
    assert_eq!(plan.route_fingerprint(), route, "what has no effect does not make another route");
}

#[test]
fn wrong_values_have_their_codes() {
    for (from, to, want) in [
        ("kind: NativeTransfer", "kind: Pod", "native_transfer.manifest_kind_unknown"),
        ("v1alpha1", "v9", "native_transfer.manifest_kind_unknown"),
        ("metadata: {name: flights}", "kind: NativeTransfer", "native_transfer.manifest_unreadable"),
        ("metadata: {name: flights}", "metadata: {1: flights}", "native_transfer.manifest_unreadable"),
        ("metadata: {name: flights}", "metadata: !secret x", "native_transfer.manifest_unreadable"),
        ("metadata: {name: flights}", "metadata: {name: .nan}", "native_transfer.manifest_unreadable"),
        ("      type: clickhouse", "      type: 5", "native_transfer.manifest_invalid:source.type"),
        ("      type: clickhouse", "      type: postgres", "mssql_native.route_unsupported"),
        (
            "name: flights}\n      options:\n        native",
            "name: 5}\n      options:\n        native",
            "native_transfer.manifest_invalid:source.table.name",
        ),
        ("{schema: air, name: flights}", "{schema: air}", "native_transfer.manifest_invalid:source.table.name"),
        ("schema: air", "schema: a-b", "mssql_native.source_identifier_invalid"),
        ("schema: dbo", "schema: \"\"", "native_transfer.target_name_invalid:sink.table.schema"),
        ("native_transfer:", "query_seconds: 0\n        native_transfer:", "native_transfer.invalid_query_seconds"),
        ("native_transfer:", "query_seconds: true\n        native_transfer:", "native_transfer.invalid_query_seconds"),
        ("native_transfer:", "query: SELECT 1\n        native_transfer:", "mssql_native.source_policy_unsupported"),
        (
            "native_transfer:",
            "source_options: {columns: []}\n        native_transfer:",
            "mssql_native.source_policy_unsupported",
        ),
        ("preset: \"off\"", "preset: hierarchical", "native_transfer.invalid_lineage_preset"),
        ("lineage: {", "full_refresh: {clear: drop}, lineage: {", "native_transfer.invalid_full_refresh_clear"),
        (
            "lineage: {",
            "state_schema: \"a\\tb\", lineage: {",
            "native_transfer.target_name_invalid:sink.options.state_schema",
        ),
        (
            "lineage: {",
            "physical_design: {columns: {d: {target_type: {mssql: bogus}}}}, lineage: {",
            "mssql_snapshot_reconciliation.target_physical_type_invalid:d",
        ),
        ("atomicity: target_atomic", "atomicity: none", "rolling_window_requires_atomic_replace"),
        ("atomicity: target_atomic", "partition: {column: a}", "rolling_window_requires_atomic_replace"),
        ("mode: partition_replace", "mode: full_refresh", "mssql_native.full_refresh_window_forbidden"),
        ("mode: partition_replace", "mode: append", "rolling_window_requires_atomic_replace"),
        (
            "window: {column: time_hour, anchor: data_interval_end, lookback: P1D}",
            "",
            "rolling_window_required_for_strategy_atomicity",
        ),
        ("  interval: {end: \"2013-07-05T00:00:00Z\"}", "", "mssql_native.window_interval_required"),
        ("00:00:00Z", "00:00Z", "rolling_window_anchor_invalid"),
        ("1073741824,", "true,", "mssql_native.invalid_limit:max_total_encoded_bytes"),
        ("max_total_encoded_bytes: 1073741824, ", "", "mssql_native.capacity_limits_required"),
        ("    sink:", "    quality: {rows: 1}\n    sink:", "mssql_native.quality_policy_requires_composition"),
    ] {
        assert_eq!(with(from, to), want, "{from} -> {to}");
    }
}

/// With many things wrong, the documented order decides; mending the first shows the second.
#[test]
fn the_first_failing_check_wins() {
    let mut text = RESOURCE
        .replace("mode: typed_binary", "mode: auto")
        .replace("      type: clickhouse", "      type: postgres")
        .replace("1073741824,", "0,")
        .replace("verification_backend: target_local", "verification_backend: x")
        .replace("import_backend: mssql_sqlclient", "import_backend: x\n            layout_version: 3")
        .replace("wire: {", "source_snapshot: {mode: raw}\n          wire: {")
        .replace("lookback: P1D", "lookback: P1M")
        .replace("        native_transfer:", "        query: x\n        native_transfer:");
    for (code, from, to) in [
        ("mssql_native.wire_required", "mode: auto", "mode: typed_binary"),
        ("mssql_native.route_unsupported", "type: postgres", "type: clickhouse"),
        ("mssql_native.invalid_limit:max_total_encoded_bytes", "encoded_bytes: 0", "encoded_bytes: 5"),
        (
            "mssql_native.invalid_verification_backend",
            "verification_backend: x",
            "verification_backend: python_readback",
        ),
        ("mssql_native.invalid_import_backend", "import_backend: x", "import_backend: bcp"),
        ("mssql_native.invalid_layout_version", "layout_version: 3", "layout_version: 2"),
        (
            "mssql_native.source_snapshot_mode_invalid",
            "{mode: raw}",
            "{mode: exact_raw_rows, replica_scope: single_server}",
        ),
        (
            "mssql_native.raw_snapshot_requires_target_local_verification",
            "{mode: exact_raw_rows, replica_scope: single_server}",
            "{mode: query_visible}",
        ),
        ("mssql_native.layout_requires_sqlclient", "import_backend: bcp", "import_backend: mssql_sqlclient"),
        ("mssql_native.sqlclient_requires_target_local_verification", "python_readback", "target_local"),
        ("rolling_window_duration_invalid", "P1M", "P1D"),
        ("mssql_native.source_policy_unsupported", "query: x", "query: \"\""),
    ] {
        assert_eq!(verdict(&text), code);
        text = text.replace(from, to);
    }
    assert_eq!(verdict(&text), "accepted");
}

#[test]
fn backends_that_this_release_cannot_run_are_planned_and_not_run() {
    for (from, to) in [
        ("            import_backend: mssql_sqlclient\n            verification_backend: target_local\n", ""),
        ("import_backend: mssql_sqlclient", "import_backend: bcp"),
        ("import_backend: mssql_sqlclient", "import_backend: mssql_sqlclient\n            layout_version: 2"),
    ] {
        assert!(RESOURCE.contains(from));
        let plan = parse(&RESOURCE.replace(from, to), None, None).expect("plannable");
        let refusal = plan.require_runnable().expect_err("not runnable");
        assert_eq!(refusal.code.as_str(), "mssql_native.composition_required");
        assert!(plan_document::markdown(&plan.into()).contains("mssql_native.composition_required"));
    }
}

#[test]
fn a_batch_needs_a_selector_and_merges_its_defaults() {
    let text = include_str!("../../../../docs/examples/air-batch.yaml");
    let code = |selector| parse(text, selector, None).expect_err("refused").code.to_string();
    assert_eq!(code(None), "native_transfer.selector_required");
    assert_eq!(code(Some("air.none")), "native_transfer.selector_unknown");
    assert_eq!(code(Some("air.flights")), "mssql_native.window_interval_required");
    let selectors: Vec<String> = processes(text).expect("read").into_iter().map(|process| process.selector).collect();
    assert_eq!(selectors, ["air.flights", "air.airlines"]);
    let plan = parse(text, Some("air.airlines"), None).expect("accepted");
    assert_eq!(plan.strategy, Strategy::FullRefresh { clear: Clear::Delete });
    assert_eq!((plan.limits.encoders(), plan.limits.importers()), (2, 4));
    assert_eq!(plan.staging_schema, "dpone_stage");
}

/// Aliases that would grow into billions of items, and nesting without end, are refused instead of read.
#[test]
fn a_small_document_cannot_ask_for_much() {
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    for level in 1..40 {
        let last = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![last; 9].join(", ")));
    }
    assert_eq!(verdict(&bomb), "native_transfer.manifest_unreadable");
    assert_eq!(verdict(&format!("a: {}", "[".repeat(100_000))), "native_transfer.manifest_unreadable");
    assert_eq!(verdict(&"x".repeat(2_000_000)), "native_transfer.manifest_unreadable");
}

#[test]
fn anchors_have_a_place_in_batch_files_only() {
    let batch = include_str!("../../../../docs/examples/air-batch.yaml");
    assert!(parse(&format!("x-shared: {{}}\n{batch}"), Some("air.airlines"), None).is_ok());
    assert_eq!(with("metadata:", "x-shared: 1\nmetadata:"), "native_transfer.unknown_key:x-shared");
}

#[test]
fn an_interval_is_given_once() {
    let code = |end| parse(RESOURCE, None, Some(end)).map_err(|refusal| refusal.code.to_string()).map(|_| ());
    assert_eq!(code("2013-07-05T00:00:00Z"), Ok(()));
    assert_eq!(code("2013-07-06T00:00:00Z"), Err("native_transfer.interval_conflict".to_owned()));
}

#[test]
fn a_preview_needs_no_interval_and_shows_no_connection() {
    let text = RESOURCE.replace("  interval: {end: \"2013-07-05T00:00:00Z\"}\n", "");
    let plan = preview(&text, None, None).expect("previewed");
    let (json, markdown) = (plan_document::json(&plan), plan_document::markdown(&plan));
    let section = json.get("mssql_native").expect("section");
    assert_eq!(
        section.get("publication_scope").and_then(|scope| scope.get("lookback")).and_then(|l| l.as_str()),
        Some("P1D")
    );
    assert!(json.get("plan").and_then(|plan| plan.get("window")).is_some_and(contract::canon::Json::is_null));
    assert!(markdown.contains("no interval given yet"), "{markdown}");
    for secret in ["clickhouse-ro", "secretRef", "password"] {
        assert!(
            !markdown.contains(secret) && !String::from_utf8_lossy(&contract::canon::strict(&json)).contains(secret)
        );
    }
}

proptest! {
    /// No text makes the parsers panic, and a duration that is read has at least a microsecond.
    #[test]
    fn any_text_is_a_duration_or_a_refusal(text in "[P0-9DTHMS.YW-]{0,24}|.{0,16}") {
        if let Ok(duration) = contract::window::Duration::parse(&text) {
            prop_assert!(duration.micros() > 0 && text.starts_with('P'));
        }
    }

    #[test]
    fn a_written_duration_is_read_back(days in 0u64..1000, hours in 0u64..99, minutes in 0u64..99, micros in 0u64..9_000_000) {
        let text = format!("P{days}DT{hours}H{minutes}M{}.{:06}S", micros / 1_000_000, micros % 1_000_000);
        let total = ((days * 24 + hours) * 60 + minutes) as u128 * 60_000_000 + u128::from(micros);
        let read = contract::window::Duration::parse(&text).map(contract::window::Duration::micros);
        prop_assert_eq!(read.ok(), (total > 0).then_some(total));
    }

    #[test]
    fn any_text_is_a_manifest_or_a_refusal(text in ".{0,80}", at in 0usize..1200, cut in 0usize..40) {
        let _ = parse(&text, None, None);
        let mut mangled = RESOURCE.to_owned();
        let start = at.min(mangled.len());
        let end = (start + cut).min(mangled.len());
        mangled.replace_range(start..end, &text);
        let _ = parse(&mangled, None, None);
    }
}
