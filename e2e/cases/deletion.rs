//! Deletion at every moment: nothing of ours is left, nothing that is unknown is forgotten.

use e2e::Case;
use e2e::case::{MANY_ROWS, NTR, WRITER, condition, uid};
use serde_json::json;
use servers::sqlserver::control::{Breakpoint, Then, When};

/// A session of the publication, held before its COMMIT.
fn publication(when: When) -> Breakpoint {
    Breakpoint::hold("COMMIT TRANSACTION;", when).whole().of("native-transfer publish")
}

fn assert_nothing_is_left(case: &Case, name: &str) {
    case.kubectl().until_gone(NTR, &case.namespace, name);
    let selector = "app.kubernetes.io/name=native-transfer";
    for kind in ["pods", "pvc"] {
        for object in case.kubectl().list(kind, &case.namespace, selector) {
            case.kubectl().until_gone(kind, &case.namespace, object["metadata"]["name"].as_str().expect("a name"));
        }
    }
}

pub(crate) fn before_the_start() {
    let mut case = Case::new("delete-before");
    case.table("t", 5);
    case.apply(&case.document("t").replace("  run: {token", "  suspend: true\n  run: {token"));
    case.until("t", "suspension", |object| condition(object, "Suspended").is_some());
    case.delete("t");
    assert_nothing_is_left(&case, "t");
    case.assert_untouched("t");
    assert_eq!(case.receipts(), "0");
}

pub(crate) fn during_extraction() {
    let mut case = Case::new("delete-extract");
    case.table("t", MANY_ROWS);
    let held = case.hold(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.delete("t");
    // The worker is asked to stop; what the target holds back goes on, and the engine settles.
    case.until_stopping("extract");
    case.release(held, Then::GoOn);
    assert_nothing_is_left(&case, "t");
    case.assert_untouched("t");
    assert_eq!(case.receipts(), "0");
}

pub(crate) fn during_publication_waits_until_it_is_known() {
    let mut case = Case::new("delete-publish");
    case.table("t", 50);
    let held = case.hold(publication(When::Before));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.delete("t");
    case.until_reason("t", "DeletionBlocked", "PublicationRunning");
    case.release(held, Then::GoOn);
    assert_nothing_is_left(&case, "t");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
}

pub(crate) fn after_success() {
    let mut case = Case::new("delete-after");
    case.table("t", 5);
    case.apply(&case.document("t"));
    case.until_phase("t", "Succeeded");
    case.delete("t");
    assert_nothing_is_left(&case, "t");
    case.assert_moved("t");
}

/// A transfer that holds custody: its second chunk is held before its commit.
fn with_custody_held(case: &mut Case) -> u64 {
    case.table("t", MANY_ROWS);
    let held = case.hold(Breakpoint::hold("COMMIT TRANSACTION;", When::Before).whole().of(WRITER).nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    held
}

pub(crate) fn in_the_foreground_while_custody_is_held() {
    let mut case = Case::new("delete-foreground");
    let held = with_custody_held(&mut case);
    let namespace = case.namespace.clone();
    let canary = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary", "ownerReferences": [{
        "apiVersion": "transfer.dpone.io/v1alpha1", "kind": "NativeTransfer", "name": "t", "uid": uid(&case.get("t"))}]}});
    case.kubectl().feed(&["create", "-n", &namespace, "-f", "-"], &canary.to_string());
    case.kubectl().run(&["delete", NTR, "t", "-n", &namespace, "--cascade=foreground", "--wait=false"]);
    // The garbage collector has had its turn when another child of the transfer is gone.
    case.kubectl().until_gone("configmap", &namespace, "canary");
    let claims = case.kubectl().list("pvc", &namespace, "app.kubernetes.io/name=native-transfer");
    assert!(
        claims.iter().all(|claim| claim["metadata"]["deletionTimestamp"].is_null()) && claims.len() == 1,
        "{claims:?}"
    );
    case.until_stopping("extract");
    case.release(held, Then::GoOn);
    assert_nothing_is_left(&case, "t");
    case.assert_untouched("t");
}

pub(crate) fn of_the_namespace_while_custody_is_held() {
    let mut case = Case::new("delete-namespace");
    let held = with_custody_held(&mut case);
    let namespace = case.namespace.clone();
    case.kubectl().run(&["delete", "namespace", &namespace, "--wait=false"]);
    case.until_stopping("extract");
    case.release(held, Then::GoOn);
    case.kubectl().run(&["wait", "--for=delete", &format!("namespace/{namespace}"), "--timeout=180s"]);
    case.assert_untouched("t");
}

pub(crate) fn and_creation_under_the_same_name() {
    let mut case = Case::new("same-name");
    case.table("t", 5);
    case.apply(&case.document("t"));
    let first = case.until_phase("t", "Succeeded");
    case.delete("t");
    assert_nothing_is_left(&case, "t");
    case.apply(&case.document("t"));
    let second = case.until_phase("t", "Succeeded");
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_ne!(first["status"]["publication"]["receiptId"], second["status"]["publication"]["receiptId"]);
    case.assert_moved("t");
    assert_eq!(case.receipts(), "2");
}
