//! Transfers that succeed.

use std::process::Command;

use e2e::case::NTR;
use e2e::{Case, audit};
use serde_json::{Value, json};
use testkit::ends::{self, Target};
use testkit::transfer::{self, ONE_DAY, VISIBLE};

/// The digest that the command line publishes for the same document, into a server of its own.
fn digest_of_the_command_line(case: &Case, document: &str, table: &str) -> String {
    let folder = std::env::temp_dir().join(format!("{}-cli", case.namespace));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut target = Target::start(&folder, None);
    target.create(table, transfer::TARGET_COLUMNS);
    let source = &case.cluster.source;
    let connections = folder.join("connections");
    ends::write_connection(&connections.join("source"), &source.connection(source.host(), &case.database));
    ends::write_connection(&connections.join("target"), &target.connection("localhost"));
    let manifest = folder.join("transfer.yaml");
    std::fs::write(&manifest, document).expect("a file");
    let journal = folder.join("journal");
    let product = |arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(ends::binary()).args(arguments).arg("--journal-root").arg(&journal).output();
        let output = output.expect("the product starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let options = ["run", "--run-id", "cli", "-f"].map(std::ffi::OsStr::new);
    product(&[&options[..], &[manifest.as_os_str(), "--connections".as_ref(), connections.as_os_str()]].concat());
    let receipt = folder.join("receipt");
    std::fs::write(&receipt, "").expect("a file");
    product(&["inspect".as_ref(), "--run-id".as_ref(), "cli".as_ref(), "--receipt".as_ref(), receipt.as_os_str()]);
    let receipt = std::fs::read_to_string(&receipt).expect("a receipt");
    let line: Value = serde_json::from_str(receipt.lines().next().expect("a line")).expect("a receipt");
    line["workload"].as_str().expect("a digest").to_owned()
}

pub(crate) fn a_full_refresh_succeeds_with_the_digest_of_the_command_line() {
    let mut case = Case::new("full-refresh");
    case.table("t", 100);
    let document = case.document("t");
    case.apply(&document);
    let done = case.until_phase("t", "Succeeded");
    case.assert_moved("t");
    assert_eq!(case.receipts(), "1");
    let status = &done["status"];
    assert_eq!(status["custody"]["rows"], 100);
    assert_eq!(status["custody"]["state"], "Released");
    assert_eq!(status["publication"]["outcome"], "Committed");
    assert_eq!(status["publication"]["workloadSHA256"], digest_of_the_command_line(&case, &document, "t"));
    for kind in ["Accepted", "CustodySecured", "Published", "Ready"] {
        let condition = e2e::case::condition(&done, kind).unwrap_or_else(|| panic!("no {kind}: {status:#}"));
        assert_eq!((&condition["status"], &condition["observedGeneration"]), (&json!("True"), &json!(1)), "{kind}");
    }
    let line = case.kubectl().run(&["get", "ntr", "t", "-n", &case.namespace, "--no-headers"]);
    assert!(line.contains("Succeeded") && line.contains("100"), "{line}");
}

pub(crate) fn a_window_replaces_its_day_and_nothing_else() {
    let mut case = Case::new("window");
    case.table("t", 100);
    let plant = |id, at| format!("INSERT INTO dbo.t (id, name, x, at) VALUES ({id}, N'planted', 0.5, '{at}')");
    case.target.run(&plant(-1, "2013-07-04 12:00:00"));
    case.target.run(&plant(-2, "2013-07-05 12:00:00"));
    case.apply(&case.document_with("t", VISIBLE, ONE_DAY));
    case.until_phase("t", "Succeeded");
    assert_eq!(case.target.rows("SELECT id FROM dbo.t WHERE id < 0"), ["-2"]);
    assert_eq!(case.target.value("SELECT COUNT(*) FROM dbo.t"), "101");
    case.assert_settled();
}

pub(crate) fn a_new_token_runs_again() {
    let mut case = Case::new("token");
    case.table("t", 50);
    case.apply(&case.document("t"));
    let first = case.until_phase("t", "Succeeded");
    case.target.run("DELETE FROM dbo.t WHERE id = 7");
    // The same token again is no order.
    case.apply(&case.document("t"));
    case.patch("t", &json!({"run": {"token": "2"}}));
    let second = case.until("t", "a second success", |object| {
        object["status"]["run"]["token"] == "2" && object["status"]["phase"] == "Succeeded"
    });
    assert_ne!(first["status"]["publication"]["receiptId"], second["status"]["publication"]["receiptId"]);
    assert_eq!(first["status"]["publication"]["workloadSHA256"], second["status"]["publication"]["workloadSHA256"]);
    case.assert_moved("t");
    assert_eq!(case.receipts(), "2");
}

pub(crate) fn twenty_transfers_applied_at_once_all_succeed() {
    let mut case = Case::new("twenty");
    let names: Vec<String> = (1..=20).map(|number| format!("t{number}")).collect();
    for name in &names {
        case.table(name, 5);
    }
    let documents: Vec<String> = names.iter().map(|name| case.document(name)).collect();
    case.apply(&documents.join("---\n"));
    for name in &names {
        case.until_phase(name, "Succeeded");
    }
    for name in &names {
        case.assert_moved(name);
    }
    assert_eq!(case.receipts(), "20");
}

pub(crate) fn idle_transfers_cause_no_writes() {
    // Alone, because the operator writes for other cases too.
    let mut case = Case::alone("idle");
    for name in ["a", "b", "c"] {
        case.table(name, 5);
        case.apply(&case.document(name));
    }
    case.apply(&case.document("d").replace("mode: query_visible", "mode: nonsense"));
    for name in ["a", "b", "c"] {
        case.until_phase(name, "Succeeded");
    }
    case.until_reason("d", "Accepted", "ManifestRejected");
    let versions = |case: &Case| -> Vec<Value> {
        let list = case.kubectl().json(&["get", NTR, "-n", &case.namespace]);
        list["items"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|item| item["metadata"]["resourceVersion"].clone())
            .collect()
    };
    let (before, mark) = (versions(&case), audit::mark(&case.cluster.audit_log));
    // The time itself is what is tested: nothing may happen in it.
    std::thread::sleep(std::time::Duration::from_secs(20));
    let writes = audit::writes(&case.cluster.audit_log, mark, "serviceaccount:native-transfer-system:");
    let other: Vec<&String> = writes.iter().filter(|write| !write.contains("leases")).collect();
    assert!(other.is_empty(), "idle transfers caused writes: {other:?}");
    assert!(
        writes.iter().any(|write| write.contains("leases")),
        "the audit log shows the operator's lease: {writes:?}"
    );
    assert_eq!(versions(&case), before);
}
