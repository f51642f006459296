//! Every example of the documentation makes a plan.

use std::path::{Path, PathBuf};

use contract::manifest::{Plan, parse, processes};
use contract::plan_document;

/// The interval's end for examples that leave it to the caller.
const INTERVAL_END: &str = "2013-07-05T00:00:00Z";

/// Plans every process of every YAML file of a folder, or says which file fails and why.
fn plan_all(folder: &Path) -> Result<Vec<Plan>, String> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    files.sort();
    let mut plans = Vec::new();
    for file in files {
        let failed = |error: contract::error::Refusal| format!("{}: {error}", file.display());
        let text = std::fs::read_to_string(&file).expect("readable");
        for process in processes(&text).map_err(failed)? {
            let end = process.interval_end.is_none().then_some(INTERVAL_END);
            plans.push(parse(&text, Some(&process.selector), end).map_err(failed)?);
        }
    }
    Ok(plans)
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

#[test]
fn every_example_makes_a_runnable_plan() {
    let plans = plan_all(&examples()).unwrap_or_else(|error| panic!("{error}"));
    assert!(plans.len() >= 4, "the examples hold {} processes", plans.len());
    for plan in &plans {
        plan.require_runnable().unwrap_or_else(|refusal| panic!("{:?}: {refusal}", plan.name));
        let markdown = plan_document::markdown(&plan.clone().into());
        assert!(markdown.contains(&plan.route_fingerprint().to_string()), "{markdown}");
    }
    let kinds: std::collections::BTreeSet<bool> = plans.iter().map(|plan| plan.window().is_some()).collect();
    assert_eq!(kinds.len(), 2, "both strategies have an example");
}

/// The check above finds a broken example: it is run against a folder into which one has been planted.
#[test]
fn a_planted_broken_example_is_found() {
    let folder = std::env::temp_dir().join(format!("native-transfer-examples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary folder");
    let good = std::fs::read_to_string(examples().join("flights-day.yaml")).expect("example");
    let broken = good.replace("lookback: P1D", "lookback: P1M");
    assert_ne!(good, broken, "the example still has the text that is broken here");
    std::fs::write(folder.join("good.yaml"), &good).expect("written");
    std::fs::write(folder.join("planted.yaml"), broken).expect("written");
    let verdict = plan_all(&folder);
    std::fs::remove_dir_all(&folder).expect("removed");
    let error = verdict.expect_err("the planted example is refused");
    assert!(error.contains("planted.yaml: rolling_window_duration_invalid"), "{error}");
}
