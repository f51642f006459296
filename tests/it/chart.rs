//! The Helm charts: what they render, what they grant, and what they refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde::Deserialize as _;
use serde_json::{Value, json};

const RELEASE: &str = "nt";
const NAMESPACE: &str = "nt-system";
/// A helm that was built from its module does not know which Kubernetes it was made for.
const KUBERNETES: &str = "1.37.2";
const OPERATOR: &str = "native-transfer";
const CRDS: &str = "native-transfer-crds";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Helm, built once by tests/tools/helm.sh.
fn helm(arguments: &[&str]) -> Output {
    static HELM: OnceLock<PathBuf> = OnceLock::new();
    let program = HELM.get_or_init(|| {
        let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/helm.sh")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().into()
    });
    Command::new(program).args(arguments).current_dir(repository().join("charts")).output().unwrap()
}

/// The objects that a chart renders with `--set` or `--set-json` values. The notes are not rendered by `template`.
fn rendered(chart: &str, values: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["template", RELEASE, chart, "--namespace", NAMESPACE, "--kube-version", KUBERNETES];
    for value in values {
        arguments.extend(["--set-json", value]);
    }
    let output = helm(&arguments);
    assert!(output.status.success(), "{values:?}: {}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).unwrap())
}

/// The documents of a YAML text that are not empty.
fn documents(text: &str) -> Vec<Value> {
    let parsed = serde_norway::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap());
    parsed.filter(|document| !document.is_null()).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn operator_arguments(objects: &[Value]) -> Vec<String> {
    let container = &of_kind(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
    serde_json::from_value(container["args"].clone()).unwrap()
}

#[test]
fn both_charts_pass_the_strict_lint() {
    for chart in [OPERATOR, CRDS] {
        let output = helm(&["lint", "--strict", chart]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn every_set_of_values_renders_complete_objects_with_names_of_their_own() {
    let digest = format!("image={{\"digest\":\"sha256:{}\"}}", "ab".repeat(32));
    let sets: [&[&str]; 7] = [
        &[],
        &["watchNamespaces=[\"a\",\"b\"]"],
        &[&digest, "imagePullSecrets=[\"registry\"]", "worker={\"imagePullSecrets\":[\"registry\"]}"],
        &["replicas=2", "priorityClassName=\"high\"", "podLabels={\"team\":\"data\"}", "podAnnotations={\"a\":\"b\"}"],
        &["networkPolicy={\"enabled\":true}", "watchNamespaces=[\"a\"]"],
        &["rbac={\"create\":false,\"aggregate\":false}", "serviceAccount={\"create\":false}"],
        &["nodeSelector={\"a\":\"b\"}", "tolerations=[{\"operator\":\"Exists\"}]", "affinity={\"nodeAffinity\":{}}"],
    ];
    for values in sets {
        let objects = rendered(OPERATOR, values);
        let mut names = BTreeSet::new();
        for object in &objects {
            let part = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = (part("/kind"), part("/metadata/namespace"), part("/metadata/name"));
            assert!(!part("/apiVersion").is_empty() && !name.0.is_empty() && !name.2.is_empty(), "{object}");
            assert_eq!(part("/metadata/labels/app.kubernetes.io~1instance"), RELEASE, "{name:?}");
            assert!(names.insert(name.clone()), "{name:?} twice with {values:?}");
        }
        assert_eq!(of_kind(&objects, "Deployment").len(), 1, "{values:?}");
        assert!(of_kind(&objects, "Secret").is_empty());
    }
}

/// Rules as `group/resource[names] -> verbs`, each verb once.
fn table(rules: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let texts = |value: &Value| serde_json::from_value::<Vec<String>>(value.clone()).unwrap_or_default();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in rules.as_array().unwrap() {
        let keys: BTreeSet<&str> = rule.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(keys.is_subset(&BTreeSet::from(["apiGroups", "resources", "resourceNames", "verbs"])), "{rule}");
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let names = texts(&rule["resourceNames"]).join(",");
                let key = if names.is_empty() {
                    format!("{group}/{resource}")
                } else {
                    format!("{group}/{resource}[{names}]")
                };
                found.entry(key).or_default().extend(texts(&rule["verbs"]));
            }
        }
    }
    found
}

fn expected(rows: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
    let verbs = |text: &str| text.split(' ').map(String::from).collect();
    rows.iter().map(|(key, text)| ((*key).to_owned(), verbs(text))).collect()
}

/// Everything that the operator may do to transfers and their children.
fn operator_rights() -> BTreeMap<String, BTreeSet<String>> {
    expected(&[
        ("transfer.dpone.io/nativetransfers", "get list watch patch"),
        ("transfer.dpone.io/nativetransfers/status", "update"),
        ("/pods", "create get list watch patch delete"),
        ("/persistentvolumeclaims", "create get list watch patch delete"),
        ("/events", "list"),
        ("events.k8s.io/events", "create patch"),
    ])
}

/// Who is bound to what: `(kind of the role, name of the role, namespace of the binding)`.
fn bindings(objects: &[Value]) -> BTreeSet<(String, String, String)> {
    let subject = json!([{"kind": "ServiceAccount", "name": "nt-native-transfer", "namespace": NAMESPACE}]);
    let both = of_kind(objects, "RoleBinding").into_iter().chain(of_kind(objects, "ClusterRoleBinding"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    both.map(|binding| {
        assert_eq!(binding["subjects"], subject);
        (text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"]), text(&binding["metadata"]["namespace"]))
    })
    .collect()
}

fn named(kind: &str, name: &str, namespace: &str) -> (String, String, String) {
    (kind.into(), name.into(), namespace.into())
}

#[test]
fn the_operator_has_exactly_the_listed_rights() {
    let lease = expected(&[
        ("coordination.k8s.io/leases", "create"),
        ("coordination.k8s.io/leases[nt-native-transfer]", "get update"),
    ]);
    let objects = rendered(OPERATOR, &["rbac={\"aggregate\":false}"]);
    let cluster = of_kind(&objects, "ClusterRole");
    assert_eq!(cluster.len(), 1);
    assert_eq!(table(&cluster[0]["rules"]), operator_rights());
    let roles = of_kind(&objects, "Role");
    assert_eq!(roles.len(), 1);
    assert_eq!(table(&roles[0]["rules"]), lease);
    assert_eq!(roles[0]["metadata"]["namespace"], NAMESPACE);
    assert_eq!(
        bindings(&objects),
        BTreeSet::from([
            named("ClusterRole", "nt-native-transfer", ""),
            named("Role", "nt-native-transfer-lease", NAMESPACE)
        ])
    );
}

#[test]
fn listed_namespaces_narrow_the_rights_to_them() {
    let objects = rendered(OPERATOR, &["rbac={\"aggregate\":false}", "watchNamespaces=[\"a\",\"b\"]"]);
    assert!(of_kind(&objects, "ClusterRole").is_empty());
    assert!(of_kind(&objects, "ClusterRoleBinding").is_empty());
    for role in of_kind(&objects, "Role").into_iter().filter(|role| role["metadata"]["namespace"] != NAMESPACE) {
        assert_eq!(table(&role["rules"]), operator_rights());
    }
    assert_eq!(
        bindings(&objects),
        BTreeSet::from([
            named("Role", "nt-native-transfer", "a"),
            named("Role", "nt-native-transfer", "b"),
            named("Role", "nt-native-transfer-lease", NAMESPACE)
        ])
    );
    let watched: Vec<String> =
        operator_arguments(&objects).into_iter().filter(|argument| argument.starts_with("--watch")).collect();
    assert_eq!(watched, ["--watch-namespace=a", "--watch-namespace=b"]);
}

#[test]
fn people_get_transfers_with_view_and_edit_and_never_a_status() {
    let objects = rendered(OPERATOR, &["rbac={\"create\":false}"]);
    let roles: BTreeMap<&str, &Value> = of_kind(&objects, "ClusterRole")
        .iter()
        .map(|role| (role["metadata"]["name"].as_str().unwrap(), *role))
        .collect();
    assert_eq!(roles.len(), 2);
    let view = roles["nt-native-transfer-view"];
    assert_eq!(table(&view["rules"]), expected(&[("transfer.dpone.io/nativetransfers", "get list watch")]));
    let edit = roles["nt-native-transfer-edit"];
    let verbs = "create update patch delete deletecollection";
    assert_eq!(table(&edit["rules"]), expected(&[("transfer.dpone.io/nativetransfers", verbs)]));
    let aggregated = |role: &Value| -> Vec<String> {
        let labels = role["metadata"]["labels"].as_object().unwrap();
        labels
            .keys()
            .filter_map(|key| key.strip_prefix("rbac.authorization.k8s.io/aggregate-to-"))
            .map(String::from)
            .collect()
    };
    assert_eq!(aggregated(view), ["admin", "edit", "view"]);
    assert_eq!(aggregated(edit), ["admin", "edit"]);
}

#[test]
fn the_operators_pod_passes_the_restricted_standard_and_more() {
    let objects = rendered(OPERATOR, &[]);
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    let security = &pod["securityContext"];
    assert_eq!(security["runAsNonRoot"], true);
    assert_eq!((&security["runAsUser"], &security["runAsGroup"]), (&json!(65532), &json!(65532)));
    assert_eq!(security["seccompProfile"], json!({"type": "RuntimeDefault"}));
    assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
    );
    assert_eq!(container["livenessProbe"]["httpGet"], json!({"path": "/healthz", "port": "http"}));
    assert_eq!(container["readinessProbe"]["httpGet"], json!({"path": "/readyz", "port": "http"}));
    assert!(container["resources"]["limits"]["memory"].is_string());
    assert!(container["env"].is_null() && container["envFrom"].is_null());
    for volume in pod["volumes"].as_array().unwrap() {
        assert!(volume["emptyDir"].is_object(), "{volume}");
    }
    for key in ["hostNetwork", "hostPID", "hostIPC"] {
        assert!(pod[key].is_null(), "{key}");
    }
    assert_eq!(of_kind(&objects, "ServiceAccount")[0]["automountServiceAccountToken"], false);
}

#[test]
fn one_operator_is_recreated_and_several_take_turns() {
    let strategy =
        |values: &[&str]| of_kind(&rendered(OPERATOR, values), "Deployment")[0]["spec"]["strategy"]["type"].clone();
    assert_eq!(strategy(&[]), "Recreate");
    assert_eq!(strategy(&["replicas=3"]), "RollingUpdate");
}

#[test]
fn images_are_named_by_digest_before_tag_and_workers_have_the_operators_unless_told() {
    let digest = format!("sha256:{}", "0f".repeat(32));
    let cases: [(&[&str], &str, &str); 5] = [
        (&[], "native-transfer:0.1.0", "native-transfer:0.1.0"),
        (&["image={\"tag\":\"x\"}"], "native-transfer:x", "native-transfer:x"),
        (
            &[&format!("image={{\"repository\":\"r.example.com/nt\",\"tag\":\"x\",\"digest\":\"{digest}\"}}")],
            &format!("r.example.com/nt@{digest}"),
            &format!("r.example.com/nt@{digest}"),
        ),
        (&["worker={\"image\":{\"tag\":\"w\"}}"], "native-transfer:0.1.0", "native-transfer:w"),
        (&["worker={\"image\":{\"repository\":\"other\"}}"], "native-transfer:0.1.0", "other:0.1.0"),
    ];
    for (values, operator, worker) in cases {
        let objects = rendered(OPERATOR, values);
        let container = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], operator, "{values:?}");
        assert!(operator_arguments(&objects).contains(&format!("--worker-image={worker}")), "{values:?}");
    }
    let arguments = operator_arguments(&rendered(
        OPERATOR,
        &[
            "worker={\"image\":{\"pullPolicy\":\"Never\"},\"imagePullSecrets\":[\"p\",\"q\"],\"allowedImagePrefixes\":[\"r.example.com/t\"]}",
        ],
    ));
    assert_eq!(
        arguments,
        [
            "run",
            "--worker-image=native-transfer:0.1.0",
            "--worker-image-pull-policy=Never",
            "--worker-image-pull-secret=p",
            "--worker-image-pull-secret=q",
            "--allowed-worker-image-prefix=r.example.com/t",
            "--lease-namespace=nt-system",
            "--lease-name=nt-native-transfer",
            "--listen=0.0.0.0:8081"
        ]
    );
}

#[test]
fn network_policies_are_there_only_when_asked_for() {
    assert!(of_kind(&rendered(OPERATOR, &[]), "NetworkPolicy").is_empty());
    let objects = rendered(OPERATOR, &["networkPolicy={\"enabled\":true}", "watchNamespaces=[\"a\"]"]);
    let policies = of_kind(&objects, "NetworkPolicy");
    let places: Vec<&Value> = policies.iter().map(|policy| &policy["metadata"]["namespace"]).collect();
    assert_eq!(places, [NAMESPACE, "a"]);
    assert_eq!(policies[0]["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    // Whoever may speak to a worker carries the labels of the operator's own pod.
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["metadata"]["labels"];
    for (key, value) in policies[1]["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"].as_object().unwrap()
    {
        assert_eq!(&pod[key], value);
    }
}

#[test]
fn values_that_mean_nothing_are_refused() {
    for value in [
        "imagee={}",
        "image={\"repo\":\"x\"}",
        "image={\"repository\":\"\"}",
        "image={\"digest\":\"sha256:12\"}",
        "image={\"pullPolicy\":\"Sometimes\"}",
        "worker={\"resources\":{}}",
        "worker={\"allowedImagePrefixes\":[\"\"]}",
        "worker={\"allowedImagePrefixes\":[\"a:\"]}",
        "watchNamespaces=\"a\"",
        "watchNamespaces=[\"A\"]",
        "watchNamespaces=[\"a\",\"a\"]",
        "replicas=\"1\"",
        "replicas=-1",
        "rbac={\"secrets\":true}",
        "serviceAccount={\"create\":\"yes\"}",
        "resources={\"limits\":{\"gpu\":1}}",
        "networkPolicy={\"enabled\":1}",
        "podLabels={\"a\":1}",
    ] {
        let output = helm(&["template", RELEASE, OPERATOR, "--kube-version", KUBERNETES, "--set-json", value]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && text.contains("don't meet the specifications of the schema"),
            "{value}: {text}"
        );
    }
    let output = helm(&["template", RELEASE, CRDS, "--kube-version", KUBERNETES, "--set-json", "anything=1"]);
    assert!(!output.status.success());
}

/// The same value with every number in one form: helm writes 0.0 as 0.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(entries) => entries.iter().map(|(key, entry)| (key.clone(), plain(entry))).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_chart_of_definitions_holds_those_of_the_repository() {
    let files: BTreeSet<PathBuf> =
        fs::read_dir(repository().join("crds")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let definitions: Vec<Value> = files.iter().flat_map(|file| documents(&fs::read_to_string(file).unwrap())).collect();
    assert!(!definitions.is_empty());
    let mut objects = rendered(CRDS, &[]);
    for object in &mut objects {
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        assert_eq!(annotations.remove("helm.sh/resource-policy").unwrap(), "keep");
        // A client-side apply would keep a second copy in an annotation, and annotations end at 256 KiB.
        assert_eq!(annotations["argocd.argoproj.io/sync-options"], "ServerSideApply=true");
    }
    let plain = |objects: &[Value]| objects.iter().map(self::plain).collect::<Vec<_>>();
    assert_eq!(plain(&objects), plain(&definitions));
}
