//! `kill -9` at any moment: what was acknowledged is there, what was not is there whole or not at all.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

/// Folder of the child's store.
const FOLDER: &str = "NT_STORE_DEATH_FOLDER";
/// Rows of one transaction.
const ROWS: i32 = 3;

fn options() -> StoreOptions {
    // A small limit, so that some deaths fall into the writing of a snapshot.
    StoreOptions { durability: Durability::Fsync, compact_above_bytes: 8 * 1024 }
}

fn table_of(store: &Arc<Store>) -> ObjectId {
    let transaction = store.begin(&session(51));
    let found = transaction.find_object(DATABASE, DBO_SCHEMA, "t").map(|object| object.id);
    transaction.rollback();
    found.unwrap_or_else(|| keyed_table(store, "t"))
}

/// The child: commits transaction after transaction and says so.
#[test]
#[ignore = "run by the test below in a process of its own"]
fn commit_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = Store::open(Path::new(&folder), options()).unwrap();
    let table = table_of(&store);
    let mut number = i32::try_from(committed_rows(&store, table).len()).unwrap() / ROWS;
    loop {
        let transaction = store.begin(&session(51));
        for part in 0..ROWS {
            transaction.insert(table, &row(number * ROWS + part, number)).unwrap();
        }
        transaction.commit().unwrap();
        // Standard output is a pipe: the line is in the parent's hands once this returns.
        writeln!(std::io::stdout(), "\nack {number}").unwrap();
        std::io::stdout().flush().unwrap();
        number += 1;
    }
}

#[test]
fn acknowledged_commits_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut total = 0;
    for acks in [1, 2, 7, 20, 45, 90] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlserver::store::tests::process_death::commit_until_killed"])
            .args(["--include-ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let number = |line: String| line.strip_prefix("ack ").map(|number| number.parse::<i32>().unwrap());
        let mut acknowledged = lines.by_ref().filter_map(number).nth(acks - 1).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = lines.filter_map(number).last().unwrap_or(acknowledged);
        let store = Store::open(folder.path(), options()).unwrap();
        let table = table_of(&store);
        let rows = committed_rows(&store, table);
        let whole = i32::try_from(rows.len()).unwrap() / ROWS;
        assert!(whole == acknowledged + 1 || whole == acknowledged + 2, "{whole} for {acknowledged}");
        let expected: Vec<_> = (0..whole * ROWS).map(|id| (id, id / ROWS)).collect();
        assert_eq!(rows, expected);
        assert!(whole > total);
        total = whole;
    }
}
