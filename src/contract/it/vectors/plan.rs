//! `plan_output`: another program's output, so only its meaning counts: the same sections for what both accept, the same
//! code for what both refuse. An unknown key, which it prints a plan for, is refused here by name.

use contract::canon::{Json, strict};
use contract::manifest::preview;
use contract::plan_document;

use super::{Case, Check, File, Run, fail, run, same};

#[test]
fn plan_output() {
    run(&File { name: "plan_output", groups: &[("plan_cli", Run::Check(plan))] });
}

fn plan(case: &Case) -> Check {
    let manifest = String::from_utf8(strict(&case.json("manifest")?)).map_err(|error| error.to_string())?;
    // The other program's texts for a person, and how it ended, are its own.
    let _ = (case.get("stdout"), case.get("unhandled_traceback"));
    let got = preview(&manifest, None, None);
    let sections = ["mssql_native", "bulk_path", "state_tables"];
    match (got, case.u64("exit_code")?) {
        (Ok(plan), 0) => {
            let document = plan_document::json(&plan);
            sections.iter().try_for_each(|section| same(section, document.get(section), Some(&case.json(section)?)))
        }
        (Err(refusal), 0) => {
            let _ = sections.map(|section| case.get(section).is_some());
            same("refused key", refusal.code.as_str().starts_with("native_transfer.unknown_key:"), true)
        }
        (Err(refusal), _) => {
            let line = case.text("stderr_last_line")?;
            let named = line.split([' ', ':']).any(|word| word == refusal.code.as_str());
            same(&format!("{line:?} names {}", refusal.code), named, true)
        }
        (Ok(_), code) => fail(format!("accepted, want exit code {code}")),
    }
}

#[test]
fn a_section_of_another_plan_would_be_seen() {
    let document = plan_document::json(&preview(crate::manifest::RESOURCE, None, None).expect("accepted"));
    let section = document.get("mssql_native").expect("section");
    assert_eq!(section.get("import_backend"), Some(&Json::from("mssql_sqlclient")));
    assert_eq!(section.get("writer_proof_capability"), Some(&Json::from("sqlclient-session-applock-v1")));
}
