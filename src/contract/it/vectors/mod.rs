//! The vector harness: reads a file, runs each group's check on every case, lists the failing cases.

mod canonical;
mod case;
mod facts;
mod identity;
mod journal;
mod manifest;
mod names;
mod plan;
mod raw;
mod recovery;
mod rows;
mod types;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use case::{Case, Check, fail, same};

/// What a group of a file is checked by.
pub enum Run {
    /// A check of one case.
    Check(fn(&Case) -> Check),
    /// Not due or informative: why.
    Skip(&'static str),
}

/// The groups of one vector file.
pub struct File {
    /// Name without `.json`.
    pub name: &'static str,
    /// Every group the file may have.
    pub groups: &'static [(&'static str, Run)],
}

/// The vectors' folder.
pub fn folder() -> PathBuf {
    std::env::var_os("NT_VECTORS").map_or_else(default_folder, PathBuf::from)
}

fn default_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors")
}

/// Says something that the test runner does not swallow.
fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("standard output");
}

/// Checks one vector file, if the folder has it.
pub fn run(file: &File) {
    let path = folder().join(file.name).with_extension("json");
    if !path.exists() {
        say(&format!("absent: {} (not in the folder)", file.name));
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases = document["cases"].as_array().unwrap_or_else(|| panic!("{}: no cases", file.name));
    let differences = case::Differences::read(&default_folder().join("differences.json"));
    let mut groups: BTreeMap<&str, Vec<(usize, &Value)>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        groups.entry(case["group"].as_str().unwrap_or_default()).or_default().push((index, case));
    }
    let mut failures = Vec::new();
    for (group, cases) in groups {
        match file.groups.iter().find(|(name, _)| *name == group) {
            None => failures.push(format!("{}: unknown group {group:?} ({} cases)", file.name, cases.len())),
            Some((_, Run::Skip(reason))) => say(&format!("skipped: {} {group} ({reason})", file.name)),
            Some((_, Run::Check(check))) => {
                for (index, value) in cases {
                    let case = Case::new(index, differences.apply(file.name, value));
                    if let Err(failure) = check(&case).and_then(|()| case.all_read()) {
                        failures.push(format!("{} {group} {}: {failure}", file.name, case.name()));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Files that nothing here checks yet, each with its reason.
const NOT_CHECKED: &[(&str, &str)] = &[
    ("bulk_text_codec", "file staging, not due"),
    ("rowbinary", "file staging, not due"),
    ("validated_file_staging", "file staging, not due"),
    ("sqlite_journal", "informative: another journal layout"),
];

#[test]
fn files_without_checks_are_named() {
    assert!(folder().is_dir(), "NT_VECTORS names no folder: {}", folder().display());
    for (name, reason) in NOT_CHECKED {
        let path = folder().join(name).with_extension("json");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut groups: Vec<&str> =
            document["cases"].as_array().into_iter().flatten().filter_map(|case| case["group"].as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            say(&format!("skipped: {name} {group} ({reason})"));
        }
    }
}

#[test]
fn every_difference_is_explained() {
    let page = default_folder().join("../../docs/reference/differences.md");
    let page = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    for (file, group) in case::Differences::read(&default_folder().join("differences.json")).subjects() {
        assert!(page.contains(&format!("\n## {file}: {group}\n")), "no section for {file}: {group}");
    }
}
