//! What a worker pod has, and what it has not.

use std::fs;

use e2e::{Case, process};
use servers::sqlserver::control::{Breakpoint, Then, When};
use testkit::ends::{SOURCE_PASSWORD, TARGET_PASSWORD};

pub(crate) fn a_worker_has_no_token_no_capability_and_no_secret_in_sight() {
    let mut case = Case::new("pods");
    case.table("t", 100);
    let held = case.hold(Breakpoint::hold("", When::Rows(10)).on_bulk().nth(2));
    case.apply(&case.document("t"));
    case.until_held(held);
    let uid = case.get("t")["metadata"]["uid"].as_str().expect("a UID").to_owned();
    let pids = process::find(&["native-transfer extract", &format!("--run-id {uid}/")]);
    assert_eq!(pids.len(), 1, "one worker");
    let folder = format!("/proc/{}", pids[0]);
    let status = fs::read_to_string(format!("{folder}/status")).expect("a process");
    let line = |key: &str| {
        status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim).unwrap_or_default().to_owned()
    };
    assert_eq!(line("Uid:").split_whitespace().collect::<Vec<_>>(), ["65532"; 4]);
    for capabilities in ["CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(line(capabilities), "0000000000000000", "{capabilities}");
    }
    assert_eq!((line("NoNewPrivs:").as_str(), line("Seccomp:").as_str()), ("1", "2"));
    let mounts = fs::read_to_string(format!("{folder}/mounts")).expect("mounts");
    let root = mounts.lines().find(|mount| mount.split(' ').nth(1) == Some("/")).expect("a root");
    assert!(root.split(' ').nth(3).is_some_and(|options| options.split(',').any(|option| option == "ro")), "{root}");
    assert!(!mounts.contains("serviceaccount"), "{mounts}");
    assert!(!fs::exists(format!("{folder}/root/var/run/secrets/kubernetes.io/serviceaccount/token")).expect("a look"));
    for file in ["environ", "cmdline"] {
        let text = String::from_utf8_lossy(&fs::read(format!("{folder}/{file}")).expect("a file")).into_owned();
        assert!(!text.contains(SOURCE_PASSWORD) && !text.contains(TARGET_PASSWORD), "{file}");
    }
    case.release(held, Then::GoOn);
    case.until("t", "the extraction's end", |object| object["status"]["custody"]["rows"] == 100);
    let pods = case.kubectl().json(&["get", "pods", "-n", &case.namespace]).to_string();
    let names: Vec<String> =
        case.pods("extract").iter().map(|pod| pod["metadata"]["name"].as_str().expect("a name").to_owned()).collect();
    for name in &names {
        let logs = case.kubectl().run(&["logs", name, "-n", &case.namespace]);
        assert!(!logs.contains(SOURCE_PASSWORD) && !logs.contains(TARGET_PASSWORD), "{name}");
    }
    case.until_phase("t", "Succeeded");
    let transfer = case.get("t").to_string();
    let events = case.kubectl().json(&["get", "events", "-n", &case.namespace]).to_string();
    for (what, text) in [("pods", pods), ("the transfer", transfer), ("events", events)] {
        assert!(!text.contains(SOURCE_PASSWORD) && !text.contains(TARGET_PASSWORD), "a password in {what}");
    }
    case.assert_moved("t");
}
