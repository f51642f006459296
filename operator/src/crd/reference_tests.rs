//! docs/reference/api.md is made from the types: fields from the schema, words from the enums, rules from their table.
//! `UPDATE=1 cargo test -p operator reference` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::condition::{ConditionType, Reason};
use super::rules::RULES;
use super::tests::schema;

/// What a reader needs before the tables.
const HEAD: &str = "\
# NativeTransfer, `transfer.dpone.io/v1alpha1`

This page is made from the types of `operator/src/crd`; `UPDATE=1 cargo test -p operator reference` rewrites it.
Short name `ntr`, category `transfer`, namespaced, status is a subresource, field selector `status.phase`.

- **Nothing has a default in the schema.** What applies where a field is absent is shown in `status.effective`.
- **`manifest` is one process of a `dpone.batch.v1` manifest.** The API server checks JSON types only; the operator judges the
  rest with the code of the command line and tells it in the condition `Accepted`: code, colon, text. Keys that this route does not
  know are kept by the API server and refused by the operator by name. Every code has a page under `errors/`.
- **Other content is another transfer.** `manifest` and `interval` cannot change. `suspend`, `run.token`, `connections.*.secretRef`,
  `workers`, `limits`, `retention` and `journal.size` (upwards) can; they apply from the next pod on.
- **Durations** are fixed ISO 8601 durations of whole seconds (`PT30S`, `PT6H`, `P1D`), at most `P366D`.
- **Wait for it**: `kubectl wait --for=condition=Published ntr/NAME`. `Published` is `Unknown` when nobody knows the outcome.
";

/// Codes of the operator's own checks.
const CODES: &str = "\
## Codes of the fields beside the manifest

| code | when |
|---|---|
| [`native_transfer.resource_field_invalid:PATH`](errors/native_transfer.resource_field_invalid.md) | a duration, quantity or number is out of its grammar or range, or a request is above its limit |
| [`native_transfer.journal_too_small`](errors/native_transfer.journal_too_small.md) | `journal.size` is below the chunks in flight and 1 GiB |
| [`native_transfer.frozen_plan_too_large`](errors/native_transfer.frozen_plan_too_large.md) | the manifest has more than 64 KiB of canonical JSON |
| [`native_transfer.frozen_plan_invalid`](errors/native_transfer.frozen_plan_invalid.md) | the manifest holds a control character or a number that its reader would not give back |
";

/// Text of a table's cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn kind(node: &Value) -> String {
    let words = node["enum"].as_array().map(|words| {
        let words = words.iter().filter_map(Value::as_str);
        words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    });
    match (words, node["type"].as_str(), node["format"].as_str()) {
        (Some(words), ..) => words,
        (None, Some("string"), Some("date-time")) => "time".to_owned(),
        (None, Some("array"), _) => format!("list of {}", kind(&node["items"])),
        (None, Some("object"), _) if node["additionalProperties"].is_object() => {
            format!("map of {}", kind(&node["additionalProperties"]))
        }
        (None, Some(kind), _) => kind.to_owned(),
        (None, None, _) => "any".to_owned(),
    }
}

fn rows(page: &mut String, node: &Value, path: &str) {
    let required = node["required"].as_array();
    for (key, child) in node["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        let needed = required.is_some_and(|keys| keys.iter().any(|required| required == key));
        let description = cell(child["description"].as_str().unwrap_or_default());
        let mark = if needed { ", required" } else { "" };
        let _ = writeln!(page, "| `{path}` | {}{mark} | {description} |", kind(child));
        // Types of Kubernetes itself are documented there.
        if ["tolerations", "conditions"].contains(&key.as_str()) {
            continue;
        }
        rows(page, child, &path);
        rows(page, &child["items"], &format!("{path}[]"));
        rows(page, &child["additionalProperties"], &format!("{path}.*"));
    }
}

fn words(page: &mut String, title: &str, words: impl Iterator<Item = (&'static str, &'static str)>) {
    let _ = writeln!(page, "\n## {title}\n\n| word | meaning |\n|---|---|");
    for (word, meaning) in words {
        let _ = writeln!(page, "| `{word}` | {} |", cell(meaning));
    }
}

fn page() -> String {
    let schema = schema();
    let mut page = HEAD.to_owned();
    for part in ["spec", "status"] {
        let _ = writeln!(page, "\n## `{part}`\n\n| field | type | meaning |\n|---|---|---|");
        rows(&mut page, &schema["properties"][part], part);
    }
    let _ = writeln!(page, "\n## Phases\n\n| phase | meaning |\n|---|---|");
    // A described enum is a oneOf of constants in the types' schema; the API server gets the plain list.
    let described = schemars::schema_for!(super::status::Phase);
    for word in described.as_value()["oneOf"].as_array().into_iter().flatten() {
        let text = |key: &str| word[key].as_str().unwrap_or_default();
        let _ = writeln!(page, "| `{}` | {} |", text("const"), cell(text("description")));
    }
    words(&mut page, "Conditions", ConditionType::ALL.iter().map(|word| (word.as_str(), word.meaning())));
    words(&mut page, "Reasons", Reason::ALL.iter().map(|word| (word.as_str(), word.meaning())));
    let _ = writeln!(page, "\n## Rules\n\n| at | what a refused write reads |\n|---|---|");
    for rule in RULES {
        let at = format!("{}{}", rule.at.join("."), rule.field_path.unwrap_or_default());
        let _ = writeln!(page, "| `{}` | {} |", at.trim_start_matches('.'), cell(rule.message));
    }
    page.push('\n');
    page.push_str(CODES);
    page
}

#[test]
fn the_reference_is_made_from_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/api.md");
    let page = page();
    for phase in super::status::Phase::ALL {
        assert!(page.contains(&format!("| `{}` |", phase.as_str())), "{} has no row", phase.as_str());
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).expect("write");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/api.md differs from the types: run with UPDATE=1 and commit it");
}
