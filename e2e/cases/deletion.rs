//! Deletion at every moment: nothing of ours is left, nothing that is unknown is forgotten.

use e2e::Case;
use e2e::case::{MANY_ROWS, NTR, SECRETS, WRITER, condition, uid};
use e2e::cluster::IMAGE;
use serde_json::{Value, json};
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
    let owned = |name: &str, owner: &str, uid: &str| {
        let owner =
            json!({"apiVersion": "transfer.dpone.io/v1alpha1", "kind": "NativeTransfer", "name": owner, "uid": uid});
        let metadata = json!({"name": name, "ownerReferences": [owner]});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        case.kubectl().feed(&["create", "-n", &namespace, "-f", "-"], &object.to_string());
    };
    owned("canary", "t", uid(&case.get("t")));
    // A child that the collector has not heard of when its owner is deleted is not collected. It hears of this one later, and
    // collects it because nobody owns it.
    owned("orphan", "nobody", "00000000-0000-4000-8000-000000000000");
    case.kubectl().until_gone("configmap", &namespace, "orphan");
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

/// The way out of docs/guide/terminating-namespace.md, step by step.
pub(crate) fn of_the_namespace_when_a_pod_is_needed_is_settled_from_another_one() {
    let mut case = Case::new("delete-stuck");
    case.table("t", 50);
    let held = case.hold(publication(When::Before));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.kubectl().run(&["delete", "namespace", &case.namespace, "--wait=false"]);
    case.until_stopping("publish");
    case.release(held, Then::DropConnection);
    let stuck = case.until_reason("t", "DeletionBlocked", "NamespaceTerminating");
    assert_ne!(case.target.custody(), vec!["clear"], "nothing is dropped");
    let message = condition(&stuck, "DeletionBlocked").expect("a condition")["message"].clone();
    let message = message.as_str().expect("text");
    let word_after = |word: &str| {
        let (_, rest) = message.split_once(&format!(" {word} ")).unwrap_or_else(|| panic!("no {word} in {message}"));
        rest.split([' ', ';']).next().expect("a word").trim_end_matches('.').to_owned()
    };
    let volume = free_the_volume(&case, &word_after("stays on claim"));
    settle(&case, &stuck, &word_after("Settle run"), &volume);
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
    let nobody = json!({"metadata": {"finalizers": null}}).to_string();
    case.kubectl().run(&["patch", NTR, "t", "-n", &case.namespace, "--type=merge", "-p", &nobody]);
    case.kubectl().run(&["wait", "--for=delete", &format!("namespace/{}", case.namespace), "--timeout=180s"]);
    let settling = format!("{}-settle", case.namespace);
    case.kubectl().run(&["delete", "namespace", &settling, "--wait=false"]);
    case.kubectl().run(&["delete", "pv", volume["metadata"]["name"].as_str().expect("a name"), "--wait=false"]);
}

fn publish_on_delete(case: &Case) {
    case.kubectl().run(&["annotate", NTR, "t", "-n", &case.namespace, "transfer.dpone.io/on-delete=publish"]);
}

/// The journal's volume, kept and free for another claim.
fn free_the_volume(case: &Case, claim: &str) -> Value {
    let namespace = case.namespace.as_str();
    let found = case.kubectl().get("pvc", namespace, claim).expect("the journal's claim");
    let name = found["spec"]["volumeName"].as_str().expect("a volume");
    let patch = |arguments: &[&str]| {
        case.kubectl().run(&[&["patch"], arguments].concat());
    };
    let keep = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}).to_string();
    patch(&["pv", name, "--type=merge", "-p", &keep]);
    patch(&[
        "pvc",
        claim,
        "-n",
        namespace,
        "--type=merge",
        "-p",
        &json!({"metadata": {"finalizers": null}}).to_string(),
    ]);
    case.kubectl().until_gone("pvc", namespace, claim);
    let free = json!([{"op": "remove", "path": "/spec/claimRef"}]).to_string();
    patch(&["pv", name, "--type=json", "-p", &free]);
    case.kubectl().json(&["get", "pv", name])
}

/// Runs the guide's pod in a namespace of its own until it has ended with 0.
fn settle(case: &Case, transfer: &Value, run_id: &str, volume: &Value) {
    let namespace = format!("{}-settle", case.namespace);
    case.kubectl().run(&["create", "namespace", &namespace]);
    for secret in SECRETS {
        case.create_secret_in(&namespace, secret);
    }
    let plan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plan"},
        "data": {"transfer.json": transfer.to_string()}});
    case.kubectl().feed(&["create", "-n", &namespace, "-f", "-"], &plan.to_string());
    let of = |pointer: &str| volume.pointer(pointer).and_then(Value::as_str).expect("text");
    let document = include_str!("../../docs/guide/settle.yaml")
        .replace("RUN_ID", run_id)
        .replace("VOLUME", of("/metadata/name"))
        .replace("CLASS", of("/spec/storageClassName"))
        .replace("SIZE", of("/spec/capacity/storage"))
        .replace("IMAGE", IMAGE);
    case.kubectl().feed(&["apply", "-n", &namespace, "-f", "-"], &document);
    let ended = case.kubectl().until("pods", &namespace, "the settling pod's end", |pod| {
        !pod["status"]["containerStatuses"][0]["state"]["terminated"].is_null()
    });
    let code = &ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"];
    let said = case.kubectl().try_run(&["logs", "settle", "-n", &namespace], "");
    assert_eq!(*code, 0, "{}{}", said.out, said.err);
}

/// Rows that are sealed wait for a word of a person; the operator is away while they are sealed, so that nothing publishes them.
pub(crate) fn of_sealed_rows_waits_for_a_word_and_publishes_on_it() {
    let mut case = Case::alone("delete-sealed");
    case.table("t", 100);
    let held = case.hold(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    case.cluster.scale_operator(0);
    case.release(held, Then::GoOn);
    case.kubectl().until("pods", &case.namespace, "the extraction's end", |pod| {
        pod["metadata"]["labels"]["transfer.dpone.io/phase"] == "extract" && pod["status"]["phase"] == "Succeeded"
    });
    case.delete("t");
    case.cluster.scale_operator(1);
    let blocked = case.until_reason("t", "DeletionBlocked", "CustodyHeld");
    let message = condition(&blocked, "DeletionBlocked").expect("a condition")["message"].to_string();
    assert!(message.contains("transfer.dpone.io/on-delete"), "{message}");
    assert_eq!(case.receipts(), "0");
    publish_on_delete(&case);
    assert_nothing_is_left(&case, "t");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
}

pub(crate) fn of_an_unknown_outcome_waits_until_the_target_has_answered() {
    let mut case = Case::new("delete-unknown");
    case.table("t", 50);
    let held = case.hold(publication(When::After));
    case.apply(&case.document("t"));
    case.until_held(held);
    // The next look at the target is held too: the outcome stays unknown as long as the case wants.
    let answer = case.hold(Breakpoint::hold("", When::Before).of("native-transfer").nth(1));
    case.release(held, Then::DropConnection);
    case.until_held(answer);
    case.delete("t");
    let blocked =
        case.until("t", "a deletion that is blocked", |object| condition(object, "DeletionBlocked").is_some());
    assert_eq!(blocked["status"]["custody"]["state"], "Held", "{:#}", blocked["status"]);
    case.release(answer, Then::GoOn);
    assert_nothing_is_left(&case, "t");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
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
