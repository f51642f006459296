use serde_json::json;

use super::*;
use crate::crd::spec::{RetentionSpec, RunSpec};
use crate::crd::tests::example;

fn defaults() -> Defaults {
    Defaults {
        image: "native-transfer:test".to_owned(),
        image_pull_policy: Some(ImagePullPolicy::Never),
        image_pull_secrets: Vec::new(),
        allowed_images: vec![ImagePrefix::new("registry.example/team").expect("a prefix")],
    }
}

fn refused(transfer: &NativeTransfer) -> String {
    validate(transfer, &defaults()).expect_err("refused").code.to_string()
}

/// The example with one change of its spec.
fn changed(change: impl FnOnce(&mut NativeTransferSpec)) -> NativeTransfer {
    let mut transfer = example("flights-day.yaml");
    change(&mut transfer.spec);
    transfer
}

#[test]
fn an_example_is_accepted_with_its_effective_values() {
    let accepted = validate(&example("flights-day.yaml"), &defaults()).expect("accepted");
    assert_eq!(accepted.token, "1");
    assert_eq!(accepted.effective.source.as_deref(), Some("air.flights"));
    assert_eq!(accepted.effective.target.as_deref(), Some("dbo.flights"));
    assert_eq!(accepted.effective.strategy.as_deref(), Some("partition_replace"));
    assert_eq!(accepted.effective.source_mode.as_deref(), Some("exact_raw_rows"));
    assert!(accepted.effective.window_start.as_deref().is_some_and(|start| start.starts_with("2013-07-04")));
    assert!(accepted.effective.window_end.as_deref().is_some_and(|end| end.starts_with("2013-07-05")));
    assert_eq!(accepted.effective.attempts, Some(1));
    assert_eq!(accepted.effective.backoff_seconds, Some(10));
    assert_eq!(accepted.effective.deadline_seconds, None);
    assert_eq!(accepted.effective.image.as_deref(), Some("native-transfer:test"));
    assert_eq!(accepted.settings.access_mode, AccessMode::ReadWriteOncePod);
    assert_eq!(accepted.settings.image_pull_policy, Some(ImagePullPolicy::Never));
}

#[test]
fn the_plan_is_the_one_of_the_command_line() {
    for name in ["flights-day.yaml", "flights-full-refresh.yaml"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/");
        let text = std::fs::read_to_string(format!("{folder}{name}")).expect("example");
        let command_line = contract::manifest::parse(&text, None, None).expect("a plan");
        let (frozen, plan) = plan(&example(name)).expect("a plan");
        assert_eq!(plan, command_line, "{name}");
        assert_eq!(FrozenPlan::parse(frozen.text().as_bytes()).expect("a frozen plan").sha256(), frozen.sha256());
    }
}

#[test]
fn what_is_outside_of_manifest_and_interval_is_not_in_the_plan() {
    let digest = |transfer: &NativeTransfer| plan(transfer).expect("a plan").0.sha256();
    let base = digest(&example("flights-day.yaml"));
    let other = changed(|spec| {
        spec.suspend = Some(true);
        spec.run = Some(RunSpec { token: "7".to_owned() });
        spec.connections.target.secret_ref.name = "other".to_owned();
        spec.limits = Some(LimitsSpec { attempts: Some(3), ..LimitsSpec::default() });
    });
    assert_eq!(digest(&other), base);
    let interval = changed(|spec| {
        spec.interval.as_mut().expect("an interval").end = "2013-07-06T00:00:00Z".to_owned();
    });
    assert_ne!(digest(&interval), base);
}

#[test]
fn a_bad_manifest_is_refused_with_code_and_text_of_the_command_line() {
    let at = |path: &'static str, value: serde_json::Value| {
        changed(move |spec| {
            let mut manifest = serde_json::Value::Object(std::mem::take(&mut spec.manifest.0));
            let (parent, key) = path.rsplit_once('/').expect("a pointer");
            manifest.pointer_mut(parent).expect("a parent")[key] = value;
            spec.manifest = serde_json::from_value(manifest).expect("an object");
        })
    };
    let cases = [
        (at("/surprise", json!(1)), "native_transfer.unknown_key:surprise"),
        (at("/sink/strategy/modus", json!("x")), "native_transfer.unknown_key:sink.strategy.modus"),
        (
            at("/sink/options/physical_design/columns/distance/size", json!(8)),
            "native_transfer.unknown_key:sink.options.physical_design.columns.distance.size",
        ),
        (at("/source/options/query_seconds", json!(0)), "native_transfer.invalid_query_seconds"),
        (at("/source/type", json!("postgres")), "mssql_native.route_unsupported"),
        (
            at("/source/options/native_transfer/execution/native_chunks/max_rows", json!(0)),
            "mssql_native.invalid_limit:max_rows",
        ),
        (changed(|spec| spec.interval = None), "mssql_native.window_interval_required"),
        (changed(|spec| spec.manifest = Manifest::default()), "native_transfer.manifest_invalid:source"),
        (
            at("/source/options/native_transfer/execution/import_backend", json!("bcp")),
            "mssql_native.composition_required",
        ),
    ];
    for (transfer, code) in cases {
        assert_eq!(refused(&transfer), code);
        // The same resource as a file.
        let text = serde_json::to_string(&json!({
            "apiVersion": "transfer.dpone.io/v1alpha1", "kind": "NativeTransfer",
            "metadata": {"name": transfer.metadata.name}, "spec": transfer.spec,
        }));
        let file = contract::manifest::parse(&text.expect("json"), None, None).and_then(|plan| plan.require_runnable());
        let operator = validate(&transfer, &defaults()).expect_err("refused");
        assert_eq!(file.expect_err("refused"), operator);
    }
}

#[test]
fn a_manifest_that_cannot_travel_is_refused() {
    let large = changed(|spec| {
        spec.manifest.0.insert("description".to_owned(), "x".repeat(70_000).into());
    });
    assert_eq!(refused(&large), "native_transfer.frozen_plan_too_large");
}

#[test]
fn fields_beside_the_manifest_are_named_when_they_are_wrong() {
    let limits = |limits: LimitsSpec| changed(|spec| spec.limits = Some(limits));
    let deadline = |text: &str| limits(LimitsSpec { deadline: Some(text.to_owned()), ..LimitsSpec::default() });
    for text in ["", "P", "PT", "1h", "PT0S", "PT0.5S", "P367D", "P99999999999D", "-PT1S", "P1M"] {
        assert_eq!(refused(&deadline(text)), "native_transfer.resource_field_invalid:spec.limits.deadline", "{text}");
    }
    let backoff = limits(LimitsSpec { backoff: Some("soon".to_owned()), ..LimitsSpec::default() });
    assert_eq!(refused(&backoff), "native_transfer.resource_field_invalid:spec.limits.backoff");
    for attempts in [0, -1, 101] {
        let attempts = limits(LimitsSpec { attempts: Some(attempts), ..LimitsSpec::default() });
        assert_eq!(refused(&attempts), "native_transfer.resource_field_invalid:spec.limits.attempts");
    }
    let retention = changed(|spec| spec.retention = Some(RetentionSpec { worker_pods: Some("x".to_owned()) }));
    assert_eq!(refused(&retention), "native_transfer.resource_field_invalid:spec.retention.workerPods");
    let size = |size: &str| changed(|spec| spec.journal.size = size.to_owned());
    assert_eq!(refused(&size("big")), "native_transfer.resource_field_invalid:spec.journal.size");
    assert_eq!(refused(&size("1Gi")), "native_transfer.journal_too_small");
    assert!(validate(&size("1.1Gi"), &defaults()).is_ok());
}

#[test]
fn resources_are_quantities_and_requests_stay_within_limits() {
    let memory = |request: &str, limit: &str| {
        let amount = |text: &str| Some(ResourceAmounts { memory: Some(text.to_owned()), ..ResourceAmounts::default() });
        let resources = ResourcesSpec { requests: amount(request), limits: amount(limit) };
        changed(|spec| spec.workers = Some(WorkersSpec { resources: Some(resources), ..WorkersSpec::default() }))
    };
    assert!(validate(&memory("1Gi", "1Gi"), &defaults()).is_ok());
    let path = "native_transfer.resource_field_invalid:spec.workers.resources";
    assert_eq!(refused(&memory("2Gi", "1Gi")), format!("{path}.requests.memory"));
    assert_eq!(refused(&memory("1Gi", "lots")), format!("{path}.limits.memory"));
    assert_eq!(refused(&memory("0", "1Gi")), format!("{path}.requests.memory"));
}

#[test]
fn authored_limits_are_effective() {
    let transfer = changed(|spec| {
        spec.limits =
            Some(LimitsSpec { deadline: Some("PT6H".to_owned()), attempts: Some(3), backoff: Some("PT1M".to_owned()) });
        spec.run = None;
        spec.workers = Some(WorkersSpec {
            image: Some("registry.example/team/mine@sha256:1".to_owned()),
            ..WorkersSpec::default()
        });
    });
    let accepted = validate(&transfer, &defaults()).expect("accepted");
    assert_eq!(accepted.token, TOKEN_DEFAULT);
    assert_eq!(accepted.effective.deadline_seconds, Some(21_600));
    assert_eq!(accepted.effective.attempts, Some(3));
    assert_eq!(accepted.effective.backoff_seconds, Some(60));
    assert_eq!(accepted.settings.image, "registry.example/team/mine@sha256:1");
    // The operator's pull policy belongs to the operator's image.
    assert_eq!(accepted.settings.image_pull_policy, None);
}

#[test]
fn an_image_is_refused_unless_the_operator_allows_it() {
    let with = |image: &str| {
        let workers = WorkersSpec { image: Some(image.to_owned()), ..WorkersSpec::default() };
        validate(&changed(|spec| spec.workers = Some(workers)), &defaults())
    };
    for image in ["native-transfer:test", "registry.example/team/worker:1"] {
        assert_eq!(with(image).expect("accepted").settings.image, image);
    }
    for image in ["native-transfer:other", "registry.example/teams/worker:1", "evil"] {
        assert_eq!(
            with(image).expect_err("refused").code.to_string(),
            "native_transfer.worker_image_refused",
            "{image}"
        );
    }
}

#[test]
fn a_prefix_of_images_ends_at_a_part_of_the_name() {
    let digest = format!("registry.example/a@sha256:{}", "0".repeat(64));
    let rows = [
        ("registry.example/a", "registry.example/a", true),
        ("registry.example/a", "registry.example/a/b:1", true),
        ("registry.example/a", "registry.example/a:1", true),
        ("registry.example/a", &digest, true),
        ("registry.example/a", "registry.example/ab", false),
        ("registry.example/a", "registry.example/a-b:1", false),
        ("registry.example/a", "registry.example/A", false),
        ("registry.example/a/", "registry.example/a/b", true),
        ("registry.example/a/", "registry.example/a", false),
        ("registry.example/a/", "registry.example/a:1", false),
        ("registry.example", "registry.example/b", true),
        ("registry.example", "registry.example.evil/b", false),
        ("registry.example", "registry.example:5000/b", false),
        ("registry.example:5000", "registry.example:5000/b", true),
        ("registry.example:5000", "registry.example:50001/b", false),
        ("registry.example/a:1", "registry.example/a:1", true),
        ("registry.example/a:1", "registry.example/a:10", false),
        ("worker", "worker:1", true),
        ("worker", "worker/other:1", false),
        ("worker", "other.example/worker:1", false),
    ];
    for (prefix, image, expected) in rows {
        assert_eq!(ImagePrefix::new(prefix).expect("a prefix").has(image), expected, "{prefix} and {image}");
    }
    for bad in ["", " ", "a b", "a:", "a@", "/"] {
        assert!(ImagePrefix::new(bad).is_err(), "{bad:?}");
    }
}
