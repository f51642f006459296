//! `type_mapping`: source admission, default and authored types, layouts, projection.

use contract::layout::WireColumn;
use contract::mapping::{classify, resolve};
use contract::source_type::{SourceType, header_type, select_expression};
use contract::target_layout;
use serde_json::Value;

use super::{Case, Check, File, Run, run, same};

#[test]
fn type_mapping() {
    run(&File {
        name: "type_mapping",
        groups: &[
            ("default", Run::Check(mapped)),
            ("other_types", Run::Check(mapped)),
            ("physical_design_override", Run::Check(mapped)),
        ],
    });
}

fn mapped(case: &Case) -> Check {
    let text = case.text("clickhouse_type")?;
    let admission = SourceType::parse(text).err().map(|refusal| refusal.code.as_str().to_owned());
    same("admission", admission.as_deref(), case.optional_text("source_admission_error"))?;
    planned(case, text)?;
    same("projection", select_expression("v", text).as_str(), case.text("projection_sql")?)?;
    same("header type", header_type(text), case.text("projection_wire_type")?)?;
    let resolved = resolve("v", text, case.optional_text("override"));
    let code = resolved.as_ref().err().map(|refusal| refusal.code.as_str());
    same("resolve error", code, case.optional_text("resolve_error"))?;
    let resolved = resolved.ok();
    same("resolved", resolved.map(|sql| sql.to_string()).as_deref(), case.optional_text("resolved_type"))?;
    let Some(sql) = resolved else {
        let absent = ["wire_type", "native_layout", "target_local_admitted"].iter().all(|key| case.get(key).is_none());
        return same("a refused type has no wire form", absent, true);
    };
    let suffix = if text.starts_with("Nullable(") { " nullable" } else { "" };
    let wire_type = format!("{sql}{suffix}");
    same("wire type", wire_type.as_str(), case.text("wire_type")?)?;
    let column = WireColumn::new("v", &wire_type).map_err(|error| error.to_string())?;
    let want = case.json("native_layout")?;
    for (key, value) in want.as_object().ok_or("native_layout is no object")? {
        same(key, column.document().get(key), Some(value))?;
    }
    let admitted = case.field("target_local_admitted")?.as_bool();
    same("target_local_admitted", Some(target_layout::admits(&column)), admitted)
}

/// What the planner knows about the type. Its reasons are our own words: only that there is one binds.
fn planned(case: &Case, text: &str) -> Check {
    let class = classify(text);
    let target = class.as_ref().and_then(|class| class.target_text.as_deref());
    same("planner default", target, case.optional_text("planner_default"))?;
    let lossless = class.as_ref().map(|class| class.lossless);
    same("planner lossless", lossless, case.get("planner_lossless").and_then(Value::as_bool))?;
    let reason = class.as_ref().is_some_and(|class| class.unsupported.is_some());
    same("planner reason", reason, case.optional_text("planner_reason").is_some())
}
