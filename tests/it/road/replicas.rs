//! Replicated tables: what a transfer of `connected_replica` publishes, and what it refuses.
//!
//! Two servers, each a process with the real engine, coordinate in one ZooKeeper. What the embedded engine cannot do was
//! tried first: with `interserver_http_port` in its configuration no replica becomes active (the engine's log says "Parameter
//! 'interserver_http(s)_port' required for replication is not specified", error 139: only ClickHouse's server program takes
//! that address), so tables stay read-only, nothing is inserted into them, and no part is fetched. The tables here are
//! therefore filled as `ReplacingMergeTree` and made replicated with their parts; the first replica of a path brings its
//! parts into ZooKeeper, and the second one is the lagging one: it knows the log, and its parts never come.

use std::process::Command;
use std::sync::OnceLock;

use testkit::ends::Source;
use testkit::relay::{Relay, Step};
use testkit::spawn::{self, ServerProcess};
use testkit::transfer::{RAW_REPLICA, SOURCE_COLUMNS, TARGET_COLUMNS};

use super::evidence::evidence;
use super::kit::{Ended, FULL_REFRESH, RAW, Road, VISIBLE, manifest};

/// The one ZooKeeper of this binary and its two replicas.
struct Replicas {
    _zookeeper: ServerProcess,
    one: Source,
    two: Source,
}

fn replicas() -> &'static Replicas {
    static REPLICAS: OnceLock<Replicas> = OnceLock::new();
    REPLICAS.get_or_init(|| {
        // The folder lives as long as the process.
        let folder = tempfile::tempdir().expect("a folder").keep();
        let zookeeper = spawn::zookeeper(&folder).expect("ZooKeeper starts");
        let address = (zookeeper.ready().host.parse::<std::net::IpAddr>().expect("an address"), zookeeper.ready().port);
        let replica = |name| Source::start_replica(address.into(), name);
        Replicas { _zookeeper: zookeeper, one: replica("one"), two: replica("two") }
    })
}

/// One test at a time: they share two engines and a ZooKeeper.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    // A test that failed has said so; the others still mean something.
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The UUID of `DATABASE.t`: the same on both servers, so that nothing but the replica differs.
fn uuid(database: &str) -> String {
    let number: u64 = database.bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!("5f0c1d3e-8a9b-4c2d-9e1f-{:012x}", number & 0xffff_ffff_ffff)
}

/// `DATABASE.t` at `source` with `versions` parts, each with a version of the same 50 keys, as a replicated table.
fn fill(source: &Source, database: &str, versions: u32) {
    source.run(&format!(
        "CREATE TABLE {database}.t UUID '{}' ({SOURCE_COLUMNS}) ENGINE = ReplacingMergeTree ORDER BY id",
        uuid(database)
    ));
    source.run(&format!("SYSTEM STOP MERGES {database}.t"));
    for version in 0..versions {
        source.run(&format!(
            "INSERT INTO {database}.t SELECT number, if(number % 7 = 0, NULL, 'version {version}'), number / 2, \
             toDateTime64('2013-07-04 00:00:00', 6, 'UTC') + number FROM numbers(50)"
        ));
    }
    source.replicate(database, "t");
}

/// A road from replica `source`; the database exists on both replicas, and the target table has one old row.
fn road(source: &'static Source, name: &str) -> Road {
    let mut road = Road::of(source, name);
    let both = replicas();
    let other = if std::ptr::eq(source, &both.one) { &both.two } else { &both.one };
    other.run(&format!("CREATE DATABASE {name} ENGINE = Atomic"));
    road.target.create("t", TARGET_COLUMNS);
    road.plant(-1, "2001-01-01");
    road
}

fn run(road: &Road, run_id: &str) -> Ended {
    road.run(&road.manifest(&manifest(&road.database, RAW_REPLICA, FULL_REFRESH)), run_id)
}

/// Everything that the journal holds, read by Python's own SQLite.
fn journal_dump(road: &Road) -> String {
    let script = "import sqlite3, sys\nfor line in sqlite3.connect(sys.argv[1]).iterdump(): print(line)";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(road.journal().join("journal.sqlite"))
        .output()
        .expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// One run of a table that is registered in ZooKeeper: duplicates and versions arrive whole, and the frozen identity is the
/// one that ClickHouse computes from its own `system.replicas`.
#[test]
fn a_connected_replica_gives_every_raw_row_under_its_own_identity() {
    let _turn = turn();
    let both = replicas();
    let mut road = road(&both.one, "replica_whole");
    fill(&both.one, "replica_whole", 3);
    both.one.register("replica_whole", "t");
    let registered = both.one.run(
        "SELECT is_readonly, total_replicas, replica_name, zookeeper_path FROM system.replicas \
         WHERE database = 'replica_whole' FORMAT TSV",
    );
    assert_eq!(registered, "1\t1\tone\t/tables/replica_whole/t\n", "what the embedded engine is known to do");

    let ended = run(&road, "run-1");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["rows"].as_u64(), Some(150));
    assert_eq!(road.target_content(), road.source_content());

    let identity = both.one.run(
        "SELECT lower(hex(SHA256(concat('{\"replica_name\":\"', replica_name, '\",\"zookeeper_path\":\"', zookeeper_path, \
         '\"}')))) FROM system.replicas WHERE database = 'replica_whole' FORMAT TSV",
    );
    let journal = journal_dump(&road);
    assert!(journal.contains(&format!("\"replica_identity_sha256\":\"{}\"", identity.trim())), "{journal}");
    assert!(journal.contains("\"replica_scope\":\"connected_replica\""), "{journal}");
}

#[test]
fn a_scope_that_is_not_the_engines_is_refused_before_rows() {
    let _turn = turn();
    let both = replicas();
    let road = road(&both.one, "replica_scope");
    fill(&both.one, "replica_scope", 1);
    both.one.register("replica_scope", "t");
    both.one.run("CREATE TABLE replica_scope.plain (id Int64) ENGINE = ReplacingMergeTree ORDER BY id");
    let of_plain = manifest("replica_scope", RAW_REPLICA, FULL_REFRESH)
        .replace("{schema: replica_scope, name: t}", "{schema: replica_scope, name: plain}");
    for (run_id, text, code) in [
        ("single", manifest("replica_scope", RAW, FULL_REFRESH), "mssql_native.replica_scope_unproven"),
        ("connected", of_plain, "mssql_native.replica_scope_unproven"),
        ("visible", manifest("replica_scope", VISIBLE, FULL_REFRESH), "mssql_native.plain_mergetree_atomic_required"),
    ] {
        let ended = road.run(&road.manifest(&text), run_id);
        assert_eq!((ended.code, ended.refusal().as_str()), (Some(1), code), "{ended:?}");
    }
    assert!(!both.one.was_asked(&["dpone-native-", "`replica_scope`"]), "rows were asked for");
}

/// The specification has no limit of lag: a replica gives what it holds, and nothing of the others.
#[test]
fn a_lagging_replica_gives_its_own_rows_and_nothing_of_the_other() {
    let _turn = turn();
    let both = replicas();
    let mut road = road(&both.two, "replica_lag");
    fill(&both.one, "replica_lag", 2);
    both.one.register("replica_lag", "t");
    // ZooKeeper does not know this replica: it has lost its registration, and holds an older state.
    fill(&both.two, "replica_lag", 1);
    let ended = run(&road, "older");
    assert_eq!((ended.code, ended.json()["rows"].as_u64()), (Some(0), Some(50)), "{ended:?}");
    assert_eq!(road.target_content(), road.source_content());

    // Registered, it knows the log of the first and waits for its parts; its own went aside.
    both.two.register("replica_lag", "t");
    let log = "SELECT total_replicas FROM system.replicas WHERE database = 'replica_lag' FORMAT TSV";
    assert_eq!(both.two.run(log), "2\n");
    let ended = run(&road, "empty");
    assert_eq!((ended.code, ended.json()["rows"].as_u64()), (Some(0), Some(0)), "{ended:?}");
    assert_eq!((road.target_content(), road.source_content()), (vec![], vec![]));
    // The first replica has all rows, and gives them when it is the one that is connected.
    road.set("source", "port", both.one.port().to_string().as_bytes());
    road.set("source", "ca.crt", &both.one.ca());
    let ended = run(&road, "first");
    assert_eq!((ended.code, ended.json()["rows"].as_u64()), (Some(0), Some(100)), "{ended:?}");
}

/// The query that reads rows.
fn is_select(query: &str) -> bool {
    query.contains("SELECT `id`") && !query.contains("EXPLAIN")
}

/// The first query of an acquisition after the one that discovers settings.
fn is_acquisition(query: &str) -> bool {
    query.contains("FROM system.tables")
}

type Plan = fn(&Relay);

/// Both replicas hold the same parts with the same checksums under one UUID and one path, and the relay shows one address
/// and one certificate: the replica's name alone tells that another one answers.
#[test]
fn a_replica_that_is_switched_behind_one_address_publishes_nothing() {
    let _turn = turn();
    let both = replicas();
    let mut road = road(&both.one, "replica_switch");
    for replica in [&both.one, &both.two] {
        fill(replica, "replica_switch", 2);
    }
    let parts = "SELECT name, hash_of_all_files FROM system.parts WHERE database = 'replica_switch' AND active";
    assert_eq!(both.one.rows(parts), both.two.rows(parts));
    assert_eq!(both.one.rows(parts).len(), 2);
    let relay = Relay::start(both.one.certificate(), vec![both.one.behind(), both.two.behind()]).expect("an address");
    road.set("source", "port", relay.address().port().to_string().as_bytes());
    let old = road.target_content();

    let plans: [(&str, Plan); 3] = [
        ("between admission and the acquisition before the SELECT", |relay| {
            relay.once_before(is_acquisition, Step::Do(Box::new(|| {})));
            relay.once_before(is_acquisition, Step::Switch(1));
        }),
        ("between that acquisition and the SELECT", |relay| relay.once_before(is_select, Step::Switch(1))),
        ("between the SELECT and the acquisition after its end", |relay| {
            relay.once_before(is_select, Step::Do(Box::new(|| {})));
            relay.once_before(is_acquisition, Step::Switch(1));
        }),
    ];
    for (number, (moment, plan)) in plans.into_iter().enumerate() {
        plan(&relay);
        let ended = run(&road, &format!("switch-{number}"));
        assert_eq!(ended.refusal(), "mssql_native.source_snapshot_profile_changed", "{moment}: {ended:?}");
        assert_ne!(ended.code, Some(0), "{moment}");
        assert_eq!(relay.steps_left(), 0, "{moment}: the switch took place");
        assert_eq!(road.target_content(), old, "{moment}: nothing is published");
        assert_eq!(road.target.stages(), Vec::<String>::new());
        assert_eq!(road.target.custody(), ["clear"]);
    }
    let ended = run(&road, "not-switched");
    assert_eq!((ended.code, ended.json()["rows"].as_u64()), (Some(0), Some(100)), "{ended:?}");
}

/// Rows are read from the replica's own parts, so a Keeper that dies while they are read, or has died before, changes none of
/// them. The embedded engine gives up its session with the connection.
#[test]
fn a_keeper_that_goes_away_changes_no_row() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder").keep();
    let zookeeper = spawn::zookeeper(&folder).expect("ZooKeeper starts");
    let address = (zookeeper.ready().host.parse::<std::net::IpAddr>().expect("an address"), zookeeper.ready().port);
    let source: &'static Source = Box::leak(Box::new(Source::start_replica(address.into(), "alone")));
    let mut road = Road::of(source, "replica_keeper");
    road.target.create("t", TARGET_COLUMNS);
    fill(source, "replica_keeper", 2);
    source.register("replica_keeper", "t");
    let relay = Relay::start(source.certificate(), vec![source.behind()]).expect("an address");
    road.set("source", "port", relay.address().port().to_string().as_bytes());
    relay.once_before(is_select, Step::Do(Box::new(move || drop(zookeeper))));
    for run_id in ["dies-before-the-select", "was-dead-before"] {
        let ended = run(&road, run_id);
        assert_eq!((ended.code, ended.json()["rows"].as_u64()), (Some(0), Some(100)), "{run_id}: {ended:?}");
        assert_eq!(relay.steps_left(), 0, "{run_id}: it is dead");
        assert_eq!(road.target_content(), road.source_content());
        let said = evidence(&road, run_id)["source"]["replica_status"].clone();
        assert_eq!(said["is_readonly"].as_bool(), Some(true), "{run_id}: {said}");
        assert!(said["is_session_expired"].is_boolean() && said["queue_size"].is_number(), "{run_id}: {said}");
    }
}
