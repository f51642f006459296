//! Workers that die: each death becomes a state that a person understands, nothing is published twice, nothing is left.

use e2e::Case;
use e2e::case::{MANY_ROWS, WRITER, condition};
use serde_json::json;
use servers::sqlserver::control::{Breakpoint, Then, When};

/// The second chunk of the extraction, in the middle.
fn extraction() -> Breakpoint {
    Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2)
}

/// A transfer whose worker is held in the middle of its second chunk.
fn held_in_extraction(name: &str, rows: u64) -> (Case, u64) {
    let mut case = Case::new(name);
    case.table("t", rows);
    let held = case.hold(extraction());
    case.apply(&case.document("t"));
    case.until_held(held);
    (case, held)
}

/// The extraction is settled without publication, the source was read once, and a new token moves the rows.
fn assert_settled_and_repeated(case: &mut Case) {
    let ended = case.until_phase("t", "ReextractRequired");
    case.assert_untouched("t");
    assert_eq!(case.receipts(), "0");
    let stalled = condition(&ended, "Stalled").unwrap_or_else(|| panic!("no advice: {:#}", ended["status"]));
    assert!(stalled["message"].as_str().is_some_and(|text| text.contains("run.token")), "{stalled}");
    case.patch("t", &json!({"run": {"token": "again"}}));
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
}

pub(crate) fn killed_by_a_signal_during_extraction() {
    let (mut case, held) = held_in_extraction("killed-extract", 100);
    case.kill_worker("extract");
    case.release(held, Then::DropConnection);
    assert_settled_and_repeated(&mut case);
}

pub(crate) fn killed_by_a_signal_during_publication() {
    let mut case = Case::new("killed-publish");
    case.table("t", 50);
    let held = case.hold(Breakpoint::hold("COMMIT TRANSACTION;", When::After).whole().of("native-transfer publish"));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.kill_worker("publish");
    case.release(held, Then::DropConnection);
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
}

pub(crate) fn killed_for_its_memory() {
    let mut case = Case::new("memory");
    case.table("t", 0);
    // 12 MB of text at once, twice that in the target's UTF-16: more than the worker may have, by its cgroup.
    case.cluster.source.run(&format!(
        "INSERT INTO {}.t SELECT number, repeat('x', 200000), 1, toDateTime64('2013-07-04 00:00:00', 6, 'UTC') FROM numbers(60)",
        case.database
    ));
    let small = "  workers: {resources: {requests: {memory: 12Mi}, limits: {memory: 12Mi}}}\n  run: {token";
    case.apply(&case.document("t").replace("  run: {token", small));
    case.until("t", "advice about memory", |object| {
        let stalled = condition(object, "Stalled").or_else(|| condition(object, "Reconciling"));
        stalled.and_then(|found| found["message"].as_str()).is_some_and(|text| text.contains("OOMKilled"))
    });
    let enough = json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "512Mi"}});
    case.patch("t", &json!({"workers": {"resources": enough}}));
    // Where it died decides whether it goes on by itself or asks for a new token.
    let settled = case.until("t", "success, or advice to read again", |object| {
        ["Succeeded", "ReextractRequired"].iter().any(|phase| object["status"]["phase"] == *phase)
    });
    if settled["status"]["phase"] == "ReextractRequired" {
        assert_eq!(case.receipts(), "0");
        case.patch("t", &json!({"run": {"token": "2"}}));
    }
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
}

fn worker(case: &Case) -> String {
    case.live_worker("extract")["metadata"]["name"].as_str().expect("a name").to_owned()
}

pub(crate) fn evicted() {
    let (mut case, held) = held_in_extraction("evicted", MANY_ROWS);
    let (pod, namespace) = (worker(&case), case.namespace.clone());
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}});
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    case.kubectl().feed(&["create", "--raw", &path, "-f", "-"], &eviction.to_string());
    case.until_stopping("extract");
    case.release(held, Then::GoOn);
    assert_settled_and_repeated(&mut case);
}

pub(crate) fn deleted_without_grace() {
    let (mut case, held) = held_in_extraction("no-grace", 100);
    let pod = worker(&case);
    case.kubectl().run(&["delete", "pod", &pod, "-n", &case.namespace, "--grace-period=0", "--force", "--wait=false"]);
    case.kubectl().until("pods", &case.namespace, "the worker's end", |found| {
        found["metadata"]["name"] == pod.as_str()
            && !found["status"]["containerStatuses"][0]["state"]["terminated"].is_null()
    });
    case.release(held, Then::DropConnection);
    assert_settled_and_repeated(&mut case);
}

pub(crate) fn suspended_during_extraction() {
    let mut case = Case::new("suspended");
    case.table("t", MANY_ROWS);
    let held = case.hold(Breakpoint::hold("COMMIT TRANSACTION;", When::Before).whole().of(WRITER).nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.patch("t", &json!({"suspend": true}));
    case.until_stopping("extract");
    case.release(held, Then::GoOn);
    case.until("t", "suspension with nothing held", |object| {
        condition(object, "Suspended").is_some() && object["status"]["custody"]["state"] == "Released"
    });
    case.assert_untouched("t");
    case.patch("t", &json!({"suspend": false}));
    let done = case.until_phase("t", "Succeeded");
    assert_eq!(done["status"]["run"]["attempt"], 2, "a cancelled extraction is never resumed");
    case.assert_moved("t");
}
