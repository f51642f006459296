//! Pods that cannot start: the reason is in a condition, and the transfer goes on by itself when the cause is gone.

use e2e::Case;
use e2e::case::SECRETS;
use e2e::cluster::IMAGE;
use serde_json::json;

pub(crate) fn for_an_image() {
    let mut case = Case::new("image");
    case.table("t", 5);
    let absent = "  workers: {image: \"native-transfer:absent\", imagePullPolicy: Never}\n  run: {token";
    case.apply(&case.document("t").replace("  run: {token", absent));
    case.until_reason("t", "Reconciling", "ImageUnavailable");
    case.patch("t", &json!({"workers": {"image": IMAGE}}));
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
}

pub(crate) fn for_a_node() {
    let mut case = Case::new("node");
    case.table("t", 5);
    case.apply(&case.document("t").replace("  run: {token", "  workers: {nodeSelector: {no: where}}\n  run: {token"));
    case.until_reason("t", "Reconciling", "Unschedulable");
    case.patch("t", &json!({"workers": {"nodeSelector": null}}));
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
}

pub(crate) fn for_a_volume() {
    let mut case = Case::new("volume");
    case.table("t", 5);
    let class = case.namespace.clone();
    case.apply(&case.document("t").replace("storageClassName: standard", &format!("storageClassName: {class}")));
    case.until_reason("t", "Reconciling", "JournalUnbound");
    let mut standard = case.kubectl().get("storageclass", "", "standard").expect("the class of the cluster");
    standard["metadata"] = json!({"name": class});
    case.kubectl().feed(&["create", "-f", "-"], &standard.to_string());
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
    case.kubectl().run(&["delete", "storageclass", &class]);
}

pub(crate) fn for_a_secret() {
    let mut case = Case::new("secret");
    case.table("t", 5);
    case.kubectl().run(&["delete", "secret", SECRETS[1], "-n", &case.namespace]);
    case.apply(&case.document("t"));
    case.until_reason("t", "Reconciling", "SecretMissing");
    case.create_secret(SECRETS[1]);
    case.until_phase("t", "Succeeded");
    case.assert_moved("t");
}
