//! The closed keys of a process: every key is known, or it is named in a refusal.
//!
//! Objects that have a code of their own for a wrong key (`source_snapshot`, `chunking`, `native_chunks`, `window`) are
//! left to [`super::policy`].

use crate::canon::{Json, Object};
use crate::code;
use crate::error::Refusal;

/// What may stand under a key.
enum Shape {
    /// An object of exactly these keys, each optional.
    Closed(&'static [(&'static str, Shape)]),
    /// An object with any keys, each of this shape.
    Named(&'static Shape),
    /// A text.
    Text,
    /// Anything; checked elsewhere.
    Any,
    /// Anything; belongs to other routes or another runtime and has no effect here.
    Ignored,
}

use Shape::{Any, Closed, Ignored, Named, Text};

/// Keys of wire and execution that configure other routes of the same manifest format. They are accepted, so that one
/// manifest can serve several routes, and named in the plan as having no effect.
const WIRE: &[(&str, Shape)] = &[
    ("mode", Any),
    ("binary_format", Any),
    ("text_safety", Ignored),
    ("delimiter_profile", Ignored),
    ("null_policy", Ignored),
    ("source_native_format", Ignored),
    ("block_rows", Ignored),
    ("block_bytes", Ignored),
    ("acceleration", Ignored),
];

const EXECUTION: &[(&str, Shape)] = &[
    ("import_backend", Any),
    ("verification_backend", Any),
    ("layout_version", Any),
    ("chunking", Any),
    ("native_chunks", Any),
    ("mode", Ignored),
    ("profile", Ignored),
    ("cleanup_policy", Ignored),
    ("resume_policy", Ignored),
    ("transport", Ignored),
    ("certification", Ignored),
    ("resource_policy", Ignored),
];

const NATIVE_TRANSFER: &[(&str, Shape)] =
    &[("wire", Closed(WIRE)), ("execution", Closed(EXECUTION)), ("source_snapshot", Any), ("snapshot", Ignored)];

const TABLE: Shape = Closed(&[("schema", Text), ("name", Text)]);

const TARGET_TYPE: Shape = Closed(&[("target_type", Closed(&[("mssql", Text)]))]);

const SINK_OPTIONS: &[(&str, Shape)] = &[
    ("physical_design", Closed(&[("columns", Named(&TARGET_TYPE))])),
    ("lineage", Closed(&[("preset", Text)])),
    ("state_schema", Text),
    ("staging_schema", Text),
    ("full_refresh", Closed(&[("clear", Text)])),
];

const STRATEGY: &[(&str, Shape)] = &[
    ("mode", Text),
    ("atomicity", Any),
    ("window", Any),
    ("custom_predicate", Any),
    ("portable_scope", Any),
    ("partition", Any),
];

const SINK: &[(&str, Shape)] = &[
    ("type", Text),
    ("connection_id", Ignored),
    ("connection_ref", Ignored),
    ("connection_type", Ignored),
    ("table", TABLE),
    ("options", Closed(SINK_OPTIONS)),
    ("strategy", Closed(STRATEGY)),
];

/// Source options with a meaning here; the refused ones of [`super::policy::UNSUPPORTED_SOURCE_OPTIONS`] join them.
const SOURCE_OPTIONS: &[(&str, Shape)] = &[("native_transfer", Any), ("query_seconds", Any), ("source_options", Any)];

const SOURCE: &[(&str, Shape)] = &[
    ("type", Text),
    ("connection_id", Ignored),
    ("connection_ref", Ignored),
    ("connection_type", Ignored),
    ("table", TABLE),
    ("options", Any),
];

const PROCESS: &[(&str, Shape)] = &[
    ("name", Text),
    ("description", Ignored),
    ("source", Closed(SOURCE)),
    ("sink", Closed(SINK)),
    ("state", Ignored),
    ("runtime", Ignored),
    ("quality", Any),
];

/// Checks the keys of a process and returns the paths that have no effect here.
///
/// # Errors
/// `native_transfer.unknown_key:PATH`, `native_transfer.manifest_invalid:PATH` for an object or a text that is another
/// kind of value. Objects of `native_transfer` that are no objects are left to the policy, which has codes for them.
pub(super) fn check(process: &Object) -> Result<Vec<String>, Refusal> {
    let mut ignored = Vec::new();
    closed(process, PROCESS, &[], "", &mut ignored)?;
    let options = process.get("source").and_then(|source| source.get("options"));
    if let Some(options) = options.filter(|options| !options.is_null()) {
        let members = options.as_object().ok_or_else(|| invalid("source.options", "an object"))?;
        closed(members, SOURCE_OPTIONS, &super::policy::UNSUPPORTED_SOURCE_OPTIONS, "source.options", &mut ignored)?;
        if let Some(native) = members.get("native_transfer").and_then(Json::as_object) {
            let path = "source.options.native_transfer";
            for (key, value) in native {
                let path = join(path, key);
                match (find(NATIVE_TRANSFER, key), value) {
                    (None, _) => return Err(unknown(&path)),
                    (Some(Closed(keys)), Json::Object(members)) => closed(members, keys, &[], &path, &mut ignored)?,
                    (Some(Ignored), _) => ignored.push(path),
                    (Some(_), _) => {}
                }
            }
        }
    }
    ignored.sort();
    Ok(ignored)
}

/// Checks that an object has only the named keys.
///
/// # Errors
/// `native_transfer.unknown_key:PATH`.
pub(super) fn only(members: &Object, keys: &[&str], path: &str) -> Result<(), Refusal> {
    match members.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(unknown(&join(path, key))),
    }
}

/// As [`only`], with keys that start with `x-` besides: batch files keep their YAML anchors there.
///
/// # Errors
/// `native_transfer.unknown_key:PATH`.
pub(super) fn only_or_anchors(members: &Object, keys: &[&str], path: &str) -> Result<(), Refusal> {
    let own = members.iter().filter(|(key, _)| !key.starts_with("x-"));
    only(&own.map(|(key, value)| (key.clone(), value.clone())).collect(), keys, path)
}

fn closed(
    members: &Object,
    keys: &'static [(&'static str, Shape)],
    also: &[&str],
    path: &str,
    ignored: &mut Vec<String>,
) -> Result<(), Refusal> {
    for (key, value) in members {
        let path = join(path, key);
        match find(keys, key) {
            Some(shape) => one(value, shape, path, ignored)?,
            None if also.contains(&key.as_str()) => {}
            None => return Err(unknown(&path)),
        }
    }
    Ok(())
}

fn one(value: &Json, shape: &'static Shape, path: String, ignored: &mut Vec<String>) -> Result<(), Refusal> {
    match (shape, value) {
        (Any, _) | (Text, Json::Str(_)) => Ok(()),
        (Ignored, _) => {
            ignored.push(path);
            Ok(())
        }
        // An authored null is the same as nothing.
        (Closed(_) | Named(_) | Text, Json::Null) => Ok(()),
        (Closed(keys), Json::Object(members)) => closed(members, keys, &[], &path, ignored),
        (Named(each), Json::Object(members)) => {
            members.iter().try_for_each(|(name, value)| one(value, each, join(&path, name), ignored))
        }
        (Text, _) => Err(invalid(&path, "a text")),
        (Closed(_) | Named(_), _) => Err(invalid(&path, "an object")),
    }
}

fn find(keys: &'static [(&'static str, Shape)], key: &str) -> Option<&'static Shape> {
    keys.iter().find(|(name, _)| *name == key).map(|(_, shape)| shape)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Longest path that a code carries, characters.
const PATH_CHARS: usize = 200;

fn short(path: &str) -> String {
    path.chars().map(|c| if c.is_control() { '?' } else { c }).take(PATH_CHARS).collect()
}

pub(super) fn unknown(path: &str) -> Refusal {
    Refusal::with_detail(
        code::UNKNOWN_KEY,
        &short(path),
        "the manifest has a key that this route does not know; correct its spelling or remove it",
    )
}

pub(super) fn invalid(path: &str, wanted: &'static str) -> Refusal {
    Refusal::with_detail(code::MANIFEST_INVALID, &short(path), format!("the manifest needs {wanted} here"))
}
