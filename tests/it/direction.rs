//! The direction of dependencies (docs/ARCHITECTURE.md) is law.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Members that a member may depend on, in code that ships.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    BTreeMap::from([
        ("contract", BTreeSet::new()),
        ("runtime", BTreeSet::from(["contract"])),
        ("journal-sqlite", BTreeSet::from(["contract"])),
        ("source-clickhouse", BTreeSet::from(["contract"])),
        ("sink-sqlserver", BTreeSet::from(["contract"])),
        ("cli", BTreeSet::from(["contract", "runtime", "journal-sqlite", "source-clickhouse", "sink-sqlserver"])),
        ("operator", BTreeSet::from(["contract"])),
        ("servers", BTreeSet::new()),
        ("testkit", BTreeSet::from(["contract", "runtime", "servers"])),
        ("e2e", BTreeSet::from(["operator", "testkit", "servers"])),
    ])
}

/// Registry crates that `contract` may use: no I/O, no clock, no randomness, no async runtime.
const CONTRACT_CRATES: [&str; 5] = ["num-bigint", "serde_json", "serde_norway", "sha2", "thiserror"];

/// A member with its dependencies: `(name, [(dependency, is a test dependency)])`.
type Member = (String, Vec<(String, bool)>);

/// Every edge that breaks the law, as `member -> dependency`.
fn violations(members: &[Member]) -> Vec<String> {
    let allowed = allowed();
    let names: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    let mut found = Vec::new();
    for (name, dependencies) in members {
        let Some(edges) = allowed.get(name.as_str()) else {
            found.push(format!("{name} is not a box of the design"));
            continue;
        };
        for (dependency, for_tests) in dependencies {
            let inside = names.contains(dependency.as_str());
            // Test code of a product crate may use the test kit; the test servers may use no member even there.
            let tests_may =
                *for_tests && name != "servers" && ["testkit", "servers", "contract"].contains(&dependency.as_str());
            let crates_may = name != "contract" || *for_tests || CONTRACT_CRATES.contains(&dependency.as_str());
            if (inside && !edges.contains(dependency.as_str()) && !tests_may) || (!inside && !crates_may) {
                found.push(format!("{name} -> {dependency}"));
            }
        }
    }
    found
}

fn members() -> Vec<Member> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata");
    metadata
        .packages
        .iter()
        .map(|package| {
            let edges = package.dependencies.iter();
            (package.name.to_string(), edges.map(|d| (d.name.clone(), d.kind == DependencyKind::Development)).collect())
        })
        .collect()
}

#[test]
fn members_depend_only_in_the_direction_of_the_design() {
    assert_eq!(violations(&members()), Vec::<String>::new());
}

#[test]
fn planted_violations_are_found() {
    let plant = |name: &str, dependency: &str, for_tests: bool| {
        let mut members = members();
        let member = members.iter_mut().find(|(n, _)| n == name).expect("member");
        member.1.push((dependency.to_string(), for_tests));
        violations(&members)
    };
    assert_eq!(plant("contract", "tokio", false), ["contract -> tokio"]);
    assert_eq!(plant("contract", "runtime", false), ["contract -> runtime"]);
    assert_eq!(plant("sink-sqlserver", "source-clickhouse", false), ["sink-sqlserver -> source-clickhouse"]);
    assert_eq!(plant("journal-sqlite", "runtime", true), ["journal-sqlite -> runtime"]);
    assert_eq!(plant("servers", "contract", true), ["servers -> contract"]);
    assert_eq!(plant("runtime", "sink-sqlserver", false), ["runtime -> sink-sqlserver"]);
    assert_eq!(plant("operator", "runtime", false), ["operator -> runtime"]);
}
