//! One session: certificate pinned before LOGIN, grant applock, stage, transaction, raw-slab bulk load with our own column
//! metadata, COUNT_BIG, COMMIT, digest query; then the same cut at each step, and the fate that our code reports compared
//! with what the server really did (design.md 3.6 to 3.9).

use contract::error::Fate;
use contract::port::target::{StageRef, StageRetirement, StageWriter as _, Target as _};
use servers::sqlserver::control::{Breakpoint, Then, When};

use super::kit::{Kit, assert_digest, assert_refused, grant, row, sealed, stage};

#[tokio::test(flavor = "multi_thread")]
async fn one_session_writes_counts_commits_and_digests_a_chunk() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let rows: Vec<_> = (0..1000).map(|id| row(id, "text")).collect();
    let mut writer = kit.target.open_writer(&grant("a")).await.expect("a writer");
    let definition = stage("a");
    let stage = StageRef { object_id: writer.create_stage(&definition).await.expect("a stage"), definition };
    let (bytes, facts) = sealed(&rows);
    let terminal = writer.write(&stage, &facts, bytes).await.expect("written");
    assert_eq!((terminal.rows_sent, terminal.rows_counted), (1000, 1000));
    assert_digest(&writer.verify(&stage, 1000).await.expect("a digest"), &rows);
    assert!(writer.allocated_bytes().await.expect("an observation") > 0);
    writer.close().await.expect("closed");
    assert_eq!(kit.number("SELECT COUNT(*) FROM stage.dpone_native_a").await, 1000);
    // One session did it all, and the load carried our metadata: nothing asked the server for the columns' types.
    let log = kit.log();
    assert!(!log.contains("SET FMTONLY") && log.contains("INSERT BULK"), "{log}");
}

/// What the server has after a cut, and what our code may say about it.
struct Step {
    name: &'static str,
    breakpoint: Breakpoint,
    /// The call that fails.
    fails: Call,
    fate: Fate,
    /// The stage exists, and its rows.
    left: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Open,
    Create,
    Write,
    Verify,
}

fn steps() -> Vec<Step> {
    let step = |name, breakpoint: Breakpoint, fails, fate, left| Step {
        name,
        breakpoint: breakpoint.of("writer"),
        fails,
        fate,
        left,
    };
    let (before, after) = (When::Before, When::After);
    let (cut, commit) = (Breakpoint::cut, Breakpoint::cut("COMMIT TRANSACTION;", before).whole());
    let unknown = Fate::Unknown;
    vec![
        step("lock", cut("sp_getapplock", before), Call::Open, Fate::NotDone, None),
        step("locked", cut("sp_getapplock", after), Call::Open, Fate::NotDone, None),
        step("create", cut("CREATE TABLE", before), Call::Create, unknown, None),
        step("created", cut("CREATE TABLE", after), Call::Create, unknown, Some(0)),
        step("columns", cut("sys.columns", after), Call::Write, unknown, Some(0)),
        step("begin", cut("BEGIN TRANSACTION;", before).nth(2), Call::Write, unknown, Some(0)),
        step("begun", cut("BEGIN TRANSACTION;", after).nth(2), Call::Write, unknown, Some(0)),
        step("insert_bulk", cut("INSERT BULK", before), Call::Write, unknown, Some(0)),
        step("bulk", cut("INSERT BULK", before).on_bulk(), Call::Write, unknown, Some(0)),
        step("row", cut("INSERT BULK", When::Rows(3)).on_bulk(), Call::Write, unknown, Some(0)),
        step("loaded", cut("INSERT BULK", after).on_bulk(), Call::Write, unknown, Some(0)),
        step("count", cut("COUNT_BIG(*) FROM [stage]", before), Call::Write, unknown, Some(0)),
        step("counted", cut("COUNT_BIG(*) FROM [stage]", after), Call::Write, unknown, Some(0)),
        step("commit", commit.clone(), Call::Write, unknown, Some(0)),
        step("committed", Breakpoint { when: after, ..commit }, Call::Write, unknown, Some(5)),
        step("digest", cut("HASHBYTES", before), Call::Verify, Fate::NotDone, Some(5)),
        step("digested", cut("HASHBYTES", after), Call::Verify, Fate::NotDone, Some(5)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_at_each_step_leaves_what_the_reported_fate_allows() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let rows: Vec<_> = (0..5).map(|id| row(id, "text")).collect();
    for step in steps() {
        let id = kit.cut(step.breakpoint);
        let definition = stage(step.name);
        let attempt = async {
            let mut writer = kit.target.open_writer(&grant(step.name)).await.map_err(|e| (Call::Open, e))?;
            let object_id = writer.create_stage(&definition).await.map_err(|e| (Call::Create, e))?;
            let stage = StageRef { definition: definition.clone(), object_id };
            let (bytes, facts) = sealed(&rows);
            writer.write(&stage, &facts, bytes).await.map_err(|e| (Call::Write, e))?;
            writer.verify(&stage, 5).await.map_err(|e| (Call::Verify, e)).map(|_| ())
        };
        let (call, error) = attempt.await.expect_err(step.name);
        assert_eq!((call, error.fate), (step.fails, step.fate), "{}: {error}", step.name);
        kit.reached(id).await;
        // The lock is free once the server has ended the session: then what is left is final.
        let writer = kit.target.open_writer(&grant(step.name)).await.expect("the lock is obtainable");
        let table = format!("stage.dpone_native_{}", step.name);
        let exists = kit.number(&format!("SELECT COUNT(OBJECT_ID(N'{table}', N'U'))")).await == 1;
        assert_eq!(exists, step.left.is_some(), "{}", step.name);
        if let Some(left) = step.left {
            assert_eq!(kit.number(&format!("SELECT COUNT(*) FROM {table}")).await, left, "{}", step.name);
        }
        writer.close().await.expect("closed");
        let gone = kit.target.retire_stage(&grant(step.name), &definition, None).await.expect("retired");
        let expected = if exists { StageRetirement::Dropped } else { StageRetirement::AlreadyAbsent };
        assert_eq!(gone, expected, "{}", step.name);
    }
}

/// The lock of a chunk is its writer's as long as its session lives; other chunks are written meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_blocks_its_second_writer_and_no_other_grant() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let held = kit.cut(Breakpoint::hold("INSERT BULK", When::Rows(1)).on_bulk());
    let (target, rows) = (kit.target.clone(), vec![row(1, "a"), row(2, "b")]);
    let slow = tokio::spawn({
        let rows = rows.clone();
        async move {
            let mut writer = target.open_writer(&grant("slow")).await.expect("a writer");
            let definition = stage("slow");
            let stage = StageRef { object_id: writer.create_stage(&definition).await.expect("a stage"), definition };
            let (bytes, facts) = sealed(&rows);
            writer.write(&stage, &facts, bytes).await.expect("written");
            assert_digest(&writer.verify(&stage, 2).await.expect("a digest"), &rows);
            writer.close().await.expect("closed");
        }
    });
    kit.reached(held).await;
    let impatient = contract::port::target::WriterGrant { lock_timeout_ms: 50, ..grant("slow") };
    assert_refused(kit.target.open_writer(&impatient).await, "mssql_native.sqlclient_writer_not_settled");
    // In the middle of the first writer's transaction the second one is written to its end.
    let other = kit.stage("other", &rows).await;
    assert_eq!(other.definition, stage("other"));
    kit.release(held, Then::GoOn);
    slow.await.expect("it is written");
    assert_eq!(kit.number("SELECT COUNT(*) FROM stage.dpone_native_slow").await, 2);
}

/// A file that is not what was sealed, or has other rows than its record, leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_rolled_back_and_says_so() {
    let mut kit = Kit::start().await;
    kit.claim().await;
    let rows = vec![row(1, "a"), row(2, "b")];
    for (name, cut, counted, code) in
        [("short", 3, 2, "mssql_native.retained_file_changed"), ("count", 0, 3, "mssql_native.server_count_mismatch")]
    {
        let mut writer = kit.target.open_writer(&grant(name)).await.expect("a writer");
        let definition = stage(name);
        let stage = StageRef { object_id: writer.create_stage(&definition).await.expect("a stage"), definition };
        let (mut bytes, mut facts) = sealed(&rows);
        let mut file = Vec::new();
        bytes.read_to_end(&mut file).expect("bytes");
        file.truncate(file.len() - cut);
        facts.rows = counted;
        assert_refused(writer.write(&stage, &facts, Box::new(std::io::Cursor::new(file))).await, code);
        writer.close().await.expect("closed");
        assert_eq!(kit.number(&format!("SELECT COUNT(*) FROM stage.dpone_native_{name}")).await, 0);
    }
}
