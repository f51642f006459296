//! What may be written into a spec.

use e2e::Case;
use e2e::case::{NTR, condition};
use serde_json::json;

pub(crate) fn an_unknown_key_is_named() {
    let mut case = Case::new("unknown-key");
    case.table("t", 5);
    let document = case
        .document("t")
        .replace("chunking: {mode: bounded_stream}", "chunking: {mode: bounded_stream}\n            chunkng: {a: 1}");
    case.apply(&document);
    let refused = case.until_reason("t", "Accepted", "ManifestRejected");
    let accepted = condition(&refused, "Accepted").expect("a condition");
    assert_eq!(accepted["status"], "False");
    assert!(accepted["message"].as_str().is_some_and(|text| text.contains("chunkng")), "{accepted}");
    assert_eq!(
        case.kubectl().list("pods", &case.namespace, "app.kubernetes.io/name=native-transfer"),
        Vec::<serde_json::Value>::new()
    );
    assert_eq!(
        case.kubectl().list("pvc", &case.namespace, "app.kubernetes.io/name=native-transfer"),
        Vec::<serde_json::Value>::new()
    );
    case.delete("t");
    case.kubectl().until_gone(NTR, &case.namespace, "t");
}

pub(crate) fn a_wrong_type_is_refused_by_the_api_server() {
    let case = Case::new("wrong-type");
    let good = case.document("t");
    for (from, to) in [
        ("run: {token: \"1\"}", "run: {token: 1}"),
        ("journal: {storageClassName: standard, size: 5Gi}", "journal: {storageClassName: standard, size: [5]}"),
        ("table: {schema: dbo, name: t}", "table: {schema: dbo, name: {a: 1}}"),
        ("journal: {storageClassName: standard, size: 5Gi}", "journal: {storageClassName: standard, size: 5 potatoes}"),
    ] {
        assert!(good.contains(from), "{from}");
        let said = case.refused(&good.replace(from, to));
        assert!(said.contains("spec."), "{said}");
    }
}

pub(crate) fn what_is_immutable_stays_and_what_is_mutable_changes() {
    let mut case = Case::new("mutability");
    case.table("t", 20);
    let document = case.document("t");
    case.apply(&document);
    let done = case.until_phase("t", "Succeeded");
    for (from, to) in [
        // Changed, added, removed: equality over unknown keys is one-sided, so each direction is a case.
        ("schema: dbo, name: t", "schema: dbo, name: u"),
        ("max_rows: 40, ", "max_rows: 40, another: 1, "),
        ("max_rows: 40, ", ""),
        ("storageClassName: standard", "storageClassName: other"),
        ("size: 5Gi", "size: 4Gi"),
    ] {
        assert!(document.contains(from), "{from}");
        let said = case.refused(&document.replace(from, to));
        assert!(said.contains("Forbidden") || said.contains("Invalid value") || said.contains("invalid"), "{said}");
    }
    case.patch(
        "t",
        &json!({"suspend": true, "limits": {"attempts": 2}, "workers": {"resources": {"limits": {"memory": "300Mi"}}}}),
    );
    case.patch("t", &json!({"suspend": false, "connections": {"source": {"secretRef": {"name": "clickhouse-other"}}}}));
    let after = case.until("t", "the new generation", |object| {
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
    });
    assert_eq!(after["status"]["phase"], "Succeeded");
    assert_eq!(after["status"]["publication"], done["status"]["publication"]);
    assert_eq!(case.receipts(), "1");
}
