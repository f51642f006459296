//! The definition as the API server gets it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{FILE, NativeTransfer, native_transfer, yaml};

/// Largest definition: client-side apply would keep all of it in an annotation of 256 KiB (facts/operators.md 2).
const FILE_BYTES_MAX: usize = 200 << 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The schema of the one version.
pub(super) fn schema() -> Value {
    let definition = serde_json::to_value(native_transfer().expect("definition")).expect("json");
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// A resource of `docs/examples`.
pub(crate) fn example(name: &str) -> NativeTransfer {
    let text = std::fs::read_to_string(root().join("docs/examples").join(name)).expect("example");
    serde_norway::from_str(&text).expect("a NativeTransfer")
}

fn walk(node: &Value, path: &str, visit: &mut dyn FnMut(&Value, &str)) {
    visit(node, path);
    for (key, child) in node["properties"].as_object().into_iter().flatten() {
        walk(child, &format!("{path}.{key}"), visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if node[key].is_object() {
            walk(&node[key], &format!("{path}{mark}"), visit);
        }
    }
}

#[test]
fn the_file_is_what_the_command_prints() {
    let path = root().join("crds").join(FILE);
    let text = yaml().expect("yaml");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(root().join("crds")).expect("folder");
        std::fs::write(&path, &text).expect("write");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "crds/{FILE} differs from the types: run with UPDATE=1 and commit it");
    assert!(text.len() < FILE_BYTES_MAX, "{} bytes", text.len());
}

#[test]
fn the_definition_reads_back() {
    let text = yaml().expect("yaml");
    let read: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
        serde_norway::from_str(&text).expect("a definition");
    assert_eq!(read, native_transfer().expect("definition"));
}

#[test]
fn every_text_list_and_map_is_bounded() {
    walk(&schema(), "", &mut |node, path| {
        // The API server knows the schema of metadata itself.
        if path.starts_with(".metadata") || path == ".apiVersion" || path == ".kind" {
            return;
        }
        let bounded = match node["type"].as_str() {
            Some("string") => node["maxLength"].is_number() || node["enum"].is_array() || node["format"] == "date-time",
            Some("array") => node["maxItems"].is_number(),
            Some("object") if node["additionalProperties"].is_object() => node["maxProperties"].is_number(),
            _ => true,
        };
        assert!(bounded, "{path} has no bound");
    });
}

#[test]
fn nothing_in_spec_has_a_default() {
    walk(&schema()["properties"]["spec"], "spec", &mut |node, path| {
        assert!(node["default"].is_null(), "{path} has a default, which a GitOps tool would call drift");
    });
}

#[test]
fn the_api_server_knows_every_format() {
    walk(&schema(), "", &mut |node, path| {
        let known = [Value::Null, "int32".into(), "int64".into(), "date-time".into(), "double".into()];
        assert!(known.contains(&node["format"]), "{path} has format {}", node["format"]);
    });
}

#[test]
fn the_manifest_is_typed_described_and_keeps_unknown_keys() {
    let mut objects = 0;
    walk(&schema()["properties"]["spec"]["properties"]["manifest"], "manifest", &mut |node, path| {
        for key in ["enum", "minimum", "maximum", "required", "pattern", "minLength", "format"] {
            assert!(node[key].is_null(), "{path} has {key}: the code would be the API server's and not the contract's");
        }
        assert!(node["description"].is_string(), "{path} is not described");
        match node["type"].as_str() {
            Some("object") if node["additionalProperties"].is_object() => {}
            Some("object") | None => {
                objects += 1;
                assert_eq!(node["x-kubernetes-preserve-unknown-fields"], true, "{path} would prune");
            }
            Some(_) => {}
        }
    });
    assert!(objects > 20, "{objects}");
}

#[test]
fn every_described_key_of_the_manifest_is_one_that_the_contract_knows() {
    // A manifest that has every key of the schema is refused for its values, never for a key.
    fn fill(node: &Value) -> Value {
        if let Some(properties) = node["properties"].as_object() {
            return properties
                .iter()
                .map(|(key, child)| (key.clone(), fill(child)))
                .collect::<serde_json::Map<_, _>>()
                .into();
        }
        match node["type"].as_str() {
            Some("object") => serde_json::json!({"column": fill(&node["additionalProperties"])}),
            Some("integer") => 1.into(),
            _ => "text".into(),
        }
    }
    let mut transfer = example("flights-day.yaml");
    let filled = fill(&schema()["properties"]["spec"]["properties"]["manifest"]);
    transfer.spec.manifest = serde_json::from_value(filled).expect("an object");
    let refusal = crate::reconcile::validate::plan(&transfer).expect_err("values without sense");
    assert_eq!(refusal.code.as_str(), "mssql_native.wire_required");
}

#[test]
fn unknown_keys_of_the_manifest_survive_the_types() {
    let mut transfer = example("flights-day.yaml");
    transfer.spec.manifest.0.insert("surprise".to_owned(), serde_json::json!({"deep": [1, {"er": 1.5}]}));
    let text = serde_json::to_string(&transfer).expect("json");
    let read: NativeTransfer = serde_json::from_str(&text).expect("a NativeTransfer");
    assert_eq!(read, transfer);
}

#[test]
fn objects_of_others_are_read_with_exact_numbers_switched_on() {
    // serde_json's arbitrary_precision, which `contract` needs, has broken untagged numbers before.
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","generation":3},"spec":{"containers":
        [{"name":"sidecar","readinessProbe":{"httpGet":{"port":8080}}}]}}"#;
    let list =
        format!(r#"{{"apiVersion":"v1","kind":"PodList","metadata":{{"remainingItemCount":5}},"items":[{pod}]}}"#);
    let event = format!(r#"{{"type":"ADDED","object":{pod}}}"#);
    use k8s_openapi::api::core::v1::Pod;
    assert!(serde_json::from_str::<kube::core::ObjectList<Pod>>(&list).is_ok());
    assert!(serde_json::from_str::<kube::core::WatchEvent<Pod>>(&event).is_ok());
    assert!(serde_json::from_str::<kube::core::PartialObjectMeta<Pod>>(pod).is_ok());
}
