//! What a whole read sends to the source, by the server's own log: one data SELECT and reads of the catalog, nothing else.

use contract::port::source::{Source as _, SourceMode};

use crate::kit::*;

/// What a statement of the read is.
#[derive(Debug, PartialEq, Eq)]
enum Statement {
    /// The one SELECT of the rows.
    Data,
    /// EXPLAIN of that SELECT: names, types and rights are checked, no row is read.
    Explain,
    /// A SELECT of one table of `system`, or of constants of the session.
    Catalog,
    /// Anything else.
    Other,
}

/// Words that would make a statement more than a read. They are looked for outside of quotes.
const WRITES: [&str; 19] = [
    "INSERT",
    "CREATE",
    "ALTER",
    "DROP",
    "RENAME",
    "EXCHANGE",
    "TRUNCATE",
    "OPTIMIZE",
    "DELETE",
    "UPDATE",
    "ATTACH",
    "DETACH",
    "GRANT",
    "REVOKE",
    "KILL",
    "SET",
    "TEMPORARY",
    "OUTFILE",
    "FUNCTION",
];

/// The text without what stands in quotes.
fn unquoted(text: &str) -> String {
    let mut quote = None;
    let mut out = String::new();
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '`' | '"') => quote = Some(c),
            None => out.push(c),
        }
    }
    out
}

fn kind(text: &str, select: &str) -> Statement {
    if text == select {
        return Statement::Data;
    }
    if text.strip_prefix("EXPLAIN ") == Some(select) {
        return Statement::Explain;
    }
    let plain = unquoted(text);
    let words: Vec<&str> = plain
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
        .filter(|w| !w.is_empty())
        .collect();
    let sources: Vec<&str> =
        words.windows(2).filter(|pair| matches!(pair[0], "FROM" | "JOIN")).map(|pair| pair[1]).collect();
    let read_only = words.first() == Some(&"SELECT")
        && !words.iter().any(|word| WRITES.contains(&word.to_ascii_uppercase().as_str()) || *word == "SYSTEM")
        && !plain.contains(';')
        && sources.iter().all(|source| source.starts_with("system."));
    if read_only { Statement::Catalog } else { Statement::Other }
}

/// Everything that the connection of the read with query id `query_id` has sent.
fn sent(kit: &Kit, query_id: &str) -> Vec<Logged> {
    let connection = Logged::parse(kit.logged(query_id).first().expect("the data query")).connection;
    let all = kit.logged("").into_iter().map(|line| Logged::parse(&line));
    all.filter(|entry| entry.connection == connection).collect()
}

#[tokio::test]
async fn a_whole_read_sends_one_data_select_and_else_only_reads_of_the_catalog() {
    let kit = kit();
    for (number, (table, mode, window)) in [
        ("writes_raw", RAW, false),
        ("writes_raw_window", RAW, true),
        ("writes_plain", SourceMode::QueryVisible, false),
        ("writes_plain_window", SourceMode::QueryVisible, true),
    ]
    .into_iter()
    .enumerate()
    {
        let engine = if mode == RAW { "ReplacingMergeTree" } else { "MergeTree" };
        kit.run(&[
            &format!(
                "CREATE TABLE d.{table} (k Int64, at DateTime64(6, 'UTC')) ENGINE = {engine} ORDER BY k PARTITION BY toYYYYMM(at)"
            ),
            &format!("INSERT INTO d.{table} SELECT number, fromUnixTimestamp64Micro(number, 'UTC') FROM numbers(100000)"),
        ]);
        let before = kit.value(&state(table));
        let request = if window { windowed(table, mode, "at", 0, 86_400_000_000) } else { request(table, mode) };
        let query_id = format!("dpone-native-{:032x}", 0x3717_e500 + number);
        let mut source = kit.source().await;
        let admission = source.admit(&request).await.expect("an admission");
        source.open(&admission, &query_id).await.expect("a query");
        while source.next_block().await.expect("rows").is_some() {}
        assert_eq!(source.finish().await.expect("an end").rows, 100_000);

        let entries = sent(&kit, &query_id);
        let select = entries.iter().find(|entry| entry.query_id == query_id).expect("the data query").text.clone();
        let of = |wanted: Statement| entries.iter().filter(|entry| kind(&entry.text, &select) == wanted).count();
        let others: Vec<&Logged> = entries.iter().filter(|e| kind(&e.text, &select) == Statement::Other).collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!((of(Statement::Data), of(Statement::Explain)), (1, 3), "{table}: three acquisitions");
        assert!(of(Statement::Catalog) >= 12, "{table}");
        assert!(select.starts_with("SELECT ") && !unquoted(&select).contains(';'), "{select}");
        assert_eq!(entries.iter().filter(|entry| entry.query_id == query_id).count(), 1);
        assert_eq!(kit.value(&state(table)), before, "{table} is as it was");
        kit.run(&[&format!("DROP TABLE d.{table} SYNC")]);
    }
}

/// Definition, parts and mutations of a table as one text.
fn state(table: &str) -> String {
    format!(
        "SELECT concat((SELECT create_table_query FROM system.tables WHERE database = 'd' AND name = '{table}'), \
         (SELECT toJSONString(arraySort(groupArray((name, hash_of_all_files)))) FROM system.parts WHERE table = '{table}' AND active), \
         (SELECT toString(count()) FROM system.mutations WHERE table = '{table}'))"
    )
}

/// The judge itself: what must not pass as a read of the catalog.
#[test]
fn the_judge_of_statements_knows_a_write() {
    let select = "SELECT `k` FROM `d`.`t`";
    assert_eq!(kind(select, select), Statement::Data);
    assert_eq!(kind("EXPLAIN SELECT `k` FROM `d`.`t`", select), Statement::Explain);
    for catalog in ["SELECT name FROM system.settings WHERE name IN ('SET; DROP')", "SELECT currentUser() AS principal"]
    {
        assert_eq!(kind(catalog, select), Statement::Catalog, "{catalog}");
    }
    for other in [
        "SELECT `k` FROM `d`.`other`",
        "SELECT count() FROM d.t",
        "SELECT 1 FROM system.one JOIN d.t USING k",
        "EXPLAIN SELECT 1",
        "SET final = 1",
        "SYSTEM STOP MERGES d.t",
        "OPTIMIZE TABLE d.t FINAL",
        "CREATE TEMPORARY TABLE x (k Int8)",
        "SELECT 1 FROM system.one INTO OUTFILE 'x'",
        "SELECT 1; DROP TABLE d.t",
        "INSERT INTO d.t SELECT 1",
    ] {
        assert_eq!(kind(other, select), Statement::Other, "{other}");
    }
}
