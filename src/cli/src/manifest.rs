//! Reading the manifest, and `plan`.

use std::fs::File;
use std::io::Read;

use contract::canon::strict;
use contract::digest::Digest;
use contract::error::Refusal;
use contract::manifest::{self, Plan};
use contract::plan_document;

use crate::arguments::{ManifestArguments, PlanArguments, PlanFormat};
use crate::output;

/// Longest manifest file, bytes.
const FILE_BYTES_MAX: u64 = 1_500_000;

/// `FILE#schema.table` as file and selector.
fn split(file: &str) -> (&str, Option<&str>) {
    match file.rsplit_once('#') {
        Some((path, selector)) if !selector.is_empty() => (path, Some(selector)),
        _ => (file, None),
    }
}

fn read(path: &str) -> Result<String, Refusal> {
    let unreadable = || {
        Refusal::new(
            "native_transfer.manifest_unreadable",
            "the manifest file cannot be read: it must be UTF-8 text of at most 1.5 MB",
        )
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|_| unreadable())?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|_| unreadable())?;
    if text.len() as u64 > FILE_BYTES_MAX { Err(unreadable()) } else { Ok(text) }
}

/// The plan of a run. With a digest the file must be that document, byte for byte.
pub(crate) fn load(arguments: &ManifestArguments, sha256: Option<Digest>) -> Result<Plan, Refusal> {
    let (path, selector) = split(&arguments.file);
    let text = read(path)?;
    if sha256.is_some_and(|expected| expected != Digest::of(text.as_bytes())) {
        return Err(Refusal::new(
            "native_transfer.plan_digest_mismatch",
            "the plan file is not the document whose digest was given: look for who changed it",
        ));
    }
    manifest::parse(&text, selector, arguments.interval_end.as_deref())
}

/// `native-transfer plan`.
pub(crate) fn plan(arguments: &PlanArguments) -> u8 {
    let (path, selector) = split(&arguments.manifest.file);
    let preview =
        read(path).and_then(|text| manifest::preview(&text, selector, arguments.manifest.interval_end.as_deref()));
    match preview {
        Ok(preview) => output::print(&match arguments.format {
            PlanFormat::Json => String::from_utf8_lossy(&strict(&plan_document::json(&preview))).into_owned(),
            PlanFormat::Md => plan_document::markdown(&preview),
        }),
        Err(refusal) => output::refused(&refusal.into()),
    }
}
