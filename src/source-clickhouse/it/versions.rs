//! What differs between the engines that the tests run on (`NT_CLICKHOUSE_ENGINE`): each version's truth, by name.

use contract::port::source::SourceMode;
use servers::clickhouse::EngineRelease;

use crate::kit::*;

/// Otherwise a second run would prove the first engine twice.
#[tokio::test]
async fn the_engine_is_the_one_that_was_asked_for() {
    let kit = kit();
    let asked = EngineRelease::from_environment().expect("an engine");
    let version = kit.value("SELECT version()");
    assert!(version.starts_with(&format!("{asked}.")), "{version} is not {asked}");
    println!("engine {version}");
}

/// Since 26.9 settings can rewrite a SELECT (`select`, `order`, `sort`, `page`) or answer it with no rows at once
/// (`run_query_in_background`); a user's profile could carry them. The read sends them as off wherever the server knows them.
/// That the last one empties an answer cannot be shown here: an embedded engine has no background.
#[tokio::test]
async fn settings_that_rewrite_a_query_are_sent_as_off() {
    let kit = kit();
    kit.run(&[
        "CREATE TABLE d.rewritten (k Int64) ENGINE = ReplacingMergeTree ORDER BY k",
        "INSERT INTO d.rewritten VALUES (1), (2), (3)",
    ]);
    let off = [("select", ""), ("order", ""), ("sort", ""), ("page", "0"), ("run_query_in_background", "0")];
    let all = read(&kit, &request("rewritten", RAW)).await.expect("a read");
    let mut keys = all.int64(0);
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3]);
    let unknown = &all.admission.guards.unknown_to_server;
    let is_unknown = |name: &str| unknown.iter().any(|other| other == name);
    match kit.server.engine().release() {
        EngineRelease::V26_7 => assert!(off.iter().all(|(name, _)| is_unknown(name)), "{unknown:?}"),
        EngineRelease::V26_9 => {
            assert!(!off.iter().any(|(name, _)| is_unknown(name)), "{unknown:?}");
            let [query] = kit.data_queries("rewritten").try_into().expect("one data query");
            for (name, value) in off {
                let sent = (name.to_owned(), value.to_owned(), true);
                assert!(query.settings.contains(&sent), "{name} is not among {:?}", query.settings);
            }
            // The path is there: what is asked for is not what comes.
            for (setting, rows) in
                [("`select` = 'k * 10'", ["10", "20", "30"].as_slice()), ("page = 2, limit = 2", &["3"])]
            {
                let sql = format!("SELECT k FROM d.rewritten ORDER BY k SETTINGS {setting}");
                assert_eq!(kit.rows(&sql), rows, "{setting}");
            }
        }
    }
    kit.run(&["DROP TABLE d.rewritten SYNC"]);
}

/// `filter`, new in 26.9, cuts what every SELECT of the user returns. It may be what an owner wants to be seen, so it is never
/// cleared: a user whose profile has one is refused. The one here is true for the small answers of the catalog.
#[tokio::test]
async fn a_filter_in_the_users_profile_is_refused() {
    if EngineRelease::from_environment().expect("an engine") == EngineRelease::V26_7 {
        assert!(!kit().server.engine().knows_setting("filter"), "26.7 has no such setting");
        return;
    }
    let name = "versions::a_filter_in_the_users_profile_is_refused";
    if !in_process_with(PROFILE_FILTER, "rowNumberInAllBlocks() &lt; 100000", name) {
        return;
    }
    let kit = kit();
    for (table, engine, mode) in
        [("cut", "ReplacingMergeTree", RAW), ("cut_plain", "MergeTree", SourceMode::QueryVisible)]
    {
        kit.run(&[
            &format!("CREATE TABLE d.{table} (k Int64) ENGINE = {engine} ORDER BY k"),
            &format!("INSERT INTO d.{table} SELECT number FROM numbers(300000)"),
        ]);
        let seen = kit.rows(&format!("SELECT k FROM d.{table}")).len();
        assert!(seen < 300_000, "{seen} rows: the filter is in effect");
        assert_eq!(refusal(&kit, &request(table, mode)).await, "mssql_native.source_read_profile_unsupported");
        assert!(kit.data_queries(table).is_empty(), "no row was asked for");
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}
