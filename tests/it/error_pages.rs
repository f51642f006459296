//! Every stable code has a page, every page a code, and every code in the product's source stands in the table.
//! `UPDATE=1 cargo test -p testkit error_pages` rewrites the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use contract::code::CodeEntry;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn table() -> Vec<CodeEntry> {
    contract::code::all().iter().chain(contract::code_ports::PORT_CODES).copied().collect()
}

fn page(entry: &CodeEntry) -> String {
    format!("# `{}`\n\n{}\n\n## What to do\n\n{}\n", entry.code, entry.meaning, entry.remedy)
}

#[test]
fn every_code_has_its_page() {
    let folder = root().join("docs/reference/errors");
    let expected: BTreeMap<String, String> =
        table().iter().map(|entry| (format!("{}.md", entry.code), page(entry))).collect();
    assert_eq!(expected.len(), table().len(), "a code stands twice in the table");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(&folder).expect("folder");
        for entry in fs::read_dir(&folder).expect("folder").flatten() {
            fs::remove_file(entry.path()).expect("remove");
        }
        for (name, text) in &expected {
            fs::write(folder.join(name), text).expect("write");
        }
    }
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&folder).expect("docs/reference/errors").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        found.insert(name, fs::read_to_string(entry.path()).expect("page"));
    }
    assert_eq!(found, expected, "run with UPDATE=1 and commit the pages");
}

/// Texts in quotes that look like a stable code of ours.
fn codes_in(source: &str) -> BTreeSet<String> {
    let prefixes = ["mssql_native.", "native_transfer.", "mssql_transaction."];
    source
        .split('"')
        .filter(|text| prefixes.iter().any(|prefix| text.starts_with(prefix) && text.len() > prefix.len()))
        .filter(|text| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':')))
        .map(|text| text.split(':').next().unwrap_or(text).to_string())
        .collect()
}

/// Texts of the same form that are no codes of errors: diagnostics of writer events and blockers of plans.
const DIAGNOSTICS: [&str; 9] = [
    "mssql_native.live_preflight_not_run",
    "mssql_native.live_preflight_required",
    "mssql_native.partial_stage_proved",
    "mssql_native.stage_observation_failed",
    "mssql_native.stage_verified",
    "mssql_native.verified",
    "mssql_native.writer_failed",
    "mssql_native.writer_terminal",
    "mssql_native.writer_uncertain",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Codes of a source text that the table lacks.
fn unlisted(source: &str) -> Vec<String> {
    let known: BTreeSet<&str> = table().iter().map(|entry| entry.code).collect();
    codes_in(source)
        .into_iter()
        .filter(|code| !known.contains(code.as_str()) && !DIAGNOSTICS.contains(&code.as_str()))
        .collect()
}

#[test]
fn every_code_in_the_source_stands_in_the_table() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    sources(&root().join("operator/src"), &mut files);
    assert!(files.len() > 50, "the source is where it is looked for");
    let mut missing = BTreeSet::new();
    for file in files.iter().filter(|file| !file.to_string_lossy().contains("/it/")) {
        missing.extend(unlisted(&fs::read_to_string(file).expect("source")));
    }
    assert_eq!(missing, BTreeSet::new());
}

#[test]
fn a_planted_code_is_found() {
    assert_eq!(unlisted(r#"refuse("native_transfer.planted_code", "x")"#), ["native_transfer.planted_code"]);
}

/// A guide names codes that exist, and every code of reading a source.
#[test]
fn the_source_guide_has_every_code_of_the_source() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a document");
    let guide = read("docs/guide/source-troubleshooting.md") + &read("docs/reference/source.md");
    let table: BTreeSet<&str> = table().iter().map(|entry| entry.code).collect();
    let named: BTreeSet<&str> = guide.split('`').skip(1).step_by(2).collect();
    let unknown: Vec<&&str> = named
        .iter()
        .filter(|name| name.starts_with("mssql_native.") || name.starts_with("native_transfer."))
        .filter(|name| !table.contains(**name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    // Of plans and of the target, by their place in the table.
    let elsewhere = [
        "mssql_native.source_EOF_required",
        "mssql_native.source_options_invalid",
        "mssql_native.source_policy_unsupported",
    ];
    let missing: Vec<&&str> = table
        .iter()
        .filter(|code| code.starts_with("mssql_native.source_") || code.starts_with("native_transfer.source_"))
        .filter(|code| !elsewhere.contains(code) && !named.contains(**code))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Links between documents lead somewhere.
#[test]
fn links_between_documents_lead_to_files() {
    let mut folders = vec![root().join("docs")];
    let mut documents = vec![root().join("README.md")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|extension| extension == "md") => documents.push(path),
                _ => {}
            }
        }
    }
    let mut checked = 0;
    for document in documents {
        let text = fs::read_to_string(&document).expect("a document");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.contains(' ') {
                continue;
            }
            checked += 1;
            assert!(document.with_file_name(file).exists(), "{}: {target}", document.display());
        }
    }
    assert!(checked > 20, "only {checked} links were seen");
}
