//! kill -9 of the shipped binary at chosen moments. The moment is seen at the server, which holds the session; the signal
//! comes from the test; the session's end or its going on is decided by the test as well.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use servers::sqlserver::control::{Breakpoint, Then, When};

use super::kit::{Ended, FULL_REFRESH, Road, VISIBLE, manifest, source};

const WRITER: &str = "dpone-mssql-sqlclient:";
const COMMIT: &str = "COMMIT TRANSACTION;";

/// What stands in the target after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Old,
    New,
    /// One of both, whole.
    Either,
}

/// A kill and what must be true after it.
struct Case {
    name: &'static str,
    breakpoint: Breakpoint,
    then: Then,
    content: Content,
    /// State that `inspect` names.
    state: &'static str,
    /// Exit code of the same run started again.
    again: i32,
}

fn start(road: &Road, text: &str) -> Child {
    road.command("run", &road.manifest(text), "run-1").spawn().expect("the product starts")
}

/// A source of three chunks and a target with one old row.
fn world(name: &str) -> (Road, String) {
    let mut road = Road::new(name);
    road.flights("MergeTree", 100);
    road.plant(-1, "2001-01-01");
    let text = manifest(name, VISIBLE, FULL_REFRESH);
    (road, text)
}

/// Another run on the same target is refused, and changes neither the target nor a stage.
fn assert_refused(road: &mut Road, text: &str) {
    let (stages, content) = (road.target.stages(), road.target_content());
    let here = road.run(&road.manifest(text), "other");
    assert_eq!((here.code, here.refusal().as_str()), (Some(1), "mssql_native.custody_held"), "{here:?}");
    if road.target.custody() == ["held"] {
        // With a journal of its own only the target can know.
        let journal = road.path().join("another-journal");
        let mut command = road.command_with("run", &road.manifest(text), "elsewhere", &journal);
        let there = Ended::of(command.spawn().expect("the product starts"));
        assert_eq!((there.code, there.refusal().as_str()), (Some(1), "mssql_native.custody_held"), "{there:?}");
    }
    assert_eq!((road.target.stages(), road.target_content()), (stages, content));
}

fn assert_settled(road: &mut Road) {
    assert_eq!(road.target.stages(), Vec::<String>::new());
    assert_eq!(road.target.custody(), ["clear"]);
}

fn check(case: Case) {
    let (mut road, text) = world(case.name);
    let (old, new) = (road.target_content(), road.source_content());
    let id = road.target.control.set(case.breakpoint).expect("armed");
    let mut child = start(&road, &text);
    road.target.control.wait(id).unwrap_or_else(|error| {
        let _ = child.kill();
        panic!("{}: the moment did not come: {error}", case.name)
    });
    child.kill().expect("it runs");
    assert_eq!(Ended::of(child).code, None, "the signal ended it");
    road.target.control.release(id, case.then).expect("it is held");

    let seen = road.target_content();
    match case.content {
        Content::Old => assert_eq!(seen, old, "{}", case.name),
        Content::New => assert_eq!(seen, new, "{}", case.name),
        Content::Either => assert!(seen == old || seen == new, "{}: {seen:?}", case.name),
    }
    let inspected = road.inspect("run-1");
    assert_eq!(inspected.code, Some(0), "{inspected:?}");
    assert!(
        inspected.stdout.contains(&format!("state            {} (", case.state))
            && inspected.stdout.contains("custody          held"),
        "{}: {}",
        case.name,
        inspected.stdout
    );
    assert_refused(&mut road, &text);

    let again = road.run(&road.manifest(&text), "run-1");
    assert_eq!(again.code, Some(case.again), "{}: {again:?}", case.name);
    assert_settled(&mut road);
    if case.again == 4 {
        assert_eq!(road.target_content(), old, "{}", case.name);
        let next = road.run(&road.manifest(&text), "run-2");
        assert_eq!(next.code, Some(0), "{}: {next:?}", case.name);
        assert_settled(&mut road);
    }
    assert_eq!(road.target_content(), new, "{}", case.name);
    assert_eq!(road.target.value("SELECT COUNT(*) FROM dpone.dpone_load_receipt"), "1", "{}", case.name);
}

macro_rules! kills {
    ($($name:ident: $breakpoint:expr, $then:ident, $content:ident, $state:literal, $again:literal;)*) => {$(
        #[test]
        fn $name() {
            check(Case {
                name: stringify!($name),
                breakpoint: $breakpoint,
                then: Then::$then,
                content: Content::$content,
                state: $state,
                again: $again,
            });
        }
    )*};
}

kills! {
    killed_before_the_claim:
        Breakpoint::hold("native_transfer_custody", When::Before).of("native-transfer claim"),
        DropConnection, Old, "Planned", 4;
    killed_after_the_claim_took_effect:
        Breakpoint::hold("native_transfer_custody", When::After).of("native-transfer claim"),
        DropConnection, Old, "Planned", 4;
    killed_in_the_middle_of_extraction:
        Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2),
        DropConnection, Old, "Extracting", 4;
    killed_before_the_commit_of_a_chunk:
        Breakpoint::hold(COMMIT, When::Before).whole().of(WRITER).nth(2),
        DropConnection, Old, "Extracting", 4;
    killed_after_the_commit_of_a_chunk:
        Breakpoint::hold(COMMIT, When::After).whole().of(WRITER).nth(2),
        DropConnection, Old, "Extracting", 4;
    killed_before_preparation:
        Breakpoint::hold("sp_getapplock", When::Before).of("native-transfer prepare"),
        DropConnection, Old, "StageComplete", 0;
    killed_in_the_middle_of_preparation:
        Breakpoint::hold("INSERT INTO", When::After).of("native-transfer prepare"),
        DropConnection, Old, "StageComplete", 0;
    killed_before_the_commit_of_the_publication:
        Breakpoint::hold(COMMIT, When::Before).whole().of("native-transfer publish"),
        DropConnection, Old, "Publishing", 0;
    killed_while_the_commit_of_the_publication_is_on_its_way:
        Breakpoint::hold(COMMIT, When::Before).whole().of("native-transfer publish"),
        GoOn, Either, "Publishing", 0;
    killed_after_the_commit_of_the_publication:
        Breakpoint::hold(COMMIT, When::After).whole().of("native-transfer publish"),
        DropConnection, New, "Publishing", 0;
    killed_before_the_evidence:
        Breakpoint::hold("native_transfer_evidence", When::Before).of("native-transfer evidence"),
        DropConnection, New, "Published", 0;
    killed_in_the_middle_of_clean_up:
        Breakpoint::hold("@verdict nvarchar(16) = N'absent'", When::After).of(WRITER),
        DropConnection, New, "Succeeded", 0;
    killed_before_custody_is_released:
        Breakpoint::hold("native_transfer_custody", When::Before).of("native-transfer release"),
        DropConnection, New, "Succeeded", 0;
}

/// The server's session outlives its client: as long as it holds its lock nothing is decided and nothing is dropped.
#[test]
fn a_writer_that_still_lives_at_the_server_keeps_everything_open() {
    let (mut road, text) = world("living_writer");
    let old = road.target_content();
    let commit = Breakpoint::hold(COMMIT, When::After).whole().of(WRITER).nth(2);
    let id = road.target.control.set(commit).expect("armed");
    let mut child = start(&road, &text);
    road.target.control.wait(id).expect("the moment comes");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let stages = road.target.stages();
    assert!(!stages.is_empty());
    let again = road.run(&road.manifest(&text), "run-1");
    assert_eq!(again.code, Some(3), "{again:?}");
    let json = again.json();
    assert_eq!(json["cleanup_error"]["code"], "mssql_native.sqlclient_writer_not_settled", "{json}");
    assert_eq!(road.target.stages(), stages);
    assert_refused(&mut road, &text);
    road.target.control.release(id, Then::DropConnection).expect("it is held");
    assert_eq!(road.run(&road.manifest(&text), "run-1").code, Some(4));
    assert_settled(&mut road);
    assert_eq!(road.target_content(), old);
}

/// SIGTERM in the middle of extraction: settled before the process ends.
#[test]
fn a_terminated_run_leaves_nothing() {
    let (mut road, text) = world("terminated");
    let (old, new) = (road.target_content(), road.source_content());
    let id = road.target.control.set(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2)).expect("armed");
    let child = start(&road, &text);
    road.target.control.wait(id).expect("the moment comes");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::TERM).expect("it runs");
    road.target.control.release(id, Then::GoOn).expect("it is held");
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_settled(&mut road);
    assert_eq!(road.target_content(), old);
    assert_eq!(road.run(&road.manifest(&text), "run-2").code, Some(0));
    assert_eq!(road.target_content(), new);
    assert_settled(&mut road);
}

/// A stage that someone else marked as theirs is left alone, and so is everything else.
#[test]
fn a_stage_with_a_foreign_mark_is_not_dropped() {
    let (mut road, text) = world("foreign_mark");
    let id = road.target.control.set(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2)).expect("armed");
    let mut child = start(&road, &text);
    road.target.control.wait(id).expect("the moment comes");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    road.target.control.release(id, Then::DropConnection).expect("it is held");
    let stage = road.target.stages().remove(0);
    road.target.run(&format!(
        "EXEC sys.sp_updateextendedproperty @name = N'dpone_native_owner', @value = N'someone', @level0type = N'SCHEMA', \
         @level0name = N'stage', @level1type = N'TABLE', @level1name = N'{stage}'"
    ));
    let again = road.run(&road.manifest(&text), "run-1");
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(again.json()["cleanup_error"]["code"], "mssql_native.prepared_owner_mismatch");
    assert!(road.target.stages().contains(&stage));
    assert_eq!(road.target.custody(), ["held"]);
}

/// Rows that appear in the source after the kill must not appear in a publication of what was sealed before it.
#[test]
fn the_source_is_not_read_again_after_its_end() {
    let (mut road, text) = world("sealed_source");
    let new = road.source_content();
    let before = Breakpoint::hold(COMMIT, When::Before).whole().of("native-transfer publish");
    let id = road.target.control.set(before).expect("armed");
    let mut child = start(&road, &text);
    road.target.control.wait(id).expect("the moment comes");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    road.target.control.release(id, Then::DropConnection).expect("it is held");
    source().run("DROP TABLE sealed_source.t SYNC");
    source().run("CREATE TABLE sealed_source.t (id Int64) ENGINE = Log");
    assert_eq!(road.run(&road.manifest(&text), "run-1").code, Some(0));
    assert_eq!(road.target_content(), new);
    assert_settled(&mut road);
}
