//! An operator that is gone for a while: a restart changes nothing, a worker needs nobody.

use e2e::case::uid;
use e2e::cluster::OPERATOR_NAMESPACE;
use e2e::{Case, process};
use serde_json::Value;
use servers::sqlserver::control::{Breakpoint, Then, When};

/// The one operator's pod and how often its container was started again, once it runs after `restarts` of them.
fn running_operator(case: &Case, restarts: u64) -> (String, u64) {
    let restarted = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
    let pod = case.kubectl().until("pods", OPERATOR_NAMESPACE, "an operator that runs", |pod| {
        let status = &pod["status"]["containerStatuses"][0];
        pod["metadata"]["deletionTimestamp"].is_null()
            && status["ready"] == true
            && restarted(pod).is_some_and(|count| count >= restarts)
    });
    (uid(&pod).to_owned(), restarted(&pod).expect("a count"))
}

/// Kills the operator, which the kubelet may have started again some seconds ago only; returns how often it will have been.
fn kill_operator(case: &Case, restarts: u64) -> u64 {
    let (uid, restarts) = running_operator(case, restarts);
    process::kill(&uid, &["native-transfer-operator run"]);
    restarts + 1
}

pub(crate) fn killed_at_each_phase() {
    let mut case = Case::alone("operator-killed");
    case.table("t", 100);
    let moments = [
        Breakpoint::hold("", When::Before).of("native-transfer observe"),
        Breakpoint::hold("native_transfer_custody", When::Before).of("native-transfer claim"),
        Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2),
        Breakpoint::hold("COMMIT TRANSACTION;", When::Before).whole().of("native-transfer publish"),
    ];
    let held = moments.map(|moment| case.hold(moment));
    case.apply(&case.document("t"));
    let mut restarts = 0;
    for moment in held {
        case.until_held(moment);
        restarts = kill_operator(&case, restarts);
        case.release(moment, Then::GoOn);
    }
    let done = case.until_phase("t", "Succeeded");
    assert_eq!(done["status"]["run"]["attempt"], 1, "no attempt was lost");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
    assert_eq!(
        case.cluster.source.times_asked(&["dpone-native-", &format!("`{}`", case.database)]),
        1,
        "the source was read once"
    );
}

pub(crate) fn absent_while_the_worker_finishes() {
    let mut case = Case::alone("operator-absent");
    case.table("t", 100);
    let held = case.hold(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.cluster.scale_operator(0);
    case.release(held, Then::GoOn);
    case.kubectl().until("pods", &case.namespace, "the extraction's end", |pod| {
        pod["metadata"]["labels"]["transfer.dpone.io/phase"] == "extract" && pod["status"]["phase"] == "Succeeded"
    });
    case.cluster.scale_operator(1);
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
}
