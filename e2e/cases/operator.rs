//! An operator that is gone for a while: a restart changes nothing, a worker needs nobody.

use e2e::case::uid;
use e2e::cluster::OPERATOR_NAMESPACE;
use e2e::{Case, process};
use servers::sqlserver::control::{Breakpoint, Then, When};

fn kill_operator(case: &Case) {
    let pods = case.kubectl().list("pods", OPERATOR_NAMESPACE, "app.kubernetes.io/component=operator");
    assert_eq!(pods.len(), 1, "one operator: {pods:?}");
    process::kill(uid(&pods[0]), &["native-transfer-operator run"]);
}

pub(crate) fn killed_at_each_phase() {
    let mut case = Case::alone("operator-killed");
    case.table("t", 100);
    let moments = [
        Breakpoint::hold("native_transfer_custody", When::Before).of("native-transfer claim"),
        Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2),
        Breakpoint::hold("COMMIT TRANSACTION;", When::Before).whole().of("native-transfer publish"),
    ];
    let held = moments.map(|moment| case.hold(moment));
    case.apply(&case.document("t"));
    for moment in held {
        case.until_held(moment);
        kill_operator(&case);
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
