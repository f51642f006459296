//! The two documents that hold a process: a `NativeTransfer` resource and a `dpone.batch.v1` file.

use serde_norway::Value as Yaml;

use super::{Plan, Preview, keys};
use crate::canon::{Finite, Json, Object};
use crate::code;
use crate::error::Refusal;

/// Longest document, bytes. A Kubernetes object is at most 1.5 MiB.
const DOCUMENT_BYTES_MAX: usize = 1_500_000;

/// Most brackets and braces that may be open at once. The YAML reader takes quadratic time in them before it refuses them
/// by its own depth limit, so they are counted first; brackets inside texts count as well, which no manifest comes near.
const OPEN_BRACKETS_MAX: i64 = 256;

/// `apiVersion` of a `NativeTransfer`.
pub const API_VERSION: &str = "transfer.dpone.io/v1alpha1";

/// One process of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// `schema.table`, or the table's authored id; the name of a resource.
    pub selector: String,
    /// The process: name, source, sink and what else it has.
    pub manifest: Json,
    /// The interval's end that the document itself gives.
    pub interval_end: Option<String>,
}

/// Reads a document and makes the plan of one of its processes.
///
/// `selector` is what follows `#` in `FILE#schema.table`; a document with one process needs none. `interval_end` is the
/// interval's end from outside, for a document that has none.
///
/// # Errors
/// Those of [`processes`] and [`Plan::from_process`]; `native_transfer.selector_required`,
/// `native_transfer.selector_unknown`, `native_transfer.interval_conflict` when document and caller name different ends.
pub fn parse(text: &str, selector: Option<&str>, interval_end: Option<&str>) -> Result<Plan, Refusal> {
    let process = select(text, selector, interval_end)?;
    Plan::from_process(&process.manifest, process.interval_end.as_deref())
}

/// As [`parse`], to look at: a window may lack its interval.
///
/// # Errors
/// Those of [`parse`], but for a missing interval.
pub fn preview(text: &str, selector: Option<&str>, interval_end: Option<&str>) -> Result<Preview, Refusal> {
    let process = select(text, selector, interval_end)?;
    Preview::of_process(&process.manifest, process.interval_end.as_deref())
}

/// The chosen process, with the interval's end from wherever it is given.
fn select(text: &str, selector: Option<&str>, interval_end: Option<&str>) -> Result<Process, Refusal> {
    let mut processes = processes(text)?;
    let index = match selector {
        None if processes.len() == 1 => 0,
        None => {
            return Err(Refusal::new(
                code::SELECTOR_REQUIRED,
                "the file holds several processes; name one as FILE#schema.table",
            ));
        }
        Some(selector) => processes.iter().position(|process| process.selector == selector).ok_or_else(|| {
            Refusal::new(
                code::SELECTOR_UNKNOWN,
                "the file has no process of that selector; write it as FILE#schema.table",
            )
        })?,
    };
    let mut process = processes.swap_remove(index);
    match (&process.interval_end, interval_end) {
        (Some(own), Some(given)) if own != given => Err(Refusal::new(
            code::INTERVAL_CONFLICT,
            "the document already names the interval's end, and it is another one; give only one of them",
        )),
        (None, Some(given)) => {
            process.interval_end = Some(given.to_owned());
            Ok(process)
        }
        _ => Ok(process),
    }
}

/// The processes of a document, in its order.
///
/// # Errors
/// `native_transfer.manifest_unreadable` (not one YAML document, a repeated key, a tag, NaN),
/// `native_transfer.manifest_kind_unknown`, `native_transfer.unknown_key:PATH`, `native_transfer.manifest_invalid:PATH`.
pub fn processes(text: &str) -> Result<Vec<Process>, Refusal> {
    let document = read(text)?;
    let Json::Object(document) = document else { return Err(kind_unknown()) };
    let text = |key: &str| document.get(key).and_then(Json::as_str);
    match (text("kind"), text("apiVersion")) {
        (Some("dpone.batch.v1"), None) => batch(&document),
        (Some("NativeTransfer"), Some(API_VERSION)) => resource(&document).map(|process| vec![process]),
        _ => Err(kind_unknown()),
    }
}

fn kind_unknown() -> Refusal {
    Refusal::new(
        code::MANIFEST_KIND_UNKNOWN,
        "the document is neither kind NativeTransfer of transfer.dpone.io/v1alpha1 nor kind dpone.batch.v1",
    )
}

fn unreadable(message: &'static str) -> Refusal {
    Refusal::new(code::MANIFEST_UNREADABLE, message)
}

/// Reads YAML, of which JSON is a part. A repeated key is refused: which of two values counts is nobody's guess.
fn read(text: &str) -> Result<Json, Refusal> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(unreadable("the document is larger than a Kubernetes object can be (1.5 MB)"));
    }
    let mut open = 0i64;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open -= 1,
            _ => continue,
        }
        if open > OPEN_BRACKETS_MAX {
            return Err(unreadable("the document is nested deeper than a manifest can be"));
        }
    }
    let yaml: Yaml = serde_norway::from_str(text).map_err(|error| {
        let place = error.location().map(|at| format!(" (line {}, column {})", at.line(), at.column()));
        Refusal {
            code: crate::error::Code::new(code::MANIFEST_UNREADABLE),
            message: format!("the document is not one YAML document with distinct keys{}", place.unwrap_or_default())
                .into(),
        }
    })?;
    convert(yaml)
}

fn convert(yaml: Yaml) -> Result<Json, Refusal> {
    Ok(match yaml {
        Yaml::Null => Json::Null,
        Yaml::Bool(value) => Json::Bool(value),
        Yaml::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64().and_then(Finite::new)) {
            (Some(value), ..) => Json::from(value),
            (_, Some(value), _) => Json::from(value),
            (.., Some(value)) => Json::Float(value),
            _ => return Err(unreadable("the document holds a number that is not finite")),
        },
        Yaml::String(text) => Json::Str(text),
        Yaml::Sequence(items) => Json::Array(items.into_iter().map(convert).collect::<Result<_, _>>()?),
        Yaml::Mapping(members) => Json::Object(
            members
                .into_iter()
                .map(|(key, value)| match key {
                    Yaml::String(key) => Ok((key, convert(value)?)),
                    _ => Err(unreadable("a key of the document is not a text; put it in quotes")),
                })
                .collect::<Result<_, _>>()?,
        ),
        Yaml::Tagged(_) => return Err(unreadable("the document holds a YAML tag, which has no meaning here")),
    })
}

fn resource(document: &Object) -> Result<Process, Refusal> {
    keys::only(document, &["apiVersion", "kind", "metadata", "spec", "status"], "")?;
    let spec = object(document.get("spec"), "spec")?;
    // Everything but manifest and interval belongs to the operator, which has a schema for it.
    let known = ["connections", "interval", "manifest", "journal", "run", "suspend", "retention", "workers", "limits"];
    keys::only(spec, &known, "spec")?;
    let interval_end = match spec.get("interval").filter(|interval| !interval.is_null()) {
        None => None,
        Some(interval) => {
            let interval = object(Some(interval), "spec.interval")?;
            keys::only(interval, &["end"], "spec.interval")?;
            interval.get("end").map(|end| text(end, "spec.interval.end")).transpose()?.map(str::to_owned)
        }
    };
    let manifest = spec.get("manifest").cloned().unwrap_or(Json::Null);
    object(Some(&manifest), "spec.manifest")?;
    let metadata = document.get("metadata");
    let name = metadata.and_then(|metadata| metadata.get("name")).and_then(Json::as_str).unwrap_or_default();
    Ok(Process { selector: name.to_owned(), manifest, interval_end })
}

fn batch(document: &Object) -> Result<Vec<Process>, Refusal> {
    let known = ["kind", "name", "description", "metadata", "meta", "defaults", "schemas", "runtime"];
    keys::only_or_anchors(document, &known, "")?;
    let nothing = Object::new();
    let defaults = optional_object(document.get("defaults"), "defaults", &nothing)?;
    let schemas = object(document.get("schemas"), "schemas")?;
    let mut processes: Vec<Process> = Vec::new();
    for (schema, block) in schemas {
        let path = format!("schemas.{schema}");
        let block = object(Some(block), &path)?;
        keys::only_or_anchors(block, &["defaults", "tables"], &path)?;
        let defaults = merged(defaults, optional_object(block.get("defaults"), &format!("{path}.defaults"), &nothing)?);
        let tables = block.get("tables").and_then(Json::as_array).filter(|tables| !tables.is_empty());
        let tables = tables.ok_or_else(|| keys::invalid(&format!("{path}.tables"), "a list of tables"))?;
        for (index, entry) in tables.iter().enumerate() {
            let process = table(schema, entry, &defaults, &format!("{path}.tables[{index}]"))?;
            if processes.iter().any(|earlier| earlier.selector == process.selector) {
                return Err(keys::invalid(&format!("{path}.tables[{index}]"), "a selector of its own"));
            }
            processes.push(process);
        }
    }
    if processes.is_empty() { Err(keys::invalid("schemas", "at least one schema")) } else { Ok(processes) }
}

/// One entry of `tables`: a name, or `{table, id, overrides}`.
fn table(schema: &str, entry: &Json, defaults: &Object, path: &str) -> Result<Process, Refusal> {
    let nothing = Object::new();
    let (table, id, overrides) = match entry {
        Json::Str(table) => (table.as_str(), None, &nothing),
        Json::Object(entry) => {
            keys::only(entry, &["table", "id", "overrides"], path)?;
            let table = entry.get("table").ok_or_else(|| keys::invalid(&format!("{path}.table"), "a text"))?;
            let id = entry.get("id").map(|id| text(id, &format!("{path}.id"))).transpose()?;
            let overrides = optional_object(entry.get("overrides"), &format!("{path}.overrides"), &nothing)?;
            (text(table, &format!("{path}.table"))?, id, overrides)
        }
        _ => return Err(keys::invalid(path, "a table name, or an object with table and overrides")),
    };
    let mut process = merged(defaults, overrides);
    let source = process.entry("source".to_owned()).or_insert_with(|| Json::Object(Object::new()));
    if let Json::Object(source) = source {
        let relation = source.entry("table".to_owned()).or_insert_with(|| Json::Object(Object::new()));
        if let Json::Object(relation) = relation {
            relation.entry("schema".to_owned()).or_insert_with(|| Json::from(schema));
            relation.entry("name".to_owned()).or_insert_with(|| Json::from(table));
        }
    }
    let selector = id.map_or_else(|| format!("{schema}.{table}"), str::to_owned);
    Ok(Process { selector, manifest: Json::Object(process), interval_end: None })
}

/// Objects merge member by member; anything else is replaced.
fn merged(base: &Object, over: &Object) -> Object {
    let mut all = base.clone();
    for (key, value) in over {
        let value = match (all.get(key), value) {
            (Some(Json::Object(base)), Json::Object(over)) => Json::Object(merged(base, over)),
            _ => value.clone(),
        };
        all.insert(key.clone(), value);
    }
    all
}

fn object<'a>(value: Option<&'a Json>, path: &str) -> Result<&'a Object, Refusal> {
    value.and_then(Json::as_object).ok_or_else(|| keys::invalid(path, "an object"))
}

fn optional_object<'a>(value: Option<&'a Json>, path: &str, nothing: &'a Object) -> Result<&'a Object, Refusal> {
    match value {
        None | Some(Json::Null) => Ok(nothing),
        some => object(some, path),
    }
}

fn text<'a>(value: &'a Json, path: &str) -> Result<&'a str, Refusal> {
    value.as_str().ok_or_else(|| keys::invalid(path, "a text"))
}
