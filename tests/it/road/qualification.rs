//! `bench --qualify`: reads of an unchanged source agree with each other and with a run, drift is named, nothing is left.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::kit::{Ended, FULL_REFRESH, RAW, Road, VISIBLE, binary, manifest, source};

fn bench(road: &Road, manifest: &Path, trials: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(["bench", "--qualify", "--output", "json", "--trials", trials, "-f"]).arg(manifest);
    command.arg("--connections").arg(road.connections()).arg("--scratch").arg(road.path());
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn leftovers(road: &Road) -> Vec<String> {
    let entries = std::fs::read_dir(road.path()).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("native-transfer-bench-")).collect()
}

#[test]
fn trials_of_an_unchanged_source_qualify_it_and_publish_nothing() {
    let mut road = Road::new("qualify_same");
    road.flights("ReplacingMergeTree", 200);
    road.plant(-1, "2001-01-01");
    let path = road.manifest(&manifest("qualify_same", RAW, FULL_REFRESH));
    let ended = Ended::of(bench(&road, &path, "3").spawn().expect("the product starts"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = ended.json();
    assert_eq!(said["verdict"].as_str(), Some("qualified"), "{said}");
    assert_eq!(said["warm_up"]["rows"].as_u64(), Some(200), "{said}");
    let trials = said["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 3);
    for trial in trials {
        assert_eq!((&trial["excluded"], trial["rows"].as_u64()), (&Value::Null, Some(200)), "{said}");
        assert_eq!(trial["typed_digest"], trials[0]["typed_digest"]);
    }
    assert!(said["wall_seconds"]["median"].as_f64().is_some_and(|seconds| seconds > 0.0), "{said}");
    assert!(said["rows_per_second"]["median_absolute_deviation"].is_number(), "{said}");
    // One SELECT for each read, and not a statement that changes the target.
    assert_eq!(source().times_asked(&["dpone-native-", "FROM `qualify_same`.`t`"]), 4);
    assert_eq!(road.target_content().len(), 1);
    assert_eq!(road.target.stages(), Vec::<String>::new());
    assert_eq!(road.target.custody(), Vec::<String>::new());
    assert_eq!(leftovers(&road), Vec::<String>::new());
    // A run that publishes has the digest of the trials in its evidence.
    assert_eq!(road.run(&path, "run-1").code, Some(0));
    let kept = road.target.value("SELECT document FROM dpone.native_transfer_evidence");
    let kept: Value = serde_json::from_str(&kept).expect("a document");
    assert_eq!(kept["native_transfer_v1"]["typed_digest"], trials[0]["typed_digest"]);
}

#[test]
fn drift_excludes_trials_and_says_why() {
    let mut road = Road::new("qualify_drift");
    road.flights("ReplacingMergeTree", 50);
    let path = road.manifest(&manifest("qualify_drift", RAW, FULL_REFRESH));
    let mut child = bench(&road, &path, "12").spawn().expect("the product starts");
    // Once the first trial has ended the source changes; of twelve trials more than one comes after that.
    let mut errors = BufReader::new(child.stderr.take().expect("piped")).lines();
    assert!(errors.any(|line| line.expect("text").starts_with("trial 1: ")), "the first trial ends");
    source().run("INSERT INTO qualify_drift.t VALUES (1, 'later', 1, '2013-07-04 00:00:00')");
    let rest = std::thread::spawn(move || errors.map_while(Result::ok).collect::<Vec<_>>());
    let ended = Ended::of(child);
    let errors = rest.join().expect("the reader ends");
    let said = ended.json();
    let trials = said["trials"].as_array().expect("trials");
    let (counting, excluded): (Vec<_>, Vec<_>) = trials.iter().partition(|trial| trial["excluded"].is_null());
    assert_eq!(trials.len(), 12);
    assert!(counting.iter().all(|trial| trial["rows"].as_u64() == Some(50)), "{said}");
    let words = ["drift_during_trial", "drift_between_trials"];
    assert!(
        excluded.iter().all(|trial| trial["excluded"].as_str().is_some_and(|word| words.contains(&word))),
        "{said}"
    );
    assert!(excluded.iter().any(|trial| trial["rows"].as_u64() == Some(51)), "{said}");
    // Few or many came before the change; the verdict says which.
    let expected = if counting.len() < 3 { ("too_few_trials", Some(1)) } else { ("qualified", Some(0)) };
    assert_eq!((said["verdict"].as_str().expect("a verdict"), ended.code), expected, "{said}");
    if counting.len() < 3 {
        assert!(errors.iter().any(|line| line.contains("native_transfer.qualification_drifted")), "{errors:?}");
        assert_eq!(said["error"]["code"].as_str(), Some("native_transfer.qualification_drifted"));
    }
    assert_eq!(leftovers(&road), Vec::<String>::new());
}

#[test]
fn what_cannot_be_qualified_is_refused_before_any_read() {
    let mut road = Road::new("qualify_refused");
    road.flights("MergeTree", 5);
    let visible = road.manifest(&manifest("qualify_refused", VISIBLE, FULL_REFRESH));
    let raw = road.manifest(&manifest("qualify_refused", RAW, FULL_REFRESH));
    for (path, trials) in [(&visible, "3"), (&raw, "2"), (&raw, "101")] {
        let ended = Ended::of(bench(&road, path, trials).spawn().expect("the product starts"));
        assert_eq!(
            (ended.code, ended.refusal().as_str()),
            (Some(1), "native_transfer.qualification_unsupported"),
            "{ended:?}"
        );
    }
    assert_eq!(source().times_asked(&["FROM `qualify_refused`.`t`"]), 0);
    assert_eq!(leftovers(&road), Vec::<String>::new());
}
